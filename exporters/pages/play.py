"""Play: type a sentence, and read what the model makes of it, as of a page of search results.

It is made of parts (see `exporters.play`). Where no token sees those after it the sentence goes on
by itself: a word that was not typed is the one that the column before it chose (see `sampling`).
Else the sheet has the columns of its prompt and, where a word is missing, the one as built.
"""

from collections.abc import Callable, Mapping
from functools import partial

from engine.cells.name import SECOND
from exporters.compose.composer import Composer
from exporters.model import layout
from exporters.model.layout import PLAY, PROMPT_COL
from exporters.model.model_book import ModelBook
from exporters.play import every_word, ranking, sentence, settings, text, tokens, vectors

SHEET = PLAY
PURPOSE = "type a sentence in the yellow cell: it continues itself, and the next word is ranked"
WITHOUT_ROOM = "type a sentence in the yellow cell: the next word is ranked"
BOTH_WAYS = "type a sentence in the yellow cell: the words that a position leads to are ranked"
OF_LAST_TOKEN = "type a sentence in the yellow cell: what comes next is ranked"
IDS = "the prompt as token ids: type others where they are live, and the next token is ranked"
MASKED = "type a sentence with a mask in it: the words that may stand there are ranked"
SENTENCES = "type two sentences: how alike are they?"
AFTER = "Start"
PREFIX = f"{SECOND}."
PLACES: Mapping[str, Callable[[ModelBook, int], None]] = {  # where blocks of a part stand
    "sentence": sentence.place,
    "tokens": tokens.place,
    "second sentence": partial(sentence.place, prefix=PREFIX),
    "second tokens": partial(tokens.place, prefix=PREFIX),
    "word by word": lambda book, top: tokens.place(book, top + 1),
    "looked at": settings.place_of_one,
    "settings": settings.place,
}
PARTS: Mapping[str, Callable[[ModelBook, Composer, int], None]] = {
    "sentence": sentence.add,
    "tokens": tokens.add,
    "second sentence": partial(sentence.add, prefix=PREFIX),
    "second tokens": partial(tokens.add, prefix=PREFIX),
    "looked at": settings.add_of_one,
    "text": text.add,
    "ranking": ranking.add,
    "settings": settings.add,
    "word by word": tokens.add_word_by_word,
    "every word": every_word.add,
    "cosine": vectors.add_cosine,
    "vectors": vectors.add,
}


def wanted(book: ModelBook) -> bool:
    """In every workbook."""
    return True


def place(book: ModelBook) -> None:
    """Say where the controls stand, before other pages refer to them."""
    for part in PLACES:
        if part in book.plan.parts:
            PLACES[part](book, book.plan.parts[part])


def add(book: ModelBook) -> None:
    """All parts, from the last to the first: those above read those below."""
    ws = layout.page(book, PLAY)
    ws.sheet.purpose = _purpose(book)
    ws.sheet.widths = _widths(book)
    for part, top in reversed([*book.plan.parts.items()]):
        PARTS[part](book, ws, top)


def _purpose(book: ModelBook) -> str:
    """What the sheet is for, in a line."""
    plan = book.plan
    if plan.gives != "next word" and not plan.live:
        return SENTENCES if plan.gives == "sentence" else MASKED
    if not plan.ranks_every_token:
        return OF_LAST_TOKEN if "sentence" in book.graph.blocks else IDS
    if not plan.continues:
        return BOTH_WAYS
    return PURPOSE if sentence.has_room(book) else WITHOUT_ROOM


def _widths(book: ModelBook) -> Mapping[int, float]:
    """Of the columns."""
    n = len(book.passage.ids)
    if book.plan.ranks_every_token:
        narrow = range(PROMPT_COL, PROMPT_COL + max(9, n))
        return {0: 13, 1: 14} | dict.fromkeys(narrow, 10) | {ranking.CHART_COL: 13}
    wide = 2 + n if book.plan.gives != "next word" and not book.live else 8
    return {0: 13, 1: 16} | dict.fromkeys(range(PROMPT_COL, wide), 12)
