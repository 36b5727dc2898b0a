"""The next word: a sheet chooses what the engine does, out of all words."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from conftest import (
    GOLDEN,
    CellAt,
    InIronCalc,
    assert_recomputes_after,
    libreoffice_after,
    random_model,
    recomputed_in_ironcalc,
)
from encoders import encoder
from libreoffice import typed_by_hand

import cellformer as cf
from cellformer.engine import ModelSpec
from cellformer.engine.cells.batch import CellName
from cellformer.engine.models import checkpoint
from cellformer.engine.models.choosing import Sampling
from cellformer.engine.models.generate import passage
from cellformer.exporters.assemble import model_workbook
from cellformer.exporters.checking.verify import FormulaCells, read
from cellformer.exporters.compose.book import Book
from cellformer.exporters.file.xlsx import write
from cellformer.exporters.pages import lens
from cellformer.exporters.play import ranking

pytestmark = pytest.mark.slow

N_TOKENS = 5
SIZES = {"d_model": 5, "n_ctx": N_TOKENS, "n_layers": 1, "n_heads": 1, "d_head": 5}
WAYS = [
    Sampling(3.0),
    Sampling(20.0),
    Sampling(3.0, top_k=300),
    Sampling(1.0, top_p=0.5),
    Sampling(30.0, top_k=400, top_p=0.95),
    Sampling(2.0, top_k=1000, top_p=0.99),
    Sampling(0.7, top_k=3),
    Sampling(5.0, min_p=0.1),
    Sampling(20.0, top_k=700, top_p=0.9, min_p=0.5),
]
NUMBERS = (0.0, 0.05, 0.62, 0.97, 0.9999)


def by_sorting(logits: np.ndarray, how: Sampling, r: float) -> int:
    """The token that a random number falls on, the shares of all words side by side."""
    order = np.argsort(-logits, kind="stable")
    shares = np.exp((logits[order] - logits.max()) / how.temperature)
    if how.top_k:
        shares[how.top_k :] = 0
    before = np.cumsum(shares) - shares
    shares = np.where(before < how.top_p * shares.sum(), shares, 0)
    shares = np.where(shares >= how.min_p * shares[0], shares, 0)
    ends = np.cumsum(shares)
    return int(order[np.searchsorted(ends, r * ends[-1], side="right")])


@pytest.mark.parametrize("n_words", [3, 128, 129, 2000])
def test_every_word_is_drawn_from(n_words: int) -> None:
    rng = np.random.default_rng(n_words)
    for how in WAYS:
        logits = rng.normal(size=n_words) * 4
        for r in (*NUMBERS, rng.random()):
            assert how.choose(logits, float(r)) == by_sorting(logits, how, float(r)), (how, r)


@pytest.mark.parametrize("n_words", [4_999, 5_000, 499_999, 500_000])
def test_slightly_larger_logit_wins(n_words: int) -> None:
    logits = np.zeros(n_words)
    logits[[10, n_words - 1]] = 5.3, 5.3 + 3e-6
    assert Sampling(1.0, top_k=1).choose(logits, 0.5) == n_words - 1


@pytest.mark.parametrize("n_words", [7, 300])
@pytest.mark.parametrize("size", [1.0, 1e5])
def test_tied_logits_lower_id_wins(n_words: int, size: float) -> None:
    logits = np.zeros(n_words)
    logits[[2, 4, 5]] = size
    assert Sampling().choose(logits, 0.5) == 2
    found = [Sampling(size, top_k=3).choose(logits, r) for r in (0.1, 0.5, 0.9)]
    assert found == [2, 4, 5]
    assert Sampling(size, top_k=4).choose(logits, 0.999) == 0
    near = logits + np.arange(n_words) * 1e-10 * size  # none is the same as another
    assert Sampling().choose(near, 0.5) == 5


# --- the sheet of 400 words, some of which are twins ----------------------------------------------

TWINS = [(3, 390), (5, 6), (300, 301), (200, 350)]
DRAWN = [Sampling(30000.0), Sampling(4000.0, top_k=200), Sampling(1e5, top_k=300, top_p=0.9)]
DRAWN += [Sampling(3e4, min_p=0.2), Sampling(1e5, top_k=350, min_p=0.05, repetition_penalty=1.8)]


@cache
def model() -> cf.Model:
    """Its logits go into the ten thousands, and every twin's is its other's."""
    found = random_model(ModelSpec(400, tied=True, norm="layer", final_norm=True, **SIZES), seed=4)
    table = found.weights["W_E"].copy()
    for first, second in TWINS:
        table[second] = table[first]
    weights = dict(found.weights) | {"W_E": table, "ln_final.w": found.weights["ln_final.w"] * 1e4}
    return replace(found, weights=weights)


@cache
def book() -> Book:
    return cf.build(model(), ids=[7], n_tokens=N_TOKENS, sampling=DRAWN[0], seed=3, title="twins")


@pytest.fixture(scope="module")
def path(tmp_path_factory) -> Path:
    """Its file."""
    return cf.write(book(), tmp_path_factory.mktemp("written") / "twins.xlsx")


def dials(how: Sampling) -> dict[CellName, float | str]:
    """What is typed on Play to have words chosen in that way, by block."""
    typed = {"choose": how.how, **{name: float(value) for name, value in vars(how).items()}}
    if not how.temperature:
        del typed["temperature"]
    return {(name, 0, 0): value for name, value in typed.items()}


def typing(how: Sampling) -> dict[CellAt, float | str]:
    """The same, by cell."""
    return {book().cell(*at): value for at, value in dials(how).items()}


def expected(how: Sampling) -> list[int]:
    """The prompt and what the command goes on with."""
    steps = cf.generate(model(), [7], N_TOKENS - 1, how, seed=3)
    return [7, *(step.token for step in steps)]


@cache
def opened(path: Path) -> tuple[FormulaCells, InIronCalc]:
    """Its formula cells, and IronCalc, which has recomputed them from wrong values."""
    cells = read(path)
    return cells, recomputed_in_ironcalc(cells, path.parent)


def in_ironcalc(path: Path, ways: Sequence[Sampling], _: Path) -> Iterator[list[object]]:
    _, sheet = opened(path)
    for how in ways:
        with sheet.typed(typing(how)):
            yield [sheet[book().cell("tokens", t, 0)] for t in range(N_TOKENS)]


def in_libreoffice(path: Path, ways: Sequence[Sampling], folder: Path) -> Iterator[list[object]]:
    cells = [book().cell("tokens", t, 0) for t in range(N_TOKENS)]
    texts = [typing(how) for how in ways]
    # all cells at once, too: LibreOffice computes those of a column that share a formula as one
    shown = libreoffice_after(path, texts[:1], folder / "at once")
    shown += typed_by_hand(path, texts, folder / "by hand")
    all_at_once, *found = ([file[sheet][row, col] for sheet, row, col in cells] for file in shown)
    assert all_at_once == found[0]
    yield from found


@pytest.mark.parametrize(
    "recomputed", [in_ironcalc, pytest.param(in_libreoffice, marks=pytest.mark.office)]
)
def test_sheet_draws_as_the_command(
    recomputed: Callable[[Path, Sequence[Sampling], Path], Iterator[list[object]]],
    path: Path,
    tmp_path: Path,
) -> None:
    ways = [*DRAWN, Sampling()]
    for how, found in zip(ways, recomputed(path, ways, tmp_path), strict=True):
        assert found == expected(how), how
    beyond = [list(np.argsort(-row, kind="stable")) for row in book().values["logits"]]
    ranks = [row.index(i) for row, i in zip(beyond, expected(DRAWN[0])[1:], strict=False)]
    assert max(ranks) > 128  # a word whose rank is not laid out


def test_large_vocabulary_recomputes(path: Path) -> None:
    """As it is built, and when few words are drawn from."""
    cells, sheet = opened(path)
    assert_recomputes_after(dials(DRAWN[2]), sheet, book(), cells)


ALIKE = [2, 5, 7]


@pytest.mark.parametrize("size", [1.0, 1e6, 1e12])
def test_tied_words_are_all_ranked(size: float, tmp_path) -> None:
    """On Play, Lens and Sampling, with logits of any size, as IronCalc computes it."""
    spec = ModelSpec(9, norm="layer", final_norm=True, d_mlp=4, **SIZES)
    model = random_model(spec, 2)
    readout = size * model.weights["W_U"]  # [d_model, d_vocab]
    readout[:, ALIKE] = readout[:, [2]]
    model = replace(model, weights=dict(model.weights) | {"W_U": readout})
    book = model_workbook.build("alike", model, passage(model, [1, 2, 3], N_TOKENS))
    order = book.values["choice.order"]
    assert (np.sort(order, axis=1) == np.arange(9)).all()
    for row in order:
        at = [row.tolist().index(v) for v in ALIKE]
        assert at == list(range(at[0], at[0] + 3))
    texts, _, _ = ranking.ranked(book)
    _, rect = book.locate(texts)
    cells = [(lens.SHEET, lens.TOP + 3 + 2 * k, lens.LEFT) for k in range(lens.WORDS_SHOWN)]
    likeliest = [book.clean.cell(*cell) for cell in cells]
    ironcalc = InIronCalc(write(book, tmp_path / "alike.xlsx"))
    ironcalc.model.evaluate()
    shown = [ironcalc["Play", row, rect.left] for row in range(*rect[:2])]
    assert shown == list(book.clean(texts)[:, 0]) and len(set(shown)) == len(shown)
    assert [ironcalc[cell] for cell in cells] == likeliest
    assert len(set(likeliest)) == lens.WORDS_SHOWN


def test_tied_masked_words_are_all_ranked(tmp_path) -> None:
    model = encoder("bert")
    nothing = {n: 0 * w for n, w in model.weights.items() if n in ("W_E", "b_U")}
    model = replace(model, weights=dict(model.weights) | nothing)  # all words are alike
    book = cf.build(model, "the value is true", n_tokens=8)
    texts, _, _ = ranking.ranked(book)
    _, rect = book.locate(texts)
    ironcalc = InIronCalc(write(book, tmp_path / "masked.xlsx"))
    ironcalc.model.evaluate()
    rows = range(rect.top, rect.bottom)
    ids = [ironcalc["Play", row, 2] for row in rows]
    assert ids == list(range(len(ids)))


def test_a_penalty_changes_what_lens_looks_at_as_built_too(tmp_path: Path) -> None:
    """What Lens looks at first is what ranks first, and that is no word of the prompt here."""
    model, ids = checkpoint.load(GOLDEN / "gpt2"), [3, 1, 0]
    assert model.graph(ids).values["logits"][-1].argmax() in ids
    words = passage(model, ids, 4, Sampling(repetition_penalty=9.0))
    book = model_workbook.build("gpt2", model, words)
    assert book.graph.values["target"][0, 0] not in ids
    recomputed_in_ironcalc(read(cf.write(book, tmp_path / "book.xlsx")), tmp_path)
