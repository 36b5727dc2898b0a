"""The workbooks: every formula cell recomputed by other programs, and what a reader is owed."""

import ast
import re
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conftest import (
    GOLDEN,
    ROOT,
    assert_recomputes,
    default_book,
    needs,
    random_model,
)
from openpyxl import load_workbook

import workbooks
from cellformer.names import is_worksheet
from engine import Evaluator, InputError, ModelSpec, WordList
from engine.models import checkpoint
from engine.models.choosing import Sampling
from engine.models.generate import passage
from exporters import anymodel
from exporters.book import Book
from exporters.layout import PICK_ROW, PROMPT_COL, PROMPT_ROW
from exporters.story import Story, Suggestion
from exporters.transformer import assemble
from exporters.verify import (
    ENGINES,
    MAX_FORMULAS_CELLS,
    poison,
    read,
    read_values,
    recalculate_in_libreoffice,
    verify,
)
from exporters.xlsx import write

NAMES = workbooks.names()
TRANSFORMERS = [name for name in NAMES if not is_worksheet(name)]
N_EDITS = 120


@pytest.mark.parametrize("first", range(3))
def test_libreoffice_agrees_at_every_formula_cell(first: int, built, tmp_path: Path) -> None:
    """A third of the workbooks at a time: starting LibreOffice takes longer than most of them."""
    needs("libreoffice")
    assert_recomputes([built[name] for name in NAMES[first::3]], tmp_path / "wrong")


@pytest.mark.parametrize("engine", [engine for engine in ENGINES if engine != "libreoffice"])
@pytest.mark.parametrize("name", NAMES)
def test_every_engine_agrees_at_every_formula_cell(name: str, engine: str, built) -> None:
    needs(engine)
    report = verify(built[name], engine)
    if engine == "formulas" and default_book(name).n_formulas > MAX_FORMULAS_CELLS:
        assert report.skipped
        return
    assert report.agrees, report
    assert report.n_cells == default_book(name).n_formulas


def altered(path: Path, target: Path, sheet: str, old: bytes, new: bytes) -> Path:
    """A copy of a workbook with one cell written otherwise, and every cached value as before."""
    part = f"xl/worksheets/sheet{load_workbook(path).sheetnames.index(sheet) + 1}.xml"
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(target, "w") as copy:
        for name in source.namelist():
            data = source.read(name)
            if name == part:
                data, n = re.subn(old, new, data, count=1)
                assert n == 1
            copy.writestr(name, data)
    return target


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_notices_an_altered_formula(engine: str, built, tmp_path: Path) -> None:
    needs(engine)
    change = (b"<f>SUMPRODUCT", b"<f>2*SUMPRODUCT")
    path = altered(built["cat-sat"], tmp_path / "altered.xlsx", "Block 0", *change)
    report = verify(path, engine)
    assert not report.agrees
    assert report.largest > 1e-3


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_notices_an_altered_weight(engine: str, built, tmp_path: Path) -> None:
    """The cached values stay: an engine that trusted them would agree."""
    needs(engine)
    change = (b"<v>0.8</v></c>", b"<v>0.7</v></c>")
    path = altered(built["fluffy-creature"], tmp_path / "altered.xlsx", "Block 0", *change)
    assert not verify(path, engine).agrees


def test_poison_changes_every_cached_value(built, tmp_path: Path) -> None:
    for name in NAMES:
        path = built[name]
        poison(path, tmp_path / "wrong.xlsx")
        book = read(path)
        wrong = read_values(tmp_path / "wrong.xlsx", book)
        same = [cell for cell, value in book.formulas.items() if wrong[cell] == value]
        assert not same, name


def test_edits_in_the_sheet_and_in_the_engine_are_the_same_function(built, tmp_path: Path) -> None:
    """Random single-cell edits of weights, settings and tokens, recalculated in LibreOffice."""
    needs("libreoffice")
    book = default_book("cat-sat")
    graph = book.graph
    rng = np.random.default_rng(7)
    inputs = [b for b in graph if b.op is None and b.name not in ("position", "target", "rival")]
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
            word = book.labels["vocab"][token]
            cell, value = sheet_book["Play"].cell(PICK_ROW + 1, PROMPT_COL + i + 1), word
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
    again = write(default_book(name), tmp_path / "again.xlsx")
    assert again.read_bytes() == built[name].read_bytes()


@pytest.mark.parametrize("name", NAMES)
def test_the_file_holds_the_engine_s_values_bit_for_bit(name: str, built) -> None:
    book = default_book(name)
    graph = book.graph
    computed = load_workbook(built[name], data_only=True)
    entries = [e for sheet in book.sheets.values() for e in sheet.entries.values()]
    empty = [e for e in entries if e.formula is not None and book.clean.of(e) == ""]
    assert sum(v is None for v in read(built[name]).formulas.values()) == len(empty)
    for block in graph:
        place = book.places[block.name]
        for i, j in block.whole.cells():
            row, col = place.cell(i, j)
            found = computed[place.sheet].cell(row + 1, col + 1).value
            wanted = graph.values[block.name][i, j] if block.has(i, j) else ""
            assert found == (None if wanted == "" else wanted)


@pytest.mark.parametrize("name", NAMES)
def test_a_defined_name_covers_exactly_the_cells_of_its_block(name: str, built) -> None:
    book = default_book(name)
    written = load_workbook(built[name])
    assert set(written.defined_names) >= {*book.graph.blocks, *book.places}
    for block in (place.block for place in book.places.values()):
        ((sheet, area),) = written.defined_names[block.name].destinations
        rows = written[sheet][area.replace("$", "")]
        n = len(rows) * len(rows[0]) if isinstance(rows, tuple) else 1
        assert n == block.whole.size


