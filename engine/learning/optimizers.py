"""Optimizers: one step of training as cells, as `torch.optim` defines it.

A weight that learns has a gradient and remembers two numbers between steps: its `velocity`, the sum
of past gradients, of which each step keeps a share, and its `second` moment, the mean square of
past gradients. `settings` adds what all weights share, and `updated` the three next values of one
block of weights, for values to run through and for sheets to show alike.

One formula serves three methods, and one cell chooses:

    0  gradient descent    weight − rate × gradient
    1  with momentum       weight − rate × velocity (Polyak 1964; `torch.optim.SGD`)
    2  Adam                weight − rate × mean gradient / its root mean square (Kingma & Ba 2015)

Weight decay is PyTorch's too: methods 0 and 1 add it to the gradient, and Adam takes it from the
weight itself (AdamW, Loshchilov & Hutter 2019).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from engine.cells.block import Block
from engine.cells.expression import expression
from engine.cells.functions import IF, MAX, POWER, SQRT, SUM, SUMPRODUCT
from engine.cells.graph import Graph
from engine.cells.op import X, op

DESCENT, MOMENTUM, ADAM = range(3)


# --- what all weights share: one cell each ----------------------------------------------------


@op(beta1="0,0", method="0,0")
def kept(beta1: X, method: X) -> X:
    """How much of the velocity a step keeps: nothing without momentum."""
    return beta1 * IF(expression(0) < method, 1, 0)


@op(method="0,0")
def adapts(method: X) -> X:
    """1 for Adam, which divides each gradient by its usual size; else 0."""
    return IF(expression(1) < method, 1, 0)


@op(beta="0,0", step="0,0")
def missing(beta: X, step: X) -> X:
    """The share that a mean over past steps still lacks, since it began with 0: beta^step."""
    return POWER(beta, step)


@op(rate="0,0", beta1="0,0", missing="0,0", adapts="0,0")
def pace(rate: X, beta1: X, missing: X, adapts: X) -> X:
    """What the velocity is multiplied by: the rate; for Adam as makes it a mean of gradients."""
    return rate * (1 - beta1 * adapts) / (1 - missing * adapts)


@op(missing="0,0", adapts="0,0")
def spread(missing: X, adapts: X) -> X:
    """What the root of the second moment is multiplied by, as it began with 0; 0 but for Adam."""
    return adapts / SQRT(1 - missing)


@op(epsilon="0,0", adapts="0,0")
def least(epsilon: X, adapts: X) -> X:
    """What stands under the velocity besides: 1 but for Adam, where it is next to nothing."""
    return epsilon * adapts + (1 - adapts)


@op(decay="0,0", adapts="0,0")
def pull(decay: X, adapts: X) -> X:
    """How much of the weight is added to its gradient, so that it shrinks; none for Adam."""
    return decay * (1 - adapts)


@op(rate="0,0", decay="0,0", adapts="0,0")
def stays(rate: X, decay: X, adapts: X) -> X:
    """What Adam leaves of the weight itself."""
    return 1 - rate * decay * adapts


# --- clipping (Pascanu et al. 2013): a gradient no longer than allowed --------------------------


@op(x="i,:")
def squares(x: X) -> X:
    """Of each row of a gradient."""
    return SUMPRODUCT(x, x)


@op(squares=":,0")
def total(squares: X) -> X:
    """Of all rows."""
    return SUM(squares)


@op(totals="0,0", most="0,0", many="totals")
def clipping(totals: Sequence[X], most: X) -> X:
    """What every gradient is multiplied by, so that together they are no longer than `most`."""
    total = totals[0]
    for x in totals[1:]:
        total = total + x
    return 1 / MAX((SQRT(total) + 1e-6) / most, 1)


# --- the step of each weight --------------------------------------------------------------------


@op(velocity="i,j", gradient="i,j", kept="0,0", clipping="0,0", weight="i,j", pull="0,0")
def velocity(
    velocity: X, gradient: X, kept: X, clipping: X = None, weight: X = None, pull: X = None
) -> X:
    """The share of it that is kept, and the gradient: where the weight is going."""
    found = velocity * kept + (gradient if clipping is None else gradient * clipping)
    return found if weight is None else found + weight * pull


@op(second="i,j", gradient="i,j", beta2="0,0", clipping="0,0")
def second(second: X, gradient: X, beta2: X, clipping: X = None) -> X:
    """The mean square of past gradients, in which each counts for less than the next."""
    clipped = gradient if clipping is None else gradient * clipping
    return second * beta2 + clipped * clipped * (1 - beta2)


@op(weight="i,j", velocity="i,j", second="i,j", pace="0,0", spread="0,0", least="0,0", stays="0,0")
def weight(weight: X, velocity: X, second: X, pace: X, spread: X, least: X, stays: X = None) -> X:
    """The next weight: against its velocity, for Adam in units of the gradient's usual size."""
    left = weight if stays is None else weight * stays
    return left - velocity / (SQRT(second) * spread + least) * pace


