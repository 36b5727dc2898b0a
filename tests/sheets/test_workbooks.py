"""The workbooks: every formula cell recomputed by other programs, and what a reader is owed."""

import re
import zipfile
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import groupby
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import readers
import thin
from conftest import (
    EVERY_ENGINE,
    THIN,
    CellAt,
    InIronCalc,
    assert_agrees,
    default_book,
    golden_models,
    in_tiers,
    libreoffice_after,
    libreoffice_shows,
    needs,
    random_model,
)
from corners import corner
from hyperformula import Answer, recompute
from kinds import ASKS, kinds, one_of_each
from on_play import PROMPT_ROW
from openpyxl import load_workbook

from cellformer import workbooks
from cellformer.engine import Evaluator, InputError, Model, ModelSpec, WordList
from cellformer.engine.cells.access import Rect
from cellformer.engine.cells.values import CellError
from cellformer.engine.models import checkpoint
from cellformer.engine.models.choosing import Sampling
from cellformer.engine.models.generate import passage
from cellformer.exporters.assemble import model_workbook
from cellformer.exporters.assemble.transformer import assemble, wanted
from cellformer.exporters.checking.audit import audit
from cellformer.exporters.checking.programs import Recomputed
from cellformer.exporters.checking.verify import (
    MAX_FORMULAS_CELLS,
    FormulaCells,
    Verdict,
    compare,
    formula_cells,
    poison,
    read,
    read_values,
    verify,
    verify_all,
)
from cellformer.exporters.compose.address import position
from cellformer.exporters.compose.book import Book, Entry, Run, Sheet
from cellformer.exporters.compose.story import Story, Suggestion
from cellformer.exporters.file.reading import Value, WorkbookFile, related
from cellformer.exporters.file.xlsx import write
from cellformer.exporters.model.block_sheets import PROMPT_COL
from cellformer.exporters.model.plan import Limits
from cellformer.exporters.pages import diagram
from cellformer.names import is_worksheet

NAMES = [n for n in workbooks.names() if n != "shakespeare"]  # large: see test_shakespeare
TRANSFORMERS = [name for name in NAMES if not is_worksheet(name)]
SMALLER = [f"{THIN}{name}" if name in thin.THIN else name for name in NAMES]
# the slowest engine is asked about every kind of formula of these
IN_FORMULAS = ("one-layer", "sampling", "napkin")
CORNERS = ("gpt2", "llama")
N_EDITS, N_IN_LIBREOFFICE = 120, 4
OFFICE = pytest.mark.office


def drawn(name: str, model: Model) -> Book:
    """The workbook of anybody's decoder, which draws its words."""
    sampling = Sampling(temperature=0.8, top_k=5)
    return model_workbook.build(name, model, passage(model, [2, 0, 1], 4, sampling, 1))


@pytest.fixture(scope="module")
def decoders(tmp_path_factory) -> dict[str, Path]:
    """Workbooks of a gpt2, a llama, and attention alone, as anybody's checkpoints."""
    alone = random_model(ModelSpec(5, 4, 8, n_layers=2, n_heads=2, d_head=2, position="learned"))
    folder, paths = tmp_path_factory.mktemp("decoders"), {}
    corners = {name: checkpoint.load(corner(name, folder / name)) for name in CORNERS}
    for name, model in ({"attention-only": alone} | corners).items():
        book = drawn(name, model)
        always = [s for s in SHEETS if s != "Block 1" or model.spec.n_layers > 1]
        text = ["Text"] if isinstance(model.vocabulary, WordList) else []
        known = [*always, *text, "Built", "Digest"]
        assert [s for s in book.sheets if s in known] == known
        of_pages = {page.SHEET for page in wanted(book)}
        laid_out = {place.sheet for place in book.places.values()}
        assert set(book.sheets) == {"Start"} | of_pages | laid_out
        paths[name] = write(book, folder / f"{name}.xlsx")
    return paths


