"""The sheet Average: two sentences of the same words, their averages, and attention.

An average is the same in any order, with or without added positions. The last token's vector after
attention is the same too without positions; with them it is not.
"""

from cellformer.engine.cells.expression import Area, Expression
from cellformer.engine.cells.functions import AVERAGE, EXP, INDEX, MATCH, MAX, SQRT, SUM, SUMPRODUCT
from cellformer.exporters.assemble.worksheets import Workbook
from cellformer.exporters.compose.composer import Composer

WORDS = ("dog", "bites", "man", ".")
VECTORS = (
    (1.0, 0.5, 0.0, -0.5),
    (0.0, -1.0, 1.0, 0.5),
    (0.5, 1.0, -0.5, 0.0),
    (0.0, 0.0, 0.5, 1.0),
)
PLACES = ((-1.0, -1.5, 0.0, 0.0), (0.0, -0.5, 0.5, 0.0), (0.5, 2.0, 0.0, 0.0), (0.5, 1.5, 0.0, 0.0))
SENTENCES = (("dog", "bites", "man", "."), ("man", "bites", "dog", "."))
N, D = len(WORDS), len(VECTORS[0])
DIMS = [f"dim {j}" for j in range(D)]


def add(w: Workbook) -> None:
    """Add the sheet, with suggested edits."""
    ws = w.sheet(
        "Average",
        "dog bites man, man bites dog: the same words, the same average",
        "A model could use the average of the word vectors for each sentence. Both sentences "
        "then get the same vector.",
        "An average ignores the order. Vectors for the places do not help: both sums contain the "
        "same places.",
        "Attention distinguishes the two sentences: the last token combines the words before it.",
        widths={0: 20, **dict.fromkeys(range(1, 24), 8)},
    )
    ws.typed("places_on", 1.0, ["use places (1: yes)"], style="switch")
    names = ws.typed("word_names", [[word] for word in WORDS], cols=["word"], style="token")
    table = ws.typed("word_vectors", VECTORS, (), DIMS, "E: words   [4, d]", "weight", beside=names)
    ws.typed("place_vectors", PLACES, range(N), DIMS, "P: places   [4, d]", "weight", table)
    for k in range(2):
        sentence(ws, k)
    ws.heading(
        "Distance between the two sentences",
        "distance = square root of the summed squares of the differences",
        style="equation",
    )
    ws.computed(
        "apart",
        (1, 2),
        lambda _, k: distance(*(ws[f"{('average', 'last')[k]}_{n}"] for n in range(2))),
        ["apart"],
        ["averages", "last tokens"],
        style="readout",
    )
    suggest(w, ws)


def sentence(ws: Composer, k: int) -> None:
    """Add one sentence: its words, their vectors, their average; attention of the last token."""
    ws.heading(
        f"Sentence {k + 1}",
        "x = E of the word + P of the place   [4, d];   scores = x · x of the last token / √d   [4]",
        "share = exp(score) / sum;   last = x of the last token + sum of share · x   [d]",
        style="equation",
    )
    words = ws.typed(f"words_{k}", [[word] for word in SENTENCES[k]], cols=["word"], style="token")
    names, table, places = ws["word_names"], ws["word_vectors"], ws["place_vectors"]
    x = ws.computed(
        f"x_{k}",
        (N, D),
        lambda i, j: INDEX(table[:, j], MATCH(words[i], names, 0)) + ws["places_on"] * places[i, j],
        cols=[f"x, {dim}" for dim in DIMS],
        beside=words,
    )

    scores = ws.computed(
        f"scores_{k}",
        (N, 1),
        lambda i, _: SUMPRODUCT(x[i, :], x[N - 1, :]) / SQRT(D),
        cols=["score"],
        beside=x,
    )
    shares = ws.computed(
        f"shares_{k}",
        (N, 1),
        lambda i, _: EXP(scores[i] - MAX(scores)) / total(scores),
        cols=["share"],
        style="attention",
        beside=scores,
        dress="scale",
    )
    ws.computed(f"average_{k}", (1, D), lambda _, j: AVERAGE(x[:, j]), ["average"], left=4)
    ws.computed(
        f"last_{k}",
        (1, D),
        lambda _, j: x[N - 1, j] + SUMPRODUCT(shares, x[:, j]),
        ["last token"],
        style="readout",
        left=4,
    )


def total(scores: Area) -> Expression:
    """The sum of the exponentials, minus the largest."""
    return SUM(*(EXP(score - MAX(scores)) for score in scores.cells))


def distance(a: Area, b: Area) -> Expression:
    """The distance between two vectors."""
    return SQRT(SUM(*((x - y) ** 2 for x, y in zip(a.cells, b.cells, strict=True))))


def suggest(w: Workbook, ws: Composer) -> None:
    """Three edits: no positions, a repeated word, the vector of a position."""
    averages, lasts = w["apart"][0, 0], w["apart"][0, 1]
    ws.suggest(
        w.suggestion(
            "Type ‘0’ to remove the places: both last tokens get the same vector. Their distance "
            "falls from {now:.3f} to {then:.3f}.",
            {w["places_on"][0]: 0.0},
            lasts,
        ),
        w.suggestion(
            "Type ‘man’: the sentences now have different words. The distance of their averages "
            "rises from {now:.0f} to {then:.3f}.",
            {w["words_0"][0]: "man"},
            averages,
        ),
        w.suggestion(
            "Type ‘-2’: the full stop now gives little attention to the word before it. The last "
            "tokens are {then:.3f} apart, not {now:.3f}. The averages are {averages.then:.0f} "
            "apart.",
            {w["place_vectors"][2, 1]: -2.0},
            lasts,
            averages=averages,
        ),
    )
