"""reward: its step in cells, what it says before and after, bad entries, and LibreOffice."""

from collections import defaultdict
from itertools import islice, product
from math import exp, log
from pathlib import Path

import numpy as np
import pytest
from conftest import Built, cli, default_book, libreoffice_after, recomputed_in_ironcalc
from test_learn_window import agree, in_libreoffice

from cellformer.engine import Evaluator
from cellformer.engine.learning.training import Progress
from cellformer.engine.models import checkpoint
from cellformer.exporters.compose.book import Book
from cellformer.workbooks import reward
from cellformer.workbooks.reward import after, game, learning
from cellformer.workbooks.reward.learning import Made, Weights

TRAINED = learning.load()
BOOKS = TRAINED[learning.NEW]
NUMBERS = game.random_numbers(0)
N_STEPS = 30
BAD = {
    "begin": "zebra", "reward": "profit", "kl_weight": -1.0, "clip_range": "wide",
    "learning_rate": 1e9, "updates": "often",
}  # fmt: skip
WORDS = {
    "begin": "unknown", "reward": "unknown", "kl_weight": "low", "clip_range": "number?",
    "learning_rate": "high", "updates": "number?",
}  # fmt: skip


@pytest.fixture(scope="module")
def live() -> Evaluator:
    """The workbook, to be put back after each edit."""
    return Evaluator(default_book("reward").graph)


# --- the included models --------------------------------------------------------------------------


@pytest.mark.slow
def test_training_repeats_the_included_weights() -> None:
    *_, last = learning.train(0)
    assert not isinstance(last, Progress) and last.keys() == TRAINED.keys()
    for name, weights in last.items():
        for block, values in weights.items():
            assert (values == TRAINED[name][block]).all(), (name, block)


def test_train_writes_the_included_file(tmp_path: Path) -> None:
    reward.save(TRAINED, tmp_path / "model", False)
    found = (tmp_path / "model" / learning.FILE).read_bytes()
    assert found == (learning.FOLDER / learning.FILE).read_bytes()
    assert reward.is_part(learning.FILE) and not reward.is_part("model.safetensors")


def test_figures_of_the_included_models() -> None:
    told = dict(reward.figures(TRAINED))
    assert told["books"] == "20.6% right, entropy 3.97, most often C"
    assert told["balanced"].startswith("99.9% right, entropy 0.07, most often DC")
    assert sum(x.size for x in BOOKS.values()) == 616


# --- texts ----------------------------------------------------------------------------------------


def test_there_are_255_texts_and_127_beginnings() -> None:
    every = {*map(tuple, game.EVERY)}
    ended = {(*entries, game.END) for n in range(7) for entries in product((0, 1), repeat=n)}
    assert every == ended | {*product((0, 1), repeat=7)} and len(game.EVERY) == len(every) == 255
    assert len(game.BEGINNINGS) == 127
    for k, begun in enumerate(game.BEGINNINGS, 1):
        for word in (0, 1):
            assert game.entries(2 * k + word) == [*begun, word]


@pytest.mark.parametrize(
    ("text", "rewards"),
    [
        ("DC.", (1, 1, 2 / 7)),
        ("CD.", (1, 0, 2 / 7)),
        ("C.", (0, 1, 1 / 7)),
        (".", (0, 0, 0)),
        ("DDDCCC.", (1, 1, 6 / 7)),
        ("DCDCDCC", (0, 0, 1)),
    ],
)
def test_rewards(text: str, rewards: tuple[float, ...]) -> None:
    ids = game.ids([["DC.".index(word) for word in text]])
    assert tuple(game.rewards(kind, ids)[0] for kind in game.REWARDS) == pytest.approx(rewards)
    book = default_book("reward").graph
    row = book.values["text.name"].ravel().tolist().index(text)
    assert book.values["text.rewards"][row].astype(float) == pytest.approx(rewards)


