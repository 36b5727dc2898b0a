"""Exercises in a workbook: cells that are blank and yellow, and the sheet that checks them.

A chosen cell loses its formula where it stands. A hidden sheet, Key, has a copy of its block with
the right numbers, and whatever reads the cell reads the copy: so what follows goes on with the
right number, whatever is typed. Beside it stand the right number, and what each slip would lead to,
as formulas; the check names the nearest.
"""

import json
from collections import ChainMap
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

import numpy as np

from cellformer.engine.cells.access import Span
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.expression import Area, Expression, decimal, expression
from cellformer.engine.cells.formula import InWords, equation, readable
from cellformer.engine.cells.functions import (
    AND,
    IF,
    IFERROR,
    INDEX,
    MATCH,
    MAX,
    MIN,
    SUM,
    N,
    harmless,
)
from cellformer.engine.cells.language import AsIs, translated, worded
from cellformer.engine.cells.texts import cut
from cellformer.engine.cells.values import is_number
from cellformer.engine.studies import exercises
from cellformer.engine.studies.answers import BLANK, POINT, judged
from cellformer.engine.studies.exercises import Exercise, Level, told_apart
from cellformer.engine.studies.other_inputs import varied
from cellformer.engine.studies.slips import Slip, bare
from cellformer.exporters.assemble.answer_key import KEY, RIGHT, Answer, AnswerKey
from cellformer.exporters.assemble.questions import question, task
from cellformer.exporters.assemble.worksheets import worksheet
from cellformer.exporters.compose import digest as digests
from cellformer.exporters.compose import theme
from cellformer.exporters.compose.book import START, Blanks, Book, Entry, Filled, Place, Reading
from cellformer.exporters.compose.composer import Composer, slug
from cellformer.exporters.compose.dressing import When
from cellformer.exporters.compose.sentences import rounded, sentence
from cellformer.exporters.compose.story import Suggestion
from cellformer.exporters.model.model_book import ModelBook
from cellformer.exporters.pages import attention

SHEET = "Exercise"
PURPOSE = "fill in the yellow cells; the sheet checks each answer, and explains mistakes"
VERSION = 2  # of the exercises and how they are checked
NAME = (4, 2)  # the cell on the sheet for the reader's name
FACTS = (1, 0)  # the cell of the sheet Key that says how to build it again
TOP, EACH = 11, 3  # the first question's row; the rows of each
SCORE = (4, 5)  # the cell with the score
FORWARD = ("Embedding", "Block", "Readout")  # the sheets of a model whose cells are asked
LONGEST_SHOWN = 170  # characters of a formula in a hint

HERE = {
    "input_title": "Exercise",
    "input_message": "Type a number with at least two digits, or a formula that starts with =. "
    "The sheet Exercise checks the answer.",
}
TO_BE_FILLED = "Fill in the blank cells. The sheet Exercise checks your answers."
FOLLOW = (
    "Follow a link, and type into the yellow cell. The top of that sheet shows whether your "
    "answer is right."
)
ANYTHING = "You can type anything into a yellow cell. Other cells always use the right number."
FOR_A_HINT = (
    "For a hint, type 1, 2 or 3. 1 shows the tables that the cell uses, 2 the formula with "
    "names, and 3 the answer."
)
ROUNDING = (
    "Type at least two significant digits, for example 0.047 for 0.04736. Counts must be exact."
)
COUNTED = "Rows and columns are numbered from 0. [1,0] means the second row and the first column."
OTHER_INPUTS = "Do your formulas also work for other inputs? Type {value} into"
LINK_WIDTH = 11  # of the first column, for the link back
TO_FILL, APART = "–", "   "  # of an answer that is blank; between two


def asked(book: Book, level: Level, declared: Sequence[str] = ()) -> list[Exercise]:
    """The exercises of a finished workbook. Raises InputError for one with too few cells."""
    of_model = isinstance(book, ModelBook)
    blocks = [
        block
        for block in book.graph
        if block.computed
        and block.name in book.places
        and (not of_model or block.kind == "computed")
        and (not of_model or book.places[block.name].sheet.split()[0] in FORWARD)
    ]
    looks = book.clean, other_inputs(book)
    found = exercises.chosen(book.graph, blocks, looks, level, declared, book.n_given or None)
    exercises.check(found, book.title, level)
    return found


def other_inputs(book: Book) -> Reading:
    """The values of a book with other inputs, so that formulas are tried on numbers that no file
    shows."""
    return Reading(book, ChainMap(varied(book.graph).computed, book.others))


