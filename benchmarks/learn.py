"""Learning in LibreOffice, in numpy and in torch: the same steps, and what they cost.

    python benchmarks/learn.py [--steps SMALL LARGE] [--python /usr/bin/python3]

For the model of the workbook `learn`, and for one of 20 times as many weights: the losses of all
steps in LibreOffice against the engine's, when a pass through the corpus comes within 0.02 of the
least loss that is possible, and the seconds of the processor that a step takes. `--python` is one
that has LibreOffice's `uno` module.
"""

import argparse
import json
import subprocess
import tempfile
import time
from itertools import islice
from pathlib import Path

import numpy as np

from cellformer.engine import ModelSpec
from cellformer.exporters.file.xlsx import write
from cellformer.workbooks import learn
from cellformer.workbooks.learn import game, step

LARGE = ModelSpec(
    d_vocab=len(game.WORDS), d_model=40, n_ctx=game.LENGTH - 1, n_layers=1, n_heads=2, d_head=20,
    d_mlp=160, position="learned", tied=True,
)  # fmt: skip
MODELS = {"small": (learn.SPEC, learn.BATCH, step.RATE), "large": (LARGE, 6, 0.005)}
NEAR = 0.02  # nats above the least loss: converged


def main() -> None:
    """Both models."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", nargs=2, type=int, default=(1000, 150))
    parser.add_argument("--python", default="/usr/bin/python3")
    asked = parser.parse_args()
    for (name, (spec, batch, rate)), n_steps in zip(MODELS.items(), asked.steps, strict=True):
        report(name, spec, batch, rate, n_steps, asked.python)


def report(name: str, spec: ModelSpec, batch: int, rate: float, n: int, python: str) -> None:
    """A line for each of the three."""
    with tempfile.TemporaryDirectory() as folder:
        book = learn.built(spec, batch, rate)
        path = write(book, Path(folder) / "learn.xlsx")
        size = sum(w.size for w in step.start(spec, learn.SEED).values())
        print(
            f"{name}: {size:,} weights, {batch} sentences, {book.n_formulas:,} formulas", flush=True
        )
        script = Path(__file__).with_name("learn_in_libreoffice.py")
        done = subprocess.run([python, script, path, str(n)], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    found = json.loads(done.stdout)["screen"]
    ours, seconds = in_numpy(spec, batch, rate, n)
    gap = np.abs(np.array(found["losses"][:n]) - ours)
    print(
        f"  LibreOffice {found['processor'] / n:.4f} s of the processor a step, "
        f"{found['processor']:.0f} s for {n}; {found['peak']:.2f} GB"
    )
    print(f"  numpy {seconds / n:.4f} s; losses differ by {gap.max():.1e}, ")
    print(
        f"  {gap[:100].max():.1e} in the first 100; "
        f"{converged(np.array(found['losses'][:n]), batch)}"
    )
    theirs, seconds = in_torch(spec, batch, rate, n)
    print(f"  torch {seconds / n:.4f} s; differs by {np.abs(theirs - ours)[:20].max():.1e} in 20")


def converged(losses: np.ndarray, batch: int) -> str:
    """When a pass through the corpus first comes near the least loss, and where the last one is."""
    each = len(game.sentences()) // batch
    passes = losses[: len(losses) // each * each].reshape(-1, each).mean(axis=1) - game.FLOOR
    first = np.flatnonzero(passes < NEAR)
    when = f"after {(first[0] + 1) * each} steps" if first.size else "not"
    return f"{NEAR} above the least {when}, {passes[-10:].mean():.4f} in the last ten passes"


def in_numpy(spec: ModelSpec, batch: int, rate: float, n: int) -> tuple[np.ndarray, float]:
    """The engine's losses, and its seconds."""
    ids = step.ids_of(game.sentences(), game.WORDS)
    g = step.graph(spec, step.start(spec, learn.SEED), game.LENGTH - 1)
    made = step.add(g, batch, rate)
    began = time.process_time()
    losses = [loss for loss, _ in islice(step.learn(made, ids, batch), n)]
    return np.array(losses), time.process_time() - began


def in_torch(spec: ModelSpec, batch: int, rate: float, n: int) -> tuple[np.ndarray, float]:
    """The losses of the same model written in torch, in float64, with its own Adam; its seconds."""
    import torch

    torch.set_num_threads(1)
    start = step.start(spec, learn.SEED)
    w = {name: torch.tensor(x, requires_grad=True) for name, x in start.items()}
    rates = {"lr": rate, "betas": (step.BETA1, step.BETA2), "weight_decay": 0.0}
    adam = torch.optim.AdamW(w.values(), **rates)
    ids = torch.tensor(step.ids_of(game.sentences(), game.WORDS))
    n_tokens = game.LENGTH - 1
    future = torch.triu(torch.ones(n_tokens, n_tokens, dtype=torch.bool), 1)
    losses, began = [], time.process_time()
    for k in range(n):
        rows = ids[(k * batch + torch.arange(batch)) % len(ids)]
        x = w["W_E"][rows[:, :-1]] + w["W_pos"]  # [batch, n_tokens, d_model]
        written = 0
        for h in [f"blocks.0.attn.h{m}" for m in range(spec.n_heads)]:
            q, keys, v = (x @ w[f"{h}.W_{c}"] for c in "QKV")
            scores = (q @ keys.mT / spec.d_head**0.5).masked_fill(future, -torch.inf)
            written = written + scores.softmax(-1) @ v @ w[f"{h}.W_O"]
        x = x + written
        x = x + (x @ w["blocks.0.mlp.W_in"]).relu() @ w["blocks.0.mlp.W_out"]
        logits = (x @ w["W_E"].T).flatten(0, 1)
        loss = torch.nn.functional.cross_entropy(logits, rows[:, 1:].flatten())
        adam.zero_grad()
        loss.backward()
        adam.step()
        losses.append(loss.item())
    return np.array(losses), time.process_time() - began


if __name__ == "__main__":
    main()
