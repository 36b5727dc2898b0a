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
        "You turn a part off, to see what the model predicts without this part.",
        ("Switches",),
        ("mean ablation",),
    ),
    Term(
        "activation",
        "A number that the model computes from the sentence. A weight is not an activation.",
        ("Embedding",),
    ),
    Term(
        "activation function",
        "The nonlinear function of each hidden cell. ReLU replaces numbers below 0 by 0. GELU is "
        "smoother.",
        ("post", "act"),
    ),
    Term(
        "attention",
        "The part of a layer in which a token reads information from other tokens.",
        ("Heads", "attn_out"),
        ("all heads",),
    ),
    Term(
        "attribution",
        "The contribution of each part to a word’s logit. The contributions sum exactly to the "
        "logit.",
        ("Attribution",),
        ("target", "target − rival", "written by"),
    ),
    Term(
        "baseline",
        "The results of the unedited workbook, stored as constants. Compare your own results "
        "with the baseline.",
        ("Play",),
        ("as built", "built with"),
    ),
    Term(
        "bias",
        "A number that a layer adds to each output. The bias does not depend on the input.",
        ("b_in", "b", "b_U"),
    ),
    Term(
        "causal mask",
        "A token cannot read later tokens. The scores of later tokens are blank.",
        ("scores",),
    ),
    Term(
        "context",
        "The tokens that a model can read together. n_ctx is the largest possible number.",
        ("tokens",),
        ("n_prompt", "words given"),
    ),
    Term(
        "cosine",
        "The similarity of two lists of numbers. 1: the same direction; 0: a right angle.",
        ("cosine", "Words", "Trajectory"),
    ),
    Term("d_head", "The number of entries in a query, a key or a value.", ("q",)),
    Term(
        "d_model",
        "The number of entries in the list of each token. This number is the same in every layer.",
        ("embed",),
    ),
    Term(
        "dot product",
        "A product of two lists: multiply the lists number by number, and add the products.",
        ("scores",),
    ),
    Term(
        "embedding",
        "The list of numbers that represents a token. Tokens with similar uses have similar "
        "embeddings.",
        ("embed",),
    ),
    Term(
        "entropy",
        "A measure of how uncertain a choice is. Entropy is 0 if the model is certain of one word.",
        ("Sampling",),
    ),
    Term(
        "gradient",
        "The gradient of a result says how much the result changes with each of its inputs.",
        ("Gradient", "Nudge"),
        ("promised", "promises"),
    ),
    Term(
        "greedy",
        "Greedy means that the model always chooses the most likely token. The opposite of "
        "greedy is sampling.",
        ("Play",),
        ("choose",),
    ),
    Term(
        "head",
        "A unit of attention with separate queries, keys and values. A layer has several heads.",
        ("Heads",),
    ),
    Term(
        "hidden cell",
        "A number inside an MLP. A high number means that the hidden cell has found something.",
        ("post",),
    ),
    Term(
        "id", "The number of a token in the vocabulary, counted from 0.", ("tokens",), ("token id",)
    ),
    Term(
        "key",
        "The vector that says what a token offers. The model compares each key with queries.",
        ("k",),
        ("K",),
    ),
    Term(
        "layer",
        "Attention and an MLP, one after the other. A model is a stack of layers. A layer is "
        "also called a block.",
        ("resid_post", "Block"),
        ("block",),
    ),
    Term(
        "layer norm",
        "A step that gives each token’s list the same size: subtract the mean, and divide by the "
        "spread.",
        ("normalized",),
        ("ln1", "ln2", "ln_final"),
    ),
    Term(
        "learning rate",
        "In a training step, the gradients are multiplied by this number.",
        ("Nudge",),
    ),
    Term(
        "lens",
        "The logit lens shows what the model predicts if it stops after one of its parts.",
        ("Lens",),
        ("after", "likeliest 1", "best guess so far"),
    ),
    Term(
        "logit",
        "The score of a word before softmax. Only the differences between logits matter.",
        ("logits",),
    ),
    Term(
        "loss",
        "A measure of how much the true next token surprises the model: minus the logarithm of "
        "the token’s probability.",
        ("Nudge", "probs"),
        ("loss before",),
    ),
    Term(
        "min-p",
        "The lowest allowed probability, as a share of the probability of the most likely token. "
        "0 allows all tokens.",
        ("min_p",),
    ),
    Term(
        "mixture of experts",
        "Several MLPs. For each token, a router chooses some of these MLPs.",
        ("router",),
        ("router",),
    ),
    Term(
        "MLP",
        "An MLP works on each token separately. It widens the list, applies a nonlinear "
        "function, and narrows the list.",
        ("mlp_out",),
    ),
    Term(
        "pattern",
        "The attention weights of a head. Each row shows what one token reads, and sums to 100 %.",
        ("pattern",),
    ),
    Term(
        "position",
        "The place of a token in the sentence, counted from 0. On Play, you choose "
        "which token the sheets show.",
        ("position", "pos_embed"),
    ),
    Term("principal component", "The direction in which a cloud of points is widest.", ("Words",)),
    Term(
        "probability",
        "How sure the model is of a word, from 0 to 100 %. The probabilities of all words sum to "
        "100 %.",
        ("probs",),
    ),
    Term(
        "prompt",
        "The sentence that you type, before the model continues the sentence.",
        ("Play",),
        ("sentence", "the prompt is"),
    ),
    Term(
        "query",
        (
            "The vector that says what a token looks for. The model compares the "
            "query with every key."
        ),
        ("q",),
        ("Q",),
    ),
    Term(
        "repetition penalty",
        "A setting. A number above 1 lowers the logits of earlier tokens before the model "
        "chooses the next token.",
        ("repetition_penalty",),
    ),
    Term(
        "residual stream",
        "The list of numbers that runs through the model for each token. Every part adds to this "
        "list.",
        ("resid_pre",),
        ("sum: the stream",),
    ),
    Term(
        "rotary position",
        "RoPE rotates queries and keys by their positions. Scores then depend on the distance of "
        "tokens.",
        ("rot_q",),
    ),
    Term(
        "sampling",
        "A random number chooses the next token. More likely tokens are chosen more often.",
        ("Sampling",),
        ("random number", "drawn from"),
    ),
    Term(
        "scale",
        "This number, usually 1 / √d_head, multiplies the scores. It keeps the "
        "scores of long vectors small.",
        ("scale",),
    ),
    Term(
        "score",
        "The dot product of a query and a key. A high score means a good match.",
        ("scores",),
    ),
    Term(
        "share",
        "The attention weight that a token gives to another token. The shares of a token sum to "
        "100 %.",
        ("Attention", "Heads", "pattern"),
    ),
    Term(
        "softmax",
        "Softmax turns scores into shares. Softmax divides each exponential by the sum of all "
        "exponentials.",
        ("probs",),
    ),
    Term(
        "special token",
        "A token that is not a word. It starts, ends or separates texts (<BOS>, <EOS>, <SEP>), "
        "or fills gaps (<PAD>).",
        ("vocabulary", "Play"),
    ),
    Term(
        "temperature",
        "The logits are divided by this number before softmax. Below 1: more certain. Above 1: "
        "less certain.",
        ("temperature",),
    ),
    Term(
        "tied",
        "The model uses the embedding twice: to read tokens, and to score words at the end.",
        ("W_E",),
    ),
    Term(
        "token",
        "A word or a piece of a word. A model reads and writes tokens.",
        ("tokens",),
        ("word",),
    ),
    Term("tokenizer", "The program that cuts a text into tokens.", ("Tokenizer", "Play")),
    Term(
        "top-k",
        "The model may choose only among the k most likely tokens. 0 allows all tokens.",
        ("top_k",),
    ),
    Term(
        "top-p",
        "The model may choose only among the most likely tokens that together reach this "
        "probability.",
        ("top_p",),
    ),
    Term(
        "trajectory",
        "The path of a token's stream from part to part, on a plane.",
        ("Trajectory",),
    ),
    Term(
        "unembedding",
        "A list of numbers for each word. At the end, the model compares the stream with each "
        "list.",
        ("W_U", "W_E"),
    ),
    Term(
        "value", "The vector that a token gives to the tokens that read this token.", ("v",), ("V",)
    ),
    Term(
        "vector",
        "A list of numbers. You can imagine a vector as an arrow or as a point in a space.",
        ("embed",),
    ),
    Term("vocabulary", "All tokens that a model knows.", ("W_E",)),
    Term(
        "weight",
        "A number that training, or a person, has set. A weight is the same for every sentence.",
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
