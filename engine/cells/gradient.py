"""Gradients: how a single cell depends on every other, as blocks of the same graph.

`backward(graph, of)` goes through the ops from the last to the first (reverse mode; Griewank and
Walther 2008, chapter 3). Each block that `of` depends on gets a block `gradient.<name>` of its own
shape: d of / d each cell. These are blocks like any other: value, formula, precedents, recompute
and place follow from their formulas, which `derivatives` makes from those of the forward pass.

A reader z of x adds to each cell of x the sum, over all cells of z that read it, of

    gradient of z × derivative of z's formula by that cell.

The sum runs over the indices of z that the cell of x does not determine: in `z = x·W`, x[i, r] is
read by the whole row i of z, so the sum is a product with the r-th row of W. A query reads keys up
to itself (`≤i`), so a key gets its gradient from the queries that see it (`≥i`); the row of a token
that is read repeatedly collects all gradients. A sum runs over one line, or over the product of
two; anything more complicated becomes a block of its own first, `gradient.<reader>.part`.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from cellformer.engine.cells.access import ALONG, EVERYTHING, Mask, shift, shifted
from cellformer.engine.cells.block import Axes, Block
from cellformer.engine.cells.derivatives import (
    derivatives,
    over,
    own,
    plus,
    product,
    reads,
    shared,
    simplified,
    times,
)
from cellformer.engine.cells.errors import InputError
from cellformer.engine.cells.expression import (
    Call,
    Constant,
    Expression,
    Nth,
    Read,
    ReadKey,
    rebuilt,
)
from cellformer.engine.cells.functions import IF, MAX, SUM, SUMIF, SUMPRODUCT, Place
from cellformer.engine.cells.graph import Graph
from cellformer.engine.cells.op import Op

GAIN = "gain"  # the leaf of what `to_first_order` adds
SMALLEST = 1e-24  # a square below it counts as this: a secant's operand may be 0
Extent = tuple[int, str]  # how many places an index has, and of what axis


def backward(
    graph: Graph,
    of: Block,
    to: Iterable[Block] | None = None,
    held: Collection[Block] = (),
    name: str = "gradient",
    tokens: Collection[str] = (),
    secants: Collection[Block] = (),
) -> dict[str, Block]:
    """Add the gradient of the single cell `of` [1, 1] by the blocks `to` (default: all weights),
    and by all blocks between: block name -> its gradient, of the same shape.

    A gradient is called `gradient.<name>`, after another `name` if there is one; but a block whose
    only reader passes it on unchanged, as a sum does its terms, shares that reader's gradient.
    Blocks that `of` does not depend on have none. The blocks `to` count as independent of each
    other, and blocks that are `held` as constants, as do ids, settings, and tables' cells.

    `secants` are blocks that change each number of their operand by itself, as activation functions
    do: such a block counts as its operand times the ratio of the two, held as it is.

    `tokens` names the axes of tokens, which run across sheets; others run down. Then the two
    lines of a product run the same way: a matrix, or a pattern of tokens by tokens, is read along
    one axis alone, and along the other a transposed copy is read, `turned.<name>`.

    Raises InputError if `of` is not one computed cell.
    """
    if of.op is None or of.shape != (1, 1):
        rows, cols = of.shape
        raise InputError(
            f"{of.name} has {rows} x {cols} cells"
            + ("" if of.op else ", and no operation computes them")
            + "; a gradient needs one computed cell"
        )
    wanted = [b for b in graph if b.kind == "weight"] if to is None else list(to)
    found = _Backward(graph, name, tokens, {block.name for block in secants}).run(of, wanted, held)
    graph.gradients |= found
    return found


def to_first_order(
    graph: Graph,
    instead: Mapping[Block, Block],
    name: str = "gradient",
    tokens: Collection[str] = (),
) -> dict[str, Block]:
    """Add the change of `backward`'s cell, by its gradient, if a single row of a block had its
    value from another block: block name -> `gradient.<name>.gain`, [n_rows, 1].

    `name` and `tokens` are those that `backward` was given.
    """
    going, gains = _Backward(graph, name, tokens), {}
    for block, other in instead.items():
        line = "i", "≤i" if block.partial else ":"
        slope, own, new = (Read(x, line) for x in (graph.gradients[block.name], block, other))
        gain = SUMPRODUCT(slope, new) - SUMPRODUCT(slope, own)
        at = f"{name}.{block.name}.{GAIN}", (block.shape[0], 1), (block.axes[0], "")
        gains[block.name] = going._add(*at, gain, partial=False, mask=EVERYTHING)
    return gains


@dataclass
class _Backward:
    """One backward pass under construction."""

    graph: Graph
    name: str
    tokens: Collection[str]
    secants: Collection[str] = ()
    found: dict[str, Block] = field(default_factory=dict)  # block name -> its gradient
    stands: dict[Hashable, Read] = field(default_factory=dict)  # a formula's key -> where it stands
    settled: dict[Hashable, Read] = field(default_factory=dict)  # the same, of blocks added here
    itself: Block | None = None  # the gradient that is being made, if its rows read each other
    along: dict[str, set[int]] = field(default_factory=dict)  # block name -> axes it is read along

    def run(self, of: Block, wanted: list[Block], held: Collection[Block]) -> dict[str, Block]:
        """Every gradient, from the last block to the first."""
        readers = self._readers(of, {b.name for b in wanted}, {b.name for b in held})
        blocks = [block for block in self.graph if block.name in readers]
        self.found[of.name] = self.graph.input(f"{self.name}.{of.name}", 1.0)
        for block in reversed(blocks):
            if block.recurs:  # its rows read each other: so do its gradient's
                at = f"{self.name}.{block.name}", block.shape, block.axes
                self.itself = self.found[block.name] = Block(*at, "gradient")
            shares = [self._share(block, *reader) for reader in readers[block.name]]
            self.found[block.name] = self._sum(block, shares)
            self.itself = None
        return self.found

    def _readers(
        self, of: Block, wanted: Collection[str], held: Collection[str]
    ) -> dict[str, list[tuple[Block, Read, Expression]]]:
        """The readers of each block in between: what they read, and the derivative by it."""
        slopes: dict[str, dict[ReadKey, Expression]] = {name: {} for name in wanted}
        for block in self.graph:
            if not block.op or block.name in slopes or block.name in held:
                continue
            if any(b.name in slopes for _, _, b in block.operands):
                among = {*slopes, block.name}
                found = self._slopes(block).items()
                if known := {key: slope for key, slope in found if key[0].name in among}:
                    slopes[block.name] = known
        readers: dict[str, list[tuple[Block, Read, Expression]]] = {}
        for block in reversed(list(self.graph)):
            if block is of or block.name in readers:
                for key, slope in slopes.get(block.name, {}).items():
                    readers.setdefault(key[0].name, []).append((block, Read(*key), slope))
        return readers

    def _slopes(self, block: Block) -> dict[ReadKey, Expression]:
        """The derivatives of a block's formula by what it reads."""
        if block.name in self.secants:
            x, y = Read(block.operands[0][2], own(block)), Read(block, own(block))
            return {x.key: over(times(y, x), MAX(times(x, x), SMALLEST))}
        root, here = shared(block), Read(block, own(block))
        own_key = root.key
        self.stands.setdefault(own_key, here)
        return derivatives(root, lambda x: here if x.key == own_key else self.stands.get(x.key, x))

    def _share(
        self, x: Block, z: Block, read: Read, slope: Expression
    ) -> tuple[Expression, Mask | None]:
        """The amount that the reader z adds to the gradient of x, with the mask that it needs."""
        picked = [ids for ids in reads(slope) if "?" in read.at and ids.at == ("i", "j")]
        if picked:
            of_picked = self._of_picked if read.at[0] == "?" else self._of_picked_in_line
            return self._numbered(of_picked(x, z, read, *picked), read, x), None
        places = {"i": (z.shape[0], z.axes[0]), "j": (z.shape[1], z.axes[1])}
        if read.axis is not None:
            places["r"] = x.shape[read.axis], x.axes[read.axis]
        share = simplified(
            rebuilt(
                times(Read(self.found[z.name], own(z)), slope),
                lambda part: self._standing(part, z, places),
            )
        )
        where = {}  # index of z, or r -> index of x
        for new, code in zip("ij", read.at, strict=True):
            index = "r" if code in ALONG else "j" if code[0] == "~" else code
            if further := shift(code):
                where["i"] = shifted("i", -further)
            elif code[0] != "@":
                where[index] = code if code[0] == "~" else new
        for index in ("j", "i"):
            if index not in where and places[index][0] > 1:
                share = self._total(share, index, across(index, z, read, where), z, places)
                if index == "j" and "i" not in where:
                    share = self._settle(share, z, places)
        share = moved(share, where)
        if read.at[1] == "≤i" and not x.partial:  # only what is seen has a share
            args = f"{self.name}.{z.name}.part", x.shape, x.axes, share
            share = Read(self._add(*args, partial=True, mask=z.mask), own(x))
        return self._numbered(share, read, x), z.mask if z.mask.causal else None

    def _of_picked(self, x: Block, z: Block, read: Read, ids: Read) -> Expression:
        """The amount that a reader z adds to a cell of x if each cell of z picks a row by its
        own id: the sum over all cells of z with that id, row by row."""
        row = "j", ":"
        one = SUMIF(
            Read(ids.block, row),
            Read(self._numbers(x.shape[0], x.axes[0]), ("0", "i")),
            Read(self.found[z.name], row),
        )
        shape, axes = (x.shape[0], z.shape[0]), (x.axes[0], z.axes[0])
        part = self._add(f"{self.name}.{z.name}.part", shape, axes, one, False, EVERYTHING)
        return SUM(Read(part, ("i", ":")))

    def _of_picked_in_line(self, x: Block, z: Block, read: Read, ids: Read) -> Expression:
        """The same if each cell of z picks from the row of x that has the number of its own row,
        or of its own column."""
        line = ("i", ":") if read.at[0] == "i" else (":", "i")
        number = Read(self._numbers(x.shape[1], x.axes[1]), ("0", "j"))
        return SUMIF(Read(ids.block, line), number, Read(self.found[z.name], line))

    def _numbered(self, share: Expression, read: Read, x: Block) -> Expression:
        """The share of the rows or columns of x that a reader reads by their number."""
        for code, n, axis, index in zip(read.at, x.shape, x.axes, "ij", strict=True):
            if code[0] == "@" and n > 1:
                number = Read(self._numbers(n, axis), ("0", index))
                share = times(share, IF(number == int(code[1:]), 1, 0))
        return share

    def _standing(self, part: Expression, z: Block, places: dict[str, Extent]) -> Expression:
        """A part of a formula; if it runs along a line, or counts, the cell that holds it."""
        if isinstance(part, Place):
            number = self._numbers(part.block.shape[part.axis], part.block.axes[part.axis])
            return Read(number, ("0", "r"))
        if isinstance(part, Call | Nth) and any(x.axis is not None for x in reads(part)):
            known = self.stands.get(part.key)
            return self._settle(part, z, places) if known is None else known
        return part

    def _total(
        self, share: Expression, index: str, code: str, z: Block, places: dict[str, Extent]
    ) -> Expression:
        """The sum over an index of z: over one line, or over the product of two; other factors stay
        outside. Anything else under it is put into a block first, apart from indices r of a
        line."""
        inside, outside = split(share, lambda part: index in indices(part))
        factors: Sequence[Expression] = product(inside).over
        plain = not product(inside).under and all(
            isinstance(part, Read) and not shift(part.at[0]) for part in factors
        )
        if not plain or len(factors) > 2:
            parts = split(inside, lambda part: "r" in indices(part))
            factors = [
                self._settle(part, z, places) for part in parts if not isinstance(part, Constant)
            ]
        lines = [moved(cell, {index: code}) for cell in factors]
        return times(outside, SUMPRODUCT(*lines) if len(lines) == 2 else SUM(*lines))

    def _settle(self, part: Expression, z: Block, places: dict[str, Extent]) -> Read:
        """A read of a formula's value, from a block of its own; a single cell is read directly."""
        if isinstance(part, Read):
            return part
        key = part.key
        if key not in self.settled:
            used = [index for index in "ijr" if index in indices(part)]
            if len(used) > 2:
                raise NotImplementedError(
                    f"{z.name}: the derivative depends on the row, the column and a place in a "
                    "line at the same time. Compute the part that reads the line in a separate "
                    "block"
                )
            if len(used) < 2:
                used = [*used, "0"] if used == ["i"] else ["0", *used, "0"]
            rows, cols = used[:2]
            (n, down), (m, right) = (places.get(index, (1, "")) for index in (rows, cols))
            partial = z.partial and (rows, cols) == ("i", "j")
            name = f"{self.name}.{z.name}.part"
            inside = moved(part, {rows: "i", cols: "j"})
            block = self._add(name, (n, m), (down, right), inside, partial, z.mask)
            self.settled[key] = Read(block, (rows, cols))
        return self.settled[key]

    def _sum(self, block: Block, shares: list[tuple[Expression, Mask | None]]) -> Block:
        """The gradient of a block: the sum of all its readers' contributions."""
        own_mask = block.partial or (block.recurs and block.mask.causal)  # what it reads of itself
        masks = [block.mask] if own_mask else [mask for _, mask in shares if mask]
        mask = masks[0] if masks else EVERYTHING
        terms, name = [], f"{self.name}.{block.name}"
        for term, needed in shares:
            if needed not in (None, mask):
                part = self._add(
                    f"{name}.part", block.shape, block.axes, term, block.partial, needed
                )
                term = Read(part, own(block))
            terms.append(term)
        total = plus(*terms)
        if isinstance(total, Read) and total.at == own(block) and total.block.shape == block.shape:
            found: Block = total.block
            return found
        return self._add(name, block.shape, block.axes, total, block.partial, mask)

    def _add(
        self,
        name: str,
        shape: tuple[int, int],
        axes: Axes,
        formula: Expression,
        partial: bool,
        mask: Mask,
    ) -> Block:
        """A block whose cells have a formula."""
        if self.tokens:
            formula = rebuilt(formula, self._aligned)
        at = {f"x{k}": read.at for k, read in enumerate(reads(formula))}
        names = {read.key: x for read, x in zip(reads(formula), at, strict=True)}

        def over_operands(**operands: Expression) -> Expression:
            def operand(part: Expression) -> Expression:
                return operands[names[part.key]] if isinstance(part, Read) else part

            return rebuilt(formula, operand)

        out = ("i", "≤i") if partial else ("i", "j")
        given = [(x, read.at, read.block) for read, x in zip(reads(formula), at, strict=True)]
        own = frozenset(x for x, _, block in given if block is self.itself)
        if own and not (self.itself and name == self.itself.name):
            raise NotImplementedError(
                f"{name}: with this formula, rows read each other; compute the part that reads "
                "the previous row in a separate block"
            )
        op = Op("backward", over_operands, at, out, 0.0, frozenset(), own)
        operands = tuple((x, code, block) for x, code, block in given if x not in own)
        n, first = 1, name
        while name in self.graph.blocks:
            n, name = n + 1, f"{first}{n + 1}"
        return self.graph.add(Block(name, shape, axes, "gradient", op, operands, mask))

    def _aligned(self, part: Expression) -> Expression:
        """A read. If another read already runs along a matrix's other axis, it reads the
        transposed copy."""
        if not isinstance(part, Read) or part.axis is None or part.block.shape[part.axis] == 1:
            return part
        block: Block = part.block
        of_tokens = [axis in self.tokens for axis in block.axes]
        if sum(of_tokens) == 1:  # its tokens run across and its features down
            return part
        if all(of_tokens):
            self.along[block.name] = {1}  # its keys run across
        if block is self.itself:  # others that read it along another axis read a copy
            self.along[block.name] = {part.axis}
            return part
        if block.name not in self.along:
            at = [at for _, at in self.graph.readers[block.name] if "?" not in at]
            lines = {Read(block, codes).axis for codes in at}
            self.along[block.name] = {n for n in lines if n is not None and block.shape[n] > 1}
        self.along[block.name] = self.along[block.name] or {part.axis}
        if part.axis in self.along[block.name]:
            return part
        name = f"turned.{block.name}"
        if name not in self.graph.blocks:
            cell = Read(block, ("i", "j"))
            self._add(name, block.shape, block.axes, cell, block.partial, block.mask)
        return Read(self.graph[name], part.at)

    def _numbers(self, n: int, axis: str) -> Block:
        """0, 1, 2, ...: the indices of an axis, [1, n]."""
        name = f"{self.name}.numbers.{n}"
        if name not in self.graph.blocks:
            self.graph.input(name, np.arange(n).reshape(1, -1), ("", axis))
        return self.graph[name]


