"""The workbooks: a module or a package each, found by its name (with hyphens on the command line).

A module declares its place in learning order: the `TOPIC` of the gallery, the workbook of that
topic to read before, `AFTER` ("" for the first), and a `LEVEL`, what one has to know. It has a
`TITLE`, `name: what it is`, unless its `STORY` has.

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

from importlib import import_module
from types import ModuleType


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
    2: "after cat-sat, which is one head of attention",
    3: "after fluffy-creature, which is a whole block",
}
OF_A_MODEL = ("PROMPT", "model", "build")  # what a transformer's workbook declares


def title(name: str) -> str:
    """The title of a workbook, `name: what it is`."""
    module = find(name)
    return str(module.TITLE if hasattr(module, "TITLE") else module.STORY.title)


def path() -> list[str]:
    """The names of all workbooks in learning order. Raises InputError for an unknown place."""
    from cellformer.exporters.compose.topological import (
        reading_order,  # the command sets numpy up first
    )

    modules = {name: find(name) for name in names()}
    found: list[str] = []
    for topic in TOPICS:
        of_it = {name: module.AFTER for name, module in modules.items() if topic == module.TOPIC}
        found += reading_order(of_it, "", f"workbook of {topic}")[1:]
    return found


def first() -> str:
    """The workbook to start with: the first in learning order."""
    return path()[0]


def by_topic() -> dict[str, list[str]]:
    """The names of all workbooks by topic, both in learning order."""
    listed = path()
    return {topic: [name for name in listed if topic == find(name).TOPIC] for topic in TOPICS}


def find(name: str) -> ModuleType:
    """The module of a workbook. Raises InputError for an unknown name, with the nearest ones, and
    for a module that lacks a declaration."""
    from cellformer.engine.cells.errors import (  # the command sets numpy up first
        InputError,
        declared,
        nearest,
    )

    if name not in names():
        like = nearest(name, names())
        if like.startswith("known"):
            like += "; a model is named by its file or folder, or as owner/name of the Hub"
        raise InputError(f"no workbook is named {name!r}; {like}")
    module = import_module(f"cellformer.workbooks.{name.replace('-', '_')}")
    wanted = [] if hasattr(module, "book") else [*OF_A_MODEL]
    wanted += [] if hasattr(module, "STORY") else ["TITLE"]
    declared(module, "a workbook", ("TOPIC", "AFTER", "LEVEL", *wanted))
    if module.TOPIC not in TOPICS:
        raise InputError(f"{name} has the TOPIC {module.TOPIC!r}; {nearest(module.TOPIC, TOPICS)}")
    if module.LEVEL not in LEVELS:
        raise InputError(f"{name} has the LEVEL {module.LEVEL!r}; it is one of {[*LEVELS]}")
    return module
