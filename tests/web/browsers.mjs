// Pages opened from disk in a browser: what it complains of or asks for, and all values, at first and
// after edits. Called by test_page_browsers.py.
import { writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(new URL("../node/package.json", import.meta.url));
const PATIENCE = 60_000;

let browser;
let waiting; // what the two say differently about how long they wait

/** Starts a browser. */
export async function begin(name, program) {
  waiting = name === "chromium" ? [null, { timeout: PATIENCE }] : [{ timeout: PATIENCE }];
  if (name === "chromium") browser = await require("playwright-core").chromium.launch({ executablePath: program, args: ["--no-sandbox"] });
  else {
    const puppeteer = await import(pathToFileURL(require.resolve("puppeteer-core")).href);
    browser = await (puppeteer.default ?? puppeteer).launch({ browser: "firefox", executablePath: program, protocolTimeout: 10 * PATIENCE });
  }
}

export function end() {
  return browser.close();
}

/** Opens a page: what went wrong, and its values, fresh and after edits, into files. */
export async function open(path, edits, target) {
  const page = await browser.newPage();
  const [wrong, asked] = [[], []];
  page.on("pageerror", (error) => wrong.push(String(error.stack ?? error)));
  page.on("console", (message) => message.type() === "error" && wrong.push(message.text()));
  page.on("request", (request) => asked.push(request.url()));
  const began = performance.now();
  await page.goto(pathToFileURL(path).href);
  await page.waitForFunction(() => !document.getElementById("ledger").textContent.startsWith("Opening"), ...waiting);
  const took = performance.now() - began;
  for (const [name, state] of Object.entries({ fresh: [], edited: edits })) {
    const found = await page.evaluate(valuesAfter, state);
    await writeFile(`${target}.${name}.json`, JSON.stringify(found));
  }
  await page.close();
  return { wrong, took, asked: asked.filter((url) => url !== pathToFileURL(path).href && !url.startsWith("data:")) };
}

// In the page: its own script computes everything from wrong values, then edits, one after another.
async function valuesAfter(edits) {
  /* global opened, KERNELS, CellError */
  const text = (id) => document.getElementById(id).textContent;
  const { graph, run } = await opened(text("data"), text("weights"), KERNELS);
  for (const block of graph.blocks) {
    if (block.isInput) continue;
    const values = run.values[block.index];
    for (let k = 0; k < values.length; k++) if (block.has(Math.floor(k / block.cols), k % block.cols)) values[k] = 123.25;
  }
  run.computeAll();
  for (const [name, i, j, value] of edits) {
    run.set(graph.get(name), i, j, value);
    run.recompute();
  }
  const plain = (x) => {
    if (x instanceof CellError) return { error: x.text };
    return typeof x === "number" && !Number.isFinite(x) ? { number: String(x) } : (x ?? null);
  };
  const computed = graph.blocks.filter((block) => block.isOp || block.isTable);
  return computed.map((block) => [block.name, Array.from(run.values[block.index], plain)]);
}
