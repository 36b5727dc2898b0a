// A page that asks for the file of its weights, in a browser: called by test_weights_file.py.
import { pathToFileURL } from "node:url";
import { withPage } from "./chromium.mjs";

const TOLD = "#weights-file p";

/** What the page says after each file; of the right one, the ledger, and what it says with head 1.2 off. */
export function given(program, path, files) {
  return withPage(program, {}, async (page) => {
    await page.goto(pathToFileURL(path).href);
    const told = [await page.locator(TOLD).innerText()];
    for (const file of files.slice(0, -1)) {
      await page.locator("#weights-file input").setInputFiles(file);
      await page.waitForFunction(([where, old]) => document.querySelector(where).textContent !== old, [TOLD, told.at(-1)]);
      told.push(await page.locator(TOLD).innerText());
    }
    await page.locator("#weights-file input").setInputFiles(files.at(-1));
    await page.waitForFunction(() => document.body.dataset.view);
    told.push(await page.locator("#ledger").innerText());
    await page.locator("[data-part='blocks.1.attn.h2']").click();
    await page.waitForFunction(() => document.getElementById("ledger").textContent.includes("said"));
    return [...told, await page.locator("#ledger").innerText()];
  });
}
