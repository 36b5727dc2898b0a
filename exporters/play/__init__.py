"""The parts of the sheet Play: `add(book, ws, top)` puts a part from a row on. The plan of a
workbook names its parts and their places, inputs first."""
