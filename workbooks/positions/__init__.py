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
            "q and k moved by s places: same score",
            near(diagonal.fixed, diagonal[0]),
        ),
    ])  # fmt: skip
    return w.done(story(w))


def compare(w: Workbook) -> None:
    """The wavelengths that the paper prints."""
    fastest, slowest = w["waves"][0], w["waves"][-1]
    paper = BASE ** (1 - 2 / PAPER_D_MODEL)
    note = (
        f"The paper prints 10000. The formula base^((d-2)/d) gives {w.now(slowest):.0f} for d = "
        f"8, {paper:.0f} for d = 512."
    )
    w.compare([
        Comparison("fastest hand: wavelength / 2π", 1, fastest, decimals=0),
        Comparison("slowest hand: wavelength / 2π", BASE, slowest, note, decimals=0,
                   other="other settings"),
    ], "Slides, Positional Encoding (quoting Vaswani et al.)")  # fmt: skip


ABOUT = [
    "Attention sees a set of words without an order. If earlier words change places, the "
    "layer gives the same result.",
    "Only a second layer can detect the order if no word sees later words. Models "
    "therefore store the place of each word.",
    "This workbook shows three ways. Waves and a learned table change the word's vector. "
    "Rotation changes queries and keys.",
    "Why it matters: the position method limits the length of texts. The method also decides "
    "whether a model can read longer texts than in training.",
    "One number for each place is not enough. The place t grows without limit. The number 1 - "
    "1/t grows in smaller and smaller steps, until neighbouring places look the same.",
    "The hands of a clock are better: each pair of numbers is one hand, and each hand "
    "turns at its own speed.",
    (
        "All numbers of the hands stay between -1 and 1. Together, many hands can distinguish "
        "thousands of places."
    ),
    "One matrix moves the hands of every place forward by k. Binary digits also "
    "distinguish places, but no single matrix can move them forward.",
    "Rotation (RoPE) rotates each query and key by an angle that depends on the place. "
    "Only the scores change: the word's vector stays the same.",
]


def story(w: Workbook) -> Story:
    """The start sheet's texts, and suggested edits with their computed effects."""
    distance, score = w["distance"], w["scores"][0, 0]
    m, n = w["m_n"][0], w["m_n"][1]
    far = {place: w.now(place) + 1000 for place in (m, n)}
    return Story(
        title=TITLE,
        source="Based on M. Sinclair, Transformers (lecture slides), and A Gentle Introduction to "
        "Transformers; Vaswani et al. 2017, section 3.5.",
        about=ABOUT,
        errata=[
            "The slides say that rotation (RoPE) rotates the word's vector. Later they say that "
            "query and key get their own codes. Only the second claim is right.",
        ],
        look=[
            "Each table has one row for each word, like the tables of the slides.",
            "The sheet Average shows two sentences with the same words. Their averages are the "
            "same, with or without places.",
            "The sheet Clock shows each place as one number, and as three clock hands with "
            "periods of 1, 60 and 720 minutes.",
            "The sheet Hands shows the numbers of each place for every hand, next to the binary "
            "digits of the place.",
            "On the sheet Shift, the matrix W_k and the formula give the same result, so their "
            "difference is 0. You can type any k.",
            "The sheet Learned shows the same word at two places. The sheet Rotary shows the "
            "scores for each pair of places. Along each diagonal the scores are equal.",
        ],
        suggestions=[
            w.suggestion(
                "Type ‘16’: each wavelength doubles the previous one, like binary digits. The "
                "longest wavelength falls from {now:.0f} to {then:.0f}.",
                {w["base"]: 16},
                w["waves"][-1],
            ),
            w.suggestion(
                "Type ‘0’ to remove positions: the two ‘the’ get the same vector. Their distance "
                "falls from {now:.2f} to {then:.0f}.",
                {w["kind"]: NONE},
                distance,
            ),
            w.suggestion(
                f"Type ‘{far[m]:.0f}’ here, and ‘{far[n]:.0f}’ in the next cell: q and k move "
                "forward by 1000 places. The score stays {then:.3f}.",
                far,
                score,
            ),
        ],
    )
