"""The sheet Shift: one matrix that shifts every position by k."""

from cellformer.engine.cells.expression import Area, Expression
from cellformer.engine.cells.functions import COS, SIN, SUMPRODUCT
from cellformer.exporters.assemble.worksheets import Workbook
from cellformer.exporters.compose.composer import Composer
from cellformer.workbooks.positions.hands import D_MODEL, DIMS, T, wave

K_SHIFT = 3.0
EVERY_PLACE = (T, D_MODEL)


def add(w: Workbook) -> None:
    """Add the sheet, with the difference between the matrix and the formula, 0 everywhere."""
    ws = w.sheet(
        "Shift",
        "one matrix moves every place by k: relative position is a linear map",
        widths={0: 9, **dict.fromkeys(range(1, 31), 6.5)},
    )
    k = ws.typed("shift", K_SHIFT, ["shift k"], style="input setting")
    places, frequencies, encoding = w["places"], w["frequencies"], w["encoding"]
    matrix = shift_matrix(ws, k, frequencies)
    ws.heading(
        "Every place moved by W_k, the same place by the formula, and the difference",
        "W_k · P_t = P_(t+k) for every t   [T, d_model]",
        style="equation",
    )
    ws.text(
        "The slides print W · P_t = W · P_(t+k). W_k has an inverse, so this equation means P_t "
        "= P_(t+k), which is false."
    )
    moved = ws.computed(
        "moved",
        EVERY_PLACE,
        lambda t, j: SUMPRODUCT(encoding[t, :], matrix[j, :]),
        [f"row {t}" for t in range(T)],
        DIMS,
        "W_k · P_t   [T, d_model]",
    )
    later = ws.computed(
        "later",
        EVERY_PLACE,
        lambda t, j: wave((places[t] + k) * frequencies[j // 2], j),
        cols=DIMS,
        title="P_(t+k)",
        beside=moved,
    )
    ws.computed(
        "gap",
        EVERY_PLACE,
        lambda t, j: moved[t, j] - later[t, j],
        cols=DIMS,
        title="difference",
        beside=later,
    )
    for table in (matrix, moved, later):
        ws.dress(table, "diverging")


def shift_matrix(ws: Composer, k: Area, frequencies: Area) -> Area:
    """W_k: a rotation block for each pair; zeros elsewhere."""
    ws.heading(
        "W_k rotates each pair by k × its frequency, and does not mix the pairs",
        "block i = [cos a, sin a; -sin a, cos a], a = k × frequency i",
        style="equation",
    )

    def entry(i: int, j: int) -> Expression | int:
        if i // 2 != j // 2:
            return 0
        angle = k * frequencies[i // 2]
        if i == j:
            return COS(angle)
        return SIN(angle) if i < j else -SIN(angle)

    return ws.computed("W_k", (D_MODEL, D_MODEL), entry, cols=DIMS)
