"""Training: a GPT-2 style decoder fitted to sequences of ids, with torch (extra `train`).

The forward pass is written here a second time, over whole batches and under autograd; that it is
the same function as the graph is tested. One thread and a fixed seed repeat bit for bit on one
machine; another processor or thread count changes the last bits, and with them the run. So a
trained model is shipped as its weights, never as a seed.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import cos, pi, sqrt
from typing import Any

import numpy as np

from engine.cells.errors import InputError
from engine.models.architectures import gpt2
from engine.models.forward import weight_shapes
from engine.models.model import Model
from engine.models.spec import ModelSpec
from engine.models.tokenizer import Tokenizer

IGNORED = -1  # an id after the end of a sequence: neither read nor predicted
Batches = Callable[[np.random.Generator, int], np.ndarray]  # how many -> ids [batch, length]


@dataclass(frozen=True)
class Recipe:
    """How to train: AdamW (Loshchilov & Hutter 2019) with warm-up and cosine decay."""

    steps: int
    batch: int
    embed_scale: float  # standard deviation of the initial token embedding
    learning_rate: float = 3e-3
    warmup: int = 100  # steps
    flat: float = 0.0  # share of the steps before the decay begins
    last_rate: float = 0.02  # share of the learning rate that is left at the end
    betas: tuple[float, float] = (0.9, 0.98)
    weight_decay: float = 0.01  # of matrices
    clip: float = 1.0  # largest norm of the gradient
    scale: float = 0.02  # standard deviation of every other initial matrix
    residual_scale: float = 0.01  # of those that write into the residual stream

    def rate(self, step: int) -> float:
        """The learning rate of a step, from 0 to steps - 1."""
        if step < self.warmup:
            return self.learning_rate * (step + 1) / self.warmup
        start = max(self.warmup, round(self.flat * self.steps))
        done = max(0, step - start) / max(1, self.steps - start)
        return self.learning_rate * (
            self.last_rate + (1 - self.last_rate) * (1 + cos(pi * done)) / 2
        )


@dataclass(frozen=True)
class Progress:
    """One step of a training run: its mean loss in nats per token, and the ids it was made on."""

    step: int
    steps: int
    loss: float
    ids: np.ndarray  # [batch, length]
    weights: Mapping[str, Any]  # torch tensors by name, which the next step changes


def train(
    spec: ModelSpec, recipe: Recipe, batches: Batches, seed: int
) -> Iterator[Progress | dict[str, np.ndarray]]:
    """Yield each step's progress and, last, the trained weights by name, float32.

    Raises InputError where torch is missing.
    """
    torch = torch_()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    rng = np.random.default_rng(seed)
    weights = initial(spec, recipe, rng)
    tensors = {
        k: torch.tensor(v, dtype=torch.float32, requires_grad=True) for k, v in weights.items()
    }
    matrices = [t for t in tensors.values() if t.ndim > 1]
    vectors = [t for t in tensors.values() if t.ndim == 1]
    groups = [
        {"params": matrices, "weight_decay": recipe.weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=recipe.learning_rate, betas=recipe.betas)
    for step in range(recipe.steps):
        ids = batches(rng, recipe.batch)  # [batch, length]
        logits = forward(spec, tensors, torch.tensor(np.maximum(ids[:, :-1], 0)))
        targets = torch.tensor(ids[:, 1:]).reshape(-1)
        loss = torch.nn.functional.cross_entropy(
            logits.reshape(-1, spec.d_vocab), targets, ignore_index=IGNORED
        )
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(tensors.values(), recipe.clip)
        for group in optimizer.param_groups:
            group["lr"] = recipe.rate(step)
        optimizer.step()
        yield Progress(step, recipe.steps, float(loss.detach()), ids, tensors)
    yield arrays(tensors)


def as_tensors(weights: Mapping[str, Any]) -> dict[str, Any]:
    """Arrays, or tensors, as float32 tensors."""
    torch = torch_()
    return {name: torch.as_tensor(w, dtype=torch.float32) for name, w in weights.items()}


def arrays(tensors: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Torch tensors as arrays of their own, which no later step changes."""
    return {name: tensor.detach().numpy().copy() for name, tensor in tensors.items()}


def initial(spec: ModelSpec, recipe: Recipe, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Initial weights by name: gains 1, biases 0, matrices normal."""
    weights: dict[str, np.ndarray] = {}
    for name, shape in weight_shapes(gpt2.forward, spec).items():
        leaf = name.rpartition(".")[2]
        if len(shape) == 1:
            weights[name] = np.full(shape, float(leaf == "w"))
        else:
            writes = leaf in ("W_O", "W_out")
            scale = recipe.residual_scale if writes else recipe.scale
            scale = recipe.embed_scale if leaf == "W_E" else scale
            weights[name] = rng.normal(0, scale, shape)
    return weights


def trained(
    spec: ModelSpec, weights: Mapping[str, np.ndarray], words: Tokenizer, half: bool = False
) -> Model:
    """The model of trained weights, with the config that it is saved with as GPT-2 is.

    `half` rounds the weights to float16, which they are then saved as.
    """
    dtype = np.dtype(np.float16 if half else np.float32)
    rounded = {name: w.astype(dtype).astype(np.float64) for name, w in weights.items()}
    no_marks = {"bos_token_id": None, "eos_token_id": None}  # GPT-2's own are beyond the words
    config = {**gpt2.config(spec), **no_marks, "dtype": dtype.name}
    return Model(spec, rounded, words, architecture=gpt2.forward, config=config)


def forward(spec: ModelSpec, w: Mapping[str, Any], ids: Any) -> Any:
    """Logits [batch, n_tokens, d_vocab] of a GPT-2 style decoder over torch tensors by name."""
    torch = torch_()
    F = torch.nn.functional
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


def torch_() -> Any:
    """The torch library. Raises InputError where it is not installed."""
    try:
        import torch
    except ImportError:
        raise InputError("training needs torch: pip install 'cellformer[train]'") from None
    return torch
