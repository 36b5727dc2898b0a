"""Every value of every page is the engine's: fresh, from wrong values, and after edits; in Node.js
after each of them, and in a browser, where it opens from disk, small, without an error and without
asking for anything.

Both in one file, so that a worker builds each book once.
"""

import json
import zlib
from base64 import b64decode
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from conftest import default_book, golden_models, in_tiers
from corners import corner, unlike
from encoders import N_TOKENS, PAIRS, TEXT_LENGTH, encoder
from in_node import call
from pages import differing, read, values, written

from cellformer import workbooks
from cellformer.engine import Evaluator
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.errors import InputError
from cellformer.engine.cells.values import CellError
from cellformer.engine.models import checkpoint
from cellformer.engine.models.generate import passage
from cellformer.engine.studies import steering
from cellformer.engine.studies.pair import Against
from cellformer.exporters.assemble import model_workbook
from cellformer.exporters.compose.book import Book
from cellformer.exporters.model.model_book import ModelBook
from cellformer.exporters.pages.graph import CUTS, REALLY
from cellformer.exporters.web import data

pytestmark = pytest.mark.usefixtures("node")

N_EDITS = 20
MOST_BESIDES = 150 << 10  # bytes of a page besides its weights
OF_MODEL = 30 << 10  # of one with the picture of a model, drawn in slices, its lessons and tour
OF_STEP = 16 << 10  # of one with the sheet Attention
OF_ANOTHER = 26 << 10  # and of one with the pass of another sentence, forwards and backwards
IN_FIREFOX = ("cat-sat", "dialogue-game", "tokenization", "superposition", "learn", "golden-gemma2")
KINDS = ("weight", "weight", "op", "op", "setting", "setting", "ids", "table", "text", "input")
WORDS = ("", "zzz", "Tarso", "the cat", "<s>", "1", "  ")


def golden(name: str) -> Book:
    """The workbook of a golden model."""
    model = golden_models()[name]
    second = [2, 3] if model.spec.gives == "sentence" else ()
    return model_workbook.build(name, model, passage(model, [2, 0, 3], 4, second=second))


def with_study(name: str, study: str) -> Book:
    model = golden_models()[name]
    return model_workbook.build(name, model, passage(model, [1, 2, 3], 4), studies={study: True})


def with_pair(name: str) -> Book:
    """Two sentences, and a path between heads."""
    model = golden_models()[name]
    path = ("blocks.0.attn.h0.result", "blocks.1.attn.kv0.rot_k")
    studies = {"against": Against((1, 4, 3), path)}
    return model_workbook.build(name, model, passage(model, [1, 2, 3], 4), studies=studies)


def steered(name: str) -> Book:
    model, lists = golden_models()[name], {"one": [[1, 2], [3]], "other": [[4, 4], [2, 5, 6]]}
    studies = {"steer": steering.contrast(model, lists)}
    return model_workbook.build(name, model, passage(model, [1, 2, 3], 4), studies=studies)


def with_text(kind: str) -> Book:
    """The workbook of an encoder that turns text into tokens in cells."""
    model, texts = encoder(kind), PAIRS[0] if kind == "sentence" else ("the value is true",)
    ids, *second = (model.vocabulary.encode(text) for text in texts)
    words = passage(model, ids, N_TOKENS, second=second[0] if second else ())
    return model_workbook.build(kind, model, replace(words, text_length=TEXT_LENGTH))


BOOKS: dict[str, Callable[[], Book]] = {
    **{f"golden-{name}": partial(golden, name) for name in unlike()},
    **{f"gradient-{name}": partial(with_study, name, "gradient") for name in ("gpt2", "gemma2")},
    **{f"nudge-{name}": partial(with_study, name, "nudge") for name in ("llama", "mixtral")},
    "against-gemma2": partial(with_pair, "gemma2"),
    "steering-llama": partial(steered, "llama"),
    **{f"text-{kind}": partial(with_text, kind) for kind in ("sentence", "bert", "roberta")},
}


