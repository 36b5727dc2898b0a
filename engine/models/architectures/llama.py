"""Llama (Touvron et al. 2023) and its kin Mistral, Qwen2, Qwen3: RMSNorm, rotary positions, a
gated MLP, and keys and values that several heads share (Ainslie et al. 2023)."""

from collections.abc import Mapping, Sequence

import numpy as np

from engine.cells.access import Mask
from engine.cells.graph import Graph
from engine.models import ops, parts
from engine.models.spec import ModelSpec


def llama(spec: ModelSpec, weights: Mapping[str, np.ndarray] | None, ids: Sequence[int]) -> Graph:
    """The graph of one forward pass over the token ids."""
    g = Graph(spec, weights)
    W_E, stream = parts.embed(g, spec, ids)  # stream: each [n_tokens, d_model]
    turn = parts.rotation(g, spec, len(ids))  # cosines and sines, each [n_tokens, d_head]
    group = spec.n_heads // spec.kv_heads if spec.n_heads else 1  # heads that share keys

    for layer in range(spec.n_layers):
        b = g.at(f"blocks.{layer}")
        x = b.block("resid_pre", ops.add, stream)  # [n_tokens, d_model]

        attn = b.at("attn")
        mask = Mask(window=spec.window(layer))
        y = parts.rms_norm(b.at("ln1"), x, spec.norm_eps)  # [n_tokens, d_model]
        shared = parts.shared(attn, spec)
        q_norm = attn.weight("q_norm", "d_head") if spec.qk_norm else None
        k_norm = attn.weight("k_norm", "d_head") if spec.qk_norm else None
        keys, values = [], []
        for n in range(spec.kv_heads):
            kv = attn.at(f"kv{n}")
            k = parts.linear(kv, "k", y, "K", ("d_model", "d_head"), spec.qkv_bias)
            v = parts.linear(kv, "v", y, "V", ("d_model", "d_head"), spec.qkv_bias)
            if k_norm:
                k = parts.rms_norm(kv.at("k_norm"), k, spec.norm_eps, k_norm)
            keys.append(parts.rotate(kv, "rot_k", k, turn, spec))  # [n_tokens, d_head]
            values.append(v)  # [n_tokens, d_head]
        heads = []
        for head in range(spec.n_heads):
            h = attn.at(f"h{head}")
            q = parts.linear(h, "q", y, "Q", ("d_model", "d_head"), spec.qkv_bias)
            if q_norm:
                q = parts.rms_norm(h.at("q_norm"), q, spec.norm_eps, q_norm)
            q = parts.rotate(h, "rot_q", q, turn, spec)  # [n_tokens, d_head]
            k, v = keys[head // group], values[head // group]
            heads.append(parts.attend(h, q, k, v, shared, mask))  # z: [n_tokens, d_head]
        attn_out = parts.write_heads(b, heads, spec.out_bias)  # [n_tokens, d_model]
        x = b.block("resid_mid", ops.add, [x, attn_out])  # [n_tokens, d_model]

        mlp = b.at("mlp")
        y = parts.rms_norm(b.at("ln2"), x, spec.norm_eps)  # [n_tokens, d_model]
        gate = parts.linear(mlp, "gate", y, "gate", ("d_model", "d_mlp"), spec.mlp_bias)
        pre = parts.linear(mlp, "pre", y, "in", ("d_model", "d_mlp"), spec.mlp_bias)
        opened = mlp.block("act", getattr(ops, spec.activation), gate)  # [n_tokens, d_mlp]
        post = mlp.block("post", ops.gated, opened, pre)  # [n_tokens, d_mlp]
        mlp_out = parts.contract(b, post, spec.mlp_bias)  # [n_tokens, d_model]
        stream = [b.block("resid_post", ops.add, [x, mlp_out])]  # [n_tokens, d_model]

    x = g.block("resid_final", ops.add, stream)  # [n_tokens, d_model]
    x = parts.rms_norm(g.at("ln_final"), x, spec.norm_eps)  # [n_tokens, d_model]
    parts.unembed(g, spec, x, W_E)
    return g
