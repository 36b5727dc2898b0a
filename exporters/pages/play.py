"""Play: type a sentence, and read the next word off a page of search results.

The sentence continues itself: a word that was not typed is the one that the column before it
chose (see `sampling`). Baseline stands beside live: what the untouched workbook said, as constants.
"""

from engine.cells.access import Rect
from exporters import layout, words
from exporters.address import a1
from exporters.book import Chart, Place, Series, Sheet
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
from exporters.model_book import ModelBook, cell, entry, one, span
from exporters.pages import sampling

SHEET = PLAY
PURPOSE = "type a sentence in the yellow cell: it continues itself, and the next word is ranked"
AFTER = "Start"
SENTENCE_ROW, MESSAGE_ROW = 4, 5
DIALS_ROW = 14
RESULTS_ROW = 22
MOST_RANKS = 64  # ranked words shown, of a vocabulary that has more 20
FEW_RANKS = 20
CHARTED = 10
LOOK_COL = 7  # of the dials on the right
TABLE = ("id", "word", "baseline", "live", "change", "baseline", "live", "change")


def wanted(book: ModelBook) -> bool:
    """In workbooks that show every word at every token."""
    return not book.large


def place(book: ModelBook) -> None:
    """Say where the controls stand, before other pages refer to them."""
    spots = {"sentence": (SENTENCE_ROW, PROMPT_COL)}
    dials = ("choose", "temperature", "top_k", "top_p")
    spots |= {name: (DIALS_ROW + 1 + k, PROMPT_COL) for k, name in enumerate(dials)}
    looked = ("n_prompt", "prompt", "position", "target", "rival")
    spots |= {name: (DIALS_ROW + 1 + k, LOOK_COL + 1) for k, name in enumerate(looked)}
    for name, (row, col) in spots.items():
        book.spots[name] = (PLAY, row, col)
        if name in ("position", "target", "rival"):
            col += name != "position"  # the id stands right of the word
        if name in book.graph.blocks:
            book.places[name] = Place(book.graph[name], PLAY, row, col, False)
    tokens = book.graph["tokens"]
    book.places["tokens"] = Place(tokens, PLAY, ID_ROW, PROMPT_COL, True)


def add(book: ModelBook) -> None:
    """The prompt, the dials, the ranked next words, and every word's baseline beside live."""
    sheet = book.sheet(PLAY)
    layout.dress(book, sheet)
    sheet.widths = {0: 13, 1: 14, LOOK_COL: 13} | {
        PROMPT_COL + t: 10 for t in range(len(book.passage.ids)) if PROMPT_COL + t != LOOK_COL
    }
    _sentence(book, sheet)
    _tokens(book, sheet)
    _choosing(book, sheet)
    _looking(book, sheet)
    n = _results(book, sheet)
    _every_word(book, sheet, by_id_row(book))
    _chart(book, sheet, n)


def by_id_row(book: ModelBook) -> int:
    """The first row of the table of every word by id."""
    return RESULTS_ROW + 3 + n_results(book) + 4


def n_results(book: ModelBook) -> int:
    """How many ranked words are shown."""
    n = book.graph["logits"].shape[1]
    return n if n <= MOST_RANKS else FEW_RANKS


# --- the prompt ---------------------------------------------------------------------------


def _sentence(book: ModelBook, sheet: Sheet) -> None:
    n = len(book.passage.ids)
    sheet.put(SENTENCE_ROW - 1, 0, "Type a sentence; it continues itself", "heading")
    sheet.put(SENTENCE_ROW, 1, "sentence", "row label")
    sheet.put(SENTENCE_ROW, PROMPT_COL, sentence(book), "sentence")
    wide = max(8, min(n, 12))
    last = PROMPT_COL + wide
    sheet.merged.append(Rect(SENTENCE_ROW, SENTENCE_ROW + 1, PROMPT_COL, last))
    typed, count = f"TRIM({cell(SENTENCE_ROW, PROMPT_COL)})", book.spot("n_prompt", PLAY)
    n_words = f'LEN({typed})-LEN(SUBSTITUTE({typed}," ",""))+1'
    origins = span(Rect(FROM_ROW, FROM_ROW + 1, PROMPT_COL, PROMPT_COL + n))
    first, stand_in = cell(sampling.rows(book).typed, PROMPT_COL), cell(PROMPT_ROW, PROMPT_COL)
    message = (
        f'IF({sampling.SHEET}!{first}="","nothing is typed: "&{stand_in}&" stands in",'
        f'IF(COUNTIF({origins},"given")<{count},"a word is unknown: pick one from a list",'
        f'IF({n_words}>{n},"longer than the {n} columns of this sheet: the rest is left out",'
        f'{count}&" given, "&({n}-{count})&" generated")))'
    )
    n_prompt = book.passage.n_prompt
    text = f"{n_prompt} given, {n - n_prompt} generated"
    sheet.calc(MESSAGE_ROW, PROMPT_COL, message, text, "note")


