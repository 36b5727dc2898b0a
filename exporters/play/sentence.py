"""The typed sentence: its cell, and a line about what became of it.

Two of them may stand on Play; the second one's blocks have a prefix.
"""

from engine.cells import functions as f
from engine.cells.expression import Expression, expression
from engine.cells.functions import IF
from engine.cells.texts import readable
from engine.text import tokenizing
from engine.text.tokenizer import mask_of, shown
from exporters.compose.book import Place, Sheet
from exporters.compose.composer import Composer
from exporters.model.layout import PLAY, PROMPT_COL, token_text
from exporters.model.model_book import ModelBook

WIDE, TWO_LINES = 11, 36  # columns of a sentence, points
SILENT, LEFT_OUT = "nothing is answered", "the rest is left out"
APOSTROPHE = "A sentence that begins with an apostrophe: type two. Programs take one for a sign."
NO_TEXT = "its tokenizer has no formulas here, or no text has these ids: type token ids below"


def add(book: ModelBook, ws: Composer, top: int, prefix: str = "") -> None:
    """Add the yellow cell, and the line about what is typed in it."""
    ws.sheet.put(top, 0, "Type another one" if prefix else asked(book)[1], "heading")
    if f"{prefix}sentence" in book.graph.blocks:
        ws.sheet.put(top + 1, PROMPT_COL - 1, "sentence", "row label")
        place = Place(book.graph[f"{prefix}sentence"], PLAY, top + 1, PROMPT_COL, turned=False)
        book.lay(place, "sentence")
        ws.sheet.notes[top + 1, PROMPT_COL] = APOSTROPHE
        _widen(ws.sheet, top + 1)
        said = ws.show(f"{prefix}message", (top + 2, PROMPT_COL), _message(book, prefix), "note")
        ws.mark(said, "differs", f.RIGHT(said, len(SILENT)) == SILENT)
    elif book.plan.answers:
        ws.sheet.put(top + 1, 0, tokenizing.refusal(book.model.vocabulary), "note")
    elif not book.live:
        ws.sheet.put(top + 2, PROMPT_COL, NO_TEXT, "note")


def add_text(book: ModelBook, ws: Composer, top: int) -> None:
    """Add the sentence and its continuation as one text, if tokens have texts."""
    whole, sheet = "text.whole" in book.graph.blocks, ws.sheet
    if not whole and not (book.plan.answers and "sentence" in book.graph.blocks):
        return
    text = _whole(book) if whole else _with_next(book)
    sheet.put(top, PROMPT_COL - 1, "as text", "line label" if whole else "row label")
    ws.show("text", (top, PROMPT_COL), text, "line" if whole else "text")
    if whole:
        _widen(sheet, top)
        sheet.heights[top] = TWO_LINES
    elif has_room(book):
        sheet.put(top + 1, PROMPT_COL - 1, "as built, in full", "row label")
        built = readable(book.model.vocabulary.decode(book.passage.ids))
        sheet.put(top + 1, PROMPT_COL, built, "note")


def _widen(sheet: Sheet, row: int) -> None:
    """Merge cells of a row so that the first is as wide as a sentence."""
    sheet.merged.append(sheet[row, PROMPT_COL : PROMPT_COL + WIDE].rect)


def asked(book: ModelBook) -> tuple[str, str]:
    """The sheet's purpose, and the instruction what to type."""
    plan, in_yellow = book.plan, "type a sentence in the yellow cell: "
    ids = "the prompt as token ids: type others where they are live, and the next token is ranked"
    if plan.live:
        return ids, f"Live: {', '.join(plan.live)}; the prompt is as built"
    if plan.gives == "sentence":
        return "type two sentences: how alike are they?", "Type a sentence"
    if plan.gives == "masked word":
        mask = mask_of(book.model.vocabulary)
        name = "a token" if mask is None else shown(book.model.vocabulary.texts)[mask]
        purpose = "type a sentence with a mask in it: the words that may stand there are ranked"
        return purpose, f"Type a sentence with {name} in it: each token is read with all the others"
    if plan.answers and "sentence" not in book.graph.blocks:
        return ids, "The prompt: type other token ids"
    if plan.answers:
        heading = "Type a sentence; what comes next is ranked below"
        return f"{in_yellow}what comes next is ranked", heading
    if not plan.continues:
        purpose = f"{in_yellow}the words that a position leads to are ranked"
        return purpose, "Type a sentence; each word is read with all the others"
    if not has_room(book):
        return f"{in_yellow}the next word is ranked", "Type a sentence; the next word is ranked"
    goes_on = "it continues itself"
    return f"{in_yellow}{goes_on}, and the next word is ranked", f"Type a sentence; {goes_on}"


