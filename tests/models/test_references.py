"""Architectures against transformers: golden files always, random configurations with torch."""

from pathlib import Path

import numpy as np
import pytest
from conftest import GOLDEN
from safetensors import safe_open

from cellformer.engine.cells.block import Block
from cellformer.engine.models import checkpoint, ops
from cellformer.engine.models.forward import Forward
from cellformer.engine.models.model import Model
from cellformer.engine.studies import lens

NAMES = sorted(p.parent.name for p in GOLDEN.glob("*/config.json"))
TOLERANCE = 2e-5  # the references compute in float32


def largest_gap(graph: Forward, reference: dict[str, np.ndarray]) -> float:
    """The largest difference in what is read out, hidden states and attention patterns."""
    spec, values = graph.spec, graph.values
    read_out = "vector" if spec.gives == "sentence" else "logits"
    place = -1 if spec.causal else 0  # of the token that a class is read from
    found = values[read_out][[place]] if spec.gives == "class" else values[read_out]
    gaps = [np.abs(found - reference[read_out]).max()]
    hidden = [values[f"blocks.{n}.resid_pre"] for n in range(spec.n_layers)]
    hidden.append(values[last_hidden(graph).name])
    expected = [*reference["hidden"], *([reference["last"]] if "last" in reference else [])]
    gaps += [np.abs(a - b).max() for a, b in zip(hidden, expected, strict=True)]
    for part, of in (("attn", "patterns"), ("cross", "cross")):
        names = [f"blocks.{n}.{part}" for n in range(spec.n_layers)]
        attending = [name for name in names if f"{name}.h0.pattern" in graph.blocks]
        for name, patterns in zip(attending, reference.get(of, ()), strict=False):
            for head, pattern in enumerate(patterns):
                found = values[f"{name}.h{head}.pattern"]
                gaps.append(np.abs(found - pattern).max())
    if "encoder" in reference:
        *states, last = reference["encoder"]
        gaps += [
            np.abs(values[f"encoder.blocks.{n}.resid_pre"] - x).max() for n, x in enumerate(states)
        ]
        gaps.append(np.abs(values[graph["blocks.0.cross.h0.k"].operands[0][2].name] - last).max())
    return float(max(gaps))


def graph_of(model: Model, reference: dict[str, np.ndarray]) -> Forward:
    """The graph of what a reference was given."""
    model = model.reading(reference["source"].tolist()) if "source" in reference else model
    return model.graph(reference["ids"].tolist())


def last_hidden(graph: Forward) -> Block:
    """What references give as the last hidden state: what is put to the vocabulary, unscaled; of
    an encoder, or with a dense layer before the words, what the last layer gives."""
    encodes = not graph.spec.causal or graph.spec.gives == "sentence"
    if encodes or "head.W" in graph.blocks:
        normed = graph.spec.final_norm and not graph.spec.norm_after
        return graph["ln_final.out" if normed else "resid_final"]
    x = lens.scoring(graph).x
    return lens.operands(x)["x"] if x.op is ops.stretch else x


@pytest.mark.parametrize("name", NAMES)
def test_golden(name: str) -> None:
    with np.load(GOLDEN / name / "golden.npz") as reference:
        graph = graph_of(checkpoint.load(GOLDEN / name), dict(reference))
        assert largest_gap(graph, dict(reference)) < TOLERANCE


def tensor_names(folder: Path) -> list[str]:
    """The names of the tensors in a folder; bare models lack a prefix, which saved ones have."""
    files = [safe_open(file, "np") for file in folder.glob("*.safetensors")]
    return [name for file in files for name in file.keys()]  # noqa: SIM118


@pytest.mark.parametrize("name", NAMES)
def test_save_writes_back_what_load_read(name: str, tmp_path: Path) -> None:
    model = checkpoint.load(GOLDEN / name)
    checkpoint.save(model, tmp_path)
    held = tensor_names(GOLDEN / name)
    new = [n for n in tensor_names(tmp_path) if not any(f".{n}".endswith(f".{h}") for h in held)]
    assert not new or name == "esm", f"its reference has no {new}"  # ESM's file has older names
    again = checkpoint.load(tmp_path)
    assert again.spec == model.spec
    for weight, values in model.weights.items():
        np.testing.assert_array_equal(again.weights[weight], values)
