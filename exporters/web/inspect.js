// Looking inside: the numbers of a block, and one cell with its formula, what enters it, and what
// reads it.

import { byId, element, grouped } from "./dom.js";
import { decimals, inBlock } from "./format.js";
import { Grid } from "./grid.js";
import { shortened } from "./outside.js";
import { CellError } from "./values.js";
import { cellAddress, cellName, formulaPieces, shortName } from "./words.js";

/** @typedef {import("./graph.js").Block} Block */
/** @typedef {import("./session.js").Session} Session */
/** @typedef {{text: string, block: Block, rect: number[]}} Link */
/** @typedef {(block: Block, i: number, j: number) => void} Go */

const CELL_WIDTH = 62;
const ROW_HEIGHT = 22;
const MOST_TERMS = 8;
const MOST_READERS = 8;
const MOST_KEPT = 60;
const SHARES = /^(pattern|probs|softmax|share|share_of_all|chosen|part|attention_mask)$/;
/** @type {Record<string, string>} */
const AXES = {
  token: "tokens",
  vocab: "words of the vocabulary",
  d_model: "features of the stream",
  d_head: "features of the head",
  d_mlp: "hidden features",
  n_ctx: "positions",
  rank: "places in the ranking",
};
/** A number of things: `1 row`, `16 words of the vocabulary`. @param {number} n @param {string} things */
function numbered(n, things) {
  return `${grouped(n)} ${n === 1 ? things.replace(/s\b/, "") : things}`;
}

/** A value in words. @param {any} value */
export function valueText(value) {
  if (typeof value === "number") return inBlock(value);
  if (value === null || value === "") return "blank";
  return value instanceof CellError ? value.text : typeof value === "boolean" ? String(value).toUpperCase() : value;
}

/** What a typed text stands for: a number, or a text where there was one.
 * @param {string} text @param {any} before @returns {{value?: any, why: string}} */
export function typedAs(text, before) {
  const number = Number(text.trim().replace("−", "-").replace(",", "."));
  if (text.trim() !== "" && Number.isFinite(number)) return { value: number, why: "" };
  if (typeof before === "string") return { value: text, why: "" };
  if (text.startsWith("=")) return { why: `‘${shortened(text)}’ is a formula; type its result` };
  return { why: text.trim() ? `‘${shortened(text)}’ is no number; type one such as 0.5` : "type a number" };
}

// --- the numbers of a block ------------------------------------------------------------------

/** What is shown; the largest size of its numbers, and whether all are whole.
 * @type {{session: Session, block: Block, grid: Grid, full: number, whole: boolean, version: number} | null} */
let shownBlock = null;

/** Shows the numbers of a block in #numbers, with a cell selected.
 * @param {Session} session @param {Block} block @param {number} [i] @param {number} [j] */
export function showBlock(session, block, i = 0, j = 0) {
  const into = byId("numbers");
  if (shownBlock?.session !== session || shownBlock.block !== block || !into.contains(shownBlock.grid.node)) {
    const grid = new Grid(blockSource(session, block));
    shownBlock = { session, block, grid, full: 0, whole: false, version: -1 };
    const [rows, cols] = block.axes.map((axis, k) => numbered(block.shape[k], AXES[axis] ?? (axis || ["rows", "columns"][k])));
    const size = block.rows * block.cols === 1 ? "one number" : `${rows} × ${cols}`;
    const head = element(
      "div",
      { class: "block-head" },
      element("h2", { tabindex: -1 }, element("code", {}, block.name)),
      element("p", {}, element("b", {}, meant(block)), ` ${meant(block) && "·"} ${size} · ${block.isInput && !block.isTable ? "typed" : "computed"}: you can type over all of them`),
    );
    into.replaceChildren(head, chips(session, block), grid.node);
  }
  const { grid } = shownBlock;
  if (shownBlock.version !== session.live.version) {
    Object.assign(shownBlock, extentOf(session, block), { version: session.live.version });
    grid.draw();
  }
  if (grid.row !== i || grid.col !== j || !grid.cellAt(i, j)) grid.select(i, j);
}

/** What a block means, where its rows stand as rows. @param {Block} block */
function meant({ meaning, place }) {
  return place?.turned ? meaning.replace("each column", "each row") : meaning;
}

/** The largest size of a block's numbers, and whether all are whole. @param {Session} session @param {Block} block */
function extentOf(session, block) {
  const numbers = session.live.numbers(block);
  let [full, whole] = [0, true];
  for (let k = 0; k < numbers.length; k++) {
    const size = Math.abs(numbers[k]);
    if (size > full && size < Infinity) full = size;
    if (whole && size % 1) whole = false;
  }
  return { full, whole };
}

