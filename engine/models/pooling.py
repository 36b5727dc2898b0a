"""Pooling: from the vectors of a sentence's tokens to one vector for the sentence.

(Reimers & Gurevych 2019, "Sentence-BERT", section 3.) Empty positions do not count. A linear map
and a division by the vector's length may follow.
"""

from cellformer.engine.cells.block import Block
from cellformer.engine.models import ops
from cellformer.engine.models.forward import Forward


def pool(g: Forward, x: Block, present: Block) -> Block:
    """Add the sentence's vector, [1, d_model] or [1, d_sentence], as the block `vector`.

    `x` [n_tokens, d_model] is the final stream, `present` [n_tokens, 1] is 1 or 0. The block
    `length` [1, 1] is the vector's length.
    """
    spec, at = g.spec, g.at("pooling")
    v = of_all_tokens(at, x, present)  # [1, d_model]
    if spec.d_sentence:
        dense = g.at("dense")
        if spec.d_between:
            W = dense.weight("W_between", "d_model", "d_between")
            v = dense.block("between", ops.linear, v, W)  # [1, d_between]
        W = dense.weight("W", v.axes[1], "d_sentence")
        b = dense.weight("b", "d_sentence") if spec.sentence_bias else None
        v = dense.block("out", ops.linear, v, W, b)  # [1, d_sentence]
        v = dense.block("post", ops.tanh, v) if spec.sentence_tanh else v
    if spec.unit_length:
        v = at.block("unit", ops.divide_rows, v, at.block("length", ops.length, v))
    v = g.block("vector", ops.add, [v])
    g.block("length", ops.length, v)  # [1, 1]
    return v


def of_all_tokens(at: Forward, x: Block, present: Block) -> Block:
    """The mean, maximum or other pooling of the tokens' vectors: [1, d_model]."""
    pooling = at.spec.pooling
    if pooling == "first":
        return at.block("first", ops.embed, at.input("which", 0, kind="ids"), x)
    if pooling == "last":
        return at.block("last", ops.embed, at.block("which", ops.last_place, present), x)
    if pooling == "max":
        seen = at.block("present", ops.present_alone, x, present)  # [n_tokens, d_model]
        return at.block("max", ops.largest, seen)
    op = ops.part_of_all if pooling == "mean" else ops.part_of_root
    return at.block("mean", ops.pooled, x, at.block("part", op, present, present))
