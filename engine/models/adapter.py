"""LoRA adapters (Hu et al. 2021, section 4): two thin matrices beside a weight, as PEFT saves them.

An adapted weight is read as W + factor x A x B, with A [in, rank] and B [rank, out] oriented as
weights are here; factor is the adapter's scale times the cell `merge`, 1 or 0. Where several
weights are slices of one tensor of the base, as heads are, they share the matrix on the side that
is not sliced.
"""

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from itertools import takewhile
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np

from cellformer.engine.cells.block import Block
from cellformer.engine.cells.errors import InputError, check_all, sides
from cellformer.engine.cells.fields import Fields
from cellformer.engine.cells.graph import Graph
from cellformer.engine.cells.interventions import AnyGraph, intervened
from cellformer.engine.models import ops
from cellformer.engine.models.foreign import Piece

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
MERGE, ADAPTER, RANK = "merge", "adapter", "rank"
PREFIX, MATRICES = "base_model.model.", ("lora_A", "lora_B")  # of names in the file; its ends
# Fields of a config that do not change what an adapter computes
NO_MATTER = (
    *("auto_mapping", "base_model_name_or_path", "revision", "inference_mode", "task_type"),
    *("peft_version", "lora_dropout", "layers_pattern", "layers_to_transform", "exclude_modules"),
    *("target_modules", "megatron_core", "qalora_group_size", "fan_in_fan_out", "eva_config"),
    *("ensure_weight_tying", "runtime_config"),
)
CHANGE_THE_BASE = ("pissa", "olora", "corda", "loftq")  # ways to begin that change its weights


@dataclass(frozen=True)
class Pair:
    """The names of the two matrices of a weight."""

    a: str
    b: str


@dataclass(frozen=True)
class Adapter:
    """An adapter of a model's weights."""

    scale: float  # of the product: alpha / rank, or alpha / sqrt(rank)
    pairs: Mapping[str, Pair]  # by the name of the weight
    matrices: Mapping[str, np.ndarray]  # by name: [in, rank] or [rank, out]

    def added(self, graph: AnyGraph) -> AnyGraph:
        """The graph of the base, in which readers of adapted weights read them with the adapter."""
        return intervened(graph, dict.fromkeys(self.pairs, self._used))

    def _used(self, g: Graph, name: str, weight: Block) -> Block:
        pair, (rows, cols) = self.pairs[weight.name], weight.axes
        a = self._matrix(g, pair.a, (rows, RANK))  # [in, rank]
        b = self._matrix(g, pair.b, (RANK, cols))  # [rank, out]
        return g.block(name, ops.adapted, weight, a, b, self._factor(g))  # as the weight

    def _matrix(self, g: Graph, name: str, axes: tuple[str, str]) -> Block:
        return g.blocks.get(name) or g.input(name, self.matrices[name], axes, "weight")

    def _factor(self, g: Graph) -> Block:
        """The factor of all products: [1, 1]."""
        if known := g.blocks.get(f"{ADAPTER}.factor"):
            return known
        at, merge = g.at(ADAPTER), g.input(MERGE, 1.0)
        return at.block("factor", ops.in_effect, merge, at.input("scale", self.scale))

    def merged(self, weights: Mapping[str, Any]) -> dict[str, Any]:
        """The base's weights with the adapter's in them, as LoRA merges them for inference."""
        found = dict(weights)
        for name, pair in self.pairs.items():
            change = self.scale * (self.matrices[pair.a] @ self.matrices[pair.b])
            found[name] = np.asarray(weights[name]) + change.reshape(np.shape(weights[name]))
        return found


def is_adapter(folder: Path) -> bool:
    """Whether a folder holds an adapter."""
    return (folder / CONFIG).is_file()


def read(
    folder: Path,
    tensors: Mapping[str, np.ndarray],
    pieces: Mapping[str, Piece],
    shapes: Mapping[str, tuple[int, ...]],
    base: str,
) -> Adapter:
    """The adapter in a folder, with its tensors by name, for a base whose weights are `pieces`
    of tensors of some `shapes`. Raises InputError for an unsupported adapter, and for another
    base's."""
    rank, scale = _sizes(Fields(folder / CONFIG))
    pairs: dict[str, Pair] = {}
    matrices: dict[str, np.ndarray] = {}
    for module, (a, b) in _modules(folder, tensors).items():
        tensor = _tensor(module, {piece.name for piece in pieces.values()})
        cut = {ours: piece for ours, piece in pieces.items() if piece.name == tensor}
        if not cut:
            raise InputError(
                f"{folder} is an adapter for another base model: {base} has no {module}"
            )
        shape = shapes[tensor][:: -1 if next(iter(cut.values())).transposed else 1]  # [in, out]
        if (a.shape, b.shape) != ((rank, shape[0]), (shape[1], rank)):
            raise InputError(
                f"{folder} is an adapter for another base model than {base}, or its rank is not "
                f"{rank}. {module} has shape {sides(shape)}, and its matrices have shapes "
                f"{sides(a.shape)} and {sides(b.shape)}"
            )
        for ours, pair, own in _sliced(module, cut, a.T, b.T):
            pairs[ours], matrices = pair, matrices | own
    return Adapter(scale, pairs, matrices)


