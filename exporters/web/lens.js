// The likeliest word after each layer of a large model (the logit lens; nostalgebraist 2020), computed
// once a reader asks for it: the stream after a layer takes the place of the last one, and goes on
// through the final norm to the probabilities, by the same kernels.

import { anatomy } from "./anatomy.js";
import { byId, element, percent } from "./dom.js";
import { best } from "./session.js";

/** @typedef {import("./graph.js").Block} Block */
/** @typedef {import("./evaluator.js").Run} Run */
/** @typedef {import("./session.js").Session} Session */

/** The stream after the embedding, and after each layer. @param {import("./graph.js").Graph} graph
 * @returns {{name: string, block: Block}[]} */
function streamsOf(graph) {
  const { embedding, layers } = anatomy(graph);
  const listed = [{ name: "embedding", tiles: embedding }, ...layers.map(({ n, tiles }) => ({ name: `layer ${n}`, tiles }))];
  return listed.flatMap(({ name, tiles }) => tiles.filter(({ kind }) => kind === "stage").slice(-1).map(({ block }) => ({ name, block })));
}

/** The blocks that follow from the last stream, up to the probabilities. @param {Run} run @param {Block} last */
function afterwards({ graph }, last) {
  const reached = new Set([last.index]);
  const blocks = graph.blocks.filter((block) => block.index > last.index && block.index <= graph.get("probs").index);
  return blocks.filter((block) => {
    const follows = block.isOp && block.operands.some(({ k }) => reached.has(k));
    if (follows) reached.add(block.index);
    return follows;
  });
}

/** A run beside another one: some blocks have values of their own. @param {Run} run @param {Block[]} blocks @returns {any} */
function runBeside(run, blocks) {
  const own = Object.assign(Object.create(run), { values: [...run.values], mirrors: [...run.mirrors], writes: [...run.writes] });
  own.owned = run.values.map(() => true);
  for (const { index } of blocks) [own.values[index], own.mirrors[index]] = [run.values[index].slice(), null];
  return own;
}

/** The table of words after layers. */
class Lens {
  /** @param {Session} session @param {HTMLElement} container */
  constructor(session, container) {
    this.session = session;
    this.streams = streamsOf(session.graph);
    this.key = "";
    this.rows = element("tbody");
    const heads = ["after", session.noun, "share"].map((text) => element("th", { scope: "col" }, text));
    this.table = element("table", { class: "ranks" }, element("thead", {}, element("tr", {}, ...heads)), this.rows);
    this.node = element("details", { id: "lens", ontoggle: () => session.drawSoon() }, element("summary", {}, `The likeliest ${session.noun} after each layer`), this.table);
    container.append(this.node);
    session.draws(() => this.drawing());
  }

  /** Shows the words, in steps, if the table is open. @returns {import("./slices.js").Steps<void>} */
  *drawing() {
    const { session, streams } = this;
    const key = `${session.live.version} ${session.position}`;
    if (!this.node.open || key === this.key) return;
    const last = streams[streams.length - 1].block;
    const next = afterwards(session.live, last);
    const run = runBeside(session.live, [last, ...next]);
    const t = session.position;
    const rows = [];
    for (const { name, block } of streams) {
      run.values[last.index].set(session.live.line(block, t), t * last.cols);
      for (const each of next) {
        const [top, bottom] = each.rows === 1 ? [0, 1] : [t, t + 1];
        for (const rect of run.parts(each, [[top, bottom, 0, each.cols]])) {
          run.evaluate(each, rect);
          yield 0;
        }
      }
      rows.push(this.row(name, session.row(run, "probs")));
    }
    this.rows.replaceChildren(...rows);
    this.key = key;
  }

  /** @param {string} name @param {Float64Array} probs */
  row(name, probs) {
    const [word] = best(probs);
    const cell = element("th", { scope: "row" }, name);
    return element("tr", {}, cell, element("td", {}, this.session.label("vocab_out", word)), element("td", { class: "number" }, percent(probs[word])));
  }
}

/** Adds the table to the page of a model that chooses a next word. @param {Session} session */
export function showLens(session) {
  const { graph, data } = session;
  if (data.gives === "next word" && graph.has("probs") && !graph.has("lens.0.x")) new Lens(session, byId("ranking"));
}
