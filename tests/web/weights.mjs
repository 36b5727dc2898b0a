// Files of weights: read in Node.js, and asked for by a page in a browser. Called by test_weights_file.py.
import { openAsBlob } from "node:fs";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { basename } from "node:path";
import { pathToFileURL } from "node:url";
import { crc32 } from "../../exporters/web/crc.js";
import { readWeights } from "../../exporters/web/weightsfile.js";
import { withPage } from "./chromium.mjs";

const SETTLES = 700; // ms until all is drawn
const TOLD = "#weights-file p";

/** What is said of a file, or how many bytes of numbers were read from it. */
export async function read(path, beside) {
  const file = Object.assign(await openAsBlob(path), { name: basename(path) });
  try {
    const into = new Uint8Array(beside.size);
    await readWeights(file, beside, into, () => {});
    return into.length;
  } catch (error) {
    return error.message;
  }
}

/** The checksum of bytes, taken in parts of some sizes. */
export function checksum(bytes, sizes) {
  let [sum, at] = [0, 0];
  for (const size of sizes) sum = crc32(new Uint8Array(bytes.slice(at, (at += size))), sum);
  return sum;
}

/** What the page says after each file, with the ledger; of the right one the ledger, and with head 1.2 off. */
export function given(program, path, files) {
  return withPage(program, {}, async (page) => {
    await page.goto(pathToFileURL(path).href);
    const told = [await page.locator(TOLD).innerText()];
    for (const file of files.slice(0, -1)) {
      await page.locator("#weights-file input").setInputFiles(file);
      await page.waitForFunction((name) => document.querySelector("#weights-file p").textContent.startsWith(name), basename(file));
      told.push(await page.locator(TOLD).innerText());
      if (!(await page.locator("#ledger").innerText()).endsWith("waiting for its weights")) throw new Error(`${file} was taken`);
    }
    await page.locator("#weights-file input").setInputFiles(files.at(-1));
    await page.waitForFunction(() => document.body.dataset.view);
    told.push(await page.locator("#ledger").innerText());
    await page.locator("[data-part='blocks.1.attn.h2']").click();
    await page.waitForFunction(() => document.getElementById("ledger").textContent.includes("said"));
    return [...told, await page.locator("#ledger").innerText()];
  });
}

/** What the flow and each picture tell after a next word, on a page with a file of weights or without;
 * waits until this is what is wanted. */
export function drawn(program, path, weights, wanted) {
  return withPage(program, {}, async (page) => {
    await page.goto(pathToFileURL(path).href);
    if (weights) await page.locator("#weights-file input").setInputFiles(weights);
    await page.waitForFunction(() => document.body.dataset.view);
    await page.locator("#top button", { hasText: /^Next word$/ }).click();
    await page.waitForSelector("#text em");
    if (!wanted) await page.waitForTimeout(SETTLES);
    return page.waitForFunction((expected) => {
      const labels = [".flow-picture svg", "#machine .tile"].flatMap((which) => [...document.querySelectorAll(which)].map((node) => node.ariaLabel));
      return (!expected || JSON.stringify(labels) === JSON.stringify(expected)) && labels;
    }, wanted).then((found) => found.jsonValue());
  });
}

/** The ledger of a page on a host, with a file of weights beside it, or none; and what is asked instead. */
export async function hosted(program, path, weights) {
  const asked = [];
  const host = createServer(async ({ url }, answer) => {
    asked.push(url);
    const file = url.endsWith(".html") ? path : url.endsWith(".weights") ? weights : "";
    answer.writeHead(file ? 200 : 404, { "Content-Type": url.endsWith(".html") ? "text/html; charset=utf-8" : "application/octet-stream" });
    answer.end(file ? await readFile(file) : "");
  });
  await new Promise((done) => host.listen(0, "127.0.0.1", done));
  try {
    return await withPage(program, { offline: false }, async (page) => {
      await page.goto(`http://127.0.0.1:${host.address().port}/a/${basename(path)}`);
      await page.waitForFunction(() => document.body.dataset.view || document.querySelector("#weights-file"));
      const texts = await page.locator("#ledger, #main > .problem, #weights-file p").allInnerTexts();
      return { texts, asked: asked.filter((url) => !url.endsWith("favicon.ico")) };
    });
  } finally {
    host.close();
  }
}
