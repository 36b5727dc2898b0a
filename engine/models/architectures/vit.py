"""The vision transformer (Dosovitskiy et al. 2021, section 3.1): an image is cut into patches, and
each is a token.

The prompt is the image: its pixels as whole numbers from 0, row by row, one channel after another.
So `ids` are pixels here, and `d_vocab` is how many levels of brightness there are. What a level
counts for, (level x rescale_factor - mean) / std, is read from preprocessor_config.json beside the
config, as transformers' ViTImageProcessor has it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from cellformer.engine.cells.block import Block
from cellformer.engine.cells.errors import InputError
from cellformer.engine.cells.fields import json_object
from cellformer.engine.models import classes, ops, parts
from cellformer.engine.models.architectures.bert import MLP, attention, heads
from cellformer.engine.models.foreign import Config, Piece, Pieces, layout
from cellformer.engine.models.forward import Forward
from cellformer.engine.models.pooling import of_all_tokens
from cellformer.engine.models.spec import ModelSpec

MODEL_TYPES = ("vit",)
EPS = "layer_norm_eps"  # the config's name for what keeps its norms' divisors above zero
PROCESSOR = "preprocessor_config.json"
Summary = Literal["class", "mean", "both"]  # of an image: [CLS], the mean of its patches


@dataclass(frozen=True, repr=False)
class VitSpec(ModelSpec):
    """ModelSpec with the sizes of images and patches, and the scale of a pixel's level."""

    image: tuple[int, ...] = ()  # height and width, in pixels
    patch: tuple[int, ...] = ()  # height and width of a patch
    d_patch: int = 0  # numbers of a patch, in all channels
    factor: tuple[float, ...] = ()  # of each channel: what a level is multiplied by
    shift: tuple[float, ...] = ()  # of each channel: what is added then
    summary: Summary = "class"  # what the classes are read from
    scaled: bool = False  # each feature that a sublayer writes is multiplied by a weight
    gated: bool = False  # the MLP has a gate
    has_class: bool = True  # [CLS] stands before the patches
    patch_bias: bool = True  # of the linear map of patches


def forward(g: Forward, ids: Sequence[int]) -> None:
    """One forward pass over the pixels of an image; pixels that are not given are 0."""
    spec = g.spec_as(VitSpec)
    stream = [embed(g, patches(g, spec, ids))]  # [n_tokens, d_model]
    stream.append(g.weight("W_pos", "n_positions", "d_model"))  # [n_tokens, d_model]
    if spec.embed_norm:
        x = g.block("embed_sum", ops.add, stream)  # [n_tokens, d_model]
        stream = [parts.layer_norm(g.at("ln_embed"), x, spec.norm_eps)]
    x = parts.layers(g, stream, parts.layer_norm, SUBLAYERS)  # [n_tokens, d_model]
    x = parts.layer_norm(g.at("ln_final"), x, spec.norm_eps) if spec.final_norm else x
    read_out(g, x)


def attend(b: Forward, x: Block) -> Block:
    """The output of attention, as added to the stream: [n_tokens, d_model]."""
    return scaled(b.at("scale1"), attention(b, x, qkv_bias=b.spec.qkv_bias))


def expand(b: Forward, x: Block) -> Block:
    """The output of the MLP, as added to the stream: [n_tokens, d_model]."""
    wrote = parts.mlp(b, x, bias=True, gated=b.spec_as(VitSpec).gated)
    return scaled(b.at("scale2"), wrote)


SUBLAYERS = (("ln1", "resid_mid", attend), ("ln2", "resid_post", expand))


def scaled(at: Forward, x: Block) -> Block:
    """x with each feature times a weight, if the model has them (Touvron et al. 2021, section 2.2):
    [n_tokens, d_model]."""
    has_scale = at.spec_as(VitSpec).scaled
    return at.block("added", ops.affine, x, at.weight("w", "d_model")) if has_scale else x