def drawn(book: Book, live: Evaluator, seed: int) -> Iterator[tuple[str, int, int, Any]]:
    """Edits that the engine takes: of weights, activations, switches, dials, words, tables."""
    rng = np.random.default_rng(seed)
    by_kind = {kind: [b for b in book.graph if _is(kind, b, live)] for kind in KINDS}
    while True:
        blocks = by_kind[str(rng.choice(KINDS))]
        if not blocks:
            continue
        block = blocks[rng.integers(len(blocks))]
        i, j = (int(rng.integers(n)) for n in block.shape)
        if not block.has(i, j):
            continue
        value = _typed(rng, block, live[block.name][i, j], book)
        if (
            block.leaf == "rate"
        ):  # at larger ones each step is ten times as far off as the one before
            value = float(rng.uniform(0, 0.2))
        try:
            book.graph.check_value(block, i, j, value)
        except InputError:
            continue
        yield block.name, i, j, value


def _is(kind: str, block: Block, live: Evaluator) -> bool:
    if kind == "op":
        return block.op is not None
    if kind == "table":
        return block.expression is not None
    if kind == "text":
        return block.name in live.graph.inputs and live[block.name].dtype == object
    return block.name in live.graph.inputs and (kind == "input" or block.kind == kind)


def _typed(rng: np.random.Generator, block: Block, before: Any, book: Book) -> Any:
    """What is typed over a value."""
    if isinstance(before, str):
        vocabulary = book.labels.get("vocab", ()) if isinstance(book, ModelBook) else ()
        words = [*WORDS, before, *vocabulary[:9]]
        return " ".join(rng.choice(words, rng.integers(1, 4)))
    if isinstance(before, bool | CellError) or before is None:
        return float(rng.integers(3))
    if float(before) == int(before) if np.isfinite(before) else False:
        return float(rng.choice([0, 1, 2, 3, -1, 0.5]))
    return float(np.round(rng.normal(), 3))


class Page(NamedTuple):
    """A book, its page, and what Node.js opens of it."""

    book: Book
    html: Path
    held: Path


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Page]:
    """Pages of books, written when they are asked for."""
    folder = tmp_path_factory.mktemp("pages")

    @cache
    def of(name: str) -> Page:
        book = BOOKS[name]() if name in BOOKS else default_book(name)
        return Page(book, folder / f"{name}.html", written(book, folder / f"{name}.html"))

    return of


def compared(page: Page, folder: Path) -> list[str]:
    """Where a page differs from the engine: fresh, and after each of several edits."""
    verdict = call("values.mjs", "open", str(page.held))
    live = Evaluator(page.book.graph)
    found = [f"opened: {verdict}"] if verdict["differ"] else []
    call("values.mjs", "fresh")
    found += [f"fresh: {one}" for one in islice(differing(values(folder), live), 5)]
    for edit in islice(drawn(page.book, live, 5), N_EDITS):
        live.set(*edit)
        live.recompute()
        call("values.mjs", "edit", [edit])
        found += [f"{edit}: {one}" for one in islice(differing(values(folder), live), 5)]
        if len(found) > 10:
            break
    return found


