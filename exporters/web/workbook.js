// To the workbook and back: an .xlsx with the page's state typed into it, and the state of one that
// was edited and saved elsewhere.

import { editsHeld } from "./differing.js";
import { checkIsOf, heldBy } from "./held.js";
import { savedInto } from "./saving.js";
import { Xlsx } from "./xlsx.js";

/** @typedef {import("./graph.js").Graph} Graph */
/** @typedef {import("./evaluator.js").Edit} Edit */
/** @typedef {import("./evaluator.js").Run} Run */

/**
 * The edits in a workbook that was saved by any program. Throws an Error of one line for what is no
 * workbook of this page, and for what nothing can be computed with.
 * @param {Uint8Array<ArrayBuffer>} bytes
 * @param {Graph} graph
 * @param {Run} run any of the graph, which stays as it is
 * @returns {Promise<Edit[]>}
 */
export async function editsOf(bytes, graph, run) {
  const file = await Xlsx.open(bytes);
  const texts = await file.texts();
  await checkIsOf(file, graph, texts);
  return editsHeld(graph, run, await heldBy(file, graph, texts));
}

/**
 * A workbook with the page's edits typed into it, and the page's values beside its formulas. Formulas
 * that the page does not have are left without values, so that programs compute them. The same input
 * gives the same bytes.
 * @param {Uint8Array<ArrayBuffer>} bytes of the workbook of this page
 * @param {Graph} graph
 * @param {Run} run
 * @returns {Promise<Uint8Array<ArrayBuffer>>}
 */
export async function savedWorkbook(bytes, graph, run) {
  const file = await Xlsx.open(bytes);
  const texts = await file.texts();
  await checkIsOf(file, graph, texts);
  if (!run.edits().length && !editsHeld(graph, run, await heldBy(file, graph, texts)).length) return bytes;
  await savedInto(file, graph, run, texts);
  return file.bytes;
}
