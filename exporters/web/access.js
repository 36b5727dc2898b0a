// Which cells a cell reads, and which cells read it: engine/cells/access.py, in JavaScript.

/** A rectangle of cells: rows [top, bottom), columns [left, right).
 * @typedef {[number, number, number, number]} Rect */
/** @typedef {[number, number]} Span */

/** Which keys a query sees: see Mask in access.py. A window or sentence of 0 is none. */
export class Mask {
  /** @param {boolean} causal @param {number} window @param {number} sentence
   * @param {boolean} before whether a query does not see its own key */
  constructor(causal, window, sentence, before) {
    this.causal = causal;
    this.window = window;
    this.sentence = sentence;
    this.before = before;
  }

  /** @param {number} query @param {number} n @returns {Span} */
  keys(query, n) {
    if (!this.causal) return [0, n];
    let start = this.window ? Math.max(0, query + 1 - this.window) : 0;
    if (this.sentence) start = Math.max(start, query - (query % this.sentence));
    return [start, Math.min(this.before ? query : query + 1, n)];
  }

  /** The queries that see a key. @param {number} key @param {number} n @returns {Span} */
  queries(key, n) {
    return this.queriesOf([key, key + 1], n);
  }

  /** The queries that see any of some keys. @param {Span} keys @param {number} n @returns {Span} */
  queriesOf(keys, n) {
    if (!this.causal) return [0, n];
    const last = keys[1] - 1;
    let stop = this.window ? last + this.window : n;
    if (this.sentence) stop = Math.min(stop, last - (last % this.sentence) + this.sentence);
    return [this.before ? keys[0] + 1 : keys[0], Math.min(stop, n)];
  }
}

/** The partner of a column under the code `~h/n`: h further on, or h back.
 * @param {number} j @param {number} apart @param {number} n */
export function partner(j, apart, n) {
  if (j >= n) return j;
  return j % Math.max(2 * apart, 1) < apart ? j + apart : j - apart;
}

/** The rectangle of an operand of a shape that a cell's formula reads.
 * @param {[string, string]} at @param {number} i @param {number} j
 * @param {Span} shape @param {Mask} mask @returns {Rect} */
export function readsOf(at, i, j, shape, mask) {
  const [rows, cols] = at.map((code, axis) => spanRead(code, i, j, shape[axis], mask));
  return [rows[0], rows[1], cols[0], cols[1]];
}

/** @param {string} code @param {number} i @param {number} j @param {number} n @param {Mask} mask
 * @returns {Span} */
function spanRead(code, i, j, n, mask) {
  if (code === "i") return [i, i + 1];
  if (code === "j") return [j, j + 1];
  if (code === "0") return [0, 1];
  if (code === "≤i") return mask.keys(i, n);
  if (code === "≥i") return mask.queries(i, n);
  const further = shift(code);
  if (further) return [Math.min(Math.max(i + further, 0), n), Math.min(Math.max(i + 1 + further, 0), n)];
  if (code[0] === "@") return [+code.slice(1), +code.slice(1) + 1];
  if (code[0] === "~") {
    const [apart, end] = pairsOf(code);
    const place = partner(j, apart, end);
    return [place, place + 1];
  }
  return [0, n];
}

/** How many rows further on a code reads: -1 for `i-1`. @param {string} code */
export function shift(code) {
  return code[0] === "i" ? +code.slice(1) : 0;
}

/** In which order rows that read each other by a code are computed: 1, downwards; -1, upwards.
 * @param {string} code */
export function direction(code) {
  return code === "≤i" || shift(code) < 0 ? 1 : -1;
}

/** The numbers of a code `~h/n`. @param {string} code */
function pairsOf(code) {
  return code.slice(1).split("/").map(Number);
}

/** The rectangle of the output that reads any of an operand's changed cells; null: none.
 * @param {[string, string]} at @param {Rect} changed @param {Span} shape of the output
 * @param {Mask} mask @returns {Rect | null} */
export function dirties(at, changed, shape, mask) {
  /** @type {Span} */ let rows = [0, shape[0]];
  /** @type {Span} */ let cols = [0, shape[1]];
  for (const [axis, code] of at.entries()) {
    /** @type {Span} */ const span = [changed[2 * axis], changed[2 * axis + 1]];
    const n = shape[0];
    if (code === "i") rows = common(rows, span);
    else if (code === "j") cols = common(cols, span);
    else if (code === "≤i") rows = common(rows, mask.queriesOf(span, n));
    else if (code === "≥i") rows = common(rows, [mask.keys(span[0], n)[0], mask.keys(span[1] - 1, n)[1]]);
    else if (shift(code)) rows = common(rows, [span[0] - shift(code), span[1] - shift(code)]);
    else if (code[0] === "@" && !(span[0] <= +code.slice(1) && +code.slice(1) < span[1])) return null;
    else if (code[0] === "~") {
      const [apart, end] = pairsOf(code);
      let least = Infinity;
      let most = -1;
      for (let j = span[0]; j < span[1]; j++) {
        const other = partner(j, apart, end);
        least = Math.min(least, other);
        most = Math.max(most, other);
      }
      cols = common(cols, [least, most + 1]);
    }
  }
  return rows[0] < rows[1] && cols[0] < cols[1] ? [rows[0], rows[1], cols[0], cols[1]] : null;
}

/** @param {Span} a @param {Span} b @returns {Span} */
function common(a, b) {
  return [Math.max(a[0], b[0]), Math.min(a[1], b[1])];
}

/** Whether one rectangle holds all of another. @param {Rect} a @param {Rect} b */
export function covers(a, b) {
  return a[0] <= b[0] && a[1] >= b[1] && a[2] <= b[2] && a[3] >= b[3];
}
