// The state of a page: what a person has edited, step after step, and two runs: one with the edits
// (`live`), and one of the model as built that reads the same text (`baseline`).
//
// A state is a list of cells with what was typed into them; a link holds just that.

import { editsOfLink, lessonOfLink, linkOf } from "./link.js";
import { readable, shortened } from "./outside.js";
import { finished, inSlices } from "./slices.js";

/** @typedef {import("./evaluator.js").Run} Run */
/** @typedef {import("./graph.js").Graph} Graph */
/** @typedef {import("./graph.js").Block} Block */
/** @typedef {{block: Block, i: number, j: number, value: any}} Edit */
/** @typedef {{id: number, text: string, given: boolean}} Token */
/** @typedef {{computed: number, ms: number}} Done */

/** Cells of the text that is read, and of where one looks: no edits of the model. */
export const OF_TEXT = /^(b\.|encoder\.)?(sentence$|chat\.(system|earlier|you|begun)$|n_prompt$|tokens$|segments$|prompt\.|look\.|machine\.token$|position$)/;
const WHERE = ["look.position.instead", "machine.token", "position"];
/** Edits of one kind that follow each other this fast are one step, in ms. */
const AT_ONCE = 1500;
/** ms without an action, after which a large page computes what nobody has asked for. */
const IDLE = 300;
/** ms without an action, after which a large page draws more than its answer. */
const DRAWN_AFTER = 60;
/** ms after which the page shows the progress of a computation. */
const SOON = 300;

/** What a person has done to a book, and the values that follow. */
export class Session {
  /** @param {Run} run of the book as built */
  constructor(run) {
    this.graph = run.graph;
    this.data = run.graph.data;
    this.baseline = run;
    this.live = run.another();
    if (this.isLarge) this.baseline.become(this.live);
    for (const one of [this.live, run]) one.wanted = () => this.needed;
    /** @type {{edits: Edit[], tag: string, when: number}[]} */
    this.steps = [{ edits: [], tag: "", when: 0 }];
    this.at = 0;
    /** what a token is called @type {string | null} */
    this.called = null;
    /** @type {Edit[]} where one looks: no step of its own */
    this.view = [];
    /** @type {Set<(done: Done) => void>} */
    this.subscribers = new Set();
    /** what is drawn after the answer, on a large page @type {(() => import("./slices.js").Steps<void>)[]} */
    this.drawings = [];
    /** the drawing that is under way, or waits: another one ends it */
    this.turn = 0;
    this.drawsAt = 0;
    /** how the answer is made up, with the state that it belongs to @type {{key: string, answer: import("./parts.js").Answer} | null} */
    this.answer = null;
    /** @type {{block: Block, i: number, j: number} | null} the cell that is looked at */
    this.selected = null;
    /** what could not be done, in a line */
    this.problem = "";
    /** what was done that changes no cell */
    this.note = "";
    /** @type {Done} */
    this.done = { computed: 0, ms: 0 };
    /** what a person has tried: "say", "switch", "open", "set" */
    this.tried = new Set();
    /** @type {Map<string, any>} what edited cells held as built */
    this.built = new Map();
    this.linked = "";
    /** @type {import("./link.js").Lesson | null} the task of the link */
    this.lesson = null;
    /** what follows once both runs have the edits @type {(() => void)[]} */
    this.waiting = [];
    /** of a long computation that is under way @type {number | null} */
    this.share = null;
    /** rows of tokens beyond those that are asked for, computed while nothing else is */
    this.ahead = 0;
    this.isAhead = false;
    this.timer = 0;
    /** @type {(share: number) => void} */
    this.onProgress = () => {};
    /** whether the baseline reads the words that the edited model chose */
    this.follows = false;
    /** the word that is explained where one looks; null: the likeliest @type {number | null} */
    this.explained = null;
    /** @type {Uint8Array<ArrayBuffer> | null} the workbook that was opened */
    this.book = null;
    this.shown = this.nGiven;
  }

