"""A sheet's XML as arrays: its cells' places, their values, and which of them have formulas.

A million cells are scanned in a second, ten times faster than making objects of them: numpy finds
every tag by its first letters, and all numbers of a sheet are parsed as one text. Whether it is
valid XML is checked first by expat, in a hundredth of a second per million bytes. The XML of
spreadsheet programs is scanned as it is; anything else (prefixes, comments, other encodings) is
normalized first. Rows and columns count from 0.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from xml.etree import ElementTree
from xml.etree.ElementTree import Element
from xml.parsers import expat

import numpy as np
import orjson
from numpy.typing import NDArray

from cellformer.engine.cells.access import Rect
from cellformer.engine.cells.errors import InputError
from cellformer.engine.cells.texts import from_xml
from cellformer.engine.cells.values import CellError
from cellformer.exporters.compose.address import moved

Value = float | str | bool | None  # None: blank; a text may be a CellError
Positions = NDArray[np.int64]  # of bytes in the XML, or of cells among the cells

MAX_ROWS, MAX_COLUMNS = 1 << 20, 1 << 14
LONGEST_ADDRESS = 20  # characters of an invalid one in a message
MOST_FORMULA = 65_536  # bytes of one in XML: of 8,192 characters, all escaped
PLAIN = re.compile(
    rb"""\s*(<\?xml(?:(?!encoding)[^>])*(?:encoding=["'](utf-8|us-ascii)["'][^>]*)?\?>\s*)?<worksheet\b""",
    re.IGNORECASE,
)
NUMBER = re.compile(rb"""\sr=["']([^"']*)""")
ATTRIBUTE = re.compile(rb"""\b(t|si)=["']([^"']*)["']""")
ENDS_NAME, QUOTE = (np.isin(np.arange(256), [*ends]) for ends in (b" >/\t\r\n", b"\"'"))
DAY_0 = datetime(1899, 12, 30)  # from which spreadsheets count days
START, STOP = b"<sheetData", b"</sheetData>"


class Cells:
    """The cells of a sheet that are not blank, from top to bottom, each row from left to right.

    `rows` and `cols` have an entry for each. `numbers` (NaN if there is none) and `formulas`
    (whether it has one) have one more entry at the end, which stands for no cell: its index is -1.
    `others` has texts, truth values and errors by index; `has_value` says which cells have a value,
    if only an empty text, as the formulas that a program computed have.
    """

    def __init__(self, xml: bytes, texts: Sequence[str]):
        tags = _Tags(xml)
        at = _Cells(tags)
        self.rows, self.cols = at.rows, at.cols
        self._spelt = _Spelt(tags, at)
        self.formulas = self._spelt.formula >= 0
        self.numbers, self.others, self.has_value = _values(tags, at, texts)
        self._keep_filled()

    def _keep_filled(self) -> None:
        """Drop blank cells, and sort the others."""
        filled = self.formulas | ~np.isnan(self.numbers)
        filled[list(self.others)] = True
        keys = self.rows * MAX_COLUMNS + self.cols
        kept = np.flatnonzero(filled)
        kept = kept[np.argsort(keys[kept], kind="stable")]
        kept = kept[np.diff(keys[kept], append=-1) != 0]  # of two at one place the last
        self.keys = keys[kept]
        self.rows, self.cols = self.rows[kept], self.cols[kept]
        self.numbers = np.append(self.numbers[kept], np.nan)
        self.formulas = np.append(self.formulas[kept], False)
        self.has_value = self.has_value[kept]
        self._of_all = kept  # the cells' numbers among all, blank ones too
        now = np.empty(len(keys), np.int64)
        now[kept] = np.arange(len(kept))
        self.others = {int(now[before]): value for before, value in self.others.items()}

    def __len__(self) -> int:
        return len(self.keys)

    def places(self, which: Positions) -> Iterator[tuple[int, int]]:
        """The rows and columns of some cells."""
        return zip(self.rows[which].tolist(), self.cols[which].tolist(), strict=True)

    def valued(self, which: Positions) -> list[Value]:
        """The values of some cells."""
        numbers = self.numbers[which]
        found: list[Value] = numbers.tolist()
        for k in np.flatnonzero(np.isnan(numbers)).tolist():
            found[k] = self.others.get(int(which[k]))
        return found

    def spelt(self, which: Positions, braces: bool = True) -> list[str]:
        """The formulas of some cells, an array's in braces. Raises InputError."""
        try:
            return self._spelt.texts(self._of_all[which], braces)
        except (KeyError, ValueError, ElementTree.ParseError):
            raise InputError(
                "the workbook contains an unreadable formula; open the file in Excel or "
                "LibreOffice, save it there, and try again"
            ) from None

    def at(self, rows: Positions, cols: Positions) -> Positions:
        """The indices of the cells at these places, in the same shape; -1 if there is none."""
        wanted = np.asarray(rows * MAX_COLUMNS + cols)
        if not len(self):
            return np.full(wanted.shape, -1)
        found = np.searchsorted(self.keys, wanted, "right") - 1
        return np.where(self.keys[found] == wanted, found, -1)

    def within(self, rect: Rect) -> Positions:
        """The indices of the cells of a rectangle: [height, width], -1 if there is none."""
        rows, cols = np.arange(rect.top, rect.bottom), np.arange(rect.left, rect.right)
        return self.at(rows[:, None], cols[None, :])


class _Tags:
    """All tags between the first and the last cell of a sheet."""

    def __init__(self, xml: bytes):
        self.xml = xml = plain(xml)
        start, stop = xml.index(START), xml.rfind(STOP)
        self.bytes = np.frombuffer(xml, np.uint8)
        self.starts = start + np.flatnonzero(self.bytes[start : max(start, stop)] == ord("<"))
        self.initials = self.bytes[self.starts + 1]  # a slash of those that end an element
        self.starts = np.append(self.starts, max(start, stop))
        if stop < 0 and not _closed(xml, start):
            raise ValueError("the list of cells has no end")

    def __getitem__(self, name: str) -> Positions:
        """The tags that begin an element of a name."""
        found = np.flatnonzero(self.initials == ord(name[0]))
        for k, letter in enumerate(name[1:], 2):
            found = found[self.bytes[self.starts[found] + k] == ord(letter)]
        return found[ENDS_NAME[self.bytes[self.starts[found] + len(name) + 1]]]

    def attribute(self, name: str) -> Positions:
        """The offset of the value of each attribute with that one-letter name, after its quote."""
        a, equals = self.bytes, self._equals
        named = (a[equals - 1] == ord(name)) & (a[equals - 2] <= ord(" "))
        return np.asarray(equals[named] + 2)

    @cached_property
    def _equals(self) -> Positions:
        """The offsets of equals signs."""
        return np.flatnonzero(self.bytes == ord("="))

    def content(self, which: Positions) -> tuple[Positions, Positions]:
        """The start and end of the texts of elements, none of which contains others."""
        begins = self.starts[which] + 3
        for k in np.flatnonzero(self.bytes[begins - 1] != ord(">")).tolist():
            begins[k] = 1 + self.xml.index(b">", begins[k] - 1)
        closed = self.bytes[begins - 2] == ord("/")
        if not (closed | (self.bytes[self.starts[which + 1] + 1] == ord("/"))).all():
            raise ValueError("a value contains other XML elements")
        return begins, np.where(closed, begins, self.starts[which + 1])


class _Cells:
    """The places of a sheet's cells, blank ones included, in the XML and on the sheet."""

    def __init__(self, tags: _Tags):
        self.tags = tags
        which, self.row_starts = tags["c"], tags.starts[tags["row"]]
        self.starts, self.ends = tags.starts[which], tags.starts[which + 1]
        row = np.searchsorted(self.row_starts, self.starts) - 1
        self.rows = self._row_numbers()[row]
        self.cols = self._columns(np.searchsorted(self.starts, self.row_starts)[row])

    def of(self, which: Positions) -> Positions:
        """The cell that contains each of these tags."""
        return np.searchsorted(self.starts, self.tags.starts[which]) - 1

    def attribute(self, name: str) -> Positions:
        """The offset of each cell's attribute, 0 if it has none."""
        found = np.zeros(len(self.starts), np.int64)
        if len(found):
            at = self.tags.attribute(name)
            cell = np.searchsorted(self.starts, at) - 1
            own = (cell >= 0) & (at < self.ends[cell])
            found[cell[own]] = at[own]
        return found

    def _row_numbers(self) -> Positions:
        """The number of every row: its attribute, or one more than the previous row's."""
        last, found = -1, []
        for start in self.row_starts.tolist():
            number = NUMBER.search(self.tags.xml, start, self.tags.xml.index(b">", start))
            last = _row_number(number[1]) if number else last + 1
            if last >= MAX_ROWS:
                raise ValueError(f"it has a row {last + 1:,}, which does not exist")
            found.append(last)
        return np.array(found, np.int64)

    def _columns(self, first: Positions) -> Positions:
        """The column of every cell: from its address, or the next one; `first` is its row's first
        cell."""
        address, index = self.attribute("r"), np.arange(len(self.starts))
        col, n_letters = np.zeros_like(index), np.zeros_like(index)
        letters = np.ones(len(index), bool)
        for k in range(3):
            letter = self.tags.bytes[address + k].astype(np.int64)
            letters &= letter >= ord("A")
            n_letters += letters
            col = np.where(letters, 26 * col + letter - 64, col)
        number = self.tags.bytes[address + n_letters]
        wrong = (number < ord("0")) | (number > ord("9")) | (col < 1) | (col > MAX_COLUMNS)
        for k in np.flatnonzero(wrong & (address > 0))[:1].tolist():
            at = int(address[k])
            text = self.tags.xml[at : at + LONGEST_ADDRESS].partition(b'"')[0]
            raise ValueError(
                f"it has a cell {text.decode('ascii', 'replace')!r}, which does not exist"
            )
        known = np.maximum.accumulate(np.where(address > 0, index, -1))
        after = known >= first  # a cell before it in its row has an address
        return np.where(after, col[known] - 1 + index - known, index - first)


class _Spelt:
    """The texts of a sheet's formulas; of shared ones, only the first cell's."""

    def __init__(self, tags: _Tags, cells: _Cells):
        which = tags["f"]
        begins, ends = tags.content(which)
        if (longest := (ends - begins).max(initial=0)) > MOST_FORMULA:
            raise ValueError(f"a formula has {longest:,} bytes; Excel allows 8,192 characters")
        self.cell, places = cells.of(which), zip(begins.tolist(), ends.tolist(), strict=True)
        self.xml = [tags.xml[begin:end] for begin, end in places]
        self.rows, self.cols = cells.rows, cells.cols
        self.formula = np.full(len(cells.starts), -1)  # of each cell, -1 where it has none
        self.formula[self.cell] = np.arange(len(which))
        starts = tags.starts[which]
        self.kinds = {}  # of the formulas that are no ordinary ones: their attributes
        for k in np.flatnonzero(begins - starts > 3).tolist():
            attributes = tags.xml[int(starts[k]) : int(begins[k])]
            if b"t=" in attributes:
                self.kinds[k] = dict(ATTRIBUTE.findall(attributes))

    def texts(self, cells: Positions, braces: bool) -> list[str]:
        """The formulas of some cells; arrays' in braces if `arrays`."""
        which = self.formula[cells].tolist()
        texts = b"\0".join([self.xml[k] for k in which]).decode().split("\0") if which else []
        found = [_unescaped(text.encode()) if "&" in text else text for text in texts]
        if len(found) != len(which):
            raise ValueError("a formula contains a character that is not allowed in text")
        for n, k in enumerate(which) if self.kinds else ():
            if k in self.kinds:
                found[n] = self._special(k, found[n], braces)
        return found

    def _special(self, k: int, text: str, braces: bool) -> str:
        """A formula with attributes: an array formula, or a shared one."""
        kind = self.kinds[k]
        if kind.get(b"t") == b"array" and braces:
            return f"{{{text}}}"
        if kind.get(b"t") == b"shared" and not text:
            first = self.shared[kind[b"si"]]
            cell, origin = self.cell[k], self.cell[first]
            down, right = self.rows[cell] - self.rows[origin], self.cols[cell] - self.cols[origin]
            return moved(_unescaped(self.xml[first]), int(down), int(right))
        return text

    @cached_property
    def shared(self) -> dict[bytes, int]:
        """The shared formulas, by number."""
        return {kind[b"si"]: k for k, kind in self.kinds.items() if self.xml[k] and b"si" in kind}


def _values(
    tags: _Tags, cells: _Cells, texts: Sequence[str]
) -> tuple[NDArray[np.float64], dict[int, Value], NDArray[np.bool_]]:
    """The numbers of all cells (NaN if there is none), other values by cell, and which cells have a
    value."""
    numbers = np.full(len(cells.starts), np.nan)
    which = tags["v"]
    cell, (begins, ends) = cells.of(which), tags.content(which)
    at = cells.attribute("t")[cell]
    kind = np.where(at > 0, tags.bytes[at], ord("n"))
    shared = (kind == ord("s")) & QUOTE[tags.bytes[at + 1]]
    counted = ((kind == ord("n")) | shared) & (ends > begins)
    read = np.full(len(which), np.nan)
    read[counted] = _numbers(tags, begins[counted], ends[counted])
    numbers[cell] = np.where(shared, np.nan, read)
    others: dict[int, Value] = {
        int(cell[k]): texts[int(read[k])] for k in np.flatnonzero(shared).tolist()
    }
    has_value = np.zeros(len(cells.starts), bool)
    has_value[cell] = (ends > begins) | ((kind == ord("s")) & ~shared)
    for k in np.flatnonzero((kind != ord("n")) & ~shared & (ends > begins)).tolist():
        others[int(cell[k])] = typed(chr(kind[k]), _unescaped(tags.xml[begins[k] : ends[k]]))
    inline = tags["is"]
    for k, start in zip(cells.of(inline).tolist(), tags.starts[inline].tolist(), strict=True):
        end = start if _closed(tags.xml, start) else tags.xml.index(b"</is>", start)
        xml = tags.xml[start:end] + b"</is>"
        others[k] = from_xml(text_of(ElementTree.fromstring(xml))) if end > start else ""
    return numbers, others, has_value


def _numbers(tags: _Tags, begins: Positions, ends: Positions) -> NDArray[np.float64]:
    """The numbers between these offsets of the XML, parsed as one JSON list, the fastest way there
    is."""
    steps = np.zeros(len(tags.bytes) + 1, np.int8)  # into a number, and out of it
    steps[begins] = 1
    steps[ends + 1] = -1  # the tag's < after a number becomes its comma
    listed = tags.bytes[np.cumsum(steps[:-1], dtype=np.int8).view(bool)]
    listed[np.cumsum(ends + 1 - begins) - 1] = ord(",")
    text = listed[:-1].tobytes()
    try:
        found = np.array(orjson.loads(b"[%s]" % text), np.float64)
    except ValueError:
        found = np.array([float(number) for number in text.split(b",")])  # so are +1 and .5
    if found.shape != begins.shape or np.isnan(found).any():
        raise ValueError("a number is not valid")
    return found


def _row_number(text: bytes) -> int:
    """The row, counted from 0, in an attribute."""
    if not (text.isdigit() and len(text) <= len(str(MAX_ROWS)) and int(text)):
        raise ValueError(f"it has a row {text[:20].decode()!r}, which is not valid")
    return int(text) - 1


def _closed(xml: bytes, start: int) -> bool:
    """Whether the tag at an offset is self-closing."""
    return xml[xml.index(b">", start) - 1] == ord("/")


def typed(kind: str, text: str) -> Value:
    """A value that is written as text: a truth value, an error, a date, a text."""
    if kind == "b":
        return text in ("1", "true")
    if kind == "d":
        return (datetime.fromisoformat(text) - DAY_0) / timedelta(1)
    return CellError(text) if kind == "e" else from_xml(text)


def _unescaped(text: bytes) -> str:
    """A text without XML escapes."""
    if b"&" in text or b"\r" in text:
        return ElementTree.fromstring(b"<v>%s</v>" % text).text or ""
    return text.decode()


def plain(xml: bytes) -> bytes:
    """XML as spreadsheet programs write it: UTF-8, no prefixes, nothing but elements and texts."""
    if PLAIN.match(xml) and b"<!" not in xml and xml.count(b"<?") <= 1:
        expat.ParserCreate().Parse(xml, True)
        return xml
    root = ElementTree.fromstring(xml)
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
    return ElementTree.tostring(root)


def text_of(item: Element) -> str:
    """The text of a string from all its runs, without phonetic guides."""
    return "".join(
        child.text or "" if child.tag.rpartition("}")[2] == "t" else text_of(child)
        for child in item
        if child.tag.rpartition("}")[2] in ("t", "r")
    )
