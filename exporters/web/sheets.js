// Whole sheets of a workbook as it shows them: texts, tables, colours, links, charts; with the edits
// that they suggest, and beside them the cell that is looked at.

import { chartFigure } from "./charts.js";
import { byId, element } from "./dom.js";
import { shownAs } from "./format.js";
import { Grid } from "./grid.js";
import { CellPanel, shade, typedAs, valueText } from "./inspect.js";
import { sheetsOf } from "./sheet.js";
import { Tries } from "./tries.js";
import { CellError } from "./values.js";
import { letters } from "./words.js";

/** @typedef {import("./graph.js").Block} Block */
/** @typedef {import("./session.js").Session} Session */
/** @typedef {import("./sheet.js").Held} Held */
/** @typedef {import("./sheet.js").Sheet} Sheet */
/** @typedef {import("./sheet.js").Suggestion} Suggestion */

const ONE_COLUMN = "(max-width: 820px)";
const START_SHEET = "Start";
const USUAL = { width: 65, height: 20, side: 38 };
const ENDED = /[.:!?)’”]$/;
const FAINTEST_PEAK = 1e-9;
const FULL_INK = "16";
const MARKS = ["when", "unlike", "beyond"]; // rules that give a cell a style; others shade it
const FARTHER = 3; // how much more a column counts than a row, from a sheet's corner
/** @type {WeakMap<HTMLElement, Sheets>} */
const shownSheets = new WeakMap();

/** Shows the sheets of a book, or shows anew what changed. @param {Session} session @param {HTMLElement} container */
export function showSheets(session, container) {
  let sheets = shownSheets.get(container);
  if (!sheets || sheets.session !== session) shownSheets.set(container, (sheets = new Sheets(session, container)));
  sheets.refresh();
}

/** The sheets of a book, one of them in view. */
class Sheets {
  /** @param {Session} session @param {HTMLElement} container */
  constructor(session, container) {
    this.session = session;
    this.container = container;
    this.byName = sheetsOf(session.graph);
    this.all = [...this.byName.values()];
    /** @type {Map<Sheet, Page>} */ this.pages = new Map();
    this.tabs = this.all.map((sheet, k) => {
      const show = () => this.show(sheet);
      return element("button", { role: "tab", id: `tab-${k}`, title: sheet.purpose, onclick: show }, sheet.name);
    });
    this.panel = element("div", { role: "tabpanel", class: "sheet-panel" });
    const list = element("div", { role: "tablist", class: "sheet-tabs", "aria-label": "sheets", onkeydown: (/** @type {KeyboardEvent} */ event) => this.turn(event) }, ...this.tabs);
    container.replaceChildren(element("div", { class: "sheets" }, list, this.panel));
    const box = element("div", { role: "region", "aria-label": "the cell" });
    this.tries = element("div", {});
    this.aside = element("div", { class: "sheet-side" }, box, this.tries);
    this.cell = new CellPanel(session, box, (block, i, j) => this.goToBlock(block, i, j));
    const narrow = matchMedia(ONE_COLUMN);
    const place = () => (narrow.matches ? this.panel : byId("beside")).append(this.aside);
    narrow.addEventListener("change", place);
    place();
    session.subscribe(() => this.refresh());
    this.sheet = this.all[0];
    if (this.sheet) this.show(this.sheet);
  }

  get page() {
    let page = this.pages.get(this.sheet);
    if (!page) this.pages.set(this.sheet, (page = new Page(this, this.sheet)));
    return page;
  }

