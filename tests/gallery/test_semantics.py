"""The semantic-tiny study: its table and corpus, its measures, and what its report says."""

import json

import numpy as np
import pytest
from conftest import default_book

from cellformer import workbooks
from cellformer.engine.learning.recipe import IGNORED
from cellformer.engine.models import checkpoint
from cellformer.workbooks.semantic_tiny import semantics

pytestmark = pytest.mark.slow

ANALOGIES = semantics.ANALOGIES
TESTS = (  # on Printed, below the essay's figures, one of which has the same name
    "variance in six components: 75 % or more",
    "probes with R² above 0.8 (of six)",
    "analogies (of five)",
)
COORDINATES = {
    word: dict(zip(semantics.AXES, row, strict=True))
    for word, row in zip(semantics.CONTENT, semantics.TABLE, strict=True)
}
REPORT = json.loads((semantics.FOLDER / "report.json").read_text())


def reported(name: str, seed: int | None) -> dict:
    return next(r for r in REPORT["rows"] if (r["vectors"], r["seed"]) == (name, seed))


def assert_same(found: object, wanted: object) -> None:
    """Equal, numbers to 1e-6, wherever they stand."""
    if isinstance(wanted, dict):
        assert isinstance(found, dict) and list(found) == list(wanted)
        for key, value in wanted.items():
            assert_same(found[key], value)
    elif isinstance(wanted, list):
        assert isinstance(found, list)
        for a, b in zip(found, wanted, strict=True):
            assert_same(a, b)
    elif isinstance(wanted, float):
        assert found == pytest.approx(wanted, rel=0, abs=1e-6)
    else:
        assert found == wanted


# --- the table and the corpus -----------------------------------------------------------------


def test_no_two_words_share_their_coordinates() -> None:
    assert len({tuple(row) for row in semantics.TABLE}) == len(semantics.CONTENT) == 40
    assert np.abs(semantics.TABLE).max() == 1


@pytest.mark.parametrize("a, b, c, wanted", semantics.ANALOGIES)
def test_analogies_are_exact_in_the_table(a: str, b: str, c: str, wanted: str) -> None:
    for axis in semantics.AXES:
        shift = COORDINATES[a][axis] - COORDINATES[b][axis] + COORDINATES[c][axis]
        assert shift == COORDINATES[wanted][axis]
    (first, cosine), (_, next_cosine), *_ = semantics.analogy(semantics.TABLE, a, b, c)
    assert first == wanted
    assert cosine == pytest.approx(1) and next_cosine < 0.99


def is_true(words: list[str]) -> bool:
    """Whether the table bears a sentence out, read word by word."""
    subject, verb, *said = words
    if verb != "is" or subject not in COORDINATES:
        return False
    if "than" not in said:
        sides = {
            name: (axis, sign)
            for axis, pair in semantics.ADJECTIVES.items()
            for name, sign in zip(pair, (-1, 1), strict=True)
        }
        stated = dict(sides[name] for name in said)
        return stated == {a: np.sign(x) for a, x in COORDINATES[subject].items() if x}
    comparative, than, other = said
    axis = next(a for a, pair in semantics.COMPARATIVES.items() if comparative in pair)
    x, y = COORDINATES[subject][axis], COORDINATES[other][axis]
    more = semantics.COMPARATIVES[axis].index(comparative)
    return than == "than" and x * y != 0 and (x > y if more else x < y)


def test_every_sentence_is_true_of_the_table() -> None:
    ids = np.vstack([semantics.DEFINITIONS, semantics.COMPARISONS])
    assert len(np.unique(ids, axis=0)) == len(ids)
    for row in ids:
        first, *words, last = [semantics.WORDS[i] for i in row if i != IGNORED]
        assert (first, last) == (semantics.BOS, semantics.EOS)
        assert is_true(words), words


def test_truth_is_told_from_falsehood() -> None:
    assert is_true(["king", "is", "male", "adult", "strong", "animate", "mobile"])
    assert is_true(["lion", "is", "stronger", "than", "mouse"])
    assert not is_true(["queen", "is", "male", "adult", "strong", "animate", "mobile"])
    assert not is_true(["mouse", "is", "stronger", "than", "lion"])
    assert not is_true(["ship", "is", "older", "than", "king"])  # a ship has no age


def test_half_the_sentences_are_definitions() -> None:
    ids = semantics.sentences(np.random.default_rng(0), 4000)  # [n, LENGTH]
    known = {tuple(row) for row in np.vstack([semantics.DEFINITIONS, semantics.COMPARISONS])}
    assert {tuple(row) for row in ids} <= known
    compared = (ids == semantics.ID["than"]).any(1).mean()
    assert compared == pytest.approx(0.5, abs=0.03)
    again = semantics.sentences(np.random.default_rng(0), 4000)
    np.testing.assert_array_equal(ids, again)


# --- measures ---------------------------------------------------------------------------------


def test_variance_shares_of_known_variances() -> None:
    vectors = np.vstack([np.diag(np.sqrt(np.arange(1.0, 9))), -np.diag(np.sqrt(np.arange(1.0, 9)))])
    assert semantics.variance_shares(vectors + 5) == pytest.approx((15 / 36, 33 / 36))
    assert semantics.variance_shares(vectors[:, :3])[1] == pytest.approx(1)