def make(
    book: Book, found: Sequence[Exercise], level: Level, facts: dict[str, Any], solved: bool = False
) -> list[Answer]:
    """Take the exercises' cells out of a finished book, and add the sheets Exercise and Key;
    `solved`: their formulas stand in the yellow cells. `facts` say how to build the book again."""
    answers = _answers(book, found)
    key = Composer(book, KEY, cursor=6)
    key.sheet.secret = True
    key.sheet.put(0, 0, "The right answers of the sheet Exercise", "title")
    _blank(book, key, found, solved)
    _page(book, found, AnswerKey(book, key, answers), level)
    facts = {"version": VERSION, **facts, "level": level, "digest": digest(book, answers)}
    key.sheet.hold(*FACTS, json.dumps(facts), "note")
    book.opens_on = own = sheet_name()
    names = [own, *(n for n in book.sheets if n not in (own, KEY)), KEY]
    book.sheets = {name: book.sheets[name] for name in names}
    _hide(book, attention.SHEET)
    if not solved:
        _say_why_ranges_differ(book)
    book.refresh()
    return answers


def _hide(book: Book, name: str) -> None:
    """Hide a sheet that shows right numbers, with the links to it and Start's texts about it."""
    if name not in book.sheets:
        return
    book.sheets[name].secret = True
    for sheet in book.sheets.values():
        leading = [at for at, target in sheet.links.items() if target.startswith(f"{name}!")]
        for at in leading:
            del sheet.links[at], sheet.entries[at]
            if sheet.name == START:
                del sheet.entries[at[0], at[1] + 1]  # its purpose
    start = book.sheet(START)
    told = [at for at, e in start.entries.items() if str(e.value).startswith(f"{name}:")]
    for at in told:
        del start.entries[at]


def sheet_name() -> str:
    """The name of the sheet of questions, in the language of the workbook."""
    return translated(SHEET)


def _say_why_ranges_differ(book: Book) -> None:
    """On Start, in place of Digest's verdict, say that blank cells count as differences."""
    start, row = book.sheet(START), digests.SUMMARY
    start.dressings = [one for one in start.dressings if not one[0].top <= row < one[0].bottom]
    start.put(row, 0, TO_BE_FILLED, "ledger")
    start.put(row, 3, "", "ledger")


def digest(book: Book, answers: Sequence[Answer]) -> str:
    """A digest of the questions: cells, right formulas and slips. Other versions have other
    questions."""
    asked = [
        (a.block.name, a.i, a.j, book.text(a.right, KEY), [slip.kind for slip in a.slips])
        for a in answers
    ]
    return sha256(json.dumps(asked).encode()).hexdigest()[:16]


def _answers(book: Book, found: Sequence[Exercise]) -> list[Answer]:
    answers = []
    for n, exercise in enumerate(found):
        block, place = exercise.block, book.places[exercise.block.name]
        whole = _whole(book, block)
        for i, j in exercise.cells:
            cell = book.sheet(place.sheet)[place.cell(i, j)].fixed
            right, slips = block.formula(i, j), _nameable(book, block, (i, j), whole)
            answers.append(
                Answer(n, block, i, j, cell, harmless(right), slips, place.turned, whole)
            )
    return answers


def _whole(book: Book, block: Block) -> bool:
    """Whether a block counts: all its numbers are whole."""
    values = np.ravel(book.clean.values[block.name])
    return all(float(x).is_integer() for x in values if is_number(x) and np.isfinite(x))


def _nameable(book: Book, block: Block, at: Span, whole: bool) -> list[Slip]:
    """The slips in a cell whose numbers differ from the right one by more than rounding or a
    power of ten."""
    right = exercises.number(block.formula(*at), book.clean)
    found = []
    for slip in told_apart(book.graph, block, at, book.clean):
        value = exercises.number(slip.formula, book.clean)
        assert value is not None and right is not None
        if judged(value, right, {}, whole).mark > POINT:
            found.append(slip)
    return found


# --- the yellow cells, and the copies that formulas read -----------------------------------------