  /** @param {Sheet} sheet */
  show(sheet) {
    this.sheet = sheet;
    for (const [k, tab] of this.tabs.entries()) {
      const isHere = this.all[k] === sheet;
      tab.setAttribute("aria-selected", String(isHere));
      tab.tabIndex = isHere ? 0 : -1;
      if (isHere) this.panel.setAttribute("aria-labelledby", tab.id);
    }
    this.tabs[this.all.indexOf(sheet)].scrollIntoView({ block: "nearest", inline: "nearest" });
    this.panel.querySelector(".sheet")?.remove();
    this.panel.prepend(this.page.node);
    this.aside.hidden = !this.page.grid;
    document.body.classList.toggle("reading", this.aside.hidden);
    this.tries.replaceChildren(...this.page.tried);
    this.cell.here = null;
    this.refresh();
    this.page.restore();
  }

  /** Draws the sheet in view anew, if one sees it. */
  refresh() {
    if (this.sheet && !this.container.hidden) this.page.refresh();
  }

  /** @param {KeyboardEvent} event */
  turn({ key }) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[key];
    if (!step) return;
    const next = (this.all.indexOf(this.sheet) + step + this.all.length) % this.all.length;
    this.show(this.all[next]);
    this.tabs[next].focus();
  }

  /** Goes to a cell of a sheet. @param {string} name @param {number} row @param {number} col */
  goTo(name, row, col) {
    const sheet = this.byName.get(name);
    if (!sheet) return;
    const { here } = this.cell;
    if (sheet !== this.sheet) this.show(sheet);
    this.cell.here = here;
    this.page.grid?.go(row, col);
  }

  /** Goes to a cell of a block: on its sheet, or where the page shows it. @param {Block} block @param {number} i @param {number} j */
  goToBlock(block, i, j) {
    const sheet = block.place && this.byName.get(block.place.sheet);
    if (sheet) this.goTo(sheet.name, ...sheet.cellOf(block, i, j));
    else this.session.select(block, i, j);
  }

  /** The value of what a cell holds. @param {Held | undefined} held @returns {any} */
  valueOf(held) {
    const { live } = this.session;
    if (!held) return null;
    if (held.block) return live.value(held.block, held.i, held.j);
    return held.formula ? live.formulaValue(held.formula) : held.value;
  }
}

/** One sheet in the document. */
class Page {
  /** @param {Sheets} sheets @param {Sheet} sheet */
  constructor(sheets, sheet) {
    this.sheets = sheets;
    this.sheet = sheet;
    this.session = sheets.session;
    const { data } = sheet;
    /** @type {Map<number, any[]>} */ this.links = new Map((data.links ?? []).map((/** @type {any[]} */ link) => [keyAt(link[0], link[1]), link]));
    this.notes = new Map((data.notes ?? []).map((/** @type {any[]} */ note) => [keyAt(note[0], note[1]), note[2]]));
    this.lists = new Map((data.lists ?? []).map((/** @type {number[]} */ list) => [keyAt(list[0], list[1]), list[2]]));
    /** @type {Map<string, number>} */ this.peaks = new Map();
    /** @type {Suggestion[]} */ this.suggestions = data.suggestions ?? [];
    this.widths = new Map(data.widths);
    this.heights = new Map(data.heights);
    const rows = this.suggestions.map((suggestion) => suggestion.row ?? 0);
    const besideCells = rows.some((row) => sheet.columns(row).some((/** @type {number} */ col) => sheet.at(row, col)?.block));
    // The list beside the grid repeats these rows. Rows with cells to type in stay.
    for (const row of rows.length && !besideCells ? [Math.min(...rows) - 1, ...rows] : []) this.heights.set(row, 0);
    for (let row = data.top; row < sheet.rows && !sheet.columns(row).length; row++) this.heights.set(row, 0);
    this.tries = new Tries(this.session, this.suggestions, (block, i, j) => sheets.goToBlock(block, i, j), sheet.name);
    /** @type {HTMLElement[]} */ this.tried = [];
    this.node = element("div", { class: "sheet" });
    this.charts = element("div", { class: "charts" });
    /** @type {Grid | null} */ this.grid = null;
    if (sheet.name === START_SHEET) this.node.append(this.flow());
    else this.build();
  }

