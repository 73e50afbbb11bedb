// ---- how far: the chosen length, the order of the rows, and what is shown --------------------

/** Shows the columns and sentences of one length, sorts the rows, and hides those left out. */
function arrange(form) {
  const value = (name) => form.elements[name]?.value ?? "";
  const at = value("at");
  if (at !== "") {
    for (const node of document.querySelectorAll("[data-at]")) node.hidden = node.dataset.at !== at;
  }
  const [order, vendor, size, kind, part] = ["sort", "vendor", "size", "kind", "part"].map(value);
  if (order !== "") {
    for (const body of document.querySelectorAll(".standings tbody")) {
      const rows = [...body.rows];
      const place = (row) => Number(row.dataset[order === "right" ? `right${at}` : order] ?? rows.length);
      body.append(...rows.sort((a, b) => place(a) - place(b)));
    }
  }
  if (!form.classList.contains("choose")) return;
  const [low, high] = size.split("-").map(Number);
  const isSize = (text) => size === "" || (size === "unknown" ? text === "" : text !== "" && Number(text) > low && Number(text) <= high);
  const isVendor = (text) => vendor === "" || text === (vendor === "unknown" ? "" : vendor);
  let [kept, of] = [0, 0];
  for (const node of document.querySelectorAll(".standing")) {
    const rows = [...node.querySelectorAll("tbody tr")];
    for (const row of rows) {
      const { model, vendor: by, size: parameters } = row.dataset;
      row.hidden = !(isVendor(by) && isSize(parameters) && model.toLowerCase().includes(part.toLowerCase()));
    }
    const shown = rows.filter((row) => !row.hidden).length;
    const isKind = kind === "" || node.dataset.kind === kind;
    node.hidden = !isKind || shown === 0;
    kept += isKind ? shown : 0;
    of += rows.length;
  }
  form.querySelector("output").textContent = kept === of ? "" : `${kept} of ${of} rows`;
}

for (const form of document.querySelectorAll("form.view")) {
  const isChoice = form.classList.contains("choose");
  if (isChoice) {
    const asked = new URLSearchParams(location.hash.startsWith("#show?") ? location.hash.slice(6) : "");
    for (const [name, value] of asked) {
      const field = form.elements[name];
      if (field && (field.type === "search" || [...field.options].some((option) => option.value === value))) field.value = value;
    }
    form.addEventListener("submit", (event) => event.preventDefault());
  }
  form.addEventListener("input", () => {
    arrange(form);
    if (isChoice) history.replaceState(history.state, "", `#show?${new URLSearchParams(new FormData(form))}`);
  });
  arrange(form);
}
