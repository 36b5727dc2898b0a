"""Gemma 4 (Google 2026): Gemma 3's norms and windows. Every layer has an embedding of its own for
each token, values are normed, and the last layers read keys and values of earlier ones.

Layers without windows may have wider heads, and values may be the keys before their norm. A number
of the layer multiplies what it gives.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any, Self

from cellformer.engine.cells.access import Mask
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.errors import InputError
from cellformer.engine.models import ops, parts, rope
from cellformer.engine.models.architectures.gemma import BOTH
from cellformer.engine.models.architectures.llama import WHOLE, LlamaSpec, Turn, usual
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
)
from cellformer.engine.models.forward import Forward
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
class LayeredSpec(LlamaSpec):
    """LlamaSpec with layers of different sizes, and with embeddings of their own."""

    d_layer: int = 0  # of a layer's own embedding of a token; 0: none
    d_vocab_layer: int = 0  # rows of its table
    sources: tuple[int, ...] = ()  # the layer whose keys and values each layer reads
    d_heads: tuple[int, ...] = ()
    n_shared: tuple[int, ...] = ()  # heads of keys and values
    d_mlps: tuple[int, ...] = ()
    keys_only: tuple[bool, ...] = ()  # the layers whose values are their keys, otherwise normed

    def of_layer(self, n: int) -> Self:
        """The spec with a layer's own sizes."""
        d_head, n_kv_heads = self.d_heads[n], self.n_shared[n]
        return replace(self, d_head=d_head, n_kv_heads=n_kv_heads, d_mlp=self.d_mlps[n])


def forward(g: Forward, ids: Sequence[int]) -> None:
    spec = g.spec_as(LayeredSpec)
    W_E, stream = embedded(g, ids)  # stream: [n_tokens, d_model]
    own = of_layers(g, stream) if spec.d_layer else []  # each [n_tokens, d_layer]
    turns, kept = rotations(g, len(ids)), dict[int, KeysAndValues]()
    for layer in range(spec.n_layers):
        b = of_layer(g, layer)
        x = b.block("resid_pre", ops.add, [stream])  # [n_tokens, d_model]
        read = parts.rms_norm(b.at("ln1"), x, spec.norm_eps)  # [n_tokens, d_model]
        wrote = attention(b, read, turns, layer, kept)  # [n_tokens, d_model]
        wrote = parts.rms_norm(b.at("ln1_post"), wrote, spec.norm_eps)
        x = b.block("resid_mid", ops.add, [x, wrote])  # [n_tokens, d_model]
        read = parts.rms_norm(b.at("ln2"), x, spec.norm_eps)  # [n_tokens, d_model]
        wrote = parts.mlp(b, read, bias=False, gated=True)  # [n_tokens, d_model]
        wrote = parts.rms_norm(b.at("ln2_post"), wrote, spec.norm_eps)
        if own:
            x = b.block("resid_mlp", ops.add, [x, wrote])  # [n_tokens, d_model]
            wrote = of_own(b, x, own[layer])  # [n_tokens, d_model]
        x = b.block("resid_unscaled", ops.add, [x, wrote])  # [n_tokens, d_model]
        stream = b.block("resid_post", ops.stretch, x, b.weight("layer_scalar", ""))
    x = g.block("resid_final", ops.add, [stream])  # [n_tokens, d_model]
    x = parts.rms_norm(g.at("ln_final"), x, spec.norm_eps)  # [n_tokens, d_model]
    parts.unembed(g, x, W_E, spec.logit_cap)


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
        heads.append(parts.attend(h, q, k, v, of_all, Mask(window=window), n=n))
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
    c.refuse("use_bidirectional_attention", "vision", "text tokens attend only to earlier ones")
    c.refuse("enable_moe_block", False, "cellformer does not read the experts of this model")
    c.ignore("num_experts", "top_k_experts", "moe_intermediate_size")
    if c.look("rope_parameters") is None:
        c = c.otherwise(rope_parameters=ROTARY)
    spec, near = layered(c, every=6)
    near[-1] = False  # as in the reference, which ignores what the config says here
    heads, shared = own_sizes(c, near)
    wide = rope.of_kind(c, heads[near.index(False)], FULL, 1e6)
    sources = sources_of(c, near, 0)
    double = c.get("use_double_wide_mlp", bool, False)
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
                f"{c.path}: per_layer_config may give layers without windows {HEAD} and {SHARED}, "
                "the same for all"
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
        yield from own(b, f) if own else ()
