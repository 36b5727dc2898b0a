"""The sizes of the models that napkin counts, as their makers published them.

GPT-3's biases and norms are assumed to be as in GPT-2.
"""

from dataclasses import dataclass, fields
from functools import partial


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """The typed sizes of a model, row by row; the defaults are common to most models."""

    d_vocab: int
    n_ctx: int
    n_layers: int
    d_model: int
    n_heads: int
    d_head: int = 64
    d_mlp: int
    matrices: int = 2
    biases: int = 1
    vectors: int = 2
    outer: int = 1
    learned: int = 1
    tied: int = 1
    # BERT
    segments: int = 0
    pooler: int = 0
    # ViT
    patch: int = 0
    classes: int = 0
    # DeepSeek V3: the low ranks of its attention, and its experts
    r_Q: int = 0
    r_KV: int = 0
    d_rope: int = 0
    moe: int = 0
    routed: int = 0
    used: int = 0
    shared: int = 0
    d_expert: int = 0


LABELS = {field.name: field.name for field in fields(Sizes)} | {
    "matrices": "MLP matrices (3: gated)",
    "biases": "biases (1: yes)",
    "vectors": "vectors per norm (2: with bias)",
    "outer": "norms outside the layers",
    "learned": "positions are learned (1: yes)",
    "tied": "unembedding is tied (1: yes)",
    "segments": "segments (BERT)",
    "pooler": "pooler (BERT; 1: yes)",
    "patch": "numbers in a patch (ViT)",
    "classes": "classes of the head (ViT)",
    "r_Q": "r_Q: low rank of Q",
    "r_KV": "r_KV: low rank of K and V",
    "d_rope": "d_rope: rotated part of Q and K",
    "moe": "layers with experts",
    "routed": "routed experts",
    "used": "experts used for a token",
    "shared": "shared experts",
}


def usual(n_layers: int, d_model: int, n_heads: int, **others: int) -> Sizes:
    """A model whose MLP is four times as wide as its stream."""
    return Sizes(n_layers=n_layers, d_model=d_model, n_heads=n_heads, d_mlp=4 * d_model, **others)


gpt_2 = partial(usual, d_vocab=50257, n_ctx=1024)
bert = partial(usual, d_vocab=30522, n_ctx=512, segments=2, pooler=1)
# 14 · 14 patches of 16 · 16 pixels in three colours, and a class token
vit = partial(usual, d_vocab=0, n_ctx=14 * 14 + 1, patch=16 * 16 * 3, classes=1000)


SIZES = {
    "GPT-1": Sizes(
        d_vocab=40478, n_ctx=512, n_layers=12, d_model=768, n_heads=12, d_mlp=3072, outer=0
    ),
    "GPT-2 small": gpt_2(n_layers=12, d_model=768, n_heads=12),
    "GPT-2 medium": gpt_2(n_layers=24, d_model=1024, n_heads=16),
    "GPT-2 large": gpt_2(n_layers=36, d_model=1280, n_heads=20),
    "GPT-2 XL": gpt_2(n_layers=48, d_model=1600, n_heads=25),
    "GPT-3": Sizes(
        d_vocab=50257, n_ctx=2048, n_layers=96, d_model=12288, n_heads=96, d_head=128, d_mlp=49152
    ),
    "Llama 7B": Sizes(
        d_vocab=32000,
        n_ctx=2048,
        n_layers=32,
        d_model=4096,
        n_heads=32,
        d_head=128,
        d_mlp=11008,
        matrices=3,
        biases=0,
        vectors=1,
        learned=0,
        tied=0,
    ),
    "DeepSeek V3": Sizes(
        d_vocab=129280,
        n_ctx=163840,
        n_layers=61,
        d_model=7168,
        n_heads=128,
        d_head=128,
        d_mlp=18432,
        matrices=3,
        biases=0,
        vectors=1,
        learned=0,
        tied=0,
        r_Q=1536,
        r_KV=512,
        d_rope=64,
        moe=58,
        routed=256,
        used=8,
        shared=1,
        d_expert=2048,
    ),
    "BERT base": bert(n_layers=12, d_model=768, n_heads=12),
    "BERT large": bert(n_layers=24, d_model=1024, n_heads=16),
    "ViT-Tiny": vit(n_layers=12, d_model=192, n_heads=3),
    "ViT-Base": vit(n_layers=12, d_model=768, n_heads=12),
    "ViT-Large": vit(n_layers=24, d_model=1024, n_heads=16),
}
MODELS = tuple(SIZES)