@op(weight="i,j", gradient="i,j", rate="0,0")
def descent(weight: X, gradient: X, rate: X) -> X:
    """Gradient descent alone (Robbins & Monro 1951): down the slope, as far as the rate says."""
    return weight - rate * gradient


# --- as blocks ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Settings:
    """What all weights share in a step: cells, each [1, 1]."""

    beta2: Block
    kept: Block
    pace: Block
    spread: Block
    least: Block
    pull: Block
    stays: Block
    clipping: Block | None = None  # None: gradients as they are


@dataclass(frozen=True)
class Updated:
    """What follows from a step of one block of weights, each of its shape."""

    weight: Block
    velocity: Block
    second: Block


def settings(
    g: Graph,
    method: float = ADAM,
    rate: float = 1e-3,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    decay: float = 0.0,
    step: Block | None = None,
    clipping: Block | None = None,
) -> Settings:
    """Add what all weights share: the reader's inputs `method`, `rate`, `beta1` (the momentum),
    `beta2`, `epsilon` and `decay`, and what follows from them.

    `step` says which step this is, counted from 1; without one it is the input `step`. `clipping`
    is what `clip` gives, for gradients that are to be clipped.
    """
    chosen, speed = g.input("method", method), g.input("rate", rate)
    first, other = g.input("beta1", beta1), g.input("beta2", beta2)
    tiny, shrink = g.input("epsilon", epsilon), g.input("decay", decay)
    step = step or g.input("step", 1)
    adam = g.block("adapts", adapts, chosen)
    missing1, missing2 = (
        g.block(f"missing{n}", missing, b, step) for n, b in ((1, first), (2, other))
    )
    return Settings(
        beta2=other,
        kept=g.block("kept", kept, first, chosen),
        pace=g.block("pace", pace, speed, first, missing1, adam),
        spread=g.block("spread", spread, missing2, adam),
        least=g.block("least", least, tiny, adam),
        pull=g.block("pull", pull, shrink, adam),
        stays=g.block("stays", stays, speed, shrink, adam),
        clipping=clipping,
    )


def clip(g: Graph, gradients: Iterable[Block], most: Block) -> Block:
    """What all gradients are multiplied by, [1, 1], so that together, as one vector, they are no
    longer than `most` (`torch.nn.utils.clip_grad_norm_`)."""
    found = []
    for x in gradients:
        rows = g.block(f"squares.{x.name}", squares, x)
        found.append(g.block(f"total.{x.name}", total, rows) if x.shape[0] > 1 else rows)
    return g.block("clipping", clipping, found, most)


def updated(
    g: Graph,
    w: Block,
    gradient: Block,
    speed: Block,
    size: Block,
    shared: Settings,
    decays: bool = True,
) -> Updated:
    """Add one step of a block of weights: `velocity.<name>`, `second.<name>`, `next.<name>`.

    `speed` and `size` are its velocity and second moment before the step, which begin with 0. As
    recipes have it, gains and biases do not decay.
    """
    s = shared
    pulled = (w, s.pull) if decays else ()
    moved = g.block(f"velocity.{w.name}", velocity, speed, gradient, s.kept, s.clipping, *pulled)
    sized = g.block(f"second.{w.name}", second, size, gradient, s.beta2, s.clipping)
    after = g.block(
        f"next.{w.name}",
        weight,
        w,
        moved,
        sized,
        s.pace,
        s.spread,
        s.least,
        s.stays if decays else None,
    )
    return Updated(after, moved, sized)