  // --- what is there ---------------------------------------------------------------------

  /** @returns {Edit[]} all edits, of the text too */
  get edits() {
    return [...this.steps[this.at].edits, ...this.view];
  }

  /** @returns {Edit[]} edits of the model and of its dials */
  get changes() {
    return this.steps[this.at].edits.filter((edit) => !OF_TEXT.test(edit.block.name));
  }

  /** @returns {Edit[]} what was chosen in place of words of the sentence; a conversation is no edit */
  get chosen() {
    if (this.data.chat) return [];
    return this.steps[this.at].edits.filter(({ block, i }) => block.name === "prompt.pick" && i < this.nTyped);
  }

  /** @returns {boolean} whether its weights are in a file beside it: it is computed in slices */
  get isLarge() {
    return !!this.data.beside;
  }

  /** @returns {number} the rows of tokens that are asked for; the others are computed when nothing else is */
  get needed() {
    const causal = this.data.gives === "next word";
    return causal ? Math.max(this.nGiven, this.shown, this.position + 1) + this.ahead : Infinity;
  }

  /** @returns {boolean} */
  get isModel() {
    return this.data.isModel;
  }

  /** @returns {boolean} whether a sentence is typed: else a sheet says what the model reads */
  get isTyped() {
    return this.isModel && (this.graph.has("sentence") || this.hasSource || !this.graph.get("tokens").isTable);
  }

  /** @returns {boolean} whether an encoder reads a source sentence, which the tokens answer */
  get hasSource() {
    return this.graph.has("encoder.tokens");
  }

  /** @returns {number} columns of tokens */
  get nTokens() {
    return this.isModel ? this.graph.get("tokens").rows : 0;
  }

  /** @returns {number} how many tokens are given */
  get nGiven() {
    const given = Number(this.read("n_prompt", 0, 0) ?? this.nTokens) || this.nTokens;
    return Math.max(1, Math.min(this.nTokens, given));
  }

  /** @returns {number} how many tokens the sentence has; where words are picked, they go on after it */
  get nTyped() {
    if (this.continues || this.data.chat || !this.graph.has("tokenizer.ids")) return this.nGiven;
    const n = this.live.numbers(this.graph.get("tokenizer.ids")).filter((id) => id >= 0).length;
    return Math.max(1, Math.min(this.nGiven, n));
  }

  /** @returns {boolean} whether the graph goes on by itself after what is given */
  get continues() {
    return this.graph.has("choose") && this.graph.has("choice.chosen");
  }

  /** @returns {string[]} the texts of all tokens, if the page has them */
  get vocabulary() {
    return this.data.vocabulary ?? [];
  }

  /** @returns {string} what a token of this model is called */
  get noun() {
    this.called ??= this.nounOf();
    return this.called;
  }

  nounOf() {
    const words = this.vocabulary;
    const letters = words.filter((word) => [...word].length === 1 && !/\d/.test(word)).length;
    if (letters > 0.7 * words.length) return "letter";
    return this.graph.has("tokenizer.text") || words.every((word) => /^\d+$/.test(word)) ? "token" : "word";
  }

  /** @returns {boolean} whether a next word can join the sentence */
  get goesOn() {
    return this.continues || (this.graph.has("prompt.pick") && this.graph.has("probs") && this.data.gives === "next word");
  }

  /** @returns {number} the token that is looked at */
  get position() {
    const name = ["position", "machine.token"].find((block) => this.graph.has(block));
    const at = name ? Number(this.read(name, 0, 0)) : this.shown - 1;
    return Math.max(0, Math.min(this.nTokens - 1, at || 0));
  }

  /**
   * @param {string} name
   * @param {number} i
   * @param {number} j
   * @returns {any} the live value of a cell; undefined if there is no such block
   */
  read(name, i, j) {
    return this.graph.has(name) ? this.live.value(this.graph.get(name), i, j) : undefined;
  }

