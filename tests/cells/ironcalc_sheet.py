"""A sheet in IronCalc: blocks side by side, and formulas of others below, computed there."""

from typing import Any

import numpy as np
import pytest
from conftest import needs

from cellformer.engine.cells.access import Rect
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.expression import Area
from cellformer.engine.cells.formula import Formulas
from cellformer.exporters.compose.address import A1, address

WIDTH = 4  # columns that each block has
BELOW = 10  # rows above the formulas


class Sheet:
    """Formulas are added with the value that each should have, and compared all at once."""

    def __init__(self) -> None:
        needs("ironcalc")
        import ironcalc

        self.model = ironcalc.create("functions", "en", "UTC", "en")
        self.left: dict[str, int] = {}  # by block, its first column
        self.expected: list[tuple[str, float]] = []

    def put(self, name: str, values: np.ndarray) -> None:
        """A block of numbers."""
        self.left[name] = left = WIDTH * len(self.left)
        for (i, j), value in np.ndenumerate(values):
            self.model.update_cell_with_number(0, i + 1, left + j + 1, float(value))

    def add(self, block: Block, i: int, j: int, value: float) -> None:
        """The formula of a cell."""
        text = self._text(block, i, j)
        self.expected.append((text, value))
        row = BELOW + len(self.expected)
        self.model.set_user_input(0, row, 1, "=" + text.replace("_xlfn.", ""))

    def _text(self, block: Block, i: int, j: int) -> str:
        notation = A1(self._locate)
        if block.expression is not None:
            return block.formula(i, j).text(notation)
        there = Formulas(
            block, notation, lambda x, rect: address(*self._locate(x[:, :], rect)), _runs_down
        )
        return there(i, j)

    def _locate(self, area: Area, rect: Rect | None = None) -> tuple[str, Rect]:
        left = self.left[area.grid.name]
        top, bottom, first, stop = rect or area.rect
        return "Sheet1", Rect(top, bottom, left + first, left + stop)

    def agree(self) -> None:
        """Every formula has its value there."""
        self.model.evaluate()
        for k, (text, value) in enumerate(self.expected):
            found: Any = self.model.get_cell_value(0, BELOW + 1 + k, 1)
            assert isinstance(found, float | bool), (text, found)
            assert float(found) == pytest.approx(value, rel=1e-9, abs=1e-12), text


def _runs_down(block: Block, axis: int) -> bool:
    return axis == 0
