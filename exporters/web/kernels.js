// What kernels call besides Math: see engine/cells/javascript.py.

import { FUNCTIONS } from "./functions.js";
import { FormulaError, Range } from "./values.js";

/** The value of a function as tables compute it, as a number; NaN for an error or a text.
 * @param {string} name @param {any[]} given numbers and ranges */
export function numberOf(name, ...given) {
  const { compute, lazy } = FUNCTIONS[name];
  try {
    const value = compute(...(lazy ? given.map((x) => () => x) : given));
    return typeof value === "number" ? value : typeof value === "boolean" ? Number(value) : NaN;
  } catch (error) {
    if (error instanceof FormulaError) return NaN;
    throw error;
  }
}

/** A part of a row (axis 1) or a column (axis 0) of a block as a range; one cell as its number.
 * @param {import("./evaluator.js").View} x @param {number} axis @param {number} first
 * @param {number} last @param {number} at the row, or the column */
export function lineOf(x, axis, first, last, at) {
  const cells = new Float64Array(last - first);
  for (let r = first; r < last; r++) cells[r - first] = axis ? x.v[at * x.s + r] : x.v[r * x.s + at];
  if (last - first === 1) return cells[0];
  return axis ? new Range(1, last - first, cells) : new Range(last - first, 1, cells);
}
