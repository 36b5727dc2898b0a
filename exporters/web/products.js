// Weights as they stand in their file, and their products with rows of activations: by WebAssembly, or
// in JavaScript where a host forbids that. See packing.py for the types, products.wat for the kernels.

/** @typedef {import("./evaluator.js").View} View */
/** @typedef {import("./graph.js").Block} Block */
/** @typedef {import("./values.js").Value} Value */
/** A type of packed numbers: its number in products.wat, how many stand in a block of how many bytes, and
 * the k-th number of a line. @typedef {{type: number, of: number, bytes: number, number: (v: DataView, at: number, k: number) => number}} Packing */

// products.wat, assembled: by tests/web/products.mjs
export const PRODUCTS_WASM =
  "AGFzbQEAAAABPQhgAX8BfWADf39/AGAGf39/f3t9AGAEf39/fwBgAXsBfGADf39/AXxgBn9/f39/fwBgCX9/f39/f39/fwACEAEEcGFnZQZtZW1vcnkCAAEDDAsAAQEBAQIDBAUGBwcSAgZkZWNvZGUABgV0aW1lcwAKCp4NCxoAIABB//8BcUENdL5DAACAd5QgAEEQdL6YCzYAA0AgASAA/V0DAP1f/QsEACABIAD9XQMI/V/9CwQQIABBEGohACABQSBqIQEgASACSQ0ACwubAQEBewNAIAD9BAMAIQMgA/0M/38AAP9/AAD/fwAA/38AAP1OQQ39qwH9DAAAgHcAAIB3AACAdwAAgHf95gEgA/0MAIAAAACAAAAAgAAAAIAAAP1OQRD9qwH9UCEDIAEgA/1f/QsEACABIAMgA/0NCAkKCwwNDg8AAQIDBAUGB/1f/QsEECAAQQhqIQAgAUEgaiEBIAEgAkkNAAsLUQEBewNAIAD9BAMAQRD9qwEhAyABIAP9X/0LBAAgASADIAP9DQgJCgsMDQ4PAAECAwQFBgf9X/0LBBAgAEEIaiEAIAFBIGohASABIAJJDQALC7sBAwF7AX8CewNAIAAvAQAQAP0TIQMgAEECaiEAIAFBgAJqIQQDQCAA/QEDACEFIAMgBf2nAf36Af3mASEGIAEgBv1f/QsEACABIAYgBv0NCAkKCwwNDg8AAQIDBAUGB/1f/QsEECADIAX9qAH9+gH95gEhBiABIAb9X/0LBCAgASAGIAb9DQgJCgsMDQ4PAAECAwQFBgf9X/0LBDAgAEEIaiEAIAFBwABqIQEgASAESQ0ACyABIAJJDQALC4IDAwJ7AX8DewNAIAAvAQAQAP0TIQYgBSAALwECEACU/RMhByAAIANqIQAgAUGAAWohCANAIAD9AgMAIQkgCf0MDwAPAA8ADwAPAA8ADwAPAP1OIAT9kQEhCiAHIAYgCv2nAf36Af3mAf3kASELIAEgC/1f/QsEACABIAsgC/0NCAkKCwwNDg8AAQIDBAUGB/1f/QsEECAHIAYgCv2oAf36Af3mAf3kASELIAEgC/1f/QsEICABIAsgC/0NCAkKCwwNDg8AAQIDBAUGB/1f/QsEMCAJQQT9jQEgBP2RASEKIAcgBiAK/acB/foB/eYB/eQBIQsgASAL/V/9CwSAASABIAsgC/0NCAkKCwwNDg8AAQIDBAUGB/1f/QsEkAEgByAGIAr9qAH9+gH95gH95AEhCyABIAv9X/0LBKABIAEgCyAL/Q0ICQoLDA0ODwABAgMEBQYH/V/9CwSwASAAQQhqIQAgAUHAAGohASABIAhJDQALIAFBgAFqIQEgASACSQ0ACwuSAQEBfyACIANBA3RqIQQCQAJAAkACQAJAAkAgAA4GAAABAgMEBQsgASACIAQQAQ8LIAEgAiAEEAIPCyABIAIgBBADDwsgASACIAQQBA8LIAEgAiAEQQL9DAgACAAIAAgACAAIAAgACABDAAAAABAFDwsgASACIARBBP0MAAAAAAAAAAAAAAAAAAAAAEMAAIA/EAULDQAgAP0hACAA/SEBoAviAQMEewF8AX8gACACQXhxQQN0aiEIAkAgACAIRg0AA0AgAyAA/QAEACAB/QAEAP3yAf3wASEDIAQgAP0ABBAgAf0ABBD98gH98AEhBCAFIAD9AAQgIAH9AAQg/fIB/fABIQUgBiAA/QAEMCAB/QAEMP3yAf3wASEGIABBwABqIQAgAUHAAGohASAAIAhJDQALCyADIAT98AEgBSAG/fAB/fABEAchByAAIAJBB3FBA3RqIQgCQANAIAAgCEYNASAHIAArAwAgASsDAKKgIQcgAEEIaiEAIAFBCGohAQwACwsgBwvXAQIFewR/IAEgA2ohDCAMIANqIQ0gDSADaiEOIAAgAkEDdGohCwNAIAD9AAQAIQogBiAKIAH9AAQA/fIB/fABIQYgByAKIAz9AAQA/fIB/fABIQcgCCAKIA39AAQA/fIB/fABIQggCSAKIA79AAQA/fIB/fABIQkgAEEQaiEAIAFBEGohASAMQRBqIQwgDUEQaiENIA5BEGohDiAAIAtJDQALIAQgBhAHOQMAIAQgBWohBCAEIAcQBzkDACAEIAVqIQQgBCAIEAc5AwAgBCAFaiAJEAc5AwALugEBBn8gBEEDdCELIANBA3QhDEEAIAZBfHEgBEEBcRshDgNAIABFBEAgASEIBSAAIAEgCCAEEAYLQQAhCiAHIAlBA3RqIQ0CQANAIAogBkYNASAKIA5JBEAgCCAFIAogC2xqIAQgCyANIAwQCSAKQQRqIQogDSAMQQJ0aiENBSANIAggBSAKIAtsaiAEEAg5AwAgCkEBaiEKIA0gDGohDQsMAAsLIAEgAmohASAJQQFqIQkgCSADSQ0ACws=";

