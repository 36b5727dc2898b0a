// The functions of formulas, each as its value in one cell: the column `compute` of the table in
// engine/cells/functions.py, in JavaScript.

import { CellError, FormulaError, Range, SIGNS, cellByCell, compared, settled } from "./values.js";
import { asNumber, number, numbers, numbersOr0, operand, scalar, textOf } from "./values.js";
import { checked, fail, folded, isNumeric, withoutErrors } from "./values.js";

/** @typedef {import("./values.js").Value} Value */
/** @typedef {import("./values.js").Argument} Argument */
/** @typedef {() => Argument} Later an argument that is computed when it is asked for */

// what the last bits may count for where a number is rounded
const LAST = 1e-3;
// characters of a text
const LONGEST = 32_767;
// from here on numbers have no fractions
const WHOLE = 2 ** 52;

// --- of numbers -------------------------------------------------------------------------------

/**
 * A function of one number, applied to every number of a range.
 * @param {(x: number) => number} compute
 * @returns {(x: Argument) => Argument}
 */
function ofEach(compute) {
  return (x) => {
    const given = operand(x);
    return given instanceof Range ? cellByCell(compute, given) : checked(compute(given));
  };
}

/**
 * What is left of a division, with the sign of the divisor.
 * @param {Argument} a
 * @param {Argument} b
 */
function modulo(a, b) {
  const [x, y] = [operand(a), operand(b)];
  if (y === 0) fail("#DIV/0!");
  return cellByCell((p, q) => (p % q && p % q < 0 !== q < 0 ? (p % q) + q : p % q), x, y);
}

/**
 * x rounded to so many decimals, halves away from 0; negative decimals round to tens or hundreds.
 * A number within two bits of a half counts as a half, as in spreadsheets.
 * @param {Argument} x
 * @param {Argument} places
 */
function rounded(x, places) {
  const [given, decimals] = [operand(x), operand(places)];
  const one = given instanceof Range || decimals instanceof Range ? roundedTo : roundedAndChecked;
  return cellByCell(one, given, decimals);
}

/** @type {(x: number, places: number) => number} */
const roundedAndChecked = (x, places) => checked(roundedTo(x, places));

/** @type {(x: number, places: number) => number} */
function roundedTo(x, places) {
  const n = Math.trunc(places);
  const unit = Number(`1e${Math.abs(n)}`);
  const scaled = Math.abs(n < 0 ? x / unit : x * unit);
  const last = 2 * spacing(scaled);
  const half = Math.floor(scaled + 0.5 + (last < LAST ? last : 0));
  const whole = scaled < WHOLE ? half : scaled;
  return Math.sign(x) * (n < 0 ? whole * unit : whole / unit);
}

const floatBits = new DataView(new ArrayBuffer(8));

/**
 * What lies between a positive number and the next one.
 * @param {number} x
 */
function spacing(x) {
  floatBits.setFloat64(0, x);
  floatBits.setBigInt64(0, floatBits.getBigInt64(0) + 1n);
  return floatBits.getFloat64(0) - x;
}

// places for each 1 where the values of erf are kept
const ERF_GRID = 8;
// 1 in the whole numbers that they are computed in
const ERF_ONE = 1n << 136n;
// the slope at 0: 2 / sqrt(pi) * 1e40
const ERF_SLOPE = 11283791670955125738961589031215451716881n;
/** @type {number[]} */
const erfKept = [];

/**
 * The error function: from the nearest place where it is kept by the Taylor series there.
 * @param {number} x
 */
export function erf(x) {
  const a = Math.abs(x);
  if (!(a < 6)) return Math.sign(x);
  const k = Math.round(a * ERF_GRID);
  const x0 = k / ERF_GRID;
  const h = a - x0;
  erfKept[k] ??= erfOnGrid(k);
  let before = 0;
  // of exp(-2 x0 h - h²) as a series in h, which is summed to its integral
  let term = 1;
  let sum = 1;
  for (let n = 1; n < 13; n++) {
    [before, term] = [term, (-2 * h * (x0 * term + h * before)) / n];
    sum += term / (n + 1);
  }
  const slope = (2 / Math.sqrt(Math.PI)) * Math.exp(-x0 * x0);
  return Math.sign(x) * (erfKept[k] + slope * h * sum);
}

