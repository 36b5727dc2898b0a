"""Checkpoints as Hugging Face tools save them: config.json and safetensors, read and written back.

The only place that knows foreign names. For every architecture one function reads the config into
a ModelSpec, and one says where each of our weights stands in the foreign ones: a `Piece` is a
slice of a foreign tensor, transposed where the layer keeps [out, in]. The same table serves
loading and saving.

`model_type: cellformer` is our own layout: the fields of ModelSpec, and weights by our own names.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import ml_dtypes  # noqa: F401  teaches numpy bfloat16
import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from engine.cells.errors import InputError, nearest
from engine.cells.stored import SafetensorsFile, Stored, decimals
from engine.models.architectures.decoder import decoder
from engine.models.architectures.gpt2 import gpt2
from engine.models.architectures.gpt_neo import gpt_neo
from engine.models.architectures.gpt_neox import gpt_neox
from engine.models.architectures.llama import llama
from engine.models.model import Model
from engine.models.spec import ModelSpec
from engine.models.tokenizer import WordList, load_tokenizer, save_tokenizer

ARCHITECTURES = {
    "gpt2": gpt2,
    "gpt_neo": gpt_neo,
    "gpt_neox": gpt_neox,
    "llama": llama,
    "mistral": llama,
    "qwen2": llama,
    "qwen3": llama,
    "cellformer": decoder,
}
ACTIVATIONS = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "silu": "silu",
    "swish": "silu",
}
BUFFERS = tuple(  # stored in some checkpoints, and no weights
    f".{part}.{name}"
    for part in ("attn", "attention")
    for name in ("bias", "masked_bias", "rotary_emb.inv_freq")
)
HEADS = ("lm_head.weight", "embed_out.weight")
MOST_HELD = 4_000_000  # weights of a model that is held whole
FLOATS = ("F64", "F32", "F16", "BF16")
MAX_FAULTS = 12  # listed in one message


@dataclass(frozen=True)
class Piece:
    """A slice [start, stop) of a foreign tensor along one axis; stop None is all of it."""

    name: str
    axis: int = 0
    start: int = 0
    stop: int | None = None
    transposed: bool = False

    @property
    def slices(self) -> tuple[slice, ...]:
        return (slice(None),) * self.axis + (slice(self.start, self.stop),)


Pieces = Iterator[tuple[str, Piece]]


class Config:
    """A config.json, whose values are asked for with the type that they must have."""

    def __init__(self, path: Path):
        try:
            self.values = json.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise InputError(f"cannot read {path}: {error.strerror}") from None
        except ValueError as error:
            raise InputError(f"{path} is not JSON: {error}") from None
        if not isinstance(self.values, dict):
            raise InputError(f"{path} holds no JSON object")
        self.path = path

    def get(self, name: str, kind: type, default: Any = None) -> Any:
        """The value of a field; `default` where it is missing or null, an error without one."""
        value = self.values.get(name)
        if value is None:
            if default is None:
                raise InputError(f"{self.path} has no {name!r}")
            return default
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise InputError(f"{self.path}: {name!r} is {value!r}, not {kind.__name__}")
        return value

    def activation(self, name: str) -> Any:
        value = self.get(name, str)
        if value not in ACTIVATIONS:
            raise InputError(f"{self.path}: activation {value!r} is not among {list(ACTIVATIONS)}")
        return ACTIVATIONS[value]

    def divide(self, whole: str, by: str) -> int:
        """A head's size, where the config gives only the model's."""
        a, b = self.get(whole, int), self.get(by, int)
        if b < 1 or a % b:
            raise InputError(f"{self.path}: {by} = {b} does not divide {whole} = {a}")
        return a // b

    def refuse(self, name: str, allowed: Any, why: str) -> None:
        if self.values.get(name, allowed) not in (allowed, None):
            raise InputError(f"{self.path}: {name} = {self.values[name]!r} is not supported; {why}")


# --- configs ------------------------------------------------------------------------------


def gpt2_spec(c: Config) -> ModelSpec:
    """GPT-2's config."""
    c.refuse("scale_attn_by_inverse_layer_idx", False, "scores are scaled alike in every layer")
    d_head = c.divide("n_embd", "n_head")
    return ModelSpec(
        d_vocab=c.get("vocab_size", int),
        d_model=c.get("n_embd", int),
        n_ctx=c.get("n_positions", int, c.values.get("n_ctx")),
        n_layers=c.get("n_layer", int),
        n_heads=c.get("n_head", int),
        d_head=d_head,
        d_mlp=c.get("n_inner", int, 4 * c.get("n_embd", int)),
        activation=c.activation("activation_function"),
        position="learned",
        norm="layer",
        final_norm=True,
        norm_eps=c.get("layer_norm_epsilon", float, 1e-5),
        tied=c.get("tie_word_embeddings", bool, True),
        bias=True,
        sqrt_d_head=None if c.get("scale_attn_weights", bool, True) else 1.0,
    )


