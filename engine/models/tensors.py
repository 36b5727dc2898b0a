"""The tensors of a checkpoint by their Hugging Face names, from whichever file each is in."""

import re
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import Any
from zipfile import is_zipfile

import ml_dtypes  # noqa: F401  teaches numpy bfloat16
import numpy as np
from safetensors import SafetensorError, safe_open

from cellformer.engine.cells.errors import InputError, first_line, sides
from cellformer.engine.cells.fields import Fields
from cellformer.engine.cells.stored import (
    DTYPES,
    MOST_TENSORS,
    MatrixFile,
    SafetensorsFile,
    Span,
    Stored,
    TensorFile,
    tall,
)
from cellformer.engine.models.foreign import Piece

NO_MODELS = ("adapter_model.safetensors", "consolidated.safetensors")  # or in another form
FLOATS = ("F64", "F32", "F16", "BF16")
MOST_HEADER = 20_000_000  # bytes of a safetensors file; of the largest models, 1 million a shard
MAX_FAULTS = 12  # listed in one message
NO_WEIGHTS = "contains no weights with names; save the model's state_dict, as safetensors"
WRAPPERS = ("_orig_mod.", "module.")  # what compiling or training in parallel puts before names
OF_OLD = (("LayerNorm.gamma", "LayerNorm.weight"), ("LayerNorm.beta", "LayerNorm.bias"))
BUFFERS = (  # stored in some checkpoints, and no weights
    ".attn.bias",
    ".attn.masked_bias",
    ".attention.bias",
    ".attention.masked_bias",
    "rotary_emb.inv_freq",
    "decoder.version",
    "scale_mask_softmax.causal_mask",
    "embeddings.position_ids",
)


@dataclass(frozen=True)
class TensorEntry:
    """A tensor in a file, read when it is needed; `file` is set if slices of it can be read.

    `name` is the file's own name for it, and a `turned` matrix is stored transposed.
    """

    shape: tuple[int, ...]
    dtype: str
    fetch: Callable[[], np.ndarray]
    file: MatrixFile | None = None
    name: str = ""
    turned: bool = False


def entry(file: "TensorFile | Made", name: str, turned: bool = False) -> TensorEntry:
    """The entry of a tensor at a known place in a file."""
    shape = file.shape(name)[::-1] if turned else file.shape(name)

    def fetch() -> np.ndarray:
        values = file.whole(name)
        return values.T if turned else values

    return TensorEntry(shape, label(file.dtype(name)), fetch, file, name, turned)


@dataclass(frozen=True)
class Made:
    """A tensor with the interface of a file, whose rows something else gives: memory, or what
    unpacks them."""

    path: Path
    sides: tuple[int, ...]
    kind: np.dtype[Any]
    rows: Callable[[int, int], np.ndarray]  # [start, stop)

    def shape(self, name: str) -> tuple[int, ...]:
        """Its shape."""
        return self.sides

    def dtype(self, name: str) -> Any:
        """The type of its numbers."""
        return self.kind

    def read(self, name: str, rows: Span, again: bool) -> np.ndarray:
        """Rows [start, stop)."""
        return self.rows(*rows)

    def whole(self, name: str) -> np.ndarray:
        """All rows."""
        return self.rows(0, self.sides[0])


def held(path: Path, name: str, values: np.ndarray) -> TensorEntry:
    """The entry of a tensor in memory; the path is for messages."""
    file = Made(path, values.shape, values.dtype, lambda start, stop: values[start:stop])
    return TensorEntry(values.shape, label(values.dtype), partial(np.asarray, values), file, name)


def label(dtype: Any) -> str:
    """The name of a number type in safetensors files; other types keep their own."""
    return {kind: name for name, kind in DTYPES.items()}.get(dtype, str(dtype))


def in_safetensors(path: Path) -> dict[str, TensorEntry]:
    """The tensors of a safetensors file."""
    try:
        with path.open("rb") as beginning:
            n_bytes = int.from_bytes(beginning.read(8), "little")
        if path.stat().st_size > n_bytes > MOST_HEADER:
            raise InputError(
                f"{path} has a header of {n_bytes:,} bytes, too large for a model; download the "
                "file again"
            )
        opened: Any = safe_open(path, framework="numpy")
    except (SafetensorError, OSError) as error:
        raise InputError(f"{path} is not a safetensors file: {error}") from None
    if len(opened.keys()) > MOST_TENSORS:
        raise InputError(
            f"{path} has {len(opened.keys()):,} tensors, too many for a model; download the file "
            "again"
        )
    file, found = SafetensorsFile(path), {}
    for name in opened.keys():  # noqa: SIM118  it is no dict
        part = opened.get_slice(name)
        shape = tall(tuple(part.get_shape()))
        fetch = partial(whole, opened, name, shape)
        slices = file if name in file.places else None
        found[name] = TensorEntry(shape, part.get_dtype(), fetch, slices, name)
    return found


