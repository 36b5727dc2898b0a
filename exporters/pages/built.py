"""Built: every number that may be typed over, as it was built, and the ledger of what differs.

A line for each block of weights, setting, switch, word: how many of its cells differ, the first of
them, what it was and is. From them comes the one line that stands on top of every sheet (`show`).
The originals stand to the right as values, for the lines to compare with, and for the weights
themselves to be marked where they were typed over. Models of more weights than `MOST_COMPARED`
have none: of them the sums of each block are compared, which tells the block, not the cell.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from engine.cells.access import Rect
from engine.cells.block import Block
from engine.cells.expression import Expression, expression
from engine.cells.functions import (
    EXACT,
    IF,
    IFERROR,
    INDEX,
    INT,
    ISNUMBER,
    LEFT,
    MATCH,
    MAX,
    MOD,
    ROUND,
    SUM,
    SUMPRODUCT,
)
from engine.studies.forecast import MOST_COMPARED
from exporters import layout
from exporters.book import Place, Run, Sheet
from exporters.dressing import AsBuilt, When
from exporters.large import play as one_token
from exporters.layout import PLAY
from exporters.lookups import entry
from exporters.model_book import ModelBook
from exporters.pages import index

SHEET = "Built"
PURPOSE = "every number as it was built; what was typed over is told here, and on every sheet"
AFTER = "Text"
LINE_ROW, TOP, LEFT_COL = 3, 6, 10
HEADS = ("what", "differ", "row", "column", "was", "is", "told as", "lines so far")
WHAT, COUNT, ROW, COL, WAS, IS, TOLD, RANK = range(8)
N_TOLD = 4  # lines that are told on top of every sheet
LONGEST = 40  # characters of a sentence that are told
A_NUMBER = {
    "validate": "decimal",
    "criteria": "between",
    "minimum": -(10**9),
    "maximum": 10**9,
    "error_title": "No number",
    "error_message": "A number belongs here: a text would count as 0.",
}


@dataclass(frozen=True, eq=False)
class Watched:
    """Cells that may be typed over: a block of numbers, or one cell of texts."""

    what: str  # as the ledger calls it
    block: Block
    cell: tuple[int, int] | None = None  # of a block of texts


def wanted(book: ModelBook) -> bool:
    """In every workbook."""
    return True


def watched(book: ModelBook) -> Iterator[Watched]:
    """Everything that may be typed over, in the order of the graph."""
    for block in book.graph:
        place = book.places.get(block.name)
        if place is None or block.op or block.expression or block.kind == "computed":
            continue
        if block.kind != "table":
            if block.name not in book.pieces:
                yield Watched(name(block), block)
        elif typed(book, place):
            for i, j in block.whole.cells():
                yield Watched(name(block, i), block, (i, j))


def typed(book: ModelBook, place: Place) -> bool:
    """Whether the cells of a table are there to be typed in."""
    found = book.sheets[place.sheet].entries.get(place.cell(0, 0))
    return found is not None and found.style in ("token", "sentence", "dial", "number typed")


def name(block: Block, i: int = 0) -> str:
    """What the ledger calls a block, or cell i of one with texts."""
    path = block.name.split(".")
    if block.leaf == "switch":
        layer, part = path[1], path[-2]
        whole = {"attn": f"all heads of layer {layer}", "mlp": f"MLP {layer}"}
        kind = "head" if path[2] == "attn" else "expert"
        return whole.get(part, f"{kind} {layer}.{part[1:]}")
    if path[-1] == "instead":
        return path[-2]
    if block.name == "prompt.pick":
        return f"word {i} picked"
    return f"random number {i}" if block.name == "random" else block.name


def add(book: ModelBook) -> None:
    """The line, the lines it is made of, the originals."""
    sheet = book.sheet(SHEET)
    layout.dress(book, sheet)
    sheet.widths = {WHAT: 34, TOLD: 60, IS: 16, WAS: 16}
    for col, head in enumerate(HEADS):
        sheet.put(TOP - 1, col, head, "block")
    stored = sum(w.block.whole.size for w in watched(book)) <= MOST_COMPARED
    lines = [
        w for w in watched(book) if stored or w.cell or w.block.whole.size == 1 or not book.large
    ]
    below = TOP + 1  # the next original's row
    for line in lines:
        _guard(book, line)
    for row, line in enumerate(lines, TOP):
        sheet.put(row, WHAT, line.what)
        if line.cell or line.block.whole.size == 1:
            _of_one(book, sheet, row, line, stored)
        elif stored:
            below = _of_many(book, sheet, row, line, below)
        else:
            _of_sums(book, sheet, row, line)
        begun = sheet[row - 1, RANK] if row > TOP else expression(0)
        sheet.formula(row, RANK, begun + IF(sheet[row, COUNT] > 0, 1, 0), "count")
    _line(book, sheet, slice(TOP, TOP + len(lines)))


def _guard(book: ModelBook, line: Watched) -> None:
    """Have a block's cells take numbers alone; what is pasted there, no program asks about."""
    place = book.places[line.block.name]
    sheet = book.sheets[place.sheet]
    if line.block.kind != "table" and place.cell(0, 0) not in sheet.rules:
        sheet.areas.append((place.rect(line.block.whole), A_NUMBER))


