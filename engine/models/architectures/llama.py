"""Llama (Touvron et al. 2023) and its relatives Mistral, Qwen2, Qwen3, SmolLM3, Granite: RMSNorm,
rotary positions, a gated MLP, grouped keys and values (Ainslie et al. 2023)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any, Literal, Self

import numpy as np

from cellformer.engine.cells.access import Mask
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.errors import InputError
from cellformer.engine.models import ops, parts, rope, sentence_modules
from cellformer.engine.models.architectures.bart import clock
from cellformer.engine.models.foreign import (
    FULL,
    GATED,
    WINDOWED,
    Config,
    Piece,
    Pieces,
    grouped_heads,
    linear,
    norm,
    outside,
)
from cellformer.engine.models.forward import Forward
from cellformer.engine.models.pooling import pool
from cellformer.engine.models.spec import ModelSpec

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
WHOLE = {"W_E": "model.embed_tokens", "W_U": "lm_head", "ln_final": "model.norm"}
BEFORE = {"ln1": "input_layernorm", "ln2": "post_attention_layernorm"}  # norms: ours -> theirs
AFTER = {"ln1_post": "post_attention_layernorm", "ln2_post": "post_feedforward_layernorm"}


Turn = tuple[Block, Block]  # cosines and sines, each [n_tokens, d_head]
Attention = Callable[[Forward, Block, Turn | None, int | None], Block]
Part = Callable[[Forward, Block], Block]
Ready = Callable[[Forward, str, Block], Block]  # of a head, "q" or "k", and its queries or keys
Norms = Literal["before", "after", "both"]

# Kinds of sublayers. WRITES is what an architecture has after attention: an MLP, or experts.
ATTENDS, REMEMBERS, CONVOLVES, STATES = "attention", "memory", "convolution", "states"
WRITES, MLP = "write", "mlp"
USUAL = (ATTENDS, WRITES)  # the sublayers of a layer
PATHS = {ATTENDS: "attn", REMEMBERS: "attn", CONVOLVES: "conv", STATES: "ssm"}  # of blocks


@dataclass(frozen=True, repr=False)
class LlamaSpec(ModelSpec):
    """ModelSpec with fields that only some of Llama's relatives have."""

    still: tuple[int, ...] = ()  # layers whose queries and keys do not turn (SmolLM3)
    embed_scale: float = 1.0  # Granite multiplies the embedding,
    write_scale: float = 1.0  # what attention and MLP write into the stream,
    logit_scale: float = 1.0  # and the logits
    norms: Norms = "before"  # of what a sublayer reads; after: of what it writes
    bound: float | None = None  # queries, keys and values stay within it (OLMo)
    sinks: bool = False  # each head has a score that belongs to no token (gpt-oss)
    gated: bool = True  # the MLP has a gate
    layers: tuple[tuple[str, ...], ...] = ()  # the sublayers of each layer; (): the usual ones
    word_bias: bool = False  # of the words' scores
    local: rope.Rotary | None = None  # how positions turn within windows; None: as elsewhere
    score_cap: float | None = None  # what scores stay within (Gemma 2); None: any score
    logit_cap: float | None = None
    first_place: int = 0  # rows of the table of positions that are before the first token's
    own_norms: bool = False  # the MLP, beside attention in parallel, has a norm of its own
    adds_to_normed: bool = False  # sublayers add to what they read, the normalized stream (BLOOM)

    def sublayers(self, layer: int) -> tuple[str, ...]:
        """The kinds of a layer's sublayers, in their order: one or two."""
        return self.layers[layer] if self.layers else USUAL

    @property
    def d_place(self) -> int:
        """The number of rows of the table of positions."""
        return self.n_ctx + self.first_place

    @property
    def keys(self) -> str:
        """The name of the heads of keys and values: h if none is shared."""
        return "h" if self.n_kv_heads is None else "kv"

    @property
    def within_windows(self) -> Self:
        """This spec, with the rotary positions of sliding-window layers."""
        assert self.local
        return replace(self, **self.local.fields)


