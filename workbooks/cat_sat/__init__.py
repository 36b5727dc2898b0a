"""cat-sat: attention by hand on `the cat sat`; one head, one layer, every step as in the essay.

Look at the pattern: each row says how one word spreads its attention over the words before it
and sums to 1. Try another word in the prompt, the divisor of the scores, or one weight of W_V.
"""

import numpy as np

from cellformer.engine import Model, ModelSpec, WordList
from cellformer.engine.models.generate import Passage
from cellformer.engine.studies import ablation
from cellformer.exporters.assemble.transformer import assemble
from cellformer.exporters.compose.book import Book
from cellformer.exporters.compose.story import LAST, Story, Suggestion
from cellformer.exporters.pages import attention
from cellformer.workbooks.cat_sat.printed import PRINTED
from cellformer.workbooks.cat_sat.weights import (
    HEAD,
    POSITED_H,
    PRINTED_LOGITS,
    W_E,
    W_K,
    W_Q,
    W_V,
    WORDS,
)

TOPIC, AFTER, LEVEL = "Attention", "ocr-filter", 1
PROMPT = "the cat sat"
N_TOKENS = 8  # columns of the workbook: the prompt, and room to continue it
EXERCISES = (  # a query, a score by hand, a share, a head's output, the stream, the next word
    f"{HEAD}.q[1,0]",
    f"{HEAD}.scores[2,1]",
    f"{HEAD}.pattern[1,0]",
    f"{HEAD}.z[2,0]",
    "blocks.0.resid_mid[2,1]",
    "probs[2,4]",
)
REFERENCES = (  # sentences over which the head's average is measured
    "the cat sat on the mat .",
    "a dog ran on the floor .",
    "the big dog was fast .",
    "a small cat is slow .",
    "the red mat and the blue floor",
)
SAT = 2  # the last word of the prompt
MAT = "probs", LAST, WORDS.index("mat")
STORY = Story(
    title="cat-sat: one attention step, every number in view",
    source="Based on L. Erzegovesi, Transformers and QKV Attention: A Primer (2026), section 5.",
    about=[
        "This language model is small enough to follow every number. It has 20 words, vectors of "
        "5 numbers, and one attention head.",
        "The model reads ‘the cat sat’ and ranks the next word. The head makes a query, a key "
        "and a value from each word's vector.",
        "The query says what the word looks for. The key says what the word offers to a "
        "query. The value is what the word passes on.",
        "The score of a word: multiply the query and the word’s key, number by number, and add "
        "the products. Softmax turns scores into shares.",
        "The head multiplies the values by these shares, and adds the products to the word's "
        "vector. See the sheet Attention.",
        "Why it matters: every large language model uses this step, with more heads, more layers "
        "and longer vectors.",
    ],
    errata=[
        "The essay computed the example by hand, with some errors. Sheet Printed compares each "
        "of the essay's tables with the formulas.",
        "The sheet Printed also compares each table with a table computed from the "
        "essay's earlier tables. You see where an error begins.",
        "The essay prints three rows of the embedding. It prints no table that turns the last "
        "vector into scores.",
        "The other numbers were chosen for this workbook. The essay assumes a last vector. "
        "With these numbers, that vector gives the printed scores.",
    ],
    examples=(PROMPT, "the dog ran", "the cat sat on the"),
    look=[
        "The sheet Attention shows the whole step for one word, on one screen.",
        "On the sheet Embedding, a token's id picks its row of W_E (step 1).",
        "The sheet Block 0 shows steps 2 to 6: queries, keys, values, scores, pattern, blended "
        "values, and the sum in the stream.",
        "Here each word is a column. In the essay and on the sheet Printed, each word is a row. "
        "A row of the pattern shows where one word looks.",
        "Each row of the pattern sums to 1.",
        "The sheet Readout shows one dot product per word, then softmax (step 7). The sheet Play "
        "shows the ranked words.",
        "On the sheet Switches, a part that is off can write its average instead of nothing. The "
        "average is measured on five sentences of these words.",
    ],
    suggestions=[
        Suggestion(
            "Choose ‘dog’ instead of ‘cat’. The two words have nearly the same vector, so ‘mat’ "
            "hardly moves: from {now:.1%} to {then:.1%}.",
            1,
            "dog",
            MAT,
        ),
        Suggestion(
            "Scores are divided by this number. Type ‘0.2’: ‘sat’ now gives itself {then:.0%} of its attention, not {now:.0%}.",
            ("blocks.0.attn.sqrt_d_head", 0, 0),
            0.2,
            (f"{HEAD}.pattern", SAT, SAT),
        ),
        Suggestion(
            "Type ‘-1’, which reverses the third number of every value: ‘mat’ falls from {now:.1%} to {then:.1%}.",
            (f"{HEAD}.W_V", 2, 2),
            -1.0,
            MAT,
        ),
    ],
    section="QKV Attention, section 5",
)


def model() -> Model:
    """The essay's weights, with the head's average over the REFERENCES.

    W_U is the minimum-norm matrix with POSITED_H @ W_U = PRINTED_LOGITS.
    """
    h = np.array(POSITED_H)
    spec = ModelSpec(d_vocab=20, d_model=5, n_ctx=8, n_layers=1, n_heads=1, d_head=5)
    weights = {
        "W_E": W_E,
        f"{HEAD}.W_Q": W_Q,
        f"{HEAD}.W_K": W_K,
        f"{HEAD}.W_V": W_V,
        f"{HEAD}.W_O": np.eye(5),
        "W_U": np.outer(h, PRINTED_LOGITS) / (h @ h),
    }
    arrays = {name: np.array(values, dtype=np.float64) for name, values in weights.items()}
    made = Model(spec, arrays, WordList(tuple(WORDS)))
    return ablation.averaged(made, [made.vocabulary.encode(text) for text in REFERENCES])


def build(model: Model, passage: Passage) -> Book:
    """The workbook of a forward pass; the printed tables only for the essay's own prompt."""
    book = assemble(
        "cat-sat",
        model,
        passage,
        STORY,
        PRINTED if passage.ids[: passage.n_prompt] == [0, 1, 3] else (),
        HEADINGS,
    )
    book.opens_on = attention.SHEET
    return book


HEADINGS = {
    "embed": "Step 1: token embedding",
    f"{HEAD}.q": "Step 2: compute Q, K, V",
    f"{HEAD}.scores": "Steps 3 and 4: scores, causal mask, softmax",
    f"{HEAD}.z": "Steps 5 and 6: weighted sum of V, through W_O, back into the residual stream",
    "logits": "Step 7: final hidden state, logits, next-token distribution",
}
