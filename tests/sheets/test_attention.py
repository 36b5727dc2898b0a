"""The sheet Attention: its step is the model's, of every head and word; each number follows those
above it; what names nothing gives a line; and all of it is on one screen."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import pytest
from conftest import (
    ERROR,
    InIronCalc,
    default_book,
    golden_models,
    libreoffice_after,
    needs,
    random_model,
)
from libreoffice import CellAt, places
from openpyxl import load_workbook
from thin import beyond_the_screen, thin_book

from cellformer import names
from cellformer.engine import ModelSpec
from cellformer.engine.cells.batch import CellName
from cellformer.engine.cells.block import Block
from cellformer.engine.models.generate import passage
from cellformer.engine.studies.lens import operands
from cellformer.exporters.assemble import model_workbook
from cellformer.exporters.checking.verify import FormulaCells, compare, read, read_values, verify
from cellformer.exporters.compose.book import Reading
from cellformer.exporters.file.xlsx import write
from cellformer.exporters.model import attention_heads
from cellformer.exporters.model.attention_choice import CHOICES, WORKINGS
from cellformer.exporters.model.attention_heads import Step
from cellformer.exporters.model.model_book import ModelBook


def golden_book(name: str, n_tokens: int = 6) -> ModelBook:
    model = golden_models()[name]
    ids = [(3 * k + 4) % model.spec.d_vocab for k in range(n_tokens)]
    return model_workbook.build(name, model, passage(model, ids, n_tokens))


def numbers(book: ModelBook, reading: Reading, name: str) -> list[list[Any]]:
    """The cells of a table of the sheet, row by row; of a vector's table with those below."""
    found = []
    for part in (f"attention.{name}", f"attention.{name}_below"):
        if part in book.shown:
            place = book.shown[part]
            rows, cols = place.size
            found += [
                [reading.cell(place.sheet, place.top + i, place.left + j) for j in range(cols)]
                for i in range(rows)
            ]
    return found


def assert_is_the_models(book: ModelBook, reading: Reading, step: Step, word: int) -> None:
    """Every number of the step on the sheet is that of the head's blocks at a word."""
    values = reading.values
    places = [int(p) for p in numbers(book, reading, "places")[0] if p != ""]
    n_seen = sum(step.pattern.has(word, k) for k in range(step.k.shape[0]))
    n_words = len(numbers(book, reading, "places")[0])
    assert len(places) == min(n_seen, n_words)

    def row(name: str) -> list[float]:
        return [x for x in numbers(book, reading, name)[0][:n_words] if x != ""]

    def columns(name: str) -> np.ndarray:
        rows = numbers(book, reading, name)
        return np.array([[x for x in line[:n_words] if x != ""] for line in rows], float)

    def near(found: object, block: str, *at: object) -> None:
        assert found == pytest.approx(values[block][at], abs=1e-9), (block, at)

    near(columns("query")[:, 0], step.q.name, word)
    near(columns("key").T, step.k.name, places)
    near(columns("value").T, step.v.name, places)
    near(row("share"), step.pattern.name, word, places)
    near(columns("written")[:, 0], step.mix.name, word)
    last = next(
        n for n in ("placed", "capped", "present", "scaled") if f"attention.{n}" in book.shown
    )
    near(row(last), step.scores.name, word, places)
    product = columns("query").T @ columns("key")
    assert row("score") == pytest.approx(product[0].tolist())
    exps, share, total = row("exp"), row("share"), numbers(book, reading, "sum")[0][0]
    assert [e / total for e in exps] == pytest.approx(share)
    assert columns("taken") == pytest.approx(columns("value") * share)
    if "attention.stream" in book.shown:
        assert step.result
        stream = numbers(book, reading, "stream")[0]
        near(stream, step.result.name, word, slice(len(stream)))
    head, check, _ = (line[0] for line in numbers(book, reading, "said"))
    assert str(head).startswith(f"In head {step.layer}.{step.number} (layer {step.layer}, ")
    assert str(check).startswith("Check: the model gets the same sum")


def choose(book: ModelBook, layer: object, head: object, word: object) -> Reading:
    cells = book.graph[CHOICES].area.cells
    return book.edited(dict(zip(cells, (layer, head, word), strict=True)))


