"""The tensors of a checkpoint folder, whichever of its files each is in."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import ml_dtypes  # noqa: F401  teaches numpy bfloat16
import numpy as np
from safetensors import SafetensorError, safe_open

from engine.cells.errors import InputError, sides
from engine.cells.stored import SafetensorsFile, Stored
from engine.models.foreign import Config, Piece

FLOATS = ("F64", "F32", "F16", "BF16")
MAX_FAULTS = 12  # listed in one message
WRAPPERS = ("_orig_mod.", "module.")  # what compiling or training in parallel puts before names
BUFFERS = (  # stored in some checkpoints, and no weights
    ".attn.bias",
    ".attn.masked_bias",
    ".attention.bias",
    ".attention.masked_bias",
    "rotary_emb.inv_freq",
)


@dataclass(frozen=True)
class TensorEntry:
    """A tensor in a file, read when it is fetched; `file` where slices of it can be read."""

    shape: tuple[int, ...]
    dtype: str
    fetch: Callable[[], np.ndarray]
    file: SafetensorsFile | None = None


def in_safetensors(path: Path) -> Iterator[tuple[str, TensorEntry]]:
    """The tensors of a safetensors file."""
    try:
        opened = safe_open(path, framework="numpy")
    except (SafetensorError, OSError) as error:
        raise InputError(f"{path} is no safetensors file: {error}") from None
    slices = SafetensorsFile(path)
    for name in opened.keys():  # noqa: SIM118  it is no dict
        part = opened.get_slice(name)
        fetch = partial(opened.get_tensor, name)
        yield name, TensorEntry(tuple(part.get_shape()), part.get_dtype(), fetch, slices)


def in_torch(path: Path) -> Iterator[tuple[str, TensorEntry]]:
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
        yield name, TensorEntry(values.shape, "F64", partial(np.asarray, values))


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

    def __init__(self, folder: Path):
        self.folder = folder
        self.held: dict[str, TensorEntry] = {}
        for path in weight_files(folder):
            reader = in_safetensors if path.suffix == ".safetensors" else in_torch
            self.held |= dict(reader(path))
        for wrapper in WRAPPERS:
            if all(name.startswith(wrapper) for name in self.held):
                self.held = {n.removeprefix(wrapper): t for n, t in self.held.items()}
        self.values: dict[str, np.ndarray] = {}

    def restore_prefix(self, embedding: str, head: str) -> None:
        """Give names the base model's prefix where a checkpoint leaves it out.

        `embedding` has the prefix, and `head`, the unembedding, stands outside the base model.
        """
        first, dot, _ = embedding.partition(".")
        if dot and not any(name.startswith(first + dot) for name in self.held):
            self.held = {n if n == head else first + dot + n: t for n, t in self.held.items()}

    def differ(self, one: str, other: str) -> bool:
        """Whether there are both tensors, and they are not the same."""
        if one not in self.held or other not in self.held:
            return False
        return not np.array_equal(self.held[one].fetch(), self.held[other].fetch())

    def check(self, wanted: Mapping[str, tuple[int, ...]], head: str) -> None:
        """Raise InputError that lists everything missing, extra, or of a wrong shape or type.

        `head` is the unembedding, which may stand beside an embedding that it is tied to.
        """
        faults = [f"{name} is missing" for name in wanted if name not in self.held]
        for name, held in self.held.items():
            if name not in wanted:
                if not name.endswith(BUFFERS) and name != head:
                    faults.append(f"{name} is not a weight of this model")
                continue
            if held.shape != wanted[name]:
                faults.append(f"{name} has shape {sides(held.shape)}, not {sides(wanted[name])}")
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
