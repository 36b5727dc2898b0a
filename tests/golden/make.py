"""Make the golden files: tiny random models of every architecture, as transformers computes them.

    python tests/golden/make.py [NAME ...]    # needs torch and transformers; notes their versions

For each model a folder: config.json and model.safetensors as `save_pretrained` writes them, the
modules of a sentence encoder, and
golden.npz with ids [n_tokens], logits [n_tokens, d_vocab], hidden states [n_layers, n_tokens,
d_model], the last one, normed, beside them (in older files among them), and attention patterns
[n_layers, n_heads, n_tokens, n_tokens]. Of an encoder-decoder these are the decoder's; there are
also the ids of the source [n_source], the encoder's hidden states, the last one normed, and the
patterns of cross attention [n_layers, n_heads, n_tokens, n_source].
"""

import json
import sys
from pathlib import Path

import numpy as np
import torch
import transformers as t

HERE = Path(__file__).parent
SMALL = {"vocab_size": 17, "bos_token_id": None, "eos_token_id": None}
GPT2 = {"n_embd": 12, "n_layer": 2, "n_head": 3, "n_positions": 12, **SMALL}
LLAMA = {
    "hidden_size": 16, "intermediate_size": 20, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 12, **SMALL,
}  # fmt: skip
GEMMA2 = LLAMA | {
    "head_dim": 6, "num_hidden_layers": 3, "sliding_window": 3, "query_pre_attn_scalar": 7,
    "attn_logit_softcapping": 1.5, "final_logit_softcapping": 4.0,
}  # fmt: skip
LLAMA3 = {
    "rope_type": "llama3", "rope_theta": 500.0, "factor": 8.0, "low_freq_factor": 1.0,
    "high_freq_factor": 4.0, "original_max_position_embeddings": 32,
}  # fmt: skip
YARN = {"rope_type": "yarn", "rope_theta": 50.0, "factor": 4.0, "beta_fast": 2.0}
YARN["original_max_position_embeddings"] = 6
PHI3 = LLAMA | {
    "pad_token_id": None, "hidden_size": 32, "num_hidden_layers": 1,
    "original_max_position_embeddings": 8, "sliding_window": 4,
    "rope_parameters": {
        "rope_type": "longrope", "rope_theta": 100.0, "partial_rotary_factor": 0.75,
        "short_factor": [1.0, 1.5, 3.0], "long_factor": [2.0, 4.0, 9.0],
    },
}  # fmt: skip
TINY = LLAMA | {
    "hidden_size": 8, "intermediate_size": 6, "num_attention_heads": 2, "num_key_value_heads": 1,
    "pad_token_id": None,
}  # fmt: skip
GEMMA3 = TINY | {
    "head_dim": 6, "num_hidden_layers": 3, "sliding_window": 3, "query_pre_attn_scalar": 7,
    "layer_types": ["sliding_attention", "sliding_attention", "full_attention"],
    "rope_parameters": {
        "sliding_attention": {"rope_type": "default", "rope_theta": 20.0},
        "full_attention": {"rope_type": "linear", "rope_theta": 50.0, "factor": 2.0},
    },
}  # fmt: skip
EMBEDDING = GEMMA3 | {"sliding_window": 20, "use_bidirectional_attention": True}
GEMMA4 = TINY | {
    "head_dim": 4, "num_hidden_layers": 3, "sliding_window": 3, "num_kv_shared_layers": 1,
    "layer_types": ["sliding_attention", "full_attention", "full_attention"],
    "vocab_size_per_layer_input": 17, "hidden_size_per_layer_input": 2, "attention_k_eq_v": True,
    "use_double_wide_mlp": True, "global_head_dim": 6,
}  # fmt: skip
GEMMA4_MOE = TINY | {
    "head_dim": 4, "num_hidden_layers": 1, "hidden_size_per_layer_input": 0, "num_experts": 3,
    "layer_types": ["full_attention"], "global_head_dim": 4, "top_k_experts": 2,
    "moe_intermediate_size": 4, "enable_moe_block": True,
}  # fmt: skip
GEMMA3N = TINY | {
    "head_dim": 4, "num_hidden_layers": 3, "sliding_window": 3, "num_kv_shared_layers": 1,
    "layer_types": ["sliding_attention", "full_attention", "full_attention"],
    "vocab_size_per_layer_input": 15, "hidden_size_per_layer_input": 2, "laurel_rank": 2,
    "altup_num_inputs": 2, "activation_sparsity_pattern": [0.7, 0.0, 0.0],
}  # fmt: skip
MIXTRAL = TINY | {"num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": 4}
QWEN_MOE = TINY | {"num_experts": 3, "num_experts_per_tok": 2, "moe_intermediate_size": 4}
GRANITE = {
    "embedding_multiplier": 3.0, "residual_multiplier": 0.5, "attention_multiplier": 0.3,
    "logits_scaling": 2.5,
}  # fmt: skip
NEOX = {
    "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2,
    "max_position_embeddings": 12, **SMALL,
}  # fmt: skip
NEO = {
    "hidden_size": 12, "num_layers": 2, "num_heads": 3, "max_position_embeddings": 12,
    "attention_types": [[["global", "local"], 1]], "window_size": 3, **SMALL,
}  # fmt: skip

