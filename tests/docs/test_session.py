"""A session in Python: what its page says, and what a notebook shows."""

import doctest
import timeit
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
from conftest import ROOT

import cellformer as cf
from cellformer.engine.cells.notebook import MOST_COLUMNS, MOST_ROWS

SHOWN = {"div", "b", "p", "table", "thead", "tbody", "tr", "th", "td", "br", "small"}
SHOWN |= {"details", "summary"}
HOSTILE = ("<script>alert(1)</script>", "<img/src=x/onerror=alert(1)>", "'onclick='x", "&lt;b>")


class Page(HTMLParser):
    """The texts of HTML that has no element, and no attribute, but those of a table."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(html)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in SHOWN and {name for name, _ in attrs} <= {"style"}
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def html_of(thing: Any) -> Page:
    return Page(thing._repr_html_())


def test_the_session_goes_as_its_page_says() -> None:
    path = ROOT / "docs" / "session.md"
    assert doctest.testfile(str(path), module_relative=False).failed == 0


def test_a_notebook_shows_hostile_words_as_text() -> None:
    spec = cf.ModelSpec(d_vocab=4, d_model=2, n_ctx=4)
    weights = {"W_E": np.zeros((4, 2)), "W_U": np.ones((2, 4))}
    model = cf.Model(spec, weights, cf.WordList(HOSTILE))
    graph = model.graph([0, 1, 2, 3])
    page = html_of(graph.frame("logits"))
    for t, word in enumerate(HOSTILE):
        assert word in page.texts and f"{t} {word}" in page.texts
    assert " ".join(HOSTILE) in html_of(model).texts
    graph.input(HOSTILE[0], [[HOSTILE[1]]])
    live = cf.Evaluator(graph)
    for thing in (graph, graph[HOSTILE[0]], live.cell(HOSTILE[0], 0, 0), live.frame(HOSTILE[0])):
        assert any(HOSTILE[0] in text for text in html_of(thing).texts)
    assert HOSTILE[1] in html_of(live.frame(HOSTILE[0])).texts


@pytest.mark.parametrize("name", ["dialogue-game", "loss"])
def test_a_notebook_shows_every_block(name: str) -> None:
    graph = cf.graph(name)
    for block in graph:
        shown = html_of(graph.frame(block.name)).texts
        assert shown[0] == f"{block.name}, {block.sides}"
        assert len(shown) <= 1 + (MOST_ROWS + 1) * (MOST_COLUMNS + 1)
        assert html_of(block).texts[0] == shown[0]
    texts = html_of(graph).texts
    assert any(text.startswith(next(iter(graph.blocks))) for text in texts)
    found = html_of(graph.cell(block.name, 0, 0)).texts
    assert found[0].startswith(f"{block.name}[0,0] = ")


def test_a_frame_leaves_out_cells_that_are_blank() -> None:
    graph = cf.graph("cat-sat", "the cat sat")
    page = html_of(graph.frame("blocks.0.attn.h0.pattern"))
    n_numbers = len(page.texts) - 1 - 3 - 3  # the title, and labels
    assert n_numbers == graph["blocks.0.attn.h0.pattern"].n_cells == 6
    columns = graph.frame("probs").to_dict()
    assert np.array_equal(columns["mat"], graph.values["probs"][:, 6])


def test_a_tree_names_leaf_and_branch_of_one_name() -> None:
    graph = cf.Graph()
    for name in ("a", "a.b", "a.c.d", "a.c.e", "f.g.h"):
        graph.input(name, 1.0)
    texts = [text for text in html_of(graph).texts if "setting" not in text]
    assert [text.strip() for text in texts[1:]] == ["a", "a", "3", "b", "c", "2", "d", "e", "f.g.h"]


def test_a_large_graph_is_shown_quickly() -> None:
    graph = cf.Graph()
    wide = graph.input("wide", np.zeros((2000, 3000)))
    for n in range(3000):
        graph.table(f"blocks.{n // 250}.attn.h{n % 12}.t{n}", (1, 1), lambda i, j: wide[i, j] * 1)
    for show in (graph._repr_html_, graph.frame("wide")._repr_html_):
        assert min(timeit.repeat(show, number=1, repeat=3)) < 0.2
        assert len(show()) < 500_000
