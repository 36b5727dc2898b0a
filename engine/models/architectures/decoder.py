"""The decoder of the essays, as a graph of cells: the whole forward pass, top to bottom.

A residual stream runs through the model; every sublayer reads it, and adds what it writes.
(Vaswani et al. 2017, "Attention Is All You Need", section 3; norms before the sublayers as in
GPT-2, or after them as in 2017.)
"""

from collections.abc import Mapping, Sequence

import numpy as np

from engine.cells.access import Mask
from engine.cells.block import Block
from engine.cells.graph import Graph
from engine.models import ops, parts
from engine.models.spec import ModelSpec


def decoder(spec: ModelSpec, weights: Mapping[str, np.ndarray] | None, ids: Sequence[int]) -> Graph:
    """The graph of one forward pass over the token ids."""
    g = Graph(spec, weights)
    W_E, stream = parts.embed(g, spec, ids)  # stream: each [n_tokens, d_model]
    if spec.position in ("learned", "sinusoidal"):
        stream.append(position(g, spec, len(ids)))
    turn = parts.rotation(g, spec, len(ids)) if spec.position == "rotary" else None

    for layer in range(spec.n_layers):
        b = g.at(f"blocks.{layer}")
        x = b.block("resid_pre", ops.add, stream)  # [n_tokens, d_model]
        if spec.n_heads:
            read = x if spec.norm_after else norm(b.at("ln1"), spec, x)
            x = b.block("resid_mid", ops.add, [x, attention(b, spec, read, turn)])
            x = norm(b.at("ln1"), spec, x) if spec.norm_after else x
        if spec.d_mlp:
            read = x if spec.norm_after else norm(b.at("ln2"), spec, x)
            x = b.block("resid_post", ops.add, [x, mlp(b, spec, read)])  # [n_tokens, d_model]
            x = norm(b.at("ln2"), spec, x) if spec.norm_after else x
        stream = [x]

    x = g.block("resid_final", ops.add, stream)  # [n_tokens, d_model]
    if spec.final_norm:
        final = parts.rms_norm if spec.norm == "rms" else parts.layer_norm
        x = final(g.at("ln_final"), x, spec.norm_eps)  # [n_tokens, d_model]
    parts.unembed(g, spec, x, W_E)
    return g


def attention(b: Graph, spec: ModelSpec, x: Block, turn: tuple[Block, Block] | None) -> Block:
    """Multi-head attention: every head writes its own share, `result`, into the stream."""
    attn = b.at("attn")
    shared = parts.shared(attn, spec)
    head_axes = ("d_model", "d_head")
    heads = []
    for head in range(spec.n_heads):
        h = attn.at(f"h{head}")
        q = parts.linear(h, "q", x, "Q", head_axes, spec.bias)  # [n_tokens, d_head]
        k = parts.linear(h, "k", x, "K", head_axes, spec.bias)  # [n_tokens, d_head]
        v = parts.linear(h, "v", x, "V", head_axes, spec.bias)  # [n_tokens, d_head]
        if turn:
            q = parts.rotate(h, "rot_q", q, turn, spec)
            k = parts.rotate(h, "rot_k", k, turn, spec)
        heads.append(parts.attend(h, q, k, v, shared, Mask(spec.causal)))
    return parts.write_heads(b, heads, spec.bias)  # [n_tokens, d_model]


def mlp(b: Graph, spec: ModelSpec, x: Block) -> Block:
    """Expand, bend, contract; each token by itself."""
    m = b.at("mlp")
    pre = parts.linear(m, "pre", x, "in", ("d_model", "d_mlp"), spec.bias)  # [n_tokens, d_mlp]
    post = m.block("post", getattr(ops, spec.activation), pre)  # [n_tokens, d_mlp]
    return parts.contract(b, post, spec.bias)  # [n_tokens, d_model]


def norm(ln: Graph, spec: ModelSpec, x: Block) -> Block:
    """What a sublayer reads of the stream."""
    if spec.norm == "none":
        return x
    return (parts.layer_norm if spec.norm == "layer" else parts.rms_norm)(ln, x, spec.norm_eps)


def position(g: Graph, spec: ModelSpec, n_tokens: int) -> Block:
    """A vector for each place: learned, or of sines and cosines (2017, section 3.5)."""
    places = parts.positions(g, n_tokens)  # [n_tokens, 1]
    if spec.position == "learned":
        table = g.weight("W_pos", "n_ctx", "d_model")
    else:
        table = g.input("clock", clock(n_tokens, spec.d_model), ("n_ctx", "d_model"))
    return g.block("pos_embed", ops.embed, places, table)  # [n_tokens, d_model]


def clock(n_tokens: int, d_model: int) -> np.ndarray:
    """Sinusoidal positions: sine and cosine of pos / 10000^(2i / d_model) in turn."""
    i = np.arange(d_model)
    angle = np.arange(n_tokens)[:, None] / 10000 ** ((i - i % 2) / d_model)  # [n_tokens, d_model]
    return np.where(i % 2, np.cos(angle), np.sin(angle))
