"""zero-layer: embed and unembed, nothing between; a table of the words that follow each word.

W_E gives every word a vector of its own, W_U holds the logarithms of a bigram table, and softmax
restores the table. Look at the difference, and at the loss: a model that sees one word alone can do
no better. Try another corpus, or give two words the same vector.
"""

import numpy as np

from cellformer.engine.cells.access import Span
from cellformer.engine.cells.expression import Area, Expression, expression
from cellformer.engine.cells.functions import COUNTIF, EXP, IF, LN, MAX, SUM, SUMPRODUCT
from cellformer.engine.cells.rounding import NEAR
from cellformer.exporters.assemble.worksheets import Workbook, near
from cellformer.exporters.compose.book import Book, Chart, Series
from cellformer.exporters.compose.composer import Composer, Formula, Texts
from cellformer.exporters.compose.dressing import Dressing
from cellformer.exporters.compose.story import Story, Suggestion

TOPIC, AFTER, LEVEL = "The next word", "", 1
TITLE = "zero-layer: a transformer without layers is a bigram table"
WORDS = ("the", "cat", "dog", "sat", "ran", ".")
LINES = (
    "the cat sat .",
    "the dog ran .",
    "the cat sat .",
    "the dog sat .",
    "the cat ran .",
    "the cat sat .",
)
V = len(WORDS)  # of the vocabulary; d_model too: room for a direction per word
LN_0 = -800  # in place of the logarithm of 0: e to it is 0 in any spreadsheet
SMALLEST = expression(10) ** -300  # counts as this: a probability of 0, in the loss


def labelled(
    ws: Composer,
    name: str,
    shape: Span,
    formula: Formula,
    beside: Area | None = None,
    style: str = "activation",
    dress: Dressing | None = None,
) -> Area:
    """A table whose axes of V entries have labels from the vocabulary, and follow it."""
    rows, cols = (words(ws) if n == V else [""] for n in shape)
    return ws.computed(name, shape, formula, rows, cols, name, style, beside, dress=dress)


def words(ws: Composer) -> Texts:
    """The vocabulary, a cell for each word."""
    return ws["vocabulary"].cells


def book() -> Book:
    """The workbook."""
    w = Workbook("zero-layer")
    bigrams = w.sheet("Bigrams", "how often each word follows another")
    read_corpus(bigrams)
    count_pairs(bigrams)
    ws = w.sheet("Model", "embedding, unembedding and softmax give the bigram table again")
    model(ws)
    losses(ws)
    next_word(w.sheet("Next word", "the probabilities after a word that you type"))
    checks(w)
    return w.done(story(w))


def read_corpus(ws: Composer) -> None:
    """Add the corpus and its pairs, the vocabulary, and the smoothing added to each count."""
    ws.heading(
        "A corpus, read line by line, and its pairs",
        "Type other words of the vocabulary. Each pair stands at the place of its first word.",
    )
    corpus = ws.typed("corpus", [line.split() for line in LINES], title="corpus")
    n_lines, length = corpus.shape

    def pair(i: int, j: int) -> Expression:
        following = i * length + j + 1
        ends = following == n_lines * length
        return corpus[i, j] & " " & ("/" if ends else corpus[divmod(following, length)])

    pairs = ws.computed("pairs", corpus.shape, pair, title="pairs", beside=corpus)
    listed = [[word] for word in WORDS]
    vocabulary = ws.typed("vocabulary", listed, title="vocabulary", beside=pairs)
    ws.typed("added", 0.0, title="added to counts", beside=vocabulary)


