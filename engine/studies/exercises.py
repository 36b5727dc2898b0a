"""Exercises: the choice of cells to compute by hand.

Cells are chosen by a rule: those whose formulas leave room for many different slips (see `slips`),
no two alike, none reading another. What an answer is worth is in `answers`.
"""

from collections.abc import Iterable, Sequence
from itertools import islice, product
from typing import Literal, NamedTuple

import numpy as np

from cellformer.engine.cells.access import Rect, Span
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.errors import InputError
from cellformer.engine.cells.expression import Expression, Look
from cellformer.engine.cells.graph import Graph
from cellformer.engine.cells.values import FormulaError, is_number
from cellformer.engine.studies.answers import BESIDE, EXACT, judged
from cellformer.engine.studies.slips import Slip, slips

LEVELS = {
    1: "fill in single numbers, as a number or a formula",
    2: "fill in single numbers by formulas that also work for other inputs",
    3: "fill in whole rows by formulas; in a model, fill in one head, from query to output",
}
Level = Literal[1, 2, 3]
Looks = Sequence[Look]  # the values as built, and with other inputs
N_EXERCISES, FEWEST, FEWEST_ROWS = 6, 5, 2
MOST_CELLS = 12  # of one exercise
REACHES = (6, 12)  # rows and columns of a block that are looked at, the second if these don't do
HEAD = ("q", "k", "scores", "exp", "row_sum", "pattern", "z", "result")  # one head's blocks
MOST_EXERCISES = max(N_EXERCISES, len(HEAD))
SMALLEST = 0.01  # of a number that is asked for
MOVED = 0.001  # of a number: what it moves by with other inputs, at least
PLAIN = (-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0)  # numbers that somebody would guess
SMALL = 24  # cells that a formula reads; more are tedious by hand


class Exercise(NamedTuple):
    """Cells of a block to fill in."""

    block: Block
    cells: Sequence[Span]

    @property
    def rect(self) -> Rect:
        """The cells: they are part of one row, or of one column."""
        (top, left), (bottom, right) = self.cells[0], self.cells[-1]
        return Rect(top, bottom + 1, left, right + 1)


def shown(right: float) -> float:
    """The error of a number that cells show with three decimals. A slip that is this near counts
    for nothing."""
    return 0.0005 * max(1.0, abs(right)) + EXACT


def told_apart(
    graph: Graph, block: Block, at: Span, look: Look, most: int | None = None
) -> list[Slip]:
    """The slips in a cell that lead to a number, and to another than the right one."""
    right = number(block.formula(*at), look)
    if right is None:
        return []
    valued = ((slip, number(slip.formula, look)) for slip in slips(graph, block, *at))
    apart = (s for s, value in valued if value is not None and abs(value - right) > shown(right))
    return list(islice(apart, most))


def number(formula: Expression, look: Look) -> float | None:
    """The value of a formula; None if it is none, or no finite number."""
    try:
        value = formula.value(look)
    except (FormulaError, OverflowError, ZeroDivisionError):
        return None
    if isinstance(value, np.ndarray):
        value = value.flat[0]
    return float(value) if is_number(value) and np.isfinite(value) else None


# --- which cells ---------------------------------------------------------------------------------


class Tried(NamedTuple):
    """A cell that may become an exercise."""

    block: Block
    at: Span
    kinds: frozenset[str]
    worth: float


def chosen(
    graph: Graph,
    blocks: Sequence[Block],
    looks: Looks,
    level: Level,
    declared: Sequence[str] = (),
    rows: int | None = None,
) -> list[Exercise]:
    """The exercises of a level, in the order of computation.

    `blocks` are those with a place on a sheet; `looks` have the values as built, and with other
    inputs; `declared` names cells to take in any case; `rows` is the number of tokens that are
    given, of which alone cells are asked.
    """
    if level == 3 and any(block.leaf == "pattern" for block in blocks):
        return _a_head(blocks, looks, rows)
    for reach in REACHES:
        picked = [_declared(graph, name, looks[0]) for name in declared]
        for tried in _candidates(graph, blocks, looks, rows, reach):
            if len(picked) >= N_EXERCISES:
                break
            alike = level == 3 and any(_of_one_line(tried, other) for other in picked)
            if not alike and _apart(tried, picked):
                picked.append(tried)
        if len(picked) >= FEWEST:
            break
    order = {name: k for k, name in enumerate(graph.blocks)}
    picked.sort(key=lambda tried: (order[tried.block.name], tried.at))
    if level == 3:
        return [Exercise(t.block, _moving(t.block, _line(t.block, t.at), looks)) for t in picked]
    return [Exercise(t.block, (t.at,)) for t in picked]


def _declared(graph: Graph, name: str, look: Look) -> Tried:
    block, i, j = graph.parse(name)
    kinds = frozenset(slip.kind for slip in told_apart(graph, block, (i, j), look))
    return Tried(block, (i, j), kinds, np.inf)