def read_out(g: Forward, x: Block) -> None:
    """The logit of each class, from [CLS], the mean of all patches, or both: [1, d_vocab_out]."""
    spec, pooling = g.spec_as(VitSpec), g.at("pooling")
    if spec.summary == "class":
        return parts.rank_words(g, parts.looked_at(g, x), x, None, bias=True)
    numbers = np.arange(x.shape[0])[:, None]
    is_patch = g.input("is_patch", numbers >= spec.has_class, ("token", ""))  # [n_tokens, 1]
    mean = of_all_tokens(pooling, x, is_patch)  # [1, d_model]
    if spec.summary == "mean":
        return parts.rank_words(g, mean, x, None, bias=True)
    W, b = g.weight("W_mean", "d_model", "vocab_out"), g.weight("b_U", "vocab_out")
    of_mean = g.block("of_mean", ops.linear, mean, W, b)  # [1, d_vocab_out]
    first = pooling.block("first", ops.embed, pooling.input("which", 0, kind="ids"), x)
    logits = g.block("logits", ops.linear, first, g.weight("W_U", "d_model", "vocab_out"), of_mean)
    parts.softmax(g.at("softmax"), logits, (g, "probs"), g.input("temperature", 1.0))


def patches(g: Forward, spec: VitSpec, ids: Sequence[int]) -> Block:
    """The pixels of each patch, in one row: [n_patches, d_patch]."""
    if g.readout.by_head:
        g.input("mean_ablation", 0.0)
    levels = np.zeros(spec.n_ctx)
    levels[: len(ids)] = ids
    axes = "patch" if spec.has_class else "token", "d_patch"
    tokens = g.input("tokens", levels[places(spec)], axes, "ids")  # [n_patches, d_patch]
    each = spec.d_patch // len(spec.factor)  # pixels of a patch
    factor = g.input("factor", np.repeat(spec.factor, each), ("", "d_patch"))  # [1, d_patch]
    shift = g.input("shift", np.repeat(spec.shift, each), ("", "d_patch"))  # [1, d_patch]
    return g.block("patches", ops.scaled, tokens, factor, shift)


def places(spec: VitSpec) -> np.ndarray:
    """The place of each number of each patch among the pixels: [n_patches, d_patch]. Pixels at the
    right and at the bottom that fill no patch belong to none."""
    (height, width), (down, across) = spec.image, spec.patch
    rows, columns = height // down, width // across
    pixels = np.arange(spec.n_ctx).reshape(-1, height, width)
    filled = pixels[:, : rows * down, : columns * across]
    cut = filled.reshape(-1, rows, down, columns, across)
    return cut.transpose(1, 3, 0, 2, 4).reshape(-1, spec.d_patch)


def embed(g: Forward, x: Block) -> Block:
    """The class token, if there is one, and a linear map of each patch: [n_tokens, d_model]."""
    spec, W_E = g.spec_as(VitSpec), g.weight("W_E", "d_patch", "d_model")
    b_E = g.weight("b_E", "d_model") if spec.patch_bias else None
    of_patches = g.block("patch_embed", ops.linear, x, W_E, b_E)  # [n_patches, d_model]
    if not spec.has_class:
        return of_patches
    numbers = np.arange(x.shape[0] + 1)[:, None]
    is_class = g.input("is_class", numbers == 0, ("token", ""))  # [n_tokens, 1]
    number = g.input("patch", np.maximum(numbers - 1, 0), ("token", ""), "ids")  # [n_tokens, 1]
    class_token = g.weight("class_token", "d_model")
    return g.block("embed", ops.class_first, number, of_patches, class_token, is_class)


def read_config(c: Config) -> ModelSpec:
    """ViT's config, with its image processor's. Raises InputError."""
    c.assume(hidden_size=768, intermediate_size=3072, image_size=224, patch_size=16)
    c.ignore("pooler_act", "pooler_output_size", "encoder_stride", "chunk_size_feed_forward")
    own = {"qkv_bias": c.get("qkv_bias", bool, True)}
    return usual(c, c, d_mlp=c.get("intermediate_size", int), **own)