// rows of activations, and lines of weights, that are multiplied together
const ROWS_AT_ONCE = 16;
const LINES_AT_ONCE = 1024;
// numbers that are decoded together, if a line is not longer
const DECODED_AT_ONCE = 32768;
const PAGE_BYTES = 65536;
const ALIGNED_TO = 64;

/** The number of a float16's bits. @param {number} bits */
function half(bits) {
  const [sign, exponent, fraction] = [bits & 0x8000 ? -1 : 1, (bits >> 10) & 31, bits & 1023];
  return sign * (exponent ? (1 + fraction / 1024) * 2 ** (exponent - 15) : fraction * 2 ** -24);
}

const BITS = new DataView(new ArrayBuffer(4));

/** @param {number} bits of a bfloat16 */
function brain(bits) {
  BITS.setUint32(0, bits << 16);
  return BITS.getFloat32(0);
}

/** The k-th integer of four bits of a block of 32. @param {DataView} v @param {number} at @param {number} k */
function nibble(v, at, k) {
  return k < 16 ? v.getUint8(at + k) & 15 : v.getUint8(at + k - 16) >> 4;
}

/** @param {DataView} v @param {number} at */
function halfAt(v, at) {
  return half(v.getUint16(at, true));
}

/** @type {Record<string, Packing>} */
const PACKINGS = {
  F64: { type: 0, of: 1, bytes: 8, number: (v, at, k) => v.getFloat64(at + 8 * k, true) },
  F32: { type: 1, of: 1, bytes: 4, number: (v, at, k) => v.getFloat32(at + 4 * k, true) },
  F16: { type: 2, of: 1, bytes: 2, number: (v, at, k) => halfAt(v, at + 2 * k) },
  BF16: { type: 3, of: 1, bytes: 2, number: (v, at, k) => brain(v.getUint16(at + 2 * k, true)) },
  Q8_0: { type: 4, of: 32, bytes: 34, number: (v, at, k) => halfAt(v, (at += 34 * (k >> 5))) * v.getInt8(at + 2 + (k & 31)) },
  Q4_0: { type: 5, of: 32, bytes: 18, number: (v, at, k) => halfAt(v, (at += 18 * (k >> 5))) * (nibble(v, at + 2, k & 31) - 8) },
  Q4_1: { type: 6, of: 32, bytes: 20, number: (v, at, k) => Math.fround(halfAt(v, (at += 20 * (k >> 5))) * nibble(v, at + 4, k & 31) + halfAt(v, at + 2)) },
};

