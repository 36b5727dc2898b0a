// What one does with a state: undo, reset, take it to a workbook and back, send it as a link; the
// scheme of colours, and help.

import { byId, element, forgetColours } from "./dom.js";
import { shortened } from "./outside.js";
import { editsOf, savedWorkbook } from "./workbook.js";

/** @typedef {import("./session.js").Session} Session */

const HELP = [
  ["Ctrl+Z, Ctrl+Y", "undo, redo"],
  ["Ctrl+S", "save as a workbook"],
  ["Tab, Shift+Tab", "to the next picture, switch or field, and back"],
  ["Enter, Space", "open a picture; switch a part off or on"],
  ["arrow keys", "the next picture or switch; another token of the list; another cell among the numbers"],
  ["Enter in a cell", "type over it; Delete puts it back"],
  ["Shift+arrows", "select a range of cells, as dragging and Shift+click do"],
  ["Ctrl+C, Ctrl+V", "copy a range, or paste one from a spreadsheet"],
  ["Ctrl+Enter in a cell", "fill the range with what you typed; Ctrl+D and Ctrl+R fill down and right"],
  ["Esc", "close the numbers"],
  ["Ctrl+Enter", "next word"],
  ["F1", "this help"],
];

const SCHEME = "cellformer scheme"; // what the browser keeps: light or dark
let recolour = () => {};

/** The buttons for it. @param {Session} session @returns {HTMLElement[]} */
export function actions(session) {
  const button = (/** @type {string} */ text, /** @type {(event: Event) => void} */ onclick, title = "") => element("button", { type: "button", onclick, title }, text);
  const undo = button("Undo", () => session.undo());
  const redo = button("Redo", () => session.redo());
  const reset = button("Reset", () => session.reset(), "Put everything back as it was built");
  const file = element("input", { type: "file", accept: ".xlsx", class: "unseen", tabindex: -1, "aria-hidden": "true", onchange: () => file.files?.[0] && openFile(session, file.files[0]) });
  session.subscribe(() => {
    undo.disabled = session.at === 0;
    redo.disabled = session.at + 1 >= session.steps.length;
    reset.disabled = !session.edits.length;
  });
  recolour = () => {
    forgetColours();
    session.notify();
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);
  keys(session);
  drops(session);
  remember();
  return [
    undo, redo, reset,
    button("Save workbook", () => save(session), "This state as an .xlsx file"),
    button("Open workbook", () => file.click(), "An .xlsx file of this model: its edits; or drop it on the page"), file,
    button("Copy link", () => copyLink(session), "An address of this page with this state"),
    button(isDark() ? "Light" : "Dark", scheme, "Light or dark"),
    button("?", () => help(), "Help"),
  ];
}

/** Gives the browser a workbook with this state. @param {Session} session */
async function save(session) {
  try {
    await session.whole();
    const bytes = await savedWorkbook(await bookOf(session), session.graph, session.live);
    const link = element("a", { href: URL.createObjectURL(new Blob([bytes])), download: `${document.title.split(":")[0]}.xlsx` });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  } catch (error) {
    session.complain(error instanceof Error ? error.message : String(error));
  }
}

/** The workbook of this page: the one that was opened, or the one that the page holds.
 * @param {Session} session @returns {Promise<Uint8Array<ArrayBuffer>>} */
async function bookOf(session) {
  const held = document.getElementById("book")?.textContent;
  if (session.book) return session.book;
  if (!held) throw new Error("This page holds no workbook: open its .xlsx first, and save then");
  return Uint8Array.from(atob(held.trim()), (letter) => letter.charCodeAt(0));
}

/** Takes the edits of a workbook. @param {Session} session @param {File} file */
async function openFile(session, file) {
  try {
    const bytes = new Uint8Array(await file.arrayBuffer());
    await session.whole();
    const edits = await editsOf(bytes, session.graph, session.baseline);
    session.book = bytes;
    session.take(edits);
    session.tell(`${shortened(file.name)} is opened`);
  } catch (error) {
    session.complain(`${shortened(file.name)}: ${error instanceof Error ? error.message : error}`);
  }
}

/** @param {Session} session */
function drops(session) {
  addEventListener("dragover", (event) => event.preventDefault());
  addEventListener("drop", (event) => {
    event.preventDefault();
    const file = event.dataTransfer?.files[0];
    if (file) openFile(session, file);
  });
}

/** Puts the address of this state where one pastes from; where that is not allowed it stands in the
 * address line. @param {Session} session */
async function copyLink(session) {
  session.notify();
  try {
    const hasAddress = location.hash || !session.linked; // a frame of `srcdoc` has none
    await navigator.clipboard.writeText(hasAddress ? location.href : `#${session.linked}`);
    session.tell(location.protocol === "file:" ? "The link is copied: who opens it needs this file, too, and the part from # on" : "The link is copied");
  } catch {
    session.tell("The link stands in the address line: copy it there");
  }
}

/** Whether the dark scheme is on. */
function isDark() {
  const { scheme: chosen } = document.documentElement.dataset;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

/** Sets the scheme that was chosen before. */
function remember() {
  try {
    const kept = localStorage.getItem(SCHEME);
    if (kept === "light" || kept === "dark") document.documentElement.dataset.scheme = kept;
  } catch {
    // A frame may keep nothing.
  }
}

/** Changes between light and dark. @param {Event} event */
function scheme(event) {
  const dark = isDark();
  document.documentElement.dataset.scheme = dark ? "light" : "dark";
  try {
    localStorage.setItem(SCHEME, dark ? "light" : "dark");
  } catch {
    // A frame may keep nothing.
  }
  /** @type {HTMLElement} */ (event.currentTarget).textContent = dark ? "Dark" : "Light";
  recolour();
}

/** Shows the keys. */
function help() {
  const dialog = /** @type {HTMLDialogElement} */ (byId("help"));
  const rows = HELP.map(([press, does]) => element("div", {}, element("dt", {}, press), element("dd", {}, does)));
  const close = element("button", { type: "button", onclick: () => dialog.close() }, "Close");
  const about = "Every number on this page is a cell with a formula, as in the workbook of the same name. Yellow is typed in: type over it. A row of a picture is a token.";
  dialog.replaceChildren(element("h2", {}, "Help"), element("p", {}, about), element("dl", {}, ...rows), close);
  dialog.showModal();
}

/** @param {Session} session */
function keys(session) {
  /** @type {EventTarget | null} */ let typing = null; // the field whose text is not yet taken
  addEventListener("input", ({ target }) => (typing = target));
  addEventListener("change", () => (typing = null));
  addEventListener("keydown", (event) => {
    const { key } = event;
    const jump = event.ctrlKey || event.metaKey;
    const types = event.target === typing; // the browser undoes letters there
    if (jump && key === "s") save(session);
    else if (jump && !types && key === "z" && !event.shiftKey) session.undo();
    else if (jump && !types && (key === "y" || (key === "Z" && event.shiftKey))) session.redo();
    else if (key === "Escape" && session.selected) session.close();
    else if (key === "F1") help();
    else if (jump && key === "Enter" && session.goesOn) session.next();
    else return;
    event.preventDefault();
  });
}
