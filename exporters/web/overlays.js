// What the pictures show: the numbers themselves, their change since the model was as built, what
// each part adds to a word's score, or gradients.

import { pathOf } from "./anatomy.js";
import { brief, quoted } from "./dom.js";

/** @typedef {import("./session.js").Session} Session */
/** @typedef {import("./anatomy.js").Tile} Tile */
/** @typedef {import("./graph.js").Block} Block */

/** What a book's pictures can show: a name, and what it is called.
 * @param {Session} session @returns {[string, string][]} */
export function overlays(session) {
  const { graph } = session;
  /** @type {[string, string][]} */ const found = [["numbers", "the numbers"], ["change", "change since as built"]];
  if (graph.blocks.some(({ name }) => /^target\..*\.credit$/.test(name))) found.push(["credit", "what each part adds to a word"]);
  if (graph.blocks.some(({ passes }) => passes[0] === "gradient")) found.push(["gradient", "gradients"]);
  return found;
}

/** The numbers that a picture of a block shows. @param {Session} session @param {Block} block @param {string} shows
 * @returns {ArrayLike<number>} */
export function numbersShown(session, block, shows) {
  const now = session.live.numbers(block);
  if (shows === "change") {
    const before = session.baseline.numbers(block);
    return Float64Array.from(now, (x, k) => (x === before[k] ? 0 : x - before[k]));
  }
  if (shows !== "gradient") return now;
  const gradient = session.graph.gradientOf(block);
  return gradient ? session.live.numbers(gradient) : new Float64Array(now.length);
}

/** What a part adds to the score of the word that is tracked, at the token that is looked at; null
 * for what adds nothing of its own. @param {Session} session @param {Tile} tile @returns {number | null} */
export function creditOf(session, { kind, block }) {
  const path = pathOf(block);
  const writer = kind === "hidden" && !block.head ? `${path}_out` : kind === "head" || kind === "hidden" ? `${path}.result` : block.name;
  const name = `target.${writer}.credit`;
  if (!session.graph.has(name)) return null;
  const rows = session.live.numbers(session.graph.get(name));
  return rows[Math.min(rows.length - 1, session.position)];
}

/** A part's credit in words. @param {Session} session @param {number} credit */
export function creditTold(session, credit) {
  const word = session.label("vocab_out", Number(session.read("target", 0, 0)));
  return `${credit < 0 ? "" : "+"}${brief(credit)} to ${quoted(word)}`;
}