def count_pairs(ws: Composer) -> None:
    """Add how often each word follows each, and the shares: each [V, V]."""
    pairs, added, vocabulary = ws["pairs"].fixed, ws["added"].fixed, ws["vocabulary"]
    ws.heading(
        "How often each column's word follows each row's word, and the shares",
        "counts[a, b] = pairs ‘a b’;   bigrams[a, b] = (counts[a, b] + added) / sum of row a"
        "     both [d_vocab, d_vocab]",
        style="equation",
    )

    counts = labelled(
        ws,
        "counts",
        (V, V),
        lambda i, j: COUNTIF(pairs, vocabulary[i] & " " & vocabulary[j]),
        style="activation count",
    )
    sums = labelled(ws, "sums", (V, 1), lambda i, _: SUM(counts[i, :]) + V * added, beside=counts)
    labelled(
        ws,
        "bigrams",
        (V, V),
        lambda i, j: IF(sums[i] > 0, (counts[i, j] + added) / sums[i], expression(1) / V),
        beside=sums,
        dress="scale",
    )


def model(ws: Composer) -> None:
    """Add the model for every word at once."""
    shares = ws["bigrams"]
    ws.heading(
        "Weights: a column for every input word (W_E) and every output word (W_U)",
        "W_E: the identity matrix, with one direction of the stream per word     [d_model, "
        "d_vocab]",
        f"W_U = ln bigrams, or {LN_0} for a share of 0, because e^({LN_0}) is 0     [d_model, "
        "d_vocab]",
        style="equation",
    )
    W_E = ws.typed("W_E", np.eye(V), words(ws), words(ws), "W_E", "weight")

    W_U = labelled(
        ws, "W_U", (V, V), lambda i, j: IF(shares[i, j] > 0, LN(shares[i, j]), LN_0), beside=W_E
    )
    ws.heading(
        "Logits, softmax, and the difference from the bigram table",
        "logits[a, b] = W_E[:, a] · W_U[:, b];   exps[a, b] = e^(logits[a, b] - largest of row a)",
        "probs = exps / sum of the row;   difference = probs - bigrams     all [d_vocab, d_vocab]",
        style="equation",
    )

    logits = labelled(ws, "logits", (V, V), lambda i, j: SUMPRODUCT(W_E[:, i], W_U[:, j]))
    exps = labelled(
        ws, "exps", (V, V), lambda i, j: EXP(logits[i, j] - MAX(logits[i, :])), beside=logits
    )
    probs = labelled(ws, "probs", (V, V), lambda i, j: exps[i, j] / SUM(exps[i, :]), dress="scale")
    labelled(ws, "difference", (V, V), lambda i, j: probs[i, j] - shares[i, j], beside=probs)


def losses(ws: Composer) -> None:
    """Add the model's loss on the corpus, and the lowest loss possible from one word."""
    counts, probs = ws["counts"], ws["probs"]
    ws.heading(
        "Loss: the mean of -ln p over the pairs of the corpus, in nats",
        "-counts · ln p, for p = probs and for p = shares of the counts",
        style="equation",
    )

    def surprise(i: int, j: int, p: Expression) -> Expression:
        """-ln p of a pair, times how often it occurs."""
        return IF(counts[i, j] > 0, -counts[i, j] * LN(MAX(p, SMALLEST)), 0)

    ours = labelled(ws, "surprise", (V, V), lambda i, j: surprise(i, j, probs[i, j]))
    plain = labelled(
        ws,
        "least_surprise",
        (V, V),
        lambda i, j: surprise(i, j, counts[i, j] / SUM(counts[i, :])),
        beside=ours,
    )

    ws.computed(
        "loss",
        (1, 2),
        lambda _, j: SUM((ours, plain)[j].fixed) / MAX(1, SUM(counts.fixed)),
        cols=["loss", "least"],
    )


def next_word(ws: Composer) -> None:
    """The probabilities after a typed word, with a chart."""
    vocabulary, probs = ws["vocabulary"], ws["probs"]
    ws.heading(
        "A word, and the next word: a one-hot vector picks the word's row of the table",
        "p[b] = one_hot · probs[:, b]     [1, d_vocab]",
        style="equation",
    )
    word = ws.typed("word", [[WORDS[0]]], ["type a word"])

    one_hot = labelled(ws, "one_hot", (V, 1), lambda i, _: IF(vocabulary[i] == word.fixed, 1, 0))
    p = labelled(ws, "p", (1, V), lambda _, j: SUMPRODUCT(one_hot.fixed, probs[:, j]))
    values = ws.rect(p)
    series = Series("p", ws.sheet[values.top - 1, values.left : values.right], p)
    ws.chart(Chart(6, 9, "column", "The next word", [series], (520, 300), shares=True))


