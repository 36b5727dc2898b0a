"""A sweep: one cell of a model runs through a range of values."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from cellformer.engine.cells.batch import variants
from cellformer.engine.cells.errors import InputError
from cellformer.engine.studies.study import Asked, Study

MOST_STEPS = 10_001


@dataclass(frozen=True)
class Row:
    """A value of the cell, and the model's answer."""

    cell: Annotated[str, "the cell that gets each value in turn"]
    value: Annotated[float, "of the cell", ".4f"]
    logit: Annotated[float, "of the target", ".4f"]
    probability: Annotated[float, "of the target", ".4f"]
    first: Annotated[str, "the likeliest word"]


@dataclass(frozen=True)
class Watched:
    """A value of the swept cell, and the value of another cell, in a workbook without a model."""

    cell: Annotated[str, "the cell that gets each value in turn"]
    value: Annotated[float, "of the cell", ".4f"]
    watched: Annotated[str, "the watched cell"]
    shows: Annotated[float, "what it shows", ".4f"]


@dataclass(frozen=True)
class Options:
    """The cell, and its values."""

    cell: Annotated[str, "A cell: 'blocks.0.attn.h1.W_Q[3,2]', or 'Weights!C9'."] = ""
    start: Annotated[float, "First value.", "from"] = -1.0
    stop: Annotated[float, "Last value.", "to"] = 1.0
    n_steps: Annotated[int, "Number of values.", "steps"] = 21

    def __post_init__(self) -> None:
        if self.n_steps < 1:
            raise InputError(f"n_steps is {self.n_steps}, but it must be at least 1")

    @property
    def values(self) -> list[float]:
        """The values from the first to the last: [n_steps]."""
        return np.linspace(self.start, self.stop, self.n_steps).tolist()  # type: ignore[no-any-return]


def _rows(asked: Asked) -> tuple[str, list[Row]]:
    asked.allow(asked.options.n_steps)
    target = asked.word(asked.target)
    block, i, j = asked.graph.parse(asked.options.cell)
    name, words, values = f"{block.name}[{i},{j}]", asked.words, asked.options.values
    found = variants(asked.graph, [{(block.name, i, j): x} for x in values])
    each = (found[name][:, asked.row] for name in ("logits", "probs"))  # [n_steps, d_vocab]
    rows = []
    for x, logits, probs in zip(values, *each, strict=True):
        if not np.isfinite(probs).all():
            raise InputError(
                f"{asked.options.cell} = {x:g} makes a probability infinite or undefined; choose "
                "another range"
            )
        first = words[int(np.argmax(logits))]
        rows.append(Row(name, x, float(logits[target]), float(probs[target]), first))
    return words[target], rows


STUDY = Study(
    "sweep",
    "Set one cell to each value of a range, and report the target word's logit and probability.",
    Row,
    _rows,
    Options,
)