def some(steps: Sequence[Step], n_tokens: int) -> Iterator[tuple[Step, int]]:
    """Some heads, each with some word, the first and the last among them."""
    for k, step in enumerate((steps[0], *steps[1:-1:3], steps[-1])):
        yield step, (n_tokens - 1, 0, n_tokens // 2)[k % 3]


# --- the step is the model's ---------------------------------------------------------------------

KINDS = ["bloom", "falcon-rw", "flan-t5", "bert", "mpnet", "lfm2", "deepseek_v3", "qwen3_next"]


@pytest.mark.parametrize("name", ["llama", "gemma2", "qwen3", "llama4"])
def test_every_number_is_that_of_the_blocks(name: str) -> None:
    """Of heads that share keys, turn, see a window or a chunk, or keep scores within a cap."""
    assert_steps_are_the_models(golden_book(name))


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_head_has_its_step(name: str) -> None:
    assert_steps_are_the_models(golden_book(name))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cat-sat", "dialogue-game", "induction", "new-york"])
def test_workbooks_have_the_step(name: str) -> None:
    assert_steps_are_the_models(book_of(name))


@pytest.mark.parametrize("name", ["gpt_oss", "gemma2", "qwen3"])
def test_words_that_have_no_column_are_one(name: str) -> None:
    """Of twelve words a column has those with the smallest shares; a sink takes one more."""
    model = golden_models()[name]
    long = replace(model, spec=replace(model.spec, n_ctx=16))
    words = passage(long, [(5 * k + 4) % model.spec.d_vocab for k in range(14)], 14)
    book = model_workbook.build(name, long, words)
    assert_steps_are_the_models(book)
    step = next(s for s in attention_heads.alike(book) if s.product.mask.window is None)
    reading = choose(book, step.layer, step.number, 13)
    shown = [int(p) for p in numbers(book, reading, "places")[0]]
    pattern = reading.values[step.pattern.name][13]
    assert shown == sorted(np.argsort(-pattern)[: len(shown)])
    assert numbers(book, reading, "others") == [[f"the other {14 - len(shown)}"]]
    share = numbers(book, reading, "share")[0]
    left_out = 1 - sum(pattern[shown]) - (share[-1] if step.sink else 0)
    assert share[len(shown)] == pytest.approx(left_out, abs=1e-9)
    assert sum(share) == pytest.approx(1)


@pytest.mark.slow
def test_a_head_of_many_is_read_in_libreoffice(libreoffice: None, tmp_path: Path) -> None:
    """It takes 29 options of CHOOSE; the heads are 30, in six layers."""
    spec = ModelSpec(d_vocab=5, d_model=4, n_ctx=4, n_layers=6, n_heads=5, d_head=2)
    model = random_model(spec)
    book = model_workbook.build("many", model, passage(model, [1, 2, 3, 4], 4))
    cells = of_sheet(read(write(book, tmp_path / "many.xlsx")))
    choices = [(0.0, 0.0, 3.0), (5.0, 4.0, 2.0), (4.0, 4.0, 3.0), (5.0, 0.0, 3.0)]
    typed = [{book.cell(CHOICES, k, 0): x for k, x in enumerate(one)} for one in choices]
    found = libreoffice_after(cells.path, typed, tmp_path / "office")
    for one, shown in zip(choices, found, strict=True):
        after = choose(book, *one)
        wanted = replace(cells, formulas={at: after.cell(*at) for at in cells.formulas})
        report = compare("libreoffice", wanted, read_values(shown, cells))
        assert report.agrees, (one, report)
        step = next(s for s in attention_heads.alike(book) if (s.layer, s.number) == one[:2])
        assert_is_the_models(book, after, step, int(one[2]))


@pytest.mark.parametrize("name", ["mamba", "rwkv"])
def test_models_without_queries_and_keys_have_no_such_sheet(name: str) -> None:
    assert "Attention" not in golden_book(name).sheets


def test_layers_without_such_heads_are_no_choice() -> None:
    """Those of lfm2 are convolutions: the line names the layers that have heads."""
    book = golden_book("lfm2")
    (layer,) = {step.layer for step in attention_heads.alike(book)}
    rule = book.sheets["Attention"].rules[book.cell(CHOICES, 0, 0)[1:]]
    assert rule["source"] == [str(layer)] and layer != 0
    reading = choose(book, 0, 0, 0)
    said = numbers(book, reading, "said")[0][0]
    assert said == f"‘0’ is not a layer with heads: type one of {layer}."


def assert_steps_are_the_models(book: ModelBook) -> None:
    heads = attention_heads.alike(book)
    for step, word in some(heads, heads[0].k.shape[0]):
        reading = choose(book, step.layer, step.number, word)
        assert_is_the_models(book, reading, step, word)


# --- as files --------------------------------------------------------------------------------

Files = Callable[[str], Path]


@cache
def book_of(name: str) -> ModelBook:
    """A workbook of the gallery, or of a golden model; shakespeare's with a few letters."""
    if name in golden_models():
        return golden_book(name)
    if name == "shakespeare":
        loaded = names.load(name)
        made = loaded.book(loaded.model, passage(loaded.model, loaded.ids[:4], 4))
    elif name == "beyond the screen":
        made = beyond_the_screen()
    else:
        made = default_book(name)
    assert isinstance(made, ModelBook)
    return made


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    """Each of them as a file, written once."""
    folder = tmp_path_factory.mktemp("written")

    @cache
    def file(name: str) -> Path:
        return write(book_of(name), folder / f"{name}.xlsx")

    return file


# --- on the screen ---------------------------------------------------------------------------

SHOWN = ["cat-sat", "dialogue-game", "induction", "new-york", "shakespeare"]
GOLDEN = ["llama", "gemma2", "qwen3"]
SCREEN = 1310, 565  # pixels of cells that LibreOffice's window of 1366 x 768 shows at 100 %


@pytest.mark.slow
@pytest.mark.parametrize("name", [*SHOWN, *GOLDEN])
def test_the_step_is_on_one_screen(
    libreoffice: None, files: Files, name: str, tmp_path: Path
) -> None:
    """As LibreOffice places cells: at most 28 rows, and 14 columns."""
    book = book_of(name)
    cells = [at for at in book.sheets["Attention"].entries if 1 < at[0] < WORKINGS]
    last = max(row for row, _ in cells), max(col for _, col in cells)
    assert last[0] < 28 and last[1] < 14
    *_, (_, right, bottom) = places(files(name), ("Attention", *last), tmp_path)
    assert right <= SCREEN[0] and bottom <= SCREEN[1]


def test_cat_sat_opens_on_it(files: Files) -> None:
    with ZipFile(files("cat-sat")) as file:
        workbook = file.read("xl/workbook.xml").decode()
    names = re.findall(r'<sheet name="([^"]+)"', workbook)
    (opened,) = re.findall(r'activeTab="(\d+)"', workbook)
    assert names[int(opened)] == "Attention"


# --- bad choices -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("k", "typed", "said"),
    [
        (0, 7.0, "‘7’ is not a layer with heads: type a whole number from 0 to 1."),
        (0, "first", "‘first’ is not a layer with heads: type a whole number from 0 to 1."),
        (1, -1.0, "‘-1’ is not a head of this layer: type a whole number from 0 to 3."),
        (1, 1.5, "‘1.5’ is not a head of this layer: type a whole number from 0 to 3."),
        (2, 99.0, "‘99’ is not the number of a word: type a whole number from 0 to 3."),
        (2, "", "‘’ is not the number of a word: type a whole number from 0 to 3."),
    ],
)
def test_a_choice_of_nothing_is_a_line_beside_its_cell(
    k: int, typed: float | str, said: str, thin: ModelBook, sheet: InIronCalc
) -> None:
    """The rest of the sheet is blank: no error, and no number of another word."""
    at = thin.cell(CHOICES, k, 0)
    if typed == "":
        sheet.model.clear_cell_contents(*sheet._at(at))
        sheet.model.evaluate()
        assert_blank(thin, sheet, k, said)
        sheet._type({at: 1.0})
    else:
        with sheet.typed({at: typed}):
            assert_blank(thin, sheet, k, said)