/**
 * erf(k / 8) by its series at 0, whose terms cancel each other: in whole numbers of 136 bits.
 * @param {number} k
 */
function erfOnGrid(k) {
  const x = (BigInt(k) * ERF_ONE) / BigInt(ERF_GRID);
  let term = x;
  let sum = 0n;
  for (let n = 0n; term; n++) {
    sum += term / (2n * n + 1n);
    term = (((-term * x) / ERF_ONE) * x) / ERF_ONE / (n + 1n);
  }
  return Number((sum * ERF_SLOPE) / 10n ** 40n) / 2 ** 136;
}

// --- of ranges --------------------------------------------------------------------------------

/**
 * The sum of numbers, added pairwise as numpy does, so that it is the same to the last bit.
 * @param {ArrayLike<number>} values
 * @param {number} start
 * @param {number} end
 * @returns {number}
 */
export function total(values, start = 0, end = values.length) {
  const n = end - start;
  if (n > 128) {
    const half = start + (n >> 1) - ((n >> 1) % 8);
    return total(values, start, half) + total(values, half, end);
  }
  let sum = 0;
  let k = start;
  if (n >= 8) {
    let a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0;
    for (; k + 8 <= end; k += 8) {
      a += values[k];
      b += values[k + 1];
      c += values[k + 2];
      d += values[k + 3];
      e += values[k + 4];
      f += values[k + 5];
      g += values[k + 6];
      h += values[k + 7];
    }
    sum = a + b + (c + d) + (e + f + (g + h));
  }
  for (; k < end; k++) sum += values[k];
  return sum;
}

/**
 * A function of all given numbers; `ofNothing` is its value, or error, if there are none.
 * @param {(values: ArrayLike<number>) => number} compute
 * @param {number | string} ofNothing
 * @returns {(...xs: Argument[]) => number}
 */
function reduced(compute, ofNothing) {
  return (...xs) => {
    const found = numbers(...xs);
    if (found.length) return checked(compute(found));
    return typeof ofNothing === "string" ? fail(ofNothing) : ofNothing;
  };
}

/**
 * The largest number; the smallest one if the sign is -1.
 * @param {ArrayLike<number>} values
 */
function extremeOf(values, sign = 1) {
  let found = sign * values[0];
  for (let k = 1; k < values.length; k++) found = Math.max(found, sign * values[k]);
  return sign * found;
}

/** @param {ArrayLike<number>} values */
function varianceOf(values) {
  const mean = total(values) / values.length;
  return total(Float64Array.from(values, (x) => (x - mean) * (x - mean))) / values.length;
}

/**
 * A range, also of a single cell.
 * @param {Argument} x
 */
function asRange(x) {
  return x instanceof Range ? x : settled(1, 1, [x]);
}

/** @param {Argument[]} xs */
function productSum(...xs) {
  if (xs.length === 1) return checked(total(numbers(...xs)));
  const ranges = xs.map(asRange);
  const [{ rows, cols }] = ranges;
  const factors = ranges.map(numbersOr0);
  if (ranges.some((x) => x.rows !== rows || x.cols !== cols)) fail("#VALUE!");
  const last = factors[factors.length - 1];
  let left = factors[0];
  for (const x of factors.slice(1, -1)) left = left.map((v, k) => v * x[k]);
  let sum = 0;
  for (let k = 0; k < left.length; k++) sum += left[k] * last[k];
  return checked(sum);
}

/**
 * @param {Argument} x
 * @param {Argument} k
 */
function largest(x, k) {
  const found = Float64Array.from(numbers(x)).sort();
  return cellByCell((n) => {
    const at = Math.trunc(n);
    return at >= 1 && at <= found.length ? found[found.length - at] : fail("#NUM!");
  }, operand(k));
}

