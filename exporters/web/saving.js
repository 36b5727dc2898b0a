// A state typed into the cells of a workbook.
//
// A cell is put otherwise in the sheet's XML; all else stays as it was. A typed cell gets its value,
// an edited formula is replaced by one. Formulas of the page get the page's values, other formulas
// lose theirs. Where the first of the cells that share a formula is edited, the others get it each.

import { Places } from "./places.js";
import { sheetOf } from "./held.js";
import { typedValue } from "./typed.js";
import { CellError } from "./values.js";
import { cellAddress, cellName, letters } from "./words.js";
import { attributeIn, columnIndex, elementsIn, escapedText, relationsOf, textInXml, unescaped } from "./xlsx.js";

/** @typedef {import("./graph.js").Block} Block */
/** @typedef {import("./graph.js").Graph} Graph */
/** @typedef {import("./evaluator.js").Run} Run */
/** @typedef {import("./places.js").BlockCell} BlockCell */
/** @typedef {import("./values.js").Value} Value */
/** @typedef {import("./xlsx.js").SheetXml} SheetXml */
/** @typedef {import("./xlsx.js").Xlsx} Xlsx */
/** @typedef {import("./xlsx.js").XmlCell} XmlCell */
/** @typedef {{text: string, row: number, col: number, isEdited: boolean}} SharedFormula */

// a value that differs less stays as it was written
const STAYS_WITHIN = 1e-12;
const SHEET_WIDTH = 1 << 14;
const CONTENT_TYPES = "[Content_Types].xml";
// what moves with a formula, after what only looks like it: exporters/compose/address.py
const MOVABLE = /(?:"(?:[^"]|"")*"|'(?:[^']|'')*'!)|(?<![\w.$])(?:(\$?[A-Z]{1,3}\$?\d+)|(\$?[A-Z]{1,3}:\$?[A-Z]{1,3}|\$?\d+:\$?\d+))(?![\w.(!])/g;

/**
 * Type a state into a workbook's cells.
 * @param {Xlsx} file
 * @param {Graph} graph
 * @param {Run} run
 * @param {string[]} texts the shared strings
 */
export async function savedInto(file, graph, run, texts) {
  const added = new AddedTexts(texts.length);
  const packing = [];
  let n = 0;
  for (const [name, part] of file.sheets) {
    const patched = new PatchedSheet(await sheetOf(file, name, texts), graph, run, added);
    n += patched.nEdited;
    if (patched.xml !== null) packing.push(file.put(part, patched.xml));
  }
  await Promise.all(packing);
  const edits = run.edits();
  const unplaced = edits.find(({ block }) => !block.place);
  if (unplaced) throw new Error(`${cellName(unplaced.block, unplaced.i, unplaced.j)} stands on no sheet; undo that edit to save a workbook`);
  if (n < edits.length) throw new Error("the workbook lacks cells that were edited; open the one that was built with this page");
  await added.putInto(file);
  await computeOnLoad(file);
}

/** The XML of a sheet with a state typed into it; null: it stays as it was. */
class PatchedSheet {
  /**
   * @param {SheetXml} sheet
   * @param {Graph} graph
   * @param {Run} run
   * @param {AddedTexts} added
   */
  constructor(sheet, graph, run, added) {
    this.sheet = sheet;
    this.run = run;
    this.added = added;
    this.places = new Places(graph, sheet.name);
    this.own = ownFormulas(run, sheet.name);
    this.nEdited = 0;
    /** @type {Map<string, SharedFormula>} */
    this.shared = new Map();
    /** @type {string[]} */
    const parts = [];
    let last = 0;
    sheet.visit((cell) => {
      const text = this.patched(cell);
      if (text === null) return;
      parts.push(sheet.xml.slice(last, cell.begin), text);
      last = cell.end;
    });
    this.xml = last ? [...parts, sheet.xml.slice(last)].join("") : null;
  }

  /**
   * A cell's new XML; null: it stays.
   * @param {XmlCell} cell
   * @returns {string | null}
   */
  patched(cell) {
    const at = this.places.at(cell.row, cell.col);
    const formula = cell.body ? this.sheet.formula.exec(cell.body) : null;
    const isEdited = at !== null && this.run.isSet(at.block, at.i, at.j);
    const text = formula && this.formulaText(cell, formula, isEdited);
    if (at && isEdited) {
      this.nEdited++;
      return this.typedCell(cell, this.run.value(at.block, at.i, at.j));
    }
    const typed = at ? typedValue(at.block, at.i, at.j) : undefined;
    if (at && typed !== undefined) return this.holds(cell, typed) ? null : this.typedCell(cell, typed);
    if (!formula) return at ? this.refused(at) : null;
    const value = at ? this.run.value(at.block, at.i, at.j) : this.own(cell.row, cell.col);
    if (text === formula[0] && value !== undefined && this.holds(cell, value)) return null;
    return this.formulaCell(cell, text ?? "", value);
  }

