"""The sheet Built, which holds every input number as built, and the ledger of the differences.

There is a line for each sheet: whether its contents stand where they were built. There is a line
for each block of weights, setting, switch and word: how many of its cells differ, the first of
them, its old and new value. From these comes the line on top of every sheet (`show`). No part of it
is ever an error: a cell with an error is reported as such. The originals stand to the right as
values, for comparison, and so that edited weights can be marked in place. Models with more weights
than `MOST_COMPARED` have none: the sums of each block are compared, which tells the block but not
the cell.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from cellformer.engine.cells.access import Rect
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.expression import Area, Expression, expression
from cellformer.engine.cells.functions import (
    EXACT,
    IF,
    IFERROR,
    INDEX,
    INT,
    ISNUMBER,
    LEFT,
    MATCH,
    MAX,
    MID,
    MOD,
    OR,
    ROUND,
    SUM,
    SUMPRODUCT,
)
from cellformer.engine.cells.language import AsIs, worded
from cellformer.engine.cells.rounding import NEAR
from cellformer.engine.studies.forecast import MOST_COMPARED
from cellformer.engine.studies.part_names import said
from cellformer.exporters.compose import digest, standing
from cellformer.exporters.compose.book import START, Book, Place, Run, Sheet
from cellformer.exporters.compose.composer import Composer, Table, slug
from cellformer.exporters.compose.dressing import AsBuilt, When, between
from cellformer.exporters.compose.lookups import entry
from cellformer.exporters.compose.sentences import sentence
from cellformer.exporters.model import layout, words
from cellformer.exporters.model.counting import AS_0, EMPTY, ERROR, TEXT
from cellformer.exporters.model.model_book import ModelBook
from cellformer.exporters.pages import index
from cellformer.exporters.play import ranking

SHEET = "Built"
PURPOSE = "every number as built; your changes are listed here and at the top of every sheet"
AFTER = "Text"
LINE = (3, 0)  # the cell of the line
TOP, ORIGINALS = 6, 10  # the row of the lines it is made of; the column of what was built
HEADS = ("what", "differ", "row", "column", "was", "is", "message", "messages so far")
WHAT, COUNT, ROW, COL, WAS, IS, TOLD, RANK = range(8)
N_MOVED, N_TOLD = 2, 4  # lines reported on top of every sheet: of sheets, and of others
OWN_ROOM = 60  # rows that are kept for lines of a workbook's own sheets
LONGEST, LONGEST_LINE = 40, 2000  # characters reported: of a sentence, in total
INSIDE = "rows, columns or cells were inserted, deleted or moved: undo (Ctrl+Z)"
LOST = (
    "this sheet or its top rows were deleted: undo (Ctrl+Z), or open the file again without saving"
)
NONE = "no edits: everything is as built"  # what the line begins with where nothing differs
A_NUMBER = between(-(10**9), 10**9, "Type a number here. A text counts as 0.", "No number")


@dataclass(frozen=True, eq=False)
class Watched:
    """Cells that are compared with their values as built: a block, or one cell of texts."""

    what: str  # as the ledger calls it
    block: Block
    cell: tuple[int, int] | None = None  # of a block of texts
    typed: bool = True  # whether it is there to be typed over; a table of the vocabulary is not


def watched(book: Book) -> Iterator[Watched]:
    """All input blocks, in the order of the graph; and the texts that formulas look up."""
    for block in book.graph:
        place = book.places.get(block.name)
        if place is None or block.op or block.expression or block.kind == "computed":
            continue
        if block.kind != "table":
            if not isinstance(book, ModelBook) or block.name not in book.pieces:
                yield Watched(name(block), block)
        elif typed(book, place):
            yield from (Watched(name(block, i), block, (i, j)) for i, j in block.whole.cells())
        elif _each(book) and _of_texts(book, block):
            yield Watched(block.name, block, typed=False)


def _each(book: Book) -> bool:
    """Whether there is a line for each block, and for tables of texts."""
    return not isinstance(book, ModelBook) or book.plan.compares_blocks


def typed(book: Book, place: Place) -> bool:
    """Whether the cells of a table are inputs."""
    found = book.sheets[place.sheet].entries.get(place.cell(0, 0))
    return found is not None and found.style in ("token", "sentence", "dial", "number typed")


def name(block: Block, i: int = 0) -> str:
    """The ledger's name for a block, or for cell i of one with texts."""
    if block.layer is not None and block.leaf == "switch":
        return said(block.path)
    if block.leaf == "instead":
        return AsIs(block.inside[-1])
    if block.name == "prompt.pick":
        return worded("word {i} picked", i=i)
    if block.name == "random" and block.kind == "table":
        return worded("random number {i}", i=i)
    return block.name


