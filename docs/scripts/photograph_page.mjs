// README's picture of the page: dialogue-game with a head switched off, at 1366 x 768.
//
//     cellformer build dialogue-game -o page.html
//     node docs/scripts/photograph_page.mjs page.html docs/page.png
//
// Debian's Chromium draws it, driven by playwright-core (npm ci --prefix tests/node).

import { createRequire } from "node:module";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

const OFF = "head 1.2";
const [page, picture] = process.argv.slice(2);
const { chromium } = createRequire(new URL("../../tests/node/", import.meta.url))("playwright-core");
const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
const tab = await browser.newPage({ viewport: { width: 1366, height: 768 } });
await tab.goto(pathToFileURL(resolve(page)).href);
await tab.getByRole("button", { name: `Switch ${OFF} off` }).click();
await tab.locator("#ledger", { hasText: `${OFF} off` }).waitFor();
await tab.evaluate(() => scrollTo(0, 0));
await tab.screenshot({ path: picture });
await browser.close();
