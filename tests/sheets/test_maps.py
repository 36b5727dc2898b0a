"""The sheet Words: every coordinate, share and neighbour computed a second time, by numpy; words
typed in the place of others; labels that never lie on each other."""

from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT, InIronCalc, assert_recomputes_after, default_book, random_model

from cellformer.engine import InputError, ModelSpec
from cellformer.engine.models.generate import passage
from cellformer.engine.text import word_list_file
from cellformer.exporters.assemble import model_workbook
from cellformer.exporters.checking.verify import read
from cellformer.exporters.compose import label_placement
from cellformer.exporters.compose.book import Book
from cellformer.exporters.file.xlsx import write
from cellformer.exporters.model.plan import Limits
from cellformer.exporters.pages import vocabulary
from cellformer.workbooks.dialogue_game import CHOSEN, game

pytestmark = pytest.mark.slow

Edits = dict[str, float | str]
N_WORDS = 209  # of a large vocabulary


def chosen_vectors(book: Book, words: list[str]) -> np.ndarray:
    """The vectors of words, blank ones left out, from the table that the readout scores with."""
    texts = list(vocabulary.texts(book))
    return vocabulary.vectors_of(book, [texts.index(word) for word in words if word])


def variance(x: np.ndarray) -> float:
    return float(((x - x.mean(axis=0)) ** 2).sum() / len(x))


def after(book: Book, edits: dict[tuple[str, int, int], float | str]):
    return book.edited({book.graph[f"map.{name}"][i, j]: x for (name, i, j), x in edits.items()})


def of(reading, book: Book, name: str) -> np.ndarray:
    return np.array(reading(book.graph[f"map.{name}"].area), dtype=object)


def assert_there(reading, book: Book, name: str, there: list[int], wanted: np.ndarray) -> None:
    """The rows of a table that hold a word."""
    np.testing.assert_allclose(of(reading, book, name)[there].astype(float), wanted, atol=1e-9)


@pytest.fixture(scope="module")
def book() -> Book:
    return default_book("dialogue-game")


WORDS = [game.WORDS[v] for v in CHOSEN.ids]
EDITS = {
    "as built": {},
    "another plane": {("terms", 0, 0): "7", ("terms", 0, 1): "8", ("terms", 1, 3): ""},
    "components left out": {("left_out", 0, 0): 1, ("near", 0, 0): "Cefa"},
    "a word twice, one gone": {("word", 8, 0): "", ("word", 9, 0): "banana", ("left_out", 0, 0): 2},
    "what is none": {("word", 3, 0): "Nobody", ("terms", 0, 0): "Nobody", ("left_out", 0, 0): 7},
}


@pytest.mark.parametrize("case", EDITS)
def test_maps_equal_numpy(case: str, book: Book) -> None:
    edits = EDITS[case]
    reading = after(book, edits)
    words = list(WORDS)
    for (name, i, _), value in edits.items():
        if name == "word":
            words[i] = str(value) if value in game.WORDS else ""
    there = [k for k, word in enumerate(words) if word]
    x = chosen_vectors(book, words)
    terms = [[str(t or "") for t in row] for row in of(reading, book, "terms")]
    u, v = (mean_of(book, words, row[:3]) - mean_of(book, words, row[3:]) for row in terms)
    e1 = u / np.linalg.norm(u) if np.linalg.norm(u) > 1e-9 else u * 0
    rest = v - (v @ e1) * e1
    plane = np.column_stack([e1, rest / np.linalg.norm(rest)])
    np.testing.assert_allclose(
        of(reading, book, "concept")[there].astype(float), x @ plane, atol=1e-9
    )
    share = variance(x @ plane) / variance(x)
    assert of(reading, book, "plane_share") == pytest.approx(share, abs=1e-9)
    basis = book.values["map.component_basis"].astype(float)
    along = (x - x.mean(axis=0)) @ basis
    np.testing.assert_allclose(
        of(reading, book, "component")[there].astype(float), along, atol=1e-9
    )
    n_out = int(of(reading, book, "out"))
    kept = without(x, basis[:, :n_out])
    units = kept / np.linalg.norm(kept, axis=1, keepdims=True)
    axes = book.values["map.cosine_basis"].astype(float)[:, 2 * n_out : 2 * n_out + 2]
    shown = (units - units.mean(axis=0)) @ axes
    assert_there(reading, book, "cosine", there, shown)
    assert of(reading, book, "cosine_share") == pytest.approx(variance(shown) / variance(units))
    neighbours_are_right(book, reading, words, x, basis)


