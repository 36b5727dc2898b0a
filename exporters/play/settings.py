"""The dials of Play: how a word is chosen, and what is looked at.

What is typed is taken within its range, whatever it is: the note beside a dial says so where that
is another number than the one typed. The position, and the two words that Lens, Attribution and
Switches speak of, follow the sentence; a cell of its own overrides each.
"""

from collections.abc import Callable, Mapping
from typing import Any

from engine.cells.expression import Area, Expression, decimal, expression
from engine.cells.functions import AND, FIND, IF, ISNUMBER, OR, SUMPRODUCT, N
from engine.models.choosing import BY_NUMBER, GREEDILY
from exporters.compose.book import Place, Sheet
from exporters.compose.dressing import When
from exporters.model import layout, words
from exporters.model.layout import BUILT_ROW, ID_ROW, PLAY, PROMPT_COL
from exporters.model.model_book import ModelBook

ROW = 22  # of the headings
LOOK_COL = 7  # of the labels of what is looked at; then what is typed, and what counts
DIALS = ("choose", "temperature", "top_k", "top_p")
WHOLE = {"validate": "integer", "criteria": ">=", "value": 0}
SHARE = {"validate": "decimal", "criteria": "between", "minimum": decimal(1e-9), "maximum": 1}
NOT_BELOW_ZERO = {"validate": "decimal", "criteria": ">=", "value": 0}
RULES: Mapping[str, dict[str, Any]] = {
    "choose": {"validate": "list", "source": [GREEDILY, BY_NUMBER]},
    "temperature": NOT_BELOW_ZERO | {"error_message": "0, which is greedy, or a number above it."},
    "top_k": WHOLE | {"error_message": "A whole number; 0 keeps all words."},
    "top_p": SHARE | {"error_message": "A share above 0, up to 1."},
}
WORDS = {"target": "the likeliest word", "rival": "the next likeliest"}


def place(book: ModelBook) -> None:
    """Say where the dials stand, before other pages refer to them."""
    where = {name: (ROW + 1 + k, PROMPT_COL) for k, name in enumerate(DIALS)}
    typed, counts = LOOK_COL + 1, LOOK_COL + 2
    where["n_prompt"] = ROW + 1, counts
    book.named_cells["prompt"] = (PLAY, ROW + 2, counts)
    where |= {"look.position.instead": (ROW + 3, typed), "position": (ROW + 3, counts)}
    for row, name in enumerate(WORDS, ROW + 4):
        where |= {f"look.{name}.instead": (row, typed), f"look.{name}": (row, counts)}
        where[name] = row, counts + 1
    for name, (row, col) in where.items():
        named = not name.startswith("look.")
        book.places[name] = Place(book.graph[name], PLAY, row, col, turned=False, named=named)


def add(book: ModelBook, sheet: Sheet) -> None:
    """Both groups of dials, side by side."""
    _choosing(book, sheet)
    _looking(book, sheet)


# --- how a word is chosen -----------------------------------------------------------------


def _choosing(book: ModelBook, sheet: Sheet) -> None:
    """How a word is chosen; below, the settings that a model of its own kind has."""
    sheet.put(ROW, 0, "How a word is chosen", "heading")
    for name in DIALS:
        place = book.places[name]
        sheet.put(place.top, place.left - 1, name.replace("_", "-"), "row label")
        sheet.rules[place.cell(0, 0)] = RULES[name]
        if name == "temperature":  # one of the model's blocks
            sheet.regions.append((place, "input setting"))
        else:
            book.lay(place, "dial")
        right, usual, otherwise = SAYS[name](book)
        note = sheet.formula(place.top, place.left + 1, IF(right, usual, otherwise), "note")
        sheet.dress(note, _off(note))
    others = [b for b in book.blocks if layout.on_play(b) and b.name not in book.places]
    for k, block in enumerate(others, ROW + 1 + len(DIALS)):
        place = Place(block, PLAY, k, PROMPT_COL, turned=False)
        book.places[block.name] = place
        sheet.regions.append((place, "input setting"))
        sheet.put(k, PROMPT_COL - 1, block.name.replace("_", " "), "row label")
        sheet.put(k, PROMPT_COL + 1, words.meaning(block), "note")


Said = tuple[Expression, Any, Any]  # whether a dial is within its range; the note then, and else


def _of_choose(book: ModelBook) -> Said:
    typed = book.graph["choose"][0, 0]
    right = OR(typed == GREEDILY, typed == BY_NUMBER)
    usual = "the largest logit, or by the random number"
    return right, usual, "neither greedy nor sampled: counts as greedy"


