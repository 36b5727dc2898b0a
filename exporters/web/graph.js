// A graph of named blocks of cells, as the page's data describe it: engine/cells/graph.py.

import { Mask, direction, dirties, readsOf } from "./access.js";
import { compiled } from "./formulas.js";

/** @typedef {import("./access.js").Rect} Rect */
/** @typedef {import("./formulas.js").Compute} Compute */
/** @typedef {import("./values.js").Value} Value */
/** What a block's data are: see data.py.
 * @typedef {{n: string, s: [number, number], a: [string, string], k: Kind, w?: number,
 *   op?: number, x?: [number, string, string][], m?: [number, number, number, number?], p?: number,
 *   b?: string | number, d?: [string, number, number?], v?: Value[], t?: GroupData[],
 *   at?: [number, number, number, number], means?: string, g?: string}} BlockData */
/** @typedef {"ids" | "weight" | "setting" | "computed" | "gradient" | "table"} Kind */
/** A formula's shape, the differences of its cells' indices, and its columns.
 * @typedef {[number, number[], any[]]} GroupData */
/** @typedef {{block: Block, rect: Rect}} Area */

// more columns than any block has
const WIDEST = 2 ** 26;
const PASS = /^(turned|gradient|nudged|b|other|clean|path|cut|encoder|seen\d+|step\d+)$/;
const HEAD = /^((h|kv|e)\d+|shared)$/;

/** Cells that share a formula, and what it differs in: the value at place p for the k-th cell. */
export class Group {
  /** @param {GroupData} data @param {Shape[]} shapes */
  constructor([shape, cells, columns], shapes) {
    this.shape = shapes[shape];
    this.cells = summed(cells);
    this.columns = columns.map((column) =>
      column === null || typeof column !== "object" ? null : column.d ? summed(column.d) : column.v,
    );
    this.fixed = columns;
  }

  /** @param {number} place @param {number} k */
  at(place, k) {
    const column = this.columns[place];
    return column === null ? this.fixed[place] : column[k];
  }

  /** The areas that the k-th cell reads, each a grid and a rectangle.
   * @param {number} k @returns {[number, Rect][]} */
  areas(k) {
    return this.shape.areas.map((place) => {
      const [grid, ...rect] = [0, 1, 2, 3, 4].map((n) => this.at(place + n, k));
      return [grid, /** @type {Rect} */ (rect)];
    });
  }
}

/** What formulas share: their steps, their text with holes, the places of areas in columns. */
export class Shape {
  /** @param {[any[][], string]} data */
  constructor([steps, text]) {
    this.steps = steps;
    this.text = text;
    /** @type {number[]} */ this.areas = [];
    /** @type {Map<number, number>} step -> its place in the columns */ this.places = new Map();
    let place = 0;
    for (const [k, step] of steps.entries()) {
      if (step[0] === "@") this.areas.push(place);
      if (step[0] === "@" || (step[0] === "#" && step.length === 1)) this.places.set(k, place);
      place += step[0] === "@" ? 5 : step[0] === "#" && step.length === 1 ? 1 : 0;
    }
    this.isVolatile = steps.some(([name]) => name === "RAND");
    /** @type {Compute | null} */ this.made = null;
  }

  /** Its function, made when it is first asked for. */
  get compute() {
    this.made ??= compiled(this);
    return this.made;
  }
}

/** The numbers before which differences stand. @param {number[]} differences */
function summed(differences) {
  const found = new Int32Array(differences.length);
  let x = 0;
  for (const [k, step] of differences.entries()) found[k] = x += step;
  return found;
}

