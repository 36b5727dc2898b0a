// The values of sheets' cells: blocks that stand there, the sheets' own formulas, labels.
//
// A sheet's own formulas are computed when they are asked for, and kept until a value changes. They
// see a block as it lies on its sheet: turned, and blank where it has no cell.

import { Group } from "./graph.js";
import { CellError, FormulaError, Range } from "./values.js";

/** @typedef {import("./evaluator.js").Run} Run */
/** @typedef {import("./graph.js").Block} Block */
/** @typedef {import("./values.js").Value} Value */
/** A formula outside of blocks: its shape's index, and what stands in its columns.
 * @typedef {[number, any[]]} Formula */

// columns of a sheet
const WIDTH = 1 << 14;

export class SheetValues {
  /** @param {Run} run */
  constructor(run) {
    this.run = run;
    const { graph } = run;
    /** @type {Block[][]} by sheet */ this.places = graph.sheetNames.map(() => []);
    const numbers = new Map(graph.sheetNames.map((name, k) => [name, k]));
    for (const block of graph.blocks) if (block.place) this.places[numbers.get(block.place.sheet) ?? 0].push(block);
    this.numbers = numbers;
    /** @type {Map<number, {group: Group, k: number} | {value: Value}>[]} */ this.own = graph.sheetNames.map(() => new Map());
    for (const [grid, typed, groups] of graph.data.cells) {
      const cells = this.own[grid - graph.blocks.length];
      for (const [row, col, value] of typed) cells.set(row * WIDTH + col, { value });
      for (const data of groups) {
        const group = new Group(data, graph.shapes);
        for (const [k, cell] of group.cells.entries()) cells.set(cell, { group, k });
      }
    }
    /** @type {Map<number, Value>[]} */ this.known = [];
    this.version = -1;
    this.look = this.look.bind(this);
  }

  /** The value of a cell of a sheet; null: it is blank.
   * @param {string} sheet @param {number} row @param {number} col @returns {Value} */
  value(sheet, row, col) {
    return this.cell(this.numbers.get(sheet) ?? -1, row, col);
  }

  /** The value of a formula outside of blocks. @param {Formula} formula @returns {Value} */
  formula([shape, values]) {
    return this.computed(new Group([shape, [0], values], this.run.graph.shapes), 0);
  }

  /** @param {Group} group @param {number} k @returns {Value} */
  computed(group, k) {
    return valueOf(() => group.shape.compute(group, k, this.look));
  }

  /** @param {number} sheet @param {number} row @param {number} col @returns {Value} */
  cell(sheet, row, col) {
    if (this.version !== this.run.version) {
      this.known = this.own.map(() => new Map());
      this.version = this.run.version;
    }
    const at = row * WIDTH + col;
    const known = this.known[sheet]?.get(at);
    if (known !== undefined) return known;
    const value = this.fresh(sheet, row, col);
    this.known[sheet]?.set(at, value);
    return value;
  }

  /** @param {number} sheet @param {number} row @param {number} col @returns {Value} */
  fresh(sheet, row, col) {
    for (const block of this.places[sheet] ?? []) {
      const { top, left, turned } = /** @type {NonNullable<Block["place"]>} */ (block.place);
      const [i, j] = turned ? [col - left, row - top] : [row - top, col - left];
      if (i < 0 || j < 0 || i >= block.rows || j >= block.cols) continue;
      const value = block.has(i, j) ? this.run.value(block, i, j) : null;
      return value === "" && block.isInput ? null : value;
    }
    const own = this.own[sheet]?.get(row * WIDTH + col);
    if (!own) return null;
    return "value" in own ? (own.value === "" ? null : own.value) : this.computed(own.group, own.k);
  }

  /** The value of an area of a block or a sheet, as it lies there. Throws FormulaError.
   * @param {number} grid @param {number} top @param {number} bottom @param {number} left @param {number} right */
  look(grid, top, bottom, left, right) {
    const { graph } = this.run;
    const one = bottom - top === 1 && right - left === 1;
    if (grid < graph.blocks.length) {
      const block = graph.blocks[grid];
      if (one || !(block.partial || block.place?.turned)) return this.run.look(grid, top, bottom, left, right);
      return oriented(this.run, block, [top, bottom, left, right]);
    }
    const sheet = grid - graph.blocks.length;
    if (one) {
      const value = this.cell(sheet, top, left);
      if (value instanceof CellError) throw new FormulaError(value.text);
      return value;
    }
    const cells = [];
    for (let row = top; row < bottom; row++) for (let col = left; col < right; col++) cells.push(this.cell(sheet, row, col));
    return new Range(bottom - top, right - left, cells);
  }
}

/** What a cell shows: a range's first value, 0 for a blank; an error as a value.
 * @param {() => any} compute @returns {Value} */
export function valueOf(compute) {
  try {
    let value = compute();
    if (value instanceof Range) value = value.values[0];
    return value === null || value === undefined ? 0 : value;
  } catch (error) {
    if (error instanceof FormulaError) return new CellError(error.text);
    throw error;
  }
}

/** @param {Run} run @param {Block} block @param {import("./access.js").Rect} rect */
function oriented(run, block, [top, bottom, left, right]) {
  /** @type {Value[]} */ const cells = [];
  const cell = (/** @type {number} */ i, /** @type {number} */ j) => cells.push(block.has(i, j) ? run.value(block, i, j) : null);
  if (!block.place?.turned) {
    for (let i = top; i < bottom; i++) for (let j = left; j < right; j++) cell(i, j);
    return new Range(bottom - top, right - left, cells);
  }
  for (let j = left; j < right; j++) for (let i = top; i < bottom; i++) cell(i, j);
  return new Range(right - left, bottom - top, cells);
}
