// The edits in a workbook: which cells of blocks differ from those as built. What counts as one
// follows exporters/edits/differences.py and exporters/model/counting.py.

import { faultOfId, typedValue } from "./typed.js";
import { CellError } from "./values.js";
import { cellAddress, cellName } from "./words.js";
import { storableText } from "./xlsx.js";

/** @typedef {import("./graph.js").Block} Block */
/** @typedef {import("./graph.js").Graph} Graph */
/** @typedef {import("./evaluator.js").Edit} Edit */
/** @typedef {import("./evaluator.js").Run} Run */
/** @typedef {import("./values.js").Value} Value */
/** @typedef {import("./held.js").HeldCells} HeldCells */

// relative: programs write 15 digits
const LAST_DIGIT = 1e-14;
// what programs may compute differently
const PROGRAMS_DIFFER = 1e-9;
// of a number that is read as a text
const DIGITS_OF_TEXT = 15;
// other weights than these are another model, if more of them differ than this share
const MOST_OTHERS = 0.5;
const FEW_WEIGHTS = 20;
// formulas that somebody replaced; more of them are values that nobody computed anew
const MOST_REPLACED = 1000;
const SORTED_AT_LEAST = 4;

/**
 * The edits in a workbook, given what it holds. Throws an Error for one of another model, and for
 * what nothing can be computed with.
 * @param {Graph} graph
 * @param {Run} run any of the graph
 * @param {Map<number, HeldCells>} held
 * @returns {Edit[]}
 */
export function editsHeld(graph, run, held) {
  const built = run.another();
  for (const { block, i, j } of built.edits()) built.unset(block, i, j);
  built.recompute();
  const edits = [...held.values()].flatMap((cells) => editsOfBlock(graph, built, cells));
  checkIsSameModel(edits, held);
  for (const { block, i, j, value } of edits) built.set(block, i, j, value);
  built.recompute();
  const all = [...edits, ...replacedFormulas(graph, built, held)];
  return all.sort((a, b) => a.block.index - b.block.index || a.i - b.i || a.j - b.j);
}

/**
 * The edits of a block, but for other formulas in the place of its own.
 * @param {Graph} graph
 * @param {Run} built
 * @param {HeldCells} cells
 * @returns {Edit[]}
 */
function editsOfBlock(graph, built, cells) {
  const { block } = cells;
  const found = [];
  for (let i = 0, cell = 0; i < block.rows; i++) {
    for (let j = 0; j < block.cols; j++, cell++) {
      if (!block.has(i, j)) continue;
      const typed = typedValue(block, i, j);
      if (typed === undefined ? cells.isFormula(cell) : isUnchanged(typed, cells, cell)) continue;
      const was = typed === undefined ? built.value(block, i, j) : typed;
      found.push({ block, i, j, value: countedValue(graph, cells, i, j, was, typed === undefined) });
    }
  }
  checkIsUnsorted(built, found);
  return found;
}

/**
 * Whether a typed cell holds what it did, but for how programs write it.
 * @param {Value} was
 * @param {HeldCells} cells
 * @param {number} cell
 * @returns {boolean}
 */
function isUnchanged(was, cells, cell) {
  if (typeof was === "number" && !cells.others.size && cells.hasValue(cell)) return isSameNumber(was, cells.numbers[cell]);
  const now = cells.value(cell);
  if (typeof was === "string") return !(now instanceof CellError) && textOfValue(now) === storableText(was);
  if (typeof now === "string" || now instanceof CellError) return false;
  return isSameNumber(Number(was ?? 0), Number(now ?? 0)) && !(cells.isFormula(cell) && now === null);
}

/**
 * @param {number} was
 * @param {number} now
 */
function isSameNumber(was, now) {
  return Math.abs(now - was) <= LAST_DIGIT * Math.abs(was);
}

