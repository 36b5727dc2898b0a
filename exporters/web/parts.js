// The parts that "Follow the word" draws: each head, MLP and embedding, with what it adds to the
// answer's logit, in the columns of the picture.

import { anatomy, partName, pathOf } from "./anatomy.js";
import { creditSteps } from "./credits.js";
import { brief } from "./dom.js";
import { best } from "./session.js";

/** @typedef {import("./session.js").Session} Session */
/** @typedef {import("./graph.js").Block} Block */
/** @template T @typedef {import("./slices.js").Steps<T>} Steps */
/** From a word that is read to the word that looks. @typedef {{axis: string, at: number, to: number, share: number, adds: number, later: number}} Ribbon */
/** What a part adds at a word. @typedef {{row: number, adds: number, later: number}} Place */
/** `path`: where its switch is; "" if it has none. `adds`: directly; `later`: through later parts. `ribbons`: of a head.
 * @typedef {{name: string, kind: "head" | "inner" | "embedding" | "bias" | "typed" | "several", block: Block, path: string, row: number, adds: number, later: number, places: Place[], ribbons: Ribbon[]}} Part */
/** Parts side by side; `lens`: which of the lens's stages follows. @typedef {{key: string, layer: number | null, parts: Part[], lens: number}} Column */
/** @typedef {{word: number, logit: number, row: number, columns: Column[]}} Answer */

const LEAST_TYPED = 1e-7; // of a logit: less is rounding

/** The logit of the likeliest word, or of the one that is explained, split in steps into parts, column
 * by column: anew after each change. @param {Session} session @returns {Steps<Answer>} */
export function* answerSteps(session) {
  const key = `${session.live.version} ${session.position} ${session.explained}`;
  if (session.answer?.key !== key) session.answer = { key, answer: yield* splitting(session) };
  return session.answer.answer;
}

/** @param {Session} session @returns {Steps<Answer>} */
function* splitting(session) {
  const { graph, live } = session;
  const scores = session.row(live, "logits");
  const word = session.explained ?? best(scores)[0];
  const row = session.position;
  /** @type {Map<string, Column>} */ const columns = new Map();
  /** @type {Map<string, Part>} */ const parts = new Map();
  for (const { block, row: at, adds, later, pattern, sources } of yield* creditSteps(live, word, graph.get("logits").rows === 1 ? 0 : row)) {
    const { kind, name } = partOf(block, !!pattern);
    const key = kind === "embedding" || kind === "bias" ? kind : `${block.layer}.${block.part || block.leaf.replace(/_out$/, "")}`;
    let part = parts.get(key + name);
    if (!part) {
      const path = [pathOf(block), `${pathOf(block)}.${block.leaf.replace(/_out$/, "")}`].find((each) => graph.has(`${each}.switch`));
      part = { name, kind, block, path: kind === "head" || kind === "inner" ? (path ?? "") : "", row: at, adds: 0, later: 0, places: [], ribbons: [] };
      parts.set(key + name, part);
      const column = columns.get(key) ?? { key, layer: key === kind ? null : block.layer, parts: [], lens: -1 };
      column.parts.push(part);
      columns.set(key, column);
    }
    part.adds += adds;
    const through = part.path ? later : 0; // all that parts do begins with the words: no news
    part.later += through;
    if (adds) part.row = at;
    part.places.push({ row: at, adds, later: through });
    if (pattern) part.ribbons.push(...sources.map((source) => ({ ...source, to: at })));
  }
  const { bias, ...others } = Object.fromEntries(columns);
  const found = [...Object.values(others)].sort((a, b) => a.parts[0].block.index - b.parts[0].block.index);
  if (bias) found.push(bias);
  const rest = scores[word] - [...parts.values()].reduce((sum, { adds }) => sum + adds, 0);
  if (Math.abs(rest) > LEAST_TYPED * Math.max(1, Math.abs(scores[word]))) {
    const part = /** @type {Part} */ ({ name: "typed numbers", kind: "typed", block: graph.get("logits"), path: "", row, adds: rest, later: 0, places: [{ row, adds: rest, later: 0 }], ribbons: [] });
    found.push({ key: "typed", layer: null, parts: [part], lens: -1 });
  }
  seenBy(session, found);
  return { word, logit: scores[word], row, columns: found };
}

