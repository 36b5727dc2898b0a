// An .xlsx file: its parts, its sheets by name, and the cells of a sheet, scanned.
//
// It reads what Excel, LibreOffice, openpyxl and cellformer write, as exporters/file/reading.py and
// scanning.py do: cells with or without addresses, shared strings, prefixes of names. A sheet's XML
// stays a text, in which a cell is found and can be put otherwise. Rows and columns count from 0.

import { shortened } from "./outside.js";
import { CellError } from "./values.js";
import { packedEntry, readZip, unpackedEntry, writeZip } from "./zip.js";

/** @typedef {import("./values.js").Value} Value */
/**
 * A cell in a sheet's XML: where it stands on the sheet and in the text, its attributes, and what is
 * between its tags.
 * @typedef {{row: number, col: number, begin: number, end: number, attributes: string,
 *   body: string}} XmlCell
 */

const XLSX_ROWS = 1 << 20;
const XLSX_COLUMNS = 1 << 14;
const XLSX_AGAIN = "save it again in a spreadsheet";
const XLSX_ENTITIES = new Map([["lt", "<"], ["gt", ">"], ["amp", "&"], ["quot", '"'], ["apos", "'"]]);
const XLSX_DAY_0 = Date.UTC(1899, 11, 30);
const XLSX_DAY = 86_400_000;

/** A workbook file. */
export class Xlsx {
  /** @param {Uint8Array<ArrayBuffer>} bytes */
  constructor(bytes) {
    this.entries = readZip(bytes);
    this.main = "";
    /** The sheets' parts by name. @type {Map<string, string>} */
    this.sheets = new Map();
    /** The areas that names stand for. @type {Map<string, string>} */
    this.names = new Map();
  }

