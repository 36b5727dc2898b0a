"""Gradients: every op against finite differences; what they refuse; that they are blocks."""

import inspect
from typing import get_args

import numpy as np
import pytest
from conftest import GOLDEN, golden_models, graphs, recurrent
from hypothesis import given, settings

from cellformer import workbooks
from cellformer.engine import Evaluator, Graph, InputError
from cellformer.engine.cells.access import EVERYTHING, Mask
from cellformer.engine.cells.batch import filled, variants
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.formula import Formulas
from cellformer.engine.cells.functions import MAX
from cellformer.engine.cells.gradient import backward
from cellformer.engine.cells.op import Op, X, op
from cellformer.engine.learning import objective, optimizers
from cellformer.engine.models import ops
from cellformer.engine.models.encoding import TOKENS
from cellformer.engine.models.spec import Activation
from cellformer.exporters.compose.address import A1

OPS = [
    op
    for module in (ops, optimizers)
    for _, op in inspect.getmembers(module, lambda x: isinstance(x, Op))
]
HELD = {
    ("exp", "top"),
    ("row_sum", "top"),
    ("surprise", "top"),
    *((op, name) for op in ("faded_sum", "past_share") for name in ("last", "top")),
    ("own_share", "top"),
}  # operands that count as constants
MOST = {"missing": 0.9, "rate": 0.6}  # of operands that are below 1; others are below 2
STEP = 1e-5
SIZES = {"i": 4, "j": 4, ":": 3, "≤i": 4, "?": 6, "0": 1, "~": 4, "@": 3}  # by subscript
SIZES |= {"i-#": 4, "i-1": 4, "@#": 3}


def drawn(g: Graph, op: Op, mask: Mask, rng: np.random.Generator) -> Block:
    """A block of an op over random operands: two where it takes many."""
    given: dict = {}
    for name, codes in op.subscripts.items():
        if name in op.itself:
            continue
        shape = tuple(SIZES[code] for code in codes)
        if name in ("ids", "bucket"):
            given[name] = g.input(name, rng.integers(0, 4, shape), kind="ids")
            continue
        many = [f"{name}{n}" for n in (1, 2)] if name in op.many else [name]
        axes = (f"rows {codes[0]}", f"columns {codes[1]}")
        found = [
            g.input(n, rng.uniform(0.5, MOST.get(name, 2), shape), axes, "weight") for n in many
        ]
        if codes[1] == "≤i":  # as in a model: what is not seen is blank
            one = g.input(f"{name}.one", np.ones((shape[0], 1)))
            found = [g.block(f"{b.name}.seen", ops.fraction, b, one, mask=mask) for b in found]
        given[name] = found if name in op.many else found[0]
    return g.block("z", op, **given, mask=mask, pair=(1, 2), nth=1)


def to_one_cell(g: Graph, z: Block, rng: np.random.Generator) -> Block:
    """A random sum of a block's cells, [1, 1]."""
    g = g.at("to")
    if z.partial and z.op and np.isinf(z.op.blank):
        total = g.input("total", np.ones((z.shape[0], 1)))
        z = g.block("finite", ops.fraction, z, total)
    by = g.input("by", rng.normal(size=z.shape))
    rows = g.block("rows", ops.along, z, by)
    return g.block("one", ops.pooled, rows, g.input("ones", np.ones(rows.shape)))


def differences(g: Graph, of: str, block: Block) -> np.ndarray:
    """Central differences of a cell by every cell of a block."""
    start = g.values[block.name]
    cells = list(block.whole.cells())
    changes = [
        {(block.name, i, j): float(start[i, j]) + sign * STEP} for i, j in cells for sign in (1, -1)
    ]
    found = variants(g, changes)[of]
    up, down = found.reshape(-1, 2).T
    return ((up - down) / (2 * STEP)).reshape(block.shape)


CASES = [
    (op, mask)
    for op in OPS
    for mask in (EVERYTHING, Mask(), Mask(window=2), Mask(before=True))
    if not mask.causal or any("≤i" in code for code in [op.out, *op.subscripts.values()])
    if mask.before or not any("≤i" in op.subscripts[name] for name in op.itself)
]


@pytest.mark.parametrize(("op", "mask"), CASES, ids=lambda x: getattr(x, "name", str(x)))
def test_every_op_against_finite_differences(op: Op, mask: Mask) -> None:
    rng = np.random.default_rng(sum(map(ord, op.name)))
    g = Graph()
    one = to_one_cell(g, drawn(g, op, mask, rng), rng)
    inputs = [b for b in g if b.kind == "weight"]
    found = backward(g, one, tokens=TOKENS)
    for block in inputs:
        if (op.name, block.name) in HELD:
            assert block.name not in found
            continue
        zero = np.zeros(block.shape)
        gradient = g.values[found[block.name].name] if block.name in found else zero
        expected = differences(g, "to.one", block)
        np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-6, err_msg=block.name)


