"""The sheet Two searches: a language model's last step beside a vector database.

Both multiply a query with every vector of a list, add up, and sort. The model's list is its words,
and it computes the query itself; the database's are stored texts, and another program makes the
vectors of texts and question. Here that program counts words, so that every number can be checked.
"""

from collections.abc import Callable
from functools import reduce
from operator import and_

from cellformer.engine.cells.expression import Area, Expression
from cellformer.engine.cells.functions import COUNTIF, IF, IFERROR, INDEX, MAX, SQRT, TRIM, dot
from cellformer.engine.cells.language import worded
from cellformer.exporters.compose.composer import Composer
from cellformer.exporters.compose.lookups import place_of_largest
from cellformer.exporters.compose.sentences import percent, quote, sentence
from cellformer.exporters.compose.story import Suggestion
from cellformer.exporters.model import layout
from cellformer.exporters.model.model_book import ModelBook

SHEET = "Two searches"
PURPOSE = (
    "the model’s last step and a vector database both search in the same way, in two "
    "different lists"
)
ABOUT = (
    "Both searches multiply one vector, the query, with every vector of a list, number by "
    "number. Both add the products and choose the largest sum."
)
COUNTED = ("bank", "rate", "loan", "bond", "share", "dividend")
QUESTION = ["when", "is", "the", "dividend", "of", "the", "share"]
STORED = [
    text.split()
    for text in (
        "the bank raises the rate of its loan",
        "the bond falls when the rate rises",
        "the share pays a dividend in May",
        "a share of the bank costs 12 euros",
        "a loan of the bank runs ten years",
    )
]
LONGEST = 8  # words of a question or a text
CLAIM_ROW, MODEL_ROW, ASKED_ROW, COUNTS_ROW, FOUND_ROW, TRIES_ROW = 3, 6, 12, 14, 20, 23
NOTES_ROW, KINDS_ROW, TEXTS_ROW = 27, 31, 42
SCORE, LEAST = 2 + len(COUNTED), 1e-9  # a column; a score below which nothing is found
ENCODER = (
    "The encoder of this database counts the six words below. You may change these words. A real "
    "encoder is a trained network, and its vectors have hundreds of numbers."
)
BELT = (
    "The found text becomes part of the sentence (RAG). The model’s own search then "
    "begins with a better query."
)
NOTHING = "nothing: no text contains a counted word of the question"
COMPARED = (  # what is compared, the model, the database
    ("", "language model", "vector database"),
    ("the list", "the words of its vocabulary", "all texts that you store"),
    ("the query comes from", "the model itself, from all words so far", "an encoder, from the question"),
    ("the vectors are trained to", "predict the next word", "bring a question and its answer close together"),
    ("the vectors come from", "training together with all other weights", "an encoder that was trained earlier and does not change"),
    ("what is found", "one word, and then the search starts again", "existing texts, unchanged"),
    ("what the search cannot do", "say where a word comes from", "give an answer (only similar texts)"),
    ("if nothing fits", "the model still returns a word", "the search still returns a text, unless you set a minimum score"),
)  # fmt: skip


def add(book: ModelBook) -> None:
    """Add both searches, their common parts, and the stored texts."""
    page = layout.page(
        book, SHEET, PURPOSE, widths={0: 28} | dict.fromkeys(range(1, SCORE + 3), 10)
    )
    page.sheet.put(CLAIM_ROW + 1, 0, ABOUT, "text")
    _in_words(book, page)
    page.sheet.put(TEXTS_ROW - 1, 0, "The stored texts, one word per cell", "heading")
    _in_texts(
        page, page.typed_at("search.stored", (TEXTS_ROW, 1), list(map(_padded, STORED)), "token")
    )
    _claim(book, page)
    Composer(book, SHEET, TRIES_ROW - 1).suggest(*_suggestions())
    page.sheet.put(KINDS_ROW - 1, 0, "Common points and differences", "heading")
    for k, texts in enumerate(COMPARED):
        for col, text in zip((0, 1, 6), texts, strict=True):
            page.sheet.put(KINDS_ROW + k, col, text, "text" if k and col else "block")


def _claim(book: ModelBook, page: Composer) -> None:
    """Add the results of both, in a sentence."""
    g, words = book.graph, book.labels["vocab_out"]
    shares = g["search.shares"].area[:, 0]
    texts = [IF(shares[k] == MAX(shares), word, "") for k, word in enumerate(words)]
    told = sentence(
        "The last step of a language model is a search, like the search of a database. Here the "
        "model finds {word}, with {share}.",
        word=quote(reduce(and_, texts)),
        share=percent(MAX(shares), 0),
    )
    page.show("claim", (CLAIM_ROW, 0), told, "heading")


