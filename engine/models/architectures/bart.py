"""BART (Lewis et al. 2020): the two stacks of Vaswani et al. 2017 with learned positions and a norm
after the embedding. In mBART (Liu et al. 2020) and Blenderbot (Roller et al. 2021) norms come
before sublayers, and after the last layer.

Marian, Pegasus and M2M-100, in `bart_kin.py`, have sinusoidal positions instead.
"""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any

import numpy as np

from cellformer.engine.cells.block import Block
from cellformer.engine.cells.name import ENCODER
from cellformer.engine.models import ops, parts, two_stacks
from cellformer.engine.models.architectures.bert import mlp
from cellformer.engine.models.foreign import Config, Piece, Pieces, grouped_heads, linear, norm
from cellformer.engine.models.forward import SOURCE, Forward
from cellformer.engine.models.spec import ModelSpec, TwoStackSpec

MODEL_TYPES = ("bart", "mbart", "blenderbot")
EPS = ""  # its norms have torch's, 1e-5
LOGITS_BIAS = "final_logits_bias"
UNREAD = ("model.shared.weight", "*.embed_tokens.weight", "*coder.version")  # one table is read
START = {"bart": 2, "mbart": 0, "blenderbot": 1}  # the default of decoder_start_token_id
# Fields of their files that the reference does not read, as it computes
SWITCHES: dict[str, dict[str, bool]] = {
    "bart": {"normalize_before": False, "normalize_embedding": True},
    "mbart": {"normalize_before": True, "normalize_embedding": True},
    "blenderbot": {"normalize_before": True, "normalize_embedding": False},
}


@dataclass(frozen=True, repr=False)
class BartSpec(TwoStackSpec):
    """TwoStackSpec with options of BART's."""

    first_place: int = 0  # rows of the tables of positions that are before the first token's
    to_slowest: bool = False  # sinusoidal positions go down to a frequency of 1 / 10000; else near
    scales_words: bool = False  # words' vectors are multiplied by the root of d_model
    logits_bias: bool = True  # the logits have a bias

    @property
    def d_place(self) -> int:
        """The number of rows of W_pos."""
        return self.n_ctx + self.first_place


def forward(g: Forward, ids: Sequence[int]) -> None:
    """One forward pass over the decoder's token ids, after the source sentence of the graph."""
    spec = g.spec_as(BartSpec)
    W_E, words = parts.embed(g, ids, word(spec))  # [n_tokens, d_model]
    source, present = encoder(g, W_E)  # [n_source, d_model], [n_source, 1]
    x = decoder(g, words, source, present)  # [n_tokens, d_model]
    parts.unembed(g, x, W_E, bias=spec.logits_bias)


def encoder(g: Forward, W_E: Block) -> tuple[Block, Block]:
    """The first stack: vectors of the source sentence's tokens, and the marks of present tokens."""
    ids, g = g.source, two_stacks.of_encoder(g)
    spec = g.spec_as(BartSpec)
    tokens, present = two_stacks.source(g, ids)  # each [n_source, 1]
    if not spec.tied or spec.d_vocab_source:
        W_E = g.weight("W_E", "vocab_source" if spec.d_vocab_source else "vocab", "d_model")
    stream = embed(g, g.block(word(spec), ops.embed, tokens, W_E), SOURCE)  # [n_source, d_model]
    x = two_stacks.layers(g, stream, parts.layer_norm, mlp, present)  # [n_source, d_model]
    return final(g, x), present


def decoder(g: Forward, words: Block, source: Block, present: Block) -> Block:
    """The second stack, over the tokens' vectors `words`: [n_tokens, d_model]."""
    stream = embed(g, words, "token")  # [n_tokens, d_model]
    return final(g, two_stacks.layers(g, stream, parts.layer_norm, mlp, present, source))


def word(spec: BartSpec) -> str:
    """The name of the block of words' vectors as the embedding has them."""
    return "embed.word" if spec.scales_words else "embed"


