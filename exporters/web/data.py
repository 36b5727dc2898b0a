"""A book as data for its page: blocks, formulas, sheets, and the page's texts about them.

blocks    in the order of computation: name, shape, axes, kind, meaning, place on a sheet; and
          either typed values (`v`: a list, `d`: see `packing`), or an op (`op`, of the
          kernels; `x`, its operands with their subscripts), or formulas of its cells (`t`)
cells     of sheets, which other formulas read: see `formulas`
shapes    of formulas: see `formulas`
words     the texts of ops' formulas for people, by which operands are single cells
sums      a sum of every computed block in turn: by them the page says whether it computes the same
"""

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import cellformer.exporters.web.sheets as sheet_data
from cellformer.engine.cells import language
from cellformer.engine.cells.access import shift
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.expression import Expression
from cellformer.engine.cells.formula import Formulas, InWords
from cellformer.engine.cells.javascript import kernel
from cellformer.engine.cells.texts import readable
from cellformer.engine.models.spec import CLASSES
from cellformer.engine.studies.part_names import said
from cellformer.engine.text import chat_ids
from cellformer.engine.text.tokenizer import shown
from cellformer.exporters.assemble import tour
from cellformer.exporters.compose.book import Book
from cellformer.exporters.model.block_sheets import PLAY
from cellformer.exporters.model.fingerprint import fingerprint
from cellformer.exporters.model.model_book import ModelBook
from cellformer.exporters.model.words import meaning
from cellformer.exporters.pages import machine
from cellformer.exporters.web import flow, packing, wording
from cellformer.exporters.web.formulas import Collection, Groups
from cellformer.exporters.web.packing import Weights

FORMAT = 1  # of the data: a page reads its own
MOST_LISTED = 3  # numbers that stand in the data; more are among the weights
DIGITS = 10  # of a sum: one more than is compared
# Sheets of a workbook of which the page has the contents in an element of its own.
ELEMENTS = {PLAY: "sentence", "Sampling": "ranking", machine.SHEET: "machine"}


class Page(NamedTuple):
    """The contents of a page: its data, its weights, the kernels of its ops."""

    data: dict[str, Any]
    weights: bytes
    kernels: list[str]


def of_book(book: Book, packs: bool = False) -> Page:
    """The data of a book; `packs`: its matrices of weights stand as in the model's own file."""
    with language.speaking(book.language):
        return _of_book(book, packing.matrices(book.graph) if packs else {})


def _of_book(book: Book, packed: Mapping[str, bool]) -> Page:
    """The data of a book; `packed` has the weights to pack, see `packing.matrices`."""
    formulas, weights, kernels, words = Collection(book), Weights(), Numbered(), Numbered()

    def formula(expression: Expression, beside: str = "") -> list[Any]:
        return [*formulas.of(expression, beside)]

    places = {name: k for k, name in enumerate(book.sheets)}
    blocks: list[dict[str, Any]] = []
    for block in book.graph:
        found = _described(book, block, places)
        if block.name in packed:
            found["d"] = weights.pack(book.graph.inputs[block.name], packed[block.name])
        elif block.name in book.graph.inputs:
            found |= _typed(book.graph.inputs[block.name], weights)
        if block.expression is not None:
            found["t"] = _table(block, formulas)
        elif block.op:
            found |= _op(block, len(blocks), formulas.index)
            found["op"] = kernels.of(kernel(block, packed.keys()))
            found["w"] = words.of(_texts(block))
        blocks.append(found)
    data: dict[str, Any] = {
        "format": FORMAT,
        "title": book.title,
        "isModel": {"tokens", "embed"} <= book.graph.blocks.keys(),
        "blocks": blocks,
        "sheetNames": list(book.sheets),
        "sheets": _by_part(sheet_data.sheets(book, formula)),
        "suggestions": [sheet_data.suggestion(book, one) for one in book.suggestions],
        "sums": [_sum(book.values[b.name]) for b in book.graph if b.computed],
    }
    if steps := flow.steps(book.graph, formulas.index):
        data |= {"flow": steps, "about": book.about, "examples": book.examples}
    if isinstance(book, ModelBook):
        data |= _of_model(book, formula)
    elif {"words", "tokens"} <= book.graph.blocks.keys():
        data["vocabulary"] = book.graph.inputs["words"].ravel().tolist()
    data |= {
        "cells": formulas.own_cells(),  # and the shapes of all
        "shapes": list(formulas.shapes),
        "words": list(words),
        "fingerprint": fingerprint(book),
    }
    return Page(data, bytes(weights), list(kernels))


class Numbered(dict[Any, int]):
    """Things by number, each once."""

    def of(self, thing: Any) -> int:
        """Its number."""
        return self.setdefault(thing, len(self))


