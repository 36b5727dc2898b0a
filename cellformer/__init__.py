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
    from cellformer import f as f
    from cellformer import plot as plot
    from cellformer.api import build as build
    from cellformer.api import exercise as exercise
    from cellformer.api import generate as generate
    from cellformer.api import grade as grade
    from cellformer.api import graph as graph
    from cellformer.api import load as load
    from cellformer.api import quantize as quantize
    from cellformer.api import read as read
    from cellformer.api import steer as steer
    from cellformer.api import why as why
    from cellformer.api import write as write
    from cellformer.commands import ablate as ablate
    from cellformer.commands import diff as diff
    from cellformer.commands import edit as edit
    from cellformer.commands import explain as explain
    from cellformer.commands import patch as patch
    from cellformer.commands import run as run
    from cellformer.commands import sweep as sweep
    from cellformer.commands import verify as verify
    from cellformer.engine.cells.batch import variants as variants
    from cellformer.engine.cells.block import Block as Block
    from cellformer.engine.cells.errors import InputError as InputError
    from cellformer.engine.cells.evaluator import Evaluator as Evaluator
    from cellformer.engine.cells.graph import Cell as Cell
    from cellformer.engine.cells.graph import Graph as Graph
    from cellformer.engine.models.checkpoint import save as save
    from cellformer.engine.models.choosing import Sampling as Sampling
    from cellformer.engine.models.generate import Passage as Passage
    from cellformer.engine.models.generate import passage as passage
    from cellformer.engine.models.model import Model as Model
    from cellformer.engine.models.spec import ModelSpec as ModelSpec
    from cellformer.engine.studies.ablation import effects as effects
    from cellformer.engine.studies.answer_graph import AnswerGraph as AnswerGraph
    from cellformer.engine.studies.edge_cuts import Cuts as Cuts
    from cellformer.engine.studies.folding import folded as folded
    from cellformer.engine.studies.lens import add_lens as add_lens
    from cellformer.engine.studies.wish import smallest_change as smallest_change
    from cellformer.engine.text.chat_template import ChatTemplate as ChatTemplate
    from cellformer.engine.text.tokenizer import Characters as Characters
    from cellformer.engine.text.tokenizer import WordList as WordList
    from cellformer.exporters.assemble.worksheets import Workbook as Workbook
    from cellformer.exporters.compose.book import Book as Book
    from cellformer.exporters.compose.story import Story as Story
    from cellformer.gallery import build_all as build_all
    from cellformer.studies import study as study
    from cellformer.table import Table as Table

HOMES = {
    "cellformer.api": (
        "build",
        "exercise",
        "generate",
        "grade",
        "graph",
        "load",
        "quantize",
        "read",
        "steer",
        "why",
        "write",
    ),
    "cellformer.commands": ("ablate", "diff", "edit", "explain", "patch", "run", "sweep", "verify"),
    "cellformer.gallery": ("build_all",),
    "cellformer.studies": ("study",),
    "cellformer.table": ("Table",),
    "cellformer.engine.cells.batch": ("variants",),
    "cellformer.engine.cells.block": ("Block",),
    "cellformer.engine.cells.errors": ("InputError",),
    "cellformer.engine.cells.evaluator": ("Evaluator",),
    "cellformer.engine.cells.graph": ("Cell", "Graph"),
    "cellformer.engine.models.checkpoint": ("save",),
    "cellformer.engine.models.choosing": ("Sampling",),
    "cellformer.engine.models.generate": ("Passage", "passage"),
    "cellformer.engine.models.model": ("Model",),
    "cellformer.engine.models.spec": ("ModelSpec",),
    "cellformer.engine.studies.ablation": ("effects",),
    "cellformer.engine.studies.answer_graph": ("AnswerGraph",),
    "cellformer.engine.studies.edge_cuts": ("Cuts",),
    "cellformer.engine.studies.folding": ("folded",),
    "cellformer.engine.studies.lens": ("add_lens",),
    "cellformer.engine.studies.wish": ("smallest_change",),
    "cellformer.engine.text.chat_template": ("ChatTemplate",),
    "cellformer.engine.text.tokenizer": ("Characters", "WordList"),
    "cellformer.exporters.assemble.worksheets": ("Workbook",),
    "cellformer.exporters.compose.book": ("Book",),
    "cellformer.exporters.compose.story": ("Story",),
}
MODULES = ("f", "plot")  # of this package; plot needs matplotlib
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
    """The known names nearest to a mistyped one."""
    from difflib import get_close_matches

    close = get_close_matches(name, __all__, n=3, cutoff=0.5)
    return f"did you mean {' or '.join(close)}?" if close else "dir(cellformer) has its names"


def __dir__() -> list[str]:
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
