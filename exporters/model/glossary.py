"""The glossary: the terms of the sheets, each with its meaning and the places where it appears.

Used by the sheet Glossary and by the notes on headers that are terms.
"""

from typing import NamedTuple

from cellformer.engine.cells.language import worded
from cellformer.exporters.compose.book import Sheet


class Term(NamedTuple):
    """A term, its meaning, where it appears, and its spellings in headers.

    `where` names sheets and leaves of blocks: the link leads to the first that a workbook has.
    """

    name: str
    meaning: str
    where: tuple[str, ...]
    headers: tuple[str, ...] = ()


TERMS = (
    Term(
        "ablation",
        "Switching a part off, to see what the model predicts without it.",
        ("Switches",),
        ("mean ablation",),
    ),
    Term(
        "activation",
        "A number that is computed from the sentence, unlike a weight.",
        ("Embedding",),
    ),
    Term(
        "activation function",
        "The nonlinear function of each hidden cell: ReLU cuts off below 0, GELU does so softly.",
        ("post", "act"),
    ),
    Term(
        "attention",
        "The part of a layer in which a token reads from the tokens that it looks at.",
        ("Heads", "attn_out"),
        ("all heads",),
    ),
    Term(
        "attribution",
        "What each part adds to a word's logit; the shares sum to it exactly.",
        ("Attribution",),
        ("target", "target − rival", "written by"),
    ),
    Term(
        "baseline",
        "The results of the unedited workbook: constants, to compare with.",
        ("Play",),
        ("as built", "built with"),
    ),
    Term(
        "bias",
        "A number that is added to each output. It does not depend on the input.",
        ("b_in", "b", "b_U"),
    ),
    Term(
        "causal mask",
        "A token does not see the tokens after it: their scores are blank.",
        ("scores",),
    ),
    Term(
        "context",
        "The tokens that a model can see at once; n_ctx is how many at most.",
        ("tokens",),
        ("n_prompt", "words given"),
    ),
    Term(
        "cosine",
        "How alike two lists of numbers point: 1, the same way; 0, at right angles.",
        ("cosine", "Words", "Trajectory"),
    ),
    Term("d_head", "How many numbers a query, a key or a value has.", ("q",)),
    Term("d_model", "How many numbers each token's list has, all the way through.", ("embed",)),
    Term(
        "dot product", "Two lists multiplied number by number, and the products added.", ("scores",)
    ),
    Term(
        "embedding",
        "The list of numbers that stands for a token: its place among all others.",
        ("embed",),
    ),
    Term("entropy", "How uncertain the choice is: 0 when one word is certain.", ("Sampling",)),
    Term(
        "gradient",
        "How much a number would change with each other one that it is computed from.",
        ("Gradient", "Nudge"),
        ("promised", "promises"),
    ),
    Term(
        "greedy",
        "Choosing the most likely token every time; the opposite is sampling.",
        ("Play",),
        ("choose",),
    ),
    Term(
        "head",
        "A unit of attention with its own queries, keys and values; a layer has several.",
        ("Heads",),
    ),
    Term(
        "hidden cell", "One of an MLP's inner numbers: how strongly something was found.", ("post",)
    ),
    Term(
        "id", "The number of a token in the vocabulary, counted from 0.", ("tokens",), ("token id",)
    ),
    Term("key", "What a token offers, to be matched with queries.", ("k",), ("K",)),
    Term(
        "layer",
        "Attention and an MLP, one after the other; a model is a stack of layers. Also "
        "called a block.",
        ("resid_post", "Block"),
        ("block",),
    ),
    Term(
        "layer norm",
        "Brings each token's list to the same size: minus its mean, divided by its spread.",
        ("normalized",),
        ("ln1", "ln2", "ln_final"),
    ),
    Term("learning rate", "What gradients are multiplied by in a step of training.", ("Nudge",)),
    Term(
        "lens",
        "What the model would predict if it stopped after a part: the logit lens.",
        ("Lens",),
        ("after", "likeliest 1", "best guess by now"),
    ),
    Term(
        "logit",
        "A word's score before softmax; only differences between logits count.",
        ("logits",),
    ),
    Term(
        "loss",
        "How surprised a model is by the true next token: minus the log of its probability.",
        ("Nudge", "probs"),
        ("loss before",),
    ),
    Term(
        "min-p",
        "Only tokens with this share of the likeliest one’s probability may be chosen; 0: all.",
        ("min_p",),
    ),
    Term(
        "mixture of experts",
        "Several MLPs of which a router chooses some for each token.",
        ("router",),
        ("router",),
    ),
    Term(
        "MLP",
        "The part of a layer that works on each token alone: expand, nonlinear function, contract.",
        ("mlp_out",),
    ),
    Term(
        "pattern",
        "A head's shares: how much each token looks at each; a row sums to 100 %.",
        ("pattern",),
    ),
    Term(
        "position",
        "A token's place in the sentence, counted from 0; on Play, the place of the token that is "
        "looked at.",
        ("position", "pos_embed"),
    ),
    Term("principal component", "The direction in which a cloud of points is widest.", ("Words",)),
    Term(
        "probability",
        "How sure the model is of a word, from 0 to 100 %; over all words it sums to 100 %.",
        ("probs",),
    ),
    Term(
        "prompt",
        "The sentence that is typed, before the model continues it.",
        ("Play",),
        ("sentence", "the prompt is"),
    ),
    Term("query", "What a token is looking for: it is matched with every key.", ("q",), ("Q",)),
    Term(
        "repetition penalty",
        "Above 1: the logits of tokens so far are made smaller before one is chosen.",
        ("repetition_penalty",),
    ),
    Term(
        "residual stream",
        "The list of numbers that runs through the model for each token; every part adds to it.",
        ("resid_pre",),
        ("sum: the stream",),
    ),
    Term(
        "rotary position",
        "Queries and keys are rotated by their position, so that scores depend on distance (RoPE).",
        ("rot_q",),
    ),
    Term(
        "sampling",
        "Drawing the next token by its probability, with a random number.",
        ("Sampling",),
        ("random number", "drawn from"),
    ),
    Term(
        "scale",
        "What scores are multiplied by, so that long lists do not make them large.",
        ("scale",),
    ),
    Term("score", "How well a query matches a key: their dot product.", ("scores",)),
    Term("softmax", "Turns scores into shares: exponentials, divided by their sum.", ("probs",)),
    Term(
        "special token",
        "A token that is not a word: it begins, ends or separates texts (<BOS>, <EOS>, "
        "<SEP>), or fills a gap (<PAD>).",
        ("vocabulary", "Play"),
    ),
    Term(
        "temperature",
        "What logits are divided by before softmax: below 1 sharper, above 1 flatter.",
        ("temperature",),
    ),
    Term(
        "tied",
        "The embedding serves twice: to read tokens in, and to score words at the end.",
        ("W_E",),
    ),
    Term(
        "token", "A word, or a piece of one: what a model reads and writes.", ("tokens",), ("word",)
    ),
    Term("tokenizer", "The program that cuts a text into tokens.", ("Tokenizer", "Play")),
    Term("top-k", "Only the k most likely tokens may be chosen; 0: all.", ("top_k",)),
    Term(
        "top-p",
        "Only the most likely tokens that together reach this probability may be chosen.",
        ("top_p",),
    ),
    Term(
        "trajectory",
        "The path of a token's stream from part to part, on a plane.",
        ("Trajectory",),
    ),
    Term(
        "unembedding",
        "A list of numbers for each word, with which the stream is compared at the end.",
        ("W_U", "W_E"),
    ),
    Term("value", "What a token gives to those that look at it.", ("v",), ("V",)),
    Term("vector", "A list of numbers, seen as an arrow or as a point in a space.", ("embed",)),
    Term("vocabulary", "All tokens that a model knows.", ("W_E",)),
    Term(
        "weight",
        "A number that training, or a person, has set; it is the same for every sentence.",
        ("Weights", "W_Q", "W_E"),
    ),
)
HEADERS = {
    "label",
    "head",
    "block",
    "row label",
    "heading",
}  # styles of cells that notes are put on
FIRST_SCREEN = 30  # rows


def add_notes(sheet: Sheet) -> None:
    """Add a note to the first header on a sheet's first screen for each term."""
    waiting: dict[str, Term] = {
        worded(text): term for term in TERMS for text in (term.name, *term.headers)
    }
    entries = sheet.entries.items()
    headers = {at: e for at, e in entries if at[0] < FIRST_SCREEN and e.style in HEADERS}
    for (row, col), entry in sorted(headers.items()):
        if isinstance(entry.value, str):
            text = entry.value.rstrip(":").removesuffix("s")
            term = waiting.get(entry.value) or waiting.get(text)
            if term:
                sheet.notes[row, col] = worded(term.meaning)
                waiting = {name: other for name, other in waiting.items() if other is not term}