def forward(g: Forward, ids: Sequence[int]) -> None:
    """One forward pass over the token ids."""
    run(g, ids)


def run(
    g: Forward,
    ids: Sequence[int],
    norm: parts.Norm = parts.rms_norm,
    attend: Attention | None = None,
    **parts_of: Part,
) -> None:
    """The forward pass of Llama and its relatives. They differ in their norms, their attention,
    and other parts, by the kinds of sublayers that they are: an MLP, experts, states."""
    spec, attend = g.spec_as(LlamaSpec), attend or attention
    others = {WRITES: mlp, MLP: mlp} | parts_of
    W_E, stream = embedded(g, ids, norm)
    present = None if spec.causal else padding(g, len(ids))  # which tokens are present
    turn = near = None
    if spec.position == "rotary":
        turn = near = parts.rotation(g, len(ids))  # cosines and sines, each [n_tokens, d_head]
    if spec.local:
        near = parts.rotation(g, len(ids), "rotary.local", spec.within_windows)

    def wrote_by(layer: int, nth: int, read: Block) -> Block:
        """The output of a layer's nth sublayer, as added to the stream: [n_tokens, d_model]."""
        b, window = g.at(f"blocks.{layer}"), spec.window(layer)
        kind = spec.sublayers(layer)[nth - 1]
        if kind == ATTENDS:
            turns = None if layer in spec.still else near if window else turn
            wrote = attend(b, read, turns, window)
        else:
            wrote = others[kind](b, read)
        if spec.norms != "before":
            wrote = norm(b.at(f"ln{nth}_post"), wrote, spec.norm_eps)
        path = PATHS.get(kind, "mlp")
        return parts.times(b, f"{path}.added", wrote, path, spec.write_scale)

    for layer in range(spec.n_layers):
        b, alone = g.at(f"blocks.{layer}"), len(spec.sublayers(layer)) == 1
        read = x = b.block("resid_pre", ops.add, stream)  # [n_tokens, d_model]
        if spec.norms != "after":
            read = norm(b.at("ln1"), x, spec.norm_eps)  # [n_tokens, d_model]
        before = read if spec.adds_to_normed else x
        total = "resid_post" if alone else "resid_mid"
        mid = b.block(total, ops.add, [before, wrote_by(layer, 1, read)])  # [n_tokens, d_model]
        stream = [mid]
        if alone:
            continue
        if not spec.parallel or spec.own_norms:  # else the MLP reads what attention reads
            read = x if spec.parallel else mid
            if spec.norms != "after":
                read = norm(b.at("ln2"), read, spec.norm_eps)  # [n_tokens, d_model]
        x = read if spec.adds_to_normed else mid
        stream = [b.block("resid_post", ops.add, [x, wrote_by(layer, 2, read)])]

    x = g.block("resid_final", ops.add, stream)  # [n_tokens, d_model]
    x = norm(g.at("ln_final"), x, spec.norm_eps)  # [n_tokens, d_model]
    if spec.gives == "sentence":
        pool(g, x, present or padding(g, len(ids)))
        return
    if spec.gives == "next word":
        x = parts.times(g, "logits.read", x, "logits", spec.logit_scale)  # [n_tokens, d_model]
    parts.unembed(g, x, W_E, spec.logit_cap, spec.word_bias)


def embedded(g: Forward, ids: Sequence[int], norm: parts.Norm) -> tuple[Block, list[Block]]:
    """The embedding, and what begins the stream: vectors of tokens, and of positions if the model
    has a table of them, each [n_tokens, d_model]."""
    spec = g.spec_as(LlamaSpec)
    name = "embed" if spec.embed_scale == 1 else "embed.word"
    W_E, word = parts.embed(g, ids, name)  # word: [n_tokens, d_model]
    factor = "sqrt_d_model" if spec.embed_scale == sqrt(spec.d_model) else "multiplier"
    stream = [parts.times(g, "embed", word, "embed", spec.embed_scale, factor)]
    if spec.embed_norm:
        stream = [norm(g.at("ln_embed"), stream[0], spec.norm_eps)]  # [n_tokens, d_model]
    if spec.position in ("learned", "sinusoidal"):
        places = parts.positions(g, len(ids), spec.first_place)  # [n_tokens, 1]
        if spec.position == "learned":
            table = g.weight("W_pos", "place" if spec.first_place else "n_ctx", "d_model")
        else:
            table = g.input(
                "clock", clock(spec.d_place, spec.d_model, to_slowest=True), ("n_ctx", "d_model")
            )
        stream.append(g.block("pos_embed", ops.embed, places, table))  # [n_tokens, d_model]
    return W_E, stream


