"""The shipped model keeps the rules; its workbook recomputes, generates, and takes any prompt."""

import re
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conftest import assert_recomputes, needs
from openpyxl import load_workbook

from engine import Model
from engine.models.choosing import Sampling
from engine.models.generate import generate, passage
from engine.models.training import Progress
from engine.studies import ablation
from exporters.layout import FROM_ROW, ID_ROW, PROMPT_COL
from exporters.verify import recalculate_in_libreoffice, verify
from exporters.xlsx import write
from workbooks import dialogue_game
from workbooks.dialogue_game import game

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


def test_epithets_and_calls_over_ten_thousand_turns() -> None:
    """Epithets: is the likeliest word the right one? Calls: how much is left to calling back?"""
    wrong = turns = 0
    kept: list[float] = []
    for row in game.games(np.random.default_rng(78), 1700):
        words = [game.WORDS[i] for i in row]
        probs = MODEL.graph(row[:-1].tolist()).values["probs"]
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


def test_five_prompts_sampled_and_greedy(tmp_path: Path) -> None:
    needs("libreoffice")
    paths = [
        build(MODEL, prompt, 9, sampling, tmp_path / f"{k}-{sampling.top_k}.xlsx", seed=k)
        for k, prompt in enumerate(PROMPTS)
        for sampling in (GREEDY, SAMPLED)
    ]
    assert_recomputes(paths, tmp_path / "wrong")
    needs("ironcalc")
    assert verify(paths[1], "ironcalc").agrees


def test_every_switch_off_in_turn(tmp_path: Path) -> None:
    """Each file is built by an engine whose switch is off; the sheet must come to the same."""
    needs("libreoffice")
    paths = []
    for k, part in enumerate(ablation.parts(MODEL.graph([0]))):
        inputs = {**MODEL.averages, f"{part}.switch": np.zeros((1, 1))}
        if k % 2:
            inputs["mean_ablation"] = np.ones((1, 1))
        model = replace(MODEL, averages=inputs)
        paths.append(build(model, PROMPTS[0], NARROW, GREEDY, tmp_path / f"{part}.xlsx"))
    assert len(paths) == 2 * (4 + 2)
    assert_recomputes(paths, tmp_path / "wrong")


def test_its_size(built) -> None:
    assert built["dialogue-game"].stat().st_size < 6_000_000


def retyped(source: Path, target: Path, sentence: str, chosen: str) -> Path:
    """A copy with another sentence, and another way to choose: as a reader types them."""
    old = "&lt;BOS&gt; Pietro chiama Paolo"
    new = sentence.replace("<", "&lt;").replace(">", "&gt;")
    with zipfile.ZipFile(source) as book, zipfile.ZipFile(target, "w") as copy:
        for name in book.namelist():
            data = book.read(name)
            if name == "xl/sharedStrings.xml":
                text, n = re.subn(f"<t>{old}</t>", f"<t>{new}</t>", data.decode())
                text, m = re.subn("<t>greedy</t>", f"<t>{chosen}</t>", text)
                assert n == m == 1
                data = text.encode()
            copy.writestr(name, data)
    return target


def test_the_sheet_generates_what_generate_does(tmp_path: Path) -> None:
    """Twenty prompts typed into one workbook, greedy, and sampled with its random numbers."""
    needs("libreoffice")
    n, rng = 12, np.random.default_rng(80)
    heat = Sampling(temperature=1.0)
    book = dialogue_game.build(MODEL, passage(MODEL, ids_of(PROMPTS[0]), n, GREEDY, seed=3))
    source = write(book, tmp_path / "book.xlsx")
    expected, paths = [], []
    (tmp_path / "typed").mkdir()
    for k, row in enumerate(game.games(rng, 20)):
        ids = row[: int(rng.integers(1, n - 2))].tolist()
        sentence = " ".join(game.WORDS[i] for i in ids)
        for chosen, sampling in (("greedy", GREEDY), ("sampled", heat)):
            path = tmp_path / "typed" / f"{k}-{chosen}.xlsx"
            paths.append(retyped(source, path, sentence, chosen))
            steps = generate(MODEL, ids, n - len(ids), sampling, seed=3)
            expected.append(ids + [step.token for step in steps])
    for path, ids in zip(
        recalculate_in_libreoffice(paths, tmp_path / "out"), expected, strict=True
    ):
        play = load_workbook(path, data_only=True, read_only=True)["Play"]
        (row,) = play.iter_rows(ID_ROW + 1, ID_ROW + 1, PROMPT_COL + 1, PROMPT_COL + n)
        assert [cell.value for cell in row] == ids, path.name


@pytest.mark.parametrize(
    ("sentence", "message"),
    [
        ("", "nothing is typed"),
        ("<BOS> Pitro chiama", "a word is unknown"),
        (" ".join(["<BOS>", *["Pietro chiama 3 <SEP>"] * 3]), "13 given, 3 generated"),
        (" ".join(["<BOS>", *["1 chiama 2 <SEP> 2"] * 3]), "16 given, 0 generated"),
        (" ".join(["<BOS>", *["1 chiama 2 <SEP> 2"] * 5]), "longer than the 16 columns"),
    ],
)
def test_no_sentence_makes_an_error(sentence: str, message: str, built, tmp_path: Path) -> None:
    needs("libreoffice")
    path = retyped(built["dialogue-game"], tmp_path / "typed.xlsx", sentence, "greedy")
    (out,) = recalculate_in_libreoffice([path], tmp_path / "out")
    sheets = load_workbook(out, data_only=True)
    errors = [c.coordinate for s in sheets for row in s for c in row if c.data_type == "e"]
    assert not errors
    assert message in sheets["Play"]["C6"].value
    row = sheets["Play"][FROM_ROW + 1]
    states = {c.value for c in row if c.value}
    assert ("unknown: Pitro" in states) == ("unknown" in message)


def test_a_prompt_as_long_as_the_context(tmp_path: Path) -> None:
    needs("libreoffice")
    ids = game.games(np.random.default_rng(81), 1)[0, :-1].tolist()
    assert len(ids) == MODEL.spec.n_ctx
    path = write(dialogue_game.build(MODEL, passage(MODEL, ids)), tmp_path / "full.xlsx")
    assert_recomputes([path], tmp_path / "wrong")
