"""Forward passes in plain torch, float64, with a hook at every activation: none of the engine's ops
or graphs. What `cellformer.engine.studies.patching` says is held to it."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from cellformer.engine import Model
from cellformer.engine.models.architectures.mixtral import MoeSpec

Hook = Callable[[str, Tensor], Tensor]  # an activation's name and values -> what is used of it
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": functional.relu,
    "silu": functional.silu,
    "gelu": functional.gelu,
    "gelu_tanh": lambda x: functional.gelu(x, approximate="tanh"),
    "relu2": lambda x: functional.relu(x) ** 2,
    "quick_gelu": lambda x: x * (1.702 * x).sigmoid(),
    "mish": functional.mish,
    "tanh": functional.tanh,
    "logistic": functional.sigmoid,
    "relu6": functional.relu6,
    "leaky_relu": functional.leaky_relu,
    "selu": functional.selu,
    "elu": functional.elu,
    "laplace": lambda x: 0.5 * (1 + ((x - 0.707107) / (0.282095 * 2**0.5)).erf()),
    "same": lambda x: x,
}


class Hooked:
    """A model of the decoders' kinds that tests patch, and of BERT's."""

    def __init__(self, model: Model) -> None:
        self.spec: Any = model.spec
        self.gemma = model.kind.startswith("gemma")
        self.own = model.kind in ("cellformer", "decoder")
        self.weights = {
            name: torch.tensor(np.asarray(w), dtype=torch.float64)
            for name, w in model.weights.items()
        }
        self.hook: Hook = lambda _, x: x

    def run(self, ids: Sequence[int], hook: Hook) -> Tensor:
        """The logits: [n_tokens, d_vocab]."""
        self.hook = hook
        spec, w = self.spec, self.weights
        self.places = torch.arange(len(ids))
        embed = w["W_E"][torch.tensor(ids)]
        x = hook("embed", embed * spec.d_model**0.5 if self.gemma else embed)
        if "W_pos" in w:
            x = x + w["W_pos"][self.places]
        if "W_segment" in w:
            x = x + w["W_segment"][0]
        if "ln_embed.w" in w:
            x = self.norm("ln_embed", x)
        for layer in range(spec.n_layers):
            x = self.layer(f"blocks.{layer}", x)
        x = hook("resid_final", x)
        if "head.W" in w:
            x = ACTIVATIONS[spec.head_activation](x @ w["head.W"] + w["head.b"])
        x = self.norm("ln_final", x) if "ln_final.w" in w else x
        logits = x @ (w["W_E"].T if spec.tied else w["W_U"]) + w.get("b_U", 0)
        cap = getattr(spec, "logit_cap", None)
        return logits if cap is None else torch.tanh(logits / cap) * cap

    def layer(self, b: str, x: Tensor) -> Tensor:
        after, both = self.spec.norm_after, getattr(self.spec, "norms", "") == "both"
        x = self.hook(f"{b}.resid_pre", x)
        wrote = self.attention(b, x if after else self.norm(f"{b}.ln1", x))
        wrote = self.hook(f"{b}.attn_out", wrote)
        x = self.hook(f"{b}.resid_mid", x + (self.norm(f"{b}.ln1_post", wrote) if both else wrote))
        x = self.norm(f"{b}.ln1", x) if after else x
        wrote = self.hook(f"{b}.mlp_out", self.mlp(b, x if after else self.norm(f"{b}.ln2", x)))
        x = x + (self.norm(f"{b}.ln2_post", wrote) if both else wrote)
        return self.norm(f"{b}.ln2", x) if after else x

    def norm(self, name: str, x: Tensor) -> Tensor:
        spec, w = self.spec, self.weights[f"{name}.w"]
        if spec.norm == "layer":
            return functional.layer_norm(
                x, x.shape[-1:], w, self.weights[f"{name}.b"], spec.norm_eps
            )
        return self.rms(x, w)

    def rms(self, x: Tensor, w: Tensor) -> Tensor:
        gain = 1 + w if self.gemma else w
        return functional.rms_norm(x, x.shape[-1:], gain, self.spec.norm_eps)

    def linear(self, path: str, which: str, x: Tensor) -> Tensor:
        return x @ self.weights[f"{path}.W_{which}"] + self.weights.get(f"{path}.b_{which}", 0)

    def attention(self, b: str, x: Tensor) -> Tensor:
        """The sum of the heads: [n_tokens, d_model]."""
        spec, total = self.spec, self.weights.get(f"{b}.attn.b_O", torch.tensor(0.0))
        n_shared = spec.n_kv_heads or spec.n_heads
        grouped = f"{b}.attn.kv0.W_K" in self.weights
        n_kv = n_shared if grouped else spec.n_heads
        kvs = [f"{b}.attn.{'kv' if grouped else 'h'}{n}" for n in range(n_kv)]
        keys = [self.turned(kv, "k", x) for kv in kvs]
        values = [self.hook(f"{kv}.v", self.linear(kv, "V", x)) for kv in kvs]
        for n in range(spec.n_heads):
            h, kv = f"{b}.attn.h{n}", n * n_kv // spec.n_heads
            pattern = self.pattern(b, self.turned(h, "q", x) @ keys[kv].T)
            z = self.hook(f"{h}.pattern", pattern) @ values[kv]
            total = total + self.hook(f"{h}.result", z @ self.weights[f"{h}.W_O"])
        return total

    def turned(self, path: str, which: str, x: Tensor) -> Tensor:
        """Queries or keys, normalized and rotated where the model does."""
        x = self.hook(f"{path}.{which}", self.linear(path, which.upper(), x))
        if self.spec.qk_norm:
            layer = path.rpartition(".")[0]
            x = self.rms(x, self.weights[f"{layer}.{which}_norm"])
        return self.hook(f"{path}.rot_{which}", self.rotated(x)) if self.rotary else x

    @property
    def rotary(self) -> bool:
        return bool(self.spec.position == "rotary")

    def rotated(self, x: Tensor) -> Tensor:
        half = x.shape[1] // 2
        speed = self.spec.rope_theta ** (-torch.arange(half, dtype=torch.float64) / half)
        angle = self.places[:, None] * speed
        cos, sin, (a, b) = angle.cos(), angle.sin(), x.split(half, 1)
        return torch.cat([a * cos - b * sin, b * cos + a * sin], 1)

    def pattern(self, b: str, scores: Tensor) -> Tensor:
        spec = self.spec
        scores = scores / (spec.d_head**0.5 if spec.sqrt_d_head is None else spec.sqrt_d_head)
        if cap := getattr(spec, "score_cap", None):
            scores = torch.tanh(scores / cap) * cap
        behind = self.places[:, None] - self.places
        window = spec.window(int(b.split(".")[1]))
        hidden = (behind < 0) & spec.causal
        hidden |= (behind >= window) if window else torch.tensor(False)
        return scores.masked_fill(hidden, -torch.inf).softmax(1)

    def mlp(self, b: str, x: Tensor) -> Tensor:
        spec, m = self.spec, f"{b}.mlp"
        if not isinstance(spec, MoeSpec):
            return self.linear(m, "out", self.hidden(m, x, torch.ones(len(x), 1)))
        share = (x @ self.weights[f"{m}.W_router"]).softmax(1)
        top, chosen = share.topk(spec.n_chosen, 1)
        share = torch.zeros_like(share).scatter(1, chosen, top / top.sum(1, keepdim=True))
        experts = [f"{m}.e{n}" for n in range(spec.n_experts)]
        return sum(
            self.linear(e, "out", self.hidden(e, x, share[:, n : n + 1]))
            for n, e in enumerate(experts)
        )

    def hidden(self, m: str, x: Tensor, share: Tensor) -> Tensor:
        act, gated = ACTIVATIONS[self.spec.activation], f"{m}.W_gate" in self.weights
        pre = self.linear(m, "in", x)
        post = act(self.linear(m, "gate", x)) * pre * share if gated else act(pre)
        return self.hook(f"{m}.post", post)


# --- patches --------------------------------------------------------------------------------


def recorded(model: Hooked, ids: Sequence[int]) -> tuple[dict[str, Tensor], Tensor]:
    """Every activation, and the logits."""
    seen: dict[str, Tensor] = {}

    def keep(name: str, x: Tensor) -> Tensor:
        return seen.setdefault(name, x)

    logits = model.run(ids, keep)
    return seen, logits


def patched(
    model: Hooked, ids: Sequence[int], other: dict[str, Tensor], name: str, row: int
) -> Tensor:
    """The logits if one row of one activation is the other sentence's."""
    return model.run(ids, lambda at, x: with_row(x, other[at], row) if at == name else x)


def with_row(x: Tensor, y: Tensor, row: int) -> Tensor:
    x = x.clone()
    x[row] = y[row]
    return x


def along(
    model: Hooked,
    ids: Sequence[int],
    other: dict[str, Tensor],
    sender: str,
    receiver: str,
    row: int,
) -> Tensor:
    """The logits if the receiver sees one row of the sender as in the other sentence, and nothing
    else does (Goldowsky-Dill et al. 2023): three passes."""
    own, _ = recorded(model, ids)
    seen: dict[str, Tensor] = {}

    def frozen(at: str, x: Tensor) -> Tensor:
        if at == sender:
            x = with_row(x, other[at], row)
        elif at.endswith((".result", "mlp_out")) and at != receiver:
            x = own[at]
        return seen.setdefault(at, x)

    model.run(ids, frozen)
    return model.run(ids, lambda at, x: seen[at] if at == receiver else x)
