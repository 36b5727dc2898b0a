"""Why a head looks where it looks: its score, split by the parts that wrote the query and the key.

A score is the dot product of a query and a key. With the divisors of norms held at their values,
both are linear in what was written into the residual stream: the embedding, positions, what each
earlier head and MLP wrote, biases (Elhage et al. 2021, "QK circuits"; Kamath et al. 2025). So the
score is a sum over pairs of writers, a table whose entries add up to it exactly. A part of a score
that no writer wrote, ALiBi's distance or a soft cap's effect, stands beside the table.

Nothing here knows an architecture: the blocks are followed from the scores back, through ops that
are linear in what they carry, and an op carries the parts of a block as it carries the block.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from cellformer.engine.cells.block import Block
from cellformer.engine.cells.errors import InputError, UnknownNameError
from cellformer.engine.cells.evaluation import evaluate
from cellformer.engine.cells.graph import Graph
from cellformer.engine.cells.groups import batches
from cellformer.engine.models import ops
from cellformer.engine.studies.addition import Addition, Option
from cellformer.engine.studies.lens import operands
from cellformer.engine.studies.part_names import named, said

# ops that are linear in some operands taken together, all others held: what they carry on
CARRIED = {
    op.name: parameters
    for op, parameters in (
        (ops.add, ("xs", "b")),
        (ops.affine, ("x", "b")),
        (ops.gain_above_one, ("x", "b")),
        (ops.mean, ("x",)),
        (ops.normalize, ("x", "mean")),
        (ops.divide_rows, ("x",)),
        (ops.times_rows, ("x",)),
        (ops.stretch, ("x",)),
        (ops.linear, ("x", "b")),
        (ops.linear_tied, ("x", "b")),
        (ops.rotate, ("x", "partner")),
        (ops.sum_of_heads, ("zs", "b")),
    )
}
MAPS = (ops.linear, ops.stretch)  # of one writer alone: they are that writer, in the stream's size
OUTSIDE = {ops.soft_cap.name: "soft cap", ops.farther.name: "distance", ops.biased.name: "distance"}
ABSENT = "absent key"
AT_ONCE = 16  # writers that are followed together: memory


class Path(NamedTuple):
    """The blocks from some writers to the block that they end in, in the order of the graph."""

    writers: list[Block]
    carriers: list[Block]  # the last one is the end


def writes(block: Block) -> bool:
    """Whether a block begins a path: it is typed, or no op that carries something on."""
    if block.op is None or block.op.name not in CARRIED:
        return True
    return block.op in MAPS and writes(operands(block)["x"])


def carried(block: Block) -> Iterator[Block]:
    """The operands that a block carries on."""
    assert block.op is not None
    return (b for name, _, b in block.operands if name in CARRIED[block.op.name])


def path(graph: Graph, end: Block, begin: Block | None = None) -> Path:
    """All that reaches a block by ops that carry it on; `begin` counts as a writer."""

    def first(block: Block) -> bool:
        return block is begin or writes(block)

    found: set[str] = set()
    waiting = [end]
    while waiting:
        block = waiting.pop()
        if block.name not in found:
            found.add(block.name)
            waiting += () if first(block) else carried(block)
    inside = [block for block in graph if block.name in found]
    return Path([b for b in inside if first(b)], [b for b in inside if not first(b)])


def follow(
    way: Path, values: Mapping[str, np.ndarray], part: Callable[[Block], np.ndarray]
) -> np.ndarray:
    """The parts of the writers, each [n, rows, columns] of its block, at the end of a path. Held
    numbers, such as norms' divisors, are as in `values`."""
    if not way.carriers:  # the end is a writer itself, as a query that stays within bounds
        return part(way.writers[0])
    live = dict(values)
    begins = {block.name for block in way.writers}
    for block in way.carriers:
        parts = {b.name: part(b) for b in carried(block) if b.name in begins}
        live[block.name] = evaluate(block, block.whole, {**live, **parts})
    return live[way.carriers[-1].name]