def add(book: ModelBook) -> None:
    """Add the sheet; it is filled when all others are complete."""
    layout.dress(book, book.sheet(SHEET))
    book.sheet(SHEET).hidden = True


def fill(book: Book, own: Collection[str] = ()) -> None:
    """Add the ledger's line, the lines that it is made of, and the originals, when everything has
    its place.

    Cells on the workbook's `own` sheets come last, in rows reserved for them: everything else
    stands where it does in a workbook of the same model without these sheets.
    """
    sheet = book.sheet(SHEET)
    sheet.widths = {WHAT: 34, TOLD: 60, IS: 16, WAS: 16}
    sheet.across(TOP - 1, 0, HEADS, "block")
    cells = [*watched(book)]
    stored = sum(w.block.whole.size for w in cells) <= MOST_COMPARED  # large models store none
    each = stored or _each(book)
    lines = [w for w in cells if each or w.cell or w.block.whole.size == 1]
    sheets = [there for there in book.sheets.values() if there.name != START]
    top = TOP + _ranks(book)
    usual = [line for line in lines if book.places[line.block.name].sheet not in own]
    of_usual = [there for there in sheets if there.name not in own]
    begun = top + len(usual)
    room = begun + len(of_usual)
    end = room + OWN_ROOM if isinstance(book, ModelBook) else room
    table = Composer(book, SHEET).table("lines", (TOP, 0), (end - TOP, len(HEADS)))
    if _ranks(book):
        assert isinstance(book, ModelBook)
        _of_ranking(book, table, TOP)
    below = _of_lines(book, table, usual, top, TOP + 1, stored)
    stands = _of_sheets(book, table, of_usual, begun, end + 2)
    others = [line for line in lines if line not in usual]
    _of_lines(book, table, others, room, below, stored)
    last = room + len(others)
    _of_sheets(book, table, [there for there in sheets if there.name in own], last, stands)
    assert last + len(own) <= max(end, room), f"more than OWN_ROOM = {OWN_ROOM} lines"
    parts = [(begun, room, N_MOVED), (TOP, begun, N_TOLD), (room, end, N_TOLD)]
    _line(book, table, [part for part in parts if part[0] < part[1]])


def _of_lines(
    book: Book, table: Table, lines: Sequence[Watched], top: int, below: int, stored: bool
) -> int:
    """Add a line for each watched block from a row on, with originals from the row `below` on.
    Returns the row after these."""
    for row, line in enumerate(lines, top):
        _guard(book, line)
        table.sheet.put(row, WHAT, AsIs(line.what))
        if line.cell or line.block.whole.size == 1:
            _of_one(book, table, row, line, stored)
        elif stored or not line.typed:  # texts have no sum
            below = _of_many(book, table, row, line, below)
        else:
            _of_sums(book, table, row, line)
    return below


def _guard(book: Book, line: Watched) -> None:
    """Let a block's cells accept only numbers; programs do not check pasted ones."""
    if line.block.kind == "table" or _of_texts(book, line.block):
        return
    name, cells = book.locate(line.block.area)
    sheet = book.sheets[name]
    ruled = [*(area for area, _ in sheet.ruled), *(sheet[at].rect for at in sheet.lists)]
    if not any(map(cells.meets, ruled)):
        sheet.areas.append((cells, A_NUMBER))


def _of_texts(book: Book, block: Block) -> bool:
    """Whether a block holds texts, and no number."""
    values = book.graph.inputs[block.name]
    if not isinstance(values, np.ndarray) or values.dtype != object:
        return False
    return all(isinstance(value, str) for value in np.ravel(values))


# --- a line for each sheet ----------------------------------------------------------------


def _of_sheets(book: Book, table: Table, sheets: Sequence[Sheet], top: int, below: int) -> int:
    """Add, from a row on, whether each sheet's contents stand in their places; computed from cells
    from the row `below` on, one for each block, with the distance it has moved. Returns the row
    after these."""
    sheet, page = table.sheet, Composer(book, SHEET)
    for row, there in enumerate(sheets, top):
        stands = standing.standing(book, there, edges=there is not sheet)
        cells = page.table(f"moved.{slug(there.name)}", (below, COUNT), (len(stands), 1))
        for k, (area, what) in enumerate(stands.items()):
            sheet.hold(below + k, WHAT, f"{there.name}: {what}", "note")
            cells.put(k, 0, standing.moved(there, area), "count")
        below += len(stands)
        sheet.hold(row, WHAT, there.name, "text")
        fault = IF(standing.gone(there), worded(LOST), worded(INSIDE))
        differs = IF(SUM(cells.area.as_range) > 0, 1, 0)
        _report(table, row, differs, expression(f"{there.name}: ") & fault)
    return below


