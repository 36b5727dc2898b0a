// The machine: a model as one picture, from its tokens to what it says. In each picture a row is a
// token; a click on one opens its numbers.

import { anatomy, partName } from "./anatomy.js";
import { brief, byId, element, grouped, percent, quoted } from "./dom.js";
import { cellAt, draw, fullOf } from "./drawing.js";
import { creditOf, creditTold, numbersShown, overlays } from "./overlays.js";
import { answerSteps, thickness } from "./parts.js";
import { best } from "./session.js";
import { finished } from "./slices.js";

/** @typedef {import("./session.js").Session} Session */
/** @typedef {import("./anatomy.js").Tile} Tile */
/** @typedef {import("./anatomy.js").Layer} Layer */
/** @typedef {import("./graph.js").Block} Block */
/** @typedef {import("./drawing.js").Drawing} Drawing */
/** @typedef {{tile: Tile, button: HTMLButtonElement, canvas: HTMLCanvasElement, says: HTMLElement, part: HTMLElement,
 *   box: HTMLInputElement | null, drawing: Drawing | null, frame: {left: number, wide: number, high: number}}} Drawn */

// pixels that an open layer needs
const WIDE_LAYER = 225;
// layers of which the first is no better than others
const MANY_LAYERS = 8;
// what stands beside the layers
const BESIDE = 330;
/** How high a row of a picture is at most, and a whole picture: of a head, of another.
 * @type {Record<string, [number, number][]>} */
const HIGH = { usual: [[26, 96], [15, 48]], roomy: [[40, 240], [26, 104]], tight: [[20, 60], [12, 36]] };

/** Where an arrow key leads. @type {Record<string, [number, number]>} */
const WAYS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const REACHED = ".tile, [data-part]"; // what arrow keys move among
const SIDEWAYS = 3; // how much less a pixel counts along the arrow than across it

/** The picture of a model. */
export class Machine {
  /** @param {Session} session @param {HTMLElement} container */
  constructor(session, container) {
    this.session = session;
    this.container = container;
    this.anatomy = anatomy(session.graph);
    /** @type {Drawn[]} */ this.drawn = [];
    /** @type {{layer: Layer, canvases: HTMLCanvasElement[], says: HTMLElement}[]} */ this.folded = [];
    /** The layers that are open where others fold. @type {Set<number>} */ this.open = new Set(session.isLarge ? [] : finished(this.opensFirst()));
    this.hasOpened = !session.isLarge;
    this.width = 0;
    this.narrow = 0;
    this.most = 1;
    this.asked = false;
    this.isDrawn = false;
    /** What the pictures show: see overlays.js. */ this.shows = "numbers";
    new ResizeObserver(() => this.resized()).observe(container);
    if (session.isLarge) session.draws(() => this.drawing());
    else session.subscribe(() => this.ask());
    byId("lead").append(this.chooser());
    container.addEventListener("keydown", moveFocus);
    this.build();
  }

  /** Whether the layers are too many to stand side by side. */
  get folds() {
    const { length } = this.anatomy.layers;
    return this.width < 700 ? length > 3 : length * WIDE_LAYER + BESIDE > this.width;
  }

  /** The layers that are open at first: of many layers, those of the heads that suggested edits
   * switch off, and that of the head that adds most to the answer.
   * @returns {import("./slices.js").Steps<number[]>} */
  *opensFirst() {
    const { session, anatomy: { layers } } = this;
    if (layers.length < MANY_LAYERS || !session.data.flow?.length) return layers.slice(0, 1).map(({ n }) => n);
    const heads = (yield* answerSteps(session)).columns.flatMap(({ layer, parts }) => parts.filter(({ kind }) => kind === "head").map((part) => ({ layer, size: thickness(part) })));
    const [most] = heads.sort((a, b) => b.size - a.size);
    const edited = (session.data.suggestions ?? []).flatMap((/** @type {import("./sheet.js").Suggestion} */ { edits }) => edits.map(([name]) => session.graph.get(name)));
    const switched = edited.filter((/** @type {Block} */ { leaf }) => leaf === "switch").map((/** @type {Block} */ { layer }) => layer);
    return [...switched, most?.layer].filter((n) => typeof n === "number");
  }

  /** How much room there is for each picture. */
  get room() {
    const { layers } = this.anatomy;
    const heads = (layers[0]?.tiles ?? []).filter((tile) => tile.kind === "head").length;
    return this.folds && this.width > 700 ? "tight" : layers.length < 2 && heads < 3 ? "roomy" : "usual";
  }

