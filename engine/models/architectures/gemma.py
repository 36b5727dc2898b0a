"""Gemma (Gemma Team 2024a): Llama's parts, with embeddings times the root of d_model and gains of 1
+ w. Gemma 2 (2024b, section 2) adds norms after each sublayer, soft caps on scores and logits, and
sliding windows in every other layer. Gemma 3 is in `gemma3.py`."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt

from cellformer.engine.cells.access import Mask
from cellformer.engine.cells.block import Block
from cellformer.engine.models import ops, parts, rope
from cellformer.engine.models.architectures.llama import LlamaSpec
from cellformer.engine.models.foreign import GATED, Config, Piece, Pieces, grouped_heads, linear
from cellformer.engine.models.forward import Forward
from cellformer.engine.models.spec import ModelSpec

MODEL_TYPES = ("gemma", "gemma2")
EPS = "rms_norm_eps"  # the config's name for what keeps its norms' divisors above zero
NEW = {"hidden_act": "gelu_pytorch_tanh", "hidden_activation": "gelu_pytorch_tanh"}
NORMS = {"ln1": "input_layernorm", "ln2": "post_attention_layernorm"}  # our name -> theirs
NORMS_2 = {
    "ln1": "input_layernorm",
    "ln1_post": "post_attention_layernorm",
    "ln2": "pre_feedforward_layernorm",
    "ln2_post": "post_feedforward_layernorm",
}


@dataclass(frozen=True, repr=False)
class GemmaSpec(LlamaSpec):
    """LlamaSpec with Gemma's soft caps of scores and logits; None: no cap."""

    score_cap: float | None = None
    logit_cap: float | None = None


def forward(g: Forward, ids: Sequence[int]) -> None:
    """One forward pass over the token ids."""
    spec = g.spec
    assert isinstance(spec, GemmaSpec)
    W_E, word = parts.embed(g, ids, "embed.word")  # word: [n_tokens, d_model]
    length = g.input("embed.sqrt_d_model", sqrt(spec.d_model))
    stream = [g.block("embed", ops.stretch, word, length)]  # [n_tokens, d_model]
    turn = near = parts.rotation(g, len(ids))  # cosines and sines, each [n_tokens, d_head]
    if spec.local:
        near = parts.rotation(g, len(ids), "rotary.local", spec.within_windows)

    for layer in range(spec.n_layers):
        b = g.at(f"blocks.{layer}")
        x = b.block("resid_pre", ops.add, stream)  # [n_tokens, d_model]
        y = parts.rms_norm_above_one(b.at("ln1"), x, spec.norm_eps)  # [n_tokens, d_model]
        window = spec.window(layer)
        wrote = attention(b, y, near if window else turn, window)  # [n_tokens, d_model]
        if spec.norms == "both":
            wrote = parts.rms_norm_above_one(b.at("ln1_post"), wrote, spec.norm_eps)
        x = b.block("resid_mid", ops.add, [x, wrote])  # [n_tokens, d_model]
        y = parts.rms_norm_above_one(b.at("ln2"), x, spec.norm_eps)  # [n_tokens, d_model]
        wrote = mlp(b, y)  # [n_tokens, d_model]
        if spec.norms == "both":
            wrote = parts.rms_norm_above_one(b.at("ln2_post"), wrote, spec.norm_eps)
        stream = [b.block("resid_post", ops.add, [x, wrote])]  # [n_tokens, d_model]

    x = g.block("resid_final", ops.add, stream)  # [n_tokens, d_model]
    x = parts.rms_norm_above_one(g.at("ln_final"), x, spec.norm_eps)  # [n_tokens, d_model]
    parts.unembed(g, x, W_E, spec.logit_cap)


def attention(b: Forward, x: Block, turn: tuple[Block, Block], window: int | None) -> Block:
    """The sum of what all heads write, [n_tokens, d_model]; groups of heads share keys and
    values."""
    spec, attn = b.spec, b.at("attn")
    assert isinstance(spec, GemmaSpec)
    of_all = parts.of_all_heads(attn, spec.score_cap)
    q_norm = attn.weight("q_norm", "d_head") if spec.qk_norm else None
    k_norm = attn.weight("k_norm", "d_head") if spec.qk_norm else None
    keys, values = [], []
    for n in range(spec.kv_heads):
        kv = attn.at(f"kv{n}")
        k = parts.linear(kv, "k", x, "K", ("d_model", "d_head"), spec.qkv_bias)
        if k_norm:
            k = parts.rms_norm_above_one(kv.at("k_norm"), k, spec.norm_eps, k_norm)
        keys.append(parts.rotate(kv, "rot_k", k, turn))  # [n_tokens, d_head]
        values.append(parts.linear(kv, "v", x, "V", ("d_model", "d_head"), spec.qkv_bias))
    heads = []
    for n in range(spec.n_heads):
        h = attn.at(f"h{n}")
        q = parts.linear(h, "q", x, "Q", ("d_model", "d_head"), spec.qkv_bias)
        if q_norm:
            q = parts.rms_norm_above_one(h.at("q_norm"), q, spec.norm_eps, q_norm)
        q = parts.rotate(h, "rot_q", q, turn)  # [n_tokens, d_head]
        shared = n * spec.kv_heads // spec.n_heads
        heads.append(parts.attend(h, q, keys[shared], values[shared], of_all, Mask(window=window)))
    return parts.write_heads(b, heads, spec.out_bias)


