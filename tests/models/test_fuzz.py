"""Random configurations of every architecture, live against transformers. Needs torch."""

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import GOLDEN, script
from test_references import TOLERANCE, graph_of, largest_gap

from cellformer.engine import InputError
from cellformer.engine.models import checkpoint

torch = t = make = None  # torch, transformers and the script of the golden models: see `libraries`
Network = Any  # torch.nn.Module
TIMES = 15  # each architecture is drawn
ACTIVATIONS = (
    "gelu_new",
    "gelu",
    "relu",
    "silu",
    "relu2",
    "quick_gelu",
    "mish",
    "tanh",
    "gelu_python",
    "sigmoid",
    "relu6",
    "leaky_relu",
    "laplace",
    "linear",
)


EXACT = 1e-9  # where the reference runs in float64 to the end;
IN_FLOAT32 = (
    "gemma",
    "gemma2",
    "gemma3",
    "gptj",
    "codegen",
    "bloom",
    "ministral3",
)  # a constant or table


@contextmanager
def in_float64() -> Iterator[None]:
    """What transformers casts to float32, to float64: else norms and angles are rounded."""
    single, cast, made = torch.float32, torch.Tensor.float, torch.FloatTensor
    full = torch.full

    def full_of_doubles(size: Any, value: Any, dtype: Any = None, **more: Any) -> Any:
        kind = torch.float64 if isinstance(value, float) else None
        return full(size, value, dtype=dtype or kind, **more)

    torch.full = full_of_doubles
    torch.float32 = torch.float = torch.float64
    torch.Tensor.float, torch.FloatTensor = torch.Tensor.double, torch.DoubleTensor
    try:
        yield
    finally:
        torch.float32, torch.float, torch.full = single, single, full
        torch.Tensor.float, torch.FloatTensor = cast, made


@pytest.fixture(scope="module", autouse=True)
def libraries(torch, transformers) -> Iterator[None]:
    """Imported when a test runs, for it takes seconds. No bar shows how far a file is saved."""
    import safetensors.torch  # noqa: F401  which looks at torch's number types, once

    globals().update(torch=torch, t=transformers, make=script("make", "tests/golden"))
    t.utils.logging.disable_progress_bar()
    yield
    t.utils.logging.enable_progress_bar()


def pick(rng: np.random.Generator, *choices: object) -> object:
    return choices[int(rng.integers(len(choices)))]


def sizes(rng: np.random.Generator) -> dict:
    return {
        "vocab_size": int(rng.integers(2, 30)),
        "bos_token_id": None,
        "eos_token_id": None,
        "tie_word_embeddings": bool(rng.integers(2)),
    }


def gpt2(rng: np.random.Generator) -> Network:
    heads, d_head = int(rng.integers(1, 4)), int(rng.integers(1, 6))
    return t.GPT2LMHeadModel(
        t.GPT2Config(
            n_embd=heads * d_head,
            n_layer=int(rng.integers(1, 4)),
            n_head=heads,
            n_positions=10,
            n_inner=pick(rng, None, 7),
            activation_function=pick(rng, *ACTIVATIONS),
            scale_attn_weights=bool(rng.integers(2)),
            scale_attn_by_inverse_layer_idx=bool(rng.integers(2)),
            layer_norm_epsilon=pick(rng, 1e-5, 1e-3),
            **sizes(rng),
        )
    )


def llama_sizes(rng: np.random.Generator) -> dict:
    kv = int(rng.integers(1, 3))
    heads = kv * int(rng.integers(1, 3))
    return {
        "hidden_size": heads * int(rng.integers(1, 5)),
        "intermediate_size": int(rng.integers(1, 12)),
        "num_hidden_layers": int(rng.integers(1, 4)),
        "num_attention_heads": heads,
        "num_key_value_heads": kv,
        "head_dim": 2 * int(rng.integers(1, 4)),
        "max_position_embeddings": 10,
        "hidden_act": pick(rng, "silu", "gelu", "relu"),
        "rope_parameters": {"rope_type": "default", "rope_theta": pick(rng, 10000.0, 50.0)},
        **sizes(rng),
    }


def llama(rng: np.random.Generator) -> Network:
    bias = {"attention_bias": bool(rng.integers(2)), "mlp_bias": bool(rng.integers(2))}
    return t.LlamaForCausalLM(t.LlamaConfig(**llama_sizes(rng), **bias))


def mistral(rng: np.random.Generator) -> Network:
    window = pick(rng, None, 1, 2, 4, 20)
    return t.MistralForCausalLM(t.MistralConfig(**llama_sizes(rng), sliding_window=window))


def qwen2(rng: np.random.Generator) -> Network:
    config = llama_sizes(rng)
    del config["head_dim"]
    config["hidden_size"] = config["num_attention_heads"] * 2 * int(rng.integers(1, 3))
    config |= {"use_sliding_window": bool(rng.integers(2)), "sliding_window": 2}
    return t.Qwen2ForCausalLM(t.Qwen2Config(**config, max_window_layers=1))


def qwen3(rng: np.random.Generator) -> Network:
    bias = bool(rng.integers(2))
    return t.Qwen3ForCausalLM(t.Qwen3Config(**llama_sizes(rng), attention_bias=bias))


def gpt_neox(rng: np.random.Generator) -> Network:
    heads = int(rng.integers(1, 4))
    return t.GPTNeoXForCausalLM(
        t.GPTNeoXConfig(
            hidden_size=heads * 8,
            intermediate_size=int(rng.integers(1, 12)),
            num_hidden_layers=int(rng.integers(1, 4)),
            num_attention_heads=heads,
            max_position_embeddings=10,
            hidden_act=pick(rng, "gelu", "gelu_new", "relu"),
            use_parallel_residual=bool(rng.integers(2)),
            attention_bias=bool(rng.integers(2)),
            rope_parameters={
                "rope_type": "default",
                "rope_theta": 10000.0,
                "partial_rotary_factor": pick(rng, 0.25, 0.5, 1.0),
            },
            **sizes(rng),
        )
    )


def gpt_neo(rng: np.random.Generator) -> Network:
    heads, kinds = int(rng.integers(1, 4)), pick(rng, ["global", "local"], ["local"], ["global"])
    repeats = int(rng.integers(1, 3))
    return t.GPTNeoForCausalLM(
        t.GPTNeoConfig(
            hidden_size=heads * int(rng.integers(1, 6)),
            num_layers=len(kinds) * repeats,
            num_heads=heads,
            attention_types=[[kinds, repeats]],
            window_size=int(rng.integers(1, 5)),
            max_position_embeddings=10,
            activation_function=pick(rng, "gelu_new", "relu"),
            **sizes(rng),
        )
    )


def gemma2(rng: np.random.Generator) -> Network:
    config = llama_sizes(rng)
    config["hidden_activation"] = pick(rng, "gelu_pytorch_tanh", config.pop("hidden_act"))
    config |= {
        "sliding_window": int(rng.integers(1, 5)),
        "query_pre_attn_scalar": int(rng.integers(1, 20)),
        "attn_logit_softcapping": pick(rng, None, 0.7, 50.0),
        "final_logit_softcapping": pick(rng, None, 2.0, 30.0),
        "attention_bias": bool(rng.integers(2)),
        "layer_types": pick(rng, None, ["full_attention"] * config["num_hidden_layers"]),
    }
    return t.Gemma2ForCausalLM(t.Gemma2Config(**config))


def scaled(rng: np.random.Generator) -> Network:
    """A model of Llama's kin whose rotary positions are scaled."""
    kind = pick(rng, "linear", "dynamic", "llama3", "yarn", "yarn", "proportional")
    rope = {
        "rope_type": kind,
        "rope_theta": pick(rng, 10000.0, 50.0),
        "factor": pick(rng, 2.0, 8.0),
    }
    if kind in ("llama3", "yarn"):
        rope["original_max_position_embeddings"] = pick(rng, 5, 40)
    if kind == "llama3":
        rope |= {"low_freq_factor": 1.0, "high_freq_factor": pick(rng, 2.0, 4.0)}
    if kind == "proportional":
        rope["partial_rotary_factor"] = pick(rng, 0.25, 0.6, 1.0)
    elif kind != "yarn":
        rope["partial_rotary_factor"] = pick(rng, 1.0, 0.95)  # 0.95 x 8 = 7.6: 7, and 8 turn
    if kind == "yarn":
        rope |= pick(
            rng,
            {},
            {"beta_fast": 4.0, "beta_slow": 0.5, "truncate": False},
            {"mscale": 0.7, "mscale_all_dim": 1.2},
            {"attention_factor": 1.5, "factor": None},
        )
    config = llama_sizes(rng) | {"rope_parameters": rope, "head_dim": pick(rng, 8, 12)}
    config_of, model_of = pick(
        rng, (t.LlamaConfig, t.LlamaForCausalLM), (t.Qwen3Config, t.Qwen3ForCausalLM)
    )
    return model_of(config_of(**config))


def gemma(rng: np.random.Generator) -> Network:
    bias = bool(rng.integers(2))
    return t.GemmaForCausalLM(t.GemmaConfig(**llama_sizes(rng), attention_bias=bias))


def phi3(rng: np.random.Generator) -> Network:
    config = llama_sizes(rng) | {"pad_token_id": None, "sliding_window": pick(rng, None, 2)}
    del config["head_dim"]
    config["hidden_size"] = config["num_attention_heads"] * 8
    rope = {"rope_type": pick(rng, "default", "longrope"), "rope_theta": 100.0}
    rope["partial_rotary_factor"] = pick(rng, 0.5, 1.0)
    if rope["rope_type"] == "longrope":
        pairs = int(rope["partial_rotary_factor"] * 4)
        rope["short_factor"] = rng.uniform(1, 3, pairs).tolist()
        rope["long_factor"] = rng.uniform(3, 9, pairs).tolist()
        config |= {"original_max_position_embeddings": 10, "max_position_embeddings": 40}
    return t.Phi3ForCausalLM(t.Phi3Config(**config | {"rope_parameters": rope}))


def smollm3(rng: np.random.Generator) -> Network:
    config = llama_sizes(rng) | {"pad_token_id": None, "mlp_bias": bool(rng.integers(2))}
    config |= {"use_sliding_window": bool(rng.integers(2)), "sliding_window": 2}
    return t.SmolLM3ForCausalLM(t.SmolLM3Config(**config, no_rope_layer_interval=2))


def granite(rng: np.random.Generator) -> Network:
    config = llama_sizes(rng) | {"attention_bias": bool(rng.integers(2))}
    names = ("embedding", "residual", "attention")
    config |= {f"{name}_multiplier": pick(rng, 1.0, 0.4, 2.0) for name in names}
    return t.GraniteForCausalLM(t.GraniteConfig(**config, logits_scaling=pick(rng, 1.0, 3.0)))


def olmo2(rng: np.random.Generator) -> Network:
    config = llama_sizes(rng) | {"pad_token_id": None, "attention_bias": bool(rng.integers(2))}
    return t.Olmo2ForCausalLM(t.Olmo2Config(**config))


def gemma3(rng: np.random.Generator) -> Network:
    config = llama_sizes(rng) | {"pad_token_id": None, "attention_bias": bool(rng.integers(2))}
    del config["rope_parameters"]
    config["hidden_activation"] = pick(rng, "gelu_pytorch_tanh", config.pop("hidden_act"))
    config["hidden_size"] = config["num_attention_heads"] * int(rng.integers(1, 5))
    config |= {
        "sliding_window": int(rng.integers(1, 5)),
        "sliding_window_pattern": pick(rng, 2, 3, 6),
        "rope_theta": pick(rng, 100.0, 1e6),
        "rope_local_base_freq": pick(rng, 10.0, 1e4),
        "rope_scaling": pick(rng, None, {"rope_type": "linear", "factor": 4.0}),
        "query_pre_attn_scalar": int(rng.integers(1, 20)),
        "attn_logit_softcapping": pick(rng, None, 0.7),
        "final_logit_softcapping": pick(rng, None, 2.0, 30.0),
    }
    return t.Gemma3ForCausalLM(t.Gemma3TextConfig(**config))


