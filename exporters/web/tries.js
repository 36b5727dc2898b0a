// Suggested edits, with buttons that do them, and what they change.

import { partName } from "./anatomy.js";
import { element, quoted } from "./dom.js";
import { shownAs } from "./format.js";
import { OF_TEXT } from "./session.js";
import { sheetsOf } from "./sheet.js";
import { cellAddress, cellName } from "./words.js";

/** @typedef {import("./graph.js").Block} Block */
/** @typedef {import("./session.js").Session} Session */
/** @typedef {import("./sheet.js").Suggestion} Suggestion */
/** @typedef {(block: Block, i: number, j: number) => void} Go */

/** A list of suggested edits: append its `node`; `draw` it after each change. */
export class Tries {
  /** @param {Session} session @param {Suggestion[]} suggestions @param {Go} go shows a cell
   * @param {string} [sheet] that the list stands on */
  constructor(session, suggestions, go, sheet = "") {
    this.sheet = sheet;
    this.session = session;
    this.suggestions = suggestions;
    this.go = go;
    this.node = element("ol", { class: "tries" });
    /** What they watch shows without any edit. */
    this.built = suggestions.map(({ watch, decimals }) => watch && this.watched(watch, session.baseline, decimals));
    this.draw();
  }

  draw() {
    const focused = this.node.contains(document.activeElement) ? document.activeElement?.getAttribute("data-try") : null;
    this.node.replaceChildren(...this.suggestions.map((suggestion, k) => this.item(suggestion, k)));
    if (focused) /** @type {HTMLElement | null} */ (this.node.querySelector(`[data-try="${focused}"]`))?.focus();
  }

  /** @param {Suggestion} suggestion @param {number} k */
  item({ text, edits, watch, decimals }, k) {
    const { session } = this;
    const { graph, live, baseline } = session;
    const cells = edits.map(([name, i, j, value]) => ({ block: graph.get(name), i, j, value }));
    const [{ block, i, j, value }] = cells;
    const canDo = value !== null;
    const isDone = canDo && cells.every((cell) => live.isSet(cell.block, cell.i, cell.j) && live.value(cell.block, cell.i, cell.j) === cell.value);
    const act = () => {
      if (!canDo) this.go(block, i, j);
      else if (!isDone) session.setAll(cells);
      else for (const cell of cells) session.unset(cell.block, cell.i, cell.j);
    };
    const verb = isDone ? "Put back" : canDo ? "Do it" : "Show it";
    /** @type {HTMLElement[]} */
    const parts = [element("button", { type: "button", class: isDone ? "" : "primary", "data-try": k + 1, onclick: act, "aria-label": `${verb}: ${text}` }, verb)];
    if (canDo) parts.push(this.way(block, i, j));
    const told = [];
    if (watch) {
      const now = this.watched(watch, live, decimals);
      const before = cells.every((cell) => OF_TEXT.test(cell.block.name)) ? this.built[k] : this.watched(watch, baseline, decimals);
      told.push(" → ", this.way(graph.get(watch[0]), watch[1], watch[2]), " shows ", element("b", {}, now), now === before ? "" : `, before ${before}`);
    }
    return element("li", { class: isDone ? "done" : "" }, text, element("div", { class: "told", role: "status" }, ...parts.flatMap((part) => [part, " "]), ...told));
  }

  /** A link to a cell by its address. @param {Block} block @param {number} i @param {number} j */
  way(block, i, j) {
    const follow = (/** @type {Event} */ event) => {
      event.preventDefault();
      this.go(block, i, j);
    };
    return element("a", { href: "#", class: "way", title: cellName(block, i, j), onclick: follow }, this.nameOf(block, i, j));
  }

  /** What a cell is called: on a sheet that the page has, by its address. @param {Block} block @param {number} i @param {number} j */
  nameOf(block, i, j) {
    const sheet = block.place?.sheet ?? "";
    const address = cellAddress(block, i, j);
    if (sheetsOf(this.session.graph).has(sheet)) return sheet === this.sheet ? address.slice(address.lastIndexOf("!") + 1) : address;
    if (block.leaf === "switch") return partName(block);
    if (block.name === "prompt.pick") return `token ${i}`;
    if (block.name === "probs") return quoted(this.session.label("vocab_out", j));
    return block.rows * block.cols === 1 ? block.name : cellName(block, i, j);
  }

  /** The text of a cell in a run, or its percentage, with so many decimals. @param {[string, number, number]} watch
   * @param {import("./evaluator.js").Run} run @param {number} [decimals] */
  watched([name, i, j], run, decimals = 0) {
    const block = this.session.graph.get(name);
    const value = run.value(block, i, j);
    return decimals ? shownAs(value, `0.${"0".repeat(decimals)}%`) : this.textOf(block, i, j, value);
  }

  /** A value as its sheet shows it. @param {Block} block @param {number} i @param {number} j @param {any} value */
  textOf(block, i, j, value) {
    const sheet = block.place && sheetsOf(this.session.graph).get(block.place.sheet);
    const held = sheet && sheet.at(...sheet.cellOf(block, i, j));
    return shownAs(value, held ? sheet.data.styles[held.style][1] : "0.000");
  }
}
