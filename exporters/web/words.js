// Formulas for people, with what they read to go on to: `exp(scores[2,1] − row_max[2])`.

/** @typedef {import("./graph.js").Block} Block */
/** @typedef {import("./graph.js").Graph} Graph */
/** @typedef {import("./access.js").Rect} Rect */
/** @typedef {string | {text: string, block: Block, rect: Rect}} Piece */

const HOLE = "\0";
const GRADIENT = "gradient.";

/** The name of a cell: `logits[2,5]`. @param {Block} block @param {number} i @param {number} j */
export function cellName(block, i, j) {
  return `${block.name}[${i},${j}]`;
}

/** Its address in the workbook, `'Block 1'!E495`; "" if it has none.
 * @param {Block} block @param {number} i @param {number} j */
export function cellAddress(block, i, j) {
  if (!block.place) return "";
  const { sheet, top, left, turned } = block.place;
  const [row, col] = turned ? [top + j, left + i] : [top + i, left + j];
  const name = /^[\p{L}][\p{L}\p{N}]*$/u.test(sheet) ? sheet : `'${sheet.replaceAll("'", "''")}'`;
  return `${name}!${letters(col)}${row + 1}`;
}

/** A column's letters: 0 is A. @param {number} col @returns {string} */
export function letters(col) {
  return (col >= 26 ? letters(Math.floor(col / 26) - 1) : "") + String.fromCharCode(65 + (col % 26));
}

/** The formula of a cell, in pieces; none for a typed cell.
 * @param {Graph} graph @param {Block} block @param {number} i @param {number} j @returns {Piece[]} */
export function formulaPieces(graph, block, i, j) {
  if (block.isTable) return ofTable(graph, block, i * block.cols + j);
  return block.isOp ? ofOp(graph, block, i, j) : [];
}

/** @param {Graph} graph @param {Block} block @param {number} i @param {number} j @returns {Piece[]} */
function ofOp(graph, block, i, j) {
  const read = graph.operandsOf(block, i, j);
  const single = read.map(({ rect }) => flag((rect[1] - rect[0]) * (rect[3] - rect[2]))).join("");
  /** @type {[string, string, number[]][]} */ const texts = graph.data.words[/** @type {number} */ (block.data.w)];
  const [, text, order] = texts.find(([flags]) => flags === single) ?? texts[texts.length - 1];
  const parts = text.split(HOLE);
  return parts.flatMap((part, n) => (n ? [address(block, read[order[n - 1]].block, read[order[n - 1]].rect, true), part] : [part]));
}

/** Whether so many cells are a single one, or none. @param {number} n */
function flag(n) {
  return n === 1 ? "1" : n ? "0" : "-";
}

/** @param {Graph} graph @param {Block} block @param {number} cell @returns {Piece[]} */
function ofTable(graph, block, cell) {
  const [group, k] = block.group(cell);
  return group.shape.text.split(HOLE).map((part, n) => {
    if (n % 2 === 0) return part;
    const place = group.shape.places.get(Number(part)) ?? 0;
    if (group.shape.steps[Number(part)][0] === "#") return constant(group.at(place, k));
    const [grid, ...rect] = [0, 1, 2, 3, 4].map((at) => group.at(place + at, k));
    if (grid < graph.blocks.length) return address(block, graph.blocks[grid], /** @type {Rect} */ (rect), false);
    return sheetAddress(graph.sheetNames[grid - graph.blocks.length], /** @type {Rect} */ (rect));
  });
}

/** What is read of a block, by its name and indices. @param {Block} beside @param {Block} read
 * @param {Rect} rect @param {boolean} named whether axes without a name have no index @returns {Piece} */
function address(beside, read, rect, named) {
  const spans = [span(rect[0], rect[1], read.rows), span(rect[2], rect[3], read.cols)];
  const shown = named ? spans.filter((_, axis) => read.axes[axis]) : read.rows * read.cols === 1 ? [] : spans;
  const text = shortName(read.name, beside.name) + (shown.length ? `[${shown.join(",")}]` : "");
  return { text, block: read, rect };
}

/** @param {string} sheet @param {Rect} rect */
function sheetAddress(sheet, [top, bottom, left, right]) {
  const first = `${sheet}!${letters(left)}${top + 1}`;
  return bottom - top === 1 && right - left === 1 ? first : `${first}:${letters(right - 1)}${bottom}`;
}

/** @param {number} start @param {number} stop @param {number} n */
function span(start, stop, n) {
  if (stop - start === 1) return String(start);
  return `${start || ""}:${stop === n ? "" : stop}`;
}

/** @param {any} value */
function constant(value) {
  if (typeof value === "string") return `"${value}"`;
  return typeof value === "boolean" ? `${String(value).toUpperCase()}()` : String(value);
}

/** A block's name without the path that it shares with another: see short_name in formula.py.
 * @param {string} name @param {string} beside @returns {string} */
export function shortName(name, beside) {
  const own = name.replace(/^turned\./, "");
  if (beside.startsWith(GRADIENT)) {
    const mark = own.startsWith(GRADIENT) ? GRADIENT : "";
    return mark + shortName(own.slice(mark.length), beside.slice(GRADIENT.length));
  }
  let [parts, others] = [own.split("."), beside.split(".")];
  while (parts.length > 1 && others.length > 1 && parts[0] === others[0]) [parts, others] = [parts.slice(1), others.slice(1)];
  return parts.join(".");
}
