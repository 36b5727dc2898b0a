"""A transformer you can open in a spreadsheet: every cell a formula, every number recomputed.

    import cellformer as cf

    model = cf.load("cat-sat")                      # from the gallery, or a checkpoint folder
    graph = model.graph(model.vocabulary.encode("the cat sat"))
    live = cf.Evaluator(graph)                      # set cells, recompute, reset
    cf.write(cf.build("cat-sat"), "cat-sat.xlsx")   # the workbook
    cf.read("edited.xlsx").inputs                   # what was changed in a workbook

Names are imported on first use, so that the command does not wait for modules that it does not
need.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from cellformer.version import __version__ as __version__

if TYPE_CHECKING:
    from cellformer import plot as plot
    from cellformer.api import build as build
    from cellformer.api import exercise as exercise
    from cellformer.api import grade as grade
    from cellformer.api import graph as graph
    from cellformer.api import load as load
    from cellformer.api import patch as patch
    from cellformer.api import quantize as quantize
    from cellformer.api import read as read
    from cellformer.api import steer as steer
    from cellformer.api import why as why
    from cellformer.api import write as write
    from cellformer.gallery import build_all as build_all
    from cellformer.studies import study as study
    from engine.cells.batch import variants as variants
    from engine.cells.block import Block as Block
    from engine.cells.errors import InputError as InputError
    from engine.cells.evaluator import Evaluator as Evaluator
    from engine.cells.graph import Cell as Cell
    from engine.cells.graph import Graph as Graph
    from engine.models.checkpoint import save as save
    from engine.models.choosing import Sampling as Sampling
    from engine.models.generate import Passage as Passage
    from engine.models.generate import generate as generate
    from engine.models.generate import passage as passage
    from engine.models.model import Model as Model
    from engine.models.spec import ModelSpec as ModelSpec
    from engine.text.tokenizer import Characters as Characters
    from engine.text.tokenizer import WordList as WordList
    from exporters.compose.book import Book as Book

HOMES = {
    "cellformer.api": (
        "build",
        "exercise",
        "grade",
        "graph",
        "load",
        "patch",
        "quantize",
        "read",
        "steer",
        "why",
        "write",
    ),
    "cellformer.gallery": ("build_all",),
    "cellformer.studies": ("study",),
    "engine.cells.batch": ("variants",),
    "engine.cells.block": ("Block",),
    "engine.cells.errors": ("InputError",),
    "engine.cells.evaluator": ("Evaluator",),
    "engine.cells.graph": ("Cell", "Graph"),
    "engine.models.checkpoint": ("save",),
    "engine.models.choosing": ("Sampling",),
    "engine.models.generate": ("Passage", "generate", "passage"),
    "engine.models.model": ("Model",),
    "engine.models.spec": ("ModelSpec",),
    "engine.text.tokenizer": ("Characters", "WordList"),
    "exporters.compose.book": ("Book",),
}
MODULES = ("plot",)  # of this package, that need what not everybody installs
__all__ = sorted([*MODULES, *(name for names in HOMES.values() for name in names)])


def __getattr__(name: str) -> Any:
    for home, names in HOMES.items():
        if name in names:
            return getattr(import_module(home), name)
    if name in MODULES:
        return import_module(f"cellformer.{name}")
    known = "" if name.startswith("_") else f"; {nearest(name)}"
    raise AttributeError(f"module 'cellformer' has no attribute {name!r}{known}")


def nearest(name: str) -> str:
    """Which of the names somebody may have meant."""
    from difflib import get_close_matches

    close = get_close_matches(name, __all__, n=3, cutoff=0.5)
    return f"did you mean {' or '.join(close)}?" if close else "dir(cellformer) has its names"


def __dir__() -> list[str]:
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
