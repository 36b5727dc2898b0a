"""The pages of a workbook, one module each, around the blocks that layout has placed.

A page module declares `SHEET`, `PURPOSE` (a line), `AFTER` (the sheet that it comes after) and
`add(book)`, and `wanted(book)` where not every workbook has it;
`exporters/assemble/transformer.py` finds every module here.
"""
