// A lesson in a link: a teacher makes it from a state that solves the task; a student reads the task,
// sees whether it is solved, and copies the answer. `cellformer grade` computes the answer again.

import { byId, element } from "./dom.js";
import { best, OF_TEXT } from "./session.js";

/** @typedef {import("./session.js").Session} Session */
/** @typedef {import("./link.js").Lesson} Lesson */

const ANSWERS = ["logits", "probs"]; // to type over these solves nothing

/** The likeliest word after the sentence, by its number. @param {Session} session */
function wordSaid(session) {
  const block = session.graph.get("probs");
  const t = Math.min(session.nGiven, block.rows) - 1;
  return best(session.live.numbers(block).slice(t * block.cols, (t + 1) * block.cols))[0] ?? 0;
}

/** What is not yet done of a lesson; "" if all is. @param {Session} session @param {Lesson} lesson */
function whatLacks(session, { word, edits, text }) {
  const { changes } = session;
  if (session.textState() !== text) return "Type the lesson’s sentence again.";
  if (changes.some(({ block }) => ANSWERS.includes(block.name))) return "Change another part: the answer itself was typed over.";
  if (changes.length > edits) return `You made ${changes.length} edits. The most that count are ${edits}.`;
  return wordSaid(session) === word ? "" : "Not yet.";
}

/** Shows the lesson of the link, and lets a teacher make one. @param {Session} session */
export function showLesson(session) {
  if (!session.graph.has("probs") || !session.isTyped) return;
  const task = element("p", { class: "task" });
  const verdict = element("p", { role: "status" });
  const send = element("button", { type: "button", class: "primary", onclick: () => copy(session, session.address()) }, "Copy my answer");
  const place = byId("lesson");
  place.append(element("h2", {}, "Your task"), task, verdict, send);
  session.subscribe(() => {
    const { lesson } = session;
    place.hidden = !lesson;
    if (!lesson) return;
    const lacks = whatLacks(session, lesson);
    task.textContent = lesson.task;
    verdict.textContent = lacks || "Solved. Copy your answer, and send the link.";
    send.disabled = !!lacks;
  });
  if (!session.lesson) byId("tour").append(maker(session));
}

/** The form by which a teacher makes a lesson. @param {Session} session */
function maker(session) {
  const task = element("textarea", { rows: 2, "aria-label": "Task" });
  const stops = session.tour.map(({ concept }, k) => ({ k, concept, box: element("input", { type: "checkbox", checked: true }) }));
  const lesson = () => ({
    task: task.value.trim() || `Make it say ‘${session.label("vocab_out", wordSaid(session))}’. Edits: ${session.changes.length} at most.`,
    word: wordSaid(session), edits: session.changes.length, text: session.textState(),
    stops: stops.filter(({ box }) => box.checked).map(({ k }) => k),
  });
  const address = () => session.address(lesson(), session.edits.filter(({ block }) => OF_TEXT.test(block.name)));
  const frame = () => `<iframe src="${address().replaceAll("&", "&amp;")}" title="cellformer" width="100%" height="700"></iframe>`;
  const button = (/** @type {string} */ text, /** @type {() => string} */ made) => element("button", { type: "button", onclick: () => session.changes.length ? copy(session, made()) : session.complain("Solve the task first: your edits are the solution") }, text);
  return element("details", { class: "maker" },
    element("summary", {}, "Make a lesson"),
    element("p", {}, "Make the edits that solve your task, and write the task. The link holds the task, not the solution."),
    task, ...stops.map(({ concept, box }) => element("label", {}, box, `stop: ${concept}`)),
    element("div", { class: "steps" }, button("Copy lesson link", address), button("Copy iframe", frame)));
}

/** Copies a text, or shows it where that is forbidden. @param {Session} session @param {string} text */
async function copy(session, text) {
  try {
    await navigator.clipboard.writeText(text);
    session.tell("The link is copied");
  } catch {
    session.tell(`Copy this: ${text}`);
  }
}
