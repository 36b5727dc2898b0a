"""Llama (Touvron et al. 2023) and its relatives Mistral, Qwen2, Qwen3, SmolLM3, Granite: RMSNorm,
rotary positions, a gated MLP, grouped keys and values (Ainslie et al. 2023)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.cells.access import Mask
from engine.cells.block import Block
from engine.cells.errors import InputError
from engine.models import ops, parts, rope, sentence_modules
from engine.models.foreign import GATED, Config, Piece, Pieces, grouped_heads, linear
from engine.models.forward import Forward
from engine.models.pooling import pool
from engine.models.spec import ModelSpec

MODEL_TYPES = ("llama", "mistral", "qwen2", "qwen3", "smollm3", "granite")
EPS = "rms_norm_eps"  # the config's name for what keeps its norms' divisors above zero
NEW = {"hidden_act": "silu", "sliding_window": None}
DEFAULTS = {"num_hidden_layers": 32, "max_position_embeddings": 2048, "hidden_act": "silu"}
OWN_DEFAULTS = {  # of the reference's classes, where a config says nothing
    "mistral": {"max_position_embeddings": 131072},
    "qwen2": {"max_position_embeddings": 32768},
    "qwen3": {"max_position_embeddings": 32768, "head_dim": 128},
    "smollm3": {"max_position_embeddings": 32768, "num_hidden_layers": 36},
}


@dataclass(frozen=True, repr=False)
class LlamaSpec(ModelSpec):
    """ModelSpec with fields that only some of Llama's relatives have."""

    still: tuple[int, ...] = ()  # layers whose queries and keys do not turn (SmolLM3)
    embed_scale: float = 1.0  # Granite multiplies the embedding,
    write_scale: float = 1.0  # what attention and MLP write into the stream,
    logit_scale: float = 1.0  # and the logits


def forward(g: Forward, ids: Sequence[int]) -> None:
    """One forward pass over the token ids."""
    spec = g.spec
    assert isinstance(spec, LlamaSpec)
    name = "embed" if spec.embed_scale == 1 else "embed.word"
    W_E, word = parts.embed(g, ids, name)  # word: [n_tokens, d_model]
    stream = [times(g, "embed", word, "embed", spec.embed_scale)]  # [n_tokens, d_model]
    turn = parts.rotation(g, len(ids))  # cosines and sines, each [n_tokens, d_head]

    for layer in range(spec.n_layers):
        b = g.at(f"blocks.{layer}")
        x = b.block("resid_pre", ops.add, stream)  # [n_tokens, d_model]
        y = parts.rms_norm(b.at("ln1"), x, spec.norm_eps)  # [n_tokens, d_model]
        wrote = attention(b, y, None if layer in spec.still else turn, spec.window(layer))
        wrote = times(b, "attn.added", wrote, "attn", spec.write_scale)
        x = b.block("resid_mid", ops.add, [x, wrote])  # [n_tokens, d_model]
        y = parts.rms_norm(b.at("ln2"), x, spec.norm_eps)  # [n_tokens, d_model]
        wrote = times(b, "mlp.added", mlp(b, y), "mlp", spec.write_scale)
        stream = [b.block("resid_post", ops.add, [x, wrote])]  # [n_tokens, d_model]

    x = g.block("resid_final", ops.add, stream)  # [n_tokens, d_model]
    x = parts.rms_norm(g.at("ln_final"), x, spec.norm_eps)  # [n_tokens, d_model]
    if spec.gives == "sentence":
        pool(g, x, g.input("attention_mask", np.ones((len(ids), 1)), ("token", "")))
        return
    x = times(g, "logits.read", x, "logits", spec.logit_scale)  # [n_tokens, d_model]
    parts.unembed(g, x, W_E)


def attention(b: Forward, x: Block, turn: tuple[Block, Block] | None, window: int | None) -> Block:
    """The sum of what all heads write, [n_tokens, d_model]; groups of heads share keys and
    values."""
    spec, attn = b.spec, b.at("attn")
    of_all = parts.of_all_heads(attn)
    q_norm = attn.weight("q_norm", "d_head") if spec.qk_norm else None
    k_norm = attn.weight("k_norm", "d_head") if spec.qk_norm else None
    keys, values = [], []
    for n in range(spec.kv_heads):
        kv = attn.at(f"kv{n}")
        k = parts.linear(kv, "k", x, "K", ("d_model", "d_head"), spec.qkv_bias)
        v = parts.linear(kv, "v", x, "V", ("d_model", "d_head"), spec.qkv_bias)
        if k_norm:
            k = parts.rms_norm(kv.at("k_norm"), k, spec.norm_eps, k_norm)
        keys.append(parts.rotate(kv, "rot_k", k, turn) if turn else k)  # [n_tokens, d_head]
        values.append(v)  # [n_tokens, d_head]
    heads = []
    for n in range(spec.n_heads):
        h = attn.at(f"h{n}")
        q = parts.linear(h, "q", x, "Q", ("d_model", "d_head"), spec.qkv_bias)
        if q_norm:
            q = parts.rms_norm(h.at("q_norm"), q, spec.norm_eps, q_norm)
        q = parts.rotate(h, "rot_q", q, turn) if turn else q  # [n_tokens, d_head]
        shared = n * spec.kv_heads // spec.n_heads
        heads.append(parts.attend(h, q, keys[shared], values[shared], of_all, Mask(window=window)))
    return parts.write_heads(b, heads, spec.out_bias)


