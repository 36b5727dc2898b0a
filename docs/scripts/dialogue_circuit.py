"""Write into dialogue-game.md which edges carry which rule of the game: found by search, checked by
cutting all others.

    python docs/scripts/dialogue_circuit.py

For each rule, the search sees a few games, and what stands instead of a cut edge is its writer's
average over sentences of the same length in which another word is right. The games that the circuit
is then tried on are fresh: of another seed, of any length.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from cellformer.engine import Model
from cellformer.engine.studies import ablation, patching
from cellformer.engine.studies.answer_graph import AnswerGraph, Edge, short
from cellformer.engine.studies.circuit import Case, Circuit, search
from cellformer.engine.studies.edge_cuts import Cuts, averages
from cellformer.workbooks.dialogue_game import PROMPT, game, measured
from cellformer.workbooks.dialogue_game import model as trained
from cellformer.workbooks.dialogue_game.game import ID, WORDS, State

FILE = Path(__file__).parents[1] / "dialogue-game.md"
MARKED = re.compile(r"(<!--circuits-->).*?(<!--/circuits-->)", re.DOTALL)
POOL_SEED, POOL = 7, 2000  # games that cases and averages are drawn from
N_CASES, LONGEST = 6, 14  # of a search: games, and their words
FRESH, N_FRESH, N_INSTEAD = 3000, 100, 24  # games, moments of them, sentences of an average
ALONE = "<BOS> 3 chiama Paolo"
FEWEST = 4  # sentences of an average
N_CUT, N_WORST = 50, 3  # edges; those whose cut is predicted worst


@dataclass(frozen=True)
class Moment:
    """A game up to a word that a rule binds."""

    ids: tuple[int, ...]
    state: State
    word: str  # that comes

    def broken(self, rule: str) -> set[str]:
        """The words that break a rule here."""
        return game.rules(self.state).get(rule, set())


def moments(seed: int, n: int) -> Iterator[Moment]:
    """Every moment of n games."""
    for row in game.games(np.random.default_rng(seed), n):
        words = [WORDS[i] for i in row]
        for k, state in enumerate(game.states(words)[:-1]):
            if k > 1 and state.next != "pad":  # before, every game is alike
                yield Moment(tuple(int(i) for i in row[: k + 1]), state, words[k + 1])


@cache
def pool() -> list[Moment]:
    """Moments that cases and averages are drawn from."""
    return list(moments(POOL_SEED, POOL))


def bound(rule: str, found: Sequence[Moment], n: int, longest: int = game.LENGTH) -> list[Moment]:
    """The first n different moments that a rule binds."""
    those = {m.ids: m for m in found if rule in game.rules(m.state) and len(m.ids) <= longest}
    return list(those.values())[:n]


def case(model: Model, rule: str, moment: Moment) -> Case:
    """A rule's answer at a moment: the right word, and the one that another situation asks for."""
    alike = [m for m in pool() if len(m.ids) == len(moment.ids)]
    same = [m for m in alike if m.state.next == moment.state.next]
    calls = rule in ("no self-call", "no call back")
    who = moment.state.caller if rule == "no self-call" else moment.state.before
    if calls:  # the right word is any other, against the one that must not be called
        others = [m for m in same if who not in (m.state.caller, m.state.before)]
        others = others[:N_INSTEAD]
        logits = model.graph(moment.ids).values["logits"][-1]
        allowed = set(game.PLAYERS) - {moment.state.caller, moment.state.before}
        right, rival = max(sorted(allowed), key=lambda word: logits[ID[word]]), who
    else:
        others = [m for m in same if m.word != moment.word]
        others = others if len(others) >= FEWEST else [m for m in alike if m.word != moment.word]
        others = others[:N_INSTEAD]
        words = [m.word for m in others if m.word in moment.broken(rule)]
        right, rival = moment.word, max(sorted(set(words)), key=words.count)
    instead = averages(model, [m.ids for m in others], len(moment.ids))
    return Case(model, moment.ids, ID[right], ID[rival], instead)


def circuit(model: Model, rule: str) -> Circuit:
    """The edges that carry a rule."""
    return search([case(model, rule, m) for m in bound(rule, pool(), N_CASES, LONGEST)])


def followed(
    model: Model, rule: str, circuit: Circuit, most: int = N_FRESH
) -> tuple[int, int, int]:
    """On how many fresh games the model's likeliest word keeps a rule, with a circuit alone, and
    with no edge at all; and of how many."""
    found = bound(rule, list(moments(measured.SEED, FRESH)), most)
    kept = np.zeros(2, dtype=int)
    for moment in found:
        words = np.argmax(case(model, rule, moment).logits([circuit.edges, ()]), axis=1)
        kept += [WORDS[word] not in moment.broken(rule) for word in words]
    return int(kept[0]), int(kept[1]), len(found)


