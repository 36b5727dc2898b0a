"""Play: type a sentence, and read the next word off a page of search results.

The sentence continues itself: a word that was not typed is the one that the column before it
chose (see `sampling`). Baseline stands beside live: what the untouched workbook said, as constants.
A model whose tokens see those after them cannot be continued word by word: its sheet has the
columns of its prompt, and where a word is missing, the one that it was built with.
"""

from engine.cells.expression import Area, Expression, expression
from engine.cells.functions import IF, LEFT, LEN, RIGHT, SUBSTITUTE, SUMPRODUCT, TRIM
from exporters.compose.book import Chart, Place, Series, Sheet
from exporters.compose.dressing import CHANGED, When
from exporters.compose.lookups import entry
from exporters.model import layout
from exporters.model.layout import (
    BUILT_ROW,
    FROM_ROW,
    ID_ROW,
    NUMBER_ROW,
    PICK_ROW,
    PLAY,
    PROMPT_COL,
    PROMPT_ROW,
    SAID_ROW,
)
from exporters.model.model_book import ModelBook
from exporters.play import settings

SHEET = PLAY
PURPOSE = "type a sentence in the yellow cell: it continues itself, and the next word is ranked"
PURPOSE_WITHOUT_ROOM = "type a sentence in the yellow cell: the next word is ranked"
RANKED_ONLY = "the next word is ranked"
BOTH_WAYS = "type a sentence in the yellow cell: the words that a position leads to are ranked"
AFTER = "Start"
SENTENCE_ROW, MESSAGE_ROW = 4, 5
TEXT_ROW, TEXT_HEIGHT = 6, 36  # height in points: two lines
RESULTS_ROW = 8  # the first screen ends some rows below the ranked words
N_RANKS = 10  # ranked words shown, and charted
WORDS_ROW = BUILT_ROW + 5  # of every word by id
LABEL_COL, CHART_COL = PROMPT_COL - 1, 7
CHART_SIZE = (600, 262)  # pixels
SILENT = "nothing is answered"
LEFT_OUT = "the rest is left out"
APOSTROPHE = "A sentence that begins with an apostrophe: type two. Programs take one for a sign."

# the columns of the ranked words; their ids stand hidden under the chart
RANK, WORD, LOGIT, PROBABILITY, BASELINE, CHANGE, DRAWN, IDENT = 0, 1, 2, 3, 4, 5, 6, 8
RANKED = ("rank", "word", "logit", "probability", "baseline", "change", "drawn from")
# the columns of every word by id: the same three of its logit, and of its probability
ALL_ID, ALL_WORD, ALL_LOGIT, ALL_PROB = 0, 1, 2, 5
BUILT, LIVE, MOVED = 0, 1, 2
ALL = ("id", "word", "baseline", "live", "change", "baseline", "live", "change")


def wanted(book: ModelBook) -> bool:
    """In workbooks that rank the words after every token."""
    return book.plan.ranks_every_token


def place(book: ModelBook) -> None:
    """Say where the controls stand, before other pages refer to them."""
    sentence, tokens = book.graph["sentence"], book.graph["tokens"]
    book.places["sentence"] = Place(sentence, PLAY, SENTENCE_ROW, PROMPT_COL, turned=False)
    book.places["tokens"] = Place(tokens, PLAY, ID_ROW, PROMPT_COL, turned=True)
    settings.place(book)


def add(book: ModelBook) -> None:
    """The sentence and how it goes on, the ranked next words; the dials; below, the words one by
    one, and every word's baseline beside live."""
    sheet = book.sheet(PLAY)
    layout.dress(book, sheet)
    continued = PURPOSE if has_room(book) else PURPOSE_WITHOUT_ROOM
    sheet.purpose = continued if book.plan.continues else BOTH_WAYS
    sheet.widths = {0: 13, 1: 14, CHART_COL: 13} | {
        col: 10
        for col in range(PROMPT_COL, PROMPT_COL + max(9, len(book.passage.ids)))
        if col != CHART_COL
    }
    _sentence(book, sheet)
    _text(book, sheet)
    _results(book, sheet)
    settings.add(book, sheet)
    _tokens(book, sheet)
    _every_word(book, sheet)


def has_room(book: ModelBook) -> bool:
    """Whether there are columns for words that the prompt does not fill."""
    return len(book.passage.ids) > book.passage.n_prompt


