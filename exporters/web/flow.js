// "Follow the word": the sentence on the left, the layers from left to right, the answer on the
// right. A ribbon leads from a word that a head reads to the word that looks, as thick as what the
// head adds to the answer's logit. A loop is an MLP, or what else works on one word alone.

import { brief, byId, element, percent, quoted, vector } from "./dom.js";
import { answerSteps, fewer, givesTo, mainPlace, neighbours, thickness } from "./parts.js";
import { best } from "./session.js";
import { finished } from "./slices.js";
import { HeadSteps, headBlocks } from "./steps.js";

/** @typedef {import("./session.js").Session} Session */
/** @typedef {import("./parts.js").Part} Part */
/** @typedef {import("./parts.js").Column} Column */
/** @typedef {import("./parts.js").Answer} Answer */
/** A line of the picture: one word, or several. @typedef {{text: string, y: number, keys: string[]}} Line */
/** Where things stand, in pixels. @typedef {{width: number, height: number, left: number, right: number, isNarrow: boolean, pitch: number, step: number}} Frame */

const THICKEST = 24; // pixels, of the largest share
const SMALL = 0.12; // of the largest share: what is less is pale
const FLOW_RANKS = 4;
const ROOM = { wide: { left: 104, right: 168, step: 66, lines: 12 }, narrow: { left: 76, right: 84, step: 38, lines: 9 } };
const TOP = 58; // pixels above the first word
const NAME_HIGH = 15; // pixels from one name to the next
const LETTER_WIDE = 6.6;
const FLOW_PACE = 1100; // milliseconds for each column

/** The view of one model. */
class Flow {
  /** @param {Session} session @param {HTMLElement} container @param {(part: Part) => void} openCells */
  constructor(session, container, openCells) {
    this.session = session;
    this.container = container;
    this.openCells = openCells;
    this.shown = Infinity; // columns
    this.chosen = "";
    this.timer = 0;
    this.width = 0;
    /** Where names of parts stand. @type {[number, number][]} */ this.named = [];
    this.picture = element("div", { class: "flow-picture" });
    this.told = element("p", { class: "flow-told", "aria-live": "polite" });
    this.buttons = element("div", { class: "flow-actions" });
    this.slider = element("input", { type: "range", min: 0, step: 1, oninput: () => this.goTo(Number(this.slider.value)) });
    this.player = element("button", { type: "button", class: "primary", onclick: () => (this.timer ? this.pause() : this.play()) });
    this.pace = element("label", { class: "flow-pace" }, element("span", {}, "Layers"), this.slider);
    this.legend = element("p", { class: "remark" });
    const [first, ...more] = session.data.about;
    this.examples = element("p", { class: "flow-examples" }, "Examples: ", ...session.data.examples.map((/** @type {string} */ text) => element("button", { type: "button", onclick: () => session.say(text) }, text)));
    this.examples.hidden = this.examples.childElementCount < 2;
    container.append(element("h2", {}, "Follow the word"), element("p", {}, first), this.examples, more.length ? element("details", { open: innerWidth > 1000 }, element("summary", {}, "More about this model"), element("p", {}, more.join(" "))) : "", this.legend, this.picture, element("div", { class: "flow-bar" }, this.player, this.pace), this.told, this.buttons);
    const five = element("section", { class: "five", "aria-label": "A head in five steps" });
    container.append(five);
    this.steps = new HeadSteps(session, five, () => this.focusPart());
    new ResizeObserver(() => this.width !== container.clientWidth && this.draw()).observe(container);
    session.draws(() => this.drawing());
  }

  /** Draws everything; on a large page once nothing is computed. */
  draw() {
    if (this.session.isLarge) this.session.drawSoon();
    else finished(this.drawing());
  }

