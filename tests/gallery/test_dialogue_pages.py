"""The sheets Rules, Calibration and Printed of the dialogue game: their numbers computed a second
time, in numpy alone, and the edits that they suggest."""

from collections.abc import Callable, Mapping
from functools import cache

import numpy as np
import pytest
from conftest import CellAt

from cellformer.engine.cells.batch import CellName
from cellformer.engine.models.generate import passage
from cellformer.exporters.compose.book import Book
from cellformer.exporters.compose.story import Suggestion
from cellformer.exporters.file.reading import Value
from cellformer.workbooks import dialogue_game
from cellformer.workbooks.dialogue_game import calibration, game, measured, printed, rewarded, rules

pytestmark = pytest.mark.slow

MODEL = dialogue_game.model()
W = MODEL.weights
N_HEADS, D_HEAD, N_COLUMNS = 4, 16, 5
PAGES = ("Rules", "Calibration")


@cache
def book() -> Book:
    ids = MODEL.vocabulary.encode(dialogue_game.PROMPT)
    return dialogue_game.build(MODEL, passage(MODEL, ids, N_COLUMNS))


# --- the second computation: many games at once, in numpy ---------------------------------------


def norm(x: np.ndarray, name: str) -> np.ndarray:
    x = x - x.mean(-1, keepdims=True)
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * W[f"{name}.w"] + W[f"{name}.b"]


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def stages(ids: np.ndarray, off: str = "") -> list[np.ndarray]:
    """The stream after the embedding and after each sublayer, [n, length, d_model] each."""
    future = np.triu(np.ones((ids.shape[1],) * 2), 1) > 0
    x = W["W_E"][ids] + W["W_pos"][: ids.shape[1]]
    found = [x]
    for layer in ("blocks.0", "blocks.1"):
        y = norm(x, f"{layer}.ln1")
        for head in (f"{layer}.attn.h{n}" for n in range(N_HEADS)):
            q, k, v = (y @ W[f"{head}.W_{c}"] + W[f"{head}.b_{c}"] for c in "QKV")
            scores = np.where(future, -np.inf, q @ k.swapaxes(1, 2) / np.sqrt(D_HEAD))
            x = x + (softmax(scores) @ v @ W[f"{head}.W_O"]) * (head != off)
        x = x + W[f"{layer}.attn.b_O"]
        y = norm(x, f"{layer}.ln2") @ W[f"{layer}.mlp.W_in"] + W[f"{layer}.mlp.b_in"]
        y = y / (1 + np.exp(-2 * np.sqrt(2 / np.pi) * (y + 0.044715 * y * y * y)))
        found += [
            x,
            x + (y @ W[f"{layer}.mlp.W_out"] + W[f"{layer}.mlp.b_out"]) * (f"{layer}.mlp" != off),
        ]
        x = found[-1]
    return found


def said(x: np.ndarray) -> np.ndarray:
    """The probabilities of every word that a stream is read out as."""
    return softmax(norm(x, "ln_final") @ W["W_E"].T)


@cache
def said_in_games(off: str) -> np.ndarray:
    return said(stages(games()[:, :-1], off)[-1])


@cache
def games() -> np.ndarray:
    return game.games(np.random.default_rng(measured.SEED), measured.N_GAMES)


@cache
def states() -> list[list[game.State]]:
    """What the grammar knows before every word of every game."""
    return [game.states([game.WORDS[i] for i in row])[:-1] for row in games()]


@pytest.mark.parametrize("part", ["", "blocks.1.attn.h2"])
def test_how_often_each_rule_is_kept(part: str) -> None:
    """The stored table, of all games anew."""
    probs = said_in_games(part)
    total, n = dict.fromkeys(game.RULES, 0.0), dict.fromkeys(game.RULES, 0)
    for known, p in zip(states(), probs, strict=True):
        for k, state in enumerate(known):
            for rule, broken in game.rules(state).items():
                total[rule] += 1 - p[k, [game.ID[word] for word in broken]].sum()
                n[rule] += 1
    again = {rule: total[rule] / n[rule] for rule in game.RULES}
    assert again == pytest.approx(rules.kept()[part], abs=1e-6)


def test_counted_games() -> None:
    """Bins of what the model says: all words of all games once, and what was said in each bin."""
    found = [measured.Bin(*line) for line in measured.stored()["bins"]]
    probs = said_in_games("")
    before_end = np.array([[state.next != "pad" for state in known] for known in states()])
    shown = probs[before_end].ravel()
    for b in found:
        among = shown[(shown >= b.low) & (shown < b.high)]
        assert (len(among), among.mean()) == (b.n, pytest.approx(b.said, abs=1e-8))
        if b.n > 1000:  # the grammar's share is what comes, but for chance
            assert abs(b.happened - b.grammar) < 4 * np.sqrt(b.grammar / b.n) + 1e-9
    assert sum(b.n for b in found) == shown.size
    assert sum(b.n * b.happened for b in found) == pytest.approx(before_end.sum(), rel=1e-6)


