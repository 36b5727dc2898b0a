"""Table: the rows that a study or a command found, to look at or to hand on.

It is a list of rows, so that `for`, `sorted`, `json.dumps` and `pandas.DataFrame` take it as it is.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from cellformer.engine.cells import notebook
from cellformer.engine.cells.arguments import explained_class
from cellformer.engine.cells.errors import nearest

if TYPE_CHECKING:
    from pandas import DataFrame


class Row(dict[str, Any]):
    """A row by the names of its columns: `row["word"]`, or `row.word`."""

    def __getattr__(self, name: str) -> Any:
        if name in self:
            return self[name]
        raise AttributeError(f"the row has no column {name!r}; {nearest(name, self)}")


@explained_class
class Table(list[Row]):
    """Rows of a table, with the whole result of the command beside them.

    `print(table)` prints what the command prints; `table.result` is what --json prints.

    >>> table = cf.ablate("cat-sat", "the cat sat")
    >>> table
    <Table of 2 rows: part, change, before, probability, first>
    >>> table[0].part, table[0]["first"]
    ('blocks.0.attn', 'mat')
    >>> list(table.to_dict()["part"])
    ['blocks.0.attn', 'blocks.0.attn.h0']
    """

    def __init__(
        self,
        rows: Iterable[Mapping[str, Any]] = (),
        result: Mapping[str, Any] | None = None,
        told: Callable[[], str] | None = None,
    ) -> None:
        super().__init__(map(Row, rows))
        self.result: dict[str, Any] = dict(result or {})
        self._told = told

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(dict.fromkeys(name for row in self for name in row))

    def to_dict(self) -> dict[str, list[Any]]:
        """The columns by their names; None where a row has no such value."""
        return {name: [row.get(name) for row in self] for name in self.columns}

    def to_pandas(self) -> "DataFrame":
        """The same as a pandas DataFrame. Raises InputError if pandas is not installed."""
        return notebook.data_frame(self.to_dict())

    def __repr__(self) -> str:
        columns = self.columns
        more = ", ..." if len(columns) > 8 else ""
        return f"<Table of {len(self)} rows: {', '.join(columns[:8])}{more}>"

    def __str__(self) -> str:
        return self._told() if self._told else repr(self)

    def _repr_html_(self) -> str:
        columns = self.columns
        values = np.empty((len(self), len(columns)), dtype=object)
        for i, row in enumerate(self):
            values[i] = [row.get(name) for name in columns]
        title = f"{len(self)} rows"
        return notebook.table(
            title, values, range(len(self)), columns, lambda i, j: values[i, j] is not None
        )
