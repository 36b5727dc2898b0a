"""Checkpoints in Hugging Face format: config.json and safetensors, read and written back.

Models in other formats are converted to this form first: see `formats`. The file of an architecture
says what a config means and where each weight stands. `model_type: cellformer` is our own layout:
the fields of ModelSpec, and weights by their names here.
"""

import json
from collections.abc import Container, Mapping
from dataclasses import asdict, replace
from fnmatch import fnmatch
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import save_file

from cellformer.engine.cells.arguments import explained
from cellformer.engine.cells.errors import InputError, first_line
from cellformer.engine.cells.files import replacing_folder
from cellformer.engine.models import (
    adapter,
    answering,
    architectures,
    classes,
    formats,
    seeing,
    sentence_modules,
)
from cellformer.engine.models.answering import Rules
from cellformer.engine.models.architectures import OWN
from cellformer.engine.models.foreign import Config, Piece, Pieces
from cellformer.engine.models.formats.folder import config_of
from cellformer.engine.models.formats.folder import reads as is_folder
from cellformer.engine.models.forward import weight_shapes
from cellformer.engine.models.model import Model
from cellformer.engine.models.spec import CLASSES, ModelSpec, TwoStackSpec
from cellformer.engine.models.tensors import Tensors, in_safetensors
from cellformer.engine.text.tokenizer import save_tokenizer

PARTS = (  # of a checkpoint, by their names
    "config.json",
    "generation_config.json",
    "*.safetensors",
    "*.index.json",
    "pytorch_model*.bin",
    "*token*.json",
    "tokenizer.model",
    "spiece.model",
    "*.spm",
    "vocab.*",
    "target_vocab.json",
    "merges.txt",
    "words.json",
    "characters.json",
    "chat_template.*",
    "README.md",
    ".gitattributes",
)
LAYERS = (
    "num_hidden_layers",
    "n_layer",
    "n_layers",
    "num_layers",
    "encoder_layers",
    "decoder_layers",
)  # what configs call their number
HEADS = ("ForCausalLM", "LMHeadModel", "ForConditionalGeneration")  # for the next word
MOST_HELD = 4_000_000  # weights of a model that is held whole


def load(name: str | Path, most_held: int = MOST_HELD) -> Model:
    """The model of a checkpoint folder, or of a file or a name that `formats` knows.

    Of more than `most_held` weights the matrices stay in their file, and are read as they are
    needed. Raises InputError for what does not fit together.
    """
    check_kind(str(name))
    source = formats.open_source(str(name))
    config, files = source.config, source.tensors
    architecture = architectures.find(config.get("model_type", str))
    check_layers(config, files)
    spec = _spec(architecture, config)
    rules = Rules()
    if isinstance(spec, TwoStackSpec):
        spec, rules = answering.read(config, spec)
    config.check_unread()
    check_sizes(spec, config, files)
    everywhere = dict(pieces_of(architecture, spec))
    embedding = everywhere["W_E"].name
    head = everywhere["W_U"].name if "W_U" in everywhere else ""
    files.restore_prefix(embedding, {piece.name for _, piece in pieces_of(architecture, spec)})
    if spec.tied and files.differ(embedding, head):  # then its reference does not tie them either
        spec = replace(spec, tied=False)
        config.values["tie_word_embeddings"] = False
    if as_held := getattr(architecture, "as_held", None):
        spec = as_held(spec, files.held)
    wanted = weight_shapes(architecture.forward, spec)
    places = held_places(pieces_of(architecture, spec), wanted, files.held)
    check_head(spec, config, files, head)
    files.check(foreign_shapes(places, wanted), head, getattr(architecture, "UNREAD", ()))
    n_weights = sum(int(np.prod(shape)) for shape in wanted.values())
    large = n_weights > most_held and files.can_stay(piece.name for piece in places.values())
    read = files.stored if large else files.read
    return Model(
        spec,
        {ours: read(piece) for ours, piece in places.items()},
        source.tokenizer(spec.d_vocab),
        classes.outputs(config, spec),
        architecture=architecture.forward,
        config=config.values,
        rules=rules,
    )


def check_kind(name: str) -> None:
    """Raise InputError for a folder of an architecture that is not known, before its weights are
    looked for: it may lack them yet."""
    if is_folder(name):
        architectures.find(seeing.kind_read(config_of(name)))


