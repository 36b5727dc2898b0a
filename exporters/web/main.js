// Starts the page: unpacks its data, computes everything once, and puts the parts of the screen
// together.

import { actions } from "./actions.js";
import { opened } from "./data.js";
import { byId, element } from "./dom.js";
import { showBlock, showCell } from "./inspect.js";
import { Ledger } from "./ledger.js";
import { recalculations } from "./recalculating.js";
import { Session } from "./session.js";
import { showSheets } from "./sheets.js";

/** @typedef {import("./evaluator.js").Kernel} Kernel */

const NARROW = "(max-width: 820px)";

/** Puts the screen of a book together.
 * @param {Session} session @param {typeof import("./model.js").showModel | null} [showModel] on a model's page */
function screenOf(session, showModel) {
  const { data } = session;
  const [name, what] = splitTitle(data.title);
  byId("name").append(name, element("span", {}, what));
  document.title = data.title;
  const views = [];
  if (data.chat) views.push({ id: "chat", text: "Chat" });
  if (showModel) views.push({ id: "machine", text: "Model" });
  const machine = showModel ? showModel(session, () => show("machine")) : null;
  if (data.sheets?.length) {
    views[session.isTyped ? "push" : "unshift"]({ id: "sheets", text: "Sheets" });
    showSheets(session, byId("sheets"));
  }
  const show = switcher(views, () => session.notify());
  new Ledger(session, machine);
  byId("actions").append(...recalculations(session), ...actions(session));
  panels(session);
  skips();
}

/** The first stop of Tab leads past the controls: to the tour, or to what is shown. */
function skips() {
  const skip = byId("skip");
  const tour = () => [...byId("tour").querySelectorAll("button")].find((button) => button.checkVisibility());
  skip.hidden = false;
  skip.textContent = byId("tour").hidden ? "Skip to the content" : "Skip to the tour";
  skip.addEventListener("click", () => (tour() ?? byId("main")).focus());
}

/** A book's name and what it is. @param {string} title */
function splitTitle(title) {
  const at = title.indexOf(": ");
  return at < 0 ? [title, ""] : [title.slice(0, at), title.slice(at + 2)];
}

/** Buttons for the views of the book. @param {{id: string, text: string}[]} views @param {() => void} told after the first */
function switcher(views, told) {
  const open = (/** @type {string} */ id) => {
    for (const view of views) byId(view.id).hidden = view.id !== id;
    for (const button of buttons) button.setAttribute("aria-pressed", String(button.value === id));
    document.body.dataset.view = id;
  };
  const show = (/** @type {string} */ id) => {
    open(id);
    told();
  };
  const buttons = views.map(({ id, text }) => element("button", { type: "button", value: id, onclick: () => show(id) }, text));
  if (views.length > 1) byId("views").append(...buttons);
  if (views.length) open(views[0].id);
  return show;
}

/** Opens and closes the numbers of a block and the cell that is looked at. The focus goes from the
 * picture that opens them to the numbers, and back. @param {Session} session */
function panels(session) {
  const [looked, cell, beside] = [byId("looked"), byId("cell"), byId("beside")];
  const narrow = matchMedia(NARROW);
  const place = () => (narrow.matches ? looked : beside).append(cell);
  narrow.addEventListener("change", place);
  place();
  const close = element("button", { type: "button", class: "close", "aria-label": "Close the numbers", onclick: () => session.close() }, "×");
  looked.append(close);
  /** @type {HTMLElement | null} */ let opener = null;
  let shown = session.selected;
  session.subscribe(() => {
    const { selected } = session;
    const isOther = selected !== shown;
    shown = selected;
    looked.hidden = cell.hidden = !selected;
    document.body.classList.toggle("looking", !!selected);
    if (!selected) {
      opener?.focus({ preventScroll: true });
      opener = null;
      return;
    }
    showBlock(session, selected.block, selected.i, selected.j);
    showCell(session, selected.block, selected.i, selected.j);
    const focused = document.activeElement;
    if (!isOther || !(focused instanceof HTMLElement) || !focused.matches(".tile")) return;
    opener = focused;
    /** @type {HTMLElement | null} */ (looked.querySelector("[role=grid]"))?.focus({ preventScroll: true });
  });
  looked.hidden = cell.hidden = true;
}

/** Opens the page's book.
 * @param {Kernel[]} kernels @param {typeof import("./model.js").showModel | null} [showModel] on a model's page
 * @param {typeof import("./large.js").openedLarge} [openLarge] on a page with a file of weights
 * @param {typeof import("./nearby.js").nearbyWeights} [ask] for that file
 * @param {typeof import("./lens.js").showLens} [showLens] on such a page */
export async function start(kernels, showModel, openLarge, ask, showLens) {
  const text = (/** @type {string} */ id) => byId(id).textContent ?? "";
  const told = (/** @type {number} */ share) => (byId("ledger").textContent = `Opening: ${Math.round(100 * share)} % of the cells are computed …`);
  const { run } = openLarge && ask ? await openLarge(text("data"), kernels, ask, told) : await opened(text("data"), text("weights"), kernels);
  const session = new Session(run);
  session.openLink();
  screenOf(session, showModel);
  showLens?.(session);
  addEventListener("hashchange", () => session.openLink());
  session.notify();
}
