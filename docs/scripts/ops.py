"""Write docs/ops.md: every op, the formula of one of its cells in words and in a spreadsheet.

python docs/scripts/ops.py
"""

import inspect
from dataclasses import dataclass
from pathlib import Path

from cellformer.engine.cells.access import Rect
from cellformer.engine.cells.expression import Area, Constant, Notation, Read, decimal
from cellformer.engine.cells.formula import InWords, as_shown
from cellformer.engine.cells.op import Op
from cellformer.engine.learning import optimizers
from cellformer.engine.models import ops
from cellformer.exporters.compose.address import A1

TARGET = Path(__file__).parents[1] / "ops.md"
HEAD = """# Every op

`python docs/scripts/ops.py` makes this page. The ops of the forward pass are in
[engine/models/ops.py](../engine/models/ops.py), and the ops of a training step are in
[engine/learning/optimizers.py](../engine/learning/optimizers.py). Each is written once. A row is
the formula of the cell at row i and column j. A subscript says which cells of an operand it reads:

- `i`, `j`: its own row or column
- `:`: a whole axis
- `≤i`: the keys that query i sees
- `~`: the partner column in rotary positions
- `@`: one column that the whole block reads
- `?`: the entry that another operand's value picks

| op | reads | a cell, in words | a cell, in a spreadsheet |
|---|---|---|---|
"""


def table() -> str:
    """The page, in Markdown."""
    found = []
    for module in (ops, optimizers):
        here = [op for _, op in inspect.getmembers(module, lambda x: isinstance(x, Op))]
        found += sorted(here, key=lambda op: inspect.getsourcelines(op.function)[1])
    return HEAD + "".join(row(op) for op in found)


def row(op: Op) -> str:
    """One op."""
    reads = ", ".join(f"{name}[{', '.join(code)}]" for name, code in op.subscripts.items())
    cells = (op.name, reads, formula(op, ByName("")), formula(op, InCells(nowhere)))
    return "| " + " | ".join(f"`{cell}`" for cell in cells) + " |\n"


@dataclass(slots=True, eq=False)
class Operand(Read):
    """What a cell reads, by the name of its operand."""

    n = Constant("n")  # how many cells a line has: any number


class ByName(InWords):
    """Formulas for people, with the operands' names where addresses would stand."""

    def read(self, read: Read) -> str:
        return str(read.block)

    def constant(self, value: float | str) -> str:
        return value if isinstance(value, str) else decimal(value)


class InCells(A1):
    """Formulas of a spreadsheet, the same way."""

    read, constant = ByName.read, ByName.constant

    def nth(self, line: Area | Read, k: str, first: int) -> str:
        return self.picked(line.text(self), k, first, down=True)


def nowhere(area: Area) -> tuple[str, Rect]:
    """An op reads no areas."""
    raise LookupError(area)


def formula(op: Op, notation: Notation) -> str:
    """The formula with the operands' names where addresses would stand."""
    pairs = []
    for name, codes in op.subscripts.items():
        for operand in [f"{name}{k}" for k in (1, 2)] if name in op.many else [name]:
            pairs.append((name, Operand(operand, codes)))
    cells = {x.key for _, x in pairs if x.axis is None}
    return as_shown(op.formula(pairs), cells, notation.looks_up_one).text(notation)


if __name__ == "__main__":
    TARGET.write_text(table(), encoding="utf-8")
    print(TARGET.name)