@pytest.mark.parametrize("heat", [1.0, 0.4, 3.0])
def test_loss_at_a_temperature(heat: float) -> None:
    """Each situation's loss is the mean of -log p under the grammar; least at 1, near its floor."""
    after = book().edited({book().graph["calibration.temperature"][0, 0]: heat})
    for n, text in enumerate(calibration.SITUATIONS):
        ids = np.array([MODEL.vocabulary.encode(text)])
        logits = norm(stages(ids)[-1], "ln_final")[0, -1] @ W["W_E"].T
        p, exact = softmax(logits / heat), np.array(calibration.exact(text))
        loss = float(-(exact * np.log(p)).sum())
        assert after(book().graph[f"calibration.{n}.loss"].area) == pytest.approx(loss, abs=1e-9)
        floor = float(-(exact[exact > 0] * np.log(exact[exact > 0])).sum())
        assert calibration.entropy(exact.tolist()) == pytest.approx(floor)
        assert (loss - floor < 0.005) == (heat == 1)


def test_certainty_on_nonsense() -> None:
    ids = np.array([MODEL.vocabulary.encode(calibration.NONSENSE[0])])
    probs = said(stages(ids)[-1])[0, -1]
    assert (game.WORDS[int(probs.argmax())], probs.max()) == (
        "<SEP>",
        pytest.approx(0.99998, abs=5e-6),
    )
    sheet = book().sheets["Calibration"]
    shown = [e.value for e in sheet.entries.values() if e.style == "tiny"]
    assert shown[0] == pytest.approx(probs.max(), abs=1e-9)


# --- the sheet Printed ----------------------------------------------------------------------------


def recomputed() -> Mapping[str, float]:
    """What Printed shows as recomputed, by what it is of."""
    sheet = book().sheets[printed.SHEET]
    rows = {at[0]: entry.value for at, entry in sheet.entries.items() if at[1] == 1}
    shown = {name: book().clean.cell(sheet.name, row, 3) for row, name in rows.items()}
    return {name: x for name, x in shown.items() if isinstance(x, float)}


def test_figures_of_the_essays() -> None:
    found = recomputed()
    streams = [x[0] for x in stages(np.array([MODEL.vocabulary.encode(dialogue_game.PROMPT)]))]
    tarso = W["W_E"][game.ID["Tarso"]]
    along = [float(x[-1] @ tarso / np.linalg.norm(tarso)) for x in streams]
    numbers = said(streams[-1])[2, [game.ID[n] for n in game.NUMBERS]]
    order = [game.NUMBERS[k] for k in np.argsort(-numbers)]
    wanted = {
        "§3: Tarso": said(streams[-1])[-1, game.ID["Tarso"]],
        "§4: the least": numbers.min(),
        "§4: the likeliest": numbers.max(),
        "§5: Tarso after the first block": said(streams[2])[-1, game.ID["Tarso"]],
        "at the start": along[0],
        "at the end": along[-1],
        "attention adds": along[1] - along[0],
        **{f"place of {n} ": order.index(n) + 1 for n in game.NUMBERS},
    }
    for what, value in wanted.items():
        (name,) = [name for name in found if what in name]
        assert found[name] == pytest.approx(float(value), abs=1e-9), name
    path = np.array([x[-1] for x in streams])
    paolo = W["W_E"][game.ID["Paolo"]]
    plane = np.linalg.qr(np.column_stack([tarso, paolo]))[0]
    spread, held = path.var(axis=0).sum(), (path @ plane).var(axis=0).sum()
    (name,) = [name for name in found if "share of the path" in name]
    assert found[name] == pytest.approx(held / spread, abs=1e-9)


# --- the edits that the pages suggest -------------------------------------------------------------

TOGETHER = (  # edits that do not touch each other, in one go
    (("Rules", 0), ("Calibration", 0), ("Calibration", 1)),
    (("Rules", 1),),
    (("Rules", 2),),
    (("Calibration", 2),),
)
Edits = dict[CellName, float | str]


def suggested(k: int) -> tuple[list[Suggestion], Edits]:
    """Edits that are made together: what they say, and what is typed."""
    found = [book().sheets[page].suggestions[n] for page, n in TOGETHER[k]]
    return found, {t.cell: t.value for t in found}


