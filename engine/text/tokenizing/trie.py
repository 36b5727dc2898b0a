"""A vocabulary as a tree of characters (a trie), in cells: which tokens begin at a symbol.

A node is its row in a table, counted from 1; its number is the parent's row times a power of two
plus the code of the character that leads to it. Nodes are numbered level by level, so rows are
sorted by number, and MATCH finds the row, which is the node.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from cellformer.engine.cells.block import Block
from cellformer.engine.cells.expression import Expression
from cellformer.engine.cells.functions import IF, INDEX, MATCH
from cellformer.engine.text.tokenizing.steps import Steps, shifted

BASE = 1 << 21  # more than there are codes
MOST_NODES = 1_000_000  # rows of a sheet, nearly


@dataclass(frozen=True)
class Tree:
    """Rows [nodes, 2 or 3]: a node's number, the symbol of the token that ends there (an id plus 1;
    0: none), and its score. The first `n_roots` are roots; `longest` is the length of the longest
    token."""

    rows: np.ndarray
    longest: int


def tree(pieces: Iterable[tuple[int, str, int, float]], n_roots: int = 1) -> Tree:
    """The tree of tokens, each given as (root from 0, text, symbol, score)."""
    level = {(root, text): (symbol, score) for root, text, symbol, score in pieces if text}
    longest = max((len(text) for _, text in level), default=1)
    row_of = {(root, ""): root + 1 for root in range(n_roots)}
    rows: list[tuple[float, float, float]] = [(float(root), 0.0, 0.0) for root in range(n_roots)]
    for length in range(1, longest + 1):
        prefixes = {(root, text[:length]) for root, text in level if len(text) >= length}
        numbers = sorted((row_of[r, t[:-1]] * BASE + ord(t[-1]), r, t) for r, t in prefixes)
        for number, root, text in numbers:
            rows.append((number, *level.get((root, text), (0, 0.0))))
            row_of[root, text] = len(rows)
    return Tree(np.array([*rows, (1e15, 0, 0)]), longest)


@dataclass
class Walk:
    """The nodes reached from every symbol: row l, column k is the node after the symbols k to k +
    l; 0 if there is none."""

    tree: Block
    nodes: Block

    def symbol(self, node: Expression) -> Expression:
        """The symbol of the token that ends at a node; 0: none."""
        return INDEX(self.tree[:, 1].fixed, node)

    def score(self, node: Expression) -> Expression:
        """The score of the token that ends at a node."""
        return INDEX(self.tree[:, 2].fixed, node)


def walk(
    steps: Steps,
    found: Tree,
    symbols: Block,
    room: Block,
    root: Callable[[int], Expression],
    longest: int,
) -> Walk:
    """Follow the tree from every symbol, for at most `room` and at most `longest` symbols."""
    table = steps.input("tree", found.rows)
    numbers, n = table[:, 0].fixed, steps.n
    nodes: Block

    def node(parent: Expression, code: Expression) -> Expression:
        number = parent * BASE + code
        at = MATCH(number, numbers, 1)
        return IF(INDEX(numbers, at) == number, at, 0)

    def reached(step: int, k: int) -> Expression:
        if step == 0:
            return node(root(k), symbols[0, k])

        def further(k: int) -> Expression:
            parent = nodes[step - 1, k]
            return IF(room[0, k].fixed_rows > step, node(parent, symbols[0, k + step]), 0)

        return shifted(further, k, n - step, lambda k: 0)

    nodes = steps.graph.table("nodes", (longest, n), reached, runs=True)
    return Walk(table, nodes)