/**
 * What a value counts as in its cell. Throws an Error where nothing can be computed with it.
 * @param {Graph} graph
 * @param {HeldCells} cells
 * @param {number} i
 * @param {number} j
 * @param {Value} was
 * @param {boolean} isComputed
 * @returns {Value}
 */
function countedValue(graph, cells, i, j, was, isComputed) {
  const { block } = cells;
  const cell = i * block.cols + j;
  const now = cells.value(cell);
  const at = `${cellAddress(block, i, j)} (${cellName(block, i, j)})`;
  if (now instanceof CellError) throw new Error(`${at} holds ${now.text}; type a value there, and save it again`);
  if (cells.isFormula(cell) && !cells.hasValue(cell)) {
    throw new Error(`${at} holds a formula without a value; open and save the workbook in a spreadsheet`);
  }
  if (typeof was === "string") return textOfValue(now);
  if (typeof now === "boolean") return Number(now);
  if (typeof now === "number") {
    const fault = faultOfId(graph, block, now);
    if (fault) throw new Error(`${at} holds ${now}, which ${fault}`);
    return now;
  }
  if (isComputed && !block.isInput) {
    throw new Error(`${at} ${now ? "holds a text" : "is empty"} in place of a formula; type a number there, and save it again`);
  }
  return block.kind === "table" ? now : 0;
}

/**
 * A value as a text, as a cell with a word has it: a word may look like a number.
 * @param {Value} value
 * @returns {string}
 */
function textOfValue(value) {
  if (value === null) return "";
  if (typeof value === "boolean") return value ? "True" : "False";
  return typeof value === "number" ? generalNumber(value) : String(value);
}

/**
 * A number with up to 15 digits, as spreadsheets show it: 3, 0.25, 1E+21.
 * @param {number} value
 * @returns {string}
 */
function generalNumber(value) {
  const [mantissa, exponent] = value.toExponential(DIGITS_OF_TEXT - 1).split("e");
  const power = Number(exponent);
  const bare = (/** @type {string} */ text) => (text.includes(".") ? text.replace(/\.?0+$/, "") : text);
  if (power >= -4 && power < DIGITS_OF_TEXT) return bare(value.toFixed(Math.max(0, DIGITS_OF_TEXT - 1 - power)));
  return `${bare(mantissa)}E${power < 0 ? "-" : "+"}${String(Math.abs(power)).padStart(2, "0")}`;
}

/**
 * Throws an Error if a workbook's weights are another model's.
 * @param {Edit[]} edits
 * @param {Map<number, HeldCells>} held
 */
function checkIsSameModel(edits, held) {
  const weights = (/** @type {Block} */ block) => block.kind === "weight" && !block.isOp;
  const blocks = Array.from(held.values(), ({ block }) => block).filter(weights);
  const all = blocks.reduce((n, block) => n + block.rows * block.cols, 0);
  const n = edits.filter(({ block }) => weights(block)).length;
  if (n > Math.max(FEW_WEIGHTS, MOST_OTHERS * all)) {
    throw new Error(`the workbook is of another model: ${n} of ${all} weights differ; open it in its own page`);
  }
}

/**
 * Throws an Error if cells of a block stand in another order.
 * @param {Run} built
 * @param {Edit[]} edits of a block
 */
function checkIsUnsorted(built, edits) {
  if (edits.length < SORTED_AT_LEAST) return;
  const spelt = (/** @type {Value} */ value) => (typeof value === "number" ? value.toPrecision(13) : String(value ?? ""));
  const now = edits.map(({ value }) => spelt(value)).sort();
  const was = edits.map(({ block, i, j }) => spelt(built.value(block, i, j))).sort();
  if (new Set(was).size <= 2 || now.some((value, k) => value !== was[k])) return;
  const { block, i, j } = edits[0];
  throw new Error(`cells of ${block.name} have changed their order from ${cellAddress(block, i, j)} on: they were sorted, or moved; undo that, or build the workbook again and type the edits there`);
}

// --- formulas that somebody replaced --------------------------------------------------------------

