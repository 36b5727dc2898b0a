"""GGUF, llama.cpp's format: metadata, possibly quantized tensors, and a vocabulary.

Tables translate the names of architectures, metadata and tensors to Hugging Face's.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from engine.cells.errors import InputError
from engine.cells.stored import Place, TensorFile
from engine.models.foreign import Config
from engine.models.formats import Source
from engine.models.gguf_file import MAGIC, SPLIT, Values, header, split
from engine.models.tensors import TensorEntry, Tensors, entry
from engine.text.tokenizer import IdsOnly, Library, Tokenizer
from engine.text.tokenizers_library import asked
from engine.text.vocabularies import LLAMA3 as LLAMA3_PATTERN
from engine.text.vocabularies import PATTERNS, Kind, byte_level, sentence_pieces

OF_TOKENIZER = "tokenizer.ggml."

# --- what an architecture of GGUF says in Hugging Face's words ----------------------------------


@dataclass(frozen=True)
class Family:
    """Hugging Face's names for one architecture's metadata and tensors."""

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
LLAMA_NAMES = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
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
    """A family whose tensors have Llama's names, with additional keys, parts of a block, and
    defaults."""
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
MOST_EXPERTS = 10_000  # of a layer; the largest models have 512
FACTORS = "rope_freqs.weight"  # what Llama 3 divides its frequencies by
LLAMA3 = {"low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}


def reads(name: str) -> bool:
    """A GGUF file, by its extension or its first bytes."""
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
    said = Config(path, meta)
    kind = said.get("general.architecture", str)
    if kind not in FAMILIES:
        known = ", ".join(FAMILIES)
        raise InputError(f"{path} holds the architecture {kind!r}; from GGUF, {known} can be read")
    values = config(said, kind, places)
    factors = places.get(FACTORS)
    if factors is not None:
        stretch = TensorFile(path, places).whole(FACTORS)
        theta = said.get(f"{kind}.rope.freq_base", float)
        values |= {"rope_scaling": llama3_scaling(path, stretch, theta)}
    tensors = named(path, FAMILIES[kind], values, places)
    return Source(Config(path, values), Tensors(path, tensors), partial(tokenizer, said))


def integers(name: str) -> tuple[dict[str, str], Tensors, Tensors]:
    """The kinds, integers and scales of the matrices of a file that are packed as integers times
    scales, by their Hugging Face names; a number is its integer times its scale."""
    path = Path(name)
    meta, places = header(path)
    said = Config(path, meta)
    kind = said.get("general.architecture", str)
    family, values = FAMILIES[kind], config(said, kind, places)
    kinds = {
        own: place.unpack.keywords["qtype"].name
        for own, place in places.items()
        if isinstance(place.unpack, partial) and len(place.shape) == 2
    }
    kinds = {own: packed for own, packed in kinds.items() if packed in SPLIT}

    def tensors(which: int) -> Tensors:
        apart = {
            own: replace(places[own], unpack=partial(_part, kind=packed, which=which))
            for own, packed in kinds.items()
        }
        return Tensors(path, named(path, family, values, apart))

    names = {hugging_face_name(family, own)[0]: packed for own, packed in kinds.items()}
    return names, tensors(0), tensors(1)


def _part(data: np.ndarray, kind: str, which: int) -> np.ndarray:
    """The integers of packed rows (0), or their scales (1)."""
    return split(data, kind)[which]


# --- config -------------------------------------------------------------------------------------


def config(meta: Config, kind: str, places: Mapping[str, Place]) -> Values:
    """The metadata as a config.json."""
    path = meta.path
    if "token_embd.weight" not in places:
        raise InputError(f"{path} has no token_embd.weight")
    own = [key for key in meta.values if key.startswith(f"{kind}.")]
    said = {key.removeprefix(f"{kind}."): meta.values[key] for key in own}
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
        ident = meta.optional(f"{OF_TOKENIZER}{end}_token_id", int, None)
        if ident is not None:
            values[f"{end}_token_id"] = ident
    return values


def translated(path: Path, kind: str, said: Values) -> Values:
    """An architecture's own keys. Raises InputError for an unknown one that would change the
    result."""
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
        size = head_size(path, values)
        if said.get(key, size) != size:
            raise InputError(f"{path} says {key} = {said[key]!r}, where a head has {size} features")
    return values


def head_size(path: Path, values: Values) -> int | None:
    """The number of features of a head; None if the metadata do not say."""
    if not {"hidden_size", "num_attention_heads"} <= values.keys():
        return None
    said = Config(path, values)
    given: int | None = said.optional("head_dim", int, None)
    return given or said.divide("hidden_size", "num_attention_heads")


def llama3_scaling(path: Path, stretch: np.ndarray, theta: float) -> Values:
    """The Llama 3 scaling that gives these divisors of a head's frequencies."""
    if stretch.ndim != 1 or not (stretch > 0).all() or theta <= 0:
        raise InputError(
            f"{path} scales its frequencies by {FACTORS}, which must be positive; fetch it again"
        )
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
    """The tensors by their Hugging Face names; unknown tensors keep their own."""
    turned: dict[str, bool] = {}
    paired = head_size(path, values) or 0
    ordered: dict[str, Place] = {}
    for own, place in places.items():
        name, part = hugging_face_name(family, own)
        turned[name] = part in family.turned and len(place.shape) == 2
        rotates = part in family.paired
        ordered[name] = replace(place, paired=paired) if rotates else place
        if "{}" in family.parts.get(part, "") and len(place.shape) == 3:
            if place.shape[0] > MOST_EXPERTS:
                raise InputError(
                    f"{own} in {path} is of {place.shape[0]:,} experts; {MOST_EXPERTS:,} at most"
                )
            ordered |= {name.replace("{}", str(k)): m for k, m in enumerate(place.stacked)}
            del ordered[name]
    file = TensorFile(path, {name: place for name, place in ordered.items() if name != FACTORS})
    return {name: entry(file, name, turned.get(name, False)) for name in file.places}