def assert_blank(book: ModelBook, sheet: InIronCalc, k: int, said: str) -> None:
    beside = book.shown["attention.said"]
    lines = [sheet["Attention", beside.top + j, beside.left] or "" for j in range(3)]
    assert lines[k] == said
    assert all(
        line == "" or "the query comes from the word" in str(line)
        for j, line in enumerate(lines)
        if j != k
    )
    for name in ("query", "key", "score", "scale", "scaled", "exp", "share", "value", "taken"):
        place = book.shown[f"attention.{name}"]
        for i, j in np.ndindex(*place.size):
            assert sheet["Attention", place.top + i, place.left + j] in ("", None), name
    assert not [at for at in formulas_of(book) if ERROR.fullmatch(str(sheet[at]))]


@pytest.fixture(scope="module")
def thin() -> ModelBook:
    made = thin_book(4)
    assert isinstance(made, ModelBook)
    return made


@pytest.fixture(scope="module")
def sheet(thin: ModelBook, tmp_path_factory: pytest.TempPathFactory) -> InIronCalc:
    return InIronCalc(write(thin, tmp_path_factory.mktemp("attention") / "thin.xlsx"))


def test_a_choice_of_nothing_blanks_what_follows_a_typed_number(
    thin: ModelBook, sheet: InIronCalc
) -> None:
    for typed in typed_over(thin):
        with sheet.typed({**typed, thin.cell(CHOICES, 0, 0): 9.0}):
            shown = [sheet[at] for at in formulas_of(thin) if at not in typed]
            assert not [x for x in shown if ERROR.fullmatch(str(x))], typed


