"""The most likely words, live, with their baseline beside them; before them, the words expected in
place of the last word; and every word by its id.

If a word is chosen after every token, the ranks come from that choice; with one token alone and a
large vocabulary, words are ranked by LARGE and found by MATCH.
"""

from collections.abc import Mapping
from functools import reduce
from typing import Any

from cellformer.engine.cells.expression import Area, Expression, expression
from cellformer.engine.cells.functions import IF, IFERROR, LARGE
from cellformer.engine.cells.language import worded
from cellformer.engine.models.spec import CLASSES
from cellformer.exporters.compose.book import Chart, Series
from cellformer.exporters.compose.composer import Composer, slug
from cellformer.exporters.compose.dressing import CHANGED
from cellformer.exporters.compose.lookups import entry, id_of, nth, place_of_rank
from cellformer.exporters.compose.sentences import percent, sentence
from cellformer.exporters.model import layout, word_columns
from cellformer.exporters.model.block_sheets import PROMPT_COL
from cellformer.exporters.model.model_book import ModelBook
from cellformer.exporters.play.sentence import answered

N_RANKS, N_OF_MANY = 10, 20  # ranked words shown
CHART_COL, CHART_SIZE, LOOKUP_COL = 7, (600, 256), 9  # the size in pixels
# the columns right of the rank, with their styles; one without a name stays blank
AT_POSITION = {
    "word": "word",
    "logit": "live here",
    "probability": "percent",
    "baseline": "constant percent",
    "change": "change percent",
    "drawn from": "live percent",
    "": "",
    "id": "hidden",
}
OF_ONE_TOKEN = {
    "word": "word",
    "id": "id",
    "logit": "live",
    "probability": "live percent",
    "baseline": "constant percent",
    "change": "change percent",
}
HEADINGS = {  # above what is ranked for one token
    "next word": "What comes next",
    "masked word": "Words that fit the mask",
    "class": "Class of the text",
    "token class": "Class of the token",
}
EVERY_WORD = ("id", "word", "baseline", "live", "change", "baseline", "live", "change")


def n_ranks(book: ModelBook) -> int:
    """The number of ranked words shown."""
    most = N_RANKS if book.plan.ranks_every_token else N_OF_MANY
    return min(most, book.graph["logits"].shape[1])


def ranked(book: ModelBook) -> tuple[Area, Area, Area]:
    """The ten most likely words, their probabilities live, and as built: for charts."""
    word, live, built = (_column(book, name) for name in ("word", "probability", "baseline"))
    return word[:N_RANKS, 0], live[:N_RANKS, 0], built[:N_RANKS, 0]


def order(book: ModelBook) -> tuple[Area, Area]:
    """The ranks, and the probabilities that fall with them."""
    sheet, rect = book.locate(_column(book, "word"))
    return book.sheet(sheet)[rect.top : rect.bottom, rect.left - 1], _column(book, "probability")


def _column(book: ModelBook, name: str) -> Area:
    return book.shown[f"play.ranked.{name}"].block.area


def add(book: ModelBook, ws: Composer, top: int) -> None:
    """Add the ranked words; and a chart of them, or a cell to look a token up."""
    one, n, tables = book.plan.readout.one_token, n_ranks(book), {}
    (_heading_of_one if one else _heading)(book, ws, top)
    first = top + 2
    styles = OF_ONE_TOKEN if one else AT_POSITION
    ws.sheet.put(first - 1, 0, "rank", "label")
    for col, (name, style) in enumerate(styles.items(), 1):
        if name:
            tables[name] = ws.table(f"ranked.{slug(name)}", (first, col), (n, 1))
        if style not in ("", "hidden"):
            ws.sheet.put(first - 1, col, _head(book, name), "label")
    for rank in range(n):
        ws.sheet.put(first + rank, 0, rank + 1, "label number")
        cells = {name: table.area[rank, 0] for name, table in tables.items()}
        for name, formula in _formulas(book, cells, rank).items():
            array = one and name == "id" and rank > 0
            tables[name].put(rank, 0, formula, styles[name], array)
    for name in ("probability", "baseline", "drawn from"):
        if name in tables:
            ws.dress(tables[name].area, "bar")
    ws.dress(tables["change"].area, CHANGED)
    if not one:
        texts, live, built = ranked(book)
        ws.chart(
            Chart(
                top,
                CHART_COL,
                "column",
                book.of_words("The likeliest words", "The likeliest letters"),
                [Series("baseline", texts, built), Series("live", texts, live)],
                size=CHART_SIZE,
                shares=True,
            )
        )


def _head(book: ModelBook, name: str) -> str:
    """The head of a column."""
    if name != "word" or not book.plan.readout.one_token:
        return name
    return "class" if book.plan.gives in CLASSES else "token"


def _heading(book: ModelBook, ws: Composer, top: int) -> None:
    """Add what is ranked."""
    told = sentence("What comes after ‘{word}’", word=_here(book))
    none = sentence("No answer: see the orange line")
    ws.show("ranked", (top, 0), answered(book, told, none), "heading")


def _here(book: ModelBook) -> Expression:
    """The word at the position of Play."""
    return entry(book.shown["play.word"].block.area, 1, book.graph["position"][0, 0] + 1)


