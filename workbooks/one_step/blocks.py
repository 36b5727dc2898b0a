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
            "A word's vector is used as key and as value; the last word's vector also as "
            "query, and unchanged. The gradients of all uses are added up.",
        ),
        (
            Block(
                "x",
                PROMPT,
                "x: the words' rows of W_E",
                "dx = dk·W_Kᵀ + dv·W_Vᵀ; sat: + dq·W_Qᵀ + dh",
                "weight",
            ),
        ),
    ),
    Section(
        "2  Query of sat: what it looks for",
        (
            "The rule of a product: a weight takes a number in and passes it on. Its gradient is the number that it took in, times the gradient of what it passed it on to.",
            "So a weight that met a large number answers for more, and one that met a 0 for nothing.",
        ),
        (
            Block("W_Q", FEATURES, "W_Q", "dW_Q = x of sat × dq", "weight"),
            Block("q", ("sat",), "q = x of sat · W_Q", "dq = sum over words of dscore × k / √5"),
        ),
    ),
    Section(
        "3  Keys: what each word can be found by",
        (
            "The same weights serve all three words, so each of them collects what comes back from every word: a sum down the column.",
        ),
        (
            Block("W_K", FEATURES, "W_K", "dW_K = sum over words of x × dk", "weight"),
            Block("k", PROMPT, "k = x·W_K", "dk = dscore × q / √5"),
        ),
    ),
    Section(
        "4  Values: what each word gives",
        (
            "A word that is looked at little answers for little: its value's gradient is its share of the attention, times what is wanted of the blend.",
        ),
        (
            Block("W_V", FEATURES, "W_V", "dW_V = sum over words of x × dv", "weight"),
            Block("v", PROMPT, "v = x·W_V", "dv = share × dz"),
        ),
    ),
    Section(
        "5  Attention of sat: scores, and the shares that softmax makes of them",
        (
            "The rule of softmax: shares sum to 1, so one grows at the cost of the others. A score's gradient is its share, times how far its dshare is above the mean of all",
            "(in which each counts by its share). The three sum to 0.",
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
        "6  Blend of the values, and back into the stream",
        (
            "A number that went into many gets from each of them that one's gradient, times the weight between them: the same product, read the other way.",
            "A sum has the simplest rule: h = x + out hands its gradient on to both, whole. That is why deep models have a residual stream: what the loss asks for reaches layer 0 undiminished.",
        ),
        (
            Block("z", ONE, "z = sum over words of share × v", "dz = dout·W_Oᵀ; so dshare = dz·v"),
            Block("W_O", FEATURES, "W_O", "dW_O = z × dout", "weight"),
            Block("out", ONE, "out = z·W_O", "dout = dh"),
            Block("h", ONE, "h = x of sat + out", "dh = sum over the vocabulary of dlogit × W_U"),
        ),
    ),
    Section(
        "7  Readout: how well each word of the vocabulary fits",
        (
            "Each word has a row of weights. The row of the word that came is drawn towards h; all others are pushed away from it, and the likelier a word was held to be, the harder.",
        ),
        (Block("W_U", WORDS, "W_U: a row for each word", "dW_U = dlogit × h", "weight"),),
    ),
    Section(
        "8  Softmax and loss: here the way back begins",
        (
            "Both together have the shortest rule of all: the share that it gave, less the share that it should have given (1 for the word that came, 0 for all others).",
            "From here every other gradient follows, upwards.",
        ),
        (
            Block(
                "logit",
                WORDS,
                "logit = h·W_U; e^(logit - largest); share",
                "dlogit = share - should be",
                "readout",
                ("logit", "dlogit"),
            ),
            Block("e_logit", WORDS, "", "", "readout", ("e^", ""), 1),
            Block("p", WORDS, "", "", "readout", ("share", "should be"), 2),
            Block(
                "loss",
                ONE,
                "loss = -ln(share of the word that came)",
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
