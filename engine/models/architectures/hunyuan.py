"""Hunyuan's dense models (Tencent 2025): Llama with a norm of queries and keys after they turn."""

from dataclasses import replace
from functools import partial

from cellformer.engine.cells.access import Mask
from cellformer.engine.cells.block import Block
from cellformer.engine.models import parts
from cellformer.engine.models.architectures import llama
from cellformer.engine.models.architectures.llama import EPS, Turn, of_heads, run, usual
from cellformer.engine.models.foreign import Config, Piece, Pieces
from cellformer.engine.models.forward import Forward
from cellformer.engine.models.spec import ModelSpec

__all__ = ["EPS", "MODEL_TYPES", "NEW", "forward", "pieces", "read_config"]

MODEL_TYPES = ("hunyuan_v1_dense",)
NEW = {"hidden_act": "silu"}


def attention(b: Forward, x: Block, turn: Turn | None, window: int | None) -> Block:
    """The sum of what all heads write, [n_tokens, d_model]."""
    attn = b.at("attn")
    of_all = parts.of_all_heads(attn)
    gains = {which: attn.weight(f"{which}_norm", "d_head") for which in "qk"}

    def ready(h: Forward, which: str, x: Block) -> Block:
        assert turn
        turned = parts.rotate(h, f"rot_{which}", x, turn)  # [n_tokens, d_head]
        return parts.rms_norm(h.at(f"{which}_norm"), turned, h.spec.norm_eps, gains[which])

    return of_heads(b, x, of_all, Mask(window=window), ready)


forward = partial(run, attend=attention)


def read_config(c: Config) -> ModelSpec:
    """The config of the dense models. Their dynamic scaling is none: `alpha` raises the base."""
    c.assume(num_hidden_layers=32, max_position_embeddings=2048)
    turns = Config(c.path, c.look("rope_scaling") or c.look("rope_parameters") or {})
    if alpha := turns.get("alpha", float, 0.0):
        d_head = c.get("head_dim", int, 0) or c.divide("hidden_size", "num_attention_heads")
        theta = turns.get("rope_theta", float, c.get("rope_theta", float, 1e4))
        raised = {"rope_theta": theta * alpha ** (d_head / (d_head - 2))}
        c = c.otherwise(rope_scaling=None, rope_parameters=raised)
    return replace(usual(c), qk_norm=True)


def pieces(spec: ModelSpec) -> Pieces:
    """Llama's, with other names of the norms of queries and keys."""
    for layer in range(spec.n_layers):
        for ours, theirs in (("q_norm", "query_layernorm"), ("k_norm", "key_layernorm")):
            f = f"model.layers.{layer}.self_attn.{theirs}.weight"
            yield f"blocks.{layer}.attn.{ours}", Piece(f)
    yield from llama.pieces(spec)
