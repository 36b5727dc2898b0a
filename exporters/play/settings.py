"""The settings of Play: how a word is chosen, and what is looked at.

What is typed is taken within its range, whatever it is: the note beside a dial says so where that
is another number than the one typed. The position, and the two words that Lens, Attribution and
Switches speak of, follow the sentence; a cell of its own overrides each.
"""

from collections.abc import Callable, Mapping
from typing import Any

from engine.cells.expression import Expression, decimal, expression
from engine.cells.functions import AND, FIND, IF, ISNUMBER, OR, SUMPRODUCT, N
from engine.models.choosing import BY_NUMBER, GREEDILY
from engine.text.tokenizer import mask_of
from exporters.compose.book import Place
from exporters.compose.composer import Composer
from exporters.compose.lookups import entry
from exporters.model import layout, words
from exporters.model.layout import PLAY, PROMPT_COL
from exporters.model.model_book import ModelBook

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


def place(book: ModelBook, top: int) -> None:
    """Say where the dials stand, before other pages refer to them."""
    where = {name: (top + 1 + k, PROMPT_COL) for k, name in enumerate(DIALS)}
    typed, counts = LOOK_COL + 1, LOOK_COL + 2
    where["n_prompt"] = top + 1, counts
    book.named_cells["prompt"] = (PLAY, top + 2, counts)
    where |= {"look.position.instead": (top + 3, typed), "position": (top + 3, counts)}
    for row, name in enumerate(WORDS, top + 4):
        where |= {f"look.{name}.instead": (row, typed), f"look.{name}": (row, counts)}
        where[name] = row, counts + 1
    for name, (row, col) in where.items():
        named = not name.startswith("look.")
        book.places[name] = Place(book.graph[name], PLAY, row, col, turned=False, named=named)


def add(book: ModelBook, ws: Composer, top: int) -> None:
    """Both groups of dials, side by side."""
    _choosing(book, ws, top)
    _looking(book, ws, top)


# --- how a word is chosen -----------------------------------------------------------------


def _choosing(book: ModelBook, ws: Composer, top: int) -> None:
    """How a word is chosen; below, the settings that a model of its own kind has."""
    ws.sheet.put(top, 0, "How a word is chosen", "heading")
    for name in DIALS:
        place = book.places[name]
        ws.sheet.put(place.top, place.left - 1, name.replace("_", "-"), "row label")
        ws.sheet.rules[place.cell(0, 0)] = RULES[name]
        if name == "temperature":  # one of the model's blocks
            ws.sheet.regions.append((place, "input setting"))
        else:
            book.lay(place, "dial")
        _say(ws, place, *SAYS[name](book), 1)
    others = [b for b in book.blocks if layout.on_play(b) and b.name not in book.places]
    for row, block in enumerate(others, top + 1 + len(DIALS)):
        place = book.places[block.name] = Place(block, PLAY, row, PROMPT_COL, turned=False)
        ws.sheet.regions.append((place, "input setting"))
        ws.sheet.put(row, PROMPT_COL - 1, block.name.replace("_", " "), "row label")
        ws.sheet.put(row, PROMPT_COL + 1, words.meaning(block), "note")


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


def _looking(book: ModelBook, ws: Composer, top: int) -> None:
    """How long the prompt is, which position is looked at, and for which words."""
    sheet = ws.sheet
    sheet.put(top, LOOK_COL, "Looked at", "heading")
    for col, head in ((LOOK_COL + 1, "type another"), (LOOK_COL + 2, "now")):
        sheet.put(top, col, head, "label")
    labels = ("words given", "the prompt is", "position", *(f"{word} word" for word in WORDS))
    for row, text in enumerate(labels, top + 1):
        sheet.put(row, LOOK_COL, text, "row label")
    book.lay(book.places["n_prompt"], "id")
    state = IF(_as_built(book), "as built", "changed")
    ws.show("prompt", book.named_cells["prompt"][1:], state, "label")
    _position(book, ws)
    for name, usual in WORDS.items():
        typed, ident = book.places[f"look.{name}.instead"], book.graph[f"look.{name}.id"]
        book.lay(typed, "token")
        sheet.lists[typed.cell(0, 0)] = book.graph["outputs"].area.fixed.as_range
        book.lay(book.places[f"look.{name}"], "word")
        book.lay(book.places[name], "id")
        right = OR(book.graph[typed.block.name][0, 0] == "", ident[0, 0] >= 0)
        otherwise = f"unknown: counts as {usual}"
        _say(ws, typed, right, f"{usual}, unless another is typed", otherwise, 3)


