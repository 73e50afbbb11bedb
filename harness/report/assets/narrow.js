// ---- which tasks and models are shown -----------------------------------------------------

const RANKS = "#ranks?";
const narrow = $(".narrow");
const NARROWED = ["task", "model", "adaptive"];
let narrowed = ""; // what the address says of the tasks and models on the page

/** Shows the tasks and models that the filters and the switches of the models let through. */
function narrowDown() {
  const value = (name) => narrow?.elements[name]?.value ?? "";
  const [task, part, adaptive] = [value("task"), value("model").toLowerCase(), value("adaptive")];
  const off = new Set(all("input[name=shown]:not(:checked)").map((input) => input.value));
  const isTask = (node) => task === "" || node.dataset.task === task;
  const hasPart = (node) => node.dataset.model.toLowerCase().includes(part);
  const isKept = (row) => isTask(row) && hasPart(row) && !(adaptive === "hide" && "adaptive" in row.dataset);
  const rows = all(".standing tr[data-model]");
  for (const row of rows) row.hidden = !isKept(row);
  for (const node of all("div.standing")) node.hidden = !$("tr[data-model]:not([hidden])", node);
  for (const node of all("article[data-task]")) node.hidden = !isTask(node);
  const names = adaptive === "hide" ? new Set(rows.filter(isKept).map((row) => `${row.dataset.task} ${row.dataset.model}`)) : null;
  for (const panel of all(".panel")) {
    const { model } = panel.dataset;
    if (model === "") continue;
    const isHidden = names !== null && !names.has(`${panel.closest("article").dataset.task} ${model}`);
    panel.hidden = off.has(model) || !hasPart(panel) || isHidden;
  }
  const kept = rows.filter((row) => !row.hidden).length;
  if (narrow) $("output", narrow).textContent = kept === rows.length ? "" : `${kept.toLocaleString("en")} of ${rows.length.toLocaleString("en")} rows`;
  redraw([]);
}

/** Sets the filters of tasks and models as the address says. */
function restoreNarrowed(text) {
  narrowed = text;
  const asked = new URLSearchParams(text);
  for (const name of NARROWED) {
    const field = narrow?.elements[name];
    if (field) field.value = asked.get(name) ?? "";
    if (field && field.value !== (asked.get(name) ?? "")) field.value = ""; // no such task here
  }
  narrowDown();
}

function rememberNarrowed() {
  const values = NARROWED.map((name) => [name, narrow.elements[name]?.value ?? ""]);
  narrowed = new URLSearchParams(values.filter(([, value]) => value !== "")).toString();
  history.replaceState(history.state, "", narrowed === "" ? location.pathname + location.search : RANKS + narrowed);
}

const askedRanks = () => (location.hash.startsWith(RANKS) ? location.hash.slice(RANKS.length) : undefined);

for (const input of all("input[name=shown]")) input.addEventListener("change", narrowDown);
narrow?.addEventListener("input", () => {
  narrowDown();
  rememberNarrowed();
});
narrow?.addEventListener("submit", (event) => event.preventDefault());
addEventListener("hashchange", () => {
  const asked = askedRanks();
  if (asked !== undefined && asked !== narrowed) restoreNarrowed(asked);
});
if (askedRanks() !== undefined) restoreNarrowed(askedRanks());