/** Buttons for the other blocks of the same part. @param {Session} session @param {Block} block */
function chips(session, block) {
  const path = block.name.slice(0, -block.leaf.length);
  const others = session.graph.blocks.filter((other) => other.name === path + other.leaf && other.isTable === block.isTable);
  const list = element("nav", { class: "chips", "aria-label": `numbers of ${path.slice(0, -1) || "the model"}` });
  for (const other of others.length > 1 ? others : []) {
    const isHere = other === block;
    const attributes = { "aria-current": isHere ? "true" : null, title: other.meaning, onclick: () => session.select(other) };
    list.append(element("button", attributes, other.leaf));
  }
  requestAnimationFrame(() => {
    const here = /** @type {HTMLElement | null} */ (list.querySelector("[aria-current]"));
    if (here) list.scrollLeft = here.offsetLeft - list.offsetLeft - 60;
  });
  return list;
}

/** The text of a row's or a column's head. @param {Session} session @param {string} axis @param {number} k */
function headText(session, axis, k) {
  const text = session.label(axis, k);
  return axis.startsWith("token") ? `${k} ${text}` : text;
}

/** A block as what a grid shows. @param {Session} session @param {Block} block @returns {import("./grid.js").Source} */
function blockSource(session, block) {
  const { live, baseline } = session;
  const isShare = SHARES.test(block.leaf);
  const longest = Math.max(...[0, 1, 2, 3, 4, 5, 6, 7].filter((i) => i < block.rows).map((i) => headText(session, block.axes[0], i).length));
  const wide = Math.max(CELL_WIDTH, ...[0, 1, 2, 3].filter((j) => j < block.cols).map((j) => 7 * headText(session, block.axes[1], j).length + 10));
  const later = (/** @type {number} */ i, /** @type {number} */ j) =>
    (block.axes[0] === "token" && i >= session.shown) || (block.axes[1] === "token" && j >= session.shown);
  return {
    ...{ label: `the numbers of ${block.name}`, rows: block.rows, cols: block.cols, top: 0, frozen: [0, 0] },
    ...{ headWidth: Math.min(140, Math.max(40, 7.5 * longest + 14)), height: () => ROW_HEIGHT, width: () => Math.min(wide, 110) },
    ...{ rowHead: (i) => headText(session, block.axes[0], i), colHead: (j) => headText(session, block.axes[1], j) },
    columns: (i, left, right) => {
      const found = [];
      for (let j = left; j < right; j++) if (block.has(i, j)) found.push(j);
      return found;
    },
    draw: (i, j, node) => {
      const value = block.has(i, j) ? live.value(block, i, j) : null;
      node.textContent = value === null ? "" : shownBlock?.whole || typeof value !== "number" ? String(valueText(value)) : decimals(value);
      node.classList.add(typeof value === "number" ? "r" : "c");
      node.classList.toggle("edited", live.isSet(block, i, j));
      node.classList.toggle("changed", differs(value, baseline.value(block, i, j)));
      node.classList.toggle("later", later(i, j));
      shade(node, isShare ? "full" : "", value, isShare ? 1 : (shownBlock?.full ?? 1));
    },
    name: (i, j) => cellName(block, i, j),
    typeable: (i, j) => block.has(i, j),
    text: (i, j) => String(live.value(block, i, j) ?? ""),
    choices: () => null,
    value: (i, j) => (block.has(i, j) ? live.value(block, i, j) : null),
    paints: () => "",
    edit: (i, j, text) => {
      if (!block.has(i, j)) return { why: "nothing is typed here; select other cells" };
      const { value, why } = text === null ? { value: undefined, why: "" } : typedAs(text, live.value(block, i, j));
      return why ? { why } : { edit: { block, i, j, value }, why };
    },
    commit: (edits, tag) => session.setAll(edits, tag),
    complain: (why) => session.complain(why),
    open: () => false,
    select: (i, j) => session.select(block, i, j),
    merged: () => null,
  };
}

/** Colours a cell by its number: about 0, or as a share. @param {HTMLElement} node
 * @param {string} colour "full", or by the number's sign @param {any} value @param {number} full */
export function shade(node, colour, value, full) {
  const strength = typeof value === "number" ? Math.min(1, Math.abs(value) / (full || 1)) || 0 : 0;
  const name = colour || (value < 0 ? "less" : "more");
  node.style.setProperty("background", strength ? `rgb(var(--${name}) / ${strength.toFixed(3)})` : "");
  node.classList.toggle("lit", strength > 0.25);
  const ink = colour === "stroke" ? strength : 0;
  for (const [name, from] of /** @type {const} */ ([["inked", 0.2], ["half", 0.45], ["dark", 0.65]])) node.classList.toggle(name, ink > from);
}

