"""The engine: a transformer as a graph of named blocks of cells, evaluated in float64.

Read `models/decoder.py` first (the forward pass), then `ops.py` (every formula), `graph.py`
(blocks and cells) and `evaluator.py` (set a cell, recompute what it changes).
"""

from engine.block import Block
from engine.errors import InputError
from engine.evaluator import Evaluator
from engine.graph import Cell, Graph
from engine.model import Model
from engine.spec import ModelSpec
from engine.tokenizer import WordList

__all__ = ["Block", "Cell", "Evaluator", "Graph", "InputError", "Model", "ModelSpec", "WordList"]
