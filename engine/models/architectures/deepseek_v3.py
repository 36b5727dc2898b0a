"""DeepSeek-V3 (DeepSeek-AI 2024, section 2.1): latent attention, and GLM-4.5's experts. In V2
(section 2.1) shares are softmax of scores, and a group's score is its largest share.

Keys and values of all heads are computed from one short vector for each token, the latent, and so
are queries, from one of their own. Only some features of a key turn; they are the same for all
heads, and are read from the stream. A key is the sum of both, each in its own columns.
"""

from dataclasses import dataclass
from functools import partial
from math import log, sqrt

import numpy as np

from cellformer.engine.cells.access import Mask
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.errors import InputError
from cellformer.engine.models import ops, parts, rope
from cellformer.engine.models.architectures import glm4_moe
from cellformer.engine.models.architectures.glm4_moe import GroupedSpec, experts
from cellformer.engine.models.architectures.llama import Turn, run
from cellformer.engine.models.foreign import Config, Piece, Pieces, head_of, linear, mapped
from cellformer.engine.models.forward import Forward
from cellformer.engine.models.spec import ModelSpec

LITE = "glm4_moe_lite"
MODEL_TYPES = ("deepseek_v2", "deepseek_v3", LITE)
EPS = "rms_norm_eps"
UNREAD = ("model.layers.61.*",)  # of further tokens, in the models of its makers
NEW = glm4_moe.NEW | {"n_group": 1, "topk_group": 1, "q_lora_rank": 4, "kv_lora_rank": 4}
NEW |= {"qk_rope_head_dim": 2, "qk_nope_head_dim": 4, "v_head_dim": 4, "head_dim": 2}
# The reference's defaults
V3: dict[str, float] = {"num_hidden_layers": 61, "n_routed_experts": 256}
V3 |= {"first_k_dense_replace": 3, "n_group": 8, "topk_group": 4}
V3 |= {"moe_intermediate_size": 2048, "routed_scaling_factor": 2.5}
V2 = {"num_hidden_layers": 32, "n_routed_experts": 64, "n_shared_experts": 2}
V2 |= {"first_k_dense_replace": 0, "moe_intermediate_size": 1407}
GLM: dict[str, float] = {"num_hidden_layers": 47, "n_routed_experts": 64, "num_experts_per_tok": 4}
GLM |= {"moe_intermediate_size": 1536, "routed_scaling_factor": 1.8, "q_lora_rank": 768}
GLM |= {"qk_nope_head_dim": 192, "v_head_dim": 256}
LATENT_EPS = 1e-6  # of the latents' norms, whatever the config says


@dataclass(frozen=True, repr=False)
class LatentSpec(GroupedSpec):
    """GroupedSpec with the sizes of latent attention; d_head is d_still + d_turned."""

    d_still: int = 0  # features of a key that do not turn,
    d_turned: int = 0  # and those that do
    d_value: int = 0
    d_latent: int = 0  # of keys and values
    d_query: int = 0  # the latent of queries; 0: they read the stream
    turned_first: bool = False  # those that turn stand first here; in the file, they stand last


def attention(b: Forward, x: Block, turn: Turn | None, window: int | None) -> Block:
    """The sum of the outputs of all heads, [n_tokens, d_model]."""
    spec, attn = b.spec_as(LatentSpec), b.at("attn")
    assert turn
    of_all, bias = parts.of_all_heads(attn), spec.qkv_bias
    latent = normed(attn, "latent", "d_latent", x, bias)  # [n_tokens, d_latent]
    of_query, axis = x, "d_model"
    if spec.d_query:
        of_query, axis = normed(attn, "of_query", "d_query", x, bias), "d_query"
    still, turned, every = places(attn)
    shared = parts.linear(attn, "shared_k", x, "shared", ("d_model", "d_turned"), bias)
    shared = attn.block("placed_k", ops.linear, shared, turned)  # [n_tokens, d_head]
    heads = []
    for n in range(spec.n_heads):
        h = attn.at(f"h{n}")
        q = parts.linear(h, "q", of_query, "Q", (axis, "d_head"), bias=False)
        q = h.block("placed_q", ops.linear, q, every) if every else q  # [n_tokens, d_head]
        own = parts.linear(h, "own_k", latent, "K", ("d_latent", "d_still"), bias=False)
        own = h.block("placed_k", ops.linear, own, still)  # [n_tokens, d_head]
        k = h.block("k", ops.add, [own, shared])  # [n_tokens, d_head]
        v = parts.linear(h, "v", latent, "V", ("d_latent", "d_value"), bias=False)
        q, k = parts.rotate(h, "rot_q", q, turn), parts.rotate(h, "rot_k", k, turn)
        heads.append(parts.attend(h, q, k, v, of_all, Mask(window=window)))
    return parts.write_heads(b, heads, spec.out_bias)


def normed(attn: Forward, name: str, axis: str, x: Block, bias: bool) -> Block:
    """A latent: a linear map of the stream to `axis`, with RMSNorm."""
    short, ln = parts.linear(attn, f"{name}.short", x, name, ("d_model", axis), bias), attn.at(name)
    eps = ln.input("fixed_eps", LATENT_EPS)
    scale = ln.block("scale", ops.root_mean_square, short, eps)  # [n_tokens, 1]
    normalized = ln.block("normalized", ops.divide_rows, short, scale)  # [n_tokens, axis]
    return ln.block("out", ops.affine, normalized, ln.weight("w", axis))  # [n_tokens, axis]