PHI = {
    "hidden_size": 16, "intermediate_size": 20, "num_hidden_layers": 2, "num_attention_heads": 2,
    "max_position_embeddings": 12, "qk_layernorm": True, **SMALL,
}  # fmt: skip
OPT = {
    "hidden_size": 12, "ffn_dim": 16, "num_hidden_layers": 2, "num_attention_heads": 3,
    "max_position_embeddings": 12, "pad_token_id": None, **SMALL,
}  # fmt: skip
OPT_350M = OPT | {"word_embed_proj_dim": 7, "do_layer_norm_before": False}
OPT_350M["num_hidden_layers"] = 1
GPTJ = GPT2 | {"n_layer": 1, "n_embd": 16, "n_head": 2, "rotary_dim": 6}
BLOOM = {"hidden_size": 12, "n_layer": 2, "n_head": 3, **SMALL}
FALCON = {
    "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "ffn_hidden_size": 20,
    "max_position_embeddings": 12, **SMALL,
}  # fmt: skip
FALCON_40B = FALCON | {"new_decoder_architecture": True, "num_kv_heads": 2}
FALCON_RW = FALCON | {"num_hidden_layers": 1}
FALCON_RW |= {"alibi": True, "multi_query": False, "parallel_attn": False, "bias": True}
STABLELM = LLAMA | {"num_hidden_layers": 1, "qk_layernorm": True, "use_qkv_bias": True}
STABLELM |= {"rope_parameters": {"rope_type": "default", "rope_theta": 50.0}}
STABLELM["rope_parameters"]["partial_rotary_factor"] = 0.5

BERT = {
    "hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 20,
    "max_position_embeddings": 12, "vocab_size": 17,
}  # fmt: skip
EUROBERT = TINY | {"pad_token_id": 0, "num_hidden_layers": 1, "head_dim": 6, "mlp_bias": True}
DEBERTA = BERT | {
    "num_attention_heads": 2, "relative_attention": True, "pos_att_type": "p2c|c2p",
    "position_buckets": 4, "norm_rel_ebd": "layer_norm", "share_att_key": True,
    "position_biased_input": False, "legacy": False, "num_hidden_layers": 1,
}  # fmt: skip
TURNED = BERT | {"hidden_size": 12, "num_attention_heads": 2, "pad_token_id": 0}
ROBERTA = BERT | {"type_vocab_size": 1, "pad_token_id": 16, "max_position_embeddings": 30}
DISTILBERT = {
    "dim": 12, "n_layers": 2, "n_heads": 3, "hidden_dim": 20, "max_position_embeddings": 12,
    "vocab_size": 17,
}  # fmt: skip
MINILM = [  # as sentence-transformers lists them
    {"type": "Transformer", "max_seq_length": 9, "do_lower_case": False},
    {"type": "Pooling", "word_embedding_dimension": 12, "pooling_mode_mean_tokens": True},
    {"type": "Normalize"},
]

EMBEDDING["sentence_modules"] = [{"type": "Transformer", "max_seq_length": 9}, *MINILM[1:]]

