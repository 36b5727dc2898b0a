// A page that learns, for tests: its steps and losses, recalculation by recalculation.
import { edited } from "./page.mjs";

export async function losses(folder, recalculations) {
  const live = await edited(folder, [["state", 0, 0, "learn"]]);
  const [steps, loss] = ["steps", "loss"].map((name) => live.graph.get(name));
  const found = [];
  for (let k = 0; k < recalculations; k++) {
    live.recalculate();
    found.push([live.value(steps, 0, 0), live.value(loss, 0, 0)]);
  }
  return found;
}