def sentence(book: ModelBook) -> str:
    """The prompt as it is typed: token texts with a space between."""
    return " ".join(layout.prompt_text(book, t) for t in range(book.passage.n_prompt))


def sampling_row(book: ModelBook, name: str, n: int) -> str:
    """A row of the Sampling sheet, over n positions."""
    row = getattr(sampling.rows(book), name)
    return f"{sampling.SHEET}!{span(Rect(row, row + 1, PROMPT_COL, PROMPT_COL + n))}"


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
        sheet.put(row, PROMPT_COL - 1, text, "row label")
    for t in range(len(book.passage.ids)):
        _token(book, sheet, t)
    end = PROMPT_COL + len(book.passage.ids)
    sheet.put(PICK_ROW - 1, end, "next", "label")
    sheet.put(NUMBER_ROW, end, float(book.passage.numbers[-1]), "number typed")
    first = cell(FROM_ROW, PROMPT_COL)
    origins = Rect(FROM_ROW, FROM_ROW + 1, PROMPT_COL, end)
    sheet.scales.append((origins, f'when differs =LEFT({first},7)="unknown"'))
    shown = Rect(PROMPT_ROW, PROMPT_ROW + 1, PROMPT_COL, end)
    sheet.scales.append((shown, f'when generated ={first}="generated"'))


def _token(book: ModelBook, sheet: Sheet, t: int) -> None:
    col, at = PROMPT_COL + t, sampling.rows(book)
    given = t < book.passage.n_prompt
    count, words_ = book.spot("n_prompt", PLAY), layout.vocabulary(book)
    ident = float(book.passage.ids[t])
    sheet.put(PICK_ROW - 1, col, t, "label number")
    sheet.put(PICK_ROW, col, "", "token")
    sheet.lists[PICK_ROW, col] = words_
    text = layout.prompt_text(book, t)
    shown = layout.word_at(book, f"{cell(ID_ROW, col)}+1")
    sheet.calc(PROMPT_ROW, col, shown, text, "word shown")
    looked_up = f"{sampling.SHEET}!{cell(at.looked_up, col)}"
    typed = f"{sampling.SHEET}!{cell(at.typed, col)}"
    if t:
        chosen = f"{sampling.SHEET}!{cell(at.chosen, col - 1)}"
        looked_up = f"IF({t}<{count},{looked_up},{chosen})"
    sheet.calc(ID_ROW, col, looked_up, ident, "id")
    known = f'IF(EXACT({typed},{cell(PROMPT_ROW, col)}),"given","unknown: "&{typed})'
    state = known if t == 0 else f'IF({t}<{count},{known},"generated")'
    sheet.calc(FROM_ROW, col, state, "given" if given else "generated", "label")
    sheet.put(NUMBER_ROW, col, float(book.passage.numbers[t]), "number typed")
    sheet.put(BUILT_ROW, col, ident, "built")


# --- the dials ----------------------------------------------------------------------------


def _choosing(book: ModelBook, sheet: Sheet) -> None:
    sheet.put(DIALS_ROW, 0, "How a word is chosen", "heading")
    how = book.passage.sampling
    mode = "sampled" if how.temperature else "greedy"
    rows: tuple[tuple[str, str | float | None, str], ...] = (
        ("choose", mode, "the largest logit, or by the random number"),
        ("temperature", None, words.MEANING["temperature"]),
        ("top_k", how.top_k, "only the k likeliest words; 0: all"),
        ("top_p", how.top_p, "only those that hold this share; 1: all"),
    )  # fmt: skip
    for name, value, text in rows:
        _, row, col = book.spots[name]
        sheet.put(row, col - 1, name.replace("_", "-"), "row label")
        sheet.put(row, col + 1, text, "note")
        if value is not None:
            sheet.put(row, col, value, "dial")
        else:
            sheet.regions.append((book.places[name], "input setting"))
    at = {name: book.spots[name][1:] for name, _, _ in rows}
    sheet.rules[at["choose"]] = {"validate": "list", "source": ["greedy", "sampled"]}
    above_zero = {"validate": "decimal", "criteria": ">", "value": 0}
    sheet.rules[at["temperature"]] = above_zero | {"error_message": "A number above 0."}
    whole = {"validate": "integer", "criteria": ">=", "value": 0}
    sheet.rules[at["top_k"]] = whole | {"error_message": "A whole number; 0 keeps all words."}
    share = {"validate": "decimal", "criteria": "between", "minimum": 1e-9, "maximum": 1}
    sheet.rules[at["top_p"]] = share | {"error_message": "A share above 0, up to 1."}
    others = [b for b in book.graph if layout.on_play(b) and b.name not in book.places]
    for k, block in enumerate(others):
        row_of = DIALS_ROW + 5 + k
        sheet.put(row_of, PROMPT_COL - 1, block.name.replace("_", " "), "row label")
        place = Place(block, PLAY, row_of, PROMPT_COL, False)
        book.places[block.name] = place
        sheet.regions.append((place, "input setting"))
        sheet.put(row_of, PROMPT_COL + 1, words.meaning(block), "note")