@pytest.fixture(scope="module")
def office(decoders, altered, awkward, tmp_path_factory, libreoffice) -> dict[str, Recomputed]:
    """What LibreOffice makes of workbooks that are not of the gallery, whose tests ask it too."""
    folder = tmp_path_factory.mktemp("office")
    return libreoffice_shows(decoders | altered | {"awkward": awkward}, folder / "office")


@pytest.fixture(scope="module")
def many_words(tmp_path_factory) -> dict[str, Path]:
    """Workbooks of a random model of more words than are many: all of it, its last block alone."""
    spec = ModelSpec(40, 4, 8, n_layers=2, n_heads=2, d_head=2, d_mlp=3, norm="layer", tied=True)
    model, folder = random_model(spec), tmp_path_factory.mktemp("many")
    given, few = passage(model, [7, 39, 1]), Limits(words=39)
    parts: dict[str, tuple[str, ...]] = {"many words": (), "their last block": ("blocks.1",)}
    return {
        name: write(
            model_workbook.build(name, model, given, live, limits=few), folder / f"{name}.xlsx"
        )
        for name, live in parts.items()
    }


@pytest.fixture(scope="module")
def in_javascript(built, decoders, many_words, awkward) -> dict[str, WorkbookFile]:
    """What HyperFormula recomputes and what SheetJS and exceljs read, by name."""
    others = decoders | many_words | {"awkward": awkward}
    gallery = {name: built.file(name) for name in SMALLER}
    return gallery | {name: WorkbookFile(path) for name, path in others.items()}


@pytest.fixture(scope="module")
def hyper(in_javascript, altered, hyperformula) -> dict[str, Answer]:
    """What HyperFormula is asked here, in one start, by the names of the files."""
    files = [*in_javascript.values(), *map(WorkbookFile, altered.values())]
    answers = recompute(files)
    return {file.path.name: answer for file, answer in zip(files, answers, strict=True)}


@pytest.mark.parametrize("name", ["cat-sat", "loss", "napkin"])
def test_charts_keep_what_their_cells_show(name: str, built) -> None:
    """A program that does not recompute draws them all the same, with words as words."""
    with zipfile.ZipFile(built[name]) as archive:
        charts = [archive.read(part) for part in archive.namelist() if "/charts/chart" in part]
    assert charts
    for chart in charts:
        kept = [int(n) for n in re.findall(rb'<c:ptCount val="(\d+)"', chart)]
        n_series = chart.count(b"<c:ser>")
        assert len(kept) >= 2 * n_series and min(kept) > 0
    if name == "cat-sat":
        assert any(b"<c:cat><c:strRef>" in chart and b"<c:v>mat</c:v>" in chart for chart in charts)


@pytest.mark.slow
@pytest.mark.parametrize("name", thin.THIN)
def test_thin_workbooks_have_every_kind_of_formula(name: str, built, tmp_path: Path) -> None:
    """But for those that only long sentences have, which test_attention recomputes."""
    found = kinds(built.file(name))
    assert len(found) > 10
    found -= kinds(built.file(f"{THIN}{name}"))
    if found:
        found -= kinds(WorkbookFile(write(thin.beyond_the_screen(), tmp_path / "long.xlsx")))
    assert not found


@pytest.mark.slow
@pytest.mark.parametrize("name", CORNERS)
def test_corner_workbooks_have_every_kind_of_formula(name: str, decoders, tmp_path: Path) -> None:
    """And the whole recomputes: two layers, llama's four heads that share two keys."""
    needs("ironcalc")
    path = write(drawn(name, golden_models()[name]), tmp_path / "whole.xlsx")
    assert verify(path, "ironcalc").agrees
    found = kinds(WorkbookFile(path))
    assert len(found) > 10
    assert not found - kinds(WorkbookFile(decoders[name]))


