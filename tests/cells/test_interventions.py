"""An intervention changes what later blocks read, and nothing else."""

import numpy as np
import pytest

import cellformer as cf
from cellformer.engine import Evaluator, Graph
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.errors import UnknownNameError
from cellformer.engine.cells.interventions import intervened
from cellformer.engine.models import ops
from cellformer.engine.models.forward import Forward

RESULT, WEIGHT = "blocks.0.attn.h0.result", "blocks.0.attn.h0.W_Q"


@pytest.fixture(scope="module")
def graph() -> Graph:
    return cf.graph("cat-sat")


def stretched(g: Graph, name: str, own: Block) -> Block:
    return g.block(name, ops.stretch, own, g.input(f"{own.path}.times", 3.0))


def test_readers_read_the_changed_block(graph: Graph) -> None:
    found = intervened(graph, {RESULT: stretched})
    assert np.array_equal(found.values[RESULT], graph.values[RESULT] * 3)
    assert np.array_equal(found.values[f"{RESULT}.own"], graph.values[RESULT])
    assert not np.allclose(found.values["logits"], graph.values["logits"])


def test_readers_read_the_used_values_of_a_weight(graph: Graph) -> None:
    found = intervened(graph, {WEIGHT: stretched})
    assert np.array_equal(found.inputs[WEIGHT], graph.inputs[WEIGHT])
    assert np.array_equal(found.values[f"{WEIGHT}.used"], graph.inputs[WEIGHT] * 3)
    assert not np.array_equal(
        found.values["blocks.0.attn.h0.scores"], graph.values["blocks.0.attn.h0.scores"]
    )


def test_an_intervention_that_changes_nothing_leaves_every_value(graph: Graph) -> None:
    live = Evaluator(intervened(graph, {RESULT: stretched}))
    live.set("blocks.0.attn.h0.result.times", 0, 0, 1.0)
    for block in graph:
        assert np.array_equal(live[block.name], graph.values[block.name])


def test_blocks_that_it_does_not_reach_are_the_same_objects(graph: Graph) -> None:
    found = intervened(graph, {RESULT: stretched})
    reached = {RESULT}
    for block in graph:
        if any(b.name in reached for _, _, b in block.operands):
            reached.add(block.name)
    assert all((found[block.name] is block) == (block.name not in reached) for block in graph)


def test_the_graph_that_it_is_made_from_is_left_as_it_was(graph: Graph) -> None:
    names = list(graph.blocks)
    assert isinstance(intervened(graph, {RESULT: stretched}), Forward)
    assert list(graph.blocks) == names


def test_an_unknown_block_names_the_nearest(graph: Graph) -> None:
    with pytest.raises(UnknownNameError, match="result"):
        intervened(graph, {"blocks.0.attn.h0.reslt": stretched})


def test_tables_come_after_interventions(graph: Graph) -> None:
    found = intervened(graph, {})
    found.table("sum", (1, 1), lambda *_: found["logits"][0, 0] + 1)
    with pytest.raises(ValueError, match="before you add tables"):
        intervened(found, {})
