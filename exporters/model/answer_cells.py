"""The graph of an answer in cells: the slopes of the target's lead by each part's output, and the
edges, each a formula.

It is `cellformer.engine.studies.answer_graph`, for models whose stream is a sum of what was written
into it, with norms before the parts that read it. Slopes go back from the end: through a part's
W_out, the ratio of its activation, its W_in and its norm's gain, to the stream; a head's are laid
out by the token that looks. The lead's own slope stands in Attribution.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

from cellformer.engine.cells.block import Block
from cellformer.engine.cells.errors import InputError
from cellformer.engine.cells.expression import Area, Expression, expression
from cellformer.engine.cells.functions import AVERAGE, MAX, SUM, SUMPRODUCT, added
from cellformer.engine.cells.gradient import SMALLEST
from cellformer.engine.models import ops
from cellformer.engine.studies import scores
from cellformer.engine.studies.answer_graph import BENDS, GATED, Reader, begins, readers, writers
from cellformer.engine.studies.lens import operands
from cellformer.exporters.compose.lookups import product_sum
from cellformer.exporters.model import orientation
from cellformer.exporters.model.model_book import ModelBook

Cells = Callable[[int, int], Expression]
# a table [rows, columns] by name, and whether its rows stand across the sheet
Lay = Callable[[str, tuple[int, int], Cells, bool], Area]
ANSWER, BIASES = "answer", "biases"
WORDS = ("target", "rival")


@dataclass(frozen=True)
class CellEdge:
    """An edge: a source at a token, a reader at a token, and its value."""

    source: str
    at: int
    reader: str
    token: int
    value: Expression


@dataclass(frozen=True, eq=False)
class Norm:
    """A reader's own norm, before its linear map; without one, its parts are None."""

    gain: Block | None = None
    bias: Block | None = None
    above_one: bool = False
    scale: Block | None = None
    centred: bool = False


def norm(reader: Reader) -> Norm | None:
    """The norm between the stream and a reader's input; None if it has another form."""
    x, gain, bias, above = operands(reader.taken)["x"], None, None, False
    if x.op in (ops.affine, ops.gain_above_one) and x is not reader.stream:
        read = operands(x)
        gain, bias, above = read["w"], read.get("b"), x.op is ops.gain_above_one
        x = read["x"]
    if x is reader.stream:
        return Norm() if gain is None else None
    if x.op not in (ops.normalize, ops.divide_rows) or operands(x)["x"] is not reader.stream:
        return None
    centred = x.op is ops.normalize
    return Norm(gain, bias, above, operands(x)["scale" if centred else "by"], centred)


def supported(book: ModelBook) -> bool:
    """Whether the graph of this model's answers is made in cells."""
    graph = book.graph
    if "target" not in book.views.credits or not book.views.credits["target"]:
        return False
    try:
        found = readers(graph)
    except InputError:  # as where something else changes what a part writes
        return False
    summed = all(
        block.op is ops.add
        for reader in found
        for block in scores.path(graph, reader.stream).carriers
    )
    known = {block.name for block in writers(graph)} & set(book.views.credits["target"])
    every = {block.name for block in writers(graph) if block.computed}
    maps = (block for reader in found for block in (reader.inner, reader.taken))
    upright = all(not orientation.turned(operands(block)["w"], book) for block in maps)
    plain = all(norm(reader) is not None for reader in found)
    return bool(found) and summed and every <= known and upright and plain