def test_random_books_have_the_stated_probabilities() -> None:
    rng, wanted = np.random.default_rng(5), game.next_in_books()
    counts: dict[int, np.ndarray] = defaultdict(lambda: np.zeros(3))
    for row in game.books(rng, 40_000).tolist():
        b = 1
        for word in row:
            counts[b][word] += 1
            if word == game.END:
                break
            b = 2 * b + word
    for b, found in counts.items():
        if found.sum() > 2000:
            assert found / found.sum() == pytest.approx(wanted[b - 1], abs=0.03), b


# --- the step in cells ----------------------------------------------------------------------------


@pytest.mark.slow
def test_table_of_the_model_equals_a_pass_over_each_text(live: Evaluator) -> None:
    for name, weights in TRAINED.items():
        live.set("begin", 0, 0, name)
        found = live["all.probs"].astype(float)
        assert np.abs(found - learning.next_words(weights)).max() < 1e-12
        drawn = learning.written(learning.one_text(weights), weights, NUMBERS[0])
        assert (live["texts"].astype(int) == drawn).all()
    live.set("begin", 0, 0, learning.NEW)


def test_first_step_equals_the_engine(live: Evaluator) -> None:
    for kind in game.REWARDS:
        live.set("reward", 0, 0, kind)
        (made,) = islice(learning.learn(BOOKS, NUMBERS, kind, 0.02), 1)
        assert live["reward.of_text"].ravel() == pytest.approx(game.rewards(kind, made.ids))
        assert live["policy.loss"][0, 0] == pytest.approx(made.loss, abs=1e-12)
        for name, values in made.weights.items():
            assert np.abs(live[f"next.{name}"] - values).max() < 1e-12
    live.set("reward", 0, 0, game.BALANCED)


@pytest.mark.slow
def test_recalculations_make_steps_with_two_updates_of_each_batch() -> None:
    """By the thin workbook: four steps, two for each batch of texts."""
    book = default_book("thin-reward")
    begun = {name: book.graph.values[f"start.{name}"].astype(float) for name in BOOKS}
    found, live = [], Evaluator(book.graph)
    live.set("recalculations", 0, 0, 1.0)
    live.set("updates", 0, 0, 2.0)
    live.set("state", 0, 0, "learn")
    for tick in (3.5, 4.5, 5.5, 6.5):
        found.append(float(live["policy.loss"][0, 0]))
        live.set("latch.tick", 0, 0, tick)
    made = islice(learning.learn(begun, NUMBERS, game.BALANCED, 0.02, 2), 4)
    assert found == pytest.approx([one.loss for one in made], abs=1e-12)


def test_equal_rewards_teach_nothing(live: Evaluator) -> None:
    """Step 2 Write says so: the model that has learnt writes eight right texts."""
    live.set("begin", 0, 0, "balanced")
    assert (live["reward.of_text"] == 1).all() and (live["advantage.of_text"] == 0).all()
    assert live["loss.surrogate"][0, 0] == 0
    live.set("begin", 0, 0, learning.NEW)


def test_nothing_is_clipped_in_the_first_update_and_something_in_later_ones() -> None:
    """As Step 4 Loss says."""
    book = default_book("reward")
    assert (book.values["policy.ratio"] == 1).all() and book.values["loss.clips"][0, 0] == 0
    clipped = clips(list(islice(learning.learn(BOOKS, NUMBERS, game.BALANCED, 0.02, 4), 40)))
    assert not any(clipped[::4]) and sum(clipped) > 0


def clips(made: list[Made]) -> list[int]:
    """The words of each step whose ratio is beyond the clip range, with four updates a batch."""
    found, weights, drawn = [], BOOKS, np.array([])
    for n, one in enumerate(made):
        now = of_words(weights, one.ids)
        drawn = drawn if n % 4 else now
        counted = np.arange(game.LENGTH) < game.lengths(one.ids)[:, None]
        found.append(int(((np.abs(now / drawn - 1) > 0.2) & counted).sum()))
        weights = one.weights
    return found


