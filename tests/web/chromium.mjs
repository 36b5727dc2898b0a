// One Chromium for all tests of a process: it starts when it is first asked for, and ends with it.
import { createRequire } from "node:module";

const require = createRequire(new URL("../node/package.json", import.meta.url));
const ARGS = ["--no-sandbox"];

let started;

/** The browser. */
export function chromium(program) {
  started ??= require("playwright-core").chromium.launch({ executablePath: program, args: ARGS });
  return started;
}

/** Opens an empty page of its own, does something with it, and gives back what that gives. */
export async function withPage(program, options, act) {
  const context = await (await chromium(program)).newContext({ offline: true, ...options });
  try {
    return await act(await context.newPage(), context);
  } finally {
    await context.close();
  }
}