def gpt_neo_spec(c: Config) -> ModelSpec:
    """GPT-Neo's config."""
    n_layers, window = c.get("num_layers", int), c.get("window_size", int, 256)
    kinds = [k for pattern, n in c.get("attention_types", list) for _ in range(n) for k in pattern]
    if len(kinds) != n_layers or not set(kinds) <= {"global", "local"}:
        raise InputError(f"{c.path}: attention_types does not say global or local for each layer")
    return ModelSpec(
        d_vocab=c.get("vocab_size", int),
        d_model=c.get("hidden_size", int),
        n_ctx=c.get("max_position_embeddings", int),
        n_layers=n_layers,
        n_heads=c.get("num_heads", int),
        d_head=c.divide("hidden_size", "num_heads"),
        d_mlp=c.get("intermediate_size", int, 4 * c.get("hidden_size", int)),
        activation=c.activation("activation_function"),
        position="learned",
        norm="layer",
        final_norm=True,
        norm_eps=c.get("layer_norm_epsilon", float, 1e-5),
        tied=c.get("tie_word_embeddings", bool, True),
        sqrt_d_head=1.0,
        windows=tuple(window if kind == "local" else None for kind in kinds),
    )


def gpt_neox_spec(c: Config) -> ModelSpec:
    """GPT-NeoX's config."""
    d_head = c.divide("hidden_size", "num_attention_heads")
    theta, share = rope(c, "rotary_emb_base", "rotary_pct", 0.25)
    return ModelSpec(
        d_vocab=c.get("vocab_size", int),
        d_model=c.get("hidden_size", int),
        n_ctx=c.get("max_position_embeddings", int),
        n_layers=c.get("num_hidden_layers", int),
        n_heads=c.get("num_attention_heads", int),
        d_head=d_head,
        d_mlp=c.get("intermediate_size", int),
        activation=c.activation("hidden_act"),
        position="rotary",
        norm="layer",
        final_norm=True,
        norm_eps=c.get("layer_norm_eps", float, 1e-5),
        tied=c.get("tie_word_embeddings", bool, False),
        bias=c.get("attention_bias", bool, True),
        d_rotary=int(d_head * share),
        rope_theta=theta,
        parallel=c.get("use_parallel_residual", bool, True),
    )


def llama_spec(c: Config) -> ModelSpec:
    """The config of Llama, Mistral, Qwen2 and Qwen3."""
    kind, n_layers = c.values["model_type"], c.get("num_hidden_layers", int)
    n_heads = c.get("num_attention_heads", int)
    d_head = c.get("head_dim", int, 0) or c.divide("hidden_size", "num_attention_heads")
    theta, share = rope(c, "rope_theta", "partial_rotary_factor", 1.0)
    bias = c.get("attention_bias", bool, False)
    return ModelSpec(
        d_vocab=c.get("vocab_size", int),
        d_model=c.get("hidden_size", int),
        n_ctx=c.get("max_position_embeddings", int),
        n_layers=n_layers,
        n_heads=n_heads,
        n_kv_heads=c.get("num_key_value_heads", int, n_heads),
        d_head=d_head,
        d_mlp=c.get("intermediate_size", int),
        activation=c.activation("hidden_act"),
        position="rotary",
        norm="rms",
        final_norm=True,
        norm_eps=c.get("rms_norm_eps", float, 1e-6),
        tied=c.get("tie_word_embeddings", bool, False),
        qkv_bias=kind == "qwen2" or bias,
        out_bias=kind != "qwen2" and bias,
        mlp_bias=c.get("mlp_bias", bool, False),
        qk_norm=kind == "qwen3",
        windows=windows(c, kind, n_layers),
        d_rotary=int(d_head * share),
        rope_theta=theta,
    )


