"""GRPO: the loss of a model that learns from rewards (Shao et al. 2024, "DeepSeekMath", 4.1).

A group of texts is drawn from the model, and each gets a reward. `advantages` compares the rewards.
`loss` adds every part of the loss as a block: ratio, clipped ratio, gain, KL divergence. The texts
stand one after another along one token axis.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from cellformer.engine.cells.block import Block
from cellformer.engine.cells.functions import EXP, IF, MAX, MIN
from cellformer.engine.cells.gradient import backward
from cellformer.engine.cells.graph import Graph
from cellformer.engine.cells.op import X, op
from cellformer.engine.learning import objective
from cellformer.engine.models import ops

BETA, CLIP = 0.02, 0.2  # weight of the KL divergence; how far a ratio counts from 1
LEAST = 1e-4  # is added to the deviation of the rewards, which may be 0
REFERENCE = "reference"  # the prefix of the pass with the weights that it began with


@op(old="i,0", surprise="i,0")
def ratio(old: X, surprise: X) -> X:
    """The probability of a word, over the probability with which it was drawn."""
    return EXP(old - surprise)


@op(ratio="i,0", clip="0,0")
def clipped(ratio: X, clip: X) -> X:
    """The ratio, not further from 1 than the clip range."""
    return MIN(MAX(ratio, 1 - clip), 1 + clip)


@op(ratio="i,0", clipped="i,0", advantage="i,0")
def gain(ratio: X, clipped: X, advantage: X) -> X:
    """The smaller product: advantage times ratio, or advantage times clipped ratio."""
    free, limited = ratio * advantage, clipped * advantage
    return IF(limited < free, limited, free)


@op(surprise="i,0", reference="i,0")
def divergence(surprise: X, reference: X) -> X:
    """An estimate of the KL divergence from the reference. It is never below 0."""
    return EXP(surprise - reference) - (surprise - reference) - 1


@op(gain="i,0", divergence="i,0", beta="0,0", share="i,0")
def counted(gain: X, divergence: X, beta: X, share: X) -> X:
    """The part of the loss that comes from a word."""
    return share * (beta * divergence - gain)


def loss(g: Graph, texts: np.ndarray, lengths: Sequence[int], beta: float, clip: float) -> Block:
    """Add `policy.loss`, [1, 1], of texts [n_texts, words] after a forward pass over them.

    Each text counts up to its length, and all texts count alike. The input `advantage`,
    [n_tokens, 1], is 0 at first. `reference.…` reads the same texts with the
    weights that the graph has now.
    """
    objective.loss(g, texts.ravel().tolist(), shares(texts.shape, lengths).ravel().tolist())
    surprise, before = g["loss.of_token"], list(g)
    weights = [block for block in before if block.kind == "weight"]
    base = {w.name: g.input(f"{REFERENCE}.{w.name}", g.inputs[w.name], w.axes) for w in weights}
    g.at(REFERENCE).copy_with(base, before)
    advantage = g.input("advantage", np.zeros(surprise.shape), surprise.axes)
    old = g.block("policy.old", ops.same, surprise)
    own = g.block("policy.ratio", ratio, old, surprise)
    limited = g.block("policy.clipped", clipped, own, g.input("clip", clip))
    better = g.block("policy.gain", gain, own, limited, advantage)
    apart = g.block("policy.divergence", divergence, surprise, g[f"{REFERENCE}.loss.of_token"])
    share = g["loss.share"]
    each = g.block("policy.counted", counted, better, apart, g.input("beta", beta), share)
    return g.block("policy.loss", ops.total, each)


def gradients(g: Graph, of: Block) -> Mapping[str, Block]:
    """Add the gradient of the loss. The probabilities with which texts were drawn are constants."""
    return backward(g, of, held=[g["policy.old"]])


def shares(shape: tuple[int, ...], lengths: Sequence[int]) -> np.ndarray:
    """The share of each word in the loss: [n_texts, words]."""
    n = np.reshape(lengths, (-1, 1))
    return np.asarray((np.arange(shape[1]) < n) / n / shape[0])


def advantages(rewards: np.ndarray) -> np.ndarray:
    """Each reward minus the mean of its group, over their standard deviation."""
    return np.asarray((rewards - rewards.mean()) / (rewards.std() + LEAST))