  /** Draws in steps, with the numbers as they are now. @returns {import("./slices.js").Steps<void>} */
  *drawing() {
    const { session, container } = this;
    const silent = !!session.unanswered();
    for (const button of this.examples.children) button.setAttribute("aria-pressed", String(button.textContent === session.typed()));
    for (const node of [this.picture, this.slider, this.player, this.told, this.buttons]) node.hidden = silent;
    if (silent || container.hidden || !container.clientWidth) return;
    this.width = container.clientWidth;
    this.answer = yield* answerSteps(session);
    const isNarrow = container.clientWidth < 700;
    const room = isNarrow ? ROOM.narrow : ROOM.wide;
    const width = container.clientWidth - 28;
    this.columns = fewer(this.answer.columns, Math.max(3, Math.floor((width - room.left - room.right) / room.step)));
    this.parts = this.columns.flatMap(({ parts }) => parts);
    this.most = Math.max(1e-12, ...this.parts.map(thickness));
    const lines = this.lines(room.lines);
    const letters = Math.max(isNarrow ? 2 : "answer so far".length, ...lines.map(({ text }) => [...text].length));
    const left = Math.min(room.left, 14 + LETTER_WIDE * 1.15 * letters);
    const word = quoted(session.label("vocab_out", this.answer.word));
    const light = this.parts.some(({ later }) => later) ? " Pale ones act through later layers. Numbers in brackets are such indirect effects." : "";
    this.legend.textContent = `A ribbon leads from a word that a head reads. A loop is an MLP. Thick ribbons and loops add much to ${word} (blue), or take much from it (orange).${light}`;
    const pitch = Math.max(20, Math.min(40, 300 / lines.length));
    for (const [k, line] of lines.entries()) line.y = TOP + k * pitch;
    this.frame = { width, height: TOP + lines.length * pitch + 46, left, right: room.right, isNarrow, pitch, step: (width - left - room.right) / this.columns.length };
    this.show(lines);
  }

  /** The words, one on each line; neighbours that add little share one. @param {number} most @returns {Line[]} */
  lines(most) {
    const { session, answer } = this;
    const read = new Map();
    for (const { ribbons } of this.parts ?? []) for (const ribbon of ribbons) read.set(`${ribbon.axis} ${ribbon.at}`, (read.get(`${ribbon.axis} ${ribbon.at}`) ?? 0) + thickness(ribbon));
    const words = session.tokens().map(({ text }, at) => ({ key: `token ${at}`, text }));
    if (session.hasSource) words.unshift(...Array.from({ length: Number(session.read("encoder.n_prompt", 0, 0)) || session.graph.get("encoder.tokens").rows }, (_, at) => ({ key: `source ${at}`, text: session.label("source", at) })));
    const here = `token ${answer?.row}`;
    return neighbours(words.map(({ key }) => (key === here ? Infinity : (read.get(key) ?? 0))), most).map((group) => {
      const texts = group.map((k) => words[k].text);
      return { text: texts.length > 1 ? `${texts.length} others` : texts[0], y: 0, keys: group.map((k) => words[k].key) };
    });
  }