def mlp(b: Forward, x: Block) -> Block:
    """The gated MLP: expand, multiply by the gate, contract: [n_tokens, d_model]."""
    spec, m = b.spec, b.at("mlp")
    gate = parts.linear(m, "gate", x, "gate", ("d_model", "d_mlp"), bias=False)
    pre = parts.linear(m, "pre", x, "in", ("d_model", "d_mlp"), bias=False)
    opened = m.block("act", getattr(ops, spec.activation), gate)  # [n_tokens, d_mlp]
    return parts.contract(b, m.block("post", ops.gated, opened, pre), bias=False)


def read_config(c: Config) -> ModelSpec:
    """The configs of Gemma and Gemma 2."""
    c.assume(num_hidden_layers=26 if c.values["model_type"] == "gemma2" else 28)
    c.assume(max_position_embeddings=8192, hidden_activation="gelu_pytorch_tanh")
    c.refuse("use_bidirectional_attention", False, "each token sees those before it")
    d_head = c.get("head_dim", int, 256)
    rotary = rope.read(c, d_head)
    bias = c.get("attention_bias", bool, False)
    spec = GemmaSpec(
        d_vocab=c.get("vocab_size", int),
        d_model=c.get("hidden_size", int),
        n_ctx=rotary.n_ctx,
        n_layers=c.get("num_hidden_layers", int),
        n_heads=c.get("num_attention_heads", int),
        n_kv_heads=c.get("num_key_value_heads", int),
        d_head=d_head,
        d_mlp=c.get("intermediate_size", int),
        position="rotary",
        norm="rms",
        final_norm=True,
        norm_eps=c.get(EPS, float, 1e-6),
        tied=c.get("tie_word_embeddings", bool, True),
        qkv_bias=bias,
        out_bias=bias,
        rope_theta=rotary.theta,
        rope_frequencies=rotary.frequencies,
        rope_factor=rotary.factor,
    )
    return second(c, spec) if c.values["model_type"] == "gemma2" else first(c, spec)


def first(c: Config, spec: GemmaSpec) -> GemmaSpec:
    """Gemma's spec. Its first configs say `gelu` but mean the tanh form, which it was trained
    with."""
    c.ignore("hidden_activation")
    exact = c.look("hidden_act") in (None, "gelu")
    return replace(spec, activation="gelu_tanh" if exact else c.activation("hidden_act"))


def second(c: Config, spec: GemmaSpec) -> GemmaSpec:
    """Gemma 2's spec."""
    c.ignore("hidden_act")  # `hidden_activation` is what counts
    window, n_layers = c.get("sliding_window", int, 4096), spec.n_layers
    near = c.windowed(n_layers) or [layer % 2 == 0 for layer in range(n_layers)]
    return replace(
        spec,
        activation=c.activation("hidden_activation"),
        windows=tuple(window if is_near else None for is_near in near),
        sqrt_d_head=sqrt(c.get("query_pre_attn_scalar", float, 256.0)),
        norms="both",
        score_cap=c.optional("attn_logit_softcapping", float, 50.0),
        logit_cap=c.optional("final_logit_softcapping", float, 30.0),
    )


def pieces(spec: ModelSpec) -> Pieces:
    """Linear weights are [out, in]."""
    assert isinstance(spec, GemmaSpec)
    yield "W_E", Piece("model.embed_tokens.weight")
    yield "W_U", Piece("lm_head.weight", transposed=True)
    yield "ln_final.w", Piece("model.norm.weight")
    for layer in range(spec.n_layers):
        b, f = f"blocks.{layer}", f"model.layers.{layer}"
        for ours, theirs in (NORMS_2 if spec.norms == "both" else NORMS).items():
            yield f"{b}.{ours}.w", Piece(f"{f}.{theirs}.weight")
        yield from grouped_heads(f"{b}.attn", f"{f}.self_attn", spec)
        yield from linear(f"{b}.mlp", f"{f}.mlp", GATED)
