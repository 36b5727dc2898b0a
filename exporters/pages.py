"""The pages that every workbook has around its model: Start, Play, Printed, Index and Check."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from engine.access import Rect
from engine.graph import Graph
from engine.tokenizer import shown
from exporters import layout, words
from exporters.book import Book, Chart, Place, Sheet, a1, one, quoted
from exporters.layout import PLAY, PROMPT_COL, PROMPT_ROW, prompt_text

TOLERANCE = "0.000000001"  # 1e-9, as a plain decimal
TOP = 5  # ranked words shown
TABLE = ("id", "word", "baseline", "live", "change", "baseline", "live", "change")


@dataclass(frozen=True)
class Try:
    """An edit for the reader to make: a cell, or the k-th word of the prompt, and what happens."""

    text: str
    cell: tuple[str, int, int] | int


@dataclass(frozen=True)
class Story:
    """What a workbook says of itself. The title is `name: what it is`; lists show the latter."""

    title: str
    source: str
    about: Sequence[str]
    look: Sequence[str]
    tries: Sequence[Try]


@dataclass(frozen=True)
class Printed:
    """A table as a source prints it, to be held against the cells `rows` x `cols` of `block`."""

    title: str
    printed: Sequence[Sequence[float]]
    block: str
    rows: Sequence[int] | None = None
    cols: Sequence[int] | None = None
    decimals: int = 2
    note: str = ""


def assemble(
    title: str,
    graph: Graph,
    labels: Mapping[str, Sequence[str]],
    story: Story,
    printed: Sequence[Printed] = (),
    headings: Mapping[str, str] | None = None,
) -> Book:
    """A whole workbook for a graph: its pages around its laid-out blocks.

    `labels` gives the texts of an axis (the words of "vocab"), `headings` the title of the step
    that a block begins.
    """
    texts = {axis: shown(tuple(words)) for axis, words in labels.items()}
    book = Book(title, graph, graph.values, texts, headings or {})
    for name in ("Start", PLAY):
        book.sheet(name)
    layout.lay_out(book)
    play(book)
    if printed:
        printed_page(book, printed)
    index(book)
    check(book)
    start(book, story)
    return book


# --- Start --------------------------------------------------------------------------------


def start(book: Book, story: Story) -> None:
    """What this is, what to look at, what to try, where everything is."""
    sheet = book.sheet("Start")
    sheet.widths = {0: 3, 1: 24, 2: 96}
    sheet.put(0, 0, story.title, "title")
    sheet.put(1, 0, story.source, "note")
    row = _section(sheet, 3, "What this is", story.about)
    row = _section(sheet, row, "What to look at", story.look)
    sheet.put(row, 0, "Three things to try", "heading")
    for k, suggestion in enumerate(story.tries, 1):
        where = _cell_of(book, suggestion)
        sheet.put(row + k, 0, str(k), "row label")
        sheet.link(row + k, 1, where.replace("'", ""), where)
        sheet.put(row + k, 2, suggestion.text, "wrapped")
    row += len(story.tries) + 2
    sheet.put(row, 0, "How to read the cells", "heading")
    legend = [
        ("weight blue", 0.5, "blue: typed in, a weight or a setting; change it"),
        ("activation black", 0.5, "black: a formula over cells of the same sheet"),
        ("activation green", 0.5, "green: a formula that reads another sheet"),
    ]
    for k, (style, value, text) in enumerate(legend, 1):
        sheet.put(row + k, 1, value, style)
        sheet.put(row + k, 2, text)
    row += len(legend) + 2
    sheet.put(row, 0, "Sheets", "heading")
    for k, name in enumerate([n for n in book.sheets if n != "Start"], 1):
        sheet.link(row + k, 1, name, f"{quoted(name)}!A1")
        sheet.put(row + k, 2, _purpose(name))


def _section(sheet: Sheet, row: int, heading: str, lines: Sequence[str]) -> int:
    sheet.put(row, 0, heading, "heading")
    for k, line in enumerate(lines, 1):
        sheet.put(row + k, 1, line)
    return row + len(lines) + 2


def _cell_of(book: Book, suggestion: Try) -> str:
    if isinstance(suggestion.cell, int):
        return f"{quoted(PLAY)}!{a1(one(PROMPT_ROW, PROMPT_COL + suggestion.cell))}"
    return book.at(*suggestion.cell)


def _purpose(name: str) -> str:
    if name.startswith("Block "):
        return f"layer {name[6:]}: attention and MLP, step by step"
    return {
        PLAY: "the prompt, the next word, baseline beside live",
        "Embedding": "from token ids to vectors",
        "Readout": "from the last residual to logits and probabilities",
        "Printed": "the source's tables: printed, recomputed, difference",
        "Index": "every block: where it stands, its shape, its meaning, whether it was edited",
        "Check": "sums to 1, no errors, live equals baseline",
    }[name]


# --- Play ---------------------------------------------------------------------------------


def play(book: Book) -> None:
    """The prompt as cells to choose from, settings, and the next word, baseline beside live."""
    sheet = book.sheet(PLAY)
    layout.dress(book, sheet)
    row = _prompt(book, sheet)
    row = _settings(book, sheet, row)
    last, n_words = book.graph["probs"].shape[0] - 1, book.graph["probs"].shape[1]
    top = row + 4
    axis = book.graph["probs"].axes[1]
    text = "The next word, after the last token of the prompt"
    sheet.put(row, 0, text, "heading")
    sheet.put(
        row + 1, 0, "baseline: the untouched workbook, constants; live: follows your edits", "note"
    )
    for col, head in ((2, "logit"), (5, "probability")):
        sheet.put(row + 2, col, head, "block")
    for col, head in enumerate(TABLE):
        sheet.put(row + 3, col, head, "label")
    for v in range(n_words):
        sheet.put(top + v, 0, v, "label number")
        sheet.put(top + v, 1, book.labels[axis][v], "word")
        for col, name, suffix in ((2, "logits", ""), (5, "probs", " percent")):
            value = book.value(name, last, v)
            r = top + v
            sheet.put(r, col, value, "constant" + suffix)
            sheet.calc(r, col + 1, book.at(name, last, v, PLAY), value, "live" + suffix)
            change = f"{a1(one(r, col + 1))}-{a1(one(r, col))}"
            sheet.calc(r, col + 2, change, 0.0, "change" + suffix)
    for col in (5, 6):
        sheet.scales.append((Rect(top, top + n_words, col, col + 1), "bar"))
    for col in (4, 7):
        sheet.scales.append((Rect(top, top + n_words, col, col + 1), "changed"))
    _ranking(book, sheet, top, last, n_words)
    categories = (PLAY, Rect(top, top + n_words, 1, 2))
    series = [
        (head, PLAY, Rect(top, top + n_words, col, col + 1))
        for head, col in (("baseline", 5), ("live", 6))
    ]
    chart = Chart(top + TOP + 2, 9, "Probability of the next word", categories, series)
    sheet.charts.append(chart)


def _prompt(book: Book, sheet: Sheet) -> int:
    """Token texts with a list to choose from, their ids, a message where a word is unknown."""
    sheet.put(PROMPT_ROW - 2, 0, "The prompt: click a blue word, choose another", "heading")
    tokens = book.graph["tokens"]
    table = book.graph.readers["tokens"][0][0].operands[1][2]
    vocabulary = _label_range(book, table.name)
    for row, text in ((-1, "position"), (0, "word"), (1, "token id"), (2, "known?")):
        sheet.put(PROMPT_ROW + row, PROMPT_COL - 1, text, "row label")
    book.places["tokens"] = Place(tokens, PLAY, PROMPT_ROW + 1, PROMPT_COL, True)
    for k in range(tokens.shape[0]):
        col = PROMPT_COL + k
        word = a1(one(PROMPT_ROW, col))
        sheet.put(PROMPT_ROW - 1, col, k, "label number")
        sheet.put(PROMPT_ROW, col, prompt_text(book, k), "token")
        sheet.lists[PROMPT_ROW, col] = vocabulary
        match = f"MATCH(TRUE(),EXACT({vocabulary},{word}),0)"
        value = book.value("tokens", k, 0)
        sheet.calc(PROMPT_ROW + 1, col, f"IFERROR({match}-1,0)", value, "id", array=True)
        known = f'IF(ISNUMBER({match}),"yes","unknown: read as "&{vocabulary.partition(":")[0]})'
        sheet.calc(PROMPT_ROW + 2, col, known, "yes", "label", array=True)
        sheet.widths[col] = 11
    known_row = Rect(PROMPT_ROW + 2, PROMPT_ROW + 3, PROMPT_COL, PROMPT_COL + tokens.shape[0])
    sheet.scales.append((known_row, "unlike yes"))
    return PROMPT_ROW + 4


def _label_range(book: Book, table: str) -> str:
    """The cells beside a table that hold the text of each of its rows."""
    place = book.places[table]
    n = place.block.shape[0]
    if place.turned:
        rect = Rect(place.top - 1, place.top, place.left, place.left + n)
    else:
        rect = Rect(place.top, place.top + n, place.left - 1, place.left)
    return f"{quoted(place.sheet)}!{a1(rect, absolute=True)}"


def _settings(book: Book, sheet: Sheet, row: int) -> int:
    for block in book.graph:
        if layout.on_play(block) and block.kind == "setting":
            sheet.put(row, 0, block.name.replace("_", " "), "block")
            place = Place(block, PLAY, row, PROMPT_COL, False)
            book.places[block.name] = place
            sheet.regions.append((place, "input setting"))
            sheet.put(row, PROMPT_COL + 1, words.meaning(block), "note")
            row += 1
    return row + 1


def _ranking(book: Book, sheet: Sheet, top: int, last: int, n_words: int) -> None:
    """The most likely words, live and baseline; ties go to the lower id."""
    probs = book.values["probs"][last]
    axis = book.graph["probs"].axes[1]
    texts = a1(Rect(top, top + n_words, 1, 2))
    key_col = 8
    sheet.put(top - 1, key_col, "rank key", "label")
    keys = probs - np.arange(n_words) * 1e-12
    for v in range(n_words):
        live = a1(one(top + v, 6))
        formula = f"{live}-{a1(one(top + v, 0))}*0.000000000001"
        sheet.calc(top + v, key_col, formula, float(keys[v]), "tiny")
    order = np.argsort(-keys)
    column = a1(Rect(top, top + n_words, key_col, key_col + 1))
    for col, head in ((9, "rank"), (10, "live"), (11, ""), (12, "baseline"), (13, "")):
        sheet.put(top - 1, col, head, "label")
    for k in range(min(TOP, n_words)):
        v = int(order[k])
        row = top + k
        where = f"MATCH(LARGE({column},{k + 1}),{column},0)"
        word, prob = str(book.labels[axis][v]), float(probs[v])
        sheet.put(row, 9, k + 1, "label number")
        sheet.calc(row, 10, f"INDEX({texts},{where},1)", word, "word")
        live = a1(Rect(top, top + n_words, 6, 7))
        sheet.calc(row, 11, f"INDEX({live},{where},1)", prob, "percent")
        sheet.put(row, 12, word, "row label")
        sheet.put(row, 13, prob, "constant percent")


# --- Printed ------------------------------------------------------------------------------


def printed_page(book: Book, tables: Sequence[Printed]) -> None:
    """Each table three times, side by side: printed, recomputed, difference."""
    sheet = book.sheet("Printed")
    layout.dress(book, sheet)
    text = "Recomputed follows your edits. Orange: further from the printed figure than rounding."
    sheet.put(2, 0, text, "note")
    row = 4
    for table in tables:
        row = _printed_table(book, sheet, table, row)


def _printed_table(book: Book, sheet: Sheet, table: Printed, row: int) -> int:
    block = book.graph[table.block]
    rows = list(range(block.shape[0]) if table.rows is None else table.rows)
    cols = list(range(block.shape[1]) if table.cols is None else table.cols)
    sheet.put(row, 0, f"{table.title}   ({table.block})", "heading")
    if table.note:
        sheet.put(row + 1, 0, table.note, "note")
    down = len(rows) == 1  # a single printed row is easier to compare as a column
    top = row + (2 if down else 3) + bool(table.note)
    height, width = (len(cols), 1) if down else (len(rows), len(cols))
    lefts = [1 + k * (width + (0 if down else 2)) for k in range(3)]
    for left, head in zip(lefts, ("printed", "recomputed", "difference"), strict=True):
        sheet.put(top - (1 if down else 2), left, head, "head" if down else "block")
        for c in range(0 if down else width):
            layout.label(book, sheet, top - 1, left + c, block.axes[1], cols[c], "label")
    for r in range(height):
        axis, k = (block.axes[1], cols[r]) if down else (block.axes[0], rows[r])
        layout.label(book, sheet, top + r, 0, axis, k, "row label")
    for r, i in enumerate(rows):
        for c, j in enumerate(cols):
            if block.has(i, j):
                at, offset = (top + c, 0) if down else (top + r, c)
                printed = table.printed[r][c]
                _compare(book, sheet, (table.block, i, j), printed, at, [x + offset for x in lefts])
    area = Rect(top, top + height, lefts[2], lefts[2] + width)
    sheet.scales.append((area, f"beyond {0.5 * 10.0**-table.decimals + 1e-9:.10f}"))
    return top + height + 1


def _compare(
    book: Book, sheet: Sheet, cell: tuple[str, int, int], printed: float, row: int, cols: list[int]
) -> None:
    """One printed number, its cell's value, and the difference."""
    value = book.value(*cell)
    left, middle, right = cols
    sheet.put(row, left, printed, "printed")
    sheet.calc(row, middle, book.at(*cell, sheet.name), value, "live")
    difference = f"{a1(one(row, middle))}-{a1(one(row, left))}"
    sheet.calc(row, right, difference, value - printed, "change")