  /** @param {Line[]} lines */
  show(lines) {
    const { answer, columns, parts, frame } = this;
    if (!answer || !columns || !parts || !frame) return;
    const hadFocus = this.picture.contains(document.activeElement);
    /** @type {Map<string, Line>} */ const lineOf = new Map(lines.flatMap((line) => line.keys.map((key) => [key, line])));
    const here = lineOf.get(`token ${answer.row}`) ?? lines[lines.length - 1];
    const end = frame.width - frame.right;
    const streams = lines.map((line) => vector("path", { class: line === here ? "stream now" : "stream", d: `M${frame.left} ${line.y}H${line === here ? end + 6 : end - 10}` }));
    const names = lines.map((line) => vector("text", { x: frame.left - 8, y: line.y + 5, "text-anchor": "end", class: line === here ? "strong" : line.keys.length > 1 ? "soft" : "" }, cut(line.text, frame.left - 12)));
    if (!parts.some(({ name }) => name === this.chosen)) {
      const directly = (/** @type {Part} */ { adds }) => Math.abs(adds);
      const [head, any] = [mainPart(parts.filter(({ kind }) => kind === "head"), directly), mainPart(parts.filter(({ kind }) => kind !== "several"), directly) ?? parts[0]];
      this.chosen = (head && 2 * directly(head) > directly(any) ? head : any).name;
    }
    this.named = [];
    const drawn = columns.map((column, k) => this.column(column, k, lineOf, here));
    const guesses = columns.some(({ lens }) => lens >= 0) && !frame.isNarrow;
    if (guesses) names.push(vector("text", { x: frame.left - 8, y: 30, "text-anchor": "end", class: "soft" }, "answer so far"));
    const label = `How the model comes to its answer: ${this.answerTold()}`;
    const svg = vector("svg", { width: frame.width, height: frame.height, role: "group", "aria-label": label, onkeydown: (/** @type {KeyboardEvent} */ event) => this.move(event) }, ...streams, ...names, ...drawn, ...this.ranks(here.y));
    this.picture.replaceChildren(svg);
    this.slider.max = String(columns.length);
    this.slider.value = String(Math.min(this.shown, columns.length));
    this.slider.setAttribute("aria-valuetext", this.shown >= columns.length ? "all layers" : this.titleOf(Math.max(0, this.shown - 1)));
    this.player.textContent = this.timer ? "Pause" : "Play";
    this.mark(this.chosen);
    if (hadFocus) this.focusPart();
    const opened = parts.find(({ name }) => name === this.steps.name);
    if (opened) this.steps.draw(opened);
    else this.steps.hide();
  }

  focusPart() {
    /** @type {SVGElement | null} */ (this.picture.querySelector("[tabindex='0']"))?.focus({ preventScroll: true });
  }

  /** A column: what stands above it, and its parts. @param {Column} column @param {number} k @param {Map<string, Line>} lineOf @param {Line} here */
  column(column, k, lineOf, here) {
    const { frame, session } = this;
    if (!frame) return "";
    const x = frame.left + k * frame.step;
    const middle = x + frame.step / 2;
    const head = [vector("text", { x: middle, y: 14, "text-anchor": "middle", class: "soft" }, cut(this.titleOf(k), frame.step - 2))];
    if (column.lens >= 0) {
      const probs = session.live.numbers(session.graph.get(`lens.${column.lens}.probs`));
      const [most] = best(probs);
      const word = session.label("vocab_out", most);
      head.push(vector("text", { x: middle, y: 30, "text-anchor": "middle" }, cut(word, frame.step - 4)), vector("text", { x: middle, y: 44, "text-anchor": "middle", class: "soft small" }, frame.isNarrow ? `${Math.round(100 * probs[most])} %` : percent(probs[most])));
    }
    const order = [...column.parts].sort((a, b) => thickness(b) - thickness(a));
    const parts = order.map((part) => this.part(part, x, column.parts.indexOf(part) / column.parts.length, lineOf, here));
    const names = order.filter((part) => !this.isSmall(part)).map((part) => this.nameOf(part, x, lineOf, here));
    return vector("g", { class: k < this.shown ? "column" : "column later" }, ...head, ...parts.reverse(), ...names); // the largest on top
  }

  /** @param {number} k */
  titleOf(k) {
    const column = this.columns?.[k];
    if (!column) return "";
    if (column.parts[0].kind === "several") return `${column.parts[0].name.split(" ")[0]}${this.frame?.isNarrow ? " …" : " parts"}`;
    if (column.layer === null) return { bias: "biases", typed: "typed" }[column.key] ?? "the word";
    const kind = column.parts[0].kind === "head" ? "heads" : column.parts[0].name.split(" ")[0];
    const whole = `Layer ${column.layer} ${kind}`;
    if (this.frame?.isNarrow) return `L${column.layer}`;
    return whole.length * LETTER_WIDE < (this.frame?.step ?? 0) ? whole : `Layer ${column.layer}`;
  }