  /** Builds anew where another number of layers fits. */
  resized() {
    const [folds, room] = [this.folds, this.room];
    this.width = this.container.clientWidth;
    if (folds !== this.folds || room !== this.room) this.build();
    this.ask();
  }

  /** Draws before the next frame; at first after it, so that one sees the answer before the pictures.
   * On a large page pictures wait until nothing is computed. */
  ask() {
    if (this.session.isLarge) this.session.drawSoon();
    if (this.asked || this.container.hidden || this.session.isLarge) return;
    this.asked = true;
    const draw = () => {
      this.asked = false;
      this.isDrawn = true;
      this.draw();
    };
    requestAnimationFrame(this.isDrawn ? draw : () => setTimeout(draw));
  }

  /** Makes all elements. */
  build() {
    this.drawn = [];
    this.folded = [];
    const { embedding, layers, readout } = this.anatomy;
    const stages = [this.stage("Tokens", "tokens", this.tokens())];
    if (embedding.length) stages.push(this.stage("Embedding", "", ...embedding.map((tile) => this.tile(tile))));
    for (const layer of layers) stages.push(this.folds && !this.open.has(layer.n) ? this.foldedLayer(layer) : this.layer(layer));
    if (readout.length) stages.push(this.stage(this.session.data.gives === "next word" ? `Next ${this.session.noun}` : "Result", "", ...readout.map((tile) => this.tile(tile))));
    this.container.replaceChildren(...stages);
    this.container.querySelector(".of-head")?.setAttribute("id", "heads");
    this.container.dataset.room = this.room;
  }

  /** What the pictures show, to choose. */
  chooser() {
    const options = overlays(this.session).map(([value, text]) => element("option", { value }, text));
    const select = element("select", { onchange: () => this.show(select.value) }, ...options);
    return element("label", { class: "shows" }, "Show", select);
  }

  /** @param {string} shows */
  show(shows) {
    this.shows = shows;
    this.container.dataset.shows = shows;
    this.ask();
  }

  /** @param {string} title @param {string} kind @param {...HTMLElement} inside */
  stage(title, kind, ...inside) {
    return element("section", { class: `stage ${kind}`, "aria-label": title }, element("h2", {}, title), ...inside);
  }

  /** A layer that is open. @param {Layer} layer */
  layer(layer) {
    const stage = this.stage(`Layer ${layer.n}`, "layer");
    if (this.folds) stage.firstElementChild?.append(this.folder(layer, "fold", true));
    if (layer.heads) stage.firstElementChild?.append(this.switcher(layer.heads, "all heads").label);
    /** @type {HTMLElement | null} */ let group = null;
    let kind = "";
    for (const tile of layer.tiles) {
      if (tile.kind !== kind) group = null;
      kind = tile.kind;
      const several = layer.tiles.filter((other) => other.kind === kind).length > 1 && kind !== "stage";
      if (several && !group) stage.append((group = element("div", { class: `group of-${kind}` })));
      (several && group ? group : stage).append(this.tile(tile));
    }
    return stage;
  }

  /** @param {Layer} layer @param {string} text @param {boolean} isOpen */
  folder(layer, text, isOpen) {
    const onclick = () => {
      if (isOpen) this.open.delete(layer.n);
      else this.open.add(layer.n);
      this.build();
      this.draw();
      byId(`fold-${layer.n}`).focus();
    };
    return element("button", { type: "button", id: `fold-${layer.n}`, class: "folder", "aria-expanded": isOpen, onclick }, text);
  }

  /** A layer as its heads alone, small; of a large page without them. @param {Layer} layer */
  foldedLayer(layer) {
    const heads = layer.tiles.filter((tile) => tile.kind === "head" && !this.session.isLarge);
    const canvases = heads.map(() => element("canvas", { "aria-hidden": "true" }));
    const says = element("span", { class: "told" });
    const button = this.folder(layer, `Layer ${layer.n}`, false);
    button.append(element("span", { class: "minis" }, ...canvases), says);
    this.folded.push({ layer, canvases, says });
    return element("section", { class: "stage folded", "aria-label": `Layer ${layer.n}` }, button);
  }

