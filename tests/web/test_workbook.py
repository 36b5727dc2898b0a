"""Workbooks to and from the page: exactly the edits, the same numbers, through LibreOffice too."""

import time
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import as_page
import numpy as np
import pytest
from conftest import THIN, cli, default_book, in_tiers, needs, random_edits, recomputed_in_ironcalc
from corners import corner
from hypothesis import given, settings
from hypothesis import strategies as st
from in_node import JavaScriptError, call
from libreoffice import Formula, office, save, typed_by_hand
from openpyxl import load_workbook

from cellformer import workbooks
from cellformer.engine import Evaluator
from cellformer.engine.cells.rounding import NEAR
from cellformer.engine.learning import policy
from cellformer.engine.models import checkpoint
from cellformer.engine.models.generate import passage
from cellformer.exporters.assemble import model_workbook
from cellformer.exporters.checking.audit import audit
from cellformer.exporters.checking.verify import formula_cells
from cellformer.exporters.compose.book import Book
from cellformer.exporters.edits import edited
from cellformer.exporters.file.reading import WorkbookFile
from cellformer.exporters.file.xlsx import write
from cellformer.exporters.model.plan import Limits
from cellformer.names import book as named_book
from cellformer.names import load
from cellformer.workbooks.reward import game, learning

pytestmark = pytest.mark.usefixtures("node")

At = tuple[str, int, int]
Edit = list[Any]  # a block's name, row, column and value
GAME = f"{THIN}dialogue-game"
SENTENCE = ["sentence", 0, 0, "<BOS> 3 chiama Paolo"]
LIKE_ALL = ("learn", "dialogue-game", "semantic-tiny", "tokenization", "norms")
THREE = [
    ["blocks.0.attn.h1.switch", 0, 0, 0.0],
    ["blocks.0.attn.h3.q", 2, 3, 1.5],
    ["blocks.1.attn.h2.W_Q", 0, 0, 5.0],
]
WORKSHEET = [["scores", 2, 1, -2.5], ["exps", 1, 3, 0.75]]


class Pages(dict[str, str]):
    """Pages of workbooks by name, written when they are asked for."""

    def __init__(self, folder: Path):
        self.folder = folder

    def __missing__(self, name: str) -> str:
        self[name] = as_page.write(default_book(name), self.folder / name)
        return self[name]


@pytest.fixture(scope="module")
def pages(tmp_path_factory) -> Pages:
    return Pages(tmp_path_factory.mktemp("pages"))


def read_back(page: str, path: Path) -> list[Edit]:
    found: list[Edit] = call("workbook.mjs", "read", page, str(path))["edits"]
    return found


def saved(page: str, path: Path, target: Path, edits: Sequence[Edit], shown: str) -> list[float]:
    """Save a workbook with edits; the values of a block that the page shows then."""
    found: list[float] = call("workbook.mjs", "save", page, str(path), str(target), edits, shown)[
        "values"
    ]
    return found


def as_dict(edits: Sequence[Edit]) -> dict[At, Any]:
    return {(name, i, j): value for name, i, j, value in edits}


# --- nothing edited ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", in_tiers(workbooks.names()))
def test_nothing_edited_nothing_found(name: str, pages, built) -> None:
    assert read_back(pages[name], built[name]) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ("learn", "dialogue-game", "semantic-tiny", "tokenization", "norms")
)
def test_nothing_found_in_what_libreoffice_saves(
    name: str, pages, built, tmp_path: Path, libreoffice
) -> None:
    assert read_back(pages[name], save(built[name], tmp_path / "saved.xlsx")) == []


def test_nothing_edited_nothing_changed(pages, built, tmp_path: Path) -> None:
    saved(pages["cat-sat"], built["cat-sat"], tmp_path / "same.xlsx", [], "logits")
    assert (tmp_path / "same.xlsx").read_bytes() == built["cat-sat"].read_bytes()


def test_sdk_finds_no_fault_in_what_a_page_saves(pages, built, tmp_path: Path, validator) -> None:
    edit = ["blocks.0.attn.h0.switch", 0, 0, 0.0]
    saved(pages["cat-sat"], built["cat-sat"], tmp_path / "edited.xlsx", [edit], "logits")
    assert validator(tmp_path / "edited.xlsx") == []


# --- there and back ---------------------------------------------------------------------------