/** Memory for a page's weights, with room for activations, and the kernels if they are allowed. */
export class Products {
  /** @param {number} size of all weights @param {number} longest line, in numbers */
  constructor(size, longest) {
    const beginX = Math.ceil(size / ALIGNED_TO) * ALIGNED_TO;
    const beginY = beginX + 8 * longest * ROWS_AT_ONCE;
    this.line = beginY + 8 * ROWS_AT_ONCE * LINES_AT_ONCE;
    const room = Math.max(longest, DECODED_AT_ONCE);
    const pages = Math.ceil((this.line + 8 * room + ALIGNED_TO) / PAGE_BYTES);
    this.memory = typeof WebAssembly === "undefined" ? null : new WebAssembly.Memory({ initial: pages });
    this.buffer = this.memory?.buffer ?? new ArrayBuffer(pages * PAGE_BYTES);
    this.view = new DataView(this.buffer);
    this.x = new Float64Array(this.buffer, beginX, longest * ROWS_AT_ONCE);
    this.y = new Float64Array(this.buffer, beginY, ROWS_AT_ONCE * LINES_AT_ONCE);
    this.decoded = new Float64Array(this.buffer, this.line, room);
    /** @type {any} null: JavaScript computes */ this.kernels = null;
  }

  /** Compiles the kernels; a host that forbids it leaves the work to JavaScript. */
  async compile() {
    try {
      const bytes = Uint8Array.from(atob(PRODUCTS_WASM), (letter) => letter.charCodeAt(0));
      const made = await WebAssembly.instantiate(bytes, { page: { memory: /** @type {WebAssembly.Memory} */ (this.memory) } });
      this.kernels = made.instance.exports;
    } catch {
      this.kernels = null;
    }
  }
}

/** The length of the lines of a packed block; 0 for other blocks. @param {any} data of a block */
export function lineLength({ s, d }) {
  return d?.length === 3 ? s[d[2] ? 0 : 1] : 0;
}

/** A matrix of weights that is not decoded. */
export class Packed {
  /** @param {Block} block @param {Products} products */
  constructor({ rows, cols, data }, products) {
    const [name, offset, turned] = /** @type {[string, number, number]} */ (data.d);
    this.rows = rows;
    this.cols = cols;
    this.products = products;
    this.packing = PACKINGS[name];
    this.offset = offset;
    this.turned = !!turned;
    this.lines = turned ? cols : rows;
    this.length = turned ? rows : cols;
    /** bytes of a line */ this.bytes = (this.length / this.packing.of) * this.packing.bytes;
  }

  /** A number. @param {number} i @param {number} j */
  at(i, j) {
    const [line, k] = this.turned ? [j, i] : [i, j];
    return this.packing.number(this.products.view, this.offset + line * this.bytes, k);
  }

  /** The numbers of a line, or of some that follow each other, until the next are asked for. @param {number} line @param {number} [n] */
  decoded(line, n = 1) {
    const { view, kernels, decoded } = this.products;
    const at = this.offset + line * this.bytes;
    const into = decoded.subarray(0, n * this.length);
    if (kernels && this.packing.type) kernels.decode(this.packing.type, at, this.products.line, into.length);
    else for (let k = 0; k < into.length; k++) into[k] = this.packing.number(view, at, k);
    return into;
  }

