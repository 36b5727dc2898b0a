"""The sheet Contexts: the next word, by the model, and by tables of the last words of its texts.

The model reads the whole sentence. A table of the last one, two or three words adds up what followed
them in the texts: it cannot look further back, and what it never read, it does not know.
"""

from cellformer.engine.cells.expression import Area, Expression, Nth, expression
from cellformer.engine.cells.functions import IF, IFERROR, SUM, SUMIF
from cellformer.engine.studies.part_names import said
from cellformer.exporters.compose.composer import Composer
from cellformer.exporters.compose.story import Suggestion
from cellformer.exporters.model import layout
from cellformer.exporters.model.model_book import ModelBook
from cellformer.workbooks.new_york import texts

SHEET = "Contexts"
PURPOSE = "what follows New, from the model and from tables of the last words"
ABOUT = (
    "The model reads all words of the sentence on the sheet Play. A table only counts which "
    "words followed the last words in the texts below.",
    "Type other sentences on Play. If two sentences end with the same words, the tables give the "
    "same answer. The model's answer depends on where the heads look.",
)
LOOKS_ROW, NEXT_ROW, TRIES_ROW, TEXTS_ROW = 7, 12, 22, 29
HEADS = ("the model", "last word", "last two", "last three", "all words")
MODEL, *BEFORE = range(len(HEADS))
BACK = texts.LENGTH - 3  # words of the longest text up to New
LENGTHS = (1, 2, 3, BACK)  # how many words a table looks back
NEXT, TIMES, ALIKE, COUNTED = range(BACK + 1, BACK + 5)  # columns of the texts, after their words


def add(book: ModelBook) -> None:
    """Add where the heads look, the next words, three suggested edits, the texts."""
    page = layout.page(
        book,
        SHEET,
        PURPOSE,
        *ABOUT,
        widths={0: 22} | dict.fromkeys(range(1, COUNTED + len(LENGTHS)), 11),
    )
    _looks(book, page)
    _next(book, page, *_texts(book, page))
    Composer(book, SHEET, TRIES_ROW - 1).suggest(*_suggestions())


def _looks(book: ModelBook, page: Composer) -> None:
    """Add the sentence word by word, and how much each head looks at each from its last word."""
    g, n = book.graph, book.graph["tokens"].shape[0]
    words, n_prompt = g["vocabulary"].area.fixed, g["n_prompt"][0, 0]

    def weight(h: int, t: int) -> Expression:
        pattern = g[f"blocks.0.attn.h{h}.pattern"].area
        return IF(expression(t) < n_prompt, Nth(pattern[:, t], n_prompt), "")

    n_heads = book.model.spec.n_heads
    page.computed_at(
        "contexts.word",
        (LOOKS_ROW, 1),
        (1, n),
        lambda _, t: IF(expression(t) < n_prompt, Nth(words, g["tokens"][t, 0] + 1), ""),
        "word",
        label="last word's attention",
    )
    page.sheet.down(
        LOOKS_ROW + 1, 0, (said(f"blocks.0.attn.h{h}") for h in range(n_heads)), "row label"
    )
    page.computed_at(
        "contexts.looks", (LOOKS_ROW + 1, 1), (n_heads, n), weight, "percent", dress="scale"
    )