def windows(c: Config, kind: str, n_layers: int) -> tuple[int | None, ...]:
    """How far back each layer looks: Mistral in every layer, Qwen in those that say so."""
    window = c.values.get("sliding_window")
    if window is None or (kind != "mistral" and not c.get("use_sliding_window", bool, False)):
        return ()
    window = c.get("sliding_window", int)
    if kind == "mistral":
        return (window,) * n_layers
    first = c.get("max_window_layers", int, 28)
    kinds = c.values.get("layer_types") or [
        "sliding_attention" if layer >= first else "full_attention" for layer in range(n_layers)
    ]
    return tuple(window if k == "sliding_attention" else None for k in kinds)


def rope(c: Config, base: str, part: str, default_part: float) -> tuple[float, float]:
    """Rotary base and the share of features that rotate, in the newer or the older form."""
    scaling = c.values.get("rope_parameters") or c.values.get("rope_scaling") or {}
    if not isinstance(scaling, dict):
        raise InputError(f"{c.path}: rope_scaling is {scaling!r}, not an object")
    kind = scaling.get("rope_type", scaling.get("type", "default"))
    if kind != "default":
        raise InputError(f"{c.path}: rope_scaling {kind!r} is not supported; only the default is")
    theta = scaling.get("rope_theta", c.get(base, float, 10000.0))
    share = scaling.get("partial_rotary_factor", c.get(part, float, default_part))
    for name, value in (("rope_theta", theta), ("partial_rotary_factor", share)):
        if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
            raise InputError(f"{c.path}: {name} is {value!r}, not a positive number")
    return float(theta), float(share)


def own_spec(c: Config) -> ModelSpec:
    """Our own config: the fields of ModelSpec by name."""
    given = {k: v for k, v in c.values.items() if k != "model_type"}
    known = ModelSpec.__dataclass_fields__
    for name, value in given.items():
        if name not in known:
            raise InputError(f"{c.path}: {name!r} is no field of a model; {nearest(name, known)}")
        given[name] = tuple(value) if isinstance(value, list) else value
    try:
        return ModelSpec(**given)
    except TypeError as error:
        raise InputError(f"{c.path}: {str(error).partition(') ')[2] or error}") from None


# --- where weights stand --------------------------------------------------------------------


def head(name: str, n: int, d_head: int, axis: int, offset: int = 0, turn: bool = False) -> Piece:
    """One head's slice of a tensor that holds all heads side by side, from `offset` on."""
    start = offset + n * d_head
    return Piece(name, axis, start, start + d_head, turn)


def gpt2_pieces(spec: ModelSpec) -> Pieces:
    """GPT-2: Conv1D weights are [in, out]; c_attn holds queries, keys and values in turn."""
    yield "W_E", Piece("transformer.wte.weight")
    yield "W_pos", Piece("transformer.wpe.weight")
    yield "W_U", Piece("lm_head.weight", transposed=True)
    yield from norm_pieces("ln_final", "transformer.ln_f")
    for layer in range(spec.n_layers):
        b, f = f"blocks.{layer}", f"transformer.h.{layer}"
        yield from norm_pieces(f"{b}.ln1", f"{f}.ln_1")
        yield from norm_pieces(f"{b}.ln2", f"{f}.ln_2")
        for n in range(spec.n_heads):
            h = f"{b}.attn.h{n}"
            for k, which in enumerate("QKV"):
                offset = k * spec.d_model
                yield f"{h}.W_{which}", head(f"{f}.attn.c_attn.weight", n, spec.d_head, 1, offset)
                yield f"{h}.b_{which}", head(f"{f}.attn.c_attn.bias", n, spec.d_head, 0, offset)
            yield f"{h}.W_O", head(f"{f}.attn.c_proj.weight", n, spec.d_head, 0)
        yield f"{b}.attn.b_O", Piece(f"{f}.attn.c_proj.bias")
        for ours, theirs in (("in", "c_fc"), ("out", "c_proj")):
            yield f"{b}.mlp.W_{ours}", Piece(f"{f}.mlp.{theirs}.weight")
            yield f"{b}.mlp.b_{ours}", Piece(f"{f}.mlp.{theirs}.bias")


