// The values of a graph with changes: set a cell, recompute what depends on it.
//
// A port of engine/cells/evaluator.py and table.py, with their invariants: a cell that is set keeps
// its value whatever its formula says; a table's cell is computed when it is asked for; blocks are
// visited until nothing changes, since a table may read a later block; a cell that reads itself is
// computed once. What is typed is shared with the run that this one began from, and copied before
// the first write.

import { covers, dirties } from "./access.js";
import { SheetValues, valueOf } from "./sheetvalues.js";
import { finished } from "./slices.js";
import { CellError, FormulaError, Range } from "./values.js";

/** @typedef {import("./access.js").Rect} Rect */
/** @typedef {import("./graph.js").Block} Block */
/** @typedef {import("./graph.js").Graph} Graph */
/** @typedef {import("./values.js").Value} Value */
/** @typedef {Float64Array | Float32Array} Numbers */
/** @typedef {{block: Block, i: number, j: number, value: Value}} Edit */
/** What a kernel reads and writes. @typedef {{v: Numbers, s: number, rows: number, cols: number}} View */
/** @typedef {(out: View, x: View[], top: number, bottom: number, left: number, right: number,
 *   mask: import("./access.js").Mask) => void} Kernel */

const PENDING = Symbol("pending");
const UNDER_WAY = Symbol("under way");
// cells that wait for each other; from there on they are put on a list
const DEEPEST = 60;
// kept apart in one block before they become their bounding box
const MOST_RECTS = 4;
// kept of one block
const MOST_RANGES = 8;

/** A cell that must be computed before its readers go on. */
class Deeper {
  /** @param {Block} block @param {number} cell */
  constructor(block, cell) {
    this.block = block;
    this.cell = cell;
  }
}

/** The values of a graph, with changes. */
export class Run {
  /** @param {Graph} graph @param {Kernel[]} kernels @param {Run | null} [from] with the same typed
   * values; null: nothing is computed as yet */
  constructor(graph, kernels, from) {
    this.graph = graph;
    this.kernels = kernels;
    /** By block: typed arrays of numbers, or lists with texts. @type {any[]} */
    this.values = graph.blocks.map((block) => this.beginning(block, from ?? undefined));
    /** @type {boolean[]} */ this.owned = graph.blocks.map((block) => block.isOp || block.isTable);
    if (from) from.owned = [...this.owned];
    /** @type {(Float64Array | null)[]} numbers of lists that ops read */
    this.mirrors = graph.blocks.map(() => null);
    /** @type {Map<number, Map<number, Value>>} by block and cell */ this.overlay = new Map();
    /** @type {Map<number, Rect[]>} since the last recompute */ this.pending = new Map();
    /** @type {Map<number, Rect[]>} by the last recompute */ this.touched = new Map();
    // grows with each change, for whoever keeps what was computed from values
    this.version = 0;
    this.depth = 0;
    this.room = new Float64Array(0);
    /** @type {SheetValues | null} */ this.ofSheets = null;
    this.look = this.look.bind(this);
    /** By block, and its first and last row and column. @type {Map<string, {version: number, range: Range}>[]} */
    this.ranges = graph.blocks.map(() => new Map());
    this.writes = graph.blocks.map(() => 0);
    /** The rows of tokens that are asked for; the run of a large page computes these first. */
    this.wanted = () => Infinity;
    if (from === undefined) this.computeAll();
  }

  /** The first values of a block: those of another run, those that are typed, or blanks.
   * @param {Block} block @param {Run} [from] @returns {any} */
  beginning(block, from) {
    const computed = block.isOp || block.isTable;
    if (from) return computed ? from.values[block.index].slice() : from.values[block.index];
    const n = block.rows * block.cols;
    if (block.isOp) return new Float64Array(n).fill(block.blank);
    return block.isInput ? (computed ? Array.from(block.typed()) : block.typed()) : new Array(n).fill(null);
  }

  /** Another run of the same values and edits. @returns {Run} */
  another() {
    const run = new Run(this.graph, this.kernels, this);
    for (const { block, i, j, value } of this.edits()) run.set(block, i, j, value);
    return run;
  }

  // --- reading ------------------------------------------------------------------------------

  /** @param {Block} block @param {number} i @param {number} j @returns {Value} */
  value(block, i, j) {
    const found = this.values[block.index][i * block.cols + j];
    return found === undefined ? null : found;
  }

