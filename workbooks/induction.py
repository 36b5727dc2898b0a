"""induction: two attention layers, set by hand, that repeat a pattern of the text: A B ... A B.

The head of layer 0 attends one token back and notes the word there; the head of layer 1 attends to
the place whose note is the current word, and predicts the word there. Look at the two patterns. Try
it without the first head, with another word after the first `the`, or with softer scores.
"""

import numpy as np

from cellformer.engine import Model, ModelSpec, WordList
from cellformer.engine.cells.evaluator import edited
from cellformer.engine.models.generate import Passage
from cellformer.engine.studies import ablation
from cellformer.exporters.assemble.transformer import assemble
from cellformer.exporters.compose.book import Book
from cellformer.exporters.compose.story import LAST, Story, Suggestion

TOPIC, AFTER, LEVEL = "A whole model", "no-attention", 3
TITLE = "induction: two heads that continue a text like its earlier part"
PROMPT = "the cat sat on the"
REFERENCES = (  # sentences over which the heads' averages are measured
    PROMPT,
    "the dog sat on the",
    "cat sat on dog sat",
    "on the cat sat on the",
)
N_TOKENS = 8  # columns of the workbook: the prompt, and three words that it goes on with
WORDS = ("the", "cat", "dog", "sat", "on")
N_WORDS, N_CTX = len(WORDS), N_TOKENS
BACK, MATCHER = "blocks.0.attn.h0", "blocks.1.attn.h0"  # the two heads
MATCH = 40.0  # a query's length: scores are this, over the root of d_head, where a key fits
WRITE = 2.0  # how strongly the induction head writes the word that it found: not all decides
USUAL = np.array([  # logits of the word that usually follows: a bigram table, the direct path
    [-0.6, 0.2, 1.2, -0.2, -0.4],  # after the: rather dog than cat
    [-0.4, -0.6, -0.2, 0.8, 0.4],
    [-0.4, -0.2, -0.6, 0.8, 0.4],
    [0.4, -0.4, -0.2, -0.6, 0.8],
    [1.2, 0.2, 0.4, -0.4, -0.6],
])  # fmt: skip

# The residual stream is four subspaces side by side, each read and written by its own parts.
TOKEN, PREVIOUS, NEXT, PLACE = np.split(
    np.arange(3 * N_WORDS + N_CTX), [N_WORDS, 2 * N_WORDS, 3 * N_WORDS]
)
D_MODEL, D_HEAD = 3 * N_WORDS + N_CTX, max(N_WORDS, N_CTX)


def model() -> Model:
    """The weights: all 0 except a few that copy one subspace to another."""
    spec = ModelSpec(
        d_vocab=N_WORDS,
        d_model=D_MODEL,
        n_ctx=N_CTX,
        n_layers=2,
        n_heads=1,
        d_head=D_HEAD,
        position="learned",
    )
    W_pos = np.zeros((N_CTX, D_MODEL))
    W_pos[:, PLACE] = np.eye(N_CTX)
    W_pos[0, PREVIOUS] = -1.0  # no word stands before the first: its note of itself is undone
    weights = {
        "W_E": reading(TOKEN)[:, :N_WORDS].T,
        "W_pos": W_pos,
        # Layer 0: the query of place i is the key of place i - 1; the word there is noted.
        f"{BACK}.W_Q": MATCH * reading(PLACE[1:]),
        f"{BACK}.W_K": reading(PLACE),
        f"{BACK}.W_V": reading(TOKEN),
        f"{BACK}.W_O": reading(PREVIOUS).T,
        # Layer 1: the word now read is the query, the notes are the keys; the word there is said.
        f"{MATCHER}.W_Q": MATCH * reading(TOKEN),
        f"{MATCHER}.W_K": reading(PREVIOUS),
        f"{MATCHER}.W_V": reading(TOKEN),
        f"{MATCHER}.W_O": WRITE * reading(NEXT).T,
        "W_U": reading(NEXT)[:, :N_WORDS] + reading(TOKEN)[:, :N_WORDS] @ USUAL,
    }
    made = Model(spec, weights, WordList(WORDS))
    return ablation.averaged(made, [made.vocabulary.encode(text) for text in REFERENCES])


def reading(features: np.ndarray) -> np.ndarray:
    """The matrix that reads these features of the stream into a head's first: [d_model, d_head]."""
    return np.eye(D_MODEL)[:, features] @ np.eye(len(features), D_HEAD)


