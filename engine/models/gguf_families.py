"""The architectures of GGUF in Hugging Face's words: names of metadata and tensors.

They are those of llama.cpp's converters (`conversion/*.py`) and of the tables of the `gguf`
library. What a converter changes besides names is undone as the fields of `Family` say.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from cellformer.engine.cells.stored import Place
from cellformer.engine.models.foreign import FULL, WINDOWED

Values = dict[str, Any]
Settle = Callable[[Values, Mapping[str, Place]], Values]
NOTHING: Mapping[str, str] = MappingProxyType({})


BIASED = {  # a field of a config, and the tensor that is there if it is true
    "attention_bias": "blk.0.attn_q.bias",
    "mlp_bias": "blk.0.ffn_gate.bias",
    "use_qkv_bias": "blk.0.attn_q.bias",
    "use_bias": "blk.0.attn_q.bias",
    "qk_layernorm": "blk.0.attn_q_norm.weight",
    "use_qk_norm": "blk.0.attn_q_norm.weight",
}


def by_tensors(*fields: str) -> Settle:
    """A function that sets these fields of a config by the tensors that are there."""
    return lambda values, places: {field: BIASED[field] in places for field in fields}


def nothing(values: Values, places: Mapping[str, Place]) -> Values:
    """No further fields."""
    return {}


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
    fused: str = ""  # the part with all queries, then all keys, then all values: not head by head
    above_one: bool = False  # norms' gains are stored with 1 added, which Hugging Face's are not
    share: str = ""  # what config.json calls the share of a head's features that rotate
    settle: Settle = nothing  # fields that follow from others, and from tensors


def family_of(kind: str, places: Mapping[str, Place]) -> Family:
    """The family of an architecture's name. Falcons with two norms side by side name them
    otherwise."""
    family = FAMILIES[kind]
    if kind == "falcon" and "blk.0.attn_norm_2.weight" in places:
        return replace(family, parts={**family.parts, "attn_norm": "ln_mlp"})
    return family


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
QUERIES_AND_KEYS = ("attn_q", "attn_k")
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
SHARED_PARTS = {
    "ffn_gate_inp_shexp": "mlp.shared_expert_gate",
    "ffn_gate_shexp": "mlp.shared_expert.gate_proj",
    "ffn_up_shexp": "mlp.shared_expert.up_proj",
    "ffn_down_shexp": "mlp.shared_expert.down_proj",
}
GLM_MOE_KEYS = {
    "expert_count": "n_routed_experts",
    "expert_used_count": "num_experts_per_tok",
    "expert_feed_forward_length": "moe_intermediate_size",
    "expert_shared_count": "n_shared_experts",
    "expert_weights_scale": "routed_scaling_factor",
    "expert_weights_norm": "norm_topk_prob",
    "expert_gating_func": "scoring_func",
    "expert_group_count": "n_group",
    "expert_group_used_count": "topk_group",
    "leading_dense_block_count": "first_k_dense_replace",
    "nextn_predict_layers": "num_nextn_predict_layers",
}
GLM_MOE_PARTS = {
    **QWEN_MOE_PARTS,
    "ffn_gate_shexp": "mlp.shared_experts.gate_proj",
    "ffn_up_shexp": "mlp.shared_experts.up_proj",
    "ffn_down_shexp": "mlp.shared_experts.down_proj",
    "exp_probs_b": "mlp.gate.e_score_correction",
    "post_attention_norm": "post_attention_layernorm",
    "nextn.eh_proj": "eh_proj",
    "nextn.enorm": "enorm",
    "nextn.hnorm": "hnorm",
    "nextn.embed_tokens": "embed_tokens",
    "nextn.shared_head_head": "shared_head.head",
    "nextn.shared_head_norm": "shared_head.norm",
}
LOGISTIC = 2  # llama.cpp's number for how experts' scores become shares
WINDOW = {"attention.sliding_window": "sliding_window"}
WINDOWS = {**WINDOW, "attention.sliding_window_pattern": "sliding_window_pattern"}
NUM_EXPERTS = {"expert_count": "num_experts", "expert_used_count": "num_experts_per_tok"}
BOUND = {"attention.clamp_kqv": "clip_qkv"}
AROUND_BOTH = {  # norms after each sublayer
    "post_attention_norm": "post_attention_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
}


def llama_like(
    model_type: str,
    keys: Mapping[str, str] = NOTHING,
    parts: Mapping[str, str] = NOTHING,
    said: Mapping[str, Any] = NOTHING,
    **others: Any,
) -> Family:
    """A family whose tensors have Llama's names, with additional keys, parts of a block, and
    fields."""
    fixed = {"model_type": model_type, "hidden_act": "silu", **said}
    keys, parts = {**SIZES, **keys}, {**LLAMA_PARTS, **parts}
    others = {"names": LLAMA_NAMES, "settle": by_tensors("attention_bias"), **others}
    return Family(fixed, keys, block="model.layers", parts=parts, **others)


def of_llama(values: Values, places: Mapping[str, Place]) -> Values:
    """The family's name here: a llama with windows is a mistral, one with experts a mixtral."""
    kind = "mistral" if values.get("sliding_window") else "llama"
    kind = "mixtral" if values.get("num_local_experts") else kind
    return {"model_type": kind, **by_tensors("attention_bias", "mlp_bias")(values, places)}


