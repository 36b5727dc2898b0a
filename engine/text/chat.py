"""A conversation in cells: your text, a system text, and the template's text around them.

    head (system) & earlier turns & you & closing -> the sentence, which the tokenizer reads

The template's pieces are cells, found by rendering it (`chat_template`). Where it strips white
space from a text's ends, cells count it: `lead` and `trail` go by halving, 32, 16, ... characters.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cellformer.engine.cells.block import Block
from cellformer.engine.cells.expression import Expression, expression
from cellformer.engine.cells.functions import IF, LEN, MID, REPT, SUBSTITUTE, UNICHAR
from cellformer.engine.cells.graph import Graph
from cellformer.engine.text.chat_template import (
    ChatTemplate,
    Message,
    changed,
    check,
    of_model,
    of_user,
)

# what Python's str.strip takes away, besides a space, of characters that a cell can hold
BLANKS = (9, 10, 133, 160, 5760, *range(8192, 8203), 8232, 8233, 8239, 8287, 12288)
HALVES = (32, 16, 8, 4, 2, 1)  # so many at most, 63 in all, are stripped from an end
SAID = ("chat.system", "chat.earlier", "chat.you")  # what is typed


@dataclass(frozen=True)
class Chat:
    """A conversation up to where the model's answer begins."""

    template: ChatTemplate
    you: str
    system: str = ""  # "": none, and the template's own text if it has one
    earlier: tuple[tuple[str, str], ...] = ()  # what you said before, and its answers
    by_ids: bool = False  # whether a page joins ids, and cells split only what you say

    @cached_property
    def text(self) -> str:
        """The text for the model. Raises InputError."""
        return self.template.write(self.you, self.system, messages(self.earlier))


def messages(turns: Sequence[tuple[str, str]]) -> list[Message]:
    """The messages of turns."""
    return [message for you, answer in turns for message in (of_user(you), of_model(answer))]


def add(g: Graph, chat: Chat, by_word: bool = False) -> Block:
    """Add a conversation's cells; returns `sentence` [1, 1], the model's input.

    With `by_word` the answer so far is typed, too, in `chat.begun`, for a sheet that ranks one next
    word.

    `chat.you`, and where the template has room for them `chat.system` and `chat.earlier`, are
    typed; the latter is what `go_on` makes of a turn and its answer. Raises InputError for a
    template that changes texts in a way without formulas.
    """
    alone = Graph(None, None)
    _cells(alone, chat, by_word)
    if alone.values["sentence"][0, 0] != chat.text:
        raise changed()
    return _cells(g, chat, by_word)


def _cells(g: Graph, chat: Chat, by_word: bool) -> Block:
    pieces, at = chat.template.pieces, g.at("chat")
    head, closing = _held(at, "without", pieces.without), _held(at, "closing", pieces.closing)
    if pieces.opening is not None:
        opening, middle = _held(at, "opening", pieces.opening), _held(at, "middle", pieces.middle)
        system = _held(at, "system", chat.system or pieces.system)
        told = _stripped(at, "system", system) if pieces.strips_system else system
        head = IF(LEN(system) > 0, opening & told & middle, head)
    before = expression("")
    if pieces.following is not None:
        before = expression(_held(at, "earlier", earlier(chat)))
        _held(at, "answering", pieces.answering), _held(at, "following", pieces.following)
    you = _held(at, "you", chat.you)
    own = _stripped(at, "you", you) if pieces.strips_you else you
    said = at.table("said", (1, 1), lambda *_: own & "")[0, 0]
    begun = _held(at, "begun", "") if by_word else expression("")
    whole = IF(LEN(you) > 0, head & before & said & closing & begun, "")
    return g.table("sentence", (1, 1), lambda *_: whole)


def earlier(chat: Chat) -> str:
    """The earlier turns as the template writes them."""
    pieces = chat.template.pieces
    found = ""
    for you, answer in chat.earlier:
        said = you.strip() if pieces.strips_you else you
        told = answer.strip() if pieces.strips_answer else answer
        found += f"{said}{pieces.answering}{told}{pieces.following}"
    return found


def go_on(g: Graph, chat: Chat, answer: Expression) -> None:
    """Add `chat.so_far` [1, 1], the text to type as earlier turns so that the conversation goes
    on after an answer; nothing if the template has no such text."""
    if "chat.earlier" not in g.blocks:
        return
    at, names = g.at("chat"), ("earlier", "said", "answering", "following")
    before, said, answering, following = (g[f"chat.{name}"][0, 0] for name in names)
    told = _stripped(at, "answer", answer) if chat.template.pieces.strips_answer else answer
    at.table("so_far", (1, 1), lambda *_: before & said & answering & told & following)


def _held(at: Graph, name: str, text: str) -> Expression:
    """A cell with a text. Raises InputError for one that no cell can hold."""
    check(text, f"the chat template's {name}")
    return at.input(name, np.array([[text]], dtype=object), kind="table")[0, 0]


def _stripped(at: Graph, name: str, text: Expression) -> Expression:
    """A text without white space at its ends, by cells that count how much there is."""
    at, n = at.at(name), len(HALVES)
    codes = at.input("blanks", np.array(BLANKS, dtype=np.float64)[:, None], kind="table")
    plain = at.table(
        "plain",
        (len(BLANKS), 1),
        lambda k, _: SUBSTITUTE(plain[k - 1, 0] if k else text & "", UNICHAR(codes[k, 0]), " "),
    )
    whole = plain[len(BLANKS) - 1, 0].fixed

    def leads(k: int, _: int) -> Expression:
        done = lead[k - 1, 0] if k else expression(0)
        return done + IF(MID(whole, done + 1, HALVES[k]) == REPT(" ", HALVES[k]), HALVES[k], 0)

    def trails(k: int, _: int) -> Expression:
        done = trail[k - 1, 0] if k else expression(0)
        begin = LEN(whole) - done - HALVES[k] + 1
        fits = begin > lead[n - 1, 0].fixed
        ends = IF(fits, MID(whole, begin, HALVES[k]) == REPT(" ", HALVES[k]), fits)
        return done + IF(ends, HALVES[k], 0)

    lead = at.table("lead", (n, 1), leads)
    trail = at.table("trail", (n, 1), trails)
    first, last = lead[n - 1, 0], trail[n - 1, 0]
    return MID(text, first + 1, LEN(text) - first - last)
