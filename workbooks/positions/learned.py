"""The sheet Learned: positions added to words, from a table of weights, from sinusoids, or none."""

import numpy as np

from cellformer.engine.cells.functions import IF, SQRT, SUMPRODUCT
from cellformer.exporters.assemble.worksheets import Workbook
from cellformer.workbooks.positions.hands import D_MODEL, DIMS

SENTENCE = ("the", "cat", "saw", "the", "dog")  # one word twice: places 0 and 3
N = len(SENTENCE)
E = np.random.default_rng(1).normal(size=(4, D_MODEL)).round(1)[[0, 1, 2, 0, 3]]
W_POS = np.random.default_rng(2).normal(0, 0.5, (N, D_MODEL)).round(1)
NONE, SINE, LEARNED = range(3)


def add(w: Workbook) -> None:
    """Add the sheet, which reads the sinusoids of the hands."""
    ws = w.sheet(
        "Learned",
        "positions added to words: none, sinusoids, or a table of weights",
        widths={0: 24},
    )
    encoding = w["encoding"]
    kind = ws.typed("kind", LEARNED, ["0: none, 1: sine, 2: learned"], style="input setting")
    words = ws.typed("words", E, SENTENCE, DIMS, "E: words   [n, d_model]", "weight")
    learned = ws.typed("W_pos", W_POS, range(N), DIMS, "W_pos: places   [n, d_model]", "weight")
    ws.text("X0 = E + the chosen positions: the input of layer 0   [n, d_model]", style="equation")
    stream = ws.computed(
        "stream",
        (N, D_MODEL),
        lambda t, j: (
            words[t, j] + IF(kind == SINE, encoding[t, j], IF(kind == LEARNED, learned[t, j], 0))
        ),
        SENTENCE,
        DIMS,
    )
    ws.text(
        "Without positions, the same word has the same vector at two places. A layer then cannot "
        "distinguish the places."
    )
    apart = ws.computed(
        "two_the", (1, D_MODEL), lambda _, j: stream[0, j] - stream[3, j], ["X0[0] - X0[3]"]
    )
    ws.computed("distance", (1, 1), SQRT(SUMPRODUCT(apart.fixed, apart.fixed)), ["distance"])
