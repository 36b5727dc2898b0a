// A grid of cells of which only those in view are in the document, for blocks of millions of cells
// and for whole sheets. It knows no model: what a cell shows is the matter of a `Source`.
//
// Rows and columns have heads that stay in view, and the first ones may stay, too. A range of cells is
// selected, from the active cell to another corner; keys move it, fill it, copy it and put it back.
// Some cells are painted with the pointer. A screen reader is told of a grid with as many rows and
// columns as there are, heads included, and which cell is active.

import { element } from "./dom.js";
import { tableOf, plainText } from "./pasted.js";

/** What a grid shows. `columns` are those of a row that hold something, among some; `draw` fills a
 * cell's node, which keeps nothing from before but its place; `edit` is what a text typed there does,
 * or why it cannot (null puts the cell back); `commit` does edits, those of one tag in one step; `paints`
 * tells what the pointer paints into a cell, or "" where it selects; `open` follows a link, if there is one; `merged` are the cells that one cell takes, as top, bottom, left and right.
 * @typedef {{label: string, rows: number, cols: number, top: number, frozen: [number, number],
 *   headWidth: number, height: (i: number) => number, width: (j: number) => number,
 *   rowHead: (i: number) => string, colHead: (j: number) => string,
 *   columns: (i: number, left: number, right: number) => number[],
 *   draw: (i: number, j: number, node: HTMLElement) => void,
 *   name: (i: number, j: number) => string, typeable: (i: number, j: number) => boolean,
 *   text: (i: number, j: number) => string, choices: (i: number, j: number) => string[] | null,
 *   value: (i: number, j: number) => any, paints: (i: number, j: number) => string,
 *   edit: (i: number, j: number, text: string | null) => {edit?: import("./session.js").Edit, why: string},
 *   commit: (edits: import("./session.js").Edit[], tag: string) => void, complain: (why: string) => void,
 *   open: (i: number, j: number) => boolean, select: (i: number, j: number) => void, merged: (i: number, j: number) => number[] | null}} Source */

const HEAD_HEIGHT = 22;
const BEYOND = 120;
/** @type {Record<string, [number, number]>} */
const ARROWS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
let grids = 0;
let strokes = 0;

/** Rows or columns one after another: where each begins, in pixels. */
class Lines {
  /** @param {number} n @param {(k: number) => number} size */
  constructor(n, size) {
    this.n = n;
    this.starts = new Float64Array(n + 1);
    for (let k = 0; k < n; k++) this.starts[k + 1] = this.starts[k] + size(k);
  }

  /** @param {number} k */
  size(k) {
    return this.starts[k + 1] - this.starts[k];
  }

  get whole() {
    return this.starts[this.n];
  }

  /** The first line that ends beyond a place. @param {number} place */
  at(place) {
    let [low, high] = [0, this.n];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.starts[middle + 1] > place) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}

/** A grid in the document: append its `node`, then `draw`. */
export class Grid {
  /** @param {Source} source */
  constructor(source) {
    this.source = source;
    this.id = `grid${++grids}`;
    this.rows = new Lines(source.rows, (i) => (i < source.top ? 0 : source.height(i)));
    this.cols = new Lines(source.cols, source.width);
    this.frozen = [source.frozen[0] + source.top, source.frozen[1]];
    this.row = source.top;
    this.col = 0;
    /** @type {[number, number]} the other corner of the range */ this.far = [source.top, 0];
    this.dragged = false;
    /** @type {Map<number, {node: HTMLElement, head: HTMLElement, cells: Map<number, HTMLElement>, shown: string}>} */
    this.drawn = new Map();
    /** @type {HTMLElement | undefined} */ this.active = undefined;
    this.waits = false;
    this.heads = element("div", { role: "row", class: "grid-heads", "aria-rowindex": 1 });
    this.body = element("div", {
      ...{ role: "grid", class: "grid", tabindex: 0, "aria-label": source.label, "aria-multiselectable": "true" },
      ...{ "aria-rowcount": source.rows - source.top + 1, "aria-colcount": source.cols + 1 },
    }, this.heads);
    this.node = element("div", { class: "grid-view" }, this.body);
    this.body.style.width = `${source.headWidth + this.cols.whole}px`;
    this.body.style.height = `${HEAD_HEIGHT + this.rows.whole}px`;
    this.body.style.setProperty("--head", `${source.headWidth}px`);
    this.node.addEventListener("scroll", () => this.soon(), { passive: true });
    this.body.addEventListener("keydown", (event) => this.pressed(event));
    this.body.addEventListener("pointerdown", (event) => this.pointed(event));
    this.body.addEventListener("focus", () => {
      document.oncopy = (event) => this.copied(event); // elsewhere than at the focus, where a selection is
      document.onpaste = (event) => this.pasted(event);
    });
    this.body.addEventListener("click", (event) => this.clicked(event, false));
    this.body.addEventListener("dblclick", (event) => this.clicked(event, true));
    new ResizeObserver(() => this.soon()).observe(this.node);
  }

