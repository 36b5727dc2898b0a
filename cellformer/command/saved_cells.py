"""Formulas of a file that no table rebuilds, such as the formulas of Start: as they were saved."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from openpyxl.formula import Tokenizer
from openpyxl.formula.tokenizer import Token
from openpyxl.utils.cell import range_boundaries

from cellformer.engine.cells.access import Rect
from cellformer.exporters.compose.address import address
from cellformer.exporters.file.reading import Cell, WorkbookFile

MOST_READ = 10_000  # cells of a range that are listed


@dataclass(frozen=True)
class SavedCell:
    """A cell of a file, with the value and the formula that stand there."""

    file: WorkbookFile
    sheet: str
    row: int
    col: int

    @property
    def name(self) -> str:
        """Its address."""
        return address(self.sheet, Rect(self.row, self.row + 1, self.col, self.col + 1))

    @cached_property
    def _saved(self) -> Cell:
        return self.file[self.sheet].cell((self.row, self.col))

    @property
    def value(self) -> Any:
        """Its value in the file; "" if it is blank."""
        value = self._saved.value
        return "" if value is None else value

    @property
    def formula(self) -> str | None:
        """Its formula as in the file; None if it holds a value."""
        return None if self._saved.formula is None else f"={self._saved.formula}"

    @property
    def precedents(self) -> list["SavedCell"]:
        """The cells that its formula reads, but for blank ones."""
        operands = [] if self.formula is None else Tokenizer(self.formula).items
        named = [part.value for part in operands if part.subtype == Token.RANGE]
        found = dict.fromkeys(cell for text in named for cell in self._cells(text))
        return [cell for cell in found if cell.value != ""]

    def _cells(self, text: str) -> list["SavedCell"]:
        """The cells of an address; none of a name."""
        sheet, _, area = text.rpartition("!")
        sheet = sheet.strip("'").replace("''", "'") or self.sheet
        try:
            left, top, right, bottom = range_boundaries(area)
        except ValueError:
            return []
        if sheet not in self.file or None in (left, top, right, bottom):
            return []
        rect = Rect(top - 1, bottom, left - 1, right)
        if rect.size > MOST_READ:
            return []
        return [SavedCell(self.file, sheet, *at) for at in rect.cells()]