  /** @returns {Token[]} the tokens that are shown */
  tokens() {
    const ids = this.isModel ? this.live.numbers(this.graph.get("tokens")) : [];
    return Array.from(ids).slice(0, this.shown).map((id, t) => ({
      id,
      text: this.label("token", t),
      given: t < this.nTyped,
    }));
  }

  /** @returns {number} words of the sentence for which there is no room */
  get leftOut() {
    if (!this.graph.has("prompt.typed") || this.graph.has("tokenizer.fine")) return 0;
    return Math.max(0, this.typed().split(" ").filter(Boolean).length - this.nTokens);
  }

  /** The text of a token. @param {number} id @returns {string} */
  word(id) {
    return this.data.vocabulary?.[id] ?? String(id);
  }

  /** What the k-th row or column along an axis is called. @param {string} axis @param {number} k @returns {string} */
  label(axis, k) {
    if (axis === "token") return this.word(Number(this.read("tokens", k, 0)));
    if (axis === "source") return this.word(Number(this.read("encoder.tokens", k, 0)));
    if (axis === "token_b") return this.word(Number(this.read("b.tokens", k, 0)));
    if (axis === "vocab") return this.word(k);
    return axis === "vocab_out" ? String(this.read("outputs", k, 0) ?? this.data.outputs?.[k] ?? this.word(k)) : String(k);
  }

  /** The block that a text is typed into. @param {string} prefix "b.", "encoder.", or the name of a block of a conversation @returns {string} */
  placeOf(prefix) {
    if (prefix.startsWith("chat.")) return prefix;
    return !prefix && this.graph.has("chat.you") ? "chat.you" : `${prefix}sentence`;
  }

  /** What is typed as a sentence: a text, or ids. @param {string} [prefix] @returns {string} */
  typed(prefix = "") {
    const text = this.read(this.placeOf(prefix), 0, 0);
    if (text !== undefined) return String(text ?? "");
    const n = Number(this.read(`${prefix}n_prompt`, 0, 0) ?? this.nTokens);
    return [...this.live.numbers(this.graph.get(`${prefix}tokens`))].slice(0, n).join(" ");
  }

  /** @returns {{concept: string, text: () => string, place: import("./tour.js").Place}[]} the stops of the tour */
  get tour() {
    const chosen = (/** @type {any} */ _, /** @type {number} */ k) => !this.lesson || this.lesson.stops.includes(k);
    return (this.data.tour ?? []).filter(chosen).map((/** @type {any} */ stop) => ({ ...stop, text: () => String(this.live.formulaValue(stop.text)) }));
  }

  /** The cells of the text, as a link spells them: not where one looks. @returns {string} */
  textState() {
    const edits = this.steps[this.at].edits.filter((edit) => OF_TEXT.test(edit.block.name));
    return linkOf(edits, "").split("&").slice(2).sort().join("&");
  }

  /** The address of this page with a lesson and edits: a frame of `srcdoc` has only the part from #.
   * @param {import("./link.js").Lesson | null} [lesson] @param {Edit[]} [edits] @returns {string} */
  address(lesson = this.lesson, edits = this.edits) {
    const page = location.href.startsWith("about:") ? "" : location.href.split("#")[0];
    return `${page}#${linkOf(edits, this.data.fingerprint, lesson)}`;
  }

  // --- what one does ---------------------------------------------------------------------

  /**
   * Types a value into a cell.
   * @param {Block | string} block
   * @param {number} i
   * @param {number} j
   * @param {any} value
   * @param {string} [tag] edits that follow each other with the same one are one step
   */
  set(block, i, j, value, tag = "") {
    this.setAll([{ block: this.blockOf(block), i, j, value }], tag);
  }

  /**
   * Types values into several cells, in one step; a cell without a value is put back.
   * @param {Edit[]} edits
   * @param {string} [tag]
   */
  setAll(edits, tag = "") {
    const cells = new Set(edits.map(keyOf));
    const kept = this.steps[this.at].edits.filter((old) => !cells.has(keyOf(old)));
    const typed = edits.filter((edit) => edit.value !== undefined && this.isNew(edit));
    if (typed.some(({ block }) => block.isOp || block.kind === "weight")) this.tried.add("set");
    this.commit([...kept, ...typed], tag);
  }

