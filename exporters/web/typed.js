// What was typed into cells when the page was made, and what they can hold.

/** @typedef {import("./graph.js").Block} Block */
/** @typedef {import("./graph.js").Graph} Graph */
/** @typedef {import("./values.js").Value} Value */

/**
 * The value that was typed into a cell; undefined: it is computed.
 * @param {Block} block
 * @param {number} i
 * @param {number} j
 * @returns {Value | undefined}
 */
export function typedValue(block, i, j) {
  const cell = i * block.cols + j;
  if (block.isOp) return undefined;
  if (!block.isTable) return block.packed ? block.typedAt(cell) : typedValues(block)[cell];
  const [group, k] = block.group(cell);
  const { steps } = group.shape;
  if (steps.length > 1 || steps[0][0] !== "#") return undefined;
  return steps[0].length > 1 ? steps[0][1] : group.at(0, k);
}

/** @type {WeakMap<Block, ArrayLike<Value>>} */
const TYPED_VALUES = new WeakMap();

/**
 * All that was typed into a block.
 * @param {Block} block
 * @returns {ArrayLike<Value>}
 */
function typedValues(block) {
  const found = TYPED_VALUES.get(block) ?? block.typed();
  TYPED_VALUES.set(block, found);
  return found;
}

/**
 * What is wrong with a number as a token's id; "" if nothing is, or if the cell holds no id.
 * @param {Graph} graph
 * @param {Block} block
 * @param {number} value
 * @returns {string}
 */
export function faultOfId(graph, block, value) {
  if (block.kind !== "ids") return "";
  for (const { block: reader } of graph.readers[block.index]) {
    for (const { k, at } of reader.operands) {
      const axis = at.indexOf("?");
      if (axis < 0) continue;
      const table = graph.blocks[k];
      const n = table.shape[axis];
      if (Number.isInteger(value) && value >= 0 && value < n) return "";
      return `is not an id of ${table.name}; ids are whole numbers from 0 to ${n - 1}`;
    }
  }
  return "";
}