@dataclass(frozen=True)
class Parts:
    """A block as a sum of its writers' outputs."""

    writers: tuple[str, ...]
    values: np.ndarray  # [n_writers, n_tokens, features]


def parts(graph: Graph, end: Block, wrote: Mapping[str, np.ndarray] | None = None) -> Parts:
    """A block split over its writers, with fixed norms' divisors and gates; `wrote` is the
    writers' output, if it differs from the graph's, [n_tokens, features] each."""
    way, values = path(graph, end), graph.computed
    wrote = values if wrote is None else wrote
    found = []
    names = tuple(block.name for block in way.writers)
    for some in batches(names, AT_ONCE):

        def part(block: Block, some: Sequence[str] = some) -> np.ndarray:
            alone = np.zeros((len(some), *block.shape))
            if block.name in some:
                alone[some.index(block.name)] = wrote[block.name]
            return alone

        found.append(follow(way, values, part))
    return Parts(names, np.concatenate(found))


# --- heads ----------------------------------------------------------------------------------


def heads(graph: Graph) -> list[str]:
    """The heads of the forward pass, by the names of their blocks: `blocks.1.attn.h2`. Raises
    InputError if there are none."""
    found = [b for b in graph if b.leaf == "pattern" and b.kind == "computed" and not b.passes]
    if not found:
        raise InputError("the model has no attention heads; choose a model with attention heads")
    return [block.path for block in found]


def head_of(graph: Graph, text: str) -> str:
    """The head that `1.2`, or its blocks' name, names. Raises UnknownNameError."""
    known = heads(graph)
    head = named(text, known)
    if head is None:
        raise UnknownNameError("head", text, [said(head).removeprefix("head ") for head in known])
    return head


def place(texts: Sequence[str], text: str | int, option: str) -> int:
    """The position of a token of a prompt, given as a number or as its word; `option` asked for it.
    Raises InputError for a word that is not in the prompt, is twice, or is another's position."""
    if isinstance(text, int):
        return _position(texts, text, option)
    found = [k for k, own in enumerate(texts) if own.lstrip("␣ ") == text.lstrip("␣ ")]
    if text.isdecimal():
        at = int(text)
        if not found or found == [at]:
            return _position(texts, at, option)
        if at < len(texts):
            raise InputError(
                f"{option} {text!r} can mean the word at position {found[0]}, or position {at}, "
                f"where {texts[at]!r} stands; give {found[0]} or {texts[at]!r}"
            )
    if not found:
        raise UnknownNameError("word of the prompt", text, dict.fromkeys(texts))
    if len(found) > 1:
        places = " and ".join(map(str, found))
        raise InputError(f"{option} {text!r} is at positions {places}; give one of these positions")
    return found[0]


def _position(texts: Sequence[str], at: int, option: str) -> int:
    if not 0 <= at < len(texts):
        raise InputError(
            f"{option} {at}: the positions of the prompt run from 0 to {len(texts) - 1}"
        )
    return at


@dataclass(frozen=True)
class Split:
    """A score of a query with a key, split by the parts that wrote the query (rows) and the key
    (columns)."""

    head: str
    query: int
    key: int
    of_query: tuple[str, ...]
    of_key: tuple[str, ...]
    table: np.ndarray  # [len(of_query), len(of_key)]
    outside: Mapping[str, float]  # what no writer wrote: distance, a soft cap's effect
    score: float  # the head's, which table and outside sum to
    pattern: float  # what softmax makes of it

    def __repr__(self) -> str:
        at = f"query {self.query}, key {self.key}"
        return f"<Split of {said(self.head)}, {at}: score {self.score:.6g}>"

    @property
    def total(self) -> float:
        """The sum of the table and of the parts outside it."""
        return float(self.table.sum()) + sum(self.outside.values())

    def less(self, rival: "Split") -> np.ndarray:
        """The table minus the table of another key, for the same head and query. A share of all
        keys, which softmax ignores, cancels."""
        return np.asarray(self.table - rival.table)