  /** A box that switches a part off. @param {string} part @param {string} name */
  switcher(part, name) {
    const onchange = () => this.session.switchOff(part, !box.checked);
    const box = element("input", { type: "checkbox", "data-part": part, onchange, checked: !this.isOff(part) });
    const [kind, number] = name.split(/ (?=[\d.]+$)/);
    const text = number ? element("span", {}, element("span", { class: "kind" }, `${kind} `), number) : name;
    return { box, label: element("label", { class: "onoff" }, box, text) };
  }

  /** @param {Tile} tile */
  tile(tile) {
    const canvas = element("canvas", { "aria-hidden": "true" });
    const says = element("span", { class: "told" });
    const switcher = tile.part ? this.switcher(tile.part, tile.title) : null;
    const title = switcher ? switcher.label : element("span", { class: "name" }, tile.title);
    const button = element("button", { type: "button", class: "tile", "data-block": tile.block.name }, canvas, says);
    const part = element("div", { class: `part of-${tile.kind}` }, title, button);
    const made = { tile, button, canvas, says, part, box: switcher?.box ?? null, drawing: null, frame: { left: 0, wide: 1, high: 1 } };
    button.addEventListener("click", (event) => this.clicked(made, event));
    canvas.addEventListener("pointermove", (event) => this.pointed(made, event));
    this.drawn.push(made);
    return part;
  }

  /** The tokens, one of which is looked at. */
  tokens() {
    const list = element("div", { class: "token-list", role: "radiogroup", "aria-label": "The token that the pictures show" });
    list.addEventListener("change", (event) => this.session.look(Number(/** @type {HTMLInputElement} */ (event.target).value)));
    this.list = list;
    return list;
  }

  /** Opens the cell that was clicked. @param {Drawn} made @param {MouseEvent} event */
  clicked(made, event) {
    const { block } = made.tile;
    if (!made.drawing) return;
    if (event.detail && event.target === made.canvas) {
      const [i, j] = cellAt(made.drawing, made.frame, event.offsetX, event.offsetY);
      this.session.select(block, i, j);
    } else {
      const i = Math.max(0, made.drawing.at);
      const row = rowOf(made.drawing, i);
      this.session.select(block, i, best(row.map(Math.abs))[0] ?? 0);
    }
  }

  /** Tells which cell is under the pointer. @param {Drawn} made @param {PointerEvent} event */
  pointed(made, event) {
    if (!made.drawing) return;
    const [i, j] = cellAt(made.drawing, made.frame, event.offsetX, event.offsetY);
    const { axes } = made.tile.block;
    const x = made.drawing.numbers[i * made.drawing.stride + j];
    const [row, col] = [this.session.label(axes[0], i), this.session.label(axes[1], j)];
    const value = made.drawing.isShare ? percent(x) : brief(x);
    const column = axes[1] === "vocab" ? quoted(col) : `number ${col}`;
    made.canvas.title = made.tile.kind === "head" ? `${quoted(row)} looks at ${quoted(col)}: ${value}` : `${quoted(row)}, ${column}: ${value}`;
  }

  /** Draws everything that is open. */
  draw() {
    finished(this.drawing());
  }

  /** The same in steps, tile by tile. @returns {import("./slices.js").Steps<void>} */
  *drawing() {
    const { session } = this;
    if (this.container.hidden) return;
    if (!this.hasOpened) {
      this.open = new Set([...this.open, ...(yield* this.opensFirst())]);
      this.hasOpened = true;
      this.build();
    }
    this.container.classList.toggle("unanswered", !!session.unanswered());
    this.drawTokens();
    this.most = Math.max(1e-9, ...this.drawn.map(({ tile }) => Math.abs(creditOf(session, tile) ?? 0)));
    // one scale for all bars
    this.narrow = Math.min(...this.drawn.map(({ says }) => says.clientWidth));
    const widths = this.drawn.map(({ canvas }) => canvas.clientWidth);
    for (const [k, made] of this.drawn.entries()) {
      this.drawTile(made, widths[k]);
      yield k / this.drawn.length;
    }
    for (const { layer, canvases, says } of this.folded) {
      const heads = layer.tiles.filter((tile) => tile.kind === "head");
      canvases.forEach((canvas, k) => {
        const drawing = this.drawingOf(heads[k]);
        canvas.classList.toggle("off", this.isOff(heads[k].part));
        draw(canvas, { ...drawing, labels: [] }, (canvas.clientWidth || 32) / drawing.rows, canvas.clientWidth);
      });
      const last = layer.tiles.filter((tile) => tile.kind === "stage").at(-1);
      says.textContent = last && last.lens >= 0 ? this.guess(last.lens) : "";
      yield 1;
    }
    for (const box of /** @type {NodeListOf<HTMLInputElement>} */ (this.container.querySelectorAll("[data-part]"))) {
      box.checked = !this.isOff(box.dataset.part ?? "");
    }
    const { selected } = session;
    for (const made of this.drawn) made.button.classList.toggle("selected", selected?.block === made.tile.block);
  }

