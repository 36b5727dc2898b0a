"""`gradient --target CELL`: the input cells that move any cell of a workbook."""

from collections.abc import Mapping

import numpy as np

from cellformer.command import printing, results
from cellformer.command.answer import Answer
from cellformer.command.cells import Cells, watched_cell
from cellformer.command.console import console, line
from cellformer.engine import InputError
from cellformer.engine.cells import cell_gradient
from cellformer.engine.cells.arrays import ranked
from cellformer.engine.cells.errors import UnknownNameError
from cellformer.engine.studies.sensitivity import Slope
from cellformer.exporters.compose import cell_gradient as on_sheets
from cellformer.exporters.compose import cells


def report(found: Cells, target: str, top: int) -> Answer:
    """The gradient of a cell by the input numbers, the largest first."""
    name, value, slopes = _of(found, target)
    inputs = {block.name for block in found.graph if not block.computed and block.kind != "ids"}
    typed = {block: slope for block, slope in slopes.items() if block in inputs}
    held = {block: cell_gradient.as_numbers(found.graph.inputs[block]) for block in typed}
    shares = {block: held[block] * slope for block, slope in typed.items()}

    def largest(sizes: Mapping[str, np.ndarray]) -> list[Slope]:
        return [
            Slope(
                f"{block}[{at[0]},{at[1]}]", *(float(x[block][at]) for x in (held, typed, shares))
            )
            for block, at in _largest(sizes, top)
        ]

    result: results.Gradient = {
        "objective": name,
        "value": value,
        "gradient": {block: slope.tolist() for block, slope in typed.items()},
        "by_gradient": largest(typed),
        "by_weight_times_gradient": largest(shares),
    }
    return Answer(lambda: _tell(result), lambda: result, "by_gradient")


def _tell(found: results.Gradient) -> None:
    """Print the cells with the largest gradients."""
    line(f"{found['objective']}: {found['value']:.6g}")
    if not found["by_gradient"]:
        line("no typed number changes this value")
        return
    lists = found["by_gradient"], found["by_weight_times_gradient"]
    for listed, title in zip(lists, ("|gradient|", "|value × gradient|"), strict=True):
        console.print()
        printing.rows(listed, f"typed cells with the largest {title}:")


def _of(found: Cells, target: str) -> tuple[str, float, Mapping[str, np.ndarray]]:
    """The cell's name, its value, and its gradient by every cell of the graph. A cell of the graph
    needs no workbook."""
    if not cells.is_address(target):
        try:
            block, i, j = found.graph.parse(target)
        except UnknownNameError:
            pass
        else:
            value = number(found.graph.cell(block.name, i, j).value, target)
            return f"{block.name}[{i},{j}]", value, cell_gradient.of_cell(found.graph, block, i, j)
    found.graph = found.book.graph
    cell = watched_cell(found.book, target)
    value = number(cell.value, cell.address)
    slopes = on_sheets.of_cell(found.book, (cell.sheet, cell.row, cell.col))
    return f"{cell.name} ({cell.address})", value, slopes


def number(value: float | str | bool, cell: str) -> float:
    """The number that a cell holds. Raises InputError for anything else."""
    if isinstance(value, float):
        return value
    held = f"holds {value!r}" if value != "" else "is empty"
    raise InputError(f"{cell} {held}; name a cell that holds a number")


def _largest(numbers: Mapping[str, np.ndarray], n: int) -> list[tuple[str, tuple[int, int]]]:
    """The n cells with the largest sizes other than 0, of either sign."""
    names = [name for name, x in numbers.items() for _ in range(x.size)]
    places = [at for x in numbers.values() for at in np.ndindex(*x.shape)]
    sizes = np.abs(np.concatenate([np.empty(0), *(x.ravel() for x in numbers.values())]))
    return [(names[k], places[k]) for k in ranked(sizes, min(n, int(np.count_nonzero(sizes))))]
