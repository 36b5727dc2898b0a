"""Torch's steps over the graph, beside a forward pass written by hand: pairs in one run.

    python benchmarks/by_hand.py [--pairs 40]

The model has Shakespeare's sizes, the ids are random, float32, one thread. Both learners make the
same steps in turn, so that both meet the same load; prints processor time, and the losses' gap.
"""

import argparse
from math import sqrt
from statistics import median
from time import process_time
from typing import Any

import numpy as np
import torch

from cellformer.engine.learning import in_torch
from cellformer.workbooks import shakespeare

N_WORDS, WARM = 65, 3
F = torch.nn.functional


class ByHand(in_torch.Learner):
    """GPT-2's forward pass over torch's own layers: all heads in one product, a fused softmax."""

    def __init__(self, decoder: Any, *more: Any) -> None:
        super().__init__(decoder, *more)
        self._spec = decoder.spec
        self._logits = self._forward

    def _forward(self, ids: np.ndarray) -> torch.Tensor:
        spec, w, (batch, n) = self._spec, self._tensors, ids.shape

        def norm(x: Any, name: str) -> Any:
            return F.layer_norm(x, (spec.d_model,), w[f"{name}.w"], w[f"{name}.b"], spec.norm_eps)

        def heads(y: Any, attn: str, which: str) -> Any:
            W = torch.cat([w[f"{attn}.h{h}.W_{which}"] for h in range(spec.n_heads)], 1)
            b = torch.cat([w[f"{attn}.h{h}.b_{which}"] for h in range(spec.n_heads)])
            return (y @ W + b).view(batch, n, spec.n_heads, spec.d_head).transpose(1, 2)

        future = torch.ones(n, n, dtype=torch.bool).triu(1)
        x = F.embedding(torch.tensor(ids), w["W_E"]) + w["W_pos"][:n]
        for layer in range(spec.n_layers):
            b = f"blocks.{layer}"
            y = norm(x, f"{b}.ln1")
            q, k, v = (heads(y, f"{b}.attn", which) for which in "QKV")
            scores = (q @ k.mT / sqrt(spec.d_head)).masked_fill(future, -torch.inf)
            z = (scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, n, -1)
            W_O = torch.cat([w[f"{b}.attn.h{h}.W_O"] for h in range(spec.n_heads)])
            x = x + z @ W_O + w[f"{b}.attn.b_O"]
            y = norm(x, f"{b}.ln2")
            post = F.gelu(y @ w[f"{b}.mlp.W_in"] + w[f"{b}.mlp.b_in"], approximate="tanh")
            x = x + post @ w[f"{b}.mlp.W_out"] + w[f"{b}.mlp.b_out"]
        return norm(x, "ln_final") @ w["W_E"].T


def main() -> None:
    """The ratio of a step's time, over all pairs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=40)
    n_pairs = parser.parse_args().pairs
    run = shakespeare.RUN
    decoder, rng = run.decoder(N_WORDS), np.random.default_rng(0)
    weights = decoder.initial(run.recipe, rng)
    learners = [kind(decoder, run.recipe, weights) for kind in (ByHand, in_torch.Learner)]
    seconds, gap = [], 0.0
    for n in range(WARM + n_pairs):
        ids, losses, each = rng.integers(0, N_WORDS, (run.batch, run.context + 1)), [], []
        for learner in learners:
            start = process_time()
            losses.append(learner.step(n, ids))
            each.append(process_time() - start)
        seconds += [each] if n >= WARM else []
        gap = max(gap, abs(losses[0] - losses[1]))
    by_hand, graph = (median(times) for times in zip(*seconds, strict=True))
    ratio = median(b / a for a, b in seconds)
    print(
        f"a step by hand {by_hand * 1e3:.0f} ms, over the graph {graph * 1e3:.0f} ms: "
        f"{ratio:.2f} times, median of {n_pairs} pairs; losses at most {gap:.0e} apart"
    )


if __name__ == "__main__":
    main()
