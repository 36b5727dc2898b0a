"""The parts of the sheet Play; which of them a workbook has, and where, is said by its plan.

A part has `add(book, ws, top)`, which puts it from a row on, and `place(book, top)` where blocks of
the model stand in it: other pages refer to them before parts are added. Parts are added from the
last to the first, for those above read those below.
"""
