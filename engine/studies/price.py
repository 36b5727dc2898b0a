"""The price of an edit: what becomes of the next words that nobody asked to change.

Two models predict the word after every token of some texts: for how many another word comes first,
how far the probabilities are apart (the Kullback-Leibler divergence of the second from the first)
and, where rules forbid words, how much each model leaves to the words that keep them.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from engine.models.model import Model

ALL = "all"


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


def price(before: Model, after: Model, texts: Iterable[Text]) -> list[Price]:
    """What becomes of the word after every token of the texts: of all, then rule by rule in the
    order in which these come up. Raises InputError for ids that the models cannot take."""
    found: dict[str, list[tuple[float, float, float, float]]] = {ALL: []}
    for text in texts:
        p, q = (_logs(model, text.ids) for model in (before, after))  # [n_tokens, d_vocab]
        changed = p.argmax(axis=1) != q.argmax(axis=1)
        divergence = (np.exp(p) * (p - q)).sum(axis=1)
        for k, rules in enumerate(text.rules):
            for what, broken in {ALL: (), **rules}.items():
                ids = list(broken)
                kept = (1 - np.exp(x[k, ids]).sum() for x in (p, q))
                found.setdefault(what, []).append((changed[k], divergence[k], *kept))
    return [_mean(what, cases) for what, cases in found.items()]


def _mean(what: str, cases: Sequence[tuple[float, float, float, float]]) -> Price:
    """Of all cases of a rule; where there are none, nothing becomes of them."""
    changed, *means = np.mean(cases, axis=0) if cases else (0, 0, 1, 1)
    return Price(what, len(cases), round(changed * len(cases)), *map(float, means))


def _logs(model: Model, ids: Sequence[int]) -> np.ndarray:
    """The logarithms of the next words' probabilities: [n_tokens, d_vocab]."""
    logits = model.graph(ids).values["logits"]
    top = logits.max(axis=1, keepdims=True)
    found: np.ndarray = logits - top - np.log(np.exp(logits - top).sum(axis=1, keepdims=True))
    return found
