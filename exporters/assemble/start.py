"""The sheet Start: what this workbook is, what to look at, what to try, links to all sheets."""

from collections.abc import Iterator, Sequence

from cellformer.engine.cells.functions import IFERROR
from cellformer.engine.cells.language import AsIs, translated, worded
from cellformer.exporters.assemble.tour import Stop
from cellformer.exporters.compose import theme
from cellformer.exporters.compose.address import quoted
from cellformer.exporters.compose.book import START, Book, Sheet
from cellformer.exporters.compose.composer import Composer, Table
from cellformer.exporters.compose.lookups import entry
from cellformer.exporters.compose.sentences import sentence
from cellformer.exporters.compose.story import Story, Suggestion
from cellformer.exporters.model.model_book import ModelBook
from cellformer.exporters.model.words import BY_HAND
from cellformer.exporters.play import ranking

TOP = 4  # below the ledger and the verdict
ABOUT = "What this is"
PRINTED = "Printed"  # the sheet with the source's numbers, where there is one
WHOLE = ("0", "#,##0")  # formats of whole numbers
LINE, LONGEST = 15, 116  # a row's height in points, the characters of a line
LONGEST_MERGED = 145  # of one that the last column is part of
PROTECTED = (
    "Formulas and labels are locked, but without a password. To unlock a sheet in Excel: Review "
    "> Unprotect Sheet. In LibreOffice: Tools > Protect Sheet."
)
HIDDEN = (
    "Sheets without a link above are hidden, because only programs use them. Hidden sheets are "
    "not printed. To see them, right-click a tab: Unhide in Excel, Show Sheet in LibreOffice."
)


def add(book: Book, story: Story, stops: Sequence[Stop] = ()) -> None:
    """Add the first sheet; for a model, with the stops of its tour."""
    sheet = book.sheet(START)
    last = book.passage.n_prompt - 1 if isinstance(book, ModelBook) else 0
    possible = [one for one in story.suggestions if _has_cells(book, one)]
    book.suggestions = [suggestion.told(book.graph, last) for suggestion in possible]
    book.about = [translated(line) for line in story.about]
    book.examples = story.examples
    sheet.widths = {0: 3, 1: 24, 2: 96, 3: 24, 4: 16}
    sheet.put(0, 0, story.title, "title")
    sheet.put(1, 0, story.source, "note")
    by_hand = isinstance(book, ModelBook) and book.by_hand
    row = _section(sheet, TOP, ABOUT, [*story.about, *([BY_HAND] * by_hand)])
    if isinstance(book, ModelBook):
        row = _likeliest(book, sheet, row, story)
    row = _tries(book, sheet, row, book.suggestions)
    if stops:
        row = _tour(book, sheet, row, stops)
    row = _section(sheet, row, "What to look at", story.look)
    sheet.put(row, 0, "Sheets", "heading")
    for name, other in book.sheets.items():
        if name != START:
            row += 1
            if other.hidden:
                sheet.put(row, 1, AsIs(name))
            else:
                sheet.link(row, 1, AsIs(name), f"{quoted(name)}!A1")
            sheet.put(row, 2, other.purpose)
    sheet.put(row + 2, 0, "How to read the cells", "heading")
    legend = [
        ("weight blue", 0.5, "blue: a weight or a setting that you can change"),
        ("activation black", 0.5, "black: a formula that uses cells of the same sheet"),
        ("activation green", 0.5, "green: a formula that uses another sheet"),
    ]
    for k, (style, value, text) in enumerate(legend, row + 3):
        sheet.put(k, 1, value, style)
        sheet.put(k, 2, text)
    row += 3 + len(legend)
    sheet.down(row, 2, (PROTECTED, HIDDEN), "text")
    if story.errata:
        _about_source(book, story.errata, row + 3)


def _likeliest(book: ModelBook, sheet: Sheet, row: int, story: Story) -> int:
    """List the likeliest words after some tokens of the sentence; returns the row below."""
    shown = {at: n for at, n in story.likeliest.items() if at <= book.passage.n_prompt}
    if not shown:
        return row
    sheet.put(row, 0, "The likeliest next words", "heading")
    ws, words, items = Composer(book, START), book.shown["play.word"].block.area, [*shown.items()]
    ws.show(
        "before",
        (row + 1, 1),
        lambda k, _: sentence("after ‘{word}’", word=entry(words, 1, items[k][0])),
        "stop text",
        (len(shown), 1),
    )
    ws.show(
        "likeliest",
        (row + 1, 2),
        lambda k, _: ranking.likeliest(book, *items[k]),
        "wrapped",
        (len(shown), 1),
    )
    return row + len(shown) + 2


def _has_cells(book: Book, suggestion: Suggestion) -> bool:
    """Whether the workbook has all cells of a suggestion: a short one may lack a word."""
    first = suggestion.cell
    cells = [("prompt.pick", first, 0) if isinstance(first, int) else first]
    cells += [at for at, _ in suggestion.also]
    cells += [*([suggestion.watch] if suggestion.watch else []), *suggestion.others.values()]
    shapes = {name: book.graph[name].shape for name, _, _ in cells}
    return all(i < shapes[name][0] and j < shapes[name][1] for name, i, j in cells)