def _looking(book: ModelBook, sheet: Sheet) -> None:
    """How long the prompt is, which position is looked at, and for which words."""
    n, passage = len(book.passage.ids), book.passage
    sheet.put(DIALS_ROW, LOOK_COL, "What is looked at", "heading")
    here = {name: book.spots[name][1:] for name in ("n_prompt", "prompt", "position")}
    for name, text in (
        ("n_prompt", "words given"),
        ("prompt", "the prompt is"),
        ("position", "position"),
        ("target", "target word"),
        ("rival", "rival word"),
    ):
        row, col = book.spots[name][1:]
        sheet.put(row, col - 1, text, "row label")
    empty = f'MATCH(TRUE(),EXACT({sampling_row(book, "typed", n)},""),0)-1'
    formula = f"MAX(1,IFERROR({empty},{n}))"
    sheet.calc(*here["n_prompt"], formula, float(passage.n_prompt), "id", array=True)
    first = Rect(ID_ROW, ID_ROW + 1, PROMPT_COL, PROMPT_COL + passage.n_prompt)
    ids, built = a1(first), a1(first._replace(top=BUILT_ROW, bottom=BUILT_ROW + 1))
    gaps = f"SUMPRODUCT({ids}-{built},{ids}-{built})"
    same = f"AND({cell(*here['n_prompt'])}={passage.n_prompt},{gaps}=0)"
    sheet.calc(*here["prompt"], f'IF({same},"as built","changed")', "as built", "label")
    row, col = here["position"]
    formula = f"{cell(*here['n_prompt'])}-1"
    sheet.calc(row, col, formula, float(passage.n_prompt - 1), "dial")
    sheet.put(row, col + 1, "the last word given; type another to look there", "note")
    whole = {"validate": "integer", "criteria": "between", "minimum": 0, "maximum": n - 1}
    sheet.rules[row, col] = whole | {"error_message": f"A position from 0 to {n - 1}."}
    axis = book.graph["logits"].axes[1]
    for name in ("target", "rival"):
        _, row, col = book.spots[name]
        ident = book.value(name, 0, 0)
        sheet.put(row, col, book.labels[axis][int(ident)], "token")
        sheet.lists[row, col] = readout_words(book)
        match = f"MATCH(TRUE(),EXACT({readout_words(book)},{cell(row, col)}),0)-1"
        sheet.calc(row, col + 1, f"IFERROR({match},0)", ident, "id", array=True)
    sheet.put(book.spots["target"][1], LOOK_COL + 3, "followed on Lens, Attribution", "note")
    sheet.put(book.spots["rival"][1], LOOK_COL + 3, "and held against the target", "note")


def readout_words(book: ModelBook) -> str:
    """The range of the words that have a logit: the table of every word."""
    top, n = by_id_row(book), book.graph["logits"].shape[1]
    return f"{PLAY}!{span(Rect(top, top + n, 1, 2), absolute=True)}"


# --- the results --------------------------------------------------------------------------


