"""Fingerprints of books: whether two are of the same model, and alike as built.

Numbers count as float32: their last digits may differ from processor to processor.
"""

import zlib
from collections.abc import Iterable
from functools import reduce

import numpy as np

from cellformer.engine.cells.graph import Graph
from cellformer.engine.cells.stored import Stored
from cellformer.exporters.compose.book import Book
from cellformer.exporters.model.model_book import ModelBook


def fingerprint(book: Book) -> str:
    """The name of a page in links: its title, a checksum of its model's weights, and one of its
    whole graph as built."""
    return f"{book.title}.{weights_sum(book)}.{_sum(_described(book.graph))}"


def weights_sum(book: Book) -> str:
    """The checksum of the weights of a book's model, for any prompt."""
    weights = book.model.weights if isinstance(book, ModelBook) else {}
    return _sum(part for name in sorted(weights) for part in (name.encode(), _bytes(weights[name])))


def _described(graph: Graph) -> Iterable[bytes]:
    """All that a state refers to: blocks, their shapes, and their values as built."""
    for block in graph:
        yield f"{block.name} {block.shape} {block.kind}".encode()
        if block.name in graph.inputs:
            yield _bytes(graph.inputs[block.name])


def _bytes(values: object) -> bytes:
    """Values as bytes: numbers, or where there are texts, all as texts."""
    # a decimal of `Stored` leads back to the float32 that stands in the file
    array = values.read() if isinstance(values, Stored) else np.asarray(values)
    if array.dtype == object:
        texts = (f"{x:.7g}" if isinstance(x, int | float) else str(x) for x in array.flat)
        return "\0".join(texts).encode("utf-8", "backslashreplace")
    with np.errstate(over="ignore"):
        return array.astype("<f4", copy=False).tobytes()


def _sum(parts: Iterable[bytes]) -> str:
    """A checksum: eight digits."""
    crc = reduce(lambda before, part: zlib.crc32(part, before), parts, 0)
    return f"{crc:08x}"
