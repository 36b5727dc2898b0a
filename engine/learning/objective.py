"""Objectives: single cells of a model's graph whose gradient can be taken.

`logit` is a word's logit at one token, or its lead over a rival; `loss` is the cross-entropy of the
words that really follow, in nats.
"""

from collections.abc import Sequence

import numpy as np

from cellformer.engine.cells.block import Block
from cellformer.engine.cells.errors import InputError
from cellformer.engine.cells.expression import Expression, expression
from cellformer.engine.cells.functions import AND, IF, MAX
from cellformer.engine.cells.graph import Graph
from cellformer.engine.models import ops

NAME, LOSS = "objective", "loss"


def logit(g: Graph, position: int, target: int, rival: int | None = None) -> Block:
    """Add `objective`, [1, 1]: the logit of a word at a token, minus a rival's if there is one.

    The cells `position`, `target` and `rival` hold the token and the words. Raises InputError for a
    graph without logits, and for a token or a word out of range.
    """
    logits = _logits(g)
    n_tokens, n_words = logits.shape
    for what, n, known in (("token", position, n_tokens), ("word", target, n_words)):
        _check(what, n, known)
    row = logits
    if n_tokens > 1:
        row = g.block(f"{NAME}.row", ops.embed, _ids(g, "position", position), logits)
    words = [_ids(g, "target", target)]
    if rival is not None:
        _check("word", rival, n_words)
        words.append(_ids(g, "rival", rival))
    names = [NAME] if rival is None else [f"{NAME}.{word.name}" for word in words]
    read = [g.block(name, ops.column, ids, row) for name, ids in zip(names, words, strict=True)]
    return read[0] if rival is None else g.block(NAME, ops.less, *read)


def loss(
    g: Graph, targets: Sequence[int] | None = None, shares: Sequence[float] | None = None
) -> Block:
    """Add `loss`, [1, 1]: the mean cross-entropy of the words that follow each token, at
    temperature 1.

    `targets` are the ids of these words (default: the prompt's own); `shares` are the weights of
    the tokens in the mean (default: equal, and 0 for a prompt's last token, which has no next
    word). Both are inputs, `loss.targets` and `loss.share` [n_tokens, 1], which differ between
    sentences of a batch.

    Raises InputError for a graph without logits, too few targets, or unknown words.
    """
    logits = _logits(g)
    n, n_words = logits.shape
    if targets is None:
        targets, shares = next_words(g)
    shares = [1 / n] * n if shares is None else shares
    if not (len(targets) == len(shares) == n):
        raise InputError(
            f"there are {n} tokens, but {len(targets)} targets and {len(shares)} shares; give one "
            "of each for every token"
        )
    for word in targets:
        _check("word", word, n_words)
    at, axes = g.at(LOSS), (logits.axes[0], "")
    wanted = at.input("targets", np.reshape(targets, (-1, 1)), axes, "ids")  # [n_tokens, 1]
    share = at.input("share", np.reshape(shares, (-1, 1)), axes)  # [n_tokens, 1]
    numbers = at.input("numbers", np.arange(n_words), ("", logits.axes[1]))  # [1, n_words]
    chosen = at.block("chosen", ops.is_number, wanted, numbers)  # [n_tokens, n_words]
    score = at.block("score", ops.along, logits, chosen)  # [n_tokens, 1]
    top = at.block("row_max", ops.row_max, logits)  # [n_tokens, 1]
    total = at.block("row_sum", ops.row_sum, at.block("exp", ops.exp, logits, top))  # [n_tokens, 1]
    each = at.block("of_token", ops.surprise, score, top, total)  # [n_tokens, 1]
    return g.block(LOSS, ops.total, at.block("counted", ops.times_rows, each, share))


def next_words(g: Graph, n_prompt: int | None = None) -> tuple[list[int], list[float]]:
    """The word after each token of the prompt, and its weight; the prompt is all tokens, or the
    first `n_prompt`. Raises InputError for a prompt of one token, and if the model predicts
    other words than those in its input."""
    ids, logits = g.inputs["tokens"][:, 0].astype(int).tolist(), g["logits"]
    n_prompt = n_prompt or len(ids)
    if n_prompt < 2 or logits.shape[0] != len(ids) or logits.axes[1] != "vocab":
        raise InputError(
            "the prompt does not show which words should follow its tokens; give the target words, "
            "or a prompt of two or more tokens"
        )
    n, n_others = n_prompt - 1, len(ids) - n_prompt + 1
    return [*ids[1:n_prompt], *[0] * n_others], [1 / n] * n + [0.0] * n_others


def follow(g: Graph) -> None:
    """Make the targets and shares of a loss follow the typed sentence of `n_prompt` tokens: each
    token's target is the next one, and all but the last have the same share. A single token has no
    loss, nor has a sentence with an unknown word."""
    tokens = g["tokens"]
    n_prompt, answered = (g[name][0, 0] for name in ("n_prompt", "prompt.answered"))

    def target(t: int, _: int) -> Expression:
        here = expression(t + 1) < n_prompt
        return IF(here, tokens[t + 1, 0], 0) if t + 1 < tokens.shape[0] else expression(0)

    g.follow(f"{LOSS}.targets", target)
    g.follow(
        f"{LOSS}.share",
        lambda t, _: IF(
            AND(answered == 1, expression(t + 1) < n_prompt), 1 / MAX(1, n_prompt - 1), 0
        ),
    )


def _logits(g: Graph) -> Block:
    if "logits" not in g.blocks:
        raise InputError(
            "the model computes no logits, so no word has a gradient; choose a model that ranks "
            "words"
        )
    return g["logits"]


def _ids(g: Graph, name: str, value: int) -> Block:
    """The cell that holds an id: a new one, or the existing one."""
    if name in g.blocks:
        g.fill(name, np.array([[float(value)]]))
        return g[name]
    return g.input(name, value, kind="ids")


def _check(what: str, n: int, known: int) -> None:
    if not 0 <= n < known:
        raise InputError(f"there is no {what} {n}; choose a number from 0 to {known - 1}")
