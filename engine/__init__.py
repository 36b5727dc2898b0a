"""The engine: a transformer as a graph of named blocks of cells, evaluated in float64.

Read `models/architectures/decoder.py` first (the forward pass), then `models/ops.py` (every
formula), `cells/graph.py` (blocks and cells), `cells/evaluator.py` (set a cell, recompute what it
changes).

Names are imported on first use: a command that computes nothing waits for none of it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cellformer.engine.cells.block import Block as Block
    from cellformer.engine.cells.errors import InputError as InputError
    from cellformer.engine.cells.evaluator import Evaluator as Evaluator
    from cellformer.engine.cells.graph import Cell as Cell
    from cellformer.engine.cells.graph import Graph as Graph
    from cellformer.engine.models.model import Model as Model
    from cellformer.engine.models.spec import ModelSpec as ModelSpec
    from cellformer.engine.text.tokenizer import WordList as WordList

HOMES = {
    "Block": "cells.block",
    "InputError": "cells.errors",
    "Evaluator": "cells.evaluator",
    "Cell": "cells.graph",
    "Graph": "cells.graph",
    "Model": "models.model",
    "ModelSpec": "models.spec",
    "WordList": "text.tokenizer",
}
__all__ = list(HOMES)


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{HOMES[name]}"), name)