def padding(g: Forward, n_tokens: int) -> Block:
    """1 for tokens, 0 for padding: [n_tokens, 1]."""
    return g.input("attention_mask", np.ones((n_tokens, 1)), ("token", ""))


def normed_alike(
    attn: Forward, norm: Callable[[Forward, Block, float, Block], Block] = parts.rms_norm
) -> Ready:
    """The norm of queries and keys; all heads share one for queries, and one for keys."""
    gains = {which: attn.weight(f"{which}_norm", "d_head") for which in "qk"}
    return lambda h, which, x: norm(h.at(f"{which}_norm"), x, h.spec.norm_eps, gains[which])


def normed_by_head(attn: Forward) -> Ready:
    """A LayerNorm of each head's queries and keys, without bias."""
    norm = parts.layer_norm_without_bias
    return lambda h, which, x: norm(h.at(f"{which}_norm"), x, h.spec.norm_eps)


def attention(
    b: Forward,
    x: Block,
    turn: Turn | None,
    window: int | None,
    norm: Callable[[Forward], Ready] = normed_alike,
    norm_last: bool = False,
    places: Block | None = None,
) -> Block:
    """The sum of the outputs of all heads, [n_tokens, d_model]; groups of heads share keys and
    values. Queries and keys are normed, if the model has a `norm` for them, and rotated; with
    `norm_last`, the norm comes second."""
    attn, steps = b.at("attn"), list[Ready]()
    of_all = parts.of_all_heads(attn, b.spec_as(LlamaSpec).score_cap)
    if b.spec.qk_norm:
        steps.append(norm(attn))
    if turn:
        steps.append(lambda h, which, x: parts.rotate(h, f"rot_{which}", x, turn))

    def ready(h: Forward, which: str, x: Block) -> Block:
        for step in steps[::-1] if norm_last else steps:
            x = step(h, which, x)  # [n_tokens, d_head]
        return x

    return of_heads(b, x, of_all, Mask(b.spec.causal, window), ready, places)


def of_heads(
    b: Forward,
    x: Block,
    of_all: parts.OfAllHeads,
    mask: Mask,
    ready: Ready,
    places: Block | None = None,
    opened: Callable[[Forward], Block] | None = None,
) -> Block:
    """Attention, [n_tokens, d_model]. `ready(h, which, x)` norms and rotates the queries ("q")
    and keys ("k") of head h. `places` and the result of `opened(h)` are as in `parts.attend`."""
    spec, attn = b.spec_as(LlamaSpec), b.at("attn")
    bound = None if spec.bound is None else attn.input("bound", spec.bound)
    present = None if spec.causal else b["attention_mask"]  # [n_tokens, 1]
    keys, values = [], []
    for n in range(spec.kv_heads):
        kv = attn.at(f"{spec.keys}{n}")
        k = parts.project(kv, "k", x, spec.qkv_bias, bound)
        v = parts.project(kv, "v", x, spec.qkv_bias, bound)
        keys.append(ready(kv, "k", k))  # [n_tokens, d_head]
        values.append(v)  # [n_tokens, d_head]
    heads = []
    for n in range(spec.n_heads):
        h = attn.at(f"h{n}")
        q = ready(h, "q", parts.project(h, "q", x, spec.qkv_bias, bound))  # [n_tokens, d_head]
        shared = n * spec.kv_heads // spec.n_heads
        k, v = keys[shared], values[shared]
        sink = h.weight("sink", "") if spec.sinks else None  # [1, 1]
        gate = opened(h) if opened else None  # [n_tokens, d_head]
        score = (of_all, mask, places, present)
        heads.append(parts.attend(h, q, k, v, *score, n=n, sink=sink, opened=gate))
    return parts.write_heads(b, heads, spec.out_bias)


