// What each part of a model adds to a word's logit, directly and through later parts, and how a
// head's share divides among the words that it reads. flow.py lists the steps from the logits back.

import { pathOf } from "./anatomy.js";
import { finished } from "./slices.js";

/** @typedef {import("./evaluator.js").Run} Run */
/** @typedef {import("./graph.js").Block} Block */
/** The direction that a word is scored along, at a row of a block. @typedef {{row: number, d: Float64Array}} Ray */
/** Directions at the rows of blocks, by the blocks' indices. @typedef {Map<number, Map<number, Float64Array>>} Way */
/** A word that a head reads: its axis and its place there, its share, what it adds directly, and what through later parts. @typedef {{axis: string, at: number, share: number, adds: number, later: number}} Source */
/** What a block adds to the logit at a row, directly and through later parts; for a head, with its pattern and the words that it reads. @typedef {{block: Block, row: number, adds: number, later: number, pattern: Block | null, sources: Source[]}} Credit */

/** A row of a block; the only one, if it has one.
 * @param {Run} run @param {Block} block @param {number} row @returns {Float64Array} */
export function rowAt(run, block, row) {
  const i = block.rows === 1 ? 0 : Math.min(row, block.rows - 1);
  return new Float64Array(run.line(block, i));
}

/** @param {ArrayLike<number>} a @param {ArrayLike<number>} b */
function dotProduct(a, b) {
  let sum = 0;
  for (let k = 0; k < a.length; k++) sum += a[k] * b[k];
  return sum;
}

/** How a step changes a direction. @type {Record<string, (run: Run, ray: Ray, blocks: Block[], word: number) => Ray[]>} */
const RAY_STEPS = {
  row: (run, { row, d }, [words], word) => [{ row, d: timesNumber(rowAt(run, words, word), d[word]) }],
  column: (run, { row, d }, [words], word) => [{ row, d: timesNumber(columnOf(run, words, word), d[word]) }],
  cap: (run, { row, d }, [capped, score], word) => {
    const [after, before] = [capped, score].map((block) => rowAt(run, block, row)[word]);
    return [{ row, d: before ? timesNumber(d, after / before) : d }];
  },
  same: (run, ray) => [ray],
  map: (run, { row, d }, [matrix, on]) => [{ row, d: timesNumber(run.product(matrix, d), onlyNumber(run, on)) }],
  gain: (run, { row, d }, [gain]) => [{ row, d: timesEach(d, rowAt(run, gain, row)) }],
  "gain above one": (run, { row, d }, [gain]) => [{ row, d: timesEach(d, rowAt(run, gain, row).map((x) => x + 1)) }],
  stretch: (run, { row, d }, [length]) => [{ row, d: timesNumber(d, onlyNumber(run, length)) }],
  centre: (run, { row, d }, [scale]) => {
    const mean = d.reduce((a, b) => a + b, 0) / d.length;
    return RAY_STEPS.divide(run, { row, d: d.map((x) => x - mean) }, [scale], 0);
  },
  divide: (run, { row, d }, [by]) => [{ row, d: timesNumber(d, 1 / rowAt(run, by, row)[0]) }],
  pick: (run, { row, d }, [ids]) => [{ row: rowAt(run, ids, row)[0], d }],
  pool: (run, { d }, [part]) => spreadOver(run.numbers(part), d),
  spread: (run, { row, d }, [pattern, on]) => spreadOver(rowAt(run, pattern, row), timesNumber(d, onlyNumber(run, on))),
  bend: (run, { row, d }, [before, after]) => {
    const [x, y] = [before, after].map((block) => rowAt(run, block, row));
    return [{ row, d: d.map((each, k) => (x[k] ? (each * y[k]) / x[k] : 0)) }];
  },
};

/** A direction for each row, by the row's share. @param {ArrayLike<number>} shares @param {Float64Array} d */
function spreadOver(shares, d) {
  return Array.from(shares, (share, row) => ({ row, share })).filter(({ share }) => share).map(({ row, share }) => ({ row, d: timesNumber(d, share) }));
}

/** @param {Float64Array} d @param {ArrayLike<number>} by */
function timesEach(d, by) {
  return d.map((x, k) => x * by[k]);
}

/** @param {Float64Array} d @param {number} by */
function timesNumber(d, by) {
  return by === 1 ? d : d.map((x) => x * by);
}

/** The number of a block that has one, such as a switch; 1 without a block. @param {Run} run @param {Block} [block] */
function onlyNumber(run, block) {
  return block ? run.numbers(block)[0] : 1;
}

/** What everything adds to a word's logit at a token, in the order of computation. A part at another
 * token adds nothing directly. @param {Run} run @param {number} word @param {number} row @returns {Credit[]} */
export function creditsOf(run, word, row) {
  return finished(creditSteps(run, word, row));
}

/** The same in steps. @param {Run} run @param {number} word @param {number} row
 * @returns {import("./slices.js").Steps<Credit[]>} */
