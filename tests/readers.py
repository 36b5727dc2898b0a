"""What SheetJS and exceljs, readers in JavaScript, make of workbooks, beside our own reader.

    PYTHONPATH=.:tests python tests/readers.py FILE.xlsx ...

prints the cells of each file that one of them reads otherwise. They are installed by
`npm ci --prefix tests/node`.
"""

import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import unescape

import orjson

from cellformer.engine.cells.texts import from_xml
from cellformer.engine.cells.values import CellError
from cellformer.exporters.file.reading import Value, WorkbookFile

NODE = Path(__file__).parent / "node"
REMEDY = "install Node.js, then: npm ci --prefix tests/node"

Place = tuple[str, int, int]  # sheet, row and column
Cells = dict[Place, tuple[Value, str | None]]  # values and formulas


class Reading(NamedTuple):
    """What a reader finds in a file."""

    file: Path
    reader: str
    cells: Cells


def installed() -> bool:
    """Whether the readers are there."""
    return bool(shutil.which("node")) and (NODE / "node_modules").is_dir()


def read(files: Sequence[Path]) -> Iterator[Reading]:
    """What each reader finds in each file, all read by one start of node."""
    command = ["node", str(NODE / "readers.cjs"), *map(str, files)]
    done = subprocess.run(command, capture_output=True, check=True)
    for line in done.stdout.splitlines():
        found = orjson.loads(line)
        cells = (
            ((sheet, row, col), _value(value, formula, found["reader"]), formula)
            for sheet, cells in found["sheets"].items()
            for row, col, value, formula in cells
        )
        yield Reading(Path(found["file"]), found["reader"], _filled(cells))


def _value(value: Value | dict[str, str], formula: str | None, reader: str) -> Value:
    """A value. exceljs leaves a formula's text as the file spells it, `_x005F_x0041_`."""
    if isinstance(value, dict):
        return CellError(value["error"])
    spelt = reader == "exceljs" and formula and isinstance(value, str)
    return from_xml(value) if spelt else value


def ours(book: WorkbookFile) -> Cells:
    """What our own reader finds."""
    found: list[tuple[Place, Value, str | None]] = []
    for name in book:
        formulas = book[name].formulas
        found += [((name, *at), x, formulas.get(at)) for at, x in book[name].values.items()]
    return _filled(found)


def _filled(cells: Iterable[tuple[Place, Value, str | None]]) -> Cells:
    """Without cells that hold nothing; an empty text is nothing. SheetJS leaves out _xlfn."""
    found: Cells = {}
    for at, value, formula in cells:
        if formula is not None:
            found[at] = (None if value == "" else value), formula.replace("_xlfn.", "")
        elif value is not None and value != "":
            found[at] = value, None
    return found


def differing(cells: Cells, found: Reading) -> list[str]:
    """The cells that a reader finds otherwise, with what each has; numbers bit for bit."""
    if found.reader == "exceljs":
        texts = ((at, x, f) for at, (x, f) in cells.items() if f is not None and isinstance(x, str))
        cells = cells | {at: (_twice_unescaped(x), f) for at, x, f in texts}
    if cells == found.cells:
        return []
    places = sorted(cells.keys() | found.cells.keys())
    others = [at for at in places if cells.get(at) != found.cells.get(at)]
    return [f"{at}: {cells.get(at)} and {found.cells.get(at)}" for at in others]


def _twice_unescaped(text: str) -> str:
    """exceljs takes an `&amp;` that a formula's text shows for an &."""
    if isinstance(text, CellError):
        return text
    return unescape(text, {"&quot;": '"', "&apos;": "'"})


def main() -> None:
    """Of the files of the command line."""
    files = [Path(name) for name in sys.argv[1:]]
    for found in read(files):
        cells = ours(WorkbookFile(found.file))
        different = differing(cells, found)
        print(f"{found.file.name} {found.reader}: {len(cells):,} cells, {len(different)} otherwise")
        for line in different[:5]:
            print("   ", line[:300])


if __name__ == "__main__":
    main()