def places(attn: Forward) -> tuple[Block, Block, Block | None]:
    """The columns of a key for the features without rotation, and for those with it: [d_still,
    d_head] and [d_turned, d_head]; and of a query for all, if they stand elsewhere: [d_head,
    d_head]."""
    spec = attn.spec_as(LatentSpec)
    every = np.roll(np.eye(spec.d_head), spec.d_turned if spec.turned_first else 0, axis=1)
    still = attn.input("still_columns", every[: spec.d_still], ("d_still", "d_head"))
    turned = attn.input("turned_columns", every[spec.d_still :], ("d_turned", "d_head"))
    if not spec.turned_first:
        return still, turned, None
    return still, turned, attn.input("all_columns", every, ("d_head", "d_head"))


forward = partial(run, attend=attention, write=experts)


def read_config(c: Config) -> ModelSpec:
    """The configs of DeepSeek-V2 and V3."""
    kind = c.values["model_type"]
    second, lite = kind == "deepseek_v2", kind == LITE
    length, eps = 2048 if second else 202752 if lite else 4096, 1e-5 if lite else 1e-6
    own = V2 if second else GLM if lite else V3
    c.assume(**own, rms_norm_eps=eps, max_position_embeddings=length)
    if second:
        c.refuse("mlp_bias", False, "MLPs with biases are not supported")
        if c.get("topk_method", str, "greedy") == "greedy":
            c = c.otherwise(n_group=1, topk_group=1)
        c = c.otherwise(norm_topk_prob=False)  # its reference does not read it
    neighbours = c.get("rope_interleave", bool, True) or second
    c.ignore("num_key_value_heads", "head_dim", "qk_head_dim", "ep_size", "moe_layer_freq")
    c.ignore("topk_method", "scoring_func", "seq_aux", "aux_loss_alpha", "num_nextn_predict_layers")
    d_turned, d_still = c.get("qk_rope_head_dim", int, 64), c.get("qk_nope_head_dim", int, 128)
    if d_turned % 2:
        raise InputError(f"{c.path}: qk_rope_head_dim is {d_turned}, but must be even")
    n_heads = c.get("num_attention_heads", int)
    spec = glm4_moe.read_config(
        c.otherwise(
            head_dim=d_turned, partial_rotary_factor=1.0, use_qk_norm=False,
            num_key_value_heads=n_heads,
        )
    )  # fmt: skip
    rotary = rope.read(c, d_turned)
    if rotary.factor != 1:
        raise InputError(f"{c.path}: mscale and mscale_all_dim must be equal, as in DeepSeek-V3")
    first = not neighbours or d_still % 2 > 0
    speeds = rotary.frequencies or tuple(rope.frequency(rotary.theta, d_turned).tolist())
    return LatentSpec.of(
        spec,
        d_head=d_still + d_turned,
        d_rotary=d_turned if first else None,
        rope_frequencies=speeds if first else (0.0,) * (d_still // 2) + speeds,
        rope_neighbours=neighbours,
        turned_first=first,
        sqrt_d_head=sqrt(d_still + d_turned) / grown(c) ** 2,
        out_bias=spec.qkv_bias,
        softmax=second,
        choice_bias=not second,
        **({"layers": glm4_moe.mlp_layers(c, spec.n_layers)} if lite else {}),
        n_counted=1 if second else 2,
        d_still=d_still,
        d_turned=d_turned,
        d_value=c.get("v_head_dim", int, 128),
        d_latent=c.get("kv_lora_rank", int, 512),
        d_query=c.optional("q_lora_rank", int, 1536) or 0,
    )


def grown(c: Config) -> float:
    """The factor by which yarn multiplies queries, and keys."""
    turns = Config(c.path, rope.said(c))
    all_of, factor = turns.get("mscale_all_dim", float, 0.0), turns.get("factor", float, 1.0)
    return 0.1 * all_of * log(factor) + 1 if factor > 1 else 1.0


def pieces(spec: LatentSpec) -> Pieces:
    """Linear weights are [out, in]; keys and values of a head stand one behind the other."""
    both = spec.d_still + spec.d_value
    for layer in range(spec.n_layers):
        b, f = f"blocks.{layer}.attn", f"model.layers.{layer}.self_attn"
        query, up = f"{f}.q_b_proj" if spec.d_query else f"{f}.q_proj", f"{f}.kv_b_proj"
        yield from linear(b, f, (("of_query", "q_a_proj"),))
        yield f"{b}.of_query.w", Piece(f"{f}.q_a_layernorm.weight")
        yield f"{b}.latent.w", Piece(f"{f}.kv_a_layernorm.weight")
        yield from mapped(b, "latent", f"{f}.kv_a_proj_with_mqa", 0, spec.d_latent)
        yield from mapped(b, "shared", f"{f}.kv_a_proj_with_mqa", 0, spec.d_turned, spec.d_latent)
        for n in range(spec.n_heads):
            h = f"{b}.h{n}"
            yield from mapped(h, "Q", query, n, spec.d_head)
            yield from mapped(h, "K", up, 0, spec.d_still, n * both)
            yield from mapped(h, "V", up, 0, spec.d_value, n * both + spec.d_still)
            yield f"{h}.W_O", head_of(f"{f}.o_proj.weight", n, spec.d_value, 1, turn=True)
    yield from glm4_moe.pieces(spec)
