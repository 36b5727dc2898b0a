"""An evaluator: set a cell, recompute what depends on it, reset.

The graph keeps the clean values; an evaluator overlays them with set cells, so a clean and a
perturbed run exist side by side and `reset` costs nothing.

Invariants. An array of `_live` that equals the clean one *is* the clean one, and is copied before
the first write. `_changed` holds, for blocks set since the last recompute, the rectangles with
changed values whose readers have not been updated. A set cell keeps its value whatever its formula
says, until `reset`. A table may read blocks that come later in the graph, so blocks are visited
until nothing changes any more; only a cell that reads itself is computed once.
"""

from collections.abc import Iterable, Mapping
from heapq import heappop, heappush

import numpy as np

from cellformer.engine.cells.access import ALONG, Rect, dirties
from cellformer.engine.cells.arguments import explained_class
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.evaluation import evaluate
from cellformer.engine.cells.expression import Area
from cellformer.engine.cells.frame import Frame
from cellformer.engine.cells.graph import Cell, Graph
from cellformer.engine.cells.read_only import ReadOnly
from cellformer.engine.cells.table import Reader, compute, pending
from cellformer.engine.cells.values import CellError

MAX_RECTS = 4  # dirty rectangles kept apart in one block before they become their bounding box


@explained_class
class Evaluator:
    """The values of a graph, with changes.

    >>> graph = cf.graph("cat-sat", "the cat sat")
    >>> live = cf.Evaluator(graph)
    >>> live.set("blocks.0.attn.h0.W_V", 2, 2, -1.0)
    >>> print(f"{live['probs'][2, 6] - graph.values['probs'][2, 6]:+.4f}")
    -0.1234
    """

    def __init__(self, graph: Graph):
        self.graph = graph
        self._live = dict(graph.computed)
        self._overlay: dict[str, dict[tuple[int, int], float | str]] = {}
        self._changed: dict[str, list[Rect]] = {}

    def __repr__(self) -> str:
        n_set = sum(map(len, self._overlay.values()))
        return f"<Evaluator of {len(self._live)} blocks, {n_set} cells set>"

    def __getitem__(self, name: str) -> np.ndarray:
        """A block's values, changes included: float64 [rows, columns], read-only."""
        self.graph[name]
        if self._changed:
            self.recompute()
        view = np.asarray(self._live[name]).view(ReadOnly)  # a stored weight is read
        view.block = name
        view.flags.writeable = False
        return view

    def frame(self, name: str) -> Frame:
        """A block's values, changes included, with labels for its rows and columns."""
        return self.graph.frame(name, self)

    def cell(self, name: str, i: int, j: int) -> Cell:
        """A cell with its changed value. Raises InputError if it does not exist."""
        self.graph.check(self.graph[name], i, j)
        return Cell(self.graph, self.graph[name], i, j, self)

    def set(self, name: str, i: int, j: int, value: float | str) -> None:
        """Set the value of a cell: a weight, a token id or even a computed cell.

        Raises InputError for a cell that does not exist, a value that is not finite, a text where a
        number is expected, and an id that is out of range.
        """
        block = self.graph[name]
        self.graph.check_value(block, i, j, value)
        self._put(block, i, j, value)

    def _put(self, block: Block, i: int, j: int, value: float | str) -> None:
        self._overlay.setdefault(block.name, {})[i, j] = value
        self._own(block.name)[i, j] = value
        self._changed.setdefault(block.name, []).append(Rect(i, i + 1, j, j + 1))

    def reset(self) -> None:
        """Forget every change."""
        self._live = dict(self.graph.computed)
        self._overlay.clear()
        self._changed.clear()

    @np.errstate(all="ignore")
    def run(self) -> None:
        """Compute every block in full, changes included."""
        self._changed.clear()
        blocks = [block for block in self.graph if block.name not in self.graph.inputs]
        for block in blocks:  # all at first: one may read another that stands after it
            if block.expression:
                self._live[block.name] = pending(block)
                self._lay_over(block)
        compute(blocks, self._live, self._lay_over)
        for block in self.graph.tables:
            if block.name in self.graph.inputs:  # it reads what was computed from it
                self._changed[block.name] = self._refresh_cells(block, list(block.whole.cells()))
        for name, cells in self._overlay.items():
            if self.graph[name].recurs:  # the next rows read what was set
                self._changed[name] = [Rect(i, i + 1, j, j + 1) for i, j in cells]
        self.recompute()

    @np.errstate(all="ignore")
    def recompute(self) -> int:
        """Recompute the cells that the changes reach, stopping where a value stays the same.

        Returns the number of cells computed.
        """
        changed, self._changed = self._changed, {}
        n_cells = 0
        while changed:
            again: dict[str, list[Rect]] = {}  # changes that a table before the block reads
            passed: list[Block] = []  # tables
            for block in self.graph:
                found: list[Rect] = []
                if block.op:
                    rects = self._dirty(block, changed)
                    n_cells += sum(rect.size for rect in rects)
                    found = [r for r in (self._refresh(block, rect) for rect in rects) if r]
                elif block.expression:
                    cells = self._reading(block, changed)
                    n_cells += len(cells)
                    found = self._refresh_cells(block, cells)
                if found:
                    changed.setdefault(block.name, []).extend(found)
                    before = [*passed, block] if block.runs else passed  # its rows read each other
                    if any(block.name in self.graph.readings(t).rects for t in before):
                        again[block.name] = found
                if block.expression:
                    passed.append(block)
            changed = again
        return n_cells

    def _reading(self, block: Block, changed: dict[str, list[Rect]]) -> list[tuple[int, int]]:
        """The cells of a table that read a change."""
        readings = self.graph.readings(block)
        rects = [(name, rect) for name in readings.rects for rect in changed.get(name, ())]
        return list(dict.fromkeys(cell for at in rects for cell in readings.of(*at)))

    def _refresh_cells(self, block: Block, cells: list[tuple[int, int]]) -> list[Rect]:
        """Recompute cells of a table, and cells of the same table that read them; returns what
        changed."""
        if block.runs:
            return self._refresh_rows(block, sorted({i for i, _ in cells}))
        readings, reader = self.graph.readings(block), Reader(self._live)
        known = set(cells)
        waiting, found = sorted(known), []  # a sorted list is a heap
        while waiting:
            i, j = heappop(waiting)
            known.remove((i, j))
            if (i, j) in self._overlay.get(block.name, ()):
                continue
            value, before = reader.compute(block, i, j), self._live[block.name][i, j]
            if isinstance(value, CellError) and self.graph.readers[block.name]:
                value = np.nan  # as ops have it
            if value == before and isinstance(value, str) == isinstance(before, str):
                continue
            if self._own(block.name).dtype != object and not isinstance(value, float):
                self._live[block.name] = self._live[block.name].astype(object)
            self._own(block.name)[i, j] = value
            rect = Rect(i, i + 1, j, j + 1)
            found.append(rect)
            for cell in readings.of(block.name, rect):
                if cell != (i, j) and cell not in known:  # one that reads itself goes on by a step
                    known.add(cell)
                    heappush(waiting, cell)
        return _joined(found)

    def _refresh_rows(self, block: Block, rows: list[int]) -> list[Rect]:
        """Recompute rows of a table whose expression takes runs of columns; returns what
        changed."""
        before = self._live[block.name]
        array = before.astype(object)
        array[rows] = pending(block)[rows]
        self._live[block.name] = array
        self._lay_over(block)
        self._live[block.name] = Reader(self._live).rows(block, rows)
        found = []
        for i in rows:
            (cols,) = np.nonzero(self._live[block.name][i] != before[i])
            if cols.size:
                found.append(Rect(i, i + 1, int(cols[0]), int(cols[-1]) + 1))
        return found

    def _dirty(self, block: Block, changed: dict[str, list[Rect]]) -> list[Rect]:
        rects: list[Rect] = []
        for _, subscript, operand in block.sources:
            for source in changed.get(operand.name, ()):
                rect = dirties(subscript, source, block.shape, block.mask)
                rect = _onwards(block, rect) if block.recurs and rect.size else rect
                if rect.size and not any(other.covers(rect) for other in rects):
                    rects = [other for other in rects if not rect.covers(other)] + [rect]
        if len(rects) > MAX_RECTS:
            tops, bottoms, lefts, rights = zip(*rects, strict=True)
            return [Rect(min(tops), max(bottoms), min(lefts), max(rights))]
        return rects

    def _refresh(self, block: Block, rect: Rect) -> Rect | None:
        """Recompute `rect`; returns the part of it whose values changed, or None."""
        before = self._live[block.name][rect.slices].copy()
        for part in block.passes_over(rect):
            self._own(block.name)[part.slices] = evaluate(block, part, self._live)
            self._lay_over(block)
        after = self._live[block.name][rect.slices]
        rows, cols = np.nonzero(~((before == after) | (np.isnan(before) & np.isnan(after))))
        if not rows.size:
            return None
        top, left = rect.top, rect.left
        return Rect(
            int(top + rows[0]),  # they ascend
            int(top + rows[-1] + 1),
            int(left + cols.min()),
            int(left + cols.max() + 1),
        )

    def _lay_over(self, block: Block) -> None:
        for (i, j), value in self._overlay.get(block.name, {}).items():
            self._own(block.name)[i, j] = value

    def _own(self, name: str) -> np.ndarray:
        """The block's live array, made this evaluator's own before the first write."""
        if self._live[name] is self.graph.computed[name]:
            self._live[name] = self._live[name].copy()
        return self._live[name]


