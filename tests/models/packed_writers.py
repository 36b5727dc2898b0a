"""Quantized folders, written as the tools that quantize write them; and the numbers that their
integers, zero points and scales stand for."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file, save_file

Parts = dict[str, np.ndarray]
Packed = tuple[Parts, np.ndarray]  # tensors by the ends of their names, and the matrix [out, in]
RNG = np.random.default_rng(1)
GROUP = 16  # integers that share a scale
NF4 = np.linspace(-1, 1, 16).astype(np.float32)  # any 16 numbers will do


def word(fields: list[int], bits: int) -> int:
    """Integers in a word, the first in its lowest bits, as int32 has it."""
    found = sum(int(field) << (bits * k) for k, field in enumerate(fields))
    return found - (1 << 32) if found >> 31 else found


def words(integers: np.ndarray, bits: int, order: list[int] | None = None) -> np.ndarray:
    """Rows of integers, several to a word."""
    n = 32 // bits
    order = order or list(range(n))
    return np.array(
        [
            [word([row[k + j] for j in order], bits) for k in range(0, len(row), n)]
            for row in integers
        ],
        np.int32,
    )


def drawn(n_in: int, n_out: int, bits: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Integers [in, out], zero points and scales [groups, out]."""
    most, groups = 1 << bits, n_in // GROUP
    scales = RNG.uniform(0.01, 0.1, (groups, n_out)).astype(np.float16)
    zeros = RNG.integers(1, most, (groups, n_out))
    return RNG.integers(0, most, (n_in, n_out)), zeros, scales


def gptq(bits: int, version: int, shuffled: bool) -> Callable[[int, int], Packed]:
    def pack(n_in: int, n_out: int) -> Packed:
        integers, zeros, scales = drawn(n_in, n_out, bits)
        group = np.arange(n_in) // GROUP
        group = RNG.permutation(group) if shuffled else group
        parts = {
            "qweight": words(integers.T, bits).T.copy(),
            "qzeros": words(zeros - (version == 1), bits),
            "scales": scales,
        }
        if shuffled:
            parts["g_idx"] = group.astype(np.int32)
        return parts, ((integers - zeros[group]) * scales[group].astype(np.float64)).T

    return pack


def awq(n_in: int, n_out: int) -> Packed:
    integers, zeros, scales = drawn(n_in, n_out, 4)
    order = [0, 2, 4, 6, 1, 3, 5, 7]
    parts = {"qweight": words(integers, 4, order), "qzeros": words(zeros, 4, order)}
    group = np.arange(n_in) // GROUP
    wanted = (integers - zeros[group]) * scales[group].astype(np.float64)
    return parts | {"scales": scales}, wanted.T


def mlx(n_in: int, n_out: int) -> Packed:
    integers, _, scales = drawn(n_in, n_out, 4)
    offsets = -scales * np.float16(7)
    group = np.arange(n_in) // GROUP
    wanted = integers * scales[group].astype(np.float64) + offsets[group]
    parts = {
        "weight": words(integers.T, 4).view(np.uint32),
        "scales": scales.T,
        "biases": offsets.T,
    }
    return {name: np.ascontiguousarray(part) for name, part in parts.items()}, wanted.T


def eight_bits(n_in: int, n_out: int) -> Packed:
    integers = RNG.integers(-127, 128, (n_out, n_in)).astype(np.int8)
    largest = RNG.uniform(0.1, 1, n_out).astype(np.float32)
    wanted = integers * (largest.astype(np.float64) / 127)[:, None]
    return {"weight": integers, "SCB": largest, "weight_format": np.array(0, np.uint8)}, wanted


def four_bits(n_in: int, n_out: int) -> Packed:
    """NF4, whose scales are packed, too."""
    names = RNG.integers(0, 16, n_in * n_out)
    outer = RNG.uniform(0.1, 1, -(-n_in * n_out // GROUP // 8)).astype(np.float32)
    scale_names = RNG.integers(0, 256, n_in * n_out // GROUP).astype(np.uint8)
    numbers = np.linspace(-1, 1, 256).astype(np.float32)
    state = {"blocksize": GROUP, "shape": [n_out, n_in], "nested_blocksize": 8}
    text = json.dumps(state | {"nested_offset": 0.5}).encode()
    scales = [
        float(numbers[name]) * float(outer[k // 8]) + 0.5 for k, name in enumerate(scale_names)
    ]
    wanted = [float(NF4[name]) * scales[k // GROUP] for k, name in enumerate(names)]
    pairs = [int(a) * 16 + int(b) for a, b in names.reshape(-1, 2)]
    parts = {
        "weight": np.array(pairs, np.uint8)[:, None],
        "weight.absmax": scale_names,
        "weight.quant_map": NF4,
        "weight.nested_absmax": outer,
        "weight.nested_quant_map": numbers,
        "weight.quant_state.bitsandbytes__nf4": np.frombuffer(text, np.uint8),
    }
    return parts, np.array(wanted).reshape(n_out, n_in)


OF_GPTQ = {"quant_method": "gptq", "group_size": GROUP}
OF_BNB = {"quant_method": "bitsandbytes"}
WAYS: dict[str, tuple[dict[str, Any], Callable[[int, int], Packed]]] = {
    "gptq 4": ({"quantization_config": OF_GPTQ | {"bits": 4}}, gptq(4, 1, False)),
    "gptq 8 in any order": (
        {"quantization_config": OF_GPTQ | {"bits": 8, "desc_act": True}},
        gptq(8, 1, True),
    ),
    "gptq 2, second version": (
        {"quantization_config": OF_GPTQ | {"bits": 2, "checkpoint_format": "gptq_v2"}},
        gptq(2, 2, False),
    ),
    "awq": ({"quantization_config": {"quant_method": "awq", "bits": 4, "version": "GEMM"}}, awq),
    "mlx": ({"quantization": {"group_size": GROUP, "bits": 4}}, mlx),
    "bitsandbytes 8": ({"quantization_config": OF_BNB | {"load_in_8bit": True}}, eight_bits),
    "bitsandbytes 4": ({"quantization_config": OF_BNB | {"load_in_4bit": True}}, four_bits),
}


def quantized(folder: Path, way: str) -> dict[str, np.ndarray]:
    """Quantize the matrices of a folder's layers; returns their numbers by name."""
    said, pack = WAYS[way]
    tensors, wanted = load_file(folder / "model.safetensors"), {}
    for name in [n for n in tensors if n.endswith("_proj.weight")]:
        parts, wanted[name] = pack(*tensors.pop(name).shape[::-1])
        stem = name.removesuffix(".weight")
        tensors |= {f"{stem}.{end}": values for end, values in parts.items()}
    save_file(tensors, folder / "model.safetensors")
    config = json.loads((folder / "config.json").read_text()) | said
    (folder / "config.json").write_text(json.dumps(config))
    return wanted
