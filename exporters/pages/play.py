"""Play: type a sentence, and read the model's answer, ranked like search results.

It is made of parts (see `cellformer.exporters.play`). In models with a causal mask the sentence
continues itself: a word that was not typed is the one that the column before it chose (see
`sampling`).
"""

from collections.abc import Callable, Mapping
from functools import partial

from cellformer.engine.cells.name import ENCODER, SECOND
from cellformer.exporters.compose.composer import Composer
from cellformer.exporters.model import layout
from cellformer.exporters.model.block_sheets import PLAY, PROMPT_COL
from cellformer.exporters.model.model_book import ModelBook
from cellformer.exporters.play import ranking, sentence, settings, tokens, vectors

SHEET = PLAY
PURPOSE = "type a sentence in the yellow cell, and read the model’s answer"
AFTER = "Start"
PARTS: Mapping[str, Callable[[ModelBook, Composer, int], None]] = {
    "sentence": sentence.add,
    "source": sentence.add_source,
    "second sentence": partial(sentence.add, prefix=f"{SECOND}."),
    "tokens": tokens.add,
    "source tokens": partial(tokens.add, prefix=f"{ENCODER}."),
    "second tokens": partial(tokens.add, prefix=f"{SECOND}."),
    "looked at": settings.add_of_one,
    "text": sentence.add_text,
    "expected": ranking.add_expected,
    "ranking": ranking.add,
    "settings": settings.add,
    "every word": ranking.add_every_word,
    "cosine": vectors.add_cosine,
    "vectors": vectors.add,
}


def add(book: ModelBook) -> None:
    """Add all parts that the plan names."""
    ws = layout.page(book, PLAY)
    n = max(len(book.passage.ids), book.passage.n_source)
    ws.sheet.purpose, _ = sentence.asked(book)
    if book.plan.ranks_every_token:
        widths = {1: 14} | dict.fromkeys(range(PROMPT_COL, PROMPT_COL + max(9, n)), 10)
        ws.widths({0: 13} | widths | {ranking.CHART_COL: 13})
    else:
        encoder = book.plan.gives != "next word" and not book.live
        wide = dict.fromkeys(range(PROMPT_COL, PROMPT_COL + n if encoder else 8), 12)
        ws.widths({0: 13, 1: 16} | wide)
    for part, top in book.plan.parts.items():
        PARTS[part](book, ws, top)