def of_seed(values: Values, places: Mapping[str, Place]) -> Values:
    """Whether attention has biases, its output apart."""
    out = "blk.0.attn_output.bias" in places
    return {**by_tensors("attention_bias", "mlp_bias")(values, places), "attention_out_bias": out}


def of_glm_moe(values: Values, places: Mapping[str, Place]) -> Values:
    """The number of layers that predict the next token; a file's number includes further ones."""
    if values.get("scoring_func") == LOGISTIC:
        del values["scoring_func"]
    found = by_tensors("attention_bias", "use_qk_norm")(values, places)
    n_layers, further = values.get("num_hidden_layers"), values.get("num_nextn_predict_layers")
    if isinstance(n_layers, int) and isinstance(further, int):
        found["num_hidden_layers"] = n_layers - further
    return found


# --- OLMo and EXAONE ----------------------------------------------------------------------------


def of_olmo(values: Values, places: Mapping[str, Place]) -> Values:
    """Whether attention has biases. The epsilon of its norms is 1e-5, and no field of its
    config."""
    if values.get("layer_norm_eps") == 1e-5:
        del values["layer_norm_eps"]
    return by_tensors("attention_bias")(values, places)


def of_olmo2(values: Values, places: Mapping[str, Place]) -> Values:
    """The family's name here: an olmo2 with windows is an olmo3, whose layers with windows
    rotate without scaling."""
    found = {**by_layers(values, places), **by_tensors("attention_bias")(values, places)}
    if not values.get("sliding_window"):
        return found
    theta = values.pop("rope_theta", 1e4)
    near = {"rope_type": "default", "rope_theta": values.pop("rope_theta_near", theta)}
    far = {"rope_type": "default", "rope_theta": theta, **values.pop("rope_scaling", {})}
    return {**found, "model_type": "olmo3", "rope_parameters": {WINDOWED: near, FULL: far}}


def by_layers(values: Values, places: Mapping[str, Place]) -> Values:
    """The layers with windows, if the file lists them."""
    if not isinstance(values.get("sliding_window_pattern"), list):
        return {}
    near = values.pop("sliding_window_pattern")
    return {"layer_types": [WINDOWED if is_near else FULL for is_near in near]}


# --- Gemma --------------------------------------------------------------------------------------

GEMMA_ACT = dict.fromkeys(("hidden_act", "hidden_activation"), "gelu_pytorch_tanh")
GEMMA_KEYS = {**WINDOW, "final_logit_softcapping": "final_logit_softcapping"}
GEMMA_PARTS = {**AROUND_BOTH, "ffn_norm": "pre_feedforward_layernorm"}
LARGEST_GEMMA = {"gemma2": 46, "gemma3_text": 62}  # layers of the model with 27 billion weights


def of_gemma(values: Values, places: Mapping[str, Place]) -> Values:
    """The divisor of scores. Files do not name it, and llama.cpp knows it by the number of
    layers. Without a window, no layer has one."""
    largest = values["num_hidden_layers"] == LARGEST_GEMMA[values["model_type"]]
    of_whole = values["hidden_size"] // values["num_attention_heads"]
    found = {"query_pre_attn_scalar": of_whole if largest else values["head_dim"]}
    if values["model_type"] == "gemma3_text" and not values.get("sliding_window"):
        found["sliding_window_pattern"] = 1
    return found


# --- families with one tensor for queries, keys and values --------------------------------------

LAYER_NORM = "attention.layer_norm_epsilon"
FUSED_PARTS = {
    "attn_norm": "input_layernorm",
    "attn_qkv": "self_attention.query_key_value",
    "attn_output": "self_attention.dense",
    "ffn_norm": "post_attention_layernorm",
    "ffn_up": "mlp.dense_h_to_4h",
    "ffn_down": "mlp.dense_4h_to_h",
}
OF_TRANSFORMER = {
    "token_embd": "transformer.word_embeddings",
    "token_embd_norm": "transformer.word_embeddings_layernorm",
    "output_norm": "transformer.ln_f",
    "output": "lm_head",
}