def usual(c: Config, sees: Config, **own: Any) -> VitSpec:
    """The fields that all vision transformers read from their configs in the same way, and their
    `own`; `sees` is the config of the part that sees. Raises InputError for a model that gives no
    class, and for images without a patch."""
    sees.assume(num_hidden_layers=12, num_attention_heads=12, num_channels=3, hidden_act="gelu")
    names = c.listed("architectures", str)
    if names and classes.task(names) != "class":
        raise InputError(
            f"{c.path}: {names[0]} gives no class of an image; use a model ForImageClassification"
        )
    image, patch = (sides(sees, name) for name in ("image_size", "patch_size"))
    if any(not 1 <= part <= whole for whole, part in zip(image, patch, strict=True)):
        raise InputError(
            f"{c.path}: an image of {image[0]} x {image[1]} pixels has no patch of "
            f"{patch[0]} x {patch[1]}; set patch_size to at most image_size"
        )
    n_channels = sees.get("num_channels", int)
    height, width = image
    n_patches = (height // patch[0]) * (width // patch[1])
    fields = {
        "d_model": sees.get("hidden_size", int),
        "n_ctx": n_channels * height * width,
        "n_layers": sees.get("num_hidden_layers", int),
        "n_heads": sees.get("num_attention_heads", int),
        "d_head": sees.divide("hidden_size", "num_attention_heads"),
        "activation": sees.activation("hidden_act"),
        "norm_eps": sees.get(EPS, float, 1e-12),
        "n_positions": n_patches + own.get("has_class", True),
        "d_patch": n_channels * patch[0] * patch[1],
        **levels_of(c, n_channels),
        **classes.readout(c, "class"),
    }
    return VitSpec(**ALIKE | fields | own, image=image, patch=patch)


ALIKE: dict[str, Any] = {
    "reads": "image", "norm": "layer", "position": "learned", "final_norm": True, "bias": True,
    "causal": False, "qkv_bias": True,
}  # fmt: skip


def sides(c: Config, name: str) -> tuple[int, int]:
    """Height and width in a config: one number for both, or two. Raises InputError."""
    given = c.look(name)
    found = given if isinstance(given, list | tuple) else (given, given)
    if len(found) != 2 or not all(type(side) is int for side in found):
        raise InputError(
            f"{c.path}: {name} is {given!r}, but must be a height and a width in pixels"
        )
    return found[0], found[1]


def levels_of(c: Config, n_channels: int) -> dict[str, Any]:
    """The fields of ModelSpec that say what a pixel's level counts for. They are kept in the
    config, so that a saved model has them, too. Raises InputError."""
    for name, value in json_object(c.path.parent / PROCESSOR).items():
        if name in ("do_rescale", "rescale_factor", "do_normalize", "image_mean", "image_std"):
            c.values.setdefault(name, value)
    step = c.get("rescale_factor", float, 1 / 255)
    if not 1 / 65_535 <= step <= 1:
        raise InputError(
            f"{c.path}: rescale_factor is {step}, but must be 1 divided by the largest pixel level"
        )
    scale = step if c.get("do_rescale", bool, True) else 1.0
    normal = c.get("do_normalize", bool, True)
    mean, std = (
        c.listed(name, float) or [0.5] * n_channels for name in ("image_mean", "image_std")
    )
    if not len(mean) == len(std) == n_channels or min(std) <= 0:
        raise InputError(
            f"{c.path}: image_mean and image_std must each have one number for each of "
            f"{n_channels} channels, and image_std must be above 0"
        )
    return {
        "d_vocab": round(1 / step) + 1,
        "factor": tuple(scale / s if normal else scale for s in std),
        "shift": tuple(-m / s if normal else 0.0 for m, s in zip(mean, std, strict=True)),
    }


def of_embeddings(spec: VitSpec, base: str) -> Pieces:
    """The map of patches, which is a convolution's filters, and the vectors of [CLS] and places."""
    e, filters = f"{base}.embeddings", (spec.d_model, len(spec.factor), *spec.patch)
    first = f"{e}.patch_embeddings.projection"
    yield "W_E", Piece(f"{first}.weight", transposed=True, shape=filters)
    yield "b_E", Piece(f"{first}.bias")
    yield "class_token", Piece(f"{e}.cls_token", row=True, shape=(1, 1, spec.d_model))
    places = (1, spec.n_positions, spec.d_model)
    yield "W_pos", Piece(f"{e}.position_embeddings", shape=places)


QKV = tuple(f"attention.{name}" for name in ("query", "key", "value"))


def pieces(spec: VitSpec) -> Pieces:
    """ViT's layout: matrices are [out, in]."""
    yield from of_embeddings(spec, "vit")
    yield from layout(
        {"ln_final": "vit.layernorm", "W_U": "classifier", "b_U": "classifier"},
        "vit.encoder.layer.{}",
        {"ln1": "layernorm_before", "ln2": "layernorm_after"},
        partial(heads, qkv=QKV),
        attn="attention",
        mlp=MLP,
    )(spec)
