// The weights beside a page that a server gives: the page fetches them itself. From disk, or if they
// are not there, it asks for the file.

import { byId } from "./dom.js";
import { askedWeights, readWeights } from "./weightsfile.js";

/** @typedef {import("./weightsfile.js").Beside} Beside */

/** Reads the file beside the page. @param {Beside} beside @param {Uint8Array} into @returns {Promise<void>} */
export async function nearbyWeights(beside, into) {
  if (!/^https?:$/.test(location.protocol)) return askedWeights(beside, into);
  const told = (/** @type {string} */ text) => (byId("ledger").textContent = text);
  try {
    told(`Loading ${beside.name} …`);
    const answer = await fetch(encodeURIComponent(beside.name));
    if (!answer.ok) throw new Error(`${beside.name} is not beside this page (status ${answer.status})`);
    const file = Object.assign(await answer.blob(), { name: beside.name });
    await readWeights(file, beside, into, (share) => told(`Reading ${beside.name}: ${Math.round(100 * share)} %`));
  } catch (error) {
    const problem = document.createElement("p");
    problem.className = "problem";
    problem.textContent = `${error instanceof Error ? error.message : error}.`;
    byId("main").prepend(problem);
    await askedWeights(beside, into);
    problem.remove();
  }
}