def gpt_neo_pieces(spec: ModelSpec) -> Pieces:
    """GPT-Neo: Linear weights are [out, in]."""
    yield "W_E", Piece("transformer.wte.weight")
    yield "W_pos", Piece("transformer.wpe.weight")
    yield "W_U", Piece("lm_head.weight", transposed=True)
    yield from norm_pieces("ln_final", "transformer.ln_f")
    for layer in range(spec.n_layers):
        b, f = f"blocks.{layer}", f"transformer.h.{layer}"
        yield from norm_pieces(f"{b}.ln1", f"{f}.ln_1")
        yield from norm_pieces(f"{b}.ln2", f"{f}.ln_2")
        for n in range(spec.n_heads):
            a, h = f"{f}.attn.attention", f"{b}.attn.h{n}"
            for which in "QKV":
                name = f"{a}.{which.lower()}_proj.weight"
                yield f"{h}.W_{which}", head(name, n, spec.d_head, 0, turn=True)
            yield f"{h}.W_O", head(f"{a}.out_proj.weight", n, spec.d_head, 1, turn=True)
        yield f"{b}.attn.b_O", Piece(f"{f}.attn.attention.out_proj.bias")
        for ours, theirs in (("in", "c_fc"), ("out", "c_proj")):
            yield f"{b}.mlp.W_{ours}", Piece(f"{f}.mlp.{theirs}.weight", transposed=True)
            yield f"{b}.mlp.b_{ours}", Piece(f"{f}.mlp.{theirs}.bias")


def gpt_neox_pieces(spec: ModelSpec) -> Pieces:
    """GPT-NeoX: one tensor for queries, keys and values, head by head."""
    yield "W_E", Piece("gpt_neox.embed_in.weight")
    yield "W_U", Piece("embed_out.weight", transposed=True)
    yield from norm_pieces("ln_final", "gpt_neox.final_layer_norm")
    for layer in range(spec.n_layers):
        b, f = f"blocks.{layer}", f"gpt_neox.layers.{layer}"
        yield from norm_pieces(f"{b}.ln1", f"{f}.input_layernorm")
        yield from norm_pieces(f"{b}.ln2", f"{f}.post_attention_layernorm")
        for n in range(spec.n_heads):
            a, h = f"{f}.attention", f"{b}.attn.h{n}"
            for k, which in enumerate("QKV"):
                place = (3 * n + k, spec.d_head, 0)
                yield f"{h}.W_{which}", head(f"{a}.query_key_value.weight", *place, turn=True)
                yield f"{h}.b_{which}", head(f"{a}.query_key_value.bias", *place)
            yield f"{h}.W_O", head(f"{a}.dense.weight", n, spec.d_head, 1, turn=True)
        yield f"{b}.attn.b_O", Piece(f"{f}.attention.dense.bias")
        for ours, theirs in (("in", "dense_h_to_4h"), ("out", "dense_4h_to_h")):
            yield f"{b}.mlp.W_{ours}", Piece(f"{f}.mlp.{theirs}.weight", transposed=True)
            yield f"{b}.mlp.b_{ours}", Piece(f"{f}.mlp.{theirs}.bias")


def llama_pieces(spec: ModelSpec) -> Pieces:
    """Llama, Mistral, Qwen2, Qwen3: Linear weights are [out, in]."""
    yield "W_E", Piece("model.embed_tokens.weight")
    yield "W_U", Piece("lm_head.weight", transposed=True)
    yield "ln_final.w", Piece("model.norm.weight")
    for layer in range(spec.n_layers):
        b, f = f"blocks.{layer}", f"model.layers.{layer}"
        yield f"{b}.ln1.w", Piece(f"{f}.input_layernorm.weight")
        yield f"{b}.ln2.w", Piece(f"{f}.post_attention_layernorm.weight")
        a, d_head = f"{f}.self_attn", spec.d_head
        for which, kind, count in (
            ("Q", "h", spec.n_heads), ("K", "kv", spec.kv_heads), ("V", "kv", spec.kv_heads),
        ):  # fmt: skip
            for n in range(count):
                h, name = f"{b}.attn.{kind}{n}", f"{a}.{which.lower()}_proj"
                yield f"{h}.W_{which}", head(f"{name}.weight", n, d_head, 0, turn=True)
                yield f"{h}.b_{which}", head(f"{name}.bias", n, d_head, 0)
        for n in range(spec.n_heads):
            yield f"{b}.attn.h{n}.W_O", head(f"{a}.o_proj.weight", n, d_head, 1, turn=True)
        yield f"{b}.attn.b_O", Piece(f"{a}.o_proj.bias")
        yield f"{b}.attn.q_norm", Piece(f"{a}.q_norm.weight")
        yield f"{b}.attn.k_norm", Piece(f"{a}.k_norm.weight")
        for ours, theirs in (("gate", "gate_proj"), ("in", "up_proj"), ("out", "down_proj")):
            yield f"{b}.mlp.W_{ours}", Piece(f"{f}.mlp.{theirs}.weight", transposed=True)
            yield f"{b}.mlp.b_{ours}", Piece(f"{f}.mlp.{theirs}.bias")


