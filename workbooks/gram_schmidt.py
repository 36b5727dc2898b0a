"""gram-schmidt: two axes made from word differences, and a map of four words on them.

Gram-Schmidt subtracts from the second difference its part along the first axis; two dot products
then place each word. Look at the subtraction, at the map and at the analogy. Choose other words for
a pair, or move a word's vector, and see which axes and which words follow.
"""

from cellformer.engine.cells.expression import Area, Expression
from cellformer.engine.cells.functions import IF, INDEX, MATCH, MAX, OR, SQRT, SUMPRODUCT
from cellformer.engine.cells.rounding import NEAR
from cellformer.exporters.assemble.worksheets import Comparison, Workbook, near
from cellformer.exporters.compose.book import Book, Chart, Series
from cellformer.exporters.compose.composer import Composer
from cellformer.exporters.compose.story import Story

TOPIC, AFTER, LEVEL = "Words and positions", "positions", 2
TITLE = "gram-schmidt: two axes from word differences, and an analogy drawn on them"
WORDS = ("king", "queen", "man", "woman")
VECTORS = ((2, 1, 0), (2, -1, 0), (1, 1, 1), (1, -1, 1))
DIMS, AXES = ("x1", "x2", "x3"), ("gender", "royalty")
ONE_ROW = (1, len(DIMS))


def book() -> Book:
    """The workbook."""
    w = Workbook("gram-schmidt")
    ws = w.sheet("Axes", "from words to two axes of length 1, at right angles to each other")
    of_words(ws)
    two_axes(ws)
    of_map(w.sheet("Map", "two dot products locate each word"))
    of_analogy(w.sheet("Analogy", "a is to b as which word is to c?"))
    compare(w)
    e1, e2 = w["axis_1"], w["axis_2"]
    w.checks([
        ("e1 has length 1, or is 0 if the two words are equal", one_or_nothing(e1)),
        ("e2 has length 1, or is 0 if nothing is left of the difference", one_or_nothing(e2)),
        ("e1 and e2 are at right angles: their dot product is 0", near(SUMPRODUCT(e1, e2), 0)),
    ])  # fmt: skip
    return w.done(story(w))


def of_words(ws: Composer) -> None:
    """The words, as labels of the rows of their vectors."""
    ws.heading("Words: each is a vector of three numbers  [words, 3]")
    top = ws.rect(ws.typed("vectors", VECTORS, cols=DIMS)).top
    ws.typed("words", [[word] for word in WORDS], style="row label", left=0, top=top)


def two_axes(ws: Composer) -> None:
    """Each step from two pairs of words to two axes."""
    ws.widths({5: 10, 8: 12})
    ws.heading(
        "First axis: a difference of two words, divided by its length",
        "v1 = a - b  [3]        e1 = v1 / |v1|  [3]",
        style="equation",
    )
    v1 = combination(ws, "v1", ("king", "queen"))
    e1 = unit(
        ws, "axis_1", "e1", v1, ws.computed("length_1", (1, 1), length(v1), ["|v1|"], beside=v1)
    )

    ws.heading(
        "Second axis: another difference, minus its part along the first axis",
        "v2 = a - b      rest = v2 - (v2·e1) e1      e2 = rest / |rest|",
        style="equation",
    )
    v2 = combination(ws, "v2", ("king", "man"))
    along = ws.computed("along", (1, 1), SUMPRODUCT(v2, e1), ["v2·e1"], beside=v2)
    part = ws.computed(
        "part_on_1", ONE_ROW, lambda _, j: along * e1[j], ["(v2·e1) e1"], DIMS, beside=along
    )
    rest = ws.computed("rest", ONE_ROW, lambda _, j: v2[j] - part[j], ["rest"], DIMS)
    unit(
        ws,
        "axis_2",
        "e2",
        rest,
        ws.computed("length_2", (1, 1), length(rest), ["|rest|"], beside=rest),
    )


def unit(ws: Composer, name: str, label: str, v: Area, n: Area) -> Area:
    """A vector divided by its length, which stands to its left: [1, 3]."""
    return ws.computed(
        name, ONE_ROW, lambda _, j: quotient(v[j], n), [label], DIMS, style="attention", beside=n
    )


def of_map(ws: Composer) -> None:
    """Each word's coordinates on the axes, and a chart of them: [words, 2]."""
    ws.heading("Each word on the axes", "coordinate = word · axis  [words, 2]", style="equation")
    vectors, ends = ws["vectors"], (ws["axis_1"], ws["axis_2"])
    coordinates = ws.computed(
        "coordinates", (len(WORDS), 2), lambda i, j: SUMPRODUCT(vectors[i, :], ends[j]), WORDS, AXES
    )
    points = Series("words", coordinates[:, 0], coordinates[:, 1], WORDS)
    ws.chart(
        Chart(
            5, 4, "scatter", "The words on the two axes", [points], (520, 340), AXES, number="0.0"
        )
    )


