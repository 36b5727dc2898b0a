// A state as text for the address behind #, and back: exporters/edits/link.py reads it, too.
//
//   v1&cellformer=dialogue-game.1f2e3d4c.99aabbcc&sentence=3+chiama&W_E[3,2]=0.5
//
// First the version, then the fingerprint of the page, then the edited cells in order. [0,0] is left
// out. What reads like a number is one; a text that does begins with '. Nothing is a blank cell.

import { shortened } from "./outside.js";
import { faultOfId, typedValue } from "./typed.js";

/** @typedef {import("./graph.js").Block} Block */
/** @typedef {import("./graph.js").Graph} Graph */
/** @typedef {import("./evaluator.js").Edit} Edit */
/** @typedef {import("./values.js").Value} Value */
/** A task: the word to say, with so many edits, of a text; and the stops of the tour that are shown.
 * @typedef {{task: string, word: number, edits: number, text: string, stops: number[]}} Lesson */

const LINK_VERSION = "v1";
const LINK_PAGE = "cellformer=";
const LINK_TASK = "~"; // begins the parts of a lesson, which end with ~end
const LINK_CELL = /^([^[\]]+)(?:\[(\d{1,9}),(\d{1,9})\])?$/;
const LINK_NUMBER = /^-?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?$/i;

/**
 * A state as text; "" if nothing is edited.
 * @param {Edit[]} edits
 * @param {string} fingerprint of the page
 * @param {Lesson | null} [lesson]
 * @returns {string}
 */