def _by_part(sheets: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """The sheets part by part, null where a sheet lacks one: similar data stands together and
    deflates better."""
    parts = dict.fromkeys(part for sheet in sheets for part in sheet)
    return {part: [sheet.get(part) for sheet in sheets] for part in parts}


def _described(book: Book, block: Block, sheets: Mapping[str, int]) -> dict[str, Any]:
    found: dict[str, Any] = {"n": block.name, "s": block.shape, "a": block.axes, "k": block.kind}
    if isinstance(book, ModelBook) and block.kind != "table":
        found["means"] = meaning(block, book.plan.gradient_of)
    own = book.graph.gradients.get(block.name)
    if own is not None and own.name != f"gradient.{block.name}":
        found["g"] = own.name
    if place := book.places.get(block.name):
        found["at"] = [sheets[place.sheet], place.top, place.left, int(place.turned)]
    return found


def _typed(values: Any, weights: Weights) -> dict[str, Any]:
    """Typed values: a list, or their place among the weights."""
    array = np.asarray(values)
    if array.dtype == object and {*map(type, array.flat)} == {float}:
        array = array.astype(np.float64)
    if array.dtype == object or array.size <= MOST_LISTED:
        return {"v": array.ravel().tolist()}
    return {"d": weights.add(array)}


def _table(block: Block, formulas: Collection) -> list[Any]:
    """The formulas of a table's cells, grouped by shape."""
    groups = Groups()
    for k, (i, j) in enumerate(block.whole.cells()):
        groups.add(k, formulas.of(block.formula(i, j), block.name))
    return groups.data()


def _op(block: Block, k: int, index: Mapping[str, int]) -> dict[str, Any]:
    """The operands of the k-th block, by how far they stand before it, in which layers are alike;
    and which of its cells are blank."""
    assert block.op is not None
    found: dict[str, Any] = {"x": [[k - index[b.name], *at] for _, at, b in block.sources]}
    if block.mask.causal:
        mask = [1, block.mask.window or 0, block.mask.sentence or 0]
        found["m"] = [*mask, 1] if block.mask.before else mask
    if block.partial:
        found["p"] = 1
        found["b"] = str(block.op.blank).replace("inf", "Infinity")
    return found


def _texts(block: Block) -> tuple[tuple[str, str, tuple[int, ...]], ...]:
    """An op's formula for people, with a hole for each address; one text for each choice of
    operands that are single cells."""
    found: dict[str, tuple[str, tuple[int, ...]]] = {}
    formulas = Formulas(block, InWords(block.name), lambda operand, rect: "\0")
    edges = {abs(shift(code)) for _, at, _ in block.sources for code in at}
    rows = {*range(max(edges) + 1), *range(block.shape[0] - max(edges) - 1, block.shape[0])}
    for i in sorted(rows & {*range(block.shape[0])}):
        single, text, order = formulas.template(i, 0)
        held = text.replace("%s", "\0").replace("%%", "%")
        found["".join("-" if one is None else str(int(one)) for one in single)] = held, tuple(order)
    return tuple((single, *text) for single, text in sorted(found.items()))


def _sum(values: np.ndarray) -> float:
    """The weighted sum of a block's cells, by weights from 1 to nearly 2, so that two cells that
    change places change it."""
    array = np.asarray(values)
    if array.dtype == object:
        array = np.array([_counts(x) for x in array.flat], np.float64)
    flat = np.where(np.isfinite(array), array, 0.0).ravel()
    total = float(flat @ (1 + np.arange(flat.size) / flat.size))
    return float(f"{total:.{DIGITS - 1}e}")


def _counts(x: Any) -> float:
    """The value of a cell in a sum: a number itself, a text the sum of its characters."""
    if isinstance(x, str):
        return float(sum(map(ord, x)))
    return 0.0 if x is None else float(x)


def _of_model(book: ModelBook, formula: Any) -> dict[str, Any]:
    """The page's data of a model: its words, its views, the tour."""
    classes = book.model.outputs if book.plan.gives in CLASSES else None
    return {
        "vocabulary": list(shown(book.model.vocabulary.texts)),
        **({"outputs": list(map(readable, classes.texts))} if classes else {}),
        "given": book.passage.n_prompt,
        "gives": book.plan.gives,
        "stages": [stage.name for stage in book.views.stages],
        "tour": [
            {
                "concept": stop.concept,
                "place": _place(book, stop),
                "text": formula(wording.live(stop.text)),
            }
            for stop in tour.stops(book)
        ],
        "parts": _parts(book),
        **({"ends": book.model.vocabulary.ends} if book.plan.readout.one_token else {}),
        **({"chat": _chat(book)} if book.passage.chat and book.passage.chat.by_ids else {}),
    }


def _chat(book: ModelBook) -> dict[str, Any]:
    """The ids of a conversation's template, and the texts that it begins with."""
    chat, vocabulary = book.passage.chat, book.model.vocabulary
    assert chat is not None
    ids = chat_ids.of(partial(vocabulary.encode, special=False), chat)
    system = chat.system or chat.template.pieces.system
    return {**ids._asdict(), "ends": vocabulary.ends, "system": system}


def _place(book: ModelBook, stop: tour.Stop) -> dict[str, str]:
    """Where the page shows what a stop of the tour links to: an element, or a block."""
    if stop.sheet in ELEMENTS:
        return {"id": ELEMENTS[stop.sheet]}
    here = (place.block for place in book.places.values() if place.sheet == stop.sheet)
    return next(({"block": b.name} for b in here if book.address(b.area) == stop.target), {})


def _parts(book: ModelBook) -> list[tuple[str, str]]:
    """The heads and MLPs as texts name them, and the blocks that show them. The longest names come
    first, because `head 1.2` begins `head 1.23`."""
    inside = (b for b in book.graph if b.leaf in ("pattern", "post") and b.layer is not None)
    found = [(said(b.name.rpartition(".")[0]), b.name) for b in inside if not b.passes]
    return sorted(found, key=lambda part: -len(part[0]))