/** @param {any} value @param {any} before */
function differs(value, before) {
  if (typeof value === "number" && typeof before === "number") return Math.abs(value - before) > 1e-9 * Math.max(1, Math.abs(before));
  return value !== before && !(value instanceof CellError);
}

// --- one cell ------------------------------------------------------------------------------

/** @type {CellPanel | null} */
let cellPanel = null;

/** Shows one cell in #cell. @param {Session} session @param {Block} block @param {number} i @param {number} j */
export function showCell(session, block, i, j) {
  const into = byId("cell");
  if (cellPanel?.into !== into || cellPanel.session !== session) cellPanel = new CellPanel(session, into, (...cell) => session.select(...cell));
  cellPanel.show(block, i, j);
}

/** What is told of a cell, with ways to the cells that it reads, and back. */
export class CellPanel {
  /** @param {Session} session @param {HTMLElement} into @param {Go} go where a link leads */
  constructor(session, into, go) {
    this.session = session;
    this.into = into;
    this.go = go;
    /** @type {[Block, number, number][]} cells looked at before */ this.before = [];
    /** @type {[Block, number, number] | null} */ this.here = null;
    this.goesBack = false;
    this.whole = false;
  }

  /** @param {Block} block @param {number} i @param {number} j @param {string} [note] what the sheet says of it */
  show(block, i, j, note = "") {
    const isNew = this.here?.[0] !== block || this.here[1] !== i || this.here[2] !== j;
    if (isNew) {
      if (this.here && !this.goesBack) this.before.push(this.here);
      if (this.before.length > MOST_KEPT) this.before.shift();
      this.here = [block, i, j];
      this.whole = false;
    }
    this.goesBack = false;
    const has = block.has(i, j);
    const pieces = has ? formulaPieces(this.session.graph, block, i, j) : [];
    refilled(this.into, [
      this.heading(block, i, j),
      has ? this.value(block, i, j) : element("p", {}, "blank"),
      note ? element("p", { class: "note" }, note) : null,
      ...(pieces.length ? [this.formula(pieces), ...this.entering(block, pieces)] : []),
      ...(has ? this.readers(block, i, j) : []),
    ]);
  }

  /** A link to a cell. @param {Block} block @param {number} i @param {number} j @param {string} text */
  link(block, i, j, text) {
    const follow = (/** @type {Event} */ event) => {
      event.preventDefault();
      this.go(block, i, j);
    };
    return element("a", { href: "#", class: "way", title: cellName(block, i, j), onclick: follow }, text);
  }

  /** @param {Block} block @param {number} i @param {number} j */
  heading(block, i, j) {
    const last = this.before[this.before.length - 1];
    const back = () => {
      this.before.pop();
      this.goesBack = true;
      this.go(...last);
    };
    const where = [block.axes[0], block.axes[1]].map((axis, k) => labelled(this.session, axis, [i, j][k])).filter(Boolean);
    const address = cellAddress(block, i, j);
    return element(
      "div",
      { class: "cell-head" },
      last ? element("button", { onclick: back, "data-key": "back", title: cellName(...last) }, "← back") : null,
      element("h2", { tabindex: -1 }, element("code", {}, cellName(block, i, j))),
      element("p", {}, [meant(block), ...where, address && `in the workbook ${address}`].filter(Boolean).join(" · ")),
    );
  }

  /** Its value, to type over. @param {Block} block @param {number} i @param {number} j */
  value(block, i, j) {
    const { live, baseline, graph } = this.session;
    const value = live.value(block, i, j);
    const fault = element("span", { class: "fault", role: "alert" });
    const shown = typeof value === "number" ? String(Number(value.toPrecision(12))) : value instanceof CellError ? value.text : String(value ?? "");
    const type = (/** @type {Event} */ event) => {
      const input = /** @type {HTMLInputElement} */ (event.target);
      if (input.value === shown) return;
      const typed = typedAs(input.value, value);
      fault.textContent = typed.why;
      if (!typed.why) this.session.set(block, i, j, typed.value);
    };
    const input = element("input", { "data-key": "value", "aria-label": `value of ${cellName(block, i, j)}`, autocomplete: "off", onchange: type });
    input.value = shown;
    const before = baseline.value(block, i, j);
    const isSet = live.isSet(block, i, j);
    const told = [];
    if (differs(value, before)) told.push(`${block.isInput && !block.isTable ? "as built" : "without edits"} ${valueText(before)}`);
    if (typeof value === "number" && typeof before === "number" && differs(value, before)) told.push(`change ${signed(value - before)}`);
    const slope = graph.gradientOf(block);
    return element(
      "div",
      { class: "value" },
      element("label", {}, "= ", input),
      isSet ? element("button", { "data-key": "value", onclick: () => this.session.unset(block, i, j) }, "put back") : null,
      element("span", { class: "told" }, told.length ? told.join(", ") : isSet ? "typed" : block.isInput ? "type another value" : "computed; type over it to hold it"),
      fault,
      slope && slope.has(i, j) ? element("div", { class: "told" }, "gradient ", this.link(slope, i, j, valueText(live.value(slope, i, j)))) : null,
    );
  }

