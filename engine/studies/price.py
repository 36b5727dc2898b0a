"""The price of an edit: what becomes of the next words that nobody asked to change.

Two models predict the word after every token of some texts: for how many another word comes first,
how far the probabilities are apart (the Kullback-Leibler divergence of the second from the first)
and, where rules forbid words, how much each model leaves to the words that keep them.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from engine.cells.batch import filled
from engine.models.model import Model

ALL = "all"
BATCH = 16  # texts that are computed together


class Text(NamedTuple):
    """A text; what binds the word after each of its tokens: the rule, and the ids that break it."""

    ids: Sequence[int]
    rules: Sequence[Mapping[str, Collection[int]]]  # [n_tokens]


class Price(NamedTuple):
    """What became of the next words that a rule binds, or of all."""

    what: str
    n: int
    changed: int  # how many have another first word
    divergence: float  # nats, the mean
    kept: float  # the probability of keeping the rule, the mean
    kept_after: float


def price(before: Model, after: Model, texts: Sequence[Text]) -> list[Price]:
    """What becomes of the word after every token of the texts: of all, then rule by rule in the
    order in which these come up. Raises InputError for ids that the models cannot take."""
    found: dict[str, list[tuple[float, float, float, float]]] = {ALL: []}
    for begin in range(0, len(texts), BATCH):
        some = texts[begin : begin + BATCH]
        logs = zip(*(_logs(model, some) for model in (before, after)), strict=True)
        for text, (p, q) in zip(some, logs, strict=True):  # [n_tokens, d_vocab] each
            changed = p.argmax(axis=1) != q.argmax(axis=1)
            divergence = (np.exp(p) * (p - q)).sum(axis=1)
            for k, rules in enumerate(text.rules):
                for what, broken in {ALL: (), **rules}.items():
                    kept = (1 - np.exp(x[k, list(broken)]).sum() for x in (p, q))
                    found.setdefault(what, []).append((changed[k], divergence[k], *kept))
    return [_mean(what, cases) for what, cases in found.items()]


def _mean(what: str, cases: Sequence[tuple[float, float, float, float]]) -> Price:
    """Of all cases of a rule; where there are none, nothing becomes of them."""
    changed, *means = np.mean(cases, axis=0) if cases else (0, 0, 1, 1)
    return Price(what, len(cases), round(changed * len(cases)), *map(float, means))


def _logs(model: Model, texts: Sequence[Text]) -> np.ndarray:
    """The logarithms of the next words' probabilities: [n_texts, n_tokens of the longest, d_vocab].

    The others are filled up at their ends: what comes before does not see it.
    """
    longest = max(len(text.ids) for text in texts)
    ids = [[*text.ids, *[text.ids[-1]] * (longest - len(text.ids))] for text in texts]
    for row in ids:
        model.check_ids(row)
    tokens = np.array(ids, np.float64)[:, :, None]
    logits = filled(model.graph(ids[0]), {"tokens": tokens})["logits"]
    logits = logits - logits.max(axis=-1, keepdims=True)
    found: np.ndarray = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    return found