  /** The sheet as a grid, with what is told above it. */
  build() {
    const { sheet } = this;
    this.grid = new Grid(this.source());
    this.grid.node.append(this.charts);
    const legend = (sheet.data.legend ?? []).map((/** @type {[number, string]} */ [style, text]) => element("span", { class: `cell ${this.look(style)[0]}` }, text));
    const head = element("div", { class: "sheet-head" }, element("p", {}, sheet.purpose), element("div", { class: "legend", "aria-label": "colours" }, ...legend));
    if (this.suggestions.length) this.tried.push(element("h2", {}, "Three things to try here"), this.tries.node);
    this.node.append(head, this.grid.node);
    const places = [...(sheet.data.regions ?? []), ...(sheet.data.texts ?? []).map((/** @type {any[]} */ [row, [col]]) => ["", row, col])];
    const first = places.sort((a, b) => Number(!a[0]) - Number(!b[0]) || a[1] + FARTHER * a[2] - b[1] - FARTHER * b[2])[0];
    if (first) [this.grid.row, this.grid.col] = [first[1], first[2]];
  }

  /** @param {number} style @returns {[string, string | undefined]} classes and number format */
  look(style) {
    return this.sheet.data.styles[style];
  }

  // --- a sheet of text ---------------------------------------------------------------------

  /** Start: lines of text one after another. */
  flow() {
    const { sheet } = this;
    const { data } = sheet;
    const flow = element("div", { class: "flow" }, element("h2", {}, data.title), element("p", { class: "cell grey i" }, sheet.purpose));
    let [text, line] = ["", element("p", {})];
    for (let row = data.top; row < sheet.rows; row++) {
      const columns = sheet.columns(row);
      const first = String(sheet.at(row, columns[0])?.value ?? "");
      if (row + 1 === this.suggestions[0]?.row) flow.append(element("h3", {}, first), this.tries.node);
      if (this.heights.get(row) === 0) continue;
      if (columns.length > 1) flow.append(element("p", { class: "line" }, ...columns.map((col) => this.inline(row, col))));
      else if (columns[0] === 0) flow.append(element("h3", {}, first));
      else if (first && text && !ENDED.test(text)) line.append(` ${first}`);
      else if (first) flow.append((line = element("p", {}, first)));
      text = columns[0] === 0 ? "" : first;
    }
    return flow;
  }

  /** A cell within text. @param {number} row @param {number} col */
  inline(row, col) {
    const node = element("span", {});
    this.draw(row, col, node);
    node.classList.add("cell");
    return node;
  }

  // --- what is shown -----------------------------------------------------------------------

  /** The sheet as what a grid shows. @returns {import("./grid.js").Source} */
  source() {
    const { sheet, sheets, session } = this;
    const { data } = sheet;
    const [rows, cols] = this.extent();
    const textOf = (/** @type {number} */ i, /** @type {number} */ j) => {
      const value = sheets.valueOf(sheet.at(i, j));
      return value === null ? "" : typeof value === "number" ? String(value) : String(valueText(value || " ")).trim();
    };
    return {
      ...{ label: `sheet ${sheet.name}`, rows, cols, top: data.top, frozen: data.frozen ?? [0, 0], headWidth: USUAL.side },
      height: (i) => this.heights.get(i) ?? USUAL.height,
      width: (j) => this.widths.get(j) ?? USUAL.width,
      rowHead: (i) => String(i + 1),
      colHead: letters,
      columns: (i, left, right) => this.columns(i, left, right),
      draw: (i, j, node) => this.draw(i, j, node),
      name: (i, j) => `${letters(j)}${i + 1}`,
      typeable: (i, j) => !!sheet.at(i, j)?.block?.isInput,
      text: (i, j) => (sheet.at(i, j)?.block?.isInput ? textOf(i, j) : ""),
      choices: (i, j) => data.choices?.[this.lists.get(keyAt(i, j)) ?? -1] ?? null,
      value: (i, j) => sheets.valueOf(sheet.at(i, j)),
      paints: (i, j) => (this.isPainted(i, j) ? FULL_INK : ""),
      edit: (i, j, text) => this.edit(i, j, text),
      commit: (edits, tag) => session.setAll(edits, tag),
      complain: (why) => session.complain(why),
      open: (i, j) => this.follow(i, j),
      select: (i, j) => this.tell(i, j),
      merged: (i, j) => sheet.merged(i, j),
    };
  }