def test_numbers_of_the_step_are_not_locked(thin: ModelBook, tmp_path: Path) -> None:
    page = load_workbook(write(thin, tmp_path / "a.xlsx"))["Attention"]
    for (_, row, col), *_ in map(list, typed_over(thin)):
        assert not page.cell(row + 1, col + 1).protection.locked
    assert page.protection.sheet and page.cell(1, 1).protection.locked


def formulas_of(book: ModelBook) -> list[CellAt]:
    entries = book.sheets["Attention"].entries.items()
    return [("Attention", *at) for at, entry in entries if entry.formula is not None]


# --- edits -----------------------------------------------------------------------------------


def edits_of_blocks(book: ModelBook) -> list[dict[CellName, float | str]]:
    """Two of the choices, three weights, the scale, and a word of the sentence."""
    steps, last = attention_heads.alike(book), book.passage.n_prompt - 1
    begun = [int(x) for x in book.graph.inputs[CHOICES][:, 0]]
    step = next(s for s in steps if [s.layer, s.number] == begun[:2])
    other = steps[0] if step is not steps[0] else steps[-1]
    weights = [_weight(book, block) for block in (step.q, step.k, step.v)]
    scale = operands(operands(step.product)["scale"])["x"]
    word: CellName = ("tokens", 0, 0)
    value: float | str = float(book.graph.inputs["tokens"][0, 0] + 1) if not _typed(book) else ""
    if _typed(book):
        word = ("prompt.pick", 0, 0)
        value = book.labels["vocab"][int(book.values["tokens"][0, 0]) + 1]
    return [
        {(CHOICES, 2, 0): float(max(last - 1, 0))},
        {(CHOICES, 0, 0): float(other.layer), (CHOICES, 1, 0): float(other.number)},
        *({(name, 0, 0): 0.75} for name in weights),
        {(scale.name, 0, 0): 0.5},
        {word: value},
    ]


def _typed(book: ModelBook) -> bool:
    return book.graph["tokens"].computed


def _weight(book: ModelBook, block: Block) -> str:
    """The matrix that a query, a key or a value is made of."""
    while True:
        for name, _, operand in block.operands:
            if name == "w" and operand.kind == "weight" and operand.shape[0] > 1:
                return operand.name
        block = block.operands[0][2]


def typed_over(book: ModelBook) -> list[dict[CellAt, float | str]]:
    """A score that beats all others, a scale that levels them, and a share; the first word's."""
    places = {name: book.shown[f"attention.{name}"] for name in ("score", "scale", "share")}
    scores, scale = numbers(book, book.clean, "score")[0], numbers(book, book.clean, "scale")[0][0]
    first = next(k for k, score in enumerate(scores) if score != "")
    highest = max(score for score in scores if score != "")

    def at(name: str, col: int = 0) -> CellAt:
        return "Attention", places[name].top, places[name].left + col

    return [
        {at("score", first): highest + 3 * scale},
        {at("scale"): 100 * scale},
        {at("share", first): 0.125},
    ]