def embed(g: Forward, words: Block, axis: str) -> list[Block]:
    """The start of the stream, [tokens, d_model] each: scaled words plus positions, or the norm
    of their sum."""
    spec = g.spec_as(BartSpec)
    if spec.scales_words:
        length = g.input("embed.sqrt_d_model", sqrt(spec.d_model))
        words = g.block("embed", ops.stretch, words, length)  # [tokens, d_model]
    places = parts.positions(g, words.shape[0], spec.first_place, axis)  # [tokens, 1]
    if spec.position == "learned":
        table = g.weight("W_pos", "place", "d_model")
    else:
        n_places = spec.first_place + words.shape[0]
        table = g.input(
            "clock", clock(n_places, spec.d_model, spec.to_slowest), ("n_ctx", "d_model")
        )
    stream = [words, g.block("pos_embed", ops.embed, places, table)]
    if not spec.embed_norm:
        return stream
    x = g.block("embed_sum", ops.add, stream)  # [tokens, d_model]
    return [parts.layer_norm(g.at("ln_embed"), x, spec.norm_eps)]


def clock(n_places: int, d_model: int, to_slowest: bool) -> np.ndarray:
    """Sinusoidal positions, [n_places, d_model]: the first half of features are sines of pos /
    10000^(2i / d_model), the second half cosines. Where they go down to the slowest, a feature
    without a partner is 0; else it is a sine."""
    half, odd = d_model // 2, d_model % 2
    steps = max(half - 1, 1) if to_slowest else d_model / 2
    i = np.arange(half + odd)
    angle = np.arange(n_places)[:, None] / 10000 ** (i / steps)
    if to_slowest:
        return np.hstack(
            [np.sin(angle[:, :half]), np.cos(angle[:, :half]), np.zeros((n_places, odd))]
        )
    return np.hstack([np.sin(angle), np.cos(angle[:, :half])])


def final(g: Forward, x: Block) -> Block:
    """The output of a stack: the stream after its last layer, normed if the model has a norm
    there."""
    return parts.layer_norm(g.at("ln_final"), x, g.spec.norm_eps) if g.spec.final_norm else x


def read_config(c: Config) -> ModelSpec:
    """BART's config, or a relative's."""
    kind = c.get("model_type", str, "bart")
    c.assume(decoder_start_token_id=START[kind])
    if kind == "blenderbot":
        c.assume(vocab_size=8008, max_position_embeddings=128, d_model=2560)
        c.assume(encoder_layers=2, decoder_layers=24)
        c.assume(encoder_ffn_dim=10240, decoder_ffn_dim=10240)
        c.assume(encoder_attention_heads=32, decoder_attention_heads=32)
    as_computed(c, SWITCHES[kind])
    return BartSpec(
        position="learned",
        first_place=0 if kind == "blenderbot" else 2,
        norm_after=kind == "bart",
        embed_norm=kind != "blenderbot",
        final_norm=kind != "bart",
        **of_kin(c),
    )


