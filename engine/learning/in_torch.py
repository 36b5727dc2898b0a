"""Learning by torch (extra `train`): the same steps as `learning` makes by cells, for large models.

The forward pass of a GPT-2 style decoder is written here a second time, over whole batches and
under autograd; that it is the same function as the graph is tested. One thread and a fixed seed
repeat bit for bit on one machine; another processor or thread count changes the last bits, and with
them the run. So a trained model is shipped as its weights, never as a seed.
"""

from collections.abc import Callable, Mapping
from math import sqrt
from typing import Any

import numpy as np
import torch

from engine.learning.optimizers import ADAM, DESCENT
from engine.learning.recipe import IGNORED, Recipe
from engine.models.spec import ModelSpec

F = torch.nn.functional


class Learner:
    """What learns: it starts from weights by name, and every step changes those that it has."""

    def __init__(
        self,
        spec: ModelSpec,
        recipe: Recipe,
        weights: Mapping[str, np.ndarray],
        dtype: torch.dtype = torch.float32,
    ) -> None:
        torch.set_num_threads(1)
        torch.use_deterministic_algorithms(True)
        self._spec, self._recipe = spec, recipe
        self._tensors = {
            name: torch.tensor(w, dtype=dtype, requires_grad=True) for name, w in weights.items()
        }
        self._optimizer = optimizer(recipe, [*self._tensors.values()])

    @property
    def weights(self) -> dict[str, np.ndarray]:
        """The weights by name: views, which the next step changes."""
        return {name: tensor.detach().numpy() for name, tensor in self._tensors.items()}

    def step(self, n: int, ids: np.ndarray) -> float:
        """Make step n, counted from 0, on ids [batch, length]: the mean loss before it, in nats."""
        logits = forward(self._spec, self._tensors, torch.tensor(np.maximum(ids[:, :-1], 0)))
        targets = torch.tensor(ids[:, 1:]).reshape(-1)
        loss: Any = F.cross_entropy(
            logits.reshape(-1, self._spec.d_vocab), targets, ignore_index=IGNORED
        )
        self._optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self._tensors.values(), self._recipe.clip)
        for group in self._optimizer.param_groups:
            group["lr"] = self._recipe.rate(n)
        self._optimizer.step()
        return float(loss.detach())


def reader(
    spec: ModelSpec, weights: Mapping[str, np.ndarray]
) -> Callable[[np.ndarray], np.ndarray]:
    """What gives the logits of ids [batch, n_tokens]: [batch, n_tokens, d_vocab]."""
    tensors = {name: torch.tensor(w, dtype=torch.float32) for name, w in weights.items()}

    def logits(ids: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            found: np.ndarray = forward(spec, tensors, torch.as_tensor(ids)).double().numpy()
        return found

    return logits


def optimizer(recipe: Recipe, tensors: list[torch.Tensor]) -> torch.optim.Optimizer:
    """The recipe's method: matrices decay, gains and biases do not."""
    groups = [
        {"params": [t for t in tensors if t.ndim > 1], "weight_decay": recipe.weight_decay},
        {"params": [t for t in tensors if t.ndim == 1], "weight_decay": 0.0},
    ]
    if recipe.method == ADAM:
        return torch.optim.AdamW(groups, lr=recipe.learning_rate, betas=recipe.betas)
    momentum = 0.0 if recipe.method == DESCENT else recipe.betas[0]
    return torch.optim.SGD(groups, lr=recipe.learning_rate, momentum=momentum)


def forward(spec: ModelSpec, w: Mapping[str, Any], ids: Any) -> Any:
    """Logits [batch, n_tokens, d_vocab] of a GPT-2 style decoder over torch tensors by name."""
    batch, n = ids.shape

    def norm(x: Any, name: str) -> Any:
        return F.layer_norm(x, (spec.d_model,), w[f"{name}.w"], w[f"{name}.b"], spec.norm_eps)

    def heads(y: Any, attn: str, which: str) -> Any:
        W = torch.cat([w[f"{attn}.h{h}.W_{which}"] for h in range(spec.n_heads)], 1)
        b = torch.cat([w[f"{attn}.h{h}.b_{which}"] for h in range(spec.n_heads)])
        return (y @ W + b).view(batch, n, spec.n_heads, spec.d_head).transpose(1, 2)

    future = torch.ones(n, n, dtype=torch.bool).triu(1)
    x = F.embedding(ids, w["W_E"]) + w["W_pos"][:n]  # [batch, n_tokens, d_model]
    for layer in range(spec.n_layers):
        b = f"blocks.{layer}"
        y = norm(x, f"{b}.ln1")
        q, k, v = (heads(y, f"{b}.attn", which) for which in "QKV")  # [batch, head, n, d_head]
        scores = (q @ k.transpose(-1, -2) / sqrt(spec.d_head)).masked_fill(future, -torch.inf)
        z = (scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, n, -1)
        W_O = torch.cat([w[f"{b}.attn.h{h}.W_O"] for h in range(spec.n_heads)])
        x = x + z @ W_O + w[f"{b}.attn.b_O"]
        y = norm(x, f"{b}.ln2")
        post = F.gelu(y @ w[f"{b}.mlp.W_in"] + w[f"{b}.mlp.b_in"], approximate="tanh")
        x = x + post @ w[f"{b}.mlp.W_out"] + w[f"{b}.mlp.b_out"]
    return norm(x, "ln_final") @ w["W_E"].T