def n_results(book: ModelBook) -> int:
    """How many ranked words are shown."""
    return min(N_RANKS, book.graph["logits"].shape[1])


def ranked(book: ModelBook) -> tuple[Area, Area, Area]:
    """The likeliest words, their probabilities live, and as built: for charts."""
    rows = slice(RESULTS_ROW + 3, RESULTS_ROW + 3 + n_results(book))
    sheet = book.sheet(PLAY)
    return sheet[rows, WORD], sheet[rows, PROBABILITY], sheet[rows, BASELINE]


def order(book: ModelBook) -> tuple[Area, Area]:
    """The ranks, and the probabilities that fall with them."""
    rows = slice(RESULTS_ROW + 3, RESULTS_ROW + 3 + n_results(book))
    return book.sheet(PLAY)[rows, RANK], book.sheet(PLAY)[rows, PROBABILITY]


def logits(book: ModelBook) -> Area:
    """Every word's logit at the position, live."""
    if book.plan.readout.one_token:
        return book.graph["logits"].area.as_range
    return _of_every_word(book, ALL_LOGIT + LIVE)


def logit_changes(book: ModelBook) -> Area:
    """What each word's logit has changed by since the workbook was built."""
    return _of_every_word(book, ALL_LOGIT + MOVED)


def _of_every_word(book: ModelBook, col: int) -> Area:
    n_words = book.graph["logits"].shape[1]
    return book.sheet(PLAY)[WORDS_ROW : WORDS_ROW + n_words, col]


# --- the prompt ---------------------------------------------------------------------------


def along(book: ModelBook, sheet: Sheet, row: int) -> Area:
    """A row of cells, one for each position."""
    return sheet[row, PROMPT_COL : PROMPT_COL + len(book.passage.ids)]


def sentence(book: ModelBook) -> str:
    """The prompt as it is typed."""
    return str(book.graph.inputs["sentence"][0, 0])


def answered(book: ModelBook, shown: Expression, otherwise: Expression | str = "") -> Expression:
    """What is shown of an answer: nothing where a word is unknown, or none is typed."""
    return IF(book.graph["prompt.answered"][0, 0] == 1, shown, otherwise)


def shortened(book: ModelBook) -> Expression:
    """Whether the sentence has more words than there are columns, as its message says."""
    said = book.sheets[SHEET][MESSAGE_ROW, PROMPT_COL]
    return RIGHT(said, len(LEFT_OUT)) == LEFT_OUT


def _sentence(book: ModelBook, sheet: Sheet) -> None:
    what = "it continues itself" if book.plan.continues else "each word is read with all the others"
    what = RANKED_ONLY if book.plan.continues and not has_room(book) else what
    sheet.put(SENTENCE_ROW - 1, 0, f"Type a sentence; {what}", "heading")
    sheet.put(SENTENCE_ROW, LABEL_COL, "sentence", "row label")
    book.lay(book.places["sentence"], "sentence")
    sheet.notes[SENTENCE_ROW, PROMPT_COL] = APOSTROPHE
    sheet.merged.append(_wide(sheet, SENTENCE_ROW).rect)
    said = sheet.formula(MESSAGE_ROW, PROMPT_COL, _message(book), "note")
    sheet.dress(said, When("differs", RIGHT(said, len(SILENT)) == SILENT))


def _wide(sheet: Sheet, row: int) -> Area:
    """The cells of a row that a text is shown over."""
    return sheet[row, PROMPT_COL : PROMPT_COL + 11]


def _text(book: ModelBook, sheet: Sheet) -> None:
    """The sentence and its continuation as one text, where the tokens have one."""
    if "text.whole" in book.graph.blocks:
        sheet.put(TEXT_ROW, LABEL_COL, "as text", "line label")
        whole = book.graph["text.whole"][0, 0]
        shown = answered(book, whole, book.graph["sentence"][0, 0] & "")  # a blank would be 0
        sheet.formula(TEXT_ROW, PROMPT_COL, shown, "line")
        sheet.merged.append(_wide(sheet, TEXT_ROW).rect)
        sheet.heights[TEXT_ROW] = TEXT_HEIGHT


