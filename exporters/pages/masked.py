"""Play of a model for masked words: type a sentence with a mask in it, and the words that may stand
in its place are ranked.

Every word's logit and probability at one position, the mask's, stand on Readout with the baseline
beside them; here they are ranked by LARGE and found by MATCH, as for a large vocabulary.
"""

from engine.cells.functions import IF
from engine.text.tokenizer import mask_of, shown
from exporters.compose.book import Place, Sheet
from exporters.compose.lookups import entry
from exporters.model import layout
from exporters.model.layout import PLAY, PROMPT_COL, TEXTS_ROW
from exporters.model.model_book import ModelBook
from exporters.pages import large_play as ranked
from exporters.play import typed_sentence

SHEET = PLAY
PURPOSE = "type a sentence with a mask in it: the words that may stand there are ranked"
AFTER = "Start"
DIALS_ROW = 12
DIALS = {
    "position": "the token whose word is ranked, counted from 0: the mask, or else the last",
    "temperature": "below 1 sharper, above 1 flatter",
}


def wanted(book: ModelBook) -> bool:
    """Of an encoder that is asked for masked words."""
    return book.plan.gives == "masked word" and not book.live


def place(book: ModelBook) -> None:
    """Say where the controls stand, before other pages refer to them."""
    typed_sentence.place(book, "", TEXTS_ROW)
    for k, name in enumerate(DIALS, DIALS_ROW + 1):
        book.places[name] = Place(book.graph[name], PLAY, k, PROMPT_COL, turned=False)


def add(book: ModelBook) -> None:
    """The sentence, the dials, the ranking."""
    sheet = book.sheet(SHEET)
    layout.dress(book, sheet)
    sheet.widths = {0: 13, 1: 16} | dict.fromkeys(range(2, 2 + len(book.passage.ids)), 12)
    mask = mask_of(book.model.vocabulary)
    name = "a token" if mask is None else shown(book.model.vocabulary.texts)[mask]
    heading = f"Type a sentence with {name} in it: each token is read with all the others"
    typed_sentence.add(book, sheet, "", TEXTS_ROW, heading)
    _dials(book, sheet, mask)
    ranked.add_baseline(book)
    ranked.add_ranking(book, sheet, "What may stand there")


def _dials(book: ModelBook, sheet: Sheet, mask: int | None) -> None:
    """Which token is looked at, and the temperature."""
    sheet.put(DIALS_ROW, 0, "What is looked at, and how", "heading")
    for name, text in DIALS.items():
        dial = book.places[name]
        sheet.put(dial.top, PROMPT_COL - 1, name, "row label")
        sheet.put(dial.top, PROMPT_COL + 1, text, "note")
    book.lay(book.places["position"], "dial")
    sheet.regions.append((book.places["temperature"], "input setting"))
    if mask is not None:
        at = book.graph["position"][0, 0]
        ids = book.graph["tokens"].area.as_range
        found = IF(entry(ids, 1, at + 1) == mask, "", "no mask is looked at: type one")
        sheet.formula(DIALS_ROW + 3, PROMPT_COL, found, "note")