/**
 * Whether a cell meets a criterion of COUNTIF or SUMIF: a value, or one after an operator. A text
 * that reads like the number meets it, too.
 * @param {Argument} criterion
 * @returns {(x: Value) => boolean}
 */
function meets(criterion) {
  let wanted = scalar(criterion);
  let sign = "=";
  if (typeof wanted === "string") {
    const text = wanted;
    const found = ["<>", "<=", ">=", "<", ">", "="].find((s) => text.startsWith(s)) ?? "";
    sign = found || "=";
    wanted = asNumber(text.slice(found.length)) ?? text.slice(found.length);
  }
  const [holds, kind, same] = [SIGNS[sign], kindOf(wanted), sign === "=" || sign === "<>"];
  const isLike = same && typeof wanted === "string" ? like(wanted) : null;
  return (x) => {
    if (x instanceof CellError) x = x.text;
    if (same && kind === "number" && typeof x === "string") x = asNumber(x) ?? x;
    if (x === null || kindOf(x) !== kind) return sign === "<>";
    return isLike ? isLike(String(x)) === (sign === "=") : Boolean(holds(x, wanted));
  };
}

/**
 * The type of a cell's value for criteria: text, truth value, number.
 * @param {Value} x
 */
function kindOf(x) {
  return typeof x === "string" || typeof x === "boolean" ? typeof x : "number";
}

/**
 * @param {Argument} x
 * @param {Argument} criterion
 */
function countIf(x, criterion) {
  return [...asRange(x).values].filter(meets(criterion)).length;
}

/**
 * @param {Argument} x
 * @param {Argument} criterion
 * @param {Argument} [summed]
 */
function sumIf(x, criterion, summed = null) {
  const [cells, added, isMet] = [asRange(x), asRange(summed ?? x), meets(criterion)];
  if (cells.rows !== added.rows || cells.cols !== added.cols) fail("#VALUE!");
  const met = Array.from(added.values).filter((_, k) => isMet(cells.values[k]));
  return total(numbers(settled(1, met.length, met)));
}

/** @param {Argument[]} xs */
function counted(...xs) {
  let found = 0;
  for (const x of xs) for (const v of asRange(x).values) if (typeof v === "number") found++;
  return found;
}

/**
 * @param {Argument} x
 * @param {Argument} among
 */
function rankOf(x, among) {
  const [others, own] = [Array.from(numbers(among)), number(scalar(x))];
  return others.includes(own) ? others.filter((v) => v > own).length + 1 : fail("#N/A");
}

/**
 * How many entries come before x: larger ones, or equal ones with a smaller index.
 * @param {Argument} x
 * @param {Argument} among
 * @param {Argument} at
 * @param {Argument} places
 */
function inOrder(x, among, at, places) {
  const [others, indices] = [asRange(among).values, asRange(places).values];
  const [own, place] = [number(scalar(x)), number(scalar(at))];
  let found = 0;
  for (let k = 0; k < others.length; k++) {
    const v = number(others[k]);
    if (v > own || (v === own && number(indices[k]) < place)) found++;
  }
  return found;
}

/**
 * Whether a text matches a pattern, ignoring case: * stands for any characters, ? for one, and ~
 * before them for themselves.
 * @param {string} wanted
 * @returns {(x: string) => boolean}
 */
function like(wanted) {
  if (!/[*?~]/.test(wanted)) {
    const own = folded(wanted);
    return (x) => x === wanted || folded(x) === own;
  }
  // between the stars; each stands as early as it can, so no text takes long
  const runs = [""];
  for (const [part] of wanted.matchAll(/~[*?~]|./gsu)) {
    if (part === "*") runs.push("");
    else runs[runs.length - 1] += anyCase(part);
  }
  const begin = runs.shift();
  const end = runs.length ? `.*${runs.pop()}` : "";
  const between = runs.map((run, k) => `(?=(?<run${k}>.*?${run}))\\k<run${k}>`);
  const pattern = new RegExp(`^${begin}${between.join("")}${end}$`, "isu");
  return (x) => pattern.test(x);
}