  /** A part: its ribbons, or a loop. @param {Part} part @param {number} x @param {number} shift from 0 to 1 @param {Map<string, Line>} lineOf @param {Line} here */
  part(part, x, shift, lineOf, here) {
    const { frame, most = 1 } = this;
    if (!frame) return "";
    const { step } = frame;
    const thick = (/** @type {number} */ adds) => (Math.abs(adds) < most / 400 ? 0 : Math.max(0.7, (THICKEST * Math.abs(adds)) / most));
    const drawn = /** @type {SVGElement[]} */ ([]);
    /** Two lines beside each other: directly, and through later layers. @param {{adds: number, later: number}} both @param {(y: number) => string} d */
    const draw = ({ adds, later }, d) => {
      for (const [size, kind, y] of /** @type {[number, string, number][]} */ ([[later, "indirect", (thick(adds) + thick(later)) / 2], [adds, "direct", 0]]))
        if (thick(size)) drawn.push(vector("path", { class: `${size < 0 ? "takes" : "adds"} ${kind}${part.ribbons.length ? " ribbon" : ""}`, "stroke-width": thick(size).toFixed(1), d: d(adds && thick(adds) ? y : 0) }));
    };
    const [from, to] = [x + 0.08 * step, x + step * (0.62 + 0.3 * shift)];
    for (const { row, adds, later } of part.places) {
      const target = lineOf.get(`token ${row}`) ?? here;
      const rest = { adds, later };
      for (const ribbon of part.ribbons.filter((each) => each.to === row)) {
        const start = lineOf.get(`${ribbon.axis} ${ribbon.at}`);
        rest.adds -= ribbon.adds;
        rest.later -= ribbon.later;
        if (!start) continue;
        const [a, b, half] = [start.y, target.y, (to - from) / 2];
        const lift = a === b ? -Math.min(20, frame.pitch * 0.6) : 0;
        draw(ribbon, (y) => `M${from} ${a + y}C${from + half} ${a + lift + y} ${to - half} ${b + lift + y} ${to} ${b + y}`);
      }
      const y = target.y + 3;
      if (!part.ribbons.length || thickness(rest) > 1e-6 * most) draw(rest, (down) => `M${x + step * 0.26} ${y}C${x + step * 0.2} ${y + 34 + down} ${x + step * 0.8} ${y + 34 + down} ${x + step * 0.74} ${y}`);
    }
    const told = this.sentence(part);
    const act = () => this.choose(part);
    return vector("g", {
      ...{ class: `flow-part${this.isSmall(part) ? " pale" : ""}${this.isOff(part) ? " off" : ""}`, role: "button", tabindex: -1, "data-name": part.name, "aria-label": told },
      ...{ onpointerenter: () => this.mark(part.name), onfocus: () => this.mark(part.name), onclick: act },
      onkeydown: (/** @type {KeyboardEvent} */ event) => ["Enter", " "].includes(event.key) && (event.preventDefault(), act()),
    }, ...drawn);
  }

  /** @param {Part} part */
  isSmall(part) {
    return thickness(part) < SMALL * (this.most ?? 1);
  }

  /** The name of a part and what it adds, under a loop or beside the thickest ribbon.
   * @param {Part} part @param {number} x @param {Map<string, Line>} lineOf @param {Line} here */
  nameOf(part, x, lineOf, here) {
    const { pitch, step } = /** @type {Frame} */ (this.frame);
    const [thickest] = [...part.ribbons].sort((a, b) => thickness(b) - thickness(a));
    const target = (thickest && lineOf.get(`token ${thickest.to}`)) || (lineOf.get(`token ${part.row}`) ?? here);
    const start = thickest && lineOf.get(`${thickest.axis} ${thickest.at}`);
    const y = !start ? target.y + 42 : start === target ? target.y - 0.6 * pitch : (start.y + target.y) / 2 + 4;
    const free = [0, -1, 1, -2, 2, -3, 3].map((k) => y + k * NAME_HIGH).find((each) => each > TOP && !this.named.some(([left, top]) => left === x && Math.abs(top - each) < NAME_HIGH)) ?? y;
    this.named.push([x, free]);
    const at = { x: x + step * (start && start !== target ? 0.42 : 0.5), y: free };
    return vector("text", { class: "part-name", "aria-hidden": "true", onclick: () => this.choose(part), "text-anchor": "middle", ...at }, `${this.shortName(part)} ${this.numberOf(part)}`);
  }