def mlp(b: Forward, x: Block) -> Block:
    """The gated MLP: expand, multiply by the gate, contract: [n_tokens, d_model]."""
    spec = b.spec_as(LlamaSpec)
    return parts.mlp(b, x, spec.mlp_bias, spec.gated)


def usual(
    c: Config,
    d_head: int = 0,
    part: str = "",
    default_part: float = 1.0,
    theta: float = 1e4,
    original: int | None = None,
    by_kind: bool = False,
    bias: str = "attention_bias",
    eps: str = EPS,
    eps_default: float = 1e-5,
    act: str = "hidden_act",
    **own: Any,
) -> LlamaSpec:
    """The common fields of Llama's relatives.

    `d_head` (0: d_model / n_heads), `theta` and so on are an architecture's defaults; `part` as in
    `rope.read`. With `by_kind`, rotary positions are those of layers without windows. `bias`,
    `eps` and `act` are the config's names for biases of attention, the epsilon of norms and the
    activation function; "": none. `own` are other fields of the spec.
    """
    n_layers, n_heads = c.get("num_hidden_layers", int), c.get("num_attention_heads", int)
    d_head = c.get("head_dim", int, d_head) or c.divide("hidden_size", "num_attention_heads")
    if by_kind:
        rotary = rope.of_kind(c, d_head, FULL, theta)
    else:
        rotary = rope.read(c, d_head, "rope_theta", part, default_part, theta, original)
    biased = bool(bias) and c.get(bias, bool, False)
    spec = LlamaSpec(
        d_vocab=c.get("vocab_size", int),
        d_model=c.get("hidden_size", int),
        n_ctx=sentence_modules.longest(c, rotary.n_ctx),
        n_layers=n_layers,
        n_heads=n_heads,
        n_kv_heads=c.get("num_key_value_heads", int, n_heads),
        d_head=d_head,
        d_mlp=c.get("intermediate_size", int),
        activation=c.activation(act, "silu"),
        position="rotary",
        norm="rms",
        final_norm=True,
        norm_eps=c.get(eps, float, eps_default) if eps else 1e-5,
        tied=c.get("tie_word_embeddings", bool, False),
        qkv_bias=biased,
        out_bias=biased,
        d_rotary=rotary.d_rotary if part else None,
        **rotary.fields,
    )
    return replace(spec, **own)


def read_config(c: Config) -> ModelSpec:
    """The config of Llama and its relatives."""
    kind = c.values["model_type"]
    c.assume(**DEFAULTS | (OWN_DEFAULTS.get(kind) or {}))
    smol = kind == "smollm3"
    spec = usual(c, theta=2e6 if smol else 1e4)
    spec = replace(
        spec,
        norm_eps=c.get(EPS, float, 1e-6),
        tied=c.get("tie_word_embeddings", bool, smol),
        qkv_bias=kind == "qwen2" or spec.qkv_bias,
        out_bias=kind != "qwen2" and spec.out_bias,
        mlp_bias=c.get("mlp_bias", bool, False),
        qk_norm=kind == "qwen3",
        windows=windows(c, kind, spec.n_layers),
        still=layers_that_stand_still(c, spec.n_layers) if smol else (),
        **(sentence_modules.readout(c) if c.look(sentence_modules.KEY) else {}),
    )
    return granite(c, spec) if kind == "granite" else spec


