"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const form = document.getElementById("choose");
const $ = (selector) => document.querySelector(selector);
const [answer, ways, svg, all] = [".chosen", ".ways", ".picture svg", ".all"].map($);
const [VERDICT, SURE, RIGHT, DOLLARS, PRICE] = [0, 1, 2, 3, 4]; // places in a way's `models`
let [group, way, picked] = [data.groups[0], undefined, ""];
let sorted = null; // the column by which the table is sorted: its place, and whether downward

function make(tag, properties = {}, ...children) {
  const node = Object.assign(document.createElement(tag), properties);
  node.append(...children);
  return node;
}

function draw(tag, attributes, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

const field = (name) => form.elements[name];
const isTicked = (name) => field(name)?.checked ?? false;
const isPriced = () => group.ways.some((one) => one.models.some((model) => model[DOLLARS] !== null));
const many = (count) => `${count} model${count === 1 ? "" : "s"}`;
const whole = (text) => text.replaceAll(/ (?=%)|(?<=≥) /g, "\u00a0");

/** The limit of the price as text; empty without one, and where it is no price. */
const mostOf = () => (field("most").validity.valid ? field("most").value : "");

/** Whether price, vendor and weights let a model through that is asked in one way. */
function isKept(place, one) {
  const [model, dollars, most] = [group.models[place], one.models[place][DOLLARS], mostOf()];
  const isMore = one.models[place][PRICE].startsWith(">");
  if (most !== "" && (dollars === null || dollars > Number(most) || (isMore && dollars === Number(most)))) return false;
  if ((field("vendor")?.value ?? "") !== "" && model.vendor !== field("vendor").value) return false;
  return !isTicked("open") || model.open === "yes";
}

/** The models that are kept, in the order of an answer: all, and by what is known of them. */
function found(one = way) {
  const kept = one.order.filter((place) => isKept(place, one));
  const of = (verdict) => kept.filter((place) => one.models[place][VERDICT] === verdict);
  return { kept, passing: of("yes"), open: of("open"), failing: of("no") };
}

/** What the filters ask of so many models, as words behind them; empty without filters. */
function filtersOf(count) {
  const vendor = field("vendor")?.value ?? "";
  const priced = mostOf() !== "" && `that cost${count === 1 ? "s" : ""} at most $${mostOf()} per ${data.many}`;
  return [vendor && `of ${vendor}`, isTicked("open") && "with open weights", priced].filter(Boolean).join(" ");
}

/** The answer in one sentence. */
function sentence({ kept, passing }) {
  const filters = filtersOf(kept.length);
  if (!kept.length) return `There are no models ${filters}`;
  if (kept.length === 1) return `The one model ${filters} ${passing.length ? "surely passes" : "does not surely pass"}`;
  const several = passing.length > 1;
  return `${passing.length || "None"} of ${filters ? `the ${many(kept.length)} ${filters}` : many(kept.length)} surely pass${several ? "" : "es"}${isPriced() && several ? ", cheapest first" : ""}`;
}

/** Those that picture and table show. */
const shown = () => (isTicked("passes") ? found().passing : found().kept);

// ---- the answer --------------------------------------------------------------------------------

const nameOf = (place) => make("button", { type: "button", className: "name", textContent: group.models[place].name, onclick: () => pick(place) });

function showAnswer() {
  const { kept, passing, open, failing } = found();
  const [first, ...rest] = [passing.slice(0, data.most), passing.slice(data.most)];
  const list = make("ol", {}, ...first.map((place, rank) => {
    const chance = way.models[place];
    return make("li", {}, make("b", { className: "rank", textContent: rank + 1 }), nameOf(place),
      make("span", { className: "price", textContent: isPriced() ? chance[PRICE] : "" }), make("span", { className: "sure", textContent: chance[SURE] }));
  }));
  const { price, sure } = group.heads;
  const head = make("p", { className: "said" }, make("b", { textContent: sentence({ kept, passing }) }), make("small", { textContent: passing.length ? [...(isPriced() ? [price] : []), whole(sure)].join(", ") : "" }));
  const means = make("p", { className: "hint", textContent: `${whole(group.means)}.` });
  const line = make("p", { className: "rest" });
  if (rest[0].length) line.append(`${rest[0].length} more pass. `);
  line.append(`${failing.length} fail${failing.length === 1 ? "s" : ""}. `);
  const unknown = kept.length - passing.length - open.length - failing.length;
  if (unknown) line.append(`${unknown} not known. `);
  answer.replaceChildren(head, means, ...(kept.length ? [list, line] : []));
  if (open.length) {
    const named = (places) => places.map((place) => [nameOf(place), ` ${way.models[place][SURE].replace(" ", "\u00a0")}`]).flatMap((pair, at) => (at ? [", ", ...pair] : pair));
    const [most, more] = [open.slice(0, data.most), open.slice(data.most)];
    line.append(`Open for ${open.length}: `, ...named(most));
    if (more.length) line.append(" ", make("details", {}, make("summary", { textContent: `and ${more.length} more` }), make("span", {}, ...named(more))));
  }
  const dear = isPriced() ? first.map((place) => group.models[place].dear).filter(Boolean) : [];
  if (dear.length) answer.append(make("p", { className: "hint", textContent: dear.join(" ") }));
  if (way.pieces > 1) {
    answer.append(make("p", { className: "hint", textContent: `In pieces, all ${way.pieces} must be right, so each of them in ${whole(way.needs)}: their misses are added up, which holds whether they come together or not. Few rows leave more open.` }));
  }
}

/** The ways to ask a list of the chosen length, each with what it comes to. */
function showWays(there) {
  const not = group.unanswered.filter((one) => one.length === way.length);
  ways.hidden = there.length + not.length < 2;
  ways.replaceChildren(...there.map((one) => {
    const { passing } = found(one);
    const price = passing.length && isPriced() ? `, from ${one.models[passing[0]][PRICE]}` : "";
    const said = passing.length ? `${passing.length} pass${passing.length === 1 ? "es" : ""}${price}` : "none surely passes";
    return make("label", {}, make("input", { type: "radio", name: "way", value: one.pieces, checked: one === way }),
      make("span", {}, make("b", { textContent: one.pieces === 1 ? `all ${one.text}` : `in pieces, ${one.text}` }), make("small", { textContent: said })));
  }), ...not.map((one) => make("label", {}, make("input", { type: "radio", name: "way", value: one.pieces, disabled: true }),
    make("span", {}, make("b", { textContent: `in pieces, ${one.text}` }), make("small", { textContent: one.why })))));
}

// ---- the picture -------------------------------------------------------------------------------

const RANK = { yes: 3, open: 2, no: 1 };
const EDGE = { left: 52, right: 18, top: 14, bottom: 40 };
const BADGE = 8; // radius
const AROUND = [0, 45, -45, 90, -90, 135, -135, 180]; // degrees from upwards, the best place first

/** Ticks of a logarithmic axis: powers of ten, or 1, 2 and 5 where fewer than three are in range. */
function ticksOf(low, high) {
  const of = (digits) => {
    const ticks = [];
    for (let power = 10 ** Math.floor(Math.log10(low)); power <= high; power *= 10) ticks.push(...digits.map((digit) => digit * power));
    return ticks.filter((tick) => tick >= low && tick <= high);
  };
  return of([1]).length > 2 ? of([1]) : of([1, 2, 5]);
}

function dollars(value) {
  return `$${value >= 1 ? Math.round(value).toLocaleString("en") : Number(value.toPrecision(2))}`;
}

function showPicture() {
  $(".picture").hidden = shown().length === 0;
  if ($(".picture").hidden) return;
  const width = svg.parentNode.clientWidth;
  const height = width < 600 ? 340 : 400;
  const kept = shown().filter((place) => group.models[place].span);
  const piece = way.length / way.pieces;
  const spans = kept.flatMap((place) => group.models[place].span.slice(0, 3)).filter((one) => one > 0);
  const [near, far] = [Math.min(...spans, piece) / 1.15, Math.max(...spans, piece) * 1.15];
  const costs = kept.map((place) => way.models[place][DOLLARS]).filter((one) => one > 0);
  const priced = costs.length > 0;
  const [low, high] = priced ? [Math.min(...costs) / 1.8, Math.max(...costs) * 1.8] : [1, 2];
  const bottom = height - EDGE.bottom - (priced && costs.length < kept.length ? 26 : 0);
  const x = (length) => EDGE.left + (Math.log(length / near) / Math.log(far / near)) * (width - EDGE.left - EDGE.right);
  const byLength = new Map(group.models.map((_, place) => [place, EDGE.top + ((place + 0.5) * (bottom - EDGE.top)) / group.models.length]));
  const y = (place) => {
    if (!priced) return byLength.get(place);
    const cost = way.models[place][DOLLARS];
    return cost > 0 ? bottom - (Math.log(cost / low) / Math.log(high / low)) * (bottom - EDGE.top) : height - EDGE.bottom - 8;
  };
  const parts = [];
  const text = (at, down, said, anchor = "middle", name = "") => parts.push(draw("text", { x: at, y: down, "text-anchor": anchor, class: name }, said));
  let last = -Infinity;
  for (const [tick] of group.ticks) {
    if (tick < near || tick > far || x(tick) - last < 36) continue;
    last = x(tick);
    parts.push(draw("line", { x1: last, x2: last, y1: EDGE.top, y2: height - EDGE.bottom, class: "grid" }));
    text(last, height - EDGE.bottom + 15, tick.toLocaleString("en"));
  }
  text((EDGE.left + width - EDGE.right) / 2, height - 6, `right to (${group.unit})`);
  if (priced) {
    for (const tick of ticksOf(low, high)) {
      const cost = bottom - (Math.log(tick / low) / Math.log(high / low)) * (bottom - EDGE.top);
      parts.push(draw("line", { x1: EDGE.left, x2: width - EDGE.right, y1: cost, y2: cost, class: "grid" }));
      text(EDGE.left - 6, cost + 4, dollars(tick), "end");
    }
    if (costs.length < kept.length) text(EDGE.left - 6, height - EDGE.bottom - 4, "no price", "end");
  }
  parts.push(draw("line", { x1: x(piece), x2: x(piece), y1: EDGE.top, y2: height - EDGE.bottom, class: "here" }));
  const band = group.models.find((model) => model.name === picked)?.span;
  if (band) {
    const [from, to] = [x(band[0] ?? near), x(band[2] ?? far)];
    parts.push(draw("rect", { x: from, width: Math.max(to - from, 1), y: EDGE.top, height: height - EDGE.bottom - EDGE.top, class: "band" }));
  }
  const numbers = new Map(found().passing.slice(0, data.most).map((place, rank) => [place, rank + 1]));
  const over = []; // what no mark may hide
  const badges = []; // places of the numbers of the list, none over another or over a dot
  const dots = kept.filter((place) => way.models[place][VERDICT] === "yes" && group.models[place].span[1] !== null).map((place) => [place, x(group.models[place].span[1]), y(place)]);
  const isFree = (own, across, down) => across > EDGE.left + BADGE && across < width - BADGE && down > EDGE.top && down < bottom - BADGE
    && badges.every(([left, top]) => Math.hypot(across - left, down - top) > 2.2 * BADGE)
    && dots.every(([place, left, top]) => place === own || Math.hypot(across - left, down - top) > 1.6 * BADGE);
  function besides(place, left, top) {
    for (let far = 2 * BADGE; far < 12 * BADGE; far += BADGE) {
      for (const degrees of AROUND) {
        const turn = (degrees * Math.PI) / 180;
        const at = [left + far * Math.sin(turn), top - far * Math.cos(turn)];
        if (isFree(place, ...at)) return at;
      }
    }
    return [left, top - 2 * BADGE];
  }
  const rank = (place) => (numbers.has(place) ? 4 : (RANK[way.models[place][VERDICT]] ?? 0));
  for (const place of [...kept].sort((a, b) => rank(a) - rank(b))) {
    const [model, chance] = [group.models[place], way.models[place]];
    const [from, at, to, sign] = model.span;
    const mark = draw("g", { class: `mark ${chance[VERDICT] || "unknown"}${model.name === picked ? " picked" : ""}` });
    mark.append(draw("title", {}, `${model.name}: right to ${model.length}; ${chance[PRICE]} for ${data.many}; passes with a probability of ${chance[SURE]}`));
    mark.append(draw("line", { x1: x(from ?? near), x2: x(to ?? far), y1: y(place), y2: y(place) }));
    if (at !== null) mark.append(draw("circle", { cx: x(at), cy: y(place), r: width < 600 && !numbers.has(place) ? 3 : 4, class: sign ? "bound" : "" }));
    if (at !== null && numbers.has(place)) {
      const [across, up] = besides(place, x(at), y(place));
      badges.push([across, up]);
      over.push(draw("line", { x1: across, x2: x(at), y1: up, y2: y(place), class: "badge" }), draw("circle", { cx: across, cy: up, r: BADGE, class: "badge" }),
        draw("text", { x: across, y: up + 4, "text-anchor": "middle", class: "badge" }, String(numbers.get(place))));
    }
    mark.addEventListener("click", () => pick(place));
    parts.push(mark);
  }
  const isRight = x(piece) > width * 0.6;
  text(x(piece) + (isRight ? -6 : 6), EDGE.top + 4, way.pieces > 1 ? `a piece: ${way.rows}` : way.rows, isRight ? "end" : "start", "here");
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("height", height);
  svg.replaceChildren(...parts, ...over);
  const keys = [["yes", "surely passes"], ["open", "open"], ["no", "fails"]];
  $(".picture figcaption").replaceChildren(
    ...keys.map(([name, said]) => make("span", { className: `key ${name}`, textContent: said })),
    priced ? `Up: dollars of ${data.many}. Along: how far it is right, with a 95 % interval.` : "Along: how far it is right, with a 95 % interval.",
  );
  $(".picture svg").setAttribute("aria-label", `${kept.length} models by how far they are right; the numbers are in the table`);
  showPicked();
}

/** Compares all others with the picked model: intervals that lie wholly apart. */
function showPicked() {
  const one = group.models.find((model) => model.name === picked);
  const said = $(".with");
  if (!one?.span) return said.replaceChildren("Pick a model, here or in the list, to compare the others with it.");
  const [low, , high] = one.span;
  const others = group.models.filter((model) => model !== one && model.span);
  const above = others.filter(({ span }) => high !== null && span[0] !== null && span[0] > high);
  const below = others.filter(({ span }) => low !== null && span[2] !== null && span[2] < low);
  const named = above.length && above.length <= data.most ? ` (${above.map((model) => model.name).join(", ")})` : "";
  const overlapping = others.filter((model) => !above.includes(model) && !below.includes(model));
  const place = group.models.indexOf(one); // models are in the order of their lengths
  const distance = (model) => Math.abs(group.models.indexOf(model) - place);
  const nearest = [...overlapping].sort((a, b) => distance(a) - distance(b)).slice(0, data.most);
  const which = nearest.length ? `${nearest.length < overlapping.length ? ", the nearest " : ": "}${nearest.map((model) => `${model.name} ${model.length}`).join(", ")}` : "";
  return said.replaceChildren(make("b", { textContent: `${one.name}: right to ${one.length}. ` }),
    `The intervals of ${above.length} lie wholly above its own${named}, of ${below.length} wholly below; ${overlapping.length} overlap and are not told apart${which}.`);
}

function pick(place) {
  picked = picked === group.models[place].name ? "" : group.models[place].name;
  show();
}

// ---- the table ---------------------------------------------------------------------------------

/** A number with its interval, which stays in one line. */
function unbroken(text) {
  const [number, interval] = text.split(" (");
  return interval ? [`${number} `, make("span", { className: "whole", textContent: `(${interval}` })] : [text];
}

function showTable() {
  const places = shown();
  all.hidden = places.length === 0;
  const list = group.ways.find((one) => one.length === way.length).rows;
  const asked = way.pieces > 1 ? `${list} in ${way.pieces} pieces of ${way.rows}, with the price of all pieces` : `at ${list}`;
  all.firstElementChild.textContent = `${places.length < group.models.length ? `${places.length} of` : "All"} ${many(group.models.length)} as a table${all.open ? `: ${asked}` : ""}`;
  if (!all.open) return;
  const heads = group.heads;
  const columns = [
    ["model", "who", (place) => group.models[place].name, (place) => group.models[place].name.toLowerCase()],
    ["vendor, size", "known", (place) => group.models[place].known, (place) => group.models[place].known],
    [heads.price, "number", (place) => way.models[place][PRICE], (place) => way.models[place][DOLLARS] ?? Infinity],
    [whole(heads.sure), "number sure", (place) => way.models[place][SURE], (place) => way.order.indexOf(place)],
    [way.pieces > 1 ? "a piece right, %" : "right, %", "number aside", (place) => way.models[place][RIGHT], (place) => way.order.indexOf(place)],
    ...["length", "near", "apart"].filter((name) => name in heads).map((name) => [whole(heads[name]), `number ${name === "length" ? name : "aside"}`, (place) => group.models[place][name], (place) => (name === "length" ? place : -parseFloat(group.models[place][name].replace(/[<> ]/g, "")) || Infinity)]),
  ];
  if (sorted !== null) {
    const key = columns[sorted.column][3];
    places.sort((a, b) => (key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : 0) * (sorted.down ? -1 : 1));
  }
  const head = make("tr", {}, ...columns.map(([name, kind], column) => {
    const cell = make("th", { scope: "col", className: kind }, make("button", { type: "button", textContent: name, onclick: () => {
      sorted = { column, down: sorted?.column === column && !sorted.down };
      showTable();
    } }));
    cell.setAttribute("aria-sort", sorted?.column === column ? (sorted.down ? "descending" : "ascending") : "none");
    return cell;
  }));
  const rows = places.map((place) => {
    const row = make("tr", { className: way.models[place][VERDICT] }, ...columns.map(([, kind, said], column) => (column === 0
      ? make("th", { scope: "row", className: kind }, nameOf(place))
      : make("td", { className: kind }, ...unbroken(said(place) || "–")))));
    row.dataset.model = group.models[place].name;
    return row;
  });
  all.querySelector("table").replaceChildren(make("thead", {}, head), make("tbody", {}, ...rows));
}

// ---- what is chosen ----------------------------------------------------------------------------

const NAMES = ["task", "at", "way", "passes", "most", "vendor", "open"];

function show() {
  group = data.groups.find((one) => one.task === field("task")?.value) ?? data.groups[0];
  const length = Number(field("at").value);
  const there = group.ways.filter((one) => one.length === length);
  const pieces = form.querySelector("[name=way]:checked")?.value ?? "1";
  way = there.find((one) => String(one.pieces) === pieces) ?? there[0];
  showWays(there);
  form.querySelector(".priced").hidden = !isPriced();
  document.title = `${data.title.join(length.toLocaleString("en"))} · Eyechart`;
  showAnswer();
  showPicture();
  showTable();
}

function remember() {
  $(".choose .notice").hidden = true;
  const valueOf = (name) => (name === "most" ? mostOf() : (field(name)?.value ?? ""));
  const values = NAMES.map((name) => [name, field(name)?.type === "checkbox" ? (isTicked(name) ? "on" : "") : valueOf(name)]);
  const asked = new URLSearchParams(values.filter(([name, value]) => value !== "" && !(name === "way" && value === "1")));
  if (picked) asked.set("with", picked);
  history.replaceState(history.state, "", `#show?${asked}`);
}

/** The length that is nearest to another one by their ratio. */
function nearestTo(length) {
  const apart = (one) => Math.abs(Math.log(one / length));
  return group.at.reduce((best, one) => (apart(one) < apart(best) ? one : best));
}

/** What an address asks for that is not there, and what is shown in its place. */
function notOffered(asked) {
  const [said, at, pieces] = [[], asked.get("at"), asked.get("way") ?? "1"];
  if (at !== null && !group.at.includes(Number(at))) {
    const isLength = Number(at) > 0 && Number(at) < Infinity;
    if (isLength) field("at").value = nearestTo(Number(at));
    const known = group.at.map((one) => one.toLocaleString("en")).join(", ");
    said.push(`“${at}” is not one of the lengths ${known}; shown is ${field("at").value}${isLength ? ", the nearest" : ""}.`);
  }
  const length = Number(field("at").value);
  const isOf = (one) => one.length === length && String(one.pieces) === pieces;
  if (!group.ways.some(isOf)) {
    const why = group.unanswered.find(isOf)?.why ?? `pieces are as long as a length here, and at most ${data.pieces}`;
    said.push(`${length.toLocaleString("en")} in “${pieces}” pieces is not known: ${why}. Shown is all at once.`);
  }
  return said.join(" ");
}

function restore() {
  const notice = $(".choose .notice");
  notice.hidden = true;
  if (!location.hash.startsWith("#show?")) return;
  const asked = new URLSearchParams(location.hash.slice(6));
  for (const [name, value] of asked) {
    const one = field(name);
    if (name === "way" || name === "with" || !one) continue;
    if (one.type === "checkbox") one.checked = value === "on";
    else if (!one.options || [...one.options].some((option) => option.value === value)) one.value = value;
  }
  field("most").value = mostOf(); // an address may have what is no price
  picked = asked.get("with") ?? "";
  group = data.groups.find((one) => one.task === field("task")?.value) ?? data.groups[0];
  notice.textContent = notOffered(asked);
  notice.hidden = notice.textContent === "";
  show();
  const offered = [...form.querySelectorAll("[name=way]:enabled")];
  (offered.find((one) => one.value === asked.get("way")) ?? offered[0]).checked = true;
}

form.addEventListener("submit", (event) => event.preventDefault());
for (const node of [form, field("at")]) {
  node.addEventListener("input", () => {
    show();
    remember();
  });
}
document.addEventListener("click", (event) => {
  if (event.target.closest(".choose, .picture, .all")) remember();
});
all.addEventListener("toggle", showTable);
addEventListener("hashchange", () => {
  restore();
  show();
});
addEventListener("resize", showPicture);
for (const link of document.querySelectorAll("a[href='#meaning']")) link.addEventListener("click", () => ($("#meaning").open = true));
restore();
show();
