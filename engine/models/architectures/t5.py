"""T5 (Raffel et al. 2020, section 2.1), Flan-T5, mT5 (Xue et al. 2021) and umT5 (Chung et al.
2023): the two stacks of Vaswani et al. 2017, fig. 1.

RMSNorm comes before each sublayer; instead of positions, a bias of scores by distance; scores are
divided by no root. In umT5 each layer has its own biases. `two_stacks` has what BART has, too.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cellformer.engine.cells.access import EVERYTHING, Mask
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.errors import InputError
from cellformer.engine.cells.name import ENCODER
from cellformer.engine.models import distance, ops, parts, two_stacks
from cellformer.engine.models.distance import Buckets
from cellformer.engine.models.foreign import (
    ACTIVATIONS,
    Config,
    Piece,
    Pieces,
    grouped_heads,
    linear,
)
from cellformer.engine.models.forward import SOURCE, Forward
from cellformer.engine.models.spec import Activation, ModelSpec, TwoStackSpec

MODEL_TYPES = ("t5", "mt5", "umt5")
EPS = "layer_norm_epsilon"  # the config's name for what keeps its norms' divisors above zero
UNREAD = ("*.embed_tokens.weight", "*.EncDecAttention.relative_attention_bias.weight")


@dataclass(frozen=True, repr=False)
class T5Spec(TwoStackSpec):
    """TwoStackSpec with options of T5's."""

    n_buckets: int = 32  # of distances
    farthest: int = 128  # tokens; all distances from here on share a bucket
    gated: bool = False  # the MLP has a gate, as in version 1.1
    scales_output: bool = True  # the last vectors are divided by the root of d_model
    biases_by_layer: bool = False  # each layer has its own numbers of the buckets


def forward(g: Forward, ids: Sequence[int]) -> None:
    """One forward pass over the decoder's token ids, after the source sentence of the graph."""
    W_E, x = parts.embed(g, ids)  # [n_tokens, d_model]
    source, present = encoder(g, W_E)  # [n_source, d_model], [n_source, 1]
    decoder(g, x, source, present, W_E)


def encoder(g: Forward, W_E: Block) -> tuple[Block, Block]:
    """The first stack: vectors of the source sentence's tokens, and the marks of present tokens."""
    ids, g = g.source, two_stacks.of_encoder(g)
    spec = g.spec_as(T5Spec)
    tokens, present = two_stacks.source(g, ids)  # each [n_source, 1]
    buckets = Buckets(spec.n_buckets, spec.farthest, both_ways=True)
    biases = biases_of(g, len(ids), SOURCE, buckets, EVERYTHING)
    stream = [g.block("embed", ops.embed, tokens, W_E)]  # [n_source, d_model]
    x = two_stacks.layers(g, stream, parts.rms_norm, mlp, present, biases=biases)
    return parts.rms_norm(g.at("ln_final"), x, spec.norm_eps), present


def decoder(g: Forward, x: Block, source: Block, present: Block, W_E: Block) -> None:
    """The second stack, over the embedded tokens x [n_tokens, d_model], and the output."""
    spec = g.spec_as(T5Spec)
    buckets = Buckets(spec.n_buckets, spec.farthest, both_ways=False)
    biases = biases_of(g, x.shape[0], "token", buckets, Mask())
    x = two_stacks.layers(g, [x], parts.rms_norm, mlp, present, source, biases)
    x = parts.rms_norm(g.at("ln_final"), x, spec.norm_eps)  # [n_tokens, d_model]
    scale = spec.d_model**-0.5 if spec.scales_output else 1.0
    parts.unembed(g, parts.times(g, "logits.read", x, "logits", scale), W_E)


def biases_of(
    g: Forward, n_tokens: int, axis: str, buckets: Buckets, mask: Mask
) -> Callable[[Forward], Sequence[Block]]:
    """The biases of a layer's scores, as a function of its part of the graph."""
    if g.spec_as(T5Spec).biases_by_layer:
        bucket = distance.bucket(g, n_tokens, axis, buckets)  # [n_tokens, n_tokens]
        return lambda b: distance.of_heads(b.at("attn"), bucket, mask)
    shared = distance.biases(g, n_tokens, axis, buckets, mask)  # [n_tokens, n_tokens] each
    return lambda _: shared


def mlp(b: Forward, x: Block) -> Block:
    """The MLP, with a gate in version 1.1: [n_tokens, d_model]."""
    return parts.mlp(b, x, bias=False, gated=b.spec_as(T5Spec).gated)


