"""ViT's kin: vision transformers that are ViT's pass with other values of its spec, a row each."""

from functools import partial

from cellformer.engine.cells.errors import InputError
from cellformer.engine.models.architectures import vit
from cellformer.engine.models.architectures.bert import heads
from cellformer.engine.models.architectures.kin import Kin
from cellformer.engine.models.architectures.vit import VitSpec
from cellformer.engine.models.foreign import Config, Piece, Pieces, layout, mapped

OF_TRAINING = (  # and of the model without a classifier
    "layerscale_value", "drop_path_rate", "use_mask_token", "apply_layernorm",
    "reshape_hidden_states", "out_features", "out_indices", "stage_names",
)  # fmt: skip


def of_dinov2(c: Config) -> VitSpec:
    """DINOv2's spec. Raises InputError for images that are not square."""
    height, width = vit.sides(c, "image_size")
    if height != width:
        raise InputError(
            f"{c.path}: image_size is {height} x {width}, but dinov2 models resize their table of "
            "positions for images that are not square, which cellformer does not; use a square"
        )
    d_mlp = c.get("hidden_size", int) * c.get("mlp_ratio", int)
    gated = c.get("use_swiglu_ffn", bool, False)
    own = {}
    if gated:  # two thirds of the numbers, up to the next multiple of 8
        own = {"activation": "silu", "d_mlp": (int(d_mlp * 2 / 3) + 7) // 8 * 8}
    return vit.usual(c, **{"d_mlp": d_mlp} | own, gated=gated, scaled=True, summary="both")


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
)