  /** What a part adds; in brackets what it adds through later layers, if that is more. @param {Part} part */
  numberOf({ adds, later }) {
    return Math.abs(later) > Math.abs(adds) ? `(${withSign(later)})` : withSign(adds);
  }

  /** @param {Part} part */
  shortName(part) {
    const isTight = (this.frame?.step ?? 0) < 90;
    if (part.kind === "several") return "";
    return isTight ? part.name.replace(/^[A-Za-z ]+ (?=\d)/, "").replace("embedding", "") : part.name;
  }

  /** The likeliest words now, and what the model said as built. @param {number} y of the looking word */
  ranks(y) {
    const { session, frame } = this;
    if (!frame) return [];
    const [now, before] = [session.row(session.live, "probs"), session.row(session.baseline, "probs")];
    const x = frame.width - frame.right + 14;
    const start = Math.min(y, frame.height - 20 * FLOW_RANKS - 10);
    const text = (/** @type {number} */ down, /** @type {string} */ kind, /** @type {string} */ said) => vector("text", { x, y: start + down, class: kind }, said);
    const word = (/** @type {number} */ id, room = frame.isNarrow ? 4 : 84) => cut(session.label("vocab_out", id), frame.right - 14 - room);
    const [first, ...others] = best(now, FLOW_RANKS);
    const { gives } = session.data;
    const title = gives === "next word" ? `next ${session.noun}` : gives === "masked word" ? `${session.noun} here` : "answer";
    const [was] = best(before);
    const told = was === first ? [] : [text(-30, "was", frame.isNarrow ? `was ${word(was, 26)}` : `before: ${word(was)}`)];
    const all = [...told, text(-14, "soft small", title)];
    if (frame.isNarrow) return [...all, text(6, "answer", word(first)), text(25, "small", percent(now[first]))];
    return [...all, text(6, "answer", `${word(first)} ${percent(now[first])}`), ...others.map((id, k) => text(30 + 20 * k, "soft", `${word(id)} ${percent(now[id])}`))];
  }

  /** The answer in words. */
  answerTold() {
    const { session, answer } = this;
    if (!answer) return "";
    const word = quoted(session.label("vocab_out", answer.word));
    return `it says ${word}, ${percent(session.row(session.live, "probs")[answer.word])}.`;
  }

  /** Describes a part in one sentence with live numbers. @param {Part} part */
  sentence(part) {
    const { session, answer } = this;
    if (!answer) return "";
    const word = quoted(session.label("vocab_out", answer.word));
    const { row } = mainPlace(part);
    const looking = quoted(session.label("token", row));
    const gives = givesTo(part, word);
    const name = part.name[0].toUpperCase() + part.name.slice(1);
    if (this.isOff(part)) return `${name} is switched off.`;
    if (part.kind === "head") {
      const most = part.ribbons.filter(({ to }) => to === row).reduce((a, b) => (b.share > a.share ? b : a));
      return `${name} gives ${quoted(session.label(most.axis, most.at))} ${percent(most.share)} of the attention of ${looking}. This head ${gives}.`;
    }
    if (part.kind === "bias") return `Constant numbers in the model (biases): together this ${gives}.`;
    if (part.kind === "embedding") return `The word ${looking} by itself, before any layer: this ${gives}.`;
    if (part.kind === "several") return `${name}: together this ${gives}.`;
    if (part.kind === "typed") return `The numbers that you typed over the stream: this ${gives}.`;
    return part.block.part === "mlp" || part.block.leaf === "mlp_out" ? `${name} works on each word alone. At ${looking} it ${gives}.` : `${name} at ${looking}: this ${gives}.`;
  }

  /** @param {Part} part */
  isOff(part) {
    return !!part.path && this.session.read(`${part.path}.switch`, 0, 0) === 0;
  }

