"""A chat template as token ids, for a page: it joins the ids of the template and of the texts.

    head & you & answering & answer & following & you & closing & answer ...

The answer's ids stay those that the model chose. Only what you say is split into tokens by cells,
which are then few. Joined ids must be those of the joined text: `of` tries many texts.
"""

from collections.abc import Callable
from typing import NamedTuple

from cellformer.engine.cells.errors import InputError
from cellformer.engine.text.chat import Chat
from cellformer.engine.text.chat_template import PROBES

TEXTS = (*PROBES, "1", "...", "'s", "Paris.", "(x)", "\u4f60\u597d", "a" * 40, "\\n", "-- a")


class ChatIds(NamedTuple):
    """The template's ids: before the first message; between a message and its answer, past or to
    come; between an answer and the next message."""

    head: list[int]
    answering: list[int]
    closing: list[int]
    following: list[int]


def of(encode: Callable[[str], list[int]], chat: Chat) -> ChatIds:
    """The ids of a chat's template. Raises InputError for a template that rewrites earlier turns,
    and for a tokenizer that joins the template with the texts."""
    pieces = chat.template.pieces
    if pieces.following is None:
        raise InputError(
            "the model's chat template rewrites earlier turns, so a page cannot hold the "
            "conversation; use `cellformer generate --chat`, or build a workbook (.xlsx)"
        )
    head = pieces.without
    if chat.system and pieces.opening is not None:
        system = chat.system.strip() if pieces.strips_system else chat.system
        head = pieces.opening + system + pieces.middle
    found = ChatIds(*map(encode, (head, pieces.answering, pieces.closing, pieces.following)))
    for text in map(str.strip, TEXTS):
        past = head + text + pieces.answering + text + pieces.following
        ids = [*found.head, *encode(text), *found.answering, *encode(text), *found.following]
        if encode(past + text + pieces.closing) != [*ids, *encode(text), *found.closing]:
            raise InputError(
                "the model's tokenizer makes one token of the chat template's last letters and the "
                "first letters of your text, and a page cannot do this; use `cellformer generate "
                "--chat`, or build a workbook (.xlsx)"
            )
    return found
