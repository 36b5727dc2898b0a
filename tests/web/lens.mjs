// The table of words after each layer, on a page with a file of weights. Called by test_page_lens.py.
import { pathToFileURL } from "node:url";
import { withPage } from "./chromium.mjs";

/** Its rows once it is open, and after a part is switched off; before, there are none. Then the
 * text with the next word. */
export function words(program, path, weights, part) {
  return withPage(program, {}, async (page) => {
    await page.goto(pathToFileURL(path).href);
    await page.locator("#weights-file input").setInputFiles(weights);
    await page.waitForFunction(() => document.body.dataset.view);
    const rows = () => page.evaluate(() => [...document.querySelectorAll("#lens tbody tr")].map((row) => [...row.cells].map((cell) => cell.textContent)));
    const closed = await rows();
    await page.locator("#lens summary").click();
    await page.waitForFunction(() => document.querySelector("#lens tbody tr"));
    const opened = await rows();
    const text = await page.textContent("#lens tbody");
    await page.locator(`[data-part='${part}']`).first().click();
    await page.waitForFunction((before) => document.querySelector("#lens tbody").textContent !== before, text);
    const after = await rows();
    await page.locator("#top button", { hasText: /^Next token$/ }).click();
    await page.waitForFunction(() => !document.getElementById("text").hidden);
    return [closed, opened, after, await page.locator("#text").innerText()];
  });
}
