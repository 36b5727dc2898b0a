// Archives for tests: read, unpacked and written by exporters/web/zip.js.
import { readFile, writeFile } from "node:fs/promises";
import { packedEntry, readZip, unpackedEntry, writeZip } from "../../exporters/web/zip.js";

// The parts of an archive: name and text, each byte a character.
export async function parts(path) {
  const found = [];
  for (const [name, entry] of readZip(new Uint8Array(await readFile(path)))) {
    const bytes = await unpackedEntry(entry);
    found.push([name, Buffer.from(bytes).toString("latin1")]);
  }
  return found;
}

export async function write(path, given) {
  const entries = given.map(([name, text]) => packedEntry(name, new Uint8Array(Buffer.from(text, "latin1"))));
  await writeFile(path, writeZip(await Promise.all(entries)));
}

// As it is, or with an entry's bytes packed anew.
export async function copy(path, target, anew) {
  const entries = [];
  for (const [name, entry] of readZip(new Uint8Array(await readFile(path))))
    entries.push(name === anew ? await packedEntry(name, await unpackedEntry(entry)) : entry);
  await writeFile(target, writeZip(entries));
}
