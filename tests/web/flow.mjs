// The shares of a logit, of a page that as_page.py wrote, after edits: called by test_flow.py.
import { creditsOf } from "../../exporters/web/credits.js";
import { edited } from "./page.mjs";

/** By token, of the word with the largest logit: that logit, and the sums of what adds to it. */
export async function sums(folder, edits) {
  const run = await edited(folder, edits);
  const logits = run.graph.get("logits");
  return Array.from({ length: logits.rows }, (_, row) => {
    const scores = run.numbers(logits).slice(row * logits.cols, (row + 1) * logits.cols);
    const word = scores.indexOf(Math.max(...scores));
    const credits = creditsOf(run, word, row);
    return {
      logit: scores[word],
      sum: total(credits),
      largest: Math.max(...credits.map(({ adds }) => Math.abs(adds))),
      heads: credits.filter(({ pattern }) => pattern).map(({ block, adds, sources }) => [block.name, adds, total(sources)]),
    };
  });
}

/** What each block adds at each token to a word's logit, directly and through later parts. */
export async function values(folder, edits, word, row) {
  return creditsOf(await edited(folder, edits), word, row).map(({ block, row: at, adds, later, sources }) => ({
    name: block.name, at, value: adds + later, later, read: sources.reduce((sum, source) => sum + source.later, 0), isHead: sources.length > 0,
  }));
}

function total(parts) {
  return parts.reduce((sum, { adds }) => sum + adds, 0);
}
