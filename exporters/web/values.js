// Values of cells and spreadsheet arithmetic: numbers, texts, truth values, blanks, errors. What
// engine/cells/values.py has, in JavaScript.

/**
 * A cell's value; null: it is blank.
 * @typedef {number | string | boolean | null | CellError} Value
 *
 * What a function is given.
 * @typedef {Value | Range} Argument
 */

/** A formula's error; its text is what the cell shows. No Error: a stack would make it slow. */
export class FormulaError {
  /** @param {string} text #N/A, #DIV/0!, #NUM!, #VALUE!, #REF! */
  constructor(text) {
    this.text = text;
  }
}

/** An error value, #N/A and the like, as opposed to a text that reads the same. */
export class CellError {
  /** @param {string} text */
  constructor(text) {
    this.text = text;
  }
}

/** Some rows and columns of values. */
export class Range {
  /**
   * @param {number} rows
   * @param {number} cols
   * @param {Value[] | Float64Array} values row by row; a typed array holds only numbers
   */
  constructor(rows, cols, values) {
    this.rows = rows;
    this.cols = cols;
    this.values = values;
  }
}

/**
 * Ends a formula with an error.
 * @param {string} text
 * @returns {never}
 */
export function fail(text) {
  throw new FormulaError(text);
}

/**
 * A single value: a range of one cell becomes that cell.
 * @param {Argument} x
 * @returns {Value}
 */
export function scalar(x) {
  if (!(x instanceof Range)) return x;
  return x.values.length === 1 ? x.values[0] : fail("#VALUE!");
}

/**
 * A number that a cell can show.
 * @param {number} x
 */
export function checked(x) {
  return Number.isFinite(x) ? x : fail("#NUM!");
}

