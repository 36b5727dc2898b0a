"""Strips: the XML of a block's cells, row of the sheet by row, as they stand in its file.

A sheet is put together from them as it is written, and never held whole. Numbers are spelt by
orjson, a row at once. The formulas of a block differ from one row of the sheet to the next in rows
and columns alone, wherever each cell reads the same places as the one above it, or those next to
them: so a row is spelt once, with holes for what grows, and filled in for all the others.
"""

import re
from collections.abc import Callable, Sequence
from functools import partial
from math import isfinite
from typing import Any

import numpy as np
import orjson

from engine.cells.access import Rect
from engine.cells.block import Block
from engine.cells.errors import InputError
from engine.cells.stored import Stored
from exporters.address import a1, column, index
from exporters.book import Book, Place, Run

Strip = Callable[[int], bytes]  # a row of the sheet -> the XML of a block's cells in it
# the text of a row, to be filled in with %, and what each hole takes: a value (None), or what
# follows from the row
Template = tuple[str, list[Callable[[int], Any] | None]]
MOST_READ = 1 << 20  # numbers of a block that are looked at together
TURNED = 64  # rows of the sheet that are read together of a matrix that lies the other way
LONGEST = 8192  # characters of a formula
FEWEST, RUN = 4, 1024  # rows that are filled in, and that are so from one text
ESCAPED = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
GROWING = re.compile(r"(\d+|(?<![A-Za-z'])[A-Z]{1,3}(?=\$?\d))")  # a number, a column's letters
VALUE = "\0"  # stands where a cell's value goes


def check_length(formula: str, where: str, remedy: str = "take a shorter prompt") -> None:
    """Raise InputError for a formula that is longer than programs take."""
    if len(formula) > LONGEST:
        raise InputError(
            f"{where} needs formulas of {len(formula):,} characters, and {LONGEST:,} is the most "
            f"that spreadsheets take; {remedy}"
        )