  /**
   * An open file. Throws an Error for what is no workbook.
   * @param {Uint8Array<ArrayBuffer>} bytes
   * @returns {Promise<Xlsx>}
   */
  static async open(bytes) {
    const file = new Xlsx(bytes);
    const [main] = await file.related("", "/officeDocument");
    if (!main) throw new Error(`the file is no .xlsx workbook; ${XLSX_AGAIN}`);
    file.main = main[1];
    const xml = await file.xml(file.main);
    const parts = new Map(await file.related(file.main, "/worksheet"));
    for (const { attributes } of elementsIn(xml, "sheet")) {
      const id = /(?:^|\s)[\w.-]+:id\s*=\s*["']([^"']*)/.exec(attributes);
      const part = parts.get(id?.[1] ?? "");
      if (part) file.sheets.set(attributeIn(attributes, "name") ?? "", part);
    }
    for (const { attributes, body } of elementsIn(xml, "definedName")) {
      if (attributeIn(attributes, "localSheetId") !== null) continue;
      file.names.set(attributeIn(attributes, "name") ?? "", unescaped(body).replaceAll("$", ""));
    }
    return file;
  }

  /**
   * The XML of a part, with nothing but elements and texts.
   * @param {string} part
   * @returns {Promise<string>}
   */
  async xml(part) {
    const entry = this.entries.get(part);
    if (!entry) throw new Error(`the file lacks its part ${shortened(part)}; ${XLSX_AGAIN}`);
    return plainXml(await unpackedEntry(entry));
  }

  /**
   * Put other XML into a part.
   * @param {string} part
   * @param {string} xml
   */
  async put(part, xml) {
    this.entries.set(part, await packedEntry(part, new TextEncoder().encode(xml)));
  }

  /**
   * The parts of a kind that a part refers to (or the file, if ""), with their ids.
   * @param {string} part
   * @param {string} kind
   * @returns {Promise<[string, string][]>}
   */
  async related(part, kind) {
    const [folder, list] = relationsOf(part);
    if (!this.entries.has(list)) return [];
    const found = elementsIn(await this.xml(list), "Relationship").map(({ attributes }) => {
      const target = attributeIn(attributes, "Target") ?? "";
      const path = target.startsWith("/") ? target : `${folder}/${target}`;
      const id = attributeIn(attributes, "Id") ?? "";
      return { id, type: attributeIn(attributes, "Type") ?? "", path: resolvedPath(path) };
    });
    return found.filter(({ type }) => type.endsWith(kind)).map(({ id, path }) => [id, path]);
  }

  /**
   * The part with the shared strings, if there is one.
   * @returns {Promise<string | undefined>}
   */
  async textsPart() {
    const [found] = await this.related(this.main, "/sharedStrings");
    return found?.[1];
  }

  /**
   * The shared strings.
   * @returns {Promise<string[]>}
   */
  async texts() {
    const part = await this.textsPart();
    if (!part) return [];
    return elementsIn(await this.xml(part), "si").map(({ body }) => textOfItem(body));
  }

  /** The file's bytes. */
  get bytes() {
    return writeZip(this.entries.values());
  }
}

/**
 * The folder of a part, and the part that lists what it refers to.
 * @param {string} part
 * @returns {[string, string]}
 */
export function relationsOf(part) {
  const folder = part.slice(0, Math.max(0, part.lastIndexOf("/")));
  const name = part.slice(folder ? folder.length + 1 : 0);
  return [folder, (folder ? `${folder}/` : "") + `_rels/${name}.rels`];
}

/**
 * A path without . and .. and outer slashes.
 * @param {string} path
 * @returns {string}
 */
function resolvedPath(path) {
  /** @type {string[]} */
  const found = [];
  for (const step of path.split("/")) {
    if (step === "..") found.pop();
    else if (step && step !== ".") found.push(step);
  }
  return found.join("/");
}

// --- XML ----------------------------------------------------------------------------------------

/**
 * The text of XML without comments, declarations and sections of characters.
 * @param {Uint8Array<ArrayBuffer>} bytes
 * @returns {string}
 */
function plainXml(bytes) {
  const wide = (bytes[0] === 0xff && bytes[1] === 0xfe && "utf-16le") || (bytes[0] === 0xfe && bytes[1] === 0xff && "utf-16be");
  const text = new TextDecoder(wide || "utf-8").decode(bytes);
  if (!text.includes("<!")) return text;
  if (/<!(DOCTYPE|ENTITY)/i.test(text)) throw new Error(`the file declares XML of its own; ${XLSX_AGAIN}`);
  const open = text.lastIndexOf("<!--") > text.lastIndexOf("-->") || text.lastIndexOf("<![") > text.lastIndexOf("]]>");
  if (open) throw new Error(`the file's XML is damaged: it was cut off; ${XLSX_AGAIN}`);
  const bare = text.replace(/<!--[^]*?-->/g, "");
  return bare.replace(/<!\[CDATA\[([^]*?)\]\]>/g, (_, held) => escapedText(held));
}

/**
 * All elements of a name, which do not contain each other: attributes, and what is between the tags.
 * @param {string} xml
 * @param {string} name
 * @returns {{attributes: string, body: string, begin: number, end: number}[]}
 */
export function elementsIn(xml, name) {
  const tag = new RegExp(`<((?:[\\w.-]{1,40}:)?)${name}(?=[\\s/>])([^<>]*)>`, "g");
  const found = [];
  for (let match = tag.exec(xml); match; match = tag.exec(xml)) {
    const begin = match.index;
    let [end, body, attributes] = [tag.lastIndex, "", match[2]];
    if (attributes.endsWith("/")) attributes = attributes.slice(0, -1);
    else {
      const close = closing(xml, `${match[1]}${name}`, end);
      body = xml.slice(end, close.begin);
      end = tag.lastIndex = close.end;
    }
    found.push({ attributes, body, begin, end });
  }
  return found;
}

/**
 * Where the tag stands that ends an element. Throws an Error if there is none.
 * @param {string} xml
 * @param {string} name
 * @param {number} from
 * @returns {{begin: number, end: number}}
 */
function closing(xml, name, from) {
  const begin = xml.indexOf(`</${name}`, from);
  const end = xml.indexOf(">", begin) + 1;
  if (begin < 0 || !end) throw new Error(`the file's XML is damaged: ${name.slice(0, 40)} has no end; ${XLSX_AGAIN}`);
  return { begin, end };
}

/**
 * The value of an attribute; null: it is not there.
 * @param {string} attributes
 * @param {string} name
 * @returns {string | null}
 */
export function attributeIn(attributes, name) {
  const found = new RegExp(`(?:^|\\s)${name}\\s*=\\s*(?:"([^"]*)"|'([^']*)')`).exec(attributes);
  return found && unescaped(found[1] ?? found[2]);
}

/**
 * A text without XML's escapes.
 * @param {string} text
 * @returns {string}
 */
export function unescaped(text) {
  if (!text.includes("&")) return text;
  return text.replace(/&(#?\w{1,8});|&/g, (whole, name = "") => {
    const number = /^#(?:(\d+)|x([\da-f]+))$/i.exec(name);
    const code = number ? Number.parseInt(number[1] ?? number[2], number[1] ? 10 : 16) : 0;
    const found = number && code <= 0x10ffff ? String.fromCodePoint(code) : XLSX_ENTITIES.get(name);
    if (found === undefined) throw new Error(`the file's XML is damaged at ${shortened(whole)}; ${XLSX_AGAIN}`);
    return found;
  });
}

/**
 * A text with XML's escapes.
 * @param {string} text
 * @returns {string}
 */
export function escapedText(text) {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

/**
 * A cell's text as a workbook's XML has it: what XML lacks is _x0001_, and half of a pair is spelt.
 * @param {string} text
 * @returns {string}
 */
export function textInXml(text) {
  const coded = (/** @type {string} */ sign, digits = 4) => sign.charCodeAt(0).toString(16).padStart(digits, "0");
  const stored = storableText(text).replace(/_(?=x[0-9A-Fa-f]{4}_)/g, "_x005F_");
  return escapedText(stored.replace(/[\0-\x08\x0b-\x1f\ufffe\uffff]/g, (sign) => `_x${coded(sign).toUpperCase()}_`));
}

/**
 * A text that UTF-8 can encode: half of a surrogate pair is spelt out.
 * @param {string} text
 * @returns {string}
 */
export function storableText(text) {
  const halves = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;
  return text.replace(halves, (half) => `\\u${half.charCodeAt(0).toString(16)}`);
}

/**
 * The text of a workbook's XML.
 * @param {string} xml
 * @returns {string}
 */
function textFromXml(xml) {
  const text = unescaped(xml);
  if (!text.includes("_x")) return text;
  return text.replace(/_x([0-9A-Fa-f]{4})_/g, (_, code) => String.fromCharCode(Number.parseInt(code, 16)));
}

/**
 * The text of a shared string or of one within a cell, from all its runs.
 * @param {string} item
 * @returns {string}
 */
function textOfItem(item) {
  let [read, last] = ["", 0];
  for (const { begin, end } of item.includes("rPh") ? elementsIn(item, "rPh") : []) {
    read += item.slice(last, begin);
    last = end;
  }
  return textFromXml(elementsIn(read + item.slice(last), "t").map(({ body }) => body).join(""));
}

// --- cells --------------------------------------------------------------------------------------

/** The XML of a sheet, and what its cells hold. */
export class SheetXml {
  /**
   * @param {string} name
   * @param {string} xml
   * @param {string[]} texts the shared strings
   */
  constructor(name, xml, texts) {
    this.name = name;
    this.xml = xml;
    this.texts = texts;
    const p = /<((?:[\w.-]{1,40}:)?)worksheet\b/.exec(xml)?.[1];
    if (p === undefined) throw this.damaged("its sheet has no beginning");
    this.prefix = p;
    this.begin = xml.search(new RegExp(`<${p}sheetData\\b`));
    this.end = Math.max(this.begin, xml.lastIndexOf(`</${p}sheetData`));
    if (this.begin < 0 || !xml.includes(`</${p}worksheet`)) throw this.damaged("it has no end");
    this.tag = new RegExp(`<${p}(row|c)(?=[\\s/>])([^<>]*)>`, "g");
    this.formula = new RegExp(`<${p}f(?=[\\s/>])([^<>]*?)(?:/>|>([^<]*)</${p}f\\s*>)`);
    this.shown = new RegExp(`<${p}v(?=[\\s/>])[^<>]*?(?:/>|>([^<]*)</${p}v\\s*>)`);
  }

  /** @param {string} fact */
  damaged(fact) {
    return new Error(`sheet '${shortened(this.name)}' is damaged: ${fact}; ${XLSX_AGAIN}`);
  }

  /**
   * Calls a function with each cell, from the top.
   * @param {(cell: XmlCell) => void} visit
   */
  visit(visit) {
    let [row, col] = [-1, -1];
    this.tag.lastIndex = this.begin;
    for (let found = this.tag.exec(this.xml); found && found.index < this.end; found = this.tag.exec(this.xml)) {
      const [, name, attributes] = found;
      if (name === "row") {
        row = this.rowNumber(attributes, row);
        col = -1;
        continue;
      }
      const after = this.tag.lastIndex;
      const ends = attributes.endsWith("/") ? { begin: after, end: after } : closing(this.xml, `${this.prefix}c`, after);
      col = this.column(attributes, col);
      visit({ row, col, begin: found.index, end: ends.end, attributes, body: this.xml.slice(after, ends.begin) });
      this.tag.lastIndex = ends.end;
    }
  }

  /**
   * A row's number: its attribute, or one more than the last.
   * @param {string} attributes
   * @param {number} last
   */
  rowNumber(attributes, last) {
    const given = attributeIn(attributes, "r");
    const row = given === null ? last + 1 : Number(given) - 1;
    if (!Number.isInteger(row) || row < 0 || row >= XLSX_ROWS) throw this.damaged(`it has a row ${given ?? row + 1}`);
    return row;
  }

  /**
   * A cell's column: of its address, or the next one.
   * @param {string} attributes
   * @param {number} last
   */
  column(attributes, last) {
    const quick = /^ r="([A-Z]{1,3})\d+"/.exec(attributes)?.[1];
    const letters = quick ?? attributeIn(attributes, "r")?.replace(/\d+$/, "");
    const col = letters === undefined ? last + 1 : columnIndex(letters);
    if (!(col >= 0 && col < XLSX_COLUMNS)) throw this.damaged(`it has a column ${letters ?? col + 1}`);
    return col;
  }

  /**
   * The value of a cell; null: it is blank.
   * @param {XmlCell} cell
   * @returns {Value}
   */
  value({ attributes, body }) {
    if (!body) return null;
    const kind = /\st=["']([^"']*)/.exec(attributes)?.[1] ?? "n";
    if (kind === "inlineStr") return elementsIn(body, "is").map((item) => textOfItem(item.body)).join("");
    const text = this.shown.exec(body)?.[1];
    if (!text) return kind === "str" && text === "" ? "" : null;
    return this.typed(kind, text);
  }

  /**
   * The value that is written as text in a cell of a kind.
   * @param {string} kind
   * @param {string} text
   * @returns {Value}
   */
  typed(kind, text) {
    if (kind === "b") return text === "1" || text === "true";
    if (kind === "e") return new CellError(textFromXml(text));
    if (kind === "str") return textFromXml(text);
    if (kind === "d") return (Date.parse(`${text}${/T/.test(text) ? "Z" : ""}`) - XLSX_DAY_0) / XLSX_DAY;
    const number = text.trim() ? Number(text) : NaN;
    if (!Number.isFinite(number)) throw this.damaged(`a number is not valid: ${text.slice(0, 12)}`);
    if (kind !== "s") return number;
    if (this.texts[number] === undefined) throw this.damaged("a text is not there");
    return this.texts[number];
  }

  /**
   * Whether a cell holds a formula.
   * @param {XmlCell} cell
   */
  isFormula({ body }) {
    return body.includes(`<${this.prefix}f`) && this.formula.test(body);
  }

  /**
   * Whether a value is kept beside a cell's formula: an empty text is one, nothing is none.
   * @param {XmlCell} cell
   */
  hasValue({ attributes, body }) {
    const text = this.shown.exec(body)?.[1];
    return !!text || (text !== undefined && /\st=["']str/.test(attributes));
  }
}

/**
 * A column's number by its letters: A is 0.
 * @param {string} letters
 * @returns {number}
 */
export function columnIndex(letters) {
  if (!/^[A-Z]{1,3}$/.test(letters)) return NaN;
  let found = 0;
  for (const letter of letters) found = 26 * found + letter.charCodeAt(0) - 64;
  return found - 1;
}