def of_words(weights: Weights, ids: np.ndarray) -> np.ndarray:
    """The probability of each word of some texts."""
    given = learning.probabilities(learning.one_text(weights), weights, ids)
    return np.take_along_axis(given, ids[..., None], 2)[..., 0]


@pytest.mark.slow
def test_largest_rate_overflows_nothing() -> None:
    for made in islice(learning.learn(BOOKS, NUMBERS, game.BALANCED, 10.0, 4, rate=1.0), 200):
        assert np.isfinite([made.loss, made.surprise]).all()
        assert all(np.isfinite(x).all() for x in made.weights.values())


# --- before and after -----------------------------------------------------------------------------


@pytest.mark.slow
def test_figures_equal_sums_over_all_texts(live: Evaluator) -> None:
    for name, weights in TRAINED.items():
        live.set("begin", 0, 0, name)
        measured = learning.measured(weights)
        assert live["kinds"][0, 1] == pytest.approx(measured.right, abs=1e-12)
        assert live["variety"][0, 1] == pytest.approx(measured.variety, abs=1e-9)
        assert live["variety"][1, 1] == pytest.approx(exp(measured.variety), rel=1e-9)
        assert live["likeliest"][0, 1] == f"{measured.favourite}."
        assert live["kinds"][:, 1].astype(float).sum() == pytest.approx(1, abs=1e-12)
        assert live["kinds"][0, 1] == pytest.approx(live["expected"][0, 1], abs=1e-12)
        assert live["certainty"][:, 1].astype(float) == pytest.approx(reliability(weights))
    live.set("begin", 0, 0, learning.NEW)


def reliability(weights: Weights) -> list[float]:
    """How sure a model is of its likeliest word, how often it comes in random books, and the mean
    distance between the two over bins of 10 %."""
    given, books = learning.next_words(weights), game.next_in_books()
    reached = np.ones(127)
    for k in range(1, 127):
        b = k + 1
        reached[k] = reached[b // 2 - 1] * books[b // 2 - 1, b % 2]
    sure, best = given.max(1), given.argmax(1)
    right, share = books[np.arange(127), best], reached / reached.sum()
    bins = np.minimum((sure * 10).astype(int), 9)
    gaps = [abs((share * (sure - right))[bins == k].sum()) for k in range(10)]
    return [share @ sure, share @ right, sum(gaps)]


@pytest.mark.slow
def test_what_the_sheets_say_about_the_trained_models(live: Evaluator) -> None:
    """The numbers on Start, and what docs/learning.md adds."""
    found = {}
    for name in TRAINED:
        live.set("begin", 0, 0, name)
        found[name] = {
            key: live[key].copy() if key == "likeliest" else live[key].astype(float)
            for key in ("kinds", "expected", "variety", "certainty", "likeliest", "likeliest.share")
        }
    live.set("begin", 0, 0, learning.NEW)
    texts = said(default_book("reward"))
    for claim in (
        "At first 20.6 % of the texts are right",
        "After 200 steps, 99.9 % of the texts are right. But 98.8 % of them are the same text",
        "The model is now 93 % sure of the next word of a random book, and right in 37 % of all",
        "the variety is like 22.9 equally likely texts, not 53.2 as at first. 70 %",
        "99.8 % of the texts end with a credit, not 51.1 %. But only 15.9 % balance, not 20.6 %",
    ):
        assert claim in texts, claim
    assert found["balanced"]["variety"][1, 1] == pytest.approx(1.07, abs=0.005)
    assert found["books"]["certainty"][:, 1] == pytest.approx([0.442, 0.439, 0.004], abs=5e-4)
    assert found["balanced"]["certainty"][:, 1] == pytest.approx([0.933, 0.373, 0.560], abs=5e-4)
    assert found["credit"]["likeliest"][0, 1] == "C."
    assert found["credit"]["likeliest.share"][0, 1] == pytest.approx(0.63, abs=5e-3)
    assert found["long"]["expected"][2, 1] == pytest.approx(6 / 7, abs=5e-4)  # six entries
    assert found["long"]["kinds"][4, 1] < 0.001  # never seven
    assert found["long"]["kinds"][0, 1] == pytest.approx(0.31, abs=5e-3)


def said(book: Book) -> str:
    """All texts of the start sheet."""
    return " ".join(str(e.value) for e in book.sheets["Start"].entries.values() if e.value)


def test_reference_is_the_model_that_imitates(live: Evaluator) -> None:
    held = live["before.probs"].astype(float)
    assert np.abs(held - learning.next_words(BOOKS)).max() < 1e-15
    for side in after.SIDES:
        assert live[f"{side}.text"].astype(float).sum() == pytest.approx(1, abs=1e-12)
    lost = -sum(p * log(p) for p in live["before.text"].astype(float).ravel())
    assert lost == pytest.approx(live["variety"][0, 0])


# --- entries that are no settings -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "word"),
    [
        ("kl_weight", -0.1, "low"),
        ("kl_weight", 11.0, "high"),
        ("clip_range", -1.0, "low"),
        ("clip_range", 1.5, "high"),
        ("learning_rate", 1e9, "high"),
        ("learning_rate", -1.0, "low"),
        ("updates", 0.0, "low"),
        ("updates", 21.0, "high"),
        ("reward", "profit", "unknown"),
        ("begin", "zebra", "unknown"),
    ],
)
def test_default_counts_for_a_bad_entry(name: str, value: float | str, word: str) -> None:
    book = default_book("reward")
    seen = book.edited({book.graph[name][0, 0]: value})
    assert seen(book.graph[f"{name}.word"][0, 0]) == word
    for block in ("next.W_U", "next.blocks.0.attn.h0.W_Q"):
        assert (seen.values[block] == book.values[block]).all()


