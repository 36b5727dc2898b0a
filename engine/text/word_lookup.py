"""Looking up a word in a long list with one formula, case-sensitively.

MATCH ignores case and takes wildcards. With EXACT it would be an array formula, whose value
LibreOffice does not read from a file, so that cells which read it miss the first edit. Instead, one
text holds all words with spaces between them, and FIND looks for the word; the number of spaces
before it is its index.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from cellformer.engine.cells.expression import Expression, expression
from cellformer.engine.cells.functions import FIND, IFERROR, LEFT, LEN, LOWER, SUBSTITUTE
from cellformer.engine.cells.graph import Graph

LONGEST = 32_000  # characters of a text that are filled; a cell holds 32,767, a wide one as two


def add(g: Graph, words: Sequence[str]) -> None:
    """Add `words` [n_texts, 1]: all words as one text, or several if a cell has no room. No word
    may contain a space."""
    texts = [f" {' '.join(part)} " for part in _parts(words)]
    g.input("words", np.array(texts, dtype=object).reshape(-1, 1), ("", ""), "table")


def _parts(words: Sequence[str]) -> Iterator[list[str]]:
    part: list[str] = []
    length = 0
    for word in words:
        size = len(word.encode("utf-16-le")) // 2 + 1
        if part and length + size > LONGEST:
            yield part
            part, length = [], 0
        part.append(word)
        length += size
    yield part


def place_of(text: Expression, g: Graph, words: str) -> Expression:
    """The index of a text among the words of a block of `add`, by the block's name, from 0; -1 if
    absent."""
    found: Expression = expression(-1)
    sought, n_before = " " & text & " ", 0
    for k, held in enumerate(g.inputs[words][:, 0]):
        among = g[words][k, 0].fixed
        before = LEFT(among, FIND(sought, among))
        place = LEN(before) - LEN(SUBSTITUTE(before, " ", "")) - 1
        found = IFERROR(place + n_before if n_before else place, found)
        n_before += held.count(" ") - 1
    return found


def add_lowered(g: Graph, words: Sequence[str]) -> None:
    """Add `lowered`, all words in lower case as one text; adds nothing if a cell has no room."""
    texts = [f" {' '.join(part)} " for part in _parts([word.lower() for word in words])]
    if len(texts) == 1:
        g.input("lowered", texts[0], kind="table")


def find_ignoring_case(text: Expression, g: Graph, lowered: str) -> Expression:
    """The index of the only word that equals a text but for its case; -1 if none or several do."""
    if lowered not in g.blocks:
        return expression(-1)
    sought, among = " " & LOWER(text) & " ", g[lowered][0, 0].fixed
    first = FIND(sought, among)
    before = LEFT(among, first)
    place = LEN(before) - LEN(SUBSTITUTE(before, " ", "")) - 1
    several = FIND(sought, among, first + 1) * 0 - 1
    return IFERROR(IFERROR(several, place), -1)
