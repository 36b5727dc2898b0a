"""Every public function, constructor and method, given wrong arguments one at a time: an InputError
of one line, or a result, and never an error from deep inside.

The names are those of `cellformer.__all__`; a new one is found by being there. `GOOD` has right
values by the name of a parameter, for those without a default.
"""

import inspect
import pickle
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import cellformer as cf
from cellformer.engine.cells.access import Rect
from cellformer.engine.cells.arguments import explained
from cellformer.engine.cells.expression import expression

WRONG: tuple[Any, ...] = (
    *(None, "", "a\0b", "x" * 5000, b"x", -1, 0, 1.5, float("inf"), float("nan"), True),
    *([], ["x", 1], {}, {"x": 1}, object(), np.zeros((2, 3, 4)), np.array(["x"]), cf),
)
EXPENSIVE = {("build_all", "only"), ("verify", "engine")}  # nothing given is all of them
FEW = {
    "build_all": {"only": ["gram-schmidt"]},
    "verify": {"engine": "ironcalc"},
}  # what is given besides

# methods of a book that are called for every cell of a file, and that nobody else calls
OF_WRITERS = "lay locate read_at address text notation formulas lines shared reading refresh"
WITHOUT = {f"Book.{method}" for method in OF_WRITERS.split()} | {"Book"}


@cache
def model() -> cf.Model:
    return cf.load("cat-sat")


@cache
def graph() -> cf.Graph:
    return model().graph([0, 1, 3])


@cache
def book() -> cf.Book:
    return cf.build(model(), "the cat")


@cache
def another_book() -> cf.Book:
    return cf.build(model(), "the cat")


def worksheets() -> cf.Workbook:
    w = cf.Workbook("x")
    w.sheet("X", "a number").typed("x", [[1.0]])
    return w


GOOD: dict[str, Callable[[], Any]] = {
    "names": lambda: ["W_E"],
    "what": lambda: "cat-sat",
    "name": lambda: "cat-sat",
    "kind": lambda: "ablate",
    "prompts": lambda: ["the cat sat"],
    "head": lambda: "0.0",
    "say": lambda: "floor",
    "against": lambda: "the dog sat",
    "lists": lambda: {"cats": ["the cat", "a cat"], "dogs": ["the dog", "a dog"]},
    "only": lambda: ["loss"],
    "model": model,
    "graph": graph,
    "book": book,
    "folder": lambda: "folder",
    "path": lambda: cf.write(book(), "book.xlsx"),
    "paths": list,
    "changes": lambda: [{("W_E", 0, 0): 1.0}],
    "ids": lambda: [0, 1],
    "n_tokens": lambda: 2,
    "n_prompt": lambda: 2,
    "text": lambda: "the cat",
    "words": lambda: ("the", "cat"),
    "sampling": cf.Sampling,
    "numbers": lambda: np.zeros(2),
    "d_vocab": lambda: 3,
    "d_model": lambda: 2,
    "n_ctx": lambda: 4,
    "spec": lambda: model().spec,
    "weights": lambda: model().weights,
    "vocabulary": lambda: model().vocabulary,
    "logits": lambda: np.zeros(3),
    "r": lambda: 0.5,
    "i": lambda: 0,
    "j": lambda: 0,
    "value": lambda: 1.0,
    "values": lambda: np.zeros((20, 5)),  # of W_E
    "layer": lambda: 0,
    "axis": lambda: "d_model",
    "pattern": lambda: "*",
    "live": graph,
    "channel": lambda: "x",
    "cell": lambda: "W_E[0,0]",
    "shape": lambda: (1, 1),
    "axes": lambda: ("", ""),
    "title": lambda: "x",
    "area": lambda: graph()["W_E"][0, 0],
    "style": lambda: "number",
    "here": lambda: "Play",
    "block": lambda: graph()["W_E"],
    "of": lambda: graph()["W_E"],
    "among": list,
    "op": lambda: graph()["logits"].op,
    "others": dict,
    "inputs": dict,
    "edits": dict,
    "expression": lambda: lambda i, j: expression(1),
    "formula": lambda: expression(1),
    "formulas": lambda: {"more": lambda i, j: expression(1)},
    "side": lambda: 1,
    "out": lambda: Rect(0, 1, 0, 1),
    "rect": lambda: Rect(0, 1, 0, 1),
    "place": lambda: book().places["W_E"],
    "prefix": lambda: "x",
    "figure": lambda: cf.plot.stream(graph()),
    "columns": lambda: {"x": np.zeros((20, 5))},
    "subject": lambda: "x",
    "source": lambda: "{{ messages[0].content }}",
    "you": lambda: "Hello",
    "target": lambda: 0,
    "rival": lambda: 1,
    "row": lambda: 2,
    "position": lambda: 2,
    "change": dict,
    "answer": lambda: OBJECTS["AnswerGraph"](),
    "sets": lambda: [[]],
    "edge": lambda: ("embed", 0, "blocks.0.attn.h0", 0),
    "n": lambda: 1,
    "about": list,
    "look": list,
    "suggestions": list,
    "section": lambda: "x",
    "rows": list,
    "watch": lambda: worksheets()["x"][0, 0],
    "purpose": lambda: "x",
    "story": lambda: cf.Story("x: y", "", [], [], []),
}
BY_METHOD: dict[str, Any] = {"name": "W_E", "text": "W_E[0,0]"}  # of a graph
OBJECTS: dict[str, Callable[[], Any]] = {
    "Evaluator": lambda: cf.Evaluator(graph()),
    "Graph": lambda: model().graph([0, 1, 3]),  # a new one, since methods change it
    "Model": model,
    "ModelSpec": lambda: model().spec,
    "WordList": lambda: model().vocabulary,
    "Characters": lambda: cf.Characters(("a", "b")),
    "Sampling": cf.Sampling,
    "Passage": lambda: cf.passage(model(), [0, 1]),
    "Cell": lambda: graph().cell("W_E", 0, 0),
    "Block": lambda: graph()["W_E"],
    "Book": another_book,
    "Workbook": worksheets,
    "Table": lambda: cf.ablate("cat-sat"),
    "ChatTemplate": lambda: cf.ChatTemplate("{{ messages[0].content }}"),
    "AnswerGraph": lambda: cf.AnswerGraph(model().graph([0, 1, 3]), 2, 0),
    "Cuts": lambda: cf.Cuts(cf.AnswerGraph(model().graph([0, 1, 3]), 2, 0)),
}


