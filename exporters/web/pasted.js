// What spreadsheets copy: rows of cells with tabs between them. A cell in double quotes may hold tabs,
// line breaks, and double quotes written twice.

import { CellError } from "./values.js";

const CELL = /(?:"((?:[^"]|"")*)"|([^\t\r\n]*))(\t|\r\n|\r|\n|$)/y;

/** The rows of a copied text. @param {string} text @returns {string[][]} */
export function tableOf(text) {
  /** @type {string[][]} */ const rows = [];
  /** @type {string[]} */ let row = [];
  for (CELL.lastIndex = 0; CELL.lastIndex < text.length || row.length; ) {
    const found = CELL.exec(text);
    if (!found) return text.split(/\r?\n/).map((line) => line.split("\t")); // quotes within a cell
    row.push((found[1]?.replaceAll('""', '"') ?? found[2]).trim());
    if (found[3] === "\t") continue;
    rows.push(row);
    row = [];
  }
  return rows;
}

/** A value as a text that a spreadsheet reads. @param {any} value @returns {string} */
export function plainText(value) {
  if (value instanceof CellError) return value.text;
  return typeof value === "boolean" ? String(value).toUpperCase() : String(value ?? "");
}
