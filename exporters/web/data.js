// The data of the page, unpacked: a graph, and the run of its values.

import { Run } from "./evaluator.js";
import { Graph } from "./graph.js";

/** What a packed text holds: base64 of deflated bytes.
 * @param {string} text @returns {Promise<ArrayBuffer>} */
export async function unpacked(text) {
  const packed = Uint8Array.from(atob(text.trim()), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).arrayBuffer();
}

/** The graph and its values, from the page's two texts; large.js opens a page with a file of weights.
 * @param {string} data @param {string} weights @param {import("./evaluator.js").Kernel[]} kernels */
export async function opened(data, weights, kernels) {
  const graph = new Graph(JSON.parse(new TextDecoder().decode(await unpacked(data))), await unpacked(weights));
  return { graph, run: new Run(graph, kernels) };
}

/** How many blocks differ from the sums that the engine computed, and the first of them.
 * @param {Run} run @returns {{blocks: number, cells: number, differ: number, first: string}} */
export function verdictOf(run) {
  let [blocks, cells, differ, first] = [0, 0, 0, ""];
  const computed = run.graph.blocks.filter((block) => block.isOp || block.isTable);
  for (const [n, sum] of run.graph.data.sums.entries()) {
    const values = run.values[computed[n].index];
    let [own, size] = [0, 0];
    for (let k = 0; k < values.length; k++) {
      const x = counts(values[k]) * (1 + k / values.length);
      own += x;
      size += Math.abs(x);
    }
    blocks++;
    cells += values.length;
    if (Math.abs(own - sum) <= NEAR * Math.max(1, size)) continue;
    differ++;
    first ||= computed[n].name;
  }
  return { blocks, cells, differ, first };
}

/** What a cell counts in a sum: see data.py. @param {any} x @returns {number} */
function counts(x) {
  if (typeof x === "number") return Number.isFinite(x) ? x : 0;
  if (x === null || x === undefined) return 0;
  if (typeof x === "boolean") return Number(x);
  let sum = 0;
  for (const letter of String(x.text ?? x)) sum += letter.codePointAt(0) ?? 0;
  return sum;
}

// what the two sums may differ by, as a share of what was added
const NEAR = 1e-9;
