"""low-rank's sheet Rank: outer products, and minors; the largest minor that is not 0 gives the
rank."""

from itertools import combinations

from cellformer.engine.cells.expression import Expression
from cellformer.engine.cells.functions import IF, MAX, MIN
from cellformer.engine.cells.rounding import NEAR
from cellformer.exporters.assemble.matrices import Cells, Matrix, MatrixSheet
from cellformer.workbooks.low_rank.heads import D_MODEL

RANKED = ("QK_h1", "OV_h1", "OV_all")  # the matrices whose ranks are shown


def outer(page: MatrixSheet) -> None:
    """OV of head 0.0 as a sum of d_head outer products, each of rank 1."""
    page.section(
        "OV of head 0.0: the sum of d_head products of a column and a row, each of rank 1",
        "OV = Σ_k W_V[:, k] W_O[k, :]; in each product, the rows are multiples of one row",
    )
    W_V, W_O = page["W_V_h1"], page["W_O_h1"]
    first = page.computed("outer_1", Cells(W_V[:, 0]) @ Cells(W_O[0, :]))
    second = page.computed("outer_2", Cells(W_V[:, 1]) @ Cells(W_O[1, :]), first)
    page.computed("outer_sum", first + second, second)


def rank(page: MatrixSheet, name: str) -> None:
    """Add the minors of a matrix [d_model, d_model], from its own entries on, and the rank they
    show."""
    page.ws.heading(f"The rank of {name}")
    sizes = [page.computed(f"minors1_{name}", page[name], title=f"{name}: {D_MODEL} × {D_MODEL}")]
    for k in range(2, D_MODEL + 1):
        sizes.append(minors(page, name, k, sizes[0], sizes[-1]))
    areas = [of_size.area.fixed for of_size in sizes]
    largest = page.computed(
        f"largest_{name}",
        Matrix((D_MODEL, 1), lambda i, j: MAX(MAX(areas[i]), -MIN(areas[i]))),
        title="largest",
        cols=["minor"],
    )
    page.computed(
        f"rank_{name}",
        Matrix((1, 1), lambda i, j: shown_by(largest)),
        largest,
        "readout count",
        title="rank",
    )


def shown_by(largest: Cells) -> Expression | int:
    """The rank: the largest k with a k x k minor above rounding."""
    shown: Expression | int = 0
    for k in range(1, D_MODEL + 1):
        shown = IF(largest[k - 1, 0] > NEAR * largest[0, 0] ** k, k, shown)
    return shown


def minors(page: MatrixSheet, name: str, k: int, entries: Cells, smaller: Cells) -> Cells:
    """Add the k × k minors of a matrix, expanded along their first row, from the minors of size
    k - 1."""
    chosen = list(combinations(range(D_MODEL), k))
    place = {rest: i for i, rest in enumerate(combinations(range(D_MODEL), k - 1))}

    def minor(i: int, j: int) -> Expression:
        (top, *below), cols = chosen[i], chosen[j]
        rest = place[tuple(below)]
        others = [place[tuple(c for c in cols if c != col)] for col in cols]
        return alternating(
            [entries[top, col] * smaller[rest, at] for col, at in zip(cols, others, strict=True)]
        )

    labels = ["".join(str(c + 1) for c in these) for these in chosen]
    title = f"minors {k} × {k}" if k < D_MODEL else "determinant"
    matrix = Matrix((len(chosen), len(chosen)), minor)
    return page.computed(
        f"minors{k}_{name}", matrix, smaller, rows=labels, cols=labels, title=title
    )


def alternating(terms: list[Expression]) -> Expression:
    """The alternating sum of terms: the first, minus the second, plus the third, ..."""
    total, *rest = terms
    for k, term in enumerate(rest):
        total = total + term if k % 2 else total - term
    return total
