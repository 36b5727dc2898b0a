"""Folders as people have them: configs of published models, options that matter, odd names."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from conftest import GOLDEN
from safetensors.numpy import load_file, save_file

from cellformer.engine import InputError
from cellformer.engine.models import alibi, architectures, checkpoint
from cellformer.engine.models.foreign import ACTIVATIONS, Config

# config.json of published models, shortened where a value repeats
PUBLISHED = {
    "gpt2": {
        "activation_function": "gelu_new", "architectures": ["GPT2LMHeadModel"], "attn_pdrop": 0.1,
        "bos_token_id": 50256, "embd_pdrop": 0.1, "eos_token_id": 50256, "initializer_range": 0.02,
        "layer_norm_epsilon": 1e-05, "model_type": "gpt2", "n_ctx": 1024, "n_embd": 768,
        "n_head": 12, "n_layer": 12, "n_positions": 1024, "resid_pdrop": 0.1,
        "summary_activation": None, "summary_first_dropout": 0.1, "summary_proj_to_labels": True,
        "summary_type": "cls_index", "summary_use_proj": True, "vocab_size": 50257,
        "task_specific_params": {"text-generation": {"do_sample": True, "max_length": 50}},
    },
    "TinyStories-1M": {
        "_name_or_path": "EleutherAI/gpt-neo-125M", "activation_function": "gelu_new",
        "attention_dropout": 0, "attention_layers": ["global", "local"] * 4,
        "attention_types": [[["global", "local"], 4]], "bos_token_id": 50256, "embed_dropout": 0,
        "eos_token_id": 50256, "gradient_checkpointing": False, "hidden_size": 64,
        "initializer_range": 0.02, "intermediate_size": None, "layer_norm_epsilon": 1e-05,
        "max_position_embeddings": 2048, "model_type": "gpt_neo", "num_heads": 16, "num_layers": 8,
        "resid_dropout": 0, "torch_dtype": "float32", "transformers_version": "4.28.1",
        "use_cache": True, "vocab_size": 50257, "window_size": 256,
    },
    "pythia-70m": {
        "architectures": ["GPTNeoXForCausalLM"], "bos_token_id": 0, "eos_token_id": 0,
        "hidden_act": "gelu", "hidden_size": 512, "initializer_range": 0.02,
        "intermediate_size": 2048, "layer_norm_eps": 1e-05, "max_position_embeddings": 2048,
        "model_type": "gpt_neox", "num_attention_heads": 8, "num_hidden_layers": 6,
        "rotary_emb_base": 10000, "rotary_pct": 0.25, "tie_word_embeddings": False,
        "use_cache": True, "use_parallel_residual": True, "vocab_size": 50304,
    },
    "TinyLlama": {
        "attention_bias": False, "hidden_act": "silu", "hidden_size": 2048,
        "intermediate_size": 5632, "max_position_embeddings": 2048, "model_type": "llama",
        "num_attention_heads": 32, "num_hidden_layers": 22, "num_key_value_heads": 4,
        "pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_scaling": None, "rope_theta": 10000.0,
        "tie_word_embeddings": False, "vocab_size": 32000,
    },
    "Llama-3.2-1B": {
        "attention_bias": False, "head_dim": 64, "hidden_act": "silu", "hidden_size": 2048,
        "intermediate_size": 8192, "max_position_embeddings": 131072, "mlp_bias": False,
        "model_type": "llama", "num_attention_heads": 32, "num_hidden_layers": 16,
        "num_key_value_heads": 8, "pretraining_tp": 1, "rms_norm_eps": 1e-05,
        "rope_scaling": {
            "factor": 32.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
            "original_max_position_embeddings": 8192, "rope_type": "llama3",
        },
        "rope_theta": 500000.0, "tie_word_embeddings": True, "vocab_size": 128256,
    },
    "Mistral-7B": {
        "hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 14336,
        "max_position_embeddings": 32768, "model_type": "mistral", "num_attention_heads": 32,
        "num_hidden_layers": 32, "num_key_value_heads": 8, "rms_norm_eps": 1e-05,
        "rope_theta": 10000.0, "sliding_window": 4096, "vocab_size": 32000,
    },
    "Qwen2.5-0.5B": {
        "attention_dropout": 0.0, "hidden_act": "silu", "hidden_size": 896,
        "intermediate_size": 4864, "max_position_embeddings": 32768, "max_window_layers": 24,
        "model_type": "qwen2", "num_attention_heads": 14, "num_hidden_layers": 24,
        "num_key_value_heads": 2, "rms_norm_eps": 1e-06, "rope_theta": 1000000.0,
        "sliding_window": 32768, "tie_word_embeddings": True, "use_mrope": False,
        "use_sliding_window": False, "vocab_size": 151936,
    },
    "Qwen3-0.6B": {
        "attention_bias": False, "head_dim": 128, "hidden_act": "silu", "hidden_size": 1024,
        "intermediate_size": 3072, "max_position_embeddings": 40960, "max_window_layers": 28,
        "model_type": "qwen3", "num_attention_heads": 16, "num_hidden_layers": 28,
        "num_key_value_heads": 8, "rms_norm_eps": 1e-06, "rope_scaling": None,
        "rope_theta": 1000000, "sliding_window": None, "tie_word_embeddings": True,
        "use_sliding_window": False, "vocab_size": 151936,
    },
    "Phi-3-mini-128k": {
        "attention_bias": False, "attention_dropout": 0.0, "auto_map": {"a": "b"},
        "embd_pdrop": 0.0, "hidden_act": "silu", "hidden_size": 3072, "intermediate_size": 8192,
        "max_position_embeddings": 131072, "model_type": "phi3", "num_attention_heads": 32,
        "num_hidden_layers": 32, "num_key_value_heads": 32,
        "original_max_position_embeddings": 4096, "resid_pdrop": 0.0, "rms_norm_eps": 1e-05,
        "rope_scaling": {"long_factor": [1.5] * 48, "short_factor": [1.1] * 48, "type": "longrope"},
        "rope_theta": 10000.0, "sliding_window": 262144, "tie_word_embeddings": False,
        "use_cache": True, "vocab_size": 32064,
    },
    "starcoder2-3b": {
        "activation_function": "gelu", "attention_dropout": 0.1,
        "attention_softmax_in_fp32": True, "embedding_dropout": 0.1, "eos_token_id": 0,
        "hidden_act": "gelu_pytorch_tanh", "hidden_size": 3072, "intermediate_size": 12288,
        "layer_norm_epsilon": 1e-05, "max_position_embeddings": 16384, "mlp_type": "default",
        "model_type": "starcoder2", "norm_epsilon": 1e-05, "norm_type": "layer_norm",
        "num_attention_heads": 24, "num_hidden_layers": 30, "num_key_value_heads": 2,
        "rope_theta": 999999.4420358813, "scale_attention_softmax_in_fp32": True,
        "scale_attn_weights": True, "sliding_window": 4096, "use_bias": True, "vocab_size": 49152,
    },
    "SmolLM3-3B": {
        "attention_bias": False, "hidden_act": "silu", "hidden_size": 2048,
        "intermediate_size": 11008, "layer_types": ["full_attention"] * 36,
        "max_position_embeddings": 65536, "max_window_layers": 28, "mlp_bias": False,
        "model_type": "smollm3", "no_rope_layer_interval": 4, "no_rope_layers": [1, 1, 1, 0] * 9,
        "num_attention_heads": 16, "num_hidden_layers": 36, "num_key_value_heads": 4,
        "pretraining_tp": 2, "rms_norm_eps": 1e-06, "rope_scaling": None, "rope_theta": 5000000.0,
        "sliding_window": None, "use_sliding_window": False, "vocab_size": 128256,
    },
    "granite-3.1-2b": {
        "attention_bias": False, "attention_multiplier": 0.015625, "embedding_multiplier": 12.0,
        "hidden_act": "silu", "hidden_size": 2048, "intermediate_size": 8192,
        "logits_scaling": 8.0, "max_position_embeddings": 131072, "mlp_bias": False,
        "model_type": "granite", "num_attention_heads": 32, "num_hidden_layers": 40,
        "num_key_value_heads": 8, "residual_multiplier": 0.22, "rms_norm_eps": 1e-05,
        "rope_scaling": None, "rope_theta": 10000000.0, "tie_word_embeddings": True,
        "vocab_size": 49155,
    },
    "OLMo-2-1B": {
        "attention_bias": False, "hidden_act": "silu", "hidden_size": 2048,
        "intermediate_size": 8192, "max_position_embeddings": 4096, "model_type": "olmo2",
        "num_attention_heads": 16, "num_hidden_layers": 16, "num_key_value_heads": 16,
        "rms_norm_eps": 1e-06, "rope_scaling": None, "rope_theta": 500000,
        "tie_word_embeddings": False, "vocab_size": 100352,
    },
    "gemma-2b": {
        "attention_bias": False, "attention_dropout": 0.0, "head_dim": 256, "hidden_act": "gelu",
        "hidden_activation": "gelu_pytorch_tanh", "hidden_size": 2048, "intermediate_size": 16384,
        "max_position_embeddings": 8192, "model_type": "gemma", "num_attention_heads": 8,
        "num_hidden_layers": 18, "num_key_value_heads": 1, "rms_norm_eps": 1e-06,
        "rope_scaling": None, "rope_theta": 10000.0, "vocab_size": 256000,
    },
    "gemma-3-1b": {
        "attention_bias": False, "attn_logit_softcapping": None, "cache_implementation": "hybrid",
        "final_logit_softcapping": None, "head_dim": 256, "hidden_activation": "gelu_pytorch_tanh",
        "hidden_size": 1152, "intermediate_size": 6912, "max_position_embeddings": 32768,
        "model_type": "gemma3_text", "num_attention_heads": 4, "num_hidden_layers": 26,
        "num_key_value_heads": 1, "query_pre_attn_scalar": 256, "rms_norm_eps": 1e-06,
        "rope_local_base_freq": 10000, "rope_scaling": None, "rope_theta": 1000000,
        "sliding_window": 512, "sliding_window_pattern": 6, "vocab_size": 262144,
    },
    "Mixtral-8x7B": {
        "attention_dropout": 0.0, "hidden_act": "silu", "hidden_size": 4096,
        "intermediate_size": 14336, "max_position_embeddings": 32768, "model_type": "mixtral",
        "num_attention_heads": 32, "num_experts_per_tok": 2, "num_hidden_layers": 32,
        "num_key_value_heads": 8, "num_local_experts": 8, "output_router_logits": False,
        "rms_norm_eps": 1e-05, "rope_theta": 1000000.0, "router_aux_loss_coef": 0.02,
        "sliding_window": None, "tie_word_embeddings": False, "vocab_size": 32000,
    },
    "Qwen3-30B-A3B": {
        "attention_bias": False, "decoder_sparse_step": 1, "head_dim": 128, "hidden_act": "silu",
        "hidden_size": 2048, "intermediate_size": 6144, "max_position_embeddings": 40960,
        "max_window_layers": 48, "mlp_only_layers": [], "model_type": "qwen3_moe",
        "moe_intermediate_size": 768, "norm_topk_prob": True, "num_attention_heads": 32,
        "num_experts": 128, "num_experts_per_tok": 8, "num_hidden_layers": 48,
        "num_key_value_heads": 4, "output_router_logits": False, "rms_norm_eps": 1e-06,
        "rope_scaling": None, "rope_theta": 1000000.0, "router_aux_loss_coef": 0.001,
        "sliding_window": None, "tie_word_embeddings": False, "use_sliding_window": False,
        "vocab_size": 151936,
    },
    "Qwen1.5-MoE-A2.7B": {
        "decoder_sparse_step": 1, "hidden_act": "silu", "hidden_size": 2048,
        "intermediate_size": 5632, "max_position_embeddings": 8192, "max_window_layers": 21,
        "model_type": "qwen2_moe", "moe_intermediate_size": 1408, "norm_topk_prob": False,
        "num_attention_heads": 16, "num_experts": 60, "num_experts_per_tok": 4,
        "num_hidden_layers": 24, "num_key_value_heads": 16, "output_router_logits": False,
        "rms_norm_eps": 1e-06, "rope_theta": 1000000.0, "router_aux_loss_coef": 0.001,
        "shared_expert_intermediate_size": 5632, "sliding_window": 32768,
        "tie_word_embeddings": False, "use_sliding_window": False, "vocab_size": 151936,
    },
    "gemma-2-2b": {
        "attn_logit_softcapping": 50.0, "cache_implementation": "hybrid",
        "final_logit_softcapping": 30.0, "head_dim": 256, "hidden_act": "gelu_pytorch_tanh",
        "hidden_activation": "gelu_pytorch_tanh", "hidden_size": 2304, "intermediate_size": 9216,
        "max_position_embeddings": 8192, "model_type": "gemma2", "num_attention_heads": 8,
        "num_hidden_layers": 26, "num_key_value_heads": 4, "query_pre_attn_scalar": 256,
        "rms_norm_eps": 1e-06, "rope_theta": 10000.0, "sliding_window": 4096, "vocab_size": 256000,
    },
    "phi-2": {
        "attention_dropout": 0.0, "embd_pdrop": 0.0, "hidden_act": "gelu_new", "hidden_size": 2560,
        "intermediate_size": 10240, "layer_norm_eps": 1e-05, "max_position_embeddings": 2048,
        "model_type": "phi", "num_attention_heads": 32, "num_hidden_layers": 32,
        "num_key_value_heads": 32, "partial_rotary_factor": 0.4, "qk_layernorm": False,
        "resid_pdrop": 0.1, "rope_scaling": None, "rope_theta": 10000.0,
        "tie_word_embeddings": False, "vocab_size": 51200,
    },
    "opt-350m": {
        "_remove_final_layer_norm": False, "activation_dropout": 0.0, "activation_function": "relu",
        "attention_dropout": 0.0, "bos_token_id": 2, "do_layer_norm_before": False, "dropout": 0.1,
        "ffn_dim": 4096, "hidden_size": 1024, "init_std": 0.02, "layerdrop": 0.0,
        "max_position_embeddings": 2048, "model_type": "opt", "num_attention_heads": 16,
        "num_hidden_layers": 24, "pad_token_id": 1, "prefix": "</s>", "use_cache": True,
        "vocab_size": 50272, "word_embed_proj_dim": 512,
    },
    "gpt-j-6b": {
        "activation_function": "gelu_new", "attn_pdrop": 0.0, "embd_pdrop": 0.0,
        "gradient_checkpointing": False, "initializer_range": 0.02, "layer_norm_epsilon": 1e-05,
        "model_type": "gptj", "n_embd": 4096, "n_head": 16, "n_inner": None, "n_layer": 28,
        "n_positions": 2048, "resid_pdrop": 0.0, "rotary": True, "rotary_dim": 64,
        "scale_attn_weights": True, "summary_use_proj": True, "tie_word_embeddings": False,
        "tokenizer_class": "GPT2Tokenizer", "vocab_size": 50400,
    },
    "bloom-560m": {
        "apply_residual_connection_post_layernorm": False, "attention_dropout": 0.0,
        "attention_softmax_in_fp32": True, "bias_dropout_fusion": True, "bos_token_id": 1,
        "hidden_dropout": 0.0, "initializer_range": 0.02, "layer_norm_epsilon": 1e-05,
        "masked_softmax_fusion": True, "model_type": "bloom", "n_embed": 1024, "n_inner": None,
        "n_layer": 24, "num_attention_heads": 16, "offset_alibi": 100, "pretraining_tp": 1,
        "seq_length": 2048, "skip_bias_add": True, "skip_bias_add_qkv": False,
        "slow_but_exact": False, "unk_token_id": 0, "use_cache": True, "vocab_size": 250880,
    },
    "falcon-7b": {
        "alibi": False, "apply_residual_connection_post_layernorm": False,
        "attention_dropout": 0.0, "auto_map": {"a": "b"}, "bias": False, "bos_token_id": 11,
        "hidden_dropout": 0.0, "hidden_size": 4544, "initializer_range": 0.02,
        "layer_norm_epsilon": 1e-05, "model_type": "falcon", "multi_query": True,
        "new_decoder_architecture": False, "num_attention_heads": 71, "num_hidden_layers": 32,
        "parallel_attn": True, "use_cache": True, "vocab_size": 65024,
    },
    "stablelm-2-12b": {
        "attention_dropout": 0.0, "hidden_act": "silu", "hidden_dropout": 0.0,
        "hidden_size": 5120, "intermediate_size": 13824, "layer_norm_eps": 1e-05,
        "max_position_embeddings": 4096, "model_type": "stablelm", "num_attention_heads": 32,
        "num_hidden_layers": 40, "num_key_value_heads": 8, "partial_rotary_factor": 0.25,
        "qk_layernorm": True, "rope_theta": 10000, "tie_word_embeddings": False,
        "use_parallel_residual": True, "use_qkv_bias": False, "vocab_size": 100352,
    },
}  # fmt: skip


def read(tmp_path: Path, values: dict[str, object]) -> object:
    (tmp_path / "config.json").write_text(json.dumps(values))
    config = Config(tmp_path / "config.json")
    spec = architectures.find(config.values["model_type"]).read_config(config)
    config.check_unread()
    return spec


@pytest.mark.parametrize("name", PUBLISHED)
def test_configs_of_published_models_are_read(name: str, tmp_path: Path) -> None:
    assert read(tmp_path, PUBLISHED[name])


@pytest.mark.parametrize("name", PUBLISHED)
@pytest.mark.parametrize(
    "option", [{"logit_scale": 0.5}, {"use_alibi": True}, {"quantization_config": {"bits": 4}}]
)
def test_unknown_option_is_refused(name: str, option: dict, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=next(iter(option))):
        read(tmp_path, PUBLISHED[name] | option)


def test_gemma3_defaults(tmp_path: Path) -> None:
    """The 4-billion one says as much of the part that reads."""
    values = {"hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34}
    values |= {"model_type": "gemma3_text", "rope_scaling": {"factor": 8.0, "rope_type": "linear"}}
    spec = read(tmp_path, values | {"sliding_window": 1024})
    assert (spec.d_vocab, spec.n_heads, spec.kv_heads, spec.d_head) == (262_208, 8, 4, 256)
    assert spec.windows[4:7] == (1024, None, 1024) and spec.n_ctx == 131_072
    assert spec.rope_frequencies[0] == 1 / 8 and spec.local.theta == 10_000


SCALINGS = {
    "a field that yarn does not have": ({"type": "yarn", "factor": 2.0, "spin": 3}, "spin"),
    "no factor": ({"type": "linear"}, "factor is None"),
    "a factor below zero": ({"type": "yarn", "factor": -2.0}, "factor is -2.0"),
    "a part beside a scaling": (
        {"type": "linear", "factor": 2.0, "partial_rotary_factor": 0.5},
        "partial_rotary_factor",
    ),
}


@pytest.mark.parametrize("name", SCALINGS)
def test_impossible_scaling_is_refused(name: str, tmp_path: Path) -> None:
    scaling, named = SCALINGS[name]
    with pytest.raises(InputError, match=named):
        read(tmp_path, PUBLISHED["TinyLlama"] | {"rope_scaling": scaling})


def folder(name: str, tmp_path: Path, **fields: object) -> Path:
    """A golden model with other fields in its config."""
    found = Path(shutil.copytree(GOLDEN / name, tmp_path / name))
    values = json.loads((found / "config.json").read_text()) | fields
    (found / "config.json").write_text(json.dumps(values))
    return found


BEFORE = {
    "as its reference saves it": ("language_model.model.", "language_model.lm_head.weight"),
    "as its reference has it": ("model.language_model.", "lm_head.weight"),
}


@pytest.mark.parametrize("names", BEFORE)
@pytest.mark.parametrize(
    ("name", "sees"),
    [
        ("gemma3", "gemma3"),
        ("gemma3n", "gemma3n"),
        ("gemma4", "gemma4"),
        ("ministral3", "mistral3"),
        ("qwen3_next", "qwen3_5_moe"),
    ],
)
def test_text_part_of_a_vision_model(name: str, sees: str, names: str, tmp_path: Path) -> None:
    found, (prefix, head) = folder(name, tmp_path), BEFORE[names]
    text = json.loads((found / "config.json").read_text())
    whole = {"model_type": sees, "text_config": text, "vision_config": {"hidden_size": 8}}
    whole |= {"tie_word_embeddings": text["tie_word_embeddings"], "spatial_merge_size": 2}
    whole |= {"boi_token_index": 7, "mm_tokens_per_image": 4, "eos_token_id": [1, 6]}
    (found / "config.json").write_text(json.dumps(whole))
    tensors = load_file(found / "model.safetensors")
    held = {name.replace("model.", prefix, 1): t for name, t in tensors.items()}
    held[head] = tensors.get("lm_head.weight", tensors["model.embed_tokens.weight"])
    held["vision_tower.head.probe"] = held["model.vision_tower.w"] = np.ones((1, 1, 8), np.float32)
    save_file(held, found / "model.safetensors")
    model, kept = checkpoint.load(found), checkpoint.load(GOLDEN / name)
    assert model.spec == kept.spec and model.kind == text["model_type"]
    logits = [m.graph([1, 2, 3]).values["logits"] for m in (model, kept)]
    np.testing.assert_array_equal(*logits)
    checkpoint.save(model, tmp_path / "again")
    assert checkpoint.load(tmp_path / "again").spec == kept.spec
    (found / "config.json").write_text(json.dumps(whole | {"fusion": "late"}))
    with pytest.raises(InputError, match="fusion"):
        checkpoint.load(found)


def test_two_accounts_of_rotary_positions(tmp_path: Path) -> None:
    """The older one is what transformers takes."""
    both = {"rope_parameters": {"rope_theta": 50.0, "rope_type": "default"}}
    both["rope_scaling"] = {"rope_theta": 300.0, "rope_type": "default"}
    assert checkpoint.load(folder("llama", tmp_path, **both)).spec.rope_theta == 300.0


def test_llama_rotates_all_features(tmp_path: Path) -> None:
    model = checkpoint.load(folder("llama", tmp_path, partial_rotary_factor=0.5))
    assert model.spec.rotary == model.spec.d_head


def test_untied_lm_head_stays_untied(tmp_path: Path) -> None:
    found = folder("gpt2-untied", tmp_path, tie_word_embeddings=True)
    model, same = checkpoint.load(found), checkpoint.load(GOLDEN / "gpt2-untied")
    logits = [m.graph([1, 2, 3]).values["logits"] for m in (model, same)]
    np.testing.assert_array_equal(*logits)
    checkpoint.save(model, tmp_path / "again")
    assert checkpoint.load(tmp_path / "again").config["tie_word_embeddings"] is False


def test_tied_head_beside_the_embedding(tmp_path: Path) -> None:
    found = folder("qwen2", tmp_path)
    tensors = load_file(found / "model.safetensors")
    tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"]
    save_file(tensors, found / "model.safetensors")
    assert checkpoint.load(found).spec.tied


@pytest.mark.parametrize("wrapper", ["module.", "_orig_mod.", "_orig_mod.module."])
def test_names_that_were_wrapped_and_buffers(wrapper: str, tmp_path: Path) -> None:
    found = folder("llama", tmp_path)
    tensors = load_file(found / "model.safetensors")
    tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] = np.ones(2, np.float32)
    tensors["model.rotary_emb.inv_freq"] = np.ones(2, np.float32)
    wrapped = {wrapper + name: values for name, values in tensors.items()}
    save_file(wrapped, found / "model.safetensors")
    model, kept = checkpoint.load(found), checkpoint.load(GOLDEN / "llama")
    for name, values in kept.weights.items():
        np.testing.assert_array_equal(model.weights[name], values)


OLDER_NAMES = {  # what the names of a golden model lack, or have beside them, in published files
    "opt": ("model.", ("decoder.version",)),
    "bloom": ("transformer.", ("h.0.self_attention.scale_mask_softmax.causal_mask",)),
    "gptj": ("transformer.", ("h.0.attn.bias", "h.0.attn.masked_bias")),
    "falcon": ("", ("lm_head.weight", "transformer.h.0.self_attention.rotary_emb.inv_freq")),
    "stablelm": ("", ("model.layers.0.self_attn.rotary_emb.inv_freq",)),
}


@pytest.mark.parametrize("name", OLDER_NAMES)
def test_names_of_older_files(name: str, tmp_path: Path) -> None:
    prefix, beside = OLDER_NAMES[name]
    found = folder(name, tmp_path)
    tensors = load_file(found / "model.safetensors")
    embedding = tensors.get("transformer.word_embeddings.weight", np.ones(2, np.float32))
    tensors = {key.removeprefix(prefix): values for key, values in tensors.items()}
    tensors |= dict.fromkeys(beside, embedding)
    save_file(tensors, found / "model.safetensors")
    model, kept = checkpoint.load(found), checkpoint.load(GOLDEN / name)
    assert model.spec == kept.spec
    for weight, values in kept.weights.items():
        np.testing.assert_array_equal(model.weights[weight], values)


LEFT_OUT = ("hidden_act", "hidden_activation", "activation_function", "max_position_embeddings")
ROTARY = ("llama", "mistral", "qwen2", "qwen3", "smollm3", "granite", "gemma", "gemma2", "olmo2")


@pytest.mark.parametrize("name", [*ROTARY, "starcoder2", "gpt_neox", "mixtral", "qwen3_moe"])
def test_fields_left_out_have_the_defaults_of_the_reference(name, tmp_path, transformers) -> None:
    found = folder(name, tmp_path)
    values = json.loads((found / "config.json").read_text())
    kept = {key: value for key, value in values.items() if key not in LEFT_OUT}
    (found / "config.json").write_text(json.dumps(kept))
    model = checkpoint.load(found)
    theirs = transformers.AutoConfig.for_model(values["model_type"]).to_dict()
    act = theirs.get("hidden_activation") or theirs["hidden_act"]
    assert model.spec.activation == ACTIVATIONS[act]
    assert model.spec.n_ctx == theirs["max_position_embeddings"]


CLASSIFIER = {"architectures": ["EuroBertForSequenceClassification"]}
REFUSED = {  # a golden model, options, and what the message names
    "bloom": ({"slow_but_exact": True, "pretraining_tp": 2}, "slow_but_exact = True"),
    "falcon": ({"num_ln_in_parallel_attn": 3}, "num_ln_in_parallel_attn is 3"),
    "eurobert": (CLASSIFIER, "classifiers of a eurobert model are not supported"),
    "gptj": ({"rotary_dim": 20}, "d_rotary is 20"),
    "phi": (
        {"hidden_act": "hardswish"},
        "hidden_act = 'hardswish' is not supported; choose one of relu",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_unsupported_options_are_refused(name: str, tmp_path: Path) -> None:
    fields, named = REFUSED[name]
    with pytest.raises(InputError, match=named):
        checkpoint.load(folder(name, tmp_path, **fields))


def test_positions_of_opt_are_counted_from_two() -> None:
    model = checkpoint.load(GOLDEN / "opt")
    graph = model.graph([1, 2, 3])
    assert graph.values["positions"][:, 0].tolist() == [2, 3, 4]
    assert graph["W_pos"].shape[0] == model.spec.n_ctx + 2
    model.graph([1] * model.spec.n_ctx)


def test_slopes_of_heads_that_are_no_power_of_two() -> None:
    assert alibi.slopes(8) == [2.0**-k for k in range(1, 9)]
    assert alibi.slopes(3) == [2.0**-4, 2.0**-8, 2.0**-2]  # as the paper's own program has them


# --- an architecture is one file ----------------------------------------------------------------

FILE = """
from cellformer.engine.models.architectures.gpt2 import EPS, pieces, read_config
from cellformer.engine.models.architectures import gpt2

MODEL_TYPES = ("gpt2-backwards",)


def forward(g, ids):
    gpt2.forward(g, ids[::-1])
"""


def test_an_architecture_is_one_file(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "backwards.py").write_text(FILE)
    monkeypatch.setattr(architectures, "__path__", [*architectures.__path__, str(tmp_path)])
    model = checkpoint.load(folder("gpt2", tmp_path, model_type="gpt2-backwards"))
    assert model.kind == "gpt2-backwards"
    there = checkpoint.load(GOLDEN / "gpt2").graph([1, 2, 3]).values["logits"]
    np.testing.assert_array_equal(model.graph([3, 2, 1]).values["logits"], there)
    checkpoint.save(model, tmp_path / "again")
    assert checkpoint.load(tmp_path / "again").spec == model.spec


def test_missing_declaration_is_one_line(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "unfinished.py").write_text("MODEL_TYPES = ('unfinished',)\n")
    monkeypatch.setattr(architectures, "__path__", [*architectures.__path__, str(tmp_path)])
    wanted = (
        r"unfinished\.py is an architecture, but does not declare EPS, forward, read_config, pieces"
    )
    with pytest.raises(InputError, match=wanted):
        architectures.find("gpt2")