class Trip:
    """A page's workbook with edits, and the values of a block that the page shows then."""

    def __init__(self, name: str, edits: Sequence[Edit], shown: str):
        self.name, self.edits, self.shown = name, edits, shown

    def go(self, page: str, built: Path, folder: Path) -> None:
        self.page, self.path = page, folder / f"{self.name}.xlsx"
        self.values = saved(page, built, self.path, self.edits, self.shown)

    @property
    def shape(self) -> tuple[int, int]:
        return default_book(self.name).graph[self.shown].shape

    def engine(self) -> np.ndarray:
        live = Evaluator(default_book(self.name).graph)
        for edit in self.edits:
            live.set(*edit)
        return live[self.shown]

    def in_file(self, file: Mapping[str, Any]) -> np.ndarray:
        """The block's values in a workbook."""
        place = default_book(self.name).places[self.shown]
        cells = [place.cell(i, j) for i, j in np.ndindex(*self.shape)]
        return np.array([file[place.sheet].values[at] for at in cells]).reshape(self.shape)


@pytest.fixture(scope="module")
def trips(pages, built, tmp_path_factory) -> dict[str, Trip]:
    folder = tmp_path_factory.mktemp("trips")
    game = Trip("dialogue-game", [*THREE, SENTENCE], "logits")
    sheet = Trip("attention-by-columns", WORKSHEET, "by_columns")
    for trip in (game, sheet):
        trip.go(pages[trip.name], built[trip.name], folder)
    return {trip.name: trip for trip in (game, sheet)}


EACH = pytest.mark.parametrize("name", ("dialogue-game", "attention-by-columns"))


@EACH
@pytest.mark.slow
def test_the_page_its_workbook_and_the_engine_show_the_same(name: str, trips) -> None:
    trip = trips[name]
    page = np.reshape(trip.values, trip.shape)
    np.testing.assert_allclose(page, trip.engine(), atol=1e-12, rtol=1e-12)
    np.testing.assert_allclose(trip.in_file(WorkbookFile(trip.path)), page, atol=1e-12, rtol=1e-12)


@EACH
@pytest.mark.slow
def test_its_workbook_keeps_the_rules(name: str, trips, tmp_path: Path) -> None:
    """Those of Excel; other programs compute what the page does; `diff` names the edits."""
    trip = trips[name]
    assert audit(trip.path) == []
    needs("ironcalc")
    recomputed_in_ironcalc(formula_cells(WorkbookFile(trip.path)), tmp_path)
    assert read_back(trip.page, trip.path) == in_order(trip)
    found = edited.read(trip.path, worksheets=named_book)
    assert found.values == as_dict(trip.edits) and found.labels == [] and found.added == []


def in_order(trip: Trip) -> list[Edit]:
    """Its edits in the order of the graph."""
    order = [*default_book(trip.name).graph.blocks]
    return sorted(trip.edits, key=lambda edit: order.index(edit[0]))


@EACH
@pytest.mark.slow
def test_round_trip_through_libreoffice(name: str, trips, tmp_path: Path, libreoffice) -> None:
    trip = trips[name]
    path = save(trip.path, tmp_path / "saved.xlsx")
    assert read_back(trip.page, path) == in_order(trip)
    shown = trip.in_file(WorkbookFile(path))
    np.testing.assert_allclose(shown, np.reshape(trip.values, trip.shape), atol=1e-12, rtol=1e-12)
    diff = cli("diff", path).out
    assert all(f"{block}[{i},{j}]" in diff for block, i, j, _ in trip.edits)
    assert "added" not in diff and "text or constant" not in diff


@EACH
@pytest.mark.slow
def test_opened_without_a_recalculation(name: str, trips, tmp_path: Path, libreoffice) -> None:
    """LibreOffice trusts the values in a file, and computes the formulas that have none."""
    trip = trips[name]
    (opened,) = typed_by_hand(trip.path, [{}], tmp_path / "opened")
    recomputed = WorkbookFile(save(trip.path, tmp_path / "saved.xlsx"))
    for sheet in WorkbookFile(trip.path):
        for at, value in recomputed[sheet].computed.items():
            shown = opened[sheet].values.get(at)
            if isinstance(value, float) and isinstance(shown, float):
                assert shown == pytest.approx(value, rel=NEAR, abs=NEAR), (sheet, at)
            else:
                assert (shown or "") == (value or ""), (sheet, at)