  /**
   * @param {BlockCell} at
   * @returns {never}
   */
  refused({ block, i, j }) {
    throw new Error(`${cellAddress(block, i, j)} (${cellName(block, i, j)}) of this workbook was typed over, and is not edited here; open the workbook as it was built`);
  }

  /**
   * The XML of a cell's formula: its own, or if it shared that of an edited cell, in full.
   * @param {XmlCell} cell
   * @param {RegExpExecArray} formula
   * @param {boolean} isEdited
   * @returns {string}
   */
  formulaText({ row, col }, formula, isEdited) {
    const [whole, attributes, text] = formula;
    if (!attributes.includes("shared")) return whole;
    const key = attributeIn(attributes, "si") ?? "";
    if (text) {
      this.shared.set(key, { text: unescaped(text), row, col, isEdited });
      return whole;
    }
    const first = this.shared.get(key);
    if (!first?.isEdited) return whole;
    const p = this.sheet.prefix;
    return `<${p}f>${escapedText(movedFormula(first.text, row - first.row, col - first.col))}</${p}f>`;
  }

  /**
   * Whether a cell holds a value already, up to its last digits.
   * @param {XmlCell} cell
   * @param {Value} value
   * @returns {boolean}
   */
  holds(cell, value) {
    const now = this.sheet.value(cell);
    if (typeof value === "number" && typeof now === "number") return Math.abs(value - now) <= STAYS_WITHIN * Math.max(1, Math.abs(value));
    if (now instanceof CellError) return value instanceof CellError && now.text === value.text;
    return now === value || (value === "" && now === null && !cell.body.includes(`<${this.sheet.prefix}f`));
  }

  /**
   * A cell with a typed value.
   * @param {XmlCell} cell
   * @param {Value} value
   * @returns {string}
   */
  typedCell(cell, value) {
    const p = this.sheet.prefix;
    const at = this.attributes(cell, ["r", "s"]);
    if (value === null || value === "") return `<${p}c${at}/>`;
    if (typeof value === "string") return `<${p}c${at} t="s"><${p}v>${this.added.number(value)}</${p}v></${p}c>`;
    return `<${p}c${at}><${p}v>${Number(value)}</${p}v></${p}c>`;
  }

  /**
   * A cell with a formula and its value; undefined: it has none.
   * @param {XmlCell} cell
   * @param {string} formula
   * @param {Value | undefined} value
   * @returns {string}
   */
  formulaCell(cell, formula, value) {
    const p = this.sheet.prefix;
    const [kind, text] = shownInXml(value);
    const space = typeof value === "string" && value !== value.trim() ? ' xml:space="preserve"' : "";
    const shown = text === null ? "" : `<${p}v${space}>${text}</${p}v>`;
    return `<${p}c${this.attributes(cell, ["r", "s", "cm"])}${kind}>${formula}${shown}</${p}c>`;
  }

  /**
   * Some of a cell's attributes.
   * @param {XmlCell} cell
   * @param {string[]} names
   * @returns {string}
   */
  attributes({ attributes }, names) {
    return names.map((name) => new RegExp(`\\s${name}=(?:"[^"]*"|'[^']*')`).exec(attributes)?.[0] ?? "").join("");
  }
}

/**
 * How a formula's value is written: the kind of its cell, and its text; null: it is not.
 * @param {Value | undefined} value
 * @returns {[string, string | null]}
 */
function shownInXml(value) {
  if (typeof value === "number") return ["", Number.isFinite(value) ? String(value) : null];
  if (typeof value === "string") return [' t="str"', textInXml(value)];
  if (typeof value === "boolean") return [' t="b"', String(Number(value))];
  return value instanceof CellError ? [' t="e"', value.text] : ["", null];
}

/**
 * The values of the formulas of a sheet that are not of blocks, as far as the page has them; undefined:
 * it does not.
 * @param {Run} run
 * @param {string} sheet
 * @returns {(row: number, col: number) => Value | undefined}
 */
