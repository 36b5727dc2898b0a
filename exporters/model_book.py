"""The book of a model: its passage, its words, and how its blocks' formulas are written."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from engine.cells.access import Rect
from engine.cells.block import Block
from engine.cells.expression import Area, Fixed
from engine.cells.formula import A1, Formulas
from engine.models.generate import Passage
from engine.models.model import Model
from engine.studies.lens import Views
from exporters.address import address
from exporters.book import Book, Place
from exporters.plan import WHOLE, Plan
from exporters.story import Printed


class Pieces(NamedTuple):
    """A block that stands on several sheets, so many words on each; `places` has the pieces."""

    step: int
    names: list[str]


@dataclass(repr=False, kw_only=True)
class ModelBook(Book):
    """A model's workbook."""

    model: Model
    passage: Passage
    labels: Mapping[str, Sequence[str]] = field(default_factory=dict)  # axis name -> its texts
    headings: Mapping[str, str] = field(default_factory=dict)  # block -> of the step it begins
    views: Views = field(default_factory=Views)
    plan: Plan = WHOLE
    printed: Sequence[Printed] = ()  # tables of the source
    pieces: dict[str, Pieces] = field(default_factory=dict)  # blocks wider than a sheet

    @property
    def large(self) -> bool:
        """Whether it is of many words, with the logits of one token alone, of a part, or of an
        encoder."""
        return self.plan.reduced

    @property
    def live(self) -> tuple[str, ...]:
        """The parts that recompute; (): all."""
        return self.plan.live

    @property
    def by_hand(self) -> bool:
        """Whether weights stand beside what they multiply."""
        return self.plan.by_hand

    @property
    def blocks(self) -> list[Block]:
        """The blocks of the model and of the views on it, without its pages' tables."""
        return [block for block in self.graph if block.kind != "table"]

    def named(self, name: str) -> Area:
        """A named single cell, for formulas."""
        where, row, col = self.spots[name]
        return self.sheet(where)[row, col]

    def locate(self, area: Area) -> tuple[str, Rect]:
        """The sheet and the rectangle of an area; of a whole block in pieces, its first piece."""
        if area.grid.name not in self.pieces:
            return super().locate(area)
        block = self.graph[area.grid.name]
        if area.rect == block.whole:
            first = self.places[block.name]
            return first.sheet, first.rect(first.block.whole)
        place, rect = self.piece(block, area.rect)
        return place.sheet, rect

    def piece(self, block: Block, rect: Rect) -> tuple[Place, Rect]:
        """Where a rectangle of a block stands; of one in pieces, a rectangle within one piece."""
        place = self.places[block.name]
        if self.pieces and block.name in self.pieces:
            step, names = self.pieces[block.name]
            k = (rect.top if place.turned else rect.left) // step
            place, (top, bottom, left, right) = self.places[names[k]], rect
            if place.turned:
                rect = Rect(top - k * step, bottom - k * step, left, right)
            else:
                rect = Rect(top, bottom, left - k * step, right - k * step)
        return place, place.rect(rect)

    def _lookup(self, block: Block, i: int, j: int) -> str:
        """The formula that looks an id up in a table that is in pieces."""
        (_, _, ids), (_, _, table) = block.operands
        step, names = self.pieces[table.name]
        ident = self.address(ids[i, 0], self.places[block.name].sheet)
        rows = []
        for name in names:
            place = self.places[name]
            whole = place.rect(place.block.whole)
            row = whole._replace(top=whole.top + j, bottom=whole.top + j + 1)
            rows.append(address(place.sheet, row))
        piece = f"CHOOSE(INT({ident}/{step})+1,{','.join(rows)})"
        return f"INDEX({piece},1,MOD({ident},{step})+1)"

    def formulas(self, block: Block) -> Callable[[int, int], str]:
        """The A1 formulas of a computed block that has a place.

        LibreOffice computes cells that stand in a column and share a formula as one, in threads;
        where a column of tokens waits for the one before it, it then sees cycles that are none.
        A fixed row (`B$7`) makes every cell's formula its own.

        In a large workbook sharing is what counts, see `shared`: rows that do not move down the
        column are fixed there, and a matrix's column is picked by the row that the formula is in.
        """
        if block.expression is not None:
            return super().formulas(block)
        here = self.places[block.name].sheet
        generates = self.plan.continues and self.passage.n_prompt < len(self.passage.ids)
        ways = self._down(block) if self.plan.shares else {}
        if any(b.name in self.pieces and "?" in subscript for _, subscript, b in block.operands):
            return lambda i, j: self._lookup(block, i, j)

        def where(operand: Block, rect: Rect) -> str:
            place, area = self.piece(operand, rect)
            way = ways.get(operand.name)
            if way == "picked" and operand.name not in self.pieces:
                whole = place.rect(rect._replace(left=0, right=operand.shape[1]))
                row = 1 if rect.bottom - rect.top == 1 else 0
                above = self.places[block.name].top
                return f"INDEX({address(place.sheet, whole, here, 'all')},{row},ROW()-{above})"
            fixed: Fixed = "rows" if generates or way == "still" else ""
            return address(place.sheet, area, here, fixed)

        return Formulas(block, A1, where, lambda b, axis: self.places[b.name].turned == (axis == 1))

    def shared(self, block: Block) -> bool:
        """Whether the cells of a column share a formula, but for the rows that it reads.

        Then it is written once. LibreOffice keeps it once, and listens once to each range: a large
        model takes a third less of memory, and is recalculated in half the time.
        """
        if not self.plan.shares or block.partial or self.places[block.name].size[0] == 1:
            return False
        ways = self._down(block)
        return all(ways[b.name] and b.name not in self.pieces for _, _, b in block.operands)

    def _down(self, block: Block) -> dict[str, str]:
        """What each operand does as one goes down a column of the block: "still", it stays;
        "moving", its next row is read; "picked", its next column is; "", none of these."""
        turned = self.places[block.name].turned
        down = "j" if turned else "i"
        ways: dict[str, str] = {}
        for _, codes, operand in block.operands:
            crosswise = self.places[operand.name].turned
            if any(code[0] == "~" for code in codes):
                way = ""
            elif not any(down in code for code in codes):
                way = "still"
            elif codes[1 if crosswise else 0] == down:
                way = "moving"
            elif turned and codes[1] == "j" and codes[0] != "?" and operand.shape[1] > 1:
                way = "picked"
            else:
                way = ""
            ways[operand.name] = way if ways.get(operand.name, way) == way else ""
        return ways
