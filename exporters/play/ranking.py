"""The likeliest words, live, with their baseline beside them.

After every token they come out of the order in which its word is chosen; after one token alone, of
many words, they are ranked by LARGE and found by MATCH.
"""

from collections.abc import Mapping

from engine.cells.expression import Area, Expression
from engine.cells.functions import IFERROR, LARGE
from exporters.compose.book import Chart, Series
from exporters.compose.composer import Composer
from exporters.compose.dressing import CHANGED
from exporters.compose.lookups import entry, id_of, place_of_rank
from exporters.model import layout
from exporters.model.model_book import ModelBook
from exporters.play import every_word
from exporters.play.sentence import answered

N_RANKS, N_OF_MANY = 10, 20  # ranked words shown
CHART_COL, CHART_SIZE = 7, (600, 262)  # pixels
LOOKUP_COL = 9
# the columns right of the rank; one without a name stays blank
AT_POSITION = ("word", "logit", "probability", "baseline", "change", "drawn from", "", "id")
OF_ONE_TOKEN = ("word", "id", "logit", "probability", "baseline", "change")
STYLES = {
    "word": "word",
    "id": "id",
    "logit": "live",
    "probability": "live percent",
    "baseline": "constant percent",
    "change": "change percent",
    "drawn from": "live percent",
}
OTHER_STYLES = {"id": "hidden", "logit": "live here", "probability": "percent"}  # at a position
Cells = Mapping[str, Area]  # of a word's line, by their columns
BESIDE = "baseline: as built, after its own prompt; drawn from: shares after top-k and top-p"


def n_ranks(book: ModelBook) -> int:
    """How many ranked words are shown."""
    most = N_RANKS if book.plan.ranks_every_token else N_OF_MANY
    return min(most, book.graph["logits"].shape[1])


def ranked(book: ModelBook) -> tuple[Area, Area, Area]:
    """The ten likeliest words, their probabilities live, and as built: for charts."""
    word, live, built = (_column(book, name) for name in ("word", "probability", "baseline"))
    return word[:N_RANKS, 0], live[:N_RANKS, 0], built[:N_RANKS, 0]


def order(book: ModelBook) -> tuple[Area, Area]:
    """The ranks, and the probabilities that fall with them."""
    live = _column(book, "probability")
    sheet, rect = book.locate(live)
    return book.sheet(sheet)[rect.top : rect.bottom, 0], live


def _column(book: ModelBook, name: str) -> Area:
    return book.shown[f"play.ranked.{name}"].block.area


def add(book: ModelBook, ws: Composer, top: int) -> None:
    """The words in their order; a chart of them, or a token to look up among all."""
    one, n = book.plan.readout.one_token, n_ranks(book)
    columns, styles = (OF_ONE_TOKEN, STYLES) if one else (AT_POSITION, STYLES | OTHER_STYLES)
    if one:
        every_word.add_baseline(book)
    first = _heading(book, ws, top) + 1
    tables = {
        name: ws.table(f"ranked.{name}", (first, col), (n, 1))
        for col, name in enumerate(columns, 1)
        if name
    }
    for col, name in enumerate(("rank", *columns)):
        if name and styles.get(name) != "hidden":
            ws.sheet.put(first - 1, col, "token" if one and name == "word" else name, "label")
    formulas = _of_one_token if one else _at_position
    for rank in range(n):
        ws.sheet.put(first + rank, 0, rank + 1, "label number")
        cells = {name: table.area[rank, 0] for name, table in tables.items()}
        for name, formula in formulas(book, cells, rank).items():
            tables[name].put(
                rank, 0, formula, styles[name], array=one and name == "id" and rank > 0
            )
    for name in ("probability", "baseline", "drawn from"):
        if name in tables:
            ws.dress(tables[name].area, "bar")
    ws.dress(tables["change"].area, CHANGED)
    if not one:
        texts, live, built = ranked(book)
        series = [Series("baseline", texts, built), Series("live", texts, live)]
        title = "The likeliest words"
        ws.chart(Chart(top, CHART_COL, "column", title, series, CHART_SIZE, shares=True))
    elif book.plan.answers:
        _look_up(book, ws, top)


def _heading(book: ModelBook, ws: Composer, top: int) -> int:
    """What is ranked; returns the row below."""
    if book.plan.readout.one_token:
        masked = book.plan.gives == "masked word"
        ws.sheet.put(top, 0, "What may stand there" if masked else "What comes next", "heading")
        return top + 1
    here = entry(book.shown["play.word"].block.area, 1, book.graph["position"][0, 0] + 1)
    title = answered(book, "What comes after ‘" & here & "’", "No answer: see the line in orange")
    ws.show("ranked", (top, 0), title, "heading")
    ws.sheet.put(top + 1, 0, BESIDE, "note")
    return top + 2


def _at_position(book: ModelBook, cells: Cells, rank: int) -> dict[str, Expression]:
    """A word's line, out of the order at the position that is looked at."""
    position = book.graph["position"][0, 0] + 1

    def step(name: str, k: int) -> Expression:
        return entry(book.graph[f"choice.{name}"][:, k], 1, position)

    of_word = _of_word(book, cells, cells["id"])
    of_word["logit"] = entry(every_word.words(book).logits, cells["id"] + 1, 1)
    of_word["drawn from"] = step("kept", rank) / step("total", 0)
    shown = {name: answered(book, formula) for name, formula in of_word.items()}
    return {"id": step("order", rank)} | shown


def _of_one_token(book: ModelBook, cells: Cells, rank: int) -> dict[str, Expression]:
    """A word's line, out of all logits."""
    logits, logit = every_word.words(book).logits, cells["logit"]
    where = place_of_rank(logits, every_word.ids(book), rank + 1, logit)
    # LibreOffice takes no value of an array formula out of a file, and a cell that reads
    # nothing else misses the first edit: so what reads the id reads the logit, too
    of_word = _of_word(book, cells, cells["id"] + 0 * logit)
    return {"id": where - 1, "logit": LARGE(logits, rank + 1)} | of_word


def _of_word(book: ModelBook, cells: Cells, ident: Expression) -> dict[str, Expression]:
    """What is found of a word by its id."""
    of = every_word.words(book)
    return {
        "word": entry(of.texts, ident + 1, 1),
        "probability": entry(of.probs, ident + 1, 1),
        "baseline": entry(of.baseline, ident + 1, 1),
        "change": cells["probability"] - cells["baseline"],
    }


def _look_up(book: ModelBook, ws: Composer, top: int) -> None:
    """A token to look up among all."""
    ws.sheet.put(top, LOOKUP_COL - 1, "look a token up", "row label")
    ws.sheet.put(top, LOOKUP_COL, layout.prompt_text(book, 0), "token")
    ident = id_of(ws.sheet[top, LOOKUP_COL], every_word.texts(book))
    found = IFERROR(ident, "unknown")
    ws.show("looked up", (top, LOOKUP_COL + 1), found, "id", array=True)
    ws.sheet.put(top + 1, LOOKUP_COL, "its id; a space is shown as ␣", "note")
