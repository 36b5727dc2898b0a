"""final-step: the last step of a language model as a search, three words against one query.

Look at the logits: dot products of one query with three words. Try the query's length: direction
chooses the word, magnitude the certainty.
"""

from collections.abc import Sequence

import numpy as np

from cellformer.engine import Graph, Model, ModelSpec, WordList
from cellformer.engine.cells.expression import Expression
from cellformer.engine.cells.functions import EXP, added
from cellformer.engine.models import ops
from cellformer.engine.models.forward import Forward
from cellformer.engine.models.generate import Passage
from cellformer.engine.models.parts import softmax
from cellformer.exporters.assemble.transformer import assemble
from cellformer.exporters.compose.book import Book
from cellformer.exporters.compose.story import Printed, Story, Suggestion
from cellformer.workbooks.final_step import searches

TOPIC, AFTER, LEVEL = "The next word", "zero-layer", 1
PROMPT = "Pietro"
WORDS = ("Tarso", "Cefa", "Paolo")
QUERIES = (PROMPT, *WORDS)  # the essay posits the query of ‘Pietro chiama Paolo’
DICTIONARY = [[1.2, 0.4, -0.1], [0.3, 1.0, 0.2], [-0.5, 0.2, 0.9]]
POSITED = [1.0, 0.5, -0.2]

STORY = Story(
    title="final-step: the last step of a model is a search among its words",
    source="Based on L. Erzegovesi, The Final Step (2026), Appendix A.",
    about=[
        "The last step of a language model is a search. The model compares one list of "
        "numbers, the query, with the list of every word.",
        "The model multiplies both lists number by number and adds the products. The sum is a "
        "dot product, the word's score. Softmax turns scores into shares.",
        "Why it matters: the direction of the query decides which word is found. The length of "
        "the query decides how certain the model is.",
        "Here are three words and a query of three numbers, called ‘Pietro’, all chosen by hand.",
        "A trained model would compute the query from the sentence ‘Pietro chiama Paolo’. This "
        "workbook leaves these steps out. You can also choose a word: its list is then the "
        "query.",
        "A vector database uses the same dot product to compare a question with stored texts. "
        "The sheet Two searches shows both searches.",
    ],
    examples=(PROMPT, "Tarso", "Paolo"),
    look=[
        "The sheet Two searches shows how the same dot product finds a word in the model, and a "
        "text in a vector database.",
        "The sheet Readout shows the query, three dot products, and softmax. Before softmax, a "
        "temperature divides the scores.",
        "The sheet Play sorts the words by their shares. Each live share stands beside the share "
        "as built. So you can compare both shares after an edit.",
    ],
    suggestions=[
        Suggestion(
            "Type ‘3’: the query is three times as long. ‘Tarso’ still wins, with {then:.0%} instead of {now:.0%}.",
            ("query_length", 0, 0),
            3.0,
            ("probs", 0, WORDS.index("Tarso")),
        ),
        Suggestion(
            "Type ‘3’: the temperature divides all scores, and ‘Tarso’ falls from {now:.0%} to "
            "{then:.0%}. A query length of 3 undoes this change.",
            ("temperature", 0, 0),
            3.0,
            ("probs", 0, WORDS.index("Tarso")),
        ),
        Suggestion(
            "Choose ‘Paolo’: the query points in another direction, and ‘Paolo’ rises from {now:.0%} to {then:.0%}.",
            0,
            "Paolo",
            ("probs", 0, WORDS.index("Paolo")),
        ),
    ],
    section="The Final Step, appendix A",
)


def search(g: Forward, ids: Sequence[int]) -> None:
    """Look a query up, stretch it, score every word of the dictionary, softmax."""
    tokens = g.input("tokens", np.reshape(ids, (-1, 1)), ("token", ""), "ids")  # [1, 1]
    queries = g.weight("queries", "vocab", "d_model")
    query = g.block("embed", ops.embed, tokens, queries)  # [1, d_model]
    x = g.block("resid_final", ops.stretch, query, g.input("query_length", 1.0))  # [1, d_model]
    W_U = g.weight("W_U", "d_model", "vocab_out")
    logits = g.block("logits", ops.linear, x, W_U)  # [1, d_vocab]
    softmax(g.at("softmax"), logits, temperature=g.input("temperature", 1.0), out=(g, "probs"))


def model() -> Model:
    """The posited query and, as alternatives, each word's vector; the dictionary as columns."""
    return Model(
        ModelSpec(d_vocab=len(QUERIES), d_vocab_out=len(WORDS), d_model=3, n_ctx=1),
        {"queries": np.array([POSITED, *DICTIONARY]), "W_U": np.array(DICTIONARY).T},
        WordList(QUERIES),
        WordList(WORDS),
        search,
    )


def build(model: Model, passage: Passage) -> Book:
    """The workbook of one query; the printed tables only for the posited one."""
    printed = PRINTED if passage.ids == [0] else ()
    study = searches.add if model.outputs and model.outputs.texts == WORDS else None
    book = assemble("final-step", model, passage, STORY, printed, HEADINGS, study=study)
    book.opens_on = searches.SHEET if study else book.opens_on
    return book


HEADINGS = {
    "resid_final": "The query, and its length",
    "logits": "Score each word by a dot product with the query: this is the search",
    "softmax.exp": "Softmax: turn scores into a ranked probability list",
}


def tripled(g: Graph, _: int, j: int) -> Expression:
    """A score for three times the query."""
    return 3 * g["logits"][0, j] / g["query_length"][0, 0]


def share_tripled(g: Graph, _: int, j: int) -> Expression:
    """Its probability."""
    return EXP(tripled(g, 0, j)) / added(EXP(tripled(g, 0, k)) for k in range(len(WORDS)))


PRINTED = (
    Printed("Scores", [[1.42, 0.76, -0.58]], "logits"),
    Printed("Exponentials: e^x", [[4.14, 2.14, 0.56]], "logits",
            cell=lambda g, _, j: EXP(g["logits"][0, j]),
            note="The sheet Readout first subtracts the largest score. The shares stay the same."),
    Printed("Their sum", [[6.84]], "tokens",
            cell=lambda g, *_: added(EXP(score) for score in g["logits"][0, :].cells)),
    Printed("Probabilities", [[0.61, 0.31, 0.08]], "probs"),
    Printed("Scores of the tripled query", [[4.26, 2.28, -1.74]], "logits", cell=tripled),
    Printed("Probabilities of the tripled query", [[0.87, 0.12, 0.01]], "logits",
            cell=share_tripled, note="The exact shares are 0.877, 0.121 and 0.002."),
)  # fmt: skip