def whole(opened: Any, name: str, shape: tuple[int, ...]) -> np.ndarray:
    """A whole tensor of an open safetensors file."""
    return np.asarray(opened.get_tensor(name)).reshape(shape)


def in_torch(path: Path) -> dict[str, TensorEntry]:
    """The tensors of a pytorch_model.bin."""
    return {n: held(path, n, values) for n, values in arrays(path, torch_load(path)).items()}


def arrays(path: Path, tensors: Mapping[Any, Any]) -> dict[str, np.ndarray]:
    """Torch's tensors as arrays; bfloat16, which numpy lacks, becomes float32."""
    import torch

    if not all(isinstance(tensor, torch.Tensor) for tensor in tensors.values()):
        raise InputError(f"{path} {NO_WEIGHTS}")
    return {str(name): _array(path, str(name), tensor) for name, tensor in tensors.items()}


def _array(path: Path, name: str, tensor: Any) -> np.ndarray:
    """A tensor of torch's as an array."""
    import torch

    odd = "sparse" if tensor.layout != torch.strided else ""
    odd = odd or ("quantized" if tensor.is_quantized else "without numbers" * tensor.is_meta)
    if not odd and tensor.numel() * tensor.element_size() > tensor.untyped_storage().nbytes():
        odd = "larger than its stored data"
    try:
        if odd:
            raise TypeError(f"it is {odd}")
        plain = tensor.float() if tensor.dtype == torch.bfloat16 else tensor
        found: np.ndarray = plain.detach().numpy()
    except (TypeError, RuntimeError) as error:
        raise InputError(
            f"{name} in {path} is not a plain tensor: {first_line(error)}; save it as a plain "
            "tensor"
        ) from None
    return found.reshape(tall(tuple(tensor.shape)))


def torch_load(path: Path) -> dict[Any, Any]:
    """The content of a torch file, read by torch's loader for weights alone, which runs no code."""
    try:
        import torch
    except ImportError:
        raise InputError(
            f"cellformer needs torch to read {path}; install torch, or save the model as "
            "safetensors"
        ) from None
    try:
        mapped = is_zipfile(path)  # as torch has written files since its version 1.6
        with warnings.catch_warnings(action="ignore"):  # of how torch itself reads some tensors
            found = torch.load(path, map_location="cpu", weights_only=True, mmap=mapped)
    except Exception as error:  # torch raises nothing narrower
        raise InputError(f"{path} contains no weights: {first_line(error)}") from None
    if not isinstance(found, dict):
        raise InputError(f"{path} {NO_WEIGHTS}")
    return found


def inside(folder: Path, name: str, what: str) -> Path:
    """The path of a file name found inside a folder's file. Raises InputError if it is outside the
    folder."""
    if re.search(r"^[/\\]|:|(^|[/\\])\.\.([/\\]|$)", name):
        raise InputError(
            f"{folder / what} {name!r} is outside the model's folder, so cellformer does not "
            "read it; put all files of the model into one folder"
        )
    return folder / name


def weight_files(folder: Path) -> list[Path]:
    """The files of a checkpoint's weights: one, or the shards in its index."""
    for single, index in (
        ("model.safetensors", "model.safetensors.index.json"),
        ("pytorch_model.bin", "pytorch_model.bin.index.json"),
    ):
        if (folder / single).is_file():
            return [folder / single]
        if (folder / index).is_file():
            names = Fields(folder / index).get("weight_map", dict).values()
            paths = [
                inside(folder, name, f"{index}: the shard") for name in sorted(set(map(str, names)))
            ]
            for path in (path for path in paths if not path.is_file()):
                raise InputError(
                    f"{folder} lacks the shard {path.name}, which the model's index lists"
                )
            return paths
    others = [path for path in sorted(folder.glob("*.safetensors")) if path.name not in NO_MODELS]
    if len(others) == 1:
        return others
    found = f", but {', '.join(path.name for path in others)}" if others else ""
    raise InputError(
        f"{folder} has no model.safetensors and no index of shards{found}; download the weights, "
        "too"
    )