  // --- drawing ------------------------------------------------------------------------------

  /** Draws before the next frame. */
  soon() {
    if (this.waits) return;
    this.waits = true;
    requestAnimationFrame(() => {
      this.waits = false;
      this.draw(false);
    });
  }

  /** Draws what is in view; cells that are there already only if they are to be `fresh`. */
  draw(fresh = true) {
    const { scrollTop, scrollLeft, clientHeight, clientWidth } = this.node;
    const top = Math.max(this.frozen[0], this.rows.at(scrollTop - BEYOND));
    const bottom = Math.min(this.rows.n, this.rows.at(scrollTop + clientHeight + BEYOND) + 1);
    const left = Math.max(this.frozen[1], this.cols.at(scrollLeft - BEYOND));
    const right = Math.min(this.cols.n, this.cols.at(scrollLeft + clientWidth + BEYOND) + 1);
    const wanted = [];
    for (let i = this.source.top; i < this.frozen[0]; i++) wanted.push(i);
    for (let i = top; i < bottom; i++) if (this.rows.size(i)) wanted.push(i);
    const kept = new Set(wanted);
    for (const [i, { node }] of this.drawn) {
      if (kept.has(i)) continue;
      node.remove();
      this.drawn.delete(i);
    }
    this.drawHeads(left, right);
    /** @type {HTMLElement} */ let before = this.heads;
    for (const i of wanted) {
      const row = this.rowAt(i);
      if (before.nextSibling !== row.node) before.after(row.node);
      before = row.node;
      this.drawRow(i, left, right, fresh);
    }
    this.markActive();
  }

  /** Marks the active cell and the range, as far as they are drawn. */
  markActive() {
    const active = this.cellAt(this.row, this.col);
    this.active?.classList.remove("here");
    active?.classList.add("here");
    const [top, bottom, left, right] = this.range;
    const several = bottom - top > 1 || right - left > 1;
    for (const [i, { cells }] of this.drawn)
      for (const [j, node] of cells) {
        const isIn = (top <= i && i < bottom && left <= j && j < right) || node === active;
        node.setAttribute("aria-selected", String(isIn));
        node.classList.toggle("ranged", isIn && several);
      }
    this.active = active;
    if (active) this.body.setAttribute("aria-activedescendant", active.id);
    else this.body.removeAttribute("aria-activedescendant");
  }

  /** @param {number} left @param {number} right */
  drawHeads(left, right) {
    const shown = `${left} ${right}`;
    if (this.heads.dataset.shown === shown) return;
    this.heads.dataset.shown = shown;
    const heads = this.columnsShown(left, right).map((j) => {
      const text = this.source.colHead(j);
      const head = element("div", { role: "columnheader", class: "grid-head", "aria-colindex": j + 2, title: text }, text);
      this.place(head, j, j + 1);
      return head;
    });
    const corner = element("div", { role: "columnheader", class: "grid-corner", "aria-colindex": 1, "aria-label": "row" });
    this.heads.replaceChildren(corner, ...heads);
  }

  /** The columns that stay and those in view. @param {number} left @param {number} right @returns {number[]} */
  columnsShown(left, right) {
    const found = [];
    for (let j = 0; j < this.frozen[1]; j++) found.push(j);
    for (let j = left; j < right; j++) found.push(j);
    return found;
  }