MODERNBERT = {
    "vocab_size": 17,
    "hidden_size": 12,
    "intermediate_size": 10,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "max_position_embeddings": 32,
    "local_attention": 32,
    **dict.fromkeys([f"{of}_token_id" for of in ("pad", "bos", "eos", "cls", "sep")]),
}
ESM = BERT | {
    "position_embedding_type": "rotary", "token_dropout": True, "mask_token_id": 16,
    "pad_token_id": 1,
}  # fmt: skip
ONE = TINY | {"num_hidden_layers": 1}
TWO_KINDS = TINY | {
    "sliding_window": 3, "layer_types": ["sliding_attention", "full_attention"],
}  # fmt: skip
OLMO3 = TWO_KINDS | {
    "rope_parameters": {
        "sliding_attention": {"rope_type": "default", "rope_theta": 20.0},
        "full_attention": {"rope_type": "linear", "rope_theta": 50.0, "factor": 2.0},
    },
}  # fmt: skip
COHERE = ONE | {"logit_scale": 0.25, "use_qk_norm": True}
COHERE["num_key_value_heads"] = 2
GROWING = {
    "rope_type": "yarn", "rope_theta": 50.0, "factor": 4.0, "mscale": 1.0, "mscale_all_dim": 0.5,
    "original_max_position_embeddings": 3, "llama_4_scaling_beta": 0.5,
}  # fmt: skip
EXPERTS = {"num_local_experts": 3, "num_experts_per_tok": 2}
LFM2 = TINY | {
    "layer_types": ["conv", "full_attention"], "block_multiple_of": 2, "conv_bias": True,
}  # fmt: skip
SAFE = {0: "Safe", 1: "Unsafe", 2: "Controversial"}
PHIMOE = ONE | EXPERTS | {
    "attention_bias": True, "lm_head_bias": True, "router_jitter_noise": 0.3, "sliding_window": 4,
}  # fmt: skip
OSS = {"head_dim": 4, "swiglu_limit": 1.0}
OSS["rope_parameters"] = {
    "rope_type": "yarn", "rope_theta": 50.0, "factor": 4.0, "truncate": False,
    "original_max_position_embeddings": 4,
}  # fmt: skip
GLM_MOE = TINY | {
    "head_dim": 4, "n_routed_experts": 4, "num_experts_per_tok": 1, "moe_intermediate_size": 3,
    "n_group": 2, "topk_group": 1, "routed_scaling_factor": 1.5,
}  # fmt: skip
DEEPSEEK = GLM_MOE | {
    "num_hidden_layers": 1, "first_k_dense_replace": 0, "num_key_value_heads": 2,
    "q_lora_rank": 3, "kv_lora_rank": 3, "qk_rope_head_dim": 2, "qk_nope_head_dim": 2,
    "v_head_dim": 3,
}  # fmt: skip
del DEEPSEEK["head_dim"]
DEEPSEEK_V2 = DEEPSEEK | {"q_lora_rank": None, "kv_lora_rank": 4, "n_shared_experts": 1}
DEEPSEEK_V2 |= {"topk_method": "group_limited_greedy"}
BIGCODE = GPT2 | {"n_layer": 1}
CODEGEN = GPT2 | {"n_layer": 1, "n_embd": 16, "n_head": 4, "rotary_dim": 2}
MPT = {"d_model": 9, "n_heads": 3, "n_layers": 1, "max_seq_len": 12, **SMALL}
MPT["attn_config"] = {"clip_qkv": 0.4}
MPNET = BERT | {"num_hidden_layers": 1, "max_position_embeddings": 16}
T5 = {
    "vocab_size": 17, "d_model": 8, "d_kv": 4, "d_ff": 6, "num_layers": 1, "num_heads": 2,
    "relative_attention_num_buckets": 6, "relative_attention_max_distance": 5,
    "decoder_start_token_id": 0, "n_positions": 12,
}  # fmt: skip
BART = {
    "vocab_size": 17, "d_model": 8, "max_position_embeddings": 12, "encoder_layers": 1,
    "decoder_layers": 1, "encoder_attention_heads": 2, "decoder_attention_heads": 2,
    "encoder_ffn_dim": 6, "decoder_ffn_dim": 5, "decoder_start_token_id": 2,
}  # fmt: skip
MARIAN = BART | {
    "decoder_start_token_id": 16, "pad_token_id": 16, "activation_function": "swish",
    "scale_embedding": True, "eos_token_id": 0, "forced_eos_token_id": 0,
}  # fmt: skip
TWO_VOCABULARIES = {"share_encoder_decoder_embeddings": False, "decoder_vocab_size": 19}
M2M = BART | {"scale_embedding": True, "decoder_attention_heads": 1}
PEGASUS = BART | {"scale_embedding": True, "decoder_start_token_id": 0}
MBART = BART | {"encoder_attention_heads": 1, "scale_embedding": True}
FLAN = T5 | {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}
MAMBA = {
    "hidden_size": 6, "state_size": 2, "num_hidden_layers": 2, "expand": 2, "time_step_rank": 2,
    "conv_kernel": 3, **SMALL,
}  # fmt: skip
LINEAR = {
    "linear_num_key_heads": 1, "linear_num_value_heads": 2, "linear_key_head_dim": 3,
    "linear_value_head_dim": 2, "linear_conv_kernel_dim": 3,
    "layer_types": ["linear_attention", "full_attention"], "head_dim": 4,
    "rope_parameters": {
        "rope_type": "default", "rope_theta": 50.0, "partial_rotary_factor": 0.5,
    },
}  # fmt: skip
QWEN3_5 = TINY | LINEAR
QWEN3_5_MOE = QWEN_MOE | LINEAR | {"shared_expert_intermediate_size": 3}
QWEN_NEXT = QWEN_MOE | LINEAR | {"shared_expert_intermediate_size": 3, "mlp_only_layers": [1]}
MAMBA2 = {
    "hidden_size": 6, "state_size": 2, "num_hidden_layers": 2, "expand": 2, "num_heads": 4,
    "head_dim": 3, "n_groups": 2, "conv_kernel": 3, "chunk_size": 4, "use_bias": True,
    "time_step_limit": (0.3, 0.9), **SMALL,
}  # fmt: skip
STATED = TINY | {
    "mamba_n_heads": 4, "mamba_n_groups": 2, "mamba_d_state": 2, "mamba_d_conv": 3,
    "time_step_limit": (0.3, 0.9),
}  # fmt: skip
GRANITE_4 = STATED | EXPERTS | {
    "layer_types": ["linear_attention", "full_attention"], "shared_intermediate_size": 3,
    "residual_multiplier": 0.5, "position_embedding_type": "rope",
}  # fmt: skip
BAMBA = STATED | {"attn_layer_indices": [1]}
FALCON_H1 = STATED | {
    "num_hidden_layers": 1, "mamba_d_ssm": 12, "mamba_rms_norm": True, "key_multiplier": 0.5,
    "mlp_multipliers": [0.5, 1.25], "ssm_multipliers": [0.5, 0.25, 1.5, 0.75, 2.0],
    "attention_out_multiplier": 0.75, "ssm_in_multiplier": 1.5,
}  # fmt: skip
NEMOTRON_H = GLM_MOE | {
    "layers_block_type": ["linear_attention", "moe", "full_attention", "mlp"],
    "ssm_state_size": 2, "mamba_num_heads": 4, "mamba_head_dim": 3, "n_groups": 2,
    "conv_kernel": 3, "moe_shared_expert_intermediate_size": 5, "mlp_bias": True,
}  # fmt: skip
del NEMOTRON_H["num_hidden_layers"]
LFM2_MOE = TINY | {
    "layer_types": ["conv", "full_attention"], "num_experts": 3, "num_experts_per_tok": 2,
    "moe_intermediate_size": 4, "num_dense_layers": 1,
}  # fmt: skip
LITE = DEEPSEEK | {"num_hidden_layers": 2, "mlp_layer_types": ["dense", "sparse"]}
del LITE["first_k_dense_replace"]
MINIMAX = ONE | EXPERTS | {"head_dim": 4, "rotary_dim": 2}
EXAONE_MOE = TWO_KINDS | {
    "num_experts": 4, "num_experts_per_tok": 1, "moe_intermediate_size": 3, "n_group": 2,
    "first_k_dense_replace": 1,
}  # fmt: skip
ERNIE_MOE = TINY | {
    "head_dim": 4, "moe_k": 1, "moe_num_experts": 3, "moe_intermediate_size": 2, "use_bias": True,
}  # fmt: skip
PERSIMMON = TINY | {"hidden_size": 16, "num_hidden_layers": 1}
del PERSIMMON["num_key_value_heads"]
BIOGPT = TINY | {"num_hidden_layers": 1, "pad_token_id": 1}
del BIOGPT["num_key_value_heads"]
XGLM = {
    "vocab_size": 17, "d_model": 8, "ffn_dim": 6, "num_layers": 1, "attention_heads": 2,
    "max_position_embeddings": 12,
}  # fmt: skip
LLAMA4 = TINY | EXPERTS | {
    "head_dim": 4, "intermediate_size_mlp": 5, "moe_layers": [0], "no_rope_layers": [1, 0],
    "attention_chunk_size": 3, "floor_scale": 2, "attn_scale": 0.5,
}  # fmt: skip
RWKV = {
    "hidden_size": 6, "attention_hidden_size": 4, "intermediate_size": 5, "num_hidden_layers": 2,
    "context_length": 12, "rescale_every": 1, **SMALL,
}  # fmt: skip
ALPHA = {"rope_type": "dynamic", "rope_theta": 50.0, "alpha": 7.0, "factor": 1.0}