def numbers(place: Place, values: Any, style: int, bulky: bool) -> Strip:
    """A block that holds values: each row of the sheet is a row, or a column, of it.

    Rows are read some at a time: the block may be a matrix that is still in its file. In a bulky
    file the cells after the first of a row have no address. ECMA-376 (part 1, 18.3.1.4) leaves it
    optional: they follow each other.
    """
    area = place.rect(place.block.whole)
    height, width = area.bottom - area.top, area.right - area.left
    at_once = min(height, TURNED) if place.turned else max(1, MOST_READ // width)
    before = f'<c r="{column(area.left)}#" s="{style}"><v>'.encode()
    between = f'</v></c><c s="{style}"><v>'.encode()
    template: list[bytes] = []
    held: dict[int, np.ndarray] = {}

    def line(k: int) -> np.ndarray:
        begin = k - k % at_once
        if begin not in held:
            held.clear()
            rows = slice(begin, min(begin + at_once, height))
            cut = (slice(None), rows) if place.turned else (rows, slice(None))
            # its own float32 numbers have the decimals that the engine reads
            decimal = isinstance(values, Stored) and values.decimal
            part = values.part(*cut).read() if decimal else values[cut]
            held[begin] = np.ascontiguousarray(part.T if place.turned else part)
        found: np.ndarray = held[begin][k - begin]
        if k + 1 == height:
            held.clear()
        return found

    def strip(row: int) -> bytes:
        text = orjson.dumps(line(row - area.top), option=orjson.OPT_SERIALIZE_NUMPY)[1:-1]
        number = b"%d" % (row + 1)
        if bulky:
            return before.replace(b"#", number) + text.replace(b",", between) + b"</v></c>"
        if not template:
            columns = (column(col) for col in range(area.left, area.right))
            cells = "".join(f'<c r="{name}#" s="{style}"><v>%s</v></c>' for name in columns)
            template.append(cells.encode())
        return template[0].replace(b"#", number) % tuple(text.split(b","))

    return strip


def labels(run: Run, style: int) -> Strip:
    """A row or a column of labels."""
    area = run.area
    names = [column(col) for col in range(area.left, area.right)]

    def strip(row: int) -> bytes:
        cells = []
        for n, name in enumerate(names):
            label = run.at(row - area.top + n)
            at = f'<c r="{name}{row + 1}" s="{style}"'
            if isinstance(label, str):
                text = label.translate(ESCAPED)
                cells.append(f'{at} t="inlineStr"><is><t xml:space="preserve">{text}</t></is></c>')
            else:
                cells.append(f"{at}><v>{label}</v></c>")
        return "".join(cells).encode()

    return strip


def formulas(book: Book, place: Place, values: np.ndarray, style: int, shared: int | None) -> Strip:
    """A computed block: a formula in every cell that is not blank, with its value.

    Where the cells of a column share their formula it stands in the first of them; `shared` is the
    number that it has on its sheet in the block's first column.
    """
    block, area = place.block, place.rect(place.block.whole)
    spelt = _spelling(book, place, style, shared)
    unknown = [VALUE] * (area.right - area.left)
    begin = area.top + (shared is not None)  # the first cell of those that share has the text
    steady, made = _steady(block), dict[int, Template | None]()

    def template(row: int) -> Template | None:
        """That of the run of rows in which this one is."""
        first = row - (row - begin) % RUN
        if first not in made:
            made.clear()
            last = min(first + RUN, area.bottom) - 1
            made[first] = _template(lambda k: spelt(k, unknown), first, last)
        return made[first]

    def strip(row: int) -> bytes:
        k = row - area.top
        numbers = (values[:, k] if place.turned else values[k]).ravel().tolist()
        found = template(row) if steady and row >= begin else None
        if found is None or not all(map(isfinite, numbers)):
            return spelt(row, numbers).encode()
        text, places = found
        value = iter(numbers)
        filling = [next(value) if place is None else place(row) for place in places]
        return (text % tuple(filling)).encode()

    return strip


def _spelling(
    book: Book, place: Place, style: int, shared: int | None
) -> Callable[[int, Sequence[Any]], str]:
    """Spells a row of a computed block, given its values.

    Of what XML escapes, these formulas have comparisons alone.
    """
    block, area = place.block, place.rect(place.block.whole)
    line = book.lines(block)
    columns = [column(col) for col in range(area.left, area.right)]

    def formula(text: str, n: int) -> str:
        check_length(text, block.name)
        text = text.replace("<", "&lt;")
        if shared is None:
            return f"<f>{text}</f>"
        whole = a1(Rect(area.top, area.bottom, area.left + n, area.left + n + 1))
        return f'<f t="shared" ref="{whole}" si="{shared + n}">{text}</f>'

    def spelt(row: int, numbers: Sequence[Any]) -> str:
        k = row - area.top
        seen: Sequence[int] = range(len(columns))
        if block.partial:
            seen = [n for n in seen if block.has(*((n, k) if place.turned else (k, n)))]
        if shared is not None and row > area.top:
            texts = [f'<f t="shared" si="{shared + n}"/>' for n in seen]
        else:
            found = line(int(place.turned), k, seen)
            texts = [formula(text, n) for text, n in zip(found, seen, strict=True)]
        cells = []
        for n, text in zip(seen, texts, strict=True):
            kind, value = _value(numbers[n])
            at = f'<c r="{columns[n]}{row + 1}" s="{style}"{kind}>'
            cells.append(f"{at}{text}<v>{value}</v></c>")
        return "".join(cells)

    return spelt


def _value(number: Any) -> tuple[str, str]:
    """A value as a cell has it: what kind it is, and its text."""
    if number is VALUE:
        return "", VALUE
    return ("", repr(number)) if isfinite(number) else (' t="e"', "#NUM!")


def _steady(block: Block) -> bool:
    """Whether what a cell reads is the same for the next cell, or one place further on: not where
    it sees as many keys as come before it, or a partner."""
    codes = [code for _, subscript, _ in block.operands for code in subscript]
    return not any(code in ("≤i", "≥i") or code[0] == "~" for code in codes)


def _template(row_of: Callable[[int], str], first: int, last: int) -> Template | None:
    """What the texts of the rows from the first to the last are; None where they differ in more
    than rows and columns that grow with the row, or are too few."""
    if last - first < FEWEST:
        return None
    one, following = (GROWING.split(row_of(row)) for row in (first, first + 1))
    if len(one) != len(following):
        return None
    text, places = [], list[Callable[[int], Any] | None]()
    for a, b in zip(one, following, strict=True):
        if a == b:
            text.append(a.replace("%", "%%").replace(VALUE, "%r"))
            places += [None] * a.count(VALUE)
        elif a.isdigit() and b.isdigit() and int(b) - int(a) == 1:
            text.append("%d")
            places.append((int(a) - first).__add__)
        elif a.isalpha() and b.isalpha() and index(b) - index(a) == 1:
            text.append("%s")
            places.append(partial(_column, index(a) - first))
        else:
            return None
    made = "".join(text)
    at_last = tuple(_Value() if place is None else place(last) for place in places)
    return (made, places) if made % at_last == row_of(last) else None


def _column(beyond: int, row: int) -> str:
    """A column that is so far beyond the row."""
    return column(row + beyond)


class _Value:
    """Stands where a value goes while a template is tried."""

    def __repr__(self) -> str:
        return VALUE
