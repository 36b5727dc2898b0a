// A page's graph and values for tests, from the files that page.py writes into a folder.
import { readFile } from "node:fs/promises";
import { pathToFileURL } from "node:url";
import { Run } from "../../exporters/web/evaluator.js";
import { Graph } from "../../exporters/web/graph.js";

const known = new Map();

// The graph, and the run of its values as built.
export async function opened(folder) {
  if (!known.has(folder)) {
    const weights = new Uint8Array(await readFile(`${folder}/weights`));
    const graph = new Graph(JSON.parse(await readFile(`${folder}/data.json`, "utf8")), weights.buffer);
    const { KERNELS } = await import(pathToFileURL(`${folder}/kernels.mjs`).href);
    known.set(folder, { graph, run: new Run(graph, KERNELS) });
  }
  return known.get(folder);
}

// A run with edits: names, rows, columns and values.
export async function edited(folder, edits) {
  const { graph, run } = await opened(folder);
  const live = new Run(graph, run.kernels, run);
  for (const [name, i, j, value] of edits) live.set(graph.get(name), i, j, value);
  live.recompute();
  return live;
}

export function named(edits) {
  return edits.map(({ block, i, j, value }) => [block.name, i, j, value]);
}