def _in_words(book: ModelBook, page: Composer) -> None:
    """Add the model's own search, with the numbers of Readout."""
    g, words = book.graph, book.labels["vocab_out"]
    query, table = g["resid_final"], g["W_U"]
    page.sheet.put(MODEL_ROW - 1, 0, "The model compares its query with its words", "heading")
    d, n = table.shape
    page.heads_at((MODEL_ROW, SCORE), "score", "share", style="label")
    shown = page.computed_at(
        "search.query",
        (MODEL_ROW, 1),
        (1, d),
        lambda _, i: query[0, i] + 0,
        "live",
        label="query, from the sentence",
    )
    vectors = page.computed_at(
        "search.words", (MODEL_ROW + 1, 1), (n, d), lambda k, i: table[i, k] + 0, "live"
    )
    page.sheet.down(MODEL_ROW + 1, 0, words, "row label")
    page.computed_at(
        "search.logits",
        (MODEL_ROW + 1, SCORE),
        (n, 1),
        lambda k, _: dot(shown[0, :], vectors[k, :]),
        "activation black",
    )
    page.computed_at(
        "search.shares",
        (MODEL_ROW + 1, SCORE + 1),
        (n, 1),
        lambda k, _: g["probs"][0, k] + 0,
        "live percent",
    )


def _in_texts(page: Composer, stored: Area) -> None:
    """Add the database's search: a question, counts of words, cosines, and the text found."""
    page.sheet.put(ASKED_ROW - 1, 0, "A vector database compares a question with texts", "heading")
    for row, text in (
        (ASKED_ROW, "question, one word per cell"),
        (COUNTS_ROW - 1, "the encoder counts"),
        (COUNTS_ROW, "query, from the question"),
        (FOUND_ROW, "found"),
        (FOUND_ROW + 1, "prompt for a language model"),
    ):
        page.sheet.put(row, 0, text, "row label")
    page.sheet.down(NOTES_ROW, 0, (ENCODER, BELT), "note")
    asked = page.typed_at("search.asked", (ASKED_ROW, 1), [_padded(QUESTION)], "token")
    scores, texts = _scored(page, stored, asked)
    near, best = MAX(scores) > LEAST, INDEX(texts, place_of_largest(scores), 1)
    found = page.computed_at(
        "search.found", (FOUND_ROW, 1), (1, 1), lambda *_: IF(near, best, worded(NOTHING)), "block"
    )
    reads = IF(near, found[0, 0] & " . ", "") & _joined(asked[0, :])
    page.computed_at("search.reads", (FOUND_ROW + 1, 1), (1, 1), lambda *_: reads, "text")


def _scored(page: Composer, stored: Area, asked: Area) -> tuple[Area, Area]:
    """Add the counts of question and texts, and how near they are; the scores, and the texts."""
    n, top = len(COUNTED), COUNTS_ROW + 1
    counted = page.typed_at("search.counted", (COUNTS_ROW - 1, 1), [COUNTED], "token")
    page.heads_at((COUNTS_ROW - 1, SCORE), "cosine", style="label")

    def counts(words: Area) -> Callable[[int, int], Expression]:
        return lambda k, c: COUNTIF(words[k, :], counted[0, c])

    query = page.computed_at("search.question", (COUNTS_ROW, 1), (1, n), counts(asked), "symbol")
    shape = (len(STORED), n)
    vectors = page.computed_at("search.texts", (top, 1), shape, counts(stored), "symbol")

    def cosine(k: int, _: int) -> Expression:
        text, here = vectors[k, :], query[0, :]
        return IFERROR(dot(text, here) / SQRT(dot(text, text) * dot(here, here)), 0)

    shape, at = (len(STORED), 1), (top, SCORE)
    scores = page.computed_at(
        "search.cosines", at, shape, cosine, "activation black", dress="scale"
    )
    texts = page.computed_at(
        "search.text", (top, SCORE + 1), shape, lambda k, _: _joined(stored[k, :]), "text"
    )
    page.sheet.down(
        top, 0, (worded("text {k}", k=k) for k in range(1, len(STORED) + 1)), "row label"
    )
    return scores[:, 0], texts[:, 0]


def _joined(words: Area) -> Expression:
    """Words in a row as one text."""
    return TRIM(reduce(and_, (word & " " for word in words.cells)))


def _padded(words: list[str]) -> list[str]:
    return words + [""] * (LONGEST - len(words))


def _suggestions() -> list[Suggestion]:
    """Three edits: another question, a text with the words of the question, and a longer query."""
    return [
        Suggestion(
            "Type ‘bond’: the question's vector changes. The nearest text is now ‘{then}’, with "
            "a cosine of {cosine.then:.2f}.",
            ("search.asked", 0, 3), "bond", ("search.found", 0, 0), others={"cosine": ("search.cosines", 1, 0)},
        ),
        Suggestion(
            "Type ‘dividend’: the cosine of text 4 rises from {now:.2f} to {then:.2f}. Text 4 "
            "is now as near as text 3, but text 4 names no date.",
            ("search.stored", 3, 4), "dividend", ("search.cosines", 3, 0),
        ),
        Suggestion(
            "Type ‘3’: the model gives its first word {then:.0%}, not {now:.0%}. The cosines "
            "stay the same: they do not say how certain a result is.",
            ("query_length", 0, 0), 3.0, ("search.shares", 0, 0),
        ),
    ]  # fmt: skip
