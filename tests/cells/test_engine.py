"""The engine: one op, several interpreters, and what follows from the subscripts."""

import numpy as np
import pytest
from conftest import default_graph, graphs, random_model
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import straight_numpy

from cellformer.engine import Cell, Evaluator, Graph, InputError, Model, ModelSpec, WordList
from cellformer.engine.cells.access import Mask, Rect, dirties, reads
from cellformer.engine.cells.formula import equation
from cellformer.engine.cells.name import Name

WEIGHT_EDITS = 3


@pytest.mark.slow
@given(graphs())
@settings(max_examples=60)
def test_logits_equal_straight_numpy(graph: Graph) -> None:
    ids = graph.inputs["tokens"][:, 0].astype(int).tolist()
    expected = straight_numpy(graph.spec, dict(graph.weights), ids)
    np.testing.assert_allclose(graph.values["logits"], expected, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(graph.values["probs"].sum(axis=1), 1, rtol=1e-12)


@given(graphs(), st.data())
@settings(max_examples=80)
def test_incremental_recompute_equals_a_full_run(graph: Graph, data: st.DataObject) -> None:
    live = Evaluator(graph)
    for _ in range(WEIGHT_EDITS):
        cell = data.draw(st.sampled_from(cells(graph)))
        if cell.block.kind == "ids":
            n = graph.spec.n_ctx if cell.block.name == "positions" else graph.spec.d_vocab
            value = float(data.draw(st.integers(0, n - 1)))
        else:
            value = data.draw(st.floats(0.25, 2))
        live.set(cell.block.name, cell.i, cell.j, value)
        live.recompute()
    incremental = {b.name: live[b.name].copy() for b in graph}
    live.run()
    for name, values in incremental.items():
        full = live[name]
        finite = np.abs(full[np.isfinite(full)])
        scale = max(1.0, finite.max()) if finite.size else 1.0
        np.testing.assert_allclose(values, full, rtol=0, atol=1e-12 * scale, err_msg=name)


@pytest.mark.slow
@given(graphs(), st.data())
@settings(max_examples=80)
def test_dependents_name_every_changed_cell(graph: Graph, data: st.DataObject) -> None:
    cell = data.draw(st.sampled_from(cells(graph)))
    live = Evaluator(graph)
    live._put(cell.block, cell.i, cell.j, np.nan)
    reached = {
        (b.name, i, j)
        for b in graph
        for i, j in zip(*np.nonzero(np.isnan(live[b.name])), strict=True)
    }
    assert reached <= {(c.block.name, c.i, c.j) for c in downstream(cell)}


def test_every_dependent_changes() -> None:
    graph = default_graph("cat-sat")
    for name, i, j in [("blocks.0.attn.h0.W_V", 2, 1), ("blocks.0.attn.h0.k", 1, 0)]:
        live = Evaluator(graph)
        live._put(graph[name], i, j, np.nan)
        n_nan = sum(int(np.isnan(live[b.name]).sum()) for b in graph)
        assert n_nan == len(downstream(graph.cell(name, i, j)))


@given(graphs())
@settings(max_examples=25)
def test_precedents_and_dependents_are_inverse(graph: Graph) -> None:
    down = {(c.name, d.name) for c in cells(graph) for d in c.dependents}
    up = {(p.name, c.name) for c in cells(graph) for p in c.precedents}
    assert down == up


@given(
    st.tuples(
        st.sampled_from(["i", "j", ":", "≤i", "0"]), st.sampled_from(["i", "j", ":", "≤i", "@2"])
    ),
    st.builds(Mask, st.booleans(), st.sampled_from([None, 1, 2, 3]), st.just(None), st.booleans()),
)
def test_reads_and_dirties_are_inverse(subscript, mask) -> None:
    n = 4
    for i, j in Rect(0, n, 0, n).cells():
        out = Rect(i, i + 1, j, j + 1)
        read = set(reads(subscript, out, (n, n), mask).cells())
        for a, b in Rect(0, n, 0, n).cells():
            if subscript[0] == "0" and a:
                continue  # an axis of length one has no other index
            dirty = dirties(subscript, Rect(a, a + 1, b, b + 1), (n, n), mask)
            assert ((a, b) in read) == ((i, j) in set(dirty.cells()))


def test_cell_has_formula_and_neighbours() -> None:
    graph = default_graph("cat-sat")
    cell = graph.cell("blocks.0.attn.h0.scores", 2, 1)
    assert cell.formula == "q[2,:]·k[1,:] × scale"
    assert cell.value == pytest.approx(-0.22 / 5**0.5, abs=0.01)
    assert len(cell.precedents) == 11
    assert {c.block.leaf for c in cell.dependents} == {"row_max", "exp"}
    assert equation(cell.block) == "q·kᵀ × scale"
    assert graph.cell("blocks.0.attn.h0.z", 1, 0).formula == "pattern[1,:2]·v[:2,0]"
    assert graph.cell("embed", 1, 4).formula == "W_E[:,4][tokens[1]]"


def test_reset_keeps_the_clean_run() -> None:
    graph = default_graph("cat-sat")
    clean = graph.values["logits"].copy()
    live = Evaluator(graph)
    live.set("W_E", 3, 2, 5.0)
    assert np.abs(live["logits"] - clean).max() > 0.1
    np.testing.assert_array_equal(graph.values["logits"], clean)
    live.reset()
    np.testing.assert_array_equal(live["logits"], clean)


def test_set_activation_keeps_its_value() -> None:
    graph = default_graph("cat-sat")
    live = Evaluator(graph)
    live.set("blocks.0.attn.h0.pattern", 2, 0, 1.0)
    live.set("W_E", 0, 0, 3.0)
    assert live["blocks.0.attn.h0.pattern"][2, 0] == 1.0
    live.run()
    assert live["blocks.0.attn.h0.pattern"][2, 0] == 1.0


def test_late_change_recomputes_only_dependents() -> None:
    graph = random_model(ModelSpec(20, 8, 16, n_layers=2, n_heads=2, d_head=4, d_mlp=16)).graph(
        list(range(12))
    )
    live = Evaluator(graph)
    live.set("tokens", 11, 0, 3)
    last_token = live.recompute()
    live.reset()
    live.set("tokens", 0, 0, 3)
    first_token = live.recompute()
    assert 5 * last_token < first_token


def test_unreached_token_stops_the_change() -> None:
    graph = default_graph("cat-sat")
    live = Evaluator(graph)
    live.set("W_E", 19, 0, 9.0)  # .EOS is not in the prompt
    live.recompute()
    np.testing.assert_array_equal(live["logits"], graph.values["logits"])


def test_misshapen_weights_are_all_named() -> None:
    spec = ModelSpec(d_vocab=3, d_model=2, n_ctx=2)
    weights = {"W_E": np.zeros((3, 3)), "W_X": np.full((1, 1), np.nan)}
    with pytest.raises(InputError) as error:
        Model(spec, weights, WordList(("a", "b", "c")))
    for fault in (
        "W_U is missing",
        "W_X is not",
        "W_E has shape 3 x 3, not 3 x 2",
        "is infinite or not a number",
    ):
        assert fault in str(error.value)


@pytest.mark.parametrize(
    "sizes", [{"d_model": 0}, {"n_layers": -1}, {"n_layers": 1}, {"n_layers": 1, "n_heads": 2}]
)
def test_impossible_sizes_are_refused(sizes: dict) -> None:
    with pytest.raises(InputError):
        ModelSpec(**({"d_vocab": 2, "d_model": 2, "n_ctx": 2} | sizes))


def cells(graph: Graph) -> list[Cell]:
    return [
        Cell(graph, b, i, j, graph.values) for b in graph for i, j in b.whole.cells() if b.has(i, j)
    ]


def downstream(cell: Cell) -> list[Cell]:
    """The cell and everything that depends on it, at whatever remove."""
    found = {cell.name: cell}
    todo = [cell]
    while todo:
        for dependent in todo.pop().dependents:
            if dependent.name not in found:
                found[dependent.name] = dependent
                todo.append(dependent)
    return list(found.values())


@pytest.mark.parametrize(
    ("name", "passes", "layer", "part", "head", "leaf"),
    [
        ("logits", (), None, "", None, "logits"),
        ("ln_final.w", (), None, "ln_final", None, "w"),
        ("blocks.3.resid_mid", (), 3, "", None, "resid_mid"),
        ("blocks.0.attn.h12.q_norm.eps", (), 0, "attn", "h12", "eps"),
        ("b.blocks.1.attn.kv0.k", ("b",), 1, "attn", "kv0", "k"),
        ("turned.gradient.blocks.2.mlp.e1.W_in", ("turned", "gradient"), 2, "mlp", "e1", "W_in"),
        ("target.blocks.0.mlp_out.credit", (), None, "target", None, "credit"),
        ("nudged", (), None, "", None, "nudged"),
    ],
)
def test_name_of_a_block(
    name: str, passes: tuple[str, ...], layer: int | None, part: str, head: str | None, leaf: str
) -> None:
    found = Name(name)
    assert (found.passes, found.layer, found.part) == (passes, layer, part)
    assert (found.head, found.leaf) == (head, leaf)
    assert ".".join([*passes, found.own]) == name
