// The run of a large page: its weights stay packed, as they stand in their file; edits lie over them.
//
// Rows of tokens that nobody has asked for wait, since in a decoder no earlier row reads them. Blocks
// hold no place for them as yet. As long as nothing is edited, two runs share their values.

import { unpacked } from "./data.js";
import { Run } from "./evaluator.js";
import { Graph } from "./graph.js";
import { Packed, PackedView, Products, lineLength, times } from "./products.js";
import { finished, inSlices } from "./slices.js";
import { Range } from "./values.js";

/** @typedef {import("./access.js").Rect} Rect */
/** @typedef {import("./graph.js").Block} Block */
/** @typedef {import("./values.js").Value} Value */

// multiplications that are done at once, and how many times fewer in JavaScript
const AT_A_TIME_MOST = 6e6;
const SLOWER = 8;
const SLOWER_TOLD = "this browser forbids WebAssembly here, so the page is slower";
// of a run, while it is the same as another
const SHARED = /** @type {const} */ (["values", "owned", "mirrors", "writes", "overlay", "later"]);
const NEXT_WORD = "next word";
// rows of tokens for which blocks make place together
const ROWS_TOGETHER = 4;
// how many times the place that is needed a block may hold
const FEW_MORE = 2;

/** The values of a large graph, with changes. */
class LargeRun extends Run {
  /** The run of the same values and edits. @returns {LargeRun} */
  another() {
    const run = new LargeRun(this.graph, this.kernels, this);
    run.share(this);
    return run;
  }

  /** The first values of a block. @param {Block} block @param {Run} [from] @returns {any} */
  beginning(block, from) {
    if (block.packed) return block.packed;
    return from ? from.values[block.index] : block.inOrder ? new Float64Array(0) : super.beginning(block);
  }

  // --- sharing ------------------------------------------------------------------------------

  /** Takes over edits and values of another run: from now on they are the same. @param {LargeRun} other */
  become(other) {
    other.owned = this.graph.blocks.map((block) => other.owned[block.index] || block.isOp || block.isTable);
    Object.assign(this, Object.fromEntries(SHARED.map((part) => [part, other[part]])));
    this.twin = other;
    this.version++;
  }

  /** Goes on with values of its own. */
  apart() {
    const other = this.twin;
    if (!other) return;
    this.twin = null;
    this.share(other);
  }

  /** @param {LargeRun} other whose values this run holds until one of them changes */
  share(other) {
    Object.assign(this, { values: [...other.values], mirrors: [...other.mirrors], writes: [...other.writes] });
    this.owned = this.graph.blocks.map(() => false);
    other.owned = [...this.owned];
    Object.assign(this, { overlay: new Map([...other.overlay].map(([k, cells]) => [k, new Map(cells)])) });
    this.later = new Map(other.later);
  }

  /** @param {Block} block @param {Rect} rect */
  evaluate(block, rect) {
    this.makePlace(block);
    super.evaluate(block, rect);
  }

  /** @param {Block} block @param {Rect} rect */
  refresh(block, rect) {
    this.makePlace(block);
    return super.refresh(block, rect);
  }

  /** Gives a block values of its own, with place for the rows that are asked for, and few more. @param {Block} block */
  makePlace(block) {
    const k = block.index;
    const [held, isOwn] = [this.values[k], this.owned[k]];
    const rows = Math.min(block.rows, Math.ceil(Math.min(this.horizon, block.rows) / ROWS_TOGETHER) * ROWS_TOGETHER);
    const length = block.inOrder ? rows * block.cols : held.length;
    const fits = length <= held.length && held.length <= FEW_MORE * length;
    if (fits && isOwn) return;
    this.owned[k] = true;
    const before = held.length;
    this.values[k] = fits ? held.slice() : resized(held, length, isOwn);
    if (before < length) this.values[k].fill(block.blank, before);
    else if (!fits) this.wait(block, [[rows, block.rows, 0, block.cols]]);
  }

  // --- packed weights -----------------------------------------------------------------------

  /** @param {Block} block @returns {any} */
  view(block) {
    return block.packed ? new PackedView(block.packed, this.overlay.get(block.index)) : super.view(block);
  }

  /** @param {Block} block @param {number} i @param {number} j @returns {Value} */
  value(block, i, j) {
    return block.packed ? this.view(block).at(i, j) : super.value(block, i, j);
  }

  /** @param {Block} block */
  numbers(block) {
    return block.packed ? this.view(block).v : super.numbers(block);
  }

  /** @param {Block} block @param {number} i */
  line(block, i) {
    return block.packed ? this.view(block).row(i) : super.line(block, i);
  }

  /** @param {Block} matrix @param {Float64Array} vector */
  product(matrix, vector) {
    if (!matrix.packed) return super.product(matrix, vector);
    const { rows, cols } = matrix;
    return times({ v: vector, s: cols, rows: 1, cols }, this.view(matrix), 1, 0, 1, 0, rows);
  }

  /** @param {Block} block @param {number} cell @param {any} value */
  write(block, cell, value) {
    if (!block.packed) super.write(block, cell, value);
  }