  /** A block's numbers, row by row; NaN for what is none. @param {Block} block @returns {Numbers} */
  numbers(block) {
    const values = this.values[block.index];
    if (!Array.isArray(values)) return values;
    let mirror = this.mirrors[block.index];
    if (!mirror) {
      mirror = Float64Array.from(values, numeric);
      this.mirrors[block.index] = mirror;
    }
    return mirror;
  }

  /** A row of them. @param {Block} block @param {number} i @returns {Numbers} */
  line(block, i) {
    return this.numbers(block).subarray(i * block.cols, (i + 1) * block.cols);
  }

  /** A matrix times a vector. @param {Block} matrix @param {Float64Array} vector @returns {Float64Array} */
  product(matrix, vector) {
    const { rows, cols } = matrix;
    const numbers = this.numbers(matrix);
    const found = new Float64Array(rows);
    for (let i = 0, k = 0; i < rows; i++) for (let j = 0; j < cols; j++, k++) found[i] += numbers[k] * vector[j];
    return found;
  }

  /** Why it computes slowly; "" if it does not. */
  get slower() {
    return "";
  }

  /** What is set, in the order of blocks. @returns {Edit[]} */
  edits() {
    const found = [];
    for (const [k, cells] of [...this.overlay].sort(([a], [b]) => a - b)) {
      const block = this.graph.blocks[k];
      for (const [cell, value] of cells) found.push({ block, i: Math.floor(cell / block.cols), j: cell % block.cols, value });
    }
    return found;
  }

  /** @param {Block} block @param {number} i @param {number} j */
  isSet(block, i, j) {
    return !!this.overlay.get(block.index)?.has(i * block.cols + j);
  }

  /** What the last recompute changed of a block. @param {Block} block @returns {Rect[]} */
  changed(block) {
    return this.touched.get(block.index) ?? [];
  }

  /** The value of a cell of a sheet. @param {string} sheet @param {number} row @param {number} col */
  sheetValue(sheet, row, col) {
    return this.sheets.value(sheet, row, col);
  }

  /** The value of a formula outside of blocks. @param {import("./sheetvalues.js").Formula} formula */
  formulaValue(formula) {
    return this.sheets.formula(formula);
  }

  /** @returns {SheetValues} */
  get sheets() {
    this.ofSheets ??= new SheetValues(this);
    return this.ofSheets;
  }

  // --- changing -----------------------------------------------------------------------------

  /** Set a cell: typed, or computed. @param {Block} block @param {number} i @param {number} j @param {Value} value */
  set(block, i, j, value) {
    const cell = i * block.cols + j;
    let cells = this.overlay.get(block.index);
    if (!cells) this.overlay.set(block.index, (cells = new Map()));
    cells.set(cell, value);
    this.write(block, cell, value);
    this.mark(block, [i, i + 1, j, j + 1]);
  }

  /** Give a cell back its own value. @param {Block} block @param {number} i @param {number} j */
  unset(block, i, j) {
    const cell = i * block.cols + j;
    const cells = this.overlay.get(block.index);
    if (!cells?.delete(cell)) return;
    if (!cells.size) this.overlay.delete(block.index);
    if (block.isOp) this.evaluate(block, [i, i + 1, j, j + 1]);
    else this.write(block, cell, block.isTable ? this.cellValue(block, cell) : block.typedAt(cell));
    this.mark(block, [i, i + 1, j, j + 1]);
  }

  /** Take over the edits and values of another run. @param {Run} other */
  become(other) {
    for (const block of this.graph.blocks) {
      const k = block.index;
      const isTyped = block.isInput && !block.isTable && !other.overlay.has(k);
      if (isTyped && !this.owned[k] && !this.overlay.has(k)) continue;
      this.values[k] = isTyped ? block.typed() : other.values[k].slice();
      this.owned[k] = !isTyped;
      this.mirrors[k] = null;
      this.writes[k]++;
    }
    this.overlay = new Map([...other.overlay].map(([k, cells]) => [k, new Map(cells)]));
    this.version++;
  }

  /** Goes on with values of its own, if it shares another run's. */
  apart() {}

  /** @param {Block} block @param {Rect} rect */
  mark(block, rect) {
    const rects = this.pending.get(block.index);
    if (rects) rects.push(rect);
    else this.pending.set(block.index, [rect]);
    this.version++;
  }