def build(model: Model, passage: Passage) -> Book:
    """The workbook of a prompt and its continuation."""
    return assemble("induction", model, passage, story(model), headings=HEADINGS)


HEADINGS = {
    "embed": "Words and places, each in a separate subspace",
    f"{BACK}.q": "Previous-token head: the query of place i is the key of place i - 1",
    f"{BACK}.scores": "Each token looks one token back; the first looks at itself",
    f"{BACK}.z": "The head copies the attended word into the subspace ‘previous’",
    f"{MATCHER}.q": "Induction head: the query is the word, the keys are the previous words",
    f"{MATCHER}.scores": "A word looks at the places just after its earlier copies",
    f"{MATCHER}.z": "The head copies the attended word into the subspace ‘next’",
    "logits": "Readout: the word in ‘next’, and the usual next word after ‘token’",
}


ABOUT = [
    "In ‘the cat sat on the’, the first ‘the’ is followed by ‘cat’. So ‘cat’ should also "
    "follow the second ‘the’.",
    "The rule: after A B ... A comes B, for any words A and B. Two attention heads can follow "
    "this rule. Trained models contain such pairs, called induction heads.",
    "Why it matters: no weight of the heads knows a word of the vocabulary. The model "
    "learns the next word from the prompt, while it reads the prompt.",
    "One layer is not enough. At each place, layer 0 notes the previous word.",
    (
        "Layer 1 looks for the place whose note is the current word, and copies the word at "
        "that place. All weights are set by hand, most of them to 0."
    ),
    f"The stream has four parts: features {TOKEN[0]} to {TOKEN[-1]} are ‘token’, "
    f"{PREVIOUS[0]} to {PREVIOUS[-1]} ‘previous’, {NEXT[0]} to {NEXT[-1]} ‘next’, "
    f"{PLACE[0]} to {PLACE[-1]} ‘place’.",
    "The order of words is: the, cat, dog, sat, on. W_U also reads ‘token’, with a bigram "
    "table. This table gives the usual next word after each word.",
]


def story(model: Model) -> Story:
    """The start sheet's texts, and suggested edits with their computed effects."""
    ids = model.vocabulary.encode(PROMPT)
    last = len(ids) - 1
    cat, dog, on = map(WORDS.index, ("cat", "dog", "on"))
    graph = model.graph(ids)
    probs, now = graph["probs"][last, :], edited(graph, {})
    usual = edited(graph, {graph[f"{MATCHER}.switch"].area: 0.0})
    return Story(
        title=TITLE,
        source="Based on A Gentle Introduction to Transformers (2025). That text says that a second "
        "layer makes induction heads possible.",
        about=ABOUT,
        examples=(PROMPT, "sat on sat", "dog sat the dog"),
        look=[
            "On the sheet Heads, each word in layer 0 looks one step back. In layer 1 the "
            "second ‘the’ looks at ‘cat’.",
            "A new word finds no matching note, and looks at several places equally.",
            f"On the sheet Lens, ‘dog’ leads with {usual(probs[dog]):.3f} after the bigram table "
            f"alone. After layer 1, ‘cat’ leads with {now(probs[cat]):.3f}.",
            "The sheet Attribution shows what each head adds to the logit of ‘cat’. On the sheet "
            "Play, the text continues with ‘cat sat on’.",
        ],
        suggestions=[
            Suggestion(
                "Type ‘0’ to switch the previous-token head off: ‘cat’ falls from {now:.1%} to {then:.1%}, and ‘dog’ leads.",
                (f"{BACK}.switch", 0, 0),
                0.0,
                ("probs", LAST, cat),
            ),
            Suggestion(
                "Choose ‘on’ instead of ‘cat’: ‘on’ rises from {now:.1%} to {then:.1%}. No "
                "weight has changed: the model reads the next word from the prompt.",
                1,
                "on",
                ("probs", LAST, on),
            ),
            Suggestion(
                f"Scores are divided by this number. Type ‘{MATCH:.0f}’: the last word gives ‘cat’ {{share.then:.0%}} of its attention, not {{share.now:.0%}}, "
                "and ‘cat’ falls from {now:.1%} to {then:.1%}.",
                ("blocks.1.attn.sqrt_d_head", 0, 0),
                MATCH,
                ("probs", LAST, cat),
                others={"share": (f"{MATCHER}.pattern", last, 1)},
            ),
        ],
    )
