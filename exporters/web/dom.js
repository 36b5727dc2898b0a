// Elements of the page, and what pictures of numbers are drawn with.

import { readable } from "./outside.js";

/** @typedef {{paper: number[], ink: number[], above: number[], below: number[], share: number[], here: string, soft: string}} Palette */

/**
 * An element with attributes, and with functions for events (`onclick`); texts stay texts.
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Record<string, any>} [attributes]
 * @param {...(Node | string | null | undefined | false)} children
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, String(value));
  }
  for (const child of children) if (child || child === "") made.append(child);
  return made;
}

/** An element of a drawing. @param {string} tag @param {Record<string, any>} attributes @param {...(Node | string)} children @returns {SVGElement} */
export function vector(tag, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== undefined) made.setAttribute(name, String(value));
  }
  made.append(...children);
  return made;
}

/** The element of the shell with an id. @param {string} id @returns {HTMLElement} */
export function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no #${id}`);
  return found;
}

/** A text for people: a token as it is shown in quotes. @param {string} text */
export function quoted(text) {
  return `‘${readable(text)}’`;
}

/** A share that tells something however small it is: `99.97 %`, `3.1 %`, `1 in 52,000`. @param {number} share */
export function percent(share) {
  if (!(share > 0)) return share === 0 ? "0 %" : "–";
  if (share > 1 - 1e-6) return "100 %";
  const digits = Math.min(4, Math.max(1, Math.ceil(-Math.log10(1 - share)) - 2));
  if (share >= 0.001) return `${(100 * share).toFixed(digits)} %`;
  const unit = 10 ** Math.floor(-Math.log10(share) - 1);
  return share < 1e-9 ? `1 in 10^${Math.round(-Math.log10(share))}` : `1 in ${grouped(Math.round(1 / share / unit) * unit)}`;
}

/** A whole number with separators. @param {number} n */
export function grouped(n) {
  return String(n).replace(/\B(?=(\d{3})+$)/g, ","); // toLocaleString loads data for 10 ms
}

/** A number with about three digits. @param {any} x */
export function brief(x) {
  if (typeof x !== "number") return x === null || x === "" ? "blank" : `${x.text ?? x}`;
  if (Number.isNaN(x)) return "no number";
  const size = Math.abs(x);
  if (size >= 1e6 || (size && size < 1e-3)) return x.toExponential(1).replace("-", "−");
  return (Number.isInteger(x) ? String(x) : x.toFixed(size < 10 ? 3 : 1)).replace("-", "−");
}

// --- pictures ------------------------------------------------------------------------------

/** @type {Palette | null} */
let palette = null;

/** The colours of the scheme that is on, for canvases. @returns {Palette} */
export function colours() {
  if (!palette) {
    const probe = element("span");
    probe.style.setProperty("forced-color-adjust", "none"); // high contrast has one colour for all
    document.body.append(probe);
    const read = (/** @type {string} */ name) => {
      probe.style.setProperty("color", `var(--${name})`);
      return getComputedStyle(probe).color;
    };
    const numbers = (/** @type {string} */ name) => (read(name).match(/[\d.]+/g) ?? []).slice(0, 3).map(Number);
    palette = {
      ...{ paper: numbers("paper"), ink: numbers("ink"), above: numbers("above"), below: numbers("below") },
      ...{ share: numbers("share"), here: read("here"), soft: read("soft") },
    };
    probe.remove();
  }
  return palette;
}

/** Reads the colours anew, after the scheme was changed. */
export function forgetColours() {
  palette = null;
}

/** A colour between two. @param {number[]} from @param {number[]} to @param {number} part */
function between(from, to, part) {
  return from.map((x, k) => Math.round(x + (to[k] - x) * part));
}

/**
 * The colour of a number: of a share from 0 to 1, or about 0, full at ±`full`.
 * @param {number} x
 * @param {number} full
 * @param {boolean} isShare
 * @returns {number[]}
 */
export function colourOf(x, full, isShare) {
  const { paper, above, below, share } = colours();
  if (Number.isNaN(x)) return paper;
  const part = Math.min(1, Math.abs(x) / (full || 1));
  return between(paper, isShare ? share : x < 0 ? below : above, part);
}