  /** Rows and columns, with those that charts cover. @returns {[number, number]} */
  extent() {
    let { rows, cols } = this.sheet;
    for (const { at, size } of this.sheet.data.charts ?? []) {
      rows = Math.max(rows, at[0] + Math.ceil(size[1] / USUAL.height) + 1);
      let [col, width] = [at[1], 0];
      for (; width < size[0]; col++) width += this.widths.get(col) ?? USUAL.width;
      cols = Math.max(cols, col + 1);
    }
    return [rows, cols];
  }

  /** The columns of a row that hold something, and the text from the left that runs into view.
   * @param {number} row @param {number} left @param {number} right */
  columns(row, left, right) {
    const all = this.sheet.columns(row);
    const first = all.findIndex((col) => col >= left);
    const from = first < 0 ? all.length : first;
    return all.slice(Math.max(0, from - 1)).filter((col) => col < right);
  }

  /** @param {number} row @param {number} col @param {HTMLElement} node */
  draw(row, col, node) {
    const held = this.sheet.at(row, col);
    node.replaceChildren();
    node.removeAttribute("title");
    node.style.setProperty("background", "");
    if (!held) return;
    const value = this.sheets.valueOf(held);
    const [classes, format] = this.look(held.style);
    const text = shownAs(value, format);
    for (const name of classes.split(" ")) if (name) node.classList.add(name);
    if (!/(^| )[rc]( |$)/.test(classes)) node.classList.toggle(typeof value === "number" ? "r" : "c", typeof value === "number" || typeof value === "boolean");
    if (held.block && this.session.live.isSet(held.block, held.i, held.j)) node.classList.add("f-differs");
    if (value instanceof CellError) node.classList.add("error");
    const note = this.notes.get(keyAt(row, col));
    if (note) node.classList.add("noted");
    if (note) node.title = note;
    this.dress(row, col, value, node);
    const follow = (/** @type {Event} */ event) => {
      event.preventDefault();
      this.follow(row, col);
    };
    const link = { class: "way text", href: "#", tabindex: this.grid ? -1 : 0, onclick: follow };
    const told = this.links.has(keyAt(row, col)) ? element("a", link, text) : element("span", { class: "text" }, text);
    const room = typeof value === "string" && this.grid ? this.room(row, col, / r |^r | r$/.test(classes)) : 0;
    if (room) told.style.maxWidth = `${room}px`;
    node.append(told);
  }

  /** The pixels of a text up to the next cell that is not blank; 0: there is none.
   * @param {number} row @param {number} col @param {boolean} toLeft */
  room(row, col, toLeft) {
    const { starts } = /** @type {Grid} */ (this.grid).cols;
    const columns = this.sheet.columns(row);
    const next = columns[columns.indexOf(col) + (toLeft ? -1 : 1)];
    const last = this.sheet.merged(row, col)?.[3] ?? col + 1;
    if (next === undefined || (!toLeft && next < last)) return 0;
    return toLeft ? starts[col + 1] - starts[next + 1] : starts[next] - starts[col];
  }