def _report(table: Table, row: int, differs: Expression, told: Expression | str) -> None:
    """Add whether the cells of a line differ, 1 or 0, and the text for this case."""
    count = table.put(row - TOP, COUNT, IFERROR(differs, 1), "count")
    table.put(row - TOP, TOLD, IF(count == 0, "", told), "text")


def _ranks(book: Book) -> bool:
    """Whether it ranks the most likely words."""
    return isinstance(book, ModelBook) and book.plan.gives != "sentence" and not book.live


def _of_ranking(book: ModelBook, table: Table, row: int) -> None:
    """Add whether the most likely words stand in their order."""
    ranks, shares = ranking.order(book)
    falls = IFERROR(SUMPRODUCT((shares[:-1, 0] < shares[1:, 0] - NEAR) * 1), 0)
    order = SUMPRODUCT((ranks[:-1, 0] >= ranks[1:, 0]) * 1)
    table.sheet.put(row, WHAT, "ranking")
    told = worded(
        "{sheet}: the ranking was sorted or typed over: undo (Ctrl+Z)", sheet=book.locate(ranks)[0]
    )
    _report(table, row, IF(order + falls > 0, 1, 0), told)


# --- a line for each block ----------------------------------------------------------------


def _of_one(book: Book, table: Table, row: int, line: Watched, stored: bool) -> None:
    """Add a single cell: a text, a setting, a switch."""
    sheet = table.sheet
    i, j = line.cell or (0, 0)
    now = line.block[i, j]
    value = np.asarray(book.graph.inputs[line.block.name])[i, j]  # of a file, too
    text = isinstance(value, str)
    was = value if text else float(value)
    sheet.hold(row, WAS, was, "text" if text else "step")
    kept = was if text and line.typed else sheet[row, WAS]
    same = EXACT(now, kept) if text else now == kept
    table.put(row - TOP, IS, _shown(now, text), "text" if text else "step")
    _report(table, row, IF(same, 0, 1), _told_of_one(book, sheet, row, line))
    if line.block.kind != "table":
        there, rect = book.locate(line.block.area)
        book.sheets[there].dressings.append((rect, AsBuilt(was)))


def _shown(cell: Expression, text: bool = False) -> Expression:
    """A cell's content unless it is an error; "" for a blank."""
    return IFERROR(cell & "" if text else IF(cell & "" == "", "", cell), worded(ERROR))


def _told_of_one(book: Book, sheet: Sheet, row: int, line: Watched) -> Expression:
    """The ledger's text for a single cell that differs."""
    now, what = sheet[row, IS], line.what
    if what != line.block.name and line.block.leaf == "switch":
        text = sentence("{part} off: ‘{text}’ counts as 0", part=what, text=now)
        off = IF(now == "", worded("{part} off: empty", part=what), text)
        number = IF(now == 0, worded("{part} off", part=what), expression(f"{what} × ") & now)
        return IF(ISNUMBER(now), number, off)
    if line.block.leaf == "sentence":
        return expression(f"{what}: ") & IF(now == "", worded("none"), LEFT(now, LONGEST))
    if line.block.name == "prompt.pick":
        beyond = expression(line.cell[0] if line.cell else 0) >= book.graph["n_prompt"][0, 0]
        effect = IF(beyond, " " & sentence("(beyond the sentence: no effect)"), "")
        return IFERROR(expression(f"{what}: ") & now & effect, f"{what}: {worded(ERROR)}")
    if line.block.leaf == "instead":
        return sentence("{word}: {text} instead", word=what, text=now)
    return _from_to(
        what, sheet, row, line.block.kind != "table" and not _of_texts(book, line.block)
    )


