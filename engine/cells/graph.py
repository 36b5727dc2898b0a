"""Graphs of blocks, and single cells as views of them.

A graph lists its blocks so that each comes after those it reads; blocks are never changed after
they are added. Changed values live in evaluators; the graph has the values of its inputs as given.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any, Protocol, Self

import numpy as np

from cellformer.engine.cells import formula, language, notebook
from cellformer.engine.cells.access import (
    EVERYTHING,
    Mask,
    Rect,
    Span,
    Subscript,
    dirties,
    shift,
    shifted,
)
from cellformer.engine.cells.arguments import explained_class
from cellformer.engine.cells.arrays import Arrays, frozen
from cellformer.engine.cells.block import Axes, Block, Kind
from cellformer.engine.cells.errors import InputError, UnknownNameError, sides
from cellformer.engine.cells.expression import Area, Expression
from cellformer.engine.cells.frame import Frame
from cellformer.engine.cells.functions import N, harmless
from cellformer.engine.cells.op import Op
from cellformer.engine.cells.stored import Stored
from cellformer.engine.cells.table import Readings, compute, pending
from cellformer.engine.cells.texts import cut
from cellformer.engine.cells.values import is_finite, is_whole


class Sizes(Protocol):
    """The lengths of weights' axes, for graphs without weights."""

    def size(self, axis: str) -> int:
        """The length of an axis by its name; 1 for the nameless one."""


class LaidOut(Protocol):
    """A workbook, as far as a cell needs it: the places of blocks."""

    def formulas(self, block: Block) -> formula.Formulas:
        """The A1 formulas of a computed block."""


class Readable(Protocol):
    """Something with the values of blocks: a graph, or an evaluator."""

    def __getitem__(self, name: str, /) -> np.ndarray:
        """A block's values, read-only."""


@explained_class
@dataclass(frozen=True)
class Cell:
    """One cell of a block: a view, made on demand.

    >>> cell = cf.graph("cat-sat", "the cat sat").cell("logits", 2, 6)
    >>> cell
    <Cell logits[2,6] = 3.07703: resid_final[2,:]·W_U[:,6]>
    >>> cell.precedents[0].name, cell.dependents[0].name
    ('resid_final[2,0]', 'softmax.row_max[2,0]')
    """

    graph: "Graph"
    block: Block
    i: int
    j: int
    values: Readable = field(repr=False)

    @property
    def name(self) -> str:
        return f"{self.block.name}[{self.i},{self.j}]"

    @property
    def value(self) -> float | str | bool:
        """Its value: a number, or in tables also a text or a truth value."""
        value = self.values[self.block.name][self.i, self.j]
        return value if isinstance(value, str | bool) else float(value)

    @property
    def formula(self) -> str | None:
        """The formula with names, `q[2,:]·k[1,:] × scale`; None if the cell holds a value."""
        return formula.readable(self.block, self.i, self.j) if self.block.computed else None

    def a1(self, book: LaidOut) -> str | None:
        """The formula as in the workbook; None if the cell holds a value."""
        return "=" + book.formulas(self.block)(self.i, self.j) if self.block.computed else None

    def __repr__(self) -> str:
        formula = self.formula
        return f"<Cell {self._with_value}{cut(f': {formula}') if formula else ''}>"

    @property
    def _with_value(self) -> str:
        value = self.value
        told = f"{value:.6g}" if isinstance(value, float) else cut(repr(value), 40)
        return f"{self.name} = {told}"

    def _repr_html_(self) -> str:
        """A card with its formula, the cells that it reads and those that read it."""
        reads, is_read = (
            [cell._with_value for cell in cells] for cells in (self.precedents, self.dependents)
        )
        facts = (("formula", self.formula or ""), ("reads", reads), ("is read by", is_read))
        return notebook.card(self._with_value, [(name, told) for name, told in facts if told])

    @property
    def precedents(self) -> list["Cell"]:
        """The cells that this cell's formula reads."""
        found = self.block.reads(Rect(self.i, self.i + 1, self.j, self.j + 1))
        cells = dict.fromkeys((block.name, *at) for block, rect in found for at in rect.cells())
        return [Cell(self.graph, self.graph[name], i, j, self.values) for name, i, j in cells]

    @property
    def dependents(self) -> list["Cell"]:
        """The cells whose formulas read this cell."""
        here = Rect(self.i, self.i + 1, self.j, self.j + 1)
        found = dict.fromkeys(
            (reader, i, j)
            for reader, subscript in self.graph.readers[self.block.name]
            for i, j in dirties(subscript, here, reader.shape, reader.mask).cells()
        ) | dict.fromkeys(
            (reader, i, j)
            for reader in self.graph.tables
            for i, j in self.graph.readings(reader).of(self.block.name, here)
        )
        return [Cell(self.graph, b, i, j, self.values) for b, i, j in found if b.has(i, j)]


