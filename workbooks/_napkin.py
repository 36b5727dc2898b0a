"""The sizes of the models that napkin counts, and their weights, as formulas and as arrays.

Sizes are as their makers published them; GPT-3's biases and norms are taken to be GPT-2's.
"""

from collections.abc import Mapping
from types import SimpleNamespace

import numpy as np
from numpy.typing import ArrayLike

MODELS = ("GPT-1", "GPT-2 small", "GPT-2 medium", "GPT-2 large", "GPT-2 XL", "GPT-3", "Llama 7B",
          "DeepSeek V3", "BERT base", "BERT large", "ViT-Tiny", "ViT-Base",
          "ViT-Large")  # fmt: skip
DEEPSEEK = MODELS.index("DeepSeek V3")
SIZES = {
    "d_vocab": (40478, *[50257] * 5, 32000, 129280, 30522, 30522, 0, 0, 0),
    "n_ctx": (512, 1024, 1024, 1024, 1024, 2048, 2048, 163840, 512, 512, 197, 197, 197),
    "n_layers": (12, 12, 24, 36, 48, 96, 32, 61, 12, 24, 12, 12, 24),
    "d_model": (768, 768, 1024, 1280, 1600, 12288, 4096, 7168, 768, 1024, 192, 768, 1024),
    "n_heads": (12, 12, 16, 20, 25, 96, 32, 128, 12, 16, 3, 12, 16),
    "d_head": (64, 64, 64, 64, 64, 128, 128, 128, 64, 64, 64, 64, 64),
    "d_mlp": (3072, 3072, 4096, 5120, 6400, 49152, 11008, 18432, 3072, 4096, 768, 3072, 4096),
    "matrices": (2, 2, 2, 2, 2, 2, 3, 3, 2, 2, 2, 2, 2),
    "biases": (1, 1, 1, 1, 1, 1, 0, 0, 1, 1, 1, 1, 1),
    "vectors": (2, 2, 2, 2, 2, 2, 1, 1, 2, 2, 2, 2, 2),
    "outer": (0, *[1] * 12),
    "learned": (1, 1, 1, 1, 1, 1, 0, 0, 1, 1, 1, 1, 1),
    "tied": (1, 1, 1, 1, 1, 1, 0, 0, 1, 1, 1, 1, 1),
    "segments": (*[0] * 8, 2, 2, 0, 0, 0),
    "pooler": (*[0] * 8, 1, 1, 0, 0, 0),
    "patch": (*[0] * 10, 768, 768, 768),
    "classes": (*[0] * 10, 1000, 1000, 1000),
}
LATENT = {"r_Q": 1536, "r_KV": 512, "d_rope": 64}  # the low ranks of DeepSeek V3's attention
EXPERTS = {"moe": 58, "routed": 256, "used": 8, "shared": 1, "d_expert": 2048}
SIZES |= {
    k: tuple(np.where(np.arange(13) == DEEPSEEK, v, 0)) for k, v in (LATENT | EXPERTS).items()
}
LABELS = {
    "matrices": "MLP matrices (3: gated)", "biases": "biases (1: yes)",
    "vectors": "vectors of a norm (2: with bias)", "outer": "norms outside the layers",
    "learned": "positions are learned (1: yes)", "tied": "unembedding is tied (1: yes)",
    "segments": "segments (BERT)", "pooler": "pooler (BERT; 1: yes)",
    "patch": "numbers in a patch (ViT)", "classes": "classes of the head (ViT)",
    "r_Q": "r_Q: low rank of Q", "r_KV": "r_KV: low rank of K and V",
    "d_rope": "d_rope: rotated part of Q and K", "moe": "layers with experts",
    "routed": "routed experts", "used": "of these used for a token", "shared": "shared experts",
    "bQKVO": "attention biases", "mlp": "MLP", "expert": "one expert",
    "gate": "router to the experts", "norm": "norms in a layer", "embed": "token embedding",
    "place": "positions, segments, patches", "attn": "attention", "mlps": "MLPs and experts",
    "norms": "norms", "out": "unembedding, pooler, head", "total": "total",
    "idle": "experts left out for a token", "active": "used for one token",
    "millions": "total, millions", "billions": "total, billions",
    "rule": "12 · n_layers · d_model²", "r_total": "rule / total",
    "r_layers": "rule / attention and MLPs", "r_active": "rule / used for one token",
    "ends": "share of W_E and W_U, both kept",
}  # fmt: skip
PARTS = ("embed", "place", "attn", "mlps", "norms", "out")
LABELS |= {f"{part}_share": f"share: {LABELS[part]}" for part in PARTS}
# by table: formulas by name, with the names of the cells that they read
FORMULAS = {
    "layer": {
        "W_Q": "IF({r_Q}=0,{d_model},{r_Q})*{n_heads}*({d_head}+{d_rope})+{d_model}*{r_Q}",
        "W_K": "IF({r_KV}=0,{d_model},{r_KV})*{n_heads}*{d_head}+{d_model}*({r_KV}+{d_rope})",
        "W_V": "IF({r_KV}=0,{d_model},{r_KV})*{n_heads}*{d_head}",
        "W_O": "{n_heads}*{d_head}*{d_model}",
        "bQKVO": "{biases}*(3*{n_heads}*{d_head}+{d_model})",
        "mlp": "{matrices}*{d_model}*{d_mlp}+{biases}*(({matrices}-1)*{d_mlp}+{d_model})",
        "expert": "{matrices}*{d_model}*{d_expert}",
        "gate": "{routed}*({d_model}+1)",
        "norm": "2*{vectors}*{d_model}+{r_Q}+{r_KV}",
    },
    "parts": {
        "embed": "{d_vocab}*{d_model}",
        "place": "({learned}*{n_ctx}+{segments}+IF({patch}=0,0,{patch}+2))*{d_model}",
        "attn": "{n_layers}*({W_Q}+{W_K}+{W_V}+{W_O}+{bQKVO})",
        "mlps": "({n_layers}-{moe})*{mlp}+{moe}*(({routed}+{shared})*{expert}+{gate})",
        "norms": "{n_layers}*{norm}+{outer}*{vectors}*{d_model}",
        "out": "(1-{tied})*{d_vocab}*{d_model}+({pooler}*{d_model}+{classes})*({d_model}+1)",
    },
    "totals": {
        "total": "{embed}+{place}+{attn}+{mlps}+{norms}+{out}",
        "idle": "{moe}*({routed}-MIN({used},{routed}))*{expert}",
    },
    "active": {"active": "{total}-{idle}"},
    "shares": {f"{part}_share": f"{{{part}}}/{{total}}" for part in PARTS},
    "units": {"millions": "{total}/10^6", "billions": "{total}/10^9"},
    "rule": {"rule": "12*{n_layers}*{d_model}^2"},
    "ratios": {
        "r_total": "{rule}/{total}",
        "r_layers": "{rule}/({attn}+{mlps})",
        "r_active": "{rule}/{active}",
        "ends": "2*{d_vocab}*{d_model}/({total}+{tied}*{d_vocab}*{d_model})",
    },
}
LABELS = {key: key for key in (*SIZES, *FORMULAS["layer"])} | LABELS