@pytest.mark.parametrize("name", get_args(Activation))
def test_activations_and_their_gradients_equal_torch(name: str, torch) -> None:
    import hooked

    values = np.array([[-30.0, -2.5, -0.6, -1e-9, 0.3], [0.8, 1.7, 5.9, 6.3, 30.0]])
    g, x = Graph(), torch.tensor(values, requires_grad=True)
    z = g.block("z", getattr(ops, name), g.input("x", values, ("rows", "columns"), "weight"))
    expected = hooked.ACTIVATIONS[name](x)
    np.testing.assert_allclose(g.values["z"], expected.detach().numpy(), rtol=1e-12, atol=1e-14)
    by = np.random.default_rng(0).normal(size=values.shape)
    (expected * torch.tensor(by)).sum().backward()
    rows = g.block("rows", ops.along, z, g.input("by", by, ("rows", "columns")))
    found = backward(g, g.block("one", ops.total, rows), tokens=TOKENS)["x"]
    np.testing.assert_allclose(g.values[found.name], x.grad.numpy(), rtol=1e-10, atol=1e-13)


@op(x="i,j", least="0,0")
def at_least(x: X, least: X) -> X:
    return MAX(x, least)


def test_maximum_takes_a_cell() -> None:
    g = Graph()
    x = g.input("x", [[0.5, 2.0], [-1.0, 1.5]], kind="weight")
    least = g.input("least", 1.0, kind="weight")
    z = g.block("z", at_least, x, least)
    assert g.values["z"].tolist() == [[1.0, 2.0], [1.0, 1.5]]
    assert g.cell("z", 1, 0).formula == "max(x, least)"
    cells = A1(lambda area: ("", area.rect))
    made = Formulas(z, cells, lambda block, rect: f"{block.name}{rect.top}{rect.left}")
    assert made(1, 0) == "MAX(x10,least00)"
    one = to_one_cell(g, z, np.random.default_rng(0))
    found = backward(g, one, tokens=TOKENS)
    for block in (x, least):
        gradient = g.values[found[block.name].name]
        assert np.abs(gradient).max() > 0
        np.testing.assert_allclose(gradient, differences(g, "to.one", block), atol=1e-6)


@pytest.mark.slow
@given(graphs())
@settings(max_examples=15)
def test_random_models_against_finite_differences(graph: Graph) -> None:
    """Every activation too, where no ReLU is near its corner."""
    n_tokens, n_words = graph["logits"].shape
    one = objective.loss(graph, [k % n_words for k in range(n_tokens)])
    blocks = list(graph)
    found = backward(graph, one)
    corner = any(
        b.op is ops.relu and np.abs(graph.values[b.operands[0][2].name]).min() < 1e-3
        for b in blocks
    )
    for block in () if corner else blocks:
        if block.name in found and block is not one and not block.partial:
            gradient = graph.values[found[block.name].name]
            expected = differences(graph, "loss", block)
            np.testing.assert_allclose(gradient, expected, rtol=1e-4, atol=1e-6, err_msg=block.name)


def cat_sat() -> Graph:
    book = workbooks.find("cat-sat")
    model = book.model()
    return model.graph(model.vocabulary.encode(book.PROMPT))


def test_gradient_is_made_of_blocks() -> None:
    graph = cat_sat()
    found = backward(graph, objective.logit(graph, 2, 3))
    block = found["blocks.0.attn.h0.W_Q"]
    assert block.name == "gradient.blocks.0.attn.h0.W_Q"
    cell = graph.cell(block.name, 1, 0)
    assert cell.formula == "resid_pre[:,1]·gradient.q[:,0]"
    assert {c.block.leaf for c in cell.precedents} == {"resid_pre", "q"}
    live = Evaluator(graph)
    before = live[block.name].copy()
    live.set("blocks.0.attn.h0.W_V", 0, 0, 2.5)
    after = live[block.name].copy()
    live.run()
    np.testing.assert_allclose(after, live[block.name], rtol=1e-12)
    assert np.abs(after - before).max() > 1e-6