@pytest.mark.parametrize("name", in_tiers(NAMES))
def test_workbooks_keep_excels_rules(name: str, built) -> None:
    assert audit(built[name]) == []


@pytest.mark.parametrize("name", SMALLER)
def test_gnumeric_agrees_at_every_formula_cell(name: str, built, gnumeric) -> None:
    """IronCalc and LibreOffice are asked in `test_gallery`, before they make edits."""
    report = verify(built.formula_cells(name), "gnumeric")
    assert report.agrees, report
    assert report.n_cells == default_book(name).n_formulas


@pytest.mark.parametrize("name", IN_FORMULAS)
def test_formulas_agrees_at_every_kind_of_formula(
    name: str, built, tmp_path: Path, formulas
) -> None:
    """It takes 5 ms for each cell, so here it computes one of each kind, from values that stand in
    the file; in `test_checkpoints`, a decoder's cells one after another, from wrong values."""
    path = one_of_each(built.file(name), tmp_path / "kinds.xlsx")
    assert kinds(WorkbookFile(path)) == kinds(built.file(name)) - {ASKS}
    report = verify(path, "formulas")
    assert report.agrees, report


OTHERS = ("attention-only", "gpt2", "llama", "many words", "their last block", "awkward")
# Formualizer's MATCH takes numbers that differ by 1E-12 as equal, and so the ranks of words that
# tie; its EXACT of a range looks at one cell.
DIFFERS_IN_FORMUALIZER = {"fluffy-creature": "Sampling!C14", "many words": "Play!K19"}


@pytest.mark.parametrize("name", in_tiers(sorted({*NAMES} - {"shakespeare"})))
def test_formualizer_agrees_at_every_formula_cell(name: str, built, formualizer) -> None:
    report = verify(built.formula_cells(name), "formualizer")
    assert report.n_cells == default_book(name).n_formulas
    where = DIFFERS_IN_FORMUALIZER.get(name)
    assert (where in report.where) if where else report.agrees, report


@pytest.mark.parametrize("name", OTHERS)
def test_formualizer_agrees_about_other_models(name: str, in_javascript, formualizer) -> None:
    report = verify(formula_cells(in_javascript[name]), "formualizer")
    where = DIFFERS_IN_FORMUALIZER.get(name)
    assert (where in report.where) if where else report.agrees, report


FAULTS = {
    "sampling": "it has no function RANK",
    f"{THIN}learn": "it computes no cell of a circle",
    f"{THIN}microgpt": "it computes no cell of a circle",
    f"{THIN}reward": "it computes no cell of a circle",
}


@pytest.mark.parametrize("name", [*SMALLER, *OTHERS])
def test_hyperformula_agrees_at_every_formula_cell(name, in_javascript, hyper, built) -> None:
    """Where it has every function, and no cells wait for each other: it has no RANK."""
    file = in_javascript[name]
    answer = hyper[file.path.name]
    assert answer.fault == FAULTS.get(name, "")
    if not answer.fault:
        cells = built.formula_cells(name) if name in SMALLER else formula_cells(file)
        report = compare("hyperformula", cells, answer.values)
        assert report.agrees, report


def test_readers_in_javascript_find_what_ours_finds(in_javascript, javascript_readers) -> None:
    """SheetJS and exceljs: every value, number for number, and every formula."""
    files = {file.path: file for file in in_javascript.values()}
    found = list(readers.read(list(files)))
    assert len(found) == 2 * len(files)
    for path, both in groupby(found, lambda reading: reading.file):
        cells = readers.ours(files[path])
        for reading in both:
            different = readers.differing(cells, reading)
            assert not different, (path.stem, reading.reader, different[:5])


@pytest.mark.slow
def test_formulas_is_not_asked_about_many_cells(built) -> None:
    assert default_book("dialogue-game").n_formulas > MAX_FORMULAS_CELLS
    assert verify(built.formula_cells("dialogue-game"), "formulas").skipped


