"""Quantized folders whose parts, or whose config, do not fit together.

No damage may be taken with other weights than the right ones. So each is one that arithmetic can
see: another type, another shape, a part that is gone, an index that leads nowhere, an odd state.
Another number in its place, which nobody can see, is none.
"""

import json
import random
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from format_writers import small_llama
from packed_writers import WAYS, quantized
from safetensors.numpy import load_file, save_file

from cellformer.engine.models import checkpoint
from hostile_kinds.cases import TEXTS, VALUES, Case, Cases, Kind

Damage = Callable[[np.ndarray, random.Random], np.ndarray | None]  # None: the part is gone
FLOATS = (np.float16, np.float32, np.float64)
TYPES = (np.uint8, np.int8, np.int16, np.int32, np.uint32, np.int64, bool, *FLOATS)
STATE = ("shape", "blocksize", "nested_blocksize", "nested_offset")
COMMANDS = (
    ["info", "model"],
    ["run", "model", "--ids", "0,1"],
    ["generate", "model", "--ids", "1", "-n", "2"],
)
OPTIONS = {  # of the config, with values that would be others' to know
    "bits": (2, 3, 8, 5),
    "group_size": (0, -1, 8, 17, 32, 128, 10**9),
    "version": ("gemv", "gemm_fast"),
    "checkpoint_format": ("gptq_v2", "marlin"),
    "quant_method": ("awq", "gptq", "mlx", "bitsandbytes", "fp8", "hqq"),
    "mode": ("mxfp4", "nvfp4"),
    "desc_act": (False, True),
}


@cache
def right(way: str) -> tuple[dict[str, bytes], dict[str, np.ndarray]]:
    """The files of a quantized folder, and its weights."""
    with tempfile.TemporaryDirectory() as at:
        folder = small_llama(Path(at) / "model")
        quantized(folder, way)
        files = {path.name: path.read_bytes() for path in folder.iterdir()}
        return files, weights_of(folder)


def weights_of(folder: Path) -> dict[str, np.ndarray]:
    """All weights of a folder."""
    return {n: np.asarray(w) for n, w in checkpoint.load(folder).weights.items()}


def typed(values: np.ndarray, draw: random.Random) -> np.ndarray:
    """Numbers of another type: the same, or the same bytes. Those with a point lose it: a number
    that is only rounded is as good as any."""
    floats = np.dtype(values.dtype).kind == "f"
    kind = draw.choice([k for k in TYPES if k != values.dtype and not (floats and k in FLOATS)])
    if draw.random() < 0.5 and values.dtype.itemsize == np.dtype(kind).itemsize:
        return values.view(kind)
    with np.errstate(all="ignore"):
        return values.astype(kind)


def cut(values: np.ndarray, draw: random.Random) -> np.ndarray:
    """Fewer rows, fewer columns, none, or more."""
    shorter, n = values, len(values)
    how = draw.choice(("rows", "columns", "none", "more", "one"))
    if how == "columns" and values.ndim > 1:
        return values[:, : draw.randrange(values.shape[1])]
    shorter = {"none": values[:0], "one": values[:1]}.get(how, values[: draw.randrange(n)])
    return np.concatenate([values, values[:1]]) if how == "more" else shorter


def shaped(values: np.ndarray, draw: random.Random) -> np.ndarray:
    """The same numbers in another shape."""
    shapes = [(-1,), (1, -1), (-1, 1), (1, -1, 1), values.shape[::-1], (-1, 2), (2, -1)]
    fit = [shape for shape in shapes if values.size % 2 == 0 or 2 not in shape]
    return values.reshape(draw.choice(fit))


def other_indices(values: np.ndarray, draw: random.Random) -> np.ndarray:
    """One index, or all, that are no group's, or another's."""
    changed = values.copy()
    at = draw.choice((slice(None), draw.randrange(values.size)))
    changed.reshape(-1)[at] = draw.choice((-1, 0, 1, 2, 99, 2**31 - 1, -(2**31)))
    return changed


def other_state(values: np.ndarray, draw: random.Random) -> np.ndarray:
    """A state with an odd field, without one, or that is no state."""
    said = json.loads(values.tobytes())
    name = draw.choice(STATE)
    if draw.random() < 0.2:
        return np.frombuffer(draw.choice(TEXTS[1:]), np.uint8)
    if draw.random() < 0.2:
        said.pop(name)
        return np.frombuffer(json.dumps(said).encode(), np.uint8)
    odd = [v for v in VALUES if name != "nested_offset" or not v.lstrip("-")[0].isdigit()]
    text = json.dumps(said | {name: "HERE"}).replace('"HERE"', draw.choice(odd))
    return np.frombuffer(text.encode(), np.uint8)


def gone(values: np.ndarray, draw: random.Random) -> None:
    """No part."""


def damage(end: str, draw: random.Random) -> Damage:
    """A damage for a part, by the end of its name."""
    if "quant_state" in end:
        return draw.choice((other_state, other_state, other_state, gone))
    if end == "g_idx":
        return draw.choice((other_indices, typed, cut, gone))
    return draw.choice((typed, cut, shaped, gone))


def parts(rng: random.Random) -> Cases:
    """A part of a quantized matrix that does not fit."""
    while True:
        way, seed = rng.choice(list(WAYS)), rng.random()

        def prepare(folder: Path, way: str = way, seed: float = seed) -> None:
            draw, model = random.Random(seed), written(way, folder)
            tensors = {n: v.copy() for n, v in load_file(model / "model.safetensors").items()}
            name = draw.choice([n for n in tensors if "_proj." in n])
            values = np.atleast_1d(tensors.pop(name))
            changed = damage(name.rpartition("proj.")[2], draw)(values, draw)
            if changed is not None:
                tensors[name] = np.array(changed, order="C")
            save_file(tensors, model / "model.safetensors")

        yield Case(f"{way} {seed:.4f}", rng.choice(COMMANDS), prepare, wrong=differing(way))


def options(rng: random.Random) -> Cases:
    """An option of the quantization that is another one's, or odd."""
    while True:
        way, name = rng.choice(list(WAYS)), rng.choice(list(OPTIONS))
        odd = [json.dumps(value) for value in OPTIONS[name]] + list(VALUES)
        value = rng.choice(odd)

        def prepare(folder: Path, way: str = way, name: str = name, value: str = value) -> None:
            path = written(way, folder) / "config.json"
            config: dict[str, Any] = json.loads(path.read_text())
            key = "quantization" if "quantization" in config else "quantization_config"
            config[key] |= {name: "HERE"}
            path.write_text(json.dumps(config).replace('"HERE"', value))

        name = f"{way}: {name} = {value[:40]}"
        yield Case(name, rng.choice(COMMANDS), prepare, wrong=differing(way))


def written(way: str, folder: Path) -> Path:
    """A quantized folder, to be spoilt."""
    (folder / "model").mkdir()
    for name, data in right(way)[0].items():
        (folder / "model" / name).write_bytes(data)
    return folder / "model"


def differing(way: str) -> Callable[[Path], str]:
    """What says whether a folder that was taken has other weights than the right one."""

    def wrong(folder: Path) -> str:
        found = weights_of(folder / "model")
        same = all(np.array_equal(found[name], w) for name, w in right(way)[1].items())
        return "" if same else "taken with other weights, without a word"

    return wrong


def ready() -> None:
    """Write the folders."""
    for way in WAYS:
        right(way)


KINDS: dict[str, Kind] = {"packed_parts": parts, "packed_options": options}
