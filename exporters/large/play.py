"""Play for a large vocabulary: token ids to type, a token to look up, the twenty likeliest next.

Every word's logit and probability at one position stand on Readout, with the baseline beside them;
here they are ranked by LARGE and found by MATCH.
"""

from dataclasses import replace

import numpy as np

from engine.cells.access import Rect
from exporters import layout
from exporters.address import a1
from exporters.book import Place, Sheet
from exporters.layout import ID_ROW, PLAY, PROMPT_COL, PROMPT_ROW
from exporters.model_book import ModelBook, cell, entry

SHEET = PLAY
PURPOSE = "the prompt as token ids: type others where they are live, and the next token is ranked"
AFTER = "Start"
LOOKUP_ROW, DIALS_ROW, RESULTS_ROW = 5, 12, 18
N_RANKS = 20
BASELINE = "baseline"


def wanted(book: ModelBook) -> bool:
    """In workbooks that show the words after one token alone."""
    return book.large


def place(book: ModelBook) -> None:
    """Say where the controls stand, before other pages refer to them."""
    dials = ("position", "temperature")
    for k, name in enumerate(dial for dial in dials if dial in book.graph.blocks):
        place = Place(book.graph[name], PLAY, DIALS_ROW + 1 + k, PROMPT_COL, False)
        book.places[name] = place
    book.places["tokens"] = Place(book.graph["tokens"], PLAY, ID_ROW, PROMPT_COL, True)


def add(book: ModelBook) -> None:
    """The prompt as ids with their texts, the dials, the ranking."""
    sheet = book.sheet(PLAY)
    layout.dress(book, sheet)
    sheet.widths = {0: 13, 1: 16} | dict.fromkeys(range(2, 8), 12)
    _prompt(book, sheet)
    if book.live:
        return
    _baseline(book)
    _ids(book, sheet)
    sheet.put(DIALS_ROW, 0, "What is looked at, and how", "heading")
    for name, text in (
        ("position", "the token whose next word is ranked, counted from 0"),
        ("temperature", "below 1 sharper, above 1 flatter"),
    ):
        place = book.places[name]
        sheet.put(place.top, PROMPT_COL - 1, name, "row label")
        sheet.put(place.top, PROMPT_COL + 1, text, "note")
        sheet.regions.append((place, "input setting"))
    _ranking(book, sheet)


def _baseline(book: ModelBook) -> None:
    """The untouched probabilities, as constants beside the live ones."""
    probs = book.places["probs"]
    block = replace(book.graph["probs"], name=BASELINE, kind="setting", op=None, operands=())
    place = Place(block, probs.sheet, probs.top, probs.left + 2, probs.turned)
    book.places[BASELINE], book.values[BASELINE] = place, book.values["probs"].copy()
    sheet = book.sheets[probs.sheet]
    sheet.regions.append((place, "constant"))
    sheet.put(place.top - 1, place.left, BASELINE, "label")


def texts(book: ModelBook) -> Rect:
    """The texts of all words, left of their logits."""
    logits = book.places["logits"]
    return Rect(logits.top, logits.top + logits.size[0], logits.left - 1, logits.left)


def _prompt(book: ModelBook, sheet: Sheet) -> None:
    """The tokens: ids, with their texts; constants where the embedding is not live."""
    what = f"Live: {', '.join(book.live)}; the prompt is as built" if book.live else ""
    sheet.put(LOOKUP_ROW - 1, 0, what or "The prompt: type other token ids", "heading")
    for row, text in ((PROMPT_ROW - 1, "position"), (PROMPT_ROW, "token"), (ID_ROW, "token id")):
        sheet.put(row, PROMPT_COL - 1, text, "row label")
    for t in range(len(book.passage.ids)):
        sheet.put(PROMPT_ROW - 1, PROMPT_COL + t, t, "label number")
        if book.live:
            sheet.put(PROMPT_ROW, PROMPT_COL + t, layout.prompt_text(book, t), "word shown")
    sheet.regions.append((book.places["tokens"], "input count"))