def count(sizes: Mapping[str, ArrayLike] = SIZES) -> dict[str, np.ndarray]:
    """Every count by its name: [models]."""
    s = SimpleNamespace(**{k: np.array(v, float) for k, v in sizes.items()})
    d, width = s.d_model, s.n_heads * s.d_head
    c = SimpleNamespace(W_V=np.where(s.r_KV, s.r_KV, d) * width, W_O=width * d)
    c.W_Q = np.where(s.r_Q, s.r_Q, d) * (width + s.n_heads * s.d_rope) + d * s.r_Q
    c.W_K = c.W_V + d * (s.r_KV + s.d_rope)
    c.bQKVO = s.biases * (3 * width + d)
    c.mlp = s.matrices * d * s.d_mlp + s.biases * ((s.matrices - 1) * s.d_mlp + d)
    c.expert, c.gate = s.matrices * d * s.d_expert, s.routed * (d + 1)
    c.norm = 2 * s.vectors * d + s.r_Q + s.r_KV
    c.embed = s.d_vocab * d
    c.place = (s.learned * s.n_ctx + s.segments + np.where(s.patch, s.patch + 2, 0)) * d
    c.attn = s.n_layers * (c.W_Q + c.W_K + c.W_V + c.W_O + c.bQKVO)
    c.mlps = (s.n_layers - s.moe) * c.mlp + s.moe * ((s.routed + s.shared) * c.expert + c.gate)
    c.norms = s.n_layers * c.norm + s.outer * s.vectors * d
    c.out = (1 - s.tied) * c.embed + (s.pooler * d + s.classes) * (d + 1)
    c.total = sum(vars(c)[part] for part in PARTS)
    c.idle = s.moe * (s.routed - np.minimum(s.used, s.routed)) * c.expert
    c.active = c.total - c.idle
    c.millions, c.billions, c.rule = c.total / 1e6, c.total / 1e9, 12 * s.n_layers * d**2
    c.r_total, c.r_active = c.rule / c.total, c.rule / c.active
    c.r_layers, c.ends = c.rule / (c.attn + c.mlps), 2 * c.embed / (c.total + s.tied * c.embed)
    return vars(c) | {f"{part}_share": vars(c)[part] / c.total for part in PARTS}
