"""GPT-NeoX (Black et al. 2022, section 2.1; the Pythia models): attention and MLP side by side
on the same residual, rotary positions on a part of each head's features."""

from collections.abc import Mapping, Sequence

import numpy as np

from engine.cells.access import Mask
from engine.cells.graph import Graph
from engine.models import ops, parts
from engine.models.spec import ModelSpec


def gpt_neox(
    spec: ModelSpec, weights: Mapping[str, np.ndarray] | None, ids: Sequence[int]
) -> Graph:
    """The graph of one forward pass over the token ids."""
    g = Graph(spec, weights)
    W_E, stream = parts.embed(g, spec, ids)  # stream: each [n_tokens, d_model]
    turn = parts.rotation(g, spec, len(ids))  # cosines and sines, each [n_tokens, d_head]

    for layer in range(spec.n_layers):
        b = g.at(f"blocks.{layer}")
        x = b.block("resid_pre", ops.add, stream)  # [n_tokens, d_model]

        attn = b.at("attn")
        y = parts.layer_norm(b.at("ln1"), x, spec.norm_eps)  # [n_tokens, d_model]
        shared = parts.shared(attn, spec)
        heads = []
        for head in range(spec.n_heads):
            h = attn.at(f"h{head}")
            q = parts.linear(h, "q", y, "Q", ("d_model", "d_head"), spec.bias)
            k = parts.linear(h, "k", y, "K", ("d_model", "d_head"), spec.bias)
            v = parts.linear(h, "v", y, "V", ("d_model", "d_head"), spec.bias)
            q = parts.rotate(h, "rot_q", q, turn, spec)  # [n_tokens, d_head]
            k = parts.rotate(h, "rot_k", k, turn, spec)  # [n_tokens, d_head]
            heads.append(parts.attend(h, q, k, v, shared, Mask()))  # z: [n_tokens, d_head]
        attn_out = parts.write_heads(b, heads, spec.bias)  # [n_tokens, d_model]
        resid_mid = b.block("resid_mid", ops.add, [x, attn_out])  # [n_tokens, d_model]

        mlp = b.at("mlp")
        y = parts.layer_norm(b.at("ln2"), x if spec.parallel else resid_mid, spec.norm_eps)
        pre = parts.linear(mlp, "pre", y, "in", ("d_model", "d_mlp"), bias=True)
        post = mlp.block("post", getattr(ops, spec.activation), pre)  # [n_tokens, d_mlp]
        mlp_out = parts.contract(b, post, bias=True)  # [n_tokens, d_model]
        stream = [b.block("resid_post", ops.add, [resid_mid, mlp_out])]  # [n_tokens, d_model]

    x = g.block("resid_final", ops.add, stream)  # [n_tokens, d_model]
    x = parts.layer_norm(g.at("ln_final"), x, spec.norm_eps)  # [n_tokens, d_model]
    parts.unembed(g, spec, x, W_E)
    return g
