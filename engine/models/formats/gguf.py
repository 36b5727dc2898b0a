"""GGUF, llama.cpp's file: metadata, tensors that may be packed into few bits, and a vocabulary.

What its architectures are called, and what they call their tensors, is turned into the words of
Hugging Face: a table for each.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from engine.cells.errors import InputError, first_line
from engine.cells.stored import Place, TensorFile
from engine.models.foreign import Config
from engine.models.formats import Source
from engine.models.gguf_file import MAGIC, Values, header
from engine.models.tensors import TensorEntry, Tensors, entry
from engine.models.tokenizer import IdsOnly, Library, Tokenizer
from engine.models.vocabularies import LLAMA3 as LLAMA3_PATTERN
from engine.models.vocabularies import PATTERNS, Kind, byte_level, sentence_pieces

OF_TOKENIZER = "tokenizer.ggml."

# --- what an architecture of GGUF says in Hugging Face's words ----------------------------------


@dataclass(frozen=True)
class Family:
    """How the metadata and the tensors of one architecture are called by Hugging Face."""

    fixed: Mapping[str, Any]  # of config.json
    keys: Mapping[str, str]  # of the metadata, behind the architecture's name -> of config.json
    names: Mapping[str, str]  # of tensors outside blocks, without `.weight`
    block: str  # what `blk` is
    parts: Mapping[str, str]  # of tensors inside a block; {} is the number of one in a stack
    paired: tuple[str, ...] = ()  # parts whose rows that rotate together stand side by side
    turned: tuple[str, ...] = ()  # parts that Hugging Face keeps the other way round


SIZES = {
    "context_length": "max_position_embeddings",
    "embedding_length": "hidden_size",
    "block_count": "num_hidden_layers",
    "feed_forward_length": "intermediate_size",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
    "attention.key_length": "head_dim",
    "attention.layer_norm_rms_epsilon": "rms_norm_eps",
    "rope.freq_base": "rope_theta",
}
LLAMA_NAMES = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
}
LLAMA_PARTS = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
EXPERTS = {"expert_count": "num_local_experts", "expert_used_count": "num_experts_per_tok"}
MIXTRAL_PARTS = {
    "ffn_gate_inp": "block_sparse_moe.gate",
    "ffn_gate_exps": "block_sparse_moe.experts.{}.w1",
    "ffn_up_exps": "block_sparse_moe.experts.{}.w3",
    "ffn_down_exps": "block_sparse_moe.experts.{}.w2",
}
QWEN_MOE_PARTS = {
    "ffn_gate_inp": "mlp.gate",
    "ffn_gate_exps": "mlp.experts.{}.gate_proj",
    "ffn_up_exps": "mlp.experts.{}.up_proj",
    "ffn_down_exps": "mlp.experts.{}.down_proj",
}


WINDOW = {"attention.sliding_window": "sliding_window"}  # of Mistral, which is called a llama


NOTHING: Mapping[str, str] = MappingProxyType({})


def llama_like(
    model_type: str,
    keys: Mapping[str, str] = NOTHING,
    parts: Mapping[str, str] = NOTHING,
    paired: tuple[str, ...] = (),
    **said: Any,
) -> Family:
    """Llama and those whose tensors are called alike, with more keys, more parts of a block, and
    what their files take for granted."""
    fixed = {"model_type": model_type, "hidden_act": "silu"} | said
    keys, parts = {**SIZES, **keys}, {**LLAMA_PARTS, **parts}
    return Family(fixed, keys, LLAMA_NAMES, "model.layers", parts, paired)


FAMILIES = {
    "llama": llama_like("llama", WINDOW | EXPERTS, MIXTRAL_PARTS, paired=("attn_q", "attn_k")),
    "qwen2": llama_like("qwen2"),
    "qwen3": llama_like("qwen3"),
    "qwen3moe": llama_like(
        "qwen3_moe",
        EXPERTS | {"expert_feed_forward_length": "moe_intermediate_size"},
        QWEN_MOE_PARTS,
        norm_topk_prob=True,
    ),
    "gpt2": Family(
        fixed={"model_type": "gpt2", "activation_function": "gelu_new"},
        keys={
            "context_length": "n_positions",
            "embedding_length": "n_embd",
            "block_count": "n_layer",
            "feed_forward_length": "n_inner",
            "attention.head_count": "n_head",
            "attention.layer_norm_epsilon": "layer_norm_epsilon",
        },
        names={
            "token_embd": "transformer.wte",
            "position_embd": "transformer.wpe",
            "output_norm": "transformer.ln_f",
            "output": "lm_head",
        },
        block="transformer.h",
        parts={
            "attn_norm": "ln_1",
            "attn_qkv": "attn.c_attn",
            "attn_output": "attn.c_proj",
            "ffn_norm": "ln_2",
            "ffn_up": "mlp.c_fc",
            "ffn_down": "mlp.c_proj",
        },
        turned=("attn_qkv", "attn_output", "ffn_up", "ffn_down"),
    ),
}
SCALING = {
    "type": "rope_type",
    "factor": "factor",
    "original_context_length": "original_max_position_embeddings",
}
WHOLE_HEAD = ("rope.dimension_count", "attention.value_length")  # keys that repeat a head's size
OF_NO_CONSEQUENCE = ("vocab_size", "rope.scaling.finetuned")  # the embedding says it; history
NEUTRAL: tuple[Any, ...] = (0, None, "none", "", [])  # values of keys that then change nothing
FACTORS = "rope_freqs.weight"  # what Llama 3 divides its frequencies by
LLAMA3 = {"low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}


def reads(name: str) -> bool:
    """A file that says so, by its ending or by its first bytes."""
    path = Path(name)
    if not path.is_file():
        return False
    if path.suffix == ".gguf":
        return True
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def open_source(name: str) -> Source:
    """The model of a GGUF file."""
    path = Path(name)
    meta, places = header(path)
    kind = meta.get("general.architecture")
    if kind not in FAMILIES:
        known = ", ".join(FAMILIES)
        raise InputError(f"{path} holds the architecture {kind!r}; from GGUF, {known} can be read")
    values = config(path, meta, kind, places)
    factors = places.get(FACTORS)
    if factors is not None:
        stretch = TensorFile(path, places).whole(FACTORS)
        values |= {"rope_scaling": llama3_scaling(path, stretch, values["rope_theta"])}
    tensors = named(path, FAMILIES[kind], values, places)
    return Source(Config(path, values), Tensors(path, tensors), partial(tokenizer, path, meta))


# --- config -------------------------------------------------------------------------------------


def config(path: Path, meta: Values, kind: str, places: Mapping[str, Place]) -> Values:
    """The metadata as a config.json."""
    if "token_embd.weight" not in places:
        raise InputError(f"{path} has no token_embd.weight")
    said = {k.removeprefix(f"{kind}."): v for k, v in meta.items() if k.startswith(f"{kind}.")}
    values = dict(FAMILIES[kind].fixed) | translated(path, kind, said)
    values["vocab_size"] = places["token_embd.weight"].shape[0]
    values["tie_word_embeddings"] = "output.weight" not in places
    if "blk.0.attn_q.bias" in places:
        values["attention_bias"] = True
    if values.get("sliding_window"):
        values["model_type"] = "mistral"
    if values["model_type"] in ("llama", "mistral") and values.get("num_local_experts"):
        values["model_type"] = "mixtral"
    for end in ("bos", "eos"):
        if f"tokenizer.ggml.{end}_token_id" in meta:
            values[f"{end}_token_id"] = meta[f"tokenizer.ggml.{end}_token_id"]
    return values


def translated(path: Path, kind: str, said: Values) -> Values:
    """An architecture's own keys. Raises InputError for one that would change the result, and is
    not known here."""
    keys = FAMILIES[kind].keys
    values: Values = {}
    scaling: Values = {}
    for key, value in said.items():
        part = key.removeprefix("rope.scaling.")
        if key in keys:
            values[keys[key]] = value
        elif part != key and part in SCALING:
            scaling[SCALING[part]] = value
        elif key not in (*WHOLE_HEAD, *OF_NO_CONSEQUENCE) and value not in NEUTRAL:
            raise InputError(f"{path} says {kind}.{key} = {value!r}, which is not known here")
    if scaling.get("rope_type", "none") != "none":
        values["rope_scaling"] = scaling
    for key in WHOLE_HEAD:
        size = head_size(values)
        if said.get(key, size) != size:
            raise InputError(f"{path} says {key} = {said[key]!r}, where a head has {size} features")
    return values


def head_size(values: Values) -> Any:
    """How many features a head has; None where that is not said."""
    width, heads = values.get("hidden_size"), values.get("num_attention_heads")
    given = values.get("head_dim")
    return given or (width // heads if isinstance(width, int) and isinstance(heads, int) else None)


def llama3_scaling(path: Path, stretch: np.ndarray, theta: float) -> Values:
    """The scaling that gives these factors, by which the frequencies of a head are divided."""
    factor = float(stretch.max())
    low, high = LLAMA3["low_freq_factor"], LLAMA3["high_freq_factor"]
    radians = theta ** (-np.arange(len(stretch)) / len(stretch))  # a token
    turns = LLAMA3["original_max_position_embeddings"] * radians / (2 * np.pi)
    smooth = np.clip((turns - low) / (high - low), 0, 1)
    if not np.allclose(stretch, 1 / ((1 - smooth) / factor + smooth), rtol=1e-4):
        raise InputError(f"{path} scales its frequencies by a {FACTORS} that is not Llama 3's")
    return {"rope_type": "llama3", "factor": factor, **LLAMA3}


# --- tensors ------------------------------------------------------------------------------------


def named(
    path: Path, family: Family, values: Values, places: Mapping[str, Place]
) -> dict[str, TensorEntry]:
    """The tensors by their Hugging Face names; one that is not known keeps its own."""
    turned: dict[str, bool] = {}
    ordered: dict[str, Place] = {}
    for own, place in places.items():
        name, part = hugging_face_name(family, own)
        turned[name] = part in family.turned and len(place.shape) == 2
        rotates = part in family.paired
        ordered[name] = replace(place, paired=head_size(values) or 0) if rotates else place
        if "{}" in name and len(place.shape) == 3:
            ordered |= {name.format(k): matrix for k, matrix in enumerate(place.stacked)}
            del ordered[name]
    file = TensorFile(path, {name: place for name, place in ordered.items() if name != FACTORS})
    return {name: entry(file, name, turned.get(name, False)) for name in file.places}


def hugging_face_name(family: Family, own: str) -> tuple[str, str]:
    """What a tensor is called there, and which part of a block it is."""
    stem, _, end = own.rpartition(".")
    block, _, part = stem.removeprefix("blk.").partition(".")
    if part in family.parts:
        return f"{family.block}.{block}.{family.parts[part]}.{end}", part
    return (f"{family.names[stem]}.{end}" if stem in family.names else own), ""


# --- tokenizer ----------------------------------------------------------------------------------


def tokenizer(path: Path, meta: Values, n: int) -> Tokenizer:
    """The tokenizer that the metadata describe; ids only where there is none."""
    said = {k.removeprefix(OF_TOKENIZER): v for k, v in meta.items() if k.startswith(OF_TOKENIZER)}
    model, pieces = said.get("model", "none"), said.get("tokens", [])
    if model in ("none", "no_vocab"):
        return IdsOnly(n)
    if model not in ("gpt2", "llama"):
        raise InputError(f"{path}: its tokenizer, of the kind {model!r}, is not known here")
    if len(pieces) > n:
        raise InputError(f"{path} has {len(pieces)} pieces of text for {n} token ids")
    kinds = said.get("token_type", [Kind.NORMAL] * len(pieces))
    pattern = said.get("pre", "")
    by_itself = model == "llama" or PATTERNS.get(pattern) == LLAMA3_PATTERN
    ends: list[str | None] = []  # the pieces that every text is put between
    for end, default in (("bos", by_itself), ("eos", False)):
        i = said.get(f"{end}_token_id", -1)
        wanted = said.get(f"add_{end}_token", default) and 0 <= i < len(pieces)
        ends.append(pieces[i] if wanted else None)
    try:
        if model == "gpt2":
            inner = byte_level(pieces, said.get("merges", []), pattern, kinds, ends)
        else:
            before = said.get("add_space_prefix", True)
            inner = sentence_pieces(pieces, said["scores"], kinds, ends, before)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except Exception as error:  # the library raises nothing narrower
        raise InputError(f"{path}: its tokenizer: {first_line(error)}") from None
    begin, last = (said.get(f"{end}_token_id") for end in ("bos", "eos"))
    return Library(inner, n, begin, () if last is None else (int(last),))