# --- Index and Check ----------------------------------------------------------------------


def index(book: Book) -> None:
    """Every block: name, place, shape, meaning, how many numbers it holds, whether edited."""
    sheet = book.sheet("Index")
    layout.dress(book, sheet)
    heads = ("block", "sheet", "cells", "shape", "rows run", "meaning", "numbers", "edited?")
    for col, head in enumerate(heads):
        sheet.put(3, col, head, "block")
    sheet.widths = {0: 30, 1: 12, 2: 13, 3: 26, 4: 9, 5: 54, 6: 9, 7: 9}
    for row, block in enumerate(book.graph, 4):
        place = book.places[block.name]
        area = book.area(block.name)
        sheet.link(row, 0, block.name, area)
        sheet.put(row, 1, place.sheet)
        sheet.put(row, 2, a1(place.rect(block.whole)))
        sheet.put(row, 3, words.shape(block))
        sheet.put(row, 4, "across" if place.turned else "down")
        sheet.put(row, 5, words.meaning(block))
        sheet.calc(row, 6, f"COUNT({area})", float(block.n_cells), "count")
        if block.op is None and block.name != "tokens":
            sheet.scales.append((Rect(row, row + 1, 7, 8), "unlike no"))
            sheet.calc(row, 7, _edited(book, block.name), "no", "label")


