"""A bias of attention's scores by distance (Raffel et al. 2020, section 2.1): each head learns one
number for each bucket of distances; near ones have a bucket each, farther ones share."""

import math
from typing import NamedTuple

import numpy as np

from cellformer.engine.cells.access import Mask
from cellformer.engine.cells.block import Block
from cellformer.engine.models import ops
from cellformer.engine.models.forward import Forward


class Buckets(NamedTuple):
    """The buckets of distances."""

    n: int  # buckets, of which half have one distance each
    farthest: int  # from here on all distances are in one
    both_ways: bool  # later tokens have the second half of the buckets; else none is seen

    def of(self, distance: np.ndarray) -> np.ndarray:
        """The bucket of each distance, key less query. It uses float32, as in training, because
        the edges of buckets depend on it."""
        n = self.n // 2 if self.both_ways else self.n
        later = n * (distance > 0) if self.both_ways else 0
        apart = np.abs(distance) if self.both_ways else np.maximum(-distance, 0)
        exact = n // 2
        grown = np.log(np.maximum(apart, 1).astype(np.float32) / np.float32(max(exact, 1)))
        steps = grown / np.float32(math.log(self.farthest / exact)) * np.float32(n - exact)
        shared = np.minimum(exact + steps.astype(np.int64), n - 1)
        return np.asarray(later + np.where(apart < exact, apart, shared))


def biases(g: Forward, n_tokens: int, axis: str, buckets: Buckets, mask: Mask) -> list[Block]:
    """The bias of each head, which all layers share: [n_tokens, n_tokens] each."""
    return of_heads(g, bucket(g, n_tokens, axis, buckets), mask)


def bucket(g: Forward, n_tokens: int, axis: str, buckets: Buckets) -> Block:
    """The bucket of each query's distance from each key: [n_tokens, n_tokens]."""
    place = np.arange(n_tokens)
    found = buckets.of(place[None, :] - place[:, None])  # [n_tokens, n_tokens]
    return g.at("distance").input("bucket", found, (axis, axis), "ids")


def of_heads(g: Forward, bucket: Block, mask: Mask) -> list[Block]:
    """The bias of each head, by the numbers of one layer, or of the whole stack."""
    g = g.at("distance")
    W = g.weight("W", "n_buckets", "n_heads")  # [n_buckets, n_heads]
    return [
        g.at(f"h{n}").block("bias", ops.of_bucket, bucket, W, nth=n, mask=mask)
        for n in range(g.spec.n_heads)
    ]
