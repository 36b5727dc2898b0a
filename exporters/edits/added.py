"""Added cells of a file: users' notes, and formulas, which may be a risk.

An added formula can fetch a page (WEBSERVICE), start a program (DDE) or read another file, and
comparing the built cells would not reveal it.
"""

import re
from typing import NamedTuple

import numpy as np

from cellformer.exporters.compose import digest
from cellformer.exporters.compose.address import of_cell, quoted
from cellformer.exporters.compose.book import START, Book, Sheet
from cellformer.exporters.file.reading import WorkbookFile
from cellformer.exporters.file.scanning import MAX_ROWS, Cells, Positions
from cellformer.exporters.model import source
from cellformer.exporters.model.block_sheets import PLAY
from cellformer.exporters.pages import ledger, printed, vocabulary
from cellformer.exporters.play.sentence import WORDS_COL

# rows from which on a sheet has what is of its workbook alone, and is not built again
AS_TOLD = {START: 0, printed.SHEET: 0, vocabulary.SHEET: vocabulary.TRIES}
AS_TOLD |= {ledger.SHEET: 0, digest.SHEET: 0}
PROMPT_ROW = 5  # of Play: up to it a workbook's own words are explained beside the sentence
QUOTED = re.compile('"(?:[^"]|"")*"')
OUTSIDE = re.compile(
    r"""\[[^\]]*\]|\||://|\b(?:WEBSERVICE|FILTERXML|HYPERLINK|RTD|DDE|CALL|REGISTER|EXEC|IMAGE
    |IMPORT\w+|INFO|CUBE\w+|STOCKHISTORY)\s*\(""",
    re.IGNORECASE | re.VERBOSE,
)


class AddedCell(NamedTuple):
    """An added cell: its address, and its content."""

    where: str
    now: float | str
    is_formula: bool


def cells(book: Book, file: WorkbookFile) -> list[AddedCell]:
    """The added cells of a file, formulas first; on sheets that are not rebuilt, only formulas that
    reach outside the workbook."""
    found: list[AddedCell] = []
    for name in file:
        written = file[name].arrays
        sheet, told = book.sheets.get(name), AS_TOLD.get(name, MAX_ROWS)
        if sheet is not None and name == digest.CHECK:
            told = digest.below(book)  # notes about Digest, which is not built again
        which = np.arange(len(written)) if sheet is None else _not_built(sheet, written)
        values, formulas = written.valued(which), _formulas(written, which)
        for at, value, formula in zip(written.places(which), values, formulas, strict=True):
            own = name == PLAY and at[1] == WORDS_COL and at[0] <= PROMPT_ROW
            known = sheet is not None and at[0] < told and not own
            holds = known and (formula or value not in (None, ""))
            if holds or OUTSIDE.search(QUOTED.sub("", formula)):
                now = "=" + formula if formula else value
                assert isinstance(now, float | int | str)
                found.append(AddedCell(f"{quoted(name)}!{of_cell(*at)}", now, bool(formula)))
    return sorted(found, key=lambda cell: not cell.is_formula)


def _not_built(sheet: Sheet, written: Cells) -> Positions:
    """The cells of a file's sheet that its book does not have."""
    built = np.zeros(len(written) + 1, bool)  # the last is for those that are not there
    places = np.array([*sheet.entries], np.int64).reshape(-1, 2)
    built[written.at(places[:, 0], places[:, 1])] = True
    areas = [run.area for run in sheet.runs]
    areas += [place.rect(place.block.whole) for place, _ in sheet.regions]
    for area in areas:
        built[written.within(area)] = True
    if sheet.name == source.SHEET:  # as long as what it holds
        built[:-1] |= written.cols == 0
    return np.flatnonzero(~built[:-1])


def _formulas(written: Cells, which: Positions) -> list[str]:
    """The formulas of some cells; "" if there is none."""
    there = which[written.formulas[which]]
    spelt = dict(zip(there.tolist(), written.spelt(there), strict=True))
    return [spelt.get(k, "") for k in which.tolist()]
