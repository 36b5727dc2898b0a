"""Every word by its id: text, logit and probability, live, with the baseline beside them.

They stand on Play, at the position that is looked at; of many words on Readout, where what comes
next is known after one token alone. The baseline is what the untouched workbook said, as constants.
"""

from dataclasses import replace
from typing import NamedTuple

from engine.cells.block import Block
from engine.cells.expression import Area, Expression
from engine.cells.functions import MAX, MIN, SQRT, SUMPRODUCT
from exporters.compose.book import Place, Run
from exporters.compose.composer import Composer
from exporters.compose.dressing import CHANGED
from exporters.compose.lookups import entry
from exporters.model import layout
from exporters.model.layout import PLAY
from exporters.model.model_book import ModelBook

HEADS = ("id", "word", "baseline", "live", "change", "baseline", "live", "change")
TEXTS, LOGIT, PROBABILITY = 1, 2, 5  # columns; of the last two the first of three
BASELINE = "baseline"


class Words(NamedTuple):
    """A column each, by id."""

    texts: Area
    logits: Area
    probs: Area
    baseline: Area  # probabilities as built


def words(book: ModelBook) -> Words:
    """Where every word is found."""
    if book.plan.readout.one_token:
        logits, probs = book.graph["logits"].area, book.graph["probs"].area
        return Words(texts(book), logits, probs, book.places[BASELINE].block.area)
    top, sheet = book.places["outputs"].top, book.sheet(PLAY)
    rows = slice(top, top + book.graph["outputs"].shape[0])
    return Words(*(sheet[rows, col] for col in (TEXTS, LOGIT + 1, PROBABILITY + 1, PROBABILITY)))


def texts(book: ModelBook) -> Area:
    """The texts of all words, left of their logits on Readout."""
    return layout.labels_of(book, "logits", 1, book.graph["logits"].shape[1])


def ids(book: ModelBook) -> Area:
    """0, 1, 2, ... beside the baseline on Readout: the ids of all words."""
    place = book.places[BASELINE]
    height, width = place.size
    return book.sheets[place.sheet][place.top : place.top + height, place.left + width]


def add(book: ModelBook, ws: Composer, top: int) -> None:
    """All words at the position: baseline, live and their difference."""
    sheet, n = ws.sheet, book.graph["outputs"].shape[0]
    sheet.put(top, 0, "Every word, by id", "heading")
    for col, head in enumerate(HEADS):
        sheet.put(top + 2, col, head, "label")
    top += 3
    for name, col, style in (("choice.ids", 0, "label number"), ("outputs", TEXTS, "word")):
        block = book.graph[name]
        book.lay(Place(block, PLAY, top, col, turned=block.shape[0] == 1, named=False), style)
    position, last = book.graph["position"][0, 0], book.passage.n_prompt - 1
    for name, col, suffix in (("logits", LOGIT, ""), ("probs", PROBABILITY, " percent")):
        block, built = book.graph[name], sheet[top : top + n, col]
        sheet.put(top - 2, col, "probability" if suffix else "logit", "block")
        for v in range(n):
            sheet.put(top + v, col, book.value(name, last, v), "constant" + suffix)

        def at_position(v: int, _: int, block: Block = block) -> Expression:
            return entry(block[:, v], 1, position + 1)

        def change(v: int, _: int, built: Area = built, name: str = name) -> Expression:
            return book.shown[f"play.{name}"].block[v, 0] - built[v, 0]

        live = ws.show(name, (top, col + 1), at_position, "live" + suffix, (n, 1))
        moved = ws.show(f"{name}.change", (top, col + 2), change, "change" + suffix, (n, 1))
        ws.dress(moved, CHANGED)
        if suffix:
            ws.dress(built, "bar")
            ws.dress(live, "bar")


def add_baseline(book: ModelBook) -> None:
    """The untouched probabilities, as constants beside the live ones; and the words' ids."""
    probs = book.places["probs"]
    block = replace(book.graph["probs"], name=BASELINE, kind="setting", op=None, operands=())
    place = probs._replace(block=block, left=probs.left + 2)
    book.places[BASELINE], book.others[BASELINE] = place, book.values["probs"].copy()
    sheet = book.sheets[probs.sheet]
    sheet.regions.append((place, "constant"))
    sheet.put(place.top - 1, place.left, BASELINE, "label")
    sheet.put(place.top - 1, ids(book).rect.left, "id", "label")
    sheet.runs.append(Run(ids(book).rect, "label number"))


def change(book: ModelBook) -> Expression:
    """How far what is said is from what was said, all in all."""
    found = words(book)
    if book.plan.readout.one_token:
        gap = found.probs - found.baseline
        return SQRT(SUMPRODUCT(gap, gap))
    moved = book.shown["play.logits.change"].block.area
    return MAX(MAX(moved), -MIN(moved)) / size(book)


def size(book: ModelBook) -> Expression:
    """The largest logit, or 1: gaps between large logits are large."""
    logits = words(book).logits
    return MAX(1, MAX(logits), -MIN(logits))
