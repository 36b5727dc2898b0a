"""The workbooks: every formula cell recomputed by other programs, and what a reader is owed."""

import ast
import re
import zipfile
from pathlib import Path

import numpy as np
import pytest
from conftest import default_graph, needs, random_model
from openpyxl import load_workbook

import workbooks
from engine import Evaluator, InputError, ModelSpec
from exporters.book import Book
from exporters.pages import Story, Try, assemble
from exporters.verify import (
    ENGINES,
    poison,
    read,
    read_values,
    recalculate_in_libreoffice,
    verify,
)
from exporters.xlsx import write

NAMES = workbooks.names()
N_EDITS = 120


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", NAMES)
def test_every_engine_agrees_at_every_formula_cell(name: str, engine: str, built) -> None:
    needs(engine)
    report = verify(built[name], engine)
    assert report.agrees, report
    assert report.n_cells == workbooks.find(name).build(default_graph(name)).n_formulas


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_notices_an_altered_formula(engine: str, built, tmp_path: Path) -> None:
    needs(engine)
    altered = tmp_path / "altered.xlsx"
    with zipfile.ZipFile(built["cat-sat"]) as old, zipfile.ZipFile(altered, "w") as new:
        for part in old.namelist():
            data = old.read(part)
            if part == "xl/worksheets/sheet4.xml":
                data, n = re.subn(rb"<f>SUMPRODUCT", rb"<f>2*SUMPRODUCT", data, count=1)
                assert n == 1
            new.writestr(part, data)
    report = verify(altered, engine)
    assert not report.agrees
    assert report.largest > 1e-3


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_notices_an_altered_weight(engine: str, built, tmp_path: Path) -> None:
    """The cached values stay: an engine that trusted them would agree."""
    needs(engine)
    altered = tmp_path / "altered.xlsx"
    with zipfile.ZipFile(built["fluffy-creature"]) as old, zipfile.ZipFile(altered, "w") as new:
        for part in old.namelist():
            data = old.read(part)
            if part == "xl/worksheets/sheet4.xml":
                data, n = re.subn(rb"<v>0.8</v></c>", rb"<v>0.7</v></c>", data, count=1)
                assert n == 1
            new.writestr(part, data)
    assert not verify(altered, engine).agrees


def test_poison_changes_every_cached_value(built, tmp_path: Path) -> None:
    for name, path in built.items():
        poison(path, tmp_path / "wrong.xlsx")
        book = read(path)
        wrong = read_values(tmp_path / "wrong.xlsx", book)
        same = [cell for cell, value in book.formulas.items() if wrong[cell] == value]
        assert not same, name


def test_edits_in_the_sheet_and_in_the_engine_are_the_same_function(built, tmp_path: Path) -> None:
    """Random single-cell edits of weights, settings and tokens, recalculated in LibreOffice."""
    needs("libreoffice")
    graph = default_graph("cat-sat")
    book = workbooks.find("cat-sat").build(graph)
    rng = np.random.default_rng(7)
    inputs = [b for b in graph if b.op is None]
    expected, paths = [], []
    sheet_book = load_workbook(built["cat-sat"])
    (tmp_path / "edited").mkdir()
    for k in range(N_EDITS):
        block = inputs[int(rng.integers(len(inputs)))]
        i, j = (int(rng.integers(n)) for n in block.shape)
        place = book.places[block.name]
        row, col = place.cell(i, j)
        live = Evaluator(graph)
        if block.kind == "ids":
            token = int(rng.integers(graph.spec.d_vocab))
            live.set(block.name, i, j, token)
            cell, value = sheet_book[place.sheet].cell(row, col + 1), book.labels["vocab"][token]
        else:
            value = float(np.round(rng.uniform(0.1, 2), 3)) * (1 if block.kind == "setting" else -1)
            live.set(block.name, i, j, value)
            cell = sheet_book[place.sheet].cell(row + 1, col + 1)
        before, cell.value = cell.value, value
        paths.append(tmp_path / "edited" / f"{k}.xlsx")
        sheet_book.save(paths[-1])
        cell.value = before
        expected.append(live)
    for path, live in zip(
        recalculate_in_libreoffice(paths, tmp_path / "out"), expected, strict=True
    ):
        sheets = load_workbook(path, data_only=True)
        for name, place in book.places.items():
            block = graph[name]
            for i, j in block.whole.cells():
                if block.has(i, j):
                    row, col = place.cell(i, j)
                    found = sheets[place.sheet].cell(row + 1, col + 1).value
                    assert found == pytest.approx(live[name][i, j], abs=1e-9), (
                        path.name,
                        name,
                        i,
                        j,
                    )


