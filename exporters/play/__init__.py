"""The parts of the sheet Play: `add(book, ws, top)` puts one from a row on. The plan of a workbook
says which it has and where, each after those that it reads."""
