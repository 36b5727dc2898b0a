"""The sentence and how it goes on as one text."""

from engine.cells.expression import Expression
from engine.cells.functions import AND, IF, NOT, SUBSTITUTE
from engine.cells.texts import readable
from exporters.compose.composer import Composer
from exporters.model.layout import PROMPT_COL
from exporters.model.model_book import ModelBook
from exporters.play import ranking
from exporters.play.sentence import answered, has_room, nothing_typed, picked_ids, widen

TWO_LINES = 36  # points


def add(book: ModelBook, ws: Composer, top: int) -> None:
    """The sentence and how it goes on as one text, where the tokens have one."""
    sentence, at = book.graph.blocks.get("sentence"), (top, PROMPT_COL)
    if "text.whole" in book.graph.blocks and sentence:
        ws.sheet.put(top, PROMPT_COL - 1, "as text", "line label")
        whole = book.graph["text.whole"][0, 0]
        ws.show("text", at, answered(book, whole, sentence[0, 0] & ""), "line")  # blank would be 0
        widen(ws.sheet, top)
        ws.sheet.heights[top] = TWO_LINES
    elif book.plan.answers and sentence:
        ws.sheet.put(top, PROMPT_COL - 1, "as text", "row label")
        ws.show("text", at, IF(_is_told(book), sentence[0, 0] & _following(book), ""), "text")
        if has_room(book):
            built = readable(book.model.vocabulary.decode(book.passage.ids))
            ws.sheet.put(top + 1, PROMPT_COL - 1, "as built, in full", "row label")
            ws.sheet.put(top + 1, PROMPT_COL, built, "note")


def _is_told(book: ModelBook) -> Expression:
    """Whether what is ranked comes after the sentence that is typed."""
    fine = book.graph["tokenizer.fine"][0, 0]
    here = book.graph["position"][0, 0] == book.graph["n_prompt"][0, 0] - 1
    return AND(fine > 0, here, NOT(nothing_typed(book)), NOT(picked_ids(book)))


def _following(book: ModelBook) -> Expression:
    """The likeliest next token, as it is written in a text."""
    words, _, _ = ranking.ranked(book)
    return SUBSTITUTE(SUBSTITUTE(words[0, 0], "␣", " "), "\\\\", "\\")