def _about_source(book: Book, lines: Sequence[str], row: int) -> None:
    """Add what is to be said of the source: below its numbers, or else here, from a row on."""
    sheet = book.sheets.get(PRINTED, book.sheet(START))
    below = 2 + max((at for at, _ in sheet.entries), default=0)
    _section(sheet, row if sheet.name == START else below, "About the source", lines)


def ways(book: Book) -> Iterator[tuple[Sheet, str]]:
    """Every sheet but the first, with the name of the next one that is not hidden."""
    following = START
    found = []
    for name, sheet in reversed(book.sheets.items()):
        found.append((sheet, following))
        following = following if sheet.hidden else name
    yield from found[-2::-1]


def _tries(book: Book, sheet: Sheet, row: int, suggestions: Sequence[Suggestion]) -> int:
    """Add the suggested edits, each with the cell to watch and what it shows now; returns the row
    below."""
    if not suggestions:
        return row
    sheet.put(row, 0, "Three things to try", "heading")
    if any(suggestion.watch for suggestion in suggestions):
        sheet.put(row, 4, "now", "row label")
    shown = Composer(book, START).table("watched", (row + 1, 4), (len(suggestions), 1))
    for k, suggestion in enumerate(suggestions):
        at, where = row + 1 + k, cell_of(book, suggestion)
        sheet.put(at, 0, k + 1, "stop number")
        _lead(sheet, at, 1, AsIs(where.replace("'", "")), where)
        sheet.put(at, 2, suggestion.text, "wrapped")
        sheet.heights[at] = LINE * (1 + len(sheet.entries[at, 2].value) // LONGEST)
        if suggestion.watch:
            seen = _address(book, *suggestion.watch)
            _lead(sheet, at, 3, worded("see {cell}", cell=seen.replace(chr(39), "")), seen)
            _show(book, shown, k, suggestion)
    return row + len(suggestions) + 2


def _show(book: Book, shown: Table, k: int, suggestion: Suggestion) -> None:
    """Repeat the cell to see, so that a reader sees the effect of an edit beside its text."""
    assert suggestion.watch is not None
    name, i, j = suggestion.watch
    place, cell = book.places[name], book.places[name].block[i, j]
    sheet, at = book.sheet(place.sheet), place.cell(i, j)
    styles = {id(own): style for own, style in sheet.regions}
    style = styles[id(place)] if id(place) in styles else sheet.entries[at].style
    number = theme.STYLES[style].get("num_format", "")
    if isinstance(book.clean(cell), str):
        shown.put(k, 0, cell & "", "stop text")
    else:
        decimals = suggestion.decimals or (1 if "%" in number else None)
        kind = f"percent {decimals}" if decimals else "count" if number in WHOLE else "live"
        shown.put(k, 0, IFERROR(cell + 0, ""), f"stop {kind}")


def _tour(book: Book, sheet: Sheet, row: int, stops: Sequence[Stop]) -> int:
    """Add the stops in order, each with its text; returns the row below."""
    heading = worded(
        "A tour of the model in {n} stops, for the sentence that you typed", n=len(stops)
    )
    sheet.put(row, 0, heading, "heading")
    told = Composer(book, START).table("tour", (row + 1, 2), (len(stops), 1))
    for k, stop in enumerate(stops, 1):
        sheet.put(row + k, 0, k, "stop number")
        _lead(sheet, row + k, 1, stop.concept, stop.target)
        told.put(k - 1, 0, stop.text, "wrapped")
        sheet.merged.append(sheet[row + k, 2:4].rect)
        length = len(str(book.clean.cell(START, row + k, 2)))
        sheet.heights[row + k] = LINE * (1 + length // LONGEST_MERGED)
    return row + len(stops) + 2


def _lead(sheet: Sheet, row: int, col: int, text: str, target: str) -> None:
    """Add a link, on the first line of a row with several lines."""
    sheet.put(row, col, text, "stop")
    sheet.links[row, col] = target


def _section(sheet: Sheet, row: int, heading: str, lines: Sequence[str]) -> int:
    if not lines:
        return row
    sheet.put(row, 0, heading, "heading")
    sheet.down(row + 1, 1, lines, "text")
    return row + len(lines) + 2


def cell_of(book: Book, suggestion: Suggestion) -> str:
    """The address of the cell for an edit. If the prompt is too short, the address at which the
    word would stand."""
    if isinstance(suggestion.cell, int):
        place = book.places["prompt.pick"]
        return book.address(book.sheet(place.sheet)[place.cell(suggestion.cell, 0)])
    return _address(book, *suggestion.cell)


def _address(book: Book, name: str, i: int, j: int) -> str:
    return book.address(book.places[name].block[i, j])