  /** @param {number} grid @param {number} top @param {number} bottom @param {number} left @param {number} right */
  look(grid, top, bottom, left, right) {
    const block = this.graph.blocks[grid];
    if (!block.packed && bottom * block.cols <= this.values[grid].length) return super.look(grid, top, bottom, left, right);
    const cells = [];
    for (let i = top; i < bottom; i++) for (let j = left; j < right; j++) cells.push(this.value(block, i, j));
    return cells.length === 1 ? cells[0] : new Range(bottom - top, right - left, cells);
  }

  // --- what is computed when ----------------------------------------------------------------

  /** Rows that wait, by block. @type {Map<number, Rect[]>} */
  later = new Map();
  /** @type {LargeRun | null} the run whose values these are */
  twin = null;
  horizon = Infinity;

  /** Why it is slow; "" if it is not. */
  get slower() {
    const { packed } = this.graph.blocks.find((block) => block.packed) ?? {};
    return !packed || packed.products.kernels ? "" : SLOWER_TOLD;
  }

  /** The rectangles to compute at first. @param {Block} block @returns {Rect[]} */
  first(block) {
    this.horizon = this.wanted();
    return this.parts(block, this.nearer(block, super.first(block)));
  }

  /** Rows that waited, and are asked for. */
  ready() {
    this.horizon = this.wanted();
    /** @type {Map<number, Rect[]>} */ const found = new Map();
    for (const [k, rects] of [...this.later]) {
      this.later.delete(k);
      const now = this.nearer(this.graph.blocks[k], rects);
      if (now.length) found.set(k, now);
    }
    return found;
  }

  /** @param {Block} block @param {Map<number, Rect[]>} changed @param {Map<number, Rect[]>} later @param {number} known */
  due(block, changed, later, known) {
    return this.parts(block, this.nearer(block, super.due(block, changed, later, known)));
  }

  /** The parts of rectangles above the horizon; the others wait. @param {Block} block @param {Rect[]} rects @returns {Rect[]} */
  nearer(block, rects) {
    const most = this.horizon;
    if (!block.inOrder || most >= block.rows) return rects;
    const wait = rects.filter((rect) => rect[1] > most).map(([top, ...rest]) => /** @type {Rect} */ ([Math.max(top, most), ...rest]));
    this.wait(block, wait);
    return rects.filter((rect) => rect[0] < most).map(([top, bottom, ...rest]) => [top, Math.min(bottom, most), ...rest]);
  }

  /** Puts rectangles off until their rows are asked for. @param {Block} block @param {Rect[]} rects */
  wait(block, rects) {
    if (rects.length) this.later.set(block.index, this.fewer([...(this.later.get(block.index) ?? []), ...rects]));
  }

  /** Rectangles in parts that are soon computed: several columns of a product, or rows.
   * @param {Block} block @param {Rect[]} rects @returns {Rect[]} */
  parts(block, rects) {
    let work = 1;
    for (const { k } of block.operands) work += lineLength(this.graph.blocks[k].data);
    const most = Math.ceil(AT_A_TIME_MOST / work / (this.slower ? SLOWER : 1));
    return rects.flatMap(([top, bottom, left, right]) => {
      const found = [];
      const width = Math.ceil(most / (bottom - top));
      if (block.recurs) return [/** @type {Rect} */ ([top, bottom, left, right])];
      for (let j = left; j < right; j += width) found.push(/** @type {Rect} */ ([top, bottom, j, Math.min(right, j + width)]));
      return found;
    });
  }
}

/** Numbers with place for more, or for fewer. The memory of those that nobody else holds is free at once, where the
 * browser can do that, and not when garbage is collected.
 * @param {Float64Array} numbers @param {number} length @param {boolean} isOwn */
function resized(numbers, length, isOwn) {
  const buffer = /** @type {any} */ (numbers.buffer);
  if (isOwn && buffer.transfer) return new Float64Array(buffer.transfer(8 * length));
  const found = new Float64Array(length);
  found.set(numbers.subarray(0, length));
  return found;
}

/** The graph of a large page and its values. `ask` reads the weights' file into bytes; `told` gets the
 * share that is computed, in slices; without it, all is computed at once, and no row waits.
 * @param {string} data @param {import("./evaluator.js").Kernel[]} kernels
 * @param {(beside: any, into: Uint8Array) => Promise<unknown>} ask @param {(share: number) => void} [told] */
export async function openedLarge(data, kernels, ask, told) {
  const found = JSON.parse(new TextDecoder().decode(await unpacked(data)));
  const { size } = found.beside;
  const products = new Products(size, Math.max(1, ...found.blocks.map(lineLength)));
  await products.compile();
  await ask(found.beside, new Uint8Array(products.buffer, 0, size));
  const graph = new Graph(found, products.buffer);
  for (const block of graph.blocks) if (lineLength(block.data)) block.packed = new Packed(block, products);
  const run = new LargeRun(graph, kernels, null);
  if (told && found.gives === NEXT_WORD) run.wanted = () => found.given;
  if (told) await inSlices(run.computing(), told);
  else finished(run.computing());
  return { graph, run };
}
