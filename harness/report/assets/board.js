// ---- how far: the columns and sentences of the chosen length -----------------------------------

for (const form of document.querySelectorAll("form.view")) {
  const show = () => {
    const at = form.elements.at?.value;
    if (at === undefined) return;
    for (const node of document.querySelectorAll("[data-at]")) node.hidden = node.dataset.at !== at;
  };
  form.addEventListener("input", show);
  show();
}
