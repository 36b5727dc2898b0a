"""Play: type a sentence, and read the next word off a page of search results.

The sentence continues itself: a word that was not typed is the one that the column before it
chose (see `sampling`). Baseline stands beside live: what the untouched workbook said, as constants.
A model whose tokens see those after them cannot be continued word by word: its sheet has the
columns of its prompt, and where a word is missing, the one that it was built with.
"""

from collections.abc import Mapping
from typing import Any

from engine.cells.expression import Area, Expression, decimal, expression
from engine.cells.functions import (
    AND,
    COUNTIF,
    EXACT,
    IF,
    LEFT,
    LEN,
    SUBSTITUTE,
    SUMPRODUCT,
    TRIM,
)
from engine.models.choosing import BY_NUMBER, GREEDILY
from exporters import layout, words
from exporters.book import Chart, Place, Series, Sheet
from exporters.dressing import CHANGED, When
from exporters.layout import (
    BUILT_ROW,
    FROM_ROW,
    ID_ROW,
    NUMBER_ROW,
    PICK_ROW,
    PLAY,
    PROMPT_COL,
    PROMPT_ROW,
)
from exporters.lookups import entry
from exporters.model_book import ModelBook

SHEET = PLAY
PURPOSE = "type a sentence in the yellow cell: it continues itself, and the next word is ranked"
PURPOSE_WITHOUT_ROOM = "type a sentence in the yellow cell: the next word is ranked"
RANKED_ONLY = "the next word is ranked"
BOTH_WAYS = "type a sentence in the yellow cell: the words that a position leads to are ranked"
AFTER = "Start"
SENTENCE_ROW, MESSAGE_ROW = 4, 5
TEXT_ROW, TEXT_HEIGHT = 13, 48  # height in points: three lines
DIALS_ROW = 14
RESULTS_ROW = 22
MOST_RANKS = 64  # ranked words shown, of a vocabulary that has more 20
FEW_RANKS = 20
CHARTED = 10
LOOK_COL = 7  # of the dials on the right
LABEL_COL = PROMPT_COL - 1

# the columns of the ranked words; their ids stand hidden under the chart
RANK, WORD, LOGIT, PROBABILITY, BASELINE, CHANGE, DRAWN, IDENT = 0, 1, 2, 3, 4, 5, 6, 8
RANKED = ("rank", "word", "logit", "probability", "baseline", "change", "drawn from")
# the columns of every word by id: the same three of its logit, and of its probability
ALL_ID, ALL_WORD, ALL_LOGIT, ALL_PROB = 0, 1, 2, 5
BUILT, LIVE, MOVED = 0, 1, 2
ALL = ("id", "word", "baseline", "live", "change", "baseline", "live", "change")

DIALS = {  # each with its note
    "choose": "the largest logit, or by the random number",
    "temperature": words.MEANING["temperature"],
    "top_k": "only the k likeliest words; 0: all",
    "top_p": "only those that hold this share; 1: all",
}
LOOKED_AT = {
    "n_prompt": "words given",
    "prompt": "the prompt is",
    "position": "position",
    "target": "target word",
    "rival": "rival word",
}


def wanted(book: ModelBook) -> bool:
    """In workbooks that show every word at every token."""
    return not book.large


def place(book: ModelBook) -> None:
    """Say where the controls stand, before other pages refer to them."""
    where = {"sentence": (SENTENCE_ROW, PROMPT_COL)}
    where |= {name: (DIALS_ROW + 1 + k, PROMPT_COL) for k, name in enumerate(DIALS)}
    look = {name: (DIALS_ROW + 1 + k, LOOK_COL + 1) for k, name in enumerate(LOOKED_AT)}
    book.spots["prompt"] = (PLAY, *look.pop("prompt"))
    for word in ("target", "rival"):
        row, col = look[word]
        text = book.graph[f"look.{word}"]
        book.places[text.name] = Place(text, PLAY, row, col, turned=False, named=False)
        look[word] = (row, col + 1)  # the id stands right of the word
    for name, (row, col) in (where | look).items():
        book.places[name] = Place(book.graph[name], PLAY, row, col, turned=False)
    tokens = book.graph["tokens"]
    book.places["tokens"] = Place(tokens, PLAY, ID_ROW, PROMPT_COL, turned=True)


