"""Aspose.Cells, which follows Excel closely, as an engine of `verify`.

It is commercial, with an evaluation version on PyPI. Nothing requires it: it is used only if named.
Files that it saves would carry a watermark; it saves none here.
"""

import importlib.util
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from engine.cells.values import CellError
from exporters.file.reading import Value

REMEDY = "pip install aspose-cells-python"


def installed() -> bool:
    """Whether it is installed."""
    return bool(importlib.util.find_spec("aspose") and importlib.util.find_spec("aspose.cells"))


def recompute(path: Path, cells: Iterable[tuple[str, int, int]]) -> dict[Any, Value]:
    """The values of cells, by sheet, row and column from 0, after a full recalculation."""
    os.environ["DOTNET_SYSTEM_GLOBALIZATION_INVARIANT"] = "1"  # it looks for ICU otherwise
    from aspose.cells import Workbook

    book = Workbook(str(path))
    book.calculate_formula()
    sheets = {sheet.name: sheet.cells for sheet in book.worksheets}
    found = {at: sheets[at[0]].get(at[1], at[2]) for at in cells}
    return {at: CellError(c.value) if c.is_error_value else c.value for at, c in found.items()}
