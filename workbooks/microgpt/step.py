"""One step of the program as blocks: a name, the forward pass over it, the loss, the way back, Adam.

Beside it a second forward pass, `name.…`, writes a name with the weights as they are: each of its
tokens is drawn from the probabilities after the one before.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cellformer.engine import ModelSpec
from cellformer.engine.cells.batch import filled
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.expression import Expression, expression
from cellformer.engine.cells.functions import IFERROR, INDEX, INT, MATCH, MIN, MOD
from cellformer.engine.cells.gradient import backward
from cellformer.engine.learning import adam, objective
from cellformer.engine.learning.adam import Moved
from cellformer.engine.models.architectures import decoder
from cellformer.engine.models.encoding import TOKENS
from cellformer.engine.models.forward import Forward, Readout
from cellformer.workbooks.microgpt import program
from cellformer.workbooks.microgpt.program import BOS, PLACES, Drawn, Weights

WRITES = "name"  # the prefix of the pass that writes


@dataclass(frozen=True)
class Step:
    """A step as blocks of a graph."""

    graph: Forward
    loss: Block  # [1, 1]
    forward: list[Block]  # the pass over the name that is read
    moved: dict[str, Moved]  # by the name of the weight

    @property
    def states(self) -> dict[str, Block]:
        """The states that a step passes on: the name of a block -> its next value."""
        found: dict[str, Block] = {}
        for name, (weight, m, v) in self.moved.items():
            found |= {name: weight, f"m.{name}": m, f"v.{name}": v}
        return found


class Read(NamedTuple):
    """A name as the step reads it: each [places, 1]."""

    tokens: list[int]
    targets: list[int]
    shares: list[float]  # of each place in the loss


def read(name: str) -> Read:
    """A name between two <BOS>, as far as there are places; after its end, places without a
    share."""
    ids = [BOS, *(program.LETTERS.index(letter) for letter in name), BOS]
    n = min(PLACES, len(ids) - 1)
    ids += [BOS] * (PLACES + 1 - len(ids))
    return Read(ids[:PLACES], ids[1 : PLACES + 1], [1 / n] * n + [0.0] * (PLACES - n))


def graph(weights: Weights, spec: ModelSpec = program.SPEC) -> Forward:
    """The graph that a step is added to."""
    return Forward(spec, weights, Readout(by_head=False))


def add(g: Forward, counted: Block | None = None) -> Step:
    """Add the step of the first name. `counted` counts the steps from 1."""
    before = list(g)
    tokens, targets, shares = read(program.names()[0])
    decoder.forward(g, tokens)
    forward = [block for block in g if block not in before]
    loss = objective.loss(g, targets, shares)
    gradients = backward(g, loss, tokens=TOKENS)
    moved = adam.add(g, counted or g.input("step", 1), gradients, program.ADAM)
    return Step(g, loss, forward, moved)


def learn(drawn: Drawn, spec: ModelSpec = program.SPEC) -> Iterator[tuple[float, Weights]]:
    """The loss of each of the program's steps, and the weights after it."""
    made = add(graph(drawn.weights, spec))
    state = {name: made.graph.inputs[name] for name in made.states}
    for n, name in enumerate(program.names()[: program.STEPS], 1):
        given = zip(("tokens", "loss.targets", "loss.share"), read(name), strict=True)
        typed = {block: np.reshape(np.array(x, float), (-1, 1)) for block, x in given}
        values = filled(made.graph, state | typed | {"step": np.array([[float(n)]])})
        state = {block: values[after.name] for block, after in made.states.items()}
        yield float(values[made.loss.name][0, 0]), {block: state[block] for block in made.moved}


# --- writing ------------------------------------------------------------------------------------


def add_writer(made: Step, drawn: Drawn) -> None:
    """Add the pass that writes a name, with the random numbers from `used` on."""
    g = made.graph
    begun = [BOS, *picked(drawn.weights, drawn.numbers, g.spec)[:-1]]
    g.input("random", np.reshape(drawn.numbers, (-1, PLACES)))
    g.input("used", 0)
    own = g.at(WRITES)
    tokens = own.input("tokens", np.reshape(begun, (-1, 1)), ("token", ""), "ids")
    hot = own.input("temperature", program.TEMPERATURE)
    own.copy_with({"tokens": tokens, "temperature": hot}, made.forward)
    probs, n_words = g[f"{WRITES}.probs"], len(program.WORDS)
    used, numbers = g["used"][0, 0].fixed, g["random"].area.fixed

    def start(t: int, j: int) -> Expression:
        return own[f"{WRITES}.start"][t, j - 1] + probs[t, j - 1] if j else expression(0)

    def number(t: int, _: int) -> Expression:
        at = MIN(used + t, len(drawn.numbers) - 1)
        return INDEX(numbers, INT(at / PLACES) + 1, MOD(at, PLACES) + 1)

    def falls(t: int, _: int) -> Expression:
        line = own[f"{WRITES}.start"][t, :]
        total = line[n_words - 1] + probs[t, n_words - 1]
        return MATCH(own[f"{WRITES}.chance"][t, 0] * total, line, 1) - 1

    g.table(f"{WRITES}.start", (PLACES, n_words), start, ("token", "vocab"))
    chances = {f"{WRITES}.chance": number, f"{WRITES}.picked": falls}
    g.add_tables((PLACES, 1), chances, ("token", ""))
    chosen = g[f"{WRITES}.picked"]
    ends = IFERROR(MATCH(BOS, chosen.area, 0) - 1, PLACES)
    g.table(f"{WRITES}.length", (1, 1), lambda i, j: ends)
    g.table(f"{WRITES}.drawn", (1, 1), lambda i, j: MIN(g[f"{WRITES}.length"][0, 0] + 1, PLACES))
    g.follow(f"{WRITES}.tokens", lambda t, _: chosen[t - 1, 0] + 0 if t else BOS + 0 * used)


def picked(weights: Weights, numbers: list[float], spec: ModelSpec = program.SPEC) -> list[int]:
    """The ids that the model draws with these random numbers, also those after a name has ended."""
    g = graph(weights, spec)
    decoder.forward(g, [BOS] * PLACES)
    hot, ids = np.array([[program.TEMPERATURE]]), [BOS] * (PLACES + 1)
    for t in range(PLACES):
        tokens = np.reshape(np.array(ids[:PLACES], float), (-1, 1))
        ends = np.cumsum(filled(g, {"tokens": tokens, "temperature": hot})["probs"][t])
        ids[t + 1] = int(np.searchsorted(ends[:-1], numbers[t] * ends[-1], side="right"))
    return ids[1:]


def names(
    weights: Weights, numbers: list[float], spec: ModelSpec = program.SPEC
) -> list[list[int]]:
    """The ids of as many names as the program writes, one after another: [places], <BOS> after the
    end."""
    found, at = [], 0
    for _ in range(program.N_NAMES):
        ids = picked(weights, (numbers[at:] + numbers[-1:] * PLACES)[:PLACES], spec)
        n = [*ids, BOS].index(BOS)
        found.append(ids[:n] + [BOS] * (PLACES - n))
        at += min(n + 1, PLACES)
    return found


def text(ids: list[int]) -> str:
    """Ids up to the end, as letters."""
    return "".join(program.LETTERS[i : i + 1] for i in ids)
