"""Write docs/ops.md: every op, the formula of one of its cells in words and in a spreadsheet.

python docs/ops.py
"""

import inspect
from pathlib import Path
from typing import Any

from engine.cells.formula import A1, ATOM, NAMED, Style, Term
from engine.cells.op import Op
from engine.learning import optimizers
from engine.models import ops

TARGET = Path(__file__).with_name("ops.md")
HEAD = """# Every op

Made by `python docs/ops.py` out of [engine/models/ops.py](../engine/models/ops.py), the forward
pass, and [engine/learning/optimizers.py](../engine/learning/optimizers.py), a step of training,
where each op is written once. A row is the formula of the cell at row i and column j. A subscript
says which cells of an operand it reads: `i`, `j` its own row or column, `:` a whole axis, `≤i`
the keys that query i sees, `~` the partner column in rotary positions, `@` one column that the
whole block reads, `?` the entry that another operand's value picks.

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
    cells = (op.name, reads, formula(op, NAMED), formula(op, A1))
    return "| " + " | ".join(f"`{cell}`" for cell in cells) + " |\n"


def formula(op: Op, style: Style) -> str:
    """The formula with the operands' names where addresses would stand."""
    pairs = []
    for name, codes in op.subscripts.items():
        several = [f"{name}{k}" for k in (1, 2)] if name in op.many else [name]
        one = not any(code in (":", "≤i", "?") for code in codes)
        count: Any = Term("n", ATOM, style)  # of the cells that are read
        pairs += [(name, Term(text, ATOM, style, single=one, n=count)) for text in several]
    text: str = op.call(style, pairs).text
    return text


if __name__ == "__main__":
    TARGET.write_text(table(), encoding="utf-8")
    print(TARGET.name)
