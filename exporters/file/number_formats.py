"""Number formats of a workbook file, such as dates, where a program took 2/6 for one."""

import zipfile
from pathlib import Path

import openpyxl

from cellformer.engine.cells.access import Span

ODD = (KeyError, ValueError, TypeError, IndexError, AttributeError, zipfile.BadZipFile)


def is_date(path: Path, sheet: str, at: Span) -> bool:
    """Whether a cell's number format shows a date or a time; no, if it cannot be read."""
    row, col = at
    try:
        book = openpyxl.load_workbook(path, read_only=True)
        return bool(book[sheet].cell(row + 1, col + 1).is_date)
    except ODD:
        return False