  /** The node of a row, made if it is new. @param {number} i */
  rowAt(i) {
    let row = this.drawn.get(i);
    if (row) return row;
    const stays = i < this.frozen[0];
    const text = this.source.rowHead(i);
    const head = element("div", { role: "rowheader", class: "grid-side", "aria-colindex": 1, title: text }, text);
    const index = i - this.source.top + 2;
    const node = element("div", { role: "row", class: stays ? "grid-row stays" : "grid-row", "aria-rowindex": index }, head);
    node.style.top = `${HEAD_HEIGHT + this.rows.starts[i]}px`;
    node.style.height = `${this.rows.size(i)}px`;
    row = { node, head, cells: new Map(), shown: "" };
    this.drawn.set(i, row);
    return row;
  }

  /** @param {number} i @param {number} left @param {number} right @param {boolean} fresh */
  drawRow(i, left, right, fresh) {
    const row = /** @type {NonNullable<ReturnType<typeof this.rowAt>>} */ (this.drawn.get(i));
    const shown = `${left} ${right} ${i === this.row ? this.col : ""}`;
    if (row.shown === shown && !fresh) return;
    const columns = this.source.columns(i, left, right).filter((j) => j >= this.frozen[1]);
    for (let j = 0; j < this.frozen[1]; j++) columns.push(j);
    if (i === this.row && !columns.includes(this.col) && this.col >= left && this.col < right) columns.push(this.col);
    columns.sort((a, b) => a - b);
    /** @type {Map<number, HTMLElement>} */ const cells = new Map();
    for (const j of columns) {
      let node = row.cells.get(j);
      if (!node || fresh) {
        node ??= this.newCell(i, j);
        this.drawCell(i, j, node);
      }
      cells.set(j, node);
    }
    row.cells = cells;
    row.shown = shown;
    row.node.replaceChildren(row.head, ...cells.values());
  }

  /** @param {number} i @param {number} j */
  newCell(i, j) {
    const node = element("div", { role: "gridcell", id: `${this.id}-${i}-${j}`, "aria-colindex": j + 2 });
    const [, bottom, , right] = this.source.merged(i, j) ?? [i, i + 1, j, j + 1];
    this.place(node, j, right);
    if (bottom > i + 1) node.style.height = `${this.rows.starts[bottom] - this.rows.starts[i]}px`;
    node.dataset.at = `${i} ${j}`;
    return node;
  }

  /** Puts a node where columns stand. @param {HTMLElement} node @param {number} j @param {number} right */
  place(node, j, right) {
    const stays = j < this.frozen[1];
    if (stays) node.classList.add("stays");
    if (stays) node.style.zIndex = String(2 + this.frozen[1] - j);
    node.style.left = `${this.source.headWidth + this.cols.starts[j]}px`;
    node.style.width = `${this.cols.starts[right] - this.cols.starts[j]}px`;
  }

  /** @param {number} i @param {number} j @param {HTMLElement} node */
  drawCell(i, j, node) {
    node.className = j < this.frozen[1] ? "cell stays" : "cell";
    this.source.draw(i, j, node);
    node.classList.toggle("paints", !!this.source.paints(i, j));
    if (this.source.typeable(i, j)) node.removeAttribute("aria-readonly");
    else node.setAttribute("aria-readonly", "true");
  }

  /** The node of a cell, if it is drawn. @param {number} i @param {number} j */
  cellAt(i, j) {
    return this.drawn.get(i)?.cells.get(j);
  }

  // --- the selected cell --------------------------------------------------------------------

  /** The range: top, bottom, left and right. @returns {number[]} */
  get range() {
    const [i, j] = this.far;
    return [Math.min(i, this.row), Math.max(i, this.row) + 1, Math.min(j, this.col), Math.max(j, this.col) + 1];
  }

  /** The cells of the range, row by row. @returns {[number, number][]} */
  get chosen() {
    const [top, bottom, left, right] = this.range;
    /** @type {[number, number][]} */ const found = [];
    for (let i = top; i < bottom; i++) if (this.rows.size(i)) for (let j = left; j < right; j++) found.push([i, j]);
    return found;
  }

  /** The nearest cell that there is. @param {number} i @param {number} j @returns {[number, number]} */
  inside(i, j) {
    const { top, rows, cols } = this.source;
    return [Math.max(top, Math.min(rows - 1, i)), Math.max(0, Math.min(cols - 1, j))];
  }

  /** Takes the range up to a cell. @param {number} i @param {number} j */
  extend(i, j) {
    this.far = this.inside(i, j);
    this.reveal(...this.far);
    this.draw(false);
  }