@pytest.mark.slow
def test_a_hundred_edits(pages, built, tmp_path: Path, libreoffice) -> None:
    book = default_book(GAME)
    edits = [[*at, value] for at, value in random_edits(book, 100, 5).items()] + [SENTENCE]
    saved(pages[GAME], built[GAME], tmp_path / "hundred.xlsx", edits, "logits")
    for path in (tmp_path / "hundred.xlsx", save(tmp_path / "hundred.xlsx", tmp_path / "lo.xlsx")):
        assert as_dict(read_back(pages[GAME], path)) == as_dict(edits)
        assert edited.read(path).values == as_dict(edits)


# texts that look like something else, and those that XML spells otherwise
TEXTS = [
    "1",
    "1e3",
    "=1+1",
    "",
    " the  cat ",
    "<b>&amp;</b>",
    "_x0041_",
    "a\rb",
    "'q",
    "è 日本 🙂",
    "#N/A",
]


@pytest.mark.slow
@given(edits=st.data())
@settings(max_examples=25)
def test_any_edits_come_back(pages, built, tmp_path_factory, edits: st.DataObject) -> None:
    """Of any cells, computed ones too: the page and Python find the same."""
    book = default_book("cat-sat")
    drawn = edits.draw(st.dictionaries(cells_of(book), st.floats(-1e6, 1e6), max_size=5))
    wanted: list[Edit] = [[*at, value] for at, value in drawn.items() if value != book.value(*at)]
    wanted += [["sentence", 0, 0, edits.draw(st.sampled_from(TEXTS))]]
    folder = tmp_path_factory.mktemp("any")
    saved(pages["cat-sat"], built["cat-sat"], folder / "any.xlsx", wanted, "logits")
    found = as_dict(read_back(pages["cat-sat"], folder / "any.xlsx"))
    assert found == as_dict(wanted)
    assert edited.read(folder / "any.xlsx").values == found


def cells_of(book: Book) -> st.SearchStrategy[At]:
    """Cells of blocks that hold numbers, but ids."""
    blocks = [block for block in book.graph if block.kind not in ("ids", "table")]
    cells = st.sampled_from(blocks).flatmap(
        lambda b: st.tuples(st.just(b.name), *(st.integers(0, n - 1) for n in b.shape))
    )
    return cells.filter(lambda at: book.graph[at[0]].has(*at[1:]))


def test_texts_through_libreoffice(pages, built, tmp_path: Path, libreoffice) -> None:
    for k, text in enumerate(TEXTS):
        path = tmp_path / f"{k}.xlsx"
        saved(pages["cat-sat"], built["cat-sat"], path, [["sentence", 0, 0, text]], "logits")
        found = read_back(pages["cat-sat"], save(path, tmp_path / f"{k}-saved.xlsx"))
        assert found == [["sentence", 0, 0, text]]


def test_same_edits_same_bytes(pages, built, tmp_path: Path) -> None:
    edits = [["W_E", 1, 1, 0.75]]
    for name in ("a.xlsx", "b.xlsx"):
        saved(pages["cat-sat"], built["cat-sat"], tmp_path / name, edits, "logits")
    assert (tmp_path / "a.xlsx").read_bytes() == (tmp_path / "b.xlsx").read_bytes()


@pytest.mark.slow
def test_what_a_page_has_learned_is_in_its_workbook(pages, built, tmp_path: Path) -> None:
    path = tmp_path / "learned.xlsx"
    given_ = (pages["learn"], str(built["learn"]), str(path), 12, "W_E")
    weights = np.array(call("workbook.mjs", "learned", *given_))
    assert not np.allclose(weights, default_book("learn").values["W_E"].ravel())
    assert cli("import", path, "-o", tmp_path / "model").code == 0
    found = checkpoint.load(tmp_path / "model").weights["W_E"]
    np.testing.assert_allclose(found.ravel(), weights, atol=1e-6)


@pytest.mark.slow
def test_a_page_learns_from_a_reward_as_the_engine(pages, built, tmp_path: Path) -> None:
    """Twelve steps: on a page each recalculation makes one."""
    given_ = (pages["reward"], str(built["reward"]), str(tmp_path / "learned.xlsx"), 12, "W_U")
    weights = np.array(call("workbook.mjs", "learned", *given_))
    begun = learning.load()[learning.NEW]
    made = learning.learn(begun, game.random_numbers(0), game.BALANCED, policy.BETA)
    *_, last = islice(made, 12)
    assert np.abs(weights - last.weights["W_U"].ravel()).max() < 1e-9


