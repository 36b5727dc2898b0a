// Unpacks the page's style and script, which are deflated to keep the page small, and begins. The
// content policy names both by their sha256, so nothing else can take their place.

/** @param {string} id of an element that holds base64 of a deflated text */
async function unpack(id) {
  const packed = document.getElementById(id)?.textContent ?? "";
  const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).text();
}

/** @param {"style" | "script"} tag @param {string} id */
async function include(tag, id) {
  const node = document.createElement(tag);
  node.textContent = await unpack(id);
  document.head.append(node);
}

const opening = document.getElementById("ledger");
if (opening) opening.textContent = "Opening: every cell is computed …";
include("style", "style")
  .then(() => include("script", "script"))
  .catch((error) => {
    if (opening) opening.textContent = `This page needs a browser of 2023 or later, with JavaScript (${error}).`;
  });
