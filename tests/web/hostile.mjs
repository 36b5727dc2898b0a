// Hostile texts on a page in a browser: typed, opened as links, dropped as files, read from its own
// data; and what was executed, asked for or made of them: called by test_page_hostile.py.
import { pathToFileURL } from "node:url";
import { withPage } from "./chromium.mjs";

const FRAMES = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));

/** What stands on the page after each text: how it is given, and what is read. */
const WAYS = {
  /** Types a sentence. */
  sentence: (page, text) =>
    page.evaluate((typed) => {
      const area = document.getElementById("sentence");
      area.value = typed;
      area.dispatchEvent(new Event("input", { bubbles: true }));
      area.dispatchEvent(new Event("blur"));
    }, text),
  /** Opens a link: all that stands behind #. */
  link: (page, text) => page.evaluate((behind) => void (location.hash = behind), text),
  /** Drops a file: its name, and base64 of its bytes; until something is told. */
  file: async (page, file) => {
    await page.evaluate(dropped, file);
    await page.waitForFunction(() => document.getElementById("ledger").textContent);
  },
  /** Shows a sheet, by its place among the tabs. */
  sheet: async (page, k) => {
    await page.evaluate(() => document.querySelector("#views button[value=sheets]")?.click());
    await page.locator("[role=tab]").nth(k).click();
  },
};

function dropped([name, bytes]) {
  document.getElementById("ledger").textContent = "";
  const moved = new DataTransfer();
  moved.items.add(new File([Uint8Array.from(atob(bytes), (letter) => letter.charCodeAt(0))], name));
  document.body.dispatchEvent(new DragEvent("drop", { dataTransfer: moved, bubbles: true, cancelable: true }));
}

/** What a person, or a screen reader, is told: the texts and titles of all elements. */
function read() {
  const shown = (selector) => [...document.querySelectorAll(selector)].map((node) => node.textContent);
  const titles = [...document.querySelectorAll("[title], [aria-label]")].flatMap((node) => [node.title, node.ariaLabel]);
  const names = ["#name", "#ledger", "[role=tab]", ".sheet .text", ".tries li", ".sheet-head p", ".flow p", ".flow h2", ".flow h3"];
  return {
    title: document.title,
    hash: location.hash,
    ledger: document.getElementById("ledger").textContent,
    sentence: document.getElementById("sentence")?.value,
    tokens: shown(".token-list span"),
    ranks: shown(".ranks tbody th"),
    shown: names.flatMap(shown),
    titles: [...new Set(titles)],
  };
}

/** Whatever no page of ours has. */
function foreign() {
  const found = [];
  for (const node of document.querySelectorAll("*")) {
    const { tagName, attributes } = node;
    if (/^(img|iframe|frame|object|embed|base|link|form|video|audio|source|portal|template|math|marquee|foreignObject)$/i.test(tagName)) found.push(tagName);
    for (const { name, value } of attributes) {
      if (/^on/i.test(name) || /^(src|srcdoc|action|formaction|ping|xlink:href)$/i.test(name)) found.push(`${tagName} ${name}`);
      if (name === "href" && value !== "#") found.push(`${tagName} href=${value}`);
    }
  }
  const scripts = [...document.scripts].filter((node) => node.type !== "text/plain").length;
  if (scripts !== 2) found.push(`${scripts} scripts`);
  if (document.querySelectorAll("style").length !== 1) found.push("a style");
  for (const name in {}) found.push(`Object.prototype.${name}`);
  if ({}.polluted !== undefined || [].polluted !== undefined) found.push("a prototype");
  return found;
}

/** Opens a page and gives it texts, each in one of the ways; what is then read, and all that should not have been. */
export function attacked(program, path, given, hash = "") {
  return withPage(program, { viewport: { width: 1366, height: 3000 } }, async (page, context) => {
    const bad = [];
    await page.addInitScript(() => {
      window.ran = [];
      window.hacked = (what) => window.ran.push(what);
    });
    context.on("page", () => bad.push("a window was opened"));
    page.on("pageerror", (error) => bad.push(`error: ${error.stack ?? error}`));
    page.on("console", (message) => ["error", "warning"].includes(message.type()) && bad.push(`console: ${message.text()}`));
    page.on("dialog", (dialog) => bad.push(`dialog: ${dialog.message()}`) && dialog.dismiss());
    page.on("download", () => bad.push("a file was saved"));
    page.on("request", (request) => {
      if (!request.url().startsWith(pathToFileURL(path).href)) bad.push(`asked for ${request.url()}`);
    });
    await page.goto(pathToFileURL(path).href + hash);
    await page.waitForFunction(() => document.body.dataset.view);
    const begun = await page.evaluate(read);
    const found = [];
    for (const [way, text] of given) {
      await WAYS[way](page, text);
      await page.evaluate(FRAMES);
      found.push(await page.evaluate(read));
    }
    for (const what of await page.evaluate(foreign)) bad.push(`found ${what}`);
    for (const what of await page.evaluate(() => window.ran)) bad.push(`executed ${what}`);
    return { begun, read: found, bad: [...new Set(bad)] };
  });
}
