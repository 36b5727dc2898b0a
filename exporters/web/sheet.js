// A sheet of a book, unpacked from its data: what stands in each cell. See sheets.py.

/** @typedef {import("./graph.js").Block} Block */
/** @typedef {import("./graph.js").Graph} Graph */
/** A typed value, a formula of the sheet's own, or a cell of a block; and the number of its style.
 * @typedef {{style: number, value?: any, formula?: any, block?: Block, i: number, j: number}} Held */
/** @typedef {[number, number, number, number]} Place top, bottom, left, right */
/** @typedef {{text: string, edits: [string, number, number, any][],
 *   watch?: [string, number, number], becomes?: any, decimals?: number, row?: number}} Suggestion */
/** @typedef {{block: Block, top: number, left: number, turned: boolean, looks: number | Int16Array}} Region */

/** Columns are numbered below this one in the key of a cell. */
const MOST_COLUMNS = 16384;

/** The contents of a sheet by row and column. */
export class Sheet {
  /** @param {any} data @param {Graph} graph */
  constructor(data, graph) {
    this.data = data;
    /** @type {string} */ this.name = data.name;
    /** @type {string} */ this.purpose = data.purpose ?? "";
    /** @type {Map<number, Held>} */ this.cells = new Map();
    /** @type {Map<number, Region[]>} by row */ this.across = new Map();
    /** @type {Map<number, number[]>} */ this.columnsOf = new Map();
    this.rows = this.cols = 0;
    for (const [row, cells] of data.texts ?? [])
      for (let k = 0; k < cells.length; k += 3)
        this.put(row, cells[k], { style: cells[k + 1], value: cells[k + 2], i: 0, j: 0 });
    for (const [row, col, style, formula] of data.formulas ?? []) this.put(row, col, { style, formula, i: 0, j: 0 });
    for (const [top, bottom, left, right, style, texts] of data.runs ?? [])
      for (let row = top; row < bottom; row++)
        for (let col = left; col < right; col++) {
          const k = row - top + col - left;
          this.put(row, col, { style, value: texts.length ? texts[k] : k, i: 0, j: 0 });
        }
    for (const [name, top, left, turned, looks] of data.regions ?? [])
      this.lay({ block: graph.get(name), top, left, turned: !!turned, looks: Array.isArray(looks) ? spread(looks) : looks });
  }

  /** @param {number} row @param {number} col @param {Held} held */
  put(row, col, held) {
    this.cells.set(row * MOST_COLUMNS + col, held);
    this.rows = Math.max(this.rows, row + 1);
    this.cols = Math.max(this.cols, col + 1);
  }

  /** @param {Region} region */
  lay(region) {
    const { block, top, left, turned } = region;
    const [height, width] = turned ? [block.cols, block.rows] : [block.rows, block.cols];
    for (let row = top; row < top + height; row++) {
      const there = this.across.get(row);
      if (there) there.push(region);
      else this.across.set(row, [region]);
    }
    this.rows = Math.max(this.rows, top + height);
    this.cols = Math.max(this.cols, left + width);
  }

  /** What stands in a cell; undefined if it is blank. @param {number} row @param {number} col @returns {Held | undefined} */
  at(row, col) {
    const own = this.cells.get(row * MOST_COLUMNS + col);
    if (own) return own;
    for (const { block, top, left, turned, looks } of this.across.get(row) ?? []) {
      const [i, j] = turned ? [col - left, row - top] : [row - top, col - left];
      if (!block.has(i, j)) continue;
      const style = typeof looks === "number" ? looks : looks[i * block.cols + j];
      return style < 0 ? undefined : { style, block, i, j };
    }
    return undefined;
  }

  /** The columns of a row that are not blank, from left to right. @param {number} row @returns {number[]} */
  columns(row) {
    let found = this.columnsOf.get(row);
    if (!found) {
      found = [];
      for (let col = 0; col < this.cols; col++) if (this.at(row, col)) found.push(col);
      this.columnsOf.set(row, found);
    }
    return found;
  }

  /** The row and column of a cell of a block that stands here.
   * @param {Block} block @param {number} i @param {number} j @returns {[number, number]} */
  cellOf({ place }, i, j) {
    const { top, left, turned } = place ?? { top: 0, left: 0, turned: false };
    return turned ? [top + j, left + i] : [top + i, left + j];
  }

  /** The merged cells that a cell belongs to. @param {number} row @param {number} col @returns {Place | null} */
  merged(row, col) {
    for (const place of this.data.merged ?? [])
      if (place[0] <= row && row < place[1] && place[2] <= col && col < place[3]) return place;
    return null;
  }
}

/** @type {WeakMap<Graph, Map<string, Sheet>>} */
const unpackedSheets = new WeakMap();

/** The sheets of a book by name. @param {Graph} graph @returns {Map<string, Sheet>} */
export function sheetsOf(graph) {
  let found = unpackedSheets.get(graph);
  if (!found) {
    /** @type {Sheet[]} */ const all = (graph.data.sheets ?? []).map((/** @type {any} */ data) => new Sheet(data, graph));
    unpackedSheets.set(graph, (found = new Map(all.map((sheet) => [sheet.name, sheet]))));
  }
  return found;
}

/** The styles of cells, of which each run has one. @param {number[]} runs @returns {Int16Array} */
function spread(runs) {
  const found = [];
  for (let k = 0; k < runs.length; k += 2) for (let n = 0; n < runs[k + 1]; n++) found.push(runs[k]);
  return Int16Array.from(found);
}