def checks(w: Workbook) -> None:
    """Claims that hold while W_E is the identity, and claims that always hold."""
    W_E, loss = w["W_E"], w["loss"]
    trace = sum((W_E[k, k] for k in range(1, V)), W_E[0, 0])
    squared_distance = SUMPRODUCT(W_E.fixed, W_E.fixed) - 2 * trace + V  # from the identity
    w.checks(
        [
            (
                "if W_E is the identity, softmax gives the bigram table",
                IF(squared_distance == 0, near(w["difference"].fixed, 0), True),
            ),
            (
                "the loss is not below the minimum for a model that sees one word",
                loss[0, 0] - loss[0, 1] > -NEAR,
            ),
        ]
    )


def story(w: Workbook) -> Story:
    """The start sheet's texts, and suggested edits with their computed effects."""
    return Story(
        title=TITLE,
        source="Based on A Gentle Introduction to Transformers (2025), the zero-layer transformer.",
        about=[
            "This is the smallest language model. It sees one word and predicts how likely each "
            "word is to come next.",
            "Table W_E turns the word into a list of numbers, its vector. Table W_U turns the "
            "vector into a score for every word.",
            "Softmax takes e to the power of each score and divides by the sum of these powers. "
            "The results are shares that add up to 1.",
            "The model has no other part. So the model can only know how often each word follows "
            "each other word. A table of these counts is a bigram table.",
            "A bigram is a pair of neighbouring words. Here W_U is computed from bigram counts, "
            "and softmax gives back exactly the shares of these counts.",
            "Why it matters: every larger model starts from this table. The layers add "
            "information that one word alone does not have.",
        ],
        errata=[
            "The source also adds a vector for each word's position. This workbook leaves this "
            "vector out: without the earlier words, a position says little.",
            "The source has two misprints. It prints 5025 instead of 50,257 as the "
            "number of words of GPT-2 small. It prints -24 as a word's number, "
            "although the word's 1 stands at place 324.",
        ],
        look=[
            "The sheet Bigrams shows a corpus, its pairs of words, and how often each pair occurs.",
            "The sheet Model shows embedding, unembedding and softmax for every word at once. "
            "The last table, the difference from the bigram table, is 0.",
            "On the sheet Next word, type a word. If you always take the likeliest next word, "
            "the text repeats: ‘the cat sat . the cat sat .’",
        ],
        suggestions=suggestions(w),
    )


def suggestions(w: Workbook) -> list[Suggestion]:
    """Three edits: another word in the corpus, smoothed counts, one vector for two words."""
    the, cat, dog, _, ran, _ = range(V)
    corpus, added, W_E, probs, loss = w["corpus"], w["added"], w["W_E"], w["probs"], w["loss"]
    return [
        w.suggestion(
            "Type ‘ran’: the share of ‘ran’ after ‘cat’ becomes {then:.0%}, not {now:.0%}.",
            {corpus[0, 2]: "ran"},
            probs[cat, ran],
        ),
        w.suggestion(
            "Type ‘1’ to add 1 to every count: ‘the the’ rises from {probs.now:.1%} to "
            "{probs.then:.1%}. The loss rises from {now:.3f} to {then:.3f}.",
            {added[0]: 1.0},
            loss[0],
            probs=probs[the, the],
        ),
        w.suggestion(
            "Type ‘1’ here, and ‘0’ in the cell below: ‘dog’ now has the vector of ‘cat’. ‘ran’ "
            "after ‘dog’ falls from {now:.0%} to {then:.0%}. The loss rises to {loss.then:.3f}.",
            {W_E[cat, dog]: 1.0, W_E[dog, dog]: 0.0},
            probs[dog, ran],
            loss=loss[0],
        ),
    ]