def _onwards(block: Block, rect: Rect) -> Rect:
    """A rectangle with all rows that depend on it, in a block whose rows read each other."""
    whole = block.whole
    rows = (rect.top, whole.bottom) if block.recurs > 0 else (whole.top, rect.bottom)
    across = any(at[1] in ALONG for _, at, operand in block.sources if operand is block)
    return Rect(*rows, *(whole[2:] if across else rect[2:]))


def _joined(cells: list[Rect]) -> list[Rect]:
    """The same cells in fewer rectangles: first neighbours in a row are joined, then equal rows."""
    turned = _joined_across(Rect(*rect[2:], *rect[:2]) for rect in _joined_across(set(cells)))
    return [Rect(*rect[2:], *rect[:2]) for rect in turned]


def _joined_across(cells: Iterable[Rect]) -> list[Rect]:
    """Rectangles of the same rows, side by side, as one."""
    found: list[Rect] = []
    for rect in sorted(cells):
        if found and found[-1][:2] == rect[:2] and found[-1].right == rect.left:
            found[-1] = found[-1]._replace(right=rect.right)
        else:
            found.append(rect)
    return found


def edited(graph: Graph, edits: Mapping[Area, float | str]) -> Reader:
    """The values after edits: `edited(graph, {scores[2, 1]: 4.0})(probs[0, 2])`."""
    live = Evaluator(graph)
    for area, value in edits.items():
        live.set(area.grid.name, area.rect.top, area.rect.left, value)
    return Reader({name: live[name] for name in graph.blocks})