/**
 * The formulas that give another value than ours would, both from what the workbook holds and from
 * what the page computes with its other edits. Where a program computed nothing, there is nothing to
 * compare. A block that reads what follows from it may be a step further.
 * @param {Graph} graph
 * @param {Run} live with the edits
 * @param {Map<number, HeldCells>} held
 * @returns {Edit[]}
 */
function replacedFormulas(graph, live, held) {
  const all = [...held.values()];
  if (all.some((cells) => lacksValues(cells))) return [];
  const doubtful = all.map((cells) => doubtfulCells(live, cells));
  if (doubtful.every((cells) => !cells.length)) return [];
  for (const cells of all) putAll(live, cells);
  const edits = all.flatMap((cells, k) => {
    const { block } = cells;
    const own = doubtful[k].length ? fromFormulas(live, block) : null;
    return doubtful[k].filter((cell) => own && !isNear(own(cell), cells.value(cell))).map((cell) => {
      const [i, j] = [Math.floor(cell / block.cols), cell % block.cols];
      return { block, i, j, value: countedValue(graph, cells, i, j, own?.(cell) ?? null, true) };
    });
  });
  if (edits.length <= MOST_REPLACED) return edits;
  throw new Error(`${edits.length} formulas show other values than they have; open the workbook in a spreadsheet, recalculate and save it`);
}

/** @param {HeldCells} cells */
function lacksValues({ kinds }) {
  return kinds.some((_, cell) => kinds[cell] === 1);
}

/**
 * The cells whose formula's value is not the page's.
 * @param {Run} live
 * @param {HeldCells} cells
 * @returns {number[]}
 */
function doubtfulCells(live, cells) {
  const { block } = cells;
  /** @type {number[]} */
  const found = [];
  if ((!block.isOp && !block.isTable) || block.isInput) return found;
  for (let cell = 0; cell < cells.kinds.length; cell++) {
    if (!cells.isFormula(cell)) continue;
    const own = live.value(block, Math.floor(cell / block.cols), cell % block.cols);
    if (!isNear(own, cells.value(cell))) found.push(cell);
  }
  return found;
}

/**
 * Whether two values are the same, but for how programs compute. An op shows an error as NaN, and an
 * infinity where a program has an error.
 * @param {Value} own
 * @param {Value} other
 * @returns {boolean}
 */
function isNear(own, other) {
  const isError = (/** @type {Value} */ value) => value instanceof CellError || (typeof value === "number" && !Number.isFinite(value));
  if (isError(own) || isError(other)) return true;
  if (typeof own === "string" || typeof other === "string") return textOfValue(own) === textOfValue(other);
  const [a, b] = [Number(own ?? 0), Number(other ?? 0)];
  return Math.abs(a - b) <= PROGRAMS_DIFFER * Math.max(1, Math.abs(a));
}

/**
 * Put all that a workbook holds of a block into a run.
 * @param {Run} run
 * @param {HeldCells} cells
 */
function putAll(run, cells) {
  const { block } = cells;
  for (let i = 0, cell = 0; i < block.rows; i++) {
    for (let j = 0; j < block.cols; j++, cell++) {
      if (cells.hasValue(cell) && block.has(i, j)) run.set(block, i, j, cells.value(cell));
    }
  }
}

/**
 * What a block's formulas give from the values of a run, by cell.
 * @param {Run} run
 * @param {Block} block
 * @returns {(cell: number) => Value}
 */
function fromFormulas(run, block) {
  if (block.isTable) return (cell) => run.cellValue(block, cell);
  const out = { ...run.view(block), v: new Float64Array(block.rows * block.cols).fill(block.blank) };
  const read = block.operands.map(({ k }) => run.view(run.graph.blocks[k]));
  run.kernels[/** @type {number} */ (block.data.op)](out, read, 0, block.rows, 0, block.cols, block.mask);
  return (cell) => out.v[cell];
}
