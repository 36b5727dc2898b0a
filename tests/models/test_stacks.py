"""Stacks: heads are computed together, and kernels give what the ops give."""

from types import ModuleType

import numpy as np
import pytest
from conftest import GOLDEN, golden_models, random_model, recurrent, specs
from hypothesis import given, settings

from cellformer.engine import Model
from cellformer.engine.learning.stacks import stacks
from cellformer.engine.models import checkpoint
from cellformer.engine.models.forward import Readout

IDS = [2, 0, 2, 2]  # without 1, which is padding of MPNet
NAMES = sorted({*golden_models()} - {*recurrent()})


def test_heads_are_one_stack() -> None:
    """Queries, keys and values of one x are one product; a softmax is one step."""
    model = checkpoint.load(GOLDEN / "gpt2")
    graph = model.graph(IDS, Readout(by_head=False))
    softmax = ("fraction", e := ("exp", "x", ("row_max", "x")), ("row_sum", e))
    found = stacks(graph, "logits", ["tokens", *model.weights], [softmax])
    names = [[step.block.name for step in stack] for stack in found]
    (first,) = (stack for stack in names if "blocks.0.attn.h0.q" in stack)
    assert sorted(first) == [f"blocks.0.attn.h{h}.{x}" for h in range(3) for x in "kqv"]
    assert [f"blocks.1.attn.h{h}.pattern" for h in range(3)] in names
    assert not any("blocks.1.attn.h0.row_max" in stack for stack in names)
    assert names[-1] == ["logits"]


def assert_torch_equals(model: Model, torch: ModuleType) -> None:
    """With torch's kernels, for a batch of sentences."""
    from cellformer.engine.learning.torch_math import Pass

    of = "vector" if model.spec.gives == "sentence" else "logits"
    known = [k if k < model.spec.d_vocab else 0 for k in IDS]
    graphs = [model.graph(ids, Readout(by_head=False)) for ids in (known, known[::-1])]
    weights = {b.name: graphs[0].inputs[b.name] for b in graphs[0] if b.kind == "weight"}
    run = Pass(graphs[0], of, ["tokens", *weights], torch.float64)
    tokens = np.array([graph.inputs["tokens"] for graph in graphs])
    given = {name: torch.tensor(w) for name, w in (weights | {"tokens": tokens}).items()}
    for graph, found in zip(graphs, run(given)[of].values, strict=True):
        expected = graph.values[of]
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10 * np.abs(expected).max())


@pytest.mark.parametrize("name", NAMES)
def test_torch_gives_the_values_of_golden_models(name: str, torch) -> None:
    assert_torch_equals(checkpoint.load(GOLDEN / name), torch)


@given(specs())
@settings(max_examples=20)
def test_torch_gives_the_values_of_random_models(torch, spec) -> None:
    assert_torch_equals(random_model(spec), torch)