@pytest.mark.slow
def test_the_largest_is_not_bulky(built) -> None:
    assert built["dialogue-game"].stat().st_size < 6_000_000


EACH = [  # those that are asked unless one is named
    pytest.param(name, marks=() if name == "ironcalc" else OFFICE) for name in EVERY_ENGINE
]


def with_one_other(path: Path, target: Path, sheet: str, old: bytes, new: bytes) -> Path:
    """A copy of a workbook with one cell written otherwise, and every cached value as before."""
    part = WorkbookFile(path).parts[sheet]
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(target, "w") as copy:
        for name in source.namelist():
            data = source.read(name)
            if name == part:
                data, n = re.subn(old, new, data, count=1)
                assert n == 1
            copy.writestr(name, data)
    return target


ALTERED = {
    "a formula": (rb"<f>IFERROR\(EXP\(", b"<f>IFERROR(2*EXP("),
    "a weight": (b"<v>0.2</v></c>", b"<v>0.7</v></c>"),
}


@pytest.fixture(scope="module")
def altered(built, tmp_path_factory) -> dict[str, Path]:
    """Copies of a workbook of which one formula, or one weight, is another."""
    folder, book = tmp_path_factory.mktemp("altered"), built["attention-by-columns"]
    return {
        what: with_one_other(book, folder / f"{what}.xlsx", "Pattern", *change)
        for what, change in ALTERED.items()
    }


def asked(engine: str, path: Path, request: pytest.FixtureRequest) -> Verdict:
    """What an engine says of a file; some have been asked about all files at once."""
    needs(engine)
    if engine == "hyperformula":
        return compare(engine, read(path), request.getfixturevalue("hyper")[path.name].values)
    if engine != "libreoffice":
        return verify(path, engine)
    book, shown = read(path), request.getfixturevalue("office")[path.stem]
    return compare(engine, book, read_values(shown, book))


@pytest.mark.parametrize("engine", EACH)
def test_every_engine_notices_an_altered_formula(engine: str, altered, request) -> None:
    report = asked(engine, altered["a formula"], request)
    assert not report.agrees
    assert report.largest > 1e-3


@pytest.mark.parametrize("engine", EACH)
def test_every_engine_notices_an_altered_weight(engine: str, altered, request) -> None:
    """The cached values stay: an engine that trusted them would agree."""
    assert not asked(engine, altered["a weight"], request).agrees


@pytest.mark.parametrize("name", in_tiers(SMALLER))
def test_poison_changes_every_cached_value(name: str, built, tmp_path: Path) -> None:
    poison(built[name], tmp_path / "wrong.xlsx")
    book = built.formula_cells(name)
    wrong = read_values(WorkbookFile(tmp_path / "wrong.xlsx"), book)
    same = [cell for cell, value in book.formulas.items() if wrong[cell] == value]
    assert not same


@cache
def every_part() -> Book:
    """The workbook of a small decoder that has whatever a block can have."""
    spec = ModelSpec(
        d_vocab=5, d_model=3, n_ctx=4, n_layers=1, n_heads=2, d_head=2, d_mlp=2, norm="layer",
        bias=True, final_norm=True, position="learned",
    )  # fmt: skip
    return any_book(spec, [0, 2, 1])


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> Path:
    return write(every_part(), tmp_path_factory.mktemp("small") / "small.xlsx")


@cache
def edits() -> list[tuple[dict[CellAt, float | str], Evaluator]]:
    """Random edits of one cell each: what is typed where, and the engine after it."""
    book = every_part()
    graph = book.graph
    rng = np.random.default_rng(7)
    inputs = [b for b in graph if b.kind in ("weight", "setting") or b.name == "prompt.pick"]
    found = []
    for _ in range(N_EDITS):
        block = inputs[int(rng.integers(len(inputs)))]
        i, j = (int(rng.integers(n)) for n in block.shape)
        live = Evaluator(graph)
        value: float | str
        if block.name == "prompt.pick":
            value = book.labels["vocab"][int(rng.integers(len(book.labels["vocab"])))]
        else:
            value = float(np.round(rng.uniform(0.1, 2), 3)) * (1 if block.kind == "setting" else -1)
        live.set(block.name, i, j, value)
        found.append(({book.cell(block.name, i, j): value}, live))
    return found


