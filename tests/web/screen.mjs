// What one does on a page's screen, in a browser, and what is then read: called by test_screen.py.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { withPage } from "./chromium.mjs";

const require = createRequire(new URL("../node/package.json", import.meta.url));
const TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"];

/** What can be done; what returns something is read. */
const ACTS = {
  fill: (page, selector, text) => page.locator(selector).fill(text),
  click: (page, role, name) => page.getByRole(role, { name, exact: true }).first().click(),
  choose: (page, selector, value) => page.locator(selector).selectOption(value).then(() => {}),
  touch: (page, selector) => page.locator(selector).first().click(),
  press: async (page, ...keys) => {
    for (const key of keys) await page.keyboard.press(key);
  },
  focus: (page, selector) => page.locator(selector).first().focus(),
  text: (page, selector) => page.locator(selector).allInnerTexts(),
  drawn: (page, selector) => page.locator(selector).allTextContents(),
  value: (page, selector) => page.locator(selector).first().inputValue(),
  focused: (page) => page.evaluate(() => document.activeElement?.getAttribute("aria-label") || document.activeElement?.textContent),
  hash: (page) => page.evaluate(() => decodeURIComponent(location.hash)),
  open: (page, hash) => page.evaluate((behind) => void (location.hash = behind), hash),
  wide: (page) => page.evaluate(() => document.documentElement.scrollWidth - innerWidth),
  small: (page) => page.evaluate(smallTargets),
  cut: (page, selector) => page.evaluate((found) => [...document.querySelectorAll(found)].filter((node) => node.scrollWidth > node.clientWidth + 1).map((node) => node.id || node.className), selector),
  colours: (page) => page.evaluate(coloursOfPictures),
  blank: (page) => page.evaluate(blankPictures),
  pages: async (page) => (await page.pdf({ format: "A4", landscape: true })).toString("latin1").match(/\/Type\s*\/Page[^s]/g).length,
  stroke: async (page, ...cells) => {
    for (const [k, at] of (await centres(page, cells)).entries()) {
      await page.mouse.move(...at, { steps: k ? 3 : 1 });
      if (!k) await page.mouse.down();
    }
    await page.mouse.up();
  },
  finger: async (page, ...cells) => {
    const client = await page.context().newCDPSession(page);
    for (const [k, [x, y]] of (await centres(page, cells)).entries()) await client.send("Input.dispatchTouchEvent", { type: k ? "touchMove" : "touchStart", touchPoints: [{ x, y }] });
    await client.send("Input.dispatchTouchEvent", { type: "touchEnd", touchPoints: [] });
    await page.waitForTimeout(100);
  },
  shiftClick: (page, cell) => page.locator(`.grid:visible [data-at='${cell}']`).click({ modifiers: ["Shift"] }),
  copied: (page) => page.evaluate(() => navigator.clipboard.readText()),
  paste: async (page, text) => {
    await page.evaluate((copied) => navigator.clipboard.writeText(copied), text);
    await page.keyboard.press("Control+v");
  },
  scrolled: (page) => page.evaluate(() => [...document.querySelectorAll(".grid-view, .sheet, #main, html")].reduce((sum, node) => sum + node.scrollTop, 0)),
  axe: async (page) => {
    await page.evaluate(readFileSync(require.resolve("axe-core/axe.min.js"), "utf8"));
    const { violations } = await page.evaluate((runOnly) => globalThis.axe.run(document, { runOnly }), TAGS);
    return violations.map(({ id, nodes }) => `${id}: ${nodes[0].html}`);
  },
};

/** Where cells stand on the screen. */
async function centres(page, cells) {
  const found = [];
  for (const cell of cells) {
    const { x, y, width, height } = await page.locator(`.grid:visible [data-at='${cell}']`).boundingBox();
    found.push([x + width / 2, y + height / 2]);
  }
  return found;
}

/** The pictures in which every point has the same colour, or none. */
function blankPictures() {
  return [...document.querySelectorAll(".tile canvas")].filter((canvas) => {
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    return new Set(new Uint32Array(data.buffer)).size < 2;
  }).map((canvas) => canvas.parentNode.dataset.block);
}

/** What one touches, outside sheets and drawings, that is lower or narrower than 24 px. */
function smallTargets() {
  const targets = [...document.querySelectorAll("button, input, select, a, summary, textarea")];
  return targets.filter((node) => node.checkVisibility() && !node.matches(".unseen, .token-list input")).filter((node) => {
    const { width, height } = node.getBoundingClientRect();
    return width < 24 || height < 24;
  }).map((node) => `${node.tagName} ${node.textContent}`);
}

/** How many colours the pictures have. */
function coloursOfPictures() {
  const pictures = [...document.querySelectorAll("canvas")].filter(({ width, height }) => width && height);
  return new Set(pictures.flatMap((canvas) => [...new Uint32Array(canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.buffer)])).size;
}

/** What a page says to its reader on a host that forbids its script. */
export function forbidden(program, path) {
  return withPage(program, {}, async (page) => {
    const html = readFileSync(path, "utf8").replace(/script-src [^;"]*/, "script-src 'none'");
    await page.setContent(html);
    return page.innerText("#ledger");
  });
}

/** Opens a page and takes steps; what was read, the errors, and what was asked for besides the page. */
export function played(program, path, steps, { width = 1366, height = 768, ...look } = {}) {
  return withPage(program, { viewport: { width, height }, colorScheme: "light", permissions: ["clipboard-read", "clipboard-write"], ...look }, async (page) => {
    const [errors, requests, read] = [[], [], []];
    page.on("pageerror", (error) => errors.push(String(error.stack)));
    page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
    page.on("request", (request) => requests.push(request.url().split("#")[0]));
    await page.goto(pathToFileURL(path).href);
    await page.waitForFunction(() => document.body.dataset.view);
    for (const [act, ...given] of steps) {
      await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
      const found = await ACTS[act](page, ...given);
      if (act === "fill") await page.waitForTimeout(250);
      if (found !== undefined) read.push(found);
    }
    return { read, errors, requests: requests.slice(1) };
  });
}