VIT = {
    "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 6,
    "image_size": [4, 6], "patch_size": [2, 3], "num_channels": 2,
}  # fmt: skip
DINOV2 = {  # of 5 x 5 pixels, one row and one column fill no patch
    "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "mlp_ratio": 1,
    "image_size": 5, "patch_size": 2, "num_channels": 2, "use_swiglu_ffn": True,
}  # fmt: skip
SEES = {
    "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 6,
    "image_size": 5, "patch_size": 2, "num_channels": 2,
}  # fmt: skip
READS = {"hidden_size": 4, "num_hidden_layers": 1, "num_attention_heads": 1, **SMALL}
ANIMALS = {0: "cat", 1: "dog", 2: "fox"}


def with_biases(model: torch.nn.Module) -> torch.nn.Module:
    """A mixture of experts whose biases for choosing them, which are no parameters, are not 0."""
    for name, buffer in model.named_buffers():
        if name.endswith(("correction_bias", "expert_bias")):
            buffer.normal_(0, 0.3)
    return model


def untied(model: torch.nn.Module) -> torch.nn.Module:
    """An encoder-decoder whose unembedding is a matrix of its own."""
    model.lm_head.weight = torch.nn.Parameter(model.lm_head.weight.detach().clone())
    return model


MODELS = {  # name -> random seed, what makes it; a new one takes a seed that no other has
    "gpt2": (0, lambda: t.GPT2LMHeadModel(t.GPT2Config(**GPT2))),
    "gpt2-untied": (1, lambda: t.GPT2LMHeadModel(t.GPT2Config(**GPT2, tie_word_embeddings=False))),
    "llama": (2, lambda: t.LlamaForCausalLM(t.LlamaConfig(**LLAMA))),
    "mistral": (3, lambda: t.MistralForCausalLM(t.MistralConfig(**LLAMA, sliding_window=3))),
    "qwen2": (4, lambda: t.Qwen2ForCausalLM(t.Qwen2Config(**LLAMA, tie_word_embeddings=True))),
    "qwen3": (5, lambda: t.Qwen3ForCausalLM(t.Qwen3Config(**LLAMA, head_dim=6))),
    "gpt_neox": (6, lambda: t.GPTNeoXForCausalLM(t.GPTNeoXConfig(**NEOX))),
    "gpt_neo": (7, lambda: t.GPTNeoForCausalLM(t.GPTNeoConfig(**NEO))),
    "gemma2": (8, lambda: t.Gemma2ForCausalLM(t.Gemma2Config(**GEMMA2))),
    "llama3": (
        9,
        lambda: t.LlamaForCausalLM(t.LlamaConfig(**LLAMA, head_dim=8, rope_parameters=LLAMA3)),
    ),
    "llama-yarn": (
        10,
        lambda: t.LlamaForCausalLM(t.LlamaConfig(**LLAMA, head_dim=8, rope_parameters=YARN)),
    ),
    "gemma": (11, lambda: t.GemmaForCausalLM(t.GemmaConfig(**LLAMA, head_dim=6))),
    "phi3": (12, lambda: t.Phi3ForCausalLM(t.Phi3Config(**PHI3))),
    "smollm3": (
        13,
        lambda: t.SmolLM3ForCausalLM(
            t.SmolLM3Config(**LLAMA, pad_token_id=None, no_rope_layers=[1, 0])
        ),
    ),
    "granite": (14, lambda: t.GraniteForCausalLM(t.GraniteConfig(**LLAMA, **GRANITE))),
    "olmo2": (15, lambda: t.Olmo2ForCausalLM(t.Olmo2Config(**LLAMA, pad_token_id=None))),
    "starcoder2": (
        16,
        lambda: t.Starcoder2ForCausalLM(t.Starcoder2Config(**LLAMA, sliding_window=3)),
    ),
    "mixtral": (17, lambda: t.MixtralForCausalLM(t.MixtralConfig(**MIXTRAL))),
    "qwen3_moe": (
        18,
        lambda: t.Qwen3MoeForCausalLM(
            t.Qwen3MoeConfig(**QWEN_MOE, head_dim=6, norm_topk_prob=True, mlp_only_layers=[1])
        ),
    ),
    "gemma3": (19, lambda: t.Gemma3ForCausalLM(t.Gemma3TextConfig(**GEMMA3))),
    "embeddinggemma": (241, lambda: t.Gemma3TextModel(t.Gemma3TextConfig(**EMBEDDING))),
    "gemma4": (244, lambda: t.Gemma4ForCausalLM(t.Gemma4TextConfig(**GEMMA4))),
    "gemma4_moe": (253, lambda: t.Gemma4ForCausalLM(t.Gemma4TextConfig(**GEMMA4_MOE))),
    "gemma3n": (243, lambda: t.Gemma3nForCausalLM(t.Gemma3nTextConfig(**GEMMA3N))),
    "phi": (20, lambda: t.PhiForCausalLM(t.PhiConfig(**PHI))),
    "gptj": (21, lambda: t.GPTJForCausalLM(t.GPTJConfig(**GPTJ))),
    "falcon": (22, lambda: t.FalconForCausalLM(t.FalconConfig(**FALCON_40B))),
    "falcon-rw": (23, lambda: t.FalconForCausalLM(t.FalconConfig(**FALCON_RW))),
    "stablelm": (24, lambda: t.StableLmForCausalLM(t.StableLmConfig(**STABLELM))),
    "bloom": (25, lambda: t.BloomForCausalLM(t.BloomConfig(**BLOOM))),
    "opt": (26, lambda: t.OPTForCausalLM(t.OPTConfig(**OPT))),
    "opt-350m": (27, lambda: t.OPTForCausalLM(t.OPTConfig(**OPT_350M))),
    "ernie": (143, lambda: t.ErnieForMaskedLM(t.ErnieConfig(**BERT, use_task_id=True))),
    "nomic_bert": (144, lambda: t.NomicBertForMaskedLM(t.NomicBertConfig(**TURNED))),
    "deberta": (252, lambda: t.DebertaV2ForMaskedLM(t.DebertaV2Config(**DEBERTA))),
    "eurobert": (146, lambda: t.EuroBertForMaskedLM(t.EuroBertConfig(**EUROBERT))),
    "gte": (145, lambda: t.GteForMaskedLM(t.GteConfig(**TURNED))),
    "bert": (28, lambda: t.BertForMaskedLM(t.BertConfig(**BERT))),
    "roberta": (29, lambda: t.RobertaForMaskedLM(t.RobertaConfig(**ROBERTA))),
    "distilbert": (30, lambda: t.DistilBertForMaskedLM(t.DistilBertConfig(**DISTILBERT))),
    "minilm": (31, lambda: t.BertModel(t.BertConfig(**BERT, sentence_modules=MINILM))),
    "electra": (93, lambda: t.ElectraForMaskedLM(t.ElectraConfig(**BERT, embedding_size=6))),
    "modernbert": (92, lambda: t.ModernBertForMaskedLM(t.ModernBertConfig(**MODERNBERT))),
    "modernbert-decoder": (
        250,
        lambda: t.ModernBertDecoderForCausalLM(
            t.ModernBertDecoderConfig(
                **MODERNBERT
                | dict.fromkeys([name for name in MODERNBERT if name.endswith("_id")], 0)
                | {"local_attention": 6}
            )
        ),
    ),
    "albert": (110, lambda: t.AlbertForMaskedLM(t.AlbertConfig(**BERT, embedding_size=6))),
    "esm": (111, lambda: t.EsmForMaskedLM(t.EsmConfig(**ESM))),
    "classes/distilbert": (
        90,
        lambda: t.DistilBertForSequenceClassification(
            t.DistilBertConfig(**DISTILBERT, id2label={0: "NEGATIVE", 1: "POSITIVE"})
        ),
    ),
    "classes/roberta": (
        91,
        lambda: t.RobertaForTokenClassification(
            t.RobertaConfig(**ROBERTA, id2label={0: "O", 1: "B-PER", 2: "B-LOC"})
        ),
    ),
    "classes/qwen3": (
        113,
        lambda: t.Qwen3ForSequenceClassification(
            t.Qwen3Config(**ONE | {"pad_token_id": 0}, head_dim=4, id2label=SAFE)
        ),
    ),
    "classes/gpt2": (
        114,
        lambda: t.GPT2ForSequenceClassification(
            t.GPT2Config(**GPT2 | {"n_layer": 1}, id2label=SAFE)
        ),
    ),
    "classes/vit": (
        94,
        lambda: t.ViTForImageClassification(t.ViTConfig(**VIT, id2label=ANIMALS)),
    ),
    "classes/dinov2": (
        95,
        lambda: t.Dinov2ForImageClassification(t.Dinov2Config(**DINOV2, id2label=ANIMALS)),
    ),
    "classes/siglip": (
        96,
        lambda: t.SiglipForImageClassification(
            t.SiglipConfig(vision_config=SEES, text_config=READS, id2label=ANIMALS)
        ),
    ),
    "classes/clip": (
        97,
        lambda: t.CLIPForImageClassification(
            t.CLIPConfig(vision_config=SEES, text_config=READS, id2label=ANIMALS)
        ),
    ),
    "olmo": (52, lambda: t.OlmoForCausalLM(t.OlmoConfig(**ONE, clip_qkv=0.8))),
    "olmo3": (53, lambda: t.Olmo3ForCausalLM(t.Olmo3Config(**OLMO3))),
    "cohere": (54, lambda: t.CohereForCausalLM(t.CohereConfig(**COHERE))),
    "cohere2": (55, lambda: t.Cohere2ForCausalLM(t.Cohere2Config(**TWO_KINDS, logit_scale=0.5))),
    "glm": (56, lambda: t.GlmForCausalLM(t.GlmConfig(**ONE, head_dim=8))),
    "glm4": (57, lambda: t.Glm4ForCausalLM(t.Glm4Config(**ONE, head_dim=8))),
    "ministral": (58, lambda: t.MinistralForCausalLM(t.MinistralConfig(**TWO_KINDS, head_dim=4))),
    "ministral3": (
        59,
        lambda: t.Ministral3ForCausalLM(
            t.Ministral3Config(**ONE, head_dim=8, rope_parameters=GROWING)
        ),
    ),
    "exaone4": (60, lambda: t.Exaone4ForCausalLM(t.Exaone4Config(**TWO_KINDS))),
    "seed_oss": (61, lambda: t.SeedOssForCausalLM(t.SeedOssConfig(**ONE, head_dim=4))),
    "ernie4_5": (62, lambda: t.Ernie4_5ForCausalLM(t.Ernie4_5Config(**ONE, head_dim=4))),
    "helium": (63, lambda: t.HeliumForCausalLM(t.HeliumConfig(**ONE, head_dim=4))),
    "hunyuan": (
        64,
        lambda: t.HunYuanDenseV1ForCausalLM(
            t.HunYuanDenseV1Config(**ONE, head_dim=4, rope_parameters=ALPHA)
        ),
    ),
    "arcee": (65, lambda: t.ArceeForCausalLM(t.ArceeConfig(**ONE))),
    "nemotron": (66, lambda: t.NemotronForCausalLM(t.NemotronConfig(**ONE))),
    "gpt_bigcode": (67, lambda: t.GPTBigCodeForCausalLM(t.GPTBigCodeConfig(**BIGCODE))),
    "codegen": (68, lambda: t.CodeGenForCausalLM(t.CodeGenConfig(**CODEGEN))),
    "mpt": (69, lambda: t.MptForCausalLM(t.MptConfig(**MPT))),
    "openai-gpt": (70, lambda: t.OpenAIGPTLMHeadModel(t.OpenAIGPTConfig(**GPT2))),
    "olmoe": (
        72,
        lambda: t.OlmoeForCausalLM(t.OlmoeConfig(**ONE, num_experts=3, num_experts_per_tok=2)),
    ),
    "granitemoe": (
        73,
        lambda: t.GraniteMoeForCausalLM(t.GraniteMoeConfig(**ONE, **EXPERTS, **GRANITE)),
    ),
    "lfm2": (115, lambda: t.Lfm2ForCausalLM(t.Lfm2Config(**LFM2))),
    "phimoe": (112, lambda: t.PhimoeForCausalLM(t.PhimoeConfig(**PHIMOE))),
    "gpt_oss": (74, lambda: t.GptOssForCausalLM(t.GptOssConfig(**TWO_KINDS, **EXPERTS, **OSS))),
    "glm4_moe": (75, lambda: with_biases(t.Glm4MoeForCausalLM(t.Glm4MoeConfig(**GLM_MOE)))),
    "deepseek_v2": (77, lambda: t.DeepseekV2ForCausalLM(t.DeepseekV2Config(**DEEPSEEK_V2))),
    "deepseek_v3": (
        76,
        lambda: with_biases(t.DeepseekV3ForCausalLM(t.DeepseekV3Config(**DEEPSEEK))),
    ),
    "mpnet": (102, lambda: t.MPNetForMaskedLM(t.MPNetConfig(**MPNET))),
    "t5": (100, lambda: t.T5ForConditionalGeneration(t.T5Config(**T5))),
    "flan-t5": (101, lambda: untied(t.T5ForConditionalGeneration(t.T5Config(**FLAN)))),
    "mt5": (140, lambda: t.MT5ForConditionalGeneration(t.MT5Config(**T5))),
    "umt5": (141, lambda: t.UMT5ForConditionalGeneration(t.UMT5Config(**T5 | {"num_layers": 2}))),
    "bart": (130, lambda: t.BartForConditionalGeneration(t.BartConfig(**BART))),
    "mbart": (131, lambda: t.MBartForConditionalGeneration(t.MBartConfig(**MBART))),
    "pegasus": (134, lambda: t.PegasusForConditionalGeneration(t.PegasusConfig(**PEGASUS))),
    "blenderbot": (
        135,
        lambda: t.BlenderbotForConditionalGeneration(t.BlenderbotConfig(**BART)),
    ),
    "marian": (132, lambda: t.MarianMTModel(t.MarianConfig(**MARIAN))),
    "marian-two": (142, lambda: t.MarianMTModel(t.MarianConfig(**MARIAN | TWO_VOCABULARIES))),
    "m2m_100": (133, lambda: t.M2M100ForConditionalGeneration(t.M2M100Config(**M2M))),
    "mamba": (90, lambda: t.MambaForCausalLM(t.MambaConfig(**MAMBA))),
    "qwen3_next": (116, lambda: t.Qwen3NextForCausalLM(t.Qwen3NextConfig(**QWEN_NEXT))),
    "qwen3_5": (117, lambda: t.Qwen3_5ForCausalLM(t.Qwen3_5TextConfig(**QWEN3_5))),
    "qwen3_5_moe": (
        118,
        lambda: t.Qwen3_5MoeForCausalLM(t.Qwen3_5MoeTextConfig(**QWEN3_5_MOE)),
    ),
    "mamba2": (91, lambda: t.Mamba2ForCausalLM(t.Mamba2Config(**MAMBA2))),
    "granitemoehybrid": (
        140,
        lambda: t.GraniteMoeHybridForCausalLM(t.GraniteMoeHybridConfig(**GRANITE_4)),
    ),
    "bamba": (141, lambda: t.BambaForCausalLM(t.BambaConfig(**BAMBA))),
    "falcon_h1": (142, lambda: t.FalconH1ForCausalLM(t.FalconH1Config(**FALCON_H1))),
    "nemotron_h": (
        143,
        lambda: with_biases(t.NemotronHForCausalLM(t.NemotronHConfig(**NEMOTRON_H))),
    ),
    "lfm2_moe": (
        144,
        lambda: with_biases(t.Lfm2MoeForCausalLM(t.Lfm2MoeConfig(**LFM2_MOE))),
    ),
    "falcon_mamba": (145, lambda: t.FalconMambaForCausalLM(t.FalconMambaConfig(**MAMBA))),
    "granitemoeshared": (
        150,
        lambda: t.GraniteMoeSharedForCausalLM(
            t.GraniteMoeSharedConfig(**ONE, **EXPERTS, shared_intermediate_size=5)
        ),
    ),
    "flex_olmo": (
        151,
        lambda: t.FlexOlmoForCausalLM(
            t.FlexOlmoConfig(**ONE, num_experts=3, num_experts_per_tok=2)
        ),
    ),
    "glm4_moe_lite": (
        152,
        lambda: with_biases(t.Glm4MoeLiteForCausalLM(t.Glm4MoeLiteConfig(**LITE))),
    ),
    "minimax_m2": (
        153,
        lambda: with_biases(t.MiniMaxM2ForCausalLM(t.MiniMaxM2Config(**MINIMAX))),
    ),
    "exaone_moe": (
        154,
        lambda: with_biases(t.ExaoneMoeForCausalLM(t.ExaoneMoeConfig(**EXAONE_MOE))),
    ),
    "ernie4_5_moe": (
        155,
        lambda: t.Ernie4_5_MoeForCausalLM(t.Ernie4_5_MoeConfig(**ERNIE_MOE)),
    ),
    "hunyuan_v1_moe": (
        156,
        lambda: t.HunYuanMoEV1ForCausalLM(
            t.HunYuanMoEV1Config(**ONE, head_dim=4, num_experts=3, moe_topk=2)
        ),
    ),
    "internlm3": (
        157,
        lambda: t.AutoModelForCausalLM.from_config(
            t.InternLM3Config(**ONE, head_dim=4, attention_bias=True, mlp_bias=True)
        ),
    ),
    "cwm": (
        158,
        lambda: t.CwmForCausalLM(t.CwmConfig(**TWO_KINDS | {"bos_token_id": 0}, head_dim=4)),
    ),
    "llama4": (160, lambda: t.Llama4ForCausalLM(t.Llama4TextConfig(**LLAMA4))),
    "persimmon": (159, lambda: t.PersimmonForCausalLM(t.PersimmonConfig(**PERSIMMON))),
    "biogpt": (160, lambda: t.BioGptForCausalLM(t.BioGptConfig(**BIOGPT))),
    "xglm": (161, lambda: t.XGLMForCausalLM(t.XGLMConfig(**XGLM))),
    "rwkv": (92, lambda: t.RwkvForCausalLM(t.RwkvConfig(**RWKV))),
    "apertus": (71, lambda: t.ApertusForCausalLM(t.ApertusConfig(**ONE, dtype="float32"))),
}


