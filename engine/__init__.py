"""The engine: a transformer as a graph of named blocks of cells, evaluated in float64.

Read `models/architectures/decoder.py` first (the forward pass), then `models/ops.py` (every
formula), `cells/graph.py` (blocks and cells), `cells/evaluator.py` (set a cell, recompute what it
changes).
"""

from cellformer.engine.cells.block import Block
from cellformer.engine.cells.errors import InputError
from cellformer.engine.cells.evaluator import Evaluator
from cellformer.engine.cells.graph import Cell, Graph
from cellformer.engine.models.model import Model
from cellformer.engine.models.spec import ModelSpec
from cellformer.engine.text.tokenizer import WordList

__all__ = ["Block", "Cell", "Evaluator", "Graph", "InputError", "Model", "ModelSpec", "WordList"]
