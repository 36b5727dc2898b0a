"""Find a fact that a large model knows, and the head that matters most, for suggested edits.

A head's effect is first estimated: the derivative of the answer's logit by the head's switch
(attribution patching; Nanda 2023). The heads of the largest estimates are then switched off in
turn, and the pass is computed again. Weights are unpacked once for all passes.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from cellformer.engine.cells.block import Block
from cellformer.engine.cells.errors import InputError
from cellformer.engine.cells.evaluation import evaluate
from cellformer.engine.cells.gradient import backward
from cellformer.engine.learning import objective
from cellformer.engine.models.forward import Readout
from cellformer.engine.models.model import Model
from cellformer.engine.studies.ablation import SWITCH
from cellformer.engine.text import tokenizing

FACTS = (  # sentences, and how their next words begin
    ("The capital of Italy is", "Rome"),
    ("The capital of France is", "Paris"),
    ("The opposite of hot is", "cold"),
    ("One, two, three, four,", "five"),
    ("Once upon a time, there", "was"),
)
FACT = FACTS[1][0]
MOST_WEIGHTS = 300_000_000  # numbers that are unpacked: 8 bytes each
TRIED = 3  # heads of the largest estimates
KNOWN = 0.1  # the least probability of a word that a model knows


class Guess(NamedTuple):
    """The likeliest word after a text."""

    text: str
    id: int
    probability: float


class Told(NamedTuple):
    """The answer to a prompt, a fact that the model knows, and the head that matters most, with
    the answer's probability without it and the likeliest word then."""

    answer: Guess
    fact: Guess | None
    head: str
    without: float
    then: int


def tells(model: Model) -> bool:
    """Whether a model is small enough to try edits of it while a workbook is built."""
    size = sum(int(np.prod(weights.shape)) for weights in model.weights.values())
    return size <= MOST_WEIGHTS and model.spec.causal and model.spec.gives == "next word"


def told(model: Model, ids: Sequence[int], readout: Readout) -> Told | None:
    """Try edits of a model that ranks the words after one token; None if no head reaches the
    answer."""
    facts = _facts(model, ids)
    longest = max(len(given) for given in (ids, *(given for _, given, _ in facts)))
    graph = model.graph([*ids, *[ids[-1]] * (longest - len(ids))], readout)
    switches = [b for b in graph if b.leaf == SWITCH and b.head is not None]
    if not switches:
        return None
    forward, values = list(graph), {name: np.array(x) for name, x in graph.inputs.items()}

    def guess(text: str, given: Sequence[int]) -> Guess:
        values["tokens"][: len(given), 0] = given
        values["position"][0, 0] = len(given) - 1
        _compute(forward, values)
        (probs,) = values["probs"]
        return Guess(text, int(probs.argmax()), float(probs.max()))

    known = (guess(text, given) for text, given, _ in facts)
    fact = next(
        (g for g, (*_, word) in zip(known, facts, strict=True) if _says(model, g, word)), None
    )
    answer = guess("", ids)
    slopes = backward(graph, objective.logit(graph, 0, answer.id), switches)
    added = [block for block in graph if block.name not in values]
    values |= {block.name: np.array(graph.inputs[block.name]) for block in added if not block.op}
    _compute(added, values)
    slope = {b.path: float(values[slopes[b.name].name][0, 0]) for b in switches if b.name in slopes}
    heads = sorted(slope, key=slope.__getitem__)[-TRIED:]
    if not heads:
        return None
    places = {block.name: k for k, block in enumerate(forward)}
    first = min(places[f"{head}.{SWITCH}"] for head in heads)
    after = forward[first:]  # no switch changes an earlier block
    tried = []
    for head in heads:
        values[f"{head}.{SWITCH}"][0, 0] = 0.0
        _compute(after, values)
        values[f"{head}.{SWITCH}"][0, 0] = 1.0
        (probs,) = values["probs"]
        tried.append((float(probs[answer.id]), head, int(probs.argmax())))
    without, head, then = min(tried)
    return Told(answer, fact, head, without, then)


@np.errstate(all="ignore")
def _compute(blocks: Sequence[Block], values: dict[str, np.ndarray]) -> None:
    """Compute blocks in their order."""
    for block in blocks:
        if block.op:
            values[block.name] = evaluate(block, block.whole, values)


def _says(model: Model, guess: Guess, word: str) -> bool:
    """Whether a guess begins a word, and is likely."""
    begins = model.vocabulary.decode([guess.id]).strip()
    return guess.probability >= KNOWN and begins != "" and word.startswith(begins)


def _facts(model: Model, ids: Sequence[int]) -> list[tuple[str, list[int], str]]:
    """The facts that a model can read, without the prompt itself: text, ids, next word."""
    if tokenizing.refusal(model.vocabulary):
        return []
    found = []
    for text, word in FACTS:
        with suppress(InputError):  # a list of words may lack one
            given = model.vocabulary.encode(text)
            if given != list(ids) and len(given) <= model.spec.n_ctx:
                found.append((text, given, word))
    return found
