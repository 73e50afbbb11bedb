"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const $ = (selector, within = document) => within.querySelector(selector);
const all = (selector, within = document) => [...within.querySelectorAll(selector)];

function make(tag, { text, ...properties } = {}, ...children) {
  const node = Object.assign(document.createElement(tag), properties);
  if (text !== undefined) node.textContent = text;
  node.append(...children);
  return node;
}

// ---- charts -------------------------------------------------------------------------------

const UNITS = ["symbols", "characters", "tokens"];
const LEFT = 58;
const RIGHT = 52;
let unit = "symbols";
const hidden = new Map(); // group -> Set of "field=value" that are switched off
const drawn = new WeakMap(); // chart -> result of vegaEmbed
const stale = new Set(all(".chart"));
const near = new Set();

const figureOf = (chart) => data.figures[chart.dataset.figure];

/** Rows in the chosen unit, without the series that are switched off. */
function rowsOf(rows, shownUnit, off) {
  return rows
    .filter((row) => !off.has(`colour=${row.colour}`) && !off.has(`dash=${row.dash}`))
    .map((row) => {
      const values = {};
      for (const [name, value] of Object.entries(row)) {
        const [field, fieldUnit] = name.split("@");
        if (fieldUnit === undefined || fieldUnit === shownUnit) values[field] = value;
      }
      return values;
    });
}

/** Whether every row of a panel has its length in `shownUnit`. */
function known(panel, shownUnit) {
  const lengths = Object.values(panel).flat().map((row) => row[`x@${shownUnit}`]);
  return lengths.some((length) => length > 0) && !lengths.includes(null);
}

/** Ticks 1, 2, 5, 10 … between the ends, never fewer than two. */
function ticksBetween(low, high) {
  const ticks = [];
  for (let power = 10 ** Math.floor(Math.log10(low)); power <= high; power *= 10) {
    for (const digit of [1, 2, 5]) {
      if (digit * power >= low && digit * power <= high) ticks.push(digit * power);
    }
  }
  return ticks.length > 1 ? ticks : [low, high].map(Math.round);
}

function lengthAxis(figure, shownUnit) {
  const at = figure.panels
    .flatMap((panel) => Object.values(panel).flat())
    .map((row) => row[`x@${shownUnit}`])
    .filter((value) => value > 0);
  const low = Math.min(...at);
  const high = Math.max(...at);
  const air = high > low ? (high / low) ** 0.04 : 1.5;
  return { domain: [low / air, high * air], values: ticksBetween(low, high) };
}

function setAxis(node, axis, title) {
  if (Array.isArray(node)) return node.forEach((one) => setAxis(one, axis, title));
  if (node === null || typeof node !== "object") return undefined;
  const x = node.encoding?.x;
  if (x?.scale?.type === "log") {
    if (axis) x.scale.domain = axis.domain;
    if (axis && x.axis.title) x.axis.values = axis.values;
    if (x.axis.title) x.axis.title = title;
  }
  return Object.values(node).forEach((one) => setAxis(one, axis, title));
}

function specFor(chart) {
  const figure = figureOf(chart);
  const panel = figure.panels[chart.dataset.panel];
  const spec = structuredClone(figure.spec);
  const shownUnit = figure.lengths && known(panel, unit) ? unit : "symbols";
  const off = hidden.get(chart.closest(".task, .kind")) ?? new Set();
  spec.datasets = Object.fromEntries(
    Object.entries(panel).map(([name, rows]) => [name, rowsOf(rows, shownUnit, off)]),
  );
  if (figure.lengths) {
    const unknown = shownUnit === unit ? "" : `; ${unit} not known`;
    setAxis(spec, shownUnit === "symbols" ? null : lengthAxis(figure, shownUnit), `length (${shownUnit}${unknown})`);
  }
  spec.config = data.config;
  const width = Math.max(chart.clientWidth, 160);
  if (spec.vconcat) {
    for (const part of spec.vconcat) part.width = width - LEFT - RIGHT;
  } else {
    spec.width = width;
    spec.autosize = { type: "fit-x", contains: "padding" };
  }
  return spec;
}

async function draw(chart) {
  stale.delete(chart);
  const before = drawn.get(chart);
  const result = await vegaEmbed(chart, specFor(chart), {
    actions: false,
    ast: true,
    defaultStyle: false,
    renderer: "svg",
    tooltip: { disableDefaultStyle: true },
  });
  before?.finalize();
  chart.dataset.unit = unit;
  chart.dataset.width = chart.clientWidth;
  drawn.set(chart, result);
}

const visible = (chart) => chart.offsetParent !== null;
let drawing = false;
const IDLE_MS = 200; // a busy browser may have no idle moment for a long time

