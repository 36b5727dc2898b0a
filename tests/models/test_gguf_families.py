"""GGUF files of every family, with the same logits as the folders that they were made from."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import GOLDEN
from format_writers import write_gguf
from safetensors.numpy import load_file, save_file

from cellformer.engine.models import checkpoint

pytestmark = pytest.mark.slow

IDS = [3, 1, 4, 1, 5, 9, 2, 6]
# golden model -> what llama.cpp has no key for, as llama.cpp computes it
FOLDERS: dict[str, dict[str, Any]] = {
    "gemma": {},
    "gemma2": {"query_pre_attn_scalar": 6, "layer_types": None},
    "gemma3": {"query_pre_attn_scalar": 6, "layer_types": None},
    "phi": {"qk_layernorm": False},
    "phi3": {},
    "starcoder2": {"sliding_window": None},
    "granite": {},
    "smollm3": {"no_rope_layers": None},
    "granitemoe": {},
    "olmo": {},
    "olmo2": {},
    "olmo3": {},
    "olmoe": {},
    "exaone4": {},
    "hunyuan": {},
    "gpt_bigcode": {},
    "mpt": {},
    "stablelm": {"rope_parameters": {"partial_rotary_factor": 0.5, "rope_theta": 10000.0}},
    "falcon": {"rope_parameters": None},
    "bloom": {},
    "gpt_neox": {},
    "arcee": {},
    "nemotron": {},
    "cohere": {},
    "cohere2": {"layer_types": None},
    "ernie4_5": {},
    "glm4": {},
    "glm4_moe": {},
    "seed_oss": {},
    "bert": {"architectures": ["BertModel"]},
    "modernbert": {"architectures": ["ModernBertModel"]},
}
PHI3 = ("long", "short")
ENCODERS = ("bert", "modernbert")


def folder_of(name: str, at: Path) -> Path:
    """A golden model that llama.cpp can hold."""
    folder = Path(shutil.copytree(GOLDEN / name, at))
    values = json.loads((folder / "config.json").read_text()) | FOLDERS[name]
    (folder / "config.json").write_text(json.dumps(values))
    tensors = load_file(folder / "model.safetensors")
    if name == "phi":
        tensors = {n: t for n, t in tensors.items() if not re.search("self_attn.[qk]_layernorm", n)}
    if name.startswith(("gemma", "nemotron")):  # gains are stored with 1 added, and lose digits
        one = np.float32(1)
        tensors |= {n: t + one - one for n, t in tensors.items() if n.endswith("norm.weight")}
    save_file(tensors, folder / "model.safetensors")
    return folder


def factors(folder: Path) -> dict[str, np.ndarray]:
    """Phi-3's factors of frequencies, which are tensors."""
    turning = json.loads((folder / "config.json").read_text()).get("rope_parameters") or {}
    return {
        f"rope_factors_{kind}.weight": np.array(turning[f"{kind}_factor"], np.float32)
        for kind in PHI3
        if f"{kind}_factor" in turning
    }


def read_out(path: Path, held: int = checkpoint.MOST_HELD) -> np.ndarray:
    model = checkpoint.load(path, held)
    graph = model.graph(IDS)
    return np.asarray(graph.values["vector" if "vector" in graph.values else "logits"])


@pytest.mark.parametrize("name", FOLDERS)
def test_logits_equal_the_folder(name: str, tmp_path: Path) -> None:
    folder = folder_of(name, tmp_path / "folder")
    more = factors(folder)
    if name == "glm4_moe":  # a layer for the token after the next
        more["blk.46.nextn.enorm.weight"] = more["blk.46.attn_norm.weight"] = np.ones(8, np.float32)
    path = write_gguf(folder, tmp_path / "model.gguf", more=more)
    expected = read_out(folder)
    for held in (checkpoint.MOST_HELD, 0):
        np.testing.assert_allclose(read_out(path, held), expected, rtol=0, atol=1e-9)
    checkpoint.save(checkpoint.load(path), tmp_path / "saved")
    np.testing.assert_allclose(read_out(tmp_path / "saved"), expected, rtol=0, atol=1e-9)


WIDE = {
    "hidden_size": 64, "head_dim": 16, "intermediate_size": 96, "ffn_hidden_size": 96,
    "num_attention_heads": 4, "num_key_value_heads": 2, "num_kv_heads": 2, "n_head": 4,
    "d_model": 64, "n_heads": 4, "n_embd": 64, "moe_intermediate_size": 32,
    "query_pre_attn_scalar": 16,
}  # fmt: skip
SIX = {
    "short_factor": [1.0, 1.2, 1.5, 2.0, 2.5, 3.0],
    "long_factor": [2.0, 3.0, 4.0, 5.0, 6.0, 9.0],
}


@pytest.mark.parametrize("kind", ["Q8_0", "Q4_0", "MXFP4"])
def test_packed_logits_equal_the_unpacked_folder(kind: str, tmp_path, torch, transformers) -> None:
    gguf = pytest.importorskip("gguf", reason="the gguf library is not installed")
    packed = gguf.GGMLQuantizationType[kind]
    transformers.utils.logging.disable_progress_bar()

    def pack(name: str, matrix: np.ndarray) -> tuple[np.ndarray, Any]:
        if "_norm" in name:  # of single heads, in one tensor
            return matrix.astype(np.float32), None
        return gguf.quants.quantize(matrix, packed), packed

    def unpacked(name: str, values: np.ndarray) -> np.ndarray:
        if values.ndim == 1 or "_norm" in name:
            return values
        return gguf.quants.dequantize(gguf.quants.quantize(values, packed), packed)

    for name in FOLDERS:
        folder = folder_of(name, tmp_path / name)
        values = json.loads((folder / "config.json").read_text())
        values |= {key: value for key, value in WIDE.items() if key in values}
        if name == "phi3":
            values["rope_parameters"] |= SIX
        config = transformers.AutoConfig.for_model(**values)
        auto = transformers.AutoModel if name in ENCODERS else transformers.AutoModelForCausalLM
        auto.from_config(config, dtype=torch.float32).save_pretrained(folder)
        (folder / "config.json").write_text(json.dumps(values))
        tensors = load_file(folder / "model.safetensors")
        path = write_gguf(folder, tmp_path / f"{name}.gguf", pack, more=factors(folder))
        save_file({n: unpacked(n, t) for n, t in tensors.items()}, folder / "model.safetensors")
        for held in (checkpoint.MOST_HELD, 0):
            gap = np.abs(read_out(path, held) - read_out(folder)).max()
            assert gap < 1e-6, (name, gap)  # gains of Gemma's norms lose a digit


def test_experts_beside_a_shared_one(tmp_path: Path, torch, transformers) -> None:
    """Qwen2's, whose share is a vector in GGUF and a matrix of one row in the folder."""
    config = transformers.Qwen2MoeConfig(
        vocab_size=17, hidden_size=16, intermediate_size=24, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=16, num_experts=3,
        num_experts_per_tok=2, moe_intermediate_size=8, shared_expert_intermediate_size=12,
    )  # fmt: skip
    transformers.utils.logging.disable_progress_bar()
    transformers.AutoModelForCausalLM.from_config(config).save_pretrained(tmp_path)
    values = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(values | {"sliding_window": None}))
    path = write_gguf(tmp_path, tmp_path / "model.gguf")
    for held in (checkpoint.MOST_HELD, 0):
        np.testing.assert_allclose(read_out(path, held), read_out(tmp_path), rtol=0, atol=1e-9)
