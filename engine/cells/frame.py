"""Frame: a block's values with labels for its rows and columns, to look at or to hand on.

The words of tokens are labels where the graph knows them. `pandas.DataFrame(frame.to_dict(),
index=frame.rows)` is the same in pandas.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.cells import notebook
from engine.cells.block import Block

Label = str | int


@dataclass(frozen=True, eq=False)
class Frame:
    """A block's values, [rows, columns], with a label for each row and each column."""

    block: Block
    values: np.ndarray
    rows: Sequence[Label]
    columns: Sequence[Label]

    def __repr__(self) -> str:
        return f"<Frame {self.block.name} [{self.block.sides}]>"

    def to_dict(self) -> dict[Label, np.ndarray]:
        """The columns by their labels."""
        return {label: self.values[:, j] for j, label in enumerate(self.columns)}

    def _repr_html_(self) -> str:
        title = f"{self.block.name}, {self.block.sides}"
        return notebook.table(title, self.values, self.rows, self.columns, self.block.has)
