"""Play for a large vocabulary: a sentence to type, or ids; a token to look up; the twenty
likeliest next.

Every word's logit and probability at one position, the last that is given, stand on Readout, with
the baseline beside them; here they are ranked by LARGE and found by MATCH. A model whose tokenizer
has no formulas takes token ids alone.
"""

from dataclasses import replace

from engine.cells.expression import Area, Expression, Rounded, expression
from engine.cells.functions import (
    ABS,
    AND,
    COUNT,
    IF,
    IFERROR,
    INDEX,
    LARGE,
    NOT,
    SQRT,
    SUBSTITUTE,
    SUMPRODUCT,
)
from engine.cells.texts import readable
from engine.text import tokenizing
from exporters.compose.book import Place, Run, Sheet
from exporters.compose.dressing import When
from exporters.compose.lookups import entry, id_of, place_of_rank
from exporters.model import layout
from exporters.model.layout import PLAY, PROMPT_COL, TEXTS_ROW
from exporters.model.model_book import ModelBook
from exporters.pages.play import APOSTROPHE

SHEET = PLAY
PURPOSE = "type a sentence in the yellow cell: what comes next is ranked"
IDS = "the prompt as token ids: type others where they are live, and the next token is ranked"
AFTER = "Start"
HEADING_ROW, SENTENCE_ROW, MESSAGE_ROW, POSITION_ROW = 3, 4, 5, 6
PICK_ROW, ID_ROW = TEXTS_ROW - 1, TEXTS_ROW + 1
GIVEN_ROW, BUILT_ROW, DIALS_ROW, LINE_ROW, RESULTS_ROW = 10, 11, 12, 16, 18
LABEL_COL, LOOKUP_COL = PROMPT_COL - 1, 9
WIDE = 12  # columns of the sentence
N_RANKS = 20
CHARTED = 10
BASELINE = "baseline"
IDS_BESIDE = 1  # columns right of the baseline
DIALS = {
    "position": "the token whose next word is ranked, counted from 0",
    "temperature": "below 1 sharper, above 1 flatter",
    "n_prompt": "how many tokens are given",
}


def wanted(book: ModelBook) -> bool:
    """In workbooks that show the words after one token alone."""
    return book.plan.answers or bool(book.live)


def typed(book: ModelBook) -> bool:
    """Whether a sentence can be typed."""
    return "sentence" in book.graph.blocks


def dials(book: ModelBook) -> list[str]:
    """The settings that the book has."""
    return [name for name in DIALS if name in book.graph.blocks]


def place(book: ModelBook) -> None:
    """Say where the controls stand, before other pages refer to them."""
    for k, name in enumerate(dials(book)):
        place = Place(book.graph[name], PLAY, DIALS_ROW + 1 + k, PROMPT_COL, False)
        book.places[name] = place
    book.places["tokens"] = Place(book.graph["tokens"], PLAY, ID_ROW, PROMPT_COL, True)
    if typed(book):
        sentence = book.graph["sentence"]
        book.places["sentence"] = Place(sentence, PLAY, SENTENCE_ROW, PROMPT_COL, False)
    if "attention_mask" in book.graph.blocks:
        mask = Place(book.graph["attention_mask"], PLAY, ID_ROW + 1, PROMPT_COL, True)
        book.places["attention_mask"] = mask
        book.sheet(PLAY).regions.append((mask, "input count"))


def add(book: ModelBook) -> None:
    """The prompt with the texts of its tokens, the dials, the ranking."""
    sheet = book.sheet(PLAY)
    layout.dress(book, sheet)
    sheet.purpose = PURPOSE if typed(book) else IDS
    sheet.widths = {0: 13, 1: 16} | dict.fromkeys(range(2, 8), 12)
    for row, text in (
        (POSITION_ROW, "position"),
        (TEXTS_ROW, "token"),
        (ID_ROW, "token id"),
    ):
        sheet.put(row, LABEL_COL, text, "row label")
    for t in range(len(book.passage.ids)):
        sheet.put(POSITION_ROW, PROMPT_COL + t, t, "label number")
    if book.live:
        _constant(book, sheet)
        return
    add_baseline(book)
    _look_up(book, sheet)
    (_sentence if typed(book) else _ids)(book, sheet)
    sheet.put(DIALS_ROW, 0, "What is looked at, and how", "heading")
    for name in dials(book):
        _dial(book, sheet, name)
    if typed(book):
        _line(book, sheet)
    add_ranking(book, sheet, "What comes next")


