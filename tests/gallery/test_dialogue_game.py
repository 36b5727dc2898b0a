"""The shipped model keeps the rules; its workbook recomputes, generates, and takes any prompt.

Many sentences, switches and ways to choose are tried in the workbook of a model of the same shape
with narrow vectors: the same sheets, and formulas that are shorter. The shipped one is held cell by
cell in test_gallery, with its own prompt.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from conftest import (
    ERROR,
    CellAt,
    InIronCalc,
    assert_agrees,
    assert_recomputes_after,
    libreoffice_after,
    needs,
)
from on_play import FROM_ROW, ID_ROW
from thin import thin_game

from cellformer.engine import Evaluator, Graph, Model
from cellformer.engine.cells.batch import CellName, filled
from cellformer.engine.models.choosing import Sampling
from cellformer.engine.models.generate import generate, passage
from cellformer.engine.studies import ablation, scores
from cellformer.engine.studies.part_names import said
from cellformer.exporters.checking.programs import Recomputed
from cellformer.exporters.checking.verify import FormulaCells, read, verify
from cellformer.exporters.compose.book import Book
from cellformer.exporters.file.reading import Value
from cellformer.exporters.file.xlsx import write
from cellformer.exporters.model.block_sheets import PROMPT_COL
from cellformer.workbooks import dialogue_game
from cellformer.workbooks.dialogue_game import game

pytestmark = pytest.mark.slow

MODEL = dialogue_game.model()
THIN = thin_game()
GREEDY, SAMPLED = Sampling(), Sampling(temperature=1.5, top_k=12, top_p=0.95)
PROMPTS = (
    "<BOS> Pietro chiama Paolo",
    "<BOS> 3",
    "<BOS> 5 chiama Pietro capo <SEP> Pietro chiama",
    "<BOS> Paolo chiama banana <SEP>",
    "<BOS>",
)
NARROW = 5  # columns, where a narrower sheet shows the same
NARROW_CTX = 8  # tokens of a context, which a prompt fills: as many as Calibration's longest


def ids_of(text: str) -> list[int]:
    return MODEL.vocabulary.encode(text)


# --- the model --------------------------------------------------------------------------------


def test_prompts_of_the_essay() -> None:
    probs = MODEL.graph(ids_of("<BOS> Pietro chiama Paolo")).values["probs"][-1]
    assert probs[game.ID["Tarso"]] >= 0.999
    probs = MODEL.graph(ids_of("<BOS> Pietro chiama")).values["probs"][-1]
    assert all(0.10 <= probs[game.ID[number]] <= 0.12 for number in game.NUMBERS)
    assert probs[game.ID["Paolo"]] == pytest.approx(0.94 / 17, abs=0.003)


def test_loss_is_at_its_floor() -> None:
    games = game.games(np.random.default_rng(77), 100)
    assert game.loss(MODEL, games) - game.floor(games) < 0.005


def test_head_1_2_reads_the_caller_at_the_verb_and_without_head_0_0_at_paolo() -> None:
    """As Start says."""
    graph = MODEL.graph(ids_of("<BOS> Pietro chiama Paolo"))
    live = Evaluator(graph)
    assert live["blocks.0.attn.h0.pattern"][2].argmax() == 1
    assert live["blocks.1.attn.h2.pattern"][3].argmax() == 2
    live.set("blocks.0.attn.h0.switch", 0, 0, 0.0)
    assert live["blocks.1.attn.h2.pattern"][3].argmax() == 3
    assert live["logits"][3].argmax() == game.ID["Tarso"]


def probabilities(games: np.ndarray) -> np.ndarray:
    """The next word's probabilities in games of one length: [n, length - 1, d_vocab]."""
    graph = MODEL.graph(games[0, :-1].tolist())
    return filled(graph, {"tokens": games[:, :-1, None].astype(np.float64)})["probs"]


def test_batched_game_equals_a_game_alone() -> None:
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


def test_variance_in_the_concept_plane() -> None:
    """Paolo less Pietro, and names among peers less ranks: 5.3 % of the spread of the words."""
    words = np.asarray(MODEL.weights["W_E"], float)
    of = {word: words[k] for word, k in game.ID.items()}
    leaders = of["Paolo"] - of["Pietro"]
    names = of["Tarso"] + of["Cefa"] - of["capo"] - of["vice"]
    axes, _ = np.linalg.qr(np.array([leaders, names]).T)
    spread = words - words.mean(axis=0)
    assert ((spread @ axes) ** 2).sum() / (spread**2).sum() == pytest.approx(0.053, abs=5e-4)


