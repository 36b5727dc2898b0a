"""The book of a model: its passage, its words, and the formulas of its blocks."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, NamedTuple

from cellformer.engine.cells.access import Rect
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.expression import Area, Fixed
from cellformer.engine.cells.formula import Formulas
from cellformer.engine.models import ops
from cellformer.engine.models.generate import Passage
from cellformer.engine.models.model import Model
from cellformer.engine.studies.lens import Views
from cellformer.engine.text.tokenizer import Characters
from cellformer.exporters.compose.address import address, addresses, column
from cellformer.exporters.compose.book import Book, Place
from cellformer.exporters.compose.story import Chosen, Printed
from cellformer.exporters.model.plan import WHOLE, Plan

DIVIDING = (ops.reciprocal, ops.soft_cap)  # by what is typed, which may count as 0


class Pieces(NamedTuple):
    """A block split over several sheets, some words on each; `places` has the pieces."""

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
    words: Sequence[str] = ()  # what words of its vocabulary mean, in lines
    printed_cells: dict[str, Area] = field(default_factory=dict)  # of each table, by its title
    pieces: dict[str, Pieces] = field(default_factory=dict)  # blocks wider than a sheet
    standing: dict[str, Any] = field(default_factory=dict)  # block -> its sheet, by `sheet_of`

    @property
    def n_given(self) -> int:
        """The number of words of the prompt, if the sentence continues itself."""
        return self.passage.n_prompt if self.plan.generates and not self.live else 0

    @property
    def live(self) -> tuple[str, ...]:
        """The parts that recompute; (): all."""
        return self.plan.live

    @property
    def by_hand(self) -> bool:
        """Whether weights stand beside the vectors that they multiply."""
        return self.plan.by_hand

    def of_words(self, words: str, letters: str) -> str:
        """A text about words; of a vocabulary of characters, the one about `letters`."""
        return letters if isinstance(self.model.vocabulary, Characters) else words

    @property
    def blocks(self) -> list[Block]:
        """The blocks of the model and of its views, without pages' tables."""
        return [block for block in self.graph if block.kind != "table"]

    @cached_property
    def order(self) -> Mapping[str, int]:
        """The position of each block in the order of computation, by name."""
        return {name: k for k, name in enumerate(self.graph.blocks)}

    def lay(self, place: Place, style: str) -> None:
        """Place a table; or a block of the model with typed numbers."""
        if place.block.kind == "table" or place.block.computed:
            super().lay(place, style)
        else:
            self.places[place.block.name] = place
            self.sheet(place.sheet).regions.append((place, style))

    def named(self, name: str) -> Area:
        """A cell with a name, for formulas."""
        where, row, col = self.named_cells[name]
        return self.sheet(where)[row, col]

    def locate(self, area: Area) -> tuple[str, Rect]:
        """The sheet and the rectangle of an area; for a whole split block, its first piece."""
        if area.grid.name not in self.pieces:
            return super().locate(area)
        block = self.graph[area.grid.name]
        if area.rect == block.whole:
            first = self.places[block.name]
            return first.sheet, first.rect(first.block.whole)
        place, rect = self.piece(block, area.rect)
        return place.sheet, rect

    def piece(self, block: Block, rect: Rect) -> tuple[Place, Rect]:
        """The place of a rectangle of a block; in a split block, within one piece."""
        place = self.places[block.name]
        if self.pieces and block.name in self.pieces:
            step, names = self.pieces[block.name]
            k = (rect.top if place.turned else rect.left) // step
            down, right = (k * step, 0) if place.turned else (0, k * step)
            place = self.places[names[k]]
            rect = Rect(rect.top - down, rect.bottom - down, rect.left - right, rect.right - right)
        return place, place.rect(rect)

    def _lookup(self, block: Block, i: int, j: int) -> str:
        """The formula that looks up an id in a split table."""
        (_, _, ids), (_, _, table) = block.operands
        step, names = self.pieces[table.name]
        ident = self.address(ids[i, 0], self.places[block.name].sheet)
        pieces = (self.locate(self.places[name].block.area) for name in names)
        rows = [
            address(sheet, rect._replace(top=rect.top + j, bottom=rect.top + j + 1))
            for sheet, rect in pieces
        ]
        piece = f"CHOOSE(INT({ident}/{step})+1,{','.join(rows)})"
        return f"INDEX({piece},1,MOD({ident},{step})+1)"

    def formulas(self, block: Block) -> Callable[[int, int], str]:
        """The A1 formulas of a placed, computed block.

        LibreOffice computes cells of a column that share a formula together, in threads; if a
        column of tokens depends on the one before it, it then sees circular references that do not
        exist. A fixed row (`B$7`) makes every cell's formula different.

        In a large workbook, sharing matters more, since a column's formula is then held once: rows
        that do not change down the column are fixed there. With very many formulas (see `compact`),
        a matrix's column is picked by the formula's own row, so that those are shared too.
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
            sheet, area = self.read_at(Area(operand, rect))
            place = self.places[operand.name]
            picked = ways.get(operand.name) == "picked" and self.compact
            if picked and operand.name not in self.pieces:
                whole = place.rect(rect._replace(left=0, right=operand.shape[1]))
                return self._picked(block, address(place.sheet, whole, here, "all"), rect)
            return number(operand, rect, address(sheet, area, here, fixed(operand)))

        def line(operand: Block, axis: int, at: int) -> list[str] | None:
            apart = operand.name in self.pieces or ways.get(operand.name) == "picked"
            if apart or self._typed(operand) or operand.name in self.blanks:
                return None
            place, (top, bottom, left, right) = self.places[operand.name], operand.whole
            cells = Rect(top, bottom, at, at + 1) if axis else Rect(at, at + 1, left, right)
            return addresses(place.sheet, place.rect(cells), here, fixed(operand))

        def runs_down(operand: Block, axis: int) -> bool:
            return self.places[operand.name].turned == (axis == 1)

        return Formulas(
            block,
            self.notation(here),
            where,
            runs_down,
            line,
            partial(self._frame, block),
        )

    def _frame(self, block: Block, single: tuple[bool, ...]) -> str:
        """The wrapper of a block's formulas: IFERROR if it reads a range with possible errors, or
        divides by a typed number; N() if it looks up a possible text."""
        read = zip(block.sources, single, strict=True)
        ranges = [subscript for (_, subscript, b), one in read if not one and self._typed(b)]
        if not ranges:
            divides = block.op in DIVIDING and any(self._typed(b) for _, _, b in block.sources)
            return "IFERROR({},0)" if divides else "{}"
        looked_up = any("?" in subscript for subscript in ranges)
        return "IFERROR(N({}),0)" if looked_up else "IFERROR({},0)"

    def _typed(self, block: Block) -> bool:
        """Whether a block's cells may hold a typed text or error: alone it counts as 0, as a text
        does in a sum of products. Not in very large workbooks, whose formulas would all grow."""
        return block.kind in ("weight", "setting") and not block.computed and not self.compact

    @cached_property
    def compact(self) -> bool:
        """Whether there are so many formulas that sharing them decides about memory.

        gnumeric's INDEX cannot give whole columns: `verify` gives it their addresses.
        """
        n_formulas = sum(b.n_cells for b in self.graph if b.op)
        return self.plan.shares_formulas and n_formulas > self.plan.limits.formulas

    def _picked(self, block: Block, matrix: str, rect: Rect) -> str:
        """The column of a matrix for a row of a block: `INDEX(W,0,ROWS($A$9:$A12))`.

        Rows of the label column are counted, since a formula that names its own cell would look
        circular. ROW() is not a number but an array inside SUMPRODUCT.
        """
        place = self.places[block.name]
        label, first = column(place.left - 1), place.top + 1
        row = 1 if rect.bottom - rect.top == 1 else 0
        return f"INDEX({matrix},{row},ROWS(${label}${first}:${label}{first + rect.left}))"

    def shared(self, block: Block) -> bool:
        """Whether the cells of a column share one formula, which is then written once.

        A shared formula refers to no other sheet: Excel does not adjust such references ([MS-XLS]
        2.5.198.118 forbids them).
        """
        place = self.places[block.name]
        if not self.plan.shares_formulas or block.partial or place.size[0] == 1 or self.blanks:
            return False
        ways = self._down(block)
        here = all(self.places[name].sheet == place.sheet for name in ways)
        return here and all(way in ("still", "moving") for way in ways.values())

    def _down(self, block: Block) -> dict[str, str]:
        """The change of each operand from a row of the block to the next: "still", none;
        "moving", its next row; "picked", its next column; "", otherwise."""
        turned = self.places[block.name].turned
        down = "j" if turned else "i"
        ways: dict[str, str] = {}
        for _, codes, operand in block.operands:
            crosswise = self.places[operand.name].turned
            grows = down == "i" and any(code in ("≤i", "≥i") for code in codes)
            if grows or any(code[0] == "~" for code in codes):
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