/**
 * A sign of a pattern in a regular expression that ignores case, as Python's does.
 * @param {string} part
 */
function anyCase(part) {
  if (part === "?") return ".";
  if (/[iİı]/i.test(part)) return "[iIİı]";
  return part.replace(/^~(?=.)/, "").replace(/[\\^$.*+?()[\]{}|/]/, "\\$&");
}

// --- choosing and looking up ------------------------------------------------------------------

/** @param {Argument} x */
function truth(x) {
  return typeof x === "boolean" ? x : number(scalar(x)) !== 0;
}

/**
 * The given truth values; texts and blanks in ranges are ignored.
 * @param {Argument[]} xs
 */
function truths(...xs) {
  const found = xs.flatMap((x) => {
    if (!(x instanceof Range)) return [truth(x)];
    const cells = [...withoutErrors(x)].filter((v) => ["number", "boolean"].includes(typeof v));
    return cells.map((v) => v !== false && v !== 0);
  });
  return found.length ? found : fail("#VALUE!");
}

/**
 * @param {Later} condition
 * @param {Later} then
 * @param {Later} otherwise
 */
function choice(condition, then, otherwise = () => false) {
  const found = condition();
  const many = found instanceof Range && found.values.length > 1;
  if (!many) return truth(found) ? then() : otherwise();
  const isMet = (/** @type {Value} */ v) => !(v === 0 || v === "" || v === null || v === false);
  return cellByCell((v, x, y) => (isMet(v) ? x : y), found, then(), otherwise());
}

/**
 * @param {Later} x
 * @param {Later} otherwise
 */
function unlessError(x, otherwise) {
  try {
    return x();
  } catch (error) {
    if (error instanceof FormulaError) return otherwise();
    throw error;
  }
}

/**
 * @param {Later} k
 * @param {Later[]} options
 */
function choose(k, ...options) {
  const at = Math.trunc(number(scalar(k())));
  return at >= 1 && at <= options.length ? options[at - 1]() : fail("#VALUE!");
}

/**
 * The entry at a row and a column, counted from 1; 0: the whole row or column.
 * @param {Argument} x
 * @param {Argument} row
 * @param {Argument} [col]
 */
function indexed(x, row, col = null) {
  const cells = asRange(x);
  const { rows, cols, values } = cells;
  const [i, j] = (col !== null ? [row, col] : rows === 1 ? [1, row] : [row, 1]).map(operand);
  if (i instanceof Range || j instanceof Range) {
    const [ofRows, ofCols] = [i, j].map((at) => numbersOr0(asRange(at)));
    const least = Math.trunc(Math.min(extremeOf(ofRows, -1), extremeOf(ofCols, -1)));
    if (least < 1) fail("#VALUE!");
    if (extremeOf(ofRows) >= rows + 1 || extremeOf(ofCols) >= cols + 1) fail("#REF!");
    return cellByCell((p, q) => values[(Math.trunc(p) - 1) * cols + Math.trunc(q) - 1], i, j);
  }
  const [p, q] = [Math.trunc(i), Math.trunc(j)];
  if (p < 0 || q < 0) fail("#VALUE!");
  if (p > rows || q > cols) fail("#REF!");
  const found = p && q ? values[(p - 1) * cols + q - 1] : rectangle(cells, p, q);
  return found instanceof CellError ? fail(found.text) : found;
}

/**
 * A row or a column of a range, or all of it, where its number is 0; a single cell as it is.
 * @param {Range} x
 * @param {number} row
 * @param {number} col
 * @returns {Argument}
 */
function rectangle(x, row, col) {
  /** @type {Value[]} */
  const found = [];
  for (let i = row ? row - 1 : 0; i < (row || x.rows); i++) {
    for (let j = col ? col - 1 : 0; j < (col || x.cols); j++) found.push(x.values[i * x.cols + j]);
  }
  return found.length === 1 ? found[0] : settled(row ? 1 : x.rows, col ? 1 : x.cols, found);
}

