// The checksum of zip archives and of files of weights: CRC-32, as Python's zlib.crc32.

/**
 * Four tables of checksums: of a byte, and of a byte with one to three more after it.
 * @type {Uint32Array[]}
 */
const CRC_TABLES = crcTables();

/** @returns {Uint32Array[]} */
function crcTables() {
  const first = Uint32Array.from({ length: 256 }, (_, n) => {
    let c = n;
    for (let k = 0; k < 8; k++) c = c & 1 ? 0xedb88320 ^ (c >>> 1) : c >>> 1;
    return c;
  });
  const tables = [first];
  for (let k = 1; k < 4; k++) tables.push(tables[k - 1].map((c) => first[c & 255] ^ (c >>> 8)));
  return tables;
}

/**
 * The checksum of bytes, four at a time; `before` is that of the bytes in front of them.
 * @param {Uint8Array} bytes
 * @param {number} [before]
 * @returns {number}
 */
export function crc32(bytes, before = 0) {
  const [a, b, c, d] = CRC_TABLES;
  const whole = bytes.length - (bytes.length % 4);
  let x = ~before;
  let k = 0;
  for (; k < whole; k += 4) {
    x ^= bytes[k] | (bytes[k + 1] << 8) | (bytes[k + 2] << 16) | (bytes[k + 3] << 24);
    x = d[x & 255] ^ c[(x >>> 8) & 255] ^ b[(x >>> 16) & 255] ^ a[x >>> 24];
  }
  for (; k < bytes.length; k++) x = a[(x ^ bytes[k]) & 255] ^ (x >>> 8);
  return ~x >>> 0;
}
