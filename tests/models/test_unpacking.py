"""Quantized folders: the numbers that their integers, zero points and scales stand for."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from format_writers import small_llama
from packed_writers import OF_GPTQ, WAYS, quantized
from safetensors.numpy import load_file, save_file

from cellformer.engine import InputError
from cellformer.engine.models import checkpoint

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("way", WAYS)
def test_numbers_are_those_that_the_integers_stand_for(way: str, tmp_path: Path) -> None:
    folder = small_llama(tmp_path / "model")
    wanted = quantized(folder, way)
    for held in (checkpoint.MOST_HELD, 0):
        weights = checkpoint.load(folder, held).weights
        for ours, theirs in (("attn.h0.W_Q", "self_attn.q_proj"), ("mlp.W_out", "mlp.down_proj")):
            found = np.asarray(weights[f"blocks.0.{ours}"]).T
            expected = wanted[f"model.layers.0.{theirs}.weight"]
            np.testing.assert_allclose(found, expected, rtol=1e-14, atol=0)
            part = weights[f"blocks.0.{ours}"][..., 3:30, 5:29]
            np.testing.assert_array_equal(np.asarray(part), found.T[3:30, 5:29])
    checkpoint.save(checkpoint.load(folder), tmp_path / "plain")
    saved = json.loads((tmp_path / "plain" / "config.json").read_text())
    assert not {"quantization", "quantization_config"} & saved.keys()


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"quant_method": "fp8"}, "quantized by 'fp8', which cellformer cannot unpack"),
        (OF_GPTQ | {"bits": 3}, "cannot unpack integers of 3 bits, only of 2, 4, 8 bits"),
        (
            {"quant_method": "awq", "version": "gemv"},
            "version is 'gemv', but cellformer can unpack only gemm",
        ),
        (
            OF_GPTQ | {"format": "marlin"},
            "checkpoint_format is 'marlin', but cellformer can unpack only gptq and gptq_v2",
        ),
        ("much", "quantization_config is 'much', but it must be a JSON object"),
    ],
)
def test_others_are_refused_with_advice(said: Any, message: str, tmp_path: Path) -> None:
    folder = small_llama(tmp_path / "model")
    quantized(folder, "gptq 4")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"quantization_config": said}))
    with pytest.raises(InputError, match=message) as refused:
        checkpoint.load(folder)
    if isinstance(said, dict):
        assert "use the original model before quantization, or its GGUF file" in str(refused.value)


Change = Callable[[np.ndarray], np.ndarray]


def state(**fields: Any) -> Change:
    """Other fields in a state, which is JSON in bytes."""
    return lambda v: of_bytes(json.dumps(json.loads(v.tobytes()) | fields).encode())


def of_bytes(data: bytes) -> np.ndarray:
    return np.frombuffer(data, np.uint8)


LIES: list[tuple[str, str, Change | None, str]] = [  # way, part, what it becomes, what is said
    ("gptq 4", "scales", lambda v: v[:, :2], "has shape 2 x 2, not 2 x 32"),
    ("gptq 4", "scales", lambda v: v.view(np.int16), "contains I16, not floating-point numbers"),
    ("gptq 4", "scales", lambda v: v[0], "has 1 dimensions, not 2"),
    ("gptq 4", "scales", lambda v: v[:0], "has shape 0 x 32"),
    ("gptq 4", "qzeros", lambda v: v[:, :2], "has shape 2 x 2, not 2 x 4"),
    ("gptq 4", "qzeros", None, "is missing"),
    ("gptq 4", "qweight", lambda v: v.astype(np.float32), "contains F32, not integers of 32 bits"),
    ("gptq 4", "qweight", lambda v: v.astype(np.int64), "contains I64, not integers of 32 bits"),
    (
        "gptq 8 in any order",
        "g_idx",
        lambda v: v * 0 - 1,
        "does not give 16 inputs to each of the 2 groups",
    ),
    (
        "gptq 8 in any order",
        "g_idx",
        lambda v: v + 1,
        "does not give 16 inputs to each of the 2 groups",
    ),
    ("gptq 8 in any order", "g_idx", lambda v: v * 1.0, "contains F64, not integers"),
    ("gptq 8 in any order", "g_idx", None, "is missing"),
    ("awq", "qweight", lambda v: v.astype(np.float32), "contains F32, not integers of 32 bits"),
    ("awq", "scales", lambda v: v[:1].repeat(3, 0), "has 3 groups, which do not divide 32 inputs"),
    ("mlx", "weight", lambda v: v.astype(np.float32), "contains F32, not integers of 32 bits"),
    ("mlx", "biases", lambda v: v[:, :1], "has shape 32 x 1, not 32 x 2"),
    ("mlx", "biases", None, "is missing"),
    ("bitsandbytes 8", "SCB", lambda v: v[:1], "has shape 1, not 32"),
    ("bitsandbytes 8", "weight", lambda v: v.view(np.uint8), "contains U8, not integers of 8 bits"),
    ("bitsandbytes 8", "weight_format", lambda v: v + np.uint8(1), "names an order of columns"),
    ("bitsandbytes 4", "absmax", lambda v: v[:-1], "not 64"),
    ("bitsandbytes 4", "weight", lambda v: v[:-1], "has shape 511 x 1, not 512 x 1"),
    ("bitsandbytes 4", "weight.quant_map", lambda v: v[:8], "has shape 8, not 16"),
    ("bitsandbytes 4", "nf4", state(blocksize=0), "have 0 and 8 numbers; both must be powers of 2"),
    ("bitsandbytes 4", "nf4", state(blocksize=1 << 30), "has shape 8, not 1"),
    (
        "bitsandbytes 4",
        "nf4",
        state(blocksize=-8),
        "have -8 and 8 numbers; both must be powers of 2",
    ),
    ("bitsandbytes 4", "nf4", state(blocksize=None), "has no 'blocksize'"),
    (
        "bitsandbytes 4",
        "nf4",
        state(blocksize=1.5),
        "'blocksize' is 1.5, but must have the type int",
    ),
    (
        "bitsandbytes 4",
        "nf4",
        state(nested_blocksize=0),
        "have 16 and 0 numbers; both must be powers of 2",
    ),
    ("bitsandbytes 4", "nf4", state(nested_blocksize=1 << 20), "has shape 8, not 1"),
    (
        "bitsandbytes 4",
        "nf4",
        state(nested_offset="x"),
        "'nested_offset' is 'x', but must have the type float",
    ),
    ("bitsandbytes 4", "nf4", state(shape=[32]), "'shape' must list two positive numbers"),
    ("bitsandbytes 4", "nf4", state(shape=[10**30, 32]), "'shape' must list two positive numbers"),
    (
        "bitsandbytes 4",
        "nf4",
        lambda v: of_bytes(b"null"),
        "'shape' must list two positive numbers",
    ),
    ("bitsandbytes 4", "nf4", lambda v: of_bytes(b"[1]"), "does not contain a JSON object"),
    ("bitsandbytes 4", "nf4", lambda v: of_bytes(b"[" * 9999), "too deep"),
    ("bitsandbytes 4", "nf4", lambda v: of_bytes(b"\xff"), "is not JSON"),
    ("bitsandbytes 4", "nf4", None, "appears 0 times, not once"),
]


@pytest.mark.parametrize(("way", "part", "change", "says"), LIES)
def test_part_that_does_not_fit_is_named(
    way: str, part: str, change: Change | None, says: str, tmp_path: Path
) -> None:
    folder = small_llama(tmp_path / "model")
    quantized(folder, way)
    tensors = load_file(folder / "model.safetensors")
    ends = tuple(f"{mark}{part}" for mark in "._")
    name = next(n for n in sorted(tensors) if n.endswith(ends) and "proj" in n)
    values = tensors.pop(name)
    if change:
        tensors[name] = np.ascontiguousarray(change(values)).reshape(change(values).shape)
    save_file(tensors, folder / "model.safetensors")
    with pytest.raises(InputError) as refused:
        checkpoint.load(folder, 0)
    said = str(refused.value)
    assert (
        says in said
        and "; download the folder again" in said
        and name.partition("_proj")[0] in said
    )


@pytest.mark.parametrize(
    ("way", "changes", "says"),
    [
        (
            "gptq 4",
            {"group_size": 128},
            "group_size is 128, but .* has 2 groups for 32 inputs; set",
        ),
        ("gptq 4", {"group_size": 0}, "group_size is 0, but"),
        ("gptq 4", {"group_size": -1}, "group_size is -1, but"),
        ("gptq 4", {"bits": 8}, "group_size is 16, but .* has 2 groups for 16 inputs"),
        ("awq", {"group_size": 8}, "group_size is 8, but .* has 2 groups for 32 inputs"),
        ("mlx", {"group_size": 8}, "group_size is 8, but .* has 2 groups for 32 inputs"),
        ("mlx", {"mode": "mxfp4"}, "mode is 'mxfp4', but cellformer can unpack only affine"),
        ("gptq 4", {"checkpoint_format": "gptq_v2"}, "the zero points range from 0 to 14, as in"),
    ],
)
def test_config_that_does_not_fit_is_told(
    way: str, changes: dict[str, Any], says: str, tmp_path: Path
) -> None:
    folder = small_llama(tmp_path / "model")
    quantized(folder, way)
    config = json.loads((folder / "config.json").read_text())
    key = "quantization" if way == "mlx" else "quantization_config"
    config[key] |= changes
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(InputError, match=says):
        checkpoint.load(folder)


@pytest.mark.parametrize(("stored", "version"), [(0x77777777, "gptq"), (0x88888888, "gptq_v2")])
def test_symmetric_zero_points_tell_the_version(stored: int, version: str, tmp_path: Path) -> None:
    folder = small_llama(tmp_path / "model")
    quantized(folder, "gptq 4")
    tensors = load_file(folder / "model.safetensors")
    for name in [n for n in tensors if n.endswith("qzeros")]:
        tensors[name] = np.full(tensors[name].shape, stored, np.uint32).view(np.int32)
    save_file(tensors, folder / "model.safetensors")
    config = json.loads((folder / "config.json").read_text())
    for said in ("gptq", "gptq_v2"):
        config["quantization_config"]["checkpoint_format"] = said
        (folder / "config.json").write_text(json.dumps(config))
        if said == version:
            checkpoint.load(folder)
        else:
            with pytest.raises(InputError, match=r"zero points range from . to ., as in another"):
                checkpoint.load(folder)


def test_zero_point_0_borrows_from_the_next(tmp_path: Path) -> None:
    """As GPTQModel changes versions: a word of ones is taken off and added."""
    folder = small_llama(tmp_path / "model")
    quantized(folder, "gptq 4")
    tensors = load_file(folder / "model.safetensors")
    name = "model.layers.0.mlp.down_proj"
    before = tensors[f"{name}.qzeros"]
    zeros = np.broadcast_to(np.uint32(0x0F07_30A0), before.shape)
    tensors[f"{name}.qzeros"] = (zeros - np.uint32(0x1111_1111)).view(np.int32)
    save_file(tensors, folder / "model.safetensors")
    weight = np.asarray(checkpoint.load(folder).weights["blocks.0.mlp.W_out"])  # [in, out]
    first = tensors[f"{name}.qweight"].view(np.uint32)[0, :8] & 15
    expected = (first.astype(float) - [0, 10, 0, 3, 7, 0, 15, 0]) * tensors[f"{name}.scales"][0, :8]
    np.testing.assert_array_equal(weight[0, :8], expected)
