// Links for tests: of edits, and read back.
import { editsOfLink, linkOf } from "../../exporters/web/link.js";
import { named, opened } from "./page.mjs";

export async function write(folder, edits) {
  const { graph } = await opened(folder);
  return linkOf(edits.map(([name, i, j, value]) => ({ block: graph.get(name), i, j, value })), graph.data.fingerprint);
}

export async function read(folder, link) {
  const { graph } = await opened(folder);
  return named(editsOfLink(link, graph));
}
