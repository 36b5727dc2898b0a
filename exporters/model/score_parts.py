"""A head's queries and keys split over their writers, in cells: the inputs of Why.

`cellformer.engine.studies.scores` follows blocks back from a score, and carries parts of them
through ops that are linear in what they carry. Here the same ops give formulas instead of numbers:
a part at one token is a column, and each op's own formula reads the part where it reads the block.
Tables are made only where a formula reads a whole column; what lies between is one formula. So no
architecture is known here.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from cellformer.engine.cells.access import ALONG, partners
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.expression import Area, Expression
from cellformer.engine.cells.functions import lookup
from cellformer.engine.cells.graph import Graph
from cellformer.engine.models import ops
from cellformer.engine.studies import scores
from cellformer.engine.studies.lens import operands
from cellformer.engine.studies.scores import CARRIED

# puts a table: its block's name, its writers, how many features, its cells by feature and writer
Lay = Callable[[str, Sequence[str], int, Callable[[int, int], Expression]], Area]


@dataclass(frozen=True, eq=False)
class Part:
    """The part of one writer in a block at one token: its features, as formulas or as cells."""

    cell: Callable[[int], Expression]  # by feature
    line: Area | None = None  # the same as a column of a table, where there is one


Parts = Mapping[str, Part]  # by writer


class Side:
    """The parts of blocks at one token, whose position is a cell. `lay` puts a table [features,
    writers] on the sheet."""

    def __init__(self, graph: Graph, position: Area, lay: Lay) -> None:
        self.graph, self.position, self.lay = graph, position, lay
        self._known: dict[str, Parts] = {}
        self._tables: dict[str, Parts] = {}

    def parts(self, block: Block) -> Parts:
        """A block's parts."""
        if block.name not in self._known:
            self._known[block.name] = self._parts(block)
        return self._known[block.name]

    def _parts(self, block: Block) -> Parts:
        if scores.writes(block):
            return {block.name: Part(lambda j: self.held(block, "i", j))}
        assert block.op is not None
        carried = list(scores.carried(block))
        if block.op is ops.add:
            return {name: part for b in carried for name, part in self.parts(b).items()}
        bias = operands(block).get("b")
        names = dict.fromkeys(name for b in carried if b is not bias for name in self.parts(b))
        found = {name: Part(self._formula(block, name)) for name in names}
        if bias is not None:
            found |= self.parts(bias)
        alone = block.shape[1] == 1  # a mean, which every feature reads
        return self.laid(block, found) if block.op is ops.linear or alone else found

    def laid(self, block: Block, parts: Parts | None = None) -> Parts:
        """A block's parts as the columns of a table."""
        if block.name not in self._tables:
            parts = self.parts(block) if parts is None else parts
            if all(part.line is not None for part in parts.values()):
                return parts
            columns, n = list(parts.values()), block.shape[1]
            table = self.lay(block.name, list(parts), n, lambda j, w: columns[w].cell(j))
            self._tables[block.name] = {
                name: Part(_entries(table, w), table[:, w]) for w, name in enumerate(parts)
            }
        return self._tables[block.name]

    def held(self, block: Block, row: str, j: int) -> Expression:
        """A cell that an op reads of a block that it does not carry, at the token or everywhere."""
        if row != "i" or block.shape[0] == 1:
            return block[0, j]
        return lookup(block[:, j], self.position)

    def _formula(self, block: Block, writer: str) -> Callable[[int], Expression]:
        """The formula of a writer's part of a block, by feature: its op's, without a bias."""
        carried = {*CARRIED[block.op.name]} - {"b"} if block.op else set[str]()
        lines = {
            b.name: self.laid(b)
            for name, (_, column), b in block.operands
            if name in carried and column in ALONG
        }

        def read(name: str, at: tuple[str, str], b: Block, j: int) -> Expression | None:
            row, column = at
            own = int(partners(column, j, j + 1)[0]) if column[0] == "~" else j
            if name not in carried:
                whole = row in ALONG
                return b[:, own] if whole else self.held(b, row, 0 if column == "0" else own)
            part = (lines.get(b.name) or self.parts(b)).get(writer)
            if part is None or column in ALONG:
                return part.line if part else None
            return part.cell(0 if column == "0" else own)

        def formula(j: int) -> Expression:
            assert block.op is not None
            given = [(name, read(name, at, b, j)) for name, at, b in block.operands if name != "b"]
            return block.op.formula([(name, x) for name, x in given if x is not None])

        return formula


def _entries(table: Area, w: int) -> Callable[[int], Expression]:
    """A column of a table, by row."""
    return lambda j: table[j, w]


def beside(
    after: list[Block], content: Expression, query: Side, key: Side
) -> list[tuple[str, Expression]]:
    """The steps from the product of a query and a key to a score, ALiBi's distance or a soft
    cap: the name, and the change of the number, each after the one before."""
    found = []
    for block in after:
        assert block.op is not None
        read: list[tuple[str, Expression]] = []
        for name, (row, column), b in block.operands:
            j = int(column[1:]) if column[0] == "@" else 0
            side = key if row == "j" else query
            row = "i" if row in ("i", "j") else row
            read.append((name, content if name == "x" else side.held(b, row, j)))
        score = block.op.formula(read)
        found.append((scores.OUTSIDE[block.op.name], score - content))
        content = score
    return found
