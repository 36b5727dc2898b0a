"""The gradient of any cell of a workbook, held to finite differences."""

import numpy as np
import pytest
from conftest import cli, default_book, told

from cellformer import workbooks
from cellformer.engine.cells.block import Block
from cellformer.exporters.compose import cell_gradient
from cellformer.exporters.compose.book import Book

N_CELLS = 3  # of each workbook
STEP = 1e-6
HEAVY = {"dialogue-game", "learn", "semantic-tiny", "shakespeare", "unrolled"}  # seconds each
OF_COUNTS = {"n-grams"}  # all of it counts words: no typed number moves anything smoothly


def formula_cells(book: Book) -> list[tuple[str, int, int]]:
    """Every cell with a formula."""
    found = [
        (sheet.name, *at)
        for sheet in book.sheets.values()
        for at, entry in sheet.entries.items()
        if entry.formula is not None
    ]
    for place in (p for sheet in book.sheets.values() for p, _ in sheet.regions if p.block.op):
        block = place.block
        found += [(place.sheet, *place.cell(*c)) for c in block.whole.cells() if block.has(*c)]
    return found


def typed(book: Book, slopes: dict[str, np.ndarray]) -> list[tuple[Block, int, int, float]]:
    """The typed numbers that move a cell: those of the largest and of the smallest slope."""
    graph = book.graph
    found = [
        (abs(slope[i, j]), name, i, j)
        for name, slope in slopes.items()
        if not graph[name].computed and graph[name].kind != "ids"
        for i, j in zip(*np.nonzero(slope), strict=True)
        if not isinstance(graph.inputs[name][i, j], str)
    ]
    found.sort()
    return [(graph[n], int(i), int(j), slopes[n][i, j]) for _, n, i, j in found[-1:] + found[:1]]


Cell = tuple[str, int, int]  # sheet, row, column


def differences(book: Book, cell: Cell, block: Block, i: int, j: int) -> tuple[float, float]:
    """The difference of a cell by a typed one, upwards and downwards: at a kink they differ."""
    held, here = float(book.graph.inputs[block.name][i, j]), book.clean.cell(*cell)
    steps = (STEP, -STEP)
    up, down = (book.edited({block[i, j]: held + h}).cell(*cell) for h in steps)
    return (up - here) / STEP, (here - down) / STEP


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(n, marks=[pytest.mark.slow] * (n in HEAVY))
        for n in workbooks.names()
        if n not in OF_COUNTS
    ],
)
def test_gradient_of_cells_equals_finite_differences(name: str) -> None:
    book, rng, n = default_book(name), np.random.default_rng(27), 0
    cells = formula_cells(book)
    for k in rng.permutation(len(cells)):
        if not isinstance(book.clean.cell(*cells[k]), float):
            continue
        slopes = cell_gradient.of_cell(book, cells[k])
        moved = [
            (slope, differences(book, cells[k], block, i, j))
            for block, i, j, slope in typed(book, slopes)
        ]
        smooth = [np.isclose(*both, rtol=1e-2, atol=1e-4) for _, both in moved]
        if not moved or not all(smooth):
            continue  # nothing typed moves it, or it has a step or a kink here
        for slope, (up, down) in moved:
            assert slope == pytest.approx((up + down) / 2, rel=1e-3, abs=1e-6), (cells[k], moved)
        n += 1
        if n == N_CELLS:
            return
    pytest.fail(f"only {n} cells have a gradient")


@pytest.mark.parametrize(
    ("name", "target"),
    [("zero-layer", "p[0,2]"), ("cat-sat", "logits[2,3]"), ("loss", "Sentence!C14")],
)
def test_command_prints_the_gradient_of_a_cell(name: str, target: str) -> None:
    found = told("gradient", name, "--target", target)
    assert any(np.any(slope) for slope in found["gradient"].values())
    done = cli("gradient", name, "--target", target, "--top", "3")
    assert done.code == 0 and "value × gradient" in done.out


@pytest.mark.parametrize(
    ("name", "target", "message"),
    [
        ("loss", None, "give a cell"),
        ("loss", "foo", "give a cell"),
        ("cat-sat", "Machine!A1", "name a cell that holds a number"),
        ("cat-sat", "Start!Z99", "is empty"),
        ("cat-sat", "logits[99,3]", "rows run from 0"),
    ],
)
def test_gradient_of_no_number_is_refused(name: str, target: str | None, message: str) -> None:
    done = cli("gradient", name, *([] if target is None else ["--target", target]))
    assert done.code == 2 and message in done.err