  /**
   * Puts a cell back.
   * @param {Block | string} block
   * @param {number} i
   * @param {number} j
   */
  unset(block, i, j) {
    this.set(block, i, j, undefined);
  }

  /**
   * Switches a part off, or on again.
   * @param {string} part
   * @param {boolean} [off]
   */
  switchOff(part, off = true) {
    this.tried.add("switch");
    const block = this.graph.get(`${part}.switch`);
    if (off) this.set(block, 0, 0, 0);
    else this.unset(block, 0, 0);
  }

  /**
   * Types another sentence: as text, or as ids where the model has no text.
   * @param {string} sentence
   * @param {string} [prefix] as `placeOf` has it
   */
  say(sentence, prefix = "") {
    this.tried.add("say");
    const isMain = !prefix || prefix === "encoder.";
    const old = this.steps[this.at].edits.filter((edit) => !isMain || !/^(prompt|look)\./.test(edit.block.name));
    const place = this.placeOf(prefix);
    const typed = this.graph.has(place)
      ? [{ block: this.graph.get(place), i: 0, j: 0, value: sentence }]
      : this.idsTyped(sentence, prefix);
    if (!typed) return;
    if (isMain) [this.view, this.shown] = [[], 1];
    const kept = old.filter((edit) => !typed.some((other) => keyOf(edit) === keyOf(other)));
    const then = () => prefix === "b." || this.showUpTo(this.nGiven);
    this.commit([...kept, ...typed.filter((edit) => this.isNew(edit))], `say ${prefix}`, then);
  }

  /**
   * @param {string} sentence
   * @param {string} prefix
   * @returns {Edit[] | null} the cells of token ids; null, with the reason told, if they are none
   */
  idsTyped(sentence, prefix) {
    const block = this.graph.get(`${prefix}tokens`);
    const words = sentence.split(/[\s,]+/).filter(Boolean);
    const n_words = this.graph.has("W_E") ? this.graph.get("W_E").rows : Infinity;
    const wrong = words.find((word) => !/^\d+$/.test(word) || Number(word) >= n_words);
    if (wrong !== undefined) this.complain(`‘${shortened(wrong)}’ is no token id: type numbers from 0 to ${n_words - 1}`);
    if (wrong !== undefined || !words.length) return null;
    const ids = words.slice(0, block.rows);
    const given = this.graph.has(`${prefix}n_prompt`) ? this.graph.get(`${prefix}n_prompt`) : null;
    const edits = ids.map((word, i) => ({ block, i, j: 0, value: Number(word) }));
    return given ? [...edits, { block: given, i: 0, j: 0, value: ids.length }] : edits;
  }

  /**
   * Looks at another token.
   * @param {number} t
   */
  look(t) {
    const name = WHERE.find((block) => this.graph.has(block));
    if (!name) return;
    const edit = { block: this.graph.get(name), i: 0, j: 0, value: t };
    this.view = t === this.nGiven - 1 && name === WHERE[0] ? [] : [edit];
    this.apply();
  }

  /** @returns {boolean} whether there is no room for another token, or the text has ended */
  get isFull() {
    return this.shown >= this.nTokens || this.read("prompt.ended", this.shown, 0) === 1 || this.isEnded;
  }

  /** @returns {boolean} whether the last word that was picked ends the text */
  get isEnded() {
    const last = this.shown - 1;
    return last >= this.nTyped && (this.data.ends ?? []).includes(Number(this.read("tokens", last, 0)));
  }

  /** @returns {string} why no token can follow; "" if one can */
  get whyFull() {
    if (!this.goesOn || !this.isFull || this.data.chat) return "";
    if (this.shown < this.nTokens) return "the text has ended";
    return `no token can follow: this page has room for ${this.nTokens}; type a shorter text`;
  }