def _candidates(
    graph: Graph, blocks: Sequence[Block], looks: Looks, rows: int | None, reach: int
) -> Iterable[Tried]:
    """Cells in the order of their use: each with the most slips that the cells before it do not
    have."""
    left: list[list[Tried]] = []  # by block, the best cell first
    seen = set[str]()
    for block in blocks:
        alike = block.leaf if block.op else block.name
        if alike in seen:
            continue
        cells = [_tried(graph, block, at, looks) for at in _some(block, rows, reach)]
        best = sorted((t for t in cells if t.worth > 0), key=lambda t: -t.worth)
        if best:
            seen.add(alike)
            left.append(best)
    known: set[str] = set()
    while left:  # once around the blocks, then once more for another cell of each
        these, left = left, [found[1:] for found in left if len(found) > 1]
        while these:
            best = max(these, key=lambda found: 3 * len(found[0].kinds - known) + found[0].worth)
            these.remove(best)
            known |= best[0].kinds
            yield best[0]


def _some(block: Block, rows: int | None, reach: int) -> list[Span]:
    """A third of a block's first rows and columns: not all in its first row or column, where much
    is special."""
    n, m = block.shape
    n, most = min(n, rows) if rows and block.axes[0] == "token" else n, reach * reach // 3
    cells = [(i, j) for i in range(min(n, reach)) for j in range(min(m, reach)) if block.has(i, j)]
    return cells[::-1][:: max(1, len(cells) // most)][:most]


def _tried(graph: Graph, block: Block, at: Span, looks: Looks) -> Tried:
    n_read = sum(area.rect.size for area in block.formula(*at).areas())
    if not n_read or not moves(block, at, looks) or is_plain(block, at, looks[0]):
        return Tried(block, at, frozenset(), 0.0)
    kinds = frozenset(s.kind for s in told_apart(graph, block, at, looks[0])) - {"rounded"}
    own = kinds - {*BESIDE}
    worth = 2.0 * len(own) + 0.5 * len(kinds & {*BESIDE}) - max(0, n_read - SMALL) / SMALL
    return Tried(block, at, own, worth if own else 0.25 * len(kinds))


def moves(block: Block, at: Span, looks: Looks) -> bool:
    """Whether other inputs change the number in a cell, so that no constant is right."""
    one, other = (number(block.formula(*at), look) for look in looks)
    if one is None or other is None:
        return False
    return abs(one - other) > MOVED * max(abs(one), abs(other), SMALLEST)


def is_plain(block: Block, at: Span, look: Look) -> bool:
    """Whether the number in a cell is so plain, or so small, that you may guess it."""
    right = number(block.formula(*at), look)
    if right is None or abs(right) < SMALLEST:
        return True
    near = [plain for plain in PLAIN if abs(right - plain) < 0.1]
    return any(judged(plain, right, {}, whole=False, dated=False).right for plain in near)


def _moving(block: Block, cells: Sequence[Span], looks: Looks) -> list[Span]:
    return [at for at in cells if moves(block, at, looks)]


def _of_one_line(one: Tried, other: Tried) -> bool:
    """Whether two cells stand in one row of a block, or in one column."""
    return one.block is other.block and any(a == b for a, b in zip(one.at, other.at, strict=True))


def _apart(tried: Tried, others: Sequence[Tried]) -> bool:
    """Whether a cell neither reads the others nor is read by them."""
    if any((tried.block, tried.at) == (other.block, other.at) for other in others):
        return False
    return not any(reads(a, b) for o in others for a, b in ((tried, o), (o, tried)))


def reads(one: Tried, other: Tried) -> bool:
    """Whether a cell's formula reads another cell."""
    i, j = one.at
    here = Rect(other.at[0], other.at[0] + 1, other.at[1], other.at[1] + 1)
    found = one.block.reads(Rect(i, i + 1, j, j + 1))
    return any(block is other.block and rect.covers(here) for block, rect in found)


def _a_head(blocks: Sequence[Block], looks: Looks, rows: int | None) -> list[Exercise]:
    """One head, block by block, at the last given token without a plain number; if there is
    none, at the token with the fewest."""
    patterns = [block for block in blocks if block.leaf == "pattern"]
    n = min(rows or MOST_CELLS, patterns[0].shape[0])
    best: list[Exercise] = []
    for row, pattern in product(range(n - 1, -1, -1), patterns):
        head = pattern.name.removesuffix(".pattern")
        of_it = [b for b in blocks if b.name in {f"{head}.{leaf}" for leaf in HEAD}]
        lines = [(b, _moving(b, _row(b, row)[:MOST_CELLS], looks)) for b in of_it]
        found = [
            Exercise(b, cells)
            for b, cells in lines
            if not all(is_plain(b, at, looks[0]) for at in cells)
        ]
        if len(found) > len(best):
            best = found
        if len(found) == len(of_it):
            break
    return best


def _line(block: Block, at: Span) -> list[Span]:
    """The row of a cell, or its column if the row has one cell; if it is long, only the cells
    from this one on."""
    i, j = at
    row = _row(block, i)
    line = row if len(row) > 1 else [(r, j) for r in range(block.shape[0]) if block.has(r, j)]
    first = max(0, min(line.index(at), len(line) - MOST_CELLS))
    return line[first : first + MOST_CELLS]


def _row(block: Block, i: int) -> list[Span]:
    return [(i, c) for c in range(block.shape[1]) if block.has(i, c)]


def check(found: Sequence[Exercise], name: str, level: Level) -> None:
    """Raise InputError for a workbook with too few cells to ask for."""
    fewest = FEWEST_ROWS if level == 3 else FEWEST
    if len(found) < fewest:
        raise InputError(
            f"{name} has formulas for only {len(found)} exercises, but at least {fewest} are "
            "needed; use another workbook"
        )