/**
 * The index of a value in a row or column, from 1; kind 1: the last value that is not larger.
 * @param {Argument} wanted
 * @param {Argument} x
 * @param {Argument} kind
 */
function matched(wanted, x, kind = 1) {
  const cells = asRange(x);
  if (number(scalar(kind)) === 0) return cellByCell((v) => 1 + placeOf(v, cells), wanted);
  const sorted = numbers(cells);
  return cellByCell((v) => placeAmong(number(v), sorted), wanted);
}

/**
 * The index of the first cell that equals a value.
 * @param {Value} wanted
 * @param {Range} cells
 */
function placeOf(wanted, cells) {
  const { values } = cells;
  let found = -1;
  if (typeof wanted === "number" && isNumeric(cells)) found = cells.values.indexOf(wanted);
  else if (typeof wanted === "string") {
    const isLike = like(wanted);
    found = values.findIndex((v) => {
      const text = v instanceof CellError ? v.text : v;
      return typeof text === "string" && isLike(text);
    });
  } else found = values.findIndex((v) => v !== null && compared(v, wanted ?? 0) === 0);
  return found < 0 ? fail("#N/A") : found;
}

/**
 * How many numbers, which ascend, are not larger.
 * @param {number} wanted
 * @param {ArrayLike<number>} sorted
 */
function placeAmong(wanted, sorted) {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] <= wanted) low = middle + 1;
    else high = middle;
  }
  return low || fail("#N/A");
}

/**
 * The k-th cell of a row or a column, counted from 1, or from 0 as ids are.
 * @param {Argument} line
 * @param {Argument} k
 * @param {number} first
 */
export function nth(line, k, first = 1) {
  const found = asRange(line).values[Math.trunc(number(scalar(k))) - first];
  if (found === undefined) fail("#REF!");
  return found instanceof CellError ? fail(found.text) : found;
}

// --- of texts ---------------------------------------------------------------------------------

/** Characters of a text, each a code point. @param {Argument} x */
const characters = (x) => [...textOf(x)];

/**
 * Whether two texts are equal, case-sensitively; for ranges, cell by cell.
 * @param {Argument} a
 * @param {Argument} b
 */
function exact(a, b) {
  if (b instanceof Range && b.values.length > 1) {
    if (!(a instanceof Range) || a.rows !== b.rows || a.cols !== b.cols) fail("#VALUE!");
  }
  return cellByCell((x, y) => textOf(x) === textOf(y), a, b);
}

/**
 * The position of a text within another, from 1, case-sensitively, searched from `start` on.
 * @param {Argument} sought
 * @param {Argument} x
 * @param {Argument} start
 */
function foundAt(sought, x, start = 1) {
  const [wanted, text, from] = [textOf(sought), characters(x), wholeNumber(start)];
  if (from < 1 || from > text.length + 1) fail("#VALUE!");
  const rest = text.slice(from - 1).join("");
  const at = rest.indexOf(wanted);
  return at < 0 ? fail("#VALUE!") : from + [...rest.slice(0, at)].length;
}

/** @param {Argument} x */
const wholeNumber = (x) => Math.trunc(number(scalar(x)));

/**
 * A nonnegative whole number: of characters, or of repetitions.
 * @param {Argument} n
 */
function sizeOf(n) {
  const found = number(scalar(n));
  return found < 0 ? fail("#VALUE!") : Math.trunc(found);
}

/**
 * @param {Argument} x
 * @param {Argument} start
 * @param {Argument} n
 */
function midOf(x, start, n) {
  const [first, size] = [wholeNumber(start) - 1, sizeOf(n)];
  return first < 0 ? fail("#VALUE!") : characters(x).slice(first, first + size).join("");
}

/**
 * @param {Argument} x
 * @param {Argument} n
 */
function rightmost(x, n = 1) {
  const size = sizeOf(n);
  return size ? characters(x).slice(-size).join("") : "";
}

/**
 * @param {Argument} x
 * @param {Argument} n
 */
