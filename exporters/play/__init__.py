"""The parts of the sheet Play; the plan says which parts a workbook has, and where.

A part has `add(book, ws, top)`, which puts it from a row on, and `place(book, top)` if blocks of
the model stand in it: other pages refer to them before parts are added. Parts are added last to
first, since upper parts read lower ones.
"""