def add(book: ModelBook) -> None:
    """The prompt, the dials, the ranked next words, and every word's baseline beside live."""
    sheet = book.sheet(PLAY)
    layout.dress(book, sheet)
    continued = PURPOSE if has_room(book) else PURPOSE_WITHOUT_ROOM
    sheet.purpose = continued if book.plan.continues else BOTH_WAYS
    sheet.widths = {0: 13, 1: 14, LOOK_COL: 13, DRAWN: 11} | {
        PROMPT_COL + t: 10 for t in range(len(book.passage.ids)) if PROMPT_COL + t != LOOK_COL
    }
    _sentence(book, sheet)
    _tokens(book, sheet)
    _text(book, sheet)
    _choosing(book, sheet)
    _looking(book, sheet)
    _results(book, sheet)
    _every_word(book, sheet, by_id_row(book))
    _chart(book, sheet)


def has_room(book: ModelBook) -> bool:
    """Whether there are columns for words that the prompt does not fill."""
    return len(book.passage.ids) > book.passage.n_prompt


def by_id_row(book: ModelBook) -> int:
    """The first row of the table of every word by id."""
    return RESULTS_ROW + 3 + n_results(book) + 4


def n_results(book: ModelBook) -> int:
    """How many ranked words are shown."""
    n = book.graph["logits"].shape[1]
    return n if n <= MOST_RANKS else FEW_RANKS


def ranked(book: ModelBook) -> tuple[Area, Area, Area]:
    """The likeliest words, their probabilities live, and as built: for charts."""
    rows = slice(RESULTS_ROW + 3, RESULTS_ROW + 3 + min(n_results(book), CHARTED))
    sheet = book.sheet(PLAY)
    return sheet[rows, WORD], sheet[rows, PROBABILITY], sheet[rows, BASELINE]


def logits(book: ModelBook) -> Area:
    """Every word's logit at the position, live."""
    return _of_every_word(book, ALL_LOGIT + LIVE)


def logit_changes(book: ModelBook) -> Area:
    """What each word's logit has changed by since the workbook was built."""
    return _of_every_word(book, ALL_LOGIT + MOVED)


def _of_every_word(book: ModelBook, col: int) -> Area:
    top, n_words = by_id_row(book), book.graph["logits"].shape[1]
    return book.sheet(PLAY)[top : top + n_words, col]


# --- the prompt ---------------------------------------------------------------------------


def along(book: ModelBook, sheet: Sheet, row: int) -> Area:
    """A row of cells, one for each position."""
    return sheet[row, PROMPT_COL : PROMPT_COL + len(book.passage.ids)]


def sentence(book: ModelBook) -> str:
    """The prompt as it is typed."""
    return str(book.graph.inputs["sentence"][0, 0])


def _sentence(book: ModelBook, sheet: Sheet) -> None:
    what = "it continues itself" if book.plan.continues else "each word is read with all the others"
    what = RANKED_ONLY if book.plan.continues and not has_room(book) else what
    sheet.put(SENTENCE_ROW - 1, 0, f"Type a sentence; {what}", "heading")
    sheet.put(SENTENCE_ROW, LABEL_COL, "sentence", "row label")
    book.lay(book.places["sentence"], "sentence")
    sheet.merged.append(_wide(book, sheet, SENTENCE_ROW).rect)
    sheet.formula(MESSAGE_ROW, PROMPT_COL, _message(book, sheet), "note")


def _wide(book: ModelBook, sheet: Sheet, row: int) -> Area:
    """The cells of a row that a text is shown over."""
    return sheet[row, PROMPT_COL : PROMPT_COL + max(8, min(len(book.passage.ids), 12))]


def _text(book: ModelBook, sheet: Sheet) -> None:
    """The sentence and its continuation as one text, where the tokens have one."""
    if "text.whole" in book.graph.blocks:
        sheet.put(TEXT_ROW, LABEL_COL, "as text", "line label")
        whole = Place(book.graph["text.whole"], PLAY, TEXT_ROW, PROMPT_COL, turned=False)
        book.lay(whole, "line")
        sheet.merged.append(_wide(book, sheet, TEXT_ROW).rect)
        sheet.heights[TEXT_ROW] = TEXT_HEIGHT


