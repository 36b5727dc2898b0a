"""Whether formulas of a workbook wait for each other in a circle, whatever IF and INDEX pick.

A formula waits for every cell that it names. Formulas that read alike down a column are one run, so
that millions of them are a few thousand nodes; so is each range. What such a graph leaves in doubt,
a running sum down a column, is looked at cell by cell.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from engine.cells.access import Rect

# a sheet, and a rectangle of it in the order of `Rect`: a bare tuple is made in half the time
Range = tuple[str, int, int, int, int]


class Reference(NamedTuple):
    """A range that a formula names. Each number counts from the formula's own cell, unless it is
    fixed: then from the sheet's first."""

    sheet: str
    top: int
    left: int
    bottom: int  # the row and the column of its last cell
    right: int
    fixed: tuple[bool, bool, bool, bool]  # in that order


@dataclass(eq=False, slots=True)
class Run:
    """Formulas that read alike, from one row of a column to another."""

    sheet: str
    col: int
    top: int
    bottom: int  # the row after the last
    reads: tuple[Reference, ...]

    def ranges(self) -> Iterator[Range]:
        """What all of them read, as rectangles of sheets."""
        for sheet, top, left, bottom, right, fixed in self.reads:
            top += 0 if fixed[0] else self.top
            left += 0 if fixed[1] else self.col
            bottom += 1 if fixed[2] else self.bottom
            right += 1 if fixed[3] else self.col + 1
            yield sheet, top, bottom, left, right

    def cells(self) -> Iterator["Run"]:
        """Each of them alone."""
        if self.bottom - self.top == 1:
            yield self
            return
        for row in range(self.top, self.bottom):
            yield replace(self, top=row, bottom=row + 1)


class _Columns:
    """Runs by sheet and column, to be found by a rectangle."""

    def __init__(self, runs: Iterable[Run]):
        self._runs: dict[str, dict[int, list[Run]]] = {}
        for run in runs:
            self._runs.setdefault(run.sheet, {}).setdefault(run.col, []).append(run)
        for columns in self._runs.values():
            for column in columns.values():
                column.sort(key=lambda run: run.top)
        self._columns = {sheet: sorted(columns) for sheet, columns in self._runs.items()}

    def within(self, sheet: str, top: int, bottom: int, left: int, right: int) -> list[Run]:
        """The runs that a rectangle cuts."""
        columns, found = self._columns.get(sheet, []), []
        for k in range(bisect_left(columns, left), bisect_left(columns, right)):
            runs = self._runs[sheet][columns[k]]
            first = bisect_right(runs, top, key=lambda run: run.bottom)
            end = bisect_left(runs, bottom, first, key=lambda run: run.top)
            found += runs[first:end]
        return found


Node = Run | Range
Graph = dict[Node, list[Node]]


def cycle(runs: Iterable[Run], kept: Sequence[tuple[str, Rect]] = ()) -> list[Run]:
    """Cells whose formulas wait for each other; [] if there are none. Nothing waits for a cell of
    the ranges that are `kept`: what these held before is there already."""
    for around in _around(list(_but(kept, runs))):
        for certain in _around([cell for run in around for cell in run.cells()]):
            return certain
    return []


def _but(kept: Sequence[tuple[str, Rect]], runs: Iterable[Run]) -> Iterator[Run]:
    """Runs without the cells of some ranges."""

    def cut(run: Run) -> bool:
        return any(
            sheet == run.sheet
            and area.left <= run.col < area.right
            and area.top < run.bottom
            and run.top < area.bottom
            for sheet, area in kept
        )

    for run in runs:
        yield from (cell for cell in run.cells() if not cut(cell)) if cut(run) else [run]


def _around(runs: list[Run]) -> Iterator[list[Run]]:
    """The runs that wait for each other, each lot together."""
    for component in _components(_graph(runs)):
        if len(component) > 1:
            yield [node for node in component if isinstance(node, Run)]


def _graph(runs: list[Run]) -> Graph:
    """What each run waits for: the ranges that it reads, and these for the runs that they cut."""
    columns, graph = _Columns(runs), Graph()
    for run in runs:
        waits: list[Node] = []
        for node in run.ranges():
            if node not in graph:
                graph[node] = list(columns.within(*node))
            if graph[node]:
                waits.append(node)
        graph[run] = waits
    return graph


def _components(graph: Graph) -> Iterator[list[Node]]:
    """The strongly connected components (Tarjan 1972), without recursion."""
    order: dict[Node, int] = {}  # in which nodes are met
    low: dict[Node, int] = {}  # the first node that each leads back to
    held: list[Node] = []  # met, and not yet of a component
    for start in graph:
        path = [] if start in order else [(start, iter(graph[start]))]
        if path:
            order[start] = low[start] = len(order)
            held.append(start)
        while path:
            node, waits = path[-1]
            for other in waits:
                if other not in order:
                    order[other] = low[other] = len(order)
                    held.append(other)
                    path.append((other, iter(graph[other])))
                    break
                low[node] = min(low[node], low[other])
            else:
                path.pop()
                if path:
                    low[path[-1][0]] = min(low[path[-1][0]], low[node])
                if low[node] == order[node]:
                    yield (component := _taken(held, node))
                    low.update(dict.fromkeys(component, len(graph)))  # nothing leads back there


def _taken(held: list[Node], node: Node) -> list[Node]:
    """The nodes from one on, which are held no longer."""
    component: list[Node] = []
    while node not in component[-1:]:
        component.append(held.pop())
    return component
