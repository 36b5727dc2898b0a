"""Weights as a GGUF file has them: integers, and a scale for every 32, beside their products.

Of each kind of packing one matrix is shown, the first that stands as it is multiplied: every
product is a formula, and a line says whether the products are the weights of the model, which are
typed numbers on a sheet of their own.
"""

from collections.abc import Iterator

import numpy as np

from cellformer.engine.cells.expression import Expression
from cellformer.engine.cells.functions import IF, SUMPRODUCT
from cellformer.engine.cells.language import worded
from cellformer.engine.models.checkpoint import Packed
from cellformer.engine.studies import quantization
from cellformer.engine.studies.quantization import GROUP, axis_of
from cellformer.exporters.compose.composer import Composer
from cellformer.exporters.model import orientation
from cellformer.exporters.model.model_book import ModelBook

MOST = 64  # columns that are shown of a matrix
SAME = "integer × scale equals the weight of the model in every digit"
OTHER = "integer × scale no longer equals the weight of the model, because it was changed"


def add(book: ModelBook, page: Composer) -> None:
    """Add one packed matrix of each kind."""
    for name, packed in _shown(book):
        page.cursor += 1
        page.heading(
            worded(
                "{name} in the model’s file: {kind}, integers multiplied by scales",
                name=name,
                kind=packed.kind,
            )
        )
        _matrix(book, page, name, packed)


def _shown(book: ModelBook) -> Iterator[tuple[str, Packed]]:
    """The first matrix of each kind of packing whose columns are whole groups."""
    kinds = set()
    for name, packed in book.plan.studies[quantization.ADDITION.name].items():
        weight, n = book.graph[name], len(packed.scales)
        upright = axis_of(book.graph, weight) == 0 and not orientation.turned(weight, book)
        whole = (
            n % GROUP == 0
            and not np.ptp(packed.scales.reshape(-1, GROUP, weight.shape[1]), axis=1).any()
        )
        if packed.kind not in kinds and upright and whole:
            kinds.add(packed.kind)
            yield name, packed


def _matrix(book: ModelBook, page: Composer, name: str, packed: Packed) -> None:
    """Add the scales, the integers and the products of a matrix, one below the other."""
    n, most = packed.integers.shape[0], min(packed.integers.shape[1], MOST)
    verdict, of_scales, of_integers = (page.cursor + k for k in (0, 3, 5 + n // GROUP))
    integers, scales = packed.integers[:, :most], packed.scales[::GROUP, :most]
    for top, what, values, style in (
        (of_scales, "scales, one for 32 weights of a column", scales, "constant"),
        (of_integers, "integers", integers, "count"),
    ):
        page.sheet.put(top - 1, 0, what, "block")
        page.sheet.lines(
            top, values.astype(float).tolist(), dict.fromkeys(range(1, 1 + most), style)
        )
    page.cursor = of_integers + n + 1

    def product(i: int, j: int) -> Expression:
        return page.sheet[of_integers + i, 1 + j] * page.sheet[of_scales + i // GROUP, 1 + j]

    page.sheet.put(page.cursor, 0, "integer × scale", "block")
    at = page.cursor + 1, 1
    products = page.show(f"packed.{packed.kind}", at, product, "step", (n, most)).as_range
    off = products - book.graph[name].area[:, :most].as_range
    page.show(
        f"same.{packed.kind}", (verdict, 0), IF(SUMPRODUCT(off, off) == 0, SAME, OTHER), "text"
    )
    page.cursor += 1 + n