  /** @param {Block} block @param {number} cell @param {any} value */
  write(block, cell, value) {
    const k = block.index;
    if (!this.owned[k]) {
      this.values[k] = this.values[k].slice();
      this.owned[k] = true;
    }
    if (!Array.isArray(this.values[k])) {
      if (typeof value === "number") {
        if (Math.fround(value) !== value && this.values[k] instanceof Float32Array)
          this.values[k] = Float64Array.from(this.values[k]);
      } else this.values[k] = Array.from(this.values[k]);
    }
    this.values[k][cell] = value;
    this.writes[k]++;
    const mirror = this.mirrors[k];
    if (mirror) mirror[cell] = numeric(value);
  }

  // --- computing ----------------------------------------------------------------------------

  /** Compute every block in full, changes included. @returns {number} of cells */
  computeAll() {
    return finished(this.computing());
  }

  /** The same in steps, block by block. @returns {import("./slices.js").Steps<number>} */
  *computing() {
    this.pending.clear();
    this.version++;
    let n = 0;
    for (const block of this.graph.tables) {
      if (block.isInput) continue;
      this.values[block.index] = new Array(block.rows * block.cols).fill(PENDING);
      this.mirrors[block.index] = null;
      this.layOver(block);
    }
    for (const block of this.graph.blocks) {
      for (const rect of block.isOp ? this.first(block) : []) {
        this.evaluate(block, rect);
        yield block.index / this.graph.blocks.length;
      }
      if (block.isTable && !block.isInput) for (const cell of this.values[block.index].keys()) this.settle(block, cell);
      else if (!block.isOp) continue;
      this.writes[block.index]++;
      n += block.rows * block.cols;
      yield block.index / this.graph.blocks.length;
    }
    for (const block of this.graph.tables) {
      if (!block.isInput) continue;
      const found = this.refreshCells(block, [...this.values[block.index].keys()]);
      if (found.length) this.pending.set(block.index, found);
    }
    return n + (yield* this.recomputing());
  }

  /** Recompute the cells that changes reach. @returns {number} of cells */
  recompute() {
    return finished(this.recomputing());
  }

  /** The same in steps, block by block. @returns {import("./slices.js").Steps<number>} */
  *recomputing() {
    const changed = this.pending;
    this.pending = new Map();
    this.touched = new Map(changed);
    const n = yield* this.settling(this.graph.early, changed);
    const all = n + (yield* this.settling(this.graph.late, new Map(this.touched), this.ready()));
    this.version++;
    return all;
  }

  /** Recompute what changes reach of some blocks, until nothing changes. Rows of tokens that the model
   * has yet to choose wait: each pass computes one more of them, so that none is computed in vain.
   * @param {Block[]} blocks @param {Map<number, Rect[]>} changed @param {Map<number, Rect[]>} [later]
   * @returns {import("./slices.js").Steps<number>} */
  *settling(blocks, changed, later = new Map()) {
    let n = 0;
    for (let known = this.known(); changed.size || later.size; known++) {
      /** @type {Map<number, Rect[]>} */ const again = new Map();
      const passed = new Set();
      for (const block of blocks) {
        /** @type {Rect[]} */ let found = [];
        if (block.isOp) {
          for (const rect of this.due(block, changed, later, known)) {
            n += (rect[1] - rect[0]) * (rect[3] - rect[2]);
            const part = this.refresh(block, rect);
            if (part) found.push(part);
            yield block.index / this.graph.blocks.length;
          }
        } else if (block.isTable) {
          const cells = this.reading(block, changed);
          n += cells.length;
          if (cells.length) found = this.refreshCells(block, cells);
        }
        if (found.length) {
          changed.set(block.index, [...(changed.get(block.index) ?? []), ...found]);
          this.touched.set(block.index, [...(this.touched.get(block.index) ?? []), ...found]);
          for (const table of this.graph.tablesOn[block.index]) if (passed.has(table)) again.set(block.index, found);
        }
        if (block.isTable) passed.add(block.index);
        yield block.index / this.graph.blocks.length;
      }
      changed = again;
    }
    return n;
  }

  /** Compute anew what each recalculation of a spreadsheet does, and what follows: a step of a book
   * that learns. @returns {number} of cells */
  recalculate() {
    for (const { block, cells } of this.graph.volatile) for (const rect of this.refreshCells(block, cells)) this.mark(block, rect);
    return this.recompute();
  }

