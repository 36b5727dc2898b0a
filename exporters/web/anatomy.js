// The blocks of a graph that the picture of a model shows. Their names and their inputs tell them, in
// any architecture.

/** @typedef {import("./graph.js").Graph} Graph */
/** @typedef {import("./graph.js").Block} Block */
/** A picture of one block. `part` can be switched off; `lens` counts the stages of the stream.
 * @typedef {{kind: "head" | "hidden" | "stage" | "other", title: string, block: Block, part: string, lens: number, isShare: boolean}} Tile */
/** @typedef {{n: number, tiles: Tile[], heads: string}} Layer `heads`: the part that is all its heads */
/** @typedef {{embedding: Tile[], layers: Layer[], readout: Tile[]}} Anatomy */

const TITLES = {
  embed: "each token",
  pos_embed: "its position",
  segment_embed: "its text, 1 or 2",
  embed_sum: "their sum",
  logits: "scores (logits)",
  probs: "probabilities",
  vector: "the sentence",
};

/** The names of a layer's parts, as in the workbook (`part_names.py`). @type {Record<string, string>} */
const PARTS = { attn: "attention", cross: "cross attention", mlp: "MLP", conv: "convolution", time: "time mixing", ssm: "state space" };

/** The name of a part that can be switched off: `head 1.2`, `MLP 0`. @param {Block} block in the part */
export function partName(block) {
  const { layer, head, part } = block;
  const number = head?.replace(/\D+/, "");
  if (layer === null) return part || block.leaf;
  if (head === "shared") return `shared expert ${layer}`;
  if (head && part === CROSS) return `cross head ${layer}.${number}`;
  if (head) return `${head[0] === "e" ? "expert" : head[0] === "h" ? "head" : "KV head"} ${layer}.${number}`;
  return `${PARTS[part] || part || block.leaf} ${layer}`;
}

/** The name of the stream after a part has added to it. */
const AFTER = { resid_mid: "after attention", resid_cross: "after cross attention" };
const CROSS = "cross";

/** The path of a block's name, without its last word. @param {Block} block */
export function pathOf(block) {
  return block.name.slice(0, -block.leaf.length - 1);
}

/** The tiles of the picture by their places. @param {Graph} graph @returns {Anatomy} */
export function anatomy(graph) {
  const blocks = graph.blocks.filter((block) => !block.passes.length && block.kind === "computed");
  const stages = stagesOf(graph, blocks);
  const numbers = [...new Set(blocks.map((block) => block.layer).filter((n) => n !== null))];
  const layers = numbers.map((n) => layerOf(graph, Number(n), blocks, stages));
  return { embedding: embedding(graph, blocks, stages), layers, readout: readout(graph) };
}

/** @param {string} title @param {Block} block @param {Partial<Tile>} [more] @returns {Tile} */
function tile(title, block, more = {}) {
  return { kind: "other", title, block, part: "", lens: -1, isShare: false, ...more };
}

/** The residual stream after the embedding and after each sublayer: the lens's blocks, or else
 * blocks of that name. @param {Graph} graph @param {Block[]} blocks */
function stagesOf(graph, blocks) {
  const found = [];
  for (let n = 0; graph.has(`lens.${n}.x`); n++) {
    const x = graph.get(`lens.${n}.x`);
    const stage = graph.reads(x, 0, 0).map((area) => area.block).find((block) => block.cols === x.cols && block.kind === "computed");
    if (stage) found.push({ stage, lens: n });
  }
  if (found.length) return found;
  const named = blocks.filter((block) => /^resid_(pre|mid|cross|post)$/.test(block.leaf) && !block.part);
  return named.filter((block) => block.leaf !== "resid_pre" || block.layer === 0).map((stage) => ({ stage, lens: -1 }));
}

/** @param {Graph} graph @param {Block[]} blocks @param {{stage: Block, lens: number}[]} stages */
function embedding(graph, blocks, stages) {
  const first = blocks.find((block) => block.layer !== null) ?? (graph.has("resid_final") ? graph.get("resid_final") : undefined);
  const until = first?.index ?? Infinity;
  const before = blocks.filter((block) => {
    return block.layer === null && block.index < until && block.axes[0] === "token" && block.cols > 1 && !block.part;
  });
  const only = before.length === 1 && stages[0] ? TITLES.embed : "";
  const stage = stages[0] && tile(only || "the stream begins", stages[0].stage, { kind: "stage", lens: stages[0].lens });
  const tiles = before.filter((block) => block !== stages[0]?.stage).map((block) => tile(titleOf(block), block));
  return stage ? [...(only ? [] : tiles), stage] : tiles;
}

/** @param {Graph} graph @param {number} n @param {Block[]} blocks @param {{stage: Block, lens: number}[]} stages @returns {Layer} */
function layerOf(graph, n, blocks, stages) {
  const inside = blocks.filter((block) => block.layer === n);
  const heads = inside.filter((block) => block.leaf === "pattern" && block.axes[0] === "token" && ["token", "source"].includes(block.axes[1]));
  const routers = inside.filter((block) => block.part === "mlp" && block.leaf === "share" && block.cols > 1);
  const hidden = inside.filter((block) => block.part === "mlp" && block.leaf === "post");
  const few = hidden.length <= 8 ? hidden : [];
  const after = stages.slice(1).filter(({ stage }) => stage.layer === n || (stage.name === "resid_final" && n === lastLayer(blocks)));
  const pushed = after.filter(({ stage }) => stage.leaf === "resid_pre" || after.some((other) => other.stage.name === `${stage.name}.own`));
  const usual = after.filter((each) => !pushed.includes(each));
  const crosses = usual.some(({ stage }) => stage.leaf === "resid_cross");
  const names = crosses ? usual.map(({ stage }) => /** @type {Record<string, string>} */ (AFTER)[stage.leaf] ?? "after the MLP") : usual.length > 1 ? ["after attention", "after the MLP"] : [hidden.length ? `after layer ${n}` : "after attention"];
  const tiles = [
    ...heads.map((block) => tile(partName(block), block, { kind: "head", part: pathOf(block), isShare: true })),
    ...routers.map((block) => tile(`which experts of layer ${n}`, block, { isShare: true })),
    ...few.map((block) => tile(partName(block), block, { kind: "hidden", part: pathOf(block) })),
    ...usual.map(({ stage, lens }, k) => tile(`stream ${names[k] ?? stage.leaf}`, stage, { kind: "stage", lens })),
    ...pushed.map(({ stage, lens }) => tile("stream after steering", stage, { kind: "stage", lens })),
  ];
  for (const one of tiles) if (!graph.has(`${one.part}.switch`)) one.part = "";
  tiles.sort((a, b) => a.block.index - b.block.index);
  const all = `blocks.${n}.attn`;
  return { n, tiles, heads: graph.has(`${all}.switch`) && heads.length > 1 ? all : "" };
}

/** @param {Block[]} blocks */
function lastLayer(blocks) {
  return Math.max(...blocks.map((block) => block.layer ?? -1));
}

/** @param {Graph} graph */
function readout(graph) {
  const names = ["logits", "probs", "vector", "b.vector"].filter((name) => graph.has(name));
  return names.map((name) => {
    const title = name === "b.vector" ? "the second sentence" : titleOf(graph.get(name));
    return tile(title, graph.get(name), { isShare: name === "probs" });
  });
}

/** @param {Block} block */
function titleOf(block) {
  return Object.entries(TITLES).find(([leaf]) => leaf === block.leaf)?.[1] ?? block.leaf.replaceAll("_", " ");
}