def _results(book: ModelBook, sheet: Sheet) -> int:
    """The ranked words at the position, live, with their baseline; returns how many."""
    n, top = n_results(book), RESULTS_ROW + 3
    at, n_tokens = sampling.rows(book), len(book.passage.ids)
    p = book.spot("position", PLAY)
    shown = Rect(PROMPT_ROW, PROMPT_ROW + 1, PROMPT_COL, PROMPT_COL + n_tokens)
    here = entry(shown, "1", f"{p}+1")
    last = book.passage.n_prompt - 1
    title = f"What comes after ‘{layout.prompt_text(book, last)}’"
    sheet.calc(RESULTS_ROW, 0, f'"What comes after ‘"&{here}&"’"', title, "heading")
    text = "baseline: as built, after its own prompt; drawn from: what top-k and top-p leave"
    sheet.put(RESULTS_ROW + 1, 0, text, "note")
    heads = ("rank", "word", "logit", "probability", "baseline", "change", "drawn from")
    for col, head in enumerate(heads):
        sheet.put(RESULTS_ROW + 2, col, head, "label")
    logits, probs = book.values["logits"][last], book.values["probs"][last]
    how = book.passage.sampling
    temperature = book.value("temperature", 0, 0)
    found = sampling.draw(logits, temperature, how.top_k, how.top_p, 0.0)
    first, n_words = by_id_row(book), len(logits)

    def of(col: int, ident: str) -> str:
        return entry(Rect(first, first + n_words, col, col + 1), f"{ident}+1", "1")

    def ranked(row: int) -> str:
        cells = Rect(row, row + 1, PROMPT_COL, PROMPT_COL + n_tokens)
        return entry(cells, "1", f"{p}+1", sampling.SHEET)

    for k in range(n):
        row, v = top + k, int(found.order[k])
        ident = cell(row, 8)
        sheet.put(row, 0, k + 1, "label number")
        sheet.calc(row, 8, ranked(at.order + k), float(v), "hidden")
        word = str(book.labels[book.graph["logits"].axes[1]][v])
        sheet.calc(row, 1, of(1, ident), word, "word")
        sheet.calc(row, 2, of(3, ident), float(logits[v]), "live here")
        sheet.calc(row, 3, of(6, ident), float(probs[v]), "percent")
        sheet.calc(row, 4, of(5, ident), float(probs[v]), "constant percent")
        change = f"{cell(row, 3)}-{cell(row, 4)}"
        sheet.calc(row, 5, change, 0.0, "change percent")
        chance = f"{ranked(at.kept + k)}/{ranked(at.total)}"
        value = float(found.kept[k] / found.kept.sum())
        sheet.calc(row, 6, chance, value, "live percent")
    for col, dressing in ((3, "bar"), (4, "bar"), (5, "changed"), (6, "bar")):
        sheet.scales.append((Rect(top, top + n, col, col + 1), dressing))
    return n


def _chart(book: ModelBook, sheet: Sheet, n: int) -> None:
    top, end = RESULTS_ROW + 3, RESULTS_ROW + 3 + min(n, CHARTED)
    texts = Rect(top, end, 1, 2)
    series = [
        Series(name, texts, Rect(top, end, col, col + 1))
        for name, col in (("baseline", 4), ("live", 3))
    ]
    chart = Chart(RESULTS_ROW, LOOK_COL + 1, "column", "The likeliest words", series)
    sheet.charts.append(chart)


def _every_word(book: ModelBook, sheet: Sheet, top: int) -> None:
    """Every word by id: logit and probability, baseline, live and their difference."""
    last, n_words = book.passage.n_prompt - 1, book.graph["probs"].shape[1]
    n_tokens, axis = len(book.passage.ids), book.graph["probs"].axes[1]
    p = book.spot("position", PLAY)
    sheet.put(top - 3, 0, "Every word, by id", "heading")
    for col, head in ((2, "logit"), (5, "probability")):
        sheet.put(top - 2, col, head, "block")
    for col, head in enumerate(TABLE):
        sheet.put(top - 1, col, head, "label")
    for v in range(n_words):
        row = top + v
        sheet.put(row, 0, v, "label number")
        sheet.put(row, 1, book.labels[axis][v], "word")
        for col, name, suffix in ((2, "logits", ""), (5, "probs", " percent")):
            value, place = book.value(name, last, v), book.places[name]
            tokens = place.rect(Rect(0, n_tokens, v, v + 1))
            sheet.put(row, col, value, "constant" + suffix)
            live = entry(tokens, "1", f"{p}+1", place.sheet)
            sheet.calc(row, col + 1, live, value, "live" + suffix)
            change = f"{a1(one(row, col + 1))}-{a1(one(row, col))}"
            sheet.calc(row, col + 2, change, 0.0, "change" + suffix)
    for col in (5, 6):
        sheet.scales.append((Rect(top, top + n_words, col, col + 1), "bar"))
    for col in (4, 7):
        sheet.scales.append((Rect(top, top + n_words, col, col + 1), "changed"))


def largest_change(book: ModelBook) -> str:
    """A formula for the largest change of any logit from its baseline."""
    top, n = by_id_row(book), book.graph["logits"].shape[1]
    changes = f"{PLAY}!{a1(Rect(top, top + n, 4, 5))}"
    return f"MAX(MAX({changes}),-MIN({changes}))"
