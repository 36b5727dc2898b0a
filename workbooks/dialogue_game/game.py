"""The calling game: who calls whom, by which epithet. Its exact grammar, and scores of a model.

A game is `<BOS>`, then turns `CALLER chiama CALLEE [EPITHET] <SEP>`; the callee calls next. Nobody
calls himself or calls back whoever has just called him; a leader calls the other leader with half
the weight of any number. Only leaders get an epithet, which depends on the caller. With probability
0.06 a caller blurts an absurd word instead of a name, and loses: `CALLER chiama ABSURD <SEP> CALLER
perde <EOS>`.

So the distribution of every next word is known: the loss has a floor, and each rule an accuracy.
"""

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from cellformer.engine import Model
from cellformer.engine.cells.batch import Change, filled, variants
from cellformer.engine.studies.price import Text

PAD, BOS, EOS, SEP = MARKS = ("<PAD>", "<BOS>", "<EOS>", "<SEP>")
LEADERS = ("Pietro", "Paolo")
NUMBERS = tuple("12345678")
PLAYERS = LEADERS + NUMBERS
EPITHETS = ("Tarso", "Cefa", "capo", "vice")
VERBS = ("chiama", "perde")
ABSURD = (
    "ombrello", "zucchero", "nuvola", "pantofola", "carciofo", "trombone", "lampione", "banana",
)  # fmt: skip
WORDS = MARKS + PLAYERS + EPITHETS + VERBS + ABSURD
ID = {word: i for i, word in enumerate(WORDS)}
LOSES = 0.06  # probability that a caller blurts an absurd word
LENGTH = 33  # words of a training sequence; a longer game is cut, a shorter one padded

Odds = dict[str, float]


class State(NamedTuple):
    """The state of a game: the next kind of word, and the caller and the called player."""

    next: str  # start, verb, callee, epithet, separator, caller, loser, perde, end, pad
    caller: str = ""
    before: str = ""  # who called the caller
    callee: str = ""


@cache
def odds(state: State) -> Odds:
    """The probability of every possible next word."""
    match state.next:
        case "start":
            return dict.fromkeys(LEADERS, 0.2) | dict.fromkeys(NUMBERS, 0.075)
        case "verb":
            return {"chiama": 1.0}
        case "callee":
            weights = {p: 1.0 for p in PLAYERS if p not in (state.caller, state.before)}
            if state.caller in LEADERS:
                weights |= {p: 0.5 for p in LEADERS if p in weights}
            total = sum(weights.values()) / (1 - LOSES)
            called = {p: weight / total for p, weight in weights.items()}
            return called | dict.fromkeys(ABSURD, LOSES / len(ABSURD))
        case "epithet":
            return {epithet(state.caller, state.callee): 1.0}
        case "separator" | "blurted":
            return {SEP: 1.0}
        case "caller" | "loser":
            return {state.callee if state.next == "caller" else state.caller: 1.0}
        case "perde":
            return {"perde": 1.0}
        case "end":
            return {EOS: 1.0}
        case _:
            return {PAD: 1.0}


def epithet(caller: str, callee: str) -> str:
    """A leader's epithet: a peer's from a peer, a rank from the numbers."""
    peer, rank = {"Paolo": ("Tarso", "vice"), "Pietro": ("Cefa", "capo")}[callee]
    return peer if caller in LEADERS else rank


def advance(state: State, word: str) -> State:
    """The state after a word."""
    match state.next:
        case "start":
            return State("verb", word)
        case "callee" if word in ABSURD:
            return state._replace(next="blurted")
        case "callee":
            return state._replace(next="epithet" if word in LEADERS else "separator", callee=word)
        case "epithet":
            return state._replace(next="separator")
        case "caller":
            return State("verb", state.callee, state.caller)
    following = {
        "verb": "callee",
        "separator": "caller",
        "blurted": "loser",
        "loser": "perde",
        "perde": "end",
    }
    return state._replace(next=following.get(state.next, "pad"))


def states(words: Sequence[str]) -> list[State]:
    """The state before each word of a game that begins with `<BOS>`, and after the last."""
    found = [State("start")]
    for word in words[1:]:
        found.append(advance(found[-1], word))
    return found


def games(rng: np.random.Generator, n: int, length: int = LENGTH) -> np.ndarray:
    """Ids of n fresh games, cut or padded: int64 [n, length]."""
    draws = rng.random((n, length))
    ids = np.empty((n, length), dtype=np.int64)
    for game in range(n):
        state = State("start")
        ids[game, 0] = ID[BOS]
        for k in range(1, length):
            words, edges = _wheel(state)
            word = words[int(np.searchsorted(edges, draws[game, k], side="right"))]
            ids[game, k] = ID[word]
            state = advance(state, word)
    return ids


