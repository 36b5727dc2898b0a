// The sentence and how the next word is chosen: what one types, next word, run on, the dials.

import { writtenBy } from "./chat.js";
import { byId, element } from "./dom.js";
import { readable } from "./outside.js";

/** @typedef {import("./session.js").Session} Session */
/** @typedef {{name: string, text: string, step: number, most: number, hint: string}} Dial */

// ms from one word to the next
const PACE = 250;
// words that are listed
const MOST_LISTED = 200;
// ms without a key before the sentence is read
const MOST_LINES = 4; // of a sentence; a longer one scrolls
const PAUSE = 120;
/** @type {Dial[]} */
const OF_SAMPLING = [
  { name: "temperature", text: "temperature", step: 0.1, most: 100, hint: "below 1: more certain; above 1: less" },
  { name: "top_k", text: "top-k", step: 1, most: 1e6, hint: "only the k likeliest words; 0: all" },
  { name: "top_p", text: "top-p", step: 0.05, most: 1, hint: "the likeliest, up to this total share; 1: all" },
  { name: "min_p", text: "min-p", step: 0.05, most: 1, hint: "at least this share of the top probability; 0: all" },
  { name: "repetition_penalty", text: "repetition penalty", step: 0.1, most: 100, hint: "above 1: earlier words are less likely; 1: no penalty" },
];

const OF_GREEDY = ["temperature", "repetition_penalty"];
const OF_CHAT = { "chat.system": "System", "chat.earlier": "Earlier turns", "": "You", "chat.begun": "Answer so far" };

/** The line with the sentence. */
export class Sentence {
  /** @param {Session} session @param {HTMLElement} container */
  constructor(session, container) {
    this.session = session;
    this.running = 0;
    /** how often it went on */ this.runs = 0;
    const { graph } = session;
    const chats = graph.has("chat.you");
    const typed = session.hasSource ? ["encoder."] : ["", "b."].filter((prefix) => graph.has(`${prefix}tokens`));
    const prefixes = chats ? Object.keys(OF_CHAT).filter((name) => !name || graph.has(name)) : typed;
    this.fields = prefixes.map((prefix) => this.field(prefix));
    this.next = element("button", { type: "button", class: "primary", onclick: () => session.next() }, `Next ${session.noun}`);
    this.run = element("button", { type: "button", onclick: () => this.toggle() }, "Run on");
    container.append(...this.fields.map(({ label }) => label));
    if (session.goesOn) container.append(this.next, this.run);
    if (graph.has("temperature")) container.append(this.dials());
    if (session.noun === "word" && session.vocabulary.length <= MOST_LISTED) container.append(this.known());
    this.text = element("p", { id: "text", hidden: true });
    container.append(this.text);
    session.subscribe(() => this.draw());
    this.draw();
  }

  /** Whether a line break is something that the model reads. */
  get breaksLines() {
    return this.session.data.vocabulary?.includes("\\n") || this.session.graph.has("tokenizer.text");
  }

