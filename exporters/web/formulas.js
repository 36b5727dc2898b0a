// Formulas of cells, made into functions from the steps that formulas.py writes.

import { FUNCTIONS, nth } from "./functions.js";
import { SIGNS } from "./values.js";

/** @typedef {import("./graph.js").Group} Group */
/** @typedef {import("./graph.js").Shape} Shape */
/** @typedef {import("./values.js").Value} Value */
/** The value of an area: of one cell, or a Range.
 * @typedef {(grid: number, top: number, bottom: number, left: number, right: number) => any} Look */
/** The value of the k-th cell of a group.
 * @typedef {(group: Group, k: number, look: Look) => any} Compute */

/** The function of a shape: its last step. @param {Shape} shape @returns {Compute} */
export function compiled(shape) {
  /** @type {Compute[]} */ const made = [];
  for (const [k, step] of shape.steps.entries()) made.push(ofStep(shape, k, step, made));
  return made[made.length - 1];
}

/** @param {Shape} shape @param {number} k @param {any[]} step @param {Compute[]} made @returns {Compute} */
function ofStep(shape, k, step, made) {
  const [name, ...rest] = step;
  const place = shape.places.get(k) ?? 0;
  if (name === "@") return area(place);
  if (name === "#") return rest.length ? () => rest[0] : (group, n) => group.at(place, n);
  const of = rest.map((x) => made[x]);
  if (name === "held") return of[0];
  if (name === "nth") {
    const [line, at] = of;
    return (group, n, look) => nth(line(group, n, look), at(group, n, look), rest[2]);
  }
  if (name === "negative") return (group, n, look) => SIGNS["-"](0, of[0](group, n, look));
  const sign = SIGNS[name];
  if (sign) return (group, n, look) => sign(of[0](group, n, look), of[1](group, n, look));
  const { compute, lazy } = FUNCTIONS[name];
  if (lazy) return (group, n, look) => compute(...of.map((x) => () => x(group, n, look)));
  return (group, n, look) => compute(...of.map((x) => x(group, n, look)));
}

/** @param {number} place @returns {Compute} */
function area(place) {
  return (group, k, look) =>
    look(group.at(place, k), group.at(place + 1, k), group.at(place + 2, k), group.at(place + 3, k), group.at(place + 4, k));
}
