"""GPT-Neo (Black et al. 2021; the TinyStories models): GPT-2 with layers that look back only so
far, scores that are not divided by sqrt(d_head), and no biases in queries, keys and values."""

from collections.abc import Mapping, Sequence

import numpy as np

from engine.cells.access import Mask
from engine.cells.graph import Graph
from engine.models import ops, parts
from engine.models.spec import ModelSpec


def gpt_neo(spec: ModelSpec, weights: Mapping[str, np.ndarray] | None, ids: Sequence[int]) -> Graph:
    """The graph of one forward pass over the token ids."""
    g = Graph(spec, weights)
    W_E, stream = parts.embed(g, spec, ids)  # stream: each [n_tokens, d_model]
    places = parts.positions(g, len(ids))  # [n_tokens, 1]
    W_pos = g.weight("W_pos", "n_ctx", "d_model")
    stream.append(g.block("pos_embed", ops.embed, places, W_pos))

    for layer in range(spec.n_layers):
        b = g.at(f"blocks.{layer}")
        x = b.block("resid_pre", ops.add, stream)  # [n_tokens, d_model]

        attn = b.at("attn")
        mask = Mask(window=spec.window(layer))
        y = parts.layer_norm(b.at("ln1"), x, spec.norm_eps)  # [n_tokens, d_model]
        shared = parts.shared(attn, spec)
        heads = []
        for head in range(spec.n_heads):
            h = attn.at(f"h{head}")
            q = parts.linear(h, "q", y, "Q", ("d_model", "d_head"), bias=False)
            k = parts.linear(h, "k", y, "K", ("d_model", "d_head"), bias=False)
            v = parts.linear(h, "v", y, "V", ("d_model", "d_head"), bias=False)
            heads.append(parts.attend(h, q, k, v, shared, mask))  # z: [n_tokens, d_head]
        attn_out = parts.write_heads(b, heads, bias=True)  # [n_tokens, d_model]
        x = b.block("resid_mid", ops.add, [x, attn_out])  # [n_tokens, d_model]

        mlp = b.at("mlp")
        y = parts.layer_norm(b.at("ln2"), x, spec.norm_eps)  # [n_tokens, d_model]
        pre = parts.linear(mlp, "pre", y, "in", ("d_model", "d_mlp"), bias=True)
        post = mlp.block("post", getattr(ops, spec.activation), pre)  # [n_tokens, d_mlp]
        mlp_out = parts.contract(b, post, bias=True)  # [n_tokens, d_model]
        stream = [b.block("resid_post", ops.add, [x, mlp_out])]  # [n_tokens, d_model]

    x = g.block("resid_final", ops.add, stream)  # [n_tokens, d_model]
    x = parts.layer_norm(g.at("ln_final"), x, spec.norm_eps)  # [n_tokens, d_model]
    parts.unembed(g, spec, x, W_E)
    return g