  /** @param {(string | Link)[]} pieces */
  formula(pieces) {
    const parts = pieces.map((piece) => (typeof piece === "string" ? piece : this.link(piece.block, piece.rect[0], piece.rect[2], piece.text)));
    return element("p", { class: "formula" }, "= ", ...parts);
  }

  /** What enters its formula: terms of a sum of products, largest first; or what it reads.
   * @param {Block} block @param {(string | Link)[]} pieces */
  entering(block, pieces) {
    for (let k = 0; k + 2 < pieces.length; k++) {
      const [left, sign, right] = pieces.slice(k, k + 3);
      if (typeof left === "string" || typeof right === "string" || typeof sign !== "string") continue;
      if (sign.trim() === "·" && size(left) === size(right)) return this.products(left, right);
    }
    const links = /** @type {Link[]} */ (pieces.filter((piece) => typeof piece !== "string"));
    const lines = links.filter((link) => size(link) > 1);
    if (lines.length === 1) return this.line(block, lines[0]);
    return lines.length ? [] : this.singles(links, pieces);
  }

  /** @param {Link} left @param {Link} right */
  products(left, right) {
    const { live } = this.session;
    const terms = cellsIn(left).map((cell, k) => {
      const other = cellsIn(right)[k];
      const [x, y] = [live.value(left.block, ...cell), live.value(right.block, ...other)];
      return { cell, other, x, y, product: Number(x) * Number(y) };
    });
    const ordered = terms.filter((term) => Number.isFinite(term.product)).sort((a, b) => Math.abs(b.product) - Math.abs(a.product));
    const shown = this.whole ? ordered : ordered.slice(0, MOST_TERMS);
    const rows = shown.map(({ cell, other, x, y, product }) => [
      labelled(this.session, ...longAxis(left, cell)) || String(longAxis(left, cell)[1]),
      this.link(left.block, ...cell, valueText(x)),
      element("span", {}, "× ", this.link(right.block, ...other, valueText(y))),
      `= ${valueText(product)}`,
    ]);
    const rest = ordered.slice(shown.length).reduce((sum, term) => sum + term.product, 0);
    return this.table(`${terms.length} products ${left.text} × ${right.text}, largest first`, rows, ordered.length - shown.length, `together ${valueText(rest)}`);
  }

  /** @param {Block} block @param {Link} link */
  line(block, link) {
    const { live } = this.session;
    const found = cellsIn(link)
      .map((cell) => ({ cell, x: live.value(link.block, ...cell) }))
      .filter(({ x }) => typeof x === "number");
    found.sort((a, b) => Math.abs(Number(b.x)) - Math.abs(Number(a.x)));
    const shown = this.whole ? found : found.slice(0, MOST_TERMS);
    const rows = shown.map(({ cell, x }) => [this.link(link.block, ...cell, at(link.block, block, cell)), labelled(this.session, ...longAxis(link, cell)), valueText(x)]);
    return rows.length ? this.table(`${found.length} numbers, largest first`, rows, found.length - shown.length, "") : [];
  }

  /** @param {Link[]} links @param {(string | Link)[]} pieces */
  singles(links, pieces) {
    const { live } = this.session;
    const seen = new Map(links.map((link) => [`${link.block.name} ${link.rect}`, link]));
    const found = [...seen.values()].map((link) => ({ link, x: live.value(link.block, link.rect[0], link.rect[2]) }));
    const isSum = pieces.every((piece) => typeof piece !== "string" || /^[\s+]*$/.test(piece));
    if (isSum) found.sort((a, b) => Math.abs(Number(b.x)) - Math.abs(Number(a.x)));
    const rows = found.map(({ link, x }) => [this.link(link.block, link.rect[0], link.rect[2], link.text), valueText(x)]);
    return found.length ? this.table(isSum && found.length > 1 ? "terms, largest first" : "it reads", rows, 0, "") : [];
  }