def without(x: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """Words [n, d] without their mean and their components along a basis [d, n_out], or as they are
    where none is left out: algorithm 1 of Mu & Viswanath 2018."""
    if basis.shape[1]:
        x = x - x.mean(axis=0)
        x = x - (x @ basis) @ basis.T
    return x


def mean_of(book: Book, words: list[str], terms: list[str]) -> np.ndarray:
    """The mean of the words of one side of a direction: those that are on the list, as often."""
    found = [word for term in terms for word in words if term and word == term]
    return chosen_vectors(book, found).mean(axis=0) if found else np.zeros(64)


def neighbours_are_right(book: Book, reading, words, x: np.ndarray, basis: np.ndarray) -> None:
    """Cosines with the named word, less the mean and the components that are left out."""
    n_out = int(of(reading, book, "out"))
    named = str(reading(book.graph["map.near"].area))
    there = [word for word in words if word]
    x = without(x, basis[:, :n_out])
    own = x[there.index(named)]
    cosines = {
        word: float(y @ own / np.linalg.norm(y) / np.linalg.norm(own))
        for word, y in zip(there, x, strict=True)
        if word != named
    }
    best = sorted(cosines, key=lambda word: -cosines[word])
    values = of(reading, book, "near_value").ravel().astype(float)
    ranked = sorted((cosines[w] for w in there if w != named), reverse=True)[: len(values)]
    assert of(reading, book, "near_word").ravel()[0] == best[0]
    np.testing.assert_allclose(values, ranked, atol=1e-8)


def test_components_equal_eigenvectors(book: Book) -> None:
    x = chosen_vectors(book, WORDS)
    spread = np.linalg.eigvalsh(np.cov(x.T))[::-1]
    found = book.values["map.share"].astype(float).ravel()
    np.testing.assert_allclose(found, spread[:4] / spread.sum(), atol=1e-12)
    assert found[:2].sum() == pytest.approx(0.421, abs=0.001)
    assert found.sum() == pytest.approx(0.571, abs=0.001)


def test_cosine_map_without_top_components(book: Book) -> None:
    """Of the directions that are left, two components hold what an eigen-decomposition says."""
    for n_out in range(3):
        reading = after(book, {("left_out", 0, 0): n_out})
        basis = book.values["map.component_basis"].astype(float)[:, :n_out]
        kept = without(chosen_vectors(book, WORDS), basis)
        units = kept / np.linalg.norm(kept, axis=1, keepdims=True)
        spread = np.linalg.eigvalsh(np.cov(units.T))[::-1]
        wanted = spread[:2].sum() / spread.sum()
        assert of(reading, book, "cosine_share") == pytest.approx(wanted, abs=1e-9)


def test_rounding_noise_is_not_drawn() -> None:
    """cat-sat's words lie on one line: the second component is 0, and the sheet says so."""
    model = default_book("cat-sat").model
    chosen = {"words": {"words": list(range(model.spec.d_vocab))}}
    book = model_workbook.build("cat-sat", model, default_book("cat-sat").passage, studies=chosen)
    assert not np.abs(book.values["map.component"][:, 1:].astype(float)).any()
    texts = [entry.value for entry in book.sheets["Words"].entries.values()]
    assert vocabulary.ON_A_LINE in texts
    near = book.values["map.near_word"].ravel()  # all at 1: in their order, none twice
    assert len(set(near)) == len(near) and near[0] == "cat"


@pytest.mark.parametrize("seed", range(4))
def test_labels_never_lie_on_each_other(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, size = 60, (480, 400)
    points = rng.normal(size=(n, 2)) * rng.choice([1, 0.05], size=(n, 1))
    texts = ["w" * int(k) for k in rng.integers(1, 12, n)]
    sides = label_placement.sides(points, texts, size)
    at = label_placement.pixels(points, size)
    boxes = [label_placement.box(*at[k], texts[k], side) for k, side in enumerate(sides) if side]
    assert len(boxes) > 5
    for k, one in enumerate(boxes):
        assert not any(one.meets(other) for other in boxes[:k])


def test_maps_of_a_random_model(tmp_path: Path) -> None:
    """With its own choice of words; a word typed in another's place, in IronCalc."""
    model = random_model(
        ModelSpec(80, 12, 8, n_layers=1, n_heads=2, d_head=4, d_mlp=6, tied=True, bias=True)
    )
    book = model_workbook.build("random", model, passage(model, [3, 70, 2], 5))
    chosen = vocabulary.by_default(book)
    assert chosen.groups["in the sentence"] == [3, 70, 2] and len(chosen.ids) == vocabulary.SOME
    path = write(book, tmp_path / "random.xlsx")
    texts = vocabulary.texts(book)
    other = texts[next(v for v in range(80) if v not in chosen.ids)]
    edits = {("map.word", 4, 0): other, ("map.near", 0, 0): other, ("map.left_out", 0, 0): 2}
    assert_recomputes_after(edits, InIronCalc(path), book, read(path))


@pytest.mark.slow
@pytest.mark.parametrize("tied", [True, False])
def test_listed_words_of_a_large_vocabulary(tied: bool, tmp_path: Path) -> None:
    """Of a model that shows one token's logits alone: its words' own cells, each of which may be
    taken off; a weight of one is typed over."""
    spec = ModelSpec(N_WORDS, 6, 8, n_layers=1, n_heads=1, d_head=3, d_mlp=4, tied=tied)
    model, ids = random_model(spec), {"a": [200, 7, 199], "b": [5, 12, 208]}
    given = passage(model, [3, 70], 3)
    book = model_workbook.build(
        "random", model, given, studies={"words": ids}, limits=Limits(words=N_WORDS - 1)
    )
    assert book.plan.answers and "Trajectory" not in book.sheets
    table = model.weights["W_E"] if tied else model.weights["W_U"].T
    x = table[[v for group in ids.values() for v in group]]
    along = (x - x.mean(axis=0)) @ book.values["map.component_basis"].astype(float)
    np.testing.assert_allclose(book.values["map.component"].astype(float), along, atol=1e-9)
    path = write(book, tmp_path / "large.xlsx")
    cell = ("W_E", 199, 4) if tied else ("W_U", 4, 199)
    edits = {("map.word", 4, 0): "", cell: 3.0, ("map.terms", 0, 0): "w12"}
    assert_recomputes_after(edits, InIronCalc(path), book, read(path))
    after = book.edited({book.graph[name][i, j]: x for (name, i, j), x in edits.items()})
    assert after(book.graph["map.id"].area).ravel().tolist() == [200, 7, 199, 5, -1, 208]
    with pytest.raises(InputError, match="--words needs a decoder, a model that"):
        model_workbook.build("random", model, given, live=("blocks.0",), studies={"words": ids})


def test_words_of_the_capstone() -> None:
    """84, in the essay's groups, each in the common words' spelling of GPT-2's vocabulary."""
    found = word_list_file.read(ROOT / "docs" / "capstone-words.txt")
    assert [*found][-1] == "function words" and len(found) == 7
    assert sum(map(len, found.values())) == 84