  /** @param {string} prefix of the second sentence */
  field(prefix) {
    const isText = this.session.graph.has(`${prefix}sentence`);
    const said = this.session.graph.has("chat.you") ? /** @type {Record<string, string>} */ (OF_CHAT)[prefix] : "";
    const isSource = prefix === "encoder.";
    const other = isSource ? (isText ? "Source sentence" : "Source token ids") : "The other sentence";
    const name = said || (prefix ? other : isText ? "Sentence" : "Token ids");
    const area = element("textarea", {
      ...{ id: `${prefix}sentence`, rows: 1, spellcheck: "false", autocomplete: "off", autocapitalize: "off" },
      ...{ "aria-describedby": "ledger" },
    });
    let waits = 0;
    const read = () => {
      clearTimeout(waits);
      if (waits) this.session.say(area.value, prefix);
      waits = 0;
    };
    area.addEventListener("input", () => {
      clearTimeout(waits);
      waits = window.setTimeout(read, PAUSE);
    });
    area.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || (this.breaksLines && !event.ctrlKey)) return;
      event.preventDefault();
      read();
    });
    area.addEventListener("blur", () => {
      read();
      this.draw();
    });
    const label = element("label", { class: said || prefix || !isText ? "sentence" : "sentence named" }, element("span", {}, name), area);
    return { area, label, prefix };
  }

  /** The words that the model knows: a click adds one to the sentence. */
  known() {
    const [{ area, prefix }] = this.fields;
    const word = (/** @type {string} */ text) => element("button", { type: "button", onclick: () => this.session.say(`${area.value.trim()} ${text}`.trim(), prefix) }, readable(text));
    const words = this.session.vocabulary;
    return element("details", { class: "known" }, element("summary", {}, `The ${words.length} words that it knows`), element("p", {}, ...words.map(word)));
  }

  /** The dials: how the next word is chosen. */
  dials() {
    const { session } = this;
    const { graph } = session;
    this.inputs = OF_SAMPLING.filter(({ name }) => graph.has(name)).map((dial) => this.dial(dial));
    const box = element("div", { class: "dials", role: "group", "aria-label": "How the next word is chosen" });
    if (graph.has("choose")) {
      const options = ["greedy", "sampled"].map((name) => element("option", { value: name }, name));
      this.choose = element("select", { onchange: () => session.set("choose", 0, 0, this.choose?.value) }, ...options);
      box.append(element("label", { title: "greedy: the likeliest; sampled: drawn by chance" }, "choose", this.choose));
    }
    box.append(...this.inputs.map(({ label }) => label));
    if (graph.has("random")) {
      this.random = element("input", { type: "number", min: 0, max: 1, step: 0.01, onchange: () => this.setRandom(Number(this.random?.value)) });
      this.draws = element("span", { class: "draws" },
        element("label", { title: "the random number between 0 and 1 that draws this word" }, "random number", this.random),
        element("button", { type: "button", onclick: () => this.drawNumbers() }, "Draw anew"));
      box.append(this.draws);
    }
    return box;
  }

  /** @param {Dial} dial */
  dial({ name, text, step, most, hint }) {
    const input = element("input", { type: "number", min: 0, max: most, step });
    input.addEventListener("input", () => {
      if (input.value.trim() && Number.isFinite(input.valueAsNumber)) this.session.set(name, 0, 0, input.valueAsNumber, name);
    });
    return { name, input, label: element("label", { title: hint, class: name }, text, input) };
  }

  /** The row of `random` that draws the word after the one that is looked at. */
  get drawn() {
    return Math.min(this.session.position + 1, this.session.nTokens);
  }

  /** @param {number} number */
  setRandom(number) {
    if (number >= 0 && number <= 1) this.session.set("random", this.drawn, 0, number, "random");
  }

  /** Puts new random numbers into the cells of all words that come. */
  drawNumbers() {
    const block = this.session.graph.get("random");
    const edits = [];
    for (let i = this.session.nGiven; i < block.rows; i++) edits.push({ block, i, j: 0, value: Math.random() });
    this.session.setAll(edits, "random");
  }

  /** Goes on by itself, or stops. */
  toggle() {
    if (this.running) {
      clearInterval(this.running);
      this.running = 0;
    } else if (this.session.isLarge) {
      this.goOn(++this.runs);
    } else {
      const step = () => {
        if (!this.session.next()) this.toggle();
      };
      this.running = window.setInterval(step, PACE);
    }
    this.draw();
  }

  /** Goes on word by word, each as soon as the one before it is computed. @param {number} run */
  async goOn(run) {
    this.running = run;
    while (this.running === run && this.session.next()) await this.session.settled();
    if (this.running === run) this.running = 0;
    this.draw();
  }

  /** Shows the sentence as it goes on, as a text. */
  drawText() {
    const { session } = this;
    this.text.hidden = session.shown === session.nTyped || !!session.unanswered();
    const upTo = (/** @type {number} */ n) => {
      const line = session.read("text.line", n - 1, 0);
      if (line !== undefined) return String(line);
      const texts = session.tokens().slice(0, n).map((token) => token.text);
      if (session.noun === "token") return writtenBy(texts);
      return texts.join(session.noun === "word" ? " " : "").replaceAll("␣", " ");
    };
    const [given, whole] = [upTo(session.nTyped), upTo(session.shown)];
    this.text.replaceChildren(given, element("em", {}, whole.slice(given.length)));
  }

  /** Shows the state. */
  draw() {
    const { session } = this;
    const { graph } = session;
    for (const { area, prefix } of this.fields) {
      const text = session.typed(prefix);
      if (document.activeElement !== area && area.value !== text) area.value = text;
      area.rows = Math.min(MOST_LINES, text.split("\n").length);
      while (area.rows < MOST_LINES && area.scrollHeight > area.clientHeight) area.rows += 1;
      area.setAttribute("aria-invalid", String(!prefix && !!session.unanswered()));
    }
    this.drawText();
    this.next.disabled = session.isFull || !!session.unanswered();
    this.run.textContent = this.running ? "Stop" : "Run on";
    this.run.disabled = !this.running && this.next.disabled;
    if (this.choose) this.choose.value = String(session.read("choose", 0, 0));
    for (const { name, input, label } of this.inputs ?? []) {
      if (document.activeElement !== input) input.value = String(session.read(name, 0, 0));
      label.hidden = !OF_GREEDY.includes(name) && this.choose?.value === "greedy";
    }
    if (this.draws && this.random) {
      this.draws.hidden = this.choose?.value === "greedy";
      if (document.activeElement !== this.random) this.random.value = Number(session.read("random", this.drawn, 0)).toFixed(3);
    }
    byId("top").classList.toggle("sampled", this.choose?.value === "sampled");
  }
}
