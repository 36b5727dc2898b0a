// Pages opened from disk in a browser: what it complains of or asks for, and all values, at first and
// after edits. Called by test_page_values.py.
import { writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { chromium } from "./chromium.mjs";

const require = createRequire(new URL("../node/package.json", import.meta.url));
const PATIENCE = 60_000;

let browser;
let waiting; // what the two say differently about how long they wait

/** Starts a browser. */
export async function begin(name, program) {
  waiting = name === "chromium" ? [null, { timeout: PATIENCE }] : [{ timeout: PATIENCE }];
  if (name === "chromium") browser = await chromium(program);
  else {
    const puppeteer = await import(pathToFileURL(require.resolve("puppeteer-core")).href);
    browser = await (puppeteer.default ?? puppeteer).launch({ browser: "firefox", executablePath: program, protocolTimeout: 10 * PATIENCE });
  }
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
  const found = await page.evaluate(valuesAfter, edits);
  for (const [name, { listed, numbers }] of Object.entries(found)) {
    await writeFile(`${target}.${name}.json`, listed);
    await writeFile(`${target}.${name}.bin`, Buffer.from(numbers, "base64"));
  }
  await page.close();
  return { wrong, took, asked: asked.filter((url) => url !== pathToFileURL(path).href && !url.startsWith("data:")) };
}

// In the page: its own script computes everything from wrong values, then with edits.
async function valuesAfter(edits) {
  /* global opened, KERNELS, CellError */
  const text = (id) => document.getElementById(id).textContent;
  const { graph, run } = await opened(text("data"), text("weights"), KERNELS);
  const computed = graph.blocks.filter((block) => block.isOp || block.isTable);
  const plain = (x) => {
    if (x instanceof CellError) return { error: x.text };
    return typeof x === "number" && !Number.isFinite(x) ? { number: String(x) } : (x ?? null);
  };
  // As texts, which a browser hands over at once: JSON, and base64 of the numbers' bytes.
  const held = async () => {
    const [listed, parts] = [[], []];
    let at = 0;
    for (const block of computed) {
      const values = run.values[block.index];
      const isNumbers = !Array.isArray(values) || values.every((x) => typeof x === "number");
      listed.push([block.name, isNumbers ? at : Array.from(values, plain)]);
      if (!isNumbers) continue;
      parts.push(Float64Array.from(values));
      at += values.length;
    }
    const url = await new Promise((done) => {
      const reader = new FileReader();
      reader.onload = () => done(reader.result);
      reader.readAsDataURL(new Blob(parts));
    });
    return { listed: JSON.stringify(listed), numbers: url.slice(url.indexOf(",") + 1) };
  };
  for (const block of graph.blocks) {
    if (block.isInput) continue;
    const values = run.values[block.index];
    for (let k = 0; k < values.length; k++) if (block.has(Math.floor(k / block.cols), k % block.cols)) values[k] = 123.25;
  }
  run.computeAll();
  const fresh = await held();
  for (const [name, i, j, value] of edits) run.set(graph.get(name), i, j, value);
  run.recompute();
  return { fresh, edited: await held() };
}