  /** @param {string} part */
  isOff(part) {
    return !!part && this.session.read(`${part}.switch`, 0, 0) === 0;
  }

  /** What there is to draw of a tile. @param {Tile} tile @returns {Drawing} */
  drawingOf({ kind, block, isShare: isOfShares }) {
    const { session, shows } = this;
    const isShare = isOfShares && shows !== "change" && shows !== "gradient";
    const shown = (/** @type {number} */ axis) => (block.axes[axis] === "token" ? session.shown : [block.rows, block.cols][axis]);
    const [rows, cols] = [Math.min(shown(0), block.rows), Math.min(shown(1), block.cols)];
    const numbers = numbersShown(session, block, shows);
    const at = rows > 1 && session.position < rows ? session.position : -1;
    const labels = block.axes[0] === "token" ? session.tokens().slice(0, rows).map((token) => token.text) : [];
    const full = isShare ? 1 : fullOf(numbers, Math.max(0, at) * block.cols, cols, kind === "hidden" ? 1 : undefined);
    return { numbers, rows, cols, stride: block.cols, at, labels, isShare, full, seen: (i, j) => block.has(i, j) };
  }

  /** @param {Drawn} made @param {number} width of its canvas */
  drawTile(made, width) {
    const { tile, canvas, says, button } = made;
    const drawing = this.drawingOf(tile);
    const [most, room] = HIGH[this.room][tile.kind === "head" ? 0 : 1];
    const pitch = Math.max(1.5, Math.min(most, room / drawing.rows));
    made.drawing = drawing;
    made.frame = draw(canvas, drawing, pitch, width);
    const told = this.says(tile, drawing);
    says.textContent = told;
    const credit = this.shows === "credit" ? creditOf(this.session, tile) : null;
    says.classList.toggle("more", credit !== null && credit > 0);
    says.classList.toggle("less", credit !== null && credit < 0);
    says.style.setProperty("--size", `${(this.narrow * Math.abs(credit ?? 0)) / this.most}px`);
    made.part.classList.toggle("off", this.isOff(tile.part));
    const size = `${drawing.rows} × ${drawing.cols}`;
    const scale = drawing.isShare ? "" : ` Full colour from ±${brief(drawing.full)}.`;
    const parts = [`${tile.title}, ${size} numbers.`, told && `${told}.`, this.habit(tile, drawing), scale.trim(), "Open the numbers."];
    button.setAttribute("aria-label", parts.filter(Boolean).join(" "));
    button.title = `${tile.block.name}: ${this.habit(tile, drawing)}${scale}`;
  }

  /** The main thing about a picture. @param {Tile} tile @param {Drawing} drawing */
  says(tile, drawing) {
    const row = rowOf(drawing, Math.max(0, drawing.at));
    if (!row.length) return "";
    if (this.shows === "credit") {
      const credit = creditOf(this.session, tile);
      return credit === null ? "" : creditTold(this.session, credit);
    }
    if (this.shows !== "numbers") {
      const size = Math.max(...row.map(Math.abs));
      return size ? `up to ±${brief(size)}` : this.shows === "change" ? "unchanged" : "none";
    }
    const most = best(row)[0] ?? 0;
    if (tile.kind === "head") return `→ ${quoted(this.session.label(tile.block.axes[1], most))} ${percent(row[most])}`;
    if (tile.lens >= 0) return `so far: ${this.guess(tile.lens)}`;
    if (tile.block.axes[1].startsWith("vocab")) return `${quoted(this.session.label(tile.block.axes[1], most))} ${drawing.isShare ? percent(row[most]) : brief(row[most])}`;
    if (tile.kind === "hidden") return `${grouped(row.filter((x) => x > 0.1 * drawing.full).length)} of ${grouped(row.length)} on`;
    return "";
  }

  /** What the model would say after a stage of the stream. @param {number} n */
  guess(n) {
    const probs = this.session.live.numbers(this.session.graph.get(`lens.${n}.probs`));
    const most = best(probs)[0] ?? 0;
    return `${quoted(this.session.label("vocab_out", most))} ${percent(probs[most])}`;
  }

