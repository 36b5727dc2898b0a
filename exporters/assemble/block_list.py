"""Blocks of a graph one below another on a worksheet, in the order of computation.

So a program that computes cells from left to right and from top to bottom, as Excel does with
circular references, computes what a cell reads before the cell.
"""

from collections.abc import Mapping, Sequence

from cellformer.engine.cells.access import Rect
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.formula import equation
from cellformer.engine.cells.language import AsIs
from cellformer.exporters.compose import theme
from cellformer.exporters.compose.book import Place, Run
from cellformer.exporters.compose.composer import Composer
from cellformer.exporters.model import words
from cellformer.exporters.model.layout import caption
from cellformer.exporters.model.orientation import read_along, turned_by_tokens

Labels = Mapping[str, Sequence[str]]  # the texts along an axis, by its name


def stack(
    ws: Composer,
    block: Block,
    labels: Labels,
    gradient_of: str,
    across: bool = False,
    meaning: str = "",
) -> None:
    """Put a block at the cursor, under its name, its formula and its meaning. Tokens run across,
    and a pattern has a row for each query (see `orientation`). Another block with reads along
    its rows is transposed, so that every product runs down columns, unless they run `across`,
    since the other factor is transposed. The meaning of a table is given."""
    on_its_side = None if across else turned_by_tokens(block)
    if on_its_side is None:
        on_its_side = read_along(ws.book.graph, block) == 1 and not across
    text = f"{block.name} = {equation(block)}" if block.op else block.name
    meaning = meaning or words.meaning(block, gradient_of)
    ws.text(AsIs(f"{text}   {words.shape(block, on_its_side)}   {meaning}"), style="equation")
    put(ws, block, ws.cursor + 2, 1, labels, on_its_side)
    ws.sheet.put(ws.cursor, 1, caption(block, on_its_side), "block")
    ws.cursor += ws.book.places[block.name].size[0] + 3


def put(
    ws: Composer,
    block: Block,
    top: int,
    left: int,
    labels: Labels,
    on_its_side: bool = False,
    style: str = "",
) -> Place:
    """Put a block's cells at a place, with labels above and to the left; in a style of theme's
    (default: that of its kind)."""
    place = Place(block, ws.sheet.name, top, left, on_its_side)
    if block.op:
        ws.book.places[block.name] = place
        ws.sheet.regions.append((place, theme.region_style(block, _reads_elsewhere(ws, block))))
    else:
        ws.book.lay(place, style or _style(block))
    down, across = reversed(block.axes) if on_its_side else block.axes
    height, width = place.size
    _label(ws, Rect(top - 1, top, left, left + width), across, labels, "label")
    _label(ws, Rect(top, top + height, left - 1, left), down, labels, "row label")
    if min(block.shape) > 1:
        ws.sheet.dressings.append((place.rect(block.whole), "diverging"))
    return place


def _style(block: Block) -> str:
    """The style of cells that hold numbers, or that have a formula each."""
    if block.kind == "ids":
        return "input count"
    return f"{theme.kind(block)} {'black' if block.expression else 'blue'}"


def _reads_elsewhere(ws: Composer, block: Block) -> bool:
    return {ws.book.places[b.name].sheet for _, _, b in block.operands} != {ws.sheet.name}


def _label(ws: Composer, area: Rect, axis: str, labels: Labels, style: str) -> None:
    """The labels along an axis, or its numbers; an axis without a name has none."""
    if axis in labels:
        ws.sheet.runs.append(Run(area, style, labels[axis]))
    elif axis:
        ws.sheet.runs.append(Run(area, "row number" if style == "row label" else "label number"))
