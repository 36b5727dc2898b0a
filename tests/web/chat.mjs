// A chat page in a browser: called by test_page_chat.py.
import { pathToFileURL } from "node:url";
import { withPage } from "./chromium.mjs";

const PATIENCE = { timeout: 60_000 };

/** Opens a page, takes steps, and gives what is then read, with what went wrong. */
export async function chatted(program, path, steps, view = {}) {
  return withPage(program, { viewport: { width: 1366, height: 768 }, ...view }, async (page) => {
    const [errors, read] = [[], []];
    page.on("pageerror", (error) => errors.push(String(error.stack ?? error)));
    await page.goto(pathToFileURL(path).href);
    await page.waitForFunction(() => document.body.dataset.view, null, PATIENCE);
    for (const [act, ...given] of steps) read.push((await ACTS[act](page, ...given)) ?? null);
    return { errors, read: read.filter((text) => text !== null) };
  });
}

/** Waits until the model has answered. */
async function answered(page) {
  await page.waitForFunction(() => document.querySelector(".say button").textContent !== "Stop", null, PATIENCE);
}

const ACTS = {
  answer: async (page) => {
    await page.click(".say button");
    await answered(page);
  },
  send: async (page, text) => {
    await page.fill("#say", text);
    await page.click(".say button");
    await answered(page);
  },
  stop: async (page, text) => {
    await page.fill("#say", text);
    await page.evaluate(() => {
      const button = document.querySelector(".say button");
      button.click();
      setTimeout(() => button.click());
    });
    await answered(page);
  },
  fill: (page, selector, text) => page.fill(selector, text),
  open: (page, selector) => page.locator(selector).first().dispatchEvent("click"),
  click: (page, selector, nth = 0) => page.locator(selector).nth(nth).click(),
  text: (page, selector) => page.locator(selector).allInnerTexts(),
  shown: (page, selector) => page.locator(selector).isVisible(),
  wide: (page) => page.evaluate(() => document.documentElement.scrollWidth - innerWidth),
  tokens: (page) => page.locator("#machine input[name=token]").evaluateAll((found) => found.map((input) => input.parentElement.title)),
};