def becomes(text: str, heat: float = 1.0, off: str = "") -> np.ndarray:
    """What is said after a sentence: [d_vocab]."""
    ids = np.array([MODEL.vocabulary.encode(text)])
    return softmax(norm(stages(ids, off)[-1], "ln_final")[0, -1] @ W["W_E"].T / heat)


def wanted(page: str, k: int) -> str | float:
    """What an edit promises, computed here."""
    prompt, tarso = dialogue_game.PROMPT, game.ID["Tarso"]
    if (page, k) == ("Rules", 0):
        left = becomes(prompt, off="blocks.1.attn.h2")[tarso]
        broken = "peer epithet 1.00 → 0.01, loser named 1.00 → 0.93"
        return f"Right: without the head, Tarso has {left:.4f}; {broken}"
    if page == "Rules":
        return float(becomes(prompt, off=f"blocks.{2 - k}.attn.h{4 - 2 * k}")[tarso])
    if k:
        return float(becomes((calibration.UNSURE, calibration.NONSENSE[0])[k - 1]).max())
    exact = np.array(calibration.exact(calibration.UNSURE))
    return float(-(exact * np.log(becomes(calibration.UNSURE, 3.0))).sum())


def assert_kept(k: int, shown: Callable[[CellAt], Value]) -> None:
    """A program shows what edits made together promise."""
    for (page, n), t in zip(TOGETHER[k], suggested(k)[0], strict=True):
        promised = wanted(page, n)
        shape = promised if isinstance(promised, str) else pytest.approx(promised, abs=1e-9)
        assert shown(book().cell(*t.watch)) == shape, t.text


def test_every_edit_does_what_it_says() -> None:
    """In the engine; test_gallery holds IronCalc and LibreOffice to it."""
    assert all(len(book().sheets[page].suggestions) == 3 for page in PAGES)
    for k in range(len(TOGETHER)):
        edits = {book().graph[name][i, j]: x for (name, i, j), x in suggested(k)[1].items()}
        after = book().edited(edits)
        assert_kept(k, lambda at, after=after: after.cell(*at))


def test_misleading_pictures() -> None:
    """Head 1.2 looks at the verb and is needed; head 0.0 looks there too and is not."""
    texts = {}
    for head, guess in ((0, "yes"), (0, "no"), (6, "yes"), (6, "no")):
        after = book().edited({book().graph["walk.guess"][head, 0]: guess})
        texts[head, guess] = str(after(book().graph["walk.answer"][head, 0]))
        assert after(book().graph["walk.word"][head, 0]) == "chiama"
    assert texts[0, "yes"].startswith("No: ") and texts[0, "no"].startswith("Right: ")
    assert texts[6, "yes"].startswith("Right: ") and texts[6, "no"].startswith("No: ")
    assert "peer epithet 1.00 → 0.01" in texts[6, "yes"]
    shares = book().values["walk.share"]
    assert shares[6] == pytest.approx([0.989, 0.001], abs=0.001)
    assert shares[0, 0] == pytest.approx(0.919, abs=0.001)


def test_reliability_before_and_after_a_reward() -> None:
    """As trained: bins of the first word, counted again; rewarded: as often right, and surer."""
    probs = said_in_games("")
    before_end = np.array([[state.next != "pad" for state in known] for known in states()])
    first, came = probs.max(-1)[before_end], games()[:, 1:][before_end]
    right = probs.argmax(-1)[before_end] == came
    trained, reward, warmed = rewarded.stored()["sets"]
    for low, high, n, said_there, hits in trained["bins"]:
        among = (first >= low) & (first < high + (high == 1))
        assert among.sum() == n
        assert first[among].mean() == pytest.approx(said_there, abs=1e-5)
        assert right[among].mean() == pytest.approx(hits, abs=1e-6)
    shown = book().clean(book().graph["reliability.figures"].area)
    assert shown[:, 0] == pytest.approx([right.mean(), first.mean(), 0.004557], abs=1e-5)
    assert shown[0] == pytest.approx([shown[0, 0]] * 3, abs=0.003)
    assert shown[2, 0] < 0.01 < shown[2, 2] < shown[2, 1]
    assert trained["loss"] < warmed["loss"] < reward["loss"]


def test_reward_makes_a_model_surer(torch) -> None:
    """Its steps raise the share of what comes, which is largest for a model that is sure."""
    learner = rewarded.learner_of(MODEL)
    drawn = game.games(np.random.default_rng(rewarded.SEED), 16)
    losses = [learner.step(rewarded.RECIPE.warmup, drawn) for _ in range(4)]
    assert losses == sorted(losses, reverse=True) and losses[0] < -0.5