@pytest.mark.parametrize("name", NAMES)
def test_two_builds_are_the_same_bytes(name: str, built, tmp_path: Path) -> None:
    again = write(workbooks.find(name).build(default_graph(name)), tmp_path / "again.xlsx")
    assert again.read_bytes() == built[name].read_bytes()


@pytest.mark.parametrize("name", NAMES)
def test_the_file_holds_the_engine_s_values_bit_for_bit(name: str, built) -> None:
    graph = default_graph(name)
    book = workbooks.find(name).build(graph)
    computed = load_workbook(built[name], data_only=True)
    assert all(value is not None for value in read(built[name]).formulas.values())
    for block in graph:
        place = book.places[block.name]
        for i, j in block.whole.cells():
            row, col = place.cell(i, j)
            found = computed[place.sheet].cell(row + 1, col + 1).value
            assert found == (graph.values[block.name][i, j] if block.has(i, j) else None)


@pytest.mark.parametrize("name", NAMES)
def test_a_defined_name_covers_exactly_the_cells_of_its_block(name: str, built) -> None:
    graph = default_graph(name)
    written = load_workbook(built[name])
    assert set(written.defined_names) == set(graph.blocks)
    for block in graph:
        ((sheet, area),) = written.defined_names[block.name].destinations
        rows = written[sheet][area.replace("$", "")]
        n = len(rows) * len(rows[0]) if isinstance(rows, tuple) else 1
        assert n == block.whole.size


@pytest.mark.parametrize("name", NAMES)
def test_the_reader_is_told_what_to_do(name: str, built) -> None:
    """Three edits with their cells; words to choose from; baseline, live and change; a chart."""
    story = workbooks.find(name).STORY
    assert len(story.tries) == 3
    written = load_workbook(built[name])
    links = [c.hyperlink.location for row in written["Start"] for c in row if c.hyperlink]
    for where in links:
        sheet, _, cell = where.rpartition("!")
        assert written[sheet.strip("'")][cell] is not None
    play = written["Play"]
    lists = [rule for rule in play.data_validations.dataValidation if rule.type == "list"]
    assert len(lists) == default_graph(name)["tokens"].shape[0]
    assert len(play._charts) == 1


@pytest.mark.parametrize("name", NAMES)
def test_each_suggested_edit_changes_the_probabilities(name: str) -> None:
    module = workbooks.find(name)
    graph = default_graph(name)
    for suggestion in module.STORY.tries:
        live = Evaluator(graph)
        if isinstance(suggestion.cell, int):
            word = re.search(r"`(\w+)`", suggestion.text)[1]
            live.set("tokens", suggestion.cell, 0, module.model().vocabulary.encode(word)[0])
        else:
            typed = re.search(r"Type (=SQRT\(2\)|-?[\d.]+)[,:]? ?", suggestion.text)[1].rstrip(".")
            live.set(*suggestion.cell, 2**0.5 if "SQRT" in typed else float(typed))
        gap = np.abs(live["probs"][-1] - graph.values["probs"][-1]).max()
        assert gap > 0.002, suggestion


def test_an_unknown_word_is_named_and_leaves_no_error(built, tmp_path: Path) -> None:
    needs("libreoffice")
    edited = load_workbook(built["cat-sat"])
    edited["Play"]["D6"] = "catt"
    edited.save(tmp_path / "unknown.xlsx")
    (out,) = recalculate_in_libreoffice([tmp_path / "unknown.xlsx"], tmp_path / "out")
    sheets = load_workbook(out, data_only=True)
    assert sheets["Play"]["D8"].value == "unknown: read as the"
    errors = [c.coordinate for s in sheets for row in s for c in row if c.data_type == "e"]
    assert not errors


AWKWARD = (
    "\x00",
    "_x0041_",
    "\x0b",
    "#N/A",
    "1",
    "=1+1",
    "+1",
    "-x",
    "@cmd",
    '"',
    "&amp;",
    "<b>",
    "'",
    "a\tb",
    "😀",
    "TRUE",
    "*",
    "?",
)