  /** The rectangles of an op's block to compute at first. @param {Block} block @returns {Rect[]} */
  first(block) {
    return [block.whole];
  }

  /** The rectangles of ops' blocks that waited until now. @returns {Map<number, Rect[]>} */
  ready() {
    return new Map();
  }

  /** The rows of tokens that do not depend on what the model chooses; Infinity: it chooses none.
   * @returns {number} */
  known() {
    const [tokens, given, chosen] = this.graph.chosen;
    if (!chosen) return Infinity;
    let known = Math.max(1, Number(this.value(given, 0, 0)) || 1);
    while (known < tokens.rows && this.isSet(tokens, known, 0)) known++;
    return known;
  }

  /** The rectangles of an op's block to compute now: what reads changes, and what waited, above the row
   * `known`. The rows from there on wait in `later`.
   * @param {Block} block @param {Map<number, Rect[]>} changed @param {Map<number, Rect[]>} later
   * @param {number} known @returns {Rect[]} */
  due(block, changed, later, known) {
    const rects = this.dirty(block, changed, later.get(block.index));
    later.delete(block.index);
    if (!block.inOrder || known >= block.rows) return rects;
    const wait = rects.filter((rect) => rect[1] > known);
    if (wait.length) later.set(block.index, wait.map(([top, ...rest]) => [Math.max(top, known), ...rest]));
    return rects.filter((rect) => rect[0] < known).map(([top, bottom, ...rest]) => [top, Math.min(bottom, known), ...rest]);
  }

  /** The rectangles of an op's block that read changes, and others.
   * @param {Block} block @param {Map<number, Rect[]>} changed @param {Rect[]} [rects] @returns {Rect[]} */
  dirty(block, changed, rects = []) {
    for (const { k, at } of block.operands) {
      for (const source of changed.get(k) ?? []) {
        const read = dirties(at, source, block.shape, block.mask);
        const rect = read && block.recurs ? onwards(block, read) : read;
        if (rect && !rects.some((other) => covers(other, rect))) rects = [...rects.filter((other) => !covers(rect, other)), rect];
      }
    }
    return this.fewer(rects);
  }

  /** Rectangles, or what surrounds too many. @param {Rect[]} rects */
  fewer(rects) {
    return rects.length > MOST_RECTS ? [around(rects)] : rects;
  }

  /** Compute a rectangle of an op's block. @param {Block} block @param {Rect} rect */
  evaluate(block, [top, bottom, left, right]) {
    if (block.recurs && bottom - top > 1) {
      // row by row, as a row that is set is read by the next
      const last = top + bottom - 1;
      for (let n = top; n < bottom; n++) {
        const i = block.recurs > 0 ? n : last - n;
        this.evaluate(block, [i, i + 1, left, right]);
      }
      return;
    }
    const out = { v: this.values[block.index], s: block.cols, rows: block.rows, cols: block.cols };
    const x = block.operands.map(({ k }) => this.view(this.graph.blocks[k]));
    this.kernels[/** @type {number} */ (block.data.op)](out, x, top, bottom, left, right, block.mask);
    this.writes[block.index]++;
    this.layOver(block);
  }

  /** A block as kernels read it. @param {Block} block @returns {View} */
  view(block) {
    return { v: this.numbers(block), s: block.cols, rows: block.rows, cols: block.cols };
  }

  /** @param {Block} block */
  layOver(block) {
    for (const [cell, value] of this.overlay.get(block.index) ?? []) this.write(block, cell, value);
  }

  /** Recompute a rectangle; the part of it that changed, or null.
   * @param {Block} block @param {Rect} rect @returns {Rect | null} */
  refresh(block, rect) {
    const [top, bottom, left, right] = rect;
    const width = right - left;
    const before = this.before((bottom - top) * width);
    for (let i = top; i < bottom; i++)
      before.set(this.values[block.index].subarray(i * block.cols + left, i * block.cols + right), (i - top) * width);
    this.evaluate(block, rect);
    const after = this.values[block.index];
    /** @type {Rect} */ const found = [Infinity, -1, Infinity, -1];
    for (let i = top, n = 0; i < bottom; i++) {
      for (let j = left; j < right; j++, n++) {
        const [a, b] = [before[n], after[i * block.cols + j]];
        if (a === b || (a !== a && b !== b)) continue;
        if (found[0] > i) found[0] = i;
        found[1] = i + 1;
        if (found[2] > j) found[2] = j;
        if (found[3] < j + 1) found[3] = j + 1;
      }
    }
    return found[1] < 0 ? null : found;
  }

