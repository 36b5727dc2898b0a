"""Matrices in cells, written as in mathematics: `W_1 @ x + b_1`, `(q.T @ k) / SQRT(2)`.

A `Matrix` has an expression for every entry; one that stands in cells is `Cells`. A product of two
rows, or of two columns, is a SUMPRODUCT; SUMPRODUCT does not take a row and a column, so their
product is written term by term. A `MatrixSheet` puts matrices on a sheet.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from operator import add, sub, truediv
from typing import Any

import numpy as np

from cellformer.engine.cells.access import Span
from cellformer.engine.cells.expression import Area, Expression
from cellformer.engine.cells.functions import SUM, SUMPRODUCT
from cellformer.exporters.compose.composer import Composer, Texts


class Matrix:
    """A matrix of expressions, [rows, columns]."""

    def __init__(self, shape: Span, entry: Callable[[int, int], Any]):
        self.shape, self.entry = shape, entry

    def __getitem__(self, at: tuple[int, int]) -> Any:
        return self.entry(*at)

    def __add__(self, other: "Matrix") -> "Matrix":
        return self._each(add, other)

    def __sub__(self, other: "Matrix") -> "Matrix":
        return self._each(sub, other)

    def __truediv__(self, divisor: Expression) -> "Matrix":
        return self._each(truediv, Matrix((1, 1), lambda i, j: divisor))

    def _each(self, sign: Callable[[Any, Any], Any], other: "Matrix") -> "Matrix":
        """An operation entry by entry; the other operand may be one row, one column or one
        number."""
        last_row, last_col = other.shape[0] - 1, other.shape[1] - 1
        return Matrix(
            self.shape, lambda i, j: sign(self[i, j], other[min(i, last_row), min(j, last_col)])
        )

    def __matmul__(self, other: "Matrix") -> "Matrix":
        """The matrix product, term by term."""
        inner = range(self.shape[1])
        return Matrix(
            (self.shape[0], other.shape[1]),
            lambda i, j: reduce(add, [self[i, k] * other[k, j] for k in inner]),
        )


class Cells(Matrix):
    """A matrix that stands in cells."""

    def __init__(self, area: Area):
        super().__init__(area.shape, lambda i, j: area[i, j])
        self.area = area

    def __getitem__(self, at: tuple[int | slice, int | slice]) -> Area:
        return self.area[at]

    @property
    def T(self) -> "Turned":  # noqa: N802 (as numpy has it)
        """The transpose."""
        return Turned(self)

    def __matmul__(self, other: Matrix) -> Matrix:
        """The matrix product; with a transpose, of rows with rows."""
        if not isinstance(other, Turned):
            return super().__matmul__(other)
        rows = other.cells
        return Matrix(
            (self.shape[0], rows.shape[0]), lambda i, j: SUMPRODUCT(self[i, :], rows[j, :])
        )


class Turned(Matrix):
    """The transpose of a matrix in cells."""

    def __init__(self, cells: Cells):
        super().__init__(cells.shape[::-1], lambda i, j: cells[j, i])
        self.cells = cells

    def __matmul__(self, other: Matrix) -> Matrix:
        """The matrix product; with a matrix in cells, of columns with columns."""
        if not isinstance(other, Cells):
            return super().__matmul__(other)
        return Matrix(
            (self.shape[0], other.shape[1]),
            lambda i, j: SUMPRODUCT(self.cells[:, i], other[:, j]),
        )


def hstack(parts: Sequence[Matrix]) -> Matrix:
    """Matrices of one shape, side by side."""
    height, width = parts[0].shape
    return Matrix((height, width * len(parts)), lambda i, j: parts[j // width][i, j % width])


def vstack(parts: Sequence[Matrix]) -> Matrix:
    """Matrices of one shape, one below the other."""
    height, width = parts[0].shape
    return Matrix((height * len(parts), width), lambda i, j: parts[i // height][i % height, j])


def shares_of_rows(x: Cells) -> Matrix:
    """Every entry divided by its row's sum: the second half of a softmax along rows."""
    return Matrix(x.shape, lambda i, j: x[i, j] / SUM(x[i, :]))


def sums_of_rows(x: Cells) -> Matrix:
    """A column with the sum of each row."""
    return Matrix((x.shape[0], 1), lambda i, j: SUM(x[i, :]))


def numbered(_: str, shape: Span) -> tuple[Texts, Texts]:
    """Labels for a matrix's rows and columns: numbers from 1."""
    height, width = ([str(k + 1) for k in range(n)] for n in shape)
    return height, width


class MatrixSheet:
    """A sheet of matrices. Titles are names and shapes; `labels` gives row and column heads for a
    matrix, by its name and shape.

    `given` are the typed numbers and texts, [rows, columns] by name; `sheet[name]` is any matrix of
    the workbook that has a place.
    """

    def __init__(
        self,
        ws: Composer,
        given: Mapping[str, np.ndarray] | None = None,
        labels: Callable[[str, Span], tuple[Texts, Texts]] = numbered,
    ):
        self.ws, self._given, self._labels = ws, given or {}, labels

    def __getitem__(self, name: str) -> Cells:
        return Cells(self.ws.book.graph[name].area)

    def section(self, heading: str, *equations: str) -> None:
        """A heading and the equations of the following matrices."""
        self.ws.heading(heading)
        self.ws.text(*equations, style="equation")

    def given(
        self, name: str, beside: Cells | None = None, style: str = "weight", rows: Texts = ()
    ) -> Cells:
        """A typed matrix, below the last one or to the right of another."""
        values = self._given[name]
        usual, cols = self._labels(name, values.shape)
        return Cells(
            self.ws.typed(
                name,
                values,
                rows or usual,
                cols,
                _title(name, values.shape),
                style,
                beside.area if beside else None,
            )
        )

    def computed(
        self,
        name: str,
        matrix: Matrix,
        beside: Cells | None = None,
        style: str = "activation",
        rows: Texts = (),
        cols: Texts = (),
        title: str = "",
    ) -> Cells:
        """A matrix of formulas, below the last one or to the right of another."""
        usual_rows, usual_cols = self._labels(name, matrix.shape)
        return Cells(
            self.ws.computed(
                name,
                matrix.shape,
                matrix.entry,
                rows or usual_rows,
                cols or usual_cols,
                title or _title(name, matrix.shape),
                style,
                beside.area if beside else None,
            )
        )


def _title(name: str, shape: Span) -> str:
    return f"{name}: {shape[0]} × {shape[1]}"