def across(index: str, z: Block, read: Read, where: dict[str, str]) -> str:
    """The code for all places of an index of z that see, or are seen by, one place of x."""
    if index == "j":
        return "≤i" if z.partial else ":"
    return "≥i" if (z.partial and "j" in where) or "≤i" in read.at else ":"


def indices(formula: Expression) -> set[str]:
    """The indices among i, j and r that a formula depends on."""
    names = {"≤i": "i", "≥i": "i"}
    found = {
        "i" if shift(code) else names.get(code, code) for read in reads(formula) for code in read.at
    }
    return {"j" if code[0] == "~" else code for code in found} & {"i", "j", "r"}


def _renamed(code: str, where: dict[str, str]) -> str:
    """A code with its index renamed: a row before `i` becomes a row before the new index."""
    if not (further := shift(code)):
        return where.get(code, code)
    return shifted(where.get("i", "i"), further)


def split(x: Expression, chosen: Callable[[Expression], bool]) -> tuple[Expression, Expression]:
    """A product as two: of the chosen factors, and of the other factors and numbers."""
    p = product(x)
    above, below = ([part for part in side if chosen(part)] for side in (p.over, p.under))
    rest = [[part for part in side if not chosen(part)] for side in (p.over, p.under)]
    others = over(times(p.factor, *rest[0]), times(p.divisor, *rest[1]))
    return over(times(*above), times(*below)), others


def moved(formula: Expression, where: dict[str, str]) -> Expression:
    """A formula with renamed indices. In a product, the factor that gives the rows comes first."""

    def change(part: Expression) -> Expression:
        if isinstance(part, Read):
            rows, cols = (_renamed(code, where) for code in part.at)
            return Read(part.block, (rows, cols))
        if isinstance(part, Call) and part.function is SUMPRODUCT:
            first, second = part.arguments
            assert isinstance(first, Read) and isinstance(second, Read)
            if "i" in second.at and "i" not in first.at:
                return SUMPRODUCT(second, first)
        return part

    return simplified(rebuilt(formula, change))