/** A named array of cells that hold values, share one op, or have a formula each. */
export class Block {
  /** @param {number} index @param {BlockData} data @param {Shape[]} shapes
   * @param {ArrayBuffer} weights */
  constructor(index, data, shapes, weights) {
    this.index = index;
    this.data = data;
    this.weights = weights;
    this.name = data.n;
    this.rows = data.s[0];
    this.cols = data.s[1];
    this.axes = data.a;
    this.kind = data.k;
    this.meaning = data.means ?? "";
    this.isOp = data.op !== undefined;
    this.isTable = data.t !== undefined;
    this.isInput = data.v !== undefined || data.d !== undefined;
    this.mask = new Mask(!!data.m?.[0], data.m?.[1] ?? 0, data.m?.[2] ?? 0, !!data.m?.[3]);
    this.partial = !!data.p;
    this.blank = Number(data.b ?? 0);
    /** Its weights, if a large page holds them as in their file. @type {import("./products.js").Packed | null} */
    this.packed = null;
    /** Its operands, and itself if it is a recurrence. */
    this.operands = (data.x ?? []).map(([back, row, col]) => ({ k: index - back, at: /** @type {[string, string]} */ ([row, col]) }));
    const own = this.operands.find(({ k }) => k === index);
    /** 1: its rows read rows before them; -1: rows after them; 0: they do not read each other. */
    this.recurs = own ? direction(own.at[0]) : 0;
    /** Whether its rows are tokens, and none reads later rows of itself. */
    this.inOrder = this.isOp && this.axes[0] === "token" && this.recurs >= 0;
    this.groups = (data.t ?? []).map((group) => new Group(group, shapes));
    /** @type {{sheet: string, top: number, left: number, turned: boolean} | null} */ this.place = null;
    /** Of each cell its group, and which one of it. @type {Int32Array | null} */ this.where = null;
    const { passes, layer, part, head, leaf } = nameOf(data.n);
    this.passes = passes;
    this.layer = layer;
    this.part = part;
    this.head = head;
    this.leaf = leaf;
  }

  /** What was typed into it when the page was made: numbers, or a list with texts.
   * @returns {any} */
  typed() {
    const { v, d } = this.data;
    if (v) return v.every((x) => typeof x === "number") ? Float64Array.from(/** @type {number[]} */ (v)) : v;
    const [type, offset] = /** @type {[string, number, number?]} */ (d);
    const n = this.rows * this.cols;
    return type === "f4" ? new Float32Array(this.weights, offset, n) : new Float64Array(this.weights, offset, n);
  }

  /** What was typed into a cell. @param {number} cell */
  typedAt(cell) {
    return this.packed ? this.packed.at(Math.floor(cell / this.cols), cell % this.cols) : this.typed()[cell];
  }

  /** @returns {[number, number]} */
  get shape() {
    return [this.rows, this.cols];
  }

  /** @returns {Rect} */
  get whole() {
    return [0, this.rows, 0, this.cols];
  }

  /** Whether there is a cell that is not blank. @param {number} i @param {number} j */
  has(i, j) {
    if (!(i >= 0 && j >= 0 && i < this.rows && j < this.cols)) return false;
    if (!this.partial) return true;
    const [start, stop] = this.mask.keys(i, this.cols);
    return start <= j && j < stop;
  }

  /** The group of a table's cell, and which cell of it. @param {number} cell @returns {[Group, number]} */
  group(cell) {
    if (this.where === null) {
      this.where = new Int32Array(2 * this.rows * this.cols);
      for (const [g, group] of this.groups.entries()) {
        for (const [k, at] of group.cells.entries()) {
          this.where[2 * at] = g;
          this.where[2 * at + 1] = k;
        }
      }
    }
    return [this.groups[this.where[2 * cell]], this.where[2 * cell + 1]];
  }
}

/** The parts of a block's name: see engine/cells/name.py. @param {string} name */
function nameOf(name) {
  const words = name.split(".");
  let n = 0;
  while (n + 1 < words.length && PASS.test(words[n])) n++;
  const layered = words[n] === "blocks" && words.length > n + 2;
  const inside = words.slice(n + (layered ? 2 : 0), -1);
  return {
    passes: words.slice(0, n),
    layer: layered ? Number(words[n + 1]) : null,
    part: inside[0] ?? "",
    head: inside.find((word) => HEAD.test(word)) ?? null,
    leaf: words[words.length - 1],
  };
}

/** What the cells of a table read of one grid: for each reading its cell, and a rectangle. */
class Readings {
  constructor() {
    /** @type {number[]} */ this.cells = [];
    /** @type {number[]} */ this.rects = [];
    /** Readings of single cells, by cell. @type {Map<number, number[]> | null} */ this.single = null;
    /** The others. @type {number[]} */ this.large = [];
  }