def norm_pieces(ours: str, theirs: str) -> Pieces:
    """A LayerNorm's gain and bias."""
    yield f"{ours}.w", Piece(f"{theirs}.weight")
    yield f"{ours}.b", Piece(f"{theirs}.bias")


def own_pieces(spec: ModelSpec) -> Pieces:
    """Our own layout: every weight by its own name."""
    yield from ((name, Piece(name)) for name in shapes("cellformer", spec))


SPECS = {
    "gpt2": gpt2_spec,
    "gpt_neo": gpt_neo_spec,
    "gpt_neox": gpt_neox_spec,
    "llama": llama_spec,
    "mistral": llama_spec,
    "qwen2": llama_spec,
    "qwen3": llama_spec,
    "cellformer": own_spec,
}
PIECES = {
    "gpt2": gpt2_pieces,
    "gpt_neo": gpt_neo_pieces,
    "gpt_neox": gpt_neox_pieces,
    "llama": llama_pieces,
    "mistral": llama_pieces,
    "qwen2": llama_pieces,
    "qwen3": llama_pieces,
    "cellformer": own_pieces,
}


# --- loading and saving ---------------------------------------------------------------------


def load(folder: str | Path) -> Model:
    """The model of a checkpoint folder. Raises InputError for what does not fit together.

    The matrices of a large one stay in their file, and are read as they are needed.
    """
    folder = Path(folder)
    config = Config(folder / "config.json")
    kind = config.get("model_type", str)
    if kind not in ARCHITECTURES:
        known = ", ".join(ARCHITECTURES)
        raise InputError(f"{config.path}: no architecture {kind!r} here; those that are: {known}")
    spec = SPECS[kind](config)
    wanted = shapes(kind, spec)
    places = {ours: piece for ours, piece in PIECES[kind](spec) if ours in wanted}
    prefix = "" if kind == "cellformer" else next(iter(places.values())).name.split(".")[0] + "."
    files = Tensors(folder, prefix)
    files.check(foreign_shapes(places, wanted), tied=spec.tied)
    n_weights = sum(int(np.prod(shape)) for shape in wanted.values())
    large = n_weights > MOST_HELD and all(h.file for h in files.held.values())
    read = files.stored if large else files.read
    weights = {ours: read(piece) for ours, piece in places.items()}
    tokenizer = load_tokenizer(folder, spec.d_vocab)
    return Model(spec, weights, tokenizer, architecture=ARCHITECTURES[kind], config=config.values)


def save(model: Model, folder: str | Path) -> None:
    """Write a model as config.json and model.safetensors, in the layout that it came from.

    Numbers are float32 where that holds all of them exactly, and float64 otherwise. Raises
    InputError for a model of no architecture that `load` knows, and where nothing can be written.
    """
    if not saveable(model):
        raise InputError("a model of its own architecture has no checkpoint layout to be saved in")
    config = dict(model.config) or {"model_type": "cellformer", **asdict(model.spec)}
    kind = config["model_type"]
    exact = all((w == np.asarray(w, dtype=np.float32)).all() for w in model.weights.values())
    dtype = np.dtype(np.float32 if exact else np.float64)
    wanted = shapes(kind, model.spec)
    places = {ours: piece for ours, piece in PIECES[kind](model.spec) if ours in wanted}
    tensors = {
        name: np.zeros(shape, dtype) for name, shape in foreign_shapes(places, wanted).items()
    }
    for ours, piece in places.items():
        values = np.asarray(model.weights[ours])
        values = values.T if piece.transposed else values
        target = tensors[piece.name]
        target[piece.slices] = values.reshape(target[piece.slices].shape)
    if kind != "cellformer":
        config["dtype"] = config["torch_dtype"] = dtype.name
    path = Path(folder)
    try:
        path.mkdir(parents=True, exist_ok=True)
        part = path / "model.safetensors.part"
        save_file(tensors, part, metadata={"format": "pt"})
        part.replace(path / "model.safetensors")
        (path / "config.json").write_text(json.dumps(config, indent=2) + "\n")
        save_tokenizer(model.vocabulary, path)
    except OSError as error:
        raise InputError(f"cannot write in {folder}: {error.strerror}") from None


