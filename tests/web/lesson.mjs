// A lesson in a browser: made, opened in a frame under a sub path, and answered.
import { readFileSync } from "node:fs";
import { withPage } from "./chromium.mjs";

const HOST = "http://host.test/course/week%203/";
const SIZE = { viewport: { width: 1366, height: 900 } };

/** Makes a lesson from a switched head; the copied link, iframe, and what the maker of none is told. */
export function made(program, path, solution, task) {
  return inFrame(program, path, "", async (frame) => {
    await frame.locator(".maker summary").click();
    await frame.getByRole("button", { name: "Copy lesson link" }).click();
    const refused = await frame.innerText("#ledger");
    await frame.locator(solution).first().click();
    await frame.getByLabel("Task", { exact: true }).fill(task);
    await frame.locator(".maker input").first().uncheck();
    await frame.getByRole("button", { name: "Copy lesson link" }).click();
    const link = await copied(frame);
    await frame.getByRole("button", { name: "Copy iframe" }).click();
    return { refused, link, iframe: await copied(frame) };
  });
}

/** Opens a link, touches parts, and reads what the page shows, with the address of the answer. */
export function answered(program, path, hash, touched) {
  return inFrame(program, path, hash, async (frame) => {
    const shows = await frame.locator("#lesson").isVisible();
    const [task, before] = shows ? await frame.locator("#lesson p").allInnerTexts() : ["", ""];
    for (const part of touched) await frame.locator(part).first().click();
    const after = shows ? (await frame.locator("#lesson p").allInnerTexts())[1] : "";
    const tour = await frame.innerText("#tour p");
    const hints = await frame.locator("#tour .tries").count();
    return { task, before, after, tour, hints, ledger: await frame.innerText("#ledger"), link: frame.url() };
  });
}

async function copied(frame) {
  return frame.evaluate(() => globalThis.copied);
}

function inFrame(program, path, hash, act) {
  return withPage(program, SIZE, async (page) => {
    await page.addInitScript(() => {
      Object.defineProperty(navigator, "clipboard", { value: { writeText: async (text) => void (globalThis.copied = text) } });
    });
    const html = readFileSync(path, "utf8");
    await page.route("**/*", (route) => route.fulfill({ contentType: "text/html", body: route.request().url().includes("page.html") ? html : "<body>" }));
    await page.goto(HOST);
    await page.evaluate((src) => document.body.append(Object.assign(document.createElement("iframe"), { src, width: 1300, height: 850 })), `a/page.html${hash}`);
    const frame = await (await page.waitForSelector("iframe")).contentFrame();
    await frame.waitForFunction(() => document.body?.dataset.view);
    return act(frame);
  });
}
