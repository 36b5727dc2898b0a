// Workbooks for tests: saved with a page's edits, and read back.
import { readFile, writeFile } from "node:fs/promises";
import { editsOf, savedWorkbook } from "../../exporters/web/workbook.js";
import { edited, named, opened } from "./page.mjs";

// A workbook with edits, and the values of a block then.
export async function save(folder, path, target, edits, shown) {
  const run = await edited(folder, edits);
  const began = performance.now();
  const bytes = await savedWorkbook(new Uint8Array(await readFile(path)), run.graph, run);
  const took = performance.now() - began;
  await writeFile(target, bytes);
  return { took, values: [...run.numbers(run.graph.get(shown))] };
}

export async function read(folder, path) {
  const { graph, run } = await opened(folder);
  const began = performance.now();
  const edits = named(await editsOf(new Uint8Array(await readFile(path)), graph, run));
  return { took: performance.now() - began, edits };
}

// The values of a block with edits.
export async function values(folder, edits, name) {
  const run = await edited(folder, edits);
  return [...run.numbers(run.graph.get(name))];
}

// A workbook that learned for some recalculations, and the values of a block then.
export async function learned(folder, path, target, recalculations, shown) {
  const run = await edited(folder, [["state", 0, 0, "learn"]]);
  for (let k = 0; k < recalculations; k++) run.recalculate();
  await writeFile(target, await savedWorkbook(new Uint8Array(await readFile(path)), run.graph, run));
  return [...run.numbers(run.graph.get(shown))];
}
