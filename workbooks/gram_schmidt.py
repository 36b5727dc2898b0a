"""gram-schmidt: two axes made from word differences, and a map of four words on them.

Gram-Schmidt takes from the second difference what the first axis already says; two dot products
then place each word. Look at the step that takes away, at the map and at the analogy. Choose other
words for a pair, or move a word's vector, and see which axes and which words follow.
"""

import numpy as np
from numpy.linalg import norm

from engine.cells.access import Rect
from exporters.book import Book, Chart, Series
from exporters.by_hand import Comparison, Table, Workbook, Worksheet, near
from exporters.model_book import span
from exporters.story import Story, Suggestion

TOPIC = "Words and positions"
TITLE = "gram-schmidt: two axes from word differences, and an analogy drawn on them"
WORDS = ("king", "queen", "man", "woman")
VECTORS = np.array([[2.0, 1, 0], [2, -1, 0], [1, 1, 1], [1, -1, 1]])
FIRST, SECOND, ASKED = ("king", "queen"), ("king", "man"), ("king", "man", "woman")
TINY = 1e-9  # a length below this is rounding, and no direction
DIMS, AXES = ("x1", "x2", "x3"), ("gender", "royalty")


def combined(vectors: np.ndarray, words: tuple[str, ...]) -> np.ndarray:
    """The first word less the second, and plus the third if there is one: [3]."""
    return (1, -1, 1)[: len(words)] @ vectors[[WORDS.index(word) for word in words]]


def unit(v: np.ndarray) -> np.ndarray:
    """The same direction with length 1; zeros where there is no direction."""
    return v / norm(v) if norm(v) > TINY else np.zeros(len(v))