def of_analogy(ws: Composer) -> None:
    """Add the target of the analogy, and each word's cosine with it."""
    ws.heading(
        "The target, and each word's cosine with the target (words of the question may win, too)",
        "target = a - b + c    cosine = word · target / (|word| |target|)",
        style="equation",
    )
    target = combination(ws, "target", ("king", "man", "woman"))
    vectors, column = ws["vectors"], (len(WORDS), 1)
    n = ws.computed("n_target", (1, 1), length(target), ["|target|"], beside=target)
    dots = ws.computed(
        "dots", column, lambda i, _: SUMPRODUCT(vectors[i, :], target), WORDS, ["dot"]
    )
    sizes = ws.computed(
        "sizes", column, lambda i, _: length(vectors[i, :]), cols=["|word|"], beside=dots
    )
    cosines = ws.computed(
        "cosines",
        column,
        lambda i, _: quotient(dots[i], sizes[i] * n),
        cols=["cosine"],
        style="readout",
        beside=sizes,
    )
    ws.computed(
        "nearest",
        (1, 1),
        INDEX(ws["words"].fixed, MATCH(MAX(cosines.fixed), cosines.fixed, 0), 1),
        ["nearest"],
        style="readout",
    )


def combination(ws: Composer, name: str, words: tuple[str, ...]) -> Area:
    """Cells in which to choose two or three words, and a - b (+ c) of their vectors: [1, 3]."""
    names, vectors = ws["words"].fixed, ws["vectors"].fixed
    asked = ws.typed(f"{name}_words", [words], ["words"], ("a", "b", "c")[: len(words)])
    chosen = [asked[0, k] for k in range(len(words))]
    for cell in chosen:
        place = ws.rect(cell)
        ws.sheet.lists[place.top, place.left] = names

    def entry(_: int, j: int) -> Expression:
        a, b, *others = (INDEX(vectors, MATCH(cell.fixed, names, 0), j + 1) for cell in chosen)
        return a - b + others[0] if others else a - b

    return ws.computed(f"{name}_vector", ONE_ROW, entry, [name], DIMS)


def length(v: Area) -> Expression:
    """The length of a vector."""
    return SQRT(SUMPRODUCT(v, v))


def quotient(part: Expression, whole: Expression) -> Expression:
    """A quotient, 0 if the divisor is 0."""
    return IF(whole < NEAR, 0, part / whole)


def one_or_nothing(v: Area) -> Expression:
    """Whether a vector has length 1 or 0."""
    return OR(near(SUMPRODUCT(v, v)), near(SUMPRODUCT(v, v), 0))


def compare(w: Workbook) -> None:
    """Every number that the essay prints."""
    printed: list[tuple[str, str, list[list[float]]]] = [
        ("v1 = king - queen", "v1_vector", [[0, 2, 0]]),
        ("e1 = v1 / |v1|", "axis_1", [[0, 1, 0]]),
        ("v2 = king - man", "v2_vector", [[1, 0, -1]]),
        ("v2·e1", "along", [[0]]),
        ("e2 = v2 / |v2|", "axis_2", [[0.71, 0, -0.71]]),
        ("king - man + woman", "target_vector", [[2, -1, 0]]),
        (
            "coordinates of each word on e1 and e2",
            "coordinates",
            [[1, 1.41], [-1, 1.41], [1, 0], [-1, 0]],
        ),
    ]
    w.compare([
        Comparison(f"{what}, {i + 1}.{j + 1}", value, w[name][i, j])
        for what, name, lines in printed
        for i, line in enumerate(lines)
        for j, value in enumerate(line)
    ], "Embeddings and the Maps, appendix A")  # fmt: skip


def story(w: Workbook) -> Story:
    """The start sheet's texts, and suggested edits with their computed effects."""
    man, queen = w["coordinates"][2, 0], w["vectors"][1, :]
    return Story(
        title=TITLE,
        source="Based on L. Erzegovesi, Embeddings and the Maps We Draw of Them (2026), appendix A.",
        about=[
            "The difference of two words is a direction. For example, the direction from queen "
            "to king leads from female to male.",
            "Two such directions can be the axes of a map of words, if they have length 1 and "
            "stand at right angles. Gram-Schmidt computes such axes.",
            "The first axis keeps its direction. The second axis loses its part along the "
            "first axis. Both axes then get length 1.",
            "Why it matters: you choose the meaning of both axes, and no other map allows this. "
            "In return, the map shows only two directions out of many.",
            "Here the two directions stand at right angles from the start, so the method "
            "subtracts nothing. The first exercise changes this angle.",
            "The vectors are chosen so that king - man + woman is exactly queen.",
        ],
        look=[
            "The sheet Axes shows the two differences, and v2·e1. The number v2·e1 is the part "
            "of the second difference along the first axis.",
            "The sheet Map shows the words on the two axes, and the analogy as a parallelogram. "
            "The sheet Analogy shows each word's cosine with the target.",
        ],
        suggestions=[
            w.suggestion(
                "Choose ‘woman’ instead of ‘man’: v2·e1 is {then:.0f}, not {now:.0f}. The method "
                "subtracts this part, and e2 still begins with {e2.then:.3f}.",
                {w["v2_words"][1]: "woman"},
                w["along"],
                e2=w["axis_2"][0],
            ),
            w.suggestion(
                "Type ‘1’ as the third number of queen. The first axis uses the vector of queen, "
                "so man moves on this axis from {now:.3f} to {then:.3f}.",
                {queen[2]: 1.0},
                man,
            ),
            w.suggestion(
                "Type ‘0’ as the first number of queen: the cosine of queen falls from "
                "{cosine.now:.3f} to {cosine.then:.3f}. The nearest word is now ‘{then}’, a word "
                "of the question.",
                {queen[0]: 0.0},
                w["nearest"],
                cosine=w["cosines"][1],
            ),
        ],
    )