def add_expected(book: ModelBook, ws: Composer, top: int) -> None:
    """Add the words that were likeliest at the chosen word's place, with their probabilities."""
    at = book.graph["position"][0, 0]
    ws.show(
        "expected",
        (top, PROMPT_COL - 1),
        answered(book, IF(at > 0, sentence("in place of ‘{word}’", word=_here(book)), "")),
        "row label",
    )
    n = n_ranks(book)
    found = [
        [answered(book, IF(at > 0, cell, "")) for cell in _of_rank(book, at, rank)]
        for rank in range(n)
    ]
    ws.show("expected.word", (top, PROMPT_COL), lambda _, rank: found[rank][0], "word", (1, n))
    ws.show(
        "expected.probability",
        (top + 1, PROMPT_COL),
        lambda _, rank: found[rank][1],
        "live percent",
        (1, n),
        dress="bar",
    )


def _of_rank(book: ModelBook, at: Any, rank: int) -> tuple[Expression, Expression]:
    """The word of a rank after the first `at` tokens, and its probability."""
    ident = entry(book.graph["choice.order"][:, rank], 1, at) + 1
    where = (ident, at) if book.places["probs"].turned else (at, ident)
    return entry(word_columns.words(book).texts, ident, 1), entry(book.graph["probs"].area, *where)


def likeliest(book: ModelBook, n_before: int, n: int) -> Expression:
    """The n likeliest words after the first tokens, as one text: `6 (11 %), 3 (11 %)`."""
    found = [_of_rank(book, n_before, rank) for rank in range(n)]
    listed = [word & " (" & percent(share, 0) & ")" for word, share in found]
    return answered(book, reduce(lambda text, one: text & ", " & one, listed))


def _heading_of_one(book: ModelBook, ws: Composer, top: int) -> None:
    """Add the heading after one token, and a cell to look a token up."""
    word_columns.add_baseline(book)
    ws.sheet.put(top, 0, HEADINGS[book.plan.gives], "heading")
    if book.plan.answers:
        lookup = "look up a token", layout.prompt_text(book, 0)
        ws.sheet.lines(top, [lookup], {LOOKUP_COL - 1: "row label", LOOKUP_COL: "token"})
        found = IFERROR(
            id_of(ws.sheet[top, LOOKUP_COL], word_columns.texts(book)), worded("unknown")
        )
        ws.show("looked_up", (top, LOOKUP_COL + 1), found, "id", array=True)
        ws.sheet.put(top + 1, LOOKUP_COL, "token id; ␣ stands for a space", "note")


def _formulas(book: ModelBook, cells: Mapping[str, Area], rank: int) -> dict[str, Expression]:
    """The formula of each column of a ranked word's row, whose `cells` these are."""
    of, ident = word_columns.words(book), expression(cells["id"])
    if book.plan.readout.one_token:
        where = place_of_rank(of.logits, word_columns.ids(book), rank + 1, cells["logit"])
        found = {"id": where - 1, "logit": LARGE(of.logits, rank + 1)}
        # LibreOffice takes no value of an array formula out of a file, and a cell that reads
        # nothing else misses the first edit: so what reads the id reads the logit, too
        ident = ident + 0 * cells["logit"]
    else:
        at, columns = book.graph["position"][0, 0] + 1, {"order": rank, "kept": rank, "total": 0}
        order, kept, total = (
            entry(book.graph[f"choice.{name}"][:, k], 1, at) for name, k in columns.items()
        )
        found = {"id": order, "logit": entry(of.logits, ident + 1, 1), "drawn from": kept / total}
    found |= {
        "word": entry(of.texts, ident + 1, 1),
        "probability": entry(of.probs, ident + 1, 1),
        "baseline": entry(of.baseline, ident + 1, 1),
        "change": cells["probability"] - cells["baseline"],
    }
    return {k: f if k == "id" else answered(book, f) for k, f in found.items()}


def add_every_word(book: ModelBook, ws: Composer, top: int) -> None:
    """Add all words at the position: baseline, live and the change."""
    n, position = book.graph["outputs"].shape[0], book.graph["position"][0, 0] + 1
    heading = book.of_words("Every word, by id", "Every letter, by id")
    ws.sheet.put(top, 0, heading, "heading")
    ws.sheet.across(top + 2, 0, EVERY_WORD, "label")
    for col, (name, style) in enumerate((("choice.ids", "label number"), ("outputs", "word"))):
        block = book.graph[name]
        ws.lay(block, (top + 3, col), style, turned=block.shape[0] == 1, named=False)
    for col, name, style in ((2, "logits", ""), (5, "probs", " percent")):
        block, last = book.graph[name], book.passage.n_prompt - 1
        live = ws.table(name, (top + 3, col + 1), (n, 1))
        change = ws.table(f"{name}.change", (top + 3, col + 2), (n, 1))
        ws.sheet.put(top + 1, col, "probability" if style else "logit", "block")
        for v in range(n):
            ws.sheet.put(top + 3 + v, col, book.value(name, last, v), "constant" + style)
            now = live.put(v, 0, nth(block[:, v], position), "live" + style)
            change.put(v, 0, now - ws.sheet[top + 3 + v, col], "change" + style)
        ws.dress(change.area, CHANGED)
        if style:
            ws.dress(ws.sheet[top + 3 : top + 3 + n, col], "bar")
            ws.dress(live.area, "bar")
