"""Models whose weights are too large: some cell is no number, and every command says which."""

import random
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file

from hostile_kinds.cases import Case, Cases, Kind, copy_of

NAMES = ("gpt2", "llama", "gemma2", "gpt_neox", "mamba", "bert", "bart", "minilm", "phi3")
SCALES = (1e154, 1e200, 1e300, 1e308)
ALL = 0.5  # of the cases, in which all weights are so large
COMMANDS = (
    ["run", "model"],
    ["run", "model", "--ablate", "blocks.0"],
    ["generate", "model", "-n", "3"],
    ["build", "model", "-o", "book.xlsx"],
    ["build", "model", "--tokens", "5", "-o", "book.xlsx"],
    ["build", "model", "-o", "page.html"],
    ["build", "model", "--gradient", "-o", "book.xlsx"],
    ["build", "model", "--nudge", "-o", "book.xlsx"],
    ["build", "model", "--why", "-o", "book.xlsx"],
    ["build", "model", "--quantize", "-o", "book.xlsx"],
    ["build", "model", "--exercise", "-o", "book.xlsx"],
    ["build", "model", "--live", "blocks.0", "-o", "book.xlsx"],
    ["build", "model", "--against", "1 0", "-o", "book.xlsx"],
    ["ablate", "model"],
    ["patch", "model", "--against", "1 0"],
    ["quantize", "model"],
    ["gradient", "model"],
    ["why", "model", "--head", "0.0"],
    ["sweep", "model", "W_E[0,0]", "--from", "0", "--to", "1", "--steps", "3"],
    ["edit", "model", "--say", "2", "-o", "book.xlsx"],
    ["explain", "model", "W_E[0,0]"],
    ["trace", "model", "W_E[0,0]"],
    ["info", "model"],
)
SAMPLED = ("--repetition-penalty", "--temperature", "--top-p", "--min-p")


def weights(rng: random.Random) -> Cases:
    """A tensor, or all, times a large number, or with it in one cell."""
    while True:
        name, args, seed = rng.choice(NAMES), rng.choice(COMMANDS), rng.random()

        def prepare(folder: Path, name: str = name, seed: float = seed) -> None:
            draw, model = random.Random(seed), copy_of(name, folder) / "model.safetensors"
            tensors, scale = load_file(model), draw.choice(SCALES)
            names = sorted(n for n, t in tensors.items() if t.dtype.kind == "f")
            for each in names if draw.random() < ALL else [draw.choice(names)]:
                values = tensors[each].astype(np.float64)
                if draw.random() < 0.5:
                    values = values / max(np.abs(values).max(), 1e-9) * scale
                else:
                    values.reshape(-1)[draw.randrange(values.size)] = scale
                tensors[each] = values
            save_file(tensors, model)

        ids = [] if args[0] in ("info",) else ["--ids", "0,1"]
        yield Case(f"{name} {seed:.4f}", [*args, *ids], prepare)


def sampling(rng: random.Random) -> Cases:
    """Settings of sampling that no program can compute with."""
    odd = ("1e308", "1e-308", "1e-320", "1e200", "1e-200", "1e13", "0", "-1", "nan", "inf", "1e400")
    while True:
        command = rng.choice((["generate", "model"], ["build", "model", "-o", "book.xlsx"]))
        option = [rng.choice(SAMPLED), rng.choice(odd)]
        length = ["--tokens", "5"] if command[0] == "build" else ["-n", "3"]
        name = rng.choice(("gpt2", "llama"))

        def prepare(folder: Path, name: str = name) -> None:
            copy_of(name, folder)

        args = [*command, "--ids", "0,1,2", *length, *option]
        yield Case(" ".join([name, *option]), args, prepare)


KINDS: dict[str, Kind] = {"overflowing_weights": weights, "odd_sampling": sampling}
