// Recalculation of a book whose cells follow from their own last values, as one that learns does:
// once, as F9 does in a spreadsheet, or again and again until it is stopped.

import { element } from "./dom.js";

/** @typedef {import("./session.js").Session} Session */

// the state of a book that goes on
const LEARN = "learn";
// ms of recalculations before the page is drawn again
const AT_A_TIME = 40;

/** Its buttons; none for a book in which nothing happens by itself. @param {Session} session @returns {HTMLElement[]} */
export function recalculations(session) {
  if (!session.graph.volatile.length) return [];
  let running = false;
  const again = () => {
    const began = performance.now();
    do session.live.recalculate();
    while (running && performance.now() - began < AT_A_TIME);
    session.notify();
    if (running) requestAnimationFrame(again);
  };
  const run = element("button", { type: "button", title: "Recalculate again and again", "aria-pressed": "false", onclick: () => turn(!running) }, "Run");
  const turn = (/** @type {boolean} */ on) => {
    running = on;
    run.textContent = on ? "Stop" : "Run";
    run.setAttribute("aria-pressed", String(on));
    if (on && session.read("state", 0, 0) !== LEARN) session.set("state", 0, 0, LEARN);
    if (on) again();
  };
  const once = element("button", { type: "button", title: "Recalculate once: F9", onclick: again }, "Recalculate");
  addEventListener("keydown", (event) => {
    if (event.key !== "F9") return;
    event.preventDefault();
    again();
  });
  return [once, run];
}