def public() -> Iterator[tuple[str, Callable[[], Callable[..., Any]]]]:
    """Everything that can be called, by its name."""
    for name in cf.__all__:
        found = getattr(cf, name)
        if name == "InputError":  # what the others end in
            continue
        if isinstance(found, ModuleType):
            for inner, function in inspect.getmembers(found, inspect.isfunction):
                if not inner.startswith("_") and function.__module__ == found.__name__:
                    yield f"{name}.{inner}", lambda function=function: function
            continue
        yield name, lambda found=found: found
        if not inspect.isclass(found):
            continue
        for method, _ in inspect.getmembers(found, inspect.isfunction):
            if not method.startswith("_") and f"{name}.{method}" not in WITHOUT:
                yield f"{name}.{method}", lambda n=name, m=method: getattr(OBJECTS[n](), m)


def given(name: str, parameter: inspect.Parameter) -> Any:
    if name.startswith(("Graph.", "Evaluator.", "Book.")) and parameter.name in BY_METHOD:
        return BY_METHOD[parameter.name]
    assert parameter.name in GOOD, f"give GOOD a right value of {parameter.name}, for {name}"
    return GOOD[parameter.name]()


def shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 40 else text[:40]


Outcome = tuple[str, BaseException | None]


def outcomes(name: str, get: Callable[[], Callable[..., Any]]) -> Iterator[Outcome]:
    """What each wrong argument ends in."""
    parameters = inspect.signature(get()).parameters.values()
    named = [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    needed = [p for p in named if p.default is p.empty]
    for one in named:
        for value in WRONG:
            nothing = not isinstance(value, np.ndarray) and not value
            if (name, one.name) in EXPENSIVE and nothing:
                continue
            arguments = {p.name: given(name, p) for p in needed if p is not one}
            try:
                found = get()(**{**FEW.get(name, {}), **arguments, one.name: value})
                if inspect.isgenerator(found):
                    next(found, None)
            except BaseException as error:
                yield f"{name}({one.name}={shown(value)})", error
            else:
                yield f"{name}({one.name}={shown(value)})", None


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, _ in public()])
def test_wrong_arguments_are_named(name: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    for call, error in outcomes(name, dict(public())[name]):
        assert error is None or isinstance(error, cf.InputError), (call, repr(error))
        assert "\n" not in str(error), call


NAMED: dict[str, tuple[Callable[[], Any], str]] = {
    "a model": (
        lambda: cf.generate(None, [0], 1),
        "what must be a text or a path or of the class Model",
    ),
    "a list": (lambda: cf.variants(graph(), 5), "changes must be a list"),
    "a path": (lambda: cf.save(model(), 5), "folder must be a text or a path; you gave 5"),
    "a choice": (lambda: cf.ModelSpec(2, 2, 2, norm=[]), "norm"),
    "an executor": (lambda: cf.study("ablate", "cat-sat", ["the"], executor=[]), "submit"),
    "steps": (lambda: cf.study("sweep", "cat-sat", ["the"], n_steps=-1), "at least 1"),
    "a long name": (lambda: cf.study("ablate", "x" * 5000, ["the"]), "too long"),
    "a long file": (lambda: cf.study("ablate", "cat-sat", "x" * 5000), "too long"),
    "a long list": (lambda: cf.steer("cat-sat", "x" * 5000, prompt="the"), "too long"),
    "a text of words": (lambda: cf.WordList(""), "must be a list of texts"),
}


@pytest.mark.parametrize("case", NAMED)
def test_wrong_argument_is_named(case: str) -> None:
    do, fact = NAMED[case]
    with pytest.raises(cf.InputError) as found:
        do()
    assert fact in str(found.value)


def test_explained_functions_stay_what_they_are() -> None:
    assert pickle.loads(pickle.dumps(cf.study)) is cf.study
    assert list(inspect.signature(cf.load).parameters) == ["name", "adapter"]
    with pytest.raises(TypeError, match="missing 1 required"):
        cf.load()  # type: ignore[call-arg]


def test_error_that_is_no_arguments_fault_stays() -> None:
    @explained
    def broken(n: int, words: Sequence[str] = ()) -> None:
        raise TypeError("from inside")

    with pytest.raises(TypeError, match="from inside"):
        broken(1, ["x"])
    with pytest.raises(cf.InputError, match=r"words must be a list, each a text; you gave \[1\]"):
        broken(1, [1])
    with pytest.raises(cf.InputError, match="n must be a whole number; you gave 'x'"):
        broken("x")  # type: ignore[arg-type]