/** Names the part that a block belongs to. @param {Block} block @param {boolean} reads whether it reads other words @returns {{kind: Part["kind"], name: string}} */
function partOf(block, reads) {
  if (block.kind !== "computed") return { kind: "bias", name: "biases" };
  if (block.layer === null) return { kind: "embedding", name: "embedding" };
  if (block.head) return { kind: reads ? "head" : "inner", name: partName(block) };
  const part = block.part || block.leaf.replace(/_out$/, "");
  return { kind: "inner", name: partName(/** @type {Block} */ ({ layer: block.layer, head: null, part, leaf: block.leaf })) };
}

/** Which stage of the lens follows each column. @param {Session} session @param {Column[]} columns */
function seenBy(session, columns) {
  const { embedding, layers } = anatomy(session.graph);
  const stages = [...embedding, ...layers.flatMap(({ tiles }) => tiles)].filter(({ lens }) => lens >= 0);
  for (const [k, column] of columns.entries()) {
    const from = Math.max(...column.parts.map(({ block }) => block.index));
    const until = columns[k + 1]?.parts[0].block.index ?? Infinity;
    const stage = stages.filter(({ block }) => block.index > from && (block.index < until || until < from)).sort((a, b) => a.block.index - b.block.index)[0];
    if (stage && !["bias", "typed"].includes(column.key)) column.lens = stage.lens;
  }
}

/** How thick a part is, by what it adds or takes most. @param {{adds: number, later: number}} part */
export function thickness({ adds, later }) {
  return Math.max(Math.abs(adds), Math.abs(later));
}

/** The word where a part adds most. @param {Part} part */
export function mainPlace({ places }) {
  return [...places].sort((a, b) => thickness(b) - thickness(a))[0];
}

/** A head at the word where it adds most. @param {Part} part @returns {Part} */
export function atMainPlace(part) {
  const place = mainPlace(part);
  return { ...part, ...place, ribbons: part.ribbons.filter(({ to }) => to === place.row) };
}

/** What a part adds to the logit of a word, in words. @param {Part} part @param {string} word */
export function givesTo({ adds, later }, word) {
  const verb = (/** @type {number} */ x) => `${x < 0 ? "takes" : "adds"} ${brief(Math.abs(x))}`;
  const way = (/** @type {number} */ x) => (x < 0 ? "from" : "to");
  const onto = (/** @type {number} */ x) => `${verb(x)} ${way(x)} the logit of ${word}`;
  if (Math.abs(later) < 1e-9) return onto(adds);
  if (Math.abs(adds) < 1e-9) return `${onto(later)} through later layers`;
  return `${onto(adds)}, and ${verb(later)} ${way(later)} it through later layers`;
}

/** Groups of neighbours, at most so many: the largest stand alone, the others together.
 * @param {number[]} sizes @param {number} most @returns {number[][]} */
export function neighbours(sizes, most) {
  const order = sizes.map((_, k) => k).sort((a, b) => sizes[b] - sizes[a]);
  for (let alone = sizes.length; ; alone--) {
    const kept = new Set(order.slice(0, alone));
    /** @type {number[][]} */ const groups = [];
    for (const k of sizes.keys()) {
      if (kept.has(k) || !k || kept.has(k - 1)) groups.push([k]);
      else groups[groups.length - 1].push(k);
    }
    if (groups.length <= most || !alone) return groups;
  }
}

/** Columns of which several are one. @param {Column[]} columns @param {number} most @returns {Column[]} */
export function fewer(columns, most) {
  const sizes = columns.map(({ parts }) => Math.max(...parts.map(thickness)));
  return neighbours(sizes, most).map((group) => {
    const [first, ...more] = group.map((k) => columns[k]);
    if (!more.length) return first;
    const parts = group.flatMap((k) => columns[k].parts);
    const [adds, later] = /** @type {const} */ (["adds", "later"]).map((key) => parts.reduce((sum, part) => sum + part[key], 0));
    const name = `${parts.length} small parts`;
    return { key: first.key, layer: null, lens: more[more.length - 1].lens, parts: [{ ...parts[0], name, kind: "several", path: "", adds, later, places: [{ row: parts[0].row, adds, later }], ribbons: [] }] };
  });
}