@contextmanager
def double_constants() -> Iterator[None]:
    """The constants of a model, which the reference keeps in the default type, in float64, if it is
    made `in_float64`."""
    usual = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)  # or what stands for it
    try:
        yield
    finally:
        torch.set_default_dtype(usual)


def gemma3_sizes(rng: np.random.Generator) -> dict:
    """The sizes of Gemma 3 and later, with rotary positions by kind of layer."""
    config = llama_sizes(rng) | {"pad_token_id": None, "attention_bias": bool(rng.integers(2))}
    config["hidden_activation"] = pick(rng, "gelu_pytorch_tanh", config.pop("hidden_act"))
    config["hidden_size"] = config["num_attention_heads"] * int(rng.integers(1, 5))
    linear = {"rope_type": "linear", "rope_theta": 100.0, "factor": 4.0}
    config["rope_parameters"] = {
        "sliding_attention": {"rope_type": "default", "rope_theta": pick(rng, 10.0, 1e4)},
        "full_attention": pick(rng, {"rope_type": "default", "rope_theta": 50.0}, linear),
    }
    return config | {
        "rms_norm_eps": pick(rng, 1e-6, 1e-2),
        "layer_types": layer_kinds(rng, config["num_hidden_layers"]),
    }


def embeddinggemma(rng: np.random.Generator) -> Network:
    config = gemma3_sizes(rng) | {"query_pre_attn_scalar": int(rng.integers(1, 20))}
    mode = pick(rng, "cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens")
    modules = [{"type": "Transformer"}, {"type": "Pooling", f"pooling_mode_{mode}": True}]
    modules += pick(rng, [], [{"type": "Normalize"}])
    config |= {"use_bidirectional_attention": bool(rng.integers(4)), "sliding_window": 18}
    if not config["use_bidirectional_attention"] or rng.integers(4):
        config["sentence_modules"] = modules
    with double_constants():
        return t.Gemma3TextModel(t.Gemma3TextConfig(**config))


def layered(rng: np.random.Generator) -> dict:
    """The sizes of Gemma 3n and 4: some layers read keys and values of earlier ones."""
    config = gemma3_sizes(rng)
    kinds = [
        pick(rng, "sliding_attention", "full_attention") for _ in range(int(rng.integers(1, 4)))
    ]
    kinds[-1] = "full_attention"
    shared = [pick(rng, *kinds) for _ in range(int(rng.integers(3)))] + ["full_attention"]
    return config | {
        "vocab_size_per_layer_input": config["vocab_size"],
        "hidden_size_per_layer_input": int(rng.integers(1, 4)),
        "num_hidden_layers": len(kinds + shared),
        "layer_types": kinds + shared,
        "num_kv_shared_layers": len(shared) if rng.integers(2) else 0,
        "sliding_window": int(rng.integers(1, 5)),
        "final_logit_softcapping": pick(rng, None, 2.0, 30.0),
    }


def gemma4(rng: np.random.Generator) -> Network:
    config = layered(rng) | {
        "hidden_size_per_layer_input": int(rng.integers(4)),
        "attention_k_eq_v": bool(rng.integers(2)),
        "use_double_wide_mlp": bool(rng.integers(2)),
        "global_head_dim": 2 * int(rng.integers(1, 4)),
        "num_global_key_value_heads": pick(rng, None, 1),
        "use_bidirectional_attention": pick(rng, None, "vision"),
        "enable_moe_block": bool(rng.integers(2)),
        "top_k_experts": int(rng.integers(1, 3)),
        "num_experts": int(rng.integers(2, 6)),
        "moe_intermediate_size": int(rng.integers(1, 8)),
    }
    proportional = {"rope_type": "proportional", "rope_theta": 50.0, "partial_rotary_factor": 0.5}
    if rng.integers(2):
        config["rope_parameters"]["full_attention"] = proportional
    with double_constants():
        if rng.integers(4):
            model = t.Gemma4ForCausalLM(t.Gemma4TextConfig(**config))
        else:  # a sentence encoder
            both = {"use_bidirectional_attention": pick(rng, None, "all"), "sliding_window": 18}
            modules = [{"type": "Transformer"}, {"type": "Pooling", "pooling_mode_cls_token": True}]
            both |= {"sentence_modules": modules}
            model = t.Gemma4TextModel(t.Gemma4TextConfig(**config | both))
    for layer in getattr(model, "model", model).layers:
        layer.layer_scalar.fill_(rng.uniform(0.5, 2))
    return model


def gemma3n(rng: np.random.Generator) -> Network:
    config = layered(rng)
    n_layers, n_parts = config["num_hidden_layers"], int(rng.integers(1, 5))
    sizes = [int(rng.integers(1, 12)) for _ in range(n_layers)]
    config |= {
        "vocab_size_per_layer_input": pick(rng, config["vocab_size"], 2),
        "intermediate_size": pick(rng, config["intermediate_size"], sizes),
        "activation_sparsity_pattern": pick(rng, None, rng.uniform(0, 0.9, n_layers).tolist()),
        "altup_num_inputs": n_parts,
        "altup_active_idx": int(rng.integers(n_parts)),
        "altup_correct_scale": bool(rng.integers(2)),
        "altup_coef_clip": pick(rng, 0.01, 120.0),
        "laurel_rank": int(rng.integers(1, 4)),
        "final_logit_softcapping": pick(rng, 2.0, 30.0),
    }
    with double_constants():
        return t.Gemma3nForCausalLM(t.Gemma3nTextConfig(**config))


def layer_kinds(rng: np.random.Generator, n_layers: int) -> list[str] | None:
    """The kind of each layer, or the architecture's own."""
    kinds = [pick(rng, "sliding_attention", "full_attention") for _ in range(n_layers)]
    return pick(rng, None, kinds)


def olmo(rng: np.random.Generator) -> Network:
    config = llama_sizes(rng) | {"pad_token_id": None, "attention_bias": bool(rng.integers(2))}
    return t.OlmoForCausalLM(t.OlmoConfig(**config, clip_qkv=pick(rng, None, 0.2, 1.0)))


def olmo3(rng: np.random.Generator) -> Network:
    config = llama_sizes(rng) | {"pad_token_id": None, "attention_bias": bool(rng.integers(2))}
    config["layer_types"] = layer_kinds(rng, config["num_hidden_layers"])
    config["rope_parameters"] = pick(
        rng,
        None,
        {
            "sliding_attention": {"rope_type": "default", "rope_theta": 50.0},
            "full_attention": {"rope_type": "linear", "rope_theta": 300.0, "factor": 3.0},
        },
    )
    return t.Olmo3ForCausalLM(t.Olmo3Config(**config, sliding_window=int(rng.integers(1, 5))))


def cohere_sizes(rng: np.random.Generator) -> dict:
    config = llama_sizes(rng) | {"pad_token_id": None, "attention_bias": bool(rng.integers(2))}
    del config["head_dim"]
    config["hidden_size"] = config["num_attention_heads"] * 2 * int(rng.integers(1, 4))
    return config | {"logit_scale": pick(rng, 0.0625, 1.0, 3.0), "layer_norm_eps": 1e-4}


def cohere(rng: np.random.Generator) -> Network:
    config = cohere_sizes(rng)
    return t.CohereForCausalLM(t.CohereConfig(**config, use_qk_norm=bool(rng.integers(2))))


def cohere2(rng: np.random.Generator) -> Network:
    config = cohere_sizes(rng) | {"sliding_window": int(rng.integers(1, 5))}
    kinds = layer_kinds(rng, config["num_hidden_layers"])
    return t.Cohere2ForCausalLM(t.Cohere2Config(**config, layer_types=kinds))


def glm(rng: np.random.Generator) -> Network:
    config = llama_sizes(rng) | {"pad_token_id": None, "attention_bias": bool(rng.integers(2))}
    config["head_dim"] = pick(rng, 4, 8)
    config["rope_parameters"]["partial_rotary_factor"] = pick(rng, 0.5, 1.0)
    config_of, model_of = pick(
        rng, (t.GlmConfig, t.GlmForCausalLM), (t.Glm4Config, t.Glm4ForCausalLM)
    )
    return model_of(config_of(**config))


def ministral(rng: np.random.Generator) -> Network:
    config = llama_sizes(rng) | {"sliding_window": pick(rng, 1, 2, 4)}
    kinds = layer_kinds(rng, config["num_hidden_layers"])
    return t.MinistralForCausalLM(t.MinistralConfig(**config, layer_types=kinds))


def ministral3(rng: np.random.Generator) -> Network:
    config = llama_sizes(rng) | {"pad_token_id": None, "sliding_window": pick(rng, None, 2)}
    config["head_dim"] = pick(rng, 4, 8)
    config["rope_parameters"] = {
        "rope_type": "yarn",
        "rope_theta": 100.0,
        "factor": pick(rng, 2.0, 16.0),
        "original_max_position_embeddings": int(rng.integers(1, 8)),
        "mscale": 1.0,
        "mscale_all_dim": pick(rng, 1.0, 0.5),
        "llama_4_scaling_beta": pick(rng, 0.1, 0.7),
    }
    return t.Ministral3ForCausalLM(t.Ministral3Config(**config))


def exaone4(rng: np.random.Generator) -> Network:
    config = llama_sizes(rng) | {"sliding_window": pick(rng, None, 1, 3)}
    if config["sliding_window"]:
        config["layer_types"] = layer_kinds(rng, config["num_hidden_layers"])
        config["sliding_window_pattern"] = pick(rng, 2, 4)
    else:
        config["layer_types"] = ["full_attention"] * config["num_hidden_layers"]
    return t.Exaone4ForCausalLM(t.Exaone4Config(**config))


def seed_oss(rng: np.random.Generator) -> Network:
    names = ("attention_bias", "attention_out_bias", "mlp_bias")
    config = llama_sizes(rng) | {name: bool(rng.integers(2)) for name in names}
    return t.SeedOssForCausalLM(t.SeedOssConfig(**config, pad_token_id=None))


def ernie4_5(rng: np.random.Generator) -> Network:
    config = llama_sizes(rng) | {"pad_token_id": None, "use_bias": bool(rng.integers(2))}
    return t.Ernie4_5ForCausalLM(t.Ernie4_5Config(**config))


def helium(rng: np.random.Generator) -> Network:
    config = llama_sizes(rng) | {"pad_token_id": None, "attention_bias": bool(rng.integers(2))}
    config["hidden_size"] = config["num_attention_heads"] * config["head_dim"]
    return t.HeliumForCausalLM(t.HeliumConfig(**config, mlp_bias=bool(rng.integers(2))))


def hunyuan(rng: np.random.Generator) -> Network:
    config = llama_sizes(rng) | {"pad_token_id": None, "attention_bias": bool(rng.integers(2))}
    alpha = {"rope_type": "dynamic", "rope_theta": 50.0, "alpha": 7.0, "factor": 1.0}
    config["head_dim"] = pick(rng, 4, 8)
    config["rope_parameters"] = pick(rng, config["rope_parameters"], alpha)
    return t.HunYuanDenseV1ForCausalLM(t.HunYuanDenseV1Config(**config))