@cache
def cells_of_blocks() -> dict[str, list[tuple[CellAt, int, int]]]:
    """Where every cell of every block stands."""
    book = every_part()
    return {
        block.name: [
            (book.cell(block.name, i, j), i, j) for i, j in block.whole.cells() if block.has(i, j)
        ]
        for block in book.graph
    }


def assert_shows(shown: Callable[[CellAt], Value], live: Evaluator) -> None:
    """Every cell of every block shows what the engine has."""
    for name, cells in cells_of_blocks().items():
        values = live[name]
        for cell, i, j in cells:
            found, value = shown(cell), values[i, j]
            if isinstance(value, str):
                assert (found or "") == value, (name, i, j)
            else:
                assert isinstance(found, int | float), (name, i, j)
                assert abs(found - value) <= 1e-9, (name, i, j)


@pytest.mark.slow
def test_random_edits_in_ironcalc_equal_the_engine(small) -> None:
    """Random single-cell edits of weights, settings and tokens, recomputed in IronCalc."""
    sheet = InIronCalc(small)
    for cells, live in edits():
        with sheet.typed(cells):
            assert_shows(sheet.__getitem__, live)


def test_random_edits_in_libreoffice(small, tmp_path: Path, libreoffice) -> None:
    tried = edits()[:N_IN_LIBREOFFICE]
    files = libreoffice_after(small, [cells for cells, _ in tried], tmp_path / "office")
    for file, (_, live) in zip(files, tried, strict=True):
        assert_shows(lambda cell, file=file: file[cell[0]][cell[1:]], live)


@pytest.mark.parametrize("name", in_tiers(SMALLER))
def test_two_builds_are_the_same_bytes(name: str, built, tmp_path: Path) -> None:
    again = write(default_book.__wrapped__(name), tmp_path / "again.xlsx")
    assert again.read_bytes() == built[name].read_bytes()


@pytest.mark.parametrize("name", in_tiers(NAMES))
def test_file_holds_the_engine_values(name: str, built) -> None:
    book, file = default_book(name), built.file(name)
    graph = book.graph
    empty = [
        (sheet.name, at)
        for sheet in book.sheets.values()
        for at, entry in sheet.entries.items()
        if entry.formula is not None and book.clean.cell(sheet.name, *at) in ("", None)
    ]
    formulas = built.formula_cells(name).formulas
    assert len(formulas) == book.n_formulas
    assert sum(value is None for value in formulas.values()) == len(empty)
    for block in graph:
        place, values = book.places[block.name], graph.values[block.name].tolist()
        shown = file[place.sheet].values
        for i, j in block.whole.cells():
            value = values[i][j] if block.has(i, j) else ""
            found = shown.get(place.cell(i, j))
            assert found == (None if value == "" else value)  # an empty text is written as nothing


@pytest.mark.parametrize("name", in_tiers(NAMES))
def test_defined_names_cover_their_blocks(name: str, built) -> None:
    book, file = default_book(name), built.file(name)
    named = {name for name, place in book.places.items() if place.named}
    assert set(file.names) >= named
    assert not set(file.names) & (set(book.places) - named)
    assert set(book.places) >= set(book.graph.blocks)
    for block in (place.block for name, place in book.places.items() if name in named):
        ((sheet, area),) = file.names[block.name]
        first, _, last = area.partition(":")
        (top, left), (bottom, right) = position(first), position(last or first)
        assert (bottom + 1 - top) * (right + 1 - left) == block.whole.size
        assert (sheet, top, left) == book.cell(block.name, 0, 0)


