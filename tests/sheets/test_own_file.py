"""A workbook of somebody's own, which the gallery does not have: analysed from its file alone."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from conftest import cli, told, typed

import cellformer as cf
from cellformer import workbooks
from cellformer.exporters.edits import edited
from cellformer.exporters.file.reading import WorkbookFile
from cellformer.f import ERF, EXP, MAX
from cellformer.names import is_worksheet

SIZES = (8, 16, 8, 1)
LAST = "layer.2.out[0,0]"


def weights() -> list[tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(0)
    return [
        (rng.normal(0, a**-0.5, (a, b)).round(3), rng.normal(0, 0.1, (1, b)).round(3))
        for a, b in pairwise(SIZES)
    ]


def scored(x: np.ndarray) -> float:
    """The network's answer, by numpy."""
    for k, (m, c) in enumerate(weights()):
        x = x @ m + c
        x = np.maximum(x, 0) if k < 2 else 1 / (1 + np.exp(-x))
    return float(x[0, 0])


INPUTS = np.array([[0.73, -1.17, -1.43, 0.64, 0.75, -0.96, 0.56, -0.29]])


@pytest.fixture(scope="module")
def file(tmp_path_factory) -> Path:
    """A network that scores a customer, as a script of a user's writes it."""
    w = cf.Workbook("scoring")
    ws = w.sheet("Score", "a customer's data above, the probability of default below")
    h = ws.typed("inputs", INPUTS)
    for k, (weight, bias) in enumerate(weights()):
        ws.heading(f"Layer {k}")
        m, c = ws.typed(f"layer.{k}.weights", weight), ws.typed(f"layer.{k}.bias", bias)
        pre = ws.computed(
            f"layer.{k}.pre",
            (1, m.shape[1]),
            lambda i, j, h=h, m=m, c=c: sum(
                (h[0, r] * m[r, j] for r in range(m.shape[0])), c[0, j]
            ),
        )
        h = ws.computed(
            f"layer.{k}.out",
            (1, m.shape[1]),
            lambda i, j, p=pre, k=k: MAX(p[i, j], 0) if k < 2 else 1 / (1 + EXP(-p[i, j])),
        )
    story = cf.Story(
        "scoring: a network that is no transformer", "", ["It scores a customer."], [], []
    )
    return Path(cf.write(w.done(story), tmp_path_factory.mktemp("own") / "scoring.xlsx"))


def test_trace_and_explain(file: Path) -> None:
    found = told("trace", file, "Score!B64")["cells"][0]
    assert found["cell"] == LAST and found["value"] == pytest.approx(scored(INPUTS), abs=1e-15)
    said = cli("explain", file, LAST).out
    assert "=IFERROR(1/(1+EXP(-B62)),0)" in said and "It reads B62 (layer.2.pre[0,0])." in said


def test_run_and_sweep(file: Path) -> None:
    other = INPUTS.copy()
    other[0, 0] = 2
    out = cli("run", file, "--set", "inputs[0,0]=2").out
    assert f"{scored(INPUTS):.6g}" in out and f"{scored(other):.6g}" in out
    ends = ("--from", "0.73", "--to", "2", "--steps", "2")
    points = told("sweep", file, "inputs[0,0]", "--target", LAST, *ends)["rows"]
    found = [point["shows"] for point in points]
    assert found == pytest.approx([scored(INPUTS), scored(other)], abs=1e-15)


def test_gradient(file: Path) -> None:
    found = told("gradient", file, "--target", LAST)["gradient"]["inputs"][0][3]
    up, down = INPUTS.copy(), INPUTS.copy()
    up[0, 3], down[0, 3] = 0.64 + 1e-6, 0.64 - 1e-6
    assert found == pytest.approx((scored(up) - scored(down)) / 2e-6, rel=1e-6)


def test_diff_lists_what_was_typed(file: Path, tmp_path: Path) -> None:
    assert "nothing differs" in cli("diff", file).out
    edited = typed(file, tmp_path / "edited.xlsx", {("Score", 4, 1): 2.0})
    (change,) = cf.read(edited).inputs
    assert (change.name, change.was, change.now) == ("inputs[0,0]", 0.73, 2.0)
    other = INPUTS.copy()
    other[0, 0] = 2
    live = cf.read(edited).live()
    assert live["layer.2.out"][0, 0] == pytest.approx(scored(other), abs=1e-15)


@pytest.mark.parametrize(
    ("cells", "told"),
    [
        ({("Score", 61, 1): 3.0}, "Score!B62 had a formula, and something else was typed over it"),
        ({("Score", 61, 1): "=B60+1"}, "formulas of Score!B62 were changed"),
        ({("Score", 61, 1): "=WEBSERVICE(B60)"}, "WEBSERVICE(), which cellformer cannot compute"),
    ],
)
def test_a_changed_formula_is_refused(file: Path, tmp_path: Path, cells, told: str) -> None:
    edited = typed(file, tmp_path / "edited.xlsx", cells)
    done = cli("trace", edited, LAST)
    assert done.code == 2 and told in done.err and done.err.count("\n") <= 3