def with_adapter(model: Model, folder: str | Path, base: str) -> Model:
    """A checkpoint's model with the LoRA adapter in a folder (see `adapter`); `base` is the model's
    name in messages. Raises InputError for a folder without one, one that is not supported, and one
    for another base."""
    path = Path(folder)
    if not adapter.is_adapter(path):
        raise InputError(f"{path} contains no {adapter.CONFIG}; name the folder of a LoRA adapter")
    if not (path / adapter.WEIGHTS).is_file():
        raise InputError(f"{path} contains no {adapter.WEIGHTS}; save the adapter as safetensors")
    tensors = {
        n: t.fetch().astype(np.float64) for n, t in in_safetensors(path / adapter.WEIGHTS).items()
    }
    architecture = architectures.find(model.config.get("model_type", OWN))
    wanted = weight_shapes(architecture.forward, model.spec)
    places = held_places(pieces_of(architecture, model.spec), wanted)
    shapes = foreign_shapes(places, wanted)
    return replace(model, adapter=adapter.read(path, tensors, places, shapes, base))


class Packed(NamedTuple):
    """A weight as stored in its file: integers times scales, [in, out] each."""

    kind: str  # Q8_0 or Q4_0
    integers: np.ndarray
    scales: np.ndarray


def packed(name: str, model: Model) -> dict[str, Packed]:
    """The matrices of a model that its GGUF file holds as integers times scales, by name; none for
    other formats."""
    from cellformer.engine.models.formats import gguf  # only such a file needs its libraries

    if not gguf.reads(name):
        return {}
    kinds, integers, scales = gguf.integers(name)
    architecture = architectures.find(model.config["model_type"])
    wanted = weight_shapes(architecture.forward, model.spec)
    places = held_places(pieces_of(architecture, model.spec), wanted, integers.held)
    return {
        ours: Packed(kinds[piece.name], integers.read(piece), scales.read(piece))
        for ours, piece in places.items()
        if piece.name in kinds
    }


def pieces_of(architecture: architectures.Declared, spec: ModelSpec) -> Pieces:
    """The place of each weight in a checkpoint; a decoder's scores of labels stand in a tensor
    of that name."""
    if not (spec.causal and spec.gives == "class"):
        return (yield from architecture.pieces(spec))
    yield from (found for found in architecture.pieces(spec) if found[0] not in ("W_U", "b_U"))
    yield "W_U", Piece(classes.SCORES, transposed=True)


def check_head(spec: ModelSpec, config: Config, files: Tensors, head: str) -> None:
    """Raise InputError for a decoder with another head than that for the next word, and for one
    without any."""
    if spec.gives != "next word":
        return
    for name in config.listed("architectures", str):
        bare = name.endswith("Model") and not name.endswith(HEADS)
        if name.endswith(HEADS) or (bare and (spec.tied or head in files.held)):
            continue
        what = "has no head" if bare else "has a head that cellformer does not know"
        raise InputError(
            f"{config.path}: a {name} {what}. For a decoder, use ForCausalLM (next word) or "
            "ForSequenceClassification (class of a text). For a sentence encoder, add "
            "modules.json"
        )


def check_layers(config: Config, files: Tensors) -> None:
    """Raise InputError if a config has more layers than the files have tensors, before any is
    made."""
    for key in LAYERS:
        n = config.values.get(key)
        if isinstance(n, int) and n > len(files.held):
            raise InputError(
                f"{config.path}: {key} is {n:,}, but {files.path} contains only "
                f"{len(files.held):,} tensors, too few for so many layers; fetch both files again"
            )


def check_sizes(spec: ModelSpec, config: Config, files: Tensors) -> None:
    """Raise InputError for sizes that need more numbers than the files hold, in the queries alone
    or in one column of the embedding."""
    held = sum(prod(entry.shape) for entry in files.held.values())
    queries = spec.n_layers * spec.n_heads * spec.d_head * spec.d_model
    embedded = spec.d_vocab if spec.reads == "text" else 0
    if max(queries, embedded, spec.d_model, spec.d_mlp) > held:
        raise InputError(
            f"the weights do not fit the config: {config.path} says {spec.n_layers:,} layers of "
            f"{spec.n_heads:,} heads and {spec.d_model:,} features, {spec.d_vocab:,} words. But "
            f"{files.path} contains only {held:,} numbers; fetch both files again"
        )


def _spec(architecture: architectures.Declared, config: Config) -> ModelSpec:
    """The spec of a config; any error that an odd value causes becomes an InputError."""
    kind = config.values["model_type"]
    try:
        spec = classes.of_decoder(config, architecture.read_config(config))
        if kind != OWN and spec.n_layers and not (spec.n_heads or spec.d_state):
            raise InputError(
                f"{config.path} says 0 attention heads, but a {kind} needs at least 1; correct the "
                "number, or download the file again"
            )
        return spec
    except InputError:
        raise
    except (ArithmeticError, LookupError, TypeError, ValueError, AttributeError) as error:
        fault = f"{type(error).__name__}: {first_line(error)}"
        raise InputError(f"{config.path} is not the config of a {kind} ({fault})") from None


