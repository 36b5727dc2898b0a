"""The sentences of tool-call: a question of money, the sum that the model writes for a calculator,
the calculator's answer, and the end of the sentence.

    <BOS> 12 shares at 7 euros cost 12 * 7 = 84 euros <EOS>
    <BOS> 12 euros and 7 euros make 12 + 7 = 19 euros <EOS>
    <BOS> 12 euros less 7 euros leave 12 - 7 = 5 euros <EOS>

A fifth of all sums is held out of training.
"""

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from cellformer.engine import Model

BOS, EOS, EQUALS = "<BOS>", "<EOS>", "="
SMALLEST, LARGEST = 2, 12  # numbers in a question
KINDS = {  # by the sign of the sum: what is counted, the word between, the verb
    "*": ("shares", "at", "cost"),
    "+": ("euros", "and", "make"),
    "-": ("euros", "less", "leave"),
}
HELD_OUT = 0.2  # share of the sums
SHOWN = ("*", 12, 7)  # held out, too: the sum of the essays
SEED = 10**9  # which draws the sums that are held out


class Sum(NamedTuple):
    """A sum: its sign, and two numbers."""

    sign: str
    a: int
    b: int

    @property
    def result(self) -> int:
        """The calculator's result."""
        return {"*": self.a * self.b, "+": self.a + self.b, "-": self.a - self.b}[self.sign]

    @property
    def question(self) -> list[str]:
        """The words of its question."""
        things, between, verb = KINDS[self.sign]
        return [BOS, str(self.a), things, between, str(self.b), "euros", verb]

    @property
    def call(self) -> list[str]:
        """The words that ask the calculator."""
        return [str(self.a), self.sign, str(self.b), EQUALS]

    @property
    def words(self) -> list[str]:
        """The whole sentence."""
        return [*self.question, *self.call, str(self.result), "euros", EOS]


@cache
def sums() -> list[Sum]:
    """Every sum that a question can ask for."""
    numbers = range(SMALLEST, LARGEST + 1)
    return [Sum(s, a, b) for s in KINDS for a in numbers for b in numbers if s != "-" or b <= a]


@cache
def held_out() -> list[Sum]:
    """The sums that no training sees."""
    others = [found for found in sums() if found != SHOWN]
    drawn = np.random.default_rng(SEED).permutation(len(others))
    return [Sum(*SHOWN), *(others[k] for k in sorted(drawn[: round(HELD_OUT * len(others))]))]


@cache
def learnt() -> list[Sum]:
    """The sums of training."""
    return [found for found in sums() if found not in held_out()]


def _words() -> tuple[str, ...]:
    """The vocabulary: marks and words, then the numbers that a sentence can have."""
    numbers = {n for found in sums() for n in (found.a, found.b, found.result)}
    rest = dict.fromkeys(word for found in sums() for word in found.words if not word.isdigit())
    return (*rest, *map(str, sorted(numbers)))


WORDS = _words()
ID = {word: k for k, word in enumerate(WORDS)}


def sentences(rng: np.random.Generator, n: int) -> np.ndarray:
    """Ids of n sentences of training: [n, length]."""
    return _ids()[rng.integers(len(learnt()), size=n)]


@cache
def _ids() -> np.ndarray:
    return np.array([[ID[word] for word in found.words] for found in learnt()])


def floor(ids: np.ndarray) -> float:
    """The lowest possible loss on sentences, in nats per word."""
    return float(np.log(len(learnt())) / (ids.shape[1] - 1))


class Right(NamedTuple):
    """The shares of sentences in which a model writes the sum, its answer, and the end rightly,
    each after the right words."""

    call: float
    answer: float
    end: float


def right(model: Model, asked: Sequence[Sum]) -> Right:
    """The share of sentences that the model completes rightly, by their parts."""
    start = len(asked[0].question)
    equal = wrote(model, asked) == [found.words[1:] for found in asked]  # [n, length - 1]
    stop = start + len(asked[0].call)
    parts = equal[:, start - 1 : stop - 1], equal[:, stop - 1 : stop], equal[:, stop:]
    return Right(*(float(part.all(axis=1).mean()) for part in parts))


def wrote(model: Model, asked: Sequence[Sum]) -> np.ndarray:
    """The word that a model holds likeliest after each word but the last: [n, length - 1]."""
    texts = np.array(model.vocabulary.texts)
    rows = [model.vocabulary.encode(" ".join(found.words[:-1])) for found in asked]
    return np.array([texts[model.graph(ids).values["logits"].argmax(axis=1)] for ids in rows])
