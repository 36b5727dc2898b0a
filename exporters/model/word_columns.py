"""The columns of every word by its id: text, logit, probability, baseline.

They are on Play, at the position that is looked at; with a large vocabulary on Readout, where only
one token has next words. The baseline is the unedited workbook's result, as constants.
"""

from dataclasses import replace
from typing import NamedTuple

from cellformer.engine.cells.expression import Area
from cellformer.exporters.compose.book import Run
from cellformer.exporters.model import layout
from cellformer.exporters.model.model_book import ModelBook

BASELINE = "baseline"


class Words(NamedTuple):
    """The columns, by id."""

    texts: Area
    logits: Area
    probs: Area
    baseline: Area  # probabilities as built


def words(book: ModelBook) -> Words:
    """The place of each column."""
    if book.plan.readout.one_token:
        return Words(
            texts(book),
            book.graph["logits"].area,
            book.graph["probs"].area,
            book.places[BASELINE].block.area,
        )
    place = book.places["outputs"]
    rows = slice(place.top, place.top + place.block.shape[0])
    return Words(*(book.sheet(place.sheet)[rows, place.left + k] for k in (0, 2, 5, 4)))


def texts(book: ModelBook) -> Area:
    """The texts of all words, left of their logits on Readout."""
    return layout.labels_of(book, "logits", 1, book.graph["logits"].shape[1])


def ids(book: ModelBook) -> Area:
    """0, 1, 2, ... beside the baseline on Readout: the ids of all words."""
    place = book.places[BASELINE]
    height, width = place.size
    return book.sheets[place.sheet][place.top : place.top + height, place.left + width]


def add_baseline(book: ModelBook) -> None:
    """Add the baseline beside the live probabilities on Readout, and the words' ids."""
    probs = book.places["probs"]
    block = replace(book.graph["probs"], name=BASELINE, kind="setting", op=None, operands=())
    place = probs._replace(block=block, left=probs.left + 2)
    book.others[BASELINE] = book.values["probs"].copy()
    book.lay(place, "constant")
    sheet = book.sheets[probs.sheet]
    sheet.put(place.top - 1, place.left, BASELINE, "label")
    sheet.put(place.top - 1, ids(book).rect.left, "id", "label")
    sheet.runs.append(Run(ids(book).rect, "label number"))