  /** Tells about a part, and offers what can be done with it. @param {string} name */
  mark(name) {
    const part = this.parts?.find((each) => each.name === name);
    if (!part || !this.answer) return;
    this.chosen = name;
    for (const node of this.picture.querySelectorAll(".flow-part")) {
      const isHere = node.getAttribute("data-name") === name;
      node.classList.toggle("chosen", isHere);
      node.setAttribute("tabindex", isHere ? "0" : "-1");
    }
    const sum = `The direct parts of all heads and MLPs sum to the logit of ${quoted(this.session.label("vocab_out", this.answer.word))}, ${brief(this.answer.logit)}.`;
    const told = `${this.sentence(part)} ${sum}`;
    if (this.told.textContent !== told) this.told.textContent = told;
    const off = part.path && element("button", { type: "button", onclick: () => this.session.switchOff(part.path, !this.isOff(part)) }, this.isOff(part) ? `Switch ${part.name} on` : `Switch ${part.name} off`);
    const cells = part.kind === "several" ? null : element("button", { type: "button", onclick: () => this.open(part) }, headBlocks(this.session, part) ? `Open ${part.name} in five steps` : `Open ${part.name}`);
    if (!this.buttons.contains(document.activeElement)) this.buttons.replaceChildren(...[off, cells].filter((each) => !!each));
    else this.buttons.firstElementChild?.replaceChildren(this.isOff(part) ? `Switch ${part.name} on` : `Switch ${part.name} off`);
  }

  /** @param {Part} part */
  choose(part) {
    this.mark(part.name);
    this.open(part);
  }

  /** Opens a head in five steps; the cells of another part. @param {Part} part */
  open(part) {
    const now = this.parts?.find(({ name }) => name === part.name) ?? part; // a button may be older than the last edit
    if (headBlocks(this.session, now)) this.steps.open(now);
    else if (now.kind !== "several") this.openCells(now);
  }

  /** Moves the focus among the parts. @param {KeyboardEvent} event */
  move(event) {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step || !this.parts) return;
    event.preventDefault();
    event.stopPropagation();
    const at = this.parts.findIndex(({ name }) => name === this.chosen);
    const next = this.parts[(at + step + this.parts.length) % this.parts.length];
    /** @type {SVGElement | null} */ (this.picture.querySelector(`[data-name="${next.name}"]`))?.focus();
  }

  /** Shows the first columns, and tells about the last of them. @param {number} n */
  goTo(n) {
    this.shown = n;
    const parts = this.columns?.[n - 1]?.parts;
    if (parts) this.chosen = mainPart(parts).name;
    this.draw();
  }

  play() {
    const all = this.columns?.length ?? 0;
    const next = () => {
      if (this.shown >= all) return this.pause();
      this.goTo(this.shown + 1);
      return undefined;
    };
    if (this.shown >= all) this.shown = 0;
    this.timer = window.setInterval(next, FLOW_PACE);
    next();
  }

  pause() {
    clearInterval(this.timer);
    this.timer = 0;
    this.draw();
  }
}

/** The part that adds or takes most. @param {Part[]} parts @param {(part: Part) => number} size */
function mainPart(parts, size = thickness) {
  return [...parts].sort((a, b) => size(b) - size(a))[0];
}

/** A text as far as it fits. @param {string} text @param {number} room in pixels */
function cut(text, room) {
  const most = Math.max(2, Math.floor(room / LETTER_WIDE));
  const letters = [...text];
  return letters.length > most ? `${letters.slice(0, most - 1).join("")}…` : text;
}

/** @param {number} x */
function withSign(x) {
  return `${x < 0 ? "−" : "+"}${Math.abs(x).toFixed(Math.abs(x) < 10 ? 1 : 0)}`;
}

/** Shows the view of a model that says how its answer is made up.
 * @param {Session} session @param {(part: Part) => void} open */
export function showFlow(session, open) {
  if (!session.data.flow?.length || !session.graph.has("probs")) return;
  byId("flow").hidden = false;
  new Flow(session, byId("flow"), open);
}
