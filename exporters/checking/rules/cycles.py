"""Circular references in the formulas of a workbook, for any choice of IF and INDEX.

A formula depends on every cell that it names. Formulas that read alike down a column are one run,
so that millions of formulas are a few thousand nodes; ranges are nodes, too. If this graph has a
cycle, as with a running sum down a column, its cells are checked one by one.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from cellformer.engine.cells.access import Rect

# Bare tuples, which are made in half the time.
Range = tuple[str, int, int, int, int]  # a sheet, and a rectangle of it in the order of `Rect`
Fixed = tuple[bool, bool, bool, bool]  # whether each of the four numbers of a reference is
# A range that a formula names: its sheet, the row and the column of its first cell and of its last.
# Each number counts from the formula's own cell, unless it is fixed: then from the sheet's first.
Reference = tuple[str, int, int, int, int, Fixed]


@dataclass(eq=False, slots=True)
class Run:
    """Formulas that read alike, in consecutive rows of a column."""

    sheet: str
    col: int
    top: int
    bottom: int  # the row after the last
    reads: tuple[Reference, ...]

    def ranges(self) -> Iterator[Range]:
        """The rectangles of sheets that all of them read together."""
        for sheet, top, left, bottom, right, fixed in self.reads:
            top += 0 if fixed[0] else self.top
            left += 0 if fixed[1] else self.col
            bottom += 1 if fixed[2] else self.bottom
            right += 1 if fixed[3] else self.col + 1
            yield sheet, top, bottom, left, right

    def cells(self) -> Iterator["Run"]:
        """A run for each single cell."""
        rows = range(self.top, self.bottom)
        return (replace(self, top=row, bottom=row + 1) for row in rows)


class _Columns:
    """The indices of runs by sheet and column, searchable by rectangle."""

    def __init__(self, runs: Sequence[Run]):
        # of each column, from top to bottom: where its runs begin, where they end, their numbers
        self._columns: dict[str, dict[int, tuple[list[int], list[int], list[int]]]] = {}
        for number in sorted(range(len(runs)), key=[run.top for run in runs].__getitem__):
            run = runs[number]
            columns = self._columns.setdefault(run.sheet, {})
            tops, bottoms, numbers = columns.setdefault(run.col, ([], [], []))
            tops.append(run.top)
            bottoms.append(run.bottom)
            numbers.append(number)
        self._sorted = {sheet: sorted(columns) for sheet, columns in self._columns.items()}

    def within(self, sheet: str, top: int, bottom: int, left: int, right: int) -> list[int]:
        """The runs that intersect a rectangle."""
        columns, found = self._sorted.get(sheet, []), list[int]()
        for k in range(bisect_left(columns, left), bisect_left(columns, right)):
            tops, bottoms, numbers = self._columns[sheet][columns[k]]
            first = bisect_right(bottoms, top)
            found += numbers[first : bisect_left(tops, bottom, first)]
        return found


Graph = list[list[int]]  # of each node, what it waits for


def cycle(runs: Iterable[Run], kept: Sequence[tuple[str, Rect]] = ()) -> list[Run]:
    """Cells of a circular reference; [] if there is none. Dependence on cells of the ranges in
    `kept` does not count: they keep their previous values."""
    runs = list(runs)
    for around in _around(list(_but(kept, runs)) if kept else runs):
        for certain in _around([cell for run in around for cell in run.cells()]):
            return certain
    return []


def _but(kept: Sequence[tuple[str, Rect]], runs: Sequence[Run]) -> Iterator[Run]:
    """Runs without the cells of some ranges."""
    areas: dict[tuple[str, int], list[Rect]] = {(run.sheet, run.col): [] for run in runs}
    for (there, col), own in areas.items():
        own += [area for sheet, area in kept if sheet == there and area.left <= col < area.right]

    def cut(run: Run) -> bool:
        own = areas[run.sheet, run.col]
        return any(area.top < run.bottom and run.top < area.bottom for area in own)

    for run in runs:
        yield from (cell for cell in run.cells() if not cut(cell)) if cut(run) else [run]


def _around(runs: list[Run]) -> Iterator[list[Run]]:
    """Runs that depend on each other, one list for each cycle."""
    graph = _graph(runs)
    yield from (
        [runs[node] for node in component if node < len(runs)]
        for component in _components(graph)
        if len(component) > 1 or component[0] in graph[component[0]]
    )


def _graph(runs: list[Run]) -> Graph:
    """The dependence of each run on ranges, and of ranges on the runs that they intersect; a range
    with only one run is left out. Runs come first, in order."""
    columns, waits = _Columns(runs), dict[Range, list[int]]()
    graph: Graph = [[] for _ in runs]
    for node, run in enumerate(runs):
        for area in run.ranges():
            cut = waits.get(area)
            if cut is None:
                cut = columns.within(*area)
                if len(cut) > 1:
                    graph.append(cut)
                    cut = [len(graph) - 1]
                waits[area] = cut
            graph[node] += cut
    return graph


def _components(graph: Graph) -> Iterator[list[int]]:
    """The strongly connected components (Tarjan 1972), without recursion."""
    n_met = 0
    order = [0] * len(graph)  # in which nodes are met, from 1; 0: not yet
    low = [0] * len(graph)  # the first node that each leads back to
    held: list[int] = []  # met, and not yet of a component
    for start in range(len(graph)):
        path = [] if order[start] else [(start, iter(graph[start]))]
        if path:
            n_met += 1
            order[start] = low[start] = n_met
            held.append(start)
        while path:
            node, waits = path[-1]
            for other in waits:
                if not order[other]:
                    n_met += 1
                    order[other] = low[other] = n_met
                    held.append(other)
                    path.append((other, iter(graph[other])))
                    break
                if low[other] < low[node]:
                    low[node] = low[other]
            else:
                path.pop()
                if path and low[node] < low[path[-1][0]]:
                    low[path[-1][0]] = low[node]
                if low[node] == order[node]:
                    yield (component := _taken(held, node))
                    for taken in component:
                        low[taken] = len(graph) + 1  # nothing leads back there


def _taken(held: list[int], node: int) -> list[int]:
    """Pop the nodes of a component from the stack."""
    component: list[int] = []
    while node not in component[-1:]:
        component.append(held.pop())
    return component