export function linkOf(edits, fingerprint, lesson) {
  if (!edits.length && !lesson) return "";
  const cells = edits.map(({ block, i, j, value }) => {
    const at = i || j ? `[${i},${j}]` : "";
    return `${inLink(block.name)}${at}=${inLink(spelt(value))}`;
  });
  const told = lesson ? Object.entries({ ...lesson, stops: lesson.stops.join(".") }).map(([name, value]) => `${LINK_TASK}${name}=${inLink(String(value))}`) : [];
  const text = [LINK_VERSION, LINK_PAGE + inLink(fingerprint), ...told, ...cells, ...(lesson ? [`${LINK_TASK}end`] : [])].join("&");
  // what ends a sentence is often left out where a link is copied
  return text.replace(/[.!'()*~-]$/, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`);
}

/**
 * A value as a link spells it.
 * @param {Value} value
 * @returns {string}
 */
function spelt(value) {
  if (value === null) return "";
  const text = String(value);
  if (typeof value !== "string") return text;
  return text === "" || text[0] === "'" || LINK_NUMBER.test(text) ? `'${text}` : text;
}

/**
 * A text with its escapes; a space is a +, half a character is a question mark.
 * @param {string} text
 * @returns {string}
 */
function inLink(text) {
  const whole = text.replace(/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g, "?");
  return encodeURIComponent(whole).replaceAll("%20", "+");
}

/**
 * The edits of a link: of all that stands behind #, with it or without. Throws an Error for a link
 * of another page or version, a damaged one, and cells and values that the page does not have.
 * @param {string} hash
 * @param {Graph} graph
 * @returns {Edit[]}
 */
export function editsOfLink(hash, graph) {
  const [version, page, ...parts] = hash.replace(/^#/, "").split("&");
  if (!version && page === undefined) return [];
  if (!/^v\d+$/.test(version) || !page?.startsWith(LINK_PAGE)) {
    throw new Error(`${shortened(hash)} is no state of a page; copy the link again`);
  }
  if (version !== LINK_VERSION) {
    throw new Error(`the link has version ${version}, and this page reads ${LINK_VERSION}; open it in its own page`);
  }
  checkPage(outOfLink(page.slice(LINK_PAGE.length)), graph.data.fingerprint);
  /** @type {Set<string>} */
  const known = new Set();
  return parts.filter((part) => part && part[0] !== LINK_TASK).map((part) => {
    const edit = editOfPart(part, graph);
    const name = `${edit.block.name}[${edit.i},${edit.j}]`;
    if (known.has(name)) throw new Error(`the link names ${name} twice; copy the link again`);
    known.add(name);
    return edit;
  });
}

/**
 * The lesson of a link, or null. Throws an Error for one that was cut.
 * @param {string} hash
 * @returns {Lesson | null}
 */
export function lessonOfLink(hash) {
  const parts = hash.split("&").filter((part) => part[0] === LINK_TASK);
  if (!parts.length) return null;
  const found = Object.fromEntries(parts.map((part) => [part.slice(1).split("=")[0], outOfLink(part.slice(part.indexOf("=") + 1))]));
  const { task, word, edits, text, stops } = found;
  const isWhole = hash.endsWith(`&${LINK_TASK}end`) && task && text !== undefined && /^\d+$/.test(word) && /^\d+$/.test(edits) && /^[\d.]*$/.test(stops);
  if (!isWhole) throw new Error("the lesson in the link is incomplete; copy the link again");
  return { task, word: Number(word), edits: Number(edits), text, stops: stops.split(".").filter(Boolean).map(Number) };
}

/**
 * Throws an Error unless a link is of this page.
 * @param {string} given
 * @param {string} own
 */
function checkPage(given, own) {
  if (given === own) return;
  const titles = [given, own].map((fingerprint) => fingerprint.replace(/\.[^.]*\.[^.]*$/, ""));
  if (titles[0] !== titles[1]) {
    throw new Error(`the link is of ${shortened(titles[0])}, and this page is of ${titles[1]}; open it in its own page`);
  }
  throw new Error(`the link is of another build of ${titles[1]}; open it in the page that it was copied from`);
}

/**
 * The edit of one part of a link.
 * @param {string} part
 * @param {Graph} graph
 * @returns {Edit}
 */
function editOfPart(part, graph) {
  const equals = part.indexOf("=");
  const match = LINK_CELL.exec(equals < 0 ? "" : outOfLink(part.slice(0, equals)));
  if (!match) throw new Error(`the link has a part ${shortened(part)}, which does not name a cell; copy the link again`);
  if (!graph.has(match[1])) throw new Error(`the link names ${shortened(match[1])}, which this page does not have; open it in its own page`);
  const block = graph.get(match[1]);
  const [i, j] = [Number(match[2] ?? 0), Number(match[3] ?? 0)];
  if (!block.has(i, j)) throw new Error(`the link names ${block.name}[${i},${j}], and it has ${block.rows} x ${block.cols} cells; open it in its own page`);
  return { block, i, j, value: valueInLink(graph, block, i, j, outOfLink(part.slice(equals + 1))) };
}

/**
 * The value of a cell. Throws an Error for one that it cannot hold.
 * @param {Graph} graph
 * @param {Block} block
 * @param {number} i
 * @param {number} j
 * @param {string} given
 * @returns {Value}
 */
function valueInLink(graph, block, i, j, given) {
  const name = `${block.name}[${i},${j}]`;
  const text = given.replace(/^'/, "");
  if (typeof typedValue(block, i, j) === "string") return text;
  const isTable = block.kind === "table";
  if (given === "" && isTable) return null;
  const isNumber = LINK_NUMBER.test(given);
  if (!isNumber && isTable) return text;
  if (!isNumber || !Number.isFinite(Number(given))) {
    throw new Error(`the link puts ${shortened(given) || "nothing"} into ${name}, which holds a number; copy the link again`);
  }
  const fault = faultOfId(graph, block, Number(given));
  if (fault) throw new Error(`the link puts ${shortened(given)} into ${name}, which ${fault}`);
  return Number(given);
}

/**
 * A part of a link without its escapes.
 * @param {string} text
 * @returns {string}
 */
function outOfLink(text) {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    throw new Error(`the link is damaged at ${shortened(text)}; copy the link again`);
  }
}