@pytest.mark.parametrize("name", NAMES)
def test_the_reader_is_told_what_to_do(name: str, built) -> None:
    """Three edits with their cells; words to choose from; baseline, live and change; a chart."""
    assert len(default_book(name).tries) == 3
    written = load_workbook(built[name])
    links = [c.hyperlink.location for row in written["Start"] for c in row if c.hyperlink]
    for where in links:
        sheet, _, cell = where.rpartition("!")
        assert written[sheet.strip("'")][cell] is not None
    if name not in TRANSFORMERS:
        return
    play = written["Play"]
    lists = [rule for rule in play.data_validations.dataValidation if rule.type == "list"]
    words_to_choose = default_book(name).graph["tokens"].shape[0] + len(("target", "rival"))
    assert len(lists) == words_to_choose + len(("choose",))
    assert len(play._charts) == 1


def test_an_unknown_word_is_named_and_leaves_no_error(built, tmp_path: Path) -> None:
    needs("libreoffice")
    edited = load_workbook(built["cat-sat"])
    edited["Play"]["C5"] = "the catt sat"
    edited.save(tmp_path / "unknown.xlsx")
    (out,) = recalculate_in_libreoffice([tmp_path / "unknown.xlsx"], tmp_path / "out")
    sheets = load_workbook(out, data_only=True)
    assert sheets["Play"]["D11"].value == "unknown: catt"
    assert sheets["Play"]["D9"].value == "the"
    assert "unknown" in sheets["Play"]["C6"].value
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
    model = replace(random_model(spec), vocabulary=WordList(AWKWARD))
    words = passage(model, [5, 8, 16, 17, 14, 3, 1])
    story = Story("t: t", "s", ["a"], ["l"], [Suggestion("x", 0)])
    path = write(assemble("awkward", model, words, story), tmp_path / "awkward.xlsx")
    play = load_workbook(path, data_only=True)["Play"]
    found = [play.cell(PROMPT_ROW + 1, PROMPT_COL + k + 1) for k in range(7)]
    assert [c.value for c in found] == ["=1+1", "@cmd", "*", "?", "😀", "#N/A", "_\\x0041_"]
    for engine in ENGINES:
        if ENGINES[engine].installed():
            assert verify(path, engine).agrees, verify(path, engine)


FORMULAS_SET_THEM = ("tokens", "position", "target", "rival")  # inputs that follow what is typed
SHEETS = [
    "Start", "Play", "Switches", "Embedding", "Block 0", "Block 1", "Readout", "Heads", "Lens",
    "Attribution", "Trajectory", "Words", "Weights", "Map", "Index", "Check", "Sampling", "Source",
]  # fmt: skip
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


@pytest.mark.parametrize("many", [1, 2048])
def test_words_that_tie(many: int, tmp_path: Path, monkeypatch) -> None:
    """All logits alike: whatever ranks words finds the first of those that tie."""
    needs("ironcalc")
    monkeypatch.setattr("exporters.plan.MANY_WORDS", many)
    model = random_model(ModelSpec(5, 4, 4, n_layers=1, n_heads=1, d_head=2))
    model = replace(model, weights=dict(model.weights) | {"W_U": np.zeros((4, 5))})
    path = write(anymodel.build("tie", model, passage(model, [1, 2])), tmp_path / "tie.xlsx")
    report = verify(path, "ironcalc")
    assert report.agrees, report


def test_the_same_sheets_for_any_decoder(tmp_path: Path) -> None:
    """A gpt2, a llama, attention alone: every page, and every formula agrees in LibreOffice."""
    needs("libreoffice")
    alone = random_model(ModelSpec(7, 6, 8, n_layers=2, n_heads=2, d_head=3, position="learned"))
    models = {"attention-only": alone}
    models |= {name: checkpoint.load(GOLDEN / name) for name in ("gpt2", "llama")}
    paths = []
    for name, model in models.items():
        sampling = Sampling(temperature=0.8, top_k=5)
        book = anymodel.build(name, model, passage(model, [3, 1, 2], 6, sampling, 1))
        assert [s for s in book.sheets if s not in ("Weights 0", "Weights 1")] == SHEETS
        paths.append(write(book, tmp_path / f"{name}.xlsx"))
    assert_recomputes(paths, tmp_path / "wrong")


def test_a_cell_s_a1_formula_is_what_the_file_holds(built) -> None:
    book = default_book("cat-sat")
    graph = book.graph
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
        for i, j in place.block.whole.cells() if name not in FORMULAS_SET_THEM else ():
            cell = (place.sheet, *place.cell(i, j))
            assert cell not in taken, f"{name}[{i},{j}] on {taken[cell]}"
            taken[cell] = name


def any_book(spec: ModelSpec, ids: list[int]) -> Book:
    model = random_model(spec, 3)
    story = Story("a: b", "", [""], [""], [Suggestion("x", 0)])
    return assemble("any", model, passage(model, ids), story)


def test_a_block_wider_than_a_sheet_is_refused(tmp_path: Path) -> None:
    book = any_book(ModelSpec(d_vocab=3, d_model=2, n_ctx=1, n_layers=1, d_mlp=16_400), [0])
    with pytest.raises(InputError, match="W_in would reach"):
        write(book, tmp_path / "wide.xlsx")
    assert list(tmp_path.iterdir()) == []


def test_imports_run_one_way() -> None:
    """engine knows no exporter, exporters know no workbook."""
    forbidden = {"engine": {"exporters", "workbooks"}, "exporters": {"workbooks"}}
    for package, others in forbidden.items():
        for file in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.Import | ast.ImportFrom):
                    module = getattr(node, "module", None) or node.names[0].name
                    assert module.split(".")[0] not in others, file
