"""The workbooks: a module or a folder each, found by its name (hyphens on the command line).

A module has a place on the way through them: its `TOPIC` of the gallery's, the workbook of it that
one reads before, `AFTER` ("" for the first of the topic), and a `LEVEL`, what one has to know. It
has a `TITLE`, `name: what it is`, unless its `STORY` has.

One that is a transformer gives `PROMPT` (what it is built with), `model()` and
`build(model, passage)`, the Book; `N_TOKENS` where it is to have more columns than the prompt has
words. One whose model is trained gives `train(seed, embed_scale)`, which yields each step's
progress and then the model, `floor(ids)`, the least loss on those ids, and `figures(model)`, how
well it does; one whose texts follow rules gives `fresh()`, new ones that an edit is priced over. One
that is not a transformer gives `book()`, the Book; where something of it is trained, `train(seed)`,
which yields each step's progress and then what was trained, `figures` of that,
`save(trained, folder, force)`, and `is_part(name)`, whether a file is one that `save` writes; where
a model learns in the workbook itself, `learnt(held)`, that model. A module's docstring says what to
look at and what to try.
"""

from importlib import import_module
from types import ModuleType


def names() -> list[str]:
    """The names of all workbooks, as the command line has them."""
    from engine.cells.packages import module_names  # the command sets numpy up first

    return sorted(n.replace("_", "-") for n in module_names(*__path__) if n[0] != "_")


TOPICS = (  # in learning order
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
    """What a workbook is, in a line."""
    module = find(name)
    return str(module.TITLE if hasattr(module, "TITLE") else module.STORY.title)


def path() -> list[str]:
    """The names of all workbooks in learning order. Raises InputError for a place
    that there is not."""
    from exporters.compose.topological import reading_order  # the command sets numpy up first

    modules = {name: find(name) for name in names()}
    found: list[str] = []
    for topic in TOPICS:
        of_it = {name: module.AFTER for name, module in modules.items() if topic == module.TOPIC}
        found += reading_order(of_it, "", f"workbook of {topic}")[1:]
    return found


def by_topic() -> dict[str, list[str]]:
    """The names of all workbooks under their topics, both in learning order."""
    listed = path()
    return {topic: [name for name in listed if topic == find(name).TOPIC] for topic in TOPICS}


def find(name: str) -> ModuleType:
    """The module of a workbook. Raises InputError, with the nearest names, for an unknown one,
    and for a module that lacks a declaration."""
    from engine.cells.errors import InputError, declared, nearest  # the command sets numpy up first

    if name not in names():
        raise InputError(f"no workbook is named {name!r}; {nearest(name, names())}")
    module = import_module(f"workbooks.{name.replace('-', '_')}")
    wanted = [] if hasattr(module, "book") else [*OF_A_MODEL]
    wanted += [] if hasattr(module, "STORY") else ["TITLE"]
    declared(module, "a workbook", ("TOPIC", "AFTER", "LEVEL", *wanted))
    if module.TOPIC not in TOPICS:
        raise InputError(f"{name} has the TOPIC {module.TOPIC!r}; {nearest(module.TOPIC, TOPICS)}")
    if module.LEVEL not in LEVELS:
        raise InputError(f"{name} has the LEVEL {module.LEVEL!r}; it is one of {[*LEVELS]}")
    return module