def add_baseline(book: ModelBook) -> None:
    """The untouched probabilities, as constants beside the live ones; and the words' ids."""
    probs = book.places["probs"]
    block = replace(book.graph["probs"], name=BASELINE, kind="setting", op=None, operands=())
    place = Place(block, probs.sheet, probs.top, probs.left + 2, probs.turned)
    book.places[BASELINE], book.others[BASELINE] = place, book.values["probs"].copy()
    sheet = book.sheets[probs.sheet]
    sheet.regions.append((place, "constant"))
    sheet.put(place.top - 1, place.left, BASELINE, "label")
    sheet.put(place.top - 1, place.left + IDS_BESIDE, "id", "label")
    sheet.runs.append(Run(ids(book).rect, "label number"))


def texts(book: ModelBook) -> Area:
    """The texts of all words, left of their logits."""
    return layout.labels_of(book, "logits", 1, book.graph["logits"].shape[1])


def ids(book: ModelBook) -> Area:
    """0, 1, 2, ... beside the baseline: the ids of all words."""
    place = book.places[BASELINE]
    height, _ = place.size
    return book.sheets[place.sheet][place.top : place.top + height, place.left + IDS_BESIDE]


# --- the prompt -----------------------------------------------------------------------------


def _constant(book: ModelBook, sheet: Sheet) -> None:
    """The prompt of a part that is live: as built."""
    what = f"Live: {', '.join(book.live)}; the prompt is as built"
    sheet.put(HEADING_ROW, 0, what, "heading")
    for t in range(len(book.passage.ids)):
        sheet.put(TEXTS_ROW, PROMPT_COL + t, layout.prompt_text(book, t), "word shown")
    sheet.regions.append((book.places["tokens"], "input count"))


def _ids(book: ModelBook, sheet: Sheet) -> None:
    """Ids to type, with their texts."""
    sheet.put(HEADING_ROW, 0, "The prompt: type other token ids", "heading")
    sheet.put(SENTENCE_ROW, 0, tokenizing.refusal(book.model.vocabulary), "note")
    sheet.regions.append((book.places["tokens"], "input count"))
    for col in range(PROMPT_COL, PROMPT_COL + len(book.passage.ids)):
        sheet.formula(TEXTS_ROW, col, entry(texts(book), sheet[ID_ROW, col] + 1, 1), "word shown")
        sheet.rules[ID_ROW, col] = _an_id(book)


def _an_id(book: ModelBook) -> dict[str, object]:
    """What may be typed for an id."""
    last = book.graph.looked_up(book.graph["tokens"])[1] - 1
    rule = {"validate": "integer", "criteria": "between", "minimum": 0, "maximum": last}
    return rule | {"error_message": f"An id from 0 to {last}."}


def _sentence(book: ModelBook, sheet: Sheet) -> None:
    """A sentence to type, what became of it, and its tokens; ids that stand for some of them."""
    n_tokens, n_given = len(book.passage.ids), book.graph["n_prompt"][0, 0]
    sheet.put(HEADING_ROW, 0, "Type a sentence; what comes next is ranked below", "heading")
    sheet.put(SENTENCE_ROW, LABEL_COL, "sentence", "row label")
    book.lay(book.places["sentence"], "sentence")
    sheet.notes[SENTENCE_ROW, PROMPT_COL] = APOSTROPHE
    sheet.merged.append(sheet[SENTENCE_ROW, PROMPT_COL : PROMPT_COL + WIDE].rect)
    sheet.formula(MESSAGE_ROW, PROMPT_COL, _message(book), "note")
    for name, row, style, text in (
        ("prompt.pick", PICK_ROW, "dial", "type an id instead"),
        ("prompt.id", GIVEN_ROW, "id", "given; -1: none"),
        ("prompt.built", BUILT_ROW, "built", "built with"),
    ):
        sheet.put(row, LABEL_COL, text, "row label")
        block = book.graph[name]
        book.lay(Place(block, PLAY, row, PROMPT_COL, turned=True, named=False), style)
    book.lay(book.places["tokens"], "id")
    for t, col in enumerate(range(PROMPT_COL, PROMPT_COL + n_tokens)):
        shown = entry(texts(book), sheet[ID_ROW, col] + 1, 1)
        sheet.formula(TEXTS_ROW, col, IF(expression(t) < n_given, shown, ""), "word shown")
        sheet.rules[PICK_ROW, col] = _an_id(book)
    ids = sheet[ID_ROW, PROMPT_COL : PROMPT_COL + n_tokens]
    behind = sheet[POSITION_ROW, PROMPT_COL].fixed_rows >= n_given.fixed
    sheet.dress(ids, When("built", behind))


def _message(book: ModelBook) -> Expression:
    """What became of the sentence, in a line."""
    fine, told = (book.graph[f"tokenizer.{leaf}"][0, 0] for leaf in ("fine", "message"))
    n_tokens, n_given = len(book.passage.ids), book.graph["n_prompt"][0, 0]
    first = book.sheet(PLAY)[TEXTS_ROW, PROMPT_COL]
    stands_in = told & " (" & first & " stands in)"
    counted = n_given & " given, room for " & n_tokens - n_given & " more"
    counted = IF(_picked(book), "ids are typed: they stand in the sentence's place", counted)
    return IF(_nothing(book), stands_in, IF(fine == 0, told, counted))


