"""Nudge: one step of learning a sentence, in the engine."""

import numpy as np
import pytest
from conftest import GOLDEN, cli, default_graph

from cellformer.engine import Evaluator, Graph
from cellformer.engine.models import checkpoint
from cellformer.engine.studies import nudge


def stepped(name: str) -> Graph:
    """A graph of the gallery, or of a golden model, that takes a step."""
    golden = name != "cat-sat"
    graph = checkpoint.load(GOLDEN / name).graph([8, 12, 3]) if golden else default_graph(name)
    nudge.add(graph, graph["tokens"].shape[0])
    return graph


@pytest.mark.parametrize("name", ["cat-sat", "mixtral"])
def test_step_lowers_the_loss(name: str) -> None:
    graph = stepped(name)
    live, cost = Evaluator(graph), graph.values["loss"][0, 0]
    rate, steepness = graph.inputs[nudge.RATE][0, 0], 0.0
    for gradients in nudge.gradients(graph).values():
        steepness += sum((graph.values[gradient.name] ** 2).sum() for gradient in gradients)
    assert cost - live[nudge.LOSS_AFTER][0, 0] >= nudge.KEPT * rate * steepness > 0
    live.set(nudge.RATE, 0, 0, 1e-5)
    assert cost - live[nudge.LOSS_AFTER][0, 0] == pytest.approx(1e-5 * steepness, rel=0.05)
    for part in nudge.gradients(graph):
        live.set(f"nudge.{part}.{nudge.LEARNS}", 0, 0, 0.0)
    assert live[nudge.LOSS_AFTER][0, 0] == cost


def test_step_and_second_pass() -> None:
    """Every weight is less the rate times its gradient; a model that has these says the same."""
    graph = stepped("cat-sat")
    rate = graph.inputs[nudge.RATE][0, 0]
    anew = default_graph("cat-sat")
    for name in [block.name for block in anew if block.kind == "weight"]:
        after = graph.values[f"nudged.{name}"]
        wanted = graph.values[name] - rate * graph.values[f"gradient.{name}"]
        assert np.abs(after - wanted).max() < 1e-15
        anew.fill(name, after)
    assert np.abs(anew.values["logits"] - graph.values["nudged.logits"]).max() < 1e-14


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("build cat-sat --nudge --gradient", "cannot be combined: build two workbooks"),
        ("build cat-sat --nudge --prompt cat", "needs at least two words"),
        ("build final-step --nudge", "predicts words of another vocabulary than the prompt's"),
    ],
)
def test_nudge_refuses_some_models(line: str, fault: str) -> None:
    done = cli(*line.split())
    assert done.code == 2 and fault in done.err, done.err