def _ids(book: ModelBook, sheet: Sheet) -> None:
    """The texts of the ids, and a token to look up."""
    readout, n_words = book.places["logits"].sheet, book.graph["logits"].shape[1]
    words = f"{readout}!{a1(texts(book), 'all')}"
    sheet.put(LOOKUP_ROW, PROMPT_COL - 1, "look a token up", "row label")
    first = layout.prompt_text(book, 0)
    sheet.put(LOOKUP_ROW, PROMPT_COL, first, "token")
    match = f"MATCH(TRUE(),EXACT({words},{cell(LOOKUP_ROW, PROMPT_COL)}),0)-1"
    found = float(book.passage.ids[0])
    sheet.calc(LOOKUP_ROW, PROMPT_COL + 1, f'IFERROR({match},"unknown")', found, "id", array=True)
    sheet.put(LOOKUP_ROW, PROMPT_COL + 2, "its id; a space is shown as ␣", "note")
    whole = {"validate": "integer", "criteria": "between", "minimum": 0, "maximum": n_words - 1}
    for t in range(len(book.passage.ids)):
        col = PROMPT_COL + t
        ident = cell(ID_ROW, col)
        shown = entry(texts(book), f"{ident}+1", "1", readout, absolute=True)
        sheet.calc(PROMPT_ROW, col, shown, layout.prompt_text(book, t), "word shown")
        sheet.rules[ID_ROW, col] = whole | {"error_message": f"An id from 0 to {n_words - 1}."}


def _ranking(book: ModelBook, sheet: Sheet) -> None:
    """The likeliest words: LARGE and MATCH over all logits; probability live and as built."""
    sheet.put(RESULTS_ROW, 0, "What comes next", "heading")
    heads = ("rank", "token", "id", "logit", "probability", "baseline", "change")
    for col, head in enumerate(heads):
        sheet.put(RESULTS_ROW + 1, col, head, "label")
    logits, probs = book.values["logits"][0], book.values["probs"][0]
    words = book.labels[book.graph["logits"].axes[1]]
    areas = {name: book.area(name) for name in ("logits", "probs", BASELINE)}
    order = np.argsort(-logits, kind="stable")[:N_RANKS]
    readout = book.places["logits"].sheet
    for k, ranked in enumerate(order):
        v = int(np.argmax(logits == logits[ranked]))  # of words that tie, MATCH finds the first
        row = RESULTS_ROW + 2 + k
        ident = cell(row, 2)
        sheet.put(row, 0, k + 1, "label number")
        shown = entry(texts(book), f"{ident}+1", "1", readout, absolute=True)
        sheet.calc(row, 1, shown, words[v], "word")
        match = f"MATCH({cell(row, 3)},{areas['logits']},0)-1"
        sheet.calc(row, 2, match, float(v), "id")
        sheet.calc(row, 3, f"LARGE({areas['logits']},{k + 1})", float(logits[v]), "live")
        for col, name in ((4, "probs"), (5, BASELINE)):
            formula = f"INDEX({areas[name]},{ident}+1,1)"
            style = "live percent" if col == 4 else "constant percent"
            sheet.calc(row, col, formula, float(probs[v]), style)
        sheet.calc(row, 6, f"{cell(row, 4)}-{cell(row, 5)}", 0.0, "change percent")
    sheet.scales.append((Rect(RESULTS_ROW + 2, RESULTS_ROW + 2 + len(order), 4, 5), "bar"))


def largest_change(book: ModelBook) -> str:
    """A formula for how far the probabilities are from the baseline, all in all."""
    if not book.live:
        gap = f"{book.area('probs')}-{book.area(BASELINE)}"
        return f"SQRT(SUMPRODUCT({gap},{gap}))"
    last = [block for block in book.graph if block.op][-1]
    area, values = book.area(last.name), book.values[last.name]
    return f"ABS(SUMPRODUCT({area},{area})/{float((values**2).sum()):.15f}-1)"
