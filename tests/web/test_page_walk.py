"""Whatever a person does on a page, one thing after another: its values are those of an engine that
was given the state's edits and nothing else, and so are the baseline's. Ranges are pasted, and
every second kept link has a lesson."""

from collections.abc import Callable, Iterator
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import default_book
from in_node import call
from pages import differing, values, written
from test_page_values import BOOKS

from cellformer.engine import Evaluator
from cellformer.engine.cells.block import Block
from cellformer.exporters.compose.book import Book
from cellformer.exporters.file.xlsx import write
from cellformer.exporters.model.model_book import ModelBook

pytestmark = [pytest.mark.usefixtures("node"), pytest.mark.slow]

N_ACTIONS = 200
MODELS = ("thin-dialogue-game", "cat-sat", "golden-llama", "golden-mamba")
MODELS += ("nudge-mixtral", "text-sentence")
KINDS = (
    *("say", "say", "delete", "next", "next", "pick", "look", "switch", "dial", "weight"),
    *("activation", "unset", "undo", "undo", "redo", "keep", "open", "link", "reset"),
    *("range", "range"),
)
DIALS: dict[str, tuple[Any, ...]] = {
    "choose": ("greedy", "sampled"),
    "temperature": (0.0, 0.5, 2.0),
    "top_k": (1.0, 2.0, 9.0),
    "top_p": (0.3, 1.0),
}


def actions(book: ModelBook, seed: int) -> Iterator[list[Any]]:
    """What a person does."""
    rng, words = np.random.default_rng(seed), list(book.labels["vocab"])
    switches = [b.name.removesuffix(".switch") for b in book.graph if b.leaf == "switch"]
    of_kind = {
        "weight": [b for b in book.graph if b.kind == "weight"],
        "activation": [b for b in book.graph if b.op is not None],
    }
    while True:
        kind = str(rng.choice(KINDS))
        if kind == "say":
            n = int(rng.integers(1, 6))
            text = " ".join([*rng.choice([*words, "zzz"], n)])
            yield [kind, text if "sentence" in book.graph.blocks else _ids(book, rng, n)]
        elif kind in ("pick", "look"):
            n = len(words) if kind == "pick" else book.graph["tokens"].shape[0]
            yield [kind, int(rng.integers(n))]
        elif kind == "switch" and switches:
            yield [kind, str(rng.choice(switches)), bool(rng.integers(2))]
        elif kind == "dial" and "choose" in book.graph.blocks:
            name = str(rng.choice(list(DIALS)))
            yield ["set", name, 0, 0, DIALS[name][rng.integers(len(DIALS[name]))]]
        elif kind in of_kind:
            block = of_kind[kind][rng.integers(len(of_kind[kind]))]
            i, j = (int(rng.integers(n)) for n in block.shape)
            if block.has(i, j):
                yield ["set", block.name, i, j, round(float(rng.normal()), 3)]
        elif kind == "range":
            blocks = of_kind[str(rng.choice(list(of_kind)))]
            yield [kind, _pasted(blocks[rng.integers(len(blocks))], rng)]
        elif kind in ("unset", "open", "link"):
            yield [kind, int(rng.integers(50))]
        elif kind not in ("switch", "dial"):
            yield [kind]


def _pasted(block: Block, rng: np.random.Generator) -> list[list[Any]]:
    """A range of a block as it is pasted or filled: numbers, and cells that are put back."""
    top, left = (int(rng.integers(n)) for n in block.shape)
    numbers = [round(float(rng.normal()), 3), 0.5, None]
    return [
        [block.name, i, j, numbers[rng.integers(3)]]
        for i in range(top, min(top + 3, block.shape[0]))
        for j in range(left, min(left + 3, block.shape[1]))
        if block.has(i, j)
    ]


def _ids(book: ModelBook, rng: np.random.Generator, n: int) -> str:
    return " ".join(str(k) for k in rng.integers(0, len(book.labels["vocab"]), n))


def engines(book: Book) -> Callable[[list[list[Any]]], Evaluator]:
    """Fresh engines with a state's edits; of a state that comes again, the same one."""

    @cache
    def with_edits(edits: tuple[tuple[Any, ...], ...]) -> Evaluator:
        live = Evaluator(book.graph)
        for edit in edits:
            live.set(*edit)
        live.recompute()
        return live

    return lambda edits: with_edits(tuple(map(tuple, edits)))


@pytest.mark.parametrize("name", MODELS)
def test_a_walk(name: str, tmp_path: Path) -> None:
    book = BOOKS[name]() if name in BOOKS else default_book(name)
    assert isinstance(book, ModelBook)
    call("values.mjs", "open", str(written(book, tmp_path / "page.html")), True)
    call("values.mjs", "begin", str(write(book, tmp_path / "x.xlsx")))
    engine_with = engines(book)
    for k, action in enumerate(islice(actions(book, 28), N_ACTIONS)):
        state = call("values.mjs", "act", action)
        for run, of in (("edits", "ofSession"), ("baseline", "ofBaseline")):
            live = engine_with(state[run])
            found = [*islice(differing(values(tmp_path, of), live), 5)]
            assert not found, f"{k}: after {action}, {run} {state[run]}: {found}"