@pytest.mark.parametrize("penalty", [1e-3, 1.0, 100.0])
def test_held_out_errors_equal_refits(penalty: float) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(12, 5)), rng.normal(size=12)
    again = []
    for i in range(12):
        slope, level = semantics.ridge(np.delete(x, i, 0), np.delete(y, i), penalty)
        again.append(y[i] - x[i] @ slope - level)
    found = semantics.held_out_errors(x, y, np.array([penalty]))
    np.testing.assert_allclose(found, [again], atol=1e-12)


def test_ridge_solves_its_normal_equations() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(12, 5)), rng.normal(size=12)
    slope, level = semantics.ridge(x, y, 2.0)
    left = y - x @ slope - level  # [n]
    np.testing.assert_allclose(x.T @ left, 2.0 * slope, atol=1e-12)
    assert left.sum() == pytest.approx(0, abs=1e-12)


def test_probe_tells_a_readable_axis_from_noise() -> None:
    rng = np.random.default_rng(2)
    vectors = rng.normal(size=(40, 32))
    readable = semantics.probe_r2(vectors, vectors[:, 0] - 2 * vectors[:, 1] + 3)
    assert readable == pytest.approx((1, 1), abs=1e-3)
    noise = semantics.probe_r2(vectors, rng.normal(size=40))
    assert noise.held_out < 0.3 and noise.in_sample > 0.6


def test_probe_does_not_depend_on_scale() -> None:
    rng = np.random.default_rng(3)
    vectors, axis = rng.normal(size=(40, 32)), semantics.TABLE[:, 0]
    assert semantics.probe_r2(vectors * 50, axis) == pytest.approx(
        semantics.probe_r2(vectors, axis), abs=1e-9
    )


# --- the trained models -----------------------------------------------------------------------


def test_report_of_the_table() -> None:
    assert_same(
        semantics.row("hand-wired", None, semantics.TABLE, None), reported("hand-wired", None)
    )


@pytest.mark.parametrize("scale", semantics.SCALES)
def test_shipped_weights_give_the_reported_measures(scale: float) -> None:
    model = checkpoint.load(semantics.FOLDER / f"scale-{scale}")
    assert model.spec == semantics.spec()
    assert model.vocabulary.texts == semantics.WORDS
    wanted = reported(f"learned, scale {scale}", semantics.SEEDS[0])
    vectors = model.weights["W_E"][semantics.ROWS]  # [n_words, d_model]
    assert_same(semantics.row(wanted["vectors"], wanted["seed"], vectors, wanted["loss"]), wanted)


@pytest.mark.parametrize("scale", semantics.SCALES)
def test_shipped_models_know_the_definitions(scale: float) -> None:
    model = checkpoint.load(semantics.FOLDER / f"scale-{scale}")
    prompt = "<BOS> king is male adult strong animate mobile"
    logits = model.graph(model.vocabulary.encode(prompt)).values["logits"]  # [n_tokens, d_vocab]
    said = [semantics.WORDS[i] for i in logits[3:].argmax(1)]
    assert said == ["adult", "strong", "animate", "mobile", semantics.EOS]


def test_report_has_every_seed_at_its_loss() -> None:
    for name in ("untrained", *(f"learned, scale {scale}" for scale in semantics.SCALES)):
        assert [r["seed"] for r in REPORT["rows"] if r["vectors"] == name] == list(semantics.SEEDS)
    losses = [r["loss"] for r in REPORT["rows"] if r["loss"] is not None]
    assert REPORT["loss_floor"] == pytest.approx(semantics.loss_floor(), abs=1e-6)
    assert np.array(losses) == pytest.approx(semantics.loss_floor(), abs=0.02)


# --- the sheets ---------------------------------------------------------------------------------


@pytest.mark.slow
def test_essay_tests_for_each_training() -> None:
    """The sheet Printed, from the weights themselves."""
    book = default_book("semantic-tiny")
    shown = {
        book.clean.cell("Printed", row, 1): [book.clean.cell("Printed", row, c) for c in (3, 4)]
        for row in range(5, 30)
    }
    for k, scale in enumerate(semantics.SCALES):
        vectors = checkpoint.load(semantics.FOLDER / f"scale-{scale}").weights["W_E"][
            semantics.ROWS
        ]
        probes = [semantics.probe_r2(vectors, axis).held_out for axis in semantics.TABLE.T]
        right = [
            semantics.analogy(vectors, *asked[:3])[0][0] == asked[3]
            for asked in semantics.ANALOGIES
        ]
        spread = np.linalg.eigvalsh(np.cov(vectors.T))[::-1]
        wanted = [spread[:6].sum() / spread.sum(), sum(x > 0.8 for x in probes), sum(right)]
        found = [shown[what][k] for what in TESTS]
        assert found == pytest.approx(wanted, abs=1e-6)
        if scale == 0.02:
            share = book.values["map.share"].astype(float).ravel()
            assert share == pytest.approx(spread[:4] / spread.sum(), abs=1e-9)


