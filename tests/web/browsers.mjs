// Pages in two browsers. Opened from disk: what the browser complains of or asks for, and all values, at
// first and after edits. In a frame of another page: what works. Called by test_page_values.py and test_screen.py.
import { readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
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

/** Opens a page in a frame under a sub path of a host, touches something there, and reads a text before and after.
 * The frame has an address (`src`), or none (`srcdoc`, `blob`); a sandbox if `sandbox` says what is allowed. */
export async function framed(path, touched, read, { kind, sandbox, policy } = {}) {
  const html = await readFile(path, "utf8");
  const host = createServer(({ url }, answer) => {
    const isFrame = url.includes("page.html");
    answer.writeHead(200, { "Content-Type": "text/html; charset=utf-8", ...(isFrame && policy && { "Content-Security-Policy": policy }) });
    answer.end(isFrame ? html : "<!doctype html><link rel=icon href=data:,><body>");
  });
  await new Promise((done) => host.listen(0, "127.0.0.1", done));
  const [page, errors] = [await browser.newPage(), []];
  page.on("pageerror", (error) => errors.push(String(error.stack ?? error)));
  await page.goto(`http://127.0.0.1:${host.address().port}/course/week%203/`);
  await page.evaluate(([html, kind, sandbox]) => {
    const frame = Object.assign(document.createElement("iframe"), { width: 1200, height: 700 });
    if (sandbox) frame.setAttribute("sandbox", sandbox);
    if (kind === "srcdoc") frame.srcdoc = html;
    else frame.src = kind === "blob" ? URL.createObjectURL(new Blob([html], { type: "text/html" })) : "a/page.html";
    document.body.append(frame);
  }, [html, kind, sandbox]);
  const frame = await (await page.waitForSelector("iframe")).contentFrame();
  await frame.waitForFunction(() => document.body?.dataset.view, ...waiting);
  const said = () => frame.evaluate((selector) => document.querySelector(selector).innerText, read);
  const texts = [await said()];
  await frame.click(touched);
  texts.push(await said());
  await page.close();
  host.close();
  return { texts, errors };
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
