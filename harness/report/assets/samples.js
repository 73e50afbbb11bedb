
// ---- filters ------------------------------------------------------------------------------

let columns;
let matching = [];
let partners = null; // place -> place of the sample that it is compared with; null without a comparison
let page = 0;
let latest = 0; // number of the latest search or page change; older ones stop
let open = null; // {place, id} of the open sample
const filters = Object.fromEntries([...$("#filters").elements].map((field) => [field.name, field]));

function option(select, choices) {
  const before = select.value;
  select.replaceChildren(...choices.map(([value, text]) => make("option", { value, text })));
  if (choices.some(([value]) => value === before)) select.value = before;
}

/** The place of the chosen run; of the only run where all are chosen; else -1. */
const chosenRun = () => (filters.run.value === "" ? (data.runs.length === 1 ? 0 : -1) : Number(filters.run.value));

function fillFilters() {
  const run = filters.run.value;
  const runs = data.runs.filter((_, place) => run === "" || String(place) === run);
  const cells = runs.flatMap((listedRun) => listedRun.cells);
  const conditions = [...new Set(cells.map(([name]) => name))].map((name) => [name, name === "-" ? "none" : name.replaceAll(",", ", ")]);
  option(filters.condition, [["", "all"], ...conditions]);
  const lengths = [...new Set(cells.map(([, length]) => length))].sort((a, b) => parseInt(a) - parseInt(b));
  const shown = (line) => line.replace(/\d+/g, (number) => Number(number).toLocaleString("en"));
  option(filters.length, [["", "all"], ...lengths.map((line) => [line, shown(line)])]);
  const chosen = data.runs[chosenRun()];
  filters.other.disabled = chosen === undefined;
  if (chosen === undefined) return option(filters.other, [["", "first choose a run"]]);
  const others = data.runs.flatMap((one, place) =>
    one !== chosen && one.section === chosen.section && one.seed === chosen.seed ? [[`run:${place}`, `that of ${one.name}`]] : [],
  );
  const shownConditions = conditions.length > 1 ? conditions.map(([name, text]) => [`condition:${name}`, `that under ${text}`]) : [];
  return option(filters.other, [["", "(all samples are shown)"], ...others, ...shownConditions]);
}

/** Place -> the place that it is compared with: the other run's, or the other condition's. */
function findPartners() {
  const chosen = chosenRun();
  const [, kind, other] = filters.other.value.match(/^(run|condition):(.*)$/s) ?? [];
  if (kind === undefined) return null;
  const keyOf = (place) => `${columns.length[place]} ${columns.index[place]} ${columns.draw[place]} ${kind === "run" ? lineOf(place)[0] : ""}`;
  const scored = (place) => !data.unscored.includes(data.outcomes[columns.outcome[place]]);
  const isOther = (place) =>
    kind === "run" ? String(columns.run[place]) === other : columns.run[place] === chosen && lineOf(place)[0] === other;
  const places = columns.run.map((_, place) => place).filter(scored);
  const others = new Map(places.filter(isOther).map((place) => [keyOf(place), place]));
  return new Map(
    places
      .filter((place) => columns.run[place] === chosen && !isOther(place) && others.has(keyOf(place)))
      .map((place) => [place, others.get(keyOf(place))]),
  );
}

/** Marks the open sample, and scrolls to it. */
function mark() {
  const at = open ? matching.slice(page * PAGE, (page + 1) * PAGE).indexOf(open.place) : -1;
  all(".card").forEach((node, place) => {
    if (place === at) node.setAttribute("aria-current", "true");
    else node.removeAttribute("aria-current");
  });
  if (at >= 0) all(".card")[at].scrollIntoView({ behavior: "instant" });
}

async function showPage() {
  const current = ++latest;
  const first = page * PAGE;
  const places = matching.slice(first, first + PAGE);
  const samples = await Promise.all(places.map(sampleAt));
  const others = partners ? await Promise.all(places.map((place) => sampleAt(partners.get(place)))) : [];
  if (current !== latest) return;
  $("#cards").replaceChildren(
    ...samples.map((sample, at) =>
      partners ? pairCard([sample, others[at]], [places[at], partners.get(places[at])]) : card(sample, places[at])),
  );
  mark();
  $("#cards").ariaBusy = "false";
  $("#place").textContent = matching.length ? `${(first + 1).toLocaleString("en")}–${(first + places.length).toLocaleString("en")}` : "";
  $("#previous").disabled = page === 0;
  $("#next").disabled = first + PAGE >= matching.length;
}

function say(count, compared, unknown) {
  const [shown, whole] = [count, compared ?? columns.run.length].map((number) => number.toLocaleString("en"));
  const said = compared === null ? `${shown} of ${whole} samples` : `${shown} of ${whole} pairs with a score on both sides have different outcomes`;
  const missing = unknown.length ? `; the address names what this page does not have: ${unknown.join(", ")}` : "";
  $("#found").replaceChildren(...plainly(said + missing));
}

