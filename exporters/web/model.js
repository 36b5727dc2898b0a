// What only the page of a model shows: the sentence, the picture, the flow, the next words, the tour.
// Pages of worksheets do without this module, and those that it imports.

import { Chat } from "./chat.js";
import { byId } from "./dom.js";
import { showFlow } from "./flow.js";
import { showLesson } from "./lesson.js";
import { Machine } from "./picture.js";
import { Ranking } from "./ranking.js";
import { Sentence } from "./sentence.js";
import { Tour } from "./tour.js";

/** @typedef {import("./session.js").Session} Session */

/** Puts the parts of a model on the screen, and returns its picture.
 * @param {Session} session @param {() => void} show opens the view of the model */
export function showModel(session, show) {
  const { graph, data } = session;
  byId("machine").hidden = false;
  showFlow(session, ({ block, row }) => session.select(block, Math.min(row, block.rows - 1), 0));
  const machine = new Machine(session, byId("machine"));
  if (data.chat) new Chat(session, byId("chat"));
  else if (session.isTyped) new Sentence(session, byId("top"));
  byId("ranking").hidden = !graph.has("probs") && !graph.has("cosine");
  if (!byId("ranking").hidden) new Ranking(session, byId("ranking"));
  byId("tour").hidden = !session.tour.length && !data.suggestions?.length;
  if (!byId("tour").hidden) new Tour(session, byId("tour"), (place) => (show(), pointAt(place, machine)));
  showLesson(session);
  return machine;
}

/** Points into the picture, or at a part of the page.
 * @param {import("./tour.js").Place} place @param {Machine} machine */
function pointAt(place, machine) {
  for (const old of document.querySelectorAll(".pointed")) old.classList.remove("pointed");
  const found = place.block ? machine.elementOf(place.block) : place.id ? document.getElementById(place.id) : null;
  if (!found) return;
  found.classList.add("pointed");
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  found.scrollIntoView({ block: "nearest", inline: "nearest", behavior: calm ? "auto" : "smooth" });
}
