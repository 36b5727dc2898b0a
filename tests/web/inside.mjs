// What one does with sheets and cells, in a browser: called by test_inside.py.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { withPage } from "./chromium.mjs";

const require = createRequire(new URL("../node/package.json", import.meta.url));

/** Opens a page, does something with it, and gives back what that gives, with all errors. */
function on(program, path, act, { width = 1366, height = 768, colorScheme = "light" } = {}) {
  return withPage(program, { viewport: { width, height }, colorScheme, bypassCSP: true }, async (page) => {
    const [errors, found] = [[], []];
    page.on("pageerror", (error) => errors.push(String(error.stack)));
    page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
    for (const one of [path].flat()) {
      await page.goto(pathToFileURL(one).href);
      await page.waitForSelector("[role=tab]", { state: "attached" });
      found.push(await act(page));
    }
    return { found, errors };
  });
}

/** Every suggested edit of every sheet: its text, what the list says of it, the value of the cell that it names, and
 * what the list says after it was put back. */
export function suggested(program, paths) {
  return on(program, paths, (page) =>
    page.evaluate(() => {
      const found = [];
      document.querySelector("#views button[value=sheets]")?.click();
      for (const tab of document.querySelectorAll("[role=tab]")) {
        tab.click();
        const list = () => document.querySelector(tab.textContent === "Start" ? ".flow .tries" : ".sheet-side .tries");
        for (let k = 0; k < (list()?.children.length ?? 0); k++) {
          const item = () => list().children[k];
          const shown = () => item().querySelector("b").textContent;
          const before = shown();
          item().querySelector("button").click();
          const after = shown();
          [...item().querySelectorAll("a")].pop().click();
          const value = document.querySelector(".sheet-side input").value;
          tab.click();
          item().querySelector("button").click();
          found.push({ sheet: tab.textContent, before, after, value, again: shown() });
        }
      }
      return found;
    }),
  );
}

/** Types with the keyboard in a sheet's grid; gives back what is told after each step. */
export function typed(program, path, sheet, steps) {
  return on(program, path, async (page) => {
    await page.getByRole("tab", { name: sheet, exact: true }).click();
    await page.locator(".sheet [role=grid]").focus();
    const told = [];
    for (const keys of steps) {
      for (const key of keys.split(" ")) await page.keyboard.press(key);
      told.push(
        await page.evaluate(() => {
          const grid = document.querySelector(".sheet [role=grid]");
          const active = document.getElementById(grid.getAttribute("aria-activedescendant"));
          return {
            cell: document.querySelector(".sheet-side h2").textContent,
            text: active.querySelector(".text")?.textContent ?? "",
            fault: document.querySelector(".grid-fault")?.textContent ?? "",
            rows: document.querySelectorAll(".sheet [role=row]").length,
          };
        }),
      );
    }
    return told;
  });
}

/** What axe finds on each sheet. */
export function violations(program, path, view) {
  const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
  const act = async (page) => {
    await page.evaluate(axe);
    const found = [];
    for (const tab of await page.getByRole("tab").all()) {
      await tab.click();
      const tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"];
      const said = await page.evaluate((runOnly) => globalThis.axe.run(document, { runOnly }), tags);
      for (const { id, nodes } of said.violations) found.push(`${await tab.textContent()}: ${id} ${nodes[0].html}`);
    }
    return found;
  };
  return on(program, path, act, view);
}