def test_one_head_carries_one_rule() -> None:
    games = game.games(np.random.default_rng(79), 60)
    kept = game.accuracies(MODEL, games, [{}, {("blocks.1.attn.h1.switch", 0, 0): 0.0}])
    before, off = (dict(zip(game.RULES, row, strict=True)) for row in kept)
    assert min(before.values()) > 0.999
    assert off.pop("perde") <= 0.35
    assert min(off.values()) >= 0.95


def test_the_weights_are_small_and_float32() -> None:
    assert (dialogue_game.FOLDER / "model.safetensors").stat().st_size < 1_000_000
    assert all((w == w.astype(np.float32)).all() for w in MODEL.weights.values())


# --- the workbook -----------------------------------------------------------------------------


def build(model: Model, prompt: str, n: int, sampling: Sampling, seed: int = 0) -> Book:
    return dialogue_game.build(model, passage(model, ids_of(prompt), n, sampling, seed))


WAYS = ("greedy", "sampled")
FIVE = {
    f"{k} {way}": (prompt, sampling, k)
    for k, prompt in enumerate(PROMPTS)
    for way, sampling in zip(WAYS, (GREEDY, SAMPLED), strict=True)
}
PARTS = ablation.parts(THIN.graph([0]))
N_TYPED, N_COLUMNS = 8, 9
BUILT = ("sampled, a switch off", "alone, an average", "full")
SENTENCES = [
    ("", "nothing is typed"),
    ("<BOS> Pitro chiama", "‘Pitro’ is unknown; nearest: Pietro"),
    ("<BOS> Pietro chiama 3 <SEP> 3", "tokens given: 6, generated: 3"),
    ("<BOS> 1 chiama 2 <SEP> 2 chiama 3 <SEP>", "tokens given: 9, generated: 0"),
    ("<BOS> 1 chiama 2 <SEP> 2 chiama 3 <SEP> 3", "longer than the 9 columns"),
]


def full_prompt() -> Book:
    """A workbook whose prompt is as long as the context."""
    short = thin_game(NARROW_CTX)
    ids = game.games(np.random.default_rng(81), 1)[0, :NARROW_CTX].tolist()
    assert len(ids) == short.spec.n_ctx
    return dialogue_game.build(short, passage(short, ids))


def switched_off(k: int) -> Model:
    """An engine whose k-th switch is off, every second one so that it leaves its average."""
    inputs = {**THIN.averages, f"{PARTS[k]}.switch": np.zeros((1, 1))}
    if k % 2:
        inputs["mean_ablation"] = np.ones((1, 1))
    return replace(THIN, averages=inputs)


def columns(name: str) -> int:
    """As few as hold a prompt and what follows it."""
    return N_COLUMNS if name in FIVE and len(ids_of(FIVE[name][0])) >= NARROW else NARROW


def otherwise(name: str) -> Graph:
    """What a workbook with another prompt has, sampled or greedy; what a model has with a switch
    off."""
    if name in FIVE:
        prompt, sampling, seed = FIVE[name]
        return build(THIN, prompt, columns(name), sampling, seed).graph
    model = switched_off(PARTS.index(name))
    return model.graph(passage(model, ids_of(PROMPTS[0]), NARROW, GREEDY).ids)


def built_otherwise(name: str) -> Book:
    """A workbook of a model with a switch off, its prompt sampled or a word alone; one with a full
    prompt."""
    if name == "full":
        return full_prompt()
    if name.startswith("sampled"):
        return build(switched_off(0), PROMPTS[0], NARROW, SAMPLED)
    return build(switched_off(1), PROMPTS[4], NARROW, GREEDY, 4)


@cache
def typed_games() -> dict[str, tuple[str, str, list[int]]]:
    """Sentences to type, how words are to be chosen, and all ids that the engine then has."""
    rng, found = np.random.default_rng(80), {}
    for k, row in enumerate(game.games(rng, N_TYPED)):
        ids = row[: 1 + k % (N_COLUMNS - 2)].tolist()
        sentence = " ".join(game.WORDS[i] for i in ids)
        for chosen, sampling in zip(WAYS, (GREEDY, Sampling(temperature=1.0)), strict=True):
            steps = generate(THIN, ids, N_COLUMNS - len(ids), sampling, seed=3)
            found[f"{k}-{chosen}"] = sentence, chosen, ids + [step.token for step in steps]
    return found


KEYS = [f"{k}-{way}" for k in range(N_TYPED) for way in WAYS]
KEYS_IN_LIBREOFFICE = ("5-greedy", "3-sampled")