Cells = Callable[[Any, Any], Expression]  # what the cells of a table are, by row and column


@explained_class
class Graph:
    """Blocks in the order of computation, with the values of the input blocks.

    `weight` takes values from `weights` by the block's full name (without weights, zeros of the
    shape that `sizes` says); `at` gives the same graph with a prefix for names, so that a model's
    functions name only leaves.

    >>> graph = cf.graph("cat-sat", "the cat sat")
    >>> graph.values["probs"].shape
    (3, 20)
    >>> graph.cell("blocks.0.attn.h0.scores", 2, 1).formula
    'q[2,:]·k[1,:] × scale'
    >>> [block.name for block in graph.find("*.pattern")]
    ['blocks.0.attn.h0.pattern']
    >>> graph.frame("blocks.0.attn.h0.pattern").rows
    ['0 the', '1 cat', '2 sat']
    """

    iterates = False  # whether its cells read each other in circles, see `Book`

    def __init__(
        self, sizes: Sizes | None = None, weights: Mapping[str, np.ndarray] | None = None
    ) -> None:
        self.sizes = sizes
        self.weights = weights
        self._begin()

    def _begin(self) -> None:
        self.blocks: dict[str, Block] = {}
        self.gradients: dict[str, Block] = {}  # by a block's name, of one backward pass
        self.readers: dict[str, list[tuple[Block, Subscript]]] = {}
        self._inputs: dict[str, np.ndarray] = {}
        self._values: dict[str, np.ndarray] = {}
        self._readings: dict[str, Readings] = {}
        self._prefix = ""

    @property
    def prefix(self) -> str:
        """The prefix of every name that is added through it."""
        return self._prefix

    def __repr__(self) -> str:
        names = list(self.blocks)
        ends = f", {names[0]} to {names[-1]}" if names else ""
        return f"<{type(self).__name__}: {len(names)} blocks{cut(ends)}>"

    def _repr_html_(self) -> str:
        """The names of its blocks, as a folded tree."""
        blocks = {block.name: f"{block.sides}, {block.holds}" for block in self}
        return notebook.tree(f"{type(self).__name__} of {len(blocks)} blocks", blocks)

    def empty(self) -> Self:
        """A graph like this one, without blocks."""
        found = copy(self)
        found._begin()
        return found

    def at(self, prefix: str) -> Self:
        """This graph, with `prefix.` before every name that is added through it."""
        scoped = copy(self)
        scoped._prefix = f"{self._prefix}{prefix}."
        return scoped

    def input(self, name: str, values: Any, axes: Axes = ("", ""), kind: Kind = "setting") -> Block:
        """Add a block that holds values: [rows, columns], or a single number."""
        array = values
        if not isinstance(values, Stored):
            held = np.asarray(values)
            kind_of = np.float64 if held.dtype.kind in "fiub" else object  # texts stay as they are
            if held.ndim > 2:
                raise InputError(
                    f"{name} has shape {sides(held.shape)}; give an array with only rows and "
                    "columns"
                )
            array = frozen(np.atleast_2d(held.astype(kind_of, copy=False)))
        rows, cols = array.shape
        block = self.add(Block(self._prefix + name, (rows, cols), axes, kind))
        self._inputs[block.name] = array
        return block

    def take(self, block: Block, graph: "Graph") -> Block:
        """Add a block as another graph has it, name and all, with its values if it holds some."""
        if not block.computed:
            self._inputs[block.name] = graph.inputs[block.name]
        return self.add(block)

    @property
    def inputs(self) -> Arrays[np.ndarray]:
        """The values of input blocks, by name, read-only: see `fill`."""
        return Arrays(self._inputs)

    def fill(self, name: str, values: np.ndarray) -> None:
        """Replace the values of an input, [rows, columns]: everything computed from it is
        discarded."""
        values = np.asarray(values)
        if values.shape != self[name].shape:
            raise InputError(
                f"{name} has shape {sides(self[name].shape)}, but the given values have shape "
                f"{sides(values.shape)}"
            )
        self._inputs[name] = frozen(values)
        self._values.clear()

    def varied(self, inputs: Mapping[str, np.ndarray]) -> Self:
        """The same blocks with other values of some inputs, which this graph does not get."""
        found = copy(self)
        found._inputs = {**self._inputs, **{name: frozen(x) for name, x in inputs.items()}}
        found._values = {}
        return found

    def weight(self, name: str, *axes: str) -> Block:
        """Add the weight of that name; a vector (one axis) is a block of one row."""
        if len(axes) not in (1, 2):
            raise InputError(
                f"{name} has {len(axes)} axes; give one axis for a vector, or two axes (rows, "
                "columns) for a matrix"
            )
        rows, cols = axes if len(axes) == 2 else ("", *axes)
        if self.weights is not None:
            values = self.weights[self._prefix + name]
        elif self.sizes is not None:
            values = np.broadcast_to(0.0, (self.sizes.size(rows), self.sizes.size(cols)))
        else:
            raise InputError(
                f"the graph has no values and no shape for the weight {name}; give the graph "
                "weights or sizes"
            )
        return self.input(name, values, (rows, cols), "weight")

    def block(
        self,
        name: str,
        op: Op,
        *args: Any,
        mask: Mask | None = None,
        pair: tuple[int, int] = (0, 0),
        nth: int = 0,
        **kw: Any,
    ) -> Block:
        """Add a computed block. `mask` is by default the operands'; `pair` is h and n of `~h/n`,
        and `nth` the n of `@n`."""
        apart, n_paired = pair
        full = {"~": f"~{apart}/{n_paired}", "@": f"@{nth}"}
        given = op.bind(args, kw)
        lengths, counts = Counter(p for p, _ in given), Counter[str]()
        operands: tuple[tuple[str, Subscript, Block], ...] = ()
        for p, b in given:
            numbered = {"@#": f"@{counts[p]}", "i-#": shifted("i", counts[p] + 1 - lengths[p])}
            down, across = ((full | numbered).get(code, code) for code in op.subscripts[p])
            operands += ((p, (down, across), b),)
            counts[p] += 1
        sizes: dict[str, tuple[int, str]] = {}
        for _, subscript, operand in operands:
            for code, n, axis in zip(subscript, operand.shape, operand.axes, strict=True):
                code = "i" if shift(code) else code
                if sizes.setdefault(code, (n, axis))[0] != n and code in "ij:":
                    raise InputError(
                        f"{self._prefix}{name}: {operand.name} has size {n}, which does not fit "
                        f"{sizes}"
                    )
        (rows, row_axis), (cols, col_axis) = sizes.get("i", (1, "")), sizes.get("j", (1, ""))
        if mask is None:
            partial = [b.mask for _, _, b in operands if b.partial]
            mask = partial[0] if partial else EVERYTHING
        name = self._prefix + name
        if any(op.subscripts[p][0] == "≤i" for p in op.itself) and not mask.before:
            raise InputError(
                f"{name}: a row must not read itself; give this block Mask(before=True)"
            )
        axes = (row_axis, col_axis)
        return self.add(Block(name, (rows, cols), axes, "computed", op, operands, mask))

    def table(
        self,
        name: str,
        shape: Span,
        expression: Cells,
        axes: Axes = ("", ""),
        runs: bool = False,
    ) -> Block:
        """Add a block whose every cell has an expression of its own, by row and column.

        With `runs`, the expression also takes an array of columns, for the cells of a row at once.
        """
        name, made = self._prefix + name, self._harmless(expression)
        return self.add(Block(name, shape, axes, "table", expression=made, runs=runs))

    def add_tables(self, shape: Span, formulas: Mapping[str, Cells], axes: Axes = ("", "")) -> None:
        """Add tables of one shape, with their formulas by name."""
        for name, cells in formulas.items():
            self.table(name, shape, cells, axes)

    def follow(self, name: str, expression: Cells) -> Block:
        """Give an input's cells expressions. Their old values become initial values, so that the
        cells may read results computed from them."""
        self.blocks[name] = replace(self[name], expression=self._harmless(expression))
        return self[name]

    def follow_all(self, formulas: Mapping[str, Cells]) -> None:
        """Give the cells of several inputs formulas, by their names."""
        for name, cells in formulas.items():
            self.follow(name, cells)

    def _harmless(self, expression: Cells) -> Cells:
        """Wrap cells that read typed values: a typed error counts as 0, and so does a text that a
        cell would only copy, where numbers are expected.

        Cells of a circular reference may be errors temporarily: those of a graph that `iterates`
        are left unchanged. Whenever a cell is made, its texts are in the language that is current
        now.
        """
        words = language.current()

        def cell(i: Any, j: Any) -> Expression:
            with language.speaking(words):
                made = expression(i, j)
            if self.iterates or isinstance(j, np.ndarray):  # a run: its cells are asked one by one
                return made
            read = (area.grid for area in made.areas())
            typed = [grid for grid in read if isinstance(grid, Block) and not grid.computed]
            if typed and isinstance(made, Area) and self.inputs[typed[0].name].dtype != object:
                made = N(made)
            return harmless(made) if typed else made

        return cell

    @property
    def tables(self) -> list[Block]:
        """The blocks whose cells each have an expression of their own."""
        return [block for block in self if block.expression is not None]

    def readings(self, block: Block) -> Readings:
        """The cells that a table's cells read."""
        if block.name not in self._readings:
            self._readings[block.name] = Readings(block)
        return self._readings[block.name]

    def copy_with(self, others: Mapping[str, Block], among: Iterable[Block] | None = None) -> None:
        """Copy every block that depends on some blocks, with `others` (by name) in their places and
        under this graph's prefix; with `among`, only those blocks are copied. An axis as long as
        the rows of a replaced block takes the new block's length."""
        copies, added = dict(others), list(others.values())
        once = [block for block in self if block not in added] if among is None else list(among)
        rows = {self[name].axes[0]: (x.shape[0], x.axes[0]) for name, x in others.items()}
        for block in once:
            if not any(b.name in copies for _, _, b in block.operands):
                continue
            sides = zip(block.shape, block.axes, strict=True)
            (n, down), (m, across) = (rows.get(axis, (n, axis)) for n, axis in sides)
            operands = tuple((p, s, copies.get(b.name, b)) for p, s, b in block.operands)
            name, axes = self._prefix + block.name, (down, across)
            copy = replace(block, name=name, shape=(n, m), axes=axes, operands=operands)
            copies[block.name] = self.add(copy)

    def before(self, of: Block) -> list[Block]:
        """The blocks that a block is computed from, in the order of computation, and last the
        block."""
        needed = {of.name}
        for block in reversed(list(self)):
            if block.name in needed:
                needed.update(b.name for _, _, b in block.operands)
        return [block for block in self if block.name in needed]

    def after(self, names: Collection[str], held: Collection[str] = ()) -> set[str]:
        """The names of the blocks that are computed from some blocks, not through held ones."""
        found = set(names)
        for block in self:
            if block.name not in held and any(b.name in found for _, _, b in block.operands):
                found.add(block.name)
        return found.difference(names)

    def add(self, block: Block) -> Block:
        """Add a finished block."""
        if block.name in self.blocks:
            raise InputError(f"a block {block.name} exists already; choose another name")
        self.blocks[block.name] = block
        self.readers[block.name] = []
        for _, subscript, operand in block.sources:
            self.readers[operand.name].append((block, subscript))
        return block

    def find(self, pattern: str) -> list[Block]:
        """The blocks whose names match a pattern for file names, such as `*.pattern`, in order."""
        return [block for block in self if fnmatchcase(block.name, pattern)]

    def frame(self, name: str, values: Readable | None = None) -> Frame:
        """A block's values with labels for its rows and columns: as computed once from the inputs,
        or as in `values`."""
        block, read = self[name], self.values if values is None else values
        rows, columns = (
            labels if len(labels) == n else range(n)
            for side, n in enumerate(block.shape)
            for labels in [self.labels(block.axes[side], side, read)]
        )
        try:
            return Frame(block, read[name], rows, columns)
        except KeyError:
            raise InputError(
                f"the values lack the block {name}; give the values of all blocks"
            ) from None

    def labels(self, axis: str, side: int, values: Readable) -> Sequence[str]:
        """Labels for the rows (side 0) or columns (side 1) that an axis has; () without any."""
        return ()

    def __getitem__(self, name: str) -> Block:
        if name not in self.blocks:
            raise UnknownNameError("block", name, self.blocks)
        return self.blocks[name]

    def __iter__(self) -> Iterator[Block]:
        return iter(self.blocks.values())

    @property
    def values(self) -> Arrays[np.ndarray]:
        """Every block's values, computed once from the inputs: float64 [rows, columns],
        read-only."""
        return Arrays(self.computed)

    @property
    def computed(self) -> dict[str, np.ndarray]:
        """The dict of these values, which grows with the graph, for reading cell by cell."""
        values = self._values
        if len(values) < len(self.blocks):
            fresh = [block for block in self if block.name not in values]
            for block in fresh:
                if block.op is None:
                    begun = self._inputs.get(block.name)
                    values[block.name] = pending(block) if begun is None else begun
            fresh = [block for block in fresh if block.name not in self._inputs]
            compute(fresh, values)
            for block in fresh:
                values[block.name].flags.writeable = False
        return values

    def last(self, name: str, inputs: Mapping[str, np.ndarray] | None = None) -> np.ndarray:
        """The values of a block that an op computes, without tables, with other values of some
        inputs if given; values of earlier blocks are freed when nothing reads them any more."""
        blocks = self.before(self[name])
        values: dict[str, np.ndarray] = self.inputs | (inputs or {})
        last_reader = {b.name: block for block in blocks for _, _, b in block.operands}

        def let_go(block: Block) -> None:
            for _, _, operand in block.operands:
                if last_reader[operand.name] is block:
                    values.pop(operand.name, None)

        compute(blocks, values, let_go)
        return values[name]

    def cell(self, name: str, i: int, j: int) -> Cell:
        """The cell at row i and column j of a block. Raises InputError if there is none."""
        block = self[name]
        self.check(block, i, j)
        return Cell(self, block, i, j, self.values)

    def check(self, block: Block, i: int, j: int) -> None:
        """Raise InputError unless `block` has a cell at row i and column j."""
        rows, cols = block.shape
        if not (is_whole(i) and is_whole(j)):
            raise InputError(
                f"{block.name} has no cell [{i},{j}]: give a row and a column as whole numbers, "
                "counted from 0"
            )
        if not (0 <= i < rows and 0 <= j < cols):
            raise InputError(
                f"{block.name} has no cell [{i},{j}]: rows run from 0 to {rows - 1}, "
                f"columns from 0 to {cols - 1}"
            )
        if not block.has(i, j):
            raise InputError(
                f"{block.name}[{i},{j}] is blank: query {i} does not see key {j} (causal mask)"
            )

    def check_value(self, block: Block, i: int, j: int, value: float | str) -> None:
        """Raise InputError unless a value is valid for a cell: finite, and for an id within its
        table."""
        self.check(block, i, j)
        if isinstance(value, str):
            if not isinstance(self.values[block.name][i, j], str):
                raise InputError(f"{block.name}[{i},{j}]: {value!r} is not a number")
            return
        if not is_finite(value):
            given = value if isinstance(value, float) else "this"
            raise InputError(f"{block.name}[{i},{j}]: {given} is not a finite number")
        if block.kind == "ids" and self._tables(block):
            table, n = self.looked_up(block)
            if not (0 <= value < n and value == int(value)):
                raise InputError(
                    f"{block.name}[{i},{j}]: {value:g} is not an id of {table.name}; ids are "
                    f"whole numbers from 0 to {n - 1}"
                )

    def looked_up(self, ids: Block) -> tuple[Block, int]:
        """The block that ids are looked up in, and its number of entries."""
        return self._tables(ids)[0]

    def _tables(self, ids: Block) -> list[tuple[Block, int]]:
        """The blocks in which ops look up ids, and their numbers of entries. Blocks for cells of
        tables alone are left out."""
        return [
            (table, table.shape[subscript.index("?")])
            for reader, _ in self.readers[ids.name]
            for _, subscript, table in reader.operands
            if "?" in subscript
        ]

    def parse(self, text: str) -> tuple[Block, int, int]:
        """The cell named by `name[i,j]`. Raises InputError if there is none."""
        match = re.fullmatch(r"\s*([\w.]+)\s*\[\s*(\d{1,18})\s*,\s*(\d{1,18})\s*\]\s*", text)
        if match is None:
            name = text.strip()
            one = name in self.blocks and self[name].shape == (1, 1)
            example = f"{name}[0,0]" if one else "logits[2,5]"
            raise InputError(f"{text!r} does not name a cell; write a cell such as {example}")
        block = self[match[1]]
        i, j = int(match[2]), int(match[3])
        self.check(block, i, j)
        return block, i, j
