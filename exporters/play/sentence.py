"""The sentence that is typed: its cell, and what became of it in a line.

Two of them may stand on Play, the second one's blocks with a prefix.
"""

from engine.cells.expression import Expression, expression
from engine.cells.functions import COUNT, IF, LEN, RIGHT, SUBSTITUTE, SUMPRODUCT, TRIM
from engine.text import tokenizing
from engine.text.tokenizer import mask_of, shown
from exporters.compose.book import Place, Sheet
from exporters.compose.composer import Composer
from exporters.model.layout import PLAY, PROMPT_COL, token_text
from exporters.model.model_book import ModelBook

WIDE = 11  # columns of a sentence
SILENT = "nothing is answered"
LEFT_OUT = "the rest is left out"
APOSTROPHE = "A sentence that begins with an apostrophe: type two. Programs take one for a sign."
NO_TEXT = "its tokenizer has no formulas here, or no text has these ids: type token ids below"


def place(book: ModelBook, top: int, prefix: str = "") -> None:
    """Say where the sentence stands."""
    if block := book.graph.blocks.get(f"{prefix}sentence"):
        book.places[block.name] = Place(block, PLAY, top + 1, PROMPT_COL, turned=False)


def add(book: ModelBook, ws: Composer, top: int, prefix: str = "") -> None:
    """The yellow cell, and what became of what is typed in it."""
    ws.sheet.put(top, 0, _heading(book, prefix), "heading")
    if f"{prefix}sentence" in book.graph.blocks:
        ws.sheet.put(top + 1, PROMPT_COL - 1, "sentence", "row label")
        book.lay(book.places[f"{prefix}sentence"], "sentence")
        ws.sheet.notes[top + 1, PROMPT_COL] = APOSTROPHE
        widen(ws.sheet, top + 1)
        said = ws.show(f"{prefix}message", (top + 2, PROMPT_COL), _message(book, prefix), "note")
        ws.mark(said, "differs", RIGHT(said, len(SILENT)) == SILENT)
    elif book.plan.answers:
        ws.sheet.put(top + 1, 0, tokenizing.refusal(book.model.vocabulary), "note")
    elif not book.live:
        ws.sheet.put(top + 2, PROMPT_COL, NO_TEXT, "note")


def widen(sheet: Sheet, row: int) -> None:
    """Have the first cell of a row be as wide as a sentence."""
    sheet.merged.append(sheet[row, PROMPT_COL : PROMPT_COL + WIDE].rect)


def _heading(book: ModelBook, prefix: str) -> str:
    """What there is to type."""
    if book.live:
        return f"Live: {', '.join(book.live)}; the prompt is as built"
    if book.plan.gives == "sentence":
        return "Type another one" if prefix else "Type a sentence"
    if book.plan.gives == "masked word":
        mask = mask_of(book.model.vocabulary)
        name = "a token" if mask is None else shown(book.model.vocabulary.texts)[mask]
        return f"Type a sentence with {name} in it: each token is read with all the others"
    if "sentence" not in book.graph.blocks:
        return "The prompt: type other token ids"
    if book.plan.answers:
        return "Type a sentence; what comes next is ranked below"
    if not book.plan.continues:
        return "Type a sentence; each word is read with all the others"
    goes_on = "it continues itself" if has_room(book) else "the next word is ranked"
    return f"Type a sentence; {goes_on}"


def has_room(book: ModelBook) -> bool:
    """Whether there are columns for words that the prompt does not fill."""
    return len(book.passage.ids) > book.passage.n_prompt


def built_with(book: ModelBook) -> str:
    """The prompt as it is typed."""
    return str(book.graph.inputs["sentence"][0, 0])


def answered(book: ModelBook, shown: Expression, otherwise: Expression | str = "") -> Expression:
    """What is shown of an answer: nothing where a word is unknown, or none is typed."""
    if "prompt.answered" not in book.graph.blocks:
        return shown
    return IF(book.graph["prompt.answered"][0, 0] == 1, shown, otherwise)


def shortened(book: ModelBook) -> Expression:
    """Whether the sentence has more words than there are columns, as its message says."""
    said = book.shown["play.message"].block[0, 0]
    return RIGHT(said, len(LEFT_OUT)) == LEFT_OUT


# --- what became of it --------------------------------------------------------------------


def _message(book: ModelBook, prefix: str) -> Expression:
    """What became of the sentence, in a line."""
    n, count = len(book.passage.ids), book.graph[f"{prefix}n_prompt"][0, 0]
    if book.plan.gives != "next word":
        return book.graph[f"{prefix}tokenizer.message"][0, 0] & f"; {n} fit"
    if book.plan.answers:
        return _of_last_token(book, count)
    picks = book.graph["prompt.pick"].area.as_range
    n_picked = SUMPRODUCT((picks != "") * 1)
    picked = IF(n_picked > 0, "; " & n_picked & " picked instead of what is typed", "")
    missing = count & " given, " & n - count & f" {not_given(book)}" & picked
    if "tokenizer.fine" in book.graph.blocks:
        fine, told = book.graph["tokenizer.fine"][0, 0], book.graph["tokenizer.message"][0, 0]
        return _unless_unknown(book, IF(fine == 0, told, missing), "", told)
    spaced = TRIM(book.graph["sentence"][0, 0])
    n_words = LEN(spaced) - LEN(SUBSTITUTE(spaced, " ", "")) + 1
    longer = f"longer than the {n} columns of this sheet: {LEFT_OUT}"
    if not book.plan.continues:
        stands_in = " given; for those that are missing, the words as built stand in"
        missing = IF(count < n, count & stands_in, count & " given") & picked
    nearest = "; nearest: " & book.graph["prompt.nearest"][0, 0]
    nothing = expression("nothing is typed: " + SILENT)
    return _unless_unknown(book, IF(n_words > n, longer, missing), nearest, nothing)


def not_given(book: ModelBook) -> str:
    """Where a word comes from that was not typed."""
    return "generated" if book.plan.continues else "as built"


def _unless_unknown(
    book: ModelBook, said: Expression, nearest: Expression | str, nothing: Expression
) -> Expression:
    """A message, or else the word that the vocabulary does not have."""
    unknown = book.graph["prompt.unknown"][len(book.passage.ids) - 1, 0]
    told = "‘" & unknown & "’ is unknown" & nearest & ": " & SILENT
    first = book.graph["prompt.typed"][0, 0]
    return IF(unknown != "", told, IF(first == "", nothing, said))


def _of_last_token(book: ModelBook, count: Expression) -> Expression:
    """The message where what comes next is shown after the last token alone."""
    fine, told = (book.graph[f"tokenizer.{leaf}"][0, 0] for leaf in ("fine", "message"))
    stands_in = told & " (" & token_text(book, 0) & " stands in)"
    counted = count & " given, room for " & len(book.passage.ids) - count & " more"
    counted = IF(picked_ids(book), "ids are typed: they stand in the sentence's place", counted)
    return IF(nothing_typed(book), stands_in, IF(fine == 0, told, counted))


def picked_ids(book: ModelBook) -> Expression:
    """Whether an id is typed anywhere."""
    return COUNT(book.graph["prompt.pick"].area.as_range) > 0


def nothing_typed(book: ModelBook) -> Expression:
    """Whether there is no token at all."""
    return book.graph["prompt.id"][0, 0] < 0