@pytest.mark.parametrize("name", in_tiers(NAMES))
def test_workbooks_suggest_three_edits(name: str, built) -> None:
    """Three edits with their cells; words to choose from; baseline, live and change; a chart."""
    assert len(default_book(name).suggestions) == 3
    parts = built.file(name).parts
    with zipfile.ZipFile(built[name]) as archive:
        start = ElementTree.fromstring(archive.read(parts["Start"]))
        for link in start.iterfind("{*}hyperlinks/{*}hyperlink"):
            sheet, _, cell = link.attrib["location"].rpartition("!")
            assert sheet.strip("'") in parts and position(cell)
        if name not in TRANSFORMERS:
            return
        play = ElementTree.fromstring(archive.read(parts["Play"]))
        (drawing,) = related(archive, parts["Play"], "/drawing").values()
        assert len(related(archive, drawing, "/chart")) == 1
    rules = play.iterfind("{*}dataValidations/{*}dataValidation")
    lists = [at for rule in rules if rule.get("type") == "list" for at in rule.get("sqref").split()]
    words_to_choose = default_book(name).graph["tokens"].shape[0] + len(("target", "rival"))
    assert len(lists) == words_to_choose + len(("choose",))


def test_unknown_word_is_reported(built, tmp_path: Path, libreoffice) -> None:
    unknown = {("Play", 4, 2): "the catt sat"}
    (file,) = libreoffice_after(built["cat-sat"], [unknown], tmp_path / "office")
    assert file["Play"]["D36"] == "unknown: catt"
    assert file["Play"]["D34"] == "?"
    assert "unknown" in file["Play"]["C6"]
    assert not [sheet for sheet in file if file[sheet].errors]


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


class AnyTexts(WordList):
    """A vocabulary of texts that a tokenizer of pieces may have, white space among them."""

    def _whole(self, word: str) -> bool:
        return True


AWKWARD_STORY = Story("t: t", "s", ["a"], ["l"], [Suggestion("x", 0)])
SPELLED = ["=1+1", "@cmd", "*", "?", "😀", "#N/A", "_\\x0041_"]


@pytest.fixture(scope="module")
def awkward(tmp_path_factory) -> Path:
    """A layer-normed, biased decoder whose words look like formulas and markup."""
    spec = ModelSpec(
        d_vocab=len(AWKWARD), d_model=2, n_ctx=8, n_layers=1, n_heads=1, d_head=1, d_mlp=1,
        activation="gelu_tanh", position="learned", norm="layer", final_norm=True, tied=True,
        bias=True,
    )  # fmt: skip
    model = replace(random_model(spec), vocabulary=AnyTexts(AWKWARD))
    words = passage(model, [5, 8, 16, 17, 14, 3, 1])
    folder = tmp_path_factory.mktemp("awkward")
    return write(assemble("awkward", model, words, AWKWARD_STORY), folder / "awkward.xlsx")


@pytest.mark.parametrize("engine", EACH)
def test_awkward_words_stay_text(engine: str, awkward, request, tmp_path: Path) -> None:
    """The slowest engine gets one formula of each kind, for each of the texts and ids."""
    play, path = WorkbookFile(awkward)["Play"], awkward
    found = [play[PROMPT_ROW, PROMPT_COL + k] for k in range(len(SPELLED))]
    assert found == SPELLED
    assert not any(isinstance(text, CellError) for text in found)
    if engine == "formulas":
        path = one_of_each(WorkbookFile(awkward), tmp_path / "kinds.xlsx")
        assert kinds(WorkbookFile(path)) == kinds(WorkbookFile(awkward)) - {ASKS}
    report = asked(engine, path, request)
    assert report.agrees, report


LIKE_ESCAPES = ("_x0041_", "_x0041_x0042_", "_x005F_", "<r><t>x</t></r>", " a_x0009_ ", "a_x00")