def read_config(c: Config) -> ModelSpec:
    kind = c.get("model_type", str)
    if kind != "t5":
        c.assume(num_layers=8, num_heads=6, d_ff=1024, vocab_size=250112)
        c.assume(feed_forward_proj="gated-gelu", decoder_start_token_id=0)
    c.assume(num_layers=6, num_heads=8, d_model=512, d_kv=64, d_ff=2048, vocab_size=32128)
    c.refuse("is_encoder_decoder", True, "both stacks are read")
    c.ignore("initializer_factor", "dense_act_fn", "is_gated_act", "classifier_dropout")
    gated, activation = mlp_of(c)
    n_layers, n_heads = c.get("num_layers", int), c.get("num_heads", int)
    longest = c.get("n_positions", int, 512)  # of the sentences that it was trained with
    tied = c.get("tie_word_embeddings", bool, True)
    scales = c.get("scale_decoder_outputs", bool, tied) and kind != "mt5"
    tied = tied or kind != "t5"  # as long as the tensors are equal
    c.values["scale_decoder_outputs"] = scales  # where ties turn out to be none, it stays
    return T5Spec(
        d_vocab=c.get("vocab_size", int),
        d_model=c.get("d_model", int),
        n_ctx=longest,
        n_layers=c.optional("num_decoder_layers", int, None) or n_layers,
        n_heads=n_heads,
        d_head=c.get("d_kv", int),
        d_mlp=c.get("d_ff", int),
        activation=activation,
        norm="rms",
        final_norm=True,
        norm_eps=c.get(EPS, float, 1e-6),
        tied=tied,
        sqrt_d_head=1.0,
        start=c.get("decoder_start_token_id", int, c.look("pad_token_id") or 0),
        n_source=longest,
        n_encoder_layers=n_layers,
        n_encoder_heads=n_heads,
        d_encoder_mlp=c.get("d_ff", int),
        n_buckets=c.get("relative_attention_num_buckets", int, 32),
        farthest=c.get("relative_attention_max_distance", int, 128),
        gated=gated,
        scales_output=scales,
        biases_by_layer=kind == "umt5",
    )


def mlp_of(c: Config) -> tuple[bool, Activation]:
    """Whether the MLP has a gate, and its activation function, by its name here."""
    value = c.get("feed_forward_proj", str, "relu")
    gate, _, name = value.rpartition("-")
    name = "gelu_new" if value == "gated-gelu" else name
    if gate not in ("", "gated") or name not in ACTIVATIONS:
        raise InputError(
            f"{c.path}: feed_forward_proj = {value!r} is not supported; use relu or gated-gelu"
        )
    return gate == "gated", ACTIVATIONS[name]


def pieces(spec: T5Spec) -> Pieces:
    """Matrices are [out, in]; a layer's sublayers are numbered."""
    yield "W_E", Piece("shared.weight")
    yield "W_U", Piece("lm_head.weight", transposed=True)
    for ours, theirs, own in ((f"{ENCODER}.", "encoder", spec.encoder), ("", "decoder", spec)):
        table = f"{theirs}.block.{{}}.layer.0.SelfAttention.relative_attention_bias.weight"
        yield f"{ours}distance.W", Piece(table.format(0))
        yield f"{ours}ln_final.w", Piece(f"{theirs}.final_layer_norm.weight")
        for layer in range(own.n_layers):
            b, f = f"{ours}blocks.{layer}", f"{theirs}.block.{layer}.layer"
            yield f"{b}.attn.distance.W", Piece(table.format(layer))
            sublayers = [("attn", "ln1", "SelfAttention"), ("mlp", "ln2", "DenseReluDense")]
            if own is spec:
                sublayers.insert(1, ("cross", "ln_cross", "EncDecAttention"))
            for n, (part, ln, name) in enumerate(sublayers):
                yield f"{b}.{ln}.w", Piece(f"{f}.{n}.layer_norm.weight")
                yield from of_sublayer(f"{b}.{part}", f"{f}.{n}.{name}", own)


def of_sublayer(ours: str, theirs: str, spec: T5Spec) -> Pieces:
    """The weights of attention, or of an MLP."""
    if ours.endswith("mlp"):
        names = {"gate": "wi_0", "in": "wi_1"} if spec.gated else {"in": "wi"}
        yield from linear(ours, theirs, (names | {"out": "wo"}).items())
    else:
        yield from grouped_heads(ours, theirs, spec, "o", "h", "qkv")
