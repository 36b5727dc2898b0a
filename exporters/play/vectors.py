"""Two sentences' vectors, feature by feature, and their cosine: live and as built."""

from cellformer.engine.cells.name import SECOND
from cellformer.exporters.compose.composer import Composer
from cellformer.exporters.model.block_sheets import PROMPT_COL
from cellformer.exporters.model.model_book import ModelBook

PREFIXES = {"": "the first sentence", f"{SECOND}.": "the other one"}
HEADS = ("live", "as built", "change")
SCALE = "1: both vectors point the same way; 0: right angle; -1: opposite directions"


def add_cosine(book: ModelBook, ws: Composer, top: int) -> None:
    """Add the cosine of the sentences, live, as built, and the change."""
    ws.sheet.put(top, 0, "How alike they are", "heading")
    ws.sheet.put(top + 2, PROMPT_COL - 1, "cosine", "row label")
    _beside_built(book, ws, "cosine", top + 1, PROMPT_COL)
    ws.sheet.put(top + 2, PROMPT_COL + len(HEADS), SCALE, "note")


def add(book: ModelBook, ws: Composer, top: int) -> None:
    """Add both vectors."""
    ws.sheet.put(top, 0, "The vectors of both sentences, by feature", "heading")
    ws.sheet.down(top + 3, PROMPT_COL - 1, range(book.graph["vector"].shape[1]), "label number")
    for k, (prefix, title) in enumerate(PREFIXES.items()):
        left = PROMPT_COL + k * (len(HEADS) + 1)
        ws.sheet.put(top + 1, left, title, "block")
        _beside_built(book, ws, f"{prefix}vector", top + 2, left)


def _beside_built(book: ModelBook, ws: Composer, name: str, top: int, left: int) -> None:
    """Add the numbers of a block with one row, as a column: live, as built, and the change."""
    ws.sheet.across(top, left, HEADS, "label")
    block, n = book.graph[name], book.graph[name].shape[1]
    ws.sheet.down(top + 1, left + 1, (book.value(name, 0, d) for d in range(n)), "constant")
    live = ws.show(name, (top + 1, left), lambda d, _: block[0, d], "live", (n, 1))
    ws.show(
        f"{name}.change",
        (top + 1, left + 2),
        lambda d, _: live[d, 0] - ws.sheet[top + 1 + d, left + 1],
        "change",
        (n, 1),
    )
