// Calls functions of JavaScript modules for tests: a line of JSON on stdin for each, and one back.
import { register } from "node:module";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

// modules of the page end in .js, which Node takes for the older kind
const hook = `export async function load(url, context, next) {
  const ours = url.includes("/exporters/web/");
  return next(url, ours ? { ...context, format: "module" } : context);
}`;
register(`data:text/javascript,${encodeURIComponent(hook)}`);

for await (const line of createInterface({ input: process.stdin })) {
  const { module, call, given } = JSON.parse(line);
  let said;
  try {
    const functions = await import(pathToFileURL(module).href);
    said = { value: (await functions[call](...given)) ?? null };
  } catch (error) {
    said = { error: error.message, stack: error.stack };
  }
  process.stdout.write(JSON.stringify(said) + "\n");
}
process.exit(); // a browser that was started ends, too
