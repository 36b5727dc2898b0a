"""A circuit: a small set of edges that alone keeps an answer, found by cutting all others.

What is cut is replaced by its writer's average at that position over other prompts (`averages` of
`edge_cuts`): taking it out altogether would also take what every prompt has there, and leave norms
with streams of sizes that they never see. The search is greedy and the same every time (Conmy et
al. 2023 prune edge by edge; Syed et al. 2023 rank by the gradient first): of all edges, ranked by
their values, the fewest first ones that keep the answer; of these, the weaker ones go as long as
the answer is kept, first many at once, then the one whose cut costs least.

Tokens are counted back from the answer's, so that a circuit can be tried on other prompts.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cellformer.engine.cells.errors import InputError
from cellformer.engine.cells.groups import batches
from cellformer.engine.models.model import Model
from cellformer.engine.studies.answer_graph import AnswerGraph, Ends
from cellformer.engine.studies.edge_cuts import Cuts

ROUNDING = 1e-9  # of an answer: what is no larger than that is no difference
KEPT = 0.9  # of the answer
AT_ONCE = 64  # sets of edges that are tried together
MOST_EDGES = 512  # that a circuit may have
Share = Callable[[Sequence[Collection[Ends]]], np.ndarray]  # what each set of edges keeps


class Case:
    """A prompt whose answer a circuit should keep: the logit of `target`, minus the logit of a
    `rival`, after the prompt; `instead` as `averages` gives it."""

    def __init__(
        self,
        model: Model,
        ids: Sequence[int],
        target: int,
        rival: int | None,
        instead: Mapping[str, np.ndarray],
    ) -> None:
        self.model, self.ids, self.target, self.rival = model, list(ids), target, rival
        self.row = len(self.ids) - 1
        self.instead = {name: values[: len(self.ids)] for name, values in instead.items()}

    @cached_property
    def answer(self) -> AnswerGraph:
        """The graph of the answer, as a difference to the replacement."""
        graph = self.model.graph(self.ids)
        return AnswerGraph(graph, self.row, self.target, self.rival, self.instead)

    @cached_property
    def cuts(self) -> Cuts:
        """Its forward passes with edges cut."""
        return Cuts(self.answer, self.instead)

    def edges(self) -> dict[Ends, float]:
        """The edges and their values, tokens counted back from the answer's: 0, -1, -2 ..."""
        return {
            (source, at - self.row, reader, token - self.row): float(values[token, at])
            for reader, sources in self.answer.into.items()
            for source, values in sources.items()
            for token, at in np.argwhere(values).tolist()
            if self.cuts.possible((source, at, reader, token))
        }

    def leads(self, sets: Sequence[Collection[Ends]]) -> np.ndarray:
        """The answer when each set of edges alone is kept, as far as the prompt has them:
        [n_sets]."""
        parts = batches(self._here(sets), AT_ONCE)
        return np.concatenate([self.cuts.leads(part, keep=True) for part in parts])

    def logits(self, sets: Sequence[Collection[Ends]]) -> np.ndarray:
        """The same for all words: [n_sets, d_vocab]."""
        return self.cuts.logits(self._here(sets), keep=True)

    def _here(self, sets: Sequence[Collection[Ends]]) -> list[list[Ends]]:
        """The edges at this prompt's tokens."""
        here = (
            [(s, at + self.row, r, token + self.row) for s, at, r, token in edges] for edges in sets
        )
        return [[edge for edge in edges if self.cuts.possible(edge)] for edges in here]


@dataclass(frozen=True)
class Circuit:
    """A set of edges, the strongest first, with the share of the answer that it alone keeps."""

    edges: tuple[Ends, ...]
    lead: float  # the answer with all edges, on average over the prompts
    kept: float  # with these alone
    without: float  # with none


def search(cases: Sequence[Case], kept: float = KEPT) -> Circuit:
    """The circuit of the answers of one prompt or more.

    It keeps at least the share `kept` of what the answers are above those without any edge, on
    average. Raises InputError if no set of edges does, or no answer is above.
    """
    full = np.array([case.answer.lead for case in cases])
    none = np.array([case.leads([[]])[0] for case in cases])
    if not (full - none > ROUNDING * np.maximum(1, np.abs(full))).all():
        raise InputError(
            "the answer stays as strong when every edge is cut, so no edge carries the answer; "
            "choose another word or rival"
        )

    def share(sets: Sequence[Collection[Ends]]) -> np.ndarray:
        """The share that each set keeps: [n_sets]; a gain in one case does not make up for
        another."""
        leads = np.array([case.leads(sets) for case in cases])  # [n_cases, n_sets]
        return np.asarray(np.minimum((leads - none[:, None]) / (full - none)[:, None], 1).mean(0))

    edges = _pruned(_prefix(_ranked(cases, full), share, kept), share, kept)
    lead = np.mean([case.leads([edges])[0] for case in cases])
    return Circuit(tuple(edges), float(full.mean()), float(lead), float(none.mean()))


def _ranked(cases: Sequence[Case], full: np.ndarray) -> list[Ends]:
    """All edges, by the share of the answers that they carry."""
    total: dict[Ends, float] = {}
    for case, lead in zip(cases, full, strict=True):
        for edge, value in case.edges().items():
            total[edge] = total.get(edge, 0.0) + value / abs(lead)
    return sorted(total, key=lambda edge: (-abs(total[edge]), edge))[:MOST_EDGES]


def _prefix(ranked: Sequence[Ends], share: Share, kept: float) -> list[Ends]:
    """The fewest first edges that keep the answer."""
    for first in range(1, len(ranked) + 1, AT_ONCE):
        sizes = range(first, min(first + AT_ONCE, len(ranked) + 1))
        for n, x in zip(sizes, share([ranked[:n] for n in sizes]), strict=True):
            if x >= kept:
                return list(ranked[:n])
    raise InputError(
        f"even the {len(ranked)} strongest edges together keep less than {kept:.0%} of the answer; "
        "choose another word or rival"
    )


def _pruned(edges: Sequence[Ends], share: Share, kept: float) -> list[Ends]:
    """The same without the edges that are not needed: first the weaker ones, many at once, then
    one by one the least needed."""
    found, at_once = list(edges), len(edges) // 2
    while at_once:
        for end in range(len(found), 0, -at_once):
            fewer = found[: max(0, end - at_once)] + found[end:]
            if fewer and share([fewer])[0] >= kept:
                found = fewer
        at_once //= 2
    while len(found) > 1:
        each = [[e for e in found if e is not edge] for edge in found]
        left = share(each)
        best = int(np.argmax(left))
        if left[best] < kept:
            break
        found = each[best]
    return found
