"""ViT's kin: vision transformers that are ViT's pass with other values of its spec, a row each."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from cellformer.engine.cells.errors import InputError
from cellformer.engine.models.architectures import vit
from cellformer.engine.models.architectures.bert import heads
from cellformer.engine.models.architectures.kin import Kin
from cellformer.engine.models.architectures.vit import VitSpec
from cellformer.engine.models.foreign import Config, Piece, Pieces, grouped_heads, layout, mapped

OF_TRAINING = (  # and of the model without a classifier
    "layerscale_value", "drop_path_rate", "use_mask_token", "apply_layernorm",
    "reshape_hidden_states", "out_features", "out_indices", "stage_names",
)  # fmt: skip

BASE = {"hidden_size": 768, "intermediate_size": 3072, "image_size": 224}
SIGLIP = BASE | {"patch_size": 16, "hidden_act": "gelu_pytorch_tanh", vit.EPS: 1e-6}
CLIP = BASE | {"patch_size": 32, "hidden_act": "quick_gelu", vit.EPS: 1e-5}
BESIDE = (  # fields of the part that reads, of both together, and of other tasks
    "text_config", "projection_dim", "logit_scale_init_value", "initializer_factor",
    "vision_use_head", "chunk_size_feed_forward", "diversity_penalty", "repetition_penalty",
    "no_repeat_ngram_size", "encoder_no_repeat_ngram_size", "num_beam_groups",
    "num_return_sequences", "typical_p",
)  # fmt: skip


def check_square(c: Config, kind: str) -> None:
    """Raise InputError for images that are not square: there a table of positions is resized."""
    height, width = vit.sides(c, "image_size")
    if height != width:
        raise InputError(
            f"{c.path}: image_size is {height} x {width}, but cellformer takes only square images "
            f"for a {kind} model; set image_size to one number"
        )


def of_dinov2(c: Config) -> VitSpec:
    check_square(c, "dinov2")
    d_mlp = c.get("hidden_size", int) * c.get("mlp_ratio", int)
    own = {"gated": c.get("use_swiglu_ffn", bool, False), "d_mlp": d_mlp}
    if own["gated"]:  # two thirds of the numbers, up to the next multiple of 8
        own |= {"activation": "silu", "d_mlp": (int(d_mlp * 2 / 3) + 7) // 8 * 8}
    own["qkv_bias"] = c.get("qkv_bias", bool, True)
    return vit.usual(c, c, **own, scaled=True, summary="both")


def dinov2_pieces(spec: VitSpec) -> Pieces:
    """ViT's layout with other names. The classifier's columns of [CLS] come before those of the
    patches, and the gate's rows before the input's."""
    d, layers = spec.d_model, "dinov2.encoder.layer.{}"
    yield from vit.of_embeddings(spec, "dinov2")
    yield from layout(
        {"ln_final": "dinov2.layernorm", "b_U": "classifier"},
        layers,
        {"ln1": "norm1", "ln2": "norm2"},
        partial(heads, qkv=vit.QKV),
        attn="attention",
        mlp={"out": "mlp.weights_out"} if spec.gated else {"in": "mlp.fc1", "out": "mlp.fc2"},
    )(spec)
    for n, ours in enumerate(("W_U", "W_mean")):
        yield ours, Piece("classifier.weight", 1, n * d, (n + 1) * d, transposed=True)
    for layer in range(spec.n_layers):
        b, f = f"blocks.{layer}", layers.format(layer)
        for n in (1, 2):
            yield f"{b}.scale{n}.w", Piece(f"{f}.layer_scale{n}.lambda1")
        for n, which in enumerate(("gate", "in")) if spec.gated else ():
            yield from mapped(f"{b}.mlp", which, f"{f}.mlp.weights_in", n, spec.d_mlp)


def of_part(c: Config, kind: str, usual: Mapping[str, Any], **own: Any) -> VitSpec:
    """The spec of the part that sees; `usual` are its fields where its config says nothing."""
    sees = Config(c.path, {**usual, **c.get("vision_config", dict, {})})
    sees.asked = c.asked
    check_square(sees, kind)
    spec = vit.usual(c, sees, d_mlp=sees.get("intermediate_size", int), summary="mean", **own)
    sees.check_unread()
    return spec


def pieces_of_part(spec: VitSpec) -> Pieces:
    """The layout of SigLIP and CLIP."""
    e, filters = "vision_model.embeddings", (spec.d_model, len(spec.factor), *spec.patch)
    yield "W_E", Piece(f"{e}.patch_embedding.weight", transposed=True, shape=filters)
    yield "b_E", Piece(f"{e}.patch_embedding.bias")
    yield "class_token", Piece(f"{e}.class_embedding")
    yield "W_pos", Piece(f"{e}.position_embedding.weight")
    yield from layout(
        {
            "ln_embed": "vision_model.pre_layrnorm",
            "ln_final": "vision_model.post_layernorm",
            **dict.fromkeys(("W_U", "b_U"), "classifier"),
        },
        "vision_model.encoder.layers.{}",
        {"ln1": "layer_norm1", "ln2": "layer_norm2"},
        partial(grouped_heads, out="out_proj", keys="h"),
        "self_attn",
        {"in": "mlp.fc1", "out": "mlp.fc2"},
    )(spec)


kin = partial(Kin, NEW=None, EPS=vit.EPS, forward=vit.forward)
KIN = (
    kin(
        ("dinov2",),
        "DINOv2 (Oquab et al. 2023): ViT, whose sublayers multiply each feature that they write "
        "by a weight. The class is read from [CLS] and from the mean of all patches. The MLP may "
        "be gated",
        {"image_size": 224, "patch_size": 14, vit.EPS: 1e-6, "hidden_size": 768, "mlp_ratio": 4},
        of_dinov2,
        ignores=OF_TRAINING,
        UNREAD=("*.mask_token",),
        pieces=dinov2_pieces,
    ),
    kin(
        ("siglip",),
        "SigLIP (Zhai et al. 2023, section 3): of its two parts the one that sees, a ViT without "
        "[CLS]. The class is read from the mean of all patches",
        {},
        lambda c: of_part(c, "siglip", SIGLIP, has_class=False),
        ignores=BESIDE,
        UNREAD=("vision_model.head.*",),
        pieces=pieces_of_part,
    ),
    kin(
        ("clip",),
        "CLIP (Radford et al. 2021, section 2.4): of its two parts the one that sees, a ViT with a "
        "norm before the layers and none behind them. The class is read from the mean of all "
        "patches",
        {},
        lambda c: of_part(c, "clip", CLIP, embed_norm=True, final_norm=False, patch_bias=False),
        ignores=BESIDE,
        UNREAD=("vision_model.post_layernorm.*",),
        pieces=pieces_of_part,
    ),
)