def of_folder(folder: Path) -> dict[str, TensorEntry]:
    """The tensors of a checkpoint folder in Hugging Face format."""
    found: dict[str, TensorEntry] = {}
    for path in weight_files(folder):
        found |= (in_safetensors if path.suffix == ".safetensors" else in_torch)(path)
    return found


class Tensors:
    """The tensors of a checkpoint, from all its files; `path` is for messages."""

    def __init__(self, path: Path, held: Mapping[str, TensorEntry]):
        self.path = path
        self.held = dict(held)
        for wrapper in WRAPPERS:
            if all(name.startswith(wrapper) for name in self.held):
                self.held = {n.removeprefix(wrapper): t for n, t in self.held.items()}
        for old, new in OF_OLD:
            self.held = {n.replace(old, new): t for n, t in self.held.items()}
        self.values: dict[str, np.ndarray] = {}

    def can_stay(self, names: Iterable[str]) -> bool:
        """Whether all matrices among these tensors can stay in their files."""
        entries = [self.held[name] for name in names]
        return all(entry.file for entry in entries if len(entry.shape) > 1)

    def restore_prefix(self, embedding: str, known: Collection[str]) -> None:
        """Add the base model's prefix to tensor names if a checkpoint leaves it out.

        `embedding` has the prefix; some `known` names stand outside the base model.
        """
        first, dot, _ = embedding.partition(".")
        if dot and not any(name.startswith(first + dot) for name in self.held):
            self.held = {n if n in known else first + dot + n: t for n, t in self.held.items()}

    def differ(self, one: str, other: str) -> bool:
        """Whether both tensors exist and are different."""
        there = one in self.held and other in self.held
        return there and not np.array_equal(self.held[one].fetch(), self.held[other].fetch())

    def check(
        self, wanted: Mapping[str, tuple[int, ...]], head: str, unread: Sequence[str] = ()
    ) -> None:
        """Raise InputError with a list of everything missing, extra, or of a wrong shape or type.

        `head` is the unembedding, which may be present although it is tied to the embedding;
        `unread` are patterns of names that the reference may have and that are not used here.
        """
        faults = [f"{name} is missing" for name in wanted if name not in self.held]
        for name, held in self.held.items():
            if name not in wanted:
                extra = name.endswith(BUFFERS) or any(fnmatch(name, p) for p in unread)
                if not extra and name != head:
                    faults.append(f"{name} is not a weight of this model")
                continue
            if held.shape != wanted[name]:
                faults.append(f"{name} has shape {sides(held.shape)}, not {sides(wanted[name])}")
            if held.dtype not in FLOATS:
                faults.append(f"{name} contains {held.dtype}, not floating-point numbers")
        if faults:
            listed = "; ".join(faults[:MAX_FAULTS])
            more = f"; and {len(faults) - MAX_FAULTS} more" if len(faults) > MAX_FAULTS else ""
            raise InputError(f"weights in {self.path} do not match the config: {listed}{more}")

    def stored(self, piece: Piece) -> "np.ndarray | Stored":
        """A piece that stays in its file; a vector is read."""
        held = self.held[piece.name]
        whole_columns = not piece.row and piece.columns == (0, 1)
        if len(held.shape) == 1 or held.file is None or not whole_columns:
            return self.read(piece)
        rows, cols = held.shape[::-1] if held.turned else held.shape
        whole = Stored(held.file, held.name, (0, rows), (0, cols), held.turned)
        part = whole.part(*(*piece.slices, slice(None))[:2])
        return part.swapaxes(0, 1) if piece.transposed else part

    def read(self, piece: Piece) -> np.ndarray:
        """A piece as float64, oriented as here. Raises InputError if it is not finite."""
        if piece.name not in self.values:
            values = self.held[piece.name].fetch().astype(np.float64)
            if not np.isfinite(values).all():
                raise InputError(
                    f"{piece.name} in {self.path} contains a value that is infinite or not a "
                    "number; download the file again"
                )
            values.flags.writeable = False
            self.values[piece.name] = values
        values = self.values[piece.name][piece.slices]
        values = values[0] if piece.row else values
        return values.T if piece.transposed else values
