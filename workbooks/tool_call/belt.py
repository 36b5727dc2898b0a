"""The sheet Belt: the text word by word, who wrote each, and the calculator that lays one there.

Each word after the question is the one that the model holds likeliest after those before it, or,
where they end in a sum, the calculator's answer. Beside each stands what the model alone would have
written: of a sum that it was not trained on, often something else.
"""

from cellformer.engine.cells.expression import Expression, Nth, expression
from cellformer.engine.cells.functions import IF
from cellformer.engine.cells.language import worded
from cellformer.exporters.compose.composer import Composer
from cellformer.exporters.compose.dressing import When
from cellformer.exporters.compose.story import Suggestion
from cellformer.exporters.model import layout
from cellformer.exporters.model.model_book import ModelBook
from cellformer.workbooks.tool_call.calculator import LENGTH, NAME, SILENT

SHEET = "Belt"
PURPOSE = "the text word by word, with the writer of each word, and the calculator's answers"
SWITCH_ROW, TOP, TRIES_ROW, TABLE_ROW = 8, 11, 27, 34
READ = 3  # the first column of what the calculator finds
LAST = 11  # the place of the answer
ABOUT = (
    "The text is like a conveyor belt. The model reads the whole text and adds one word at the "
    "end, again and again. The model can do nothing else.",
    "To use a calculator, the model writes ordinary words, for example the four words 12 * 10 =. "
    "A program outside the model waits for such words.",
    "The program computes the answer and adds it to the text. The model reads the answer like "
    "your words, and continues.",
)
YOU, MODEL, TOOL = "you", "the model", "the calculator"
HEADS = (
    "place",
    "on the belt",
    "written by",
    "the model alone",
    "its probability",
    "sum",
    "answer",
)
PLACE, WORD, WRITER, ALONE, SHARE, SUM_COL, ANSWER = range(len(HEADS))
NUMBERS = (
    "Each word's number (-1 if the word is not a number). ‘kind’ is 1 for *, 2 for +, 3 for -. "
    "‘id’ is the answer's place in the vocabulary, counted from 0."
)
NO_TOKEN = "unknown word"  # of an answer that is not in the vocabulary


def add(book: ModelBook) -> None:
    """Add the switch of the calculator, the belt, three suggested edits, the calculator's table."""
    page = layout.page(
        book, SHEET, PURPOSE, *ABOUT, widths=dict.fromkeys(range(len(HEADS)), 16) | {PLACE: 11}
    )
    page.lay(
        book.graph[f"{NAME}.connected"],
        (SWITCH_ROW, 1),
        "switch",
        rule={"validate": "list", "source": ["1", "0"]},
        label="calculator",
    )
    page.sheet.put(SWITCH_ROW, 2, "1: on, 0: off", "note")
    _belt(book, page)
    _table(book, page)
    Composer(book, SHEET, TRIES_ROW - 1).suggest(*_suggestions())


def _belt(book: ModelBook, page: Composer) -> None:
    """Add a row for each place of the text."""
    g, n = book.graph, book.graph["tokens"].shape[0]
    page.heads_at((TOP - 1, 0), *HEADS, style="label")
    page.sheet.down(TOP, PLACE, range(n), "row number")
    one, n_prompt, answers = (n, 1), g["n_prompt"][0, 0], g[f"{NAME}.answer"]
    results = g[f"{NAME}.result"]

    words = g["vocabulary"].area.fixed

    def writer(t: int, _: int) -> Expression:
        return IF(
            expression(t) < n_prompt,
            worded(YOU),
            IF(answers[t, 0] >= 0, worded(TOOL), worded(MODEL)),
        )

    def share(t: int, _: int) -> Expression:
        if not t:
            return expression("")
        return Nth(g["probs"].area[t - 1, :].as_range, g["choice.chosen"][t - 1, 0] + 1)

    def asked(t: int, _: int) -> Expression:
        if t < LENGTH:
            return expression("")
        a, sign, b, equals = (on[t - LENGTH + k, 0] for k in range(LENGTH))
        return IF(results[t, 0] > SILENT, a & " " & sign & " " & b & " " & equals, "")

    def answer(t: int, _: int) -> Expression:
        return IF(
            results[t, 0] <= SILENT, "", IF(answers[t, 0] < 0, worded(NO_TOKEN), results[t, 0])
        )

    on = page.computed_at(
        "belt.word", (TOP, WORD), one, lambda t, _: Nth(words, g["tokens"][t, 0] + 1), "word"
    )
    page.computed_at("belt.writer", (TOP, WRITER), one, writer, "label")
    page.computed_at(
        "belt.alone",
        (TOP, ALONE),
        one,
        lambda t, _: Nth(words, g["choice.chosen"][t - 1, 0] + 1) if t else expression(""),
        "label",
    )
    page.computed_at("belt.share", (TOP, SHARE), one, share, "percent")
    page.computed_at("belt.sum", (TOP, SUM_COL), one, asked, "label")
    page.computed_at("belt.answer", (TOP, ANSWER), one, answer, "label")
    page.dress(
        page.sheet[TOP : TOP + n, WORD : WRITER + 1],
        When("differs", page.sheet[TOP, WRITER].fixed_cols == worded(TOOL)),
    )


def _table(book: ModelBook, page: Composer) -> None:
    """Add the calculator's inputs: the number of each word, and its finds at each place."""
    g, n = book.graph, book.graph["tokens"].shape[0]
    page.sheet.put(TABLE_ROW - 1, 0, "The data of the calculator", "heading")
    page.sheet.put(TABLE_ROW, 0, NUMBERS, "note")
    page.heads_at((TABLE_ROW + 1, 0), "word", "number", style="label")
    page.heads_at((TABLE_ROW + 1, READ), "place", "number", "kind", "result", "id", style="label")
    page.sheet.down(TABLE_ROW + 2, 0, book.labels["vocab"], "row label")
    page.lay(g[f"{NAME}.numbers"], (TABLE_ROW + 2, 1), "built")
    page.sheet.down(TABLE_ROW + 2, READ, range(n), "row number")
    for col, leaf in enumerate(("read", "sum", "result", "answer"), READ + 1):
        page.lay(g[f"{NAME}.{leaf}"], (TABLE_ROW + 2, col), "id")


def _suggestions() -> list[Suggestion]:
    """Three edits: the calculator off; another number; a number too large for it."""
    return [
        Suggestion(
            "Type ‘0’ to switch the calculator off: the model writes its own number, {then} "
            "instead of {now}. The model is as sure as before.",
            (f"{NAME}.connected", 0, 0), 0.0, ("belt.word", LAST, 0),
        ),
        Suggestion(
            "On the sheet Play, choose ‘11’ as the fifth word: the model copies 11, and the "
            "calculator answers {then:.0f}, not {now:.0f}.",
            ("prompt.pick", 4, 0), "11", (f"{NAME}.result", LAST, 0),
        ),
        Suggestion(
            "On the sheet Play, choose ‘13’ as the second word, a number outside the training "
            "data. The model writes 11 instead, and the calculator answers {then:.0f}.",
            ("prompt.pick", 1, 0), "13", (f"{NAME}.result", LAST, 0),
        ),
    ]  # fmt: skip
