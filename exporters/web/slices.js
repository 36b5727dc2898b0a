// Long computations, in slices between which the browser paints and listens.

/** Steps of a computation: each gives the share of it that is done, the end its result.
 * @template T @typedef {Generator<number, T>} Steps */

// ms between two looks at what else there is to do
const AT_ONCE_MS = 50;

/** Goes through all steps at once. @template T @param {Steps<T>} steps @returns {T} */
export function finished(steps) {
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
  }
}

/** Goes through all steps, and tells between slices what share is done.
 * @template T @param {Steps<T>} steps @param {(share: number) => void} told @returns {Promise<T>} */
export async function inSlices(steps, told) {
  for (let began = performance.now(); ; ) {
    const { done, value } = steps.next();
    if (done) return value;
    if (performance.now() - began < AT_ONCE_MS) continue;
    told(value);
    await new Promise((painted) => setTimeout(painted));
    began = performance.now();
  }
}
