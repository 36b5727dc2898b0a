// The tour, stop by stop, each with its place in the picture; and the suggested edits, as buttons.

import { element } from "./dom.js";
import { Tries } from "./tries.js";

/** @typedef {import("./session.js").Session} Session */
/** Where something can be seen: a block in the picture, or an element. @typedef {{block?: string, id?: string}} Place */

/** The panel of the tour and of what to try. */
export class Tour {
  /**
   * @param {Session} session
   * @param {HTMLElement} container
   * @param {(place: Place) => void} point
   */
  constructor(session, container, point) {
    this.session = session;
    this.point = point;
    this.at = 0;
    this.stops = session.tour;
    this.title = element("h2");
    this.text = element("p", { "aria-live": "polite" });
    this.back = element("button", { type: "button", onclick: () => this.go(this.at - 1) }, "Back");
    this.forth = element("button", { type: "button", onclick: () => this.go(this.at + 1) });
    const suggestions = session.lesson ? [] : session.data.suggestions ?? []; // they may hold its solution
    if (suggestions.length) {
      this.tries = new Tries(session, suggestions, (block, i, j) => session.select(block, i, j));
      this.suggested = element("div", {}, element("h2", {}, "Try"), this.tries.node);
    }
    if (this.stops.length) container.append(this.title, this.text, element("div", { class: "steps" }, this.back, this.forth), this.presents());
    if (this.suggested) container.append(this.suggested);
    session.subscribe(() => this.draw());
    this.draw();
  }

  /** The button that shows the tour alone, in large type; arrow keys then lead through it, and Esc ends it. */
  presents() {
    const { classList } = document.body;
    const present = (/** @type {boolean} */ on) => {
      classList.toggle("presenting", on);
      button.textContent = on ? "End (Esc)" : "Present";
      this.go(on ? Math.max(1, this.at) : 0);
    };
    const keys = /** @type {Record<string, number>} */ ({ ArrowRight: 1, ArrowLeft: -1 });
    addEventListener("keydown", (event) => {
      if (!classList.contains("presenting")) return;
      if (event.key === "Escape") return present(false);
      const stop = this.at + keys[event.key];
      if (stop < 1 || stop > this.stops.length || !(event.key in keys)) return;
      event.preventDefault();
      event.stopPropagation();
      this.go(stop);
    }, true);
    const button = element("button", { type: "button", onclick: () => present(!classList.contains("presenting")) }, "Present");
    return button;
  }

  /** Where a stop points: the part that its text names with the numbers of now, or its own place.
   * @param {import("./session.js").Session["tour"][number]} stop @returns {Place} */
  placeOf({ place, text }) {
    const told = text();
    const part = this.session.data.parts.find((/** @type {[string, string]} */ [name]) => told.includes(name));
    return part ? { block: part[1] } : place;
  }

  /** @param {number} stop */
  go(stop) {
    this.at = stop > this.stops.length ? 0 : Math.max(0, stop);
    this.draw();
    const here = this.stops[this.at - 1];
    this.point(here ? this.placeOf(here) : {});
  }

  /** Shows the stop, with the numbers as they are now. */
  draw() {
    this.tries?.draw();
    if (!this.stops.length) return;
    const here = this.stops[this.at - 1];
    document.body.classList.toggle("touring", !!here);
    const isLast = this.at === this.stops.length;
    this.title.textContent = here ? `Tour, ${this.at} of ${this.stops.length}: ${here.concept}` : "Tour";
    this.text.textContent = here ? here.text() : `${this.stops.length} stops, with the numbers of this sentence.`;
    this.back.hidden = !here;
    this.forth.textContent = isLast ? "End the tour" : here ? `Next: ${this.stops[this.at].concept}` : "Begin the tour";
    if (this.suggested) this.suggested.hidden = !!here;
  }
}