def _texts(book: ModelBook, page: Composer) -> tuple[Area, Area]:
    """Add the texts, aligned by their last word, and how many of their words are the sentence's, from
    the last back; returns the words that follow, and how often each table counts each text."""
    g, top, n = book.graph, TEXTS_ROW + 2, len(texts.SENTENCES)
    vocabulary, n_prompt = g["vocabulary"].area.fixed, g["n_prompt"][0, 0]
    page.sheet.put(
        TEXTS_ROW - 1,
        0,
        "The texts, aligned so that their last words stand in one column",
        "heading",
    )

    def said(_: int, j: int) -> Expression:
        back = BACK - j  # 1 for the last word
        token = Nth(g["tokens"].area, n_prompt - (back - 1))
        return IF(n_prompt - back >= 1, Nth(vocabulary, token + 1), "")

    sentence = page.computed_at(
        "contexts.sentence", (TEXTS_ROW, 1), (1, BACK), said, "word", label="the sentence on Play"
    )
    page.heads_at(
        (TEXTS_ROW + 1, NEXT), "next word", "times read", "same words", *HEADS[1:], style="label"
    )
    rows = [start.split() for start, *_ in texts.SENTENCES]
    words = page.typed_at(
        "contexts.words", (top, 1), [[""] * (BACK - len(row)) + row for row in rows], "symbol typed"
    )
    follows = page.typed_at(
        "contexts.follows", (top, NEXT), [[word] for _, word, _ in texts.SENTENCES], "symbol typed"
    )
    times = page.typed_at(
        "contexts.times", (top, TIMES), [[times] for *_, times in texts.SENTENCES], "symbol typed"
    )

    def alike(k: int, _: int) -> Expression:
        found = expression(0)
        for j in range(BACK):  # the last word outermost
            found = IF(words[k, j] == sentence[0, j], 1 + found, 0)
        return found

    def counted(k: int, c: int) -> Expression:
        return IF(agree[k, 0] >= LENGTHS[c], times[k, 0], 0)

    agree = page.computed_at("contexts.alike", (top, ALIKE), (n, 1), alike, "id")
    shape = (n, len(LENGTHS))
    return follows, page.computed_at("contexts.counted", (top, COUNTED), shape, counted, "symbol")


def _next(book: ModelBook, page: Composer, follows: Area, counted: Area) -> None:
    """Add the share of each next word, by the model and by each table."""
    probs, n_prompt = book.graph["probs"].area, book.graph["n_prompt"][0, 0]
    page.heads_at((NEXT_ROW - 1, 0), "next word", *HEADS, style="label")
    names, read = texts.NAMES, NEXT_ROW + len(texts.NAMES)
    page.sheet.down(NEXT_ROW, 0, (*names, "percent of texts used"), "row label")

    def share(k: int, c: int) -> Expression:
        if c == MODEL:
            return Nth(probs[:, texts.ID[names[k]]], n_prompt)
        times = counted[:, c - 1]
        return IFERROR(SUMIF(follows, names[k], times) / SUM(times), 0)

    shape = (len(names), len(HEADS))
    page.computed_at("contexts.next", (NEXT_ROW, 1), shape, share, "percent", dress="scale")
    shape = (1, len(LENGTHS))
    page.computed_at(
        "contexts.read",
        (read, 1 + BEFORE[0]),
        shape,
        lambda _, c: IFERROR(SUM(counted[:, c]) / SUM(counted[:, 0]), 0),
        "percent",
    )


def _suggestions() -> list[Suggestion]:
    """Three edits: repeat a text more often; put another word after it; change another word of a
    text."""
    read = [(start, word) for start, word, _ in texts.SENTENCES]
    state = read.index(("The state of New", "York"))
    city = read.index(("The city of New", "Haven"))
    return [
        Suggestion(
            "Type ‘80’, for 80 readings of ‘The state of New York’. In the table of the last "
            "word, ‘York’ rises from {now:.0%} to {then:.0%}.",
            ("contexts.times", state, 0), 80, ("contexts.next", 0, BEFORE[0]),
        ),
        Suggestion(
            "Type ‘Zealand’: in the table, ‘York’ falls from {now:.0%} to {then:.0%}. The model "
            "was not trained again, so its answer for ‘York’ stays {model.then:.0%}.",
            ("contexts.follows", state, 0), "Zealand", ("contexts.next", 0, BEFORE[-1]),
            others={"model": ("contexts.next", 0, MODEL)},
        ),
        Suggestion(
            "Type ‘state’ instead of ‘city’: one more text ends in ‘state of New’. The table of the last three words gives ‘Haven’ {then:.1%}, not {now:.0%}.",
            ("contexts.words", city, BACK - 3), "state", ("contexts.next", texts.NAMES.index("Haven"), BEFORE[2]),
        ),
    ]  # fmt: skip
