
// ---- samples ------------------------------------------------------------------------------

const PAGE = 25;
const PER_CHUNK = data.chunk;
const chunks = all(".chunk");
const unpacked = new Map();

async function unpack(text) {
  const bytes = Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

function textsOf(chunk) {
  if (!unpacked.has(chunk)) unpacked.set(chunk, unpack(chunks[chunk].textContent));
  return unpacked.get(chunk);
}

async function sampleAt(place) {
  const values = (await textsOf(Math.floor(place / PER_CHUNK)))[place % PER_CHUNK];
  return Object.fromEntries(data.fields.map((name, at) => [name, values[at]]));
}

const SIGNS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\u{e0000}-\u{e007f}]/u;
const LONG = 320;
const EDGE = 120;

/** Nodes of `text`, in which a character that cannot be seen is a sign with its code. */
function plainly(text) {
  return text.split(new RegExp(`(${SIGNS.source})`, "u")).filter(Boolean).map((part) => {
    if (!SIGNS.test(part)) return document.createTextNode(part);
    const code = part.codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
    return make("span", { className: "sign", text: `U+${code}`, title: "a character that cannot be seen" });
  });
}

/** `at`, or the place after it if `at` splits a character. */
const whole = (text, at) => (text.codePointAt(at - 1) > 0xffff ? at + 1 : at);

/** Nodes of `text`, with the middle of each long line behind a button. */
function folded(text) {
  return text.split(/(?<=\n)/).flatMap((line) => {
    if (line.length <= LONG) return plainly(line);
    const first = whole(line, EDGE);
    const last = whole(line, line.length - EDGE);
    const middle = line.slice(first, last);
    const button = make("button", {
      type: "button",
      className: "unfold",
      text: `… ${middle.length.toLocaleString("en")} characters …`,
    });
    button.addEventListener("click", () => button.replaceWith(...plainly(middle)));
    return [...plainly(line.slice(0, first)), button, ...plainly(line.slice(last))];
  });
}

function block(title, ...content) {
  return make("div", {}, make("h4", { text: title }), make("pre", { className: "text", dir: "auto", tabIndex: 0 }, ...content));
}

function absent(title, why) {
  return make("div", {}, make("h4", { text: title }), make("p", { className: "absent" }, ...plainly(why)));
}

function card(sample, place) {
  const run = data.runs[columns.run[place]];
  const outcome = data.outcomes[columns.outcome[place]];
  const badge = make("span", { className: "badge", text: outcome.replace("_", " ") });
  badge.style.setProperty("--tone", data.tones[outcome]);
  const fact = (name, value) => (value === null || value === "" ? [] : [make("span", {}, `${name} `, make("b", {}, ...folded(String(value))))]);
  const tokens = sample.prompt_tokens === null ? null : `${sample.prompt_tokens} + ${sample.output_tokens ?? "?"}`;
  const header = make(
    "header", {}, badge,
    ...fact("target", sample.target), ...fact("answer", sample.answer),
    ...fact("tokens", tokens),
    ...fact("latency", sample.latency_s === null ? null : `${sample.latency_s.toFixed(2)} s`),
    ...(sample.answer === null ? fact("because", sample.why) : []),
    make("code", {}, ...plainly(`${sample.id} · ${run.name}`)),
  );
  const prompt = sample.prompt === null
    ? absent("Prompt", run.why || "made again now, it is not the prompt that was asked: the task changed since")
    : block("Prompt", ...folded(sample.prompt));
  const parts = [];
  if (sample.reasoning) parts.push(block("Reasoning", ...folded(sample.reasoning)));
  if (sample.reply === null) parts.push(absent("No reply", sample.failure || "no reason is recorded"));
  else {
    const { reply, start, end } = sample;
    const marked = end > start ? [make("mark", {}, ...folded(reply.slice(start, end)))] : [];
    const content = [...folded(reply.slice(0, start)), ...marked, ...folded(reply.slice(end))];
    parts.push(reply ? block("Reply", ...content) : absent("Reply", "an empty text"));
    if (sample.failure) parts.push(absent("Refusal", sample.failure));
  }
  return make("article", { className: "card" }, header, prompt, make("div", {}, ...parts));
}

let columns;
let matching = [];
let page = 0;
let latest = 0; // number of the latest search or page change; older ones stop
const filters = Object.fromEntries([...$(".filters").elements].map((field) => [field.name, field]));