  /** The cells that read any of some cells. @param {Rect} changed @returns {number[]} */
  of(changed) {
    if (changed[1] - changed[0] === 1 && changed[3] - changed[2] === 1) return this.ofCell(changed);
    const found = [];
    for (let k = 0; k < this.cells.length; k++) if (this.meets(k, changed)) found.push(this.cells[k]);
    return found;
  }

  /** The same of one cell, for which not every reading is looked at. @param {Rect} cell */
  ofCell(cell) {
    this.single ??= this.indexed();
    const found = [...(this.single.get(cell[0] * WIDEST + cell[2]) ?? [])];
    for (const k of this.large) if (this.meets(k, cell)) found.push(this.cells[k]);
    return found;
  }

  indexed() {
    const single = new Map();
    for (const [k, cell] of this.cells.entries()) {
      const [top, bottom, left, right] = this.rects.slice(4 * k, 4 * k + 4);
      const at = top * WIDEST + left;
      if (bottom - top > 1 || right - left > 1) this.large.push(k);
      else if (single.has(at)) single.get(at).push(cell);
      else single.set(at, [cell]);
    }
    return single;
  }

  /** @param {number} k @param {Rect} changed */
  meets(k, changed) {
    const p = 4 * k;
    const rects = this.rects;
    return rects[p] < changed[1] && rects[p + 1] > changed[0] && rects[p + 2] < changed[3] && rects[p + 3] > changed[2];
  }
}

/** Blocks in the order of computation. */
export class Graph {
  /** @param {any} data see data.py @param {ArrayBuffer} weights the numbers of large blocks */
  constructor(data, weights) {
    this.data = { ...data, sheets: bySheet(data.sheets ?? {}) };
    /** @type {Shape[]} */ this.shapes = data.shapes.map((/** @type {any} */ shape) => new Shape(shape));
    /** @type {Block[]} */
    this.blocks = data.blocks.map((/** @type {BlockData} */ block, /** @type {number} */ k) => new Block(k, block, this.shapes, weights));
    /** @type {string[]} */ this.sheetNames = data.sheetNames;
    this.byName = new Map(this.blocks.map((block) => [block.name, block]));
    /** The tokens, and how many are given, where the model chooses the others. @type {Block[]} */
    this.chosen = ["tokens", "n_prompt", "choice.chosen"].flatMap((name) => this.byName.get(name) ?? []);
    /** The ops that read a block, with the subscript. @type {{block: Block, at: [string, string]}[][]} */
    this.readers = this.blocks.map(() => []);
    for (const block of this.blocks) {
      for (const { k, at } of block.operands) this.readers[k].push({ block, at });
      const at = block.data.at;
      if (at) block.place = { sheet: this.sheetNames[at[0]], top: at[1], left: at[2], turned: !!at[3] };
    }
    this.tables = this.blocks.filter((block) => block.isTable);
    /** The cells that each recalculation computes anew. @type {{block: Block, cells: number[]}[]} */
    this.volatile = this.tables
      .map((block) => ({ block, cells: block.groups.filter(({ shape }) => shape.isVolatile).flatMap(({ cells }) => [...cells]) }))
      .filter(({ cells }) => cells.length);
    /** @type {Map<number, Readings>[]} by block, of tables */
    this.readings = this.blocks.map((block) => readingsOf(block));
    /** Of each block the tables that read it. @type {Set<number>[]} */ this.tablesOn = this.blocks.map(() => new Set());
    for (const table of this.tables)
      for (const grid of this.readings[table.index].keys()) if (grid < this.blocks.length) this.tablesOn[grid].add(table.index);
    const late = this.afterOps();
    /** Tables that follow from what is typed alone: they are settled first. */
    this.early = this.tables.filter((block) => !late.has(block.index));
    this.late = this.blocks.filter((block) => late.has(block.index));
  }

  /** The ops, and the tables that read them, or tables that do; all, in a book whose cells follow from
   * their own last values. @returns {Set<number>} by index */
  afterOps() {
    const all = this.blocks.filter((block) => block.isOp || (block.isTable && this.volatile.length));
    const found = new Set(all.map((block) => block.index));
    for (const k of found) for (const table of this.tablesOn[k]) found.add(table);
    return found;
  }