  /**
   * Shows the token that comes next.
   * @returns {boolean} whether there was room for one
   */
  next() {
    if (this.share !== null) return true;
    if (this.isFull || this.unanswered()) return false;
    if (this.continues) {
      this.showUpTo(this.shown + 1);
      this.look(this.shown - 1);
    } else if (this.graph.has("prompt.pick") && this.graph.has("probs")) {
      this.pick(best(this.row(this.live, "probs"))[0]);
    }
    return true;
  }

  /**
   * Takes a word as the next one, whatever the model would choose.
   * @param {number} id
   */
  pick(id) {
    const t = this.position + 1;
    if (t >= this.nTokens) return;
    const pick = this.graph.get("prompt.pick");
    const edits = this.tokens().slice(this.nGiven, t).map((token, k) => ({
      block: pick, i: this.nGiven + k, j: 0, value: this.picked(token.id),
    }));
    this.view = [];
    this.shown = t + 1;
    this.setAll([...edits, { block: pick, i: t, j: 0, value: this.picked(id) }], "");
    this.look(t);
  }

  /**
   * @param {number} id
   * @returns {string | number} what is typed to pick a token
   */
  picked(id) {
    return this.continues ? this.word(id) : id;
  }

  /** @param {number} n how many tokens to show */
  showUpTo(n) {
    this.shown = Math.max(1, Math.min(this.nTokens, n));
    if (this.share === null) this.notify();
  }

  /**
   * Opens a block at a cell.
   * @param {Block | string} block
   * @param {number} [i]
   * @param {number} [j]
   */
  select(block, i = 0, j = 0) {
    this.tried.add("open");
    this.selected = { block: this.blockOf(block), i, j };
    this.notify();
  }

  /** Closes what is open. */
  close() {
    this.selected = null;
    this.notify();
  }

  /** Undoes the last step. */
  undo() {
    if (this.at > 0) this.goTo(this.at - 1);
  }

  /** Does again what was undone. */
  redo() {
    if (this.at + 1 < this.steps.length) this.goTo(this.at + 1);
  }

  /** Puts everything back, which can be undone. */
  reset() {
    this.view = [];
    this.commit([], "", () => this.showUpTo(this.nGiven));
  }

  /**
   * Takes the edits of a workbook or of a link.
   * @param {Edit[]} edits
   */
  take(edits) {
    const where = (/** @type {Edit} */ edit) => WHERE.includes(edit.block.name);
    this.view = edits.filter(where);
    this.commit(edits.filter((edit) => !where(edit)), "", () => this.showUpTo(Math.max(this.nGiven, this.position + 1)));
  }

  /** Takes the state behind `#` in the address, if there is one; says why not if it cannot. */
  openLink() {
    const behind = location.hash.slice(1);
    if (!behind || behind === this.linked) return;
    try {
      const edits = editsOfLink(behind, this.graph);
      this.lesson = lessonOfLink(behind);
      this.take(edits);
    } catch (error) {
      this.complain(error instanceof Error ? error.message : String(error));
    }
  }

  /**
   * Tells what could not be done.
   * @param {string} problem
   */
  complain(problem) {
    this.problem = problem;
    this.notify();
  }

  /** Tells what was done. @param {string} note */
  tell(note) {
    if (this.share !== null) return void this.waiting.push(() => this.tell(note));
    this.note = note;
    this.notify();
  }

  // --- what follows ----------------------------------------------------------------------

  /**
   * @param {Edit[]} edits
   * @param {string} [tag]
   * @param {() => void} [then]
   */
  commit(edits, tag = "", then) {
    const last = this.steps[this.at];
    const again = tag !== "" && last.tag === tag && (tag.startsWith("stroke") || performance.now() - last.when < AT_ONCE);
    this.steps.length = this.at + (again ? 0 : 1);
    this.steps.push({ edits, tag, when: performance.now() });
    this.goTo(this.steps.length - 1, then);
  }

