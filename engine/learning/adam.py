"""Adam (Kingma & Ba 2015) as its paper writes it: m, v, their corrections; and a rate that falls.

`optimizers` computes the same in a form that it shares with other methods.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from cellformer.engine.cells.block import Block
from cellformer.engine.cells.functions import MAX, POWER, SQRT
from cellformer.engine.cells.graph import Graph
from cellformer.engine.cells.op import X, op


class Moved(NamedTuple):
    """The next values of one block of weights, and of the running means of its gradients."""

    weight: Block
    m: Block
    v: Block


@op(rate="0,0", step="0,0", num_steps="0,0")
def falling(rate: X, step: X, num_steps: X) -> X:
    """The learning rate of this step: it falls in a straight line, to 0 after the last step."""
    return rate * MAX(0, 1 - (step - 1) / num_steps)


@op(beta="0,0", step="0,0")
def filled(beta: X, step: X) -> X:
    """The part of a running mean that comes from gradients so far; the mean began at 0."""
    return 1 - POWER(beta, step)


@op(m="i,j", gradient="i,j", beta1="0,0")
def mean(m: X, gradient: X, beta1: X) -> X:
    """The running mean of the gradient: how the loss usually changes."""
    return beta1 * m + (1 - beta1) * gradient


@op(v="i,j", gradient="i,j", beta2="0,0")
def square(v: X, gradient: X, beta2: X) -> X:
    """The running mean of the squared gradient: how large the gradient usually is."""
    return beta2 * v + (1 - beta2) * gradient * gradient


@op(weight="i,j", m="i,j", v="i,j", lr_t="0,0", filled_m="0,0", filled_v="0,0", eps="0,0")
def moved(weight: X, m: X, v: X, lr_t: X, filled_m: X, filled_v: X, eps: X) -> X:
    """The next weight, one step downhill: the full rate if gradients agree, less if they do not."""
    return weight - lr_t * (m / filled_m) / (SQRT(v / filled_v) + eps)


class Settings(NamedTuple):
    """The settings of a run of Adam."""

    rate: float
    beta1: float
    beta2: float
    epsilon: float
    num_steps: int  # after which the rate is 0


def add(
    g: Graph, step: Block, gradients: Mapping[str, Block], settings: Settings
) -> dict[str, Moved]:
    """Add the step of every weight of the graph; `step` counts from 1. What is kept of gradients
    begins with 0."""
    rate, beta1, beta2, eps, num_steps = (g.input(k, x) for k, x in settings._asdict().items())
    lr_t = g.block("lr_t", falling, rate, step, num_steps)
    filled_m, filled_v = (
        g.block("filled_m", filled, beta1, step),
        g.block("filled_v", filled, beta2, step),
    )
    found = {}
    for w in [block for block in g if block.kind == "weight"]:
        m, v = (g.input(f"{what}.{w.name}", np.zeros(w.shape), w.axes) for what in "mv")
        m_next = g.block(f"next.m.{w.name}", mean, m, gradients[w.name], beta1)
        v_next = g.block(f"next.v.{w.name}", square, v, gradients[w.name], beta2)
        at = g.block(f"next.{w.name}", moved, w, m_next, v_next, lr_t, filled_m, filled_v, eps)
        found[w.name] = Moved(at, m_next, v_next)
    return found
