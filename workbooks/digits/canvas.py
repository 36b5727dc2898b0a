"""The model as cells: a drawing that is typed, or a held-out one, and one pass that names it."""

import numpy as np

from cellformer.engine import Model
from cellformer.engine.cells.expression import Expression, Nth
from cellformer.engine.cells.functions import (
    AND,
    IF,
    INT,
    ISNUMBER,
    LEN,
    MATCH,
    MAX,
    MIN,
    TRIM,
    added,
)
from cellformer.engine.models.architectures.vit import VitSpec, places
from cellformer.engine.models.forward import ONE_TOKEN, Forward
from cellformer.workbooks.digits.drawings import MOST, N_DIGITS, SIDE, Drawings, split

DRAWN = """
. . . . . . . .
. . # # # # . .
. . . . . # . .
. . . . # # . .
. . . # # . . .
. . . # . . . .
. . # # . . . .
. . # . . . . .
"""  # a 7, as the sheet shows it at first
N_SHOWN = 50  # held-out drawings to pick from
ONE, IMAGE = (1, 1), (SIDE, SIDE)
ACROSS = ("row", "column")
FINE, BLANK, TEXT, LOW, HIGH = range(5)  # what is typed in a cell


def drawn() -> np.ndarray:
    """The drawing at first: [SIDE, SIDE]."""
    return np.array([[MOST * (c == "#") for c in line.split()] for line in DRAWN.split("\n")[1:-1]])


def shown() -> Drawings:
    """The held-out drawings to pick from: the first ones."""
    _, held_out = split()
    return Drawings(held_out.pixels[:N_SHOWN], held_out.digits[:N_SHOWN])


def build(model: Model) -> Forward:
    """The pass over a drawing."""
    g = model.graph(drawn().ravel().tolist(), ONE_TOKEN)
    typed = g.input("drawing", drawn().astype(object), ACROSS, kind="table")
    kinds = g.table("drawing.kind", IMAGE, lambda i, j: kind(typed[i, j]), ACROSS)
    ink = g.table("ink", IMAGE, lambda i, j: inked(typed[i, j], kinds[i, j]), ACROSS)
    pick(g)
    picked = g["picked"]
    reads_held = g.input("reads_held_out", 0, kind="table")
    seen = g.table(
        "seen",
        IMAGE,
        lambda i, j: IF(reads_held[0, 0] == 1, picked[i, j], ink[i, j]),
        ACROSS,
    )
    spec = model.spec
    assert isinstance(spec, VitSpec)
    at = places(spec)
    g.follow("tokens", lambda p, k: seen[divmod(int(at[p, k]), SIDE)] + 0)
    probs = g["probs"]
    chances = g.table("chances", (N_DIGITS, 1), lambda k, _: probs[0, k] + 0, ("vocab_out", ""))
    every = chances.area.as_range
    sure = g.table("sure", ONE, lambda *_: MAX(every))
    g.table("guess", ONE, lambda *_: MATCH(sure[0, 0], every, 0) - 1)
    look(g, spec, at)
    return g


def kind(x: Expression) -> Expression:
    """The kind of a cell's entry: a number from 0 to MOST, nothing, no number, too low or too
    high."""
    number = IF(x < 0, LOW, IF(x > MOST, HIGH, FINE))
    return IF(ISNUMBER(x), number, IF(LEN(TRIM(x & "")) == 0, BLANK, TEXT))


def inked(x: Expression, kind: Expression) -> Expression:
    """The ink that a cell counts for, from 0 to MOST."""
    return MAX(0, MIN(MOST, IF(kind == FINE, x, IF(kind == HIGH, MOST, 0))))


def pick(g: Forward) -> None:
    """Add the held-out drawings, and the drawing with the typed number; any other number gives
    the first."""
    drawings = shown()
    number = g.input("number", 1, kind="table")
    held = g.input("held_out", drawings.pixels.reshape(N_SHOWN, -1), ("drawing", "pixel"))
    meant = g.input("held_out.digit", drawings.digits[:, None], ("drawing", ""))
    x = number[0, 0]
    known = IF(ISNUMBER(x), IF(AND(x >= 1, x < N_SHOWN + 1), INT(x), 1), 1)
    at = g.table("number.known", ONE, lambda *_: known)[0, 0]

    g.table(
        "picked", IMAGE, lambda i, j: Nth(held[:, SIDE * i + j].fixed.as_range, at.fixed), ACROSS
    )
    g.table("picked.digit", ONE, lambda *_: Nth(meant[:, 0].fixed.as_range, at))


def look(g: Forward, spec: VitSpec, at: np.ndarray) -> None:
    """Add how much [CLS] attends to each patch in the last layer, the mean of its heads, and the
    same as a share of the largest, on the pixels of each patch: [SIDE, SIDE]."""
    last = f"blocks.{spec.n_layers - 1}.attn"
    patterns = [g[f"{last}.h{n}.pattern"] for n in range(spec.n_heads)]

    def mean(_: int, p: int) -> Expression:
        first, *rest = (pattern[0, p + 1] for pattern in patterns)
        return added([first + 0, *rest]) / len(patterns)

    each = g.table("looks.mean", (1, len(at)), mean, ("", "patch"))
    most = g.table("looks.most", ONE, lambda *_: MAX(each.area.as_range))[0, 0]
    patch_of = {int(pixel): p for p, row in enumerate(at) for pixel in row}

    g.table(
        "looks", IMAGE, lambda i, j: each[0, patch_of[SIDE * i + j]] / MAX(most.fixed, 1e-9), ACROSS
    )
