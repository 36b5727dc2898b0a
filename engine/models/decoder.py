"""The decoder of the essays, as a graph of cells: the whole forward pass, top to bottom.

A residual stream runs through the model; every sublayer reads it, and adds what it writes.
(Vaswani et al. 2017, "Attention Is All You Need", section 3; pre-norm as in GPT-2.)
"""

from collections.abc import Mapping, Sequence
from math import sqrt

import numpy as np

from engine import ops
from engine.access import Mask
from engine.block import Block
from engine.graph import Graph
from engine.spec import ModelSpec


def decoder(spec: ModelSpec, weights: Mapping[str, np.ndarray] | None, ids: Sequence[int]) -> Graph:
    """The graph of one forward pass over the token ids."""
    g = Graph(spec, weights)
    tokens = g.input("tokens", np.reshape(ids, (-1, 1)), ("token", ""), "ids")  # [n_tokens, 1]
    W_E = g.weight("W_E", "vocab", "d_model")
    stream = [g.block("embed", ops.embed, tokens, W_E)]  # each [n_tokens, d_model]
    if spec.position == "learned":
        places = np.arange(len(ids)).reshape(-1, 1)
        positions = g.input("positions", places, ("token", ""), "ids")  # [n_tokens, 1]
        W_pos = g.weight("W_pos", "n_ctx", "d_model")
        stream.append(g.block("pos_embed", ops.embed, positions, W_pos))

    for layer in range(spec.n_layers):
        b = g.at(f"blocks.{layer}")
        x = b.block("resid_pre", ops.add, *stream)  # [n_tokens, d_model]
        if spec.n_heads:
            written = attention(b, spec, norm(b.at("ln1"), spec, x))
            x = b.block("resid_mid", ops.add, x, written)  # [n_tokens, d_model]
        if spec.d_mlp:
            written = mlp(b, spec, norm(b.at("ln2"), spec, x))
            x = b.block("resid_post", ops.add, x, written)  # [n_tokens, d_model]
        stream = [x]

    x = g.block("resid_final", ops.add, *stream)  # [n_tokens, d_model]
    if spec.final_norm:
        x = layer_norm(g.at("ln_final"), spec, x)
    logits = unembed(g, spec, x, W_E)  # [n_tokens, d_vocab]
    temperature = g.input("temperature", 1.0)
    softmax(g.at("softmax"), logits, temperature=temperature, out=(g, "probs"))
    return g


def attention(b: Graph, spec: ModelSpec, x: Block) -> Block:
    """Multi-head causal attention: every head writes its own share, `result`, into the stream."""
    attn = b.at("attn")
    divisor = sqrt(spec.d_head) if spec.sqrt_d_head is None else spec.sqrt_d_head
    scale = attn.block("scale", ops.reciprocal, attn.input("sqrt_d_head", divisor))
    results = []
    for head in range(spec.n_heads):
        h = attn.at(f"h{head}")
        q = project(h, spec, "q", x, "Q")  # [n_tokens, d_head]
        k = project(h, spec, "k", x, "K")  # [n_tokens, d_head]
        v = project(h, spec, "v", x, "V")  # [n_tokens, d_head]
        scores = h.block("scores", ops.scores, q, k, scale, mask=Mask())  # [queries, keys]
        pattern = softmax(h, scores, out=(h, "pattern"))  # [queries, keys]
        z = h.block("z", ops.mix, pattern, v)  # [n_tokens, d_head]
        W_O = h.weight("W_O", "d_head", "d_model")
        results.append(h.block("result", ops.linear, z, W_O))  # [n_tokens, d_model]
    b_O = attn.weight("b_O", "d_model") if spec.bias else None
    return b.block("attn_out", ops.add, *results, b=b_O)  # [n_tokens, d_model]


def project(h: Graph, spec: ModelSpec, name: str, x: Block, which: str) -> Block:
    """One head's queries, keys or values."""
    W = h.weight(f"W_{which}", "d_model", "d_head")
    b = h.weight(f"b_{which}", "d_head") if spec.bias else None
    return h.block(name, ops.linear, x, W, b)


def mlp(b: Graph, spec: ModelSpec, x: Block) -> Block:
    """Expand, bend, contract; each token by itself."""
    m = b.at("mlp")
    W_in = m.weight("W_in", "d_model", "d_mlp")
    b_in = m.weight("b_in", "d_mlp") if spec.bias else None
    pre = m.block("pre", ops.linear, x, W_in, b_in)  # [n_tokens, d_mlp]
    post = m.block("post", getattr(ops, spec.activation), pre)  # [n_tokens, d_mlp]
    W_out = m.weight("W_out", "d_mlp", "d_model")
    b_out = m.weight("b_out", "d_model") if spec.bias else None
    return b.block("mlp_out", ops.linear, post, W_out, b_out)  # [n_tokens, d_model]


def norm(ln: Graph, spec: ModelSpec, x: Block) -> Block:
    """What a sublayer reads of the stream."""
    return layer_norm(ln, spec, x) if spec.norm == "layer" else x


def layer_norm(ln: Graph, spec: ModelSpec, x: Block) -> Block:
    """LayerNorm (Ba et al. 2016): centre, divide by the deviation, then gain and bias."""
    mean = ln.block("mean", ops.mean, x)  # [n_tokens, 1]
    scale = ln.block("scale", ops.deviation, x, ln.input("eps", spec.norm_eps))  # [n_tokens, 1]
    normalized = ln.block("normalized", ops.normalize, x, mean, scale)  # [n_tokens, d_model]
    w, b = ln.weight("w", "d_model"), ln.weight("b", "d_model")
    return ln.block("out", ops.affine, normalized, w, b)  # [n_tokens, d_model]


def unembed(g: Graph, spec: ModelSpec, x: Block, W_E: Block) -> Block:
    """One score for each word of the vocabulary: how far x points its way."""
    if spec.tied:
        return g.block("logits", ops.linear_tied, x, W_E)
    return g.block("logits", ops.linear, x, g.weight("W_U", "d_model", "vocab"))


def softmax(g: Graph, x: Block, out: tuple[Graph, str], temperature: Block | None = None) -> Block:
    """Shares that sum to 1 along each row of x, in steps that can be looked at."""
    top = g.block("row_max", ops.row_max, x)  # [n_tokens, 1]
    e = g.block("exp", ops.exp, x, top, temperature)  # as x
    total = g.block("row_sum", ops.row_sum, e)  # [n_tokens, 1]
    where, name = out
    return where.block(name, ops.share, e, total)  # as x
