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
from typing import Any

import numpy as np

from cellformer.engine.cells.block import Block
from cellformer.engine.cells.errors import InputError
from cellformer.engine.cells.fields import json_object
from cellformer.engine.models import classes, ops, parts
from cellformer.engine.models.architectures.bert import MLP, attention, heads, mlp
from cellformer.engine.models.foreign import Config, Piece, Pieces, layout
from cellformer.engine.models.forward import Forward
from cellformer.engine.models.spec import ModelSpec

MODEL_TYPES = ("vit",)
EPS = "layer_norm_eps"  # the config's name for what keeps its norms' divisors above zero
PROCESSOR = "preprocessor_config.json"


@dataclass(frozen=True, repr=False)
class VitSpec(ModelSpec):
    """ModelSpec with the sizes of images and patches, and the scale of a pixel's level."""

    image: tuple[int, ...] = ()  # height and width, in pixels
    patch: tuple[int, ...] = ()  # height and width of a patch
    d_patch: int = 0  # numbers of a patch, in all channels
    factor: tuple[float, ...] = ()  # of each channel: what a level is multiplied by
    shift: tuple[float, ...] = ()  # of each channel: what is added then


def forward(g: Forward, ids: Sequence[int]) -> None:
    """One forward pass over the pixels of an image; pixels that are not given are 0."""
    spec = g.spec_as(VitSpec)
    stream = [embed(g, patches(g, spec, ids))]  # [n_tokens, d_model]
    stream.append(g.weight("W_pos", "n_positions", "d_model"))  # [n_tokens, d_model]
    attend = partial(attention, qkv_bias=spec.qkv_bias)
    sublayers = (("ln1", "resid_mid", attend), ("ln2", "resid_post", mlp))
    x = parts.layers(g, stream, parts.layer_norm, sublayers)  # [n_tokens, d_model]
    x = parts.layer_norm(g.at("ln_final"), x, spec.norm_eps)  # [n_tokens, d_model]
    parts.rank_words(g, parts.looked_at(g, x), x, None, bias=True)


def patches(g: Forward, spec: VitSpec, ids: Sequence[int]) -> Block:
    """The pixels of each patch, in one row: [n_patches, d_patch]."""
    if g.readout.by_head:
        g.input("mean_ablation", 0.0)
    levels = np.zeros(spec.n_ctx)
    levels[: len(ids)] = ids
    axes = ("patch", "d_patch")
    tokens = g.input("tokens", levels[places(spec)], axes, "ids")  # [n_patches, d_patch]
    each = spec.d_patch // len(spec.factor)  # pixels of a patch
    factor = g.input("factor", np.repeat(spec.factor, each), ("", "d_patch"))  # [1, d_patch]
    shift = g.input("shift", np.repeat(spec.shift, each), ("", "d_patch"))  # [1, d_patch]
    return g.block("patches", ops.scaled, tokens, factor, shift)


def places(spec: VitSpec) -> np.ndarray:
    """The place of each number of each patch among the pixels: [n_patches, d_patch]."""
    (height, width), (down, across) = spec.image, spec.patch
    pixels = np.arange(spec.n_ctx).reshape(-1, height // down, down, width // across, across)
    return pixels.transpose(1, 3, 0, 2, 4).reshape(-1, spec.d_patch)


def embed(g: Forward, x: Block) -> Block:
    """The class token, and a linear map of each patch: [n_tokens, d_model]."""
    W_E, b_E = g.weight("W_E", "d_patch", "d_model"), g.weight("b_E", "d_model")
    of_patches = g.block("patch_embed", ops.linear, x, W_E, b_E)  # [n_patches, d_model]
    numbers = np.arange(x.shape[0] + 1)[:, None]
    is_class = g.input("is_class", numbers == 0, ("token", ""))  # [n_tokens, 1]
    number = g.input("patch", np.maximum(numbers - 1, 0), ("token", ""), "ids")  # [n_tokens, 1]
    class_token = g.weight("class_token", "d_model")
    return g.block("embed", ops.class_first, number, of_patches, class_token, is_class)


def read_config(c: Config) -> ModelSpec:
    """ViT's config, with its image processor's. Raises InputError for a model that gives no class,
    and for patches that do not fill the image."""
    c.assume(num_hidden_layers=12, num_attention_heads=12, hidden_size=768, intermediate_size=3072)
    c.assume(hidden_act="gelu", image_size=224, patch_size=16, num_channels=3)
    c.ignore("pooler_act", "pooler_output_size", "encoder_stride", "chunk_size_feed_forward")
    names = c.listed("architectures", str)
    if names and classes.task(names) != "class":
        raise InputError(
            f"{c.path}: {names[0]} gives no class of an image; use ViTForImageClassification"
        )
    image, patch = (sides(c, name) for name in ("image_size", "patch_size"))
    if any(whole < 1 or part < 1 or whole % part for whole, part in zip(image, patch, strict=True)):
        raise InputError(
            f"{c.path}: patches of {patch[0]} x {patch[1]} pixels do not fill an image of "
            f"{image[0]} x {image[1]} exactly"
        )
    n_channels = c.get("num_channels", int)
    height, width = image
    return VitSpec(
        d_model=c.get("hidden_size", int),
        n_ctx=n_channels * height * width,
        n_layers=c.get("num_hidden_layers", int),
        n_heads=c.get("num_attention_heads", int),
        d_head=c.divide("hidden_size", "num_attention_heads"),
        d_mlp=c.get("intermediate_size", int),
        activation=c.activation("hidden_act"),
        qkv_bias=c.get("qkv_bias", bool, True),
        reads="image",
        norm="layer",
        norm_eps=c.get(EPS, float, 1e-12),
        position="learned",
        final_norm=True,
        bias=True,
        causal=False,
        n_positions=height // patch[0] * (width // patch[1]) + 1,
        image=image,
        patch=patch,
        d_patch=n_channels * patch[0] * patch[1],
        **levels_of(c, n_channels),
        **classes.readout(c, "class"),
    )


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


def pieces(spec: VitSpec) -> Pieces:
    """ViT's layout: matrices are [out, in], patches go through a convolution's filters."""
    e, filters = "vit.embeddings", (spec.d_model, spec.d_patch // (spec.patch[0] * spec.patch[1]))
    first = f"{e}.patch_embeddings.projection"
    yield "W_E", Piece(f"{first}.weight", transposed=True, shape=(*filters, *spec.patch))
    yield "b_E", Piece(f"{first}.bias")
    yield "class_token", Piece(f"{e}.cls_token", row=True, shape=(1, 1, spec.d_model))
    places = (1, spec.n_positions, spec.d_model)
    yield "W_pos", Piece(f"{e}.position_embeddings", shape=places)
    qkv = [f"attention.{name}" for name in ("query", "key", "value")]
    yield from layout(
        {"ln_final": "vit.layernorm", "W_U": "classifier", "b_U": "classifier"},
        "vit.encoder.layer.{}",
        {"ln1": "layernorm_before", "ln2": "layernorm_after"},
        partial(heads, qkv=qkv),
        attn="attention",
        mlp=MLP,
    )(spec)
