"""positions: encoding a position by clock hands, by a learned table, and by rotation.

Each pair of dimensions is a hand of a clock, fast or slow, like binary digits. Look at the
frequency map, at the shift by one matrix, and at the diagonals of rotary scores. Try base 16.
"""

from cellformer.exporters.assemble.worksheets import Comparison, Workbook, near
from cellformer.exporters.compose.book import Book
from cellformer.exporters.compose.story import Story
from cellformer.workbooks.positions import average, hands, learned, rotary, shift
from cellformer.workbooks.positions import clock as clock_of_minutes
from cellformer.workbooks.positions.hands import BASE
from cellformer.workbooks.positions.learned import NONE

TOPIC, AFTER, LEVEL = "Words and positions", "tokenization", 2
TITLE = "positions: clock hands, a learned table, and rotation"
PAPER_D_MODEL = 512


def book() -> Book:
    """The workbook."""
    w = Workbook("positions")
    average.add(w)
    clock_of_minutes.add(w)
    hands.add(w)
    shift.add(w)
    learned.add(w)
    rotary.add(w)
    compare(w)
    diagonal = w["diagonal"]
    w.checks([
        ("W_k moves every place by k", near(w["gap"].fixed, 0)),
        (
            "q and k, both s places on, score alike",
            near(diagonal.fixed, diagonal[0]),
        ),
    ])  # fmt: skip
    return w.done(story(w))


def compare(w: Workbook) -> None:
    """The wavelengths that the paper prints."""
    fastest, slowest = w["waves"][0], w["waves"][-1]
    paper = BASE ** (1 - 2 / PAPER_D_MODEL)
    note = (
        f"the paper prints 10000; it is base^((d-2)/d): {w.now(slowest):.0f} for d = 8, "
        f"{paper:.0f} for its 512"
    )
    w.compare([
        Comparison("fastest hand: wavelength / 2π", 1, fastest, decimals=0),
        Comparison("slowest hand: wavelength / 2π", BASE, slowest, note, decimals=0,
                   other="other settings"),
    ], "Slides, Positional Encoding (quoting Vaswani et al.)")  # fmt: skip


def story(w: Workbook) -> Story:
    """The start sheet's texts, and suggested edits with their computed effects."""
    distance, score = w["distance"], w["scores"][0, 0]
    m, n = w["m_n"][0], w["m_n"][1]
    far = {place: w.now(place) + 1000 for place in (m, n)}
    return Story(
        title=TITLE,
        source="After M. Sinclair, Transformers (lecture slides), and A Gentle Introduction to Transformers; Vaswani et al. 2017, section 3.5.",
        about=[
            "Attention sees a set of words, not an order. If the words before a word change places, a layer gives the same result. (A second",
            "layer can tell the order, if no word sees the words after it.) So the place of a word is written into its vector, or into its queries",
            "and keys. Three ways are shown: waves, a learned table, and rotation.",
            "Why it matters: how a model counts places decides how long a text it can read, and whether it copes with longer texts than in training.",
            "One number for each place is not enough. The place itself, t, grows without bound; and the steps of 1 - 1/t shrink until",
            "neighbours look alike. The hands of a clock do better: each pair of numbers is a hand that turns at its own speed.",
            "All numbers stay between -1 and 1, many hands together tell thousands of places apart, and one matrix, the same for",
            "every place, moves all hands on by k places. The digits of binary numbers tell places apart in steps; but no one matrix moves them on.",
            "Rotation (RoPE) turns a query and a key by the angle of their place. Only the scores see it: the word's vector stays as it is.",
        ],
        errata=[
            "On rotation (RoPE) the slides say that the word's vector is turned, and later that query and key get codes of their own. Only the second",
            "is right.",
        ],
        look=[
            "Tables stand as in the slides: a row for each word.",
            "Average: two sentences of the same words have one average, with places or without.",
            "Clock: a place as one number, and as the hands of a clock with periods of 1, 60 and 720 minutes.",
            "Hands: the numbers of every place, hand by hand, with the binary digits of the places beside them.",
            "Shift: the matrix W_k, and the difference from the formula, which is 0 everywhere. Type any k.",
            "Learned: one word at two places. Rotary: scores by place; they are the same along each diagonal.",
        ],
        suggestions=[
            w.suggestion(
                "Type ‘16’: each wavelength is twice the one before, as in binary numbers. The longest falls from {now:.0f} to {then:.0f}.",
                {w["base"]: 16},
                w["waves"][-1],
            ),
            w.suggestion(
                "Type ‘0’ to remove positions: the two ‘the’, {now:.2f} apart, become one vector, {then:.0f} apart.",
                {w["kind"]: NONE},
                distance,
            ),
            w.suggestion(
                f"Type ‘{far[m]:.0f}’, and ‘{far[n]:.0f}’ beside it: q and k move on by 1000 places, "
                "and the score stays {then:.3f}.",
                far,
                score,
            ),
        ],
    )