/** Draws the stale charts one at a time, those on the screen first. */
async function drawAll() {
  if (drawing) return;
  drawing = true;
  for (;;) {
    const queue = [...stale].filter(visible);
    const next = queue.find((chart) => near.has(chart)) ?? queue[0];
    if (next === undefined) break;
    await draw(next).catch((error) => next.append(`This chart could not be drawn: ${error.message}`));
    await new Promise((go) => {
      if (near.has(next) || !window.requestIdleCallback) setTimeout(go);
      else requestIdleCallback(go, { timeout: IDLE_MS });
    });
  }
  drawing = false;
  document.documentElement.dataset.drawn = "all";
}

function redraw(charts) {
  delete document.documentElement.dataset.drawn;
  for (const chart of charts) stale.add(chart);
  drawAll();
}

const watcher = new IntersectionObserver(
  (entries) => {
    for (const { target, isIntersecting } of entries) {
      if (isIntersecting) near.add(target);
      else near.delete(target);
    }
    drawAll();
  },
  { rootMargin: "200px" },
);
all(".chart").forEach((chart) => watcher.observe(chart));

let resizing;
new ResizeObserver(() => {
  clearTimeout(resizing);
  resizing = setTimeout(() => {
    redraw(all(".chart").filter((chart) => drawn.has(chart) && visible(chart) && chart.clientWidth !== Number(chart.dataset.width)));
  }, 150);
}).observe(document.body);

for (const input of all("input[name=unit]")) {
  input.addEventListener("change", () => {
    unit = UNITS.find((one) => one === input.value);
    redraw(all(".chart").filter((chart) => figureOf(chart).lengths));
  });
}

for (const input of all("input[name=model]")) {
  input.addEventListener("change", () => {
    for (const panel of all(".panel")) {
      if (panel.dataset.model === input.value) panel.hidden = !input.checked;
    }
    redraw([]);
  });
}

for (const key of all("button.key")) {
  key.addEventListener("click", () => {
    const group = key.closest(".task, .kind");
    const off = hidden.get(group) ?? new Set();
    const name = `${key.dataset.field}=${key.dataset.value}`;
    const now = !off.delete(name);
    if (now) off.add(name);
    hidden.set(group, off);
    key.setAttribute("aria-pressed", String(!now));
    redraw(all(".chart", group));
  });
}

// ---- tables -------------------------------------------------------------------------------

const textOf = (value) => String((Array.isArray(value) ? value[0] : value) ?? "");
const rankOf = (value) => (Array.isArray(value) ? value[1] : value);

function compare(first, second) {
  const [a, b] = [rankOf(first), rankOf(second)];
  if (a === null || b === null) return (a === null) - (b === null);
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a).localeCompare(String(b), "en", { numeric: true });
}

// as in harness/analysis/cells.py: an apostrophe before a text that a spreadsheet would run
const FORMULA = /(^|[;\t\r\n])(?='*(?:[=+\-@＝＋－＠].|[\t\r]))/gs;
const cellOf = (value) => (typeof value === "string" ? value.replace(FORMULA, "$1'") : textOf(value));

function csv(table) {
  const field = (value) => (/[",\r\n]/.test(cellOf(value)) ? `"${cellOf(value).replaceAll('"', '""')}"` : cellOf(value));
  return [table.columns, ...table.rows].map((row) => row.map(field).join(",")).join("\n") + "\n";
}

function download(name, text) {
  const link = make("a", { href: URL.createObjectURL(new Blob([text], { type: "text/csv" })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

function fill(body, table, rows) {
  body.replaceChildren(
    ...rows.map((row) =>
      make("tr", {}, ...row.map((value, at) => make("td", { text: textOf(value) || "–", className: table.numeric[at] ? "number" : "" }))),
    ),
  );
}

function buildTable(details) {
  const table = data.tables[details.dataset.table];
  const body = make("tbody");
  const heads = table.columns.map((column, at) => {
    const button = make("button", { type: "button", text: column.replaceAll("_", " ") });
    const head = make("th", { scope: "col", className: table.numeric[at] ? "number" : "" }, button);
    head.setAttribute("aria-sort", "none");
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      heads.forEach((other) => other.setAttribute("aria-sort", "none"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const sorted = [...table.rows].sort((a, b) => {
        const gap = compare(a[at], b[at]);
        return rankOf(a[at]) === null || rankOf(b[at]) === null || up ? gap : -gap;
      });
      fill(body, table, sorted);
    });
    return head;
  });
  fill(body, table, table.rows);
  $(".scroll", details).append(make("table", { className: "rows" }, make("thead", {}, make("tr", {}, ...heads)), body));
  $(".download", details).addEventListener("click", () => download(`${table.name}.csv`, csv(table)));
}

for (const details of all(".listed")) {
  if (details.open) buildTable(details);
  else details.addEventListener("toggle", () => buildTable(details), { once: true });
}

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

$(".bar").addEventListener("submit", (event) => event.preventDefault());
const atSamples = new IntersectionObserver(
  (entries) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    atSamples.disconnect();
    openSamples();
  },
  { rootMargin: "800px" },
);
atSamples.observe($("#samples"));
