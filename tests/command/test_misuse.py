"""The public names, misused: every wrong value gets an InputError of one line, and what is handed
out cannot be written to."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

import cellformer as cf

OUT_OF_RANGE = 10**400  # for a float
NO_FILE = ("x" * 5000, "a/" + "x" * 5000, "a\0b", "a/\ud800")  # too long, a NUL, half a character


@cache
def model() -> cf.Model:
    return cf.load("cat-sat")


@cache
def graph() -> cf.Graph:
    return model().graph([0, 1, 3])


def live() -> cf.Evaluator:
    return cf.Evaluator(graph())


def edited() -> cf.Evaluator:
    found = live()
    found.set("W_E", 0, 0, 2.0)
    return found


def with_weight(value: Any, name: str = "W_E") -> cf.Model:
    return replace(model(), weights={**model().weights, name: value})


def spec(**fields: Any) -> cf.ModelSpec:
    return cf.ModelSpec(**{"d_vocab": 2, "d_model": 2, "n_ctx": 2, **fields})


def go_on(ids: Any = (0,), n: Any = 1, seed: Any = 0) -> list[Any]:
    return list(cf.generate(model(), ids, n, cf.Sampling(), seed))


Case = tuple[Callable[[], Any], str]
NAMES: dict[str, Callable[[str], Any]] = {
    "graph[]": lambda name: graph()[name],
    "values": lambda name: graph().values[name],
    "inputs": lambda name: graph().inputs[name],
    "weights": lambda name: model().weights[name],
    "cell": lambda name: graph().cell(name, 0, 0),
    "live[]": lambda name: live()[name],
    "live.cell": lambda name: live().cell(name, 0, 0),
    "set": lambda name: live().set(name, 0, 0, 1.0),
    "changed": lambda name: cf.variants(graph(), [{(name, 0, 0): 1.0}]),
    "variants": lambda name: cf.variants(graph(), [{}])[name],
    "book": lambda name: cf.build("cat-sat").values[name],
}
CELLS: dict[str, Case] = {
    "a row and a half": (lambda: graph().cell("W_E", 0.5, 0), "row"),
    "a row that is a text": (lambda: graph().cell("W_E", "a", 0), "row"),
    "a row before the first": (lambda: graph().cell("W_E", -1, 0), "rows run"),
    "set half a row": (lambda: live().set("W_E", 0.5, 0, 1.0), "row"),
    "beyond a float": (lambda: live().set("W_E", 0, 0, OUT_OF_RANGE), "finite"),
    "of 5,000 digits": (lambda: live().set("W_E", 0, 0, 10**5000), "finite"),
    "nothing": (lambda: live().set("W_E", 0, 0, None), "finite"),
    "not a number": (lambda: live().set("W_E", 0, 0, float("nan")), "finite"),
    "complex": (lambda: live().set("W_E", 0, 0, 1j), "finite"),
    "a text": (lambda: live().set("W_E", 0, 0, "a"), "is not a number"),
    "half an id": (lambda: live().set("tokens", 0, 0, 0.5), "whole numbers"),
    "a place of 5,000 digits": (lambda: graph().parse(f"W_E[{'9' * 5000},0]"), "name a cell"),
}
IDS: dict[str, Case] = {
    "graph of fractions": (lambda: model().graph([0.5, 1.7]), "whole number"),
    "graph of truth": (lambda: model().graph([True]), "whole number"),
    "graph of texts": (lambda: model().graph(["a"]), "whole number"),
    "graph of a text": (lambda: model().graph("the bird sat"), "'bird' is not in the vocabulary"),
    "graph of nothing": (lambda: model().graph([None]), "whole number"),
    "passage of fractions": (lambda: cf.passage(model(), [0.5]), "whole number"),
    "generate from fractions": (lambda: go_on([0.5]), "whole number"),
    "build of fractions": (lambda: cf.build("cat-sat", ids=[0.5]), "ids"),
    "build of texts": (lambda: cf.build(model(), ids=["x"]), "whole number"),
    "decode below 0": (lambda: model().vocabulary.decode([-1]), "0 to 19"),
    "decode too many": (lambda: model().vocabulary.decode([99]), "0 to 19"),
    "decode a fraction": (lambda: model().vocabulary.decode([0.5]), "0 to 19"),
    "decode no character": (lambda: cf.Characters(("a", " ")).decode([-1]), "0 to 1"),
}
CHOICES: dict[str, Case] = {
    "top_k and a half": (lambda: cf.Sampling(top_k=1.5), "top_k"),
    "top_k below 0": (lambda: cf.Sampling(top_k=-1), "top_k"),
    "top_p a text": (lambda: cf.Sampling(top_p="x"), "top_p"),
    "top_p not a number": (lambda: cf.Sampling(top_p=float("nan")), "top_p"),
    "temperature a text": (lambda: cf.Sampling("x"), "temperature"),
    "temperature not a number": (lambda: cf.Sampling(float("nan")), "temperature"),
    "seed below 0": (lambda: cf.passage(model(), [0], seed=-1), "seed"),
    "a seed and a half": (lambda: cf.passage(model(), [0], seed=1.5), "seed"),
    "build's seed": (lambda: cf.build("cat-sat", seed=-1), "seed"),
    "generate's seed": (lambda: go_on(seed=-1), "seed"),
    "no tokens": (lambda: go_on(n=0), "at least 1"),
    "a token and a half": (lambda: go_on(n=1.5), "at least 1"),
    "columns and a half": (lambda: cf.passage(model(), [0], 2.5), "tokens"),
    "a second sentence": (lambda: cf.passage(model(), [0], second=[1]), "second"),
}
VOCABULARIES: dict[str, Case] = {
    "an empty word": (lambda: cf.WordList(("",)), "white space"),
    "two words": (lambda: cf.WordList(("a b",)), "white space"),
    "numbers": (lambda: cf.WordList((1, 2)), "white space"),
    "twice": (lambda: cf.WordList(("a", "a")), "twice"),
    "two characters": (lambda: cf.Characters(("ab",)), "one character"),
    "no character": (lambda: cf.Characters(("",)), "one character"),
}
MODELS: dict[str, Case] = {
    "theta below 0": (lambda: spec(n_heads=0, rope_theta=-1), "rope_theta"),
    "theta 0": (lambda: spec(rope_theta=0.0), "rope_theta"),
    "no words out": (lambda: spec(d_vocab_out=0), "d_vocab_out"),
    "words out below 0": (lambda: spec(d_vocab_out=-1), "d_vocab_out"),
    "a weight of nothing": (lambda: with_weight(None), "W_E"),
    "a weight of texts": (lambda: with_weight([["a"] * 5] * 20), "W_E"),
    "a complex weight": (lambda: with_weight(model().weights["W_E"] * 1j), "W_E"),
    "a ragged weight": (lambda: with_weight([[1.0], [1.0, 2.0]]), "W_E"),
    "a weight of three axes": (lambda: with_weight(np.zeros((2, 3, 4))), "shape"),
    "a weight too many": (lambda: with_weight(np.zeros((1, 1)), "nope"), "nope"),
}
OF_WORKSHEETS: dict[str, dict[str, Any]] = {
    "prompt": {"prompt": "x"},
    "ids": {"ids": [1]},
    "columns": {"n_tokens": 3},
    "parts": {"live": ["blocks.0"]},
    "second": {"second": "x"},
}
BUILDS: dict[str, Case] = {
    **{
        f"worksheets with {name}": (
            lambda given=given: cf.build("kv-cache", **given),
            "has no model",
        )
        for name, given in OF_WORKSHEETS.items()
    },
    "parts by number": (lambda: cf.build("cat-sat", live=3), "live"),
    "parts by one text": (lambda: cf.build("cat-sat", live="blocks.0"), "live"),
    "a prompt and ids": (
        lambda: cf.build(model(), prompt="the", ids=[0]),
        "prompt and ids cannot be combined",
    ),
}
CASES = CELLS | IDS | CHOICES | VOCABULARIES | MODELS | BUILDS


@pytest.mark.parametrize("case", CASES)
def test_wrong_value_is_one_line(case: str) -> None:
    do, fact = CASES[case]
    with pytest.raises(cf.InputError) as found:
        do()
    assert fact in str(found.value) and str(found.value).isprintable()


@pytest.mark.parametrize("where", NAMES)
def test_wrong_name_gets_the_same_answer_everywhere(where: str) -> None:
    """An InputError that names the nearest; and a KeyError, as of any mapping."""
    with pytest.raises(cf.InputError, match="'W_EE'; nearest: W_E") as found:
        NAMES[where]("W_EE")
    assert isinstance(found.value, KeyError)


def test_arrays_by_name_are_a_mapping() -> None:
    values = graph().values
    assert "nope" not in values and values.get("nope") is None
    assert set(values) == set(graph().blocks) and len(values) == len(graph().blocks)


@pytest.mark.parametrize("name", NO_FILE, ids=["long", "long in a folder", "NUL", "surrogate"])
def test_impossible_file_name_is_refused(name: str) -> None:
    book = cf.build(model(), "the")
    for do in (
        lambda: cf.load(name),
        lambda: cf.graph(name),
        lambda: cf.build(name),
        lambda: cf.save(model(), name),
        lambda: cf.write(book, f"{name}.xlsx"),
        lambda: cf.read(f"{name}.xlsx"),
    ):
        with pytest.raises(cf.InputError, match="name") as found:
            do()
        assert str(found.value).isprintable() and len(str(found.value)) < 300


def test_misspelt_public_name_is_suggested() -> None:
    with pytest.raises(AttributeError, match="did you mean load"):
        cf.lode  # noqa: B018
    assert {"load", "build", "Evaluator"} <= set(dir(cf))


HANDED_OUT: dict[str, Callable[[], np.ndarray]] = {
    "a weight": lambda: model().weights["W_E"],
    "an average": lambda: model().averages["blocks.0.attn.h0.average"],
    "an input": lambda: graph().inputs["W_E"],
    "the ids": lambda: graph().inputs["tokens"],
    "a value": lambda: graph().values["probs"],
    "a weight's value": lambda: graph().values["W_E"],
    "live": lambda: live()["probs"],
    "of a cell": lambda: graph().cell("probs", 0, 0).values["probs"],
    "of a live cell": lambda: edited().cell("W_E", 0, 0).values["W_E"],
    "of what was set": lambda: edited()["W_E"],
    "of variants": lambda: cf.variants(graph(), [{}])["probs"],
    "of a book": lambda: cf.build("cat-sat").values["probs"],
}


@pytest.mark.parametrize("what", HANDED_OUT)
def test_returned_arrays_are_read_only(what: str) -> None:
    array = HANDED_OUT[what]()
    with pytest.raises(ValueError, match="read-only"):
        array[..., 0] = 5.0


def test_array_cannot_be_replaced() -> None:
    for arrays in (model().weights, model().averages, graph().inputs, graph().values):
        with pytest.raises(TypeError):
            arrays["W_E"] = np.zeros((20, 5))  # type: ignore[index]


def test_given_arrays_are_copied() -> None:
    """What a model, a graph, an evaluator were given they keep, whatever is done to it later."""
    mine = np.array(model().weights["W_E"])
    made = with_weight(mine)
    g = cf.Graph()
    given = np.ones((2, 2))
    block = g.input("x", given)
    shown = live()
    seen = g.input("y", shown["W_E"])
    mine[0, 0] = given[0, 0] = 5.0
    shown.set("W_E", 0, 0, 5.0)
    assert made.weights["W_E"][0, 0] == model().weights["W_E"][0, 0] != 5.0
    assert g.values[block.name][0, 0] == 1.0
    assert g.values[seen.name][0, 0] == model().weights["W_E"][0, 0]


def test_variants_have_one_entry_each() -> None:
    found = cf.variants(graph(), [{("W_U", 0, 0): 1.0}, {}, {}])
    assert {found[name].shape for name in graph().blocks} == {
        (3, *block.shape) for block in graph()
    }