  /** @param {number} step @param {() => void} [then] */
  goTo(step, then) {
    this.at = step;
    const given = this.nGiven;
    this.apply(() => {
      if (this.nGiven !== given) this.shown = this.nGiven;
      then?.();
    });
  }

  /** Brings both runs to the edits, does what then follows, and tells all who asked for it. A large
   * book is computed in slices; what is asked for meanwhile comes after. @param {() => void} [then] */
  apply(then = () => {}) {
    this.waiting.push(then);
    if (!this.isLarge) finished(this.applying());
    else if (this.share === null && !this.isAhead) this.applySlowly();
  }

  async applySlowly() {
    this.share = this.ahead = 0;
    const began = performance.now();
    await null; // what is asked for with this is computed with it
    try {
      await inSlices(this.applying(), (share) => {
        this.share = share;
        if (performance.now() - began > SOON) this.onProgress(share);
      });
    } finally {
      this.share = null;
      this.notify();
    }
    this.goAhead();
  }

  /** Where the model chooses its words in cells, computes a row of tokens that nobody has asked for, after a
   * pause; then the next one. */
  goAhead() {
    clearTimeout(this.timer);
    if (this.continues && this.needed < this.nTokens) this.timer = setTimeout(() => this.oneAhead(), IDLE);
  }

  async oneAhead() {
    if (this.share !== null) return;
    this.ahead++;
    this.isAhead = true;
    for (const run of this.changes.length ? [this.live, this.baseline] : [this.live]) await inSlices(run.recomputing(), () => {});
    this.isAhead = false;
    if (this.waiting.length) return void this.applySlowly();
    if (this.needed >= this.nTokens) this.notify();
    this.goAhead();
  }

  /** Computes the rows of all tokens, as a workbook has them; until the next change. */
  async whole() {
    while (this.isAhead) await new Promise((done) => setTimeout(done));
    if (!this.isLarge) return;
    this.apply(() => {});
    this.ahead = this.nTokens;
    await this.settled();
  }

  /** Waits until all that was asked for is computed. */
  async settled() {
    while (this.share !== null || this.waiting.length) await new Promise((done) => setTimeout(done));
  }

  /** @returns {import("./slices.js").Steps<void>} */
  *applying() {
    while (this.waiting.length) {
      const follows = this.waiting.splice(0);
      const began = performance.now();
      const differs = this.changes.length > 0 || this.graph.volatile.length > 0;
      if (differs) this.baseline.apart();
      const computed = yield* bring(this.live, this.edits);
      if (computed) this.done = { computed, ms: performance.now() - began };
      this.problem = this.note = "";
      this.shown = Math.max(this.shown, this.nGiven, this.position + 1);
      if (differs) yield* bring(this.baseline, [...this.edits.filter((edit) => OF_TEXT.test(edit.block.name)), ...this.continuation()]);
      else this.baseline.become(this.live);
      for (const then of follows) then();
      if (!this.isLarge) this.notify();
    }
  }

  /** The words that the edited model chose: the baseline reads them, too. It goes on reading them once
   * there are none: that is the same, and faster than choosing them anew. @returns {Edit[]} */
  continuation() {
    this.follows ||= this.continues && this.changes.length > 0;
    if (!this.follows) return [];
    const block = this.graph.get("tokens");
    const ids = Array.from(this.live.numbers(block));
    return ids.map((value, i) => ({ block, i, j: 0, value })).slice(this.nGiven);
  }

  /** Tells all who asked for it that something changed. */
  notify() {
    this.linked = linkOf(this.edits, this.data.fingerprint, this.lesson);
    for (const told of this.subscribers) told(this.done);
    if (this.isLarge) this.drawSoon();
    if (`#${this.linked}` === location.hash || !(this.linked || location.hash)) return;
    try {
      history.replaceState(null, "", `#${this.linked}`);
    } catch {
      // A frame of `srcdoc` has no address of its own.
    }
  }

