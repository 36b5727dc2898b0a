"""Models that see and read: their language model, as a model of its own.

A folder of such a model has the config of the part that reads as `text_config`, and the names of
its tensors have another beginning. Pictures are left out.
"""

from collections.abc import Mapping
from typing import Any

from cellformer.engine.cells.errors import InputError
from cellformer.engine.models import rope
from cellformer.engine.models.foreign import Config
from cellformer.engine.models.tensors import TensorEntry

QWEN2 = {
    "model_type": "qwen2", "vocab_size": 152064, "hidden_size": 8192, "intermediate_size": 29568,
    "num_hidden_layers": 80, "num_attention_heads": 64, "num_key_value_heads": 8,
    "max_position_embeddings": 32768, "rms_norm_eps": 1e-5, "rope_theta": 1e6,
    "max_window_layers": 80, "sliding_window": 4096,
}  # fmt: skip
QWEN3 = {
    "model_type": "qwen3", "vocab_size": 151936, "hidden_size": 4096, "intermediate_size": 22016,
    "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32,
    "max_position_embeddings": 128000, "rope_theta": 5e5,
}  # fmt: skip
LLAMA = {
    "model_type": "llama", "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008,
    "num_attention_heads": 32,
}  # fmt: skip
# The language model's fields, where its config says nothing
SEEING: Mapping[str, Mapping[str, Any]] = {
    "gemma3": {"model_type": "gemma3_text"},
    "gemma3n": {"model_type": "gemma3n_text"},
    "gemma4": {"model_type": "gemma4_text"},
    "llama4": {"model_type": "llama4_text"},
    "llava": LLAMA,
    "mistral3": {"model_type": "mistral"},
    "qwen2_vl": QWEN2,
    "qwen2_5_vl": QWEN2,
    "qwen3_vl": QWEN3,
    "qwen3_5": {"model_type": "qwen3_5_text"},
    "qwen3_5_moe": {"model_type": "qwen3_5_moe_text"},
    "smolvlm": LLAMA,
}
TIED = ("gemma3", "gemma3n", "gemma4", "mistral3")  # unless their configs say otherwise
CAPPED = ("gemma3n", "gemma4")  # as a whole, others do not cap the logits
FLAT = ("qwen2_vl", "qwen2_5_vl")  # their first configs have all fields in one object
OWN_KIND = ("qwen2_vl", "qwen2_5_vl", "qwen3_vl")  # with a name of its own for their language model
BESIDE = (  # fields about pictures and sound
    "audio_config",
    "eoa_token_index",
    "vision_config",
    "image_token_index",
    "mm_tokens_per_image",
    "boi_token_index",
    "eoi_token_index",
    "projector_hidden_act",
    "vision_feature_layer",
    "vision_feature_select_strategy",
    "multimodal_projector_bias",
    "spatial_merge_size",
    "image_seq_length",
    "projection_dim",
    "scale_factor",
    "ignore_index",
    "audio_soft_tokens_per_image",
    "vision_soft_tokens_per_image",
)
OF_PICTURES = (  # fields of the language model's config that it does not read
    "num_image_tokens",
    "pixel_shuffle_factor",
    "perceiver_config",
    "is_llama_config",
    "neftune_noise_alpha",
    "transformers.js_config",
)
STARTS = ("model.language_model.", "model.text_model.")  # of names of tensors
BARE = ("lm_head.", "model.embed_tokens.", "model.layers.", "model.norm.")  # of one alone


def kind_read(config: Config) -> str:
    """The model type of the language model; of a model that only reads, its own. Raises InputError
    for one whose prompt is not read from left to right."""
    kind: str = config.get("model_type", str)
    if kind == "paligemma":
        raise InputError(
            f"{config.path}: cellformer does not read {kind}, because each word of a prompt also "
            "attends to later words; choose a gemma, gemma2 or gemma3 model"
        )
    return str(SEEING[kind]["model_type"]) if kind in SEEING else kind


def reading_part(whole: Config) -> Config:
    """The config of a vision-language model's language model, as of a model of its own."""
    kind = whole.get("model_type", str)
    flat = kind in FLAT and not whole.look("text_config")
    text = dict(whole.values) if flat else whole.get("text_config", dict)
    usual = SEEING[kind]
    if kind in OWN_KIND or "model_type" not in text:
        text = {**text, "model_type": usual["model_type"]}
    whole.ignore(*BESIDE, *(name for name in text if whole.look(name) == text[name]))
    tied = whole.get("tie_word_embeddings", bool, kind in TIED)
    whole.check_unread()
    if kind not in TIED:  # of which either config may say it
        tied = tied or bool(text.get("tie_word_embeddings"))
    if text["model_type"] == usual["model_type"]:
        text = {**usual, **text}
    values = {k: v for k, v in text.items() if k not in (*BESIDE, *OF_PICTURES)}
    values["tie_word_embeddings"] = tied
    values |= {} if kind in CAPPED else {"final_logit_softcapping": None}
    if kind in OWN_KIND:
        values |= {
            "rope_scaling": None,
            "rope_parameters": rope.of_text(rope.said(Config(whole.path, text))),
        }
    ends = {key: whole.values[key] for key in ("eos_token_id",) if key in whole.values}
    return Config(whole.path, values | ends)


def language_model(held: Mapping[str, TensorEntry]) -> dict[str, TensorEntry]:
    """The tensors of the language model, under the names of a model of its own."""
    found = {}
    for name, tensor in held.items():
        start = next((s for s in STARTS if name.startswith(s)), None)
        if name.startswith("language_model."):
            found[name.removeprefix("language_model.")] = tensor
        elif start:
            found[f"model.{name.removeprefix(start)}"] = tensor
        elif name.startswith(BARE):
            found[name] = tensor
    return found