  /** Selects a cell, and brings it into view. @param {number} i @param {number} j */
  select(i, j) {
    const { rows } = this.source;
    [i, j] = this.inside(i, j);
    while (i + 1 < rows && !this.rows.size(i)) i++;
    const merged = this.source.merged(i, j);
    if (merged) [i, , j] = merged;
    this.row = i;
    this.col = j;
    this.far = [i, j];
    this.reveal(i, j);
    this.draw(false);
  }

  /** Scrolls until a cell is in view. @param {number} row @param {number} col */
  reveal(row, col) {
    const { node, rows, cols, source, frozen } = this;
    const top = rows.starts[row] - rows.starts[frozen[0]];
    const seen = node.clientHeight - HEAD_HEIGHT - rows.starts[frozen[0]];
    if (row >= frozen[0]) {
      if (top < node.scrollTop) node.scrollTop = top;
      else if (top + rows.size(row) > node.scrollTop + seen) node.scrollTop = top + rows.size(row) - seen;
    }
    const left = cols.starts[col] - cols.starts[frozen[1]];
    const width = node.clientWidth - source.headWidth - cols.starts[frozen[1]];
    if (col >= frozen[1]) {
      if (left < node.scrollLeft) node.scrollLeft = left;
      else if (left + cols.size(col) > node.scrollLeft + width) node.scrollLeft = left + cols.size(col) - width;
    }
  }

  /** Selects a cell, and tells the source of it. @param {number} i @param {number} j */
  go(i, j) {
    this.select(i, j);
    this.source.select(this.row, this.col);
  }

  /** The next line in a direction that is seen and is no part of the same merged cell.
   * @param {number} down @param {number} across @param {number[]} [from] @returns {[number, number]} */
  next(down, across, [i, j] = [this.row, this.col]) {
    const merged = this.source.merged(i, j);
    if (merged && down > 0) i = merged[1] - 1;
    if (merged && across > 0) j = merged[3] - 1;
    do i += down;
    while (down && i > this.source.top && i < this.rows.n && !this.rows.size(i));
    do j += across;
    while (across && j > 0 && j < this.cols.n && !this.cols.size(j));
    return [i, j];
  }

  /** @param {KeyboardEvent} event */
  pressed(event) {
    if (event.target !== this.body || event.altKey) return;
    const { key, shiftKey } = event;
    const jump = event.ctrlKey || event.metaKey;
    const [top, bottom, left, right] = this.range;
    const columns = this.source.columns(this.row, 0, this.cols.n);
    const page = Math.max(1, Math.floor((this.node.clientHeight - HEAD_HEIGHT) / Math.max(1, this.rows.size(this.row))) - 1);
    /** @type {Record<string, () => unknown>} */
    const keys = {
      Home: () => this.go(jump ? this.source.top : this.row, 0),
      End: () => this.go(jump ? this.rows.n - 1 : this.row, jump ? this.cols.n - 1 : (columns[columns.length - 1] ?? this.col)),
      PageUp: () => this.go(this.row - page, this.col),
      PageDown: () => this.go(this.row + page, this.col),
      Enter: () => this.source.open(this.row, this.col) || this.edit(),
      F2: () => this.edit(),
      Delete: () => this.fill(() => null),
      Backspace: () => this.fill(() => null),
    };
    if (ARROWS[key] && shiftKey && !jump) this.extend(...this.next(...ARROWS[key], this.far));
    else if (ARROWS[key] && !jump) this.go(...this.next(...ARROWS[key]));
    else if (jump && key === "d" && bottom - top > 1) this.fill((i, j) => this.textAt(top, j));
    else if (jump && key === "r" && right - left > 1) this.fill((i) => this.textAt(i, left));
    else if (keys[key] && !(jump && key === "Enter")) keys[key]();
    else if (key.length === 1 && key !== " " && !jump && this.source.typeable(this.row, this.col)) return this.edit(key); // which types it
    else return;
    event.preventDefault();
  }

  // --- the pointer ----------------------------------------------------------------------------