def _picked(book: ModelBook) -> Expression:
    """Whether an id is typed anywhere."""
    return COUNT(book.graph["prompt.pick"].area.as_range) > 0


def _nothing(book: ModelBook) -> Expression:
    """Whether there is no token at all."""
    return book.graph["prompt.id"][0, 0] < 0


def _look_up(book: ModelBook, sheet: Sheet) -> None:
    """A token to look up among all."""
    word = layout.prompt_text(book, 0)
    sheet.put(RESULTS_ROW, LOOKUP_COL - 1, "look a token up", "row label")
    sheet.put(RESULTS_ROW, LOOKUP_COL, word, "token")
    found = IFERROR(id_of(sheet[RESULTS_ROW, LOOKUP_COL], texts(book)), "unknown")
    sheet.formula(RESULTS_ROW, LOOKUP_COL + 1, found, "id", array=True)
    sheet.put(RESULTS_ROW + 1, LOOKUP_COL, "its id; a space is shown as ␣", "note")


# --- what comes next ------------------------------------------------------------------------


def _dial(book: ModelBook, sheet: Sheet, name: str) -> None:
    """A setting, with what it is left and right of it."""
    place = book.places[name]
    sheet.put(place.top, LABEL_COL, name.replace("n_prompt", "given"), "row label")
    sheet.put(place.top, PROMPT_COL + 1, DIALS[name], "note")
    if place.block.expression is None:
        sheet.regions.append((place, "input setting"))
    else:
        book.lay(place, "id" if name == "n_prompt" else "dial")


def _line(book: ModelBook, sheet: Sheet) -> None:
    """The sentence and its likeliest next token as one line; and what the model goes on with."""
    fine = book.graph["tokenizer.fine"][0, 0]
    token = sheet[RESULTS_ROW + 2, 1]
    text = SUBSTITUTE(SUBSTITUTE(token, "␣", " "), "\\\\", "\\")
    here = book.graph["position"][0, 0] == book.graph["n_prompt"][0, 0] - 1
    told = AND(fine > 0, here, NOT(_nothing(book)), NOT(_picked(book)))
    sheet.put(LINE_ROW, LABEL_COL, "as text", "row label")
    line = IF(told, book.graph["sentence"][0, 0] & text, "")
    sheet.formula(LINE_ROW, PROMPT_COL, line, "text")
    if len(book.passage.ids) > book.passage.n_prompt:
        built = readable(book.model.vocabulary.decode(book.passage.ids))
        sheet.put(LINE_ROW + 1, LABEL_COL, "as built, in full", "row label")
        sheet.put(LINE_ROW + 1, PROMPT_COL, built, "note")


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
        logit = sheet[row, 3]
        # LibreOffice takes no value of an array formula out of a file, and a cell that reads
        # nothing else misses the first edit: so what reads the id reads the logit, too
        ident = sheet[row, 2] + 0 * logit
        sheet.formula(row, 1, entry(texts(book), ident + 1, 1), "word")
        where = place_of_rank(logits, ids(book), rank, logit)
        sheet.formula(row, 2, where - 1, "id", array=rank > 1)
        sheet.formula(row, 3, LARGE(logits, rank), "live")
        live = sheet.formula(row, 4, INDEX(probs, ident + 1, 1), "live percent")
        built = sheet.formula(row, 5, INDEX(baseline, ident + 1, 1), "constant percent")
        sheet.formula(row, 6, live - built, "change percent")
    sheet.dress(sheet[top:end, 4], "bar")


def ranked(book: ModelBook) -> tuple[Area, Area, Area]:
    """The likeliest words, their probabilities live, and as built: for charts."""
    top = RESULTS_ROW + 2
    rows = slice(top, top + min(CHARTED, book.graph["logits"].area.rect.size))
    sheet = book.sheet(PLAY)
    return sheet[rows, 1], sheet[rows, 4], sheet[rows, 5]


def order(book: ModelBook) -> tuple[Area, Area]:
    """The ranks, and the probabilities that fall with them."""
    top = RESULTS_ROW + 2
    rows = slice(top, top + min(N_RANKS, book.graph["logits"].area.rect.size))
    return book.sheet(PLAY)[rows, 0], book.sheet(PLAY)[rows, 4]


def largest_change(book: ModelBook) -> Expression:
    """How far the probabilities, or the last live block, are from the baseline, all in all."""
    if not book.live:
        gap = book.graph["probs"].area - book.places[BASELINE].block.area
        return SQRT(SUMPRODUCT(gap, gap))
    last = [block for block in book.graph if block.op][-1]
    squares = Rounded(float((book.values[last.name] ** 2).sum()), 15)
    return ABS(SUMPRODUCT(last.area, last.area) / squares - 1)
