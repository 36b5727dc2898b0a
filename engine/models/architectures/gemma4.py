"""Gemma 4 (Google 2026): Gemma 3's norms and windows. Every layer has an embedding of its own for
each token, values are normed, and the last layers read keys and values of earlier ones.

Layers without windows may have wider heads, and values may be the keys before their norm. A number
of the layer multiplies what it gives. Experts may work beside the MLP, each part with norms of its
own. In a sentence encoder, tokens may see all others.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any, Self

import numpy as np

from cellformer.engine.cells.access import Mask
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.errors import InputError
from cellformer.engine.models import ops, parts, rope
from cellformer.engine.models.architectures import mixtral
from cellformer.engine.models.architectures.gemma import BOTH, BOTH_WAYS, of_sentences
from cellformer.engine.models.architectures.llama import WHOLE, Turn, padding, usual
from cellformer.engine.models.architectures.mixtral import MoeSpec
from cellformer.engine.models.foreign import (
    FULL,
    GATED,
    WINDOWED,
    Config,
    Piece,
    Pieces,
    grouped_heads,
    head_of,
    linear,
    mapped,
    norm,
    outside,
    stacked,
)
from cellformer.engine.models.forward import Forward
from cellformer.engine.models.pooling import pool
from cellformer.engine.models.spec import ModelSpec

MODEL_TYPES = ("gemma4_text",)
EPS = "rms_norm_eps"
ACT = "hidden_activation"
# of layers whose keys and values are those of earlier ones, in files of its makers
UNREAD = tuple(f"*.self_attn.{which}.weight" for which in ("k_proj", "v_proj", "k_norm", "v_norm"))
HEAD, SHARED = "head_dim", "num_key_value_heads"  # fields that layers may have of their own
ROTARY = {
    WINDOWED: {"rope_type": "default", "rope_theta": 1e4},
    FULL: {"rope_type": "proportional", "partial_rotary_factor": 0.25, "rope_theta": 1e6},
}
KeysAndValues = list[tuple[Block, Block]]  # of each head of keys and values, [n_tokens, d_head]


@dataclass(frozen=True, repr=False)
class LayeredSpec(MoeSpec):
    """MoeSpec with layers of different sizes, and with embeddings of their own. It may have no
    experts."""

    d_layer: int = 0  # of a layer's own embedding of a token; 0: none
    d_vocab_layer: int = 0  # rows of its table
    sources: tuple[int, ...] = ()  # the layer whose keys and values each layer reads
    d_heads: tuple[int, ...] = ()
    n_shared: tuple[int, ...] = ()  # heads of keys and values
    d_mlps: tuple[int, ...] = ()
    keys_only: tuple[bool, ...] = ()  # the layers whose values are their keys, otherwise normed

    @property
    def writes(self) -> bool:
        return self.n_experts > 0

    def of_layer(self, n: int) -> Self:
        """The spec with a layer's own sizes."""
        d_head, n_kv_heads = self.d_heads[n], self.n_shared[n]
        return replace(self, d_head=d_head, n_kv_heads=n_kv_heads, d_mlp=self.d_mlps[n])


