"""The XML of a block's cells, one row of the sheet at a time.

A sheet is assembled from these rows as it is written, and never held in memory as a whole. orjson
writes many numbers at once. The formulas of a block usually differ from row to row only in row and
column numbers, namely if each cell reads the same places as the one above it, or those next to
them: so one row is written with placeholders, and filled in for the others.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
import orjson

from cellformer.engine.cells.access import Rect
from cellformer.engine.cells.errors import InputError
from cellformer.engine.cells.stored import Stored
from cellformer.engine.cells.texts import in_xml
from cellformer.exporters.compose.address import a1, column, index
from cellformer.exporters.compose.book import Book, Place, Run
from cellformer.exporters.file.writing import USUAL, Writing

Strip = Callable[[int], list[bytes]]  # a row of the sheet -> the XML of a block's cells in it
MOST_READ = 1 << 18  # numbers of a block that are read together
TURNED = 64  # rows of the sheet that are read together of a matrix that lies the other way
SPELT = 1 << 11  # numbers that are spelt together
GROWING = re.compile(r"(\d+|(?<![A-Za-z'])[A-Z]{1,3}(?=\$?\d))")  # a number, a column's letters
VALUE = "\0"  # stands where a cell's value goes
NO_NUMBER = "null"  # what orjson makes of an infinity, and of what is not a number


Template = Callable[[int, list[str]], str]  # a row of a run, and its values -> its text


def check_length(
    formula: str, longest: int, where: str, remedy: str = "take a shorter prompt"
) -> None:
    """Raise InputError for a formula that is longer than programs accept."""
    if len(formula) > longest:
        raise InputError(
            f"{where} needs formulas of {len(formula):,} characters, but spreadsheets allow at "
            f"most {longest:,}; {remedy}"
        )


def whole_row(row: int, across: Iterable[Strip]) -> list[bytes]:
    """The XML of a row of the sheet from its parts, left to right."""
    parts = [b'<row r="%d">' % (row + 1)]
    for strip in across:
        parts += strip(row)
    parts.append(b"</row>")
    return parts


def numbers(place: Place, values: Any, style: int, bulky: bool) -> Strip:
    """The rows of a block of values: each row of the sheet is a row, or a column, of it.

    In a bulky file only the first cell of a row has an address. ECMA-376 (part 1, 18.3.1.4) makes
    it optional: the other cells follow.
    """
    area = place.rect(place.block.whole)
    lines = _lines(place, values)
    columns = [column(col) for col in range(area.left, area.right)]
    begin = f'<c r="{columns[0]}%d" s="{style}"><v>'.encode()
    between, end = f'</v></c><c s="{style}"><v>'.encode(), b"</v></c>"

    def bare(row: int) -> list[bytes]:
        cells = [begin % (row + 1)]
        for text in next(lines):
            cells += (text.replace(b",", between), between)
        return [*cells[:-1], end]

    if bulky:
        return bare
    cells = "".join(f'<c r="{name}#" s="{style}"><v>%b</v></c>' for name in columns).encode()

    def addressed(row: int) -> list[bytes]:
        texts = b",".join(next(lines)).split(b",")
        return [cells.replace(b"#", b"%d" % (row + 1)) % tuple(texts)]

    return addressed


def _lines(place: Place, values: Any) -> Iterator[list[bytes]]:
    """The numbers of a block by row of the sheet, separated by commas; wide rows in several texts,
    which fit into the processor's cache.

    They are read a few rows at a time, since the block may be a matrix that stays in its file.
    """
    height, width = place.size
    at_once = TURNED if place.turned else max(1, MOST_READ // width)
    together = max(1, SPELT // width)
    # its own float32 numbers have the decimals that the engine reads
    decimal = isinstance(values, Stored) and values.decimal
    for begin in range(0, height, at_once):
        rows = slice(begin, min(begin + at_once, height))
        cut = (slice(None), rows) if place.turned else (rows, slice(None))
        part = values.part(*cut).read() if decimal else values[cut]
        part = np.ascontiguousarray(part.T if place.turned else part)
        for k in range(0, len(part), together):
            if width > SPELT:
                yield [_spelt(part[k, c : c + SPELT])[1:-1] for c in range(0, width, SPELT)]
                continue
            for line in _spelt(part[k : k + together])[2:-2].split(b"],["):  # [[1,2],[3,4]]
                yield [line]


def _spelt(x: np.ndarray) -> bytes:
    """An array as JSON."""
    return orjson.dumps(x, option=orjson.OPT_SERIALIZE_NUMPY)


def labels(run: Run, style: int, spelt: Mapping[str, int]) -> Strip:
    """A row or a column of labels. Texts that need escapes in XML are given by their numbers
    `spelt` in the table of shared strings: some programs read escapes only there."""
    area = run.area
    names = [column(col) for col in range(area.left, area.right)]
    counted = "".join(f'<c r="{name}%d" s="{style}"><v>%d</v></c>' for name in names).encode()
    begin = area.top

    def content(text: str) -> str:
        if text in spelt:
            return f't="s"><v>{spelt[text]}</v>'
        return f't="inlineStr"><is><t xml:space="preserve">{in_xml(text)}</t></is>'

    def down(row: int) -> list[bytes]:  # of one column, which most have: no list for each row
        return [counted % (row + 1, row - begin)]

    def strip(row: int) -> list[bytes]:
        first, number = row - begin, row + 1
        if not run.texts:
            return [counted % tuple([x for n in range(len(names)) for x in (number, first + n)])]
        texts = [content(run.texts[first + n]) for n in range(len(names))]
        return [
            f'<c r="{name}{number}" s="{style}" {text}</c>'.encode()
            for name, text in zip(names, texts, strict=True)
        ]

    return strip if run.texts or len(names) > 1 else down


def formulas(
    book: Book,
    place: Place,
    values: np.ndarray,
    style: int,
    shared: int | None,
    writing: Writing = USUAL,
    blank: int = 0,
) -> Strip:
    """The rows of a computed block: a formula in every cell that is not blank, with its value.

    If the cells of a column share their formula, only the first one has it; `shared` is the number
    that it has on its sheet in the block's first column. `blank` is the style of cells that the
    reader fills in.
    """
    area = place.rect(place.block.whole)
    spelt = _spelling(book, place, style, shared, writing.longest, blank)
    unknown = [VALUE] * (area.right - area.left)
    begin = area.top + (shared is not None)  # the first cell of those that share has the text
    read = [place.block.name, *(operand.name for _, _, operand in place.block.operands)]
    filled = not any(name in book.blanks for name in read)
    steady, lines = filled and _steady(place), _lines(place, values)
    made = dict[int, Template | None]()

    def template(row: int) -> Template | None:
        """The template of the run that contains this row."""
        first = row - (row - begin) % writing.most_filled
        if first not in made:
            made.clear()
            last = min(first + writing.most_filled, area.bottom) - 1
            few = last - first < writing.fewest_filled
            made[first] = (
                None if few else _template(lambda k: spelt(k, unknown), unknown, first, last)
            )
        return made[first]

    def strip(row: int) -> list[bytes]:
        numbers = b",".join(next(lines)).decode().split(",")
        found = template(row) if steady and row >= begin else None
        if found is None or NO_NUMBER in numbers:
            return [spelt(row, numbers).encode()]
        return [found(row, numbers).encode()]

    return strip


def _spelling(
    book: Book, place: Place, style: int, shared: int | None, longest: int, blank: int
) -> Callable[[int, Sequence[str]], str]:
    """A function that writes a row of a computed block, given its values' texts.

    Of the characters that XML escapes, these formulas contain only comparisons.
    """
    block, area = place.block, place.rect(place.block.whole)
    line = book.lines(block)
    columns = [column(col) for col in range(area.left, area.right)]
    blanks = book.blanks.get(block.name)

    def formula(text: str, n: int) -> str:
        check_length(text, longest, block.name)
        text = text.replace("<", "&lt;")
        if shared is None:
            return f"<f>{text}</f>"
        whole = a1(Rect(area.top, area.bottom, area.left + n, area.left + n + 1))
        return f'<f t="shared" ref="{whole}" si="{shared + n}">{text}</f>'

    def spelt(row: int, numbers: Sequence[str]) -> str:
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
            if blanks and ((n, k) if place.turned else (k, n)) in blanks.cells:
                own, held = book.sheets[place.sheet].entries[row, area.left + n].formula, ""
                if own is not None:
                    own_text = formula(book.text(own, place.sheet), n)
                    held = f"{own_text}<v>{numbers[n]}</v>"
                cells.append(f'<c r="{columns[n]}{row + 1}" s="{blank}">{held}</c>')
                continue
            value = numbers[n]
            kind, value = (' t="e"', "#NUM!") if value == NO_NUMBER else ("", value)
            at = f'<c r="{columns[n]}{row + 1}" s="{style}"{kind}>'
            cells.append(f"{at}{text}<v>{value}</v></c>")
        return "".join(cells)

    return spelt


def _steady(place: Place) -> bool:
    """Whether a cell and the cell below read the same cells, or cells one place further on. They
    do not if the cell below reads one more key, another partner, or no cell."""
    changing = ("~",) if place.turned else ("≤", "≥")
    codes = [code for _, subscript, _ in place.block.operands for code in subscript]
    return not (place.block.partial or any(code[0] in changing for code in codes))


def _template(
    row_of: Callable[[int], str], unknown: list[str], first: int, last: int
) -> Template | None:
    """The common text of the rows from the first to the last; None if they differ in more than row
    and column numbers that grow with the row."""
    one, following = (GROWING.split(row_of(row)) for row in (first, first + 1))
    if len(one) != len(following):
        return None
    text, filling, n_values = [], list[int](), 0
    grown: dict[tuple[str, str], int] = {}
    for a, b in zip(one, following, strict=True):
        if a == b:
            text.append(a.replace("%", "%%").replace(VALUE, "%s"))
            filling += range(n_values, n_values + a.count(VALUE))
            n_values += a.count(VALUE)
        elif not _follow(a, b):
            return None
        else:
            text.append("%s")
            filling.append(grown.setdefault((a, b), len(unknown) + len(grown)))
    growing = [_growth(a, first) for a, _ in grown]
    common, pick = "".join(text), itemgetter(*filling)

    def filled(row: int, values: list[str]) -> str:
        found: str = common % pick(values + [grow(row) for grow in growing])
        return found

    return filled if filled(last, unknown) == row_of(last) else None


def _follow(a: str, b: str) -> bool:
    """Whether one number, or one column, is one more than another."""
    if a.isdigit() and b.isdigit():
        return int(b) - int(a) == 1
    return a.isalpha() and b.isalpha() and index(b) - index(a) == 1


def _growth(text: str, row: int) -> Callable[[int], str]:
    """A function for the text in a given row, by the first rows' texts."""
    number = text.isdigit()
    beyond = (int(text) if number else index(text)) - row
    return lambda at: str(at + beyond) if number else column(at + beyond)