export function* creditSteps(run, word, row) {
  const { graph } = run;
  const { index, cols } = graph.get("logits");
  const begin = Float64Array.from({ length: cols }, (_, k) => Number(k === word));
  const [directly, all] = /** @type {Way[]} */ ([0, 1].map(() => new Map([[index, new Map([[row, begin]])]])));
  /** @type {Map<string, Credit>} */ const found = new Map();
  const steps = /** @type {[string, number, number, number, ...number[]][]} */ (graph.data.flow ?? []);
  for (const [k, [name, isInner, from, to, ...indices]] of steps.entries()) {
    const blocks = indices.map((each) => graph.blocks[each]);
    for (const way of isInner ? [all] : [directly, all]) {
      for (const [at, d] of way.get(from) ?? []) {
        const ray = { row: at, d };
        if (to >= 0) for (const next of RAY_STEPS[name](run, ray, blocks, word)) join(way, to, next);
        else note(found, `${k} ${at}`, creditHere(run, name, blocks, ray), way === directly);
        yield k / steps.length;
      }
    }
  }
  return [...found.values()].sort((a, b) => a.block.index - b.block.index || a.row - b.row);
}

/** Adds a direction at a row of a block. @param {Way} way @param {number} to @param {Ray} ray */
function join(way, to, { row, d }) {
  const rows = way.get(to) ?? new Map();
  way.set(to, rows);
  const before = rows.get(row);
  rows.set(row, before ? before.map((/** @type {number} */ x, /** @type {number} */ k) => x + d[k]) : d);
}

/** Notes what a block adds directly; after that, that all ways together give more or less.
 * @param {Map<string, Credit>} found @param {string} key of the step and the row @param {Credit} credit @param {boolean} isDirect */
function note(found, key, credit, isDirect) {
  const direct = found.get(key);
  if (isDirect) found.set(key, credit);
  else if (direct) {
    direct.later = credit.adds - direct.adds;
    for (const [k, source] of direct.sources.entries()) source.later = credit.sources[k].adds - source.adds;
  } else found.set(key, { ...credit, adds: 0, later: credit.adds, sources: credit.sources.map((source) => ({ ...source, adds: 0, later: source.adds })) });
}

/** What a block adds along a direction. @param {Run} run @param {string} name @param {Block[]} blocks @param {Ray} ray @returns {Credit} */
function creditHere(run, name, blocks, ray) {
  const [block, other] = blocks;
  const wrote = rowAt(run, block, ray.row);
  const told = { block, row: ray.row, later: 0 };
  if (name === "head") {
    const adds = dotProduct(wrote, run.product(other, ray.d));
    const of = `${pathOf(block)}.pattern`; // a head of a state space has none
    const sources = run.graph.has(of) ? sourcesOf(run, run.graph.get(of), block, other, ray, 1, adds) : { pattern: null, sources: [] };
    return { ...told, adds, ...sources };
  }
  const adds = dotProduct(wrote, ray.d) - (name === "patch" ? dotProduct(rowAt(run, other, ray.row), ray.d) : 0);
  return { ...told, adds, ...headOf(run, block, ray, adds) };
}

/** @param {Run} run @param {Block} block @param {number} j */
function columnOf(run, block, j) {
  return Float64Array.from({ length: block.rows }, (_, i) => Number(run.value(block, i, j)));
}

/** The words that a head reads, and what it adds from each. `block` is its output. A block without
 * shares reads nothing. @param {Run} run @param {Block} block @param {Ray} ray @param {number} adds
 * @returns {{pattern: Block | null, sources: Source[]}} */
function headOf(run, block, ray, adds) {
  const { graph } = run;
  const name = `${pathOf(block)}.pattern`;
  if (!block.head || !graph.has(name)) return { pattern: null, sources: [] };
  const pattern = graph.get(name);
  const [z, matrix, on] = block.operands.map(({ k }) => graph.blocks[k]);
  return sourcesOf(run, pattern, on?.rows * on?.cols === 1 ? z : null, matrix, ray, onlyNumber(run, on), adds);
}

/** A head's share, word by word: what it gives a word, times what the word's value adds. A head that
 * is not z = shares x values, output = z x matrix, is divided by its shares alone.
 * @param {Run} run @param {Block} pattern @param {Block | null} z @param {Block} matrix @param {Ray} ray
 * @param {number} factor @param {number} adds @returns {{pattern: Block, sources: Source[]}} */
function sourcesOf(run, pattern, z, matrix, ray, factor, adds) {
  const shares = rowAt(run, pattern, ray.row);
  const read = shares.reduce((most, _, j) => (pattern.has(ray.row, j) ? j + 1 : most), 0);
  const [mixed, values, on, ...more] = z ? z.operands.map(({ k }) => run.graph.blocks[k]) : [];
  const isUsual = mixed === pattern && values && !more.length && values.cols === matrix.rows && (!on || on.rows * on.cols === 1);
  const along = isUsual ? run.product(matrix, ray.d) : ray.d;
  const scale = factor * (isUsual ? onlyNumber(run, on) : 1);
  const from = (/** @type {number} */ j) => shares[j] * (isUsual ? scale * dotProduct(rowAt(run, values, j), along) : adds);
  const axis = pattern.axes[1];
  return { pattern, sources: Array.from({ length: read }, (_, at) => ({ axis, at, share: shares[at], adds: from(at), later: 0 })) };
}