def test_a_page_has_the_numbers_that_are_saved(file: Path, tmp_path: Path) -> None:
    edited = typed(file, tmp_path / "edited.xlsx", {("Score", 4, 1): 2.0})
    page = tmp_path / "page.html"
    assert cli("build", edited, "-o", page).code == 0 and page.stat().st_size > 50_000
    book = cf.build(edited)
    assert book.value("inputs", 0, 0) == 2.0 and cf.read(edited).book.value("inputs", 0, 0) == 0.73


def test_an_exercise_is_made_and_marked(file: Path, tmp_path: Path) -> None:
    asked, solved = tmp_path / "asked.xlsx", tmp_path / "solved.xlsx"
    assert cli("build", file, "--exercise", "-o", asked).code == 0
    assert cli("build", file, "--exercise", "--solved", "-o", solved).code == 0
    empty, full = cf.grade([asked, solved])
    assert full.score == len(full.exercises) > 0 and empty.score == 0


def test_erf_of_a_file(tmp_path: Path) -> None:
    w = cf.Workbook("bell")
    ws = w.sheet("Bell", "the error function")
    x = ws.typed("x", [[-0.5, 2.0]])
    y = ws.computed("y", (1, 2), lambda i, j: ERF(x[i, j]) / 2 - -(x[i, j] ** 2))
    path = cf.write(w.done(cf.Story("bell: a curve", "", [], [], [])), tmp_path / "bell.xlsx")
    read = cf.read(path).book
    assert read.graph.cell("y", 0, 0).formula == w.book.graph.cell("y", 0, 0).formula
    assert np.array_equal(read.values["y"], w.book.values["y"]) and y.shape == (1, 2)


def test_names_that_differ_only_in_case(tmp_path: Path) -> None:
    w = cf.Workbook("two")
    ws = w.sheet("Two", "a spreadsheet takes q and Q for one name")
    a, b = ws.typed("q", [[1.0]]), ws.typed("Q", [[3.0]])
    ws.computed("y", (1, 1), lambda i, j: a[0, 0] * b[0, 0])
    path = cf.write(w.done(cf.Story("two: names", "", [], [], [])), tmp_path / "two.xlsx")
    assert (
        "differ in more than capital letters" in cli("trace", path.name, "y[0,0]", cwd=tmp_path).err
    )


@pytest.mark.parametrize("name", ["attention-by-columns", "loss", "norms", "fact-lookup"])
def test_a_file_of_the_gallery_tells_the_same_without_its_name(name: str, tmp_path: Path) -> None:
    from cellformer.exporters.edits.rebuilding import rebuilt
    from cellformer.exporters.file.reading import WorkbookFile

    book = cf.build(name)
    read = rebuilt(WorkbookFile(cf.write(book, tmp_path / "file.xlsx")))
    assert read.graph.blocks.keys() == book.graph.blocks.keys()
    for block in book.graph:
        was, now = book.values[block.name], read.values[block.name]
        assert np.array_equal(was, now), block.name
        if block.computed:
            spelt = [f.formulas(f.graph[block.name]) for f in (book, read)]
            for i, j in block.whole.cells():
                a, b = (formula(i, j).replace("$", "") for formula in spelt)
                assert a == b, (block.name, i, j)


def test_a_file_is_not_written_over_by_default(tmp_path: Path) -> None:
    path = cf.write(cf.build("loss"), tmp_path / "mine.xlsx")
    before = path.read_bytes()
    assert cli("build", "mine.xlsx", cwd=tmp_path).code == 0
    assert (tmp_path / "mine-built.xlsx").is_file() and path.read_bytes() == before


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in workbooks.names() if is_worksheet(n)])
def test_any_workbook_of_worksheets_tells_its_edit(name: str, tmp_path: Path) -> None:
    """Read as if the gallery did not have it."""
    book = workbooks.find(name).book()
    typed = [
        b for b in book.graph if not b.computed and b.kind != "table" and b.name in book.places
    ]
    number = next((b for b in typed if isinstance(book.clean(b[0, 0]), float)), None)
    edits = {} if number is None else {(number.name, 0, 0): book.clean(number[0, 0]) + 1}
    path = cf.write(book, tmp_path / "mine.xlsx", edits=edits)
    if book.iterates:
        with pytest.raises(cf.InputError, match="keep their values"):
            edited.read(path, worksheets=lambda _: None)
        return
    found = edited.read(path, worksheets=lambda _: None)
    assert [cell.name for cell in found.inputs] == [f"{name}[0,0]" for name, _, _ in edits]
    assert not found.overwritten and not found.labels


def test_start_has_no_heading_without_lines(tmp_path: Path) -> None:
    w = cf.Workbook("mine")
    x = w.sheet("Sums", "a number, and its double").typed("x", [[2.0]])
    told = w.suggestion("Type 3.", {x[0, 0]: 3.0}, x[0, 0])
    path = cf.write(w.done(cf.Story("mine: a number", "", [], [], [told])), tmp_path / "m.xlsx")
    headings = [cell.value for at, cell in WorkbookFile(path)["Start"].cells.items() if at[1] == 0]
    assert "Sheets" in headings and "Three things to try" in headings
    assert "What this is" not in headings and "What to look at" not in headings
    assert cli("diff", path).code == 0
