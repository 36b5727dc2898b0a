"""Guess: questions that are answered before the answer is seen.

What comes next, where heads look, what a stage says, which weight to change: each question has a
yellow cell. Its answer is blank until something is typed there; the first line counts right ones.
Answers are formulas over the model's own sheets: another sentence, typed on Play, asks anew.
"""

from collections.abc import Callable

from cellformer.engine.cells.expression import Area, Expression, Nth, expression
from cellformer.engine.cells.functions import (
    AND,
    IF,
    IFERROR,
    LARGE,
    MATCH,
    MAX,
    MIN,
    NOT,
    OR,
    SUM,
    SUMPRODUCT,
    TRUE,
)
from cellformer.engine.cells.language import worded
from cellformer.engine.studies.lens import scoring
from cellformer.engine.studies.part_names import head_of
from cellformer.exporters.compose.composer import Composer
from cellformer.exporters.compose.dressing import When
from cellformer.exporters.compose.lookups import nth, place_of_largest
from cellformer.exporters.compose.sentences import percent, quote, rounded, sentence
from cellformer.exporters.model import layout
from cellformer.exporters.model.model_book import ModelBook
from cellformer.exporters.pages import lens

SHEET = "Guess"
PURPOSE = "guess, then see the answer: the next word, where heads look, which weight to change"
WITHOUT_HEADS = (
    "guess, then see the answer: the next word, the stage that finds it, the weight to change"
)
AFTER = "Play"
QUESTION, GUESS, RIGHT, ANSWER = 1, 2, 3, 4  # columns
MOST, FEW_HEADS = 8, 4  # questions of a kind; heads that are asked about at several words
BY = 0.1  # what the asked weight goes up by


# The cells for guesses, 1 beside each that is right, and how many questions there are.
Questions = tuple[Area, Area, Expression]


def wanted(book: ModelBook) -> bool:
    """Whether the workbook explains the next word."""
    return book.plan.explains and book.plan.gives == "next word"


def add(book: ModelBook) -> None:
    """Add the questions of each kind, and above them the count of right answers."""
    purpose = "" if book.model.spec.n_heads else WITHOUT_HEADS
    widths = {0: 14, QUESTION: 20, GUESS: 16, RIGHT: 8, ANSWER: 80}
    page = layout.page(book, SHEET, purpose, widths=widths)
    top = page.cursor
    page.cursor += 1
    kinds = [kind(book, page) for kind in (_next_words, _heads, _stages, _weights)]
    found = [questions for questions in kinds if questions]
    told = sentence(
        "{right} of {typed} guesses are right. There are {n} questions. You see an answer only "
        "after your guess.",
        right=SUM(*(right.as_range for _, right, _ in found)),
        typed=SUM(*(SUMPRODUCT((guesses.as_range != "") * 1) for guesses, *_ in found)),
        n=SUM(*(n for *_, n in found)),
    )
    page.show("tally", (top, 0), told, "heading")


def _next_words(book: ModelBook, page: Composer) -> Questions | None:
    """Add a row for each word of the sentence: what does the model say after it?"""
    n = min(len(book.passage.ids), MOST)
    n = book.passage.n_prompt if book.plan.sources else n  # its answer is read on Play
    given, texts = book.graph["n_prompt"][0, 0], _texts(book)
    page.heading(book.of_words("Which word comes next?", "Which letter comes next?"))
    page.text(
        "The sentence is on the sheet Play. Read the sentence from the top down to the row of a "
        "question. Which word does the model predict next?"
    )
    none = worded("no word")
    after = page.show(
        "after",
        (page.cursor + 1, QUESTION),
        lambda k, _: IF(given > k, layout.token_text(book, k), none),
        "word",
        (n, 1),
    )

    def reply(k: int, guess: Expression) -> tuple[Expression, Expression]:
        scores, chances = (book.graph[name][k, :].as_range for name in ("logits", "probs"))
        said, share = nth(texts, place_of_largest(scores)), percent(LARGE(chances, 1))
        told = sentence(
            "the model predicts {word} ({share}); your word gets {own}",
            word=quote(said),
            share=share,
            own=IFERROR(percent(Nth(chances, MATCH(guess, texts, 0))), "–"),
        )
        return said, told

    guesses, right, _ = _questions(page, "next", n, reply, texts, lambda k: given > k)
    page.dress(guesses, When("empty", after[0, 0] == none))
    return guesses, right, MIN(given, n)