def test_untrained_vectors_are_explained_in_sample_only() -> None:
    """The trap on Printed: what the report says of them, measured anew."""
    rng = np.random.default_rng(0)
    vectors = semantics.decoder().initial(semantics.recipe(1.0), rng)["W_E"][semantics.ROWS]
    for axis, column in zip(semantics.AXES, semantics.TABLE.T, strict=True):
        measured = semantics.probe_r2(vectors, column)
        assert reported("untrained", 0)["r2"][axis] == pytest.approx(measured._asdict(), abs=1e-6)
        assert measured.in_sample > 0.75 and measured.held_out < 0.1


def vectors_of(name: str) -> np.ndarray:
    """One of the sets that the sheets compare, as the weights have it: [n_words, d]."""
    if name == "hand":
        return semantics.TABLE
    if name == "untrained":
        rng = np.random.default_rng(0)
        found = semantics.decoder().initial(semantics.recipe(1.0), rng)["W_E"]
    else:
        scale = {"wide": 1.0, "narrow": 0.02}[name]
        found = checkpoint.load(semantics.FOLDER / f"scale-{scale}").weights["W_E"]
    return found[semantics.ROWS].astype(np.float64)


@pytest.mark.parametrize("name", ["hand", "narrow", "wide"])
def test_analogies_and_maps_of_every_set(name: str) -> None:
    """Study's nearest words, and the share of the spread that a map of Two models shows."""
    book, vectors = default_book("semantic-tiny"), vectors_of(name)
    assert book.values[f"models.share_{name}"][0, 0] == pytest.approx(
        semantics.variance_shares(vectors)[0], abs=1e-9
    )
    for a, b, c, _ in ANALOGIES[:2]:
        asked = {book.graph["study.asked"][0, k]: word for k, word in enumerate((a, b, c))}
        shown = book.edited(asked)
        words = shown(book.graph[f"study.nearest_{name}"].area).ravel()
        cosines = shown(book.graph[f"study.nearest_{name}_cosine"].area).ravel()
        wanted = dict(semantics.analogy(vectors, a, b, c))
        assert [*words] == [*wanted] or len(set(np.round([*wanted.values()], 9))) < 5
        np.testing.assert_allclose(cosines.astype(float), [*wanted.values()], atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("n_components", [1, 10, 32])
def test_probes_equal_least_squares_refits(n_components: int) -> None:
    """Fits of numpy to all words, and to all but one, forty times."""
    book = default_book("semantic-tiny")
    shown = book.edited({book.graph["probes.components"][0, 0]: n_components})
    found = shown(book.graph["probes.explained"].area).astype(float)
    for k, name in enumerate(("untrained", "wide", "narrow")):
        vectors = vectors_of(name)
        centred = vectors - vectors.mean(axis=0)
        parts = np.linalg.svd(centred, full_matrices=False)[0][:, :n_components]
        x = np.column_stack([np.ones(len(parts)), parts])
        for a, (axis, y) in enumerate(zip(semantics.AXES, semantics.TABLE.T, strict=True)):
            whole = y - x @ np.linalg.lstsq(x, y, rcond=None)[0]
            left = []
            for i in range(len(y)):
                rest = np.arange(len(y)) != i
                left.append(y[i] - x[i] @ np.linalg.lstsq(x[rest], y[rest], rcond=None)[0])
            spread = np.sum((y - y.mean()) ** 2)
            wanted = [1 - np.sum(np.square(e)) / spread for e in (whole, left)]
            assert found[a, [k, k + 3]] == pytest.approx(wanted, abs=1e-8)
            if n_components == 32 and name != "wide":
                row = "untrained" if name == "untrained" else "learned, scale 0.02"
                reported_r2 = reported(row, 0)["r2"][axis]["in_sample"]
                assert found[a, k] == pytest.approx(reported_r2, abs=1e-6)


@pytest.mark.slow
def test_averages_over_reference_sentences() -> None:
    """What mean ablation writes: measured again from the blocks of single sentences, in which a
    part works at every token."""
    model = workbooks.find("semantic-tiny").model()
    drawn = semantics.sentences(np.random.default_rng(0), 32)
    written: dict[str, list[np.ndarray]] = {"blocks.1.attn.h0": [], "blocks.0.mlp": []}
    for ids in drawn:
        values = model.graph(ids[ids >= 0][:-1].tolist()).values
        written["blocks.1.attn.h0"].append(values["blocks.1.attn.h0.result"])
        written["blocks.0.mlp"].append(values["blocks.0.mlp_out"])
    for part, results in written.items():
        mean = np.concatenate(results).mean(axis=0)
        assert np.abs(mean).max() > 0.01
        np.testing.assert_allclose(model.averages[f"{part}.average"].ravel(), mean, atol=1e-9)


def test_words_of_the_question_are_no_answer() -> None:
    book = default_book("semantic-tiny")
    shown = [
        book.clean.cell("Study", *at) for at in book.sheets["Study"].entries if 7 <= at[1] < 10
    ]
    assert not [x for x in shown if isinstance(x, float) and x < -1]
