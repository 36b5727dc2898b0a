"""What Python prints of an object is one short line, however large the object is."""

import timeit
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from conftest import golden_models

import cellformer as cf
from cellformer.engine.models import architectures
from cellformer.engine.models.forward import Forward, weight_shapes
from cellformer.engine.models.spec import ModelSpec

LONGEST = 300  # characters
QUICK = 0.05  # seconds
GPT2 = ModelSpec(
    d_vocab=50257,
    d_model=768,
    n_ctx=1024,
    n_layers=12,
    n_heads=12,
    d_head=64,
    d_mlp=3072,
    activation="gelu_tanh",
    position="learned",
    norm="layer",
    final_norm=True,
    tied=True,
    bias=True,
)


def assert_short(thing: Any) -> None:
    text = repr(thing)
    assert min(timeit.repeat(lambda: repr(thing), number=1, repeat=3)) < QUICK
    assert len(text) < LONGEST and "\n" not in text and " object at 0x" not in text


def test_objects_of_a_workbook_print_short() -> None:
    book = cf.build("cat-sat")
    graph, live = book.graph, cf.Evaluator(book.graph)
    for thing in (book, book.model, book.model.spec, book.model.vocabulary, book.passage, live):
        assert_short(thing)
    for thing in (*book.sheets.values(), cf.variants(graph, [{("W_E", 1, 1): 0.5}])):
        assert_short(thing)
    assert_short(graph)
    for block in graph:
        assert_short(block)
        if block.has(0, 0):
            assert_short(live.cell(block.name, 0, 0))


def test_objects_of_gpt2_size_print_short() -> None:
    forward = architectures.find("cellformer").forward
    shapes = weight_shapes(forward, GPT2)
    weights = {name: np.broadcast_to(np.float32(0), shape) for name, shape in shapes.items()}
    words = cf.WordList(tuple(f"word{n}" for n in range(GPT2.d_vocab)))
    model = cf.Model(GPT2, weights, words, architecture=forward)
    assert "124,439,808 weights, 12 layers" in repr(model)
    graph = Forward(GPT2)
    forward(graph, list(range(64)))
    for thing in (GPT2, words, model, model.weights, graph, *graph):
        assert_short(thing)


def test_values_of_gpt2_size_print_short() -> None:
    """With one of its layers, after one token."""
    graph = Forward(replace(GPT2, n_layers=1))
    architectures.find("cellformer").forward(graph, [0])
    live = cf.Evaluator(graph)
    live.set("resid_final", 0, 0, 1.0)
    for thing in (live, graph.values, live.cell("logits", 0, 50256), live.cell("W_E", 50256, 767)):
        assert_short(thing)


@pytest.mark.parametrize("name", golden_models())
def test_models_print_short(name: str) -> None:
    model = golden_models()[name]
    assert f"{sum(np.size(w) for w in model.weights.values()):,} weights" in repr(model)
    for thing in (model, model.spec, model.vocabulary):
        assert_short(thing)


def test_a_cell_prints_its_value_and_formula() -> None:
    graph = cf.graph("cat-sat", "the cat sat")
    assert repr(cf.load("shakespeare").vocabulary).startswith("<Characters of 65: '\\n', ' ', '!'")
    assert repr(graph.cell("W_E", 1, 1)) == "<Cell W_E[1,1] = 0.5>"
    assert repr(graph.cell("logits", 1, 1)) == (
        "<Cell logits[1,1] = 0.0893163: resid_final[1,:]·W_U[:,1]>"
    )
    assert repr(graph["logits"]) == "<Block logits [3 token x 20 vocab], linear(resid_final, W_U)>"