@dataclass
class AnswerCells:
    """Slopes and edges up to token `row`, whose next word is the answer."""

    book: ModelBook
    row: int
    lay: Lay
    down: dict[str, Area] = field(default_factory=dict)  # stream -> its slope, features down
    across: dict[str, Area] = field(default_factory=dict)  # the same, features across
    hidden: dict[str, Area] = field(default_factory=dict)  # reader -> [n_tokens, d of its hidden]
    read: dict[str, Area] = field(default_factory=dict)  # reader -> slope of what it takes, gained
    plain: dict[str, Area] = field(default_factory=dict)  # the same without the norm's gain

    def __post_init__(self) -> None:
        graph = self.book.graph
        self.readers = readers(graph)
        self.n, self.d = self.row + 1, self.readers[0].stream.shape[1]
        self.paths = {r.stream.name: scores.path(graph, r.stream) for r in self.readers}
        self._slope(ANSWER, self._of_answer)
        after = ANSWER
        for stream in reversed(self.paths):
            mine = [reader for reader in self.readers if reader.stream.name == stream]
            for reader in mine:
                self._back(reader)
            self._slope(stream, partial(self._sum, mine, after))
            after = stream

    def slope_of(self, writer: str) -> str:
        """The stream whose slope a writer has: the first that it is part of."""
        for stream, path in self.paths.items():
            if any(block.name == writer for block in path.writers):
                return stream
        return ANSWER

    def value(self, writer: Block, p: int) -> Expression:
        """A writer's value at a token: its output times the slope there."""
        return product_sum(writer[p, :], self.down[self.slope_of(writer.name)][p, :])

    def edges(self) -> Iterator[CellEdge]:
        """All edges, node by node."""
        for reader in self.readers:
            for p in range(self.n):
                yield from self._into(reader, p)
        credits = self.book.views.credits
        for name in reversed(credits["target"]):
            of = [credits[word][name] for word in WORDS]
            target, rival = (block[min(self.row, block.shape[0] - 1), 0] for block in of)
            yield CellEdge(name, self.row, ANSWER, self.row, target - rival)

    # --- slopes, from the end back ------------------------------------------------------------

    def _slope(self, name: str, cell: Cells) -> None:
        """Put a slope twice: down a column, and across a row."""
        shape = self.n, self.d
        down = self.down[name] = self.lay(f"{name}.slope", shape, cell, True)
        self.across[name] = self.lay(
            f"{name}.slope_across", shape, lambda p, d: down[p, d] + 0, False
        )

    def _of_answer(self, p: int, d: int) -> Expression:
        if p != self.row:
            return expression(0)
        terms = []
        for word in WORDS:
            credits = self.book.views.credits[word]
            name = next(name for name in credits if self.book.graph[name].computed)
            read = operands(credits[name])
            direction, by = read["direction"], read.get("by")
            term: Expression = direction[min(p, direction.shape[0] - 1), d]
            terms.append(term if by is None else term / by[min(p, by.shape[0] - 1), 0])
        return terms[0] - terms[1]

    def _back(self, reader: Reader) -> None:
        """Lay the slopes of a reader's hidden layer, and of its input."""
        name, inner = reader.wrote.name, operands(reader.inner)
        W_out, on = inner["w"], inner["on"][0, 0]
        W_in, shape = operands(reader.taken)["w"], (self.n, self.d)
        across = self.across[self.slope_of(name)]

        def hidden(p: int, k: int) -> Expression:
            slope = product_sum(across[p, :], W_out[k, :]) * on
            return slope if reader.pattern is not None else slope * self._ratio(reader, p, k)

        of = self.hidden[name] = self.lay(f"{name}.hidden", (self.n, W_out.shape[0]), hidden, False)
        plain = self.plain[name] = self.lay(
            f"{name}.taken", shape, lambda p, d: product_sum(of[p, :], W_in[d, :]), True
        )
        own = norm(reader)
        assert own is not None
        if own.gain is None:
            self.read[name] = plain
            return
        gain, above = own.gain, own.above_one

        def gained(p: int, d: int) -> Expression:
            w: Expression = gain[0, d]
            return plain[p, d] * (1 + w if above else w)

        self.read[name] = self.lay(f"{name}.gained", shape, gained, True)

    def _ratio(self, reader: Reader, p: int, k: int) -> Expression:
        """A hidden cell over its input, held: of an activation, or its gate and share."""
        hidden = reader.hidden
        assert hidden is not None
        if hidden.op in BENDS:
            x = reader.taken[p, k]
            return hidden[p, k] * x / MAX(x * x, SMALLEST)
        assert hidden.op in GATED
        read = {name: (at, block) for name, at, block in hidden.operands}
        found: Expression = read["gate"][1][p, k]
        if "share" in read:
            at, share = read["share"]
            found = found * share[p, int(at[1][1:])]
        return found

    def _sum(self, mine: list[Reader], after: str, p: int, d: int) -> Expression:
        """The slope of a stream: the slope of the stream after it, plus the shares of its
        readers."""
        total: Expression = expression(self.down[after][p, d])
        for reader in mine:
            for token, weight in self._seen(reader, p):
                total = total + self._at(reader, d, token) * weight
        return total

    def _at(self, reader: Reader, d: int, token: int) -> Expression:
        own, read = norm(reader), self.read[reader.wrote.name]
        assert own is not None
        return (
            read[token, d] - AVERAGE(read[token, :]) if own.centred else expression(read[token, d])
        )

    def _seen(self, reader: Reader, p: int) -> Iterator[tuple[int, Expression]]:
        """The tokens at which a reader reads token p, and the weight: its share of attention,
        over its norm's divisor."""
        own = norm(reader)
        assert own is not None
        for token in range(self.n) if reader.pattern is not None else (p,):
            if reader.pattern is None:
                weight = expression(1)
            elif reader.pattern.has(token, p):
                weight = expression(reader.pattern[token, p])
            else:
                continue
            yield token, weight if own.scale is None else weight / own.scale[p, 0]

    # --- edges --------------------------------------------------------------------------------

    def _into(self, reader: Reader, p: int) -> Iterator[CellEdge]:
        """The edges into a reader at a token."""
        name, own, read = reader.wrote.name, norm(reader), self.read[reader.wrote.name]
        assert own is not None
        for writer in self.paths[reader.stream.name].writers:
            for at in range(p + 1):
                for token, weight in self._seen(reader, at):
                    if token == p:
                        u = writer[min(at, writer.shape[0] - 1), :]
                        product = product_sum(u, read[p, :])
                        if own.centred:
                            product = product - AVERAGE(u) * SUM(read[p, :])
                        yield CellEdge(writer.name, at, name, p, product * weight)
        biases = self._biases(reader, own, p)
        if biases:
            yield CellEdge(BIASES, p, name, p, added(biases))

    def _biases(self, reader: Reader, own: Norm, p: int) -> list[Expression]:
        """The amount that a reader's own biases add, and the output of their replacement if the
        reader is switched off."""
        name, inner = reader.wrote.name, operands(reader.inner)
        found, slope = [], self.slope_of(name)
        if own.bias is not None:
            found.append(product_sum(own.bias[0, :], self.plain[name][p, :]))
        taken = operands(reader.taken).get("b")
        if taken is not None:
            found.append(self._along(taken, self.hidden[name][p, :]))
        if "b" in inner:
            found.append(product_sum(inner["b"][0, :], self.down[slope][p, :]) * inner["on"][0, 0])
        if "off" in inner:
            found.append(product_sum(inner["off"][0, :], self.across[slope][p, :]))
        return found

    def _along(self, bias: Block, row: Area) -> Expression:
        """A bias times a row of slopes, if both stand across."""
        return SUMPRODUCT(bias[0, :], row) if row.rect.size > 1 else bias[0, 0] * row


def starts(book: ModelBook) -> list[Block]:
    """The writers that read no stream: embeddings and positions."""
    return [block for block in writers(book.graph) if block.computed and begins(block)]
