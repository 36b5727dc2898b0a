"""The engine: a transformer as a graph of named blocks of cells, evaluated in float64.

Read `models/architectures/decoder.py` first (the forward pass), then `models/ops.py` (every
formula), `cells/graph.py` (blocks and cells), `cells/evaluator.py` (set a cell, recompute what it
changes).
"""

from engine.cells.block import Block
from engine.cells.errors import InputError
from engine.cells.evaluator import Evaluator
from engine.cells.graph import Cell, Graph
from engine.models.model import Model
from engine.models.spec import ModelSpec
from engine.text.tokenizer import WordList

__all__ = ["Block", "Cell", "Evaluator", "Graph", "InputError", "Model", "ModelSpec", "WordList"]