  /** The block of a name. Throws an Error that names the nearest. @param {string} name */
  get(name) {
    const block = this.byName.get(name);
    if (!block) throw new Error(`there is no block ${name}; ${nearest(name, [...this.byName.keys()])}`);
    return block;
  }

  /** @param {string} name */
  has(name) {
    return this.byName.has(name);
  }

  /** The block of a block's gradients: its own, or that of the only one that reads it.
   * @param {Block} block @returns {Block | undefined} */
  gradientOf(block) {
    return this.byName.get(block.data.g ?? `gradient.${block.name}`);
  }

  /** What a cell's formula reads. @param {Block} block @param {number} i @param {number} j @returns {Area[]} */
  reads(block, i, j) {
    if (!block.isTable)
      return this.operandsOf(block, i, j).filter(({ rect }) => rect[1] > rect[0]);
    const [group, k] = block.group(i * block.cols + j);
    const found = group.areas(k).filter(([grid]) => grid < this.blocks.length);
    return found.map(([grid, rect]) => ({ block: this.blocks[grid], rect }));
  }

  /** What a cell reads of each operand; no rows where there is nothing to read.
   * @param {Block} block @param {number} i @param {number} j @returns {Area[]} */
  operandsOf(block, i, j) {
    return block.operands.map(({ k, at }) => {
      const read = this.blocks[k];
      return { block: read, rect: readsOf(at, i, j, read.shape, block.mask) };
    });
  }

  /** The cells whose formulas read a cell, as rectangles of blocks.
   * @param {Block} block @param {number} i @param {number} j @returns {Area[]} */
  readBy(block, i, j) {
    /** @type {Rect} */ const here = [i, i + 1, j, j + 1];
    const found = [];
    for (const { block: reader, at } of this.readers[block.index]) {
      const rect = dirties(at, here, reader.shape, reader.mask);
      if (rect) found.push({ block: reader, rect });
    }
    for (const k of this.tablesOn[block.index]) {
      const table = this.blocks[k];
      for (const cell of this.readings[k].get(block.index)?.of(here) ?? []) {
        const [row, col] = [Math.floor(cell / table.cols), cell % table.cols];
        found.push({ block: table, rect: /** @type {Rect} */ ([row, row + 1, col, col + 1]) });
      }
    }
    return found;
  }
}

/** Sheets one by one, of which data.py has each part together. @param {Record<string, any[]>} parts */
function bySheet(parts) {
  /** @type {Record<string, any>[]} */ const sheets = [];
  for (const [part, values] of Object.entries(parts))
    for (const [k, value] of values.entries()) if (value !== null) (sheets[k] ??= {})[part] = value;
  return sheets;
}

/** @param {Block} block */
function readingsOf(block) {
  /** @type {Map<number, Readings>} */ const found = new Map();
  for (const group of block.groups) {
    for (const place of group.shape.areas) {
      for (let k = 0; k < group.cells.length; k++) {
        const grid = group.at(place, k);
        let readings = found.get(grid);
        if (!readings) found.set(grid, (readings = new Readings()));
        readings.cells.push(group.cells[k]);
        for (let n = 1; n < 5; n++) readings.rects.push(group.at(place + n, k));
      }
    }
  }
  return found;
}

/** The name that somebody may have meant. @param {string} name @param {string[]} known */
export function nearest(name, known) {
  let best = "";
  let least = Infinity;
  for (const other of known) {
    const apart = distance(name.toLowerCase(), other.toLowerCase(), least);
    if (apart < least) [best, least] = [other, apart];
  }
  return best ? `the nearest name is ${best}` : "there are no names";
}

/** How many letters must change; more than `most` is not counted further.
 * @param {string} a @param {string} b @param {number} most */
function distance(a, b, most) {
  if (Math.abs(a.length - b.length) > most) return Infinity;
  let row = Array.from({ length: b.length + 1 }, (_, k) => k);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++)
      next.push(Math.min(next[j - 1] + 1, row[j] + 1, row[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1)));
    row = next;
  }
  return row[b.length];
}
