// A conversation: what you say, and the model's answer, token by token. The cells hold it: your last
// message is the sentence, which cells split into tokens, and the ids of everything else are picked.
// A click on a word of the answer opens the pass that produced it.

import { byId, element, percent, quoted } from "./dom.js";
import { shortened } from "./outside.js";
import { best } from "./session.js";

/** @typedef {import("./session.js").Session} Session */
/** The ids of a chat template (chat_ids.py).
 * @typedef {{head: number[], answering: number[], closing: number[], following: number[], ends: number[], system: string}} Template */
/** A message and its answer, as ids; `from`: the place of the answer's first token.
 * @typedef {{you: number[], answer: number[], from: number}} Turn */

const RUNNERS_UP = 4;
const WAITS = 10; // ms between two looks at whether a computation has ended
const ESCAPED = /\\#\d+$|\\x([0-9a-f]{2})|\\u([0-9a-f]{4})|\\U([0-9a-f]{8})|\\(.)|␣|<0x([0-9A-F]{2})>/g;
/** @type {Record<string, string>} */ const LETTERS = { n: "\n", t: "\t", r: "\r" };

/** The text of tokens, from how the page shows them: bytes of one character are joined.
 * @param {string[]} shown @returns {string} */
export function writtenBy(shown) {
  const [encoder, parts] = [new TextEncoder(), /** @type {number[]} */ ([])];
  for (const text of shown) {
    let at = 0;
    for (const found of text === "\\empty" ? [] : text.matchAll(ESCAPED)) {
      parts.push(...encoder.encode(text.slice(at, found.index)));
      at = found.index + found[0].length;
      const [whole, x, u, long, letter, byte] = found;
      if (byte) parts.push(parseInt(byte, 16));
      else if (x ?? u ?? long) parts.push(...encoder.encode(String.fromCodePoint(parseInt(x ?? u ?? long, 16))));
      else if (letter) parts.push(...encoder.encode(LETTERS[letter] ?? letter));
      else if (whole === "␣") parts.push(32);
    }
    if (text !== "\\empty") parts.push(...encoder.encode(text.slice(at)));
  }
  return new TextDecoder().decode(Uint8Array.from(parts));
}

/** Where a list of ids stands next in another; -1: nowhere. @param {number[]} ids @param {number[]} part @param {number} from */
function placeOfIds(ids, part, from) {
  for (let at = from; at + part.length <= ids.length; at++) if (part.every((id, k) => ids[at + k] === id)) return at;
  return -1;
}

/** The turns of a conversation. @param {number[]} ids @param {Template} template @returns {Turn[]} */
function turnsOf(ids, { head, answering, closing, following }) {
  /** @type {Turn[]} */ const found = [];
  for (let at = head.length; at < ids.length; ) {
    const [past, last] = [placeOfIds(ids, answering, at), placeOfIds(ids, closing, at)];
    const [ends, mark] = past < 0 || (last >= 0 && last < past) ? [last, closing] : [past, answering];
    if (ends < 0) break;
    const from = ends + mark.length;
    const next = placeOfIds(ids, following, from);
    found.push({ you: ids.slice(at, ends), answer: ids.slice(from, next < 0 ? ids.length : next), from });
    at = next < 0 ? ids.length : next + following.length;
  }
  return found;
}

/** A number from 0 to 1 for a place, the same for the same seed. @param {number} seed @param {number} place */
function drawnBy(seed, place) {
  let x = (Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) + Math.imul(place + 1, 0xc2b2ae35)) >>> 0;
  for (const [shift, by] of [[16, 0x7feb352d], [15, 0x846ca68b]]) x = Math.imul(x ^ (x >>> shift), by) >>> 0;
  return ((x ^ (x >>> 16)) >>> 0) / 2 ** 32;
}

/** The word that a number draws. @param {ArrayLike<number>} probs @param {number} number */
function drawnWord(probs, number) {
  let sum = 0;
  for (let k = 0; k < probs.length; k++) {
    sum += probs[k];
    if (number < sum) return k;
  }
  return best(probs)[0];
}

