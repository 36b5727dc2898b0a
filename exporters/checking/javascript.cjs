// Recomputes a page of cellformer: its script, data and weights come in as JSON, a verdict goes out.
//
// Every computed cell holds a wrong number before, so that none is taken for computed.

const vm = require("node:vm");

const WRONG = -987654321.5;
const GIVEN = { Blob, Response, DecompressionStream, TextDecoder, atob, performance };

async function main() {
  const parts = [];
  for await (const part of process.stdin) parts.push(part);
  const { script, data, weights } = JSON.parse(Buffer.concat(parts).toString());
  const page = vm.runInNewContext(`(() => {${script}\nconst openLarge = typeof openedLarge === "function" ? openedLarge : null;
return { opened, openLarge, verdictOf, unpacked, KERNELS };})()`, GIVEN);
  const read = async (beside, into) => into.set(new Uint8Array(await page.unpacked(weights)));
  const { graph, run } = page.openLarge ? await page.openLarge(data, page.KERNELS, read) : await page.opened(data, weights, page.KERNELS);
  for (const block of graph.blocks) {
    if (block.isInput) continue;
    const values = run.values[block.index];
    for (let k = 0; k < values.length; k++) if (block.has(Math.floor(k / block.cols), k % block.cols)) values[k] = WRONG;
  }
  run.computeAll();
  process.stdout.write(JSON.stringify(page.verdictOf(run)));
}

main();
