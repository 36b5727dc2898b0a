"""A transformer you can open in a spreadsheet: every cell a formula, every number recomputed.

    import cellformer as cf

    model = cf.load("cat-sat")                      # of the gallery, or a checkpoint folder
    graph = model.graph(model.vocabulary.encode("the cat sat"))
    live = cf.Evaluator(graph)                      # set cells, recompute, reset
    cf.write(cf.build("cat-sat"), "cat-sat.xlsx")   # the workbook
    cf.read("edited.xlsx").inputs                   # what somebody changed in one

The names are imported when they are first used: the command should not wait for what it leaves out.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cellformer.api import build, graph, load, read, write
    from engine.cells.batch import variants
    from engine.cells.block import Block
    from engine.cells.errors import InputError
    from engine.cells.evaluator import Evaluator
    from engine.cells.graph import Cell, Graph
    from engine.models.checkpoint import save
    from engine.models.generate import Passage, Sampling, generate, passage
    from engine.models.model import Model
    from engine.models.spec import ModelSpec
    from engine.models.tokenizer import Characters, WordList
    from exporters.book import Book

__all__ = [
    "Block",
    "Book",
    "Cell",
    "Characters",
    "Evaluator",
    "Graph",
    "InputError",
    "Model",
    "ModelSpec",
    "Passage",
    "Sampling",
    "WordList",
    "build",
    "generate",
    "graph",
    "load",
    "passage",
    "read",
    "save",
    "variants",
    "write",
]
HOMES = {
    "cellformer.api": ("build", "graph", "load", "read", "write"),
    "engine.cells.batch": ("variants",),
    "engine.cells.block": ("Block",),
    "engine.cells.errors": ("InputError",),
    "engine.cells.evaluator": ("Evaluator",),
    "engine.cells.graph": ("Cell", "Graph"),
    "engine.models.checkpoint": ("save",),
    "engine.models.generate": ("Passage", "Sampling", "generate", "passage"),
    "engine.models.model": ("Model",),
    "engine.models.spec": ("ModelSpec",),
    "engine.models.tokenizer": ("Characters", "WordList"),
    "exporters.book": ("Book",),
}


def __getattr__(name: str) -> Any:
    for home, names in HOMES.items():
        if name in names:
            return getattr(import_module(home), name)
    raise AttributeError(f"module 'cellformer' has no attribute {name!r}")