function ownFormulas(run, sheet) {
  const read = run.sheets.own[run.sheets.numbers.get(sheet) ?? -1];
  const data = run.graph.data.sheets.find((/** @type {any} */ one) => one.name === sheet);
  const shown = new Map((data?.formulas ?? []).map((/** @type {any} */ [row, col, , formula]) => [row * SHEET_WIDTH + col, formula]));
  return (row, col) => {
    const at = row * SHEET_WIDTH + col;
    if (shown.has(at)) return run.formulaValue(shown.get(at));
    return read?.has(at) ? run.sheetValue(sheet, row, col) : undefined;
  };
}

/**
 * A formula as it reads when copied to a cell further down and to the right.
 * @param {string} formula
 * @param {number} down
 * @param {number} right
 * @returns {string}
 */
export function movedFormula(formula, down, right) {
  const coordinate = (/** @type {string} */ whole, /** @type {string} */ fixed, /** @type {string} */ name) => {
    if (fixed) return whole;
    return /\d/.test(name) ? String(Number(name) + down) : letters(columnIndex(name) + right);
  };
  return formula.replace(MOVABLE, (whole, cell, lines) => {
    return cell || lines ? whole.replace(/(\$?)([A-Z]+|\d+)/g, coordinate) : whole;
  });
}

/** Texts that are added to a workbook's table of shared strings. */
class AddedTexts {
  /** @param {number} n of those that are there */
  constructor(n) {
    this.n = n;
    /** @type {string[]} */
    this.texts = [];
  }

  /**
   * The number of a text.
   * @param {string} text
   * @returns {number}
   */
  number(text) {
    return this.n + this.texts.push(text) - 1;
  }

  /** @param {Xlsx} file */
  async putInto(file) {
    if (!this.texts.length) return;
    const part = await file.textsPart();
    const xml = part ? await file.xml(part) : "";
    const end = /<\/((?:[\w.-]+:)?)sst\s*>\s*$/.exec(xml);
    if (!part || !end) throw new Error("the workbook has no table of texts; open the one that was built with this page");
    const p = end[1];
    const items = this.texts.map((text) => `<${p}si><${p}t xml:space="preserve">${textInXml(text)}</${p}t></${p}si>`);
    const before = xml.slice(0, end.index).replace(/<(?:[\w.-]+:)?sst\b[^>]*>/, (tag) =>
      tag.replace(/\s(count|uniqueCount)=["'](\d+)["']/g, (_, name, count) => ` ${name}="${Number(count) + items.length}"`),
    );
    await file.put(part, before + items.join("") + end[0]);
  }
}

/**
 * Have every program compute a workbook when it is opened, and forget the order of computation, which
 * lists cells that may hold formulas no more.
 * @param {Xlsx} file
 */
async function computeOnLoad(file) {
  const xml = await file.xml(file.main);
  const [calc] = elementsIn(xml, "calcPr");
  const [before] = [...elementsIn(xml, "definedNames"), ...elementsIn(xml, "sheets")];
  const p = /<((?:[\w.-]{1,40}:)?)workbook\b/.exec(xml)?.[1] ?? "";
  const kept = calc ? calc.attributes.replace(/\sfullCalcOnLoad=["'][^"']*["']/, "") : "";
  const [begin, end] = calc ? [calc.begin, calc.end] : [before.end, before.end];
  const asked = `${xml.slice(0, begin)}<${p}calcPr${kept} fullCalcOnLoad="1"/>${xml.slice(end)}`;
  if (asked !== xml) await file.put(file.main, asked);
  for (const [id, part] of await file.related(file.main, "/calcChain")) {
    const [, list] = relationsOf(file.main);
    await without(file, list, "Relationship", (attributes) => attributeIn(attributes, "Id") === id);
    await without(file, CONTENT_TYPES, "Override", (attributes) => attributeIn(attributes, "PartName") === `/${part}`);
    file.entries.delete(part);
  }
}

/**
 * Take an element out of a part.
 * @param {Xlsx} file
 * @param {string} part
 * @param {string} name
 * @param {(attributes: string) => boolean} isIt
 */
async function without(file, part, name, isIt) {
  const xml = await file.xml(part);
  const found = elementsIn(xml, name).find(({ attributes }) => isIt(attributes));
  if (found) await file.put(part, xml.slice(0, found.begin) + xml.slice(found.end));
}
