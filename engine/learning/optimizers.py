"""Optimizers: one step of training as cells, as `torch.optim` defines it.

Every trained weight has a gradient and two numbers that persist between steps: its `velocity`, a
decaying sum of past gradients, and its `second` moment, a decaying mean of their squares.
`settings` adds the cells that all weights share, and `updated` the three next values of one block
of weights, both for training and for sheets.

One formula serves three methods, and one cell chooses:

    0  gradient descent    weight − rate × gradient
    1  with momentum       weight − rate × velocity (Polyak 1964; `torch.optim.SGD`)
    2  Adam                weight − rate × mean gradient / its root mean square (Kingma & Ba 2015)

Weight decay is PyTorch's: methods 0 and 1 add it to the gradient, and Adam subtracts it from the
weight itself (AdamW, Loshchilov & Hutter 2019).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cellformer.engine.cells.block import Block
from cellformer.engine.cells.expression import expression
from cellformer.engine.cells.functions import IF, MAX, POWER, SQRT, SUM, SUMPRODUCT
from cellformer.engine.cells.graph import Graph
from cellformer.engine.cells.op import X, op

DESCENT, MOMENTUM, ADAM = range(3)


# --- what all weights share: one cell each ----------------------------------------------------


@op(beta1="0,0", method="0,0")
def kept(beta1: X, method: X) -> X:
    """The share of the velocity that a step keeps: 0 without momentum."""
    return beta1 * IF(expression(0) < method, 1, 0)


@op(method="0,0")
def adapts(method: X) -> X:
    """1 for Adam, which divides each gradient by its usual size; else 0."""
    return IF(expression(1) < method, 1, 0)


@op(beta="0,0", step="0,0")
def missing(beta: X, step: X) -> X:
    """beta^step: the part of a running mean that still comes from its start at 0."""
    return POWER(beta, step)


@op(rate="0,0", beta1="0,0", missing="0,0", adapts="0,0")
def pace(rate: X, beta1: X, missing: X, adapts: X) -> X:
    """The factor of the velocity: the learning rate; for Adam, corrected to give a mean of
    gradients."""
    return rate * (1 - beta1 * adapts) / (1 - missing * adapts)


@op(missing="0,0", adapts="0,0")
def spread(missing: X, adapts: X) -> X:
    """The factor that corrects the root of the second moment, which began with 0; for other
    methods 0."""
    return adapts / SQRT(1 - missing)


@op(epsilon="0,0", adapts="0,0")
def least(epsilon: X, adapts: X) -> X:
    """A term added to the velocity's divisor: Adam's epsilon; 1 for the other methods."""
    return epsilon * adapts + (1 - adapts)


@op(decay="0,0", adapts="0,0")
def pull(decay: X, adapts: X) -> X:
    """The share of the weight that is added to its gradient (weight decay); 0 for Adam."""
    return decay * (1 - adapts)


@op(rate="0,0", decay="0,0", adapts="0,0")
def stays(rate: X, decay: X, adapts: X) -> X:
    """The factor by which Adam's weight decay multiplies the weight."""
    return 1 - rate * decay * adapts


# --- clipping (Pascanu et al. 2013): a gradient no longer than allowed --------------------------


@op(x="i,:")
def squares(x: X) -> X:
    """The sum of squares of each row of a gradient."""
    return SUMPRODUCT(x, x)


@op(squares=":,0")
def total(squares: X) -> X:
    """The sum of squares over all rows."""
    return SUM(squares)


@op(totals="0,0", most="0,0", many="totals")
def clipping(totals: Sequence[X], most: X) -> X:
    """The factor of all gradients, so that together they are no longer than `most`."""
    total = totals[0]
    for x in totals[1:]:
        total = total + x
    return 1 / MAX((SQRT(total) + 1e-6) / most, 1)


# --- the step of each weight --------------------------------------------------------------------


@op(velocity="i,j", gradient="i,j", kept="0,0", clipping="0,0", weight="i,j", pull="0,0")
def velocity(
    velocity: X, gradient: X, kept: X, clipping: X = None, weight: X = None, pull: X = None
) -> X:
    """Velocity: the kept part of the old velocity, plus the gradient. The weight moves against the
    velocity."""
    found = velocity * kept + (gradient if clipping is None else gradient * clipping)
    return found if weight is None else found + weight * pull


@op(second="i,j", gradient="i,j", beta2="0,0", clipping="0,0")
def second(second: X, gradient: X, beta2: X, clipping: X = None) -> X:
    """The decaying mean of the squares of past gradients."""
    clipped = gradient if clipping is None else gradient * clipping
    return second * beta2 + clipped * clipped * (1 - beta2)


@op(weight="i,j", velocity="i,j", second="i,j", pace="0,0", spread="0,0", least="0,0", stays="0,0")
def weight(weight: X, velocity: X, second: X, pace: X, spread: X, least: X, stays: X = None) -> X:
    """The next weight: a step against its velocity; for Adam, in units of the gradient's usual
    size."""
    left = weight if stays is None else weight * stays
    return left - velocity / (SQRT(second) * spread + least) * pace


@op(weight="i,j", gradient="i,j", rate="0,0")
def descent(weight: X, gradient: X, rate: X) -> X:
    """Plain gradient descent (Robbins & Monro 1951): a step against the gradient, times the
    rate."""
    return weight - rate * gradient


# --- as blocks ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Settings:
    """Cells of a step that all weights share, each [1, 1]."""

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
    """The next values for one block of weights, each of its shape."""

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
    """Add the cells that all weights share: the inputs `method`, `rate`, `beta1` (the momentum),
    `beta2`, `epsilon` and `decay`, and what is computed from them.

    `step` is the number of this step, counted from 1 (default: the input `step`). `clipping` is the
    result of `clip`, if gradients are to be clipped.
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
    """Add the factor of all gradients, [1, 1], that limits their total norm to `most`
    (`torch.nn.utils.clip_grad_norm_`)."""
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

    `speed` and `size` are its velocity and second moment before the step, 0 at first. Gains and
    biases have no weight decay, as usual.
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
