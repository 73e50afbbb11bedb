"use strict";

const $ = (selector, within = document) => within.querySelector(selector);
const all = (selector, within = document) => [...within.querySelectorAll(selector)];

function make(tag, { text, ...properties } = {}, ...children) {
  const node = Object.assign(document.createElement(tag), properties);
  if (text !== undefined) node.textContent = text;
  node.append(...children);
  return node;
}

// ---- charts -------------------------------------------------------------------------------

const UNITS = ["length", "characters", "tokens"]; // that of the task, of the prompt, and of the row
const LEFT = 58;
const RIGHT = 52;
const LETTER = 5.7; // mean width of a letter of a title
const NARROW = 400; // a width at which marks beside each other are moved by the full lane
let unit = "length";
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
  return { domain: [high * air, low / air], values: ticksBetween(low, high) };
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
  const width = Math.max(chart.clientWidth, 160);
  const spec = JSON.parse(JSON.stringify(figure.spec).replaceAll("datum.lane)", `datum.lane * ${NARROW / Math.max(width, NARROW)})`));
  const shownUnit = figure.lengths && known(panel, unit) ? unit : "length";
  const off = hidden.get(chart.closest(".task, .kind")) ?? new Set();
  spec.datasets = Object.fromEntries(
    Object.entries(panel).map(([name, rows]) => [name, rowsOf(rows, shownUnit, off)]),
  );
  if (figure.lengths) {
    if (shownUnit !== "length") setAxis(spec, lengthAxis(figure, shownUnit), `length (${figure.units[shownUnit]})`);
    else if (unit !== "length") setAxis(spec, null, `length (${figure.units.length}; ${unit} not known)`);
  }
  spec.config = data.config;
  if (spec.vconcat) {
    for (const part of spec.vconcat) part.width = width - LEFT - RIGHT;
    const title = spec.vconcat[0].title;
    if (title && title.text.length * LETTER > width - LEFT) [title.text] = title.text.split(" (*"); // tooltips say it too
    const curves = spec.vconcat.at(-1); // a wide chart is taller too, so that many curves can be read
    curves.height = Math.max(curves.height, Math.min(data.tall.most, Math.round(width * data.tall.share)));
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

const visible = (chart) => chart.offsetParent !== null && (chart.checkVisibility?.() ?? true);
let drawing = false;
const IDLE_MS = 200; // a busy browser may have no idle moment for a long time

const FEW = 100;
/** Charts that are drawn off the screen too; hundreds would keep the browser busy for a minute. */
const early = new Set(all(".chart").slice(0, FEW));

/** Draws the stale charts one at a time, those on the screen first. */
async function drawAll() {
  if (drawing) return;
  drawing = true;
  for (;;) {
    const queue = [...stale].filter(visible);
    const next = queue.find((chart) => near.has(chart)) ?? queue.find((chart) => early.has(chart));
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
  { rootMargin: "400px" },
);
all(".chart").forEach((chart) => watcher.observe(chart));

for (const details of all("details")) details.addEventListener("toggle", drawAll);

/** Opens what an address on this page leads to. */
function unfold() {
  const target = document.getElementById(location.hash.slice(1));
  for (let node = target; node !== null; node = node.parentElement) if (node.tagName === "DETAILS") node.open = true;
  const own = target?.classList.contains("detail") ? $("details", target) : null;
  if (own) own.open = true;
}
addEventListener("hashchange", unfold);
unfold();

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

// as in harness/analysis/tables/cells.py: an apostrophe before a text that a spreadsheet would run
const FORMULA = /(^|[;\t\r\n])(?='*(?:[=+\-@＝＋－＠].|[\t\r]))/gs;
const cellOf = (value) => (typeof value === "string" ? value.replace(FORMULA, "$1'") : textOf(value));

function csv(table) {
  const field = (value) => (/[",\r\n]/.test(cellOf(value)) ? `"${cellOf(value).replaceAll('"', '""')}"` : cellOf(value));
  return [table.columns, ...table.rows].map((row) => row.map(field).join(",")).join("\n") + "\n";
}

function download(name, text, type = "text/csv") {
  const link = make("a", { href: URL.createObjectURL(new Blob([text], { type })), download: name });
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

$(".bar").addEventListener("submit", (event) => event.preventDefault());
