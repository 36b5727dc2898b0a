"""ModernBERT (Warner et al. 2024, section 2): an encoder with norms before its sublayers, rotary
positions and GeGLU. Two layers of three see only tokens near their own, and turn by another base.

Texts have at most as many tokens as are near each other, so that no window cuts anything off.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from cellformer.engine.cells.access import Mask
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.errors import InputError
from cellformer.engine.models import ops, parts, rope, sentence_modules
from cellformer.engine.models.architectures import bert
from cellformer.engine.models.architectures.llama import padding
from cellformer.engine.models.foreign import (
    FULL,
    WINDOWED,
    Config,
    Heads,
    Pieces,
    joined_heads,
    layout,
    mapped,
)
from cellformer.engine.models.forward import Forward
from cellformer.engine.models.pooling import of_all_tokens, pool
from cellformer.engine.models.rope import Rotary
from cellformer.engine.models.spec import CLASSES, ModelSpec

MODEL_TYPES = ("modernbert",)
EPS = "norm_eps"  # the config's name for what keeps its norms' divisors above zero
POOLING = {"cls": "first", "mean": "mean"}  # of a text's tokens, before its class
UNREAD = ("head.*", "decoder.*")  # of tasks


@dataclass(frozen=True, repr=False)
class ModernBertSpec(ModelSpec):
    """ModelSpec with ModernBERT's own fields."""

    near: tuple[bool, ...] = ()  # the layers whose tokens see those near them
    near_turn: Rotary | None = None  # rotary positions in these layers
    norm_bias: bool = False
    head_bias: bool = False  # of the dense layer before the scores
    word_bias: bool = True  # of the words' scores


def forward(g: Forward, ids: Sequence[int]) -> None:
    spec = g.spec_as(ModernBertSpec)
    W_E, embed = parts.embed(g, ids)  # embed: [n_tokens, d_model]
    stream = layer_norm(g.at("ln_embed"), embed)  # [n_tokens, d_model]
    present = None if spec.causal else padding(g, len(ids))  # [n_tokens, 1]
    turns = {near: rotation(g, len(ids), near) for near in sorted({*spec.near})}

    for layer in range(spec.n_layers):
        b = g.at(f"blocks.{layer}")
        x = b.block("resid_pre", ops.add, [stream])  # [n_tokens, d_model]
        y = layer_norm(b.at("ln1"), x) if layer else x  # [n_tokens, d_model]
        turn, mask = turns[spec.near[layer]], Mask(spec.causal, spec.window(layer))
        attn_out = bert.attention(b, y, present, turn, mask=mask)  # [n_tokens, d_model]
        x = b.block("resid_mid", ops.add, [x, attn_out])  # [n_tokens, d_model]
        read = layer_norm(b.at("ln2"), x)  # [n_tokens, d_model]
        mlp_out = parts.mlp(b, read, spec.mlp_bias, gated=True)  # [n_tokens, d_model]
        stream = b.block("resid_post", ops.add, [x, mlp_out])  # [n_tokens, d_model]

    x = g.block("resid_final", ops.add, [stream])  # [n_tokens, d_model]
    x = layer_norm(g.at("ln_final"), x)  # [n_tokens, d_model]
    if present and spec.gives == "sentence":
        pool(g, x, present)
    elif spec.gives == "token class":
        parts.rank_classes_of_tokens(g, head(g, x), W_E)
    else:
        of_mean = spec.gives == "class" and spec.pooling == "mean"
        x = (
            of_all_tokens(g.at("pooling"), x, present)
            if present and of_mean
            else parts.looked_at(g, x)
        )
        parts.rank_words(g, head(g, x), W_E, None, spec.gives == "class" or spec.word_bias)


def rotation(g: Forward, n_tokens: int, near: bool) -> tuple[Block, Block]:
    """Cosines and sines for layers whose tokens see all others, or for those whose tokens see
    only near ones."""
    spec = g.spec_as(ModernBertSpec)
    if not (near and spec.near_turn):
        return parts.rotation(g, n_tokens)
    return parts.rotation(g, n_tokens, "rotary.local", replace(spec, **spec.near_turn.fields))


def layer_norm(ln: Forward, x: Block) -> Block:
    """LayerNorm, with a bias if the model has it: [n_tokens, d_model]."""
    return parts.layer_norm(ln, x, ln.spec.norm_eps, ln.spec_as(ModernBertSpec).norm_bias)


