"""Spreadsheet engines that are Python packages, as engines of `verify`: each recomputes a file in
this process, and gives the values of cells by sheet, row and column from 0.

Aspose.Cells, BetterOffice and Formulon are required by nothing, and used only if named.
"""

import importlib.util
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from cellformer.engine.cells.values import CellError
from cellformer.exporters.compose.address import of_cell
from cellformer.exporters.file.reading import Value

Where = tuple[str, int, int]
Values = dict[Where, Value]


class UnreadableError(Exception):
    """A file that an engine cannot compute because it lacks a feature, which the message names."""


def installed(package: str) -> bool:
    """Whether a package, or a part of one, is installed."""
    try:
        return importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:  # of the whole
        return False


def in_ironcalc(path: Path, cells: Iterable[Where]) -> Values:
    """IronCalc's values. Raises UnreadableError."""
    import ironcalc

    try:
        model = ironcalc.load_from_xlsx(str(path), "en", "UTC", "en")
    except ironcalc.WorkbookError as error:
        raise UnreadableError(f"it cannot read this file ({error})") from None
    model.evaluate()
    sheets = {s["name"]: k for k, s in enumerate(model.get_worksheets_properties())}
    return {at: model.get_cell_value(sheets[at[0]], at[1] + 1, at[2] + 1) for at in cells}


def in_formualizer(path: Path, cells: Iterable[Where]) -> Values:
    """Formualizer's values. Its ISFORMULA is FALSE for every cell; here it is TRUE."""
    import formualizer

    book = formualizer.load_workbook(str(path))
    override: Any = {"min_args": 1, "max_args": 1, "allow_override_builtin": True}
    book.register_function("_xlfn.ISFORMULA", _all_true, **override)
    book.set_temporal_egress("serial")  # dates as numbers
    book.evaluate_all()
    found: dict[Where, Any] = {at: book.get_value(at[0], at[1] + 1, at[2] + 1) for at in cells}
    return {at: _error(x["kind"]) if isinstance(x, dict) else x for at, x in found.items()}


def _all_true(cells: Any) -> Any:
    """TRUE for a cell, or for each cell of a range."""
    return [[True] * len(row) for row in cells] if isinstance(cells, list) else True


def _error(name: str) -> CellError:
    """An error as Excel spells it: "name" becomes #NAME?."""
    name = name.upper()
    return CellError({"NAME": "#NAME?", "NA": "#N/A", "DIV": "#DIV/0!"}.get(name, f"#{name}!"))


def in_aspose(path: Path, cells: Iterable[Where]) -> Values:
    """Aspose.Cells' values. It is commercial, with an evaluation version; files that this saves
    would carry a watermark, but none is saved."""
    os.environ["DOTNET_SYSTEM_GLOBALIZATION_INVARIANT"] = "1"  # it looks for ICU otherwise
    from aspose.cells import Workbook

    book = Workbook(str(path))
    book.calculate_formula()
    sheets = {sheet.name: sheet.cells for sheet in book.worksheets}
    found = {at: sheets[at[0]].get(at[1], at[2]) for at in cells}
    return {at: CellError(c.value) if c.is_error_value else c.value for at, c in found.items()}


def in_betteroffice(path: Path, cells: Iterable[Where]) -> Values:
    """BetterOffice's values. Where it lacks a function, it keeps the number of the file."""
    from betteroffice_xlsx import CellError as Error
    from betteroffice_xlsx import Workbook

    book = Workbook.open_path(path)
    book.recalculate()

    def value(at: Where) -> Value:
        sheet, row, col = at
        found: Any = book.value(sheet, of_cell(row, col))
        return CellError(found.code) if isinstance(found, Error) else found

    return {at: value(at) for at in cells}


def in_formulon(path: Path, cells: Iterable[Where]) -> Values:
    """Formulon's values."""
    from formulon import ErrorCode, ValueKind, Workbook

    with Workbook.load(path.read_bytes()) as book:
        book.recalc()
        sheets = {book.sheet_name(k): k for k in range(book.sheet_count())}

        def value(at: Where) -> Value:
            found: Any = book.get_value(sheets[at[0]], at[1], at[2])
            if found.kind != ValueKind.ERROR:
                return found.to_python()  # type: ignore[no-any-return]
            return _error(ErrorCode(found.error_code).name)

        return {at: value(at) for at in cells}