def of_falcon(values: Values, places: Mapping[str, Place]) -> Values:
    """The generation, by the number of heads of keys and by norms."""
    two = "blk.0.attn_norm_2.weight" in places
    return {
        "new_decoder_architecture": two or values["num_kv_heads"] > 1,
        "num_ln_in_parallel_attn": 2 if two else 1,
        "bias": "blk.0.attn_qkv.bias" in places,
    }


def of_neox(values: Values, places: Mapping[str, Place]) -> Values:
    """Whether attention has biases."""
    return {"attention_bias": "blk.0.attn_qkv.bias" in places}


def of_mpt(values: Values, places: Mapping[str, Place]) -> Values:
    """The fields of attention. MLPs are four times as wide as the stream in every MPT."""
    values.pop("n_inner", None)
    slope, bound = (values.pop(name, None) for name in ("alibi_bias_max", "clip_qkv"))
    slope = int(slope) if isinstance(slope, float) and slope.is_integer() else slope
    return {"attn_config": {"alibi": bool(slope), "alibi_bias_max": slope, "clip_qkv": bound}}


# --- others --------------------------------------------------------------------------------------


POOLING = {1: "mean_tokens", 2: "cls_token", 3: "lasttoken"}  # llama.cpp's numbers


def of_bert(values: Values, places: Mapping[str, Place]) -> Values:
    """The sizes of the tables of positions and segments, and how a sentence's vector is taken."""
    pooling = values.pop("pooling_type", None)
    sizes = (
        ("position_embd.weight", "max_position_embeddings"),
        ("token_types.weight", "type_vocab_size"),
    )
    found: Values = {theirs: places[own].shape[0] for own, theirs in sizes if own in places}
    if pooling:
        mode = POOLING.get(pooling, f"{pooling}")
        modules = [{"type": "Transformer"}, {"type": "Pooling", f"pooling_mode_{mode}": True}]
        found["sentence_modules"] = modules
    return found