def _message(book: ModelBook) -> Expression:
    """What became of the sentence, in a line."""
    n, count = len(book.passage.ids), book.graph["n_prompt"][0, 0]
    picks = book.graph["prompt.pick"].area.as_range
    n_picked = SUMPRODUCT((picks != "") * 1)
    picked = IF(n_picked > 0, "; " & n_picked & " picked instead of what is typed", "")
    if "tokenizer.fine" in book.graph.blocks:
        fine, told = book.graph["tokenizer.fine"][0, 0], book.graph["tokenizer.message"][0, 0]
        said = IF(fine == 0, told, count & " given, " & n - count & _not_typed(book) & picked)
        return _unless_unknown(book, said, "", told)
    spaced = TRIM(book.graph["sentence"][0, 0])
    n_words = LEN(spaced) - LEN(SUBSTITUTE(spaced, " ", "")) + 1
    longer = f"longer than the {n} columns of this sheet: {LEFT_OUT}"
    if book.plan.continues:
        counted = count & " given, " & n - count & " generated" & picked
    else:
        missing = " given; for those that are missing, the words as built stand in"
        counted = IF(count < n, count & missing, count & " given") & picked
    nearest = "; nearest: " & book.graph["prompt.nearest"][0, 0]
    nothing = expression("nothing is typed: " + SILENT)
    return _unless_unknown(book, IF(n_words > n, longer, counted), nearest, nothing)


def _unless_unknown(
    book: ModelBook, said: Expression, nearest: Expression | str, nothing: Expression
) -> Expression:
    """A message, or else the word that the vocabulary does not have."""
    unknown = book.graph["prompt.unknown"][len(book.passage.ids) - 1, 0]
    told = "‘" & unknown & "’ is unknown" & nearest & ": " & SILENT
    first = book.graph["prompt.typed"][0, 0]
    return IF(unknown != "", told, IF(first == "", nothing, said))


def _not_typed(book: ModelBook) -> str:
    return " generated" if book.plan.continues else " as built"


def _not_given(book: ModelBook) -> str:
    """Where a word comes from that was not typed."""
    return "generated" if book.plan.continues else "as built"


# --- the words one by one -----------------------------------------------------------------


def _tokens(book: ModelBook, sheet: Sheet) -> None:
    """Word, id and origin of every position; the list that a word can be picked from."""
    sheet.put(PICK_ROW - 2, 0, "Word by word", "heading")
    for row, text in (
        (PICK_ROW - 1, "position"),
        (PICK_ROW, "pick instead"),
        (PROMPT_ROW, "word"),
        (SAID_ROW, "built with"),
        (FROM_ROW, "from"),
        (NUMBER_ROW, "random number"),
        (ID_ROW, "token id"),
        (BUILT_ROW, "built with id"),
    ):
        sheet.put(row, LABEL_COL, text, "row label")
    book.lay(book.places["tokens"], "id")
    for name, row, style in (
        ("prompt.pick", PICK_ROW, "token"),
        ("random", NUMBER_ROW, "number typed"),
        ("prompt.built", BUILT_ROW, "built"),
    ):
        block = book.graph[name]
        book.lay(Place(block, PLAY, row, PROMPT_COL, turned=True, named=False), style)
    layout.place_vocabulary(book)
    for t in range(len(book.passage.ids)):
        _token(book, sheet, t)
    sheet.put(PICK_ROW - 1, PROMPT_COL + len(book.passage.ids), "next", "label")
    origins = along(book, sheet, FROM_ROW)
    first = sheet[FROM_ROW, PROMPT_COL]
    sheet.dress(origins, When("differs", LEFT(first, 7) == "unknown"))
    shown = along(book, sheet, PROMPT_ROW)
    sheet.dress(shown, When("generated", first == _not_given(book)))


def _token(book: ModelBook, sheet: Sheet, t: int) -> None:
    """The word at a position, and where it comes from."""
    col, typed = PROMPT_COL + t, book.graph["prompt.typed"][t, 0]
    sheet.put(PICK_ROW - 1, col, t, "label number")
    sheet.put(SAID_ROW, col, book.labels["vocab"][book.passage.ids[t]], "built")
    sheet.lists[PICK_ROW, col] = layout.vocabulary_texts(book)
    shown = layout.text_at(book, book.graph["tokens"][t, 0] + 1)
    unknown = book.graph["prompt.found"][t, 0] < 0
    word = IF(unknown, "?", shown)
    origin = IF(book.graph["prompt.pick"][t, 0] != "", "picked", "given")
    origin = IF(unknown, "unknown: " & typed, origin)
    if t:
        given = expression(t) < book.graph["n_prompt"][0, 0]
        origin = IF(given, origin, _not_given(book))
        word = IF(given, word, answered(book, shown))
    sheet.formula(PROMPT_ROW, col, word, "word shown")
    sheet.formula(FROM_ROW, col, origin, "label")