  /** The cell at a point of the screen, where the grid has its `box`. @param {MouseEvent} event @param {DOMRect} box @returns {[number, number]} */
  under({ clientX, clientY }, box) {
    const { node, rows, cols, source, frozen } = this;
    const x = clientX - box.left - node.clientLeft - source.headWidth;
    const y = clientY - box.top - node.clientTop - HEAD_HEIGHT;
    const line = (/** @type {Lines} */ lines, /** @type {number} */ place, /** @type {number} */ stay, /** @type {number} */ scrolled) =>
      lines.at(place < lines.starts[stay] ? place : place + scrolled);
    return this.inside(line(rows, y, frozen[0], node.scrollTop), line(cols, x, frozen[1], node.scrollLeft));
  }

  /** Begins a stroke or a range; a finger elsewhere scrolls. @param {PointerEvent} event */
  pointed(event) {
    const target = /** @type {HTMLElement} */ (event.target);
    this.dragged = false;
    if (event.button || !event.isPrimary || target.closest("a, input, select, [role=columnheader], [role=rowheader]")) return;
    const box = this.node.getBoundingClientRect(); // as it was: what a stroke changes may move the grid
    const first = this.under(event, box);
    const paints = !event.shiftKey && this.source.paints(...first);
    if (!paints && event.pointerType === "touch") return;
    let last = first;
    const isDark = paints && this.textAt(...first) === paints;
    const tag = `stroke ${++strokes}`;
    const paint = (/** @type {[number, number][]} */ cells, /** @type {string} */ text) =>
      this.put(cells.filter((cell) => this.source.paints(...cell)).map(([i, j]) => [i, j, text]), tag);
    const move = (/** @type {PointerEvent} */ at) => {
      const next = this.under(at, box);
      if (next[0] === last[0] && next[1] === last[1]) return;
      if (paints) paint(crossed(last, next), paints);
      else {
        if (!this.dragged && !event.shiftKey) this.go(...first);
        this.extend(...next);
      }
      this.dragged = true;
      last = next;
      this.body.setPointerCapture(at.pointerId);
    };
    const end = () => {
      this.body.removeEventListener("pointermove", move);
      for (const name of ["pointerup", "pointercancel"]) this.body.removeEventListener(name, end);
      if (isDark && !this.dragged) paint([first], "0"); // a touch takes the ink of one cell away
      if (paints) this.dragged = true;
    };
    this.body.addEventListener("pointermove", move);
    for (const name of ["pointerup", "pointercancel"]) this.body.addEventListener(name, end);
    if (!paints) return;
    this.body.setPointerCapture(event.pointerId);
    this.go(...first);
    if (!isDark) paint([first], paints);
  }

  /** @param {MouseEvent} event @param {boolean} twice */
  clicked(event, twice) {
    const target = /** @type {HTMLElement} */ (event.target);
    const at = /** @type {HTMLElement | null} */ (target.closest("[data-at]"))?.dataset.at;
    if (!at || this.dragged || target.closest("a, input, select")) return;
    const [i, j] = at.split(" ").map(Number);
    if (event.shiftKey) return this.extend(i, j);
    const again = i === this.row && j === this.col && document.activeElement === this.body;
    this.body.focus({ preventScroll: true });
    this.go(i, j);
    if (twice || (again && this.source.text(i, j) !== "")) this.edit();
  }

  // --- typing -------------------------------------------------------------------------------

  /** The text of a cell, as it is typed and copied. @param {number} i @param {number} j */
  textAt(i, j) {
    return plainText(this.source.value(i, j));
  }

  /** Types texts into cells, into all or none; why not, or "".
   * @param {[number, number, string | null][]} cells @param {string} [tag] of cells that are one step together */
  put(cells, tag = "") {
    const edits = [];
    for (const [i, j, text] of cells) {
      const { edit, why } = this.source.edit(i, j, text);
      if (!edit) return cells.length > 1 ? `Nothing is changed: ${this.source.name(i, j)}: ${why}` : why;
      edits.push(edit);
    }
    if (edits.length) this.source.commit(edits, tag);
    return "";
  }

  /** Types a text into each cell of the range, or complains. @param {(i: number, j: number) => string | null} text */
  fill(text) {
    this.complain(this.put(this.chosen.map(([i, j]) => [i, j, text(i, j)])));
  }

  /** @param {string} why */
  complain(why) {
    if (why) this.source.complain(why);
  }