def _heads(book: ModelBook, page: Composer) -> Questions | None:
    """Add a row for each head, or for some of its words: where does it look?"""
    heads = [b for b in book.graph if b.leaf == "pattern" and b.kind == "computed"]
    heads = [b for b in heads if not b.passes and b.axes == ("token", "token")]
    last = book.passage.n_prompt - 1
    if not heads or last < 1:
        return None
    words = range(1 if len(heads) < FEW_HEADS else last, last + 1)
    asked = [(head, at) for head in heads for at in reversed(words)][:MOST]
    page.heading("Where does each head look?")
    page.text(
        "Which word does the head look at most? After your guess, see the head’s picture on the "
        "sheet Heads."
    )
    top = page.cursor + 1
    page.sheet.down(top, 0, (head_of(head) for head, _ in asked), "row label")

    page.show(
        "from",
        (top, QUESTION),
        lambda k, _: sentence("from {word}", word=quote(layout.token_text(book, asked[k][1]))),
        "text",
        (len(asked), 1),
    )

    def reply(k: int, _: Expression) -> tuple[Expression, Expression]:
        head, at = asked[k]
        row = head[at, : at + 1]
        said = Nth(layout.token_texts(book)[0, : at + 1], MATCH(LARGE(row, 1), row, 0))
        share = percent(LARGE(row, 1))
        return said, sentence(
            "the head gives {word} {share} of its attention", word=quote(said), share=share
        )

    return _questions(
        page, "look", len(asked), reply, layout.token_texts(book)[0, : last + 1].fixed.as_range
    )


def _stages(book: ModelBook, page: Composer) -> Questions | None:
    """Add a row for each stage but the last: what would the model say if it stopped there?"""
    names = lens.stage_names(book)[:-1][-MOST:]
    if not names:
        return None
    first, texts = len(book.views.stages) - 1 - len(names), _texts(book)
    page.heading("When does the model know?")
    page.text(
        "What does the model predict if it stops after this part? After your guess, see all "
        "steps on the sheet Lens."
    )
    page.sheet.down(page.cursor + 1, QUESTION, names, "row label")

    def reply(k: int, _: Expression) -> tuple[Expression, Expression]:
        scores, chances = (book.graph[f"lens.{first + k}.{x}"].area for x in ("logits", "probs"))
        said = nth(texts, place_of_largest(scores.as_range))
        share = percent(LARGE(chances.as_range, 1))
        return said, sentence("the model says {word} ({share})", word=quote(said), share=share)

    return _questions(page, "stage", len(names), reply, texts)


def _weights(book: ModelBook, page: Composer) -> Questions | None:
    """Add two questions about the last matrix: each word has a column of weights there, and its
    score is the sum of their products with the stream's last numbers."""
    x = scoring(book.graph).x[book.passage.n_prompt - 1, :].as_range
    page.heading("Which weight would you change?")
    page.text(
        "A word’s score is a sum of products. The word’s weights in the last matrix are "
        "multiplied with the last layer’s numbers at the end of the sentence (see Readout).",
        "One weight of a word rises by 0.1. Type the number of that weight, counted from 0.",
    )
    signs = sentence("to raise the score most"), sentence("to lower the score most")
    page.show("change", (page.cursor + 1, QUESTION), lambda k, _: signs[k], "text", (2, 1))

    def reply(k: int, _: Expression) -> tuple[Expression, Expression]:
        value = MIN(x) if k else MAX(x)
        said = MATCH(value, x, 0) - 1
        told = sentence(
            "number {n} of the stream is {value}, so the score changes by {change}",
            n=said,
            value=rounded(value, 3),
            change=rounded(BY * value, 3),
        )
        return said, told

    return _questions(page, "weight", 2, reply)


def _questions(
    page: Composer,
    name: str,
    n: int,
    reply: Callable[[int, Expression], tuple[Expression, Expression]],
    choices: Area | None = None,
    asked: Callable[[int], Expression] = lambda k: TRUE(),
) -> Questions:
    """Add the cells for guesses, and beside them the answers, shown after a guess. `reply(k,
    guess)` is the right answer and the sentence that tells it; `asked(k)` whether there is a
    question."""
    page.heads_at((page.cursor, GUESS), worded("your guess"), worded("right"), worded("answer"))
    top = page.cursor + 1
    guess = page.typed_at(f"guess.{name}", (top, GUESS), [[""]] * n, "token")
    if choices is not None:
        page.sheet.lists |= {(top + k, GUESS): choices for k in range(n)}
    answers = [reply(k, guess[k, 0]) for k in range(n)]

    def answer(k: int, _: int) -> Expression:
        told = IF(right[k, 0] == 1, sentence("Right: "), sentence("No: ")) & answers[k][1]
        return IF(OR(guess[k, 0] == "", NOT(asked(k))), "", told)

    right = page.show(
        f"{name}.right",
        (top, RIGHT),
        lambda k, _: IF(AND(guess[k, 0] != "", asked(k), guess[k, 0] == answers[k][0]), 1, 0),
        "symbol",
        (n, 1),
    )
    page.show(f"{name}.answer", (top, ANSWER), answer, "text", (n, 1))
    page.cursor = top + n
    return guess, right, expression(n)


def _texts(book: ModelBook) -> Area:
    """The text of every word that has a logit, a column."""
    return layout.labels_of(book, "logits", 1, book.graph["logits"].shape[1])
