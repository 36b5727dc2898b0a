"""GRPO: the loss of a model that learns from rewards (Shao et al. 2024, "DeepSeekMath", 4.1).

A group of texts is drawn from the model, and each gets a reward. `advantages` compares the rewards.
`loss` adds every part of the loss as a block: ratio, clipped ratio, surrogate, KL divergence. The
texts stand one after another along one token axis. In the first update of a group each ratio is 1;
later ones compare with the probabilities of the first.
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
from cellformer.engine.models.encoding import TOKENS

BETA, CLIP = 0.02, 0.2  # weight of the KL divergence; how far a ratio counts from 1
LEAST = 1e-4  # is added to the deviation of the rewards, which may be 0
MOST = 50  # an exponent above it counts as this one, so that no number overflows


@op(surprise="i,0", kept="i,0", fresh="0,0")
def old(surprise: X, kept: X, fresh: X) -> X:
    """The surprise with which a word was drawn: that of now for a new group, else the kept one."""
    return IF(fresh == 1, surprise, kept)


@op(old="i,0", surprise="i,0")
def ratio(old: X, surprise: X) -> X:
    """The probability of a word, over the probability with which it was drawn."""
    return EXP(MIN(old - surprise, MOST))


@op(ratio="i,0", clip="0,0")
def clipped(ratio: X, clip: X) -> X:
    """The ratio, not further from 1 than the clip range."""
    return MIN(MAX(ratio, 1 - clip), 1 + clip)


@op(ratio="i,0", clipped="i,0", advantage="i,0")
def surrogate(ratio: X, clipped: X, advantage: X) -> X:
    """The smaller product: advantage times ratio, or advantage times clipped ratio."""
    free, limited = ratio * advantage, clipped * advantage
    return IF(limited < free, limited, free)


@op(surprise="i,0", reference="i,0")
def divergence(surprise: X, reference: X) -> X:
    """An estimate of the KL divergence from the reference. It is never below 0."""
    return EXP(MIN(surprise - reference, MOST)) - (surprise - reference) - 1


@op(surrogate="i,0", divergence="i,0", beta="0,0", share="i,0")
def counted(surrogate: X, divergence: X, beta: X, share: X) -> X:
    """The part of the loss that comes from a word."""
    return share * (beta * divergence - surrogate)


def loss(g: Graph, texts: np.ndarray, lengths: Sequence[int]) -> Block:
    """Add `policy.loss`, [1, 1], of texts [n_texts, words] after a forward pass over them.

    Each text counts up to its length, and all texts count alike. Inputs, each [n_tokens, 1], are
    `advantage`, and of `policy` the surprise with the `reference` weights, and the one that was
    `kept` from an update before, unless the group is `fresh`.
    """
    objective.loss(g, texts.ravel().tolist(), shares(texts.shape, lengths).ravel().tolist())
    surprise, at = g["loss.of_token"], g.at("policy")
    zeros = np.zeros(surprise.shape)
    advantage = g.input("advantage", zeros, surprise.axes)
    kept, reference = (at.input(name, zeros, surprise.axes) for name in ("kept", "reference"))
    before = at.block("old", old, surprise, kept, at.input("fresh", 1.0))
    own = at.block("ratio", ratio, before, surprise)
    limited = at.block("clipped", clipped, own, g.input("clip", CLIP))
    better = at.block("surrogate", surrogate, own, limited, advantage)
    apart = at.block("divergence", divergence, surprise, reference)
    each = at.block("counted", counted, better, apart, g.input("beta", BETA), g["loss.share"])
    return at.block("loss", ops.total, each)


def gradients(g: Graph, of: Block) -> Mapping[str, Block]:
    """Add the gradient of the loss. The probabilities with which texts were drawn are constants."""
    return backward(g, of, held=[g["policy.old"]], tokens=TOKENS)


def shares(shape: tuple[int, ...], lengths: Sequence[int]) -> np.ndarray:
    """The share of each word in the loss: [n_texts, words]."""
    n = np.reshape(lengths, (-1, 1))
    return np.asarray((np.arange(shape[1]) < n) / n / shape[0])


def advantages(rewards: np.ndarray) -> np.ndarray:
    """Each reward minus the mean of its group, over their standard deviation."""
    return np.asarray((rewards - rewards.mean()) / (rewards.std() + LEAST))
