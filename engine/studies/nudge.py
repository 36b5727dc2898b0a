"""Nudge: a model's predictions for a sentence after one step of training on it.

The step is gradient descent (Robbins & Monro 1951): every weight minus a rate times its gradient of
the sentence's loss. A part (a head, an MLP, a norm or an embedding) can be left unchanged; of a
model with an adapter, all but the adapter's matrices are, as built (Hu et al. 2021, section 4.1).
The forward pass is then computed again with the new weights, beside the first: its blocks are
called `nudged.<name>`, and `nudged.loss` is the loss after the step.
"""

import numpy as np

from cellformer.engine.cells.block import Block
from cellformer.engine.cells.errors import InputError
from cellformer.engine.cells.evaluator import Evaluator
from cellformer.engine.cells.gradient import backward
from cellformer.engine.cells.graph import Graph
from cellformer.engine.cells.name import NUDGED
from cellformer.engine.learning import objective, optimizers
from cellformer.engine.models import adapter, choosing, ops
from cellformer.engine.models.encoding import TOKENS
from cellformer.engine.studies.addition import LOSS, Addition, Option

NUDGE = "nudge"
RATE, LOSS_AFTER = f"{NUDGE}.rate", f"{NUDGED}.{objective.LOSS}"
LEARNS = "learns"  # of a part: 1, it takes the step; 0, it stays
RATES = tuple(k * 10.0**n for n in range(1, -5, -1) for k in (5, 2, 1))
KEPT = 0.5  # of what the gradients promise
# the blocks of the loss, which stand beside the step, or else beside rounded weights
COSTS = (objective.LOSS, LOSS_AFTER, f"{objective.LOSS}.targets", f"{objective.LOSS}.share")


def add(g: Graph, n_prompt: int) -> None:
    """Add the loss of a graph's first `n_prompt` tokens, its gradients, and the second pass.

    The rate is the largest of `RATES` for which the loss falls by at least half of what the
    gradients promise (Armijo 1966). Raises InputError for a sentence that has nothing to predict,
    or whose next words are unknown.
    """
    if g["logits"].axes[1] != "vocab":
        raise InputError(
            "the model predicts words of another vocabulary than the prompt's, so the prompt does "
            "not show the right next words; leave out --nudge"
        )
    if n_prompt < 2:
        raise InputError(
            "--nudge needs at least two words in the prompt, because the model learns to predict "
            "the next word"
        )
    loss = objective.loss(g, *objective.next_words(g, n_prompt))
    weights = [block for block in g if block.kind == "weight"]
    thin = [w for w in weights if w.leaf in adapter.MATRICES]
    learners = {w.name for w in thin or weights}
    gradients = backward(g, loss, tokens=TOKENS)
    g.input(RATE, 0.0)
    taken = {
        w.name: _step(g, w, gradients[w.name], w.name in learners)
        for w in weights
        if w.name in gradients
    }
    nudged = g.at(NUDGED)
    nudged.copy_with(taken, g.before(loss))
    choosing.likeliest(nudged.at("choice"), g[f"{NUDGED}.logits"])
    steepness = sum(
        float((g.values[gradients[name].name] ** 2).sum()) for name in taken if name in learners
    )
    g.fill(RATE, np.array([[_rate(g, steepness)]]))


def _rate(g: Graph, steepness: float) -> float:
    """The initial rate; `steepness` is the fall of the loss per unit of rate that gradients
    promise."""
    live = Evaluator(g)
    for rate in RATES:
        live.set(RATE, 0, 0, rate)
        fall = float(g.values[objective.LOSS][0, 0] - live[LOSS_AFTER][0, 0])
        if fall >= KEPT * rate * steepness:
            return rate
    return RATES[-1]


def _step(g: Graph, weight: Block, gradient: Block, learns: bool) -> Block:
    """Add a weight after the step, of the weight's shape; `learns`: whether its part takes it as
    built."""
    at = g.at(f"{NUDGE}.{part(weight)}")
    rate = g.blocks.get(f"{at.prefix}rate")
    if rate is None:  # it is the first weight of its part
        rate = at.block("rate", ops.in_effect, g[RATE], at.input(LEARNS, float(learns)))  # [1, 1]
    return g.at(NUDGED).block(weight.name, optimizers.descent, weight, gradient, rate)


def part(weight: Block) -> str:
    """The part that a weight belongs to: a head, an MLP, a norm; or the weight itself."""
    return weight.path or weight.name


def gradients(g: Graph) -> dict[str, list[Block]]:
    """The gradients of all weights that take the step, by part."""
    found: dict[str, list[Block]] = {}
    for block in g:
        if block.op is optimizers.descent:
            (_, _, weight), (_, _, gradient), _ = block.operands
            found.setdefault(part(weight), []).append(gradient)
    return found


ADDITION = Addition(
    "nudge",
    (
        Option(
            "nudge",
            bool,
            "Include one step of gradient descent on the prompt, with the values before and after.",
        ),
    ),
    instead="‘cellformer gradient’ works with any model",
    apart=("gradient",),
    one_stack=True,
    ends=lambda graph, passage: add(graph, passage.n_prompt),
    gradient_of=LOSS,
    sheet="Nudge",
    part=NUDGE,
    holds=lambda block, graph: block.name in COSTS and RATE in graph.blocks,
    look=(
        "On the sheet Nudge, every weight takes one training step to reduce the loss of the "
        "sentence. Watch the model learn the sentence.",
        "The sheet Gradient shows how every weight changes the loss. The sheet Backward shows "
        "how every other cell changes the loss.",
    ),
    facts=lambda _: {"gradient_of": LOSS},
    read=lambda facts, *_: True if facts.get("gradient_of") == LOSS else None,
)
