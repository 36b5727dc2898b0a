"""A lesson in a page's link (`exporters/web/lesson.js`): a task, and the mark of an answer's link.

    #v1&cellformer=...&~task=Make+it+say+vice&~word=14&~edits=1&~text=&~stops=0.1&CELLS&~end

The engine computes the answer again. What a link claims about itself counts for nothing.
"""

import math
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from urllib.parse import unquote_plus

import numpy as np

from cellformer.engine.cells.errors import InputError
from cellformer.exporters.compose.book import Book
from cellformer.exporters.edits import link
from cellformer.exporters.edits.grading import Marked

# as in exporters/web/session.js: cells of the text, and of where one looks
OF_TEXT = re.compile(
    r"(b\.|encoder\.)?(sentence$|chat\.(system|earlier|you|begun)$|n_prompt$|tokens$|segments$"
    r"|prompt\.|look\.|machine\.token$|position$)"
)
WHERE = ("look.position.instead", "machine.token", "position")
ANSWERS = ("logits", "probs")  # to type over these solves nothing
PART, END = "~", "&~end"
OTHER = "the link is of another lesson; send the student the lesson's link again"


class Lesson(NamedTuple):
    """A task: to make the model say a word, by its number, with so many edits."""

    parts: tuple[str, ...]  # of the link, as they stand there
    word: int
    edits: int


def of_link(text: str) -> Lesson:
    """The lesson of a link. Raises InputError for a link without one, or with a cut one."""
    link.parsed(text)
    parts = tuple(part for part in text.split("#", 1)[1].split("&") if part.startswith(PART))
    if not parts:
        raise InputError("the link has no lesson; copy a link from ‘Make a lesson’ on a page")
    named = {key[1:]: unquote_plus(value) for key, _, value in (p.partition("=") for p in parts)}
    word, edits = named.get("word", ""), named.get("edits", "")
    whole = text.endswith(END) and named.get("task") and {"text", "stops"} <= named.keys()
    if not (whole and re.fullmatch("[0-9]{1,9}", word) and re.fullmatch("[0-9]{1,9}", edits)):
        raise InputError("the lesson in the link is incomplete; copy the link again")
    return Lesson(parts, int(word), int(edits))


def marked(text: str, asked: str, build: Callable[[str], Book]) -> Marked:
    """The mark of an answer's link; `asked` is the lesson's link. Raises InputError for an answer
    to another lesson, or of another model."""
    if not link.is_link(text):
        raise InputError("the line has no link of a page; paste the student's link again")
    lesson = of_link(asked)
    if link.parsed(text)[:2] != link.parsed(asked)[:2]:
        raise InputError("the link is of another model; send the student the lesson's link again")
    if of_link(text).parts != lesson.parts:
        raise InputError(OTHER)
    found, given = link.read(text, build), link.read(asked, build).values
    edits = {at: value for at, value in found.values.items() if at[0] not in WHERE}
    of_text = {at: value for at, value in edits.items() if OF_TEXT.match(at[0])}
    changes = {at: value for at, value in edits.items() if at not in of_text}
    said = ""
    live = found.after(edits)
    row = min(int(live["n_prompt"][0, 0]), len(live["probs"])) - 1
    word = _largest(live["probs"][row])
    if of_text != {at: value for at, value in given.items() if at[0] not in WHERE}:
        said = "the sentence was changed"
    elif any(name in ANSWERS for name, _, _ in changes):
        said = "the answer itself was typed over"
    elif len(changes) > lesson.edits:
        said = f"edits: {len(changes)}; the most that count: {lesson.edits}"
    elif word != lesson.word:
        said = "the model says another word"
    return Marked("task", not said, said)


def _largest(cells: Sequence[Any]) -> int:
    """The place of the largest number; what is no number counts as the smallest."""
    numbers = [isinstance(x, float | int) and math.isfinite(x) for x in cells]
    return int(np.argmax([x if is_one else -1 for x, is_one in zip(cells, numbers, strict=True)]))
