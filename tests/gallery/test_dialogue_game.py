"""The shipped model keeps the rules; its workbook recomputes, generates, and takes any prompt."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from conftest import (
    CellAt,
    InIronCalc,
    assert_agrees,
    default_book,
    needs,
    recalculated,
    typed,
)

from engine import Model
from engine.cells.batch import variants
from engine.models.choosing import Sampling
from engine.models.generate import generate, passage
from engine.models.training import Progress
from engine.studies import ablation
from exporters.layout import FROM_ROW, ID_ROW, PROMPT_COL
from exporters.reading import WorkbookFile
from exporters.verify import poison, read, verify
from exporters.xlsx import write
from workbooks import dialogue_game
from workbooks.dialogue_game import game

OFFICE = pytest.mark.office
MODEL = dialogue_game.model()
GREEDY, SAMPLED = Sampling(), Sampling(temperature=1.5, top_k=12, top_p=0.95)
PROMPTS = (
    "<BOS> Pietro chiama Paolo",
    "<BOS> 3",
    "<BOS> 5 chiama Pietro capo <SEP> Pietro chiama",
    "<BOS> Paolo chiama banana <SEP>",
    "<BOS>",
)
NARROW = 5  # columns, where a narrower sheet shows the same


def ids_of(text: str) -> list[int]:
    return MODEL.vocabulary.encode(text)


# --- the model --------------------------------------------------------------------------------


def test_the_essay_s_prompts() -> None:
    probs = MODEL.graph(ids_of("<BOS> Pietro chiama Paolo")).values["probs"][-1]
    assert probs[game.ID["Tarso"]] >= 0.999
    probs = MODEL.graph(ids_of("<BOS> Pietro chiama")).values["probs"][-1]
    assert all(0.10 <= probs[game.ID[number]] <= 0.12 for number in game.NUMBERS)
    assert probs[game.ID["Paolo"]] == pytest.approx(0.94 / 17, abs=0.003)


def test_the_loss_is_at_its_floor() -> None:
    games = game.games(np.random.default_rng(77), 200)
    assert game.loss(MODEL, games) - game.floor(games) < 0.005


def probabilities(games: np.ndarray) -> np.ndarray:
    """The next word's probabilities in games of one length, as variants of the first:
    [n, length - 1, d_vocab]."""
    graph = MODEL.graph(games[0, :-1].tolist())
    changes = [{("tokens", t, 0): float(i) for t, i in enumerate(row[:-1])} for row in games]
    return variants(graph, changes)["probs"]


def test_a_game_among_many_is_the_game_alone() -> None:
    games = game.games(np.random.default_rng(76), 3)
    for row, probs in zip(games, probabilities(games), strict=True):
        alone = MODEL.graph(row[:-1].tolist()).values["probs"]
        np.testing.assert_allclose(probs, alone, rtol=0, atol=1e-12)


def test_epithets_and_calls_over_ten_thousand_turns() -> None:
    """Epithets: is the likeliest word the right one? Calls: how much is left to calling back?"""
    wrong = turns = 0
    kept: list[float] = []
    games = game.games(np.random.default_rng(78), 1700)
    for several in np.split(games, 17):
        for row, probs in zip(several, probabilities(several), strict=True):
            words = [game.WORDS[i] for i in row]
            for k, state in enumerate(game.states(words)[: len(words) - 1]):
                turns += state.next == "callee"
                if state.next == "epithet":
                    wrong += game.WORDS[int(probs[k].argmax())] != words[k + 1]
                if state.next == "callee" and state.before:
                    kept.append(1 - probs[k, game.ID[state.before]])
    assert turns >= 10_000
    assert wrong <= 0.001 * turns
    assert np.mean(kept) >= 0.995


def test_one_head_carries_one_rule() -> None:
    games = game.games(np.random.default_rng(79), 120)
    kept = game.accuracies(MODEL, games, [{}, {("blocks.1.attn.h1.switch", 0, 0): 0.0}])
    before, off = (dict(zip(game.RULES, row, strict=True)) for row in kept)
    assert min(before.values()) > 0.999
    assert off.pop("perde") <= 0.35
    assert min(off.values()) >= 0.95


def test_the_weights_are_small_and_float32() -> None:
    assert (dialogue_game.FOLDER / "model.safetensors").stat().st_size < 1_000_000
    assert all((w == w.astype(np.float32)).all() for w in MODEL.weights.values())


@OFFICE
def test_training_starts_as_it_should() -> None:
    pytest.importorskip("torch", reason="torch is not installed; pip install 'cellformer[train]'")
    steps = dialogue_game.train(9, None)
    first = [next(steps) for _ in range(3)]
    again = dialogue_game.train(9, None)
    for a, b in zip(first, again, strict=False):
        assert isinstance(a, Progress) and isinstance(b, Progress)
        assert a.loss == b.loss and (a.ids == b.ids).all()
    assert first[0].loss > np.log(28)  # no better than a guess


# --- the workbook -----------------------------------------------------------------------------


def build(model: Model, prompt: str, n: int, sampling: Sampling, path: Path, seed: int = 0) -> Path:
    words = passage(model, ids_of(prompt), n, sampling, seed)
    return write(dialogue_game.build(model, words), path)


WAYS = ("greedy", "sampled")
FIVE = {
    f"{k} {way}": (prompt, sampling, k)
    for k, prompt in enumerate(PROMPTS)
    for way, sampling in zip(WAYS, (GREEDY, SAMPLED), strict=True)
}
PARTS = ablation.parts(MODEL.graph([0]))
N_TYPED, N_IN_LIBREOFFICE, N_COLUMNS = 20, 4, 12
SENTENCES = [
    ("", "nothing is typed"),
    ("<BOS> Pitro chiama", "a word is unknown"),
    (" ".join(["<BOS>", *["Pietro chiama 3 <SEP>"] * 3]), "13 given, 3 generated"),
    (" ".join(["<BOS>", *["1 chiama 2 <SEP> 2"] * 3]), "16 given, 0 generated"),
    (" ".join(["<BOS>", *["1 chiama 2 <SEP> 2"] * 5]), "longer than the 16 columns"),
]


def full_prompt(folder: Path) -> Path:
    """A workbook whose prompt is as long as the context."""
    ids = game.games(np.random.default_rng(81), 1)[0, :-1].tolist()
    assert len(ids) == MODEL.spec.n_ctx
    return write(dialogue_game.build(MODEL, passage(MODEL, ids)), folder / "full.xlsx")


def switched_off(k: int, folder: Path) -> Path:
    """A workbook of an engine whose k-th switch is off; the sheet must come to the same."""
    inputs = {**MODEL.averages, f"{PARTS[k]}.switch": np.zeros((1, 1))}
    if k % 2:
        inputs["mean_ablation"] = np.ones((1, 1))
    model = replace(MODEL, averages=inputs)
    return build(model, PROMPTS[0], NARROW, GREEDY, folder / f"{PARTS[k]}.xlsx")


@cache
def typed_games() -> dict[str, tuple[str, str, list[int]]]:
    """Sentences to type, how words are to be chosen, and all ids that the engine then has."""
    rng, found = np.random.default_rng(80), {}
    for k, row in enumerate(game.games(rng, N_TYPED)):
        ids = row[: int(rng.integers(1, N_COLUMNS - 2))].tolist()
        sentence = " ".join(game.WORDS[i] for i in ids)
        for chosen, sampling in zip(WAYS, (GREEDY, Sampling(temperature=1.0)), strict=True):
            steps = generate(MODEL, ids, N_COLUMNS - len(ids), sampling, seed=3)
            found[f"{k}-{chosen}"] = sentence, chosen, ids + [step.token for step in steps]
    return found


KEYS = [f"{k}-{way}" for k in range(N_TYPED) for way in WAYS]


def typing(key: str) -> dict[CellAt, float | str]:
    """What is typed for a game."""
    book, (sentence, chosen, _) = default_book("dialogue-game"), typed_games()[key]
    return {book.cell("sentence", 0, 0): sentence, book.cell("choose", 0, 0): chosen}


@pytest.fixture(scope="module")
def narrow(tmp_path_factory) -> Path:
    """A workbook of a few columns, into which sentences are typed."""
    folder = tmp_path_factory.mktemp("narrow")
    return build(MODEL, PROMPTS[0], N_COLUMNS, GREEDY, folder / "narrow.xlsx", seed=3)


@pytest.fixture(scope="module")
def five(tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("five")
    return {
        name: build(MODEL, prompt, 9, sampling, folder / f"{name}.xlsx", seed=k)
        for name, (prompt, sampling, k) in FIVE.items()
    }


@pytest.fixture(scope="module")
def built_with_other_values(five, tmp_path_factory) -> dict[str, Path]:
    """Workbooks that LibreOffice recomputes from wrong values."""
    folder = tmp_path_factory.mktemp("others")
    switched = {part: switched_off(k, folder) for k, part in enumerate(PARTS)}
    return {**five, **switched, "full": full_prompt(folder)}


@pytest.fixture(scope="module")
def office(built, narrow, built_with_other_values, tmp_path_factory) -> dict[str, WorkbookFile]:
    """All that LibreOffice is asked here, in one start."""
    folder = tmp_path_factory.mktemp("office")
    paths = {name: folder / f"{name}.xlsx" for name in built_with_other_values}
    for name, path in built_with_other_values.items():
        poison(path, paths[name])
    for key in KEYS[: 2 * N_IN_LIBREOFFICE]:
        paths[key] = typed(narrow, folder / f"typed {key}.xlsx", typing(key))
    for k, (text, _) in enumerate(SENTENCES):
        cells = {default_book("dialogue-game").cell("sentence", 0, 0): text}
        key = f"sentence {k}"
        paths[key] = typed(built["dialogue-game"], folder / f"{key}.xlsx", cells)
    return recalculated(paths, folder / "out")


@OFFICE
@pytest.mark.parametrize("name", [*FIVE, *PARTS, "full"])
def test_it_recomputes_however_it_is_built(name: str, built_with_other_values, office) -> None:
    """Five prompts sampled and greedy, every switch off in turn, a prompt of the whole context."""
    assert_agrees(read(built_with_other_values[name]), office[name])


def test_there_are_two_layers_of_parts_to_switch_off() -> None:
    assert len(PARTS) == 2 * (4 + 2)


def test_a_sampled_prompt_in_ironcalc(tmp_path: Path) -> None:
    needs("ironcalc")
    path = build(MODEL, PROMPTS[0], 9, SAMPLED, tmp_path / "sampled.xlsx")
    assert verify(path, "ironcalc").agrees


def test_its_size(built) -> None:
    assert built["dialogue-game"].stat().st_size < 6_000_000


@OFFICE
def test_the_sheet_generates_what_generate_does(narrow) -> None:
    """Twenty prompts typed into one workbook, greedy, and sampled with its random numbers."""
    sheet = InIronCalc(narrow)
    for key in KEYS:
        with sheet.typed(typing(key)):
            shown = [sheet["Play", ID_ROW, PROMPT_COL + k] for k in range(N_COLUMNS)]
            assert shown == typed_games()[key][2], key


@OFFICE
@pytest.mark.parametrize("key", KEYS[: 2 * N_IN_LIBREOFFICE])
def test_and_in_libreoffice(key: str, office) -> None:
    play = office[key]["Play"]
    ids = typed_games()[key][2]
    assert [play[ID_ROW, PROMPT_COL + k] for k in range(N_COLUMNS)] == ids


@OFFICE
@pytest.mark.parametrize("k", range(len(SENTENCES)))
def test_no_sentence_makes_an_error(k: int, office) -> None:
    file, message = office[f"sentence {k}"], SENTENCES[k][1]
    assert not [sheet for sheet in file if file[sheet].errors]
    assert message in file["Play"]["C6"]
    states = {cell.value for (row, _), cell in file["Play"].cells.items() if row == FROM_ROW}
    assert ("unknown: Pitro" in states) == ("unknown" in message)