def has_room(book: ModelBook) -> bool:
    """Whether there are more columns than the prompt has words."""
    return len(book.passage.ids) > book.passage.n_prompt


def built_with(book: ModelBook) -> str:
    """The prompt as it would be typed."""
    return str(book.graph.inputs["sentence"][0, 0])


def answered(book: ModelBook, shown: Expression, otherwise: Expression | str = "") -> Expression:
    """An answer, or "" if a word is unknown or nothing is typed."""
    if "prompt.answered" not in book.graph.blocks:
        return shown
    return IF(book.graph["prompt.answered"][0, 0] == 1, shown, otherwise)


def shortened(book: ModelBook) -> Expression:
    """Whether the sentence has more words than there are columns, as its message says."""
    return f.RIGHT(book.shown["play.message"].block[0, 0], len(LEFT_OUT)) == LEFT_OUT


def not_given(book: ModelBook) -> str:
    """Where a word that was not typed comes from."""
    return "generated" if book.plan.continues else "as built"


# --- what became of it --------------------------------------------------------------------


def _message(book: ModelBook, prefix: str) -> Expression:
    """The line about the sentence."""
    n, count = len(book.passage.ids), book.graph[f"{prefix}n_prompt"][0, 0]
    goes_on = book.plan.ranks_every_token
    given, rest = (" given, ", not_given(book)) if goes_on else (" given, room for ", "more")
    counted = count & given & n - count & f" {rest}"
    if "prompt.pick" in book.graph.blocks:
        n_picked = _n_picked(book)
        picked = IF(n_picked > 0, "; " & n_picked & " picked instead of what is typed", "")
        counted = counted & picked
    if f"{prefix}tokenizer.fine" in book.graph.blocks:
        leaves = ("fine", "message", "n_ids")
        fine, told, n_ids = (book.graph[f"{prefix}tokenizer.{leaf}"][0, 0] for leaf in leaves)
        if goes_on:
            return _unless_unknown(book, IF(fine == 0, told, counted), "", told)
        counted = IF(fine == 0, told, counted)
        if not book.plan.answers:
            return IF(n_ids == 0, told, counted)
        return IF(_nothing(book), told & " (" & token_text(book, 0) & " stands in)", counted)
    spaced = f.TRIM(book.graph["sentence"][0, 0])
    n_words = f.LEN(spaced) - f.LEN(f.SUBSTITUTE(spaced, " ", "")) + 1
    longer = f"longer than the {n} columns of this sheet: {LEFT_OUT}"
    if not book.plan.continues:
        stands_in = " given; for those that are missing, the words as built stand in"
        counted = IF(count < n, count & stands_in, count & " given") & picked
    nearest = "; nearest: " & book.graph["prompt.nearest"][0, 0]
    nothing = expression("nothing is typed: " + SILENT)
    return _unless_unknown(book, IF(n_words > n, longer, counted), nearest, nothing)


def _unless_unknown(
    book: ModelBook, said: Expression, nearest: Expression | str, nothing: Expression
) -> Expression:
    """A message, or else the name of an unknown word."""
    unknown = book.graph["prompt.unknown"][len(book.passage.ids) - 1, 0]
    told = "‘" & unknown & "’ is unknown" & nearest & ": " & SILENT
    return IF(unknown != "", told, IF(book.graph["prompt.typed"][0, 0] == "", nothing, said))


def _n_picked(book: ModelBook) -> Expression:
    """The number of tokens picked instead of the typed ones."""
    return f.SUMPRODUCT((book.graph["prompt.pick"].area.as_range != "") * 1)


def _nothing(book: ModelBook) -> Expression:
    """Whether nothing is typed."""
    return book.graph["prompt.id"][0, 0] < 0


# --- as a text ----------------------------------------------------------------------------


def _whole(book: ModelBook) -> Expression:
    """The sentence and its continuation."""
    typed = book.graph["sentence"][0, 0] & ""  # a blank would be 0
    return answered(book, book.graph["text.whole"][0, 0], typed)


def _with_next(book: ModelBook) -> Expression:
    """The sentence and its most likely next token, if the ranked words follow the sentence."""
    next_token = book.shown["play.ranked.word"].block[0, 0]
    written = f.SUBSTITUTE(f.SUBSTITUTE(next_token, "␣", " "), "\\\\", "\\")
    here = book.graph["position"][0, 0] == book.graph["n_prompt"][0, 0] - 1
    fine = book.graph["tokenizer.fine"][0, 0] > 0
    told = f.AND(fine, here, f.NOT(_nothing(book)), _n_picked(book) == 0)
    return IF(told, book.graph["sentence"][0, 0] & written, "")
