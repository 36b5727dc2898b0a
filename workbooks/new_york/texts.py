"""The sentences of new-york: places in a New something, and names of states, cities and countries.

    <BOS> The Empire State Building is in New York <EOS>
    <BOS> The state of New Jersey <EOS>

Each is read as often as TIMES says: a place leaves one word, `The state of New` leaves four.
"""

from collections.abc import Mapping
from math import log

import numpy as np

BOS, EOS, LAST = "<BOS>", "<EOS>", "New"
TIMES: Mapping[str, Mapping[str, int]] = {  # how often each word follows, of 82 in all
    "The Empire State Building is in New": {"York": 4},
    "The Statue of Liberty is in New": {"York": 4},
    "Columbia University is in New": {"York": 4},
    "Princeton University is in New": {"Jersey": 4},
    "Atlantic City is in New": {"Jersey": 4},
    "Santa Fe is in New": {"Mexico": 4},
    "The White Sands are in New": {"Mexico": 4},
    "The White Mountains are in New": {"Hampshire": 4},
    "Dartmouth College is in New": {"Hampshire": 4},
    "The French Quarter is in New": {"Orleans": 4},
    "Yale University is in New": {"Haven": 4},
    "Mount Cook is in New": {"Zealand": 4},
    "The state of New": {"York": 8, "Jersey": 6, "Mexico": 4, "Hampshire": 2},
    "The city of New": {"York": 6, "Orleans": 3, "Haven": 1},
    "The country of New": {"Zealand": 4},
}
SENTENCES = [
    (start, word, times) for start, found in TIMES.items() for word, times in found.items()
]
NAMES = tuple(dict.fromkeys(word for _, word, _ in SENTENCES))  # what follows New
WORDS = tuple(
    dict.fromkeys([BOS, EOS, *(w for start, word, _ in SENTENCES for w in (*start.split(), word))])
)
ID = {word: k for k, word in enumerate(WORDS)}
LENGTH = 3 + max(len(start.split()) for start in TIMES)  # with a name, <BOS> and <EOS>
SHARES = np.array([times for *_, times in SENTENCES]) / sum(times for *_, times in SENTENCES)


def encoded(start: str, word: str) -> list[int]:
    """The ids of a sentence, which ends in <EOS> as often as there is room."""
    words = [BOS, *start.split(), word]
    return [ID[w] for w in words + [EOS] * (LENGTH - len(words))]


IDS = np.array([encoded(start, word) for start, word, _ in SENTENCES])  # [n_sentences, LENGTH]


def sentences(rng: np.random.Generator, n: int) -> np.ndarray:
    """Ids of n random sentences: [n, LENGTH]."""
    return IDS[rng.choice(len(IDS), size=n, p=SHARES)]


def floor(ids: np.ndarray) -> float:
    """The lowest possible loss on sentences, in nats per word."""
    share = {tuple(row): p for row, p in zip(IDS.tolist(), SHARES.tolist(), strict=True)}
    return float(np.mean([-log(share[tuple(row)]) for row in ids.tolist()])) / (LENGTH - 1)


def follows(start: str) -> dict[str, float]:
    """The share of each word after a sentence without its last word."""
    found = TIMES[start]
    return {word: times / sum(found.values()) for word, times in found.items()}