def _message(book: ModelBook, sheet: Sheet) -> Expression:
    """What became of the sentence, in a line."""
    n, count = len(book.passage.ids), book.graph["n_prompt"][0, 0]
    if "tokenizer.fine" in book.graph.blocks:
        fine, told = book.graph["tokenizer.fine"][0, 0], book.graph["tokenizer.message"][0, 0]
        return IF(fine == 0, told, count & " given, " & n - count & _not_typed(book))
    first, stand_in = book.graph["prompt.typed"][0, 0], sheet[PROMPT_ROW, PROMPT_COL]
    spaced = TRIM(book.graph["sentence"][0, 0])
    n_words = LEN(spaced) - LEN(SUBSTITUTE(spaced, " ", "")) + 1
    unknown = COUNTIF(along(book, sheet, FROM_ROW).as_range, "given") < count
    longer = f"longer than the {n} columns of this sheet: the rest is left out"
    if book.plan.continues:
        nothing: Any = "nothing is typed: " & stand_in & " stands in"
        counted = count & " given, " & n - count & " generated"
    else:
        nothing = "nothing is typed: " & stand_in & " stands in, then the words as built"
        missing = " given; for those that are missing, the words as built stand in"
        counted = IF(count < n, count & missing, count & " given")
    a_word = "a word is unknown: pick one from a list"
    return IF(first == "", nothing, IF(unknown, a_word, IF(n_words > n, longer, counted)))


