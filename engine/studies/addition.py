"""Additions of a study to a workbook of a model, declared in the study's own file.

A file of this folder with an `ADDITION` is found by being there. From it follow the options of
`build`, what cannot be combined, the graph, the sheet of its blocks, their meanings, lines on Start
and facts on Source. The page itself is a file of `exporters/pages/`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from cellformer.engine import studies as files
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.errors import InputError
from cellformer.engine.cells.graph import Graph
from cellformer.engine.cells.packages import declaring
from cellformer.engine.models.generate import Passage
from cellformer.engine.models.model import Model

LEAD, LOSS = "the target’s lead", "the loss"  # what a backward pass differentiates
Asked = Any  # what an addition is asked for, of a type of its own
Studies = Mapping[str, Asked]  # what a workbook is asked to show besides the forward pass, by name


class Option(NamedTuple):
    """An option of `build`."""

    name: str  # as people type it, without dashes
    kind: type[bool] | type[str] | type[Path]
    help: str
    of_blocks: bool = False  # whether it names a block, which a shell can complete


class Given(NamedTuple):
    """The options that somebody gave, and the model that they are for."""

    options: Mapping[str, Any]  # those of additions, by name
    name: str  # of the model
    model: Model
    ids: Sequence[int]  # of the prompt
    encode: Callable[..., list[int]]  # a text as ids; `what` it is stands in errors


def _as_it_is(graph: Graph, passage: Passage, asked: Asked) -> Graph:
    return graph


def _nothing(*_: Any) -> None:
    pass


@dataclass(frozen=True)
class Addition:
    """The part of a workbook that one study adds."""

    name: str  # of its option, and in `Plan.studies`
    options: Sequence[Option]  # its own first; the others go with that one
    asked: Callable[[Given], Asked] = lambda given: True
    typed: str = ""  # its option in errors; "": `--name`

    # what it needs, and what it cannot be combined with
    instead: str = ""  # what to do with a model that is not shown whole; "": any will do
    apart: Sequence[str] = ()  # other additions, by name
    decoder: bool = False  # whether it needs a model that predicts the next word, all of it live
    one_stack: bool = False  # whether a model with an encoder and a decoder will not do
    # raises InputError for sizes that are too large, given the most weights
    check: Callable[[Model, Asked, int], None] = _nothing
    prompt_alone: bool = False  # whether there is no room beyond the prompt, unless asked for

    # what it adds to the graph: before the lens, after it, and once tokens follow what is typed
    adds: Callable[[Any, Passage, Asked], Any] = _as_it_is
    ends: Callable[[Graph, Passage], None] = _nothing
    follows: Callable[[Graph, Sequence[str], Sequence[str]], None] = _nothing
    gradient_of: str = ""  # what its backward pass differentiates

    # where its blocks stand, and what they mean
    sheet: str = ""
    on_page: bool = False  # whether a page in a browser shows that sheet, too
    part: str = ""  # of the names of its blocks
    holds: Callable[[Block, Graph], bool] = lambda block, graph: False  # other blocks of that sheet
    meanings: Mapping[str, str] = field(default_factory=dict)  # by name
    look: Sequence[str] = ()  # lines of "What to look at"

    # the facts on Source from which `asked` is made again; ValueError for impossible ones
    facts: Callable[[Asked], Mapping[str, Any]] = lambda asked: {}
    read: Callable[[Mapping[str, Any], Model, Passage], Asked | None] = _nothing

    @property
    def option(self) -> str:
        """Its option, as people type it."""
        return self.typed or f"--{self.name}"


def additions() -> list[Addition]:
    """Every addition."""
    return list(declaring(files, "ADDITION"))


def of(studies: Studies) -> list[Addition]:
    """The additions that are asked for."""
    return [addition for addition in additions() if addition.name in studies]


def asked(given: Given) -> Studies:
    """The additions that options ask for, each with its own options. Raises InputError."""
    found = {}
    for addition in additions():
        main, *others = (option.name for option in addition.options)
        if main in given.options:
            found[addition.name] = addition.asked(given)
        elif alone := next((name for name in others if name in given.options), None):
            raise InputError(
                f"--{alone} works only together with --{main}: give both, or leave out --{alone}"
            )
    return found


def read(facts: Mapping[str, Any], model: Model, passage: Passage) -> Studies:
    """The additions of a workbook, read from the facts on its Source sheet. Raises ValueError for
    impossible facts."""
    found = {addition.name: addition.read(facts, model, passage) for addition in additions()}
    return {name: asked for name, asked in found.items() if asked is not None}


def facts(studies: Studies) -> dict[str, Any]:
    """The facts about additions, for a Source sheet."""
    return {
        name: fact for each in of(studies) for name, fact in each.facts(studies[each.name]).items()
    }


def sheet_of(block: Block, graph: Graph) -> str:
    """The name of the sheet on which a block of an addition stands; "" for other blocks."""
    for addition in additions():
        if addition.sheet and (block.part == addition.part or addition.holds(block, graph)):
            return addition.sheet
    return ""
