"""two-layers: two heads, two layers and an MLP on `the cat sat`: follow the shapes.

Look at sheet Study: every step with its shape and links to its cells. Try another last word: the
words before it do not change. The weights are fitted in `fitting`; the source prints none.
"""

from collections.abc import Iterator

import numpy as np

from cellformer.engine import Model, ModelSpec, WordList
from cellformer.engine.models.generate import Passage
from cellformer.engine.studies import ablation
from cellformer.exporters.assemble.transformer import assemble
from cellformer.exporters.compose.book import Book
from cellformer.exporters.compose.story import Printed, Story, Suggestion
from cellformer.workbooks.two_layers import fitting
from cellformer.workbooks.two_layers.study import study

TOPIC, AFTER, LEVEL = "A whole model", "one-layer", 3
TITLE = "two-layers: two heads, two layers, an MLP: every shape from token ids to a distribution"
PROMPT = " ".join(fitting.PROMPT)
N_TOKENS = 8  # columns of the workbook: the prompt, and room to continue it
REFERENCES = (  # sentences over which the averages of heads and MLPs are measured
    PROMPT,
    "the big dog ran",
    "the small cat ran on the mat",
    "the dog sat on the floor",
)
FIRST, SECOND = "blocks.0", "blocks.1"
HEAD_1, HEAD_2 = f"{FIRST}.attn.h0", f"{FIRST}.attn.h1"
CAT, SAT, DOG = 1, 2, fitting.WORDS.index("dog")  # positions, and the likeliest next word
HEADINGS = {
    "embed": "Step 1: embedding + position",
    f"{HEAD_1}.q": "Step 2: Q, K and V of head 0.0",
    f"{HEAD_1}.scores": "Step 3: attention inside head 0.0",
    f"{HEAD_2}.q": "Step 2: Q, K and V of head 0.1",
    f"{HEAD_2}.scores": "Step 3: attention inside head 0.1",
    f"{FIRST}.attn_out": "Steps 4 and 5: outputs of both heads, added to the stream",
    f"{FIRST}.mlp.pre": "Step 6: the MLP",
    f"{SECOND}.resid_pre": "Step 7: layer 2, same shapes, new weights",
    "logits": "Step 8: logits of the last word",
}


def model() -> Model:
    """The fitted weights; each head has its own columns of W_Q, W_K, W_V and rows of W_O."""
    spec = ModelSpec(
        d_vocab=len(fitting.WORDS),
        d_model=fitting.D_MODEL,
        n_ctx=8,
        n_layers=2,
        n_heads=fitting.N_HEADS,
        d_head=fitting.D_HEAD,
        d_mlp=fitting.D_MLP,
        activation="relu",
        position="learned",
    )
    W_E, W_pos = fitting.embeddings(spec.n_ctx)
    weights = {"W_E": W_E, "W_pos": W_pos, "W_U": fitting.unembedding(W_E)}
    for n, layer in enumerate(fitting.layers()[0]):
        weights |= {f"blocks.{n}.mlp.W_in": layer.W_1, f"blocks.{n}.mlp.W_out": layer.W_2}
        for h, lane in enumerate(fitting.HEADS):
            head = f"blocks.{n}.attn.h{h}"
            weights[f"{head}.W_Q"] = layer.W_Q[:, lane]
            weights[f"{head}.W_K"] = layer.W_K[:, lane]
            weights[f"{head}.W_V"] = layer.W_V[:, lane]
            weights[f"{head}.W_O"] = layer.W_O[lane]
    made = Model(spec, weights, WordList(fitting.WORDS))
    return ablation.averaged(made, [made.vocabulary.encode(text) for text in REFERENCES])


def build(model: Model, passage: Passage) -> Book:
    """The workbook of a forward pass; the printed tables only for the source's own prompt."""
    same = passage.ids[: passage.n_prompt] == model.vocabulary.encode(PROMPT)
    return assemble(
        "two-layers", model, passage, story(), printed() if same else (), HEADINGS, study
    )


ERRATA = [
    "The source prints the result of each step to two decimals, but no weights. This "
    "workbook uses the smallest weights that give these results.",
    "Some rounded tables of the source contradict each other by 0.01. In these cases, "
    "the weights here give the value in the middle.",
    "For layer 1, the source prints only outputs and sums. This workbook chooses the "
    "attention patterns, and the vectors of words that the source does not show.",
    "The source counts layers and heads from 1.",
    "The source calls ReLU the only nonlinear step. But the attention softmax and the "
    "product of queries and keys are also nonlinear.",
]


