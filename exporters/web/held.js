// What the cells of a page's blocks hold in a workbook: values, and which of them have formulas.

import { Places, checkPlaces, checkTitle, sheetsOfBlocks } from "./places.js";
import { SheetXml } from "./xlsx.js";

/** @typedef {import("./graph.js").Block} Block */
/** @typedef {import("./graph.js").Graph} Graph */
/** @typedef {import("./values.js").Value} Value */
/** @typedef {import("./xlsx.js").Xlsx} Xlsx */

const HELD_FORMULA = 1;
const HELD_VALUE = 2;
const FIRST_SHEET = "Start";

/** The cells of a block in a workbook. */
export class HeldCells {
  /** @param {Block} block */
  constructor(block) {
    this.block = block;
    this.kinds = new Uint8Array(block.rows * block.cols);
    this.numbers = new Float64Array(block.rows * block.cols);
    /** What is no number. @type {Map<number, Value>} */
    this.others = new Map();
  }

  /**
   * @param {number} cell
   * @param {Value} value
   * @param {boolean} isFormula
   * @param {boolean} hasValue
   */
  put(cell, value, isFormula, hasValue) {
    this.kinds[cell] = (isFormula ? HELD_FORMULA : 0) | (hasValue ? HELD_VALUE : 0);
    if (typeof value === "number") this.numbers[cell] = value;
    else this.others.set(cell, value);
  }

  /**
   * A cell's value; null: it is blank.
   * @param {number} cell
   * @returns {Value}
   */
  value(cell) {
    if (!(this.kinds[cell] & HELD_VALUE)) return null;
    return this.others.has(cell) ? this.others.get(cell) ?? null : this.numbers[cell];
  }

  /** @param {number} cell */
  isFormula(cell) {
    return (this.kinds[cell] & HELD_FORMULA) > 0;
  }

  /** Whether a program has computed a formula, or somebody typed something. @param {number} cell */
  hasValue(cell) {
    return (this.kinds[cell] & HELD_VALUE) > 0;
  }
}

/**
 * The sheet of a name.
 * @param {Xlsx} file
 * @param {string} name
 * @param {string[]} texts
 * @returns {Promise<SheetXml>}
 */
export async function sheetOf(file, name, texts) {
  return new SheetXml(name, await file.xml(file.sheets.get(name) ?? ""), texts);
}

/**
 * Throws an Error unless a workbook is of this page.
 * @param {Xlsx} file
 * @param {Graph} graph
 * @param {string[]} texts
 */
export async function checkIsOf(file, graph, texts) {
  if (file.sheets.has(FIRST_SHEET)) {
    const sheet = await sheetOf(file, FIRST_SHEET, texts);
    sheet.visit((cell) => {
      if (!cell.row && !cell.col) checkTitle(sheet.value(cell), graph);
    });
  }
  checkPlaces(file, graph);
}

/**
 * What all blocks hold in a workbook, by their index.
 * @param {Xlsx} file
 * @param {Graph} graph
 * @param {string[]} texts the shared strings
 * @returns {Promise<Map<number, HeldCells>>}
 */
export async function heldBy(file, graph, texts) {
  /** @type {Map<number, HeldCells>} */
  const found = new Map();
  for (const name of sheetsOfBlocks(graph)) {
    const [sheet, places] = [await sheetOf(file, name, texts), new Places(graph, name)];
    for (const block of places.blocks) found.set(block.index, new HeldCells(block));
    sheet.visit((cell) => {
      const at = places.at(cell.row, cell.col);
      if (!at) return;
      const value = sheet.value(cell);
      const isFormula = sheet.isFormula(cell);
      const hasValue = isFormula ? sheet.hasValue(cell) : value !== null;
      found.get(at.block.index)?.put(at.i * at.block.cols + at.j, value, isFormula, hasValue);
    });
  }
  return found;
}