function option(select, choices) {
  const before = select.value;
  select.replaceChildren(...choices.map(([value, text]) => make("option", { value, text })));
  if (choices.some(([value]) => value === before)) select.value = before;
}

function fillFilters() {
  const run = filters.run.value;
  const runs = data.runs.filter((_, place) => run === "" || String(place) === run);
  const cells = runs.flatMap((listedRun) => listedRun.cells);
  option(filters.condition, [["", "all"], ...[...new Set(cells.map(([name]) => name))].map((name) => [name, name === "-" ? "none" : name.replaceAll(",", ", ")])]);
  const lengths = [...new Set(cells.map(([, length]) => length))].sort((a, b) => parseInt(a) - parseInt(b));
  const shown = (line) => line.replace(/\d+/g, (number) => Number(number).toLocaleString("en"));
  option(filters.length, [["", "all"], ...lengths.map((line) => [line, shown(line)])]);
}

async function showPage() {
  const current = ++latest;
  const first = page * PAGE;
  const places = matching.slice(first, first + PAGE);
  const samples = await Promise.all(places.map(sampleAt));
  if (current !== latest) return;
  $("#cards").replaceChildren(...samples.map((sample, at) => card(sample, places[at])));
  $("#cards").ariaBusy = "false";
  $("#place").textContent = matching.length ? `${(first + 1).toLocaleString("en")}–${(first + places.length).toLocaleString("en")}` : "";
  $("#previous").disabled = page === 0;
  $("#next").disabled = first + PAGE >= matching.length;
}

const say = (count) => {
  $("#found").textContent = `${count.toLocaleString("en")} of ${columns.run.length.toLocaleString("en")} samples`;
};

async function filter() {
  const current = ++latest;
  const chosen = { run: filters.run.value, condition: filters.condition.value, length: filters.length.value, outcome: filters.outcome.value };
  const cellFits = data.runs.map((run) =>
    run.cells.map(([condition, length]) => (chosen.condition === "" || condition === chosen.condition) && (chosen.length === "" || length === chosen.length)),
  );
  let fitting = [];
  for (let place = 0; place < columns.run.length; place += 1) {
    const run = columns.run[place];
    if (chosen.run !== "" && chosen.run !== String(run)) continue;
    if (chosen.outcome !== "" && chosen.outcome !== String(columns.outcome[place])) continue;
    if (cellFits[run][columns.cell[place]]) fitting.push(place);
  }
  const text = filters.text.value.toLowerCase();
  if (text) {
    $("#found").textContent = "Looking…";
    const [prompt, reply] = ["prompt", "reply"].map((name) => data.fields.indexOf(name));
    const kept = [];
    for (const place of fitting) {
      const values = (await textsOf(Math.floor(place / PER_CHUNK)))[place % PER_CHUNK];
      if (current !== latest) return;
      if ([values[prompt], values[reply]].some((value) => value?.toLowerCase().includes(text))) kept.push(place);
    }
    fitting = kept;
  }
  matching = fitting;
  page = 0;
  say(fitting.length);
  await showPage();
}

function turn(by) {
  page += by;
  showPage().then(() => $("#samples").scrollIntoView());
}

async function openSamples() {
  columns = await unpack($("#index").textContent);
  option(filters.run, [["", "all"], ...data.runs.map((run, place) => [String(place), `${run.section}, ${run.name}`])]);
  const occurring = new Set(columns.outcome);
  option(filters.outcome, [["", "all"], ...data.outcomes.flatMap((name, place) => (occurring.has(place) ? [[String(place), name.replace("_", " ")]] : []))]);
  fillFilters();
  let waiting;
  $(".filters").addEventListener("input", (event) => {
    if (event.target === filters.run) fillFilters();
    clearTimeout(waiting);
    $("#cards").ariaBusy = "true";
    waiting = setTimeout(filter, event.target === filters.text ? 250 : 0);
  });
  $(".filters").addEventListener("submit", (event) => event.preventDefault());
  $("#previous").addEventListener("click", () => turn(-1));
  $("#next").addEventListener("click", () => turn(1));
  await filter();
}

const atSamples = new IntersectionObserver(
  (entries) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    atSamples.disconnect();
    openSamples();
  },
  { rootMargin: "800px" },
);
atSamples.observe($("#samples"));
