"""The sheet Source: the origin of the workbook, from which edits can be read back.

It holds the passage as JSON, and the checkpoint as `checkpoint.save` writes it, zipped, in base64
down a column. Nothing in the workbook reads this sheet.
"""

import base64
import io
import json
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file, save_file

from cellformer.engine.cells.errors import InputError
from cellformer.engine.cells.language import ENGLISH
from cellformer.engine.models import checkpoint
from cellformer.engine.models.choosing import Sampling
from cellformer.engine.models.generate import Passage
from cellformer.engine.models.model import Model
from cellformer.engine.studies import addition
from cellformer.engine.text.chat import Chat
from cellformer.engine.text.chat_template import ChatTemplate
from cellformer.exporters.compose.story import Chosen

SHEET = "Source"
FACTS_ROW, CHECKPOINT_ROW = 4, 7
LONGEST = 32_000  # characters in a cell, of the 32,767 that one can hold
MOST_UNPACKED = 50_000_000  # bytes of its checkpoint
MOST_CHOSEN = 1_000  # words of a map
MOST_TYPED = 10_000  # characters that a sentence has room for
AVERAGES = "averages.safetensors"
EPOCH = (2026, 1, 1, 0, 0, 0)  # same input, same bytes
CHANGED = "the sheet Source of this workbook was changed; copy the sheet from the workbook as built"
UNUSABLE = (ValueError, KeyError, TypeError, IndexError, OverflowError, RecursionError)


@dataclass(frozen=True)
class Source:
    """The source of a workbook; `model` is None if the workbook does not hold it."""

    title: str
    passage: Passage
    headings: Mapping[str, str] | None
    part: bool  # whether one part of the model alone is live
    model: Model | None
    chosen: Chosen | None  # words of its maps
    language: str = "en"  # of its texts
    source: tuple[int, ...] = ()  # the ids that the encoder of two stacks reads
    facts: Mapping[str, Any] = field(default_factory=dict)  # all that the sheet says

    def studies(self, model: Model) -> addition.Studies:
        """The additions of the workbook. Raises InputError for impossible facts."""
        try:
            return addition.read(self.facts, model, self.passage)
        except UNUSABLE:
            raise InputError(CHANGED) from None


def carried(model: Model, most: int) -> bool:
    """Whether a workbook has its model with it: it can be saved, and is no larger."""
    small = sum(np.size(w) for w in model.weights.values()) <= most
    return small and checkpoint.saveable(model)


def pack(model: Model) -> bytes:
    """A model's checkpoint with its averages as a zip archive; the same model gives the same
    bytes."""
    with tempfile.TemporaryDirectory() as folder:
        checkpoint.write(model, Path(folder))
        if model.averages:
            save_file(dict(model.averages), Path(folder) / AVERAGES)
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
            for path in sorted(p for p in Path(folder).iterdir() if p.is_file()):
                packed.writestr(
                    zipfile.ZipInfo(path.name, EPOCH), path.read_bytes(), zipfile.ZIP_DEFLATED, 9
                )
    return archive.getvalue()


def unpack(archive: bytes) -> Model:
    """The model of an archive. Raises InputError for a damaged one."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            with zipfile.ZipFile(io.BytesIO(archive)) as packed:
                if sum(part.file_size for part in packed.infolist()) > MOST_UNPACKED:
                    raise InputError(f"it has more than {MOST_UNPACKED / 1e6:,.0f} MB")
                for name in packed.namelist():
                    (Path(folder) / Path(name).name).write_bytes(packed.read(name))
        except Exception as error:  # a damaged archive raises whatever it leads to
            raise InputError(f"the checkpoint in the workbook is damaged ({error})") from None
        model = checkpoint.load(folder)
        path = Path(folder) / AVERAGES
        averages = load_file(path) if path.is_file() else {}
        return Model(**{**vars(model), "averages": averages})


def digits(column: list[str]) -> float | None:
    """The effect of shortened weights on a logit, from a Source sheet; None: they are exact."""
    try:
        found = _facts(column).get("digits")
        return None if found is None else float(found)
    except (ValueError, TypeError):
        return None


def _facts(column: list[str]) -> dict[str, Any]:
    return dict(json.loads("".join(column[FACTS_ROW : CHECKPOINT_ROW - 1])))


def read(column: list[str]) -> Source:
    """The contents of a Source sheet, given the texts of its first column, "" for blanks.

    Raises InputError for unusable contents.
    """
    try:
        facts = _facts(column)
        passage = _passage(facts)
        title, headings, part = str(facts["title"]), facts["headings"], bool(facts["part"])
        if not (headings is None or isinstance(headings, dict)):
            raise ValueError("each heading needs a name")
        chosen = _chosen(facts.get("chosen"))
        read_ids = tuple(int(i) for i in facts.get("source", ()))
        if not len(read_ids) <= passage.n_source <= MOST_TYPED:
            raise ValueError("there is no such source sentence")
        text = "".join(column[CHECKPOINT_ROW:])
        # instead of a checkpoint, which has no spaces, there may be a note, in any language
        archive = None if " " in text else base64.b64decode(text, validate=True)
    except UNUSABLE:
        raise InputError(CHANGED) from None
    model = unpack(archive) if archive else None
    if model and model.read:
        model = model.reading(read_ids)
    return Source(
        title,
        passage,
        headings,
        part,
        model,
        chosen,
        str(facts.get("language", ENGLISH.code)),
        read_ids,
        facts,
    )


def _passage(facts: dict[str, Any]) -> Passage:
    """The passage in the facts. Raises ValueError for an invalid one."""
    passage = Passage(
        [int(i) for i in facts["ids"]],
        int(facts["n_prompt"]),
        Sampling(**facts["sampling"]),
        np.array(facts["numbers"], dtype=np.float64),
        int(facts.get("text_length", 0)),
        tuple(int(i) for i in facts.get("second", ())),
        _chat(facts.get("chat")),
        int(facts.get("n_source", 0)),
    )
    n_tokens = len(passage.ids)
    whole = 1 <= passage.n_prompt <= n_tokens and passage.numbers.shape == (n_tokens + 1,)
    numbers = ((passage.numbers >= 0) & (passage.numbers < 1)).all()
    if not (whole and numbers and 0 <= passage.text_length <= MOST_TYPED):
        raise ValueError("no such passage")
    return passage


def _chat(facts: dict[str, Any] | None) -> Chat | None:
    """A conversation in the facts. Raises ValueError for an invalid one."""
    if facts is None:
        return None
    source, tokens = str(facts["template"]["source"]), facts["template"]["tokens"]
    template = ChatTemplate(source, tuple((str(a), str(b)) for a, b in tokens))
    earlier = tuple((str(a), str(b)) for a, b in facts["earlier"])
    return Chat(template, str(facts["you"]), str(facts["system"]), earlier)


def _chosen(facts: dict[str, Any] | None) -> Chosen | None:
    """The words of the maps. Raises ValueError for invalid ids."""
    if facts is None:
        return None
    groups = {str(name): [int(v) for v in ids] for name, ids in dict(facts["groups"]).items()}
    directions = [([*map(int, a)], [*map(int, b)]) for a, b in facts["directions"]]
    found = Chosen(groups, directions, int(facts["nearest"]))
    ids = [*found.ids, *(v for sides in directions for side in sides for v in side)]
    if not 0 < len(found.ids) <= MOST_CHOSEN or min(ids) < 0 or not found.nearest >= 0:
        raise ValueError("no such words")
    return found
