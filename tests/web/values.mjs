// A page in Node.js, without a document: opened from its file, edited, its values written for Python.
import { readFile, writeFile } from "node:fs/promises";
import vm from "node:vm";

const OF_ENGINE = ["CellError", "KERNELS", "Run", "opened", "unpacked", "verdictOf"];
const OF_SCREEN = ["Session", "editsOf", "linkOf", "savedWorkbook"];
const JUNK = 123.25;

let page;

// What a page holds, as `pages.written` wrote it: its script runs as in a browser.
// `told`: rows of tokens that nobody has asked for wait.
export async function open(path, screen, compiles = true, told = undefined) {
  const { script, data, weights } = JSON.parse(await readFile(path, "utf8"));
  const names = screen ? [...OF_ENGINE, ...OF_SCREEN] : OF_ENGINE;
  const large = "openLarge: typeof openedLarge === 'function' ? openedLarge : null";
  const given = compiles ? "" : "WebAssembly";
  const made = vm.runInThisContext(`((${given}) => {${script}\nreturn {${names}, ${large}};})()`, { filename: "page.js" });
  const read = async (beside, into) => into.set(new Uint8Array(await made.unpacked(weights)));
  const { graph, run } = made.openLarge ? await made.openLarge(data, made.KERNELS, read, told && (() => {})) : await made.opened(data, weights, made.KERNELS);
  page = { ...made, graph, run };
  return told ? null : made.verdictOf(run);
}

// Why the page is slow.
export function slower() {
  return page.run.slower;
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

// A session on the page, with the workbook of the same name to save into.
export async function begin(workbook) {
  globalThis.location = { hash: "" };
  globalThis.history = { replaceState: (state, title, hash) => (globalThis.location.hash = hash) };
  page.session = new page.Session(page.run);
  page.workbook = new Uint8Array(await readFile(workbook));
  page.kept = [];
}

// The rows of a block that hold numbers after a sentence was typed, and once all rows were asked for; then
// the values, to a file.
export async function grown(name, sentence, target) {
  globalThis.location = { hash: "" };
  globalThis.history = { replaceState: () => {} };
  const session = (page.session ??= new page.Session(page.run));
  const block = page.graph.get(name);
  const rows = () => session.live.values[block.index].length / block.cols;
  if (sentence) session.say(sentence);
  await session.settled();
  const before = rows();
  await session.whole();
  await dump(target, session.live);
  return [before, rows()];
}

// What a person does, and what the session then holds.
export async function act([what, ...given]) {
  const { session } = page;
  await ACTIONS[what](session, ...given);
  await session.settled();
  return { edits: named(session.live.edits()), baseline: named(session.baseline.edits()), step: named(session.edits), shown: session.tokens().map(({ id }) => id), chosen: session.chosen.length, full: session.whyFull };
}

const ACTIONS = {
  say: (session, text) => session.say(text),
  delete: (session) => session.say(session.typed().replace(/\s*\S+\s*$/u, "")),
  next: (session) => session.next(),
  pick: (session, id) => session.goesOn && session.pick(id),
  look: (session, t) => session.look(t),
  switch: (session, part, off) => session.switchOff(part, off),
  set: (session, name, i, j, value) => session.set(name, i, j, value),
  range: (session, cells) => session.setAll(cells.map(([name, i, j, value]) => ({ block: session.graph.get(name), i, j, value: value ?? undefined }))),
  unset: (session, k) => {
    const edits = session.edits;
    if (edits.length) session.unset(...Object.values(edits[k % edits.length]).slice(0, 3));
  },
  undo: (session) => session.undo(),
  redo: (session) => session.redo(),
  reset: (session) => session.reset(),
  keep: async (session) => {
    let bytes = null;
    if (session.live.edits().every(({ block }) => block.place)) bytes = await page.savedWorkbook(page.workbook, session.graph, session.live);
    const lesson = page.kept.length % 2 ? { task: "a & b ~c", word: 1, edits: session.changes.length, text: session.textState(), stops: [0] } : null;
    page.kept.push({ bytes, lesson, link: page.linkOf(session.edits, session.data.fingerprint, lesson), edits: named(session.live.edits()) });
  },
  open: async (session, k) => {
    const kept = page.kept.filter(({ bytes }) => bytes);
    if (!kept.length) return;
    const { bytes, edits } = kept[k % kept.length];
    session.take(await page.editsOf(bytes, session.graph, page.run));
    agrees(session, edits, "the workbook");
  },
  link: (session, k) => {
    if (!page.kept.length) return;
    const { link, lesson, edits } = page.kept[k % page.kept.length];
    globalThis.location.hash = `#${link}`;
    session.linked = "";
    session.openLink();
    if (link) agrees(session, edits, "the link");
    if (link && JSON.stringify(session.lesson) !== JSON.stringify(lesson)) throw new Error(`the link has the lesson ${JSON.stringify(session.lesson)}`);
  },
};

// Whether a state is the one that was kept; where a text stood, a number is kept as one.
function agrees(session, kept, what) {
  if (session.problem) throw new Error(`${what}: ${session.problem}`);
  const [now, then] = [named(session.live.edits()), kept].map((edits) => JSON.stringify(edits.map((edit) => edit.map(String)).sort()));
  if (now !== then) throw new Error(`${what} gives ${now}, and not ${then}`);
}

export function ofBaseline(target) {
  return dump(target, page.session.baseline);
}

export function ofSession(target) {
  return dump(target, page.session.live);
}

function named(edits) {
  return edits.map(({ block, i, j, value }) => [block.name, i, j, value]);
}