function repeated(x, n) {
  const [text, often] = [textOf(x), sizeOf(n)];
  if ([...text].length * often > LONGEST) fail("#VALUE!");
  return text && text.repeat(often);
}

/**
 * @param {Argument} x
 * @param {Argument} old
 * @param {Argument} replacement
 */
function substitute(x, old, replacement) {
  const [text, sought] = [textOf(x), textOf(old)];
  return sought ? text.split(sought).join(textOf(replacement)) : text;
}

/**
 * The code point of a text's first character; an error for half a surrogate pair.
 * @param {Argument} x
 */
function codeOf(x) {
  const code = textOf(x).codePointAt(0);
  return code === undefined || isSurrogate(code) ? fail("#VALUE!") : code;
}

/** @param {Argument} x */
function character(x) {
  const code = wholeNumber(x);
  const none = !(code > 0 && code < 0x110000) || isSurrogate(code) || code >> 1 === 0x7fff;
  return none ? fail("#VALUE!") : String.fromCodePoint(code);
}

/** @param {number} code */
const isSurrogate = (code) => code >= 0xd800 && code < 0xe000;

// --- the table --------------------------------------------------------------------------------

/** @type {Record<string, (...xs: any[]) => Argument>} */
const COMPUTED = {
  ABS: ofEach(Math.abs),
  ACOS: ofEach(Math.acos),
  AND: (...xs) => truths(...xs).every(Boolean),
  AVERAGE: reduced((x) => total(x) / x.length, "#DIV/0!"),
  COS: ofEach(Math.cos),
  COUNT: counted,
  COUNTIF: countIf,
  ERF: ofEach(erf),
  EXACT: exact,
  EXP: ofEach(Math.exp),
  FIND: foundAt,
  INDEX: indexed,
  INT: ofEach(Math.floor),
  ISNUMBER: (x) => typeof scalar(x) === "number",
  LARGE: largest,
  LEFT: (x, n = 1) => characters(x).slice(0, sizeOf(n)).join(""),
  LEN: (x) => characters(x).length,
  LN: ofEach(Math.log),
  LOG10: ofEach(Math.log10),
  LOWER: (x) => textOf(x).toLowerCase(),
  MATCH: matched,
  MAX: reduced((x) => extremeOf(x), 0),
  MID: midOf,
  MIN: reduced((x) => extremeOf(x, -1), 0),
  MOD: modulo,
  N: (x) => (["number", "boolean"].includes(typeof scalar(x)) ? Number(scalar(x)) : 0),
  NOT: (x) => !truth(x),
  OR: (...xs) => truths(...xs).some(Boolean),
  ORDER: inOrder,
  PI: () => Math.PI,
  POWER: SIGNS["^"],
  RAND: () => 0.5,
  RANK: rankOf,
  REPT: repeated,
  RIGHT: rightmost,
  ROUND: rounded,
  SIN: ofEach(Math.sin),
  SQRT: ofEach(Math.sqrt),
  SUBSTITUTE: substitute,
  SUM: reduced((x) => total(x), 0),
  SUMIF: sumIf,
  SUMPRODUCT: productSum,
  TANH: ofEach(Math.tanh),
  TRIM: (x) => textOf(x).split(" ").filter(Boolean).join(" "),
  TRUE: () => true,
  UNICHAR: character,
  UNICODE: codeOf,
  VARP: reduced(varianceOf, "#DIV/0!"),
};

/** @type {Record<string, (...xs: Later[]) => Argument>} */
const CHOOSING = { CHOOSE: choose, IF: choice, IFERROR: unlessError };

/**
 * By name, what a function comes to; a lazy one takes its arguments as functions, so that a branch
 * not taken is not computed.
 * @type {Record<string, {compute: (...xs: any[]) => Argument, lazy: boolean}>}
 */
export const FUNCTIONS = {};
for (const [name, compute] of Object.entries(COMPUTED)) FUNCTIONS[name] = { compute, lazy: false };
for (const [name, compute] of Object.entries(CHOOSING)) FUNCTIONS[name] = { compute, lazy: true };
