"""Faults that a reader sees: texts cut, cells covered, charts and results out of place.

    python tests/screen_faults.py cat-sat.xlsx dialogue-game.xlsx

prints a line for each: "cat-sat, Heads!C9: cut by D9: ‘...’". A kind of fault is a function of a
`Screen`, in `CHECKS`.
"""

import sys
import tempfile
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import count
from pathlib import Path

from screens import MARGIN, At, Box, Cell, Screen, plain, screens_of

from cellformer.exporters.compose.address import of_cell, position
from cellformer.exporters.compose.theme import FILLS

# pixels of cells that a window of 1366 x 768 shows: LibreOffice draws columns wider than it says
WINDOW = 1249, 586
LINE = 1.16  # times the size of its font a line is high
NARROW = 160  # pixels: a column of a table that one scrolls is not wider
RESULT = FILLS["readout"].lstrip("#")
BESIDE = 50  # pixels between a label and what it is of
SHORT = 5  # words of a title
HEADING = 12  # points
NEAR = 3  # rows in which a heading has something below it


def texts_cut_by_neighbours(screen: Screen) -> Iterator[str]:
    """Texts that run into a cell that is not blank, or off the sheet."""
    for at, run in screen.texts.items():
        own = screen.box(at)
        if not screen.cells[at].is_text or run == own:
            continue
        if at in screen.merged:
            yield screen.says(at, "wider than its merged cells")
            continue
        right, left = screen.beside(at, 1), screen.beside(at, -1)
        if right and run.right > own.right and run.right - MARGIN > screen.box(right).left:
            missing = run.right - MARGIN - screen.box(right).left
            yield screen.says(at, f"cut by {of_cell(*right)} ({missing:.0f} pixels)")
        end = screen.box(left).right if left else 0.0
        if run.left < own.left and run.left + MARGIN < end:
            yield screen.says(at, f"cut by {of_cell(*left)}" if left else "cut by the sheet's edge")


def texts_beyond_the_window(screen: Screen) -> Iterator[str]:
    """Texts that begin on the first screen and run out of the window. A column of a table that one
    scrolls may stand across its edge, and so may the short title of such a table."""
    behind = {row for row, col in screen.cells if _edge_of(screen, col) > WINDOW[0]}
    for at, run in screen.texts.items():
        own = screen.box(at)
        begins = own.left < WINDOW[0] and own.top < WINDOW[1]
        of_table = run == own and own.right - own.left <= NARROW
        below = {at[0] + 1, at[0] + 2}
        heads = below & behind or any((row, at[1]) in screen.cells for row in below)
        of_table |= len(screen.shown(at).split()) <= SHORT and bool(heads)
        if begins and run.right - MARGIN > WINDOW[0] and not of_table:
            yield screen.says(at, f"runs {run.right - WINDOW[0]:.0f} pixels out of the window")


def _edge_of(screen: Screen, col: int) -> float:
    """Where a column begins."""
    return screen.xs[min(col, len(screen.xs) - 1)]


def rows_too_low(screen: Screen) -> Iterator[str]:
    """Texts that are wrapped, or stand upright, in rows that are too low for them."""
    for at, cell in screen.cells.items():
        box, style = screen.box(at), cell.style
        height = box.bottom - box.top
        if cell.shown and style.turned:
            if screen.width(style, plain(cell)) > height:
                yield screen.says(at, "upright, and longer than its row is high")
        elif cell.shown and style.wraps and cell.is_text:
            n_lines = lines(screen, cell, box.right - box.left - MARGIN)
            needed = n_lines * LINE * style.size * 96 / 72
            if needed > height + 2:
                yield screen.says(at, f"has {n_lines} lines, and its row is too low")


def lines(screen: Screen, cell: Cell, room: float) -> int:
    """The lines that a text takes in a cell that is so wide."""
    n = 0
    for paragraph in cell.shown.split("\n"):
        n, used = n + 1, 0.0
        for word in paragraph.split(" "):
            width = screen.width(cell.style, word)
            used += width + (screen.width(cell.style, " ") if used else 0)
            if used > room and used > width:
                n, used = n + 1, width
    return n


def numbers_too_wide(screen: Screen) -> Iterator[str]:
    """Numbers that show as ###."""
    for at, cell in screen.cells.items():
        if cell.shown and not cell.is_text and cell.style.number and not cell.style.shrinks:
            box = screen.box(at)
            if screen.width(cell.style, plain(cell)) + MARGIN > box.right - box.left + 0.5:
                yield screen.says(at, "shows ###, its column is too narrow")


def cells_under_charts(screen: Screen) -> Iterator[str]:
    """Cells, or ends of texts, that a chart covers."""
    for at, cell in screen.cells.items():
        if not (cell.shown or cell.style.framed or cell.style.is_mark):
            continue  # what a chart draws may lie hidden under it
        box = screen.texts.get(at, screen.box(at))
        if any(box.meets(chart) for chart, _ in screen.charts):
            yield screen.says(at, "covered by a chart")


def charts_out_of_place(screen: Screen) -> Iterator[str]:
    """Charts that begin on the first screen and run out of the window to the right, or lie upon
    another chart."""
    for k, (box, _) in enumerate(screen.charts):
        at = f"{screen.name}!{_cell_at(screen, box)}"
        if box.left < WINDOW[0] < box.right - 1 and box.top < WINDOW[1]:
            yield f"{at}: the chart runs {box.right - WINDOW[0]:.0f} pixels out of the window"
        if any(box.meets(other) for other, _ in screen.charts[:k]):
            yield f"{at}: the chart lies upon another"


