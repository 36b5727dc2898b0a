"""Checkpoint folders rewritten as other formats have them, as those formats' own tools do it."""

import json
import struct
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from cellformer.engine.learning import decoders
from cellformer.engine.models import checkpoint
from cellformer.engine.models.forward import weight_shapes
from cellformer.engine.models.model import Model
from cellformer.engine.text.tokenizer import IdsOnly

TOKENS = "tokenizer.ggml."


def in_folder(folder: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """A folder's config and tensors, without an unembedding that is tied."""
    config = json.loads((folder / "config.json").read_text())
    tensors = load_file(folder / "model.safetensors")
    if config.get("tie_word_embeddings"):
        tensors.pop("lm_head.weight", None)
    return config, {n: t for n, t in tensors.items() if not n.endswith((".attn.bias", "inv_freq"))}


PAIRED = ("llama", "granite", "granitemoe", "smollm3", "arcee", "olmo")  # see `paired`
GGUF_NAMES = {
    "mistral": "llama",
    "mixtral": "llama",
    "qwen3_moe": "qwen3moe",
    "qwen2_moe": "qwen2moe",
    "gemma3_text": "gemma3",
    "cohere": "command-r",
    "phi": "phi2",
    "gpt_neox": "gptneox",
    "modernbert": "modern-bert",
    "gpt_bigcode": "starcoder",
    "hunyuan_v1_dense": "hunyuan-dense",
    "olmo3": "olmo2",
    "glm4_moe": "glm4moe",
}


def stacked(tensors: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Experts' matrices in stacks, as llama.cpp has them: experts.3.w1 -> experts.w1."""
    found: dict[str, Any] = {}
    for name, values in tensors.items():
        front, experts, rest = name.partition(".experts.")
        if experts:
            number, _, part = rest.partition(".")
            found.setdefault(f"{front}.experts.{part}", {})[int(number)] = values
        else:
            found[name] = values
    return {
        name: np.stack([values[k] for k in sorted(values)]) if isinstance(values, dict) else values
        for name, values in found.items()
    }


def apart(tensors: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Gates and inputs of Granite's experts in two stacks, by Mixtral's names."""
    found: dict[str, np.ndarray] = {}
    for name, values in tensors.items():
        front, both, _ = name.partition(".input_linear")
        if both:
            for part, rows in zip(("w1", "w3"), np.split(values, 2, axis=1), strict=True):
                found[f"{front}.experts.{part}.weight"] = np.ascontiguousarray(rows)
        else:
            found[name] = values
    return found


def paired(rows: np.ndarray, n_heads: int) -> np.ndarray:
    """What llama.cpp's converter does to the rows of a llama's queries and keys."""
    half = rows.shape[0] // n_heads // 2
    apart = rows.reshape(n_heads, 2, half, *rows.shape[1:])
    return np.ascontiguousarray(apart.swapaxes(1, 2).reshape(rows.shape))


def headed(tensors: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Norms of single heads in one tensor, as StableLM's converter has them."""
    found: dict[str, Any] = {}
    for name, values in tensors.items():
        front, norms, rest = name.partition(".norms.")
        if norms:
            found.setdefault(f"{front}.weight", []).append((int(rest.split(".")[0]), values))
        else:
            found[name] = values
    return {
        name: np.stack([v for _, v in sorted(values)]) if isinstance(values, list) else values
        for name, values in found.items()
    }


def all_queries_first(rows: np.ndarray, config: Mapping[str, Any]) -> np.ndarray:
    """The rows of `query_key_value`, group by group, as converters order them."""
    n_heads = config.get("n_head") or config["num_attention_heads"]
    kv_heads = config.get("num_kv_heads") or n_heads
    groups = rows.reshape(kv_heads, n_heads // kv_heads + 2, -1, *rows.shape[1:])
    parts = groups[:, :-2], groups[:, -2], groups[:, -1]
    return np.concatenate([part.reshape(-1, *rows.shape[1:]) for part in parts])


# --- GGUF ---------------------------------------------------------------------------------------

Pack = Callable[[str, np.ndarray], tuple[np.ndarray, Any]]  # name, matrix -> bytes, their kind


def plain(dtype: Any) -> Pack:
    """Matrices as numbers of a type; GGUF's writer knows float16 and float32."""
    return lambda name, matrix: (matrix.astype(dtype), None)


FLOAT32 = plain(np.float32)


def write_gguf(
    folder: Path,
    path: Path,
    pack: Pack = FLOAT32,
    said: Mapping[str, Any] | None = None,
    more: Mapping[str, np.ndarray] | None = None,
) -> Path:
    """A folder as llama.cpp's convert_hf_to_gguf writes it; `said` and `more` are put beside."""
    gguf = pytest.importorskip("gguf", reason="the gguf library is not installed")

    config, tensors = in_folder(folder)
    kind = GGUF_NAMES.get(config["model_type"], config["model_type"])
    tensors = apart(stacked(tensors))
    arch = next(a for a, name in gguf.MODEL_ARCH_NAMES.items() if name == kind)
    writer = gguf.GGUFWriter(str(path), kind)
    VALUES.get(kind, llama_values)(writer, config)
    for key, value in (said or {}).items():
        add_value(writer, key, value)
    layers = next(config[n] for n in ("num_hidden_layers", "n_layer", "n_layers") if n in config)
    names = gguf.get_tensor_name_map(arch, layers)
    for name, values in headed(tensors).items():
        if name.startswith(("cls.", "head.", "decoder.")) or "pooler." in name:
            continue
        name = name.replace("e_score_correction_bias", "e_score_correction.bias")
        bare = name.removeprefix("bert.").removeprefix("transformer." * (kind == "bloom"))
        bare = bare.removeprefix("model." * (kind == "modern-bert"))
        own = names.get_name(bare, (".weight", ".bias"))
        for part, heads in (("q", "num_attention_heads"), ("k", "num_key_value_heads")):
            if kind in PAIRED and f"{part}_proj" in name:
                values = paired(values, config[heads])
        values = values[0] if "shared_expert_gate." in name else values
        if "query_key_value" in name:
            values = all_queries_first(values, config)
        if kind.startswith(("gemma", "nemotron")) and name.endswith("norm.weight"):
            values = values + np.float32(1)
        if kind == "gpt2" and values.ndim == 2 and ".h." in name:
            values = np.ascontiguousarray(values.T)
        data, packed = (values, None) if values.ndim == 1 else pack(own, values)
        writer.add_tensor(own, data, raw_dtype=packed)
    for own, values in (more or {}).items():
        writer.add_tensor(own, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def small_llama(folder: Path) -> Path:
    """A small random Llama, whose rows can be packed."""
    sizes = {"d_vocab": 20, "n_ctx": 8, "d_model": 32, "n_layers": 1, "n_heads": 1, "d_mlp": 32}
    decoder, rng = decoders.new("llama", **sizes), np.random.default_rng(0)
    weights = {
        name: rng.normal(size=shape).astype(np.float32)
        for name, shape in weight_shapes(decoder.forward, decoder.spec).items()
    }
    words = IdsOnly(decoder.spec.d_vocab)
    said = {"rope_parameters": {"rope_theta": 1e4, "rope_type": "default"}, "rms_norm_eps": 1e-6}
    config = {**decoder.config, **said}
    model = Model(decoder.spec, weights, words, None, decoder.forward, config)
    checkpoint.save(model, folder)
    return folder


def write_packed(folder: Path, kind_of: Callable[[str], str]) -> Path:
    """That Llama in a folder, and as GGUF with its matrices packed, each in the kind that its name
    there gives."""
    gguf = pytest.importorskip("gguf", reason="the gguf library is not installed")
    small_llama(folder / "small")

    def pack(name: str, matrix: np.ndarray) -> tuple[np.ndarray, Any]:
        kind = gguf.GGMLQuantizationType[kind_of(name)]
        return gguf.quants.quantize(matrix, kind), kind

    return write_gguf(folder / "small", folder / "small.gguf", pack)


def add_value(writer: Any, key: str, value: Any) -> None:
    """One value, of the type that converters give it."""
    if isinstance(value, bool):
        writer.add_bool(key, value)
    elif isinstance(value, int):
        writer.add_uint32(key, value)
    elif isinstance(value, float):
        writer.add_float32(key, value)
    elif isinstance(value, str):
        writer.add_string(key, value)
    else:
        writer.add_array(key, list(value))


def llama_values(writer: Any, config: Mapping[str, Any]) -> None:
    head = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_key_length(head)
    writer.add_value_length(head)
    writer.add_rope_dimension_count(head)
    writer.add_rope_freq_base(config["rope_parameters"]["rope_theta"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_vocab_size(config["vocab_size"])
    n_experts = config.get("num_local_experts", config.get("num_experts"))
    if n_experts:
        writer.add_expert_count(n_experts)
        writer.add_expert_used_count(config["num_experts_per_tok"])
    if "moe_intermediate_size" in config:
        writer.add_expert_feed_forward_length(config["moe_intermediate_size"])
    if "shared_expert_intermediate_size" in config:
        writer.add_expert_shared_feed_forward_length(config["shared_expert_intermediate_size"])
    if config.get("sliding_window"):
        writer.add_sliding_window(config["sliding_window"])


def gpt2_values(writer: Any, config: Mapping[str, Any]) -> None:
    writer.add_context_length(config["n_positions"])
    writer.add_embedding_length(config["n_embd"])
    writer.add_block_count(config["n_layer"])
    writer.add_feed_forward_length(config["n_inner"] or 4 * config["n_embd"])
    writer.add_head_count(config["n_head"])
    writer.add_layer_norm_eps(config["layer_norm_epsilon"])


def mpt_values(writer: Any, config: Mapping[str, Any]) -> None:
    writer.add_context_length(config["max_seq_len"])
    writer.add_embedding_length(config["d_model"])
    writer.add_block_count(config["n_layers"])
    writer.add_feed_forward_length(4 * config["d_model"])
    writer.add_head_count(config["n_heads"])
    writer.add_layer_norm_eps(1e-5)
    writer.add_clamp_kqv(config["attn_config"]["clip_qkv"])
    writer.add_max_alibi_bias(config["attn_config"]["alibi_bias_max"])


def starcoder_values(writer: Any, config: Mapping[str, Any]) -> None:
    gpt2_values(writer, config)
    writer.add_head_count_kv(1)


WINDOWED = {
    "attention.layer_norm_rms_epsilon": "rms_norm_eps",
    "attention.sliding_window": "sliding_window",
}
GRANITE = {
    "attention.layer_norm_rms_epsilon": "rms_norm_eps",
    "attention.scale": "attention_multiplier",
    "embedding_scale": "embedding_multiplier",
    "residual_scale": "residual_multiplier",
    "logit_scale": "logits_scaling",
}
KEYS: dict[str, dict[str, str]] = {  # GGUF's key -> config.json's, in the order of converters
    "nemotron": {"attention.layer_norm_epsilon": "norm_eps"},
    "command-r": {
        "attention.layer_norm_epsilon": "layer_norm_eps",
        "logit_scale": "logit_scale",
    },
    "cohere2": {
        "attention.layer_norm_epsilon": "layer_norm_eps",
        "logit_scale": "logit_scale",
        "attention.sliding_window": "sliding_window",
    },
    "ernie4_5": {"attention.layer_norm_rms_epsilon": "rms_norm_eps"},
    "glm4moe": {
        "attention.layer_norm_rms_epsilon": "rms_norm_eps",
        "expert_count": "n_routed_experts",
        "expert_used_count": "num_experts_per_tok",
        "expert_group_count": "n_group",
        "expert_group_used_count": "topk_group",
        "expert_feed_forward_length": "moe_intermediate_size",
        "expert_shared_count": "n_shared_experts",
        "leading_dense_block_count": "first_k_dense_replace",
        "expert_weights_scale": "routed_scaling_factor",
        "expert_weights_norm": "norm_topk_prob",
        "nextn_predict_layers": "num_nextn_predict_layers",
    },
    "glm4": {"attention.layer_norm_rms_epsilon": "rms_norm_eps"},
    "gemma": {"attention.layer_norm_rms_epsilon": "rms_norm_eps"},
    "gemma2": {
        "attn_logit_softcapping": "attn_logit_softcapping",
        "final_logit_softcapping": "final_logit_softcapping",
        "attention.sliding_window": "sliding_window",
        "attention.layer_norm_rms_epsilon": "rms_norm_eps",
    },
    "gemma3": {
        "final_logit_softcapping": "final_logit_softcapping",
        "attention.sliding_window": "sliding_window",
        "attention.layer_norm_rms_epsilon": "rms_norm_eps",
    },
    "phi2": {"attention.layer_norm_epsilon": "layer_norm_eps"},
    "phi3": {
        "attention.layer_norm_rms_epsilon": "rms_norm_eps",
        "rope.scaling.original_context_length": "original_max_position_embeddings",
        "attention.sliding_window": "sliding_window",
    },
    "starcoder2": {"attention.layer_norm_epsilon": "norm_epsilon"},
    "stablelm": {
        "attention.layer_norm_epsilon": "layer_norm_eps",
        "use_parallel_residual": "use_parallel_residual",
    },
    "granite": GRANITE,
    "granitemoe": {
        **GRANITE,
        "expert_count": "num_local_experts",
        "expert_used_count": "num_experts_per_tok",
    },
    "smollm3": {"attention.layer_norm_rms_epsilon": "rms_norm_eps"},
    "olmo": {"attention.clamp_kqv": "clip_qkv"},
    "olmo2": WINDOWED,
    "exaone4": WINDOWED,
    "olmoe": {
        "attention.layer_norm_rms_epsilon": "rms_norm_eps",
        "expert_count": "num_experts",
        "expert_used_count": "num_experts_per_tok",
    },
    "hunyuan-dense": {"attention.layer_norm_rms_epsilon": "rms_norm_eps"},
    "falcon": {"attention.layer_norm_epsilon": "layer_norm_epsilon"},
    "bloom": {"attention.layer_norm_epsilon": "layer_norm_epsilon"},
    "gptneox": {
        "attention.layer_norm_epsilon": "layer_norm_eps",
        "use_parallel_residual": "use_parallel_residual",
    },
    "bert": {"attention.layer_norm_epsilon": "layer_norm_eps"},
    "modern-bert": {
        "attention.layer_norm_epsilon": "norm_eps",
        "attention.sliding_window": "local_attention",
    },
}
PARTIAL = (
    "phi2",
    "phi3",
    "stablelm",
    "gptneox",
    "nemotron",
    "glm4",
    "glm4moe",
)  # whose heads rotate in part
NO_THETA = ("phi2", "stablelm", "gptneox", "falcon", "bloom", "bert")  # which converters leave out


def values_by_keys(writer: Any, config: Mapping[str, Any]) -> None:
    """The metadata of a family by its keys."""
    kind = writer.arch
    heads = config.get("n_head") or config["num_attention_heads"]
    head = config.get("head_dim") or config["hidden_size"] // heads
    writer.add_context_length(config.get("max_position_embeddings", 2048))
    writer.add_embedding_length(config["hidden_size"])
    layers = config.get("n_layer") or config["num_hidden_layers"]
    writer.add_block_count(layers + config.get("num_nextn_predict_layers", 0))
    width = config.get("intermediate_size") or config.get("ffn_hidden_size")
    writer.add_feed_forward_length(width or 4 * config["hidden_size"])
    writer.add_head_count(heads)
    if kind not in ("gptneox", "bert", "modern-bert"):
        shared = config.get("num_key_value_heads") or config.get("num_kv_heads")
        writer.add_head_count_kv(shared or heads)
    if config.get("head_dim"):
        writer.add_key_length(head)
        writer.add_value_length(head)
    turning = config.get("rope_parameters") or {}
    if kind in PARTIAL:
        writer.add_rope_dimension_count(int(head * turning["partial_rotary_factor"]))
    if kind not in NO_THETA:
        near = turning.get("sliding_attention")
        turning = turning.get("full_attention", turning)
        if turning["rope_type"] == "dynamic":  # Hunyuan's
            raised = turning["rope_theta"] * turning["alpha"] ** (head / (head - 2))
            turning = turning | {"rope_theta": raised}
            add_value(writer, f"{kind}.rope.scaling.type", "none")
            writer.add_rope_scaling_factor(1)
            writer.add_rope_scaling_orig_ctx_len(config["max_position_embeddings"])
        writer.add_rope_freq_base(turning["rope_theta"])
        if near:
            writer.add_rope_freq_base_swa(near["rope_theta"])
        if turning["rope_type"] == "linear":
            add_value(writer, f"{kind}.rope.scaling.type", "linear")
            add_value(writer, f"{kind}.rope.scaling.factor", turning["factor"])
    if kind == "glm4moe":
        add_value(writer, "glm4moe.expert_gating_func", 2)
    if kind == "olmo":
        writer.add_layer_norm_eps(1e-5)
    if kind in ("olmo2", "exaone4") and "layer_types" in config:
        near = [layer == "sliding_attention" for layer in config["layer_types"]]
        writer.add_sliding_window_pattern(near)
    if kind == "modern-bert":
        writer.add_sliding_window_pattern(3)
    if kind in ("bert", "modern-bert"):
        writer.add_causal_attention(False)
    if kind == "falcon":
        writer.add_tensor_data_layout("jploski")
    for key, name in KEYS[kind].items():
        if config.get(name) is not None:
            add_value(writer, f"{kind}.{key}", config[name])


VALUES: dict[str, Callable[[Any, Mapping[str, Any]], None]] = {
    "gpt2": gpt2_values,
    "starcoder": starcoder_values,
    "mpt": mpt_values,
    **dict.fromkeys(KEYS, values_by_keys),
}

# --- consolidated.safetensors ------------------------------------------------------------------

CONSOLIDATED = {
    "model.embed_tokens": "tok_embeddings",
    "model.norm": "norm",
    "lm_head": "output",
    "self_attn.q_proj": "attention.wq",
    "self_attn.k_proj": "attention.wk",
    "self_attn.v_proj": "attention.wv",
    "self_attn.o_proj": "attention.wo",
    "mlp.gate_proj": "feed_forward.w1",
    "mlp.down_proj": "feed_forward.w2",
    "mlp.up_proj": "feed_forward.w3",
    "input_layernorm": "attention_norm",
    "post_attention_layernorm": "ffn_norm",
}


def write_consolidated(folder: Path, to: Path) -> Path:
    """A folder as Mistral's makers give it: params.json, and tensors by their own names."""
    config, tensors = in_folder(folder)
    found = {}
    for name, values in tensors.items():
        for part, heads in (("q", "num_attention_heads"), ("k", "num_key_value_heads")):
            if f"{part}_proj" in name:
                values = paired(values, config[heads])
        for theirs, own in CONSOLIDATED.items():
            name = name.replace(theirs, own)
        found[name.removeprefix("model.")] = values
    to.mkdir()
    save_file(found, to / "consolidated.safetensors")
    said = {
        "dim": config["hidden_size"],
        "n_layers": config["num_hidden_layers"],
        "n_heads": config["num_attention_heads"],
        "n_kv_heads": config["num_key_value_heads"],
        "head_dim": config["hidden_size"] // config["num_attention_heads"],
        "hidden_dim": config["intermediate_size"],
        "norm_eps": config["rms_norm_eps"],
        "rope_theta": config["rope_parameters"]["rope_theta"],
        "vocab_size": config["vocab_size"],
        "sliding_window": config.get("sliding_window"),
        "max_seq_len": config["max_position_embeddings"],
    }
    (to / "params.json").write_text(json.dumps(said))
    return to


# --- llama2.c -----------------------------------------------------------------------------------

IN_LAYERS = {
    "attention": [f"self_attn.{w}_proj" for w in "qkvo"],
    "mlp": [f"mlp.{w}_proj" for w in ("gate", "down", "up")],
}


def write_llama2c(folder: Path, path: Path, version: int = 0, group: int = 4) -> Path:
    """A folder as llama2.c's export.py writes it."""
    config, tensors = in_folder(folder)
    tied = config["tie_word_embeddings"]
    layers = range(config["num_hidden_layers"])
    for n in layers:
        for part, heads in (("q", "num_attention_heads"), ("k", "num_key_value_heads")):
            name = f"model.layers.{n}.self_attn.{part}_proj.weight"
            tensors[name] = paired(tensors[name], config[heads])
    every = {part: [f"model.layers.{n}.{part}.weight" for n in layers] for part in PARTS}
    first, last = ["model.embed_tokens.weight"], ["model.norm.weight"]
    before, between = every["input_layernorm"], every["post_attention_layernorm"]
    attention = [name for part in IN_LAYERS["attention"] for name in every[part]]
    mlp = [name for part in IN_LAYERS["mlp"] for name in every[part]]
    head = [] if tied else ["lm_head.weight"]
    vocab = config["vocab_size"]
    sizes = [config[key] for key in SIZES[:5]]
    sizes += [vocab if tied or version else -vocab, config["max_position_embeddings"]]
    if version:
        start = struct.pack("<Ii7i?", 0x616B3432, version, *sizes, tied)
        start = (start + struct.pack("<i", group) * (version == 2)).ljust(256, b"\0")
        order = before + between + last + first + attention + mlp + head
        data = [quantized(tensors[n], group) if version == 2 else flat(tensors[n]) for n in order]
    else:
        start = struct.pack("<7i", *sizes)
        order = first + before + attention + between + mlp + last
        size = config["hidden_size"] // config["num_attention_heads"]
        turns = np.zeros(config["max_position_embeddings"] * size, np.float32)
        data = [*(flat(tensors[n]) for n in order), flat(turns), *(flat(tensors[n]) for n in head)]
    path.write_bytes(start + b"".join(data))
    return path


PARTS = [*IN_LAYERS["attention"], *IN_LAYERS["mlp"], "input_layernorm", "post_attention_layernorm"]
SIZES = (
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
)


def flat(values: np.ndarray) -> bytes:
    return values.astype("<f4").tobytes()


def quantized(values: np.ndarray, group: int) -> bytes:
    """quantize_q80 of export.py, for matrices."""
    if values.ndim == 1:
        return flat(values)
    numbers, scales = quantize(values, group)
    return numbers.astype(np.int8).tobytes() + flat(scales)


def quantize(values: np.ndarray, group: int) -> tuple[np.ndarray, np.ndarray]:
    groups = values.astype(np.float32).reshape(-1, group)
    scales = np.abs(groups).max(axis=1) / np.float32(127)
    return np.round(groups / scales[:, None]), scales


def write_llama2c_tokenizer(path: Path, pieces: Sequence[str], scores: Sequence[float]) -> Path:
    """As llama2.c's tokenizer.py exports it: the ends spelt otherwise, and spaces for ▁."""
    data = struct.pack("<I", max(map(len, pieces)))
    for i, (piece, score) in enumerate(zip(pieces, scores, strict=True)):
        text = {1: "\n<s>\n", 2: "\n</s>\n"}.get(i, piece).replace("▁", " ").encode()
        data += struct.pack("<fI", score, len(text)) + text
    path.write_bytes(data)
    return path