  /** Room for the numbers before they are computed anew: the same one again, as it is soon garbage.
   * @param {number} n */
  before(n) {
    if (this.room.length < n) this.room = new Float64Array(n);
    return this.room;
  }

  // --- tables -------------------------------------------------------------------------------

  /** The cells of a table that read a change, in order.
   * @param {Block} block @param {Map<number, Rect[]>} changed @returns {number[]} */
  reading(block, changed) {
    /** @type {Set<number>} */ const cells = new Set();
    for (const [grid, readings] of this.graph.readings[block.index])
      for (const rect of changed.get(grid) ?? []) for (const cell of readings.of(rect)) cells.add(cell);
    return [...cells];
  }

  /** Recompute cells of a table, and cells of it that read them; what changed.
   * @param {Block} block @param {number[]} cells @returns {Rect[]} */
  refreshCells(block, cells) {
    const own = this.graph.readings[block.index].get(block.index);
    const set = this.overlay.get(block.index);
    const waiting = new Queue(cells);
    const found = [];
    for (let cell = waiting.next(); cell >= 0; cell = waiting.next()) {
      if (set?.has(cell)) continue;
      const before = this.values[block.index][cell];
      let value = this.cellValue(block, cell);
      // as ops have it
      if (value instanceof CellError && this.graph.readers[block.index].length) value = NaN;
      if (same(value, before)) continue;
      this.write(block, cell, value);
      const [i, j] = [Math.floor(cell / block.cols), cell % block.cols];
      /** @type {Rect} */ const rect = [i, i + 1, j, j + 1];
      found.push(rect);
      for (const other of own?.of(rect) ?? []) if (other !== cell) waiting.add(other);
    }
    return joined(found);
  }

  /** The value of a table's cell, computed. @param {Block} block @param {number} cell @returns {Value} */
  cellValue(block, cell) {
    const [group, k] = block.group(cell);
    return valueOf(() => group.shape.compute(group, k, this.look));
  }

  /** Compute a pending cell, and before it what it reads.
   * @param {Block} block @param {number} cell */
  settle(block, cell) {
    const state = this.values[block.index][cell];
    if (state !== PENDING && state !== UNDER_WAY) return;
    if (state === UNDER_WAY) throw new Error(`${block.name}: cell ${cell} waits for itself`);
    if (this.depth === DEEPEST) throw new Deeper(block, cell);
    this.depth++;
    try {
      this.settleCell(block, cell);
    } catch (deeper) {
      if (!(deeper instanceof Deeper) || this.depth > 1) throw deeper;
      this.settleAll([{ block, cell }, deeper]);
    } finally {
      this.depth--;
    }
  }

  /** @param {Block} block @param {number} cell */
  settleCell(block, cell) {
    const values = this.values[block.index];
    values[cell] = UNDER_WAY;
    try {
      values[cell] = this.cellValue(block, cell);
    } catch (deeper) {
      values[cell] = PENDING;
      throw deeper;
    }
  }

  /** Compute cells, the last one first, and before each what turns out to be needed.
   * @param {{block: Block, cell: number}[]} waiting */
  settleAll(waiting) {
    while (waiting.length) {
      const { block, cell } = waiting[waiting.length - 1];
      try {
        if (this.values[block.index][cell] === PENDING) this.settleCell(block, cell);
        waiting.pop();
      } catch (deeper) {
        if (!(deeper instanceof Deeper)) throw deeper;
        waiting.push(deeper);
      }
    }
  }

  /** The value of an area of a block: of one cell, or a Range. Throws FormulaError.
   * @param {number} grid @param {number} top @param {number} bottom @param {number} left @param {number} right */
  look(grid, top, bottom, left, right) {
    const block = this.graph.blocks[grid];
    const values = this.values[grid];
    if (bottom - top === 1 && right - left === 1) {
      const cell = top * block.cols + left;
      let value = values[cell];
      if (typeof value === "symbol") {
        this.settle(block, cell);
        value = values[cell];
      }
      if (value instanceof CellError) throw new FormulaError(value.text);
      if (value !== value) throw new FormulaError("#NUM!");
      return value;
    }
    if (block.isTable && !block.isInput)
      for (let i = top; i < bottom; i++) for (let j = left; j < right; j++) this.settle(block, i * block.cols + j);
    return this.range(block, [top, bottom, left, right]);
  }

