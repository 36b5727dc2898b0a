"""The calculator of tool-call: a cell for each place of the text, which reads the words before it.

Where they end in a sum, `12 * 7 =`, the answer stands on the belt as the next word, and the model
reads it as any other. It is outside the model: nothing in it was trained.
"""

from collections.abc import Sequence
from dataclasses import replace

from cellformer.engine.cells.expression import Expression, Nth, expression
from cellformer.engine.cells.functions import AND, IF, IFERROR, MATCH, N
from cellformer.engine.models.generate import Passage
from cellformer.engine.models.model import Model
from cellformer.exporters.compose.book import Book
from cellformer.workbooks.tool_call import sums

NAME = "calculator"
LENGTH = 4  # words of a sum
NONE = -1  # of a word that is no number, and of a place without an answer
SILENT = -1000  # below every result


def add(book: Book) -> None:
    """Add the calculator to the graph of a book, and put its answers into the text."""
    g, words = book.graph, sums.WORDS
    at, one, tokens = g.at(NAME), (g["tokens"].shape[0], 1), g["tokens"]
    numbers = at.input(
        "numbers",
        [[float(word) if word.isdigit() else NONE] for word in words],
        ("vocab", ""),
        "table",
    )
    connected = at.input("connected", 1.0, kind="table")

    def is_sum(t: int, _: int) -> Expression:
        if t < LENGTH:
            return expression(0)
        a, sign, b, equals = (t - LENGTH + k for k in range(LENGTH))
        signs = [IF(tokens[sign, 0] == words.index(s), k, 0) for k, s in enumerate(sums.KINDS, 1)]
        asked = AND(tokens[equals, 0] == words.index(sums.EQUALS), read[a, 0] >= 0, read[b, 0] >= 0)
        return IF(AND(asked, N(connected[0, 0]) == 1), signs[0] + signs[1] + signs[2], 0)

    def result(t: int, _: int) -> Expression:
        if t < LENGTH:
            return expression(SILENT)
        a, b = read[t - LENGTH, 0], read[t - 2, 0]
        times, plus, minus = a * b, a + b, a - b
        kind = called[t, 0]
        return IF(kind == 0, SILENT, IF(kind == 1, times, IF(kind == 2, plus, minus)))

    def ident(t: int, _: int) -> Expression:
        return IF(
            results[t, 0] < 0, NONE, IFERROR(MATCH(results[t, 0], numbers.area.fixed, 0) - 1, NONE)
        )

    read = at.table("read", one, lambda t, _: Nth(numbers.area.fixed, tokens[t, 0] + 1))
    called = at.table("sum", one, is_sum)
    results = at.table("result", one, result)
    answer = at.table("answer", one, ident)
    before = tokens.expression
    assert before is not None

    def token(t: int, _: int) -> Expression:
        typed = expression(t) < g["n_prompt"][0, 0]
        if t < LENGTH:
            return before(t, 0)
        return IF(typed, before(t, 0), IF(answer[t, 0] >= 0, answer[t, 0], before(t, 0)))

    g.follow("tokens", token)


def laid(model: Model, passage: Passage) -> Passage:
    """A passage whose continuation has the calculator's answers in it."""
    ids, texts = passage.ids[: passage.n_prompt], model.vocabulary.texts
    while len(ids) < len(passage.ids):
        answered = answer([texts[k] for k in ids])
        if answered in texts:
            ids.append(texts.index(answered))
        else:
            ids.append(
                passage.sampling.choose(
                    model.graph(ids).values["logits"][-1], passage.numbers[len(ids)], ids
                )
            )
    return replace(passage, ids=ids)


def answer(text: Sequence[str]) -> str:
    """The calculator's answer to these words; "" if they end in no sum."""
    *_, a, sign, b, equals = ["", "", "", "", *text]
    if equals != sums.EQUALS or sign not in sums.KINDS or not (a.isdigit() and b.isdigit()):
        return ""
    return str(sums.Sum(sign, int(a), int(b)).result)
