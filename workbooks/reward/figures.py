"""The sheets Before and after, Texts and Beginnings of `reward`: see `after`."""

from collections.abc import Mapping, Sequence

import numpy as np

from cellformer.engine.cells.access import Rect
from cellformer.exporters.compose.book import Chart, Run, Series
from cellformer.exporters.compose.composer import Composer
from cellformer.workbooks.reward import after, game, table
from cellformer.workbooks.reward.game import WORDS
from cellformer.workbooks.reward.sheets import Parts


def compared(ws: Composer) -> None:
    """Add the figures of the model before and now, and the reliability diagram."""
    g, top = ws.book.graph, ws.cursor
    ws.heads_at((top, 1), "before", "now", style="label")
    names = {
        "kinds": ("The texts, by their probability", after.names(), "percent"),
        "expected": ("The expected reward, by each name", game.REWARDS, "step"),
        "variety": ("Variety", ("entropy, nats", "like so many equal texts"), "step"),
        "likeliest": ("The most likely text", ("text",), "word"),
        "likeliest.share": ("", ("its probability",), "percent"),
        "certainty": (
            "Is the model right about the next word in a random book?",
            ("how sure it is", "how often it is right", "ECE"),
            "percent",
        ),
    }
    for name, (title, labels, style) in names.items():
        ws.cursor += 1 if title else -1
        if title:
            ws.sheet.put(ws.cursor, 0, title, "block")
        ws.lay(g[name], (ws.cursor + 1, 1), style)
        rows = Rect(ws.cursor + 1, ws.cursor + 1 + len(labels), 0, 1)
        if name == "kinds":
            ws.lay(g["kind"], (rows.top, 0), "row label")
        else:
            ws.sheet.down(rows.top, 0, labels, "row label")
        ws.cursor = rows.bottom
    _diagram(ws, top)


def _diagram(ws: Composer, row: int) -> None:
    """The reliability diagram, and its bins far below."""
    g, top = ws.book.graph, ws.cursor + 2
    ws.text(
        "",
        (
            "The points of the diagram: the model's words, grouped by probability. A row "
            "without words has 0 %."
        ),
    )
    ws.heads_at((top + 1, 0), "from", "before: sure", "right", "now: sure", "right", style="label")
    ws.sheet.down(top + 2, 0, [f"{edge:.0%}" for edge in after.EDGES[:-1]], "row label")
    for side, col in zip(after.SIDES, (1, 3), strict=True):
        ws.lay(g[f"{side}.bins"], (top + 2, col), "percent")
    ends = g.input("diagonal", [[0.0, 0.0], [1.0, 1.0]])
    ws.lay(ends, (top + after.N_BINS + 3, 1), "basis", label="diagonal")
    series = [Series("perfect calibration", ends[:, 0], ends[:, 1], joined=True)]
    for side in after.SIDES:
        bins = g[f"{side}.bins"]
        series.append(Series(side, bins[:, 0], bins[:, 1]))
    ws.chart(
        Chart(
            row,
            4,
            "scatter",
            "Calibration before and now",
            series,
            size=(560, 390),
            axes=("probability of the likeliest word", "how often it comes in random books"),
            shares=True,
            across="0%",
        )
    )


def every_text(p: Parts) -> None:
    """Add the sheet of all texts, and that of all beginnings."""
    g = p.w.book.graph
    ws = p.w.sheet(
        "Texts",
        "the probability of each of the 255 texts that the model can write, before and now",
        "A full stop means END. The last 128 texts have 7 entries and no END.",
        widths={1: 12, 2: 16},
    )
    heads = {
        "text.name": ("text", "word"), "text.kind": ("kind", "text"),
        "text.rewards": (("balanced", "credit", "long"), "basis"),
        "before.text": ("before", "percent"), "now.text": ("now", "percent"),
        "before.nats": ("nats", "step"), "now.nats": ("nats now", "step"),
    }  # fmt: skip
    _side_by_side(ws, heads)
    for name in ("before.text", "now.text"):
        ws.dress(g[name].area, "bar")
    ws = p.w.sheet(
        "Beginnings",
        "the probability of each of the 127 beginnings, how sure the model is, and how often it is right",
        "The column ‘before’ has the probabilities of the model ‘books’, which imitates random "
        "books. The KL divergence uses them, too. The column ‘books’ has the exact "
        "probabilities in random books.",
        widths={1: 10},
    )
    g.input("beginning.name", np.array([[x] for x in table.NAMES["beginning"]], dtype=object))
    words = tuple(WORDS)
    heads = {
        "beginning.name": ("beginning", "word"),
        "books.probs": (words, "basis"),
        "books.reach": ("in books", "percent"),
    }
    for side, probs in ((after.BEFORE, "before.probs"), (after.NOW, "")):
        heads |= {probs: (words, "basis")} if probs else {}
        heads |= {
            f"{side}.reach": (side, "percent"), f"{side}.sure": ("sure", "percent"),
            f"{side}.comes": ("right", "percent"), f"{side}.bin": ("bin", "id"),
            f"{side}.share": (("share", "× sure", "× right"), "tiny"),
        }  # fmt: skip
    _side_by_side(ws, heads)
    sums = {
        "before": "before: sums of each bin, and their gap",
        "now": "now: sums of each bin, and their gap",
    }
    for col, side in enumerate(after.SIDES):
        ws.sheet.put(ws.cursor, 1 + 5 * col, sums[side], "block")
        for k, name in enumerate(("sums", "gap")):
            ws.lay(g[f"{side}.{name}"], (ws.cursor + 1, 1 + 5 * col + 3 * k), "tiny")


def _side_by_side(ws: Composer, heads: Mapping[str, tuple[Sequence[str], str]]) -> None:
    """Blocks with equally many rows, each under its heads."""
    g, top, col = ws.book.graph, ws.cursor + 1, 1
    for name, (texts, style) in heads.items():
        ws.heads_at((top - 1, col), *([texts] if isinstance(texts, str) else texts), style="label")
        ws.lay(g[name], (top, col), style)
        col += g[name].shape[1]
    n = g[next(iter(heads))].shape[0]
    ws.sheet.runs.append(
        Run(Rect(top, top + n, 0, 1), "row label", [str(k) for k in range(1, n + 1)])
    )
    ws.cursor = top + n + 1
