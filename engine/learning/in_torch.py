"""Training with torch (extra `train`): the same steps as `in_cells` makes, for large models.

The forward pass is the model's graph, which `torch_math` computes under autograd. With one thread
and a fixed seed, a run repeats bit for bit on one machine; another processor or number of threads
changes the last bits, and with them the run. So a trained model is published as its weights, never
as a seed.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from cellformer.engine.learning.decoders import Decoder
from cellformer.engine.learning.in_cells import blank_pass
from cellformer.engine.learning.optimizers import ADAM, DESCENT
from cellformer.engine.learning.recipe import IGNORED, Recipe
from cellformer.engine.learning.torch_math import Pass

F = torch.nn.functional


class Learner:
    """A model in training: it begins with given weights, and every step changes them in place."""

    def __init__(
        self,
        decoder: Decoder,
        recipe: Recipe,
        weights: Mapping[str, np.ndarray],
        dtype: torch.dtype = torch.float32,
    ) -> None:
        torch.set_num_threads(1)
        torch.use_deterministic_algorithms(True)
        self._recipe = recipe
        self._tensors = {
            name: torch.tensor(w, dtype=dtype, requires_grad=True) for name, w in weights.items()
        }
        self._logits = _Logits(decoder, self._tensors)
        self._optimizer = optimizer(recipe, [*self._tensors.values()])

    @property
    def weights(self) -> dict[str, np.ndarray]:
        """The weights by name: views, which the next step changes."""
        return {name: tensor.detach().numpy() for name, tensor in self._tensors.items()}

    def step(self, n: int, ids: np.ndarray) -> float:
        """Make step n, counted from 0, on ids [batch, length]; returns the mean loss before it, in
        nats."""
        logits = self._logits(np.maximum(ids[:, :-1], 0))
        loss: Any = self.loss(logits.flatten(0, 1), torch.tensor(ids[:, 1:]).reshape(-1))
        self._optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self._tensors.values(), self._recipe.clip)
        for group in self._optimizer.param_groups:
            group["lr"] = self._recipe.rate(n)
        self._optimizer.step()
        return float(loss.detach())

    def loss(self, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """The cross-entropy of logits [n, d_vocab] for the words that came, [n]."""
        return F.cross_entropy(logits, targets, ignore_index=IGNORED)


class _Logits:
    """The forward pass over batches of any length."""

    def __init__(self, decoder: Decoder, tensors: Mapping[str, torch.Tensor]) -> None:
        self._decoder, self._tensors = decoder, tensors
        self._passes: dict[int, Pass] = {}  # by how many tokens

    def __call__(self, ids: np.ndarray) -> torch.Tensor:
        """The logits of ids [batch, n_tokens]: [batch, n_tokens, d_vocab]."""
        rows = {name: w if w.ndim > 1 else w[None] for name, w in self._tensors.items()}
        n = ids.shape[1]
        if n not in self._passes:
            dtype = next(iter(rows.values())).dtype
            weights = {name: w.detach().numpy() for name, w in rows.items()}
            graph = blank_pass(self._decoder, weights, n)
            self._passes[n] = Pass(graph, "logits", ["tokens", *rows], dtype)
        return self._passes[n](rows | {"tokens": torch.as_tensor(ids)[..., None]})["logits"].values


def reader(
    decoder: Decoder, weights: Mapping[str, np.ndarray]
) -> Callable[[np.ndarray], np.ndarray]:
    """A function from ids [batch, n_tokens] to logits [batch, n_tokens, d_vocab]."""
    tensors = {name: torch.tensor(w, dtype=torch.float32) for name, w in weights.items()}
    found = _Logits(decoder, tensors)

    def logits(ids: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return np.asarray(found(ids).double().numpy())

    return logits


def optimizer(recipe: Recipe, tensors: list[torch.Tensor]) -> torch.optim.Optimizer:
    """The recipe's optimizer: matrices have weight decay, gains and biases do not."""
    groups = [
        {"params": [t for t in tensors if t.ndim > 1], "weight_decay": recipe.weight_decay},
        {"params": [t for t in tensors if t.ndim == 1], "weight_decay": 0.0},
    ]
    if recipe.method == ADAM:
        return torch.optim.AdamW(groups, lr=recipe.learning_rate, betas=recipe.betas)
    momentum = 0.0 if recipe.method == DESCENT else recipe.betas[0]
    return torch.optim.SGD(groups, lr=recipe.learning_rate, momentum=momentum)