  /** @param {string} caption @param {(Node | string)[][]} rows @param {number} more @param {string} together */
  table(caption, rows, more, together) {
    const body = rows.map((row) => element("tr", {}, ...row.map((cell) => element("td", {}, cell))));
    const all = () => {
      this.whole = true;
      if (this.here) this.show(...this.here);
    };
    const rest = more ? element("button", { onclick: all, "data-key": "value" }, `and ${more} more` + (together ? `, ${together}` : "")) : null;
    return [element("table", { class: "terms" }, element("caption", {}, caption), element("tbody", {}, ...body)), rest];
  }

  /** @param {Block} block @param {number} i @param {number} j */
  readers(block, i, j) {
    /** @type {Map<Block, number[]>} */ const found = new Map();
    for (const { block: reader, rect } of this.session.graph.readBy(block, i, j)) {
      const [top, bottom, left, right] = found.get(reader) ?? rect;
      found.set(reader, [Math.min(top, rect[0]), Math.max(bottom, rect[1]), Math.min(left, rect[2]), Math.max(right, rect[3])]);
    }
    if (!found.size) return [];
    const links = [...found].slice(0, MOST_READERS).flatMap(([reader, rect], k) => {
      const cell = firstCell(reader, rect);
      const link = this.link(reader, ...cell, shortName(reader.name, block.name) + spans(reader, rect));
      return k ? [", ", link] : [link];
    });
    const more = found.size > MOST_READERS ? ` and ${found.size - MOST_READERS} more` : "";
    return [element("p", { class: "readers" }, element("b", {}, "read by "), ...links, more)];
  }
}

/** Fills an element anew; what had the focus has it again, or else the heading.
 * @param {HTMLElement} into @param {(Node | null)[]} children */
function refilled(into, children) {
  const active = document.activeElement;
  const key = active && into.contains(active) ? (active.getAttribute("data-key") ?? "") : null;
  into.replaceChildren(...children.filter((child) => child !== null));
  if (key === null) return;
  const again = key ? into.querySelector(`[data-key=${key}]`) : null;
  const next = /** @type {HTMLElement | null} */ (again ?? into.querySelector("h2"));
  next?.focus({ preventScroll: true });
}

/** @param {Link} link */
function size({ rect }) {
  return (rect[1] - rect[0]) * (rect[3] - rect[2]);
}

/** @param {Link} link @returns {[number, number][]} */
function cellsIn({ rect }) {
  /** @type {[number, number][]} */ const found = [];
  for (let i = rect[0]; i < rect[1]; i++) for (let j = rect[2]; j < rect[3]; j++) found.push([i, j]);
  return found;
}

/** A cell of a block beside another. @param {Block} block @param {Block} beside @param {[number, number]} cell */
function at(block, beside, [i, j]) {
  return `${shortName(block.name, beside.name)}[${i},${j}]`;
}

/** The axis that a line runs along, and where on it a cell is. @param {Link} link @param {[number, number]} cell @returns {[string, number]} */
function longAxis({ block, rect }, [i, j]) {
  return rect[1] - rect[0] > 1 ? [block.axes[0], i] : [block.axes[1], j];
}

/** A token or a word, where an axis has such. @param {Session} session @param {string} axis @param {number} k */
function labelled(session, axis, k) {
  const text = session.label(axis, k);
  return axis && text !== String(k) ? (axis.startsWith("token") ? `token ${k} ` : "") + `‘${text}’` : "";
}

/** @param {Block} block @param {number[]} rect @returns {[number, number]} the first cell that is not blank */
function firstCell(block, [top, bottom, left, right]) {
  for (let i = top; i < bottom; i++) for (let j = left; j < right; j++) if (block.has(i, j)) return [i, j];
  return [top, left];
}

/** Rows and columns of a block: `[3,:]`. @param {Block} block @param {number[]} rect */
function spans(block, [top, bottom, left, right]) {
  const span = (/** @type {number} */ from, /** @type {number} */ to, /** @type {number} */ n) =>
    to - from === 1 ? String(from) : `${from || ""}:${to === n ? "" : to}`;
  return block.rows * block.cols === 1 ? "" : `[${span(top, bottom, block.rows)},${span(left, right, block.cols)}]`;
}

/** @param {number} x */
function signed(x) {
  return `${x > 0 ? "+" : ""}${inBlock(x)}`;
}