def granite(c: Config, spec: LlamaSpec) -> LlamaSpec:
    """A spec with Granite's multipliers."""
    return replace(
        spec,
        sqrt_d_head=1 / c.get("attention_multiplier", float, 1.0),
        embed_scale=c.get("embedding_multiplier", float, 1.0),
        write_scale=c.get("residual_multiplier", float, 1.0),
        logit_scale=1 / c.get("logits_scaling", float, 1.0),
    )


def with_mlps(dense: Iterable[int], n_layers: int) -> tuple[tuple[str, ...], ...]:
    """Layers of attention and experts; some have one MLP in place of experts."""
    dense = set(dense)
    return tuple((ATTENDS, MLP if n in dense else WRITES) for n in range(n_layers))


def alternating(c: Config, n_layers: int, window: int | None, every: int) -> tuple[int | None, ...]:
    """The sliding window of each layer: by `layer_types`, or in all layers except every n-th; 0:
    none."""
    near = c.windowed(n_layers) or [every > 0 < (n + 1) % every for n in range(n_layers)]
    return tuple(window if is_near else None for is_near in near)


def everywhere(c: Config) -> tuple[int, ...]:
    """The sliding window, if there is one, in every layer."""
    window = c.optional("sliding_window", int, None)
    return () if window is None else (window,) * c.get("num_hidden_layers", int)


def without_window(windows: Sequence[int | None]) -> tuple[int, ...]:
    """The layers that see all tokens."""
    return tuple(n for n, window in enumerate(windows) if window is None)


def layers_that_stand_still(c: Config, n_layers: int) -> tuple[int, ...]:
    """SmolLM3's layers without rotary positions: every fourth, unless the config lists them."""
    every = c.get("no_rope_layer_interval", int, 4)
    turns = c.listed("no_rope_layers", int) or [(n + 1) % every != 0 for n in range(n_layers)]
    if len(turns) != n_layers:
        raise InputError(
            f"{c.path}: no_rope_layers lists {len(turns)} layers, but the model has {n_layers}"
        )
    return tuple(n for n in range(n_layers) if not turns[n])


def windows(c: Config, kind: str, n_layers: int) -> tuple[int | None, ...]:
    """The sliding window of each layer: Mistral's in every layer, others' in the layers they
    list."""
    c.ignore("use_sliding_window", "max_window_layers", "layer_types")
    window, listed = c.optional("sliding_window", int, None), c.windowed(n_layers)
    if kind in ("llama", "granite"):
        return ()
    if kind == "mistral":
        return everywhere(c)
    if window is None or not c.get("use_sliding_window", bool, False):
        if any(listed):
            raise InputError(
                f"{c.path}: layer_types has {WINDOWED}, but the config lacks use_sliding_window "
                f"or sliding_window; set both, or write {FULL} for each layer"
            )
        return ()
    if kind == "smollm3":
        near = layers_that_stand_still(c, n_layers)
    else:
        near = tuple(range(c.get("max_window_layers", int, 28), n_layers))
    looking_back = listed or [layer in near for layer in range(n_layers)]
    return tuple(window if is_near else None for is_near in looking_back)


def pieces(spec: ModelSpec, norms: Mapping[str, str] = BEFORE) -> Pieces:
    """Linear weights are [out, in]."""
    yield from around_mlp(spec, norms)
    for layer in range(spec.n_layers):
        yield from linear(f"blocks.{layer}.mlp", f"model.layers.{layer}.mlp", GATED)


def around_mlp(spec: ModelSpec, norms: Mapping[str, str] = BEFORE) -> Pieces:
    """All weights outside MLPs."""
    yield from outside(WHOLE)
    yield from sentence_modules.pieces()
    for layer in range(spec.n_layers):
        b, f = f"blocks.{layer}", f"model.layers.{layer}"
        for ours, theirs in norms.items():
            yield from norm(f"{b}.{ours}", f"{f}.{theirs}")
        yield from grouped_heads(f"{b}.attn", f"{f}.self_attn", spec)
        yield f"{b}.attn.q_norm", Piece(f"{f}.self_attn.q_norm.weight")
        yield f"{b}.attn.k_norm", Piece(f"{f}.self_attn.k_norm.weight")
