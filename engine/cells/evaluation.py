"""Values of whole blocks: a formula over a rectangle of its block's cells at once, in float64.

An operand that a cell reads at one place is viewed as an array oriented like the output, one that
it reads along an axis as a `Line`; the compiled formula computes the values from these (see
`compiled`).
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from cellformer.engine.cells.access import (
    ALONG,
    Mask,
    Rect,
    Span,
    Subscript,
    partners,
    reads,
    shift,
)
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.lines import Line
from cellformer.engine.cells.stored import Stored

MOST_READ = 1 << 18  # numbers of a matrix in a file that are read together


def evaluate(block: Block, rect: Rect, values: Mapping[str, np.ndarray]) -> np.ndarray:
    """The values of `rect` of a computed block: float64 [..., rows of rect, columns of rect].

    A large matrix in a file is read a few columns at a time. Rows that read each other are computed
    one after another; those that stand outside of `rect` are as `values` has them.
    """
    if block.recurs:
        return _row_by_row(block, rect, values)
    for _, subscript, operand in block.operands:
        stored = isinstance(values[operand.name], Stored) and "?" not in subscript
        size = reads(subscript, rect, operand.shape, block.mask).size if stored else 0
        if size > MOST_READ and rect.right - rect.left > 1:
            middle = (rect.left + rect.right) // 2
            halves = rect._replace(right=middle), rect._replace(left=middle)
            return np.concatenate([evaluate(block, half, values) for half in halves], axis=-1)
    return _evaluate(block, rect, values)


def _row_by_row(block: Block, rect: Rect, values: Mapping[str, np.ndarray]) -> np.ndarray:
    known = {operand.name: values[operand.name] for _, _, operand in block.operands}
    before = values.get(block.name, np.zeros(block.shape))
    others = np.broadcast_shapes(*(x.shape[:-2] for x in (before, *known.values())))
    own = np.array(np.broadcast_to(before, (*others, *block.shape)), np.float64)
    for row in block.passes_over(rect):
        own[(..., *row.slices)] = _evaluate(block, row, known | {block.name: own})
    return own[(..., *rect.slices)]


def _evaluate(block: Block, rect: Rect, values: Mapping[str, np.ndarray]) -> np.ndarray:
    assert block.op is not None
    views: list[Any] = []
    for _, subscript, operand in block.sources:
        read = reads(subscript, rect, operand.shape, block.mask)
        array = values[operand.name]
        if isinstance(array, Stored):
            part = array.part(*read.slices)
            array = part if "?" in subscript else np.asarray(part)
        elif read != operand.whole:
            array = array[(..., *read.slices)]
        if further := shift(subscript[0]):
            array = _with_absent(array, rect, further)
        views.append(_view(operand, array, subscript, read, rect, block.mask))
    result = np.asarray(block.over_arrays(*views), np.float64)
    if block.partial:
        return np.where(block.mask.seen(rect), result, block.op.blank)
    rows, cols = rect.bottom - rect.top, rect.right - rect.left
    if result.shape[-2:] != (rows, cols):  # all cells of a row, or of a column, are alike
        return np.broadcast_to(result, (*result.shape[:-2], rows, cols)).copy()
    handed_on = result.base is not None or any(result is x for x in views)
    return result.copy() if handed_on else result


def _with_absent(array: np.ndarray, rect: Rect, further: int) -> np.ndarray:
    """The rows that stand so much after those of `rect`, with zeros for missing rows."""
    missing = rect.bottom - rect.top - array.shape[-2]
    first = min(missing, max(0, -(rect.top + further)))
    return np.pad(array, [(0, 0)] * (array.ndim - 2) + [(first, missing - first), (0, 0)])


def _view(
    operand: Block, array: np.ndarray, subscript: Subscript, read: Rect, out: Rect, mask: Mask
) -> Any:
    """An op's view of an operand, whose rectangle `read` is in `array`."""
    rows, cols = subscript
    if cols in ALONG or rows in ALONG:
        down = cols not in ALONG
        code, entries, other = (rows, read[:2], cols) if down else (cols, read[2:], rows)
        seen = _seen(code, entries, out, mask)
        blank = None if seen is None else _blank(operand, mask)
        lines = array.swapaxes(-1, -2) if down else array
        return Line(lines, "j" if other == "j" else "i", seen, down, blank)
    if cols[0] == "@":
        n = int(cols[1:]) - read.left
        array = array[..., n : n + 1]
    elif cols[0] == "~":
        return array[..., partners(cols, out.left, out.right) - read.left]
    return array.swapaxes(-1, -2) if rows == "j" or cols == "i" else array


def _blank(operand: Block, mask: Mask) -> float | None:
    """The value of an operand's masked cells, if there is one."""
    return operand.op.blank if operand.op and operand.partial and operand.mask == mask else None


def _seen(code: str, entries: Span, out: Rect, mask: Mask) -> np.ndarray | None:
    """The entries of a line that each row of the output reads; None: all."""
    if not mask.causal or code not in ("≤i", "≥i"):
        return None
    if code == "≤i":
        return mask.seen(Rect(out.top, out.bottom, *entries))
    return mask.seen(Rect(*entries, out.top, out.bottom)).T