# --- formulas that cells share ----------------------------------------------------------------


@pytest.mark.slow
def test_shared_formulas(tmp_path: Path, libreoffice) -> None:
    """Where the first cell of those that share a formula is edited, the others keep theirs."""
    model = checkpoint.load(corner("llama", tmp_path / "llama"))
    book = model_workbook.build(
        "llama", model, passage(model, [1, 2, 0, 2, 1]), limits=Limits(words=1)
    )
    path, page = write(book, tmp_path / "llama.xlsx"), as_page.write(book, tmp_path / "page")
    first = [place.block for place in book.places.values() if book.shared(place.block)][:4]
    edits: list[Edit] = [[block.name, 0, 0, 0.25 + k] for k, block in enumerate(first)]
    saved(page, path, tmp_path / "edited.xlsx", edits, "logits")
    assert audit(tmp_path / "edited.xlsx") == []
    found = save(tmp_path / "edited.xlsx", tmp_path / "saved.xlsx")
    assert as_dict(read_back(page, found)) == as_dict(edits)
    live = Evaluator(book.graph)
    for edit in edits:
        live.set(*edit)
    place, file = book.places["logits"], WorkbookFile(found)
    for i, j in np.ndindex(*place.block.shape):
        assert file[place.sheet][place.cell(i, j)] == pytest.approx(live["logits"][i, j], abs=1e-9)


@pytest.mark.parametrize(
    ("formula", "down", "right", "expected"),
    [
        ("A1+$A1+A$1+$A$1", 2, 27, "AB3+$A3+AB$1+$A$1"),
        ("SUM(B2:C9)*LOG10(Z9)", 1, 1, "SUM(C3:D10)*LOG10(AA10)"),
        ("'Block A1'!B2&\"A1\"&Play!B2", 1, 0, "'Block A1'!B3&\"A1\"&Play!B3"),
        ("SUM(A:B)+SUM($A:B)+SUM(1:$2)", 1, 1, "SUM(B:C)+SUM($A:C)+SUM(2:$2)"),
        ("ABC1!A1+rate_1+TRUE()", 1, 0, "ABC1!A2+rate_1+TRUE()"),
    ],
)
def test_moved_formulas(formula: str, down: int, right: int, expected: str) -> None:
    assert call("saving.js", "movedFormula", formula, down, right) == expected


# --- what others type -------------------------------------------------------------------------


def typed_in_libreoffice(path: Path, target: Path, commands: Sequence[Sequence[object]]) -> Path:
    done = [("open", path.resolve().as_uri()), ("unprotect",), *commands, ("compute",)]
    options = ("save", target.resolve().as_uri(), "Calc MS Excel 2007 XML", "")
    office().does([*done, options, ("close",)])
    return target


def enter(book: Book, at: At, value: float | str) -> tuple[object, ...]:
    """The command that types something into a block's cell."""
    kind = (
        "formula" if isinstance(value, Formula) else "text" if isinstance(value, str) else "number"
    )
    return ("type", *book.cell(*at), kind if value != "" else "nothing", value)


@pytest.mark.parametrize(
    ("at", "typed", "found"),
    [
        (("W_E", 1, 1), Formula("=1/3"), 1 / 3),  # a formula for a weight counts as its value
        (("W_E", 1, 1), "", 0.0),
        (("W_E", 1, 1), "a word", 0.0),
        (("prompt.pick", 1, 0), 7.0, "7"),
        (("prompt.pick", 1, 0), "dog", "dog"),
        (("sentence", 0, 0), "", ""),
        (("top_k", 0, 0), 3.0, 3.0),
        (("blocks.0.attn.h0.q", 1, 1), 0.5, 0.5),
        (("blocks.0.attn.h0.q", 1, 1), Formula("=0.25*3"), 0.75),  # another formula, by its value
        (("blocks.0.attn.h0.scores", 2, 1), Formula("=-3"), -3.0),
    ],
)
def test_what_is_typed_in_libreoffice(
    at: At,
    typed: float | str,
    found: object,
    pages,
    built,
    tmp_path: Path,
    libreoffice,
) -> None:
    book, target = default_book("cat-sat"), tmp_path / "typed.xlsx"
    typed_in_libreoffice(built["cat-sat"], target, [enter(book, at, typed)])
    assert read_back(pages["cat-sat"], target) == [[*at, pytest.approx(found)]]