def _of_temperature(book: ModelBook) -> Said:
    typed = book.graph["temperature"][0, 0]
    right = AND(ISNUMBER(typed), N(typed) >= 0)
    usual = IF(typed == 0, "0 is greedy: the likeliest word", words.MEANING["temperature"])
    return right, usual, "no number from 0 on: counts as 0, which is greedy"


def _of_top_k(book: ModelBook) -> Said:
    typed, taken = book.graph["top_k"][0, 0], book.graph["choice.k"][0, 0]
    right = AND(ISNUMBER(typed), N(typed) == taken)
    return right, "only the k likeliest words; 0: all", "no whole number: counts as " & taken


def _of_top_p(book: ModelBook) -> Said:
    typed, taken = book.graph["top_p"][0, 0], book.graph["choice.p"][0, 0]
    right = AND(ISNUMBER(typed), N(typed) == taken)
    least = IF(taken < 1, "0: the likeliest word alone", taken & "")
    usual = "only those that hold this share; 1: all"
    return right, usual, "no share above 0, up to 1: counts as " & least


SAYS: Mapping[str, Callable[[ModelBook], Said]] = {
    "choose": _of_choose,
    "temperature": _of_temperature,
    "top_k": _of_top_k,
    "top_p": _of_top_p,
}


# --- what is looked at --------------------------------------------------------------------


def _looking(book: ModelBook, sheet: Sheet) -> None:
    """How long the prompt is, which position is looked at, and for which words."""
    sheet.put(ROW, LOOK_COL, "Looked at", "heading")
    for col, head in ((LOOK_COL + 1, "type another"), (LOOK_COL + 2, "now")):
        sheet.put(ROW, col, head, "label")
    labels = ("words given", "the prompt is", "position", *(f"{word} word" for word in WORDS))
    for row, text in enumerate(labels, ROW + 1):
        sheet.put(row, LOOK_COL, text, "row label")
    book.lay(book.places["n_prompt"], "id")
    _, row, col = book.named_cells["prompt"]
    sheet.formula(row, col, IF(_as_built(book, sheet), "as built", "changed"), "label")
    _position(book, sheet)
    for name, usual in WORDS.items():
        typed, ident = book.places[f"look.{name}.instead"], book.graph[f"look.{name}.id"]
        book.lay(typed, "token")
        sheet.lists[typed.cell(0, 0)] = book.graph["outputs"].area.fixed.as_range
        book.lay(book.places[f"look.{name}"], "word")
        book.lay(book.places[name], "id")
        right = OR(book.graph[f"look.{name}.instead"][0, 0] == "", ident[0, 0] >= 0)
        otherwise = f"unknown: counts as {usual}"
        _say(sheet, typed, right, f"{usual}, unless another is typed", otherwise, 3)


def _as_built(book: ModelBook, sheet: Sheet) -> Expression:
    """Whether the prompt is the one that the workbook was built with."""
    n_prompt = book.passage.n_prompt
    ids, built = (sheet[row, PROMPT_COL : PROMPT_COL + n_prompt] for row in (ID_ROW, BUILT_ROW))
    return AND(book.graph["n_prompt"][0, 0] == n_prompt, SUMPRODUCT(ids - built, ids - built) == 0)


def _position(book: ModelBook, sheet: Sheet) -> None:
    """The last word given, or a position that is typed."""
    last = len(book.passage.ids) - 1
    typed, now = book.places["look.position.instead"], book.graph["position"][0, 0]
    book.lay(typed, "dial")
    book.lay(book.places["position"], "id")
    whole = {"validate": "integer", "criteria": "between", "minimum": 0, "maximum": last}
    sheet.rules[typed.cell(0, 0)] = whole | {"error_message": f"A position from 0 to {last}."}
    value = book.graph["look.position.instead"][0, 0]
    right = OR(value == "", value == now)
    usual = "the last word given, unless another is typed"
    _say(sheet, typed, right, usual, "no position: counts as " & now, 2)


def _say(
    sheet: Sheet, typed: Place, right: Expression, usual: str, otherwise: Any, beside: int
) -> None:
    """A note, so many columns beside a cell that is typed in."""
    text = IF(right, usual, expression(otherwise))
    note = sheet.formula(typed.top, typed.left + beside, text, "note")
    sheet.dress(note, _off(note))


def _off(note: Area) -> When:
    """Marks a note that says what a value counts as; it names no other sheet."""
    return When("differs", ISNUMBER(FIND("counts as", note)))