def _of_many(book: Book, table: Table, row: int, line: Watched, below: int) -> int:
    """Add a block, beside its originals from the row `below` on; returns the row after it."""
    sheet = table.sheet
    place = book.places[line.block.name]
    block = replace(line.block, name=f"built.{line.block.name}", kind="setting")
    texts, values = _of_texts(book, line.block), book.graph.inputs[line.block.name]
    numbers = getattr(values, "dtype", None) != np.dtype(object)  # of a file, too
    kept = Place(block, SHEET, below, ORIGINALS, place.turned, named=numbers)
    book.others[block.name] = book.values[line.block.name]
    book.places[block.name] = kept
    if not numbers:
        for (i, j), value in np.ndenumerate(values):
            sheet.hold(*kept.cell(i, j), value, "text" if isinstance(value, str) else "constant")
    else:
        sheet.regions.append((kept, "constant"))
    height, width = kept.size
    sheet.hold(below - 1, ORIGINALS - 1, line.what, "note")
    down = Rect(below, below + height, ORIGINALS - 1, ORIGINALS)
    across = Rect(below - 1, below, ORIGINALS, ORIGINALS + width)
    sheet.runs += [Run(down, "row number"), Run(across, "label number")]
    rows, cols = sheet[down].as_range, sheet[across].as_range
    now, was = line.block.area, block.area
    # of each cell 1 or 0: an array formula, for an error is to count as a difference
    same = 1 - EXACT(IFERROR(now, ""), was) * 1 if texts else (now != was) * 1
    other = IFERROR(same, 1)
    table.put(row - TOP, COUNT, IFERROR(SUM(other), 1), "count", array=True)
    at = height * width - MAX(other * (height * width - rows * width - cols))  # row by row
    differs = sheet[row, COUNT] > 0
    for col, found in ((ROW, INT(at / width)), (COL, MOD(at, width))):
        table.put(row - TOP, col, IF(differs, IFERROR(found, 0), ""), "count", array=True)
    for col, area in ((WAS, was), (IS, now)):
        cell = INDEX(area, sheet[row, ROW] + 1, sheet[row, COL] + 1)
        table.put(row - TOP, col, IF(differs, _shown(cell), ""), "step")
    i, j = (COL, ROW) if place.turned else (ROW, COL)
    turned = place.turned and line.block.kind == "weight" and min(line.block.shape) > 1
    end = words.transposed("]") if turned else "]"
    which = f"{line.what}[" & sheet[row, i] & "," & sheet[row, j] & end
    others = " " & sentence("and {n} more in this block", n=sheet[row, COUNT] - 1)
    told = _from_to(which, sheet, row, line.typed and numbers)
    told = told & IF(sheet[row, COUNT] > 1, others, "")
    told = told if line.typed else sentence("{edit}: undo (Ctrl+Z)", edit=told)
    table.put(row - TOP, TOLD, IF(differs, told, ""), "text")
    if numbers:
        there = place.rect(line.block.whole)
        book.sheets[place.sheet].dressings.append((there, AsBuilt(block.name)))
    return below + height + 2


def _of_sums(book: Book, table: Table, row: int, line: Watched) -> None:
    """Add a block of a model with too many numbers for originals."""
    assert isinstance(book, ModelBook)
    differs = IF(index.edited(book, line.block) == worded(index.EDITED), 1, 0)
    _report(table, row, differs, worded("{what} edited", what=line.what))


def _from_to(what: Expression | str, sheet: Sheet, row: int, as_0: bool) -> Expression:
    """`what` 0.5 → 0.7; for a value of the wrong kind, that it counts `as_0`."""
    was, now = sheet[row, WAS], sheet[row, IS]
    numbers: Expression = was & " → " & now
    for digits in (9, 6, 3):  # as few as show the difference; programs differ in how they spell 15
        pair = ROUND(was, digits), ROUND(now, digits)
        numbers = IF(pair[0] != pair[1], pair[0] & " → " & pair[1], numbers)
    numbers = IFERROR(numbers, was & " → " & now)
    of_error, of_none = (worded(AS_0[kind] if as_0 else kind) for kind in (ERROR, EMPTY))
    of_text = f", {worded(AS_0[TEXT])}" if as_0 else ""
    other: Expression = IF(now == worded(ERROR), of_error, "‘" & now & "’" & of_text)
    other = IFERROR(ROUND(was, 3), was) & " → " & IF(now == "", of_none, other)
    return expression(what) & " " & IF(ISNUMBER(now), numbers, other)


# --- the one line -------------------------------------------------------------------------