  /** Copies the range as a spreadsheet pastes it. @param {ClipboardEvent} event */
  copied(event) {
    if (document.activeElement !== this.body) return;
    const [top, bottom, left, right] = this.range;
    const lines = [];
    for (let i = top; i < bottom; i++) {
      const cells = [];
      for (let j = left; j < right; j++) cells.push(this.textAt(i, j));
      if (this.rows.size(i)) lines.push(cells.map((text) => (/["\t\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text)).join("\t"));
    }
    event.clipboardData?.setData("text/plain", lines.join("\n"));
    event.preventDefault();
  }

  /** Types what a spreadsheet copied: one cell into the whole range. @param {ClipboardEvent} event */
  pasted(event) {
    const text = event.clipboardData?.getData("text/plain");
    if (document.activeElement !== this.body || !text) return;
    event.preventDefault();
    const table = tableOf(text);
    const [top, , left] = this.range;
    const [height, width] = [table.length, Math.max(...table.map((line) => line.length))];
    if (height * width === 1) return this.fill(() => table[0][0] || null);
    if (top + height > this.rows.n || left + width > this.cols.n)
      return this.complain(`Nothing is changed: ${height} × ${width} cells do not fit at ${this.source.name(top, left)}; select a cell further up or left`);
    const why = this.put(table.flatMap((line, i) => line.map((cell, j) => /** @type {[number, number, string | null]} */ ([top + i, left + j, cell || null]))));
    if (why) return this.complain(why);
    [this.row, this.col] = [top, left];
    this.extend(top + height - 1, left + width - 1);
  }

  /** Opens an input over the active cell, with its text, or blank for what is `typed` into it now. @param {string} [typed] */
  edit(typed) {
    const { row, col, source } = this;
    const cell = this.cellAt(row, col);
    if (!cell || !source.typeable(row, col) || cell.querySelector("input, select")) return;
    const choices = source.choices(row, col);
    const label = `value of ${source.name(row, col)}`;
    const text = source.text(row, col);
    const input = choices
      ? element("select", { class: "grid-input", "aria-label": label }, ...[...new Set([text, ...choices])].map(option))
      : element("input", { class: "grid-input", "aria-label": label, autocomplete: "off" });
    input.value = typed === undefined ? text : choices ? typed : "";
    const fault = element("div", { class: "grid-fault", role: "alert" });
    let done = false;
    const close = (/** @type {boolean} */ keep, /** @type {[number, number]} */ move, fills = false) => {
      if (done) return;
      done = true;
      const cells = fills ? this.chosen : [[row, col]];
      const why = keep && (fills || input.value !== text) ? this.put(cells.map(([i, j]) => [i, j, input.value])) : "";
      if (why) {
        done = false;
        fault.textContent = why;
        input.setAttribute("aria-invalid", "true");
        return;
      }
      this.draw();
      this.body.focus({ preventScroll: true });
      if (move[0] || move[1]) this.go(...this.next(...move));
    };
    input.addEventListener("keydown", (event) => {
      const { key, shiftKey, ctrlKey, metaKey, altKey } = /** @type {KeyboardEvent} */ (event);
      const jump = ctrlKey || metaKey;
      if (!(jump && /^[zy]$/i.test(key) && input.value === text)) event.stopPropagation();
      if (key === "Enter" && (jump || altKey)) close(true, [0, 0], true);
      else if (key === "Enter") close(true, [shiftKey ? -1 : 1, 0]);
      else if (key === "Tab") close(true, [0, shiftKey ? -1 : 1]);
      else if (key === "Escape") close(false, [0, 0]);
      else return;
      event.preventDefault();
    });
    if (choices) input.addEventListener("change", () => close(true, [0, 0]));
    input.addEventListener("blur", () => {
      close(true, [0, 0]);
      close(false, [0, 0]);
    });
    cell.append(input, fault);
    input.focus();
    if (typed === undefined && input instanceof HTMLInputElement) input.select();
  }
}

/** @param {string} text */
function option(text) {
  return element("option", { value: text }, text);
}

/** The cells of a line from one to another, both included. @param {number[]} from @param {number[]} to @returns {[number, number][]} */
function crossed(from, to) {
  const n = Math.max(Math.abs(to[0] - from[0]), Math.abs(to[1] - from[1]));
  const at = (/** @type {number} */ k, /** @type {number} */ axis) => Math.round(from[axis] + ((to[axis] - from[axis]) * k) / n);
  return Array.from({ length: n + 1 }, (_, k) => [at(k, 0), at(k, 1)]);
}
