"""zero-layer: embed and unembed, nothing between; it is a table of which word follows which.

W_E gives every word a vector of its own, W_U holds the logarithms of a bigram table, and softmax
brings the table back. Look at the difference, and at the loss: seeing one word alone, none goes
lower. Suggestion another corpus, or give two words the same vector.
"""

from functools import partial

import numpy as np

from exporters.book import Book, Chart, Series
from exporters.by_hand import Formula, Table, Workbook, Worksheet, near
from exporters.story import Story, Suggestion

TOPIC = "A whole model"
TITLE = "zero-layer: a transformer without layers is a bigram table"
WORDS = ("the", "cat", "dog", "sat", "ran", ".")
LINES = "the cat sat .|the dog ran .|the cat sat .|the dog sat .|the cat ran .|the cat sat ."
CORPUS = np.array([line.split() for line in LINES.split("|")])
V = len(WORDS)  # of the vocabulary; d_model too: room for a direction per word
LN_0 = -800.0  # in place of the logarithm of 0: e to it is 0 in any spreadsheet


def count(corpus: np.ndarray) -> np.ndarray:
    """How often each word is followed by each, in a text read line by line: [V, V]."""
    pairs = list(zip(corpus.flat, corpus.flat[1:], strict=False))
    return np.array([[pairs.count((a, b)) for b in WORDS] for a in WORDS])


def bigrams(counts: np.ndarray, added: float = 0.0) -> np.ndarray:
    """The share of each next word, with so much added to each count: [V, V], rows sum to 1."""
    return (counts + added) / (counts + added).sum(axis=1, keepdims=True)