def _tokens(book: ModelBook, sheet: Sheet) -> None:
    """Word, id and origin of every position; the list that a word can be picked from."""
    for row, text in (
        (PICK_ROW - 1, "position"),
        (PICK_ROW, "pick instead"),
        (PROMPT_ROW, "word"),
        (ID_ROW, "token id"),
        (FROM_ROW, "from"),
        (NUMBER_ROW, "random number"),
        (BUILT_ROW, "built with"),
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


def _not_typed(book: ModelBook) -> str:
    return " generated" if book.plan.continues else " as built"


def _not_given(book: ModelBook) -> str:
    """Where a word comes from that was not typed."""
    return "generated" if book.plan.continues else "as built"


def _token(book: ModelBook, sheet: Sheet, t: int) -> None:
    """The word at a position, and where it comes from."""
    col, typed = PROMPT_COL + t, book.graph["prompt.typed"][t, 0]
    sheet.put(PICK_ROW - 1, col, t, "label number")
    sheet.lists[PICK_ROW, col] = layout.vocabulary_texts(book)
    shown = layout.text_at(book, book.graph["tokens"][t, 0] + 1)
    word = sheet.formula(PROMPT_ROW, col, shown, "word shown")
    origin = IF(EXACT(typed, word), "given", "unknown: " & typed)
    if t:
        given = expression(t) < book.graph["n_prompt"][0, 0]
        origin = IF(given, origin, _not_given(book))
    sheet.formula(FROM_ROW, col, origin, "label")


# --- the dials ----------------------------------------------------------------------------


def _choosing(book: ModelBook, sheet: Sheet) -> None:
    """How a word is chosen; below, the settings that a model of its own kind has."""
    sheet.put(DIALS_ROW, 0, "How a word is chosen", "heading")
    for name, text in DIALS.items():
        place = book.places[name]
        _control(sheet, place, name.replace("_", "-"), text)
        if name == "temperature":  # one of the model's blocks
            sheet.regions.append((place, "input setting"))
        else:
            book.lay(place, "dial")
    whole = {"validate": "integer", "criteria": ">=", "value": 0}
    share = {"validate": "decimal", "criteria": "between", "minimum": decimal(1e-9), "maximum": 1}
    above_zero = {"validate": "decimal", "criteria": ">", "value": 0}
    rules: Mapping[str, dict[str, Any]] = {
        "choose": {"validate": "list", "source": [GREEDILY, BY_NUMBER]},
        "temperature": above_zero | {"error_message": "A number above 0."},
        "top_k": whole | {"error_message": "A whole number; 0 keeps all words."},
        "top_p": share | {"error_message": "A share above 0, up to 1."},
    }
    for name, rule in rules.items():
        sheet.rules[book.places[name].cell(0, 0)] = rule
    others = [b for b in book.blocks if layout.on_play(b) and b.name not in book.places]
    for k, block in enumerate(others, DIALS_ROW + 5):
        place = Place(block, PLAY, k, PROMPT_COL, turned=False)
        book.places[block.name] = place
        sheet.regions.append((place, "input setting"))
        _control(sheet, place, block.name.replace("_", " "), words.meaning(block))


def _control(sheet: Sheet, place: Place, label: str, note: str) -> None:
    """What stands left and right of a cell to type in."""
    sheet.put(place.top, place.left - 1, label, "row label")
    sheet.put(place.top, place.left + 1, note, "note")


def _looking(book: ModelBook, sheet: Sheet) -> None:
    """How long the prompt is, which position is looked at, and for which words."""
    n, n_prompt = len(book.passage.ids), book.passage.n_prompt
    sheet.put(DIALS_ROW, LOOK_COL, "What is looked at", "heading")
    for k, text in enumerate(LOOKED_AT.values(), DIALS_ROW + 1):
        sheet.put(k, LOOK_COL, text, "row label")
    book.lay(book.places["n_prompt"], "id")
    ids, built = (sheet[row, PROMPT_COL : PROMPT_COL + n_prompt] for row in (ID_ROW, BUILT_ROW))
    same = AND(book.graph["n_prompt"][0, 0] == n_prompt, SUMPRODUCT(ids - built, ids - built) == 0)
    _, row, col = book.spots["prompt"]
    sheet.formula(row, col, IF(same, "as built", "changed"), "label")
    position = book.places["position"]
    book.lay(position, "dial")
    text = "the last word given; type another to look there"
    sheet.put(position.top, position.left + 1, text, "note")
    whole = {"validate": "integer", "criteria": "between", "minimum": 0, "maximum": n - 1}
    sheet.rules[position.cell(0, 0)] = whole | {"error_message": f"A position from 0 to {n - 1}."}
    for name, text in (
        ("target", "followed on Lens, Attribution"),
        ("rival", "and held against the target"),
    ):
        word, ident = book.places[f"look.{name}"], book.places[name]
        book.lay(word, "token")
        sheet.lists[word.cell(0, 0)] = book.graph["outputs"].area.fixed.as_range
        book.lay(ident, "id")
        sheet.put(ident.top, ident.left + 1, text, "note")


# --- the results --------------------------------------------------------------------------


def _results(book: ModelBook, sheet: Sheet) -> None:
    """The ranked words at the position, live, with their baseline."""
    n, top = n_results(book), RESULTS_ROW + 3
    position = book.graph["position"][0, 0]
    here = entry(along(book, sheet, PROMPT_ROW), 1, position + 1)
    sheet.formula(RESULTS_ROW, 0, "What comes after ‘" & here & "’", "heading")
    text = "baseline: as built, after its own prompt; drawn from: what top-k and top-p leave"
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
        sheet.formula(row, WORD, of_word(ALL_WORD), "word")
        sheet.formula(row, LOGIT, of_word(ALL_LOGIT + LIVE), "live here")
        live = sheet.formula(row, PROBABILITY, of_word(ALL_PROB + LIVE), "percent")
        built = sheet.formula(row, BASELINE, of_word(ALL_PROB + BUILT), "constant percent")
        sheet.formula(row, CHANGE, live - built, "change percent")
        share = ranked("kept", rank) / ranked("total", 0)
        sheet.formula(row, DRAWN, share, "live percent")
    for col in (PROBABILITY, BASELINE, CHANGE, DRAWN):
        sheet.dress(sheet[top : top + n, col], CHANGED if col == CHANGE else "bar")


def _chart(book: ModelBook, sheet: Sheet) -> None:
    texts, live, built = ranked(book)
    series = [Series("baseline", texts, built), Series("live", texts, live)]
    chart = Chart(RESULTS_ROW, LOOK_COL + 1, "column", "The likeliest words", series, shares=True)
    sheet.charts.append(chart)


def _every_word(book: ModelBook, sheet: Sheet, top: int) -> None:
    """Every word by id: logit and probability, baseline, live and their difference."""
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
