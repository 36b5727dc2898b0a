"""The side effects of an edit: how other next words change.

Two models predict the word after every token of some texts: for how many the most likely word
changes, how far the probabilities are apart (the Kullback-Leibler divergence of the second from the
first) and, if rules forbid words, how much probability each model leaves to words that keep them.
"""

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, NamedTuple

import numpy as np

from cellformer.engine.cells.batch import filled
from cellformer.engine.cells.graph import Graph
from cellformer.engine.cells.groups import batches
from cellformer.engine.models.model import Model

ALL = "all"
NO_WEIGHTS: Mapping[str, np.ndarray] = MappingProxyType({})
BATCH = 16  # texts that are computed together


class Text(NamedTuple):
    """A text, with the rules for the word after each of its tokens: each rule, and the ids that
    break it."""

    ids: Sequence[int]
    rules: Sequence[Mapping[str, Collection[int]]]  # [n_tokens]


class Price(NamedTuple):
    """The side effects on the next words of one rule, or of all."""

    what: Annotated[str, "group of next words; the first row counts all groups"]
    n: Annotated[int, "how many next words"]
    changed: Annotated[int, "next words whose likeliest word changed"]
    divergence: Annotated[float, "nats, the mean; null: infinite"]
    kept: Annotated[float, "mean probability of words that keep the rule"]
    kept_after: Annotated[float, "mean probability, after the edit, of words that keep the rule"]


def price(before: Model, after: Model, texts: Sequence[Text]) -> list[Price]:
    """The side effects on the word after every token of the texts: over all, then by rule, in the
    order in which rules appear. Raises InputError for ids that the models cannot take."""
    found: dict[str, list[tuple[float, float, float, float]]] = {ALL: []}
    for some in batches(texts, BATCH):
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
    """The mean over all cases of a rule; zeros if there are none."""
    changed, *means = np.mean(cases, axis=0) if cases else (0, 0, 1, 1)
    return Price(what, len(cases), round(changed * len(cases)), *map(float, means))


def _logs(model: Model, texts: Sequence[Text]) -> np.ndarray:
    """The log-probabilities of the next words: [n_texts, n_tokens of the longest, d_vocab]."""
    ids = padded(model, [text.ids for text in texts])
    return log_probabilities(model.graph(ids[0]), ids)


def padded(model: Model, texts: Sequence[Sequence[int]]) -> list[list[int]]:
    """Texts as long as the longest, padded at the end, which earlier tokens do not see. Raises
    InputError for ids that the model cannot take."""
    longest = max(map(len, texts))
    ids = [[*text, *[text[-1]] * (longest - len(text))] for text in texts]
    for row in ids:
        model.check_ids(row)
    return ids


def log_probabilities(
    graph: Graph, ids: Sequence[Sequence[int]], weights: Mapping[str, np.ndarray] = NO_WEIGHTS
) -> np.ndarray:
    """The log-probabilities of the words after every token of equal-length texts, with some
    other weights by name: [n_texts, n_tokens, d_vocab]. The graph has the same length."""
    logits = filled(graph, {"tokens": np.array(ids, np.float64)[:, :, None], **weights})["logits"]
    logits = logits - logits.max(axis=-1, keepdims=True)
    return np.asarray(logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True)))
