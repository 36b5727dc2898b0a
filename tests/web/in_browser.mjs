// A page as people use it, for tests: its address, its buttons, its files.
import { pathToFileURL } from "node:url";
import { withPage } from "./chromium.mjs";

const OPENED = "#actions button";

// Opens a page, does something with it, and gives back what that gives, with all errors and requests.
function on(program, path, act, state = "") {
  return withPage(program, {}, async (page) => {
    const [errors, requests] = [[], []];
    page.on("pageerror", (error) => errors.push(String(error.stack)));
    page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
    page.on("request", (request) => requests.push(request.url()));
    await page.goto(pathToFileURL(path).href + state);
    await page.waitForSelector(OPENED);
    return { found: await act(page), errors, requests: requests.slice(1).filter((url) => !url.startsWith("blob:")) };
  });
}

// Saves a state as a workbook; how long that took.
export function save(program, path, state, target) {
  const act = async (page) => {
    const began = Date.now();
    const button = page.getByRole("button", { name: "Save workbook" });
    const [saved] = await Promise.all([page.waitForEvent("download"), button.click()]);
    await saved.saveAs(target);
    return Date.now() - began;
  };
  return on(program, path, act, `#${state}`);
}

// Opens files one after another: what the address has behind #, and what is said, after each.
export function open(program, path, files) {
  return on(program, path, async (page) => {
    const found = [];
    for (const file of files) {
      const before = await page.textContent("#ledger");
      await page.setInputFiles("input[accept='.xlsx']", file);
      await page.waitForFunction((said) => document.getElementById("ledger").textContent !== said, before);
      found.push([await page.evaluate(() => location.hash), await page.textContent("#ledger")]);
    }
    return found;
  });
}

// Saves without a workbook, then into one, with another sentence: what is said at first.
export function save_into(program, path, file, target) {
  return on(program, path, async (page) => {
    const button = page.getByRole("button", { name: "Save workbook" });
    await button.click();
    const said = await page.textContent("#ledger");
    await page.setInputFiles("input[accept='.xlsx']", file);
    await page.waitForFunction((before) => document.getElementById("ledger").textContent !== before, said);
    await page.fill("#sentence", "the dog");
    const [saved] = await Promise.all([page.waitForEvent("download"), button.click()]);
    await saved.saveAs(target);
    return said;
  });
}
