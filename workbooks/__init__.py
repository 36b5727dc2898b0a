"""The workbooks: a module or a package each, found by its name (with hyphens on the command line).

A module declares its place in learning order: the `TOPIC` of the gallery, the workbook of that
topic to read before, `AFTER` ("" for the first), and a `LEVEL`, what one has to know. It has a
`TITLE`, `name: what it is`, unless its `STORY` has. They are literals: a list of the workbooks reads
them from the sources, and imports none.

One may name cells in `EXERCISES`, `block[i,j]`, to be asked in any case by `build --exercise`.

A transformer has `PROMPT` (its default), `model()` and `build(model, passage)`, the Book;
`N_TOKENS` if it has more columns than the prompt has words. If its model is trained, it has
`train(seed, embed_scale)`, which yields each step's progress and then the model, `floor(ids)`, the
lowest possible loss on those ids, and `figures(model)`, its results; if its texts follow rules,
`fresh()`, new ones on which side effects of an edit are measured. Other workbooks have `book()`,
the Book; if something in them is trained, `train(seed)`, which yields each step's progress and then
the result, `figures` of it, `save(trained, folder, force)`, and `is_part(name)`, whether a file is
one that `save` writes; if that is a model, `transformer()`; if one is trained in the workbook
itself, `learnt(held)`, that model. A module's docstring says what to look at and what to try.
"""

import ast
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple


def names() -> list[str]:
    """The names of all workbooks, as on the command line."""
    from cellformer.engine.cells.packages import module_names  # the command sets numpy up first

    return sorted(n.replace("_", "-") for n in module_names(*__path__) if n[0] != "_")


TOPICS = (  # in learning order
    "A first model",
    "The next word",
    "Attention",
    "Words and positions",
    "Inside a block",
    "A whole model",
    "Learning",
    "Sizes",
)
LEVELS = {
    1: "school arithmetic is enough",
    2: "after the workbook cat-sat, which is one attention head",
    3: "after fluffy-creature, which is a whole block",
}
OF_A_MODEL = ("PROMPT", "model", "build")  # what a transformer's workbook declares


class Place(NamedTuple):
    """A workbook's declarations: its title, and its place in learning order."""

    title: str  # `name: what it is`
    topic: str
    after: str
    level: int


def title(name: str) -> str:
    """The title of a workbook, `name: what it is`."""
    return place(name).title


def level(name: str) -> int:
    """The level of a workbook, a key of `LEVELS`."""
    return place(name).level


def path() -> list[str]:
    """The names of all workbooks in learning order. Raises InputError for an unknown place."""
    from cellformer.exporters.compose.topological import (
        reading_order,  # the command sets numpy up first
    )

    places = {name: place(name) for name in names()}
    found: list[str] = []
    for topic in TOPICS:
        of_it = {name: at.after for name, at in places.items() if topic == at.topic}
        found += reading_order(of_it, "", f"workbook of {topic}")[1:]
    return found


def first() -> str:
    """The workbook to start with: the first in learning order."""
    return path()[0]


def by_topic() -> dict[str, list[str]]:
    """The names of all workbooks by topic, both in learning order."""
    listed = path()
    return {topic: [name for name in listed if topic == place(name).topic] for topic in TOPICS}


def place(name: str) -> Place:
    """The declarations of a workbook, read from its source. Raises InputError for an unknown
    name, with the nearest ones, and for a module that lacks a declaration."""
    from cellformer.engine.cells.errors import (
        InputError,
        nearest,
    )  # the command sets numpy up first

    if name not in names():
        like = nearest(name, names())
        if like.startswith("known"):
            like = "`cellformer list` shows all names; a model is a file, a folder, or owner/name"
        raise InputError(f"there is no workbook {name!r}; {like}")
    spec = find_spec(_module(name))
    assert spec is not None and spec.origin is not None
    told = _literals(spec.origin)
    lacking = [wanted for wanted in ("TOPIC", "AFTER", "LEVEL", "TITLE") if wanted not in told]
    if lacking:
        what = f"{spec.origin} is a workbook module, but does not declare {', '.join(lacking)}"
        raise InputError(f'{what}; add a line for each, such as {lacking[0]} = "..."')
    if told["TOPIC"] not in TOPICS:
        topic = told["TOPIC"]
        raise InputError(f"{name} has the unknown TOPIC {topic!r}; {nearest(str(topic), TOPICS)}")
    if told["LEVEL"] not in LEVELS:
        raise InputError(
            f"{name} has the unknown LEVEL {told['LEVEL']!r}; choose one of {[*LEVELS]}"
        )
    return Place(told["TITLE"], told["TOPIC"], told["AFTER"], told["LEVEL"])


def find(name: str) -> ModuleType:
    """The module of a workbook. Raises InputError as `place` does."""
    from cellformer.engine.cells.errors import declared  # the command sets numpy up first

    place(name)
    module = import_module(_module(name))
    return declared(module, "a workbook", () if hasattr(module, "book") else OF_A_MODEL)


def _module(name: str) -> str:
    return f"cellformer.workbooks.{name.replace('-', '_')}"


@cache
def _literals(file: str) -> dict[str, Any]:
    """The names that a source assigns texts and numbers, cached; TITLE is also what STORY has."""
    found: dict[str, Any] = {}
    for node in ast.parse(Path(file).read_text(encoding="utf-8")).body:
        match node:
            case ast.Assign([ast.Tuple(names)], ast.Tuple(values)):
                pairs = [*zip(names, values, strict=False)]
            case ast.Assign([ast.Name("STORY")], ast.Call(keywords=given)):
                pairs = [(ast.Name("TITLE"), each.value) for each in given if each.arg == "title"]
            case ast.Assign([name], value):
                pairs = [(name, value)]
            case _:
                continue
        for name, value in pairs:
            if isinstance(name, ast.Name) and isinstance(value, ast.Constant):
                found[name.id] = value.value
    return found
