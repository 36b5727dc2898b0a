"""A small calling game: two turns, all sentences equally likely, so that the lowest possible loss
is known.

A sentence is `CALLER chiama CALLEE EPITHET CALLEE chiama CALLEE EPITHET`. Nobody calls himself, nor
calls back. A leader is called by an epithet that depends on the caller; a number by none: a full
stop. So of the seven words after the first, five are determined by those before, one is any of
three, and one any of two: the lowest loss is (ln 3 + ln 2) / 7 per word.
"""

from itertools import permutations
from math import log

import numpy as np

LEADERS = ("Pietro", "Paolo")
PLAYERS = (*LEADERS, "uno", "due")
VERB, STOP = "chiama", "."
WORDS = (*PLAYERS, VERB, STOP, "Tarso", "Cefa", "capo", "vice")
LENGTH = 8  # words of a sentence
FLOOR = (log(len(PLAYERS) - 1) + log(len(PLAYERS) - 2)) / (LENGTH - 1)  # nats for each word
SEED = 1  # of the order of the sentences


def sentences() -> list[tuple[str, ...]]:
    """Every sentence of the game once, shuffled."""
    found = [(*_turn(a, b), *_turn(b, c)) for a, b, c in permutations(PLAYERS, 3)]
    return [found[k] for k in np.random.default_rng(SEED).permutation(len(found))]


def _turn(caller: str, callee: str) -> tuple[str, ...]:
    """Four words: who calls whom, and by which epithet."""
    peer, rank = {"Paolo": ("Tarso", "vice"), "Pietro": ("Cefa", "capo")}.get(callee, (STOP, STOP))
    return caller, VERB, callee, peer if caller in LEADERS else rank
