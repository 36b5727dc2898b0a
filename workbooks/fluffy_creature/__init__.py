"""fluffy-creature: a whole block, attention and MLP, in two dimensions, on four words.

Look at what each step adds to the four vectors. Try the divisor of the scores: the notes leave out
the division by sqrt 2 (a 1 in its cell), and say that it does not change the pattern much.
"""

import numpy as np

from cellformer.engine import Model, ModelSpec, WordList
from cellformer.engine.models.generate import Passage
from cellformer.engine.studies import ablation
from cellformer.exporters.assemble.transformer import assemble
from cellformer.exporters.compose.book import Book
from cellformer.exporters.compose.story import LAST, Story, Suggestion
from cellformer.workbooks.fluffy_creature.printed import PRINTED
from cellformer.workbooks.fluffy_creature.weights import BLOCK, HEAD, WEIGHTS, WORDS

TOPIC, AFTER, LEVEL = "Inside a block", "low-rank", 2
PROMPT = "fluffy blue creature forest"
N_TOKENS = 8  # columns of the workbook: the prompt, and room to continue it
REFERENCES = (  # sentences over which the averages of head and MLP are measured
    PROMPT,
    "blue forest fluffy creature",
    "creature fluffy forest",
    "forest blue",
)
FOREST = "probs", LAST, WORDS.index("forest")

STORY = Story(
    title="fluffy-creature: one transformer block in two dimensions",
    source="Based on lecture notes on transformers, section 8, Transformer Numerical Example.",
    about=[
        "This workbook shows one transformer block on four words. The vectors have two "
        "numbers, so you can draw them on paper.",
        "The block has one attention head, and an MLP with four hidden cells. ReLU cuts "
        "numbers below 0 to 0. Input and output use the same table of word vectors.",
        "Why it matters: attention moves information between words. The MLP works on each word "
        "separately.",
        (
            "Attention and MLP only add to the vectors of the residual stream. All larger "
            "models repeat such blocks."
        ),
        "The weights were set by hand, so that the numbers stay simple. The block was not trained.",
    ],
    errata=[
        "In section 5.7, the notes draw a block with a LayerNorm before each part. The example "
        "of the notes has no LayerNorm, so this workbook has no LayerNorm.",
        "The notes do not divide the scores by the root of 2, and their tables contain errors.",
        (
            "The sheet Printed compares each printed table with its formula, and with the "
            "result of the earlier tables."
        ),
    ],
    examples=(PROMPT, "blue creature", "forest creature"),
    look=[
        "The sheet Block 0 shows the scores, then the pattern. The sentence runs from left to "
        "right here, but in the notes each word has a row. Each row of the pattern sums to 1.",
        "On the sheet Block 0, resid_pre, attn_out, resid_mid, mlp_out and resid_post show what "
        "each part adds to the words.",
        "On the sheet Readout, a logit is a dot product with a word vector. The input uses the "
        "same table of word vectors.",
        "On the sheet Switches, a part that is off can write its average instead of nothing. The "
        "average was measured over four orders of these words.",
    ],
    suggestions=[
        Suggestion(
            "Type ‘=SQRT(2)’, the divisor in the formula of attention: forest now gives blue {then:.0%} "
            "of its attention, not {now:.0%}.",
            (f"{BLOCK}.attn.sqrt_d_head", 0, 0),
            2**0.5,
            (f"{HEAD}.pattern", WORDS.index("forest"), WORDS.index("blue")),
        ),
        Suggestion(
            "Choose ‘creature’ as the last word: ‘creature’ now leads, and ‘forest’ falls from "
            "{now:.0%} to {then:.0%}.",
            3,
            "creature",
            FOREST,
        ),
        Suggestion(
            "Type ‘-1’: ReLU cuts the third hidden cell to 0 for every word. ‘forest’ falls from {now:.0%} "
            "to {then:.0%}.",
            (f"{BLOCK}.mlp.W_in", 1, 2),
            -1.0,
            FOREST,
        ),
    ],
    section="Lecture notes, section 8",
)


def model() -> Model:
    """The weights of the notes; scores are divided by 1, as the notes do."""
    spec = ModelSpec(
        d_vocab=4, d_model=2, n_ctx=8, n_layers=1, n_heads=1, d_head=2, d_mlp=4,
        activation="relu", tied=True, sqrt_d_head=1.0,
    )  # fmt: skip
    weights = {
        "W_E": WEIGHTS["W_E"],
        **{f"{HEAD}.{name}": WEIGHTS[name] for name in ("W_Q", "W_K", "W_V", "W_O")},
        **{f"{BLOCK}.mlp.{name}": WEIGHTS[name] for name in ("W_in", "W_out")},
    }
    arrays = {name: np.array(values, dtype=np.float64) for name, values in weights.items()}
    made = Model(spec, arrays, WordList(WORDS))
    return ablation.averaged(made, [made.vocabulary.encode(text) for text in REFERENCES])


def build(model: Model, passage: Passage) -> Book:
    """The workbook of a forward pass; the printed tables only for the notes' own prompt."""
    return assemble(
        "fluffy-creature",
        model,
        passage,
        STORY,
        PRINTED if passage.ids[: passage.n_prompt] == [0, 1, 2, 3] else (),
        HEADINGS,
    )


HEADINGS = {
    "embed": "2. Embeddings",
    f"{HEAD}.q": "4. Compute Q, K, V",
    f"{HEAD}.scores": "5 to 7. Scores, causal mask, softmax",
    f"{HEAD}.z": "9. Attention times V, the output projection, the residual",
    f"{BLOCK}.mlp.pre": "The feed-forward sublayer, and its residual",
    "logits": "Unembedding and softmax",
}
