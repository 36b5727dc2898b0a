// The index of a gallery in a browser: called by test_index.py.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { withPage } from "./chromium.mjs";

const require = createRequire(new URL("../node/package.json", import.meta.url));
const TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"];

/** How high and how wide the index is, what axe finds, and the names that each search leaves, with what is said. */
export function opened(program, path, size, searched, colorScheme = "light") {
  return withPage(program, { viewport: size, colorScheme }, async (page) => {
    const errors = [];
    page.on("pageerror", (error) => errors.push(String(error.stack)));
    await page.goto(pathToFileURL(path).href);
    const high = await page.evaluate(() => document.documentElement.scrollHeight);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    await page.evaluate(readFileSync(require.resolve("axe-core/axe.min.js"), "utf8"));
    const { violations } = await page.evaluate((runOnly) => globalThis.axe.run(document, { runOnly }), TAGS);
    const found = [];
    for (const text of searched) {
      await page.fill("#search", text);
      found.push([await page.locator("h3:visible").allInnerTexts(), await page.innerText("#found")]);
    }
    return { high, wide, found, errors, axe: violations.map(({ id, nodes }) => `${id}: ${nodes[0].html}`) };
  });
}