def forward(g: Forward, ids: Sequence[int]) -> None:
    spec = g.spec_as(LayeredSpec)
    W_E, stream = embedded(g, ids)  # stream: [n_tokens, d_model]
    own = of_layers(g, stream) if spec.d_layer else []  # each [n_tokens, d_layer]
    turns, kept = rotations(g, len(ids)), dict[int, KeysAndValues]()
    present = None if spec.causal else padding(g, len(ids))  # [n_tokens, 1]
    for layer in range(spec.n_layers):
        b = of_layer(g, layer)
        x = b.block("resid_pre", ops.add, [stream])  # [n_tokens, d_model]
        read = parts.rms_norm(b.at("ln1"), x, spec.norm_eps)  # [n_tokens, d_model]
        wrote = attention(b, read, turns, layer, kept)  # [n_tokens, d_model]
        wrote = parts.rms_norm(b.at("ln1_post"), wrote, spec.norm_eps)
        x = b.block("resid_mid", ops.add, [x, wrote])  # [n_tokens, d_model]
        read = parts.rms_norm(b.at("ln2"), x, spec.norm_eps)  # [n_tokens, d_model]
        if spec.n_experts:
            wrote = with_experts(b, x, read)  # [n_tokens, d_model]
        else:
            wrote = parts.mlp(b, read, bias=False, gated=True)  # [n_tokens, d_model]
        wrote = parts.rms_norm(b.at("ln2_post"), wrote, spec.norm_eps)
        if own:
            x = b.block("resid_mlp", ops.add, [x, wrote])  # [n_tokens, d_model]
            wrote = of_own(b, x, own[layer])  # [n_tokens, d_model]
        x = b.block("resid_unscaled", ops.add, [x, wrote])  # [n_tokens, d_model]
        stream = b.block("resid_post", ops.stretch, x, b.weight("layer_scalar", ""))
    x = g.block("resid_final", ops.add, [stream])  # [n_tokens, d_model]
    x = parts.rms_norm(g.at("ln_final"), x, spec.norm_eps)  # [n_tokens, d_model]
    if spec.gives == "sentence":
        pool(g, x, present or padding(g, len(ids)))
    else:
        parts.unembed(g, x, W_E, spec.logit_cap)


def with_experts(b: Forward, x: Block, read: Block) -> Block:
    """The sum of the outputs of the MLP, which reads the normed stream, and of the chosen experts,
    which norm the stream x otherwise: [n_tokens, d_model]."""
    spec, m = b.spec_as(LayeredSpec), b.at("mlp")
    share, switch = shares(m, x), m.input("switch", 1.0)
    seen = parts.rms_norm(m.at("ln_chosen"), x, spec.norm_eps)  # [n_tokens, d_model]
    found = [
        mixtral.expert(m.at(f"e{n}"), seen, "d_expert", share, n, switch)
        for n in range(spec.n_experts)
    ]
    chosen, s = parts.sum_of(b, "mlp.chosen", found), m.at("shared")  # [n_tokens, d_model]
    always = s.input("share", np.ones((x.shape[0], 1)), ("token", ""))
    post, W_out, result = mixtral.expert(s, read, "d_mlp", always, 0, switch)
    result = result or s.block("result", ops.linear, post, W_out)  # [n_tokens, d_model]
    both = ((result, "ln_shared_post"), (chosen, "ln_chosen_post"))
    normed = [parts.rms_norm(m.at(ln), wrote, spec.norm_eps) for wrote, ln in both]
    return b.block("mlp_out", ops.add, normed)


def shares(m: Forward, x: Block) -> Block:
    """The share of each expert at each token, times a number of the expert: [n_tokens,
    n_experts]."""
    seen = parts.rms_norm(m.at("ln_router"), x, m.spec.norm_eps)  # [n_tokens, d_model]
    seen = parts.times(m, "routed", seen, "routed", m.spec.d_model**-0.5)
    share = mixtral.shares(m, seen)
    return m.block("router.scaled_share", ops.affine, share, m.weight("expert_scale", "n_experts"))


def embedded(g: Forward, ids: Sequence[int]) -> tuple[Block, Block]:
    """The embedding, and the token vectors, times the root of d_model: [n_tokens, d_model]."""
    W_E, word = parts.embed(g, ids, "embed.word")
    return W_E, parts.times(g, "embed", word, "embed", sqrt(g.spec.d_model), "sqrt_d_model")


def of_layer(g: Forward, layer: int) -> Forward:
    """A layer's part of the graph, with its own sizes."""
    b, spec = g.at(f"blocks.{layer}"), g.spec_as(LayeredSpec)
    b.spec = b.sizes = spec.of_layer(layer)
    return b


