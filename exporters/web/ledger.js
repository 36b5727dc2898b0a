// What was edited, and what the model says now compared with before; and one line that says what to
// do next.

import { partName } from "./anatomy.js";
import { brief, byId, element, grouped, percent, quoted } from "./dom.js";
import { readable, shortened } from "./outside.js";
import { best } from "./session.js";

/** @typedef {import("./session.js").Session} Session */
/** @typedef {import("./session.js").Edit} Edit */

const MOST_TOLD = 3;
/** What to do next: the first one that was not tried. @type {[string, string][]} */
const HINTS = [
  ["open", "Click any picture to see its numbers, their formulas and the cells that they use."],
  ["switch", "Switch a head off with the box beside its name. The next words then show the answer without this head."],
  ["set", "Type over any number and press Enter. All cells that depend on this number change."],
  ["say", "Type another sentence. All pictures then show that sentence."],
  ["", "Undo takes a step back. Copy link keeps this state; Save workbook takes it to a spreadsheet."],
];

/** The lines about what was done. */
export class Ledger {
  /** @param {Session} session @param {import("./picture.js").Machine | null} machine */
  constructor(session, machine) {
    this.session = session;
    this.isModel = !!machine;
    session.subscribe(() => this.draw());
    session.onProgress = (share) => this.computes(share);
    byId("legend").append("Rows are tokens.", key("below"), "below 0", key("above"), "above 0", key("share"), "a large share");
    byId("legend").hidden = !machine;
    this.draw();
  }

  /** Shows the state. */
  draw() {
    const { session } = this;
    const ledger = byId("ledger");
    const changes = session.changes;
    if (session.share !== null) return this.computes(session.share);
    const problem = session.problem || (this.isModel ? session.unanswered() : "");
    ledger.className = problem ? "problem" : changes.length ? "differs" : "";
    ledger.textContent = problem ? `${readable(problem).replace(/\.$/, "")}.` : [session.note, this.edits(changes), this.said(changes.length > 0), this.leftOut(), session.whyFull, session.live.slower, this.work()].filter(Boolean).join(" · ");
    byId("hint").textContent = this.hint();
  }

  /** How far a long computation is. @param {number} share */
  computes(share) {
    byId("ledger").textContent = `Computing: ${Math.round(100 * share)} % …`;
  }

  /** @param {Edit[]} edits besides the sentence */
  edits(edits) {
    const changes = [...this.session.chosen, ...edits];
    if (!changes.length) return "As built";
    const told = changes.slice(-MOST_TOLD).reverse().map((edit) => toldOf(this.session, edit));
    const more = changes.length > MOST_TOLD ? `; ${changes.length - MOST_TOLD} more` : "";
    return `${changes.length} edit${changes.length > 1 ? "s" : ""}: ${told.join("; ")}${more}`;
  }

  /** What the model says, and said before. @param {boolean} isEdited */
  said(isEdited) {
    const { session } = this;
    if (!session.isModel) return "";
    if (session.graph.has("cosine")) return `the cosine is ${brief(session.read("cosine", 0, 0))}`;
    if (!session.graph.has("probs")) return "";
    const [now, before] = [session.live, session.baseline].map((run) => {
      const row = session.row(run, "probs");
      const id = best(row)[0] ?? 0;
      return { word: quoted(session.label("vocab_out", id)), share: percent(row[id]) };
    });
    if (!isEdited) return `says ${now.word} ${now.share}`;
    if (now.word === before.word) return now.share === before.share ? `still says ${now.word} ${now.share}` : `still says ${now.word}: ${before.share} → ${now.share}`;
    return `said ${before.word}, now says ${now.word} ${now.share}`;
  }

  /** What of the sentence is not read. */
  leftOut() {
    const { leftOut, nTokens } = this.session;
    const words = leftOut > 1 ? `${leftOut} words are` : "word is";
    return leftOut ? `the last ${words} left out: there is room for ${nTokens}` : "";
  }

  /** How much was computed. */
  work() {
    const { computed, ms } = this.session.done;
    if (computed) return `${grouped(computed)} cells in ${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;
    const cells = this.session.graph.blocks.filter((block) => block.isOp || block.isTable).reduce((n, block) => n + block.rows * block.cols, 0);
    return `${grouped(cells)} formulas, all live`;
  }

  /** What to do next. */
  hint() {
    const { tried, graph } = this.session;
    if (document.body.dataset.view === "chat") return "Type a message. Then click a word of the answer to see how the model chose it.";
    if (document.body.dataset.view !== "machine") return "Type into a yellow cell. All cells that depend on it change. Click a cell to see its formula.";
    const switches = graph.blocks.some((block) => block.leaf === "switch");
    const lacks = [!switches && "switch", !this.session.isTyped && "say"];
    const can = HINTS.filter(([what]) => !what || !lacks.includes(what));
    if (tried.size) return can.find(([what]) => !tried.has(what))?.[1] ?? "";
    const first = [!lacks.includes("say") && "type another sentence", switches && "switch a head off"].filter(Boolean);
    const text = [...first, `${first.length ? "or " : ""}click a picture for its numbers.`].join(", ");
    return text[0].toUpperCase() + text.slice(1);
  }
}

/** @param {string} kind */
function key(kind) {
  return element("i", { class: `swatch ${kind}` });
}

/** An edit in a few words. @param {Session} session @param {Edit} edit */
function toldOf(session, { block, i, j, value }) {
  const as = typeof value === "number" ? brief(value) : quoted(shortened(String(value ?? "")));
  if (block.leaf === "switch") return partName(block) + (value === 0 ? " off" : ` at ${as}`);
  if (block.name === "prompt.pick") return `token ${i} is ${typeof value === "number" ? quoted(session.word(value)) : as}`;
  if (block.name === "random") return `random number ${i}`;
  if (block.rows * block.cols === 1) return `${block.name.replaceAll("_", "-")} ${as}`;
  return `${block.name}[${i},${j}] ${brief(session.baseline.value(block, i, j))} → ${as}`;
}