/** The view of a conversation. */
export class Chat {
  /** @param {Session} session @param {HTMLElement} container */
  constructor(session, container) {
    this.session = session;
    /** @type {Template} */ this.template = session.data.chat;
    this.answers = false;
    this.stopped = false;
    this.problem = "";
    this.turns = element("ol", { class: "turns", "aria-live": "polite" });
    this.opened = element("div", { class: "opened", hidden: true });
    this.said = element("p", { class: "flow-told" });
    this.opened.append(this.said, element("button", { type: "button", onclick: () => this.closeWord() }, "Close this word"));
    this.told = element("p", { role: "status", class: "remark" });
    this.area = element("textarea", { id: "say", rows: 2, spellcheck: "false", "aria-label": "Your message", placeholder: "Your message" });
    this.area.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey) return;
      event.preventDefault();
      this.send();
    });
    this.area.addEventListener("input", () => this.name());
    this.go = element("button", { type: "button", class: "primary", onclick: () => (this.answers ? this.stop() : this.send()) }, "Send");
    this.fresh = element("button", { type: "button", onclick: () => this.begin() }, "New conversation");
    this.heat = element("input", { id: "heat", type: "number", min: 0, max: 5, step: 0.1, value: 0 });
    this.seed = element("input", { id: "seed", type: "number", min: 0, step: 1, value: 0 });
    const dials = element("div", { class: "dials" }, element("label", { title: "0: always the likeliest word; 1: by the model's probabilities" }, "temperature", this.heat), element("label", { title: "the same seed draws the same words" }, "seed", this.seed), this.fresh);
    const system = this.template.system && element("p", { class: "remark" }, `System: ${this.template.system}`);
    container.append(...(system ? [system] : []), this.turns, this.told, this.opened, element("form", { class: "say", onsubmit: (/** @type {Event} */ event) => event.preventDefault() }, this.area, this.go), dials);
    session.subscribe(() => this.draw());
    this.draw();
  }

  /** All ids so far. @returns {number[]} */
  get ids() {
    return this.session.tokens().map(({ id }) => id);
  }

  /** @returns {Turn | undefined} the last turn */
  get last() {
    return turnsOf(this.ids, this.template).at(-1);
  }

  /** @returns {boolean} whether the last message has no answer yet */
  get waits() {
    return this.last?.answer.length === 0;
  }

  /** Says what the button does. */
  name() {
    this.go.textContent = this.answers ? "Stop" : this.waits && !this.area.value.trim() ? "Answer" : "Send";
  }

  /** Shows the conversation. */
  draw() {
    const { session } = this;
    const key = JSON.stringify([this.ids, this.answers, session.position, this.opened.hidden]);
    this.name();
    this.told.textContent = this.problem || (this.answers ? "The model answers …" : "Click a word of an answer to see how the model chose it.");
    this.told.classList.toggle("problem", !!this.problem);
    this.fresh.disabled = this.answers;
    if (!this.opened.hidden) this.tellWord();
    if (key === this.turns.dataset.key) return;
    this.turns.dataset.key = key;
    const words = (/** @type {number[]} */ ids) => ids.map((id) => session.word(id));
    this.turns.replaceChildren(...turnsOf(this.ids, this.template).flatMap(({ you, answer, from }) => [
      element("li", { class: "you" }, element("span", { class: "who" }, "You"), element("span", {}, writtenBy(words(you)))),
      element("li", { class: "answer" }, element("span", { class: "who" }, "Model"), element("span", {}, ...this.words(answer, from))),
    ]));
  }

  /** An answer, word by word; bytes of one character are one word. @param {number[]} ids @param {number} from */
  words(ids, from) {
    const { session } = this;
    const made = [];
    for (let k = 0, last = 0; k < ids.length; k++) {
      const text = writtenBy(ids.slice(last, k + 1).map((id) => session.word(id)));
      if (text.endsWith("\ufffd") && k + 1 < ids.length) continue;
      const at = from + k;
      const isOpen = !this.opened.hidden && session.position === at - 1;
      made.push(element("button", { type: "button", class: "word", "aria-pressed": isOpen, "data-at": at, "aria-label": `Open ${quoted(text)}`, onclick: () => this.openWord(at) }, text));
      last = k + 1;
    }
    return made;
  }

  /** Ends the answer after the word that is being computed. */
  stop() {
    this.stopped = true;
  }

  /** Begins anew, with an empty conversation. */
  begin() {
    this.closeWord();
    this.problem = "";
    this.picks(this.template.head, "");
    this.area.focus();
  }

  /** Picks all ids of a conversation, and types a message. @param {number[]} ids @param {string} [you] */
  picks(ids, you) {
    const { session } = this;
    const pick = session.graph.get("prompt.pick");
    const built = pick.typed();
    const edits = Array.from({ length: pick.rows }, (_, i) => {
      const value = /** @type {any} */ (i < ids.length ? ids[i] : "");
      return { block: pick, i, j: 0, value: value === built[i] ? undefined : value };
    });
    session.view = [];
    session.shown = Math.max(1, ids.length);
    if (you !== undefined) edits.push({ block: session.graph.get("sentence"), i: 0, j: 0, value: you });
    session.setAll(edits, "chat");
  }

  /** Waits until everything is computed, and the browser has painted. */
  async settled() {
    do await new Promise((later) => setTimeout(later, this.session.share === null ? 0 : WAITS));
    while (this.session.share !== null);
  }

  /** Sends the message, and lets the model answer. */
  async send() {
    const you = this.area.value.trim();
    if (this.answers || !(you || this.waits)) return;
    this.closeWord();
    this.problem = "";
    this.answers = true;
    this.stopped = false;
    this.draw();
    try {
      await (you ? this.say(you) : this.answer());
    } finally {
      this.answers = false;
      this.draw();
    }
  }

  /** @param {string} you */
  async say(you) {
    const { session, template } = this;
    const [now, last] = [this.ids, this.last];
    const before = !last ? template.head : last.answer.length ? [...now, ...template.following] : now.slice(0, last.from - template.closing.length - last.you.length);
    this.picks(before, you); // of the message, only the tokenizer's cells are new
    await this.settled();
    const split = Array.from(session.live.numbers(session.graph.get("tokenizer.ids"))).filter((id) => id >= 0);
    const whole = [...before, ...split, ...template.closing];
    const problem = session.read("tokenizer.fine", 0, 0) !== 1 ? String(session.read("tokenizer.message", 0, 0) || shortened(you)) : whole.length < session.nTokens ? "" : `There is no room: this page has room for ${session.nTokens} tokens, and the conversation has ${whole.length}. Begin a new one, or build the page with --tokens.`;
    if (problem) {
      this.problem = problem;
      this.picks(now);
      return;
    }
    this.area.value = "";
    this.picks(whole);
    await this.settled();
    await this.answer();
  }

  /** Picks the model's words one by one, until the text ends. */
  async answer() {
    const { session, template } = this;
    while (!this.stopped) {
      const id = this.choice();
      if (template.ends.includes(id)) return;
      const at = session.shown;
      if (at >= session.nTokens) {
        this.problem = `The answer stops: this page has room for ${session.nTokens} tokens.`;
        return;
      }
      session.shown = at + 1;
      session.set("prompt.pick", at, 0, id, "chat");
      await this.settled();
    }
  }

  /** The next word: the likeliest, or one that the seed draws. @returns {number} */
  choice() {
    const { session } = this;
    const heat = this.heat.valueAsNumber;
    if (!(heat > 0)) return best(session.row(session.live, "logits"))[0];
    const scores = session.row(session.live, "logits");
    const most = scores[best(scores)[0]];
    const shares = scores.map((x) => Math.exp((x - most) / heat));
    const sum = shares.reduce((a, b) => a + b, 0);
    return drawnWord(shares.map((x) => x / sum), drawnBy(this.seed.valueAsNumber || 0, session.shown));
  }

  /** Opens the pass that produced a word. @param {number} at its place */
  openWord(at) {
    if (this.answers) return;
    const { session } = this;
    session.explained = this.ids[at];
    this.opened.hidden = false;
    document.body.classList.add("explaining");
    session.look(at - 1);
    this.opened.scrollIntoView({ block: "nearest" });
  }

  /** Closes the pass, and looks at the end again. */
  closeWord() {
    if (this.opened.hidden) return;
    this.opened.hidden = true;
    this.session.explained = null;
    document.body.classList.remove("explaining");
    this.session.view = [];
    this.session.apply();
  }

  /** Tells how likely the word was, and what else the model might have said. */
  tellWord() {
    const { session } = this;
    const id = session.explained;
    if (id === null) return;
    const probs = session.row(session.live, "probs");
    const others = best(probs, RUNNERS_UP + 1).filter((other) => other !== id).slice(0, RUNNERS_UP);
    const told = others.map((other) => `${quoted(session.word(other))} ${percent(probs[other])}`);
    const rank = best(probs)[0] === id ? "the likeliest word" : "not the likeliest word";
    this.said.textContent = `${quoted(session.word(id))} was ${rank} here: ${percent(probs[id])}. Next in rank: ${told.join(", ")}. Below, each ribbon and loop is what a part added. Click a head to see why it looks where it does.`;
  }
}