class Shown:
    """What a program shows on the sheet, read as `numbers` reads it."""

    def __init__(self, cells: Mapping[CellAt, Any]) -> None:
        self.cells = cells

    def cell(self, *at: Any) -> Any:
        found = self.cells.get(at)
        return "" if found is None else found


def assert_follows(book: ModelBook, shown: Mapping[CellAt, Any], typed: CellAt) -> None:
    """After a number of the sheet is typed over, all that follows is computed from it."""
    found = Shown(shown)

    def row(name: str) -> np.ndarray:
        line = numbers(book, found, name)[0]  # type: ignore[arg-type]
        return np.array([x for x in line if x != ""], float)

    scale, score = float(numbers(book, found, "scale")[0][0]), row("score")  # type: ignore[arg-type]
    assert row("scaled") == pytest.approx(score / scale)
    exps, share = row("exp"), row("share")
    if typed[1] != book.shown["attention.share"].top:
        assert share == pytest.approx(exps / exps.sum())
    values = [
        [x for x in line if x != ""]
        for line in numbers(book, found, "value")  # type: ignore[arg-type]
    ]
    n = len(values[0])
    written = [x for (x,) in numbers(book, found, "written")]  # type: ignore[arg-type]
    assert written == pytest.approx([float(np.dot(share[:n], line)) for line in values])
    before = [x for (x,) in numbers(book, book.clean, "written")]
    assert written != pytest.approx(before, abs=1e-4)
    assert str(numbers(book, found, "said")[1][0]).startswith("You typed over a number below")  # type: ignore[arg-type]


def of_sheet(cells: FormulaCells) -> FormulaCells:
    only = {at: value for at, value in cells.formulas.items() if at[0] == "Attention"}
    return replace(cells, formulas=only)


def after_edits(
    book: ModelBook, cells: FormulaCells, every: Sequence[Mapping[CellAt, Any]], engine: str
) -> None:
    """What a program shows after each of the ten edits is right."""
    blocks, over = edits_of_blocks(book), typed_over(book)
    assert len(every) == len(blocks) + len(over) == 10
    for edit, shown in zip(blocks, every, strict=False):
        after = book.edited({book.graph[name][i, j]: x for (name, i, j), x in edit.items()})
        wanted = {at: after.cell(*at) for at in cells.formulas}
        report = compare(engine, replace(cells, formulas=wanted), dict(shown))
        assert report.agrees, (edit, report)
        assert wanted != cells.formulas
    for typed, shown in zip(over, every[len(blocks) :], strict=True):
        (at,) = typed
        assert_follows(book, {**shown, **typed}, at)


def all_typed(book: ModelBook) -> list[dict[CellAt, float | str]]:
    own = [{book.cell(*at): x for at, x in edit.items()} for edit in edits_of_blocks(book)]
    return [*own, *typed_over(book)]


OTHERS = ("libreoffice", "gnumeric", "formualizer")
PROGRAMS = ["ironcalc", *(pytest.param(one, marks=pytest.mark.office) for one in OTHERS)]


@pytest.mark.slow
@pytest.mark.parametrize("engine", PROGRAMS)
def test_programs_agree_beyond_the_screen(engine: str, files: Files) -> None:
    """Of a sentence, and of vectors, that are longer than what is shown."""
    needs(engine)
    assert verify(files("beyond the screen"), engine).agrees


@pytest.mark.slow
@pytest.mark.parametrize("name", [*SHOWN, *GOLDEN])
def test_ten_edits_in_ironcalc(files: Files, name: str) -> None:
    book, cells = book_of(name), of_sheet(read(files(name)))
    sheet, every = InIronCalc(cells.path), []
    for typed in all_typed(book):
        with sheet.typed(typed):
            every.append({at: sheet[at] for at in cells.formulas})
    after_edits(book, cells, every, "ironcalc")


@pytest.mark.slow
@pytest.mark.parametrize("name", [*SHOWN, *GOLDEN])
def test_ten_edits_in_libreoffice(
    libreoffice: None, files: Files, name: str, tmp_path: Path
) -> None:
    """From wrong values."""
    book, cells = book_of(name), of_sheet(read(files(name)))
    found = libreoffice_after(cells.path, all_typed(book), tmp_path / "office")
    after_edits(book, cells, [read_values(shown, cells) for shown in found], "libreoffice")