class Head:
    """A head of a graph, its queries and keys split over their writers.

    Raises InputError if its scores are not a product of queries and keys.
    """

    def __init__(self, graph: Graph, head: str) -> None:
        self.graph, self.name = graph, head
        self.product, self.after = _product(graph[f"{head}.scores"])

    @cached_property
    def queries(self) -> Parts:
        """[n_writers, n_tokens, d_head]."""
        return parts(self.graph, operands(self.product)["q"])

    @cached_property
    def keys(self) -> Parts:
        """[n_writers, n_tokens, d_head]."""
        return parts(self.graph, operands(self.product)["k"])

    @property
    def pattern(self) -> np.ndarray:
        """[n_tokens, n_tokens]: the attention of each query (row)."""
        return self.graph.values[f"{self.name}.pattern"]

    def most(self, query: int) -> int:
        """The key that a query looks at most."""
        return int(np.argmax(self.pattern[query]))

    def split(self, query: int, key: int) -> Split:
        """The score of a query with a key. Raises InputError if the query does not see the key."""
        if not self.product.has(query, key):
            raise InputError(
                f"token {query} does not see token {key} in {said(self.name)}; name an earlier "
                "token"
                if key > query
                else "name a later token: the head's window is short"
            )
        values = self.graph.values
        scale = float(values[operands(self.product)["scale"].name][0, 0])
        of_query, of_key = self.queries.values[:, query], self.keys.values[:, key]
        return Split(
            self.name,
            query,
            key,
            self.queries.writers,
            self.keys.writers,
            of_query @ of_key.T * scale,
            self._outside(query, key),
            float(values[f"{self.name}.scores"][query, key]),
            float(self.pattern[query, key]),
        )

    def _outside(self, query: int, key: int) -> dict[str, float]:
        """The parts of a score that come from neither queries nor keys, by kind."""
        values, read = self.graph.values, operands(self.product)
        found = {}
        present = values[read["present"].name][key, 0] if "present" in read else 1.0
        if present != 1:
            q, k = (values[read[name].name] for name in ("q", "k"))
            content = float(q[query] @ k[key] * values[read["scale"].name][0, 0])
            found[ABSENT] = float(values[self.product.name][query, key]) - content
        for before, block in zip([self.product, *self.after], self.after, strict=False):
            assert block.op is not None
            change = values[block.name][query, key] - values[before.name][query, key]
            found[OUTSIDE[block.op.name]] = float(change)
        return found


def _product(scores: Block) -> tuple[Block, list[Block]]:
    """The product of queries and keys that scores are made of, and the blocks after it."""
    after: list[Block] = []
    while scores.op is not None and scores.op.name in OUTSIDE:
        after.insert(0, scores)
        scores = operands(scores)["x"]
    if scores.op is not ops.scores:
        raise InputError(
            f"{scores.name} is not a product of queries and keys, so cellformer cannot split these "
            "scores; choose a head whose scores come from ops.scores"
        )
    return scores, after


ADDITION = Addition(
    "why",
    (
        Option(
            "why",
            bool,
            "Include the reasons why a head attends to a token, and the parts that carry the "
            "answer.",
        ),
        Option(
            "head",
            str,
            "With --why: the head that the sheet shows first, such as 1.2 (layer 1, head 2).",
        ),
    ),
    lambda given: given.options.get("head", ""),  # "": one that is chosen
    instead="‘cellformer why’ works with any model",
    one_stack=True,
    look=(
        "The sheet Why shows the reasons for an attention score. The sheet splits the score by "
        "the parts that wrote the query and the key.",
    ),
    facts=lambda head: {"head": head},
    read=lambda facts, *_: str(facts["head"]) if "head" in facts else None,
)