  /** The colours that depend on a cell's value: of its rules, the first that holds counts, as in spreadsheets.
   * @param {number} row @param {number} col @param {any} value @param {HTMLElement} node */
  dress(row, col, value, node) {
    let [isMarked, isShaded] = [false, typeof value !== "number"];
    for (const [kind, given, rects, conditions] of this.sheet.data.dressings ?? []) {
      for (let k = 0; k < rects.length; k += 4) {
        const [top, bottom, left, right] = rects.slice(k, k + 4);
        if (row < top || row >= bottom || col < left || col >= right) continue;
        if (!MARKS.includes(kind)) {
          if (!isShaded) this.colour(kind, [top, bottom, left, right], value, node);
          isShaded = true;
        } else if (!isMarked) {
          const condition = conditions?.[conditions.length > 1 ? (row - top) * (right - left) + col - left : 0];
          isMarked = this.holds(kind, given, condition, value);
          if (isMarked) node.classList.add(...(kind === "when" ? this.look(given)[0].split(" ") : ["f-differs"]));
        }
      }
    }
  }

  /** Whether a rule marks a cell. @param {string} kind @param {any} given @param {any} condition @param {any} value */
  holds(kind, given, condition, value) {
    if (kind === "when") return this.session.live.formulaValue(condition) === true;
    return kind === "unlike" ? value !== given : typeof value === "number" && Math.abs(value) > given;
  }

  /** @param {string} kind @param {number[]} rect @param {number} value @param {HTMLElement} node */
  colour(kind, rect, value, node) {
    const part = Math.max(0, Math.min(1, value));
    if (kind === "bar") node.style.setProperty("background", `linear-gradient(to right, var(--bar) ${100 * part}%, transparent 0)`);
    else if (kind === "scale") shade(node, "full", part, 1);
    else if (kind === "ink" || kind === "paper") shade(node, "stroke", value, 16);
    else shade(node, "", value, this.peak(rect));
  }

  /** The largest size of the numbers of a rectangle. @param {number[]} rect */
  peak(rect) {
    const key = rect.join(" ");
    let found = this.peaks.get(key);
    if (found === undefined) {
      found = FAINTEST_PEAK;
      for (let row = rect[0]; row < rect[1]; row++)
        for (let col = rect[2]; col < rect[3]; col++) {
          const value = this.sheets.valueOf(this.sheet.at(row, col));
          if (typeof value === "number" && Math.abs(value) > found) found = Math.abs(value);
        }
      this.peaks.set(key, found);
    }
    return found;
  }

  // --- what one does -----------------------------------------------------------------------

  /** Follows a cell's link. @param {number} row @param {number} col */
  follow(row, col) {
    const link = this.links.get(keyAt(row, col));
    if (!link) return false;
    const [, , name, i, j, isBlock] = link;
    if (isBlock) this.session.select(name, i, j);
    else this.sheets.goTo(name, i, j);
    return true;
  }

  /** Whether the pointer paints into a cell: one that is typed, and as dark as its number.
   * @param {number} row @param {number} col */
  isPainted(row, col) {
    return (this.sheet.data.dressings ?? []).some((/** @type {any[]} */ [kind, , rects]) => {
      for (let k = 0; kind === "paper" && k < rects.length; k += 4)
        if (rects[k] <= row && row < rects[k + 1] && rects[k + 2] <= col && col < rects[k + 3]) return true;
      return false;
    });
  }

  /** What a text typed into a cell does, or why it cannot. Without a text the cell is put back; one that
   * holds a text is blank then, and one that is painted has no ink.
   * @param {number} row @param {number} col @param {string | null} text @returns {{edit?: import("./session.js").Edit, why: string}} */
  edit(row, col, text) {
    const held = this.sheet.at(row, col);
    if (!held?.block?.isInput) return { why: "only what is typed in can be typed over; select yellow cells" };
    const { block, i, j } = held;
    if (text === null) {
      const blank = this.isPainted(row, col) ? 0 : this.look(held.style)[1] === "@" ? "" : undefined;
      return { edit: { block, i, j, value: blank }, why: "" };
    }
    const isText = this.look(held.style)[1] === "@" || this.lists.has(keyAt(row, col));
    const before = this.sheets.valueOf(held);
    const { value, why } = isText && typeof before !== "number" ? { value: text, why: "" } : typedAs(text, before);
    const broken = why || this.broken(row, col, value);
    return broken ? { why: broken } : { edit: { block, i, j, value }, why: "" };
  }