def _edited(book: Book, name: str) -> str:
    """A formula that says "edited" when a block's sum or sum of squares is no longer the same."""
    area, values = book.area(name), book.values[name]
    total, squares = f"{values.sum():.12f}", f"{(values**2).sum():.12f}"
    square = f"{area}*{area}" if values.size == 1 else f"SUMPRODUCT({area},{area})"
    distance = f"ABS(SUM({area})-({total}))+ABS({square}-{squares})"
    return f'IF({distance}>{TOLERANCE},"edited","no")'


def check(book: Book) -> None:
    """Whether the workbook holds together, in four kinds of line."""
    sheet = book.sheet("Check")
    layout.dress(book, sheet)
    sheet.widths = {0: 64, 1: 12, 2: 12}
    for col, head in enumerate(("check", "largest gap", "status")):
        sheet.put(3, col, head, "block")
    row = 4
    for block in book.graph:
        if block.leaf in ("pattern", "probs"):
            sums = [
                f"ABS(SUM({a1(place.rect(Rect(i, i + 1, 0, block.shape[1])))})-1)".replace(
                    "SUM(", f"SUM({quoted(place.sheet)}!"
                )
                for place in [book.places[block.name]]
                for i in range(block.shape[0])
            ]
            gaps = np.abs(book.values[block.name].sum(axis=1) - 1)
            text = f"every column of {block.name} sums to 1"
            row = _line(sheet, row, text, f"MAX({','.join(sums)})", float(gaps.max()))
    n_blocks = len(book.graph.blocks)
    counts = a1(Rect(4, 4 + n_blocks, 6, 7))
    expected = sum(block.n_cells for block in book.graph)
    text = "every cell of every block holds a number: no error, no text"
    row = _line(sheet, row, text, f"ABS(SUM(Index!{counts})-{expected})", 0.0)
    n_words = book.graph["probs"].shape[1]
    top = next(r for (r, c), e in book.sheet(PLAY).entries.items() if e.value == "id" and c == 0)
    changes = f"{PLAY}!{a1(Rect(top + 1, top + 1 + n_words, 4, 5))}"
    text = "live logits equal the baseline (they should not, once you edit something)"
    _line(sheet, row, text, f"MAX(MAX({changes}),-MIN({changes}))", 0.0)


def _line(sheet: Sheet, row: int, text: str, formula: str, gap: float) -> int:
    sheet.put(row, 0, text)
    sheet.calc(row, 1, formula, gap, "tiny")
    status = f'IF({a1(one(row, 1))}<{TOLERANCE},"ok","look")'
    sheet.calc(row, 2, status, "ok", "status")
    sheet.scales.append((Rect(row, row + 1, 2, 3), "unlike ok"))
    return row + 1
