// A page that asks for the file of its weights, in a browser: called by test_weights_file.py.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(new URL("../node/package.json", import.meta.url));
const TOLD = "#weights-file p";

/** What the page says after each file; at last, of the right one, the ledger. */
export async function given(program, path, files) {
  const { chromium } = require("playwright-core");
  const browser = await chromium.launch({ executablePath: program, args: ["--no-sandbox"] });
  try {
    const page = await (await browser.newContext({ offline: true })).newPage();
    await page.goto(pathToFileURL(path).href);
    const told = [await page.locator(TOLD).innerText()];
    for (const file of files.slice(0, -1)) {
      await page.locator("#weights-file input").setInputFiles(file);
      await page.waitForFunction(([where, old]) => document.querySelector(where).textContent !== old, [TOLD, told.at(-1)]);
      told.push(await page.locator(TOLD).innerText());
    }
    await page.locator("#weights-file input").setInputFiles(files.at(-1));
    await page.waitForFunction(() => document.body.dataset.view);
    return [...told, await page.locator("#ledger").innerText()];
  } finally {
    await browser.close();
  }
}
