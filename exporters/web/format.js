// Numbers as a spreadsheet shows them, by the number formats of exporters/compose/theme.py.

import { CellError } from "./values.js";

const CONDITION = /^\[(>=|<=|>|<)(-?[\d.]+)\]/;
const PIECES = /"([^"]*)"|[#0][#0,.]*(?:E\+0+)?/g;
/** @type {Record<string, (x: number, limit: number) => boolean>} */
const HOLDS = { ">=": (x, y) => x >= y, "<=": (x, y) => x <= y, ">": (x, y) => x > y, "<": (x, y) => x < y };

/** A number in a format: up to three sections, each with a condition or for numbers above, below and at 0.
 * @param {number} x @param {string} format */
export function formatted(x, format) {
  const sections = format.split(";");
  if (sections.length === 1) return inSection(x, format);
  for (const [k, section] of sections.entries()) {
    const condition = section.match(CONDITION);
    const last = k === sections.length - 1;
    const holds = condition ? HOLDS[condition[1]](x, Number(condition[2])) : [x > 0 || (x === 0 && sections.length < 3), x < 0, last][Math.min(k, 2)];
    if (holds || last) return inSection(k ? Math.abs(x) : x, section.replace(CONDITION, ""));
  }
  return "";
}

/** @param {number} x @param {string} section */
function inSection(x, section) {
  const number = section.includes("%") ? 100 * x : x;
  return section.replace(PIECES, (whole, literal) => literal ?? digits(number, whole));
}

/** A number in a pattern of digits. @param {number} x @param {string} pattern */
function digits(x, pattern) {
  const [plain, power] = pattern.split("E+");
  const behind = plain.split(".")[1] ?? "";
  const least = behind.replaceAll("#", "").length;
  if (power) {
    const [mantissa, exponent] = x.toExponential(behind.length).split("e");
    return `${mantissa}E${exponent[0]}${exponent.slice(1).padStart(power.length, "0")}`;
  }
  let text = (x * (1 + 4e-16)).toFixed(behind.length);
  for (let n = behind.length; n > least && text.endsWith("0"); n--) text = text.slice(0, -1);
  if (text.endsWith(".")) text = text.slice(0, -1);
  return plain.includes(",") ? text.replace(/\B(?=(\d{3})+(?!\d))/g, ",") : text;
}

/** A number in no format: as many digits as tell something. @param {number} x */
export function general(x) {
  const size = Math.abs(x);
  if (size >= 1e11 || (size && size < 1e-9)) return x.toExponential(5).replace(/\.?0+e/, "E").replace("e", "E");
  return String(Number(x.toPrecision(10)));
}

/** A number of a block: three decimals, as the workbook has it, but none is shown as 0 that is not.
 * @param {number} x */
export function decimals(x) {
  const size = Math.abs(x);
  if (!Number.isFinite(x)) return Number.isNaN(x) ? "#NUM!" : x > 0 ? "∞" : "-∞";
  return (size && size < 0.0005) || size >= 1e6 ? x.toExponential(1) : x.toFixed(size < 1e4 ? 3 : 1);
}

/** The same where it stands alone: whole numbers have no decimals. @param {number} x */
export function inBlock(x) {
  return Number.isInteger(x) && Math.abs(x) < 1e15 ? String(x) : decimals(x);
}

/** A value as a cell with a number format shows it. @param {any} value @param {string} [format] @returns {string} */
export function shownAs(value, format) {
  if (value === null || value === undefined) return "";
  if (value instanceof CellError) return value.text;
  if (typeof value === "boolean") return String(value).toUpperCase();
  if (typeof value !== "number") return String(value);
  if (!Number.isFinite(value)) return "#NUM!";
  return format && format !== "@" ? formatted(value, format) : general(value);
}
