
// ---- samples ------------------------------------------------------------------------------

const PAGE = 25;
const PER_CHUNK = data.chunk;
const chunks = all(".chunk");
const unpacked = new Map();

const unpack = async (text) => JSON.parse(await inflate(text));

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

const spaced = (outcome) => outcome.replace("_", " ");
const titleOf = (run) => `${run.section}, ${run.name}`;
const lineOf = (place) => data.runs[columns.run[place]].cells[columns.cell[place]];

function badge(place) {
  const outcome = data.outcomes[columns.outcome[place]];
  const node = make("span", { className: "badge", text: spaced(outcome) });
  node.style.setProperty("--tone", data.tones[outcome]);
  return node;
}

const fact = (name, value) => (value === null || value === "" ? [] : [make("span", {}, `${name} `, make("b", {}, ...folded(String(value))))]);

/** What one reply was and cost. */
function facts(sample) {
  const tokens = sample.prompt_tokens === null ? null : `${sample.prompt_tokens} + ${sample.output_tokens ?? "?"}`;
  return [
    ...fact("answer", sample.answer),
    ...fact("tokens", tokens),
    ...fact("thinking", sample.thinking),
    ...fact("latency", sample.latency_s === null ? null : `${sample.latency_s.toFixed(2)} s`),
    ...(sample.answer === null ? fact("because", sample.why) : []),
  ];
}

function promptOf(sample, run) {
  return sample.prompt === null
    ? absent("Prompt", run.why || "made again now, it is not the prompt that was asked: the task changed since")
    : block("Prompt", ...folded(sample.prompt));
}

/** The reply with its answer marked, after its reasoning; or why there is none. */
function repliesOf(sample) {
  const parts = [];
  if (sample.reasoning) parts.push(block("Reasoning", ...folded(sample.reasoning)));
  if (sample.reply === null) parts.push(absent("No reply", sample.failure || "no reason is recorded"));
  else {
    const { reply, start, end } = sample;
    const marked = end > start ? [make("mark", {}, ...folded(reply.slice(start, end)))] : [];
    const content = [...folded(reply.slice(0, start)), ...marked, ...folded(reply.slice(end))];
    if (sample.options) parts.push(block("Options and their log-probabilities", ...folded(sample.options)));
    else parts.push(reply ? block("Reply", ...content) : absent("Reply", "an empty text"));
    if (sample.logprobs) parts.push(block("Log-probabilities of the tokens", ...folded(sample.logprobs)));
    if (sample.failure) parts.push(absent("Refusal", sample.failure));
  }
  return parts;
}

/** The sample's id, whose link is the address of the page with this sample open. */
function idOf(sample, place, ...more) {
  const link = make("a", { href: ADDRESS + addressed(place, sample.id), title: "the address of this sample" }, ...plainly(sample.id));
  link.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    open = { place, id: sample.id };
    remember();
    mark();
  });
  return make("code", {}, link, ...more);
}

function card(sample, place) {
  const run = data.runs[columns.run[place]];
  const header = make("header", {}, badge(place), ...fact("target", sample.target), ...facts(sample), idOf(sample, place, ...plainly(` · ${run.name}`)));
  return make("article", { className: "card" }, header, promptOf(sample, run), make("div", {}, ...repliesOf(sample)));
}

/** Two replies to one sample, or to the same index and length under two conditions. */
function pairCard(pair, places) {
  const runs = places.map((place) => data.runs[columns.run[place]]);
  const one = pair[0].prompt === pair[1].prompt;
  const header = make("header", {}, ...(pair[0].target === pair[1].target ? fact("target", pair[0].target) : []), idOf(pair[0], places[0]));
  const sides = pair.map((sample, at) => {
    const name = runs[0] === runs[1] ? lineOf(places[at])[0].replaceAll(",", ", ") : runs[at].name;
    const target = pair[0].target === pair[1].target ? [] : fact("target", sample.target);
    return make(
      "div", { className: "side" },
      make("h4", {}, ...plainly(name)),
      make("p", {}, badge(places[at]), ...target, ...facts(sample)),
      ...(one ? [] : [promptOf(sample, runs[at])]),
      ...repliesOf(sample),
    );
  });
  const both = one ? [make("div", { className: "both" }, promptOf(pair[0], runs[0]))] : [];
  return make("article", { className: "card pair" }, header, ...both, ...sides);
}