def typing(key: str, book: Book) -> dict[CellAt, float | str]:
    """What is typed for a game."""
    sentence, chosen, _ = typed_games()[key]
    return {book.cell("sentence", 0, 0): sentence, book.cell("choose", 0, 0): chosen}


class Opened(NamedTuple):
    """A workbook, its file, the file's formula cells, and the file in IronCalc."""

    book: Book
    path: Path
    cells: FormulaCells
    sheet: InIronCalc


@pytest.fixture(scope="module")
def opened(tmp_path_factory) -> Callable[[int], Opened]:
    """The workbook of the first prompt with so many columns, into which others are typed."""
    folder = tmp_path_factory.mktemp("opened")

    @cache
    def of(n: int) -> Opened:
        book = build(THIN, PROMPTS[0], n, GREEDY, 3)
        path = write(book, folder / f"{n}.xlsx")
        return Opened(book, path, read(path), InIronCalc(path))

    return of


@pytest.fixture(scope="module")
def office(opened, tmp_path_factory, libreoffice) -> dict[str, Recomputed]:
    """What LibreOffice makes of a workbook in which games and sentences are typed, by these."""
    book, path, *_ = opened(N_COLUMNS)
    typed = {key: typing(key, book) for key in KEYS_IN_LIBREOFFICE}
    typed |= {text: {book.cell("sentence", 0, 0): text} for text, _ in SENTENCES[:2]}
    shown = libreoffice_after(path, [*typed.values()], tmp_path_factory.mktemp("of") / "office")
    return dict(zip(typed, shown, strict=True))


def inputs_of(other: Graph, book: Book) -> dict[CellName, float | str]:
    """What to type into a workbook to have another one: ids follow from what is typed."""
    return {
        (name, i, j): values[i, j]
        for name, values in other.inputs.items()
        if other[name].kind != "ids"
        for i, j in np.argwhere(np.asarray(values != book.graph.inputs[name])).tolist()
    }


@pytest.mark.parametrize("name", [*FIVE, *PARTS])
def test_workbook_recomputes_after_typed_sentences(name: str, opened) -> None:
    """Five prompts sampled and greedy, every switch off in turn: every formula cell in IronCalc;
    and what is built so has the same values."""
    other = otherwise(name)
    book, _, cells, sheet = opened(columns(name))
    after = assert_recomputes_after(inputs_of(other, book), sheet, book, cells)
    for block in other:
        if block.name.startswith("walk."):
            continue  # of the sentence that a workbook is built with, and its likeliest word
        found, wanted = after.values[block.name], other.values[block.name]
        assert np.array_equal(found, wanted) or np.allclose(found, wanted, 0, 1e-9), block.name


def test_workbook_recomputes_after_page_edits(opened) -> None:
    """Those that do not touch each other: test_dialogue_pages holds the shipped model to them."""
    book, _, cells, sheet = opened(NARROW)
    suggestions = [book.sheets["Rules"].suggestions[0], *book.sheets["Calibration"].suggestions[:2]]
    assert_recomputes_after({t.cell: t.value for t in suggestions}, sheet, book, cells)


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> Callable[[str], Path]:
    """The file of a workbook that is built otherwise, written once."""
    folder = tmp_path_factory.mktemp("written")
    return cache(lambda name: write(built_otherwise(name), folder / f"{name}.xlsx"))


@pytest.mark.parametrize("name", BUILT)
def test_variants_recompute_in_libreoffice(name: str, written, tmp_path: Path, libreoffice) -> None:
    """Sampled and greedy, a word alone and a prompt of the whole context, a switch off, an average
    in the place of a part."""
    (shown,) = libreoffice_after(written(name), [{}], tmp_path / "office")
    assert_agrees(read(written(name)), shown)


def test_switches_of_two_layers() -> None:
    assert len(PARTS) == 2 * (4 + 2)


def test_sampling_with_a_switch_off_in_ironcalc(written) -> None:
    needs("ironcalc")
    assert verify(written(BUILT[0]), "ironcalc").agrees


@pytest.mark.parametrize("key", KEYS)
def test_sheet_generates_as_generate(key: str, opened) -> None:
    """Prompts of every length typed, greedy, and sampled with the workbook's random numbers."""
    book, _, _, sheet = opened(N_COLUMNS)
    with sheet.typed(typing(key, book)):
        shown = [sheet["Play", ID_ROW, PROMPT_COL + k] for k in range(N_COLUMNS)]
    assert shown == typed_games()[key][2]


