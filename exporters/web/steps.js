// A head in five steps, for a reader who has never seen one: query and key, score, share, value,
// output. Each step is a row of cells and one sentence, with the numbers as they are now.

import { brief, element, percent, quoted } from "./dom.js";
import { atMainPlace, givesTo } from "./parts.js";
import { best } from "./session.js";

/** @typedef {import("./session.js").Session} Session */
/** @typedef {import("./graph.js").Block} Block */
/** @typedef {import("./parts.js").Part} Part */
/** The blocks of a head. @typedef {{q: Block, k: Block, scores: Block, pattern: Block, v: Block, result: Block}} Head */
/** A cell: above it `name`, in it `text`; it opens a cell of a block. @typedef {{name: string, text: string, size: number, block: Block, i: number, j: number}} Shown */
/** @typedef {{title: string, sentence: string, rows: {name: string, cells: Shown[]}[], isPlain: boolean}} HeadStep */

const MOST_CELLS = 24; // in a row: of more, those that count most

/** The blocks of a head whose shares are a softmax of queries times keys; null for another part.
 * @param {Session} session @param {Part} part @returns {Head | null} */
export function headBlocks({ graph }, { kind, block }) {
  const path = block.name.slice(0, -block.leaf.length - 1);
  if (kind !== "head" || !["scores", "pattern", "z"].every((leaf) => graph.has(`${path}.${leaf}`))) return null;
  const [scores, pattern, z] = ["scores", "pattern", "z"].map((leaf) => graph.get(`${path}.${leaf}`));
  const [[q, k], [mixed, v]] = [scores, z].map((each) => each.operands.map((operand) => graph.blocks[operand.k]));
  if (!q || !k || !v || mixed !== pattern || q.cols !== k.cols || q.rows !== pattern.rows || k.rows !== pattern.cols || v.rows !== pattern.cols) return null;
  return { q, k, scores, pattern, v, result: block };
}

/** How scores come from sums of products, in words: times one factor, where all have it.
 * @param {[number, number][]} pairs each sum with its score */
function scaled(pairs) {
  const [sum, score] = pairs.reduce((a, b) => (Math.abs(b[0]) > Math.abs(a[0]) ? b : a));
  const factor = score / sum;
  const isOne = pairs.every(([x, y]) => Math.abs(factor * x - y) < 1e-9 * Math.max(1, Math.abs(y)));
  return isOne ? `, times ${brief(factor)}` : ", scaled and shifted";
}

/** The steps of one head. */
export class HeadSteps {
  /** @param {Session} session @param {HTMLElement} container @param {() => void} onClose */
  constructor(session, container, onClose) {
    this.session = session;
    this.container = container;
    this.onClose = onClose;
    this.at = 0;
    this.name = "";
    this.title = element("h3", { tabindex: -1 });
    this.rows = element("div", {});
    this.sentence = element("p", { class: "flow-told", "aria-live": "polite" });
    this.back = element("button", { type: "button", onclick: () => this.go(this.at - 1) }, "Back");
    this.next = element("button", { type: "button", class: "primary", onclick: () => this.go(this.at + 1) });
    this.all = element("button", { type: "button" }, "All cells of this head");
    this.close = element("button", { type: "button", onclick: () => this.hide() }, "Close the steps");
    container.append(this.title, this.sentence, element("div", { class: "flow-actions" }, this.back, this.next, this.all, this.close), this.rows);
    container.hidden = true;
  }

  /** Begins with the first step of a head. @param {Part} part */
  open(part) {
    this.name = part.name;
    this.at = 0;
    this.container.hidden = false;
    this.draw(part);
    this.title.focus();
  }

  hide() {
    const hadFocus = this.container.contains(document.activeElement);
    this.name = "";
    this.container.hidden = true;
    if (hadFocus) this.onClose();
  }

  /** @param {number} step */
  go(step) {
    if (step > 4) return this.hide();
    this.at = Math.max(0, step);
    if (this.part) this.draw(this.part);
    return undefined;
  }

  /** Shows the step, with the numbers as they are now. @param {Part} whole */
  draw(whole) {
    const head = headBlocks(this.session, whole);
    if (!head) return this.hide();
    this.part = whole;
    const part = atMainPlace(whole);
    const { title, sentence, rows, isPlain } = this.step(head, part, whole);
    this.title.textContent = `${part.name[0].toUpperCase()}${part.name.slice(1)}, step ${this.at + 1} of 5: ${title}`;
    this.sentence.textContent = sentence;
    const sizes = rows[rows.length - 1].cells.map(({ size }) => size);
    const order = [...sizes.keys()].sort((a, b) => sizes[b] - sizes[a]);
    const kept = new Set(order.slice(0, MOST_CELLS));
    const omitted = sizes.length - kept.size;
    this.rows.replaceChildren(...rows.map(({ name, cells }) => element("div", { class: "five-row", role: "group", "aria-label": name },
      element("span", { class: "told" }, name), ...cells.map((cell, k) => kept.has(k) && this.cell(cell, k === order[0], isPlain)))),
      omitted ? element("p", { class: "remark" }, `${omitted} smaller numbers are left out.`) : "");
    this.back.disabled = !this.at;
    this.next.textContent = this.at < 4 ? "Next step" : "Done";
    this.all.onclick = () => this.session.select(head.pattern, part.ribbons[0].to, 0);
    return undefined;
  }

  /** @param {Shown} cell @param {boolean} isMost @param {boolean} isPlain */
  cell({ name, text, block, i, j }, isMost, isPlain) {
    const says = (isPlain ? name : `number ${name}`) + `: ${text}`;
    return element("button", { type: "button", class: isMost ? "five-cell most" : "five-cell", "aria-label": isMost ? `${says}, the largest` : says, onclick: () => this.session.select(block, i, j) },
      element("span", {}, name), element("b", {}, text));
  }

