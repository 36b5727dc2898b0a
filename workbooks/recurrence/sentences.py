"""The sentences of the workbook recurrence: people and their accounts, filler words, questions.

A sentence names some people, each with an account: `Joe rent Bob wages`. Filler words follow. Then
the people are named again, each with the same account: `then later Bob wages Joe rent`. So after a
person who was named before, one account is right.
"""

import numpy as np

PEOPLE = ("Ann", "Bob", "Eve", "Joe", "Kim", "Leo", "Mia", "Tom")
ACCOUNTS = ("cash", "bank", "rent", "tax", "wages", "stock", "loan", "sales")
FILLERS = ("then", "later")
WORDS = (*PEOPLE, *ACCOUNTS, *FILLERS)
N_PEOPLE = len(PEOPLE)
N_WORDS = 12  # that a model reads at once; it predicts the word after each
MOST_PEOPLE = min(N_PEOPLE, (N_WORDS - 1) // 2)  # in a sentence, with room for a question
FIRST_FILLER = N_PEOPLE + len(ACCOUNTS)


def begun(rng: np.random.Generator, n_people: int, n_fillers: int) -> tuple[np.ndarray, np.ndarray]:
    """The first words of a sentence, and its pairs of a person and an account: [n_people, 2]."""
    people = rng.permutation(N_PEOPLE)[:n_people]
    pairs = np.stack([people, rng.integers(N_PEOPLE, FIRST_FILLER, n_people)], axis=1)
    return np.concatenate([pairs.ravel(), rng.integers(FIRST_FILLER, len(WORDS), n_fillers)]), pairs


def batch(rng: np.random.Generator, n: int) -> np.ndarray:
    """Sentences for training, which ask until they end: [n, N_WORDS + 1]."""
    found = []
    for _ in range(n):
        n_people = int(rng.integers(1, MOST_PEOPLE + 1))
        start, pairs = begun(rng, n_people, int(rng.integers(0, N_WORDS - 2 * n_people)))
        asked = [rng.permutation(pairs).ravel() for _ in range(N_WORDS)]
        found.append(np.concatenate([start, *asked])[: N_WORDS + 1])
    return np.array(found)


def known(ids: np.ndarray) -> np.ndarray:
    """Whether each next word follows from the words before it: [n, length - 1]."""
    read = ids[:, :-1]  # [n, length - 1]
    same = read[:, :, None] == read[:, None, :]  # [n, length - 1, length - 1]
    return np.asarray((read < N_PEOPLE) & np.tril(same, -1).any(axis=2))


def questions(
    rng: np.random.Generator, n_people: int, n_fillers: int, n: int
) -> tuple[np.ndarray, np.ndarray]:
    """Sentences that end with one of their people, [n, length], and the right accounts, [n]."""
    found, right = [], []
    for _ in range(n):
        start, pairs = begun(rng, n_people, n_fillers)
        person, account = pairs[rng.integers(n_people)]
        found.append([*start, person])
        right.append(account)
    return np.array(found), np.array(right)