def softmax(logits: np.ndarray) -> np.ndarray:
    """Shares that sum to 1 along each row: [V, V]."""
    e = np.exp(logits - logits.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def surprise(counts: np.ndarray, p: np.ndarray) -> np.ndarray:
    """-ln p of each pair, as often as it occurs: [V, V], for probabilities p after each word."""
    return -counts * np.log(np.where(counts > 0, p, 1))


COUNTS = count(CORPUS)
P = bigrams(COUNTS)
W_U = np.where(P > 0, np.log(np.where(P > 0, P, 1)), LN_0)
LOGITS = np.eye(V).T @ W_U


def book() -> Book:
    """The workbook."""
    w = Workbook("zero-layer")
    vocab, counts, table = count_pairs(w.sheet("Bigrams", "how often each word follows each"))
    ws = w.sheet("Model", "embed, unembed, softmax, for every word: the bigram table again")
    W_E, probs, gap = model(ws, vocab, table)
    loss = losses(ws, vocab, counts, probs)
    next_word(w.sheet("Next word", "the probabilities after a word that you type"), vocab, probs)
    trace = "+".join(W_E.at(k, k) for k in range(V))
    is_identity = f"SUMPRODUCT({W_E.all()},{W_E.all()})-2*({trace})+{V}=0"  # |W_E - 1|² = 0
    w.checks([
        ("while W_E is the identity, softmax gives the bigram table",
         f"IF({is_identity},{near(gap.all(), 0)},TRUE)"),
        ("the loss is not below the least that seeing one word allows",
         f"{loss.at(0, 0)}-{loss.at(0, 1)}>-0.000000001"),
    ])  # fmt: skip
    return w.done(story())


def grid(
    ws: Worksheet, vocab: Table, name: str, values: np.ndarray, formula: Formula | None,
    beside: Table | None = None, style: str = "",
) -> Table:  # fmt: skip
    """A table with a row for every word, a column, or both; their labels follow the vocabulary."""
    rows, cols = (WORDS if n == V else ("",) for n in values.shape)
    found = ws.table(name, values, formula, rows, cols, name, style, beside)
    for k, word in enumerate(WORDS):
        if cols is WORDS:
            ws.calc(found.rect.top - 1, found.rect.left + k, vocab.at(k), word, "label")
        if rows is WORDS:
            ws.calc(found.rect.top + k, found.rect.left - 1, vocab.at(k), word, "row label")
    return found


def count_pairs(ws: Worksheet) -> tuple[Table, Table, Table]:
    """The corpus and its pairs; gives the vocabulary, the counts and the bigram table."""
    ws.heading("A corpus, read line by line, and its pairs")
    ws.text("Type other words of the vocabulary. A pair stands where its first word does.")
    corpus = ws.table("corpus", CORPUS, title="corpus")
    texts = [f"{a} {b}" for a, b in zip(CORPUS.flat, [*CORPUS.flat[1:], "/"], strict=True)]
    cells = [*(corpus.at(*at) for at in np.ndindex(*CORPUS.shape)), '"/"']  # "/" ends the text
    pairs = ws.table("pairs", np.reshape(texts, CORPUS.shape), lambda i, j: (
        f'{corpus.at(i, j)}&" "&{cells[CORPUS.shape[1] * i + j + 1]}'),
        title="pairs", beside=corpus)  # fmt: skip
    vocab = ws.table("vocabulary", np.reshape(WORDS, (V, 1)), title="vocabulary", beside=pairs)
    added = ws.table("added", 0.0, title="added to counts", beside=vocab).at(fixed=True)

    ws.heading("How often each word (row) is followed by each (column), and the shares")
    ws.text("counts[a, b] = pairs `a b`;   bigrams[a, b] = (counts[a, b] + added) / sum of row a"
            "     both [d_vocab, d_vocab]", style="equation")  # fmt: skip
    counts = grid(ws, vocab, "counts", COUNTS, lambda i, j: (
        f'COUNTIF({pairs.all()},{vocab.at(i)}&" "&{vocab.at(j)})'), None, "activation count")  # fmt: skip
    sums = grid(ws, vocab, "sums", COUNTS.sum(axis=1)[:, None], lambda i, j: (
        f"SUM({counts.row(i)})+{V}*{added}"), counts)  # fmt: skip
    table = grid(ws, vocab, "bigrams", P, lambda i, j: (
        f"IF({sums.at(i)}>0,({counts.at(i, j)}+{added})/{sums.at(i)},1/{V})"), sums)  # fmt: skip
    ws.shade(table.rect, "scale")
    return vocab, counts, table


def model(ws: Worksheet, vocab: Table, table: Table) -> tuple[Table, Table, Table]:
    """The model for every word at once; gives W_E, the probabilities, their gap to the table."""
    square = partial(grid, ws, vocab)
    ws.heading("Weights: a column for every word, as it goes in (W_E) and as it comes out (W_U)")
    ws.text("W_E: the identity, a direction of the stream for every word     [d_model, d_vocab]",
            f"W_U = ln bigrams, and {LN_0:.0f} for a share of 0: e to it is 0     [d_model, d_vocab]",
            style="equation")  # fmt: skip
    into = square("W_E", np.eye(V), None, None, "weight")
    out = square("W_U", W_U, lambda i, j: (
        f"IF({table.at(i, j)}>0,LN({table.at(i, j)}),{LN_0:.0f})"), into)  # fmt: skip
    ws.heading("Logits, softmax, and the difference from the bigram table")
    ws.text("logits[a, b] = W_E[:, a] · W_U[:, b];   exps[a, b] = e^(logits[a, b] - largest of row a)",
            "probs = exps / sum of the row;   difference = probs - bigrams     all [d_vocab, d_vocab]",
            style="equation")  # fmt: skip
    logits = square("logits", LOGITS, lambda i, j: f"SUMPRODUCT({into.column(i)},{out.column(j)})")
    exps = square("exps", np.exp(LOGITS - LOGITS.max(axis=1, keepdims=True)), lambda i, j: (
        f"EXP({logits.at(i, j)}-MAX({logits.row(i)}))"), logits)  # fmt: skip
    probs = square("probs", softmax(LOGITS), lambda i, j: f"{exps.at(i, j)}/SUM({exps.row(i)})")
    gap = square("difference", 0 * P, lambda i, j: f"{probs.at(i, j)}-{table.at(i, j)}", probs)
    ws.shade(probs.rect, "scale")
    return into, probs, gap


def losses(ws: Worksheet, vocab: Table, counts: Table, probs: Table) -> Table:
    """The model's loss on the corpus, and the least that seeing one word allows: [1, 2]."""
    ws.heading("Loss: the mean of -ln p over the pairs of the corpus, in nats")
    ws.text("-counts · ln p: for p = probs, and for the plain shares of counts", style="equation")

    def term(i: int, j: int, p: str) -> str:
        return f"IF({counts.at(i, j)}>0,-{counts.at(i, j)}*LN(MAX({p},1E-300)),0)"

    terms = surprise(COUNTS, P)
    ours = grid(ws, vocab, "surprise", terms, lambda i, j: term(i, j, probs.at(i, j)))
    plain = grid(ws, vocab, "least_surprise", terms, lambda i, j: (
        term(i, j, f"({counts.at(i, j)}/SUM({counts.row(i)}))")), ours)  # fmt: skip
    return ws.table("loss", [[terms.sum() / COUNTS.sum()] * 2], lambda i, j: (
        f"SUM({(ours, plain)[j].all()})/MAX(1,SUM({counts.all()}))"), cols=["loss", "least"])  # fmt: skip


def next_word(ws: Worksheet, vocab: Table, probs: Table) -> None:
    """The probabilities after a typed word, with a chart."""
    ws.heading("A word, and the next: a one-hot vector picks its row of the table")
    ws.text("p[b] = one_hot · probs[:, b]     [1, d_vocab]", style="equation")
    word = ws.table("word", [[WORDS[0]]], None, ["type a word"])
    hot = grid(ws, vocab, "one_hot", np.eye(V)[:, [0]], lambda i, j: (
        f"IF({vocab.at(i)}={word.at(fixed=True)},1,0)"))  # fmt: skip
    p = grid(ws, vocab, "p", P[[0]], lambda i, j: f"SUMPRODUCT({hot.all()},{probs.column(j)})")
    series = Series("p", p.rect._replace(top=p.rect.top - 1, bottom=p.rect.top), p.rect)
    ws.chart(Chart(ws.cursor + 1, 1, "column", "The next word", [series]))


def story() -> Story:
    """What the start sheet says; what its edits do is computed here."""
    the, cat, dog, _, ran, _ = range(V)
    other, same = CORPUS.copy(), np.eye(V)
    other[0, 2], same[:, dog] = "ran", same[:, cat]
    edited, smooth, shared = bigrams(count(other)), bigrams(COUNTS, 1), softmax(same.T @ W_U)
    least, more, worse = (surprise(COUNTS, p).sum() / COUNTS.sum() for p in (P, smooth, shared))
    return Story(
        title=TITLE,
        source="After A Gentle Introduction to Transformers (2025), the zero-layer transformer.",
        about=[
            "Embed a word, unembed it, softmax: without attention a model sees one word, and can at best know how",
            "often each word follows it. W_U is computed from those counts here, so it does so exactly. W_pos is left",
            "out: its logits depend on the place alone. GPT-2 small has d_model 768 for 50,257 words (printed 5025 in the",
            "source's appendix), so W_E and W_U, of rank 768 at most, cannot hold every table. The source's one-hot example",
            "puts the 1 of the token with index -24 in position 324: one number is meant for both.",
        ],
        look=[
            "Bigrams: corpus, pairs, counts. Model: the same shares out of softmax; the difference is 0.",
            "Next word: type one. The likeliest each time make `the cat sat . the cat sat .`, round and round.",
        ],
        tries=[
            Suggestion(f"Type ran: softmax gives `ran` after `cat` {edited[cat, ran]:.2f} instead of {P[cat, ran]:.2f}.",
                ("corpus", 0, 2), "ran", ("probs", cat, ran), edited[cat, ran]),
            Suggestion(f"Type 1, added to every count: `the the` rises from {P[the, the]:.3f} to {smooth[the, the]:.3f}, the "
                f"loss from {least:.3f} to {more:.3f}.", ("added", 0, 0), 1.0, ("loss", 0, 0), more),
            Suggestion(f"Type 1, and 0 below: `dog` gets the vector of `cat`; `ran` after it falls from {P[dog, ran]:.2f} to "
                f"{shared[dog, ran]:.2f}, the loss rises to {worse:.3f}.",
                ("W_E", cat, dog), 1.0, ("probs", dog, ran), shared[dog, ran], ((("W_E", dog, dog), 0.0),)),
        ],
    )  # fmt: skip
