"""`consolidated.safetensors`: a mistral or a llama as its makers name its parts, with params.json.

It is often beside the same weights in Hugging Face's form, which are then read. Rows of queries and
keys that rotate together are adjacent, and are put back into Hugging Face's order.
"""

import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from cellformer.engine.cells.errors import InputError
from cellformer.engine.cells.fields import json_object
from cellformer.engine.cells.stored import SafetensorsFile, TensorFile
from cellformer.engine.models.foreign import Config
from cellformer.engine.models.formats import Source
from cellformer.engine.models.tensors import Tensors, entry, in_safetensors, weight_files
from cellformer.engine.text.tokenizer import load_tokenizer

FILE, PARAMS = "consolidated.safetensors", "params.json"
KEYS = {
    "dim": "hidden_size",
    "n_layers": "num_hidden_layers",
    "n_heads": "num_attention_heads",
    "n_kv_heads": "num_key_value_heads",
    "head_dim": "head_dim",
    "norm_eps": "rms_norm_eps",
    "rope_theta": "rope_theta",
    "sliding_window": "sliding_window",
    "max_seq_len": "max_position_embeddings",
    "max_position_embeddings": "max_position_embeddings",
    "tied_embeddings": "tie_word_embeddings",
}
BY_SHAPES = ("hidden_dim", "vocab_size", "multiple_of", "ffn_dim_multiplier", "model_type")
NAMES = {
    "tok_embeddings": "model.embed_tokens",
    "norm": "model.norm",
    "output": "lm_head",
    "attention.wq": "self_attn.q_proj",
    "attention.wk": "self_attn.k_proj",
    "attention.wv": "self_attn.v_proj",
    "attention.wo": "self_attn.o_proj",
    "feed_forward.w1": "mlp.gate_proj",
    "feed_forward.w2": "mlp.down_proj",
    "feed_forward.w3": "mlp.up_proj",
    "attention_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
}
PAIRED = ("self_attn.q_proj", "self_attn.k_proj")
EMBEDDING, EXPANDING = "model.embed_tokens.weight", "model.layers.0.mlp.gate_proj.weight"


def reads(name: str) -> bool:
    """The file, or a folder with it and without other weights."""
    path = Path(name)
    if path.name == FILE:
        return path.is_file()
    return (path / FILE).is_file() and not has_others(path)


def has_others(folder: Path) -> bool:
    """Whether a folder has weights in Hugging Face's form."""
    try:
        return (folder / "config.json").is_file() and bool(weight_files(folder))
    except InputError:
        return False


def open_source(name: str) -> Source:
    """The model of a file or a folder."""
    folder = Path(name) if Path(name).is_dir() else Path(name).parent
    path = folder / FILE
    in_safetensors(path)  # its header is sound
    places = {hugging_face_name(n): place for n, place in SafetensorsFile(path).places.items()}
    if EMBEDDING not in places or EXPANDING not in places:
        raise InputError(
            f"{path} does not have the tensors of a mistral or a llama model; use the model in "
            "Hugging Face's format, with a model.safetensors"
        )
    config = Config(folder / "config.json", values_of(folder, places))
    d_head = config.get("head_dim", int, 0) or config.divide("hidden_size", "num_attention_heads")
    paired = {
        n: replace(p, paired=d_head) for n, p in places.items() if any(q in n for q in PAIRED)
    }
    file = TensorFile(path, places | paired)
    tensors = {n: entry(file, n) for n in file.places}
    return Source(config, Tensors(path, tensors), partial(load_tokenizer, folder))


def hugging_face_name(own: str) -> str:
    """A tensor's Hugging Face name; its own if it has none."""
    layer = re.match(r"layers\.\d+\.|", own)
    assert layer is not None, own
    stem = own[layer.end() :].removesuffix(".weight")
    front = f"model.{layer[0]}" if layer[0] else ""
    return f"{front}{NAMES[stem]}.weight" if stem in NAMES else own


def values_of(folder: Path, places: dict[str, Any]) -> dict[str, Any]:
    """A config.json, or params.json in its terms. Raises InputError for an unknown field."""
    if (folder / "config.json").is_file():
        return json_object(folder / "config.json")
    if not (folder / PARAMS).is_file():
        raise InputError(
            f"{folder} has {FILE} but neither {PARAMS} nor config.json; download one of these "
            "two files"
        )
    said = json_object(folder / PARAMS)
    for key, value in said.items():
        if key not in (*KEYS, *BY_SHAPES) and value not in (None, False):
            raise InputError(
                f"{folder / PARAMS}: cellformer does not support {key} = {value!r}; use the "
                "model in Hugging Face's format, with a model.safetensors"
            )
    values = {KEYS[key]: value for key, value in said.items() if key in KEYS and value is not None}
    return {
        "model_type": "mistral",
        "hidden_act": "silu",
        "sliding_window": None,
        "vocab_size": places[EMBEDDING].shape[0],
        "intermediate_size": places[EXPANDING].shape[0],
        "tie_word_embeddings": "lm_head.weight" not in places,
        **values,
    }