# --- the results --------------------------------------------------------------------------


def _results(book: ModelBook, sheet: Sheet) -> None:
    """The ranked words at the position, live, with their baseline, and a chart of them."""
    n, top = n_results(book), RESULTS_ROW + 3
    position = book.graph["position"][0, 0]
    here = entry(along(book, sheet, PROMPT_ROW), 1, position + 1)
    title = answered(book, "What comes after ‘" & here & "’", "No answer: see the line in orange")
    sheet.formula(RESULTS_ROW, 0, title, "heading")
    text = "baseline: as built, after its own prompt; drawn from: shares after top-k and top-p"
    sheet.put(RESULTS_ROW + 1, 0, text, "note")
    for col, head in enumerate(RANKED):
        sheet.put(RESULTS_ROW + 2, col, head, "label")

    def ranked(step: str, rank: int) -> Expression:
        return entry(book.graph[f"choice.{step}"][:, rank], 1, position + 1)

    def of_word(col: int) -> Expression:
        return entry(_of_every_word(book, col), ident + 1, 1)

    for rank in range(n):
        row = top + rank
        sheet.put(row, RANK, rank + 1, "label number")
        ident = sheet.formula(row, IDENT, ranked("order", rank), "hidden")
        live, built = of_word(ALL_PROB + LIVE), of_word(ALL_PROB + BUILT)
        for col, formula, style in (
            (WORD, of_word(ALL_WORD), "word"),
            (LOGIT, of_word(ALL_LOGIT + LIVE), "live here"),
            (PROBABILITY, live, "percent"),
            (BASELINE, built, "constant percent"),
            (CHANGE, sheet[row, PROBABILITY] - sheet[row, BASELINE], "change percent"),
            (DRAWN, ranked("kept", rank) / ranked("total", 0), "live percent"),
        ):
            sheet.formula(row, col, answered(book, formula), style)
    for col in (PROBABILITY, BASELINE, CHANGE, DRAWN):
        sheet.dress(sheet[top : top + n, col], CHANGED if col == CHANGE else "bar")
    _chart(book, sheet)


def _chart(book: ModelBook, sheet: Sheet) -> None:
    texts, live, built = ranked(book)
    series = [Series("baseline", texts, built), Series("live", texts, live)]
    at, title = (RESULTS_ROW, CHART_COL), "The likeliest words"
    sheet.charts.append(Chart(*at, "column", title, series, CHART_SIZE, shares=True))


def _every_word(book: ModelBook, sheet: Sheet) -> None:
    """Every word by id: logit and probability, baseline, live and their difference."""
    top = WORDS_ROW
    last, position = book.passage.n_prompt - 1, book.graph["position"][0, 0]
    sheet.put(top - 3, 0, "Every word, by id", "heading")
    for col, head in ((ALL_LOGIT, "logit"), (ALL_PROB, "probability")):
        sheet.put(top - 2, col, head, "block")
    for col, head in enumerate(ALL):
        sheet.put(top - 1, col, head, "label")
    texts = book.graph["outputs"]
    book.lay(Place(texts, PLAY, top, ALL_WORD, turned=False, named=False), "word")
    ids = Place(book.graph["choice.ids"], PLAY, top, ALL_ID, turned=True, named=False)
    book.lay(ids, "label number")
    for v in range(texts.shape[0]):
        row = top + v
        for col, name, suffix in ((ALL_LOGIT, "logits", ""), (ALL_PROB, "probs", " percent")):
            sheet.put(row, col + BUILT, book.value(name, last, v), "constant" + suffix)
            at_position = entry(book.graph[name][:, v], 1, position + 1)
            live = sheet.formula(row, col + LIVE, at_position, "live" + suffix)
            sheet.formula(row, col + MOVED, live - sheet[row, col + BUILT], "change" + suffix)
    rows = slice(top, top + texts.shape[0])
    for col in (ALL_PROB + BUILT, ALL_PROB + LIVE):
        sheet.dress(sheet[rows, col], "bar")
    for col in (ALL_LOGIT + MOVED, ALL_PROB + MOVED):
        sheet.dress(sheet[rows, col], CHANGED)