def _as_built(book: ModelBook) -> Expression:
    """Whether the prompt is the one that the workbook was built with."""
    n_prompt = book.passage.n_prompt
    ids, built = (book.graph[name].area[:n_prompt, 0] for name in ("tokens", "prompt.built"))
    return AND(book.graph["n_prompt"][0, 0] == n_prompt, SUMPRODUCT(ids - built, ids - built) == 0)


def _position(book: ModelBook, ws: Composer) -> None:
    """The last word given, or a position that is typed."""
    last = len(book.passage.ids) - 1
    typed, now = book.places["look.position.instead"], book.graph["position"][0, 0]
    book.lay(typed, "dial")
    book.lay(book.places["position"], "id")
    whole = {"validate": "integer", "criteria": "between", "minimum": 0, "maximum": last}
    rule = whole | {"error_message": f"A position from 0 to {last}."}
    ws.sheet.rules[typed.cell(0, 0)] = rule
    value = book.graph[typed.block.name][0, 0]
    usual = "the last word given, unless another is typed"
    _say(ws, typed, OR(value == "", value == now), usual, "no position: counts as " & now, 2)


def _say(
    ws: Composer, typed: Place, right: Expression, usual: Any, otherwise: Any, beside: int
) -> None:
    """A note, so many columns beside a cell that is typed in: whether it counts as it is typed."""
    text, at = IF(right, expression(usual), expression(otherwise)), (typed.top, typed.left + beside)
    note = ws.show(f"{typed.block.name}.note", at, text, "note")
    ws.mark(note, "differs", ISNUMBER(FIND("counts as", note)))


# --- of one token -------------------------------------------------------------------------


def place_of_one(book: ModelBook, top: int) -> None:
    """Say where the dials stand of a workbook that ranks the words after one token."""
    for row, name in enumerate(_of_one(book), top + 1):
        book.places[name] = Place(book.graph[name], PLAY, row, PROMPT_COL, turned=False)


def _of_one(book: ModelBook) -> dict[str, str]:
    """Those that there are, and what each is."""
    masked = book.plan.gives == "masked word"
    what, else_last = ("word", ": the mask, or else the last") if masked else ("next word", "")
    found = {
        "position": f"the token whose {what} is ranked, counted from 0{else_last}",
        "temperature": "below 1 sharper, above 1 flatter",
    }
    typed = book.plan.answers and "n_prompt" in book.graph.blocks
    return found | ({"n_prompt": "how many tokens are given"} if typed else {})


def add_of_one(book: ModelBook, ws: Composer, top: int) -> None:
    """Which token is looked at, the temperature, how many tokens are given."""
    ws.sheet.put(top, 0, "What is looked at, and how", "heading")
    for name, text in _of_one(book).items():
        place = book.places[name]
        ws.sheet.put(place.top, PROMPT_COL - 1, name.replace("n_prompt", "given"), "row label")
        ws.sheet.put(place.top, PROMPT_COL + 1, text, "note")
        if place.block.expression is None:
            ws.sheet.regions.append((place, "input setting"))
        else:
            book.lay(place, "id" if name == "n_prompt" else "dial")
    mask = mask_of(book.model.vocabulary)
    if book.plan.gives == "masked word" and mask is not None:
        ids, at = book.graph["tokens"].area.as_range, book.graph["position"][0, 0]
        found = IF(entry(ids, 1, at + 1) == mask, "", "no mask is looked at: type one")
        ws.show("mask", (top + 3, PROMPT_COL), found, "note")
