"""Attention with linear biases, ALiBi (Press et al. 2022, section 3): a score falls with the
distance between its tokens, in each head by a slope of its own; nothing else knows of positions."""

import numpy as np

from engine.cells.block import Block
from engine.models import ops
from engine.models.forward import Forward


def slopes(n_heads: int) -> list[float]:
    """How far a score falls with each token, by head: 2^(-8/n), 2^(-16/n), ... for n heads.

    Where n is no power of two, those of the power below it, and every other one of that above.
    """
    below = 1 << (n_heads.bit_length() - 1)
    return (geometric(below) + geometric(2 * below)[::2])[:n_heads]


def geometric(n: int) -> list[float]:
    """The slopes of n heads, n a power of two."""
    return [2 ** (-8 * k / n) for k in range(1, n + 1)]


def places(g: Forward, n_tokens: int) -> Block:
    """Where the tokens stand, in units of score: position times slope, [n_tokens, n_heads]."""
    g = g.at("alibi")
    position = g.input("positions", np.arange(n_tokens).reshape(-1, 1), ("token", ""))
    slope = g.input("slope", [slopes(g.spec.n_heads)], ("", "head"))  # [1, n_heads]
    return g.block("place", ops.place, position, slope)