def with_decimals(model: Model) -> Model:
    """The model with the shortest decimals that float32 knows its weights by."""
    weights = {
        name: replace(w, decimal=True)
        if isinstance(w, Stored)
        else decimals(np.asarray(w, dtype=np.float32))
        for name, w in model.weights.items()
    }
    return replace(model, weights=weights, exact=model)


EPS = {"gpt2": "layer_norm_epsilon", "gpt_neo": "layer_norm_epsilon", "gpt_neox": "layer_norm_eps"}


def with_eps(model: Model, eps: float) -> Model:
    """The model with another eps in all its norms, in its config too."""
    config = dict(model.config)
    if config:
        own = config["model_type"] == "cellformer"
        config["norm_eps" if own else EPS.get(config["model_type"], "rms_norm_eps")] = eps
    return replace(model, spec=replace(model.spec, norm_eps=eps), config=config)


def saveable(model: Model) -> bool:
    """Whether a model's architecture has a checkpoint layout."""
    kind = model.config.get("model_type", "cellformer")
    return model.architecture is ARCHITECTURES.get(kind) and model.outputs is None


def gpt2_model(spec: ModelSpec, weights: Mapping[str, np.ndarray], words: WordList) -> Model:
    """A trained GPT-2 style decoder with the config that GPT-2's own layout is saved with."""
    config = {
        "model_type": "gpt2",
        "architectures": ["GPT2LMHeadModel"],
        "vocab_size": spec.d_vocab,
        "n_positions": spec.n_ctx,
        "n_embd": spec.d_model,
        "n_layer": spec.n_layers,
        "n_head": spec.n_heads,
        "n_inner": spec.d_mlp,
        "activation_function": "gelu_new",
        "layer_norm_epsilon": spec.norm_eps,
        "tie_word_embeddings": spec.tied,
    }
    arrays = {name: np.asarray(values, dtype=np.float64) for name, values in weights.items()}
    return Model(spec, arrays, words, architecture=gpt2, config=config)


def shapes(kind: str, spec: ModelSpec) -> dict[str, tuple[int, ...]]:
    """The weights that an architecture asks for: our name -> shape, vectors with one axis."""
    blank = ARCHITECTURES[kind](spec, None, [0])
    return {b.name: b.shape if b.axes[0] else b.shape[1:] for b in blank if b.kind == "weight"}


def foreign_shapes(
    places: Mapping[str, Piece], wanted: Mapping[str, tuple[int, ...]]
) -> dict[str, tuple[int, ...]]:
    """The tensors that the pieces are cut from: foreign name -> shape."""
    found: dict[str, tuple[int, ...]] = {}
    for ours, piece in places.items():
        shape = list(wanted[ours][::-1] if piece.transposed else wanted[ours])
        if piece.stop is not None:
            before = found.get(piece.name)
            shape[piece.axis] = max(piece.stop, before[piece.axis] if before else 0)
        found[piece.name] = tuple(shape)
    return found


@dataclass(frozen=True)
class Held:
    """A tensor in a file, read when it is fetched; `file` where slices of it can be read."""

    shape: tuple[int, ...]
    dtype: str
    fetch: Callable[[], np.ndarray]
    file: SafetensorsFile | None = None


def in_safetensors(path: Path) -> Iterator[tuple[str, Held]]:
    """The tensors of a safetensors file."""
    try:
        opened = safe_open(path, framework="numpy")
    except (SafetensorError, OSError) as error:
        raise InputError(f"{path} is no safetensors file: {error}") from None
    slices = SafetensorsFile(path)
    for name in opened.keys():  # noqa: SIM118  it is no dict
        part = opened.get_slice(name)
        fetch = partial(opened.get_tensor, name)
        yield name, Held(tuple(part.get_shape()), part.get_dtype(), fetch, slices)


