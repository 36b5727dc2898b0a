"""Play for a large vocabulary: token ids to type, a token to look up, the twenty likeliest next.

Every word's logit and probability at one position stand on Readout, with the baseline beside them;
here they are ranked by LARGE and found by MATCH.
"""

from dataclasses import replace

from engine.cells.expression import Area, Expression, Rounded
from engine.cells.functions import ABS, IFERROR, INDEX, LARGE, MATCH, SQRT, SUMPRODUCT
from exporters import layout
from exporters.book import Place, Sheet
from exporters.layout import ID_ROW, PLAY, PROMPT_COL, PROMPT_ROW
from exporters.lookups import entry, id_of
from exporters.model_book import ModelBook

SHEET = PLAY
PURPOSE = "the prompt as token ids: type others where they are live, and the next token is ranked"
AFTER = "Start"
LOOKUP_ROW, DIALS_ROW, RESULTS_ROW = 5, 12, 18
N_RANKS = 20
BASELINE = "baseline"


def wanted(book: ModelBook) -> bool:
    """In workbooks that show the words after one token alone."""
    return book.large and (bool(book.live) or book.plan.gives == "next word")


def place(book: ModelBook) -> None:
    """Say where the controls stand, before other pages refer to them."""
    dials = ("position", "temperature")
    for k, name in enumerate(dial for dial in dials if dial in book.graph.blocks):
        place = Place(book.graph[name], PLAY, DIALS_ROW + 1 + k, PROMPT_COL, False)
        book.places[name] = place
    book.places["tokens"] = Place(book.graph["tokens"], PLAY, ID_ROW, PROMPT_COL, True)
    if "attention_mask" in book.graph.blocks:
        mask = Place(book.graph["attention_mask"], PLAY, ID_ROW + 1, PROMPT_COL, True)
        book.places["attention_mask"] = mask
        book.sheet(PLAY).regions.append((mask, "input count"))


def add(book: ModelBook) -> None:
    """The prompt as ids with their texts, the dials, the ranking."""
    sheet = book.sheet(PLAY)
    layout.dress(book, sheet)
    sheet.widths = {0: 13, 1: 16} | dict.fromkeys(range(2, 8), 12)
    _prompt(book, sheet)
    if book.live:
        return
    add_baseline(book)
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
    add_ranking(book, sheet, "What comes next")


def add_baseline(book: ModelBook) -> None:
    """The untouched probabilities, as constants beside the live ones."""
    probs = book.places["probs"]
    block = replace(book.graph["probs"], name=BASELINE, kind="setting", op=None, operands=())
    place = Place(block, probs.sheet, probs.top, probs.left + 2, probs.turned)
    book.places[BASELINE], book.values[BASELINE] = place, book.values["probs"].copy()
    sheet = book.sheets[probs.sheet]
    sheet.regions.append((place, "constant"))
    sheet.put(place.top - 1, place.left, BASELINE, "label")


def texts(book: ModelBook) -> Area:
    """The texts of all words, left of their logits."""
    return layout.labels_of(book, "logits", 1, book.graph["logits"].shape[1])


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
    n_words = book.graph["logits"].shape[1]
    sheet.put(LOOKUP_ROW, PROMPT_COL - 1, "look a token up", "row label")
    sheet.put(LOOKUP_ROW, PROMPT_COL, layout.prompt_text(book, 0), "token")
    found = IFERROR(id_of(sheet[LOOKUP_ROW, PROMPT_COL], texts(book)), "unknown")
    sheet.formula(LOOKUP_ROW, PROMPT_COL + 1, found, "id", array=True)
    sheet.put(LOOKUP_ROW, PROMPT_COL + 2, "its id; a space is shown as ␣", "note")
    whole = {"validate": "integer", "criteria": "between", "minimum": 0, "maximum": n_words - 1}
    for col in range(PROMPT_COL, PROMPT_COL + len(book.passage.ids)):
        sheet.formula(PROMPT_ROW, col, entry(texts(book), sheet[ID_ROW, col] + 1, 1), "word shown")
        sheet.rules[ID_ROW, col] = whole | {"error_message": f"An id from 0 to {n_words - 1}."}


def add_ranking(book: ModelBook, sheet: Sheet, heading: str) -> None:
    """The likeliest words: LARGE and MATCH over all logits; probability live and as built."""
    sheet.put(RESULTS_ROW, 0, heading, "heading")
    heads = ("rank", "token", "id", "logit", "probability", "baseline", "change")
    for col, head in enumerate(heads):
        sheet.put(RESULTS_ROW + 1, col, head, "label")
    logits, probs = book.graph["logits"].area, book.graph["probs"].area
    baseline = book.places[BASELINE].block.area
    top, end = RESULTS_ROW + 2, RESULTS_ROW + 2 + min(N_RANKS, logits.rect.size)
    for rank, row in enumerate(range(top, end), 1):
        sheet.put(row, 0, rank, "label number")
        ident, logit = sheet[row, 2], sheet[row, 3]
        sheet.formula(row, 1, entry(texts(book), ident + 1, 1), "word")
        sheet.formula(row, 2, MATCH(logit, logits, 0) - 1, "id")
        sheet.formula(row, 3, LARGE(logits, rank), "live")
        live = sheet.formula(row, 4, INDEX(probs, ident + 1, 1), "live percent")
        built = sheet.formula(row, 5, INDEX(baseline, ident + 1, 1), "constant percent")
        sheet.formula(row, 6, live - built, "change percent")
    sheet.dress(sheet[top:end, 4], "bar")


def largest_change(book: ModelBook) -> Expression:
    """How far the probabilities, or the last live block, are from the baseline, all in all."""
    if not book.live:
        gap = book.graph["probs"].area - book.places[BASELINE].block.area
        return SQRT(SUMPRODUCT(gap, gap))
    last = [block for block in book.graph if block.op][-1]
    squares = Rounded(float((book.values[last.name] ** 2).sum()), 15)
    return ABS(SUMPRODUCT(last.area, last.area) / squares - 1)
