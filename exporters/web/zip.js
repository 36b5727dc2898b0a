// A zip archive, read and written with the deflate that browsers and Node have.
//
// Sizes are the directory's: an entry is unpacked only up to the size that is promised there, and
// its checksum must be right. What is not unpacked is written again as it was packed.

import { crc32 } from "./crc.js";

/**
 * An entry: its name, how it is packed (0: stored, 8: deflated), checksum, size and packed bytes.
 * @typedef {{name: string, method: number, crc: number, size: number,
 *   packed: Uint8Array<ArrayBuffer>}} ZipEntry
 */

const ZIP_MOST_UNPACKED = 300_000_000;
const ZIP_MOST_ENTRIES = 10_000;
// deflate makes no byte of more than so many
const ZIP_MOST_RATIO = 1032;
const ZIP_LOCAL = 0x04034b50;
const ZIP_LISTED = 0x02014b50;
const ZIP_END = 0x06054b50;
// of the three kinds of headers, without names
const ZIP_LOCAL_SIZE = 30;
const ZIP_LISTED_SIZE = 46;
const ZIP_END_SIZE = 22;
const ZIP_LONGEST_COMMENT = 65_535;
// the first day that a zip can name: same input, same bytes
const ZIP_DATE = 0x0021;
const ZIP_VERSION = 20;
const ZIP_ENCRYPTED = 1;
const ZIP_UTF8 = 0x0800;

/**
 * An error about a damaged archive.
 * @param {string} fact
 * @returns {Error}
 */
function damagedZip(fact) {
  return new Error(`the file is damaged: ${fact}; save it again in the program that wrote it`);
}

/**
 * The entries of an archive by name, in its order. Throws an Error for what is no zip or a damaged
 * one, and for one that is too large unpacked.
 * @param {Uint8Array<ArrayBuffer>} bytes
 * @returns {Map<string, ZipEntry>}
 */
export function readZip(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const end = endOfZip(view);
  const n = view.getUint16(end + 10, true);
  const [size, start] = [view.getUint32(end + 12, true), view.getUint32(end + 16, true)];
  if (n > ZIP_MOST_ENTRIES || start + size > end) throw damagedZip("its directory is wrong");
  /** @type {Map<string, ZipEntry>} */
  const found = new Map();
  let [at, packed, unpacked] = [start, 0, 0];
  for (let k = 0; k < n; k++) {
    const [entry, next] = listedInZip(bytes, view, at, start + size);
    at = next;
    packed += entry.packed.length;
    unpacked += entry.size;
    if (found.has(entry.name)) throw damagedZip("a part of it is there twice");
    found.set(entry.name, entry);
  }
  if (packed > bytes.length) throw damagedZip("its parts overlap");
  if (unpacked > ZIP_MOST_UNPACKED) {
    const most = ZIP_MOST_UNPACKED / 1e6;
    throw new Error(`the file holds ${Math.round(unpacked / 1e6)} MB, ${most} at most; take a smaller one`);
  }
  return found;
}

/**
 * Where the record begins with which an archive ends.
 * @param {DataView} view
 * @returns {number}
 */
function endOfZip(view) {
  const last = view.byteLength - ZIP_END_SIZE;
  for (let at = last; at >= Math.max(0, last - ZIP_LONGEST_COMMENT); at--) {
    const ends = view.getUint32(at, true) === ZIP_END;
    if (ends && at + ZIP_END_SIZE + view.getUint16(at + 20, true) <= view.byteLength) return at;
  }
  throw new Error("the file is no zip archive, or was cut off; save it again as .xlsx");
}

/**
 * An entry of the directory, and where the next one stands.
 * @param {Uint8Array<ArrayBuffer>} bytes
 * @param {DataView} view
 * @param {number} at
 * @param {number} stop
 * @returns {[ZipEntry, number]}
 */
function listedInZip(bytes, view, at, stop) {
  if (at + ZIP_LISTED_SIZE > stop || view.getUint32(at, true) !== ZIP_LISTED) {
    throw damagedZip("its directory is wrong");
  }
  const two = (/** @type {number} */ k) => view.getUint16(at + k, true);
  const four = (/** @type {number} */ k) => view.getUint32(at + k, true);
  const [flags, method, crc, size, unpacked] = [two(8), two(10), four(16), four(20), four(24)];
  const next = at + ZIP_LISTED_SIZE + two(28) + two(30) + two(32);
  if (next > stop) throw damagedZip("its directory is wrong");
  const begin = at + ZIP_LISTED_SIZE;
  const name = new TextDecoder().decode(bytes.subarray(begin, begin + two(28)));
  if (flags & ZIP_ENCRYPTED) {
    throw new Error("the file is encrypted; save it without a password");
  }
  if (method !== 0 && method !== 8) {
    throw new Error(`the file is compressed in a way (${method}) that .xlsx does not allow; save it again as .xlsx`);
  }
  const packed = bytesInZip(bytes, view, four(42), size);
  const most = method ? ZIP_MOST_RATIO * (size + 1) : size;
  if (unpacked > most || (!method && unpacked < size)) throw damagedZip("a part has a wrong size");
  return [{ name, method, crc, size: unpacked, packed }, next];
}

