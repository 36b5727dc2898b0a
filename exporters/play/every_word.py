"""Every word by its id: text, logit and probability, live, with the baseline beside them.

They are on Play, at the position that is looked at; with a large vocabulary on Readout, where only
one token has next words. The baseline is the unedited workbook's result, as constants.
"""

from dataclasses import replace
from typing import NamedTuple

from engine.cells.expression import Area, Expression
from exporters.compose.book import Place, Run
from exporters.compose.composer import Composer
from exporters.compose.dressing import CHANGED
from exporters.compose.lookups import entry
from exporters.model import layout
from exporters.model.layout import PLAY
from exporters.model.model_book import ModelBook

HEADS = ("id", "word", "baseline", "live", "change", "baseline", "live", "change")
BASELINE = "baseline"


class Words(NamedTuple):
    """The columns of the table, by id."""

    texts: Area
    logits: Area
    probs: Area
    baseline: Area  # probabilities as built


def words(book: ModelBook) -> Words:
    """The place of the table of all words."""
    if book.plan.readout.one_token:
        logits, probs = book.graph["logits"].area, book.graph["probs"].area
        return Words(texts(book), logits, probs, book.places[BASELINE].block.area)
    top, sheet = book.places["outputs"].top, book.sheet(PLAY)
    rows = slice(top, top + book.graph["outputs"].shape[0])
    return Words(*(sheet[rows, HEADS.index("word") + k] for k in (0, 2, 5, 4)))


def add(book: ModelBook, ws: Composer, top: int) -> None:
    """Add all words at the position: baseline, live and their difference."""
    sheet, n = ws.sheet, book.graph["outputs"].shape[0]
    sheet.put(top, 0, "Every word, by id", "heading")
    for col, head in enumerate(HEADS):
        sheet.put(top + 2, col, head, "label")
    for col, (name, style) in enumerate((("choice.ids", "label number"), ("outputs", "word"))):
        block = book.graph[name]
        turned = block.shape[0] == 1
        book.lay(Place(block, PLAY, top + 3, col, turned, named=False), style)
    _beside_live(book, ws, (top + 1, 2), "logits", "logit", "")
    ws.dress(_beside_live(book, ws, (top + 1, 5), "probs", "probability", " percent"), "bar")
    ws.dress(sheet[top + 3 : top + 3 + n, 5], "bar")


def _beside_live(
    book: ModelBook, ws: Composer, at: tuple[int, int], name: str, head: str, suffix: str
) -> Area:
    """Add three columns of a block's numbers: as built, live and the difference; returns the
    second."""
    (row, col), block, n = at, book.graph[name], book.graph["outputs"].shape[0]
    position, last = book.graph["position"][0, 0] + 1, book.passage.n_prompt - 1
    ws.sheet.put(row, col, head, "block")
    for v in range(n):
        ws.sheet.put(row + 2 + v, col, book.value(name, last, v), "constant" + suffix)

    def now(v: int, _: int) -> Expression:
        return entry(block[:, v], 1, position)

    def change(v: int, _: int) -> Expression:
        return live[v, 0] - ws.sheet[row + 2 + v, col]

    live = ws.show(name, (row + 2, col + 1), now, "live" + suffix, (n, 1))
    changed = ws.show(f"{name}.change", (row + 2, col + 2), change, "change" + suffix, (n, 1))
    ws.dress(changed, CHANGED)
    return live


# --- of many words, beside the readout of one token -----------------------------------------


def texts(book: ModelBook) -> Area:
    """Add the texts of all words, to the left of their logits on Readout."""
    return layout.labels_of(book, "logits", 1, book.graph["logits"].shape[1])


def ids(book: ModelBook) -> Area:
    """0, 1, 2, ... beside the baseline: the ids of all words."""
    place = book.places[BASELINE]
    height, width = place.size
    return book.sheets[place.sheet][place.top : place.top + height, place.left + width]


def add_baseline(book: ModelBook) -> None:
    """Add the unedited probabilities, as constants beside the live ones; and the words' ids."""
    probs = book.places["probs"]
    block = replace(book.graph["probs"], name=BASELINE, kind="setting", op=None, operands=())
    place = probs._replace(block=block, left=probs.left + 2)
    book.others[BASELINE] = book.values["probs"].copy()
    book.lay(place, "constant")
    sheet = book.sheets[probs.sheet]
    sheet.put(place.top - 1, place.left, BASELINE, "label")
    sheet.put(place.top - 1, ids(book).rect.left, "id", "label")
    sheet.runs.append(Run(ids(book).rect, "label number"))
