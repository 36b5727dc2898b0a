"""The steps of `learn`, made by torch: the losses of 51 batches, and all weights after 50.

    python tests/golden/learn/make.py

Writes steps.json beside it. The model, its optimizer and its loss are torch's own, in float64; what
it starts from and the sentences are the workbook's.
"""

import json
from pathlib import Path

import torch

from cellformer.workbooks import learn
from cellformer.workbooks.learn import game, step

STEPS = 50


def main() -> None:
    """Make the steps, and write them down."""
    losses, weights = steps(STEPS)
    found = {"losses": losses, "weights": weights}
    text = json.dumps(found, separators=(",", ":"))
    Path(__file__).with_name("steps.json").write_text(text + "\n", encoding="utf-8")


def steps(n: int) -> tuple[list[float], dict[str, list[list[float]]]]:
    """The losses before each of so many steps and after the last, and the weights then."""
    start = step.start(learn.SPEC, learn.SEED)
    weights = {name: torch.tensor(x, requires_grad=True) for name, x in start.items()}
    settings = {"lr": step.RATE, "betas": (step.BETA1, step.BETA2), "weight_decay": 0.0}
    adam = torch.optim.AdamW(weights.values(), **settings)
    ids = torch.tensor(step.ids_of(game.sentences(), game.WORDS))
    losses = []
    for k in range(n + 1):
        now = loss(weights, ids[(k * learn.BATCH + torch.arange(learn.BATCH)) % len(ids)])
        losses.append(now.item())
        if k < n:
            adam.zero_grad()
            now.backward()
            adam.step()
    return losses, {name: w.detach().tolist() for name, w in weights.items()}


def loss(w: dict[str, torch.Tensor], rows: torch.Tensor) -> torch.Tensor:
    """How surprising the words of some sentences are, but for the first of each."""
    n_tokens = game.LENGTH - 1
    future = torch.triu(torch.ones(n_tokens, n_tokens, dtype=torch.bool), 1)
    x = w["W_E"][rows[:, :-1]] + w["W_pos"]  # [batch, n_tokens, d_model]
    written = 0
    for h in [f"blocks.0.attn.h{m}" for m in range(learn.SPEC.n_heads)]:
        q, k, v = (x @ w[f"{h}.W_{c}"] for c in "QKV")
        scores = (q @ k.mT / learn.SPEC.d_head**0.5).masked_fill(future, -torch.inf)
        written = written + scores.softmax(-1) @ v @ w[f"{h}.W_O"]
    x = x + written
    x = x + (x @ w["blocks.0.mlp.W_in"]).relu() @ w["blocks.0.mlp.W_out"]
    logits = (x @ w["W_E"].T).flatten(0, 1)
    return torch.nn.functional.cross_entropy(logits, rows[:, 1:].flatten())


if __name__ == "__main__":
    main()