  /** @param {Head} head @param {Part} part at one word @param {Part} whole @returns {HeadStep} */
  step(head, part, whole) {
    const { session } = this;
    const row = part.ribbons[0].to;
    const most = part.ribbons.reduce((a, b) => (b.share > a.share ? b : a));
    const [looking, read] = [session.label("token", row), session.label(most.axis, most.at)].map(quoted);
    const number = (/** @type {Block} */ block, /** @type {number} */ i, /** @type {number} */ j) => Number(session.live.value(block, i, j));
    const words = (/** @type {Block} */ block, /** @type {(k: number) => number} */ of, /** @type {(x: number) => string} */ told) => part.ribbons.map(({ axis, at }, k) => ({ name: session.label(axis, at), text: told(of(k)), size: of(k), block, i: row, j: block.cols === head.pattern.cols ? at : 0 }));
    if (this.at === 0) {
      const products = Array.from({ length: head.q.cols }, (_, j) => number(head.q, row, j) * number(head.k, most.at, j));
      const best = products.reduce((a, x, j) => (Math.abs(x) > Math.abs(products[a]) ? j : a), 0);
      const sum = products.reduce((a, x) => a + x, 0);
      const cells = (/** @type {Block} */ block, /** @type {number} */ i) => products.map((x, j) => ({ name: String(j), text: brief(number(block, i, j)), size: Math.abs(x), block, i, j }));
      const told = products.map((x, j) => ({ name: String(j), text: brief(x), size: Math.abs(x), block: head.scores, i: row, j: most.at }));
      return {
        title: "query and key",
        sentence: `The query of ${looking} says what it looks for; the key of ${read} says what it offers. Multiply them number by number, and add: ${brief(sum)}. The largest product, with or without its sign, is that of number ${best}: ${brief(number(head.q, row, best))} × ${brief(number(head.k, most.at, best))} = ${brief(products[best])}.`,
        rows: [{ name: `query of ${looking}`, cells: cells(head.q, row) }, { name: `key of ${read}`, cells: cells(head.k, most.at) }, { name: "products", cells: told }],
        isPlain: false,
      };
    }
    if (this.at === 1) {
      const score = (/** @type {number} */ k) => number(head.scores, row, part.ribbons[k].at);
      const product = (/** @type {number} */ k) => Array.from({ length: head.q.cols }, (_, j) => number(head.q, row, j) * number(head.k, part.ribbons[k].at, j)).reduce((a, x) => a + x, 0);
      const first = part.ribbons.reduce((a, _, k) => (score(k) > score(a) ? k : a), 0);
      return {
        title: "score",
        sentence: `The score of a word says how well its key fits the query: the sum of the products${scaled(part.ribbons.map((_, k) => [product(k), score(k)]))}. ${quoted(session.label(most.axis, part.ribbons[first].at))} has the highest score, ${brief(score(first))}. Scores may be negative: only their differences count.`,
        rows: [{ name: `scores for ${looking}`, cells: words(head.scores, score, brief) }],
        isPlain: true,
      };
    }
    if (this.at === 2) {
      return {
        title: "share",
        sentence: `Softmax makes shares of the scores: all are positive, and together they are 100 %. ${looking} gives ${read} ${percent(most.share)} of its attention.`,
        rows: [{ name: `shares of ${looking}`, cells: words(head.pattern, (k) => part.ribbons[k].share, (share) => `${(100 * share).toFixed(1)} %`) }],
        isPlain: true,
      };
    }
    if (this.at === 3) {
      const cells = Array.from({ length: head.v.cols }, (_, j) => number(head.v, most.at, j));
      const best = cells.reduce((a, x, j) => (Math.abs(x) > Math.abs(cells[a]) ? j : a), 0);
      const shown = (/** @type {number} */ factor) => cells.map((x, j) => ({ name: String(j), text: brief(factor * x), size: Math.abs(x), block: head.v, i: most.at, j }));
      return {
        title: "value",
        sentence: `The value of ${read} is what it passes on. The head multiplies the value by the share. The strongest number is number ${best}: ${percent(most.share)} of ${brief(cells[best])} is ${brief(most.share * cells[best])}.`,
        rows: [{ name: `value of ${read}`, cells: shown(1) }, { name: "times its share", cells: shown(most.share) }],
        isPlain: false,
      };
    }
    return this.output(part, whole, looking, (of) => words(head.result, of, brief));
  }

  /** The last step. @param {Part} part at one word @param {Part} whole @param {string} looking
   * @param {(of: (k: number) => number) => Shown[]} cells @returns {HeadStep} */
  output(part, whole, looking, cells) {
    const { session } = this;
    const answer = quoted(session.label("vocab_out", this.word()));
    const of = (/** @type {{adds: number, later: number}} */ each) => (Math.abs(part.adds) < Math.abs(part.later) ? each.later : each.adds);
    const best = part.ribbons.reduce((a, b) => (of(b) > of(a) ? b : a));
    const inAll = Math.abs(whole.later - part.later) > 1e-6 ? ` At all words, the head ${givesTo(whole, answer)}.` : "";
    const from = of(best) > 0 ? ` ${quoted(session.label(best.axis, best.at))} alone adds ${brief(of(best))}.` : "";
    return {
      title: "output",
      sentence: `The sum of these values is written to the stream of ${looking}. It ${givesTo(part, answer)}.${from}${inAll}`,
      rows: [{ name: `to the logit of ${answer}, from`, cells: cells((k) => of(part.ribbons[k])) }],
      isPlain: true,
    };
  }

  /** The word that is answered. */
  word() {
    const scores = this.session.row(this.session.live, "logits");
    return this.session.explained ?? best(scores)[0];
  }
}