def test_gradient_of_a_chosen_logit() -> None:
    graph = cat_sat()
    weights = [b.name for b in graph if b.kind == "weight"]
    found = backward(graph, objective.logit(graph, 2, 3, 1))
    live = Evaluator(graph)
    live.set("target", 0, 0, 4)
    live.set("position", 0, 0, 1)
    other = cat_sat()
    expected = backward(other, objective.logit(other, 1, 4, 1))
    for name in weights:
        np.testing.assert_allclose(live[found[name].name], other.values[expected[name].name])


def test_batch_gradient_is_the_sum_of_sentences() -> None:
    graph = cat_sat()
    n_words = graph["logits"].shape[1]
    weights = [b.name for b in graph if b.kind == "weight"]
    found = backward(graph, objective.loss(graph, [1, 2, 3]))
    rng = np.random.default_rng(0)
    tokens = rng.integers(0, graph["W_E"].shape[0], (5, 3, 1)).astype(float)
    targets = rng.integers(0, n_words, (5, 3, 1)).astype(float)
    batch = filled(graph, {"tokens": tokens, "loss.targets": targets})
    for n in range(5):
        alone = filled(graph, {"tokens": tokens[n], "loss.targets": targets[n]})
        for name in weights:
            got = np.broadcast_to(batch[found[name].name], (5, *graph[name].shape))[n]
            np.testing.assert_allclose(got, alone[found[name].name], atol=1e-13)


def test_only_blocks_between_weights_and_loss() -> None:
    graph = cat_sat()
    one = objective.logit(graph, 2, 3)
    found = backward(graph, one, to=[graph["blocks.0.attn.h0.z"]])
    assert "blocks.0.attn.h0.z" in found and "blocks.0.attn.h0.pattern" not in found
    held = backward(graph, one, held=[graph["blocks.0.attn.h0.pattern"]], name="held")
    assert "blocks.0.attn.h0.W_V" in held and "blocks.0.attn.h0.W_Q" not in held
    assert held["blocks.0.attn.h0.W_V"].name == "held.blocks.0.attn.h0.W_V"


def test_op_without_gradient_is_refused() -> None:
    graph = cat_sat()
    with pytest.raises(InputError, match=r"^logits has 3 x \d+ cells; a gradient needs one"):
        backward(graph, graph["logits"])
    with pytest.raises(InputError, match="no operation computes them"):
        backward(graph, graph["blocks.0.attn.h0.switch"])
    with pytest.raises(InputError, match="there is no word 99; choose a number from 0 to"):
        objective.logit(graph, 0, 99)
    with pytest.raises(InputError, match="there is no token 3; choose a number from 0 to 2"):
        objective.logit(graph, 3, 0)


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n, m in golden_models().items() if "word" in m.spec.gives])
def test_a_weight_without_a_gradient_moves_nothing(name: str) -> None:
    """No gradient is 0 because a way to the loss is passed over."""
    model = golden_models()[name]
    with np.load(GOLDEN / name / "golden.npz") as reference:
        ids = reference["ids"].tolist()
        source = reference["source"].tolist() if "source" in reference else ()
    graph = (model.reading(source) if source else model).graph(ids)
    found = backward(graph, objective.loss(graph), tokens=TOKENS)
    loss = graph.values["loss"][0, 0]
    slopes = {name: graph.values[gradient.name] for name, gradient in found.items()}
    rng = np.random.default_rng(0)
    for block in [b for b in graph if b.kind == "weight" and not np.any(slopes.get(b.name, 0))]:
        own = np.array(graph.inputs[block.name])
        graph.fill(block.name, own + rng.normal(0, 0.01, own.shape))
        assert abs(graph.values["loss"][0, 0] - loss) < 1e-9, block.name
        graph.fill(block.name, own)


@pytest.mark.slow
@pytest.mark.parametrize("name", recurrent())
def test_gradients_of_recurrent_models_equal_finite_differences(name: str) -> None:
    """The largest exponents of RWKV, which cancel, are held as constants."""
    ids, step = [3, 1, 5, 2, 6], 1e-6
    graph = golden_models()[name].graph(ids)
    found = backward(graph, objective.loss(graph, [*ids[1:], 6]), tokens=TOKENS)
    for block in [b for b in graph if b.kind == "weight"]:
        value, cells = graph.values[block.name], list(block.whole.cells())[:6]
        changes = [{(block.name, *at): value[at] + by} for at in cells for by in (step, -step)]
        up, down = variants(graph, changes)["loss"].reshape(-1, 2).T
        held = block.leaf == "b_choice"  # it moves the choice of experts alone
        gradient = np.zeros(value.shape) if held else graph.values[found[block.name].name]
        expected = [gradient[at] for at in cells]
        np.testing.assert_allclose((up - down) / (2 * step), expected, atol=1e-7)