  /** What a head does with most tokens. @param {Tile} tile @param {Drawing} drawing */
  habit(tile, drawing) {
    if (tile.kind !== "head" || !drawing.isShare || drawing.rows < 3) return "";
    const ids = this.session.tokens().map((token) => token.id);
    /** @type {[string, (i: number, j: number) => boolean][]} */
    const habits = [
      ["the token before", (i, j) => j === i - 1],
      ["itself", (i, j) => j === i],
      ["the first token", (i, j) => j === 0],
      ["the same token, earlier", (i, j) => j < i && ids[j] === ids[i]],
      ["what followed the same token", (i, j) => j > 0 && j <= i && ids[j - 1] === ids[i]],
    ];
    const found = habits.map(([name, is]) => {
      let sum = 0;
      for (let i = 1; i < drawing.rows; i++) for (let j = 0; j < drawing.cols; j++) if (is(i, j) && drawing.seen(i, j)) sum += drawing.numbers[i * drawing.stride + j];
      return { name, share: sum / (drawing.rows - 1) };
    });
    found.sort((a, b) => b.share - a.share);
    return found[0].share > 0.4 ? `It looks mostly at ${found[0].name}.` : "It looks at several tokens.";
  }

  /** The element that shows a block, or what is nearest to it: its part, its layer. @param {string} name */
  elementOf(name) {
    const block = this.session.graph.get(name);
    if (this.folds && block.layer !== null && !this.open.has(block.layer)) {
      this.open.add(block.layer);
      this.build();
      this.draw();
    }
    const found = this.drawn.find(({ tile }) => tile.block === block) ?? this.drawn.find(({ tile }) => tile.part && name.startsWith(tile.part));
    const near = this.drawn.find(({ tile }) => tile.block.layer === block.layer && (tile.block.part === block.part || block.leaf === `${tile.block.part}_out`));
    return (found ?? near)?.part ?? this.container;
  }

  /** The list of tokens: made anew only where it changed. */
  drawTokens() {
    const { session, list } = this;
    if (!list) return;
    const tokens = session.unanswered() ? [] : session.tokens();
    const key = JSON.stringify(tokens);
    if (list.dataset.key !== key) {
      const focused = list.contains(document.activeElement);
      list.dataset.key = key;
      list.replaceChildren(...tokens.map((token, t) => {
        const radio = element("input", { type: "radio", name: "token", value: t });
        const text = element("span", {}, token.text);
        return element("label", { class: token.given ? "" : "generated", title: `token ${t}, id ${token.id}` }, radio, text);
      }));
      if (focused) list.querySelectorAll("input")[session.position]?.focus();
    }
    const radio = list.querySelectorAll("input")[session.position];
    if (!radio) return;
    radio.checked = true;
    const box = /** @type {HTMLElement} */ (list.parentElement);
    const { offsetTop, offsetHeight } = /** @type {HTMLElement} */ (radio.parentElement);
    const beyond = offsetTop + offsetHeight - box.offsetTop - box.clientHeight;
    if (box.scrollTop < beyond || box.scrollTop > offsetTop - box.offsetTop) box.scrollTop = beyond;
  }
}

/** @param {Drawing} drawing @param {number} i @returns {number[]} the numbers of a row, blank ones 0 */
function rowOf({ numbers, cols, stride, seen }, i) {
  return Array.from({ length: cols }, (_, j) => (seen(i, j) ? numbers[i * stride + j] : 0));
}

/** Moves the focus to the nearest picture or switch in the direction of an arrow key.
 * @param {KeyboardEvent} event */
function moveFocus(event) {
  const way = WAYS[event.key];
  const from = event.target;
  if (!way || event.ctrlKey || event.altKey || event.metaKey || !(from instanceof HTMLElement) || !from.matches(REACHED)) return;
  event.preventDefault();
  const here = from.getBoundingClientRect();
  /** @type {HTMLElement | null} */ let nearest = null;
  let least = Infinity;
  for (const stop of /** @type {NodeListOf<HTMLElement>} */ (byId("machine").querySelectorAll(REACHED))) {
    const there = stop.getBoundingClientRect();
    const [x, y] = [there.left - here.left, there.top - here.top];
    const along = x * way[0] + y * way[1];
    const distance = along + SIDEWAYS * Math.abs(x * way[1] + y * way[0]);
    if (along > 1 && there.width && distance < least) [nearest, least] = [stop, distance];
  }
  nearest?.focus();
}
