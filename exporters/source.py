"""Source: what the workbook was built from, inside it, so that edits can be taken back into code.

The passage as JSON, and the checkpoint as `Model.save` writes it, zipped and spelt in base64 down
a column. Nothing in the workbook reads this sheet.
"""

import base64
import io
import json
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file, save_file

from engine.cells.errors import InputError
from engine.models import checkpoint
from engine.models.generate import Passage, Sampling
from engine.models.model import Model
from exporters import layout
from exporters.book import Book

SHEET = "Source"
FACTS_ROW, CHECKPOINT_ROW = 4, 7
LONGEST = 32_000  # characters in a cell, of the 32,767 that one can hold
MOST_WEIGHTS = 1_000_000  # of a model that is carried along
AVERAGES = "averages.safetensors"
EPOCH = (2026, 1, 1, 0, 0, 0)  # same input, same bytes


@dataclass(frozen=True)
class Source:
    """What a workbook was built from; `model` is None where it was not carried along."""

    title: str
    passage: Passage
    headings: Mapping[str, str] | None
    part: bool  # whether one part of the model alone is live
    model: Model | None


def page(book: Book, model: Model) -> None:
    """The facts and the checkpoint."""
    sheet = book.sheet(SHEET)
    layout.dress(book, sheet)
    sheet.widths = {0: 110}
    facts = {
        "title": book.title,
        "ids": book.passage.ids,
        "n_prompt": book.passage.n_prompt,
        "sampling": asdict(book.passage.sampling),
        "numbers": book.passage.numbers.tolist(),
        "headings": book.headings if book.by_hand else None,
        "part": bool(book.live),
        "digits": _effect_of_digits(book, model),
    }
    sheet.put(FACTS_ROW - 1, 0, "The passage", "heading")
    _put_text(sheet.put, FACTS_ROW, json.dumps(facts))
    sheet.put(CHECKPOINT_ROW - 1, 0, "The checkpoint: zip, in base64", "heading")
    if carried(model):
        _put_text(sheet.put, CHECKPOINT_ROW, base64.b64encode(pack(model)).decode("ascii"))
    else:
        text = "not carried along: name the model with `cellformer diff --model`"
        sheet.put(CHECKPOINT_ROW, 0, text, "note")


def _effect_of_digits(book: Book, model: Model) -> float | None:
    """The largest difference in a logit that shortened weights make."""
    if model.exact is None or "logits" not in book.values:
        return None
    exact = replace(model.exact, spec=book.graph.spec).graph(book.passage.ids)
    return float(np.abs(exact.values["logits"] - book.values["logits"]).max())


def _put_text(put: Any, row: int, text: str) -> None:
    for k in range(0, len(text), LONGEST):
        put(row + k // LONGEST, 0, text[k : k + LONGEST], "note")


def carried(model: Model) -> bool:
    """Whether a workbook has its model with it: it can be saved, and is not large."""
    small = sum(np.size(w) for w in model.weights.values()) <= MOST_WEIGHTS
    return small and checkpoint.saveable(model)


def pack(model: Model) -> bytes:
    """A model's checkpoint, and its averages, as a zip archive: the same model, the same bytes."""
    with tempfile.TemporaryDirectory() as folder:
        model.save(folder)
        if model.averages:
            save_file(dict(model.averages), Path(folder) / AVERAGES)
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
            for path in sorted(Path(folder).iterdir()):
                entry = zipfile.ZipInfo(path.name, EPOCH)
                packed.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED, 9)
    return archive.getvalue()


def unpack(archive: bytes) -> Model:
    """The model of an archive. Raises InputError where it is not whole."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            with zipfile.ZipFile(io.BytesIO(archive)) as packed:
                for name in packed.namelist():
                    (Path(folder) / Path(name).name).write_bytes(packed.read(name))
        except Exception as error:  # a damaged archive raises whatever it leads to
            raise InputError(f"its checkpoint is damaged ({error})") from None
        model = checkpoint.load(folder)
        path = Path(folder) / AVERAGES
        averages = load_file(path) if path.is_file() else {}
        return Model(**{**vars(model), "averages": averages})


def column(written: Any) -> list[str]:
    """The texts of the Source sheet's first column, in a workbook that openpyxl has opened."""
    texts = [row[0] for row in written[SHEET].iter_rows(max_col=1, values_only=True)]
    return ["" if text is None else str(text) for text in texts]


def digits(column: list[str]) -> float | None:
    """What a Source sheet says that shortened weights do to a logit; None: they are exact."""
    try:
        found = _facts(column).get("digits")
        return None if found is None else float(found)
    except (ValueError, TypeError):
        return None


def _facts(column: list[str]) -> dict[str, Any]:
    return json.loads("".join(column[FACTS_ROW : CHECKPOINT_ROW - 1]))


def read(column: list[str]) -> Source:
    """What a Source sheet says: the texts of its first column, blanks as empty texts.

    Raises InputError where it says nothing that can be used.
    """
    try:
        facts = _facts(column)
        passage = Passage(
            [int(i) for i in facts["ids"]],
            int(facts["n_prompt"]),
            Sampling(**facts["sampling"]),
            np.array(facts["numbers"], dtype=np.float64),
        )
        title, headings, part = str(facts["title"]), facts["headings"], bool(facts["part"])
        text = "".join(column[CHECKPOINT_ROW:])
        archive = None if text.startswith("not carried") else base64.b64decode(text, validate=True)
    except (ValueError, KeyError, TypeError, IndexError):
        raise InputError(
            "its sheet Source was changed; take it from the workbook as built"
        ) from None
    return Source(title, passage, headings, part, unpack(archive) if archive else None)