def refused(page: str, path: Path) -> str:
    with pytest.raises(JavaScriptError) as error:
        read_back(page, path)
    message = str(error.value)
    assert "\n" not in message and "; " in message, message
    return message


@pytest.mark.parametrize(
    ("at", "typed", "says"),
    [
        (("W_E", 1, 1), Formula("=1/0"), "(W_E[1,1]) holds #DIV/0!; type a value there"),
        (
            ("blocks.0.attn.h0.q", 1, 1),
            "",
            "(blocks.0.attn.h0.q[1,1]) is empty in place of a formula",
        ),
        (("blocks.0.attn.h0.q", 1, 1), "x", "holds a text in place of a formula"),
        (("tokens", 1, 0), 99.0, "(tokens[1,0]) holds 99, which is not an id of W_E; ids are"),
    ],
)
def test_what_nothing_is_computed_with(
    at: At,
    typed: float | str,
    says: str,
    pages,
    built,
    tmp_path: Path,
    libreoffice,
) -> None:
    book, target = default_book("cat-sat"), tmp_path / "typed.xlsx"
    typed_in_libreoffice(built["cat-sat"], target, [enter(book, at, typed)])
    assert says in refused(pages["cat-sat"], target)


@pytest.mark.parametrize(
    ("act", "says"),
    [
        (("insert rows", "Block 0", 30, 1), "rows were inserted or deleted in sheet 'Block 0'"),
        (("delete columns", "Block 0", 1, 1), "the workbook is of another version of cat-sat"),
        (("delete sheet", "Block 0"), "sheet 'Block 0' is missing; restore the sheet's name"),
        (
            ("rename sheet", "Block 0", "Layer"),
            "sheet 'Block 0' is missing; restore the sheet's name",
        ),
        (("sort", "Words", "B6:B15", 0, "up"), "cells of map.word have changed their order"),
    ],
)
def test_what_was_moved(
    act: tuple[object, ...], says: str, pages, built, tmp_path: Path, libreoffice
) -> None:
    name = "two-layers" if act[1] == "Words" else "cat-sat"
    target = typed_in_libreoffice(built[name], tmp_path / "moved.xlsx", [act])
    assert says in refused(pages[name], target)


def test_another_workbook_is_refused(pages, built, tmp_path: Path) -> None:
    message = refused(pages["cat-sat"], built["attention-by-columns"])
    assert "the workbook is of attention-by-columns, and this page is of cat-sat" in message
    longer = load("cat-sat").model
    words = passage(longer, longer.vocabulary.encode("the cat sat"), 5)
    path = write(workbooks.find("cat-sat").build(longer, words), tmp_path / "longer.xlsx")
    assert "another version of cat-sat, or was built with other options" in refused(
        pages["cat-sat"], path
    )


def test_another_model_of_the_same_shape_is_refused(pages, tmp_path: Path) -> None:
    model = load("cat-sat").model
    other = replace(model, weights={name: w + 1.0 for name, w in model.weights.items()})
    words = passage(other, other.vocabulary.encode("the cat sat"), load("cat-sat").n_tokens)
    path = write(workbooks.find("cat-sat").build(other, words), tmp_path / "other.xlsx")
    assert "the workbook is of another model" in refused(pages["cat-sat"], path)


