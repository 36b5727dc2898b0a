// products.wat, assembled: its bytes in base64, as products.js holds them. Called by test_products.py.
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { PRODUCTS_WASM } from "../../exporters/web/products.js";

const require = createRequire(new URL("../node/package.json", import.meta.url));
const WAT = new URL("../../exporters/web/products.wat", import.meta.url);

/** What the page holds, and what the text gives. */
export async function assembled() {
  const wabt = await require("wabt")();
  const module = wabt.parseWat("products.wat", await readFile(WAT, "utf8"), { simd: true });
  module.validate();
  return [PRODUCTS_WASM, Buffer.from(module.toBinary({}).buffer).toString("base64")];
}
