"""How fast cells are written, as ratios in one run: to openpyxl, to XlsxWriter, to raw deflate.

    python benchmarks/writing.py [LARGE.xlsx]

The same numbers, and the same formulas with the same values, are written by each. With the name of
a large workbook that this project made, its sheets are deflated again, by one thread: the limit of
any writer that has one.
"""

import sys
import tempfile
import time
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import openpyxl
import xlsxwriter

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from conftest import random_model  # noqa: E402

from cellformer.engine import ModelSpec  # noqa: E402
from cellformer.engine.cells import compressing  # noqa: E402
from cellformer.engine.models.generate import passage  # noqa: E402
from cellformer.exporters.assemble.transformer import assemble  # noqa: E402
from cellformer.exporters.compose.book import Book, Place, Sheet  # noqa: E402
from cellformer.exporters.compose.story import Story, Suggestion  # noqa: E402
from cellformer.exporters.file.xlsx import write  # noqa: E402


def seconds(work: Callable[[], object]) -> float:
    """Seconds that a piece of work takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def book() -> Book:
    """A decoder of width 256 over 40 tokens."""
    spec = ModelSpec(64, 256, 64, n_layers=2, n_heads=4, d_head=64, d_mlp=1024, norm="layer")
    model = random_model(spec)
    story = Story("bench: b", "", [""], [""], [Suggestion("", 0)])
    return assemble("bench", model, passage(model, [k % 64 for k in range(40)]), story)


def only(whole: Book, places: list[Place]) -> Book:
    """The book with a sheet per block, and nothing else on it."""
    whole.sheets = {}
    for place in places:
        sheet = Sheet(place.sheet)
        whole.sheets.setdefault(place.sheet, sheet).regions.append((place, "live"))
    whole.named_cells = {}
    return whole


def numbers(whole: Book, folder: Path) -> None:
    """All weights: openpyxl's write-only mode against ours."""
    places = [p for p in whole.places.values() if p.block.kind == "weight"]
    n = sum(p.block.whole.size for p in places)
    arrays = {p.block.name: whole.values[p.block.name] for p in places}

    def theirs() -> None:
        found = openpyxl.Workbook(write_only=True)
        for name, array in arrays.items():
            sheet = found.create_sheet(name[-30:])
            for row in array.tolist():
                sheet.append(row)
        found.save(folder / "openpyxl.xlsx")

    ours = seconds(lambda: write(only(whole, places), folder / "ours.xlsx"))
    other = seconds(theirs)
    print(f"numbers: {n / ours:,.0f} cells a second; {other / ours:.1f} x openpyxl, write-only")


def formulas(whole: Book, folder: Path) -> None:
    """All computed blocks: XlsxWriter's own path against ours."""
    places = [p for p in whole.places.values() if p.block.op]
    cells = [
        (p.sheet, *p.cell(i, j), "=" + make(i, j), float(whole.values[p.block.name][i, j]))
        for p in places
        for make in [whole.formulas(p.block)]
        for i, j in p.block.whole.cells()
        if p.block.has(i, j)
    ]

    def theirs() -> None:
        with xlsxwriter.Workbook(folder / "xlsxwriter.xlsx", {"in_memory": True}) as found:
            sheets = {name: found.add_worksheet(name) for name in {c[0] for c in cells}}
            style = found.add_format({"num_format": "0.000"})
            for sheet, row, col, formula, value in cells:
                sheets[sheet].write_formula(row, col, formula, style, value)

    ours = seconds(lambda: write(only(whole, places), folder / "ours.xlsx"))
    other = seconds(theirs)
    rate = f"{len(cells) / ours:,.0f} cells a second, their text made anew"
    print(f"formulas: {rate}; {other / ours:.1f} x XlsxWriter, given the text")


def again(path: Path) -> None:
    """Deflate the sheets of a workbook once more."""
    packer, spent, size = zlib.compressobj(compressing.LEVEL, zlib.DEFLATED, -15), 0.0, 0
    with zipfile.ZipFile(path) as found:
        for name in found.namelist():
            with found.open(name) as part:
                while data := part.read(1 << 22):
                    spent += seconds(lambda data=data: packer.compress(data))
                    size += len(data)
    print(f"{path.name}: {size / 1e6:,.0f} MB deflated by one thread in {spent:.1f} s")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        numbers(book(), Path(temporary))
        formulas(book(), Path(temporary))
    if len(sys.argv) > 1:
        again(Path(sys.argv[1]))