@pytest.mark.parametrize("name", in_tiers(workbooks.names()))
def test_every_workbook(name: str, pages: Callable[[str], Page], tmp_path: Path) -> None:
    assert compared(pages(name), tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", BOOKS)
def test_every_golden_model(name: str, pages: Callable[[str], Page], tmp_path: Path) -> None:
    assert compared(pages(name), tmp_path) == []


@pytest.mark.slow
def test_cuts_of_edges(tmp_path: Path) -> None:
    model = checkpoint.load(corner("mixtral", tmp_path / "corner"))
    words = passage(model, [1, 2, 1], 4)
    book = model_workbook.build("cuts", model, words, studies={"why": ""})
    html = tmp_path / "cuts.html"
    page = Page(book, html, written(book, html))
    live = Evaluator(book.graph)
    call("values.mjs", "open", str(page.held))
    for edit in ((CUTS, 0, 0, 0.0), (CUTS, 3, 0, 0.5), ("W_E", 1, 1, 0.3)):
        live.set(*edit)
        call("values.mjs", "edit", [edit])
        assert live[REALLY][0, 0] != book.value(REALLY, 0, 0)
        assert list(differing(values(tmp_path), live)) == []


@pytest.mark.slow
def test_two_sentences(tmp_path: Path) -> None:
    """Norms after heads, shared keys; switches, and a path between heads."""
    model = checkpoint.load(corner("gemma2", tmp_path / "corner"))
    path = ("blocks.0.attn.h0.result", "blocks.1.attn.kv0.rot_k")
    studies = {"against": Against((1, 0, 2), path)}
    book = model_workbook.build("pair", model, passage(model, [1, 2, 0]), studies=studies)
    html = tmp_path / "pair.html"
    page = Page(book, html, written(book, html))
    assert "Patch" in data.of_book(book).data["sheets"]["name"]
    assert compared(page, tmp_path) == []


@pytest.mark.slow
def test_more_edits_amplify_rounding() -> None:
    """Why a page may be 1e-11 from the engine after many edits: after 60 of `unrolled` the engine
    is as far from itself, if weights differ in their last place."""
    book = default_book("unrolled")
    runs = live, other = Evaluator(book.graph), Evaluator(book.graph)
    for block in [block for block in book.graph if block.kind == "weight"]:
        for i, j in np.ndindex(*block.shape):
            other.set(block.name, i, j, float(np.nextafter(live[block.name][i, j], 9)))
    edits = list(islice(drawn(book, Evaluator(book.graph), 32), 60))
    for run in runs:
        for edit in edits:
            run.set(*edit)
        run.recompute()
    numbers = [b.name for b in book.graph if b.computed and live[b.name].dtype != object]
    with np.errstate(invalid="ignore"):
        apart = [np.abs(live[n] - other[n]) / np.maximum(1, np.abs(live[n])) for n in numbers]
    assert 1e-12 < max(np.max(x, where=np.isfinite(x), initial=0) for x in apart) < 1e-9


# --- in a browser -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def in_chromium(chromium: str) -> None:
    call("browsers.mjs", "begin", "chromium", chromium)


@pytest.fixture(scope="module")
def in_firefox(firefox: str) -> None:
    call("browsers.mjs", "begin", "firefox", firefox)


def assert_opens(page: Page, folder: Path) -> None:
    """Open a page in the browser that has begun."""
    live = Evaluator(page.book.graph)
    edits = list(islice(drawn(page.book, live, 7), N_EDITS))
    said = call("browsers.mjs", "open", str(page.html), edits, str(folder / "values"))
    assert said["wrong"] == [] and said["asked"] == []
    assert page.html.stat().st_size <= most_bytes(page)
    assert [*islice(differing(read(folder / "values.fresh"), live), 5)] == []
    for edit in edits:
        live.set(*edit)
    live.recompute()
    assert [*islice(differing(read(folder / "values.edited"), live), 5)] == []


def most_bytes(page: Page) -> float:
    weights = zlib.decompress(b64decode(json.loads(page.held.read_text())["weights"]))
    another = isinstance(page.book, ModelBook) and "against" in page.book.plan.studies
    step = "Attention" in page.book.sheets
    is_model = {"tokens", "embed"} <= page.book.graph.blocks.keys()
    more = (OF_ANOTHER if another else 0) + (OF_STEP if step else 0) + (OF_MODEL if is_model else 0)
    return len(weights) * 4 / 3 + MOST_BESIDES + more


@pytest.mark.slow
@pytest.mark.parametrize("name", [*workbooks.names(), *BOOKS])
def test_opens_in_chromium(
    name: str, pages: Callable[[str], Page], in_chromium: None, tmp_path: Path
) -> None:
    assert_opens(pages(name), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", IN_FIREFOX)
def test_opens_in_firefox(
    name: str, pages: Callable[[str], Page], in_firefox: None, tmp_path: Path
) -> None:
    assert_opens(pages(name), tmp_path)