  /** The rule that a value breaks. @param {number} row @param {number} col @param {any} value @returns {string} */
  broken(row, col, value) {
    for (const [whole, low, high, message, rects] of this.sheet.data.rules ?? [])
      for (let k = 0; k < rects.length; k += 4) {
        const here = rects[k] <= row && row < rects[k + 1] && rects[k + 2] <= col && col < rects[k + 3];
        if (here && !(typeof value === "number" && low <= value && value <= high && (!whole || Number.isInteger(value)))) return message;
      }
    return "";
  }

  /** Shows a cell beside the grid. @param {number} row @param {number} col */
  tell(row, col) {
    const held = this.sheet.at(row, col);
    const note = this.notes.get(keyAt(row, col)) ?? "";
    if (held?.block) return this.sheets.cell.show(held.block, held.i, held.j, note);
    const value = this.sheets.valueOf(held);
    const name = element("h2", {}, element("code", {}, `${this.sheet.name}!${letters(col)}${row + 1}`));
    const kind = held?.formula ? "computed for this sheet alone" : held ? "a label" : "blank";
    this.sheets.cell.into.replaceChildren(name, element("p", {}, kind + (held?.formula ? `: ${valueText(value)}` : "")), element("p", { class: "note" }, note));
    this.sheets.cell.here = null;
  }

  /** Scrolls to where one was. */
  restore() {
    if (this.grid) this.grid.select(this.grid.row, this.grid.col);
  }

  /** Draws what may have changed. */
  refresh() {
    this.peaks.clear();
    this.tries.draw();
    if (!this.grid) return;
    this.grid.draw();
    this.tell(this.grid.row, this.grid.col);
    const charts = (this.sheet.data.charts ?? []).map((/** @type {any} */ chart) => this.chart(chart));
    this.charts.replaceChildren(...charts);
  }


  // --- charts ------------------------------------------------------------------------------

  /** @param {any} chart */
  chart(chart) {
    const series = chart.series.map((/** @type {any} */ one) => ({
      name: Array.isArray(one.name) ? String(this.area(one.name)[0] ?? "") : (one.name ?? ""),
      x: this.area(one.x),
      y: this.area(one.y ?? nextColumn(one.x)).map((value) => (typeof value === "number" ? value : NaN)),
      labels: one.labels ?? [],
      colour: one.colour ?? "",
      joined: !!one.joined,
      bears: one.bears ?? "",
    }));
    const figure = chartFigure({ ...chart, series });
    const { rows, cols } = /** @type {Grid} */ (this.grid);
    figure.style.left = `${USUAL.side + cols.starts[chart.at[1]]}px`;
    figure.style.top = `${22 + rows.starts[chart.at[0]]}px`;
    return figure;
  }

  /** The values of an area. @param {any[]} area @returns {any[]} */
  area([name, top, bottom, left, right, isBlock]) {
    const found = [];
    const block = isBlock ? this.session.graph.get(name) : null;
    const sheet = this.sheets.byName.get(name);
    for (let row = top; row < bottom; row++)
      for (let col = left; col < right; col++)
        found.push(block ? this.session.live.value(block, row, col) : sheet ? this.sheets.valueOf(sheet.at(row, col)) : this.session.live.sheetValue(name, row, col));
    return found.map((value) => (value instanceof CellError ? NaN : value));
  }
}

/** @param {number} row @param {number} col */
function keyAt(row, col) {
  return row * 16384 + col;
}

/** @param {any[]} area @returns {any[]} */
function nextColumn([name, top, bottom, left, right, isBlock]) {
  return [name, top, bottom, left + 1, right + 1, isBlock];
}
