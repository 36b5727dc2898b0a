// The weights of a large model, in a file of their own: the page asks for it, and reads it in slices.

import { crc32 } from "./crc.js";
import { byId, element } from "./dom.js";
import { shortened } from "./outside.js";

/** What the page knows of its weights' file: see page.py.
 * @typedef {{name: string, head: string, size: number, crc: number}} Beside */

// bytes
const SLICE = 1 << 23;

/** Asks for the file until it is the right one, and reads it. @param {Beside} beside @param {Uint8Array} into
 * @returns {Promise<void>} */
export function askedWeights(beside, into) {
  const told = element("p", { role: "status" }, `This model's weights are in ${beside.name}, a file of ${Math.round(beside.size / 1e6)} MB beside this page. Choose it, or drop it here.`);
  const input = element("input", { type: "file", "aria-label": `Choose ${beside.name}` });
  const panel = element("section", { id: "weights-file", "aria-label": "Weights" }, told, input);
  byId("main").prepend(panel);
  byId("ledger").textContent = `${document.title} · waiting for its weights`;
  return new Promise((resolve) => {
    const take = async (/** @type {File | undefined} */ file) => {
      if (!file) return;
      try {
        await readWeights(file, beside, into, (share) => (told.textContent = `Reading ${beside.name}: ${Math.round(100 * share)} %`));
        removeEventListener("drop", drop);
        resolve();
        panel.remove();
      } catch (error) {
        told.textContent = `${error instanceof Error ? error.message : error}`;
      }
    };
    const drop = (/** @type {DragEvent} */ event) => {
      event.preventDefault();
      take(event.dataTransfer?.files[0]);
    };
    addEventListener("dragover", (event) => event.preventDefault());
    addEventListener("drop", drop);
    input.addEventListener("change", () => take(input.files?.[0]));
  });
}

/** Reads a weights' file. Throws an Error that names what is wrong and what to do.
 * @param {Blob & {name: string}} file @param {Beside} beside @param {Uint8Array} into
 * @param {(share: number) => void} report */
export async function readWeights(file, { name, head, size, crc }, into, report) {
  const begins = await file.slice(0, head.length).text();
  if (begins !== head) throw new Error(`${shortened(file.name)} does not hold this page's weights: choose ${name}, made with it`);
  if (file.size !== head.length + size) throw new Error(`${shortened(file.name)} is not whole: copy it again`);
  let sum = 0;
  for (let at = 0; at < size; at += SLICE) {
    const slice = file.slice(head.length + at, head.length + Math.min(size, at + SLICE));
    const bytes = new Uint8Array(await slice.arrayBuffer());
    sum = crc32(bytes, sum);
    into.set(bytes, at);
    report(at / size);
  }
  if (sum !== crc) throw new Error(`${shortened(file.name)} is damaged, because its checksum is wrong: copy the file again, or build the page again`);
}
