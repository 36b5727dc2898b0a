"""The whole model as a table: the probability of every word after each of the 127 beginnings.

The model has one layer, and its entries are few: 13 pairs of a word and a place. So queries, keys,
values and scores are computed once for each pair. Each beginning then has its own attention
weights, MLP and probabilities.
"""

from cellformer.engine.cells.block import Block
from cellformer.engine.cells.expression import Expression, expression
from cellformer.engine.cells.functions import EXP, MAX, SUM, added
from cellformer.engine.models import ops, parts
from cellformer.engine.models.forward import Forward
from cellformer.workbooks.reward.game import BEGINNINGS, CREDIT, DEBIT, END, LENGTH, WORDS

ALL = "all"  # the prefix of its blocks
PAIRS = [(END, 0), *((word, t) for t in range(1, LENGTH) for word in (DEBIT, CREDIT))]
NAMES = {  # the labels of its axes
    "pair": [f"{t} {WORDS[word]}" for word, t in PAIRS],
    "beginning": ["".join(WORDS[w] for w in begun) or "–" for begun in BEGINNINGS],
}
N = len(BEGINNINGS)
SEEN = [  # the numbers of the pairs that the last word of each beginning attends to
    [0, *(PAIRS.index((word, t)) for t, word in enumerate(begun, 1))] for begun in BEGINNINGS
]


def add(g: Forward) -> Block:
    """Add `all.probs`, [127, 3], with the weights that the graph has."""
    at, eps = g.at(ALL), g.spec.norm_eps
    words, places = zip(*PAIRS, strict=True)
    tokens = at.input("tokens", [[w] for w in words], ("pair", ""), "ids")  # [13, 1]
    positions = at.input("positions", [[t] for t in places], ("pair", ""), "ids")  # [13, 1]
    vectors = [
        at.block("embed", ops.embed, tokens, g["W_E"]),  # [13, d_model]
        at.block("pos_embed", ops.embed, positions, g["W_pos"]),  # [13, d_model]
    ]
    pre = at.block("resid_pre", ops.add, vectors)  # [13, d_model]
    read = parts.rms_norm(at.at("ln1"), pre, eps)  # [13, d_model]
    heads = [_head(g, read, head) for head in range(g.spec.n_heads)]  # each [127, d_head]
    last = at.input("last", [[seen[-1]] for seen in SEEN], ("beginning", ""), "ids")  # [127, 1]
    own = at.block("stream", ops.embed, last, pre)  # [127, d_model]
    written = [g[f"blocks.0.attn.h{head}.W_O"] for head in range(g.spec.n_heads)]
    out = at.block("attn_out", ops.sum_of_heads, heads, written)  # [127, d_model]
    mid = at.block("resid_mid", ops.add, [own, out])  # [127, d_model]
    read = parts.rms_norm(at.at("ln2"), mid, eps)  # [127, d_model]
    hidden = at.block("mlp.pre", ops.linear, read, g["blocks.0.mlp.W_in"])  # [127, d_mlp]
    hidden = at.block("mlp.post", ops.relu, hidden)  # [127, d_mlp]
    out = at.block("mlp_out", ops.linear, hidden, g["blocks.0.mlp.W_out"])  # [127, d_model]
    post = at.block("resid_post", ops.add, [mid, out])  # [127, d_model]
    logits = at.block("logits", ops.linear, post, g["W_U"])  # [127, 3]
    return parts.softmax(at.at("softmax"), logits, out=(at, "probs"))


def _head(g: Forward, read: Block, head: int) -> Block:
    """A head's output z: [127, d_head]."""
    at, path = g.at(f"{ALL}.h{head}"), f"blocks.0.attn.h{head}"
    q, k, v = (at.block(x, ops.linear, read, g[f"{path}.W_{x.upper()}"]) for x in "qkv")
    scores = at.block("scores", ops.scores, q, k, g["blocks.0.attn.scale"])  # [13, 13]

    def exp(b: int, t: int) -> Expression:
        if t >= len(SEEN[b]):
            return expression(0)
        row = [scores[SEEN[b][-1], pair].fixed for pair in SEEN[b]]
        return EXP(row[t] - MAX(*row))

    e = at.table("exp", (N, LENGTH), exp, ("beginning", "n_ctx"))  # [127, LENGTH]

    def mixed(b: int, j: int) -> Expression:
        products = [e[b, t] * v[pair, j].fixed for t, pair in enumerate(SEEN[b])]
        return added(products) / SUM(e[b, :])

    return at.table("z", (N, g.spec.d_head), mixed, ("beginning", "d_head"))
