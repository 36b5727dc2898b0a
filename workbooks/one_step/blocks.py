"""The blocks of one step: cat-sat's model over `the cat sat`, with a text for each.

Only the last of the three words predicts a next one, so the model has one query. Vectors of the
head and of the stream have D numbers.
"""

from typing import NamedTuple

from cellformer.workbooks.cat_sat.weights import HEAD
from cellformer.workbooks.cat_sat.weights import WORDS as VOCABULARY

D = 5
PROMPT = ("the", "cat", "sat")
LAST = len(PROMPT) - 1
FEATURES = tuple(map(str, range(1, D + 1)))


class Block(NamedTuple):
    """A table; its gradient, and its value after the step, stand to the right of it."""

    name: str
    rows: tuple[str, ...]  # labels
    forward: str  # what it is
    backward: str  # what its gradient is
    style: str = "activation"
    heads: tuple[str, str] = ("", "")  # of one column, and of its gradient; else D columns
    offset: int = 0  # columns to the right, beside the block before it

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self.rows), 1 if self.heads[0] else D


class Section(NamedTuple):
    """Blocks under a heading, with the rule of the backward pass in plain words."""

    heading: str
    rules: tuple[str, ...]
    blocks: tuple[Block, ...]


ONE = ("",)
WORDS = tuple(VOCABULARY)
SECTIONS = (
    Section(
        "1  Word vectors",
        (
            "Each word's vector gives a key and a value. The last word's vector is also used "
            "unchanged, and also gives a query. The gradients of all uses are added up.",
        ),
        (
            Block(
                "x",
                PROMPT,
                "x: the row of W_E for each word",
                "dx = dk·W_Kᵀ + dv·W_Vᵀ; sat: + dq·W_Qᵀ + dh",
                "weight",
            ),
        ),
    ),
    Section(
        "2  Query of ‘sat’: what ‘sat’ looks for",
        (
            "The rule of a product: a weight multiplies an input and gives an output. The "
            "gradient of the weight is the input times the gradient of the output.",
            "A weight that multiplied a large number gets a large gradient. A weight that "
            "multiplied 0 gets the gradient 0.",
        ),
        (
            Block("W_Q", FEATURES, "W_Q", "dW_Q = x of sat × dq", "weight"),
            Block("q", ("sat",), "q = x of sat · W_Q", "dq = sum over words of dscore × k / √5"),
        ),
    ),
    Section(
        "3  Keys: what the query can find in each word",
        (
            "All three words use the same weights. The gradient of a weight is the "
            "sum over the three words, down the column.",
        ),
        (
            Block("W_K", FEATURES, "W_K", "dW_K = sum over words of x × dk", "weight"),
            Block("k", PROMPT, "k = x·W_K", "dk = dscore × q / √5"),
        ),
    ),
    Section(
        "4  Values: what each word passes to sat",
        (
            "A word with a small share of the attention gets a small gradient for its value. "
            "That gradient is the share times dz.",
        ),
        (
            Block("W_V", FEATURES, "W_V", "dW_V = sum over words of x × dv", "weight"),
            Block("v", PROMPT, "v = x·W_V", "dv = share × dz"),
        ),
    ),
    Section(
        "5  Attention of sat: scores, and the shares that softmax computes",
        (
            "Softmax makes shares that sum to 1. If one share grows, the others fall. dscore is "
            "the share times the difference between dshare and the mean of all dshares.",
            "The mean of the dshares is weighted: each dshare is multiplied by its share. The "
            "three dscores add up to 0.",
        ),
        (
            Block(
                "score",
                PROMPT,
                "score = q·k / √5; e^(score - largest); share",
                "dscore = share × (dshare - mean)",
                "attention",
                ("score", "dscore"),
            ),
            Block("e_score", PROMPT, "", "", "attention", ("e^", ""), 1),
            Block("share", PROMPT, "", "", "attention", ("share", "dshare"), 2),
        ),
    ),
    Section(
        "6  Weighted sum of the values, added to the stream",
        (
            "A number can feed many outputs. Each output sends back its gradient, times the "
            "weight between number and output. The number's gradient is the sum of these "
            "products.",
            "In the sum h = x + out, the vectors ‘x’ and ‘out’ both receive the full gradient of "
            "h. Deep models have a residual stream for this reason: the gradient reaches layer 0 "
            "at full size.",
        ),
        (
            Block("z", ONE, "z = sum over words of share × v", "dz = dout·W_Oᵀ; so dshare = dz·v"),
            Block("W_O", FEATURES, "W_O", "dW_O = z × dout", "weight"),
            Block("out", ONE, "out = z·W_O", "dout = dh"),
            Block("h", ONE, "h = x of sat + out", "dh = sum over the vocabulary of dlogit × W_U"),
        ),
    ),
    Section(
        "7  Readout: a logit for each word of the vocabulary",
        (
            "Each word has a row of weights. The step moves the row of the real next word "
            "towards h, and all other rows away from h. The rows of more probable words move "
            "further.",
        ),
        (Block("W_U", WORDS, "W_U: a row for each word", "dW_U = dlogit × h", "weight"),),
    ),
    Section(
        "8  Softmax and loss: the gradients start here",
        (
            "Softmax and loss together have the simplest rule: dlogit is the share minus the "
            "correct share. The correct share is 1 for the real next word, and 0 for every other "
            "word.",
            "The sheet computes all other gradients from dlogit, upwards.",
        ),
        (
            Block(
                "logit",
                WORDS,
                "logit = h·W_U; e^(logit - largest); share",
                "dlogit = share - ‘should be’",
                "readout",
                ("logit", "dlogit"),
            ),
            Block("e_logit", WORDS, "", "", "readout", ("e^", ""), 1),
            Block("p", WORDS, "", "", "readout", ("share", "should be"), 2),
            Block(
                "loss",
                ONE,
                "loss = -ln(share of the next word)",
                "dloss = 1",
                "readout",
                ("loss", "dloss"),
            ),
        ),
    ),
)
WEIGHTS = {  # what learns, by its name in the model
    "x": "embed",
    "W_Q": f"{HEAD}.W_Q",
    "W_K": f"{HEAD}.W_K",
    "W_V": f"{HEAD}.W_V",
    "W_O": f"{HEAD}.W_O",
    "W_U": "W_U",
}