@pytest.mark.parametrize("key", KEYS_IN_LIBREOFFICE)
def test_sheet_generates_in_libreoffice(key: str, office) -> None:
    play = office[key]["Play"]
    ids = typed_games()[key][2]
    assert [play[ID_ROW, PROMPT_COL + k] for k in range(N_COLUMNS)] == ids


def assert_told(text: str, message: str, shown: Callable[[CellAt], Value], n: int) -> None:
    """Play says what became of a sentence, and which word it does not know."""
    assert message in shown(("Play", 5, 2)), text
    states = {shown(("Play", FROM_ROW, PROMPT_COL + k)) for k in range(n)}
    assert ("unknown: Pitro" in states) == ("unknown" in message), text


@pytest.mark.parametrize(("text", "message"), SENTENCES)
def test_no_sentence_gives_an_error(text: str, message: str, opened) -> None:
    book, _, cells, sheet = opened(N_COLUMNS)
    with sheet.typed({book.cell("sentence", 0, 0): text}):
        assert_told(text, message, sheet.__getitem__, N_COLUMNS)
        for cell in cells.formulas:
            value = sheet[cell]
            assert not (isinstance(value, str) and ERROR.fullmatch(value)), cell


@pytest.mark.parametrize(("text", "message"), SENTENCES[:2])
def test_no_sentence_gives_an_error_in_libreoffice(text: str, message: str, office) -> None:
    file = office[text]
    assert not [sheet for sheet in file if file[sheet].errors]
    assert_told(text, message, lambda at: file[at[0]][at[1:]], N_COLUMNS)


# --- the head that carries the caller, found by search -------------------------------------------


def lead(head: scores.Head, query: int, key: int) -> float:
    """By how much a query's score with a key leads its score with the best other key."""
    others = [head.split(query, k) for k in range(query + 1) if k != key]
    rival = max(others, key=lambda other: other.score)
    return float(head.split(query, key).less(rival).sum())


def test_the_score_table_finds_the_head_that_reads_the_verb() -> None:
    """The search knows only the sentence: the head and key whose table leads most over every rival
    key, from the last token to a token before it."""
    model = dialogue_game.model()
    graph = model.graph(model.vocabulary.encode("<BOS> Pietro chiama Paolo"))
    found = {
        (name, key): lead(scores.Head(graph, name), 3, key)
        for name in scores.heads(graph)
        for key in range(3)
    }
    name, key = max(found, key=lambda at: found[at])
    assert (said(name), key) == ("head 1.2", 2)
    head = scores.Head(graph, name)
    rival = max((head.split(3, k) for k in (0, 1, 3)), key=lambda other: other.score)
    split = head.split(3, key)
    i, j = np.unravel_index(split.less(rival).argmax(), split.table.shape)
    assert split.of_query[i] == split.of_key[j] == "blocks.0.mlp_out"
    note = (Path(dialogue_game.__file__).parents[2] / "docs" / "why.md").read_text()
    assert rival.key == 0 and '--from Paolo --to chiama --rival-key "<BOS>"' in note
    assert f"<!--lead-->{found[name, key]:.3f}<" in note
    assert f"<!--pair-->{split.less(rival)[i, j]:.3f}<" in note
    pietro = split.less(head.split(3, 1))
    assert pietro.max() < pietro.sum() / 3  # no pair dominates
    assert f"<!--lead-Pietro-->{pietro.sum():.3f}<" in note
    assert f"<!--pair-Pietro-->{pietro.max():.3f}<" in note


def test_patching_finds_the_same_head() -> None:
    """Of all heads, the one whose output at the last token, taken from another caller's sentence,
    moves the lead of the epithet most."""
    model = dialogue_game.model()
    ids, other = (model.vocabulary.encode(f"<BOS> {who} chiama Paolo") for who in ("Pietro", "3"))
    graph, wrong = model.graph(ids), model.graph(other).values
    tarso, vice = model.vocabulary.encode("Tarso vice", special=False)

    def left(logits: np.ndarray) -> float:
        return float(logits[-1, tarso] - logits[-1, vice])

    before, moved = left(graph.values["logits"]), {}
    for name in scores.heads(graph):
        patched = graph.values[f"{name}.result"].copy()
        patched[-1] = wrong[f"{name}.result"][-1]
        moved[name] = before - left(filled(graph, {f"{name}.result": patched})["logits"])
    assert said(max(moved, key=lambda name: moved[name])) == "head 1.2"
    assert moved["blocks.1.attn.h2"] > 0.5 * (before - left(wrong["logits"]))