def test_texts_like_escapes(tmp_path: Path) -> None:
    """By IronCalc and our reader, by SheetJS and exceljs where they are installed, and by openpyxl,
    which drops every x005F_."""
    sheet = Sheet("Texts", {(k, 0): Entry(x, "text") for k, x in enumerate(LIKE_ESCAPES)})
    sheet.runs.append(Run(Rect(0, len(LIKE_ESCAPES), 1, 2), "label", LIKE_ESCAPES))
    path = write(Book("texts", sheets={"Texts": sheet}), tmp_path / "texts.xlsx")
    opened, engine = load_workbook(path)["Texts"], InIronCalc(path)
    others = [found.cells for found in readers.read([path])] if readers.installed() else []
    for row, text in enumerate(LIKE_ESCAPES):
        for col in (0, 1):
            assert WorkbookFile(path)["Texts"][row, col] == text
            assert opened.cell(row + 1, col + 1).value == text.replace("x005F_", "")
            assert engine["Texts", row, col] == text
            assert [cells["Texts", row, col] for cells in others] == [(text, None)] * len(others)


SHEETS = [  # some that every decoder has, in their order; a new page needs no place here
    "Start", "Machine", "Play", "Switches", "Embedding", "Block 0", "Block 1", "Readout", "Heads",
    "Lens", "Attribution", "Weights", "Map", "Glossary", "Index", "Check",
    "Sampling", "Source",
]  # fmt: skip
SHAPES = [
    {},
    {"tied": True, "position": "learned"},
    {"n_layers": 1, "n_heads": 2, "d_head": 1},
    {"n_layers": 2, "d_mlp": 1, "final_norm": True},
    {"n_layers": 1, "n_heads": 1, "d_head": 2, "d_mlp": 3, "norm": "layer", "bias": True},
    {"n_layers": 1, "n_heads": 1, "d_head": 1, "d_mlp": 1, "d_model": 1, "tied": True},
]


ONE, THREE = (1,), (0, 2, 1)
# of a shape with one token, and with three; the second engine is asked about as many as have every
# kind of formula of all
ENGINES_AND_DECODERS = [
    *(("ironcalc", k, ids) for k in range(len(SHAPES)) for ids in (ONE, THREE)),
    *(
        pytest.param("gnumeric", k, ids, marks=OFFICE)
        for k, ids in enumerate((ONE, THREE, THREE, THREE, ONE, ONE))
    ),
    pytest.param("gnumeric", len(SHAPES) - 1, THREE, marks=OFFICE),
]


@pytest.fixture(scope="module")
def any_decoder(tmp_path_factory) -> Callable[[int, tuple[int, ...]], FormulaCells]:
    """The formula cells of the workbook of a decoder of the k-th shape, written and read once."""

    @cache
    def cells(k: int, ids: tuple[int, ...]) -> FormulaCells:
        spec = ModelSpec(**({"d_vocab": 3, "d_model": 3, "n_ctx": 4} | SHAPES[k]))
        return read(write(any_book(spec, [*ids]), tmp_path_factory.mktemp("any") / "any.xlsx"))

    return cells


@pytest.mark.slow
@pytest.mark.parametrize(("engine", "k", "ids"), ENGINES_AND_DECODERS)
def test_random_decoders_recompute(engine, k, ids, any_decoder) -> None:
    """No block, attention only, MLP only, one token, one feature."""
    needs(engine)
    report = verify(any_decoder(k, ids), engine)
    assert report.agrees, report


@pytest.mark.parametrize("many", [1, 2048])
def test_words_that_tie(many: int, tmp_path: Path) -> None:
    """All logits alike: whatever ranks words finds the first of those that tie."""
    needs("ironcalc")
    model = random_model(ModelSpec(5, 4, 4, n_layers=1, n_heads=1, d_head=2))
    model = replace(model, weights=dict(model.weights) | {"W_U": np.zeros((4, 5))})
    book = model_workbook.build("tie", model, passage(model, [1, 2]), limits=Limits(words=many))
    path = write(book, tmp_path / "tie.xlsx")
    report = verify(path, "ironcalc")
    assert report.agrees, report


