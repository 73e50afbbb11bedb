"use strict";

/** The text that `packed_samples.pack` has packed: base64 of gzip. */
async function inflate(text) {
  const bytes = Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}

const textAt = (id) => document.getElementById(id).textContent;
const run = (text) => document.body.append(Object.assign(document.createElement("script"), { textContent: text }));
let data;

Promise.all(["data", "bundle"].map(textAt).map(inflate)).then(([text, bundle]) => {
  data = JSON.parse(text);
  run(bundle);
  run(textAt("program"));
});