def arcee(rng: np.random.Generator) -> Network:
    bias = {"attention_bias": bool(rng.integers(2)), "mlp_bias": bool(rng.integers(2))}
    config = llama_sizes(rng) | bias | {"hidden_act": pick(rng, "relu2", "silu", "gelu")}
    config["hidden_size"] = config["num_attention_heads"] * int(rng.integers(1, 5))
    return t.ArceeForCausalLM(t.ArceeConfig(**config))


def mamba(rng: np.random.Generator) -> Network:
    return t.MambaForCausalLM(
        t.MambaConfig(
            vocab_size=13,
            hidden_size=int(rng.integers(1, 9)),
            state_size=int(rng.integers(1, 6)),
            num_hidden_layers=int(rng.integers(1, 4)),
            expand=int(rng.integers(1, 4)),
            **pick(rng, {}, {"intermediate_size": 7}),  # instead of `expand` times hidden_size
            conv_kernel=int(rng.integers(1, 6)),
            time_step_rank=pick(rng, "auto", 1, 3),
            use_bias=bool(rng.integers(2)),
            use_conv_bias=bool(rng.integers(2)),
            hidden_act=pick(rng, "silu", "gelu", "relu"),
            tie_word_embeddings=bool(rng.integers(2)),
        )
    )


def falcon_mamba(rng: np.random.Generator) -> Network:
    return t.FalconMambaForCausalLM(
        t.FalconMambaConfig(
            vocab_size=13,
            hidden_size=int(rng.integers(1, 9)),
            state_size=int(rng.integers(1, 6)),
            num_hidden_layers=int(rng.integers(1, 4)),
            expand=int(rng.integers(1, 4)),
            conv_kernel=int(rng.integers(1, 6)),
            time_step_rank=pick(rng, "auto", 1, 3),
            use_bias=bool(rng.integers(2)),
            use_conv_bias=bool(rng.integers(2)),
            hidden_act=pick(rng, "silu", "gelu", "relu"),
            mixer_rms_eps=pick(rng, 1e-6, 1e-2),
            layer_norm_epsilon=pick(rng, 1e-5, 1e-3),
            tie_word_embeddings=bool(rng.integers(2)),
        )
    )


def mamba2(rng: np.random.Generator) -> Network:
    groups, each, wide = (int(n) for n in rng.integers(1, 4, 3))
    expand = pick(rng, *(n for n in (1, 2, 3) if groups * each * wide % n == 0))
    return t.Mamba2ForCausalLM(
        t.Mamba2Config(
            vocab_size=13,
            hidden_size=groups * each * wide // expand,
            expand=expand,
            num_heads=groups * each,
            head_dim=wide,
            n_groups=groups,
            state_size=int(rng.integers(1, 6)),
            num_hidden_layers=int(rng.integers(1, 4)),
            conv_kernel=int(rng.integers(1, 6)),
            chunk_size=pick(rng, 1, 3, 256),
            time_step_limit=pick(rng, (0.0, float("inf")), (0.2, 0.8), (0.4, float("inf"))),
            use_bias=bool(rng.integers(2)),
            use_conv_bias=bool(rng.integers(2)),
            hidden_act=pick(rng, "silu", "gelu", "relu"),
            tie_word_embeddings=bool(rng.integers(2)),
            pad_token_id=0,
            bos_token_id=1,
            eos_token_id=2,
        )
    )


def rwkv(rng: np.random.Generator) -> Network:
    return t.RwkvForCausalLM(
        t.RwkvConfig(
            hidden_size=int(rng.integers(2, 9)),
            attention_hidden_size=pick(rng, None, 2, 5),
            intermediate_size=int(rng.integers(1, 9)),
            num_hidden_layers=int(rng.integers(2, 5)),
            context_length=12,
            layer_norm_epsilon=pick(rng, 1e-5, 1e-3),
            rescale_every=int(rng.integers(0, 4)),
            **sizes(rng),
        )
    )


def nemotron(rng: np.random.Generator) -> Network:
    bias = {"attention_bias": bool(rng.integers(2)), "mlp_bias": bool(rng.integers(2))}
    config = llama_sizes(rng) | bias | {"norm_eps": 1e-3}
    config |= {"head_dim": pick(rng, 4, 8), "hidden_act": pick(rng, "relu2", "gelu")}
    config["rope_parameters"]["partial_rotary_factor"] = pick(rng, 0.5, 1.0)
    return t.NemotronForCausalLM(t.NemotronConfig(**config))


def gpt_bigcode(rng: np.random.Generator) -> Network:
    heads = int(rng.integers(1, 4))
    return t.GPTBigCodeForCausalLM(
        t.GPTBigCodeConfig(
            n_embd=heads * int(rng.integers(1, 6)),
            n_layer=int(rng.integers(1, 4)),
            n_head=heads,
            n_positions=10,
            n_inner=pick(rng, None, 7),
            multi_query=bool(rng.integers(2)),
            activation_function=pick(rng, *ACTIVATIONS),
            scale_attn_weights=bool(rng.integers(2)),
            layer_norm_epsilon=pick(rng, 1e-5, 1e-3),
            **sizes(rng),
        )
    )