def test_decoders_in_libreoffice(decoders, office) -> None:
    """A gpt2, a llama, attention alone: every page, and every formula agrees in LibreOffice."""
    for name, path in decoders.items():
        assert_agrees(read(path), office[name])


def test_a1_formula_equals_the_file(built) -> None:
    book = default_book("cat-sat")
    graph = book.graph
    file = built.file("cat-sat")
    for name in ("blocks.0.attn.h0.scores", "blocks.0.attn.h0.z", "logits", "embed", "probs"):
        block = graph[name]
        place = book.places[name]
        cell = file[place.sheet].cell(place.cell(block.shape[0] - 1, 0))
        assert f"={cell.formula}" == graph.cell(name, block.shape[0] - 1, 0).a1(book)
    assert "SUMPRODUCT" not in graph.cell("blocks.0.attn.h0.z", 0, 0).a1(book)
    assert graph.cell("W_U", 0, 0).a1(book) is None


@pytest.mark.parametrize("shape", [*SHAPES, {"position": "sinusoidal", "tied": True}])
def test_no_overlap_on_sheets(shape: dict) -> None:
    book = any_book(ModelSpec(**({"d_vocab": 3, "d_model": 3, "n_ctx": 4} | shape)), [0, 1, 2, 0])
    taken: dict[tuple[str, int, int], str] = {}
    for sheet in book.sheets.values():
        taken |= {(sheet.name, *cell): "an entry" for cell in sheet.entries}
        for place, _ in sheet.regions:
            for i, j in place.block.whole.cells():
                cell = (place.sheet, *place.cell(i, j))
                assert cell not in taken, f"{place.block.name}[{i},{j}] on {taken[cell]}"
                taken[cell] = place.block.name
    for place in book.places.values():
        assert all((place.sheet, *place.cell(i, j)) in taken for i, j in place.block.whole.cells())


def any_book(spec: ModelSpec, ids: list[int]) -> Book:
    model = random_model(spec, 3)
    story = Story("a: b", "", [""], [""], [Suggestion("x", 0)])
    return assemble("any", model, passage(model, ids), story)


@pytest.mark.slow
def test_block_wider_than_a_sheet_is_refused(tmp_path: Path) -> None:
    book = any_book(ModelSpec(d_vocab=3, d_model=2, n_ctx=1, n_layers=1, d_mlp=16_400), [0])
    with pytest.raises(InputError, match="W_in would reach"):
        write(book, tmp_path / "wide.xlsx")
    assert list(tmp_path.iterdir()) == []


def test_engines_run_in_parallel(built, libreoffice, gnumeric) -> None:
    engines = ["ironcalc", "libreoffice", "gnumeric"]
    for engine in engines:
        needs(engine)
    told: list[tuple[str, str]] = []
    found = verify_all(built["attention-by-columns"], engines, lambda *what: told.append(what))
    assert [outcome.value.engine for outcome in found.values()] == engines
    assert all(outcome.value.agrees for outcome in found.values()), found
    assert all((engine, "600 s at most") in told for engine in engines)
    assert all((engine, "") in told for engine in engines)


@pytest.mark.parametrize(
    "name", ["gpt2", "lfm2", "mamba", "qwen3_next", "rwkv", "nemotron_h", "falcon_h1"]
)
def test_every_weight_is_of_one_step_of_the_map(name: str) -> None:
    """Whatever a layer has in place of attention."""
    model = golden_models()[name]
    book = model_workbook.build(name, model, passage(model, [1, 2], 3))
    steps = [parts for step, parts in diagram.steps(book) if step in book.graph.blocks]
    for weight in model.weights:
        assert sum(weight.startswith(parts) for parts in steps if parts) == 1, weight