def gram_schmidt(v1: np.ndarray, v2: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The first axis, what is left of v2 at right angles to it, and the second axis: each [3]."""
    e1 = unit(v1)
    rest = v2 - (v2 @ e1) * e1
    return e1, rest, unit(rest)


def coordinates(vectors: np.ndarray) -> np.ndarray:
    """Each word on the two axes: [words, 2]."""
    e1, _, e2 = gram_schmidt(combined(vectors, FIRST), combined(vectors, SECOND))
    return vectors @ np.stack([e1, e2]).T


def analogy(vectors: np.ndarray) -> tuple[np.ndarray, str]:
    """Each word's cosine with the target [words], and the nearest word."""
    cosines = np.array([unit(v) @ unit(combined(vectors, ASKED)) for v in vectors])
    return cosines, WORDS[cosines.argmax()]


def book() -> Book:
    """The workbook."""
    w = Workbook("gram-schmidt")
    ws = w.sheet("Axes", "from words to two axes of length 1, at right angles to each other")
    ws.heading("Words: a vector of three numbers each  [words, 3]")
    vectors = ws.table("vectors", VECTORS, None, WORDS, DIMS)
    v1, v2, along, e1, e2 = _axes(ws, vectors)
    coords = _map(w.sheet("Map", "two dot products place each word"), vectors, e1, e2)
    target = _analogy(w.sheet("Analogy", "a is to b as which word is to c?"), vectors)
    printed: list[tuple[str, list[list[float]], Table]] = [
        ("v1 = king - queen", [[0, 2, 0]], v1), ("e1 = v1 / |v1|", [[0, 1, 0]], e1),
        ("v2 = king - man", [[1, 0, -1]], v2), ("v2·e1", [[0]], along),
        ("e2 = v2 / |v2|", [[0.71, 0, -0.71]], e2), ("king - man + woman", [[2, -1, 0]], target),
        ("each word on e1 and e2", [[1, 1.41], [-1, 1.41], [1, 0], [-1, 0]], coords),
    ]  # fmt: skip
    w.compare([Comparison(f"{what}, {i + 1}.{j + 1}", rows[i][j], t, i, j)
               for what, rows, t in printed for i, j in np.ndindex(*np.shape(rows))])  # fmt: skip
    ones = [f"OR({near(dot(e, e))},{near(dot(e, e), 0)})" for e in (e1, e2)]
    w.checks([
        ("e1 has length 1, or is 0 where the pair has no difference", ones[0]),
        ("e2 has length 1, or is 0 where nothing is left of the difference", ones[1]),
        ("e1 and e2 are at right angles: their dot product is 0", near(dot(e1, e2), 0)),
    ])  # fmt: skip
    return w.done(story())


def _axes(ws: Worksheet, vectors: Table) -> tuple[Table, ...]:
    """Each step from two pairs of words to two axes."""
    axis1, left, axis2 = gram_schmidt(combined(VECTORS, FIRST), combined(VECTORS, SECOND))
    ws.widths({5: 10, 8: 12})
    ws.heading("First axis: a difference of two words, divided by its length")
    ws.text("v1 = a - b  [3]        e1 = v1 / |v1|  [3]", style="equation")
    v1 = _combination(ws, "v1", FIRST, vectors)
    n1 = ws.table("length_1", norm(v1.values), length(v1), ["|v1|"], beside=v1)
    e1 = ws.table("axis_1", axis1, lambda _, j: share(v1.at(0, j), n1.at()), ["e1"], DIMS,
                  style="attention", beside=n1)  # fmt: skip
    ws.heading("Second axis: another difference, less what the first axis already says")
    ws.text("v2 = a - b      rest = v2 - (v2·e1) e1      e2 = rest / |rest|", style="equation")
    v2 = _combination(ws, "v2", SECOND, vectors)
    along = ws.table("along", v2.values[0] @ axis1, dot(v2, e1), ["v2·e1"], beside=v2)
    part = ws.table("part_on_1", v2.values[0] - left, lambda _, j: f"{along.at()}*{e1.at(0, j)}",
                    ["(v2·e1) e1"], DIMS, beside=along)  # fmt: skip
    rest = ws.table("rest", left, lambda _, j: f"{v2.at(0, j)}-{part.at(0, j)}", ["rest"], DIMS)
    n2 = ws.table("length_2", norm(left), length(rest), ["|rest|"], beside=rest)
    e2 = ws.table("axis_2", axis2, lambda _, j: share(rest.at(0, j), n2.at()), ["e2"], DIMS,
                  style="attention", beside=n2)  # fmt: skip
    return v1, v2, along, e1, e2


def _map(ws: Worksheet, vectors: Table, e1: Table, e2: Table) -> Table:
    """Each word's coordinates on the axes, and a chart of them."""
    ws.heading("Each word on the axes")
    ws.text("coordinate = word · axis  [words, 2]", style="equation")
    coords = ws.table("coordinates", coordinates(VECTORS),
                      lambda i, j: dot(vectors, (e1, e2)[j], i), WORDS, AXES)  # fmt: skip
    x, y = (coords.part(cols=slice(j, j + 1)) for j in range(2))
    ws.chart(Chart(ws.cursor + 1, 1, "scatter", "The words on the two axes",
                   [Series("words", x, y, WORDS)], (520, 340), AXES, number="0.0"))  # fmt: skip
    return coords


def _analogy(ws: Worksheet, vectors: Table) -> Table:
    """The target of the analogy, and how near each word is to it by cosine."""
    ws.heading("The target, and how near each word is to it; the words asked about may win too")
    ws.text("target = a - b + c    cosine = word · target / (|word| |target|)", style="equation")
    target = _combination(ws, "target", ASKED, vectors)
    n = ws.table("n_target", norm(target.values), length(target), ["|target|"], beside=target)
    on = (VECTORS @ target.values[0])[:, None]
    norms, (cosines, winner) = norm(VECTORS, axis=1, keepdims=True), analogy(VECTORS)
    dots = ws.table("dots", on, lambda i, _: dot(vectors, target, i), WORDS, ["dot"])
    sizes = ws.table("sizes", norms, lambda i, _: length(vectors, i), (), ["|word|"], beside=dots)
    cos = ws.table("cosines", cosines[:, None], lambda i, _: share(dots.at(i), f"({sizes.at(i)}*"
                   f"{n.at()})"), (), ["cosine"], style="readout", beside=sizes)  # fmt: skip
    best = f"MATCH(MAX({cos.all()}),{cos.all()},0)"
    ws.table("nearest", winner, f"INDEX({_names(vectors)},{best},1)", ["nearest"], style="readout")
    return target


def _combination(ws: Worksheet, name: str, words: tuple[str, ...], vectors: Table) -> Table:
    """Cells in which to choose words, and a - b (+ c) of their vectors: [1, 3]."""
    asked = ws.table(f"{name}_words", [words], None, ["words"], ("a", "b", "c")[: len(words)])
    terms = []
    for k, sign in enumerate(("", "-", "+")[: len(words)]):
        ws.sheet.lists[asked.rect.top, asked.rect.left + k] = _names(vectors)
        row = f"MATCH({asked.at(0, k, True)},{_names(vectors)},0)"
        terms.append(f"{sign}INDEX({vectors.all()},{row},")
    return ws.table(f"{name}_vector", combined(VECTORS, words),
                    lambda _, j: "".join(f"{t}{j + 1})" for t in terms), [name], DIMS)  # fmt: skip


def _names(vectors: Table) -> str:
    """The range of the words, which label the rows of their vectors."""
    top, bottom, left, _ = vectors.rect
    return f"{vectors.sheet}!{span(Rect(top, bottom, left - 1, left), True)}"


def dot(a: Table, b: Table, i: int = 0) -> str:
    """A formula for row i of one table times the only row of another."""
    return f"SUMPRODUCT({a.row(i)},{b.row(0)})"


def length(v: Table, i: int = 0) -> str:
    """A formula for the length of row i."""
    return f"SQRT(SUMPRODUCT({v.row(i)},{v.row(i)}))"


def share(part: str, whole: str) -> str:
    """A formula for a quotient, 0 where there is nothing to divide by."""
    return f"IF({whole}<{TINY:.9f},0,{part}/{whole})"


def story() -> Story:
    """What the start sheet says; what its edits do is computed here."""
    v1, on, other = combined(VECTORS, FIRST), coordinates(VECTORS), ("king", "woman")
    along, taken = (combined(VECTORS, pair) @ unit(v1) for pair in (SECOND, other))
    e2 = gram_schmidt(v1, combined(VECTORS, other))[2]
    tilted, poor = VECTORS.copy(), VECTORS.copy()
    tilted[1, 2], poor[1, 0] = 1, 0
    moved, now, (then, winner) = coordinates(tilted)[2, 0], analogy(VECTORS)[0], analogy(poor)
    return Story(
        title=TITLE,
        source="After an essay on embeddings and their maps, its appendix on Gram-Schmidt.",
        about=[
            "Differences of words serve as axes; Gram-Schmidt sets them at right angles, length 1.",
            "In the essay's example they are at right angles from the start, so the step that",
            "takes away has nothing to do; the vectors are chosen so that queen comes out exactly.",
        ],
        look=["Axes: v2·e1, what the second difference shares with the first axis.",
              "Map: the parallelogram. Analogy: the cosine of every word with the target."],
        tries=[
            Suggestion(f"Choose woman, not man: v2·e1 is {taken:.0f} instead of {along:.0f} and is taken "
                f"away; e2 begins with {e2[0]:.3f} as before.",
                ("v2_words", 0, 1), "woman", ("along", 0, 0), taken),
            Suggestion("Type 1 as queen's third number: axes are made of words, so man moves on the first "
                f"one from {on[2, 0]:.3f} to {moved:.3f}.",
                ("vectors", 1, 2), 1.0, ("coordinates", 2, 0), moved),
            Suggestion(f"Type 0 as queen's first number: her cosine falls from {now[1]:.3f} to "
                f"{then[1]:.3f}; nearest is {winner}, one of the words asked.",
                ("vectors", 1, 0), 0.0, ("nearest", 0, 0), winner),
        ],
    )  # fmt: skip