def _tensor(module: str, known: Set[str]) -> str:
    """The tensor of a module: an adapter of a model without its head leaves out the first word of
    names, `bert.`."""
    name = f"{module}.weight"
    longer = [other for other in known if other.partition(".")[2] == name]
    return longer[0] if name not in known and len(longer) == 1 else name


def _sliced(
    module: str, pieces: Mapping[str, Piece], a: np.ndarray, b: np.ndarray
) -> Iterator[tuple[str, Pair, dict[str, np.ndarray]]]:
    """Each weight cut from a tensor, with its matrices: a [in, rank], b [rank, out]."""
    alike = takewhile(
        lambda words: len({*words}) == 1, zip(*(name.split(".") for name in pieces), strict=False)
    )
    first = ".".join([*(words[0] for words in alike), module.rpartition(".")[2]])
    shared = first if len(pieces) > 1 else next(iter(pieces))
    for ours, piece in pieces.items():
        span = slice(piece.start, piece.stop)
        of_inputs = (piece.axis == 0) != piece.transposed  # the side that it is a slice of
        whole = piece.stop is None
        name_a = f"{ours if of_inputs and not whole else shared}.{MATRICES[0]}"
        name_b = f"{shared if of_inputs or whole else ours}.{MATRICES[1]}"
        own = {name_a: a[span] if of_inputs else a, name_b: b if of_inputs else b[:, span]}
        yield ours, Pair(name_a, name_b), own


def _modules(
    folder: Path, tensors: Mapping[str, np.ndarray]
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """The two matrices of each adapted module. Raises InputError for any other tensor."""
    found: dict[str, dict[str, np.ndarray]] = {}
    for name, values in tensors.items():
        module, _, end = name.removesuffix(".weight").removeprefix(PREFIX).rpartition(".")
        if end not in MATRICES or not name.startswith(PREFIX) or values.ndim != 2:
            raise InputError(
                f"{folder} contains {name}, but cellformer reads only lora_A and lora_B of an "
                "adapter"
            )
        if not np.isfinite(values).all():
            raise InputError(
                f"{name} in {folder} contains a value that is infinite or not a number; download "
                "the folder again, or save the adapter again"
            )
        found.setdefault(module, {})[end] = values
    for module in (module for module, matrices in found.items() if len(matrices) < len(MATRICES)):
        raise InputError(
            f"{folder} has only one of the two matrices for {module}; fetch the folder again"
        )
    if not found:
        raise InputError(f"{folder} contains no lora_A and lora_B; fetch the folder again")
    return {module: (m[MATRICES[0]], m[MATRICES[1]]) for module, m in found.items()}


def _sizes(said: Fields) -> tuple[int, float]:
    """The rank and the scale in a config. Raises InputError for unsupported ones."""
    kind = said.get("peft_type", str)
    if kind != "LORA":
        raise InputError(f"{said.path}: peft_type {kind} is not supported; only LORA is supported")
    rank, alpha = said.get("r", int), said.get("lora_alpha", float, 8.0)
    rooted = said.get("use_rslora", bool, False)
    if rank < 1:
        raise InputError(f"{said.path}: r is {rank}; it must be at least 1")
    if said.get("bias", str, "none") != "none":
        raise InputError(
            f"{said.path}: bias {said.values['bias']!r} is not supported; only 'none' is supported"
        )
    begun = str(said.look("init_lora_weights")).lower()
    if begun.startswith(CHANGE_THE_BASE):
        raise InputError(
            f"{said.path}: init_lora_weights {begun!r} also changes the base model's weights; "
            "convert the adapter to LoRA, and save the result"
        )
    check_all(*(
        (
            not value or name in said.asked or name in NO_MATTER,
            f"{said.path}: {name} = {value!r} is not supported",
        )
        for name, value in said.values.items()
    ))  # fmt: skip
    return rank, alpha / (sqrt(rank) if rooted else rank)