@cache
def _wheel(state: State) -> tuple[tuple[str, ...], np.ndarray]:
    """Words, and the cumulative probabilities between them."""
    chances = odds(state)
    return tuple(chances), np.cumsum(list(chances.values()))[:-1]


def floor(ids: np.ndarray) -> float:
    """The lowest possible loss: the mean of -log p of every word after `<BOS>` under the grammar,
    in nats."""
    total = 0.0
    for row in ids:
        words = [WORDS[i] for i in row]
        for state, word in zip(states(words), words[1:], strict=False):
            total -= float(np.log(odds(state)[word]))
    return total / ids[:, 1:].size


# --- how well a model plays -------------------------------------------------------------------

RULES = {
    "peer epithet": "a leader calls the other leader by a nickname: Tarso, Cefa",
    "rank epithet": "a number calls a leader by his rank: capo, vice",
    "verb": "chiama follows the caller",
    "separator": "<SEP> ends a turn",
    "callee calls": "the called player calls next",
    "loser named": "after an absurd word, the speaker is named",
    "perde": "... and loses",
    "end": "... and the game ends",
    "no self-call": "nobody calls himself",
    "no call back": "nobody calls back the last caller",
}
ONE_WORD = {"blurted": "separator", "caller": "callee calls", "loser": "loser named"}


def rules(state: State) -> dict[str, set[str]]:
    """The rules that bind the next word, each with the words that break it."""
    if state.next == "callee":
        broken = {"no self-call": {state.caller}}
        return broken | ({"no call back": {state.before}} if state.before else {})
    if state.next in ("start", "pad"):
        return {}
    name = ONE_WORD.get(state.next, state.next)
    if name == "epithet":
        name = "peer epithet" if state.caller in LEADERS else "rank epithet"
    return {name: set(WORDS) - set(odds(state))}


def scores(ids: np.ndarray, probs: np.ndarray) -> dict[str, tuple[np.ndarray, int]]:
    """The score of each rule for one game, ids [length] and probs [..., length - 1 or more,
    d_vocab]: the model's probability of words that keep the rule, summed over its cases, and the
    number of cases."""
    found: dict[str, tuple[np.ndarray, int]] = {}
    words = [WORDS[i] for i in ids]
    for k, state in enumerate(states(words)[: len(words) - 1]):
        for rule, broken in rules(state).items():
            kept = 1 - probs[..., k, [ID[w] for w in broken]].sum(axis=-1)
            total, n = found.get(rule, (np.zeros(probs.shape[:-2]), 0))
            found[rule] = total + kept, n + 1
    return found


def accuracies(model: Model, ids: np.ndarray, off: Sequence[Change] = ({},)) -> np.ndarray:
    """The mean probability of keeping each rule over the games `ids` [n, length], under each
    change: [n_changes, n_rules], in the order of RULES."""
    total = np.zeros((len(off), len(RULES)))
    count = np.zeros(len(RULES))
    for row in ids:
        found = scores(row, variants(model.graph(row[:-1].tolist()), off)["probs"])
        for r, rule in enumerate(RULES):
            kept, n = found.get(rule, (0.0, 0))
            total[:, r] += kept
            count[r] += n
    return total / count


def turns(rng: np.random.Generator, n: int) -> list[Text]:
    """Fresh games of n turns in all, the last of them cut, with the rules for each next word."""
    found: list[Text] = []
    while n > 0:
        (row,) = games(rng, 1, LENGTH - 1)
        words = [WORDS[i] for i in row if i != ID[PAD]]
        ends = [k for k, word in enumerate(words, 1) if word == SEP][:n]
        n -= len(ends)
        words = words[: len(words) if n else ends[-1]]
        bound = [
            {rule: [ID[word] for word in broken] for rule, broken in rules(state).items()}
            for state in states(words)
        ]
        found.append(Text([ID[word] for word in words], bound))
    return found


AT_ONCE = 100  # games that are computed in one batch


def loss(model: Model, ids: np.ndarray) -> float:
    """Mean of -log p of every word after the first, in nats; see `floor`."""
    for row in ids:
        model.check_ids(row[:-1].tolist())
    graph, total = model.graph(ids[0, :-1].tolist()), 0.0
    for several in np.split(ids, range(AT_ONCE, len(ids), AT_ONCE)):
        tokens = several[:, :-1, None].astype(np.float64)
        probs = filled(graph, {"tokens": tokens})["probs"]  # [n, length - 1, d_vocab]
        total -= float(np.log(np.take_along_axis(probs, several[:, 1:, None], axis=2)).sum())
    return total / ids[:, 1:].size
