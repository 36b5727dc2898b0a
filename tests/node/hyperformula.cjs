// Recomputes workbooks in HyperFormula: for each a line of JSON comes in, and a line goes out.
//
//     node tests/node/hyperformula.cjs FOLDER_OF_THE_PACKAGE < workbooks > answers
//
// In: {sheet: rows of cells}, a formula as "=A1*2", a text as "'text", a blank cell as null.
// Out: {"lacks": functions that it does not have, "unparsed": a formula that it cannot parse or "",
//       "values": {sheet: values of its formulas, row by row}}, an error as {"error": "#N/A"}.

const readline = require("node:readline");
const { HyperFormula } = require(process.argv[2]);

const TEXT_OR_SHEET = /"(?:[^"]|"")*"|'(?:[^']|'')*'!/g;
const CALL = /([A-Z][A-Z0-9.]*)\(/g;
const CHARACTERS = { "\\": "CHAR(92)", '""': "CHAR(34)" };
const PARSING = "ERROR"; // HyperFormula's type of error for a formula that it cannot parse

// As Excel computes: no rounding of results, é is not e, no text is taken for a date or an amount.
// SUMPRODUCT of differences needs arrays; that no other formula does is for the audit to say.
const LIKE_EXCEL = {
  licenseKey: "gpl-v3",
  smartRounding: false,
  accentSensitive: true,
  useArrayArithmetic: true,
  dateFormats: [],
  timeFormats: [],
  currencySymbol: [],
  maxRows: 1 << 20,
  maxColumns: 1 << 14,
  undoLimit: 0,
};

const isFormula = (cell) => typeof cell === "string" && cell.startsWith("=");

// It ends a text neither after a backslash nor by one of two quotes: these become CHAR.
function withPlainTexts(formula) {
  return formula.replace(TEXT_OR_SHEET, (found) => {
    if (!/^".*(\\|"").*"$/s.test(found)) return found;
    const parts = found.slice(1, -1).split(/(\\|"")/).filter(Boolean);
    return `(${parts.map((part) => CHARACTERS[part] ?? `"${part}"`).join("&")})`;
  });
}

function lacking(sheets) {
  const known = new Set(HyperFormula.getRegisteredFunctionNames("enGB"));
  const lacks = new Set();
  for (const cell of Object.values(sheets).flat(2).filter(isFormula))
    for (const [, name] of cell.replace(TEXT_OR_SHEET, "").matchAll(CALL))
      if (!known.has(name)) lacks.add(name);
  return [...lacks];
}

function answer(sheets) {
  const lacks = lacking(sheets);
  if (lacks.length) return { lacks, unparsed: "", values: {} };
  for (const rows of Object.values(sheets))
    for (const row of rows) row.forEach((cell, j) => isFormula(cell) && (row[j] = withPlainTexts(cell)));
  const book = HyperFormula.buildFromSheets(sheets, LIKE_EXCEL);
  const values = {};
  let unparsed = "";
  for (const [name, rows] of Object.entries(sheets)) {
    const computed = book.getSheetValues(book.getSheetId(name));
    values[name] = [];
    rows.forEach((row, i) => row.forEach((cell, j) => {
      if (!isFormula(cell)) return;
      const value = computed[i][j];
      if (value?.type === PARSING) unparsed ||= cell;
      values[name].push(value?.type ? { error: value.value } : value);
    }));
  }
  book.destroy();
  return { lacks, unparsed, values };
}

async function main() {
  for await (const line of readline.createInterface({ input: process.stdin }))
    process.stdout.write(JSON.stringify(answer(JSON.parse(line))) + "\n");
}

main();
