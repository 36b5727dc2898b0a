"""Rules for one sheet, streamed: first its formulas, then what surrounds its cells."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from html import unescape
from typing import IO
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from cellformer.engine.cells.access import Rect
from cellformer.exporters.checking.rules import Fault, formulas, portable, ranges
from cellformer.exporters.checking.rules.cycles import Reference, Run
from cellformer.exporters.checking.rules.formulas import (
    REFERENCE,
    Formula,
    parsed,
    rectangle,
    units,
)
from cellformer.exporters.checking.rules.workbook import LONGEST_TEXT
from cellformer.exporters.compose.address import index

LAST_ROW, LAST_COLUMN, MOST_LINKS = 1_048_576, 16_384, 65_530
LONGEST_LIST = 255
MOST_SAID = {"errorTitle": 32, "promptTitle": 32, "error": 255, "prompt": 255}
CHUNK = 1 << 20  # bytes that are looked at together

FORMULA = re.compile(rb'<c r="([A-Z]+)(\d+)"[^>]*>\s*<f(?:\s([^>]*?))?(?:/>|>([^<]*)</f>)')
ATTRIBUTE = re.compile(r'(\w+)="([^"]*)"')
ROW = re.compile(rb'<row r="(\d+)"')
SPACED = re.compile(rb"<[vt]>(?:[ \t\r\n][^<]*|[^<]*[ \t\r\n])</[vt]>")
LONG = re.compile(rb">([^<>]{%d,})<" % (LONGEST_TEXT + 1))


class SheetRules:
    """Checks a sheet, and collects what its formulas read."""

    def __init__(self, name: str, sheets: set[str], areas: frozenset[str], n_dressings: int):
        self.name, self.sheets, self.n_dressings = name, sheets, n_dressings
        self.areas = areas  # names of ranges
        self.runs: list[Run] = []  # of formulas that read alike
        self._open: dict[int, tuple[tuple[Reference, ...], int, int]] = {}  # by column: from, to
        self._shared: dict[str, tuple[tuple[Reference, ...], Rect]] = {}  # what it reads, and where
        self._arrays: list[Rect] = []

    def faults(self, stream: IO[bytes]) -> Iterator[Fault]:
        """Every rule that the sheet breaks."""
        around: list[bytes] = []  # what stands before and after the rows
        last = 0
        for rows, other in _chunks(stream):
            around.append(other)
            for row in map(int, ROW.findall(rows)):
                if not last < row <= LAST_ROW:
                    yield f"rows ascend, to {LAST_ROW:,}", f"{self.name}!{row}"
                last = row
            if b"<f" in rows:
                for spelt, digits, attributes, raw in FORMULA.findall(rows):
                    letters, number = spelt.decode(), int(digits)
                    yield from (
                        (rule, f"{self.name}!{letters}{number}")
                        for rule in self._formula(letters, number, attributes, raw)
                    )
            if b'"inlineStr"' in rows or b't="str"' in rows:
                if SPACED.search(rows):
                    yield "a text with spaces at its ends lacks xml:space", self.name
                yield from (
                    (f"a text is longer than {LONGEST_TEXT:,} characters", self.name)
                    for text in LONG.findall(rows)
                    if units(unescape(text.decode())) > LONGEST_TEXT
                )
        for col in self._open:
            self._close(col)
        if overlap(self._arrays):
            yield "array formulas overlap", self.name
        yield from self._around(ElementTree.fromstring(b"".join(around)))

    # --- formulas

    def _formula(self, letters: str, number: int, attributes: bytes, raw: bytes) -> list[str]:
        """The rules that one formula breaks: its text, its kind, what it reads."""
        row, col = number - 1, index(letters)
        kind = dict(ATTRIBUTE.findall(attributes.decode())) if attributes else {}
        rules = [] if col < LAST_COLUMN else ["columns end at XFD"]
        if raw:
            text = unescape(raw.decode()) if b"&" in raw else raw.decode()
            found = formulas.formula(text, self.name, row, col)
            reads = found.reads
            rules += formulas.faults(found, self.sheets)
            array = kind.get("t") == "array"
            spread = () if array else ranges.faults(found.shape, self.areas)
            rules += spread or portable.faults(found.shape, self.areas, array)
            if kind.get("t") == "shared":
                rules += self._first_of_shared(kind, found, (row, col))
        else:
            reads, area = self._shared.get(kind.get("si", ""), ((), Rect(0, 0, 0, 0)))
            if not (area.top <= row < area.bottom and area.left <= col < area.right):
                rules.append(
                    "a cell uses a shared formula outside the range of that formula, or before "
                    "its first cell"
                )
        if kind.get("t") == "array":
            rules += self._array(kind.get("ref", ""), (row, col))
        self._run(reads, row, col)
        return rules

    def _first_of_shared(
        self, kind: dict[str, str], found: Formula, at: tuple[int, int]
    ) -> Iterator[str]:
        """The faults of the formula that stands for a shared range."""
        area = rectangle(kind.get("ref", ""))
        self._shared[kind.get("si", "")] = found.reads, area
        if (area.top, area.left) != at:
            yield "the range of a shared formula must begin with its first cell"
        if "!" in found.text and any(there != self.name for there, *_ in found.reads):
            yield "a shared formula refers to another sheet"

    def _array(self, ref: str, at: tuple[int, int]) -> Iterator[str]:
        area = rectangle(ref)
        if (area.top, area.left) != at:
            yield "the range of an array formula must begin with its cell"
        self._arrays.append(area)

    def _run(self, reads: tuple[Reference, ...], row: int, col: int) -> None:
        """Add a formula to the run above it, if it reads alike."""
        if col in self._open:
            before, top, bottom = self._open[col]
            if bottom == row and before == reads:
                self._open[col] = before, top, row + 1
                return
            self._close(col)
        self._open[col] = reads, row, row + 1

    def _close(self, col: int) -> None:
        reads, top, bottom = self._open[col]
        self.runs.append(Run(self.name, col, top, bottom, reads))

    # --- what stands around the cells

    def _around(self, root: Element) -> Iterator[Fault]:
        """The rules for panes, merged cells, links, validations and conditional formats."""
        yield from (
            ("a frozen pane does not split the sheet", self.name)
            for pane in root.iterfind("{*}sheetViews/{*}sheetView/{*}pane")
            if pane.get("state") == "frozen" and not (pane.get("xSplit") or pane.get("ySplit"))
        )
        merged = [rectangle(m.get("ref", "")) for m in root.iterfind("{*}mergeCells/{*}mergeCell")]
        if overlap(merged):
            yield "merged cells overlap", self.name
        yield from self._links(root.findall("{*}hyperlinks/{*}hyperlink"))
        for rule in root.iterfind("{*}dataValidations/{*}dataValidation"):
            yield from self._validation(rule)
        for rule in root.iterfind("{*}conditionalFormatting/{*}cfRule"):
            if int(rule.get("dxfId", -1)) >= self.n_dressings:
                yield "a conditional format uses a style that does not exist", self.name
            for formula in rule.iterfind("{*}formula"):
                found = formulas.formula(formula.text or "", self.name, 0, 0)
                yield from ((fault, self.name) for fault in formulas.faults(found, self.sheets))
                if any(there != self.name for there, *_ in found.reads):
                    yield "a conditional format refers to another sheet", self.name

    def _links(self, links: list[Element]) -> Iterator[Fault]:
        cells = [link.get("ref", "") for link in links]
        if len(cells) > MOST_LINKS or len(set(cells)) < len(cells):
            yield (
                f"a cell may have one link, and a sheet may have at most {MOST_LINKS:,} links",
                self.name,
            )
        for link in links:
            yield from (
                ("a link leads nowhere", f"{self.name}!{link.get('ref')}")
                for reference in REFERENCE.findall(link.get("location", ""))
                if parsed(reference)[0] not in (*self.sheets, "")
            )

    def _validation(self, rule: Element) -> Iterator[Fault]:
        where = f"{self.name}!{rule.get('sqref')}"
        yield from (
            (f"a validation's {name} is longer than {most} characters", where)
            for name, most in MOST_SAID.items()
            if units(rule.get(name, "")) > most
        )
        for formula in rule:
            text = formula.text or ""
            if rule.get("type") == "list" and text[:1] == '"':
                if units(text) - 2 > LONGEST_LIST:
                    yield f"a list of choices is longer than {LONGEST_LIST} characters", where
            else:
                found = formulas.formula(text, self.name, 0, 0)
                yield from ((fault, where) for fault in formulas.faults(found, self.sheets))


def _chunks(stream: IO[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """Whole rows as they stream by, and the XML outside rows."""
    held, inside = b"", False
    while data := stream.read(CHUNK):
        held += data
        if not inside and b"<sheetData" in held:
            before, _, held = held.partition(b"<sheetData")
            inside = True
            yield b"", before + b"<sheetData/>"
        if inside and (end := held.rfind(b"</row>") + 1):
            yield held[: end + 5], b""
            held = held[end + 5 :]
    _, ended, after = held.partition(b"</sheetData>")
    yield b"", after if ended else held.removeprefix(b"/>")


def overlap(areas: Sequence[Rect]) -> bool:
    """Whether two rectangles have a cell in common. From top to bottom, the open ones stand side by
    side: each new one is compared only with its neighbours, however many there are."""
    beside: list[tuple[int, int, int]] = []  # left, right and bottom, from left to right
    for area in sorted((a for a in areas if a.size), key=lambda a: a.top):
        k = bisect_left(beside, (area.left,))
        while k and beside[k - 1][2] <= area.top:  # it has ended
            k -= 1
            del beside[k]
        while k < len(beside) and beside[k][0] < area.right:
            if beside[k][2] > area.top:
                return True
            del beside[k]
        if k and beside[k - 1][1] > area.left:
            return True
        beside.insert(k, (area.left, area.right, area.bottom))
    return False
