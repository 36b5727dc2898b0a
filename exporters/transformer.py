"""The whole book: blocks laid out, pages around them, sheets in the reader's order."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from engine.cells.graph import Graph
from engine.cells.part import frozen
from engine.models.generate import Passage
from engine.models.model import Model
from engine.models.spec import MANY_WORDS
from engine.models.tokenizer import shown
from engine.studies import lens
from engine.studies.lens import Views
from exporters import layout, source, theme
from exporters.book import Book, Sheet, quoted
from exporters.large import play as large_page
from exporters.layout import PLAY
from exporters.pages import (
    attribution,
    check,
    diagram,
    heads,
    index,
    play,
    printed,
    sampling,
    start,
    switches,
    trajectory,
    vocabulary,
)
from exporters.pages import lens as lens_page
from exporters.story import Printed, Story

ORDER = (
    "Start", "Play", "Study", "Switches", "Embedding", "Block", "Readout", "Heads", "Lens",
    "Attribution", "Trajectory", "Words", "Weights", "Vocabulary", "Printed", "Map", "Index",
    "Check", "Sampling", "Source",
)  # fmt: skip


ALL = (sampling, play, switches, heads, lens_page, attribution, trajectory, vocabulary)
FEW = (large_page, switches, heads)  # of a model with many words, or of one part of a model
LINK_WIDTH = 6  # characters


def assemble(
    title: str,
    model: Model,
    passage: Passage,
    story: Story,
    tables: Sequence[Printed] = (),
    headings: Mapping[str, str] | None = None,
    page: Callable[[Book], None] | None = None,
    live: Sequence[str] = (),
) -> Book:
    """A whole workbook for a model and a passage: its pages around its laid-out blocks.

    `headings` gives the title of the step that a block begins: a model that has them is read by
    hand, and its weights stand beside what they multiply. `page` adds a sheet of the workbook's
    own, "Study". `live` names the parts that are to recompute (`blocks.3`), everything unless
    given; what they read from the rest is put as constants, and nothing else is there.
    """
    large = model.spec.d_vocab > MANY_WORDS
    if large:
        model = replace(model, spec=replace(model.spec, last_only=True))
    graph = model.graph(passage.ids)
    if passage.sampling.temperature:
        graph.fill("temperature", np.array([[passage.sampling.temperature]]))
    if live:
        graph = frozen(graph, live)
    few = large or bool(live)
    views = Views() if few else _views(graph, passage)
    labels = {"vocab": shown(model.vocabulary.texts)}
    if model.outputs:
        labels["vocab_out"] = shown(model.outputs.texts)
    by_hand = headings is not None
    values = graph.values
    book = Book(title, graph, values, labels, headings or {}, passage, views, by_hand, tuple(live))
    book.sheet(start.SHEET)
    (large_page if few else play).settle(book)
    layout.lay_out(book)
    for module in FEW if few else ALL:
        module.page(book)
    if tables:
        printed.page(book, tables)
    if page:
        page(book)
    for module in (diagram, index, check):
        module.page(book)
    source.page(book, model)
    _put_in_order(book)
    start.page(book, story)
    return book


def _views(graph: Graph, passage: Passage) -> lens.Views:
    """Lens and attribution at the end of the prompt, for the two likeliest words."""
    last = passage.n_prompt - 1
    order = np.argsort(-graph.values["logits"][last], kind="stable")
    return lens.add(graph, last, int(order[0]), int(order[min(1, len(order) - 1)]))


def _put_in_order(book: Book) -> None:
    """Sheets as they are read; on each its purpose, and the way to the next."""
    place = {name: k for k, name in enumerate(ORDER)}
    book.sheets = dict(sorted(book.sheets.items(), key=lambda item: place[item[0].split(" ")[0]]))
    names = list(book.sheets)
    for name, following in zip(names[1:], [*names[2:], "Start"], strict=True):
        sheet = book.sheets[name]
        col = _clear_of_links(sheet) if name != PLAY else 1
        sheet.link(1, col, f"next: {following} →", f"{quoted(following)}!A1")
        sheet.put(2, 0, sheet.purpose or start.purpose(name, book.large), "note")


def _clear_of_links(sheet: Sheet) -> int:
    """The first column that a link to Play, in column 1, does not run into."""
    col, room = 2, float(sheet.widths.get(1, theme.COLUMN_WIDTH))
    while room < LINK_WIDTH:
        room += sheet.widths.get(col, theme.COLUMN_WIDTH)
        col += 1
    return col