def of_kin(c: Config) -> dict[str, Any]:
    """BartSpec fields that BART and its relatives read from their configs in the same way."""
    c.assume(vocab_size=50265, max_position_embeddings=1024, d_model=1024)
    c.assume(encoder_layers=12, encoder_ffn_dim=4096, encoder_attention_heads=16)
    c.assume(decoder_layers=12, decoder_ffn_dim=4096, decoder_attention_heads=16)
    c.assume(activation_function="gelu")
    c.refuse("is_encoder_decoder", True, "both stacks are read")
    c.refuse("is_decoder", False, "both stacks are read")
    c.ignore("encoder_layerdrop", "decoder_layerdrop", "init_std")  # of training
    c.ignore("num_hidden_layers", "extra_pos_embeddings", "save_step")  # of older files
    c.ignore("force_bos_token_to_be_generated", "do_blenderbot_90_layernorm")
    c.refuse("layernorm_variant", "prelayernorm", "only ‘prelayernorm’ is supported")
    c.divide("d_model", "encoder_attention_heads")
    n_ctx = c.get("max_position_embeddings", int)
    return {
        "d_vocab": c.get("vocab_size", int),
        "d_model": c.get("d_model", int),
        "n_ctx": n_ctx,
        "n_layers": c.get("decoder_layers", int),
        "n_heads": c.get("decoder_attention_heads", int),
        "d_head": c.divide("d_model", "decoder_attention_heads"),
        "d_mlp": c.get("decoder_ffn_dim", int),
        "activation": c.activation("activation_function"),
        "norm": "layer",
        "tied": c.get("tie_word_embeddings", bool, True),
        "bias": True,
        "start": c.get("decoder_start_token_id", int, c.look("bos_token_id") or 0),
        "n_source": n_ctx,
        "n_encoder_layers": c.get("encoder_layers", int),
        "n_encoder_heads": c.get("encoder_attention_heads", int),
        "d_encoder_mlp": c.get("encoder_ffn_dim", int),
        "scales_words": c.get("scale_embedding", bool, False),
    }


def as_computed(c: Config, switches: Mapping[str, bool]) -> None:
    """Raise InputError if a field of an older file asks for something else than `switches`. The
    reference ignores such fields."""
    last = {"add_final_layer_norm": switches["normalize_before"], "add_bias_logits": False}
    for name, value in {"static_position_embeddings": False, **last, **switches}.items():
        c.refuse(
            name,
            value,
            f"the library transformers computes as if this value were {str(value).lower()}",
        )


def as_held(spec: BartSpec, names: Container[str]) -> BartSpec:
    """The spec of a checkpoint with tensors of these names: it may lack the bias of the logits."""
    return replace(spec, logits_bias=spec.logits_bias and LOGITS_BIAS in names)


def pieces(spec: BartSpec) -> Pieces:
    """Matrices are [out, in]; both stacks and the unembedding share one table of words, or each has
    its own."""
    names: tuple[str, ...]
    shared, own = "model.shared.weight", "model.{}.embed_tokens.weight"
    if spec.tied and not spec.d_vocab_source:  # the first of its names that a file has
        names = (shared, own.format("decoder"), own.format("encoder"), "lm_head.weight", shared)
        yield from (("W_E", Piece(name)) for name in names)
    else:
        either = () if spec.d_vocab_source else (shared,)
        names = own.format("decoder"), *(("lm_head.weight",) if spec.tied else ()), *either
        yield from (("W_E", Piece(name)) for name in names)
        words = f"{ENCODER}.W_E"
        yield from ((words, Piece(name)) for name in (own.format("encoder"), *either))
    yield "W_U", Piece("lm_head.weight", transposed=True)
    yield "b_U", Piece(LOGITS_BIAS, row=True)
    stacks = (f"{ENCODER}.", "model.encoder", spec.encoder), ("", "model.decoder", spec)
    for ours, theirs, part in stacks:
        yield f"{ours}W_pos", Piece(f"{theirs}.embed_positions.weight")
        yield from norm(f"{ours}ln_embed", f"{theirs}.layernorm_embedding")
        yield from norm(f"{ours}ln_final", f"{theirs}.layer_norm")
        for layer in range(part.n_layers):
            yield from of_layer(f"{ours}blocks.{layer}", f"{theirs}.layers.{layer}", part)


def of_layer(b: str, f: str, spec: ModelSpec) -> Pieces:
    """The weights of a layer; cross attention's are the decoder's."""
    for part, ln, name in (("attn", "ln1", "self_attn"), ("cross", "ln_cross", "encoder_attn")):
        yield from norm(f"{b}.{ln}", f"{f}.{name}_layer_norm")
        yield from grouped_heads(f"{b}.{part}", f"{f}.{name}", spec, out="out_proj", keys="h")
    yield from norm(f"{b}.ln2", f"{f}.final_layer_norm")
    yield from linear(f"{b}.mlp", f, (("in", "fc1"), ("out", "fc2")))