def test_what_is_no_workbook_is_refused(pages, tmp_path: Path) -> None:
    path = tmp_path / "x.xlsx"
    path.write_text("a,b\n1,2\n")
    assert "no zip archive" in refused(pages["cat-sat"], path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("word/document.xml", "<x/>")
    assert "no .xlsx workbook" in refused(pages["cat-sat"], path)


def test_values_that_nobody_computed(pages, built, tmp_path: Path) -> None:
    """openpyxl writes formulas without values: typed cells are read all the same."""
    target = tmp_path / "typed.xlsx"

    def change(sheets: Any) -> None:
        sheet, row, col = default_book("cat-sat").cell("W_E", 1, 1)
        sheets[sheet].cell(row + 1, col + 1).value = 0.75

    sheets = load_workbook(built["cat-sat"])
    change(sheets)
    sheets.save(target)
    assert read_back(pages["cat-sat"], target) == [["W_E", 1, 1, 0.75]]


# --- into a workbook that was edited ----------------------------------------------------------


def test_saved_into_an_edited_workbook(pages, built, tmp_path: Path, libreoffice) -> None:
    """What was typed there and is not edited in the page becomes again what it was."""
    first, second = tmp_path / "first.xlsx", tmp_path / "second.xlsx"
    page = pages["cat-sat"]
    saved(
        page,
        built["cat-sat"],
        first,
        [["W_E", 1, 1, 0.75], ["sentence", 0, 0, "the dog"]],
        "logits",
    )
    there = save(first, tmp_path / "saved.xlsx")
    saved(page, there, second, [["blocks.0.attn.h0.switch", 0, 0, 0.0]], "logits")
    assert read_back(page, second) == [["blocks.0.attn.h0.switch", 0, 0, 0.0]]
    saved(page, there, second, [], "logits")
    assert read_back(page, second) == []
    typed = [["blocks.0.attn.h0.q", 1, 1, 0.5]]
    saved(page, built["cat-sat"], first, typed, "logits")
    saved(page, first, second, typed, "logits")
    with pytest.raises(JavaScriptError, match="was typed over, and is not edited here; open"):
        saved(page, first, second, [], "logits")


# --- damaged and hostile files ----------------------------------------------------------------

N_DAMAGED = 300
SLOWEST = 10.0  # seconds; what is searched again and again takes minutes
ODD = [
    b"<",
    b">",
    b'"',
    b"&",
    b"&#0;",
    b"&#x110000;",
    b"<!--",
    b"<![CDATA[",
    b"]]>",
    b"\0",
    b"\xff",
]
ODD += [b"<c", b"</c>", b"<f>", b"</row>", b"<v>1e999</v>", b"<si>", b"<!DOCTYPE x>", b"/>"]
REPEATED = [b"<c ", b"<c>", b"<row>", b"<si>", b"<t>", b"<!--", b"<![CDATA[", b"&", b"<f>", b"<f "]
REPEATED += [b"<rPh>", b"<is><t>", b"<v>", b"<v ", b'<c r="A1" t="s"><v>']


def rewritten(path: Path, target: Path, part: str, change: Callable[[bytes], bytes]) -> Path:
    """A copy of a workbook with a part changed."""
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            new.writestr(name, change(data) if name == part else data)
    return target


def told_in_a_line(page: str, path: Path) -> str:
    """The error for a file, "" if it can be read; within a time."""
    begin = time.monotonic()
    try:
        read_back(page, path)
        message = ""
    except JavaScriptError as error:
        message = str(error)
        assert "; " in message and "\n" not in message and len(message) < 300, message
    assert time.monotonic() - begin < SLOWEST
    return message


def damaged(data: bytes, rng: np.random.Generator) -> bytes:
    """A part of a file with some bytes cut out, doubled or put in."""
    for _ in range(int(rng.integers(1, 4))):
        a, b = sorted(rng.integers(0, len(data) + 1, 2).tolist())
        b = min(b, a + int(rng.integers(1, 60)))
        odd = ODD[int(rng.integers(len(ODD)))]
        data = [data[:a] + data[b:], data[:b] + data[a:], data[:a] + odd + data[a:]][
            int(rng.integers(3))
        ]
    return data


PARTS = ["xl/workbook.xml", "xl/worksheets/sheet2.xml", "xl/sharedStrings.xml", "_rels/.rels"]
PARTS += ["xl/worksheets/sheet1.xml", "xl/_rels/workbook.xml.rels"]


@pytest.mark.slow
def test_damaged_files_get_one_line(pages, built, tmp_path: Path) -> None:
    name, rng, told = "attention-by-columns", np.random.default_rng(4), set[str]()
    for k in range(N_DAMAGED):
        path = tmp_path / f"{k}.xlsx"
        rewritten(built[name], path, PARTS[k % len(PARTS)], lambda data: damaged(data, rng))
        told.add(told_in_a_line(pages[name], path))
    assert len(told) > 20


@pytest.mark.slow
@pytest.mark.parametrize("part", ("xl/worksheets/sheet2.xml", "xl/sharedStrings.xml"))
@pytest.mark.parametrize("text", REPEATED)
def test_files_that_would_take_long_are_refused(
    text: bytes, part: str, pages, built, tmp_path: Path
) -> None:
    name = "attention-by-columns"
    many = text * 300_000

    def change(data: bytes) -> bytes:
        at = max(data.find(b"<sheetData>") + 11, data.find(b"<si>"))
        return data[:at] + many + data[at:]

    told_in_a_line(pages[name], rewritten(built[name], tmp_path / "long.xlsx", part, change))