def _blank(book: Book, key: Composer, found: Sequence[Exercise], solved: bool) -> None:
    """Empty the cells, and put a copy of each of their blocks on Key."""
    cells: dict[Block, set[tuple[int, int]]] = {}
    for exercise in found:
        cells.setdefault(exercise.block, set()).update(exercise.cells)
    for block, blank in cells.items():
        place = book.places[block.name]
        key.cursor += 1
        key.sheet.hold(key.cursor - 1, 0, block.name, "block")
        table = key.table(f"copy.{block.name}", (key.cursor, 0), place.size)
        book.blanks[block.name] = Blanks(
            frozenset(blank), Place(block, KEY, key.cursor, 0, place.turned)
        )
        visible = book.sheet(place.sheet)
        for i, j in (at for at in block.whole.cells() if block.has(*at)):
            row, col = place.cell(i, j)
            at = (j, i) if place.turned else (i, j)
            if (i, j) in blank:
                table.put(*at, harmless(block.formula(i, j)), "step")
                visible.rules[row, col] = {"validate": "any", **HERE}
                own = Filled(block, i, j, book.locate) if solved else None
                visible.entries[row, col] = Entry(None if solved else "", "blank", own)
            else:
                table.put(*at, visible[row, col].fixed_rows, "step")
        key.cursor += place.size[0] + 1


# --- the sheet that asks ---------------------------------------------------------------------


def _page(book: Book, found: Sequence[Exercise], checked: AnswerKey, level: Level) -> None:
    """Add the sheet Exercise: a question, a link, the answer, hints and the check for each."""
    page = worksheet(book, sheet_name(), PURPOSE)
    page.widths({0: 4, 1: 56, 2: 18, 3: 15, 4: 7, 5: 56})
    sheet, n = page.sheet, len(found)
    sheet.put(NAME[0], 1, "your name", "row label")
    sheet.put(*NAME, "", "token")
    sheet.down(5, 1, (FOLLOW, ANYTHING, FOR_A_HINT, ROUNDING, COUNTED), "text")
    _other_inputs(book, page, checked.answers)
    page.heads_at((TOP - 1, 0), "", "what to compute", "where", "your answer", "hints", "check")
    shape = (EACH * n, 1)
    columns = {"hints": 1, "answer": 3, "check": 5, "right": 6}
    tables = {name: page.table(name, (TOP, col), shape) for name, col in columns.items()}
    told: list[Area] = []
    for e, exercise in enumerate(found):
        rows = [k for k, a in enumerate(checked.answers) if a.exercise == e]
        row, k = TOP + EACH * e, EACH * e
        sheet.put(row, 0, e + 1, "stop number")
        sheet.put(row, 1, AsIs(question(book, exercise)), "block")
        sheet.put(row + 1, 1, AsIs(task(book, exercise, checked.answers[rows[0]].whole)))
        where = book.address(_cells(exercise))
        sheet.link(row, 2, AsIs(where.replace("'", "")), where)
        sheet.put(row, 4, 0, "dial")
        dial = IFERROR(N(sheet[row, 4]), 0)
        tables["answer"].put(k, 0, _shown(checked, rows), "step green")
        told.append(tables["check"].put(k, 0, _told(checked, rows), "wrapped"))
        sheet.merged.append(sheet[row : row + EACH - 1, 5].rect)
        tables["right"].put(k, 0, MIN(checked.good[rows[0] : rows[-1] + 1, 0]), "hidden")
        tables["hints"].put(k + 2, 0, _hints(book, exercise, dial, checked.right[rows[0]]), "note")
    score = sentence(
        "Score: {right} of {all}",
        right=SUM(tables["right"].area),
        all=expression(n),
    )
    what = worded("level {level}: {what}", level=level, what=worded(exercises.LEVELS[level]))
    sheet.put(NAME[0] - 1, 1, what, "note")
    page.show("score", SCORE, score, "block")
    sheet.dress(sheet[TOP : TOP + EACH * n, 5], When("right", sheet[TOP, 6].fixed_cols == 1))
    _beside(book, found, checked, told)


def _beside(
    book: Book, found: Sequence[Exercise], checked: AnswerKey, told: Sequence[Area]
) -> None:
    """On each sheet with yellow cells, replace its purpose by messages about them and a link
    back."""
    lines: dict[str, Expression] = {}
    for e, exercise in enumerate(found):
        kinds = [checked.kind[k, 0] for k, a in enumerate(checked.answers) if a.exercise == e]
        blank = AND(MIN(*kinds) == BLANK, MAX(*kinds) == BLANK)
        text = expression(f"{e + 1}: ") & IF(blank, TO_FILL, told[e])
        name = book.places[exercise.block.name].sheet
        lines[name] = lines[name] & APART & text if name in lines else text
    for name, line in lines.items():
        sheet = book.sheet(name)
        sheet.link(1, 0, "← Exercise", f"{sheet_name()}!A1")
        own = sheet.widths.get(0, theme.COLUMN_WIDTH)
        sheet.widths = {**sheet.widths, 0: max(own, LINK_WIDTH)}
        sheet.frozen = (3, sheet.frozen[1])
        Composer(book, name).table(f"exercise.{slug(name)}", (2, 0)).put(0, 0, line, "block")


