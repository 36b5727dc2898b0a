"""Sampling: from logits to the next word, for every position, step by step. The workings of Play.

For the word at a position, down its column: the logits, ranked (ties go to the lower id); softmax
with temperature over the k most likely; how much stands before each rank; the ranks that top-p
keeps; and the rank that the random number falls on. Position t + 1's word is chosen in column t,
from what position t's logits say, so nothing reads a column to its right.
"""

from dataclasses import dataclass

import numpy as np

from engine.cells.access import Rect
from engine.models.tokenizer import LONGEST
from exporters import layout
from exporters.book import Sheet
from exporters.layout import PLAY, PROMPT_COL
from exporters.model_book import ModelBook, cell, span

SHEET = "Sampling"
PURPOSE = "how each next word is chosen, step by step: ranks, top-k, top-p, random number"
AFTER = "Check"
MOST = 512  # words of a vocabulary that is ranked in full; of a larger one, the first FIRST ranks
FIRST = 64
WORD = LONGEST + 1  # characters that a word is cut after; no token is shown with more
TIE = 1e-12  # what ids take off their logits, so that no two are alike
TIE_TEXT = "0.000000000001"


@dataclass(frozen=True)
class Draw:
    """The steps of one choice; the first axis is the rank."""

    keys: np.ndarray  # [n_words], logits with ties broken
    order: np.ndarray  # [n_ranks], ids
    weight: np.ndarray  # [n_ranks], exponentials, 0 beyond top-k
    before: np.ndarray  # [n_ranks], share of the weight before each rank
    kept: np.ndarray  # [n_ranks], share of the weight, 0 beyond top-p
    rank: int  # that the random number falls on


def draw(logits: np.ndarray, temperature: float, top_k: int, top_p: float, r: float) -> Draw:
    """One choice from logits [n_words], as the sheet's cells make it."""
    n = len(logits)
    keys = logits - np.arange(n) * TIE
    order = np.argsort(-keys, kind="stable")[: n_ranks(n)]
    among = (np.arange(len(order)) < top_k) | (top_k == 0)
    weight = np.where(among, np.exp((logits[order] - logits[order[0]]) / temperature), 0.0)
    share = weight / weight.sum()
    before = np.concatenate([[0.0], np.cumsum(share)[:-1]])
    kept = np.where(before < top_p, share, 0.0)
    rank = int(np.searchsorted(before, r * kept.sum(), side="right")) - 1
    return Draw(keys, order, weight, before, kept, rank)


def n_ranks(n_words: int) -> int:
    """How many ranks are laid out."""
    return n_words if n_words <= MOST else FIRST


@dataclass(frozen=True)
class Rows:
    """Where each step's rows begin."""

    keys: int
    order: int
    weight: int
    before: int
    kept: int
    total: int
    rank: int
    greedy: int
    drawn: int
    chosen: int
    rest: int
    split: int
    typed: int
    looked_up: int


def rows(book: ModelBook) -> Rows:
    """The rows of the sheet, which Play refers to."""
    n = book.graph["logits"].shape[1]
    k = n_ranks(n)
    keys = 5
    order = keys + n + 2
    weight, before, kept = (order + step * (k + 2) for step in (1, 2, 3))
    total = kept + k
    below = (total + i for i in (2, 3, 4, 5, 7, 8, 9, 10))
    return Rows(keys, order, weight, before, kept, total, *below)


def wanted(book: ModelBook) -> bool:
    """In workbooks that show every word at every token."""
    return not book.large


def add(book: ModelBook) -> None:
    """The workings of every choice, one column per position."""
    sheet = book.sheet(SHEET)
    layout.dress(book, sheet)
    at = rows(book)
    words = book.labels[book.graph["logits"].axes[1]]
    k = n_ranks(len(words))
    sheet.widths = {0: 14, 1: 14}
    for row, text in (
        (at.keys, "logits; ties go to the lower id"),
        (at.order, "ids by rank"),
        (at.weight, "exponentials of (logit − largest) / temperature; none beyond top-k"),
        (at.before, "share of the ranks before"),
        (at.kept, "shares that top-p keeps: ranks that less than top-p stands before"),
    ):
        sheet.put(row - 1, 0, text, "heading")
    for v, word in enumerate(words):
        sheet.put(at.keys + v, 0, v, "label number")
        sheet.put(at.keys + v, 1, word, "row label")
    for row in (at.order, at.weight, at.before, at.kept):
        for rank in range(k):
            sheet.put(row + rank, 1, rank + 1, "label number")
    for row, text in (
        (at.total, "kept in all"),
        (at.rank, "rank drawn"),
        (at.greedy, "greedy id"),
        (at.drawn, "drawn id"),
        (at.chosen, "chosen id"),
        (at.rest, "sentence from here"),
        (at.split, "its first word"),
        (at.typed, "typed or picked"),
        (at.looked_up, "its id"),
    ):
        sheet.put(row, 1, text, "row label")
    for t in range(book.graph["logits"].shape[0]):
        layout.label(book, sheet, 3, PROMPT_COL + t, "token", t, "label")
        _column(book, sheet, at, t)
        _typed(book, sheet, at, t)


