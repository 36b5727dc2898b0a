// Functions and signs for tests: what calls of them come to.
import { FUNCTIONS, nth } from "../../exporters/web/functions.js";
import { CellError, FormulaError, Range, SIGNS, fail } from "../../exporters/web/values.js";

const NTH = { "nth from 0": (line, k) => nth(line, k, 0), "nth from 1": (line, k) => nth(line, k) };

function read(x) {
  if (x === null || typeof x !== "object") return x;
  if ("error" in x) return new CellError(x.error);
  const values = x.values.map(read);
  return new Range(x.rows, x.cols, x.numeric ? Float64Array.from(values) : values);
}

function written(x) {
  if (typeof x === "number") return Number.isFinite(x) ? x : { number: String(x) };
  if (x instanceof CellError) return { error: x.text };
  if (!(x instanceof Range)) return x;
  return { rows: x.rows, cols: x.cols, values: [...x.values].map(written) };
}

function later(x) {
  return () => (x instanceof CellError ? fail(x.text) : x);
}

function called(name, given) {
  const xs = given.map(read);
  if (name in NTH) return NTH[name](...xs);
  if (name in SIGNS) return SIGNS[name](...xs);
  if (!(name in FUNCTIONS)) throw new Error(`JavaScript lacks ${name}`);
  const { compute, lazy } = FUNCTIONS[name];
  return compute(...(lazy ? xs.map(later) : xs));
}

function outcome([name, given]) {
  try {
    return written(called(name, given));
  } catch (error) {
    if (error instanceof FormulaError) return { raised: error.text };
    throw new Error(`${name} of ${JSON.stringify(given)}: ${error.message}`, { cause: error });
  }
}

export function outcomes(calls) {
  return calls.map(outcome);
}

export function names() {
  return Object.keys(FUNCTIONS);
}