const A_NUMBER = /^[ \t-\r]*[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?[ \t-\r]*$/i;

/**
 * The number that a text reads as; null: it is another text.
 * @param {string} text
 */
export function asNumber(text) {
  const found = A_NUMBER.test(text) ? Number(text) : NaN;
  return Number.isFinite(found) ? found : null;
}

/**
 * A cell as an operand of arithmetic: a blank is 0, TRUE is 1, a text that is not a number is an
 * error.
 * @param {Value} x
 * @returns {number}
 */
export function number(x) {
  if (typeof x === "number") return x;
  if (typeof x === "string") return asNumber(x) ?? fail("#VALUE!");
  return x instanceof CellError ? fail("#VALUE!") : Number(x);
}

/**
 * An operand of arithmetic: a number, or a range of numbers.
 * @param {Argument} x
 * @returns {number | Range}
 */
export function operand(x) {
  if (!(x instanceof Range)) return number(x);
  return isNumeric(x) ? x : new Range(x.rows, x.cols, Float64Array.from([...x.values], number));
}

/**
 * All given numbers, one after another; texts, blanks, TRUE and FALSE in ranges are ignored.
 * @param {Argument[]} xs
 * @returns {ArrayLike<number>}
 */
export function numbers(...xs) {
  const [first] = xs;
  if (xs.length === 1 && first instanceof Range && isNumeric(first)) return first.values;
  /** @type {number[]} */
  const found = [];
  for (const x of xs) {
    if (!(x instanceof Range)) found.push(number(x));
    else for (const v of withoutErrors(x)) if (typeof v === "number") found.push(v);
  }
  return found;
}

/**
 * The numbers of a range, with 0 for anything else.
 * @param {Range} x
 */
export function numbersOr0(x) {
  if (isNumeric(x)) return x.values;
  return Float64Array.from([...withoutErrors(x)], (v) => (typeof v === "number" ? v : 0));
}

/**
 * Whether a range is known to hold only numbers, without looking at them.
 * @param {Range} x
 * @returns {x is Range & {values: Float64Array}}
 */
export function isNumeric(x) {
  return ArrayBuffer.isView(x.values);
}

/**
 * The values of a range, of which none may be an error.
 * @param {Range} x
 */
export function withoutErrors(x) {
  for (const v of x.values) if (v instanceof CellError) fail(v.text);
  return x.values;
}

/**
 * A value as `&` joins it: whole numbers without decimals, at most 15 digits.
 * @param {Argument} x
 */
export function textOf(x) {
  const value = scalar(x);
  if (value === null) return "";
  if (typeof value === "boolean") return value ? "TRUE" : "FALSE";
  if (typeof value === "string") return value;
  if (value instanceof CellError) return value.text;
  return Number.isInteger(value) ? String(BigInt(value)) : in15Digits(value);
}

/**
 * A number as Python's `{x:.15g}` writes it.
 * @param {number} x
 */
function in15Digits(x) {
  let [digits, power] = x.toExponential(14).split("e");
  // halfway between two such numbers JavaScript takes the larger one, Python the even one
  const even = /^(.*[02468])50*e/.exec(x.toExponential(99));
  if (even && even[1].length === digits.length) digits = even[1];
  const exponent = Number(power);
  if (exponent >= -4 && exponent < 15) return String(Number(`${digits}e${power}`));
  const sign = exponent < 0 ? "-" : "+";
  return `${Number(digits)}e${sign}${String(Math.abs(exponent)).padStart(2, "0")}`;
}

// --- over ranges ------------------------------------------------------------------------------

/**
 * A function of single values, cell by cell: of ranges of one shape, of rows and columns, which
 * count for every row and column of the others, and of single values. Of these alone: one value.
 * @param {(...cells: any[]) => Value} compute
 * @param {Argument[]} xs at most three
 * @returns {Argument}
 */
export function cellByCell(compute, ...xs) {
  const ranges = xs.filter((x) => x instanceof Range);
  if (!ranges.length) return compute(...xs);
  const rows = Math.max(...ranges.map((x) => x.rows));
  const cols = Math.max(...ranges.map((x) => x.cols));
  for (const x of ranges) {
    if ((x.rows > 1 && x.rows < rows) || (x.cols > 1 && x.cols < cols)) fail("#VALUE!");
  }
  const [a, b, c] = [xs[0], xs[1], xs[2]].map(cellsOf);
  /** @type {Value[]} */
  const found = [];
  for (let i = 0; i < rows; i++) {
    for (let j = 0; j < cols; j++) found.push(compute(a(i, j), b(i, j), c(i, j)));
  }
  return settled(rows, cols, found);
}

/**
 * What stands at row i and column j of an argument.
 * @param {Argument} x
 * @returns {(i: number, j: number) => Value}
 */
function cellsOf(x) {
  if (!(x instanceof Range)) return () => x;
  const { values, cols } = x;
  if (x.rows === 1) return cols === 1 ? () => values[0] : (i, j) => values[j];
  return cols === 1 ? (i) => values[i] : (i, j) => values[i * cols + j];
}

/**
 * A range of values, which is known to be numeric if all are numbers.
 * @param {number} rows
 * @param {number} cols
 * @param {Value[]} values
 */
export function settled(rows, cols, values) {
  const numeric = values.every((v) => typeof v === "number");
  return new Range(rows, cols, numeric ? new Float64Array(values) : values);
}

// --- signs ------------------------------------------------------------------------------------

/**
 * A sign of arithmetic. `fails` gives the error of two single numbers for which there is no value.
 * @param {(a: number, b: number) => number} compute
 * @param {(a: number | Range, b: number | Range) => string | false} fails
 * @returns {(a: Argument, b: Argument) => Argument}
 */
function arithmetic(compute, fails = () => false) {
  return (a, b) => {
    const x = typeof a === "number" ? a : operand(a);
    const y = typeof b === "number" ? b : operand(b);
    const error = fails(x, y);
    if (error) fail(error);
    if (typeof x === "number" && typeof y === "number") return checked(compute(x, y));
    return cellByCell(compute, x, y);
  };
}

/**
 * A text without its case, as Python's `casefold` has it.
 * @param {string} x
 */
export function folded(x) {
  if (/^[\0-\x7f]*$/.test(x)) return x.toLowerCase();
  const each = [...x].map((c) => (c === "ı" ? c : c.toLowerCase().toUpperCase().toLowerCase()));
  return each.join("");
}

/**
 * The sort order of values: numbers, then texts regardless of case, then FALSE and TRUE.
 * @param {Value} x
 * @param {Value} other
 * @returns {[number, number | string]}
 */
function sortKey(x, other) {
  if (x instanceof CellError) x = x.text;
  if (x === null) x = typeof other === "string" || other instanceof CellError ? "" : 0;
  if (typeof x === "boolean") return [2, Number(x)];
  return typeof x === "string" ? [1, folded(x)] : [0, x];
}

/**
 * Less than 0, 0 or more than 0: how a cell stands to another one.
 * @param {Value} a
 * @param {Value} b
 */
export function compared(a, b) {
  const [kind, x] = sortKey(a, b);
  const [other, y] = sortKey(b, a);
  if (kind !== other) return kind - other;
  return typeof x === "string" ? textsCompared(x, String(y)) : x - Number(y);
}

/**
 * The same for texts: by code points, which JavaScript's own order is not.
 * @param {string} x
 * @param {string} y
 */
function textsCompared(x, y) {
  if (x === y) return 0;
  const [a, b] = [[...x], [...y]];
  const k = a.findIndex((c, at) => c !== b[at]);
  if (k < 0) return -1;
  return k < b.length ? Number(a[k].codePointAt(0)) - Number(b[k].codePointAt(0)) : 1;
}

/**
 * A sign of comparison.
 * @param {(x: number, y: number) => boolean} holds
 * @returns {(a: Argument, b: Argument) => Argument}
 */
function comparison(holds) {
  /** @type {(a: Value, b: Value) => boolean} */
  const one = (a, b) => {
    return typeof a === "number" && typeof b === "number" ? holds(a, b) : holds(compared(a, b), 0);
  };
  return (a, b) => {
    return typeof a === "number" && typeof b === "number" ? holds(a, b) : cellByCell(one, a, b);
  };
}

/** @type {Record<string, (a: Argument, b: Argument) => Argument>} */
export const SIGNS = {
  "+": arithmetic((a, b) => a + b),
  "-": arithmetic((a, b) => a - b),
  "*": arithmetic((a, b) => a * b),
  "/": arithmetic((a, b) => a / b, (a, b) => b === 0 && "#DIV/0!"),
  "^": arithmetic((a, b) => a ** b, (a, b) => a === 0 && b === 0 && "#NUM!"),
  "&": (a, b) => textOf(a) + textOf(b),
  "=": comparison((x, y) => x === y),
  "<>": comparison((x, y) => x !== y),
  "<": comparison((x, y) => x < y),
  "<=": comparison((x, y) => x <= y),
  ">": comparison((x, y) => x > y),
  ">=": comparison((x, y) => x >= y),
};
