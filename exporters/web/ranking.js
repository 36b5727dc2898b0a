// The likeliest next words: the model as built beside the one with the edits; and which word a
// random number draws.

import { brief, element, percent, quoted } from "./dom.js";
import { best } from "./session.js";

/** @typedef {import("./session.js").Session} Session */

const RANKS = 10;
// words that were likeliest and left the list
const LEFT = 3;

/** The panel of next words; of two sentences, their cosine. */
export class Ranking {
  /** @param {Session} session @param {HTMLElement} container */
  constructor(session, container) {
    this.session = session;
    this.title = element("h2");
    this.rows = element("tbody");
    this.note = element("p", { class: "remark" });
    container.setAttribute("aria-label", this.isOfClasses ? "Classes" : this.isMasked ? "Words in its place" : "Next words");
    this.draws = element("div", { class: "drawing", role: "img" });
    const heads = [this.isOfClasses ? "class" : session.noun, "before, now", "now", "change"].map((text) => element("th", { scope: "col" }, text));
    this.table = element("table", { class: "ranks" }, element("thead", {}, element("tr", {}, ...heads)), this.rows);
    container.append(this.title, this.table, this.draws, this.note);
    session.subscribe(() => this.draw());
    this.draw();
  }

  /** Whether the words are those for the place that is looked at, and not the next ones. */
  get isMasked() {
    return this.session.data.gives === "masked word";
  }

  /** Whether it ranks classes of the text, or of a token. */
  get isOfClasses() {
    return this.session.data.outputs !== undefined;
  }

  /** @param {string} here the token that is looked at */
  heading(here) {
    const { session } = this;
    if (session.data.gives === "class") return "Class of the text";
    if (this.isOfClasses) return `Class of ${quoted(here)}`;
    return this.isMasked ? `In place of ${quoted(here)}` : `After ${quoted(here)}: the next ${session.noun}`;
  }

  /** Shows the words after the token that is looked at. */
  draw() {
    const { session } = this;
    const { graph } = session;
    if (graph.has("cosine")) return this.drawCosine();
    const silent = session.unanswered();
    this.title.textContent = silent ? `The next ${session.noun}` : this.heading(session.tokens()[session.position]?.text ?? "");
    this.table.hidden = !!silent || !graph.has("probs");
    this.note.textContent = silent;
    this.draws.hidden = true;
    if (this.table.hidden) return undefined;
    const now = session.row(session.live, "probs");
    const before = session.row(session.baseline, "probs");
    const ranked = best(now, RANKS);
    const gone = best(before, LEFT).filter((id) => !ranked.includes(id) && before[id] >= 0.005);
    this.rows.replaceChildren(...ranked.map((id) => this.row(id, before[id], now[id])), ...gone.map((id) => this.row(id, before[id], now[id], true)));
    this.drawDraw();
    return undefined;
  }

  /** @param {number} id @param {number} before @param {number} now @param {boolean} [gone] from the list */
  row(id, before, now, gone = false) {
    const { session } = this;
    const word = session.label("vocab_out", id);
    const bars = element("td", { class: "bars" }, bar("built", before), bar("live", now));
    const room = session.goesOn && session.position + 1 < session.nTokens && session.graph.has("prompt.pick");
    const pick = room && element("button", { type: "button", title: `Take ${quoted(word)} as the next one`, onclick: () => session.pick(id) }, word);
    const change = now - before;
    const told = Math.abs(change) < 0.0005 ? "" : `${change > 0 ? "+" : "−"}${(100 * Math.abs(change)).toFixed(1)}`;
    const was = gone ? `was ${percent(before)}` : told;
    return element("tr", { class: gone ? "gone" : "" },
      element("th", { scope: "row", title: `id ${id}; as built ${percent(before)}` }, pick || word), bars,
      element("td", { class: "number" }, percent(now)), element("td", { class: `number ${change > 0 ? "more" : "less"}` }, was));
  }

  /** Where the random number falls among the words that may be drawn. */
  drawDraw() {
    const { session } = this;
    const { graph } = session;
    if (session.read("choose", 0, 0) !== "sampled" || !graph.has("choice.kept")) return;
    const kept = session.row(session.live, "choice.kept");
    const order = session.row(session.live, "choice.order");
    const total = kept.reduce((a, b) => a + b, 0);
    const at = Number(session.read("random", session.position + 1, 0));
    const drawn = session.label("vocab_out", Number(session.read("choice.chosen", session.position, 0)));
    const parts = [...kept].map((share, k) => ({ share: share / total, word: session.label("vocab_out", order[k]) })).filter(({ share }) => share > 0.002);
    this.draws.hidden = false;
    this.draws.setAttribute("aria-label", `The random number ${brief(at)} draws ${quoted(drawn)}`);
    this.draws.replaceChildren(...parts.map(({ share, word }) => {
      const part = element("span", { class: word === drawn ? "drawn" : "", title: `${word} ${percent(share)}` }, share > 0.1 ? word : "");
      part.style.setProperty("width", `${100 * share}%`);
      return part;
    }), mark(at));
    this.note.textContent = `The random number ${brief(at)} falls on ${quoted(drawn)}.`;
  }

  /** Two sentences: how alike they are. */
  drawCosine() {
    const { session } = this;
    const [now, before] = [session.live, session.baseline].map((run) => Number(run.value(session.graph.get("cosine"), 0, 0)));
    this.title.textContent = "How similar are the two sentences?";
    this.table.hidden = this.draws.hidden = true;
    const change = Math.abs(now - before) < 5e-7 ? "" : ` As built it was ${before.toFixed(3)}.`;
    this.note.replaceChildren(element("strong", { class: "cosine" }, now.toFixed(3)), ` is the cosine of their vectors: 1 for the same direction, 0 at a right angle.${change}`);
  }
}

/** @param {string} kind @param {number} share */
function bar(kind, share) {
  const made = element("span", { class: `bar ${kind}` });
  made.style.setProperty("width", `${100 * Math.max(0, Math.min(1, share || 0))}%`);
  return made;
}

/** @param {number} at */
function mark(at) {
  const made = element("i");
  made.style.setProperty("left", `${100 * at}%`);
  return made;
}