# --- a line for each block ----------------------------------------------------------------


def _of_one(book: ModelBook, sheet: Sheet, row: int, line: Watched, stored: bool) -> None:
    """A cell by itself: a text, a setting, a switch."""
    i, j = line.cell or (0, 0)
    now = line.block[i, j]
    value = np.asarray(book.graph.inputs[line.block.name])[i, j]  # of a file, too
    text = isinstance(value, str)
    was = value if text else float(value)
    sheet.put(row, WAS, was, "text" if text else "step")
    same = EXACT(now, was) if text else now == sheet[row, WAS]
    sheet.formula(row, COUNT, IF(same, 0, 1), "count")
    sheet.formula(row, IS, now & "" if text else now, "text" if text else "step")
    told = _told_of_one(book, sheet, row, line)
    sheet.formula(row, TOLD, IF(sheet[row, COUNT] == 0, "", told), "text")
    if line.block.kind != "table":
        place = book.places[line.block.name]
        cell = book.sheets[place.sheet][place.cell(0, 0)]
        book.sheets[place.sheet].dress(cell, AsBuilt(was))


def _told_of_one(book: ModelBook, sheet: Sheet, row: int, line: Watched) -> Expression:
    """What the ledger says of such a cell once it differs."""
    now = sheet[row, IS]
    if line.block.leaf == "switch":
        return expression(line.what) & IF(
            now == 0, " off", IF(ISNUMBER(now), " × " & now, " off: ‘" & now & "’ counts as 0")
        )
    if line.block.name.endswith("sentence"):
        return expression(f"{line.what}: ") & IF(now == "", "none", LEFT(now, LONGEST))
    if line.block.name == "prompt.pick":
        beyond = expression(line.cell[0] if line.cell else 0) >= book.graph["n_prompt"][0, 0]
        effect = IF(beyond, " (beyond the sentence: no effect)", "")
        return expression(f"{line.what}: ") & now & effect
    if line.block.name.endswith("instead"):
        return expression(f"{line.what}: ") & now & " instead"
    return _from_to(line.what, sheet, row, line.block.kind != "table")


def _of_many(book: ModelBook, sheet: Sheet, row: int, line: Watched, below: int) -> int:
    """A block of numbers, beside its original from the row `below` on; returns the row after it."""
    place = book.places[line.block.name]
    block = replace(line.block, name=f"built.{line.block.name}", kind="setting")
    book.others[block.name] = book.values[line.block.name]
    kept = Place(block, SHEET, below, LEFT_COL, place.turned)
    book.places[block.name] = kept
    sheet.regions.append((kept, "constant"))
    height, width = kept.size
    sheet.put(below - 1, LEFT_COL - 1, line.what, "note")
    down = Rect(below, below + height, LEFT_COL - 1, LEFT_COL)
    across = Rect(below - 1, below, LEFT_COL, LEFT_COL + width)
    sheet.runs += [Run(down, "row number"), Run(across, "label number")]
    rows, cols = (sheet[r.top : r.bottom, r.left : r.right].as_range for r in (down, across))
    now, was = line.block.area, block.area
    sheet.formula(row, COUNT, SUMPRODUCT((now != was) * 1), "count")
    first = (now != was) * (height * width - rows * width - cols)
    at = height * width - MAX(first)  # the first that differs, row by row
    differs = sheet[row, COUNT] > 0
    sheet.formula(row, ROW, IF(differs, INT(at / width), ""), "count", array=True)
    sheet.formula(row, COL, IF(differs, MOD(at, width), ""), "count", array=True)
    for col, area, style in ((WAS, was, "step"), (IS, now, "step")):
        cell = INDEX(area, sheet[row, ROW] + 1, sheet[row, COL] + 1)
        sheet.formula(row, col, IF(differs, cell, ""), style)
    i, j = (COL, ROW) if place.turned else (ROW, COL)
    which = f"{line.what}[" & sheet[row, i] & "," & sheet[row, j] & "]"
    more = IF(sheet[row, COUNT] > 1, " and " & sheet[row, COUNT] - 1 & " more of it", "")
    sheet.formula(row, TOLD, IF(differs, _from_to(which, sheet, row) & more, ""), "text")
    there = book.sheets[place.sheet]
    top, left = place.top, place.left
    there.dress(there[top : top + height, left : left + width], AsBuilt(block.name))
    return below + height + 2