GPT2 = Family(
    fixed={"model_type": "gpt2", "activation_function": "gelu_new"},
    keys={
        "context_length": "n_positions",
        "embedding_length": "n_embd",
        "block_count": "n_layer",
        "feed_forward_length": "n_inner",
        "attention.head_count": "n_head",
        LAYER_NORM: "layer_norm_epsilon",
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
)
OF_COHERE = {LAYER_NORM: "layer_norm_eps", "logit_scale": "logit_scale"}
OF_GRANITE = {
    "attention.scale": "attention_multiplier",
    "embedding_scale": "embedding_multiplier",
    "residual_scale": "residual_multiplier",
    "logit_scale": "logits_scaling",
}
FAMILIES = {
    "llama": llama_like(
        "llama",
        WINDOW | EXPERTS,
        MIXTRAL_PARTS,
        paired=QUERIES_AND_KEYS,
        settle=of_llama,
    ),
    "qwen2": llama_like("qwen2"),
    "qwen3": llama_like("qwen3"),
    "qwen3moe": llama_like(
        "qwen3_moe",
        EXPERTS | {"expert_feed_forward_length": "moe_intermediate_size"},
        QWEN_MOE_PARTS,
        said={"norm_topk_prob": True},
    ),
    "qwen2moe": llama_like(
        "qwen2_moe",
        {
            **NUM_EXPERTS,
            "expert_feed_forward_length": "moe_intermediate_size",
            "expert_shared_feed_forward_length": "shared_expert_intermediate_size",
        },
        {**QWEN_MOE_PARTS, **SHARED_PARTS},
        settle=nothing,
    ),
    "arcee": llama_like(
        "arcee",
        said={"hidden_act": "relu2"},
        paired=QUERIES_AND_KEYS,
        settle=by_tensors("attention_bias"),
    ),
    "seed_oss": llama_like(
        "seed_oss", parts={"post_attention_norm": "post_attention_layernorm"}, settle=of_seed
    ),
    "nemotron": llama_like(
        "nemotron",
        {LAYER_NORM: "norm_eps"},
        said={"hidden_act": "relu2"},
        above_one=True,
        share="partial_rotary_factor",
    ),
    "command-r": llama_like(
        "cohere", OF_COHERE, settle=by_tensors("attention_bias", "use_qk_norm")
    ),
    "cohere2": llama_like("cohere2", {**OF_COHERE, **WINDOW}),
    "ernie4_5": llama_like("ernie4_5", settle=by_tensors("use_bias")),
    "glm4": llama_like(
        "glm4",
        parts={
            "post_attention_norm": "post_self_attn_layernorm",
            "post_ffw_norm": "post_mlp_layernorm",
            "ffn_up": "mlp.gate_up_proj",
        },
        share="partial_rotary_factor",
    ),
    "glm4moe": llama_like(
        "glm4_moe",
        GLM_MOE_KEYS,
        GLM_MOE_PARTS,
        said={"norm_topk_prob": False, "first_k_dense_replace": 0},
        share="partial_rotary_factor",
        settle=of_glm_moe,
    ),
    "smollm3": llama_like("smollm3", paired=QUERIES_AND_KEYS),
    "granite": llama_like(
        "granite",
        OF_GRANITE,
        paired=QUERIES_AND_KEYS,
        settle=by_tensors("attention_bias", "mlp_bias"),
    ),
    "granitemoe": llama_like(
        "granitemoe",
        OF_GRANITE | EXPERTS,
        {**MIXTRAL_PARTS, "ffn_gate_inp": "block_sparse_moe.router.layer"},
        paired=QUERIES_AND_KEYS,
    ),
    "olmo": llama_like(
        "olmo",
        {LAYER_NORM: "layer_norm_eps", **BOUND},
        paired=QUERIES_AND_KEYS,
        settle=of_olmo,
    ),
    "olmo2": llama_like(
        "olmo2", {**WINDOWS, "rope.freq_base_swa": "rope_theta_near"}, AROUND_BOTH, settle=of_olmo2
    ),
    "olmoe": llama_like("olmoe", NUM_EXPERTS, QWEN_MOE_PARTS),
    "exaone4": llama_like(
        "exaone4", WINDOWS, AROUND_BOTH, said={"sliding_window": None}, settle=by_layers
    ),
    "hunyuan-dense": llama_like(
        "hunyuan_v1_dense",
        parts={
            "attn_q_norm": "self_attn.query_layernorm",
            "attn_k_norm": "self_attn.key_layernorm",
        },
    ),
    "gemma": llama_like("gemma", said=GEMMA_ACT, above_one=True),
    "gemma2": llama_like(
        "gemma2",
        {**GEMMA_KEYS, "attn_logit_softcapping": "attn_logit_softcapping"},
        GEMMA_PARTS,
        said=GEMMA_ACT,
        above_one=True,
        settle=of_gemma,
    ),
    "gemma3": llama_like(
        "gemma3_text",
        {**GEMMA_KEYS, "rope.freq_base_swa": "rope_local_base_freq"},
        GEMMA_PARTS,
        said=GEMMA_ACT,
        above_one=True,
        settle=of_gemma,
    ),
    "phi2": llama_like(
        "phi",
        {LAYER_NORM: "layer_norm_eps"},
        {"attn_output": "self_attn.dense", "ffn_up": "mlp.fc1", "ffn_down": "mlp.fc2"},
        said={"hidden_act": "gelu_new"},
        names={**LLAMA_NAMES, "output_norm": "model.final_layernorm"},
        share="partial_rotary_factor",
        settle=nothing,
    ),
    "phi3": llama_like(
        "phi3",
        {
            **WINDOW,
            "rope.scaling.original_context_length": "original_max_position_embeddings",
            "rope.scaling.attn_factor": "attention_factor",
        },
        {"attn_qkv": "self_attn.qkv_proj", "ffn_up": "mlp.gate_up_proj"},
        share="partial_rotary_factor",
        settle=nothing,
    ),
    "starcoder2": llama_like(
        "starcoder2",
        {LAYER_NORM: "norm_epsilon"},
        {"ffn_up": "mlp.c_fc", "ffn_down": "mlp.c_proj"},
        said={"hidden_act": "gelu_pytorch_tanh"},
        settle=by_tensors("use_bias"),
    ),
    "stablelm": llama_like(
        "stablelm",
        {LAYER_NORM: "layer_norm_eps", "use_parallel_residual": "use_parallel_residual"},
        {
            "attn_q_norm": "self_attn.q_layernorm.norms.{}",
            "attn_k_norm": "self_attn.k_layernorm.norms.{}",
        },
        share="partial_rotary_factor",
        settle=by_tensors("use_qkv_bias", "qk_layernorm"),
    ),
    "falcon": Family(
        fixed={"model_type": "falcon", "multi_query": True, "parallel_attn": True, "alibi": False},
        keys={
            **{key: name for key, name in SIZES.items() if not key.startswith("attention.")},
            "attention.head_count": "num_attention_heads",
            "attention.head_count_kv": "num_kv_heads",
            "feed_forward_length": "ffn_hidden_size",
            LAYER_NORM: "layer_norm_epsilon",
        },
        names=OF_TRANSFORMER,
        block="transformer.h",
        parts=FUSED_PARTS | {"attn_norm_2": "ln_attn"},
        fused="attn_qkv",
        settle=of_falcon,
    ),
    "bloom": Family(
        fixed={"model_type": "bloom"},
        keys={
            "context_length": "seq_length",
            "embedding_length": "hidden_size",
            "block_count": "n_layer",
            "feed_forward_length": "n_inner",
            "attention.head_count": "n_head",
            LAYER_NORM: "layer_norm_epsilon",
        },
        names=OF_TRANSFORMER,
        block="transformer.h",
        parts=FUSED_PARTS,
        fused="attn_qkv",
    ),
    "gptneox": Family(
        fixed={"model_type": "gpt_neox", "hidden_act": "gelu"},
        keys={
            **SIZES,
            LAYER_NORM: "layer_norm_eps",
            "rope.freq_base": "rotary_emb_base",
            "use_parallel_residual": "use_parallel_residual",
        },
        names={
            "token_embd": "gpt_neox.embed_in",
            "output_norm": "gpt_neox.final_layer_norm",
            "output": "embed_out",
        },
        block="gpt_neox.layers",
        parts={
            own: name.replace("self_attention", "attention") for own, name in FUSED_PARTS.items()
        },
        fused="attn_qkv",
        share="rotary_pct",
        settle=of_neox,
    ),
    "gpt2": GPT2,
    "starcoder": replace(
        GPT2,
        fixed={"model_type": "gpt_bigcode", "activation_function": "gelu_pytorch_tanh"},
        keys={**GPT2.keys, "attention.head_count_kv": "num_key_value_heads"},
        turned=(),
    ),
    "mpt": Family(
        fixed={"model_type": "mpt"},
        keys={
            "context_length": "max_seq_len",
            "embedding_length": "d_model",
            "block_count": "n_layers",
            "feed_forward_length": "n_inner",
            "attention.head_count": "n_heads",
            "attention.max_alibi_bias": "alibi_bias_max",
            LAYER_NORM: "layer_norm_epsilon",
            **BOUND,
        },
        names={
            "token_embd": "transformer.wte",
            "output_norm": "transformer.norm_f",
            "output": "lm_head",
        },
        block="transformer.blocks",
        parts={
            "attn_norm": "norm_1",
            "attn_qkv": "attn.Wqkv",
            "attn_output": "attn.out_proj",
            "ffn_norm": "norm_2",
            "ffn_up": "ffn.up_proj",
            "ffn_down": "ffn.down_proj",
        },
        settle=of_mpt,
    ),
    "bert": Family(
        fixed={"model_type": "bert", "hidden_act": "gelu", "architectures": ["BertModel"]},
        keys={**SIZES, LAYER_NORM: "layer_norm_eps", "pooling_type": "pooling_type"},
        names={
            "token_embd": "bert.embeddings.word_embeddings",
            "token_types": "bert.embeddings.token_type_embeddings",
            "position_embd": "bert.embeddings.position_embeddings",
            "token_embd_norm": "bert.embeddings.LayerNorm",
        },
        block="bert.encoder.layer",
        parts={
            "attn_q": "attention.self.query",
            "attn_k": "attention.self.key",
            "attn_v": "attention.self.value",
            "attn_output": "attention.output.dense",
            "attn_output_norm": "attention.output.LayerNorm",
            "ffn_up": "intermediate.dense",
            "ffn_down": "output.dense",
            "layer_output_norm": "output.LayerNorm",
        },
        settle=of_bert,
    ),
    "modern-bert": Family(
        fixed={
            "model_type": "modernbert",
            "hidden_activation": "gelu",
            "architectures": ["ModernBertModel"],
        },
        keys={
            **SIZES,
            LAYER_NORM: "norm_eps",
            "attention.sliding_window": "local_attention",
            "attention.sliding_window_pattern": "global_attn_every_n_layers",
            "rope.freq_base": "global_rope_theta",
            "rope.freq_base_swa": "local_rope_theta",
            "pooling_type": "pooling_type",
        },
        names={
            "token_embd": "model.embeddings.tok_embeddings",
            "token_embd_norm": "model.embeddings.norm",
            "output_norm": "model.final_norm",
        },
        block="model.layers",
        parts={
            "attn_norm": "attn_norm",
            "attn_qkv": "attn.Wqkv",
            "attn_output": "attn.Wo",
            "ffn_norm": "mlp_norm",
            "ffn_up": "mlp.Wi",
            "ffn_down": "mlp.Wo",
        },
        settle=of_bert,
    ),
}
