"""Formulas in a file that differ from those that were built.

Programs rewrite a formula when they save it: with spaces, dollar signs, quoted sheet names, 15
digits of a number, or a prefix before a function's name. So texts that differ are split into
tokens, which are compared.
"""

import re
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from cellformer.engine.cells.expression import expression
from cellformer.engine.cells.rounding import LAST_DIGIT
from cellformer.exporters.compose.address import unquoted
from cellformer.exporters.compose.book import Book, Place, Sheet
from cellformer.exporters.file.scanning import Cells, Positions

WORD = re.compile(
    r"""(?P<text>"(?:[^"]|"")*")
    |(?P<sheet>'(?:[^']|'')*'!|[\w.]+!)
    |(?P<number>(?<![\w.$])(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?![\w.$:]))
    |(?P<name>[\w.$]+)
    |(?P<sign>\S)""",
    re.VERBOSE,
)
PREFIX = re.compile(r"^(?:_XLFN\.|_XLWS\.|_XLUDF\.)+")
CONSTANTS = ["TRUE", "("], ["FALSE", "("]
RENAMED = {"VAR.P": "VARP", "RANK.EQ": "RANK", "ERF.PRECISE": "ERF"}  # since Excel 2010


def as_built(book: Book, sheet: Sheet, written: Cells) -> NDArray[np.bool_]:
    """Whether each cell of a file's sheet has its formula as built, [n_cells + 1] in the order
    of `written.formulas`. Entries of cells without a built formula do not change."""
    kept = written.formulas.copy()
    for place, _ in sheet.regions:
        if place.block.op:
            which, texts = _of_block(book, place, written)
            _compare(kept, which, texts, written, sheet.name)
    _compare(kept, *_of_entries(book, sheet, written), written, sheet.name)
    return kept


def _of_block(book: Book, place: Place, written: Cells) -> tuple[Positions, list[str]]:
    """The cells of a block with a formula in the file, and the built formulas."""
    which = written.within(place.rect(place.block.whole))
    which = which.T if place.turned else which  # [rows, columns] of the block
    there = written.formulas[which]
    if place.block.partial:
        there &= place.block.mask.seen(place.block.whole)
    line = book.lines(place.block)
    cols = [np.flatnonzero(row).tolist() for row in there]
    return which[there], [text for i, cells in enumerate(cols) for text in line(0, i, cells)]


def _of_entries(book: Book, sheet: Sheet, written: Cells) -> tuple[Positions, list[str]]:
    """The same for single cells."""
    built = [(at, entry) for at, entry in sheet.entries.items() if entry.formula is not None]
    rows, cols = np.array([at for at, _ in built], np.int64).reshape(-1, 2).T
    which = written.at(rows, cols)
    there = written.formulas[which]
    texts = []
    for _, entry in compress(built, there.tolist()):
        text = book.text(expression(entry.formula), sheet.name)
        texts.append(f"{{{text}}}" if entry.array else text)
    return which[there], texts


def _compare(
    kept: NDArray[np.bool_], which: Positions, texts: list[str], written: Cells, sheet: str
) -> None:
    """Mark the cells whose formula in the file differs."""
    pairs = zip(texts, written.spelt(which), strict=True)
    others = [k for k, (built, now) in enumerate(pairs) if built != now]
    for k, now in zip(others, written.spelt(which[others]), strict=True):
        kept[which[k]] = alike(texts[k], now, sheet)


def alike(a: str, b: str, sheet: str) -> bool:
    """Whether two texts are the same formula in a cell of a sheet."""
    left, right = words(a, sheet), words(b, sheet)
    return len(left) == len(right) and all(map(_same, left, right))


def _same(a: str | float, b: str | float) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return abs(a - b) <= LAST_DIGIT * abs(a)
    return a == b


def words(formula: str, sheet: str) -> list[str | float]:
    """The tokens of a formula in a common form: numbers as numbers, names without dollars and
    prefixes, other sheets' names unquoted, its own left out, and a range of one cell as that
    cell."""
    found: list[str | float] = []
    for match in WORD.finditer(formula):
        kind, text = match.lastgroup, match[0]
        if kind == "number":
            found.append(float(text))
        elif kind == "name":
            name = PREFIX.sub("", text.replace("$", "").upper())
            if found[-2:] == [name, ":"]:
                found.pop()  # of one cell, B2:B2
            else:
                found.append(RENAMED.get(name, name))
        elif text == ")" and found[-2:] in CONSTANTS:
            found.pop()  # TRUE()
        elif kind != "sheet":
            found.append(text)
        elif (named := unquoted(text[:-1])) != sheet:
            found.append(named + "!")
    return found