def head(g: Forward, x: Block) -> Block:
    """The dense layer, activation function and norm before the scores: [n_tokens or 1, d_model]."""
    spec, h = g.spec_as(ModernBertSpec), g.at("head")
    b = h.weight("b", "d_model") if spec.head_bias else None
    pre = h.block("pre", ops.linear, x, h.weight("W", "d_model", "d_model"), b)
    post = h.block("post", getattr(ops, spec.head_activation), pre)
    return layer_norm(g.at("ln_head"), post)


def usual(c: Config) -> ModernBertSpec:
    """The fields that encoder and decoder share. Missing ones have the values of the base model."""
    c.assume(vocab_size=50368, hidden_size=768, intermediate_size=1152, num_hidden_layers=22)
    c.assume(num_attention_heads=12, max_position_embeddings=8192, norm_eps=1e-5)
    c.ignore("initializer_cutoff_factor", "deterministic_flash_attn", "reference_compile")
    c.ignore("sparse_prediction", "sparse_pred_ignore_index", "repad_logits_with_grad")
    n_layers, every = c.get("num_hidden_layers", int), c.get("global_attn_every_n_layers", int, 3)
    near = c.windowed(n_layers) or [n % every > 0 for n in range(n_layers)]
    d_head = c.divide("hidden_size", "num_attention_heads")
    kinds = FULL, WINDOWED  # an older config scales the positions of both
    wide = rope.of_kind(c, d_head, FULL, 160_000.0, "global_rope_theta", kinds)
    local = rope.of_kind(c, d_head, WINDOWED, 10_000.0, "local_rope_theta", kinds)
    return ModernBertSpec(
        **c.sizes(),
        n_ctx=min(wide.n_ctx, local.n_ctx) if any(near) else wide.n_ctx,
        d_mlp=c.get("intermediate_size", int),
        activation=c.activation("hidden_activation", "gelu"),
        position="rotary",
        norm="layer",
        final_norm=True,
        norm_eps=c.get(EPS, float),
        bias=c.get("attention_bias", bool, False),
        mlp_bias=c.get("mlp_bias", bool, False),
        **wide.fields,
        near=tuple(near),
        near_turn=local,
        norm_bias=c.get("norm_bias", bool, False),
        head_activation=c.activation("classifier_activation", "gelu"),
        head_bias=c.get("classifier_bias", bool, False),
        word_bias=c.get("decoder_bias", bool, True),
    )


def read_config(c: Config) -> ModelSpec:
    """ModernBERT's config."""
    spec = usual(c)
    reach = c.get("local_attention", int, 128) // 2 + 1
    longest = min(spec.n_ctx, reach) if any(spec.near) else spec.n_ctx
    encoder = bert.of_encoders(c, spec.head_activation, spec.head_activation)
    encoder |= {"position": "rotary", "norm_after": False, "bias": spec.bias}
    pooling = c.get("classifier_pooling", str, "cls")
    if pooling not in POOLING:
        raise InputError(f"{c.path}: classifier_pooling {pooling!r} must be ‘cls’ or ‘mean’")
    if encoder["gives"] == "class":
        encoder["pooling"] = POOLING[pooling]
    return replace(spec, n_ctx=sentence_modules.longest(c, longest), **encoder)


joined = partial(joined_heads, joined="Wqkv", out="Wo", keys="h")


def pieces(spec: ModelSpec, heads: Heads = joined, head: str = "head") -> Pieces:
    """ModernBERT's layout: queries, keys and values in one tensor, gate and input in another.
    `head` begins the names of the tensors before the scores."""
    scores = "classifier" if spec.gives in CLASSES else "decoder"
    yield from sentence_modules.pieces()
    yield from layout(
        {
            "W_E": "model.embeddings.tok_embeddings",
            "ln_embed": "model.embeddings.norm",
            "ln_final": "model.final_norm",
            **dict.fromkeys(("head.W", "head.b"), f"{head}.dense"),
            "ln_head": f"{head}.norm",
            **dict.fromkeys(("W_U", "b_U"), scores),
        },
        "model.layers.{}",
        {"ln1": "attn_norm", "ln2": "mlp_norm"},
        heads,
        "attn",
        {"out": "mlp.Wo"},
    )(spec)
    for layer in range(spec.n_layers):
        for n, which in enumerate(("gate", "in")):
            both = f"model.layers.{layer}.mlp.Wi"
            yield from mapped(f"blocks.{layer}.mlp", which, both, n, spec.d_mlp)
