"""Attention with linear biases, ALiBi (Press et al. 2022, section 3): scores decrease linearly with
the distance between tokens, with a slope for each head; there are no other position encodings."""

import numpy as np

from cellformer.engine.cells.block import Block
from cellformer.engine.models import ops
from cellformer.engine.models.forward import Forward


def slopes(n_heads: int) -> list[float]:
    """The slope of each head: 2^(-8/n), 2^(-16/n), ... for n heads.

    If n is not a power of two: the slopes of the power below it, and every other slope of the one
    above.
    """
    below = 1 << (n_heads.bit_length() - 1)
    return (geometric(below) + geometric(2 * below)[::2])[:n_heads]


def geometric(n: int) -> list[float]:
    """The slopes of n heads, n a power of two."""
    return [2 ** (-8 * k / n) for k in range(1, n + 1)]


def places(g: Forward, n_tokens: int) -> Block:
    """Position times slope, the term that scores differ by: [n_tokens, n_heads]."""
    g = g.at("alibi")
    position = g.input("positions", np.arange(n_tokens).reshape(-1, 1), ("token", ""))
    slope = g.input("slope", [slopes(g.spec.n_heads)], ("", "head"))  # [1, n_heads]
    return g.block("place", ops.place, position, slope)
