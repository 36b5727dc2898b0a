"""OLMo 2 (OLMo Team 2024, section 3.1): Llama's parts with norms after each sublayer instead of
before it, one norm over all heads' queries, and one over all keys."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from cellformer.engine.cells.access import Mask
from cellformer.engine.cells.block import Block
from cellformer.engine.models import ops, parts
from cellformer.engine.models.architectures import llama
from cellformer.engine.models.architectures.llama import LlamaSpec, Turn, run, usual
from cellformer.engine.models.foreign import Config, Piece, Pieces, gains_by_head, head_of
from cellformer.engine.models.forward import Forward
from cellformer.engine.models.spec import ModelSpec

MODEL_TYPES = ("olmo2",)
EPS = "rms_norm_eps"
NEW = {"hidden_act": "silu"}


def attention(b: Forward, x: Block, turn: Turn | None, window: int | None) -> Block:
    """The sum of the outputs of all heads, [n_tokens, d_model]."""
    spec, attn = b.spec_as(LlamaSpec), b.at("attn")
    bound = None if spec.bound is None else attn.input("bound", spec.bound)
    group = spec.n_heads // spec.kv_heads  # heads that share keys
    of_all, mask = parts.of_all_heads(attn), Mask(window=window)
    kvs = [attn.at(f"kv{n}") for n in range(spec.kv_heads)]
    hs = [attn.at(f"h{n}") for n in range(spec.n_heads)]
    axes = ("d_model", "d_head")

    def ready(which: str, heads: Sequence[Forward], xs: Sequence[Block]) -> Sequence[Block]:
        """Every head's queries or keys, normed, bounded and turned: each [n_tokens, d_head]."""
        name = f"{which}_norm"
        xs = parts.norm_together(attn.at(name), heads, xs, name, name)
        if bound:
            both = zip(heads, xs, strict=True)
            xs = [h.block(f"bounded.{which}", ops.bounded, x, bound) for h, x in both]
        both = zip(heads, xs, strict=True)
        return [parts.rotate(h, f"rot_{which}", x, turn) for h, x in both] if turn else xs

    k = [parts.linear(kv, "k", x, "K", axes, spec.qkv_bias) for kv in kvs]
    v = [parts.project(kv, "v", x, spec.qkv_bias, bound) for kv in kvs]
    q = [parts.linear(h, "q", x, "Q", axes, spec.qkv_bias) for h in hs]
    keys, queries = ready("k", kvs, k), ready("q", hs, q)
    heads = [
        parts.attend(h, queries[n], keys[n // group], v[n // group], of_all, mask)
        for n, h in enumerate(hs)
    ]
    return parts.write_heads(b, heads, spec.out_bias)


forward = partial(run, attend=attention)


def read_config(c: Config) -> ModelSpec:
    c.assume(num_hidden_layers=32, max_position_embeddings=2048)
    return replace(usual(c), norms="after")


def pieces(spec: ModelSpec) -> Pieces:
    """Linear weights are [out, in]."""
    yield from llama.pieces(spec, llama.AFTER)
    yield from gains_of_all(spec)


def gains_of_all(spec: ModelSpec) -> Pieces:
    """The norms of queries and keys, cut into heads."""

    def gain(f: str, which: str, n: int) -> Piece:
        return head_of(f"{f}.{which}_norm.weight", n, spec.d_head, 0)

    yield from gains_by_head(spec, gain, leaf="")
