"""Source: the sheet with the origin of the workbook (see `cellformer.exporters.model.source`)."""

import base64
import json
from collections.abc import Callable
from dataclasses import asdict, replace

import numpy as np

from cellformer.engine.cells.language import ENGLISH
from cellformer.engine.models import encoding
from cellformer.engine.models.model import Model
from cellformer.engine.studies import addition
from cellformer.exporters.model import layout
from cellformer.exporters.model.model_book import ModelBook
from cellformer.exporters.model.source import (
    CHECKPOINT_ROW,
    FACTS_ROW,
    LONGEST,
    SHEET,
    carried,
    pack,
)

PURPOSE = "the model as it was built, for ‘cellformer diff’ and ‘cellformer import’"
AFTER = "Sampling"


def add(book: ModelBook) -> None:
    """Add the facts and the checkpoint."""
    sheet, model = book.sheet(SHEET), book.model
    sheet.hidden = True
    if not book.plan.read_back:
        sheet.purpose = "the source of this workbook"
    layout.dress(book, sheet)
    sheet.widths = {0: 16}
    facts = {
        "title": book.title,
        "ids": book.passage.ids,
        "n_prompt": book.passage.n_prompt,
        "second": book.passage.second,
        "text_length": book.passage.text_length,
        "sampling": asdict(book.passage.sampling),
        "numbers": book.passage.numbers.tolist(),
        "headings": book.headings if book.by_hand else None,
        "chosen": asdict(replace(book.chosen, suggestions=())) if book.chosen else None,
        "part": bool(book.live),
        "digits": _effect_of_digits(book, model),
    }
    if book.plan.sources:
        facts |= {"source": model.read, "n_source": book.passage.n_source}
    if book.passage.chat:
        facts["chat"] = asdict(book.passage.chat)
    if book.language.code != ENGLISH.code:
        facts["language"] = book.language.code
    facts |= addition.facts(book.plan.studies)
    sheet.put(FACTS_ROW - 1, 0, "The passage", "heading")
    _put_text(sheet.hold, FACTS_ROW, json.dumps(facts))
    sheet.put(CHECKPOINT_ROW - 1, 0, "The checkpoint (zip, in base64)", "heading")
    if carried(model, book.plan.limits.carried):
        _put_text(sheet.hold, CHECKPOINT_ROW, base64.b64encode(pack(model)).decode("ascii"))
    else:
        text = "not included: type the model’s path after ‘cellformer diff --model’"
        sheet.put(CHECKPOINT_ROW, 0, text, "note")


def _effect_of_digits(book: ModelBook, model: Model) -> float | None:
    """The largest change of a logit by shortened weights."""
    if model.exact is None or "logits" not in book.values:
        return None
    exact = encoding.graph(model.exact, book.passage, book.plan.readout)
    return float(np.abs(exact.last("logits") - book.values["logits"]).max())


def _put_text(put: Callable[..., None], row: int, text: str) -> None:
    for k in range(0, len(text), LONGEST):
        put(row + k // LONGEST, 0, text[k : k + LONGEST], "note")