def _line(book: Book, table: Table, parts: Sequence[tuple[int, int, int]]) -> None:
    """The ledger's line: how many cells differ, the first lines of each part, the model's old and
    new answer. A part is its first row, the row after its last, and how many of its lines are
    reported; the first part is about cells that have moved."""
    sheet, page = table.sheet, Composer(book, SHEET)
    n, listed, more = expression(0), expression(""), expression(0)
    for top, end, n_told in parts:
        counts, ranks, told = (sheet[top:end, col].as_range for col in (COUNT, RANK, TOLD))
        for row in range(top, end):
            if (row, COUNT) in sheet.entries:
                # LibreOffice takes no value of an array formula out of a file, and what reads
                # nothing else misses the first edit: the message reads what was edited, too
                before = sheet[row - 1, RANK] if row > top else expression(0)
                sofar = IFERROR(before + IF(sheet[row, TOLD] == "", 0, 1), 0)
                table.put(row - TOP, RANK, sofar, "count")
        for k in range(1, n_told + 1):
            listed = listed & IFERROR("; " & INDEX(told, MATCH(k, ranks, 0), 1), "")
        n, more = n + SUM(counts), more + IF(MAX(ranks) > n_told, 1, 0)
    sheet.put(LINE[0] + 1, WHAT, "total", "note")
    n = page.show("total", (LINE[0] + 1, COUNT), n, "count")
    listed = MID(listed, 3, LONGEST_LINE) & IF(
        more > 0, worded("; more changes: {sheet}", sheet=SHEET), ""
    )
    edits = IF(n == 1, sentence("1 edit: "), sentence("{n} edits: ", n=n)) & listed
    line = IFERROR(
        IF(n == 0, worded(NONE), edits),
        worded("{sheet}: lines were deleted or typed over: undo (Ctrl+Z)", sheet=SHEET),
    )
    over, missing = (_of_digest(book, rows) for rows in (digest.TYPED_OVER, digest.FUNCTIONS))
    undo = sentence("the formula in {cell} was typed over: undo (Ctrl+Z)", cell=over)
    top, end, _ = parts[0]
    moved = IFERROR(SUM(sheet[top:end, COUNT].as_range), 1) > 0
    first = undo & IF(IFERROR(n, 1) == 0, "", " · " & line)
    # cells that were inserted hold no formulas: that they were is said before
    line = IF(over == "", line, IF(moved, line & " · " & undo, first))
    line = IF(missing == "", "", missing & " · ") & line
    book.named_cells["ledger"] = (SHEET, *LINE)
    said = _said(book) if isinstance(book, ModelBook) else None
    if said is not None:
        line = line & IFERROR(said, worded(" · error: the model gives no answer"))
    page.show("line", LINE, line, "block")


def _said(book: ModelBook) -> Expression | None:
    """The model's answer at the end of the prompt, before and now; or the statement that it has
    none."""
    if book.live or book.plan.gives != "next word":
        return None
    last = book.passage.n_prompt - 1
    if book.plan.answers:
        row = 0 if book.values["logits"].shape[0] == 1 else last
        likeliest = int(np.argmax(book.values["logits"][row]))
        now: Expression = ranking.ranked(book)[0][0, 0]
        unknown: Expression = expression("")
    else:
        top = entry(book.graph["choice.order"][:, 0], 1, book.graph["n_prompt"][0, 0])
        likeliest = int(book.values["choice.order"][last, 0])
        now = INDEX(book.graph["outputs"].area, top + 1, 1)
        unknown = book.graph["prompt.unknown"][len(book.passage.ids) - 1, 0]
    said = book.labels[book.graph["logits"].axes[1]][likeliest]
    changed = sentence(" · answer was {word}, now is {now}", word=said, now=now)
    answer = IF(EXACT(now, said), sentence(" · says {word}", word=said), changed)
    if book.plan.answers:
        return answer
    nothing = sentence(" · ‘{word}’ is unknown: no answer", word=unknown)
    silent = IF(unknown == "", sentence(" · nothing is typed: no answer"), nothing)
    return IF(book.graph["prompt.answered"][0, 0] == 0, silent, answer)


def _of_digest(book: Book, rows: Sequence[int]) -> Expression:
    """A text of Digest's; "" where the sheet is gone."""
    return IFERROR(book.sheet(digest.SHEET)[rows[0], 0] & "", "")


def n_edits(book: Book) -> Area:
    """The cell that counts what differs."""
    return book.sheet(SHEET)[LINE[0] + 1, COUNT]


def edited(book: Book) -> Expression:
    """Whether anything differs, or a formula was typed over."""
    return OR(IFERROR(n_edits(book), 1) > 0, _of_digest(book, digest.TYPED_OVER) != "")


def watch(book: Book) -> digest.Watch:
    """The questions that Digest answers."""
    return digest.Watch(
        n_edits(book), edited(book), (SHEET, Rect(LINE[0], LINE[0] + 1, LINE[1], LINE[1] + 1))
    )


def show(book: Book, sheet: Sheet, row: int, col: int) -> None:
    """Add the ledger's line to a sheet."""
    # LibreOffice has no answer to IFERROR of a lone cell whose sheet is gone
    told = IFERROR(book.sheet(SHEET)[LINE] & "", f"{SHEET}: {worded(LOST)}")
    page = Composer(book, sheet.name)
    line = page.show("ledger", (row, col), told, "ledger")
    page.dress(line, When("differs", LEFT(line, len(worded(NONE))) != worded(NONE)))