def hugging_face_name(family: Family, own: str) -> tuple[str, str]:
    """A tensor's Hugging Face name, and the part of a block that it belongs to."""
    stem, _, end = own.rpartition(".")
    block, _, part = stem.removeprefix("blk.").partition(".")
    if part in family.parts:
        return f"{family.block}.{block}.{family.parts[part]}.{end}", part
    return (f"{family.names[stem]}.{end}" if stem in family.names else own), ""


# --- tokenizer ----------------------------------------------------------------------------------


def tokenizer(said: Config, n: int) -> Tokenizer:
    """The tokenizer of the metadata; `IdsOnly` if there is none."""
    model = said.get(f"{OF_TOKENIZER}model", str, "none")
    if model in ("none", "no_vocab"):
        return IdsOnly(n)
    if model not in ("gpt2", "llama"):
        raise InputError(f"{said.path}: its tokenizer, of the kind {model!r}, is not known here")
    pieces = said.listed(f"{OF_TOKENIZER}tokens", str)
    if len(pieces) > n:
        raise InputError(f"{said.path} has {len(pieces)} pieces of text for {n} token ids")
    try:
        with asked("its tokenizer"):
            inner = (byte_pairs if model == "gpt2" else scored)(said, pieces)
    except InputError as error:
        raise InputError(f"{said.path}: {error}") from None
    begin, last = (token(said, end) for end in ("bos", "eos"))
    return Library(inner, n, begin if 0 <= begin < n else None, (last,) if 0 <= last < n else ())


def byte_pairs(said: Config, pieces: list[str]) -> Any:
    """The library's tokenizer for a vocabulary of GPT-2's kind."""
    pattern = said.get(f"{OF_TOKENIZER}pre", str, "")
    ends = put_between(said, pieces, PATTERNS.get(pattern) == LLAMA3_PATTERN)
    merges = said.listed(f"{OF_TOKENIZER}merges", str)
    return byte_level(pieces, merges, pattern, kinds_of(said, pieces), ends)


def scored(said: Config, pieces: list[str]) -> Any:
    """The library's tokenizer for a vocabulary of SentencePiece's kind."""
    scores = said.listed(f"{OF_TOKENIZER}scores", float)
    if len(scores) != len(pieces) or not np.isfinite(scores).all():
        raise InputError(
            f"its {OF_TOKENIZER}scores are not a finite number for each piece; fetch it again"
        )
    before = said.get(f"{OF_TOKENIZER}add_space_prefix", bool, True)
    ends = put_between(said, pieces, True)
    return sentence_pieces(pieces, scores, kinds_of(said, pieces), ends, before)


def kinds_of(said: Config, pieces: list[str]) -> list[int]:
    """The kind of each token."""
    kinds = said.listed(f"{OF_TOKENIZER}token_type", int) or [int(Kind.NORMAL)] * len(pieces)
    if len(kinds) != len(pieces) or not set(kinds) <= set(Kind):
        raise InputError(
            f"its {OF_TOKENIZER}token_type is not a kind (1 to 6) for each piece; fetch it again"
        )
    return kinds


def put_between(said: Config, pieces: list[str], begins: bool) -> list[str | None]:
    """The tokens before and after every text; `begins`: one before it by default."""
    found: list[str | None] = []
    for end, default in (("bos", begins), ("eos", False)):
        ident = token(said, end)
        wanted = said.get(f"{OF_TOKENIZER}add_{end}_token", bool, default)
        found.append(pieces[ident] if wanted and 0 <= ident < len(pieces) else None)
    return found


def token(said: Config, end: str) -> int:
    """The id of the begin- or end-of-text token; -1 if there is none."""
    found: int = said.get(f"{OF_TOKENIZER}{end}_token_id", int, -1)
    return found