def axes_of_other_numbers(screen: Screen) -> Iterator[str]:
    """Axes whose format does not fit their numbers: 500 %, or 0 and 0 for 0.1 and 0.2."""
    for box, axes in screen.charts:
        for number, least, most in axes:
            percent = "%" in number
            decimals = len(number.partition(".")[2].rstrip("%")) + 2 * percent
            if percent and most > 1.0001:
                fault = f"runs to {most:.0%}"
            elif number != "General" and most - least and most - least < 2 * 10.0**-decimals:
                fault = f"shows {least} and {most} alike, as {number}"
            else:
                continue
            yield f"{screen.name}!{_cell_at(screen, box)}: an axis of the chart {fault}"


def inputs_without_a_label(screen: Screen) -> Iterator[str]:
    """Cells for what is typed with no text near: to the left of such cells that stand together, or
    above them. One of them whose own label, to the left, is empty, has none."""
    for together in _together(screen.inputs):
        top, left = (min(at[k] for at in together) for k in (0, 1))
        bottom, right = (max(at[k] for at in together) for k in (0, 1))
        near = [
            (row, col) for row in range(top - 2, bottom + 1) for col in range(left - 2, right + 1)
        ]
        named = any(screen.shown(at) for at in near if at not in together)
        named |= _ends_at(screen, min(together))
        labels = {at: screen.cells.get((at[0], at[1] - 1)) for at in together}
        some = any(label and label.shown for label in labels.values())
        for at, label in sorted(labels.items()):
            if not named or (some and label and label.is_text and not label.shown):
                yield screen.says(at, "a cell to type into, without a label")


def _ends_at(screen: Screen, at: At) -> bool:
    """Whether a text of the row ends next to a cell, or would run into it."""
    left = screen.box(at).left
    ends = (run.right for (row, _), run in screen.texts.items() if row == at[0])
    return any(left - BESIDE < end < left + BESIDE for end in ends)


def _together(places: Sequence[At]) -> Iterator[set[At]]:
    """Cells in groups: each touches another of its group."""
    left = set(places)
    while left:
        group, edge = set[At](), [left.pop()]
        while edge:
            row, col = edge.pop()
            group.add((row, col))
            beside = {(row + 1, col), (row - 1, col), (row, col + 1), (row, col - 1)} & left
            left -= beside
            edge += beside
        yield group


def heads_over_nothing(screen: Screen) -> Iterator[str]:
    """Headings with nothing in the rows below them, and heads of blank columns beside others."""
    rows = {row for row, _ in screen.cells}
    there = screen.cells.keys() | {*screen.inputs}
    heads = {at for at, cell in screen.cells.items() if cell.is_text and cell.style.is_head}
    high = {at: _height(there, at) for at in heads}
    for (row, col), n in high.items():
        longest = max(high.get((row, col - 1), 0), high.get((row, col + 1), 0))
        below = {(row + k, col) for k in range(1, longest + NEAR)}
        if screen.shown((row, col)) and longest and not n and not below & there:
            yield screen.says((row, col), "a head over nothing")
    for (row, col), cell in screen.cells.items():
        below_it = rows.intersection(range(row + 1, row + 1 + NEAR))
        if cell.shown and cell.style.bold and cell.style.size >= HEADING and not below_it:
            yield screen.says((row, col), "a heading over nothing")


def _height(there: Collection[At], at: At) -> int:
    """How many cells below a head are not blank."""
    return next(k for k in count() if (at[0] + k + 1, at[1]) not in there)


def marks_beside_nothing(screen: Screen) -> Iterator[str]:
    """Cells that only a colour marks, with blank cells around them."""
    for (row, col), cell in screen.cells.items():
        if cell.style.is_mark:
            around = {(row, col - 1), (row, col + 1), (row - 1, col), (row + 1, col)}
            near = around & screen.cells.keys()
            if all(screen.cells[at].style.is_mark for at in near):
                yield screen.says((row, col), "a mark beside nothing")


def results_below_the_screen(screen: Screen) -> Iterator[str]:
    """Sheets whose first result (a green cell) is not on the first screen, nor linked from it."""
    green = [at for at, cell in screen.cells.items() if cell.style.fill == RESULT and at[0]]
    seen = [at for at in green if _on_first(screen.box(at))]
    linked = {
        position(target.rpartition("!")[2])[0]
        for at, target in screen.links.items()
        if _on_first(screen.box(at)) and target.rpartition("!")[0].strip("'") == screen.name
    }
    if green and not seen and not any(row > 0 for row in linked):
        yield screen.says(min(green), "first result is below the first screen")


def _on_first(box: Box) -> bool:
    return box.right <= WINDOW[0] + 1 and box.bottom <= WINDOW[1] + 1


def _cell_at(screen: Screen, box: Box) -> str:
    return of_cell(
        bisect_right(screen.ys, box.top + 1) - 1, bisect_right(screen.xs, box.left + 1) - 1
    )


CHECKS: tuple[Callable[[Screen], Iterator[str]], ...] = (
    texts_cut_by_neighbours, texts_beyond_the_window, rows_too_low, numbers_too_wide,
    cells_under_charts, charts_out_of_place, axes_of_other_numbers, inputs_without_a_label,
    heads_over_nothing, marks_beside_nothing, results_below_the_screen,
)  # fmt: skip


def faults(path: Path) -> list[str]:
    """Every fault on the visible sheets of a workbook, a sentence each."""
    with tempfile.TemporaryDirectory() as folder:
        screens = screens_of(path, Path(folder))
    return [
        f"{path.stem}, {fault}" for screen in screens for check in CHECKS for fault in check(screen)
    ]


if __name__ == "__main__":
    for given in sys.argv[1:]:
        for line in faults(Path(given)):
            print(line)