def test_any_text_of_a_vocabulary_stays_text(tmp_path: Path) -> None:
    """A layer-normed, biased, two-layer decoder whose words look like formulas and markup."""
    spec = ModelSpec(
        d_vocab=len(AWKWARD), d_model=3, n_ctx=8, n_layers=2, n_heads=2, d_head=2, d_mlp=5,
        activation="gelu_tanh", position="learned", norm="layer", final_norm=True, tied=True,
        bias=True,
    )  # fmt: skip
    graph = random_model(spec).graph([5, 8, 16, 17, 14, 3, 1])
    story = Story("t: t", "s", ["a"], ["l"], [Try("x", 0)])
    path = write(assemble("awkward", graph, {"vocab": AWKWARD}, story), tmp_path / "awkward.xlsx")
    play = load_workbook(path)["Play"]
    found = [play.cell(6, 3 + k) for k in range(7)]
    assert [c.value for c in found] == ["=1+1", "@cmd", "*", "?", "😀", "#N/A", "_\\x0041_"]
    for engine in ENGINES:
        if ENGINES[engine].installed():
            assert verify(path, engine).agrees, verify(path, engine)


SHAPES = [
    {},
    {"tied": True, "position": "learned"},
    {"n_layers": 1, "n_heads": 2, "d_head": 1},
    {"n_layers": 2, "d_mlp": 1, "final_norm": True},
    {"n_layers": 1, "n_heads": 1, "d_head": 2, "d_mlp": 3, "norm": "layer", "bias": True},
    {"n_layers": 1, "n_heads": 1, "d_head": 1, "d_mlp": 1, "d_model": 1, "tied": True},
]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("ids", [[1], [0, 2, 1]])
def test_any_decoder_becomes_a_workbook_that_recomputes(shape, ids, tmp_path: Path) -> None:
    """No block, attention only, MLP only, one token, one feature."""
    needs("ironcalc")
    book = any_book(ModelSpec(**({"d_vocab": 3, "d_model": 3, "n_ctx": 4} | shape)), ids)
    path = write(book, tmp_path / "any.xlsx")
    report = verify(path, "ironcalc")
    assert report.agrees, report
    if ENGINES["gnumeric"].installed():
        assert verify(path, "gnumeric").agrees


def test_a_cell_s_a1_formula_is_what_the_file_holds(built) -> None:
    graph = default_graph("cat-sat")
    book = workbooks.find("cat-sat").build(graph)
    written = load_workbook(built["cat-sat"])
    for name in ("blocks.0.attn.h0.scores", "blocks.0.attn.h0.z", "logits", "embed", "probs"):
        block = graph[name]
        place = book.places[name]
        row, col = place.cell(block.shape[0] - 1, 0)
        cell = written[place.sheet].cell(row + 1, col + 1)
        assert cell.value == graph.cell(name, block.shape[0] - 1, 0).a1(book)
    assert "SUMPRODUCT" not in graph.cell("blocks.0.attn.h0.z", 0, 0).a1(book)
    assert graph.cell("W_U", 0, 0).a1(book) is None


@pytest.mark.parametrize("shape", [*SHAPES, {"position": "sinusoidal", "tied": True}])
def test_nothing_stands_on_anything_else(shape: dict) -> None:
    book = any_book(ModelSpec(**({"d_vocab": 3, "d_model": 3, "n_ctx": 4} | shape)), [0, 1, 2, 0])
    taken: dict[tuple[str, int, int], str] = {}
    for sheet in book.sheets.values():
        taken |= {(sheet.name, *cell): "an entry" for cell in sheet.entries}
    for name, place in book.places.items():
        for i, j in place.block.whole.cells() if name != "tokens" else ():
            cell = (place.sheet, *place.cell(i, j))
            assert cell not in taken, f"{name}[{i},{j}] on {taken[cell]}"
            taken[cell] = name


def any_book(spec: ModelSpec, ids: list[int]) -> Book:
    graph = random_model(spec, 3).graph(ids)
    words = [f"w{i}" for i in range(spec.d_vocab)]
    return assemble("any", graph, {"vocab": words}, Story("a: b", "", [""], [""], [Try("x", 0)]))


def test_a_block_wider_than_a_sheet_is_refused(tmp_path: Path) -> None:
    book = any_book(ModelSpec(d_vocab=16_400, d_model=2, n_ctx=1, tied=True), [0])
    with pytest.raises(InputError, match="W_E would reach"):
        write(book, tmp_path / "wide.xlsx")
    assert list(tmp_path.iterdir()) == []


def test_imports_run_one_way() -> None:
    """engine knows no exporter, exporters know no workbook."""
    root = Path(__file__).parent.parent
    forbidden = {"engine": {"exporters", "workbooks"}, "exporters": {"workbooks"}}
    for package, others in forbidden.items():
        for file in (root / package).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.Import | ast.ImportFrom):
                    module = getattr(node, "module", None) or node.names[0].name
                    assert module.split(".")[0] not in others, file