def story() -> Story:
    """The start sheet's texts, and suggested edits."""
    return Story(
        title=TITLE,
        source="Based on L. Erzegovesi, Transformers and QKV Attention: A Primer (2026), section 6.",
        about=[
            "This transformer has no norms and no biases. It has ten words, vectors of six "
            "numbers, two layers, two heads of three numbers, and eight MLP cells.",
            "Follow the shape of the data from step to step. The stream keeps its shape, because "
            "each part adds a table of the same shape.",
            "Why it matters: the output of each layer has the same shape as its input. So layers "
            "can be stacked: GPT-3 stacks 96 layers.",
        ],
        errata=ERRATA,
        examples=(PROMPT, "the dog ran on", "big cat sat on"),
        look=[
            "The sheet Study shows the table of shapes, with a link from each step to its cells.",
            "On the sheets Block 0 and Block 1, the stream always has 6 columns. A head uses 3 "
            "columns, and the MLP uses 8 columns.",
            "Each head has its own W_Q, W_K, W_V and W_O. The source puts both heads side by "
            "side, in 6 columns.",
            "The sheet Printed shows every number of the source, and its difference from the "
            "cells. Only one probability differs by more than 0.005.",
            "On the sheet Switches, a part that is off can write its average instead of nothing. "
            "The average comes from four sentences of these words.",
        ],
        suggestions=[
            Suggestion(
                "Choose ‘big’: after ‘cat’ nothing changes, and ‘dog’ stays at {then:.1%}. After "
                "the last word ‘dog’ changes from {last.now:.1%} to {last.then:.1%}.",
                SAT,
                "big",
                ("probs", CAT, DOG),
                others={"last": ("probs", SAT, DOG)},
            ),
            Suggestion(
                "Type ‘0.1’ for the number that divides the scores: in head 0.1, ‘sat’ gives "
                "‘the’ {then:.0%} of its attention, not {now:.0%}.",
                (f"{FIRST}.attn.sqrt_d_head", 0, 0),
                0.1,
                (f"{HEAD_2}.pattern", SAT, 0),
            ),
            Suggestion(
                "Type ‘0’ to switch MLP 1 off: ‘dog’ falls from {now:.1%} to {then:.1%}.",
                (f"{SECOND}.mlp.switch", 0, 0),
                0.0,
                ("probs", SAT, DOG),
            ),
        ],
        section="QKV Attention, section 6",
    )


# --- what the source prints --------------------------------------------------------------------


def printed() -> list[Printed]:
    """Every table of the section."""
    return [
        Printed("Step 1: h⁰", fitting.H0.tolist(), f"{FIRST}.resid_pre"),
        *by_head("Step 2: Q", fitting.Q, "q"),
        Printed("Step 3: scores, head 0.0", fitting.SCORES_1.tolist(), f"{HEAD_1}.scores"),
        Printed(
            "Step 3: weights, head 0.0",
            fitting.PATTERN_1.tolist(),
            f"{HEAD_1}.pattern",
            note="The source prints the last row as 0.34, 0.33, 0.32. The sum is 0.99 because of "
            "rounding.",
        ),
        Printed("Step 3: weights, head 0.1", fitting.PATTERN_2.tolist(), f"{HEAD_2}.pattern"),
        *by_head("Step 4: concat", fitting.CONCAT, "z"),
        Printed("Step 6: pre", fitting.PRE.tolist(), f"{FIRST}.mlp.pre"),
        Printed("Step 6: act", np.maximum(fitting.PRE, 0).tolist(), f"{FIRST}.mlp.post"),
        *written(),
        Printed("Step 8: logits of the last word", [fitting.LOGITS.tolist()], "logits", rows=[SAT]),
        Printed(
            "Step 8: probabilities",
            [fitting.PROBS.tolist()],
            "probs",
            rows=[SAT],
            note="The source prints 0.04 for ‘the’. But its printed logit, -0.48, gives 0.0348, "
            "which rounds to 0.03. A logit of -0.47 would give 0.0351, which rounds to 0.04.",
        ),
    ]


def by_head(title: str, table: np.ndarray, leaf: str) -> list[Printed]:
    """A table [n_tokens, n_heads * d_head] of layer 0, each head with its own columns only."""
    return [
        Printed(f"{title}, head 0.{h}", table[:, lane].tolist(), f"{FIRST}.attn.h{h}.{leaf}")
        for h, lane in enumerate(fitting.HEADS)
    ]


def written() -> Iterator[Printed]:
    """The outputs of attention and MLP in both layers, and the stream after them; with a note where
    the printed tables do not add up to the printed sum."""
    before = fitting.H0
    for n in range(2):
        for part, after, write, total in (
            ("attn_out", "resid_mid", fitting.ATTN[n], fitting.MID[n]),
            ("mlp_out", "resid_post", fitting.MLP[n], fitting.POST[n]),
        ):
            missed = int(np.sum(np.abs(before + write - total) > 0.005))
            note = (
                f"In {missed} of 18 cells, the printed sum differs by 0.01 from the sum of its "
                "terms (rounding). Here the error is halved."
            )
            title = f"Layer {n}"
            yield Printed(f"{title}: {part}", write.tolist(), f"blocks.{n}.{part}")
            yield Printed(
                f"{title}: {after}",
                total.tolist(),
                f"blocks.{n}.{after}",
                note=note if missed else "",
            )
            before = total
