"""The book of a model: its passage, its words, and how its blocks' formulas are written."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import NamedTuple

from engine.cells.access import Rect
from engine.cells.block import Block
from engine.cells.expression import Area, Fixed
from engine.cells.formula import Formulas
from engine.models import ops
from engine.models.generate import Passage
from engine.models.model import Model
from engine.studies.lens import Views
from exporters.compose.address import address, addresses, column
from exporters.compose.book import Book, Place
from exporters.compose.story import Chosen, Printed
from exporters.model.plan import WHOLE, Plan

DIVIDING = (ops.reciprocal, ops.soft_cap)  # by what is typed, which may count as 0


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
    chosen: Chosen | None = None  # words for the maps
    section: str = ""  # the document, and where in it they are
    printed_cells: dict[str, Area] = field(default_factory=dict)  # of each table, by its title
    pieces: dict[str, Pieces] = field(default_factory=dict)  # blocks wider than a sheet

    @property
    def n_given(self) -> int:
        """How many words the prompt has, where the sentence goes on by itself."""
        return self.passage.n_prompt if self.plan.generates and not self.live else 0

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

    @cached_property
    def order(self) -> Mapping[str, int]:
        """When each block is computed, by its name."""
        return {name: k for k, name in enumerate(self.graph.blocks)}

    def lay(self, place: Place, style: str) -> None:
        """Put a table where it is to stand; or a block of the model whose numbers are typed."""
        if place.block.kind == "table" or place.block.computed:
            super().lay(place, style)
        else:
            self.places[place.block.name] = place
            self.sheet(place.sheet).regions.append((place, style))

    def named(self, name: str) -> Area:
        """A named single cell, for formulas."""
        where, row, col = self.named_cells[name]
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

        In a large workbook that is what counts, for such a column's formula is held once: rows that
        do not move down the column are fixed there. Among very many formulas, see `compact`, a
        matrix's column is picked by how far down the formula stands, so that those are alike too.
        """
        if block.expression is not None:
            return super().formulas(block)
        here = self.places[block.name].sheet
        generates = self.plan.generates and not self.live
        ways = self._down(block) if self.plan.shares_formulas else {}
        if any(b.name in self.pieces and "?" in subscript for _, subscript, b in block.operands):
            return lambda i, j: self._lookup(block, i, j)

        def fixed(operand: Block) -> Fixed:
            return "rows" if generates or ways.get(operand.name) == "still" else ""

        def number(operand: Block, rect: Rect, text: str) -> str:
            return f"IFERROR(N({text}),0)" if rect.size == 1 and self._typed(operand) else text

        def where(operand: Block, rect: Rect) -> str:
            place, area = self.piece(operand, rect)
            picked = ways.get(operand.name) == "picked" and self.compact
            if picked and operand.name not in self.pieces:
                whole = place.rect(rect._replace(left=0, right=operand.shape[1]))
                return self._picked(block, address(place.sheet, whole, here, "all"), rect)
            return number(operand, rect, address(place.sheet, area, here, fixed(operand)))

        def line(operand: Block, axis: int, at: int) -> list[str] | None:
            apart = operand.name in self.pieces or ways.get(operand.name) == "picked"
            if apart or self._typed(operand):
                return None
            place, (top, bottom, left, right) = self.places[operand.name], operand.whole
            cells = Rect(top, bottom, at, at + 1) if axis else Rect(at, at + 1, left, right)
            return addresses(place.sheet, place.rect(cells), here, fixed(operand))

        def runs_down(operand: Block, axis: int) -> bool:
            return self.places[operand.name].turned == (axis == 1)

        return Formulas(
            block, self.notation(here), where, runs_down, line, partial(self._frame, block)
        )

    def _frame(self, block: Block, single: tuple[bool, ...]) -> str:
        """What a block's formula stands within: where it reads a range with a cell that holds an
        error, or divides by what is typed, it may count as nothing; where it looks up a text, too.
        """
        read = zip(block.operands, single, strict=True)
        ranges = [subscript for (_, subscript, b), one in read if not one and self._typed(b)]
        if not ranges:
            divides = block.op in DIVIDING and any(self._typed(b) for _, _, b in block.operands)
            return "IFERROR({},0)" if divides else "{}"
        looked_up = any("?" in subscript for subscript in ranges)
        return "IFERROR(N({}),0)" if looked_up else "IFERROR({},0)"

    def _typed(self, block: Block) -> bool:
        """Whether a block's cells may hold what somebody typed, which may be a text or an error:
        alone it counts as 0, as a text does in a sum of products. Of very many formulas each would
        grow."""
        return block.kind in ("weight", "setting") and not block.computed and not self.compact

    @cached_property
    def compact(self) -> bool:
        """Whether there are so many formulas that their number decides about memory.

        gnumeric's INDEX picks no whole columns: `verify` gives it their addresses.
        """
        n_formulas = sum(b.n_cells for b in self.graph if b.op)
        return self.plan.shares_formulas and n_formulas > self.plan.limits.formulas

    def _picked(self, block: Block, matrix: str, rect: Rect) -> str:
        """The column of a matrix for a row of a block: `INDEX(W,0,ROWS($A$9:$A12))`.

        The label column is counted: a formula that names its own cell would look circular. ROW()
        is no number but an array inside SUMPRODUCT.
        """
        place = self.places[block.name]
        label, first = column(place.left - 1), place.top + 1
        row = 1 if rect.bottom - rect.top == 1 else 0
        return f"INDEX({matrix},{row},ROWS(${label}${first}:${label}{first + rect.left}))"

    def shared(self, block: Block) -> bool:
        """Whether the cells of a column share one formula, which is then written once.

        A shared formula names no other sheet: Excel does not move such a reference ([MS-XLS]
        2.5.198.118 forbids it).
        """
        place = self.places[block.name]
        if not self.plan.shares_formulas or block.partial or place.size[0] == 1:
            return False
        ways = self._down(block)
        here = all(self.places[name].sheet == place.sheet for name in ways)
        return here and all(way in ("still", "moving") for way in ways.values())

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
