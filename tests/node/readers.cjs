// What SheetJS and exceljs read in workbooks: a line of JSON for each file and reader.
//
//     node readers.cjs FILE.xlsx ...
//
// {"file": ..., "reader": ..., "sheets": {name: [[row, column, value, formula], ...]}}: rows and
// columns from 0, no blank cells, null for no formula, an error as {"error": "#N/A"}.

const fs = require("node:fs");
const ExcelJS = require("exceljs");
const SheetJS = require("xlsx");

function bySheetJS(file) {
  const options = { dense: true, cellHTML: false, cellText: false };
  const book = SheetJS.read(fs.readFileSync(file), options);
  const cellsOf = (sheet) => {
    const cells = [];
    (sheet["!data"] ?? sheet).forEach((row, i) => row.forEach((cell, j) => {
      const value = cell.t === "e" ? { error: cell.w } : cell.v;
      cells.push([i, j, value ?? null, cell.f ?? null]);
    }));
    return cells;
  };
  return Object.fromEntries(book.SheetNames.map((name) => [name, cellsOf(book.Sheets[name])]));
}

async function byExcelJS(file) {
  const book = new ExcelJS.Workbook();
  await book.xlsx.readFile(file);
  const cellsOf = (sheet) => {
    const cells = [];
    sheet.eachRow((row, i) => row.eachCell((cell, j) => {
      const value = cell.formula ? cell.result : cell.value?.text ?? cell.value; // a link has a text
      if (cell.master === cell) cells.push([i - 1, j - 1, value ?? null, cell.formula ?? null]);
    }));
    return cells;
  };
  return Object.fromEntries(book.worksheets.map((sheet) => [sheet.name, cellsOf(sheet)]));
}

async function main() {
  for (const file of process.argv.slice(2))
    for (const [reader, read] of [["SheetJS", bySheetJS], ["exceljs", byExcelJS]])
      process.stdout.write(JSON.stringify({ file, reader, sheets: await read(file) }) + "\n");
}

main();
