// What a page takes in Node.js, in ms: called by page.py.
//
//     node page.mjs PAGE.json EDITS.json: lists of edits that are made one after another, again and again
import { readFileSync } from "node:fs";
import vm from "node:vm";

const [page, cases, times] = process.argv.slice(2);
const { script, data, weights } = JSON.parse(readFileSync(page, "utf8"));
const { opened, KERNELS } = vm.runInThisContext(`(() => {${script}\nreturn {opened, KERNELS};})()`);
const { graph, run } = await opened(data, weights, KERNELS);

/** The least and the median time. */
function timed(act) {
  const taken = [];
  for (let k = 0; k < Number(times); k++) {
    const began = performance.now();
    act(k);
    taken.push(performance.now() - began);
  }
  taken.sort((a, b) => a - b);
  return [taken[0], taken[taken.length >> 1]];
}

const found = { "full pass": timed(() => run.computeAll()) };
for (const [name, edits] of Object.entries(JSON.parse(readFileSync(cases, "utf8")))) {
  found[name] = timed((k) => {
    const [block, i, j, value] = edits[k % edits.length];
    run.set(graph.get(block), i, j, value);
    run.recompute();
  });
}
console.log(JSON.stringify(found));