  /** Rows of x times lines, whose numbers are what is summed over.
   * @param {View} x @param {number} top @param {number} bottom @param {number} left @param {number} right */
  along(x, top, bottom, left, right) {
    const width = right - left;
    const found = new Float64Array((bottom - top) * width);
    if (!this.products.kernels) return this.alongSlowly(x, top, bottom, left, right, found);
    const { length, bytes, products } = this;
    for (let t = top; t < bottom; t += ROWS_AT_ONCE) {
      const n = Math.min(ROWS_AT_ONCE, bottom - t);
      products.x.set(x.v.subarray(t * length, (t + n) * length));
      for (let j = left; j < right; j += LINES_AT_ONCE) {
        const lines = Math.min(LINES_AT_ONCE, right - j);
        products.kernels.times(this.packing.type, this.offset + j * bytes, bytes, lines, length, products.x.byteOffset, n, products.y.byteOffset, products.line);
        for (let r = 0; r < n; r++) found.set(products.y.subarray(r * lines, (r + 1) * lines), (t - top + r) * width + j - left);
      }
    }
    return found;
  }

  /** @param {View} x @param {number} top @param {number} bottom @param {number} left @param {number} right
   * @param {Float64Array} found */
  alongSlowly(x, top, bottom, left, right, found) {
    for (let j = left; j < right; j++) {
      const line = this.decoded(j);
      for (let t = top; t < bottom; t++) {
        let sum = 0;
        for (let k = 0, p = t * x.s; k < line.length; k++) sum += x.v[p + k] * line[k];
        found[(t - top) * (right - left) + j - left] = sum;
      }
    }
    return found;
  }

  /** Rows of x times lines, over which is summed.
   * @param {View} x @param {number} top @param {number} bottom @param {number} left @param {number} right */
  across(x, top, bottom, left, right) {
    const width = right - left;
    const found = new Float64Array((bottom - top) * width);
    const atOnce = Math.floor(this.products.decoded.length / this.length);
    for (let begin = 0; begin < this.lines; begin += atOnce) {
      const end = Math.min(this.lines, begin + atOnce);
      const numbers = this.decoded(begin, end - begin);
      for (let k = begin; k < end; k++) {
        const from = (k - begin) * this.length;
        for (let t = top, n = 0; t < bottom; t++) {
          const a = x.v[t * x.s + k];
          for (let j = from + left; j < from + right; j++) found[n++] += a * numbers[j];
        }
      }
    }
    return found;
  }
}

/** A packed matrix with its edits, as kernels read it. */
export class PackedView {
  /** @param {Packed} packed @param {Map<number, Value>} [edits] by cell */
  constructor(packed, edits = new Map()) {
    this.packed = packed;
    this.edits = edits;
    this.rows = packed.rows;
    this.cols = this.s = packed.cols;
  }

  /** A number; NaN for what is none. @param {number} i @param {number} j */
  at(i, j) {
    const edited = this.edits.get(i * this.cols + j);
    return edited === undefined ? this.packed.at(i, j) : typeof edited === "number" ? edited : NaN;
  }

  /** A row. @param {number} i */
  row(i) {
    return Float64Array.from({ length: this.cols }, (_, j) => this.at(i, j));
  }

  /** All numbers, decoded. */
  get v() {
    const { packed, cols } = this;
    const found = new Float64Array(this.rows * cols);
    for (let line = 0; line < packed.lines; line++) {
      const numbers = packed.decoded(line);
      if (!packed.turned) found.set(numbers, line * cols);
      else for (let i = 0; i < numbers.length; i++) found[i * cols + line] = numbers[i];
    }
    for (const cell of this.edits.keys()) found[cell] = this.at(Math.floor(cell / cols), cell % cols);
    return found;
  }
}

/** All products of rows of x with a packed matrix, row by row, in a rectangle of what is computed; summed
 * over its rows (axis 0) or its columns (1).
 * @param {View} x @param {PackedView} w @param {number} axis @param {number} top @param {number} bottom
 * @param {number} left @param {number} right */
export function times(x, w, axis, top, bottom, left, right) {
  const { packed, edits, cols } = w;
  const found = packed.turned === (axis === 0) ? packed.along(x, top, bottom, left, right) : packed.across(x, top, bottom, left, right);
  for (const cell of edits.keys()) {
    const [i, j] = [Math.floor(cell / cols), cell % cols];
    const [k, at] = axis ? [j, i] : [i, j];
    if (at < left || at >= right) continue;
    const more = w.at(i, j) - packed.at(i, j);
    for (let t = top; t < bottom; t++) found[(t - top) * (right - left) + at - left] += x.v[t * x.s + k] * more;
  }
  return found;
}
