// Where the blocks of a page stand in a workbook, and whether it is the workbook of this page.

import { columnIndex } from "./xlsx.js";

/** @typedef {import("./graph.js").Block} Block */
/** @typedef {import("./graph.js").Graph} Graph */
/** @typedef {import("./xlsx.js").Xlsx} Xlsx */
/** @typedef {{block: Block, i: number, j: number}} BlockCell */
/** @typedef {{sheet: string, top: number, left: number, height: number, width: number}} Area */

// names that a workbook may lack and still be of this page, as a share
const MOST_LACKING = 0.5;
const BUILD_ANEW = "undo that, or build the workbook again and type the edits there";

/**
 * The area of a block on its sheet.
 * @param {Block} block
 * @returns {Area}
 */
function areaOf({ place, rows, cols }) {
  if (!place) throw new Error("a block that stands nowhere has no area");
  const { sheet, top, left, turned } = place;
  return { sheet, top, left, height: turned ? cols : rows, width: turned ? rows : cols };
}

/** The blocks of a sheet, by its cells. */
export class Places {
  /**
   * @param {Graph} graph
   * @param {string} sheet
   */
  constructor(graph, sheet) {
    this.blocks = graph.blocks.filter((block) => block.place?.sheet === sheet);
    this.areas = this.blocks.map(areaOf);
    this.row = -1;
    /** The numbers of the blocks that cross that row. @type {number[]} */
    this.across = [];
  }

  /**
   * The block's cell in a place of the sheet; null: there is none.
   * @param {number} row
   * @param {number} col
   * @returns {BlockCell | null}
   */
  at(row, col) {
    if (row !== this.row) {
      this.row = row;
      const crosses = (/** @type {Area} */ { top, height }) => top <= row && row < top + height;
      this.across = this.areas.flatMap((area, k) => (crosses(area) ? [k] : []));
    }
    for (const k of this.across) {
      const { top, left, width } = this.areas[k];
      if (col < left || col >= left + width) continue;
      const block = this.blocks[k];
      const [i, j] = block.place?.turned ? [col - left, row - top] : [row - top, col - left];
      return block.has(i, j) ? { block, i, j } : null;
    }
    return null;
  }
}

/**
 * The sheets that have blocks.
 * @param {Graph} graph
 * @returns {string[]}
 */
export function sheetsOfBlocks(graph) {
  return [...new Set(graph.blocks.flatMap((block) => (block.place ? [block.place.sheet] : [])))];
}

/**
 * Throws an Error unless a workbook's blocks stand where this page has them.
 * @param {Xlsx} file
 * @param {Graph} graph
 */
export function checkPlaces(file, graph) {
  const own = nameIn(graph.data.title);
  const placed = graph.blocks.filter((block) => block.place);
  const named = placed.filter((block) => file.names.has(block.name));
  if (named.length < MOST_LACKING * placed.length) {
    throw new Error(`the workbook is not of ${own}: it names other cells; open it in its own page`);
  }
  const missing = sheetsOfBlocks(graph).find((sheet) => !file.sheets.has(sheet));
  if (missing) throw new Error(`sheet '${missing}' is missing; restore the sheet's name, or build the workbook again`);
  for (const block of named) {
    const there = areaNamed(file.names.get(block.name) ?? "");
    const here = areaOf(block);
    if (!there || there.sheet !== here.sheet || there.height !== here.height || there.width !== here.width) {
      throw new Error(`the workbook is of another version of ${own}, or was built with other options: ${block.name} has another place or size; open it in its own page`);
    }
    const [down, right] = [there.top - here.top, there.left - here.left];
    if (!down && !right) continue;
    const lines = down ? "rows" : "columns";
    throw new Error(`${lines} were inserted or deleted in sheet '${here.sheet}', before ${block.name}; ${BUILD_ANEW}`);
  }
}

/**
 * The area that a defined name refers to; null: it is no area.
 * @param {string} text
 * @returns {Area | null}
 */
function areaNamed(text) {
  const found = /^(?:'((?:[^']|'')+)'|([^'!]+))!([A-Z]+)(\d+)(?::([A-Z]+)(\d+))?$/.exec(text);
  if (!found) return null;
  const [, quoted, bare, left, top, right = left, bottom = top] = found;
  const sheet = bare ?? quoted.replaceAll("''", "'");
  const width = columnIndex(right) - columnIndex(left) + 1;
  return { sheet, top: Number(top) - 1, left: columnIndex(left), height: Number(bottom) - Number(top) + 1, width };
}

/**
 * Throws an Error if the first sheet has another workbook's title.
 * @param {unknown} shown in its first cell
 * @param {Graph} graph
 */
export function checkTitle(shown, graph) {
  const own = nameIn(graph.data.title);
  if (typeof shown !== "string" || !shown || nameIn(shown) === own) return;
  throw new Error(`the workbook is of ${nameIn(shown).slice(0, 40)}, and this page is of ${own}; open it in its own page`);
}

/**
 * The name in a title such as "loss: how surprising a word is".
 * @param {string} title
 * @returns {string}
 */
function nameIn(title) {
  return title.split(": ")[0];
}