def _column(book: ModelBook, sheet: Sheet, at: Rows, t: int) -> None:
    """The choice of the word after position t."""
    n_words, col = book.graph["logits"].shape[1], PROMPT_COL + t
    k = n_ranks(n_words)
    sampling = book.passage.sampling
    r = float(book.passage.numbers[t + 1])
    logits = book.values["logits"][t]
    temperature = book.value("temperature", 0, 0)
    found = draw(logits, temperature, sampling.top_k, sampling.top_p, r)

    def column(row: int, n: int) -> str:
        return span(Rect(row, row + n, col, col + 1))

    keys, before = column(at.keys, n_words), column(at.before, k)
    weights, kept = column(at.weight, k), column(at.kept, k)
    place = book.places["logits"]
    words = f"'{place.sheet}'!" + span(place.rect(Rect(t, t + 1, 0, n_words)))
    top_k, top_p = book.spot("top_k"), book.spot("top_p")
    heat = book.at("temperature", 0, 0)
    for v in range(n_words):
        logit = book.at("logits", t, v)
        formula = f"{logit}-{v}*{TIE_TEXT}"
        sheet.calc(at.keys + v, col, formula, float(found.keys[v]), "step green")
    for rank in range(k):
        ident = cell(at.order + rank, col)
        formula = f"MATCH(LARGE({keys},{rank + 1}),{keys},0)-1"
        sheet.calc(at.order + rank, col, formula, float(found.order[rank]), "id")
        away = f"INDEX({words},{ident}+1)-INDEX({words},{cell(at.order, col)}+1)"
        among = f"IF({top_k}=0,1,IF({rank + 1}<={top_k},1,0))"
        formula = f"{among}*EXP(({away})/{heat})"
        sheet.calc(at.weight + rank, col, formula, float(found.weight[rank]), "step green")
        if rank:
            above = f"{cell(at.before + rank - 1, col)}+{cell(at.weight + rank - 1, col)}"
            formula = f"{above}/SUM({weights})"
            sheet.calc(at.before + rank, col, formula, float(found.before[rank]), "step")
        else:
            sheet.put(at.before, col, 0.0, "step")
        own = f"{cell(at.weight + rank, col)}/SUM({weights})"
        formula = f"IF({cell(at.before + rank, col)}<{top_p},{own},0)"
        sheet.calc(at.kept + rank, col, formula, float(found.kept[rank]), "step")
    sheet.calc(at.total, col, f"SUM({kept})", float(found.kept.sum()), "step")
    number = f"{PLAY}!{cell(layout.NUMBER_ROW, col + 1)}"
    formula = f"MATCH({number}*{cell(at.total, col)},{before},1)"
    sheet.calc(at.rank, col, formula, float(found.rank + 1), "id")
    greedy, drawn = float(found.order[0]), float(found.order[found.rank])
    sheet.calc(at.greedy, col, cell(at.order, col), greedy, "id")
    ids = column(at.order, k)
    sheet.calc(at.drawn, col, f"INDEX({ids},{cell(at.rank, col)},1)", drawn, "id")
    formula = f'IF({book.spot("choose")}="sampled",{cell(at.drawn, col)},{cell(at.greedy, col)})'
    sheet.calc(at.chosen, col, formula, drawn if sampling.temperature else greedy, "id")


def _typed(book: ModelBook, sheet: Sheet, at: Rows, t: int) -> None:
    """The t-th word that the reader gave, and its id; the first of the vocabulary where unknown.

    Each column takes the first word off the sentence, and hands the rest on.
    """
    col, n_prompt = PROMPT_COL + t, book.passage.n_prompt
    given = [layout.prompt_text(book, k) for k in range(t, n_prompt)]
    rest, text = " ".join(given), given[0] if given else ""
    if t:
        before, taken = cell(at.rest, col - 1), cell(at.split, col - 1)
        formula = f"MID({before},LEN({taken})+2,LEN({before})+1)"
    else:
        formula = f"TRIM({book.spot('sentence')})"
    sheet.calc(at.rest, col, formula, rest, "word")
    spaced = f'SUBSTITUTE({cell(at.rest, col)}," ",REPT(" ",{WORD}))'
    sheet.calc(at.split, col, f"TRIM(MID({spaced},1,{WORD}))", text, "word")
    pick = f"{PLAY}!{cell(layout.PICK_ROW, col)}"
    formula = f'IF({pick}<>"",{pick},{cell(at.split, col)})'
    sheet.calc(at.typed, col, formula, text, "word")
    match = f"MATCH(TRUE(),EXACT({layout.vocabulary(book)},{cell(at.typed, col)}),0)-1"
    value = float(book.passage.ids[t]) if given else 0.0
    sheet.calc(at.looked_up, col, f"IFERROR({match},0)", value, "id", array=True)
