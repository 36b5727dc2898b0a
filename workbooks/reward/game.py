"""The task: texts of debits and credits, the rewards that they get, and the books to imitate.

A text has at most 7 words: entries, D or C, and then END. There are 255 texts. What the model has
written so far is a *beginning*: one of 127, numbered like a heap. Beginning 1 has no entry; after
beginning b, a debit makes beginning 2b, and a credit 2b + 1.
"""

from dataclasses import dataclass

import numpy as np

DEBIT, CREDIT, END = range(3)  # END also begins a text
WORDS = ("D", "C", "END")
TEXTS, LENGTH, STEPS = 8, 7, 200
BALANCED, CREDIT_LAST, LONG = REWARDS = ("balanced", "ends with a credit", "long")
N_BEGINNINGS = 2**LENGTH - 1
ENDS = 0.25  # how likely a random book ends after each entry


def entries(b: int) -> list[int]:
    """The entries of a beginning."""
    return [int(bit) for bit in f"{b:b}"[1:]]


BEGINNINGS = [entries(b) for b in range(1, N_BEGINNINGS + 1)]
# texts that end, in the order of their beginnings; then those of 7 entries, which do not end
EVERY = [
    *([*begun, END] for begun in BEGINNINGS),
    *map(entries, range(2**LENGTH, 2 ** (LENGTH + 1))),
]


def ids(texts: list[list[int]]) -> np.ndarray:
    """Texts as ids, END after their ends: [texts, LENGTH]."""
    return np.array([text + [END] * (LENGTH - len(text)) for text in texts])


def lengths(ids: np.ndarray) -> np.ndarray:
    """The words of each text up to its first end, with the end."""
    return np.where((ids == END).any(1), (ids == END).argmax(1) + 1, LENGTH)


@dataclass(frozen=True)
class Counts:
    """Facts of texts, each [texts]."""

    debits: np.ndarray
    credits: np.ndarray
    ended: np.ndarray
    last: np.ndarray  # the last entry; END if there is none

    @classmethod
    def of(cls, ids: np.ndarray) -> "Counts":
        """The facts of some texts: ids [texts, LENGTH]."""
        n, ended = lengths(ids), (ids == END).any(1)
        counts = np.arange(LENGTH) < n[:, None]
        debits, credits = (((ids == word) & counts).sum(1) for word in (DEBIT, CREDIT))
        at = n - ended - 1
        return cls(
            debits,
            credits,
            ended,
            np.where(at < 0, END, ids[np.arange(len(ids)), np.maximum(at, 0)]),
        )


def rewards(kind: str, ids: np.ndarray) -> np.ndarray:
    """The reward of each text: 1 or 0; of a long one, the share of its 7 places with an entry."""
    of = Counts.of(ids)
    if kind == LONG:
        return np.asarray((of.debits + of.credits) / LENGTH)
    if kind == CREDIT_LAST:
        return np.asarray(of.ended & (of.last == CREDIT), float)
    return np.asarray(of.ended & (of.debits == of.credits) & (of.debits > 0), float)


def books(rng: np.random.Generator, n: int) -> np.ndarray:
    """Random books: [n, LENGTH]. Debits and credits are equally likely; a book has an entry or
    more, and ends after each with the same probability, after six in any case."""
    found = rng.integers(0, 2, (n, LENGTH))
    ends = rng.random(found.shape) < ENDS
    ends[:, 0], ends[:, -1] = False, True
    found[np.cumsum(ends, 1) > 0] = END
    return found


def next_in_books() -> np.ndarray:
    """The probability of each word after each beginning in random books: [127, 3]."""
    rows = []
    for begun in BEGINNINGS:
        end = 0.0 if not begun else 1.0 if len(begun) == LENGTH - 1 else ENDS
        rows.append([(1 - end) / 2, (1 - end) / 2, end])
    return np.array(rows)


def random_numbers(seed: int) -> np.ndarray:
    """The random numbers of all steps, with four decimals: [steps, texts, words]."""
    return np.random.default_rng(seed).integers(0, 10_000, (STEPS, TEXTS, LENGTH)) / 10_000