def of_layers(g: Forward, x: Block) -> list[Block]:
    """Each layer's own embedding of the tokens, [n_tokens, d_layer]: a row of a table, and a map of
    the usual embedding, normed."""
    spec, gain = g.spec_as(LayeredSpec), g.weight("own.ln.w", "d_layer")
    tokens = g["tokens"]
    if spec.d_vocab_layer < spec.d_vocab:
        tokens = g.block(
            "own.tokens", ops.or_first, tokens, g.input("own.words", spec.d_vocab_layer)
        )
    found = []
    for layer in range(spec.n_layers):
        o = g.at(f"blocks.{layer}.own")
        word = o.block("word", ops.embed, tokens, o.weight("W_E", "vocab_layer", "d_layer"))
        word = parts.times(o, "grown", word, "grown", sqrt(spec.d_layer))  # [n_tokens, d_layer]
        seen = parts.linear(o, "seen", x, "seen", ("d_model", "d_layer"), bias=False)
        seen = parts.times(o, "shrunk", seen, "shrunk", spec.d_model**-0.5)  # [n_tokens, d_layer]
        seen = parts.rms_norm(o.at("ln_seen"), seen, spec.norm_eps, gain)  # [n_tokens, d_layer]
        both = o.block("both", ops.add, [seen, word])  # [n_tokens, d_layer]
        found.append(parts.times(o, "embed", both, "embed", 2**-0.5))
    return found


def of_own(b: Forward, x: Block, own: Block) -> Block:
    """The output of a layer from its own embedding of the tokens: [n_tokens, d_model]."""
    o, axes = b.at("own"), ("d_model", "d_layer")
    gate = parts.linear(o, "own_gate", x, "own_gate", axes, bias=False)  # [n_tokens, d_layer]
    opened = o.block("own_act", getattr(ops, b.spec.activation), gate)  # [n_tokens, d_layer]
    z = o.block("own_gated", ops.gated, opened, own)  # [n_tokens, d_layer]
    wrote = parts.linear(o, "own_out", z, "own_out", axes[::-1], bias=False)  # [n_tokens, d_model]
    return parts.rms_norm(o.at("ln"), wrote, b.spec.norm_eps)


def rotations(g: Forward, n_tokens: int) -> dict[bool, Turn]:
    """Cosines and sines of layers with windows (True), and of those without."""
    spec, found = g.spec_as(LayeredSpec), dict[bool, Turn]()
    for layer, window in enumerate(spec.windows):
        near, own = window is not None, spec.of_layer(layer)
        if near not in found:
            own, name = (own.within_windows, "rotary.local") if near else (own, "rotary")
            found[near] = parts.rotation(g, n_tokens, name, own)
    return found


