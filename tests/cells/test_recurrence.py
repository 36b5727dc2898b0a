"""Blocks whose rows read the row before them, and reads of earlier rows of other blocks."""

import numpy as np
import pytest

from cellformer.engine.cells.batch import variants
from cellformer.engine.cells.evaluator import Evaluator
from cellformer.engine.cells.graph import Graph
from cellformer.engine.cells.op import X, op
from cellformer.engine.models import ops


@op(before="i-1,j", decay="i,0", x="i,j", itself="before")
def fading(before: X, decay: X, x: X) -> X:
    return decay * before + x


@pytest.fixture
def graph() -> Graph:
    g = Graph()
    rng = np.random.default_rng(0)
    x = g.input("x", rng.normal(size=(5, 3)), ("token", "channel"))
    g.block("state", fading, g.input("decay", rng.uniform(size=(5, 1)), ("token", "")), x)
    return g


def test_state_is_what_is_left_of_the_row_before_and_the_input(graph: Graph) -> None:
    state = np.zeros(3)
    for t in range(5):
        state = graph.values["decay"][t] * state + graph.values["x"][t]
        np.testing.assert_allclose(graph.values["state"][t], state, rtol=1e-15)


def test_first_row_reads_no_row_before(graph: Graph) -> None:
    first, second = graph.cell("state", 0, 1), graph.cell("state", 1, 1)
    assert first.formula == "x[0,1]"
    assert second.formula == "decay[1] × state[0,1] + x[1,1]"
    assert [cell.name for cell in first.precedents] == ["decay[0,0]", "x[0,1]"]
    assert "state[2,1]" in [cell.name for cell in second.dependents]


def test_set_state_is_carried_on_by_recompute_run_and_variants(graph: Graph) -> None:
    live = Evaluator(graph)
    live.set("state", 1, 2, 7.0)
    found = live["state"].copy()
    decay, x = graph.values["decay"], graph.values["x"]
    assert found[1, 2] == 7.0
    assert found[2, 2] == decay[2, 0] * 7.0 + x[2, 2]
    np.testing.assert_array_equal(found[:, :2], graph.values["state"][:, :2])
    live.run()
    np.testing.assert_array_equal(live["state"], found)
    np.testing.assert_array_equal(variants(graph, [{("state", 1, 2): 7.0}])["state"][0], found)


def test_convolution_reads_its_own_row_last(graph: Graph) -> None:
    w = graph.input("w", np.arange(6.0).reshape(2, 3), ("tap", "channel"))
    conv = graph.block("conv", ops.convolution, [graph["x"]] * 2, [w] * 2)
    x = graph.values["x"]
    before = np.vstack([np.zeros(3), x[:-1]])
    expected = before * w_row(graph, 0) + x * w_row(graph, 1)
    np.testing.assert_allclose(graph.values[conv.name], expected, rtol=1e-15)
    assert graph.cell("conv", 0, 2).formula == "x[0,2] × w[1,2]"


def w_row(graph: Graph, k: int) -> np.ndarray:
    return graph.values["w"][k]
