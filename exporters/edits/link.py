"""A page's link, read: the state that `exporters/web/link.js` puts into the address behind #.

    page.html#v1&cellformer=dialogue-game.1f2e3d4c.99aabbcc&sentence=3+chiama&W_E[3,2]=0.5

First the version, then the fingerprint of the page, then the edited cells in order. [0,0] is left
out. What reads like a number is one; a text that does begins with '. Nothing is a blank cell.
"""

import re
from collections.abc import Callable
from urllib.parse import unquote_plus

from cellformer.engine.cells.block import Block
from cellformer.engine.cells.errors import InputError
from cellformer.engine.cells.graph import Graph
from cellformer.exporters.compose.book import Book
from cellformer.exporters.edits.differences import BlockCell, Edited, note, typed_cells, typed_value
from cellformer.exporters.edits.edited import EditedModel
from cellformer.exporters.model.fingerprint import weights_sum
from cellformer.exporters.model.model_book import ModelBook

VERSION = "v1"
STATE = re.compile(r"#(v\d+)&cellformer=([^&]*)(?:&(.*))?", re.DOTALL)
CELL = re.compile(r"(?P<block>[^\[\]]+)(?:\[(?P<i>\d{1,9}),(?P<j>\d{1,9})\])?", re.ASCII)
NUMBER = re.compile(r"-?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
NO_ESCAPE = re.compile("%(?![0-9a-fA-F]{2})")
LONGEST = 40  # characters of a link that an error repeats
AGAIN = "copy the link again"

Value = float | str | None  # None: blank


def is_link(text: str) -> bool:
    """Whether a text is the address of a page with a state."""
    return STATE.search(text) is not None


def parsed(text: str) -> tuple[str, str, list[tuple[str, int, int, str]]]:
    """The name of a link's page, the sum of its weights, and its cells, not yet looked up.

    Raises InputError for a damaged link, or one of another version.
    """
    found = STATE.search(text)
    assert found is not None
    version, page, cells = found.groups()
    if version != VERSION:
        raise InputError(
            f"the link has version {version}, but this cellformer reads only {VERSION}; open the "
            "link, save the workbook there, and import this workbook"
        )
    named = _plain(page).rsplit(".", 2)
    if len(named) < 3 or not named[0]:
        raise InputError(f"the link does not name a model: {_short(page)}; {AGAIN}")
    name, weights, _ = named
    parts = (cells or "").split("&")
    return name, weights, [_cell(part) for part in parts if part and part[0] != "~"]  # a lesson's


def _cell(part: str) -> tuple[str, int, int, str]:
    """A cell's block, row and column, and its value as the link spells it."""
    key, equals, value = part.partition("=")
    match = CELL.fullmatch(_plain(key))
    if match is None or not equals:
        raise InputError(f"the link has a part {_short(part)}, which does not name a cell; {AGAIN}")
    return match["block"], int(match["i"] or 0), int(match["j"] or 0), _plain(value)


def _plain(text: str) -> str:
    """A part of a link without its escapes."""
    try:
        if not NO_ESCAPE.search(text):
            return unquote_plus(text, errors="strict")
    except UnicodeDecodeError:
        pass
    raise InputError(f"the link is damaged at {_short(text)}; {AGAIN}")


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def read(text: str, build: Callable[[str], Book]) -> Edited:
    """The changes in a link; `build` makes the book of a name.

    Raises InputError for a link of other weights, for cells that are not there, and for values that
    they cannot hold.
    """
    title, weights, cells = parsed(text)
    book = build(title)
    if weights_sum(book) != weights:
        raise InputError(
            f"the link was made with other weights than those of {book.title}; name its model "
            "with --model, or save the workbook on the page of the link, and import this workbook"
        )
    found = EditedModel(book) if isinstance(book, ModelBook) else Edited(book)
    for name, i, j, spelt in cells:
        block = book.graph[name]
        book.graph.check(block, i, j)
        if (name, i, j) in found.values:
            raise InputError(f"the link names {name}[{i},{j}] twice; {AGAIN}")
        typed, _ = typed_cells(book, block)
        is_text = typed[i, j] and isinstance(typed_value(book, block, i, j), str)
        value = spelt.removeprefix("'") if is_text else _value(book.graph, block, i, j, spelt)
        note(found, BlockCell(book, block, i, j, not typed[i, j], value))
    return found


def _value(graph: Graph, block: Block, i: int, j: int, spelt: str) -> Value:
    """The value of a cell that holds no text as built. Raises InputError for one that it cannot
    hold."""
    if spelt == "" and block.kind == "table":
        return None
    value = float(spelt) if NUMBER.fullmatch(spelt) else spelt.removeprefix("'")
    if block.kind != "table" or isinstance(value, float):
        graph.check_value(block, i, j, value)
    return value
