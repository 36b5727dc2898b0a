// What each part of a model adds to a word's logit, and how a head's share divides among the words
// that it reads. flow.py lists the steps from the logits back to the embedding.

import { pathOf } from "./anatomy.js";

/** @typedef {import("./evaluator.js").Run} Run */
/** @typedef {import("./graph.js").Block} Block */
/** The direction that a word is scored along, at a row of the stream. @typedef {{row: number, d: Float64Array, scale: number}} Ray */
/** A word that a head reads: its axis and its place there, its share, and what it adds. @typedef {{axis: string, at: number, share: number, adds: number}} Source */
/** The number that a block adds to the logit at a row; for a head, with its pattern and the words that it reads. @typedef {{block: Block, row: number, adds: number, pattern: Block | null, sources: Source[]}} Credit */

/** A row of a block; the only one, if it has one.
 * @param {Run} run @param {Block} block @param {number} row @returns {Float64Array} */
export function rowAt(run, block, row) {
  const i = block.rows === 1 ? 0 : Math.min(row, block.rows - 1);
  return Float64Array.from(run.numbers(block).slice(i * block.cols, (i + 1) * block.cols));
}

/** @param {ArrayLike<number>} a @param {ArrayLike<number>} b */
function dotProduct(a, b) {
  let sum = 0;
  for (let k = 0; k < a.length; k++) sum += a[k] * b[k];
  return sum;
}

/** A matrix times a vector. @param {Run} run @param {Block} matrix @param {Float64Array} vector */
function timesVector(run, matrix, vector) {
  return Float64Array.from({ length: matrix.rows }, (_, i) => dotProduct(rowAt(run, matrix, i), vector));
}

/** How a step changes a direction. @type {Record<string, (run: Run, ray: Ray, blocks: Block[], word: number) => Ray[]>} */
const RAY_STEPS = {
  cap: (run, ray, [capped, score], word) => {
    const [after, before] = [capped, score].map((block) => rowAt(run, block, ray.row)[word]);
    return [{ ...ray, scale: before ? (ray.scale * after) / before : ray.scale }];
  },
  map: (run, ray, [matrix]) => [{ ...ray, d: timesVector(run, matrix, ray.d) }],
  gain: (run, ray, [gain]) => [{ ...ray, d: timesEach(ray.d, rowAt(run, gain, ray.row)) }],
  "gain above one": (run, ray, [gain]) => [{ ...ray, d: timesEach(ray.d, rowAt(run, gain, ray.row).map((x) => x + 1)) }],
  stretch: (run, ray, [length]) => [{ ...ray, scale: ray.scale * rowAt(run, length, 0)[0] }],
  centre: (run, ray, [scale]) => {
    const mean = ray.d.reduce((a, b) => a + b, 0) / ray.d.length;
    return RAY_STEPS.divide(run, { ...ray, d: ray.d.map((x) => x - mean) }, [scale], 0);
  },
  divide: (run, ray, [by]) => [{ ...ray, scale: ray.scale / rowAt(run, by, ray.row)[0] }],
  pick: (run, ray, [ids]) => [{ ...ray, row: rowAt(run, ids, ray.row)[0] }],
  pool: (run, ray, [part]) => Array.from(run.numbers(part), (x, row) => ({ ...ray, row, scale: ray.scale * x })).filter(({ scale }) => scale),
  bend: (run, ray, [before, after]) => {
    const [x, y] = [before, after].map((block) => rowAt(run, block, ray.row));
    return [{ ...ray, d: ray.d.map((d, k) => (x[k] ? (d * y[k]) / x[k] : 0)) }];
  },
};

/** @param {Float64Array} d @param {Float64Array} by */
function timesEach(d, by) {
  return d.map((x, k) => x * by[k]);
}

/** What everything adds to a word's logit at a token, in the order of computation.
 * @param {Run} run @param {number} word @param {number} row @returns {Credit[]} */
export function creditsOf(run, word, row) {
  const { graph } = run;
  /** @type {Ray[][]} */ const rays = [];
  /** @type {Credit[]} */ const found = [];
  for (const [name, after, ...indices] of /** @type {[string, number, ...number[]][]} */ (graph.data.flow ?? [])) {
    const blocks = indices.map((k) => graph.blocks[k]);
    const [block] = blocks;
    const before = rays[after] ?? [];
    const add = (/** @type {Ray} */ ray, /** @type {number} */ adds) => found.push({ block, row: ray.row, adds, ...headOf(run, block, ray, adds) });
    if (name === "row") rays.push([{ row, d: rowAt(run, block, word), scale: 1 }]);
    else if (name === "column") rays.push([{ row, d: columnOf(run, block, word), scale: 1 }]);
    else if (RAY_STEPS[name]) rays.push(before.flatMap((ray) => RAY_STEPS[name](run, ray, blocks, word)));
    else {
      rays.push([]);
      for (const ray of before) {
        const wrote = rowAt(run, block, ray.row);
        if (name === "head") {
          const adds = ray.scale * dotProduct(wrote, timesVector(run, blocks[1], ray.d));
          const of = `${pathOf(block)}.pattern`; // a head of a state space has none
          const sources = graph.has(of) ? sourcesOf(run, graph.get(of), block, blocks[1], ray, 1, adds) : { pattern: null, sources: [] };
          found.push({ block, row: ray.row, adds, ...sources });
        } else if (name === "bias") add(ray, ray.scale * wrote[word]);
        else if (name === "patch") add(ray, ray.scale * (dotProduct(wrote, ray.d) - dotProduct(rowAt(run, blocks[1], ray.row), ray.d)));
        else add(ray, ray.scale * dotProduct(wrote, ray.d));
      }
    }
  }
  return found.sort((a, b) => a.block.index - b.block.index || a.row - b.row);
}

/** @param {Run} run @param {Block} block @param {number} j */
function columnOf(run, block, j) {
  const numbers = run.numbers(block);
  return Float64Array.from({ length: block.rows }, (_, i) => numbers[i * block.cols + j]);
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
  return sourcesOf(run, pattern, on?.rows * on?.cols === 1 ? z : null, matrix, ray, on ? rowAt(run, on, 0)[0] : 1, adds);
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
  const along = isUsual ? timesVector(run, matrix, ray.d) : ray.d;
  const scale = ray.scale * factor * (isUsual && on ? rowAt(run, on, 0)[0] : 1);
  const from = (/** @type {number} */ j) => shares[j] * (isUsual ? scale * dotProduct(rowAt(run, values, j), along) : adds);
  const axis = pattern.axes[1];
  return { pattern, sources: Array.from({ length: read }, (_, at) => ({ axis, at, share: shares[at], adds: from(at) })) };
}
