// A page in Node.js, without a document: opened from its file, edited, its values written for Python.
import { readFile, writeFile } from "node:fs/promises";
import vm from "node:vm";

const OF_ENGINE = ["CellError", "KERNELS", "Run", "opened", "verdictOf"];
const OF_SCREEN = ["Session", "best", "editsOf", "editsOfLink", "linkOf"];
const JUNK = 123.25;

let page;

// What a page holds, as `pages.written` wrote it: its script runs as in a browser.
export async function open(path, screen) {
  const { script, data, weights } = JSON.parse(await readFile(path, "utf8"));
  const names = screen ? [...OF_ENGINE, ...OF_SCREEN] : OF_ENGINE;
  const made = vm.runInThisContext(`(() => {${script}\nreturn {${names}};})()`, { filename: "page.js" });
  const { graph, run } = await made.opened(data, weights, made.KERNELS);
  page = { ...made, graph, run };
  return made.verdictOf(run);
}

// Everything computed anew from wrong values.
export function fresh() {
  const { graph, run } = page;
  for (const block of graph.blocks) {
    if (block.isInput) continue;
    const values = run.values[block.index];
    for (let k = 0; k < values.length; k++) if (block.has(Math.floor(k / block.cols), k % block.cols)) values[k] = JUNK;
  }
  run.computeAll();
  return page.verdictOf(run);
}

// Edits, each a block, a row, a column and a value; null gives the cell back its own value.
export function edit(edits) {
  const { graph, run } = page;
  for (const [name, i, j, value] of edits) {
    if (value === null) run.unset(graph.get(name), i, j);
    else run.set(graph.get(name), i, j, value);
  }
  return run.recompute();
}

// The values of all blocks that are computed, to a file: numbers as bytes, others as JSON.
export async function dump(target, run = page.run) {
  const [listed, parts] = [[], []];
  let at = 0;
  for (const block of page.graph.blocks) {
    if (!block.isOp && !block.isTable) continue;
    const values = run.values[block.index];
    if (Array.isArray(values) && !values.every((x) => typeof x === "number")) listed.push([block.name, values.map(plain)]);
    else {
      parts.push(Buffer.from(Float64Array.from(values).buffer));
      listed.push([block.name, at]);
      at += values.length;
    }
  }
  await writeFile(`${target}.json`, JSON.stringify(listed));
  await writeFile(`${target}.bin`, Buffer.concat(parts));
}

function plain(x) {
  if (x instanceof page.CellError) return { error: x.text };
  return typeof x === "number" && !Number.isFinite(x) ? { number: String(x) } : (x ?? null);
}