  /**
   * Calls a function after each change.
   * @param {(done: Done) => void} told
   */
  subscribe(told) {
    this.subscribers.add(told);
  }

  /** Draws after each change, in steps; on a large page in slices, once nothing is computed.
   * @param {() => import("./slices.js").Steps<void>} steps */
  draws(steps) {
    if (this.isLarge) this.drawings.push(steps);
    else this.subscribe(() => finished(steps()));
  }

  /** Draws what has waited; a change ends that, and it begins anew. */
  drawSoon() {
    const turn = ++this.turn;
    clearTimeout(this.drawsAt);
    this.drawsAt = setTimeout(() => inSlices(this.drawing(turn), () => {}), DRAWN_AFTER);
  }

  /** @param {number} turn @returns {import("./slices.js").Steps<void>} */
  *drawing(turn) {
    for (const steps of this.share === null ? this.drawings : []) {
      for (const _ of steps()) {
        yield 0;
        if (turn !== this.turn || this.share !== null) return;
      }
    }
  }

  // --- what the model says ---------------------------------------------------------------

  /**
   * @param {Run} run
   * @param {string} name
   * @returns {Float64Array} the row of a block at the token that is looked at
   */
  row(run, name) {
    const block = this.graph.get(name);
    const t = block.rows === 1 ? 0 : Math.min(this.position, block.rows - 1);
    return new Float64Array(run.line(block, t));
  }

  /** @returns {string} why nothing is answered; "" if something is */
  unanswered() {
    if (this.read("prompt.answered", 0, 0) !== 0 && this.read("tokenizer.fine", 0, 0) !== 0) return "";
    const unknown = this.read("prompt.unknown", this.nTokens - 1, 0);
    const nearest = this.read("prompt.nearest", 0, 0);
    if (unknown) return `‘${shortened(String(unknown))}’ is not a word of this model` + (nearest ? `; the nearest is ‘${nearest}’` : "");
    return readable(String(this.read("tokenizer.message", 0, 0) ?? "Nothing is typed"));
  }

  /**
   * @param {Block | string} block
   * @returns {Block}
   */
  blockOf(block) {
    return typeof block === "string" ? this.graph.get(block) : block;
  }

  /**
   * @param {Edit} edit
   * @returns {boolean} whether it changes what was built
   */
  isNew(edit) {
    const { block, i, j } = edit;
    const name = keyOf(edit);
    if (!this.built.has(name) && !this.live.isSet(block, i, j)) this.built.set(name, this.live.value(block, i, j));
    return !block.isInput || block.isTable || this.built.get(name) !== edit.value;
  }
}

/** @param {Edit} edit */
function keyOf({ block, i, j }) {
  return `${block.name}[${i},${j}]`;
}

/** Brings a run to a list of edits. @param {Run} run @param {Edit[]} edits
 * @returns {import("./slices.js").Steps<number>} cells computed */
function* bring(run, edits) {
  const wanted = new Map(edits.map((edit) => [keyOf(edit), edit]));
  for (const old of run.edits()) if (!wanted.has(keyOf(old))) run.unset(old.block, old.i, old.j);
  for (const { block, i, j, value } of wanted.values()) {
    if (!run.isSet(block, i, j) || run.value(block, i, j) !== value) run.set(block, i, j, value);
  }
  return yield* run.recomputing();
}

/** The places of the largest numbers, largest first. @param {ArrayLike<number>} numbers @param {number} [n] */
export function best(numbers, n = 1) {
  const found = /** @type {number[]} */ ([]);
  for (let k = 0; k < numbers.length; k++) {
    if (found.length === n && !(numbers[k] > numbers[found[n - 1]])) continue;
    let at = found.length;
    while (at > 0 && numbers[k] > numbers[found[at - 1]]) at--;
    found.splice(at, 0, k);
    if (found.length > n) found.pop();
  }
  return found;
}