# --- ablation and patching side by side ---------------------------------------------------------


def off(model: Model) -> dict[str, float]:
    """What each part's loss leaves of Tarso's probability."""
    graph = model.graph(model.vocabulary.encode(PROMPT))
    found = ablation.effects(graph, ID["Tarso"])
    return {effect.part: effect.probability for effect in found}


def patched(model: Model) -> dict[str, tuple[float, str]]:
    """What is left where a part's output at one token is that of the sentence in which 3 calls: the
    least over tokens, and that token."""
    ids, others = (model.vocabulary.encode(text) for text in (PROMPT, ALONE))
    graph = model.graph(ids)
    names = [block.name for block in graph if block.leaf in ("result", "mlp_out")]
    sites = [patching.site(graph, name) for name in names]
    rows = patching.patch_each(graph, others, -1, ID["Tarso"], ID["vice"], sites).rows
    found: dict[str, tuple[float, str]] = {}
    for row in rows:
        part = row.site.partition("[")[0].removesuffix(".result").replace(".mlp_out", ".mlp")
        left = row.scores.probability, WORDS[ids[row.token or 0]]
        found[part] = min(found.get(part, left), left)
    return found


# --- cuts, predicted and real -------------------------------------------------------------------


def gaps(answer: AnswerGraph) -> list[tuple[Edge, float]]:
    """The strongest edges, each with how far the change that its value predicts is from the change
    that its cut makes; the largest difference first."""
    cuts = Cuts(answer)
    edges = [edge for edge in answer.edges() if cuts.possible(edge.ends)][:N_CUT]
    real = cuts.leads([[edge.ends] for edge in edges]) - answer.lead
    found = [(e, abs(float(change) + e.value)) for e, change in zip(edges, real, strict=True)]
    return sorted(found, key=lambda pair: -pair[1])


def cut_alone(model: Model) -> str:
    """A paragraph about the strongest edges, each cut alone."""
    ids = model.vocabulary.encode(PROMPT)
    answer = AnswerGraph(model.graph(ids), 3, ID["Tarso"], ID["vice"])
    found = gaps(answer)
    worst = ", ".join(
        f"`{short(e.source.name)} → {short(e.reader.name)}` at "
        f"*{WORDS[ids[e.reader.token]]}* ({gap:.2f})"
        for e, gap in found[:N_WORST]
    )
    return (
        f"We cut each of the {N_CUT} strongest edges of *Tarso* over *vice* alone. The whole lead "
        f"is {answer.lead:.2f}. The value of an edge predicts a change. The real change differs "
        f"from it by {np.median([gap for _, gap in found]):.2f} (median). "
        f"The largest differences are: {worst}."
    )


# --- the section ------------------------------------------------------------------------------


def place(at: int) -> str:
    """A token, counted back from the last."""
    return "" if at == 0 else f" at {at}"


def told(edges: Circuit) -> str:
    """A circuit's edges, in the order of their readers."""
    return ", ".join(
        f"{short(s)}{place(at)} → {short(r)}{place(token)}"
        for s, at, r, token in sorted(edges.edges, key=lambda e: (e[3], e[2] == "objective", e[2]))
    )


def section(model: Model) -> Iterator[str]:
    """The section, line by line."""
    yield "| rule | edges | fresh games | with none | which edges |"
    yield "|---|---|---|---|---|"
    for rule in game.RULES:
        found = circuit(model, rule)
        kept, without, n = followed(model, rule, found)
        yield f"| {rule} | {len(found.edges)} | {kept} of {n} | {without} | {told(found)} |"
        print(rule, kept, n, flush=True)
    yield ""
    yield "| Tarso, 0.9999 | switched off | patched at | patched |"
    yield "|---|---|---|---|"
    left, swapped = off(model), patched(model)
    for part, (probability, word) in swapped.items():
        yield f"| {short(part)} | {left[part]:.4f} | {word} | {probability:.4f} |"
    yield ""
    yield cut_alone(model)


def main() -> None:
    """Write the section anew."""
    text = "\n".join(section(trained()))
    FILE.write_text(MARKED.sub(lambda m: f"{m[1]}\n{text}\n{m[2]}", FILE.read_text()))


if __name__ == "__main__":
    main()