/** Finds the samples that the filters let through, and shows their first page. */
async function filter(asked = new URLSearchParams(), unknown = []) {
  const current = ++latest;
  $("#cards").ariaBusy = "true";
  const chosen = { run: filters.run.value, condition: filters.condition.value, length: filters.length.value, outcome: filters.outcome.value };
  const cellFits = data.runs.map((run) =>
    run.cells.map(([condition, length]) => (chosen.condition === "" || condition === chosen.condition) && (chosen.length === "" || length === chosen.length)),
  );
  const pairs = findPartners();
  let compared = pairs && 0;
  let fitting = [];
  for (let place = 0; place < columns.run.length; place += 1) {
    const run = columns.run[place];
    if (chosen.run !== "" && chosen.run !== String(run)) continue;
    if (!cellFits[run][columns.cell[place]]) continue;
    if (pairs) {
      if (!pairs.has(place)) continue;
      compared += 1;
      if (columns.outcome[place] === columns.outcome[pairs.get(place)]) continue;
    }
    if (chosen.outcome === "" || chosen.outcome === String(columns.outcome[place])) fitting.push(place);
  }
  const text = filters.text.value.toLowerCase();
  if (text) {
    $("#found").textContent = "Looking…";
    const [prompt, reply] = ["prompt", "reply"].map((name) => data.fields.indexOf(name));
    const kept = [];
    for (const place of fitting) {
      const sought = pairs ? [place, pairs.get(place)] : [place];
      for (const one of sought) {
        const values = (await textsOf(Math.floor(one / PER_CHUNK)))[one % PER_CHUNK];
        if (current !== latest) return;
        if ([values[prompt], values[reply]].some((value) => value?.toLowerCase().includes(text))) {
          kept.push(place);
          break;
        }
      }
    }
    fitting = kept;
  }
  const sample = asked.get("sample");
  const found = sample === null ? null : await placeOf(sample, asked.get("of"), fitting);
  if (current !== latest) return;
  matching = fitting;
  partners = pairs;
  open = found === null ? null : { place: found, id: sample };
  const last = Math.max(0, Math.ceil(fitting.length / PAGE) - 1);
  page = found === null ? Math.min(Math.max(0, Math.trunc(Number(asked.get("page")) || 1) - 1), last) : Math.floor(fitting.indexOf(found) / PAGE);
  say(fitting.length, compared, sample !== null && found === null ? [...unknown, `sample ${sample}`] : unknown);
  await showPage();
}

/** The place among `places` of this sample of this run; null without one. */
async function placeOf(id, run, places) {
  const [length, index] = ["length", "index"].map((name) => id.match(`.*[|]${name}=(\\d+)`)?.[1]);
  for (const place of places) {
    if (String(columns.length[place]) !== length || String(columns.index[place]) !== index || titleOf(data.runs[columns.run[place]]) !== run) continue;
    if ((await sampleAt(place)).id === id) return place;
  }
  return null;
}

// ---- the address --------------------------------------------------------------------------

const ADDRESS = "#samples?";
const FILTERS = ["run", "condition", "length", "outcome", "other", "text"];
let shown = ""; // what the address says of the samples on the page

/** A filter's value as an address names it: a run by its name, since places change with the runs. */
function named(name, value) {
  if (value === "") return "";
  if (name === "run") return titleOf(data.runs[value]);
  if (name === "outcome") return data.outcomes[value];
  if (name === "other" && value.startsWith("run:")) return `run:${titleOf(data.runs[value.slice(4)])}`;
  return value;
}

/** The filters and the page as an address, or the filters and one sample. */
function addressed(place = null, id = "") {
  const said = new URLSearchParams(FILTERS.map((name) => [name, named(name, filters[name].value)]).filter(([, value]) => value !== ""));
  if (place !== null) {
    said.set("of", titleOf(data.runs[columns.run[place]]));
    said.set("sample", id);
  } else if (page > 0) said.set("page", page + 1);
  return said.toString();
}

/** Writes the filters into the address; `replacing` the latest entry of the history or after it. */
function remember(replacing = false) {
  const said = open ? addressed(open.place, open.id) : addressed();
  if (said === shown) return;
  const before = shown;
  shown = said;
  if (replacing && location.hash.startsWith(ADDRESS)) return history.replaceState(null, "", ADDRESS + said);
  // back leads to an entry that must know its filters
  if (!location.hash.startsWith(ADDRESS)) history.replaceState({ samples: before }, "");
  return history.pushState(null, "", ADDRESS + said);
}

/** Sets the filters as the address says, and shows its page or its open sample. */
async function restore(text) {
  shown = text;
  const asked = new URLSearchParams(text);
  const unknown = [];
  for (const name of FILTERS) {
    const value = asked.get(name) ?? "";
    if (name === "text") filters.text.value = value;
    else {
      const choices = [...filters[name].options].filter((one) => named(name, one.value) === value);
      filters[name].value = choices[0]?.value ?? "";
      if (choices.length === 0 && value !== "") unknown.push(`${name} ${value}`);
    }
    if (name === "run") fillFilters();
  }
  await filter(asked, unknown);
}

