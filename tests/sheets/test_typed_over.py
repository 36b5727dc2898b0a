"""A formula that was typed over is named atop every sheet, until that is undone; and so is a
function that a program does not compute, after an edit, too."""

from pathlib import Path

import exercised
import openpyxl
import pytest
from conftest import InIronCalc, default_book, needs, script

import cellformer as cf
from cellformer.engine.cells import functions
from cellformer.engine.cells.access import Rect
from cellformer.engine.cells.expression import Function
from cellformer.exporters.checking.audit import audit
from cellformer.exporters.compose import digest, probes
from cellformer.exporters.compose.book import START, Book
from cellformer.exporters.compose.boxes import boxes
from cellformer.exporters.compose.composer import Composer
from cellformer.exporters.compose.ranges import of_formulas
from cellformer.exporters.pages import ledger

TYPED_OVER = script("typed_over", "benchmarks")
ERF_GELU = Path(__file__).parent.parent / "golden" / "bart"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sampling", "loss"])
def test_typed_over_formulas_are_named(name: str, built, tmp_path, libreoffice) -> None:
    book, path = default_book(name), built[name]
    assert TYPED_OVER.in_libreoffice(path, book, 4, tmp_path / "office") == []
    needs("ironcalc")
    assert TYPED_OVER.in_ironcalc(path, book, 8) == []


@pytest.mark.slow
def test_typed_over_formulas_of_large_workbooks_are_named(built, tmp_path, libreoffice) -> None:
    """By ISFORMULA of ranges."""
    assert TYPED_OVER.in_libreoffice(built["cat-sat"], default_book("cat-sat"), 6, tmp_path) == []


@pytest.mark.parametrize("level", [1, 3])
def test_yellow_cells_are_no_formulas(level: int, tmp_path: Path) -> None:
    """What is filled in is no edit, and other formulas of the same table are checked."""
    asked = exercised.asked("sampling", level)
    book, sheet = asked.book, InIronCalc(asked.write(tmp_path, "exercise"))
    name, blanks = next(iter(book.blanks.items()))
    cell = book.cell(name, *min(blanks.cells))
    with sheet.typed({cell: 0.25}):
        assert str(sheet[START, 2, 0]).startswith(ledger.NONE)
    places = [at for at in TYPED_OVER.places(default_book("sampling")) if at[0] == cell[0]]
    other = next(at for at in places if at not in {book.cell(name, *c) for c in blanks.cells})
    with sheet.typed({other: 3.0, cell: 0.25}):
        assert str(sheet[START, 2, 0]).startswith(TYPED_OVER.named(other))


# --- functions --------------------------------------------------------------------------------


def test_every_function_has_a_probe() -> None:
    ours = {x.name for x in vars(functions).values() if isinstance(x, Function)}
    assert {probes.SPELT.get(name, name) for name in ours} <= {*probes.PROBES}


@pytest.fixture(scope="module")
def all_probes(tmp_path_factory) -> tuple[InIronCalc, dict[str, tuple[str, int, int]]]:
    """A workbook of all probes, with a cell of the number of edits, and where each probe stands."""
    book = Book("probes")
    page = Composer(book, "Probes")
    page.sheet.put(0, 0, 0)
    _, _, told = probes.add(page, page.sheet[0, 0], (2, 1), [*probes.PROBES])
    page.show("told", (0, 1), told, "text")
    path = cf.write(book, tmp_path_factory.mktemp("probes") / "probes.xlsx")
    assert audit(path) == []
    return InIronCalc(path), {name: ("Probes", 2 + k, 2) for k, name in enumerate(probes.PROBES)}


@pytest.mark.parametrize("name", [*probes.PROBES])
def test_a_function_that_keeps_its_number_is_named(name: str, all_probes) -> None:
    """As in a program that lacks it: its cell holds what it held as built."""
    sheet, places = all_probes
    edits, told = ("Probes", 0, 0), ("Probes", 0, 1)
    for n in (1, 2, 40):
        with sheet.typed({edits: n}):
            assert sheet[told] == ""
    sheet.model.evaluate()
    where = (0, places[name][1] + 1, places[name][2] + 1)
    formula = sheet.model.get_cell_content(*where)
    with sheet.typed({edits: 1, places[name]: sheet[places[name]]}):
        said = "" if name == "ISFORMULA" else f"this program does not compute {name}"
        assert sheet[told] == said
    sheet.model.set_user_input(*where, formula)
    sheet.model.evaluate()


@pytest.mark.slow
def test_start_names_a_function_that_is_not_computed(tmp_path: Path) -> None:
    """In the workbook of a model with erf-GELU, after an edit."""
    book = cf.build(str(ERF_GELU), ids=[1, 2, 3, 4])
    sheet = InIronCalc(cf.write(book, tmp_path / "erf.xlsx"))
    entries = book.sheets["Digest"].entries
    row, col = next(at for at, entry in entries.items() if entry.value == "ERF")
    frozen = "Digest", row, col + 1
    weight = book.cell("encoder.blocks.0.mlp.b_in", 0, 0)
    with sheet.typed({weight: 2.0}):
        assert str(sheet[START, 2, 0]).startswith("1 edit: ")
    sheet.model.evaluate()
    with sheet.typed({frozen: sheet[frozen], weight: 2.0}):
        assert str(sheet[START, 2, 0]).startswith("this program does not compute ERF · 1 edit: ")
        told = [sheet["Check", row, 0] for row in range(40)]
        assert "this program does not compute ERF" in told


@pytest.mark.parametrize("name", ["sampling", "cat-sat", "loss"])
def test_boxes_hold_the_formulas_that_they_count(name: str, built) -> None:
    """In the file as written. They hold nothing else, and together all formulas."""
    book, written = default_book(name), openpyxl.load_workbook(built[name])
    own = digest.SHEET, Rect(digest.SUMMARY, digest.END, 0, digest.END)
    ranges = of_formulas(book, [own, ledger.watch(book).line])
    found = boxes(book, ranges, {})
    for sheet, rect, n_formulas in found:
        cells = [written[sheet].cell(i + 1, j + 1) for i, j in rect.cells()]
        assert sum(cell.data_type == "f" for cell in cells) == n_formulas
        beyond = [cell for cell in cells if cell.data_type != "f"]  # a mask
        assert all(cell.value is None and cell.protection.locked for cell in beyond)
    covered = {(sheet, *at) for sheet, rect, _ in found for at in rect.cells()}
    assert {*TYPED_OVER.places(book)} <= covered
    assert len(found) < 0.6 * len(ranges)