  /** Cells of a block as a range; the same one as long as nothing was written.
   * @param {Block} block @param {Rect} rect @returns {Range} */
  range(block, rect) {
    const ranges = this.ranges[block.index];
    const version = this.writes[block.index];
    const name = rect.join();
    const known = ranges.get(name);
    if (known && known.version === version) return known.range;
    const [top, bottom, left, right] = rect;
    const values = this.values[block.index];
    const typed = !Array.isArray(values);
    let cells;
    if (left === 0 && right === block.cols) {
      const [first, last] = [top * block.cols, bottom * block.cols];
      cells = typed ? values.subarray(first, last) : values.slice(first, last);
    } else {
      cells = typed ? new Float64Array((bottom - top) * (right - left)) : new Array((bottom - top) * (right - left));
      for (let i = top, n = 0; i < bottom; i++) for (let j = left; j < right; j++) cells[n++] = values[i * block.cols + j];
    }
    const range = new Range(bottom - top, right - left, cells);
    if (ranges.size === MOST_RANGES) ranges.clear();
    ranges.set(name, { version, range });
    return range;
  }
}

/** Cells to compute, the first ones of the block first: a heap. */
class Queue {
  /** @param {number[]} cells */
  constructor(cells) {
    this.heap = [...cells].sort((a, b) => a - b);
    this.known = new Set(cells);
  }

  /** The next cell; -1: there is none. */
  next() {
    const heap = this.heap;
    if (!heap.length) return -1;
    const first = heap[0];
    const last = /** @type {number} */ (heap.pop());
    if (heap.length) {
      let k = 0;
      for (let child = 1; child < heap.length; child = 2 * k + 1) {
        if (child + 1 < heap.length && heap[child + 1] < heap[child]) child++;
        if (last <= heap[child]) break;
        heap[k] = heap[child];
        k = child;
      }
      heap[k] = last;
    }
    this.known.delete(first);
    return first;
  }

  /** @param {number} cell */
  add(cell) {
    if (this.known.has(cell)) return;
    this.known.add(cell);
    let k = this.heap.push(cell) - 1;
    while (k && this.heap[(k - 1) >> 1] > cell) {
      this.heap[k] = this.heap[(k - 1) >> 1];
      k = (k - 1) >> 1;
    }
    this.heap[k] = cell;
  }
}

/** @param {any} value */
function numeric(value) {
  return typeof value === "number" ? value : typeof value === "boolean" ? Number(value) : NaN;
}

/** @param {any} a @param {any} b */
function same(a, b) {
  return a instanceof CellError ? b instanceof CellError && a.text === b.text : Object.is(a, b) || a === b;
}

/** A rectangle with all rows that depend on it, in a block whose rows read each other.
 * @param {Block} block @param {Rect} rect @returns {Rect} */
function onwards(block, rect) {
  const across = block.operands.some(({ k, at }) => k === block.index && at[1] === ":");
  const [left, right] = across ? [0, block.cols] : [rect[2], rect[3]];
  return block.recurs > 0 ? [rect[0], block.rows, left, right] : [0, rect[1], left, right];
}

/** @param {Rect[]} rects @returns {Rect} */
function around(rects) {
  const [tops, bottoms, lefts, rights] = [0, 1, 2, 3].map((n) => rects.map((rect) => rect[n]));
  return [Math.min(...tops), Math.max(...bottoms), Math.min(...lefts), Math.max(...rights)];
}

/** The same cells in fewer rectangles: neighbours in a row, then equal rows.
 * @param {Rect[]} cells @returns {Rect[]} */
function joined(cells) {
  /** @type {Rect[]} */ const rows = [];
  for (const rect of cells.sort((a, b) => a[0] - b[0] || a[2] - b[2])) {
    const last = rows[rows.length - 1];
    if (last && last[0] === rect[0] && last[3] >= rect[2]) last[3] = Math.max(last[3], rect[3]);
    else rows.push([...rect]);
  }
  /** @type {Rect[]} */ const found = [];
  for (const rect of rows.sort((a, b) => a[2] - b[2] || a[3] - b[3] || a[0] - b[0])) {
    const last = found[found.length - 1];
    if (last && last[2] === rect[2] && last[3] === rect[3] && last[1] === rect[0]) last[1] = rect[1];
    else found.push(rect);
  }
  return found;
}
