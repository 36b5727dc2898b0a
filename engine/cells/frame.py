"""Frame: a block's values with labels for its rows and columns, to look at or to hand on.

The words of tokens are labels where the graph knows them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cellformer.engine.cells import notebook
from cellformer.engine.cells.block import Block

if TYPE_CHECKING:
    from pandas import DataFrame

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

    def to_pandas(self) -> "DataFrame":
        """The same as a pandas DataFrame. Raises InputError if pandas is not installed."""
        return notebook.data_frame(self.values, index=list(self.rows), columns=list(self.columns))

    def _repr_html_(self) -> str:
        title = f"{self.block.name}, {self.block.sides}"
        return notebook.table(title, self.values, self.rows, self.columns, self.block.has)
