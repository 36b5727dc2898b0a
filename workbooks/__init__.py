"""The workbooks: a module or a folder each, found by its name (hyphens on the command line).

A module has a `TOPIC` of the gallery's, and a `TITLE`, `name: what it is`, unless its `STORY` has.

One that is a transformer gives `PROMPT` (what it is built with), `model()` and
`build(model, passage)`, the Book; `N_TOKENS` where it is to have more columns than the prompt has
words. One whose model is trained gives `train(seed, embed_scale)`, which yields each step's
progress and then the model, `floor(ids)`, the least loss on those ids, and `figures(model)`, how
well it does. One that is not gives `book()`, the Book. A module's docstring says what to look at
and what to try.
"""

from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType


def names() -> list[str]:
    """The names of all workbooks, as the command line has them."""
    return sorted(m.name.replace("_", "-") for m in iter_modules(__path__) if m.name[0] != "_")


TOPICS = (
    "A whole model",
    "Words and positions",
    "Attention",
    "Inside a block",
    "The last step",
    "Sizes",
)
OF_A_MODEL = ("PROMPT", "model", "build")  # what a transformer's workbook declares


def title(name: str) -> str:
    """What a workbook is, in a line."""
    module = find(name)
    return str(module.TITLE if hasattr(module, "TITLE") else module.STORY.title)


def by_topic() -> dict[str, list[str]]:
    """The names of all workbooks under their topics."""
    from engine.cells.errors import InputError, nearest

    topics = {name: find(name).TOPIC for name in names()}
    for name, topic in topics.items():
        if topic not in TOPICS:
            raise InputError(f"{name} has the TOPIC {topic!r}; {nearest(topic, TOPICS)}")
    return {topic: [name for name in names() if topics[name] == topic] for topic in TOPICS}


def find(name: str) -> ModuleType:
    """The module of a workbook. Raises InputError, with the nearest names, for an unknown one,
    and for a module that lacks a declaration."""
    from engine.cells.errors import InputError, declared, nearest  # the command sets numpy up first

    if name not in names():
        raise InputError(f"no workbook is named {name!r}; {nearest(name, names())}")
    module = import_module(f"workbooks.{name.replace('-', '_')}")
    wanted = [] if hasattr(module, "book") else [*OF_A_MODEL]
    wanted += [] if hasattr(module, "STORY") else ["TITLE"]
    return declared(module, "a workbook", ("TOPIC", *wanted))
