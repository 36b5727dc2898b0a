"""Gradients against torch's, which runs the same formulas under its autograd, in float64."""

import numpy as np
import pytest
from conftest import GOLDEN, golden_models, random_model, recurrent, specs
from hypothesis import given, settings
from test_gradient import to_one_cell

from cellformer import workbooks
from cellformer.engine import Evaluator, Graph
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.functions import ABS, MAX, MIN
from cellformer.engine.cells.gradient import backward
from cellformer.engine.cells.op import X, op
from cellformer.engine.learning import objective
from cellformer.engine.models import checkpoint, encoding
from cellformer.engine.models.choosing import GREEDY
from cellformer.engine.models.encoding import TOKENS
from cellformer.engine.models.generate import Passage
from cellformer.engine.studies import nudge

pytestmark = pytest.mark.usefixtures("torch")
NAMES = sorted({*golden_models()} - {*recurrent()})
RELATIVE = 1e-10  # to the largest gradient of a block
SMALL = 1e-5  # of the largest of all: below, a softmax's derivative has cancelled to rounding


def assert_equals_torch(graph: Graph, of: Block) -> None:
    """Of all weights and all activations."""
    import by_torch

    found, reference = backward(graph, of, tokens=TOKENS), by_torch.gradients(graph, of.name)
    reference = {name: x.numpy() for name, x in reference.items() if np.abs(x).max() > 0}
    largest = max(np.abs(x).max() for x in reference.values())
    assert {b.name for b in graph if b.kind == "weight"} & {*reference} <= {*found}
    for name, expected in reference.items():
        if name in found:  # not what is held: a softmax's maximum
            size = max(np.abs(expected).max(), SMALL * largest)
            gap = np.abs(graph.values[found[name].name] - expected).max()
            assert gap <= RELATIVE * size, name


@pytest.mark.parametrize("name", ["cat-sat", "fluffy-creature", "two-layers", "dialogue-game"])
def test_gallery_gradients_equal_torch(name: str) -> None:
    book = workbooks.find(name)
    model = book.model()
    ids = model.vocabulary.encode(book.PROMPT)
    graph = model.graph(ids)
    assert_equals_torch(graph, objective.logit(graph, len(ids) - 1, 0, 1))
    graph = model.graph(ids)
    n_words = graph["logits"].shape[1]
    assert_equals_torch(graph, objective.loss(graph, [k % n_words for k in range(len(ids))]))


@pytest.mark.parametrize("name", NAMES)
def test_golden_gradients_equal_torch(name: str) -> None:
    """The loss of the prompt; of a sentence encoder, how alike two sentences are."""
    model = checkpoint.load(GOLDEN / name)
    with np.load(GOLDEN / name / "golden.npz") as reference:
        ids = reference["ids"].tolist()
    if model.spec.gives == "sentence":
        graph = encoding.graph(
            model, Passage(ids, len(ids), GREEDY, np.zeros(0), second=tuple(ids[:3]))
        )
        one = graph["cosine"]
    else:
        graph = model.graph(ids)
        one = objective.loss(graph)
    assert_equals_torch(graph, one)


@pytest.mark.parametrize("name", ["llama", "mixtral"])
def test_learning_step_equals_torch(name: str) -> None:
    """The loss of a sentence after gradient descent's step, for several rates."""
    graph = checkpoint.load(GOLDEN / name).graph([8, 12, 3, 5])
    import by_torch

    nudge.add(graph, 4)
    live = Evaluator(graph)
    for rate in (0.001, 0.05, 0.5):
        live.set(nudge.RATE, 0, 0, rate)
        wanted = by_torch.loss_after_step(graph, rate)
        assert live[nudge.LOSS_AFTER][0, 0] == pytest.approx(wanted, rel=1e-10)


@given(specs())
@settings(max_examples=10)
def test_random_gradients_equal_torch(spec) -> None:
    graph = random_model(spec).graph([k % spec.d_vocab for k in range(4)])
    assert_equals_torch(graph, objective.logit(graph, 3, 1, 0))


@op(x="i,j", limit="0,0")
def clip(x: X, limit: X) -> X:
    return MAX(MIN(x, limit), -limit)


@op(x="i,j")
def size(x: X) -> X:
    return ABS(x)


def test_clipped_cells_have_the_gradients_of_torch() -> None:
    g, rng = Graph(), np.random.default_rng(0)
    x = g.input("x", rng.normal(size=(4, 5)), ("rows", "columns"), "weight")
    z = g.block("z", clip, x, g.input("limit", 0.8, kind="weight"))
    assert 0 < (np.abs(g.values["z"]) == 0.8).sum() < 20
    assert_equals_torch(g, to_one_cell(g, z, rng))


def test_a_function_that_torch_lacks_is_named() -> None:
    import by_torch

    g = Graph()
    g.block("z", size, g.input("x", -1.0, kind="weight"))
    with pytest.raises(NotImplementedError, match="ABS of z: add a line to TORCH"):
        by_torch.gradients(g, "z")