def in_torch(path: Path) -> Iterator[tuple[str, Held]]:
    """The tensors of a pytorch_model.bin, through torch's loader for weights alone: no pickle."""
    try:
        import torch
    except ImportError:
        raise InputError(
            f"{path} needs torch to be read; install it, or save the model as safetensors"
        ) from None
    try:
        tensors = torch.load(path, map_location="cpu", weights_only=True)
        items = [(str(name), tensor.to(torch.float64).numpy()) for name, tensor in tensors.items()]
    except Exception as error:  # torch raises nothing narrower
        raise InputError(f"{path} holds no weights: {str(error).splitlines()[0]}") from None
    for name, values in items:
        yield name, Held(values.shape, "F64", partial(np.asarray, values))


def weight_files(folder: Path) -> list[Path]:
    """The files that hold a checkpoint's weights: one, or the shards that its index names."""
    for single, index in (
        ("model.safetensors", "model.safetensors.index.json"),
        ("pytorch_model.bin", "pytorch_model.bin.index.json"),
    ):
        if (folder / single).is_file():
            return [folder / single]
        if (folder / index).is_file():
            names = Config(folder / index).get("weight_map", dict).values()
            paths = [folder / name for name in sorted(set(map(str, names)))]
            for path in paths:
                if not path.is_file():
                    raise InputError(f"{folder} lacks the shard {path.name}, which its index names")
            return paths
    raise InputError(f"{folder} holds no model.safetensors and no index of shards")


class Tensors:
    """The tensors of a checkpoint folder, whichever of its files each is in."""

    def __init__(self, folder: Path, prefix: str):
        """`prefix` is the base model's; some checkpoints leave it out of its names."""
        self.folder = folder
        self.held: dict[str, Held] = {}
        for path in weight_files(folder):
            reader = in_safetensors if path.suffix == ".safetensors" else in_torch
            self.held |= dict(reader(path))
        if prefix and not any(name.startswith(prefix) for name in self.held):
            self.held = {n if n in HEADS else prefix + n: t for n, t in self.held.items()}
        self.values: dict[str, np.ndarray] = {}

    def check(self, wanted: Mapping[str, tuple[int, ...]], tied: bool) -> None:
        """Raise InputError that lists everything missing, extra, or of a wrong shape or type."""
        faults = [f"{name} is missing" for name in wanted if name not in self.held]
        for name, held in self.held.items():
            if name not in wanted:
                if not (name.endswith(BUFFERS) or (tied and name in HEADS)):
                    faults.append(f"{name} is not a weight of this model")
                continue
            if held.shape != wanted[name]:
                faults.append(f"{name} has shape {by(held.shape)}, not {by(wanted[name])}")
            if held.dtype not in FLOATS:
                faults.append(f"{name} holds {held.dtype}, not floating-point numbers")
        if faults:
            listed = "; ".join(faults[:MAX_FAULTS])
            more = f"; and {len(faults) - MAX_FAULTS} more" if len(faults) > MAX_FAULTS else ""
            raise InputError(f"weights in {self.folder} do not fit config.json: {listed}{more}")

    def stored(self, piece: Piece) -> "np.ndarray | Stored":
        """A piece as it stays in its file; a vector is read."""
        held = self.held[piece.name]
        if len(held.shape) == 1 or held.file is None:
            return self.read(piece)
        spans = [(0, n) for n in held.shape]
        if piece.stop is not None:
            spans[piece.axis] = (piece.start, piece.stop)
        return Stored(held.file, piece.name, spans[0], spans[1], piece.transposed)

    def read(self, piece: Piece) -> np.ndarray:
        """A piece as float64, in our orientation. Raises InputError where it is not finite."""
        if piece.name not in self.values:
            values = self.held[piece.name].fetch().astype(np.float64)
            if not np.isfinite(values).all():
                raise InputError(f"{piece.name} in {self.folder} holds a value that is not finite")
            self.values[piece.name] = values
        values = self.values[piece.name][piece.slices]
        return values.T if piece.transposed else values


def by(shape: tuple[int, ...]) -> str:
    """A shape as text: 3 x 4."""
    return " x ".join(map(str, shape))