def attention(
    b: Forward, x: Block, turns: dict[bool, Turn], layer: int, kept: dict[int, KeysAndValues]
) -> Block:
    """The sum of the outputs of all heads, [n_tokens, d_model]; keys and values are `kept` for
    later layers that read them."""
    spec, attn = b.spec_as(LayeredSpec), b.at("attn")
    window, source = spec.window(layer), spec.sources[layer]
    mask, present = Mask(spec.causal, window), None if spec.causal else b["attention_mask"]
    turn = turns[window is not None]
    of_all, gain = parts.of_all_heads(attn), attn.weight("q_norm", "d_head")
    if source == layer:
        kept[layer] = keys_and_values(attn, x, turn, spec.keys_only[layer])
    heads = []
    for n in range(spec.n_heads):
        h = attn.at(f"h{n}")
        q = parts.project(h, "q", x, spec.qkv_bias)  # [n_tokens, d_head]
        q = parts.rms_norm(h.at("q_norm"), q, spec.norm_eps, gain)  # [n_tokens, d_head]
        q = parts.rotate(h, "rot_q", q, turn)  # [n_tokens, d_head]
        k, v = kept[source][n * spec.kv_heads // spec.n_heads]
        heads.append(parts.attend(h, q, k, v, of_all, mask, present=present, n=n))
    return parts.write_heads(b, heads, spec.out_bias)


def keys_and_values(attn: Forward, x: Block, turn: Turn, keys_only: bool) -> KeysAndValues:
    """Keys, normed and rotated, and values, normed without a gain."""
    spec, gain, found = attn.spec_as(LayeredSpec), attn.weight("k_norm", "d_head"), []
    for n in range(spec.kv_heads):
        kv = attn.at(f"kv{n}")
        k = v = parts.project(kv, "k", x, spec.qkv_bias)  # [n_tokens, d_head]
        if not keys_only:
            v = parts.project(kv, "v", x, spec.qkv_bias)  # [n_tokens, d_head]
        k = parts.rms_norm(kv.at("k_norm"), k, spec.norm_eps, gain)  # [n_tokens, d_head]
        v = parts.plain_rms_norm(kv.at("v_norm"), v, spec.norm_eps)  # [n_tokens, d_head]
        found.append((parts.rotate(kv, "rot_k", k, turn), v))
    return found


def read_config(c: Config) -> ModelSpec:
    c.assume(num_hidden_layers=30, num_attention_heads=8, num_key_value_heads=4)
    c.assume(vocab_size=262_144, hidden_size=2304, intermediate_size=9216)
    c.assume(max_position_embeddings=131_072)
    c.refuse("rope_scaling", None, "write it into rope_parameters, for each kind of layer")
    c.ignore("num_experts", "top_k_experts", "moe_intermediate_size", "is_causal")
    if c.look("rope_parameters") is None:
        c = c.otherwise(rope_parameters=ROTARY)
    spec, near = layered(c, every=6)
    spec = of_sentences(
        c, spec, c.get("sliding_window", int, 512), c.get(BOTH_WAYS, str, "") == "all"
    )
    near[-1] = False  # as in the reference, which ignores what the config says here
    heads, shared = own_sizes(c, near)
    wide = rope.of_kind(c, heads[near.index(False)], FULL, 1e6)
    sources = sources_of(c, near, 0)
    double = c.get("use_double_wide_mlp", bool, False)
    if c.get("enable_moe_block", bool, False):
        spec = replace(
            spec,
            n_experts=c.get("num_experts", int),
            n_chosen=c.get("top_k_experts", int),
            d_expert=c.get("moe_intermediate_size", int),
        )
    keys_only = c.get("attention_k_eq_v", bool, False)
    return replace(
        spec,
        **wide.fields,
        local=rope.of_kind(c, c.get(HEAD, int, 256), WINDOWED, 1e4),
        windows=windows(c, near),
        sources=sources,
        d_head=min(heads),
        d_heads=heads,
        n_shared=shared,
        d_mlps=tuple(spec.d_mlp * (2 if double and n != s else 1) for n, s in enumerate(sources)),
        keys_only=tuple(keys_only and not is_near for is_near in near),
        logit_cap=c.optional("final_logit_softcapping", float, None),
    )


def layered(c: Config, every: int) -> tuple[LayeredSpec, list[bool]]:
    """The common fields of the configs of Gemma 3n and 4, and the layers with windows: by
    `layer_types`, or all except every n-th."""
    c = c.otherwise(**{ACT: c.look(ACT) or "gelu_pytorch_tanh"})
    spec = usual(c, 256, theta=1e6, by_kind=True, eps_default=1e-6, act=ACT)
    near = c.windowed(spec.n_layers) or [(n + 1) % every > 0 for n in range(spec.n_layers)]
    own = LayeredSpec.of(
        spec,
        norms="both",
        sqrt_d_head=1.0,
        qk_norm=True,
        embed_scale=sqrt(spec.d_model),
        tied=c.get("tie_word_embeddings", bool, True),
        d_layer=c.get("hidden_size_per_layer_input", int, 256),
        d_vocab_layer=c.get("vocab_size_per_layer_input", int, 262_144),
    )
    return own, near


def windows(c: Config, near: Sequence[bool]) -> tuple[int | None, ...]:
    """The sliding window of each layer; None: it sees all tokens."""
    window = c.get("sliding_window", int, 512)
    return tuple(window if is_near else None for is_near in near)


def sources_of(c: Config, near: Sequence[bool], n_usual: int) -> tuple[int, ...]:
    """The layer whose keys and values each layer reads: its own or, in the last layers, those of
    the last one of its kind before them. Raises InputError if there is none."""
    first = len(near) - c.get("num_kv_shared_layers", int, n_usual)
    last = {kind: n for n, kind in enumerate(near[: max(first, 0)])}
    if not {*near} <= {*last} or first > len(near):
        raise InputError(
            f"{c.path}: num_kv_shared_layers = {len(near) - first} leaves a kind of layer without "
            "keys and values; write a smaller number"
        )
    return tuple(n if n < first else last[kind] for n, kind in enumerate(near))


def own_sizes(c: Config, near: Sequence[bool]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The sizes of each layer's heads, and the numbers of its heads of keys and values."""
    usual = {HEAD: c.get(HEAD, int, 256), SHARED: c.get(SHARED, int)}
    wide: dict[str, Any] = {HEAD: c.get("global_head_dim", int, 512)}
    n_wide = c.optional("num_global_key_value_heads", int, None)
    if n_wide is not None and c.get("attention_k_eq_v", bool, False):
        wide[SHARED] = n_wide
    by_layer = c.get("per_layer_config", dict, {})
    if "per_layer_config" in c.values:
        own = [by_layer.get(str(n), by_layer.get(n, {})) for n in range(len(near))]
        alone = [{k: v for k, v in one.items() if usual.get(k) != v} for one in own]
        wide = alone[near.index(False)]
        if alone != [{} if is_near else wide for is_near in near] or not {*wide} <= {*usual}:
            raise InputError(
                f"{c.path}: per_layer_config may only set {HEAD} and {SHARED}, only of layers "
                "without a window, and to the same values in all of these layers"
            )
    found = [usual if is_near else usual | wide for is_near in near]
    sizes = [Config(c.path, one) for one in found]
    return tuple(s.get(HEAD, int) for s in sizes), tuple(s.get(SHARED, int) for s in sizes)


def pieces(spec: LayeredSpec, own: Callable[[str, str], Pieces] | None = None) -> Pieces:
    """Llama's layout, with norms around each sublayer, and the layers' own embeddings side by
    side. `own` gives further pieces of a layer."""
    yield from outside(WHOLE)
    yield "own.ln.w", Piece("model.per_layer_projection_norm.weight")
    for layer in range(spec.n_layers):
        b, f = f"blocks.{layer}", f"model.layers.{layer}"
        for ours, theirs in BOTH.items():
            yield from norm(f"{b}.{ours}", f"{f}.{theirs}")
        yield from grouped_heads(f"{b}.attn", f"{f}.self_attn", spec.of_layer(layer))
        for which in "qk":
            yield f"{b}.attn.{which}_norm", Piece(f"{f}.self_attn.{which}_norm.weight")
        yield from linear(f"{b}.mlp", f"{f}.mlp", GATED)
        table = "model.embed_tokens_per_layer.weight"
        yield f"{b}.own.W_E", head_of(table, layer, spec.d_layer, 1)
        projection = "model.per_layer_model_projection"
        yield from mapped(f"{b}.own", "seen", projection, layer, spec.d_layer)
        named = (("own_gate", "per_layer_input_gate"), ("own_out", "per_layer_projection"))
        yield from linear(f"{b}.own", f, named)
        yield from norm(f"{b}.own.ln", f"{f}.post_per_layer_input_norm")
        yield f"{b}.layer_scalar", Piece(f"{f}.layer_scalar")
        yield from of_experts(f"{b}.mlp", f, spec)
        yield from own(b, f) if own else ()


def of_experts(m: str, f: str, spec: LayeredSpec) -> Pieces:
    """The pieces of a layer's experts, of their router, and of the MLP beside them."""
    yield from linear(f"{m}.shared", f"{f}.mlp", GATED)
    yield from stacked(m, *mixtral.newer(f), *spec.sizes_of_experts, spec.n_experts)
    yield f"{m}.W_router", Piece(f"{f}.router.proj.weight", transposed=True)
    yield f"{m}.ln_router.w", Piece(f"{f}.router.scale")
    yield f"{m}.expert_scale", Piece(f"{f}.router.per_expert_scale")
    yield from norm(f"{m}.ln_chosen", f"{f}.pre_feedforward_layernorm_2")
    yield from norm(f"{m}.ln_shared_post", f"{f}.post_feedforward_layernorm_1")
    yield from norm(f"{m}.ln_chosen_post", f"{f}.post_feedforward_layernorm_2")
