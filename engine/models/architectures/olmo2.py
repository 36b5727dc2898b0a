"""OLMo 2 (OLMo Team 2024, section 3.1): Llama's parts with norms after each sublayer instead of
before it, one norm over all heads' queries, and one over all keys."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from cellformer.engine.cells.access import Mask
from cellformer.engine.cells.block import Block
from cellformer.engine.models import ops, parts
from cellformer.engine.models.architectures import llama
from cellformer.engine.models.architectures.llama import EPS, Turn, run, usual
from cellformer.engine.models.foreign import Config, Pieces, head_of
from cellformer.engine.models.forward import Forward
from cellformer.engine.models.spec import ModelSpec

__all__ = ["EPS", "MODEL_TYPES", "NEW", "forward", "pieces", "read_config"]

MODEL_TYPES = ("olmo2",)
NEW = {"hidden_act": "silu"}


def attention(b: Forward, x: Block, turn: Turn | None, window: int | None) -> Block:
    """The sum of what all heads write, [n_tokens, d_model]."""
    spec, attn = b.spec, b.at("attn")
    group = spec.n_heads // spec.kv_heads  # heads that share keys
    of_all, mask = parts.of_all_heads(attn), Mask(window=window)
    kvs = [attn.at(f"kv{n}") for n in range(spec.kv_heads)]
    hs = [attn.at(f"h{n}") for n in range(spec.n_heads)]
    axes = ("d_model", "d_head")
    keys = [parts.linear(kv, "k", x, "K", axes, spec.qkv_bias) for kv in kvs]
    values = [parts.linear(kv, "v", x, "V", axes, spec.qkv_bias) for kv in kvs]
    queries = [parts.linear(h, "q", x, "Q", axes, spec.qkv_bias) for h in hs]
    keys = turned(kvs, "k", norm_together(attn, kvs, "k_norm", keys), turn)
    queries = turned(hs, "q", norm_together(attn, hs, "q_norm", queries), turn)
    heads = [
        parts.attend(h, queries[n], keys[n // group], values[n // group], of_all, mask)
        for n, h in enumerate(hs)
    ]
    return parts.write_heads(b, heads, spec.out_bias)


def norm_together(
    attn: Forward, heads: Sequence[Forward], name: str, xs: Sequence[Block]
) -> list[Block]:
    """RMSNorm over the features of all heads together; each head is [n_tokens, d_head]."""
    ln = attn.at(name)
    eps = ln.input("eps", attn.spec.norm_eps)
    size = ln.block("root_mean_square", ops.root_mean_square_of_all, xs, eps)  # [n_tokens, 1]
    found = []
    for h, x in zip(heads, xs, strict=True):
        normalized = h.at(name).block("normalized", ops.divide_rows, x, size)
        found.append(h.at(name).block("out", ops.affine, normalized, h.weight(name, "d_head")))
    return found


def turned(heads: Sequence[Forward], which: str, xs: list[Block], turn: Turn | None) -> list[Block]:
    """Every head's queries, or keys, with rotary positions: each [n_tokens, d_head]."""
    if turn is None:
        return xs
    return [parts.rotate(h, f"rot_{which}", x, turn) for h, x in zip(heads, xs, strict=True)]


forward = partial(run, attend=attention)


def read_config(c: Config) -> ModelSpec:
    """OLMo 2's config."""
    c.assume(num_hidden_layers=32, max_position_embeddings=2048)
    return replace(usual(c), norms="after")


def pieces(spec: ModelSpec) -> Pieces:
    """Linear weights are [out, in]."""
    yield from llama.pieces(spec, llama.AFTER)
    yield from gains_of_all(spec)


def gains_of_all(spec: ModelSpec) -> Pieces:
    """The norms of queries and keys, cut into heads."""
    for layer in range(spec.n_layers):
        b, f = f"blocks.{layer}.attn", f"model.layers.{layer}.self_attn"
        for kind, count, name in (("h", spec.n_heads, "q_norm"), ("kv", spec.kv_heads, "k_norm")):
            for n in range(count):
                yield f"{b}.{kind}{n}.{name}", head_of(f"{f}.{name}.weight", n, spec.d_head, 0)