def codegen(rng: np.random.Generator) -> Network:
    heads, d_head = pick(rng, 4, 8), 2 * int(rng.integers(1, 4))
    return t.CodeGenForCausalLM(
        t.CodeGenConfig(
            n_embd=heads * d_head,
            n_layer=int(rng.integers(1, 3)),
            n_head=heads,
            n_positions=10,
            n_inner=pick(rng, None, 7),
            rotary_dim=2 * int(rng.integers(1, d_head // 2 + 1)),
            activation_function=pick(rng, *ACTIVATIONS),
            layer_norm_epsilon=pick(rng, 1e-5, 1e-3),
            **sizes(rng) | {"tie_word_embeddings": False},
        )
    )


def mpt(rng: np.random.Generator) -> Network:
    heads = int(rng.integers(1, 8))
    attention = {"clip_qkv": pick(rng, None, 0.3), "softmax_scale": pick(rng, None, 0.7)}
    return t.MptForCausalLM(
        t.MptConfig(
            d_model=heads * int(rng.integers(1, 4)),
            n_layers=int(rng.integers(1, 4)),
            n_heads=heads,
            max_seq_len=10,
            attn_config=attention,
            layer_norm_epsilon=pick(rng, 1e-5, 1e-3),
            **sizes(rng),
        )
    )


def biogpt(rng: np.random.Generator) -> Network:
    heads = int(rng.integers(1, 4))
    return t.BioGptForCausalLM(
        t.BioGptConfig(
            hidden_size=heads * int(rng.integers(1, 6)),
            num_hidden_layers=int(rng.integers(1, 4)),
            num_attention_heads=heads,
            intermediate_size=int(rng.integers(1, 12)),
            max_position_embeddings=10,
            hidden_act=pick(rng, *ACTIVATIONS),
            scale_embedding=bool(rng.integers(2)),
            pad_token_id=1,
            **sizes(rng),
        )
    )


def xglm(rng: np.random.Generator) -> Network:
    heads, usual = int(rng.integers(1, 4)), torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)  # of its sines; see `in_float64`
    try:
        return t.XGLMForCausalLM(
            t.XGLMConfig(
                d_model=heads * int(rng.integers(4, 8)),
                num_layers=int(rng.integers(1, 4)),
                attention_heads=heads,
                ffn_dim=int(rng.integers(1, 12)),
                max_position_embeddings=10,
                activation_function=pick(rng, *ACTIVATIONS),
                scale_embedding=bool(rng.integers(2)),
                pad_token_id=1,
                **sizes(rng),
            )
        )
    finally:
        torch.set_default_dtype(usual)


def openai_gpt(rng: np.random.Generator) -> Network:
    heads = int(rng.integers(1, 4))
    return t.OpenAIGPTLMHeadModel(
        t.OpenAIGPTConfig(
            n_embd=heads * int(rng.integers(1, 6)),
            n_layer=int(rng.integers(1, 4)),
            n_head=heads,
            n_positions=10,
            afn=pick(rng, "gelu", "relu", "silu", "swish"),
            layer_norm_epsilon=pick(rng, 1e-5, 1e-3),
            **sizes(rng),
        )
    )


def apertus(rng: np.random.Generator) -> Network:
    config = llama_sizes(rng) | {"pad_token_id": None, "attention_bias": bool(rng.integers(2))}
    config |= {"hidden_act": "xielu", "dtype": "float32"}
    return t.ApertusForCausalLM(t.ApertusConfig(**config))


def chosen(rng: np.random.Generator) -> dict:
    """How many experts there are, and how many work at each token."""
    n = int(rng.integers(1, 7))
    return {"num_experts": n, "num_experts_per_tok": int(rng.integers(1, n + 1))}


def mixtral(rng: np.random.Generator) -> Network:
    config = llama_sizes(rng) | chosen(rng) | {"sliding_window": pick(rng, None, 1, 3)}
    return t.MixtralForCausalLM(t.MixtralConfig(**config))


def moe_layers(rng: np.random.Generator) -> dict:
    """What Qwen's mixtures of experts say of their layers."""
    return chosen(rng) | {
        "moe_intermediate_size": int(rng.integers(1, 8)),
        "decoder_sparse_step": int(rng.integers(1, 3)),
        "mlp_only_layers": pick(rng, [], [0], [1, 2]),
        "norm_topk_prob": bool(rng.integers(2)),
        "use_sliding_window": bool(rng.integers(2)),
        "sliding_window": 2,
    }


def qwen3_moe(rng: np.random.Generator) -> Network:
    config = llama_sizes(rng) | moe_layers(rng) | {"attention_bias": bool(rng.integers(2))}
    return t.Qwen3MoeForCausalLM(t.Qwen3MoeConfig(**config))


def qwen2_moe(rng: np.random.Generator) -> Network:
    config = llama_sizes(rng) | moe_layers(rng) | {"qkv_bias": bool(rng.integers(2))}
    config |= {"shared_expert_intermediate_size": int(rng.integers(1, 8)), "max_window_layers": 2}
    return t.Qwen2MoeForCausalLM(t.Qwen2MoeConfig(**config))


def olmoe(rng: np.random.Generator) -> Network:
    config = llama_sizes(rng) | chosen(rng) | {"norm_topk_prob": bool(rng.integers(2))}
    config |= {"pad_token_id": None, "attention_bias": bool(rng.integers(2))}
    config["hidden_size"] = config["num_attention_heads"] * config.pop("head_dim")
    return t.OlmoeForCausalLM(t.OlmoeConfig(**config, clip_qkv=pick(rng, None, 0.2, 1.0)))


def granitemoe(rng: np.random.Generator) -> Network:
    config = llama_sizes(rng) | {"attention_bias": bool(rng.integers(2))}
    names = ("embedding", "residual", "attention")
    config |= {f"{name}_multiplier": pick(rng, 1.0, 0.4, 2.0) for name in names}
    config |= {"num_local_experts": int(rng.integers(2, 6)), "num_experts_per_tok": 2}
    return t.GraniteMoeForCausalLM(t.GraniteMoeConfig(**config, logits_scaling=pick(rng, 1.0, 3.0)))


def lfm2(rng: np.random.Generator) -> Network:
    config = llama_sizes(rng) | {"pad_token_id": None, "conv_bias": bool(rng.integers(2))}
    kinds = [pick(rng, "conv", "full_attention") for _ in range(config["num_hidden_layers"] - 1)]
    attending = int(rng.integers(config["num_hidden_layers"]))
    config |= {
        "layer_types": [*kinds[:attending], "full_attention", *kinds[attending:]],
        "conv_L_cache": int(rng.integers(1, 5)),
        "block_auto_adjust_ff_dim": bool(rng.integers(2)),
        "block_multiple_of": int(rng.integers(1, 5)),
        "block_ffn_dim_multiplier": pick(rng, 1.0, 1.5),
        "norm_eps": pick(rng, 1e-5, 1e-3),
    }
    return t.Lfm2ForCausalLM(t.Lfm2Config(**config))


def lfm2_moe(rng: np.random.Generator) -> Network:
    config = llama_sizes(rng) | {"pad_token_id": None, "conv_bias": bool(rng.integers(2))}
    kinds = [pick(rng, "conv", "full_attention") for _ in range(config["num_hidden_layers"])]
    experts = int(rng.integers(2, 6))
    config |= {
        "layer_types": kinds,
        "conv_L_cache": int(rng.integers(1, 5)),
        "norm_eps": pick(rng, 1e-5, 1e-3),
        "num_dense_layers": int(rng.integers(0, 3)),
        "num_experts": experts,
        "num_experts_per_tok": int(rng.integers(1, experts + 1)),
        "moe_intermediate_size": int(rng.integers(1, 8)),
        "use_expert_bias": bool(rng.integers(2)),
        "norm_topk_prob": bool(rng.integers(2)),
        "routed_scaling_factor": pick(rng, 1.0, 2.5),
    }
    del config["hidden_act"]
    return make.with_biases(t.Lfm2MoeForCausalLM(t.Lfm2MoeConfig(**config)))


def of_linear_attention(rng: np.random.Generator) -> dict:
    config = llama_sizes(rng) | {"pad_token_id": None, "attention_bias": bool(rng.integers(2))}
    keys = int(rng.integers(1, 3))
    config |= {
        "head_dim": pick(rng, 4, 8),
        "linear_num_key_heads": keys,
        "linear_num_value_heads": keys * int(rng.integers(1, 3)),
        "linear_key_head_dim": int(rng.integers(1, 5)),
        "linear_value_head_dim": int(rng.integers(1, 5)),
        "linear_conv_kernel_dim": int(rng.integers(1, 5)),
        "rms_norm_eps": pick(rng, 1e-6, 1e-3),
    }
    config["rope_parameters"]["partial_rotary_factor"] = pick(rng, 0.5, 1.0)
    kinds = ("linear_attention", "linear_attention", "full_attention")
    config["layer_types"] = [pick(rng, *kinds) for _ in range(config["num_hidden_layers"])]
    return config


def of_experts(rng: np.random.Generator) -> dict:
    return {
        "num_experts": int(rng.integers(2, 6)),
        "num_experts_per_tok": int(rng.integers(1, 3)),
        "moe_intermediate_size": int(rng.integers(1, 8)),
        "shared_expert_intermediate_size": int(rng.integers(1, 8)),
    }


def qwen3_next(rng: np.random.Generator) -> Network:
    config = of_linear_attention(rng) | of_experts(rng)
    config |= {
        "norm_topk_prob": bool(rng.integers(2)),
        "decoder_sparse_step": int(rng.integers(1, 3)),
        "mlp_only_layers": pick(rng, [], [0], [1]),
    }
    if rng.integers(2):  # its last layer alone has attention by scores
        config |= {"layer_types": None, "full_attention_interval": config["num_hidden_layers"]}
    return t.Qwen3NextForCausalLM(t.Qwen3NextConfig(**config))


def qwen3_5(rng: np.random.Generator) -> Network:
    config = of_linear_attention(rng)
    of_images = pick(rng, {}, {"mrope_section": [1, 1, 1], "mrope_interleaved": True})
    config["rope_parameters"] |= of_images
    return t.Qwen3_5ForCausalLM(t.Qwen3_5TextConfig(**config))


def qwen3_5_moe(rng: np.random.Generator) -> Network:
    config = of_linear_attention(rng) | of_experts(rng)
    del config["intermediate_size"]
    return t.Qwen3_5MoeForCausalLM(t.Qwen3_5MoeTextConfig(**config))


def phimoe(rng: np.random.Generator) -> Network:
    config = llama_sizes(rng) | {"sliding_window": pick(rng, None, 1, 3)}
    config |= {name: bool(rng.integers(2)) for name in ("attention_bias", "lm_head_bias")}
    config |= {
        "head_dim": 4,
        "num_local_experts": int(rng.integers(2, 6)),
        "router_jitter_noise": pick(rng, 0.01, 0.3, 0.8),
        "rope_parameters": pick(rng, config["rope_parameters"], LONGROPE_OF_PHIMOE),
    }
    return t.PhimoeForCausalLM(t.PhimoeConfig(**config))


LONGROPE_OF_PHIMOE = {
    "rope_type": "longrope",
    "rope_theta": 50.0,
    "short_factor": [1.5, 2.0],
    "long_factor": [3.0, 5.0],
    "short_mscale": 1.25,
    "long_mscale": 1.5,
    "original_max_position_embeddings": 10,
}


def gpt_oss(rng: np.random.Generator) -> Network:
    config = llama_sizes(rng) | {"attention_bias": bool(rng.integers(2))}
    config |= {"num_local_experts": int(rng.integers(2, 6)), "num_experts_per_tok": 2}
    config |= {"sliding_window": int(rng.integers(1, 5)), "hidden_act": "silu"}
    config |= {"swiglu_alpha": pick(rng, 1.702, 0.8), "swiglu_limit": pick(rng, 7.0, 0.3)}
    yarn = {"rope_type": "yarn", "rope_theta": 50.0, "factor": 4.0, "truncate": False}
    yarn["original_max_position_embeddings"] = 4
    config["rope_parameters"] = pick(rng, config["rope_parameters"], yarn)
    kinds = layer_kinds(rng, config["num_hidden_layers"])
    return t.GptOssForCausalLM(t.GptOssConfig(**config, layer_types=kinds))


def glm4_moe(rng: np.random.Generator) -> Network:
    groups = int(rng.integers(1, 4))
    config = llama_sizes(rng) | {"attention_bias": bool(rng.integers(2)), "n_group": groups}
    config |= {
        "head_dim": pick(rng, 4, 8),
        "n_routed_experts": groups * int(rng.integers(2, 4)),
        "num_experts_per_tok": int(rng.integers(1, 3)),
        "topk_group": int(rng.integers(1, groups + 1)),
        "moe_intermediate_size": int(rng.integers(1, 8)),
        "n_shared_experts": int(rng.integers(1, 3)),
        "first_k_dense_replace": int(rng.integers(0, 3)),
        "norm_topk_prob": bool(rng.integers(2)),
        "routed_scaling_factor": pick(rng, 1.0, 2.5),
        "use_qk_norm": bool(rng.integers(2)),
    }
    config["rope_parameters"]["partial_rotary_factor"] = pick(rng, 0.5, 1.0)
    return make.with_biases(t.Glm4MoeForCausalLM(t.Glm4MoeConfig(**config)))


def deepseek_sizes(rng: np.random.Generator) -> dict:
    groups = int(rng.integers(1, 4))
    config = llama_sizes(rng) | {"attention_bias": bool(rng.integers(2)), "n_group": groups}
    del config["head_dim"]
    config |= {
        "num_key_value_heads": config["num_attention_heads"],
        "q_lora_rank": pick(rng, None, 3),
        "kv_lora_rank": 2 * int(rng.integers(1, 4)),
        "qk_rope_head_dim": 2 * int(rng.integers(1, 4)),
        "qk_nope_head_dim": int(rng.integers(1, 7)),
        "rope_interleave": bool(rng.integers(2)),  # which the second version does not read
        "v_head_dim": int(rng.integers(1, 6)),
        "n_routed_experts": groups * int(rng.integers(2, 4)),
        "num_experts_per_tok": int(rng.integers(1, 3)),
        "topk_group": int(rng.integers(1, groups + 1)),
        "moe_intermediate_size": int(rng.integers(1, 8)),
        "first_k_dense_replace": int(rng.integers(0, 3)),
    }
    yarn = {"rope_type": "yarn", "rope_theta": 50.0, "factor": 4.0, "mscale": 1.0}
    yarn |= {"mscale_all_dim": 1.0, "original_max_position_embeddings": 4}
    return config | {"rope_parameters": pick(rng, config["rope_parameters"], yarn)}


def deepseek_v2(rng: np.random.Generator) -> Network:
    config = deepseek_sizes(rng) | {"topk_method": pick(rng, "greedy", "group_limited_greedy")}
    config["qk_nope_head_dim"] *= 2  # torch needs it
    config["hidden_size"] = config["num_attention_heads"] * int(rng.integers(1, 5))
    config["routed_scaling_factor"] = pick(rng, 1.0, 2.5)
    return t.DeepseekV2ForCausalLM(t.DeepseekV2Config(**config))


def deepseek_v3(rng: np.random.Generator) -> Network:
    config = deepseek_sizes(rng) | {"norm_topk_prob": bool(rng.integers(2))}
    return make.with_biases(t.DeepseekV3ForCausalLM(t.DeepseekV3Config(**config)))


def state_sizes(rng: np.random.Generator) -> dict:
    """The sizes of a hybrid's states, and its others."""
    config = llama_sizes(rng) | {"pad_token_id": None, "attention_bias": bool(rng.integers(2))}
    groups, each, wide = (int(n) for n in rng.integers(1, 4, 3))
    heads, expand = config["num_attention_heads"], int(rng.integers(1, 3))
    config["hidden_size"] = groups * each * wide * heads * 2
    return config | {
        "head_dim": pick(rng, 4, 8),
        "mamba_n_heads": groups * each,
        "mamba_n_groups": groups,
        "mamba_d_head": pick(rng, "auto", wide * heads * 2 * expand),
        "mamba_expand": expand,
        "mamba_d_state": int(rng.integers(1, 6)),
        "mamba_d_conv": int(rng.integers(1, 6)),
        "mamba_chunk_size": pick(rng, 1, 3, 256),
        "mamba_conv_bias": bool(rng.integers(2)),
        "mamba_proj_bias": bool(rng.integers(2)),
        "time_step_limit": pick(rng, (0.0, float("inf")), (0.2, 0.8), (0.4, float("inf"))),
        "rms_norm_eps": pick(rng, 1e-6, 1e-3),
    }


def granitemoehybrid(rng: np.random.Generator) -> Network:
    config = state_sizes(rng)
    kinds = ("linear_attention", "mamba", "attention", "full_attention")
    listed = [pick(rng, *kinds) for _ in range(config["num_hidden_layers"])]
    names = ("embedding", "residual", "attention")
    config |= {f"{name}_multiplier": pick(rng, 1.0, 0.4, 2.0) for name in names}
    config |= {
        "layer_types": pick(rng, listed, listed, None),
        "num_local_experts": pick(rng, 0, 2, 4),
        "num_experts_per_tok": int(rng.integers(1, 3)),
        "shared_intermediate_size": int(rng.integers(1, 8)),
        "position_embedding_type": pick(rng, None, "rope"),
        "logits_scaling": pick(rng, 1.0, 3.0),
    }
    return t.GraniteMoeHybridForCausalLM(t.GraniteMoeHybridConfig(**config))


def bamba(rng: np.random.Generator) -> Network:
    config = state_sizes(rng) | {"mlp_bias": bool(rng.integers(2))}
    attending = [n for n in range(config["num_hidden_layers"]) if rng.integers(2)]
    config |= {"attn_layer_indices": pick(rng, None, attending, attending)}
    if rng.integers(2):
        config["rope_parameters"]["partial_rotary_factor"] = pick(rng, 0.5, 1.0)
    return t.BambaForCausalLM(t.BambaConfig(**config))


def falcon_h1(rng: np.random.Generator) -> Network:
    config = state_sizes(rng) | {"mlp_bias": bool(rng.integers(2))}
    parts = ("key", "attention_in", "attention_out", "ssm_in", "ssm_out", "embedding", "lm_head")
    config |= {f"{part}_multiplier": pick(rng, 1.0, 0.5, 1.25) for part in parts}
    width = config["mamba_n_heads"] * int(rng.integers(1, 5))
    of_states = pick(rng, {}, {"mamba_d_ssm": width, "mamba_d_head": "auto"})
    config |= {"mamba_d_ssm": None} | of_states
    config |= {
        "mlp_multipliers": pick(rng, None, [0.5, 1.25], [1.0, 0.75]),
        "ssm_multipliers": pick(rng, None, [0.5, 0.25, 1.5, 0.75, 2.0]),
        "mamba_norm_before_gate": bool(rng.integers(2)),
        "mamba_rms_norm": bool(rng.integers(2)),
        "projectors_bias": bool(rng.integers(2)),
    }
    return t.FalconH1ForCausalLM(t.FalconH1Config(**config))


def nemotron_h(rng: np.random.Generator) -> Network:
    groups, own = int(rng.integers(1, 4)), int(rng.integers(1, 3))
    kinds = ("linear_attention", "mamba", "moe", "attention", "full_attention", "mlp")
    listed = [pick(rng, *kinds) for _ in range(int(rng.integers(1, 6)))]
    pattern = "".join(pick(rng, *"ME*-") for _ in range(int(rng.integers(1, 6))))
    config = llama_sizes(rng)
    del config["num_hidden_layers"], config["hidden_act"], config["rope_parameters"]
    config |= {
        **pick(rng, {"layers_block_type": listed}, {"hybrid_override_pattern": pattern}, {}),
        "pad_token_id": None,
        "mlp_hidden_act": pick(rng, "relu2", "silu", "gelu"),
        "mamba_hidden_act": pick(rng, "silu", "gelu", "relu"),
        "mlp_bias": bool(rng.integers(2)),
        "use_bias": bool(rng.integers(2)),
        "use_conv_bias": bool(rng.integers(2)),
        "ssm_state_size": int(rng.integers(1, 5)),
        "mamba_num_heads": groups * own,
        "mamba_head_dim": int(rng.integers(1, 5)),
        "n_groups": groups,
        "conv_kernel": int(rng.integers(1, 6)),
        "time_step_min": pick(rng, 0.001, 0.5),
        "layer_norm_epsilon": pick(rng, 1e-5, 1e-3),
        "n_routed_experts": groups * int(rng.integers(2, 4)),
        "num_experts_per_tok": int(rng.integers(1, 3)),
        "n_group": groups,
        "topk_group": int(rng.integers(1, groups + 1)),
        "moe_intermediate_size": int(rng.integers(1, 8)),
        "moe_shared_expert_intermediate_size": int(rng.integers(1, 8)),
        "norm_topk_prob": bool(rng.integers(2)),
        "routed_scaling_factor": pick(rng, 1.0, 2.5),
    }
    return make.with_biases(t.NemotronHForCausalLM(t.NemotronHConfig(**config)))


def granitemoeshared(rng: np.random.Generator) -> Network:
    config = llama_sizes(rng) | {"attention_bias": bool(rng.integers(2))}
    names = ("embedding", "residual", "attention")
    config |= {f"{name}_multiplier": pick(rng, 1.0, 0.4, 2.0) for name in names}
    config |= {"num_local_experts": int(rng.integers(2, 6)), "num_experts_per_tok": 2}
    config |= {
        "shared_intermediate_size": pick(rng, 0, 3, 5),
        "logits_scaling": pick(rng, 1.0, 3.0),
    }
    return t.GraniteMoeSharedForCausalLM(t.GraniteMoeSharedConfig(**config))


def flex_olmo(rng: np.random.Generator) -> Network:
    config = llama_sizes(rng) | chosen(rng) | {"norm_topk_prob": bool(rng.integers(2))}
    config |= {"pad_token_id": None, "attention_bias": bool(rng.integers(2))}
    return t.FlexOlmoForCausalLM(t.FlexOlmoConfig(**config))


def mlp_kinds(rng: np.random.Generator, n_layers: int) -> dict:
    """Which layers have experts: listed, or not."""
    listed = [pick(rng, "dense", "sparse") for _ in range(n_layers)]
    return pick(rng, {}, {"mlp_layer_types": listed}, {"mlp_layer_types": listed})


def glm4_moe_lite(rng: np.random.Generator) -> Network:
    config = deepseek_sizes(rng) | {"norm_topk_prob": bool(rng.integers(2))}
    del config["first_k_dense_replace"]
    config |= mlp_kinds(rng, config["num_hidden_layers"])
    config |= {
        "n_shared_experts": int(rng.integers(1, 3)),
        "rope_interleave": bool(rng.integers(2)),
    }
    return make.with_biases(t.Glm4MoeLiteForCausalLM(t.Glm4MoeLiteConfig(**config)))


def minimax_m2(rng: np.random.Generator) -> Network:
    config = llama_sizes(rng) | {"head_dim": pick(rng, 4, 8), "pad_token_id": None}
    config |= {"num_local_experts": int(rng.integers(2, 6)), "num_experts_per_tok": 2}
    config |= pick(rng, {}, {"rotary_dim": pick(rng, 2, 4)})
    if "rotary_dim" not in config:
        config["rope_parameters"]["partial_rotary_factor"] = pick(rng, 0.5, 1.0)
    return make.with_biases(t.MiniMaxM2ForCausalLM(t.MiniMaxM2Config(**config)))


def exaone_moe(rng: np.random.Generator) -> Network:
    groups, config = int(rng.integers(1, 4)), llama_sizes(rng)
    config |= mlp_kinds(rng, config["num_hidden_layers"]) | {
        "num_experts": groups * int(rng.integers(2, 4)),
        "num_experts_per_tok": int(rng.integers(1, 3)),
        "n_group": groups,
        "topk_group": int(rng.integers(1, groups + 1)),
        "moe_intermediate_size": int(rng.integers(1, 8)),
        "num_shared_experts": int(rng.integers(1, 3)),
        "first_k_dense_replace": int(rng.integers(0, 3)),
        "norm_topk_prob": bool(rng.integers(2)),
        "routed_scaling_factor": pick(rng, 1.0, 2.5),
        "sliding_window": pick(rng, 1, 3),
        "sliding_window_pattern": pick(rng, 2, 4),
        "layer_types": layer_kinds(rng, config["num_hidden_layers"]),
    }
    return make.with_biases(t.ExaoneMoeForCausalLM(t.ExaoneMoeConfig(**config)))


def ernie4_5_moe(rng: np.random.Generator) -> Network:
    config, experts = llama_sizes(rng), int(rng.integers(2, 6))
    config |= {
        "pad_token_id": None,
        "use_bias": bool(rng.integers(2)),
        "moe_num_experts": experts,
        "moe_k": int(rng.integers(1, experts + 1)),
        "moe_intermediate_size": int(rng.integers(1, 8)),
        "moe_num_shared_experts": int(rng.integers(0, 3)),
        "moe_layer_start_index": int(rng.integers(0, 2)),
        "moe_layer_end_index": pick(rng, -1, 0, 1),
        "moe_layer_interval": int(rng.integers(1, 3)),
    }
    return t.Ernie4_5_MoeForCausalLM(t.Ernie4_5_MoeConfig(**config))


def llama4_sizes(rng: np.random.Generator) -> dict:
    config, experts = llama_sizes(rng), int(rng.integers(1, 6))
    n_layers, chunk = config["num_hidden_layers"], pick(rng, 1, 2, 3, 20, None)
    kinds = [pick(rng, "full_attention", "chunked_attention") for _ in range(n_layers)]
    llama3 = {"rope_type": "llama3", "rope_theta": 50.0, "factor": 8.0, "low_freq_factor": 1.0}
    llama3 |= {"high_freq_factor": 4.0, "original_max_position_embeddings": pick(rng, 5, 40)}
    return config | {
        "pad_token_id": None,
        "rms_norm_eps": pick(rng, 1e-5, 1e-2),
        "attention_bias": bool(rng.integers(2)),
        "head_dim": pick(rng, 2, 4, 8),
        "rope_parameters": pick(rng, config["rope_parameters"], llama3),
        "intermediate_size_mlp": int(rng.integers(1, 9)),
        "num_local_experts": experts,
        "num_experts_per_tok": int(rng.integers(1, experts + 1)),
        "moe_layers": pick(rng, None, [], [0], [n_layers - 1]),
        "interleave_moe_layer_step": int(rng.integers(1, 4)),
        "use_qk_norm": bool(rng.integers(4)),
        "no_rope_layers": pick(rng, None, [int(rng.integers(2)) for _ in range(n_layers)]),
        "no_rope_layer_interval": int(rng.integers(1, 5)),
        "attention_chunk_size": chunk,
        "layer_types": pick(rng, None, kinds) if chunk else None,
        "attn_temperature_tuning": bool(rng.integers(4)),
        "floor_scale": int(rng.integers(1, 5)),
        "attn_scale": pick(rng, 0.1, 1.0),
    }


def llama4(rng: np.random.Generator) -> Network:
    return t.Llama4ForCausalLM(t.Llama4TextConfig(**llama4_sizes(rng)))


def hunyuan_v1_moe(rng: np.random.Generator) -> Network:
    config, experts = llama_sizes(rng), int(rng.integers(1, 6))
    alpha = {"rope_type": "dynamic", "rope_theta": 50.0, "alpha": 7.0, "factor": 1.0}
    config |= {
        "pad_token_id": None,
        "attention_bias": bool(rng.integers(2)),
        "head_dim": pick(rng, 4, 8),
        "num_experts": experts,
        "moe_topk": int(rng.integers(1, experts + 1)),
        "rope_parameters": pick(rng, config["rope_parameters"], alpha),
    }
    return t.HunYuanMoEV1ForCausalLM(t.HunYuanMoEV1Config(**config))


def internlm3(rng: np.random.Generator) -> Network:
    bias = bool(rng.integers(2))
    config = llama_sizes(rng) | {"pad_token_id": None, "attention_bias": bias, "mlp_bias": bias}
    return t.AutoModelForCausalLM.from_config(t.InternLM3Config(**config))


def cwm(rng: np.random.Generator) -> Network:
    config = llama_sizes(rng) | {"sliding_window": pick(rng, 1, 2, 4), "bos_token_id": 0}
    config |= {"mlp_bias": bool(rng.integers(2)), "head_dim": pick(rng, 4, 8)}
    config["rope_parameters"] = pick(rng, None, config["rope_parameters"])
    config["layer_types"] = layer_kinds(rng, config["num_hidden_layers"])
    return t.CwmForCausalLM(t.CwmConfig(**config))


def persimmon(rng: np.random.Generator) -> Network:
    config = llama_sizes(rng) | {"qk_layernorm": bool(rng.integers(2))}
    del config["head_dim"], config["num_key_value_heads"]
    config |= {
        "hidden_size": config["num_attention_heads"] * 8,
        "hidden_act": pick(rng, "relu2", "gelu"),
        "layer_norm_eps": pick(rng, 1e-5, 1e-3),
    }
    config["rope_parameters"]["partial_rotary_factor"] = pick(rng, 0.5, 1.0)
    return t.PersimmonForCausalLM(t.PersimmonConfig(**config))


def starcoder2(rng: np.random.Generator) -> Network:
    config = llama_sizes(rng) | {"use_bias": bool(rng.integers(2))}
    window = pick(rng, None, 2)
    return t.Starcoder2ForCausalLM(t.Starcoder2Config(**config, sliding_window=window))


def phi(rng: np.random.Generator) -> Network:
    config = llama_sizes(rng) | {"qk_layernorm": bool(rng.integers(2))}
    del config["head_dim"]
    config["hidden_size"] = config["num_attention_heads"] * 8
    config["rope_parameters"]["partial_rotary_factor"] = pick(rng, 0.25, 0.5, 1.0)
    return t.PhiForCausalLM(t.PhiConfig(**config))


def opt(rng: np.random.Generator) -> Network:
    heads = int(rng.integers(1, 4))
    size = heads * int(rng.integers(1, 6))
    return t.OPTForCausalLM(
        t.OPTConfig(
            hidden_size=size,
            word_embed_proj_dim=pick(rng, None, size, 5),
            ffn_dim=int(rng.integers(1, 12)),
            num_hidden_layers=int(rng.integers(1, 4)),
            num_attention_heads=heads,
            max_position_embeddings=10,
            activation_function=pick(rng, "relu", "gelu"),
            do_layer_norm_before=bool(rng.integers(2)),
            _remove_final_layer_norm=bool(rng.integers(2)),
            enable_bias=bool(rng.integers(2)),
            layer_norm_elementwise_affine=bool(rng.integers(2)),
            pad_token_id=None,
            **sizes(rng),
        )
    )


def gptj(rng: np.random.Generator) -> Network:
    heads, d_head = int(rng.integers(1, 4)), 2 * int(rng.integers(1, 5))
    return t.GPTJForCausalLM(
        t.GPTJConfig(
            n_embd=heads * d_head,
            n_layer=int(rng.integers(1, 4)),
            n_head=heads,
            n_positions=10,
            n_inner=pick(rng, None, 7),
            rotary_dim=2 * int(rng.integers(1, d_head // 2 + 1)),
            activation_function=pick(rng, "gelu_new", "relu"),
            layer_norm_epsilon=pick(rng, 1e-5, 1e-3),
            **sizes(rng),
        )
    )


def bloom(rng: np.random.Generator) -> Network:
    heads = int(rng.integers(1, 8))
    return t.BloomForCausalLM(
        t.BloomConfig(
            hidden_size=heads * int(rng.integers(1, 5)),
            n_layer=int(rng.integers(1, 4)),
            n_head=heads,
            layer_norm_epsilon=pick(rng, 1e-5, 1e-3),
            apply_residual_connection_post_layernorm=bool(rng.integers(2)),
            **sizes(rng),
        )
    )


def falcon(rng: np.random.Generator) -> Network:
    kv = int(rng.integers(1, 3))
    heads = kv * int(rng.integers(1, 4))
    new, alibi = bool(rng.integers(2)), bool(rng.integers(2))
    return t.FalconForCausalLM(
        t.FalconConfig(
            hidden_size=heads * 2 * int(rng.integers(1, 4)),
            num_hidden_layers=int(rng.integers(1, 4)),
            num_attention_heads=heads,
            num_kv_heads=kv if new else None,
            new_decoder_architecture=new,
            num_ln_in_parallel_attn=pick(rng, None, 1, 2) if new else None,
            multi_query=bool(rng.integers(2)),
            parallel_attn=new or bool(rng.integers(2)),
            alibi=alibi,
            bias=bool(rng.integers(2)),
            ffn_hidden_size=pick(rng, None, 7),
            activation=pick(rng, "gelu", "relu"),
            max_position_embeddings=10,
            rope_parameters={"rope_type": "default", "rope_theta": pick(rng, 10000.0, 50.0)},
            **sizes(rng),
        )
    )


def stablelm(rng: np.random.Generator) -> Network:
    config = llama_sizes(rng) | {"use_qkv_bias": bool(rng.integers(2))}
    del config["head_dim"]
    config["hidden_size"] = config["num_attention_heads"] * 8
    config["rope_parameters"]["partial_rotary_factor"] = pick(rng, 0.25, 0.5, 1.0)
    config |= {
        "qk_layernorm": bool(rng.integers(2)),
        "use_parallel_residual": bool(rng.integers(2)),
    }
    return t.StableLmForCausalLM(t.StableLmConfig(**config))


def bert_sizes(rng: np.random.Generator) -> dict:
    heads = int(rng.integers(1, 4))
    return {
        "hidden_size": heads * int(rng.integers(1, 6)),
        "intermediate_size": int(rng.integers(1, 12)),
        "num_hidden_layers": int(rng.integers(1, 4)),
        "num_attention_heads": heads,
        "max_position_embeddings": 16,
        "hidden_act": pick(rng, "gelu", "gelu_new", "relu"),
        "type_vocab_size": int(rng.integers(1, 4)),
        "layer_norm_eps": pick(rng, 1e-12, 1e-5),
        **sizes(rng),
    }


def bert(rng: np.random.Generator) -> Network:
    return t.BertForMaskedLM(t.BertConfig(**bert_sizes(rng)))


def _any_head(rng: np.random.Generator, name: str, values: dict) -> Network:
    """An encoder with one of three heads."""
    task = pick(rng, "MaskedLM", "SequenceClassification", "TokenClassification")
    values |= {"num_labels": int(rng.integers(2, 5)), "pad_token_id": 0}
    return getattr(t, f"{name}For{task}")(getattr(t, f"{name}Config")(**values))


def ernie(rng: np.random.Generator) -> Network:
    tasks = {"use_task_id": bool(rng.integers(2)), "task_type_vocab_size": int(rng.integers(1, 4))}
    return _any_head(rng, "Ernie", bert_sizes(rng) | tasks)


def turned_sizes(rng: np.random.Generator) -> dict:
    values = bert_sizes(rng) | {"hidden_act": pick(rng, *ACTIVATIONS)}
    values["hidden_size"] = values["num_attention_heads"] * 2 * int(rng.integers(1, 4))
    turns = {"rope_type": pick(rng, "default", "linear", "proportional"), "rope_theta": 50.0}
    turns |= {} if turns["rope_type"] == "default" else {"factor": 2.0}
    return values | {"rope_parameters": pick(rng, None, turns)}


def nomic_bert(rng: np.random.Generator) -> Network:
    d_head = {"head_dim": pick(rng, None, 2, 6)}
    return _any_head(rng, "NomicBert", turned_sizes(rng) | d_head)


def eurobert(rng: np.random.Generator) -> Network:
    """With a head for masked words, or as a sentence encoder; attention may have biases."""
    config = llama_sizes(rng) | {"pad_token_id": 0, "hidden_act": pick(rng, *ACTIVATIONS)}
    config |= {f"{of}_bias": bool(rng.integers(2)) for of in ("attention", "mlp")}
    config |= {"rms_norm_eps": pick(rng, 1e-5, 1e-3), "head_dim": pick(rng, 4, 6)}
    turns = {"rope_type": pick(rng, "linear", "dynamic"), "rope_theta": 50.0, "factor": 2.0}
    config["rope_parameters"] = pick(rng, config["rope_parameters"], turns)
    return pick(rng, t.EuroBertForMaskedLM, t.EuroBertModel)(t.EuroBertConfig(**config))


def gte(rng: np.random.Generator) -> Network:
    values = turned_sizes(rng)
    values["type_vocab_size"] = int(rng.integers(0, 3))
    return _any_head(rng, "Gte", values)


def roberta(rng: np.random.Generator) -> Network:
    kinds = (t.RobertaConfig, t.RobertaForMaskedLM), (t.XLMRobertaConfig, t.XLMRobertaForMaskedLM)
    config, model = pick(rng, *kinds, (t.CamembertConfig, t.CamembertForMaskedLM))
    values = bert_sizes(rng)
    padding = int(rng.integers(0, 4))  # here no word of the vocabulary: it is in no text
    values["vocab_size"] += padding + 1
    return model(config(**values, pad_token_id=padding))


def deberta(rng: np.random.Generator) -> Network:
    """With any head. A text has at most 9 tokens: further ones than some distances reach."""
    kinds = [["c2p"], ["p2c"], ["c2p", "p2c"], "p2c|c2p", "C2P | p2c", "", None]
    farthest = int(rng.integers(6, 16))
    values = bert_sizes(rng) | {
        "hidden_act": pick(rng, *ACTIVATIONS),
        "type_vocab_size": int(rng.integers(0, 3)),
        "relative_attention": bool(rng.integers(5)),
        "pos_att_type": kinds[int(rng.integers(len(kinds)))],
        "position_buckets": pick(rng, -1, 0, 2, 3, 4, 7, 8),
        "max_relative_positions": pick(rng, -1, farthest, farthest),
        "norm_rel_ebd": pick(rng, "none", "layer_norm", "x|Layer_Norm"),
        "share_att_key": bool(rng.integers(2)),
        "position_biased_input": bool(rng.integers(2)),
        "pooler_hidden_act": pick(rng, "gelu", "tanh", "relu"),
        "legacy": bool(rng.integers(2)),
    }
    return _any_head(rng, "DebertaV2", values)


def mpnet(rng: np.random.Generator) -> Network:
    values = bert_sizes(rng)
    del values["type_vocab_size"]
    values |= {"vocab_size": values["vocab_size"] + 1, "num_labels": int(rng.integers(2, 5))}
    task = pick(rng, "MaskedLM", "SequenceClassification", "TokenClassification")
    return getattr(t, f"MPNetFor{task}")(t.MPNetConfig(**values))


def distilbert(rng: np.random.Generator) -> Network:
    heads = int(rng.integers(1, 4))
    return t.DistilBertForMaskedLM(
        t.DistilBertConfig(
            dim=heads * int(rng.integers(1, 6)),
            n_layers=int(rng.integers(1, 4)),
            n_heads=heads,
            hidden_dim=int(rng.integers(1, 12)),
            max_position_embeddings=10,
            activation=pick(rng, "gelu", "relu"),
            sinusoidal_pos_embds=bool(rng.integers(2)),
            **sizes(rng),
        )
    )


def classifier(rng: np.random.Generator) -> Network:
    task = pick(rng, "ForSequenceClassification", "ForTokenClassification")
    kind = pick(rng, "Bert", "Roberta", "DistilBert")
    model = {"Bert": bert, "Roberta": roberta, "DistilBert": distilbert}[kind](rng)
    model.config.num_labels = int(rng.integers(2, 5))
    return getattr(t, kind + task)(getattr(t, f"{kind}Config")(**model.config.to_dict()))


def decoder_classifier(rng: np.random.Generator) -> Network:
    """A decoder that gives the class of a text: the logits of its last token."""
    kinds = {"Llama": llama, "Qwen3": qwen3, "Mistral": mistral, "GPT2": gpt2, "Qwen2": qwen2}
    kinds |= {"Phi": phi, "Phi3": phi3, "GPTNeoX": gpt_neox, "Mixtral": mixtral, "OPT": opt}
    kind = pick(rng, *kinds)
    config = kinds[kind](rng).config
    config.num_labels, config.pad_token_id = int(rng.integers(2, 5)), None
    return getattr(t, f"{kind}ForSequenceClassification")(config)


def electra(rng: np.random.Generator) -> Network:
    values = bert_sizes(rng)
    size = pick(rng, values["hidden_size"], int(rng.integers(1, 9)))
    labels = int(rng.integers(2, 5))
    task = pick(rng, "MaskedLM", "SequenceClassification", "TokenClassification")
    config = t.ElectraConfig(**values, embedding_size=size, num_labels=labels)
    return getattr(t, f"ElectraFor{task}")(config)


def albert(rng: np.random.Generator) -> Network:
    groups = int(rng.integers(1, 3))
    values = bert_sizes(rng) | {
        "num_hidden_layers": groups + int(rng.integers(0, 3)),
        "num_hidden_groups": groups,
        "inner_group_num": int(rng.integers(1, 3)),
        "embedding_size": int(rng.integers(1, 9)),
        "num_labels": int(rng.integers(2, 5)),
    }
    task = pick(rng, "MaskedLM", "SequenceClassification", "TokenClassification")
    return getattr(t, f"AlbertFor{task}")(t.AlbertConfig(**values))


def esm(rng: np.random.Generator) -> Network:
    values = bert_sizes(rng)
    del values["hidden_act"], values["type_vocab_size"]
    kind, words = pick(rng, "rotary", "rotary", "absolute"), values["vocab_size"]
    values |= {
        "hidden_size": values["num_attention_heads"] * 2 * int(rng.integers(1, 4)),
        "vocab_size": words + 1,
        "pad_token_id": words,  # in no text
        "position_embedding_type": kind,
        "max_position_embeddings": words + 12,
        "emb_layer_norm_before": bool(rng.integers(2)),
        "token_dropout": bool(rng.integers(2)),
        "mask_token_id": int(rng.integers(words)),
        "num_labels": int(rng.integers(2, 5)),
    }
    task = pick(rng, "MaskedLM", "SequenceClassification", "TokenClassification")
    return getattr(t, f"EsmFor{task}")(t.EsmConfig(**values))


def modernbert_sizes(rng: np.random.Generator) -> dict:
    """The sizes and choices of ModernBERT's encoder and decoder."""
    config = bert_sizes(rng) | dict.fromkeys(TOKENS_OF_MODERNBERT)
    for name in ("hidden_act", "type_vocab_size", "layer_norm_eps"):
        del config[name]
    config["hidden_size"] = config["num_attention_heads"] * 2 * int(rng.integers(1, 4))
    config |= {f"{of}_bias": bool(rng.integers(2)) for of in MODERNBERT_BIASES}
    return config | {
        "hidden_activation": pick(rng, "gelu", "relu", "silu"),
        "classifier_activation": pick(rng, "gelu", "relu"),
        "layer_types": pick(rng, None, ["full_attention"] * config["num_hidden_layers"]),
        "norm_eps": pick(rng, 1e-12, 1e-5),
    }


def modernbert(rng: np.random.Generator) -> Network:
    config = modernbert_sizes(rng) | {
        "classifier_pooling": pick(rng, "cls", "mean"),
        "local_attention": pick(rng, 20, 40),
        "num_labels": int(rng.integers(2, 5)),
    }
    task = pick(rng, "MaskedLM", "SequenceClassification", "TokenClassification")
    return getattr(t, f"ModernBertFor{task}")(t.ModernBertConfig(**config))


def modernbert_decoder(rng: np.random.Generator) -> Network:
    config = modernbert_sizes(rng) | dict.fromkeys(TOKENS_OF_MODERNBERT, 0)
    linear = {"rope_type": "linear", "rope_theta": 50.0, "factor": 2.0}
    near = {"rope_type": "default", "rope_theta": pick(rng, 10.0, 1e4)}
    by_kind = {"full_attention": linear, "sliding_attention": near}
    config |= {
        "local_attention": int(rng.integers(2, 20)),
        "layer_types": layer_kinds(rng, config["num_hidden_layers"]),
        "global_attn_every_n_layers": pick(rng, 1, 2, 3),
        "rope_parameters": pick(rng, None, by_kind),
        "tie_word_embeddings": bool(rng.integers(2)),
    }
    return t.ModernBertDecoderForCausalLM(t.ModernBertDecoderConfig(**config))


TOKENS_OF_MODERNBERT = [f"{of}_token_id" for of in ("pad", "bos", "eos", "cls", "sep")]
MODERNBERT_BIASES = ("norm", "attention", "mlp", "classifier", "decoder")


def image_sizes(rng: np.random.Generator) -> dict:
    """Of a model that sees: sizes, and the levels of its image processor."""
    heads, n_channels = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    levels = {}
    if rng.integers(2):  # else as without a preprocessor_config.json
        levels = {
            "image_mean": rng.uniform(0.2, 0.8, n_channels).tolist(),
            "image_std": rng.uniform(0.2, 0.8, n_channels).tolist(),
        }
    return {
        "hidden_size": heads * int(rng.integers(1, 5)),
        "num_hidden_layers": int(rng.integers(1, 4)),
        "num_attention_heads": heads,
        "hidden_act": pick(rng, *ACTIVATIONS),
        "layer_norm_eps": pick(rng, 1e-12, 1e-3),
        "num_channels": n_channels,
        "num_labels": int(rng.integers(2, 6)),
        **levels,
    }


def side(rng: np.random.Generator, patch: int) -> int:
    """The side of an image, of some patches and of pixels that fill none."""
    return patch * int(rng.integers(1, 4)) + int(rng.integers(patch))


def vit(rng: np.random.Generator) -> Network:
    config, patch = image_sizes(rng), [int(rng.integers(1, 4)) for _ in range(2)]
    config |= {
        "intermediate_size": int(rng.integers(1, 12)),
        "image_size": [side(rng, part) for part in patch],
        "patch_size": patch,
        "qkv_bias": bool(rng.integers(2)),
    }
    return t.ViTForImageClassification(t.ViTConfig(**config))


def dinov2(rng: np.random.Generator) -> Network:
    config, patch = image_sizes(rng), int(rng.integers(1, 4))
    size = side(rng, patch)
    config |= {
        "mlp_ratio": int(rng.integers(1, 5)),
        "image_size": pick(rng, size, [size, size]),
        "patch_size": pick(rng, patch, [patch, patch]),
        "qkv_bias": bool(rng.integers(2)),
        "use_swiglu_ffn": bool(rng.integers(2)),
        "use_mask_token": bool(rng.integers(2)),
        "layerscale_value": 0.5,
        "drop_path_rate": pick(rng, 0.0, 0.2),
        "apply_layernorm": bool(rng.integers(2)),
    }
    return t.Dinov2ForImageClassification(t.Dinov2Config(**config))


def of_two_parts(rng: np.random.Generator) -> dict:
    """A config with a part that sees, which is drawn, and one that reads."""
    sees, patch = image_sizes(rng), int(rng.integers(1, 4))
    of_both = {k: sees.pop(k) for k in ("num_labels", "image_mean", "image_std") if k in sees}
    sees |= {"patch_size": patch, "image_size": side(rng, patch)}
    sees |= {"intermediate_size": int(rng.integers(1, 12))}
    reads = {"hidden_size": 2, "num_attention_heads": 1, "num_hidden_layers": 1, **sizes(rng)}
    return of_both | {"vision_config": sees, "text_config": reads}


def siglip(rng: np.random.Generator) -> Network:
    config = of_two_parts(rng)
    config["vision_config"] |= {"vision_use_head": bool(rng.integers(2))}
    return t.SiglipForImageClassification(t.SiglipConfig(**config))


def clip(rng: np.random.Generator) -> Network:
    config = of_two_parts(rng) | {"projection_dim": 3, "logit_scale_init_value": 1.0}
    config["vision_config"] |= {"projection_dim": 3}
    return t.CLIPForImageClassification(t.CLIPConfig(**config))


def sentence_encoder(rng: np.random.Generator) -> Network:
    mode = pick(rng, "cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens")
    modules = [{"type": "Transformer"}, {"type": "Pooling", f"pooling_mode_{mode}": True}]
    modules += pick(rng, [], [{"type": "Normalize"}])
    values = bert_sizes(rng) | {"sentence_modules": modules}
    return t.BertModel(t.BertConfig(**values))


def t5_sizes(rng: np.random.Generator) -> dict:
    return {
        "d_model": int(rng.integers(1, 9)),
        "d_kv": int(rng.integers(1, 5)),
        "d_ff": int(rng.integers(1, 9)),
        "num_layers": int(rng.integers(1, 4)),
        "num_decoder_layers": pick(rng, None, 1, 2),
        "num_heads": int(rng.integers(1, 4)),
        "feed_forward_proj": pick(rng, "relu", "gated-gelu", "gated-silu", "gelu"),
        "relative_attention_num_buckets": 2 * int(rng.integers(2, 9)),
        "relative_attention_max_distance": int(rng.integers(10, 20)),
        "layer_norm_epsilon": pick(rng, 1e-6, 1e-3),
        "decoder_start_token_id": 0,
        **sizes(rng),
    }


def t5(rng: np.random.Generator) -> Network:
    return t.T5ForConditionalGeneration(t.T5Config(**t5_sizes(rng)))


def mt5(rng: np.random.Generator) -> Network:
    model = t.MT5ForConditionalGeneration(t.MT5Config(**t5_sizes(rng)))
    return model if rng.integers(2) else make.untied(model)


def umt5(rng: np.random.Generator) -> Network:
    model = t.UMT5ForConditionalGeneration(t.UMT5Config(**t5_sizes(rng)))
    return model if rng.integers(2) else make.untied(model)


def flan_t5(rng: np.random.Generator) -> Network:
    return make.untied(t5(rng))


def bart_sizes(rng: np.random.Generator) -> dict:
    heads, others = (int(rng.integers(1, 4)) for _ in range(2))
    return {
        "d_model": heads * others * int(rng.integers(1, 4)),
        "max_position_embeddings": int(rng.integers(12, 20)),
        "encoder_layers": int(rng.integers(1, 4)),
        "decoder_layers": int(rng.integers(1, 4)),
        "encoder_attention_heads": heads,
        "decoder_attention_heads": others,
        "encoder_ffn_dim": int(rng.integers(1, 9)),
        "decoder_ffn_dim": int(rng.integers(1, 9)),
        "activation_function": pick(rng, *ACTIVATIONS),
        "scale_embedding": bool(rng.integers(2)),
        "decoder_start_token_id": 0,
        "forced_eos_token_id": None,
        "pad_token_id": 1,
        **sizes(rng),
    }


def bart(rng: np.random.Generator) -> Network:
    model = t.BartForConditionalGeneration(t.BartConfig(**bart_sizes(rng)))
    return model if rng.integers(2) else make.untied(model)


def mbart(rng: np.random.Generator) -> Network:
    return t.MBartForConditionalGeneration(t.MBartConfig(**bart_sizes(rng)))


def blenderbot(rng: np.random.Generator) -> Network:
    return t.BlenderbotForConditionalGeneration(t.BlenderbotConfig(**bart_sizes(rng)))


def marian(rng: np.random.Generator) -> Network:
    values = bart_sizes(rng)
    if rng.integers(2):  # a vocabulary for each language
        values |= {"share_encoder_decoder_embeddings": False}
        values["decoder_vocab_size"] = values["vocab_size"] + int(rng.integers(0, 4))
    return t.MarianMTModel(t.MarianConfig(**values))


def pegasus(rng: np.random.Generator) -> Network:
    return t.PegasusForConditionalGeneration(t.PegasusConfig(**bart_sizes(rng)))


def m2m_100(rng: np.random.Generator) -> Network:
    values = bart_sizes(rng)
    values |= {"d_model": values["d_model"] * 4, "vocab_size": values["vocab_size"] + 1}
    usual = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)  # of its sines; see `in_float64`
    try:
        return t.M2M100ForConditionalGeneration(t.M2M100Config(**values))
    finally:
        torch.set_default_dtype(usual)


# Every architecture: the functions above that draw a model.
MAKERS = [
    f
    for name, f in [*vars().items()]
    if name[0] != "_" and getattr(f, "__annotations__", {}).get("return") is Network
]
Maker = Callable[[np.random.Generator], Network]


def drawn(rng: np.random.Generator, model: Network) -> list[int]:
    """A prompt; without the padding token that RoBERTa counts no position for, and with one that
    is not masked. Of an image model, an image."""
    if make.sees(model):
        return rng.integers(0, 256, make.n_pixels(model)).tolist()
    ids = rng.integers(0, model.config.vocab_size, int(rng.integers(1, 10))).tolist()
    uncounted = is_bert(model) or model.config.model_type == "m2m_100"
    padding = model.config.pad_token_id if uncounted else None
    ids = [(padding + 1) % model.config.vocab_size if i == padding else i for i in ids]
    mask = getattr(model.config, "mask_token_id", None)
    return [*ids, int(mask == 0)] if {*ids} == {mask} else ids  # ESM divides by the others' number


def is_bert(model: Network) -> bool:
    """Whether it is BERT, or one of its kin."""
    return "bert" in type(model).__name__.lower() or isinstance(
        model,
        t.ElectraPreTrainedModel
        | t.ErniePreTrainedModel
        | t.GtePreTrainedModel
        | t.EsmPreTrainedModel
        | t.MPNetPreTrainedModel,
    )


@pytest.mark.parametrize("maker", MAKERS)
def test_random_configurations_agree(maker: Maker, tmp_path: Path) -> None:
    for n in range(2 * TIMES if maker in (vit, mamba2) else TIMES):
        rng = np.random.default_rng([n, *maker.__name__.encode()])
        torch.manual_seed(n)
        with in_float64():
            model = maker(rng)
        make.randomize(model)
        model.save_pretrained(tmp_path)
        ids = drawn(rng, model)
        with in_float64():
            reference = make.compute(model.double(), ids)
        graph = graph_of(checkpoint.load(tmp_path), reference)
        tolerance = TOLERANCE if maker.__name__ in IN_FLOAT32 else EXACT
        assert largest_gap(graph, reference) < tolerance, n


@pytest.mark.parametrize("maker", MAKERS)
def test_saved_model_goes_back_to_transformers(maker: Maker, tmp_path: Path) -> None:
    model = maker(np.random.default_rng(5))
    make.randomize(model)
    model.save_pretrained(tmp_path / "there")
    loaded = checkpoint.load(tmp_path / "there")
    checkpoint.save(loaded, tmp_path / "back")
    again = type(model).from_pretrained(tmp_path / "back")
    ids = drawn(np.random.default_rng(1), model)
    there, back = make.compute(model, ids), make.compute(again, ids)
    read_out = "logits" if "logits" in there else "vector"
    # torch itself does not repeat the bits of these, not even from their own files
    unsteady = is_bert(model) or model.config.model_type in ("granitemoehybrid", "gemma3n_text")
    if unsteady and not is_bert(model):
        kept = dict(again.named_parameters())
        for name, weight in model.named_parameters():  # Gemma 3n may not use that gain
            assert torch.equal(kept[name], weight) or name.endswith("correct_output_scale"), name
    rounding = TOLERANCE if unsteady else 0.0
    np.testing.assert_allclose(back[read_out], there[read_out], rtol=0, atol=rounding)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_and_shards(dtype, tmp_path: Path) -> None:
    model = gpt2(np.random.default_rng(0))
    make.randomize(model)
    model.to(getattr(torch, dtype)).save_pretrained(tmp_path, max_shard_size="1KB")
    assert (tmp_path / "model.safetensors.index.json").exists()
    ids = [1, 0, 1]
    reference = make.compute(model.to(torch.float32), ids)
    assert largest_gap(checkpoint.load(tmp_path).graph(ids), reference) < TOLERANCE


def test_pytorch_model_bin_is_read_without_pickle(tmp_path: Path) -> None:
    model = gpt2(np.random.default_rng(1))
    make.randomize(model)
    model.save_pretrained(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    torch.save(model.transformer.state_dict(), tmp_path / "pytorch_model.bin")
    ids = [1, 0, 1]
    if not model.config.tie_word_embeddings:
        torch.save(model.state_dict(), tmp_path / "pytorch_model.bin")
    assert largest_gap(checkpoint.load(tmp_path).graph(ids), make.compute(model, ids)) < TOLERANCE
    torch.save({"harm": Path}, tmp_path / "pytorch_model.bin")
    with pytest.raises(InputError, match="contains no weights"):
        checkpoint.load(tmp_path)


def with_own_places(model: Network) -> Network:
    """The same with tables of positions that are no sines."""
    with torch.no_grad():
        for stack in (model.model.encoder, model.model.decoder):
            stack.embed_positions.weight.normal_(0, 0.3)
    return model


def test_tables_that_are_no_sines_are_read(tmp_path: Path) -> None:
    for n in range(TIMES):
        rng = np.random.default_rng(n)
        with in_float64():
            model = pegasus(rng)
        make.randomize(model)
        with_own_places(model).save_pretrained(tmp_path)
        ids = drawn(rng, model)
        with in_float64():
            reference = make.compute(model.double(), ids)
        assert largest_gap(graph_of(checkpoint.load(tmp_path), reference), reference) < EXACT, n


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_rounded_sines_are_read(dtype: str, tmp_path: Path) -> None:
    model = pegasus(np.random.default_rng(0))
    make.randomize(model)
    model.to(getattr(torch, dtype)).save_pretrained(tmp_path)
    reference = make.compute(model.float(), [2, 0, 2])
    graph = graph_of(checkpoint.load(tmp_path), reference)
    assert largest_gap(graph, reference) < TOLERANCE
    checkpoint.save(checkpoint.load(tmp_path), tmp_path / "back")
    assert checkpoint.load(tmp_path / "back").spec == graph.spec


ODD = {
    "a head that is not the embedding": ("gpt2-untied", {"tie_word_embeddings": True}),
    "a part that is not rotated": ("llama", {"partial_rotary_factor": 0.5}),
    "a gemma3 of before rotary positions were by kind": (
        "gemma3",
        {
            "rope_parameters": None,
            "rope_theta": 77.0,
            "rope_local_base_freq": 5.0,
            "rope_scaling": {"rope_type": "linear", "factor": 3.0},
            "layer_types": None,
            "sliding_window_pattern": 2,
        },
    ),
    "a modernbert whose two kinds of layers are scaled": (
        "modernbert",
        {
            "rope_parameters": None,
            "rope_scaling": {"rope_type": "linear", "factor": 3.0},
            "global_rope_theta": 77.0,
            "local_rope_theta": 5.0,
        },
    ),
    "a modernbert's decoder whose two kinds of layers are scaled": (
        "modernbert-decoder",
        {"rope_scaling": {"rope_type": "yarn", "factor": 3.0, "rope_theta": 9.0}},
    ),
    "a gpt_oss in the older form": (
        "gpt_oss",
        {"rope_scaling": None, "rope_parameters": None, "rope_theta": 50.0},
    ),
    "a theta that gpt_neox does not read": ("gpt_neox", {"rope_theta": 7.0}),
    "a gpt_neox in the older form": (
        "gpt_neox",
        {"rope_parameters": None, "rope_theta": 7.0, "rotary_pct": 0.5, "rotary_emb_base": 77.0},
    ),
    "a share that is rounded up to the whole head": (
        "llama",
        {
            "rope_parameters": {"rope_type": "linear", "rope_theta": 10.0, "factor": 2.0},
            "partial_rotary_factor": 0.75,  # of four features: three, and four turn
        },
    ),
    "two accounts of rotary positions": (
        "qwen3",
        {"rope_scaling": {"rope_type": "default", "rope_theta": 77.0}},
    ),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_configs_equal_the_reference(name: str, tmp_path: Path) -> None:
    source, fields = ODD[name]
    folder = Path(shutil.copytree(GOLDEN / source, tmp_path / source))
    values = json.loads((folder / "config.json").read_text()) | fields
    (folder / "config.json").write_text(json.dumps(values))
    ids = [3, 1, 4, 1, 5]
    model = getattr(t, values["architectures"][0]).from_pretrained(folder)
    reference = make.compute(model, ids)
    assert largest_gap(checkpoint.load(folder).graph(ids), reference) < TOLERANCE


ROTARY = [path.parent.name for path in sorted(GOLDEN.glob("*/config.json"))
          if "rope_parameters" in path.read_text()]  # fmt: skip
# The reference itself fails, or the product refuses: their positions are by kind of layer
NOT_PROPORTIONAL = ("gpt_neox", "modernbert", "phi", "phi3", "phimoe", "stablelm")
NOT_PROPORTIONAL += ("modernbert-decoder", "persimmon")
NOT_PROPORTIONAL += ("gemma3", "gemma3n", "gemma4", "embeddinggemma", "ministral3", "olmo3")
NOT_PROPORTIONAL += ("eurobert", "gte", "nomic_bert", "gemma4_moe")


@pytest.mark.parametrize("name", [name for name in ROTARY if name not in NOT_PROPORTIONAL])
def test_proportional_positions_have_a_share_everywhere(name: str, tmp_path: Path) -> None:
    rng = np.random.default_rng([*name.encode()])
    for n in range(3):
        folder = Path(shutil.copytree(GOLDEN / name, tmp_path / f"{n}"))
        values = json.loads((folder / "config.json").read_text())
        turns = {"rope_type": "proportional", "rope_theta": pick(rng, 10.0, 1000.0)}
        turns["factor"] = pick(rng, 1.0, 2.0)
        share = {"partial_rotary_factor": pick(rng, 0.25, 0.5, 0.75, 1.0)}
        inside = bool(rng.integers(2))
        values |= {"rope_parameters": turns | (share if inside else {}), "rope_scaling": None}
        values |= {} if inside else share
        (folder / "config.json").write_text(json.dumps(values))
        model = t.AutoModelForCausalLM.from_pretrained(folder)
        ids = rng.integers(0, model.config.vocab_size, 7).tolist()
        with in_float64():  # but its frequencies
            reference = make.compute(model.double(), ids)
        assert largest_gap(checkpoint.load(folder).graph(ids), reference) < TOLERANCE, n


@pytest.mark.parametrize("said", [{"use_sliding_window": False}, {"sliding_window": None}])
@pytest.mark.parametrize("name", ["smollm3", "qwen2", "qwen3"])
def test_layers_that_slide_and_do_not_are_refused(name: str, said: dict, tmp_path: Path) -> None:
    """transformers slides in smollm3, whatever the switch says, and fails in the others."""
    folder = Path(shutil.copytree(GOLDEN / name, tmp_path / name))
    values = json.loads((folder / "config.json").read_text())
    values |= {"use_sliding_window": True, "sliding_window": 2} | said
    values["layer_types"] = ["sliding_attention"] * values["num_hidden_layers"]
    (folder / "config.json").write_text(json.dumps(values))
    with pytest.raises(
        InputError,
        match="layer_types has sliding_attention, but the config lacks use_sliding_window",
    ):
        checkpoint.load(folder)


def test_share_does_not_go_with_heads_that_turn_whole(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(GOLDEN / "llama", tmp_path / "llama"))
    values = json.loads((folder / "config.json").read_text())
    values["rope_parameters"] = {"rope_type": "linear", "rope_theta": 10.0, "factor": 2.0}
    (folder / "config.json").write_text(json.dumps(values | {"partial_rotary_factor": 0.5}))
    with pytest.raises(InputError, match=r"0\.5 does not fit 'linear', which rotates all features"):
        checkpoint.load(folder)
