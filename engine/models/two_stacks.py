"""Common parts of encoder-decoders (Vaswani et al. 2017, figure 1): the source sentence, the
encoder's part of a graph, and attention to one sentence or from one to another.

An encoder reads the source sentence, every token with all others; a decoder writes the answer, and
each of its layers also attends to what the encoder made of the source.
"""

from collections.abc import Callable, Sequence

import numpy as np

from cellformer.engine.cells.access import EVERYTHING, Mask
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.name import ENCODER
from cellformer.engine.models import parts
from cellformer.engine.models.forward import SOURCE, Forward
from cellformer.engine.models.spec import TwoStackSpec


def of_encoder(g: Forward) -> Forward:
    """The graph with the encoder's spec, and `encoder.` before names."""
    found, spec = g.at(ENCODER), g.spec
    assert isinstance(spec, TwoStackSpec)
    found.spec = found.sizes = spec.encoder
    return found


def source(g: Forward, ids: Sequence[int]) -> tuple[Block, Block]:
    """The source sentence's tokens, and the marks of present ones: each [n_source, 1]."""
    tokens = g.input("tokens", np.reshape(ids, (-1, 1)), (SOURCE, ""), "ids")
    return tokens, g.input("attention_mask", np.ones((len(ids), 1)), (SOURCE, ""))


def attention(
    b: Forward,
    part: str,
    x: Block,
    of: Block,
    mask: Mask,
    present: Block | None,
    biases: Sequence[Block] = (),
) -> Block:
    """The sum of the outputs of all heads, [n_tokens, d_model]. Queries come from x, keys and
    values from `of`: x itself or, in cross attention, the source [n_source, d_model]."""
    attn, head_axes, bias = b.at(part), ("d_model", "d_head"), b.spec.bias
    of_all = parts.of_all_heads(attn)
    heads = []
    for n in range(b.spec.n_heads):
        h = attn.at(f"h{n}")
        q = parts.linear(h, "q", x, "Q", head_axes, bias)  # [n_tokens, d_head]
        k = parts.linear(h, "k", of, "K", head_axes, bias)  # [n_keys, d_head]
        v = parts.linear(h, "v", of, "V", head_axes, bias)  # [n_keys, d_head]
        by = biases[n] if biases else None
        heads.append(parts.attend(h, q, k, v, of_all, mask, present=present, bias=by))
    return parts.sum_of(b, f"{part}_out", heads, attn.weight("b_O", "d_model") if bias else None)


def layers(
    g: Forward,
    stream: Sequence[Block],
    norm: parts.Norm,
    mlp: Callable[[Forward, Block], Block],
    present: Block,
    source: Block | None = None,
    biases: Callable[[Forward], Sequence[Block]] = lambda _: (),
) -> Block:
    """The stream after all layers: the encoder's, whose tokens see all `present` tokens, or the
    decoder's, which attend to the vectors of the `source` [n_source, d_model]. A layer's
    `biases` are added to the scores of its heads."""
    mask, seen = (Mask(), None) if source else (EVERYTHING, present)

    def attn(b: Forward, y: Block) -> Block:
        return attention(b, "attn", y, y, mask, seen, biases(b))

    def cross(b: Forward, y: Block) -> Block:
        return attention(b, "cross", y, source or y, EVERYTHING, present)

    sublayers: list[parts.Sublayer] = [("ln1", "resid_mid", attn), ("ln2", "resid_post", mlp)]
    if source:
        sublayers.insert(1, ("ln_cross", "resid_cross", cross))
    return parts.layers(g, stream, norm, sublayers)