def _cells(exercise: Exercise) -> Area:
    """The cells of an exercise."""
    (i, j), (bottom, right) = exercise.cells[0], exercise.cells[-1]
    if len(exercise.cells) == 1:
        return exercise.block[i, j]
    return exercise.block[i : bottom + 1, j : right + 1]


def _shown(checked: AnswerKey, rows: Sequence[int]) -> Expression:
    """The typed answer; if there are several, the number of right ones."""
    if len(rows) > 1:
        good = SUM(checked.good[rows[0] : rows[-1] + 1, 0])
        return sentence("{n} of {all}", n=good, all=expression(len(rows)))
    cell = checked.answers[rows[0]].cell
    return IFERROR(IF(cell == "", "", cell), worded("error"))


def _told(checked: AnswerKey, rows: Sequence[int]) -> Expression:
    """The message about an exercise; if it has several cells, about the first that is not right."""
    if len(rows) == 1:
        return checked.said[rows[0]] & ""
    good, said = (x[rows[0] : rows[-1] + 1, 0] for x in (checked.good, checked.said))
    names = checked.names[rows[0] : rows[-1] + 1, 0]
    first = MATCH(0, good, 0)
    return IFERROR(INDEX(names, first) & ": " & INDEX(said, first), worded(RIGHT))


def _hints(book: Book, exercise: Exercise, dial: Expression, right: Expression) -> Expression:
    """Three steps: the equation of the table, the cell's formula with names, the number."""
    block, (i, j) = exercise.block, exercise.cells[0]
    text = book.text(Filled(block, i, j, book.locate), book.places[block.name].sheet)
    own = readable(block, i, j) if block.op else bare(block.formula(i, j)).text(InWords(block.name))
    one = f"{block.leaf} = {equation(block)}" if block.op else _read_by(book, block, i, j)
    first = sentence("1: {all}", all=expression(cut(one, LONGEST_SHOWN)))
    second = sentence(" · 2: {own}", own=expression(cut(own, LONGEST_SHOWN)))
    third = sentence(
        " · 3: the answer is {right}, ={formula}",
        right=rounded(right, 6),
        formula=expression(cut(text, LONGEST_SHOWN)),
    )
    return IF(dial < 1, "", first & IF(dial < 2, "", second & IF(dial < 3, "", third)))


def _read_by(book: Book, block: Block, i: int, j: int) -> str:
    """The tables that a cell reads, and where."""
    areas = dict.fromkeys(block.formula(i, j).areas())
    if areas:
        told = (f"{area.grid.name} ({book.address(area)})".replace("'", "") for area in areas)
        return worded("the cell uses {tables}", tables=", ".join(told))
    return worded("the cell uses no other cell")


def _other_inputs(book: Book, page: Composer, answers: Sequence[Answer]) -> None:
    """Lead to the suggested edit that changes the most right numbers. Formulas follow it, and
    typed numbers do not."""
    tried = [(_n_changed(book, answers, s), -k, s) for k, s in enumerate(book.suggestions)]
    n, _, best = max(tried, default=(0, 0, None))
    if best is None or not n:
        return
    value = f"‘{best.value}’" if isinstance(best.value, str) else decimal(best.value or 0.0)
    page.sheet.put(5, 5, worded(OTHER_INPUTS, value=value))
    where = book.address(_edited_cell(book, best))
    page.sheet.link(6, 5, AsIs(where.replace("'", "")), where)


def _edited_cell(book: Book, suggestion: Suggestion) -> Area:
    """The cell that an edit is typed into."""
    if isinstance(suggestion.cell, int):
        return book.graph["prompt.pick"][suggestion.cell, 0]
    name, i, j = suggestion.cell
    return book.graph[name][i, j]


def _n_changed(book: Book, answers: Sequence[Answer], suggestion: Suggestion) -> int:
    """The number of right numbers that an edit of one cell changes."""
    if suggestion.also or suggestion.value is None:
        return 0
    after = book.edited({_edited_cell(book, suggestion): suggestion.value})
    pairs = [[exercises.number(a.right, look) for look in (book.clean, after)] for a in answers]
    return sum(was != now for was, now in pairs)