const askedNow = () => (location.hash.startsWith(ADDRESS) ? location.hash.slice(ADDRESS.length) : undefined);

window.addEventListener("popstate", async (event) => {
  const text = askedNow() ?? event.state?.samples;
  if (text === undefined || text === shown) return;
  await opened();
  await restore(text);
  if (askedNow() !== undefined && !open) $("#samples").scrollIntoView({ behavior: "instant" });
});

// ---- files --------------------------------------------------------------------------------

const OTHER_COLUMNS = ["task", "model", "condition", "line", "length", "index", "outcome"];
const NOT_EXPORTED = ["start", "end"]; // places in the reply as JavaScript counts them

const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff\u{e0000}-\u{e007f}]/gu;
const SHORT = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };
const hex = (char, letter, digits) => `\\${letter}${char.codePointAt(0).toString(16).padStart(digits, "0")}`;
const escaped = (char) => SHORT[char] ?? (char.codePointAt(0) < 0x100 ? hex(char, "x", 2) : char.length > 1 ? hex(char, "U", 8) : hex(char, "u", 4));

/** A text for a cell, as `csv_text` of harness/analysis/tables/cells.py writes it. */
const csvText = (text) =>
  text.replaceAll("\\", "\\\\").replace(UNSEEN, escaped).replace(/^(?='*[=+\-@＝＋－＠].)|(?<=;)(?='*[=+\-@＝＋－＠])/gsu, "'");

async function exported(place) {
  const run = data.runs[columns.run[place]];
  const [condition, line] = lineOf(place);
  const known = [run.section, run.name, condition, line, columns.length[place], columns.index[place], data.outcomes[columns.outcome[place]]];
  const sample = await sampleAt(place);
  return Object.fromEntries([
    ...OTHER_COLUMNS.map((name, at) => [name, known[at]]),
    ...data.fields.filter((name) => !NOT_EXPORTED.includes(name)).map((name) => [name, sample[name]]),
  ]);
}

/** One row for each matching sample; in a comparison with the other's values as `other_…`. */
async function exportedRows() {
  const rows = [];
  for (const place of matching) {
    const row = await exported(place);
    if (partners) {
      for (const [name, value] of Object.entries(await exported(partners.get(place)))) row[`other_${name}`] = value;
    }
    rows.push(row);
  }
  return rows;
}

async function downloadCsv() {
  const rows = await exportedRows();
  const names = Object.keys(rows[0] ?? {});
  const field = (value) => {
    const cell = typeof value === "string" ? csvText(value) : String(value ?? "");
    return /[",]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell;
  };
  download("samples.csv", [names, ...rows.map((row) => names.map((name) => row[name]))].map((row) => `${row.map(field).join(",")}\n`).join(""));
}

async function downloadJsonl() {
  const rows = await exportedRows();
  download("samples.jsonl", rows.map((row) => `${JSON.stringify(row)}\n`).join(""), "application/jsonl");
}

// ---- opening ------------------------------------------------------------------------------

function turn(by) {
  page += by;
  open = null;
  remember();
  showPage().then(() => $("#samples").scrollIntoView({ behavior: "instant" }));
}

async function openSamples() {
  columns = await unpack($("#index").textContent);
  option(filters.run, [["", "all"], ...data.runs.map((run, place) => [String(place), titleOf(run)])]);
  const occurring = new Set(columns.outcome);
  option(filters.outcome, [["", "all"], ...data.outcomes.flatMap((name, place) => (occurring.has(place) ? [[String(place), spaced(name)]] : []))]);
  fillFilters();
  let waiting;
  let typing = false;
  $("#filters").addEventListener("input", (event) => {
    if (event.target === filters.run) fillFilters();
    clearTimeout(waiting);
    $("#cards").ariaBusy = "true";
    const text = event.target === filters.text;
    page = 0;
    open = null;
    remember(text && typing);
    typing = text;
    waiting = setTimeout(() => filter(), text ? 250 : 0);
  });
  $("#filters").addEventListener("submit", (event) => event.preventDefault());
  $("#previous").addEventListener("click", () => turn(-1));
  $("#next").addEventListener("click", () => turn(1));
  $("#samples-csv").addEventListener("click", downloadCsv);
  $("#samples-jsonl").addEventListener("click", downloadJsonl);
}

let opening;
/** Unpacks the index once. */
const opened = () => (opening ??= openSamples());

const atSamples = new IntersectionObserver(
  (entries) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    atSamples.disconnect();
    if (!opening) opened().then(() => filter());
  },
  { rootMargin: "800px" },
);
atSamples.observe($("#samples"));
if (askedNow() !== undefined) {
  $("#samples").scrollIntoView({ behavior: "instant" });
  opened().then(() => restore(askedNow()));
}