def randomize(model: torch.nn.Module, scale: float = 0.3) -> None:
    """Weights large enough that every part matters; norms near 1, biases not zero."""
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight.normal_(0, scale)
            if "norm" in name.lower() or ".ln_" in name:
                weight.add_(1.0 if name.endswith("weight") else 0.0)
        for name, buffer in model.named_buffers():
            if name == "final_logits_bias":
                buffer.normal_(0, scale)
        with_sines(model)


def with_sines(model: torch.nn.Module, within: float = np.inf) -> None:
    """Tables of sinusoidal positions, which are parameters, as the reference makes them: those that
    differ from sines by so much at most."""
    for module in model.modules():
        if hasattr(module, "create_weight"):
            sines = module.create_weight()
            if (module.weight - sines).abs().max() <= within:
                module.weight.copy_(sines)


def compute(model: torch.nn.Module, ids: list[int]) -> dict[str, np.ndarray]:
    """What the reference makes of the ids; of an encoder-decoder, after a source sentence.

    Without patterns where there is no attention, and where Falcon has ALiBi: its eager form, which
    gives them, adds biases twice.
    """
    recurs = model.config.model_type in ("mamba", "mamba2", "falcon_mamba", "rwkv")
    patterns = not recurs and not getattr(model.config, "alibi", False)
    model.eval()
    kind = "eager" if patterns or recurs else "sdpa"
    model.set_attn_implementation(kind)
    model.config._attn_implementation = kind  # Falcon does not let it be set
    if not sees(model):
        model.set_experts_implementation("eager")
    with torch.no_grad():
        with_sines(model, within=1e-6)  # float32's rounding
        if model.config.is_encoder_decoder:
            return compute_both(model, source_of(ids), ids)
        asked = {"output_hidden_states": True, "use_cache": False}
        asked |= {} if recurs else {"output_attentions": patterns}
        if sees(model):
            out = model(pixels(model, ids), output_hidden_states=True, output_attentions=True)
        else:
            out = model(torch.tensor([ids]), **asked)
        first = model.config.model_type == "gemma3n_text"  # part of several of the stream
        *states, last = [(h[0] if first else h)[0].numpy() for h in out.hidden_states]
        if first:
            last = model.model(torch.tensor([ids])).last_hidden_state[0].numpy()
        if sees(model):
            last = final_norm(model)(torch.tensor(last)).numpy()
    if recurs:  # it gives what each layer ends with
        states = [beginning(model, ids), *states[:-1]]
        if every := max(getattr(model.config, "rescale_every", 0), 0):  # it halves the stream
            states = [x * 2.0 ** (n // every) for n, x in enumerate(states)]
    return {
        "ids": np.array(ids),
        **({"logits": out.logits[0].numpy()} if "logits" in out else pooled(model, last)),
        "hidden": np.stack(states),
        "last": last,
        "patterns": np.stack([a[0].numpy() for a in out.attentions])
        if patterns and out.attentions
        else np.zeros(0),
    }


def beginning(model: torch.nn.Module, ids: list[int]) -> np.ndarray:
    """The stream before the first layer of a model without attention: [n_tokens, d_model]."""
    embedding = model.get_input_embeddings().weight[ids]
    if model.config.model_type == "rwkv":
        embedding = model.rwkv.blocks[0].pre_ln(embedding)
    return embedding.detach().numpy()


def source_of(ids: list[int]) -> list[int]:
    """A source sentence for an answer: it has other tokens, and is longer."""
    return [*ids[::-1], ids[0], ids[-1]]


def compute_both(
    model: torch.nn.Module, source: list[int], ids: list[int]
) -> dict[str, np.ndarray]:
    """What both stacks of an encoder-decoder make of a source sentence and an answer."""
    asked = {"output_hidden_states": True, "output_attentions": True, "use_cache": False}
    out = model(torch.tensor([source]), decoder_input_ids=torch.tensor([ids]), **asked)
    *states, last = [h[0].numpy() for h in out.decoder_hidden_states]
    return {
        "ids": np.array(ids),
        "source": np.array(source),
        "logits": out.logits[0].numpy(),
        "hidden": np.stack(states),
        "last": last,
        "patterns": np.stack([a[0].numpy() for a in out.decoder_attentions]),
        "encoder": np.stack([h[0].numpy() for h in out.encoder_hidden_states]),
        "cross": np.stack([a[0].numpy() for a in out.cross_attentions]),
    }


def sees(model: torch.nn.Module) -> bool:
    """Whether it reads an image."""
    return model.main_input_name == "pixel_values"


def final_norm(model: torch.nn.Module) -> torch.nn.Module:
    """The norm behind its last layer."""
    kind = model.config.model_type
    if kind == "clip":  # which has none for patches
        return torch.nn.Identity()
    return model.vision_model.post_layernorm if kind == "siglip" else model.base_model.layernorm


def image_of(model: torch.nn.Module) -> tuple[int, int, int]:
    """The channels, the height and the width of the images that it reads."""
    config = getattr(model.config, "vision_config", model.config)
    size = config.image_size
    return config.num_channels, *(size if isinstance(size, list | tuple) else (size, size))


def n_pixels(model: torch.nn.Module) -> int:
    """The number of pixels, in all channels."""
    return int(np.prod(image_of(model)))


def pixels(model: torch.nn.Module, ids: list[int]) -> torch.Tensor:
    """An image of levels 0 to 255, scaled as transformers' ViTImageProcessor does."""
    config = model.config
    levels = np.reshape(np.array(ids, np.float64), (1, *image_of(model)))
    mean, std = (
        np.reshape(getattr(config, name, None) or 0.5, (1, -1, 1, 1))
        for name in ("image_mean", "image_std")
    )
    return torch.tensor((levels / 255 - mean) / std).to(model.dtype)


def pooled(model: torch.nn.Module, last: np.ndarray) -> dict[str, np.ndarray]:
    """The vector of a sentence: [1, d_model], as sentence-transformers' modules have it."""
    modules = getattr(model.config, "sentence_modules", [{}, {"pooling_mode_mean_tokens": True}])
    (mode,) = [name for name, on in modules[1].items() if name.startswith("pooling_mode") and on]
    vector = {
        "pooling_mode_cls_token": lambda: last[0],
        "pooling_mode_mean_tokens": lambda: last.mean(axis=0),
        "pooling_mode_max_tokens": lambda: last.max(axis=0),
        "pooling_mode_mean_sqrt_len_tokens": lambda: last.sum(axis=0) / len(last) ** 0.5,
    }[mode]()
    unit = any(module.get("type") == "Normalize" for module in modules)
    return {"vector": vector[None] / (np.linalg.norm(vector) if unit else 1.0)}


def as_modules(folder: Path) -> None:
    """Move a config's modules into the files that sentence-transformers has them in."""
    config = json.loads((folder / "config.json").read_text())
    listed = []
    for k, module in enumerate(config.pop("sentence_modules")):
        kind = module.pop("type")
        place = f"{k}_{kind}" if k else ""
        file = "config.json" if k else "sentence_bert_config.json"
        (folder / place).mkdir(exist_ok=True)
        (folder / place / file).write_text(json.dumps(module, indent=2) + "\n")
        full = f"sentence_transformers.models.{kind}"
        listed.append({"idx": k, "name": str(k), "path": place, "type": full})
    (folder / "modules.json").write_text(json.dumps(listed, indent=2) + "\n")
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")


if __name__ == "__main__":
    versions = f"transformers {t.__version__}, torch {torch.__version__}, numpy {np.__version__}"
    for name, (seed, make) in MODELS.items():
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        torch.manual_seed(seed)
        model = make()
        randomize(model)
        model.save_pretrained(HERE / name)
        (HERE / name / "generation_config.json").unlink(missing_ok=True)
        ids = torch.randint(0, 17, (7,)).tolist()
        if sees(model):
            ids = torch.randint(0, 256, (n_pixels(model),)).tolist()
        padding = {"roberta": 16, "mpnet": 1, "m2m_100": 1}.get(name.rpartition("/")[2])
        ids = [2 if i == padding else i for i in ids]  # which counts no position
        np.savez_compressed(HERE / name / "golden.npz", **compute(model, ids), versions=versions)
        if name in ("minilm", "embeddinggemma"):
            as_modules(HERE / name)
        print(name, ids, file=sys.stderr)