def mlp(b: Forward, x: Block) -> Block:
    """The gated MLP: expand, multiply by the gate, contract: [n_tokens, d_model]."""
    spec, m = b.spec, b.at("mlp")
    gate = parts.linear(m, "gate", x, "gate", ("d_model", "d_mlp"), spec.mlp_bias)
    pre = parts.linear(m, "pre", x, "in", ("d_model", "d_mlp"), spec.mlp_bias)
    opened = m.block("act", getattr(ops, spec.activation), gate)  # [n_tokens, d_mlp]
    post = m.block("post", ops.gated, opened, pre)  # [n_tokens, d_mlp]
    return parts.contract(b, post, spec.mlp_bias)


def times(g: Forward, name: str, x: Block, path: str, by: float) -> Block:
    """x times a constant, in a block under `path`; x itself if the constant is 1."""
    return x if by == 1 else g.block(name, ops.stretch, x, g.at(path).input("multiplier", by))


def read_config(c: Config) -> ModelSpec:
    """The config of Llama and its relatives."""
    kind = c.values["model_type"]
    c.assume(**DEFAULTS | (OWN_DEFAULTS.get(kind) or {}))
    n_layers = c.get("num_hidden_layers", int)
    n_heads = c.get("num_attention_heads", int)
    d_head = c.get("head_dim", int, 0) or c.divide("hidden_size", "num_attention_heads")
    smol, granite = kind == "smollm3", kind == "granite"
    rotary = rope.read(c, d_head, default_theta=2e6 if smol else 1e4)
    bias = c.get("attention_bias", bool, False)
    return LlamaSpec(
        d_vocab=c.get("vocab_size", int),
        d_model=c.get("hidden_size", int),
        n_ctx=sentence_modules.longest(c, rotary.n_ctx),
        n_layers=n_layers,
        n_heads=n_heads,
        n_kv_heads=c.get("num_key_value_heads", int, n_heads),
        d_head=d_head,
        d_mlp=c.get("intermediate_size", int),
        activation=c.activation("hidden_act"),
        position="rotary",
        norm="rms",
        final_norm=True,
        norm_eps=c.get(EPS, float, 1e-6),
        tied=c.get("tie_word_embeddings", bool, smol),
        qkv_bias=kind == "qwen2" or bias,
        out_bias=kind != "qwen2" and bias,
        mlp_bias=c.get("mlp_bias", bool, False),
        qk_norm=kind == "qwen3",
        windows=windows(c, kind, n_layers),
        rope_theta=rotary.theta,
        rope_frequencies=rotary.frequencies,
        rope_factor=rotary.factor,
        sqrt_d_head=1 / c.get("attention_multiplier", float, 1.0) if granite else None,
        still=layers_that_stand_still(c, n_layers) if smol else (),
        embed_scale=c.get("embedding_multiplier", float, 1.0) if granite else 1.0,
        write_scale=c.get("residual_multiplier", float, 1.0) if granite else 1.0,
        logit_scale=1 / c.get("logits_scaling", float, 1.0) if granite else 1.0,
        **(sentence_modules.readout(c) if c.look(sentence_modules.KEY) else {}),
    )


def layers_that_stand_still(c: Config, n_layers: int) -> tuple[int, ...]:
    """SmolLM3's layers without rotary positions: every fourth, unless the config lists them."""
    every = c.get("no_rope_layer_interval", int, 4)
    turns = c.listed("no_rope_layers", int) or [(n + 1) % every != 0 for n in range(n_layers)]
    if len(turns) != n_layers:
        raise InputError(f"{c.path}: no_rope_layers lists {len(turns)} layers, not {n_layers}")
    return tuple(n for n in range(n_layers) if not turns[n])


def windows(c: Config, kind: str, n_layers: int) -> tuple[int | None, ...]:
    """The sliding window of each layer: Mistral's in every layer, others' in the layers they
    list."""
    c.ignore("use_sliding_window", "max_window_layers", "layer_types")
    window, listed = c.look("sliding_window"), c.windowed(n_layers)
    if (
        kind in ("llama", "granite")
        or window is None
        or (kind != "mistral" and not c.get("use_sliding_window", bool, False))
    ):
        return ()
    window = c.get("sliding_window", int)
    if kind == "mistral":
        return (window,) * n_layers
    if kind == "smollm3":
        near = layers_that_stand_still(c, n_layers)
    else:
        near = tuple(range(c.get("max_window_layers", int, 28), n_layers))
    looking_back = listed or [layer in near for layer in range(n_layers)]
    return tuple(window if is_near else None for is_near in looking_back)


def pieces(spec: ModelSpec) -> Pieces:
    """Linear weights are [out, in]."""
    yield from around_mlp(spec)
    for layer in range(spec.n_layers):
        yield from linear(f"blocks.{layer}.mlp", f"model.layers.{layer}.mlp", GATED)


def around_mlp(spec: ModelSpec) -> Pieces:
    """All weights but those of MLPs."""
    yield "W_E", Piece("model.embed_tokens.weight")
    yield "W_U", Piece("lm_head.weight", transposed=True)
    yield "ln_final.w", Piece("model.norm.weight")
    yield from sentence_modules.pieces()
    for layer in range(spec.n_layers):
        b, f = f"blocks.{layer}", f"model.layers.{layer}"
        yield f"{b}.ln1.w", Piece(f"{f}.input_layernorm.weight")
        yield f"{b}.ln2.w", Piece(f"{f}.post_attention_layernorm.weight")
        yield from grouped_heads(f"{b}.attn", f"{f}.self_attn", spec)
        yield f"{b}.attn.q_norm", Piece(f"{f}.self_attn.q_norm.weight")
        yield f"{b}.attn.k_norm", Piece(f"{f}.self_attn.k_norm.weight")
