// Starts the page: unpacks its data, computes everything once, and puts the parts of the screen
// together.

import { actions } from "./actions.js";
import { opened } from "./data.js";
import { byId, element } from "./dom.js";
import { showFlow } from "./flow.js";
import { showBlock, showCell } from "./inspect.js";
import { Ledger } from "./ledger.js";
import { Machine } from "./picture.js";
import { Ranking } from "./ranking.js";
import { recalculations } from "./recalculating.js";
import { Sentence } from "./sentence.js";
import { Session } from "./session.js";
import { showSheets } from "./sheets.js";
import { Tour } from "./tour.js";
import { askedWeights } from "./weightsfile.js";

/** @typedef {import("./evaluator.js").Kernel} Kernel */

const NARROW = "(max-width: 820px)";

/** Puts the screen of a book together. @param {Session} session */
function screenOf(session) {
  const { graph, data } = session;
  const [name, what] = splitTitle(data.title);
  byId("name").append(name, element("span", {}, what));
  document.title = data.title;
  const views = [];
  /** @type {Machine | null} */ let machine = null;
  if (session.isModel) {
    views.push({ id: "machine", text: "Model" });
    byId("machine").hidden = byId("ranking").hidden = false;
    showFlow(session, ({ block, row }) => session.select(block, Math.min(row, block.rows - 1), 0));
    machine = new Machine(session, byId("machine"));
    if (session.isTyped) new Sentence(session, byId("top"));
    if (graph.has("probs") || graph.has("cosine")) new Ranking(session, byId("ranking"));
    else byId("ranking").hidden = true;
  }
  if (data.sheets?.length) {
    views[session.isTyped ? "push" : "unshift"]({ id: "sheets", text: "Sheets" });
    showSheets(session, byId("sheets"));
  }
  const show = switcher(views, () => session.notify());
  new Ledger(session, machine);
  byId("actions").append(...recalculations(session), ...actions(session));
  panels(session);
  if (session.isModel && (session.tour.length || data.suggestions?.length)) {
    byId("tour").hidden = false;
    new Tour(session, byId("tour"), (place) => pointAt(place, show, machine));
  }
}

/** A book's name and what it is. @param {string} title */
function splitTitle(title) {
  const at = title.indexOf(": ");
  return at < 0 ? [title, ""] : [title.slice(0, at), title.slice(at + 2)];
}

/** Buttons for the views of the book. @param {{id: string, text: string}[]} views @param {() => void} told */
function switcher(views, told) {
  const show = (/** @type {string} */ id) => {
    for (const view of views) byId(view.id).hidden = view.id !== id;
    for (const button of buttons) button.setAttribute("aria-pressed", String(button.value === id));
    document.body.dataset.view = id;
    told();
  };
  const buttons = views.map(({ id, text }) => element("button", { type: "button", value: id, onclick: () => show(id) }, text));
  if (views.length > 1) byId("views").append(...buttons);
  if (views.length) show(views[0].id);
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

/** Points into the picture, at a sheet, or at a part of the page.
 * @param {import("./tour.js").Place} place @param {(id: string) => void} show @param {Machine | null} machine */
function pointAt(place, show, machine) {
  for (const old of document.querySelectorAll(".pointed")) old.classList.remove("pointed");
  if (place.sheet && !machine) show("sheets");
  else if (machine) show("machine");
  const found = place.block && machine ? machine.elementOf(place.block) : place.id ? document.getElementById(place.id) : null;
  if (!found) return;
  found.classList.add("pointed");
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  found.scrollIntoView({ block: "nearest", inline: "nearest", behavior: calm ? "auto" : "smooth" });
}

/** Opens the page's book. @param {Kernel[]} kernels */
export async function start(kernels) {
  const text = (/** @type {string} */ id) => byId(id).textContent ?? "";
  const told = (/** @type {number} */ share) => (byId("ledger").textContent = `Opening: ${Math.round(100 * share)} % of the cells are computed …`);
  const { run } = await opened(text("data"), text("weights"), kernels, askedWeights, told);
  const session = new Session(run);
  session.openLink();
  screenOf(session);
  addEventListener("hashchange", () => session.openLink());
  session.notify();
}