@explained
def save(model: Model, folder: str | Path, force: bool = False) -> None:
    """Write a model as config.json and model.safetensors, in the layout that it was read from.

    With `force`, a model in the folder is replaced completely. Raises InputError if the folder may
    not be replaced or written, and for a model whose architecture has no layout.

    >>> cf.save(cf.load("cat-sat"), "cat-sat-model")
    >>> cf.load("cat-sat-model")
    <Model cellformer: 300 weights, 1 layers, 1 heads, d_model 5, 20 tokens>
    """
    if model.adapter:
        raise InputError("a model with an adapter cannot be saved; save model.merged() instead")
    if not saveable(model):
        raise InputError("this model cannot be saved: its architecture has no checkpoint format")
    with replacing_folder(Path(folder), is_part, force) as path:
        write(model, path)


def write(model: Model, folder: Path) -> None:
    """Write the files of a saveable model into an empty folder. Raises InputError."""
    config = dict(model.config) or {"model_type": OWN, **changed_fields(model.spec)}
    dtype = number_type(model)
    if config["model_type"] != OWN:
        config["dtype"] = config["torch_dtype"] = dtype.name
    tensors = foreign_tensors(model, architectures.find(config["model_type"]), dtype)
    try:
        save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    except SafetensorError as error:
        raise InputError(
            f"cannot write model.safetensors: {first_line(error)}; free some disk space"
        ) from None
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    sentence_modules.save(config, tensors, folder)
    save_tokenizer(model.vocabulary, folder)
    if isinstance(model.spec, TwoStackSpec):
        answering.save(model.rules, model.spec.start, folder)


def is_part(name: str) -> bool:
    """Whether a file name belongs to a checkpoint."""
    return any(fnmatch(name, pattern) for pattern in PARTS)


@np.errstate(over="ignore")  # what overflows is not the same, and kept in float64
def number_type(model: Model) -> np.dtype[Any]:
    """float32, or float16 if the config says so, provided that it holds every number exactly; else
    float64."""
    small = np.dtype(np.float16 if model.config.get("dtype") == "float16" else np.float32)
    for dtype in (small, np.dtype(np.float32)):
        if all((w == np.asarray(w, dtype=dtype)).all() for w in model.weights.values()):
            return dtype
    return np.dtype(np.float64)


def saveable(model: Model) -> bool:
    """Whether a model's architecture has a checkpoint layout."""
    known = architectures.of(model.config.get("model_type", OWN))
    own = known is not None and model.architecture == known.forward
    named = model.outputs is None or model.spec.gives in CLASSES  # whose labels the config has
    return own and named and not model.adapter


def changed_fields(spec: ModelSpec) -> dict[str, Any]:
    """The fields of a spec that differ from their defaults, by name."""
    defaults = {name: field.default for name, field in ModelSpec.__dataclass_fields__.items()}
    return {name: v for name, v in asdict(spec).items() if v != defaults.get(name, v)}


def foreign_tensors(
    model: Model, architecture: architectures.Declared, dtype: np.dtype[Any]
) -> dict[str, np.ndarray]:
    """A model's weights as the tensors of its layout."""
    wanted = weight_shapes(architecture.forward, model.spec)
    places = held_places(pieces_of(architecture, model.spec), wanted)
    shapes = foreign_shapes(places, wanted)
    tensors = {name: np.zeros(shape, dtype) for name, shape in shapes.items()}
    for ours, piece in places.items():
        values = np.asarray(model.weights[ours])
        values = values.T if piece.transposed else values
        target = tensors[piece.name]
        target[piece.slices] = values.reshape(target[piece.slices].shape)
    for piece in places.values():
        whole = tensors[piece.name]
        if shape := piece.shape or (piece.stack and (piece.stack, -1, whole.shape[-1])):
            tensors[piece.name] = whole.reshape(shape)
    constants = getattr(architecture, "constants", None)
    return tensors | (constants(model.spec, dtype) if constants else {})


def held_places(
    pieces: Pieces, wanted: Container[str], held: Container[str] = ()
) -> dict[str, Piece]:
    """The place of each weight: of several possible places, the first whose tensor exists, or
    the first."""
    places: dict[str, Piece] = {}
    for ours, piece in pieces:
        if places.setdefault(ours, piece).name not in held and piece.name in held:
            places[ours] = piece
    return {ours: piece for ours, piece in places.items() if ours in wanted}


def foreign_shapes(
    places: Mapping[str, Piece], wanted: Mapping[str, tuple[int, ...]]
) -> dict[str, tuple[int, ...]]:
    """The shapes of the tensors that pieces are cut from: foreign name -> shape."""
    found: dict[str, tuple[int, ...]] = {}
    for ours, piece in places.items():
        shape = list(wanted[ours][::-1] if piece.transposed else wanted[ours])
        shape = [1, *shape] if piece.row else shape
        shape[-1] *= piece.columns[1]
        if piece.stop is not None:
            before = found.get(piece.name)
            shape[piece.axis] = max(piece.stop, before[piece.axis] if before else 0)
        found[piece.name] = tuple(shape)
    return found