/**
 * The packed bytes of the entry whose own header stands at an offset.
 * @param {Uint8Array<ArrayBuffer>} bytes
 * @param {DataView} view
 * @param {number} at
 * @param {number} size
 * @returns {Uint8Array<ArrayBuffer>}
 */
function bytesInZip(bytes, view, at, size) {
  if (at + ZIP_LOCAL_SIZE > bytes.length || view.getUint32(at, true) !== ZIP_LOCAL) {
    throw damagedZip("a part is not where its directory says");
  }
  const begin = at + ZIP_LOCAL_SIZE + view.getUint16(at + 26, true) + view.getUint16(at + 28, true);
  if (begin + size > bytes.length) throw damagedZip("a part is cut off");
  return bytes.subarray(begin, begin + size);
}

/**
 * The bytes of an entry. Throws an Error where they are not what the directory promises.
 * @param {ZipEntry} entry
 * @returns {Promise<Uint8Array<ArrayBuffer>>}
 */
export async function unpackedEntry(entry) {
  const bytes = entry.method ? await inflated(entry.packed, entry.size) : entry.packed;
  if (crc32(bytes) !== entry.crc) throw damagedZip("a part of it has changed");
  return bytes;
}

/**
 * Inflated bytes, no more than promised.
 * @param {Uint8Array<ArrayBuffer>} packed
 * @param {number} size
 * @returns {Promise<Uint8Array<ArrayBuffer>>}
 */
async function inflated(packed, size) {
  const found = new Uint8Array(size);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  const reader = stream.getReader();
  let at = 0;
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      if (at + next.value.length > size) throw new RangeError();
      found.set(next.value, at);
      at += next.value.length;
    }
  } catch {
    await reader.cancel().catch(() => {});
    throw damagedZip("a part cannot be unpacked");
  }
  if (at < size) throw damagedZip("a part is cut off");
  return found;
}

/**
 * An entry with other bytes, deflated.
 * @param {string} name
 * @param {Uint8Array<ArrayBuffer>} bytes
 * @returns {Promise<ZipEntry>}
 */
export async function packedEntry(name, bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  const packed = new Uint8Array(await new Response(stream).arrayBuffer());
  return { name, method: 8, crc: crc32(bytes), size: bytes.length, packed };
}

/**
 * The bytes of an archive of entries.
 * @param {Iterable<ZipEntry>} entries
 * @returns {Uint8Array<ArrayBuffer>}
 */
export function writeZip(entries) {
  const all = [...entries].map((entry) => ({ ...entry, spelt: new TextEncoder().encode(entry.name) }));
  const headers = ZIP_LOCAL_SIZE + ZIP_LISTED_SIZE;
  const sizes = all.map(({ packed, spelt }) => headers + 2 * spelt.length + packed.length);
  const bytes = new Uint8Array(sizes.reduce((a, b) => a + b, ZIP_END_SIZE));
  const view = new DataView(bytes.buffer);
  let at = 0;
  const starts = all.map((entry) => {
    const start = at;
    view.setUint32(at, ZIP_LOCAL, true);
    describeInZip(view, at + 4, entry, entry.spelt.length);
    bytes.set(entry.spelt, at + ZIP_LOCAL_SIZE);
    bytes.set(entry.packed, at + ZIP_LOCAL_SIZE + entry.spelt.length);
    at += ZIP_LOCAL_SIZE + entry.spelt.length + entry.packed.length;
    return start;
  });
  const directory = at;
  all.forEach((entry, k) => {
    view.setUint32(at, ZIP_LISTED, true);
    view.setUint16(at + 4, ZIP_VERSION, true);
    describeInZip(view, at + 6, entry, entry.spelt.length);
    view.setUint32(at + 42, starts[k], true);
    bytes.set(entry.spelt, at + ZIP_LISTED_SIZE);
    at += ZIP_LISTED_SIZE + entry.spelt.length;
  });
  view.setUint32(at, ZIP_END, true);
  view.setUint16(at + 8, all.length, true);
  view.setUint16(at + 10, all.length, true);
  view.setUint32(at + 12, at - directory, true);
  view.setUint32(at + 16, directory, true);
  return bytes;
}

/**
 * Write what an entry's own header and the directory say alike.
 * @param {DataView} view
 * @param {number} at
 * @param {ZipEntry} entry
 * @param {number} length of its name
 */
function describeInZip(view, at, entry, length) {
  view.setUint16(at, ZIP_VERSION, true);
  view.setUint16(at + 2, ZIP_UTF8, true);
  view.setUint16(at + 4, entry.method, true);
  view.setUint16(at + 8, ZIP_DATE, true);
  view.setUint32(at + 10, entry.crc, true);
  view.setUint32(at + 14, entry.packed.length, true);
  view.setUint32(at + 18, entry.size, true);
  view.setUint16(at + 22, length, true);
}