def _of_sums(book: ModelBook, sheet: Sheet, row: int, line: Watched) -> None:
    """A block of a model that has too many numbers for originals."""
    edited = index.edited(book, line.block)
    sheet.formula(row, COUNT, IF(edited == "edited", 1, 0), "count")
    told = IF(sheet[row, COUNT] == 0, "", f"{line.what} edited")
    sheet.formula(row, TOLD, told, "text")


def _from_to(what: Expression | str, sheet: Sheet, row: int, as_0: bool = True) -> Expression:
    """`what` 0.5 → 0.7; of a text where a number belongs, that it counts `as_0`."""
    was, now = sheet[row, WAS], sheet[row, IS]
    numbers: Expression = was & " → " & now
    for digits in (9, 6, 3):  # as few as show the difference; programs differ in how they spell 15
        pair = ROUND(was, digits), ROUND(now, digits)
        numbers = IF(pair[0] != pair[1], pair[0] & " → " & pair[1], numbers)
    text = IFERROR(ROUND(was, 3), was) & " → ‘" & now & "’"
    if as_0:
        text = text & ", a text: counts as 0"
    return expression(what) & " " & IF(ISNUMBER(now), IFERROR(numbers, was & " → " & now), text)


# --- the one line -------------------------------------------------------------------------


def _line(book: ModelBook, sheet: Sheet, rows: slice) -> None:
    """How many cells differ, the first lines, and what the model said and says."""
    n = SUM(sheet[rows, COUNT].as_range)
    ranks, told = sheet[rows, RANK].as_range, sheet[rows, TOLD].as_range
    first, *others = [IFERROR(INDEX(told, MATCH(k, ranks, 0), 1), "") for k in range(1, N_TOLD + 1)]
    listed: Expression = first
    for text in others:
        listed = listed & IF(text == "", "", "; " & text)
    more = IF(sheet[rows.stop - 1, RANK] > N_TOLD, f"; more on {SHEET}", "")
    edits = IF(n == 1, expression("1 edit: "), n & " edits: ") & listed & more
    none = expression("no edits: everything is as built")
    line = IF(n == 0, none, edits) & _said(book)
    book.spots["ledger"] = (SHEET, LINE_ROW, 0)
    sheet.formula(LINE_ROW, 0, line, "block")


def _said(book: ModelBook) -> Expression:
    """What the model said at the end of the prompt, and says now; or that nothing is answered."""
    if book.live or book.plan.gives != "next word":
        return expression("")
    last = book.passage.n_prompt - 1
    if book.large:
        row = 0 if book.values["logits"].shape[0] == 1 else last
        likeliest = int(np.argmax(book.values["logits"][row]))
        now: Expression = book.sheet(PLAY)[one_token.RESULTS_ROW + 2, 1]
        unknown: Expression = expression("")
    else:
        ids = book.graph["choice.order"][:, 0]
        top = entry(ids, 1, book.graph["n_prompt"][0, 0])
        likeliest = int(book.values["choice.order"][last, 0])
        now = INDEX(book.graph["outputs"].area, top + 1, 1)
        unknown = book.graph["prompt.unknown"][len(book.passage.ids) - 1, 0]
    said = book.labels[book.graph["logits"].axes[1]][likeliest]
    changed = f" · said {said}, now says " & now
    answer = IF(EXACT(now, said), expression(f" · says {said}"), changed)
    if book.large:
        return answer
    nothing = " · ‘" & unknown & "’ is unknown: nothing is answered"
    typed_none = book.graph["prompt.answered"][0, 0] == 0
    silent = IF(unknown == "", expression(" · nothing is typed: nothing is answered"), nothing)
    return IF(typed_none, silent, answer)


def show(book: ModelBook, sheet: Sheet, row: int, col: int) -> None:
    """Put the line on a sheet."""
    line = sheet.formula(row, col, book.named("ledger"), "ledger")
    sheet.dress(line, When("differs", LEFT(line, 8) != "no edits"))