def test_bad_entries_in_ironcalc_and_libreoffice(built: Built, libreoffice, tmp_path: Path) -> None:
    """A word beside each, no error anywhere, and every step with the default."""
    book, cells = default_book("thin-reward"), built.formula_cells("thin-reward")
    typed = {book.cell(name, 0, 0): value for name, value in BAD.items()}
    words = {book.cell(f"{name}.word", 0, 0): word for name, word in WORDS.items()}
    effects = [book.cell("next.W_U", i, j) for i in range(4) for j in range(3)]
    sheet = recomputed_in_ironcalc(cells, tmp_path)
    (shown,) = libreoffice_after(built["thin-reward"], [typed], tmp_path / "office")
    with sheet.typed(typed):
        assert {at: sheet[at] for at in words} == words
        for at in effects:
            assert sheet[at] == pytest.approx(cells.formulas[at], abs=1e-9)
        assert not [at for at in cells.formulas if str(sheet[at]).startswith("#")]
    assert {at: shown[at[0]][at[1:]] for at in words} == words
    for at in effects:
        assert shown[at[0]][at[1:]] == pytest.approx(cells.formulas[at], abs=1e-9)
    assert not [name for name in shown if shown[name].errors]


# --- files ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_steps_in_a_window_equal_the_engine(built: Built, libreoffice) -> None:
    """`learn` typed, F9 pressed 60 times, and the sheets of the step shown now and then."""
    (shown,) = in_libreoffice(built["reward"], N_STEPS, "window", name="reward").values()
    made = list(islice(learning.learn(BOOKS, NUMBERS, game.BALANCED, 0.02), N_STEPS + 1))
    agree(shown, [one.surprise for one in made], made[N_STEPS - 1].weights, 1e-9)
    assert shown["recalculations"] <= 2 * N_STEPS + 2
    assert shown["begun"] == [0, pytest.approx(made[0].surprise, abs=1e-12)]


@pytest.mark.slow
def test_import_learnt_weights(built: Built, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    assert cli("import", built["reward"], "-o", folder).code == 0
    model = checkpoint.load(folder)
    assert model.vocabulary.encode("END D C") == [2, 0, 1]
    for name, values in BOOKS.items():
        assert np.abs(model.weights[name] - values).max() < 1e-7  # the checkpoint is float32
