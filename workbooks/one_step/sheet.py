"""The sheet of one step: blocks from top to bottom, with gradients and updated weights beside
them."""

from collections.abc import Mapping

import numpy as np

from cellformer.engine.cells.expression import Area, Expression
from cellformer.engine.cells.functions import INDEX, MATCH, SUM, SUMPRODUCT
from cellformer.engine.cells.sentence import sentence
from cellformer.exporters.assemble.worksheets import Workbook
from cellformer.exporters.compose.book import Chart, Series
from cellformer.exporters.compose.composer import Composer
from cellformer.exporters.compose.dressing import between
from cellformer.workbooks.one_step import passes
from cellformer.workbooks.one_step.blocks import SECTIONS, WEIGHTS, Block, D

SHEET, PURPOSE = "Step", "every number of one training step: loss, gradients, new loss"
FOLLOWING, RATE, MOST = "on", 0.5, 10  # MOST: that a rate may be
MODEL, BACK, AFTER = range(3)  # the lanes, from left to right
LEFT = tuple(1 + lane * (D + 1) for lane in range(3))  # their first columns
PREFIXES = ("", "gradient_", "next_")  # of their tables' names
HEADS = ("The model: read down", "Gradients: read up", "After the step: read down again")
TEXT = (
    "The gradient of a number says how fast the loss grows when the number grows. For example, "
    "dq is the gradient of q.",
    "On the left, the sheet computes the loss from top to bottom. In the middle, the chain rule "
    "computes each gradient from the gradients below.",
    "On the right, each new weight is the old weight minus rate × gradient. The sheet then "
    "computes the loss again with the new weights.",
)
CHART_SIZE, SUMMARY_ROWS = (690, 330), 15
Lane = dict[str, Area]  # the tables of a lane by the names of `blocks`


def add(w: Workbook, weights: Mapping[str, np.ndarray]) -> None:
    """Add the sheet: the inputs, the results, and every block three times."""
    ws = w.sheet(SHEET, PURPOSE)
    gaps = {left - 1: 2.5 for left in LEFT[1:]}
    ws.widths({0: 17} | dict.fromkeys(range(1, LEFT[AFTER] + D), 8.2) | gaps)
    for head, left in zip(HEADS, LEFT, strict=True):
        ws.sheet.put(ws.cursor - 1, left, head, "heading")
    ws.sheet.frozen = (ws.cursor, 0)
    ws.text(*TEXT)
    following, rate = chosen(ws)
    top, lanes = ws.cursor, (Lane(), Lane(), Lane())
    ws.cursor += SUMMARY_ROWS
    for section in SECTIONS:
        ws.heading(section.heading, *section.rules)
        for block in section.blocks:
            place(ws, block, lanes, weights)
    words = w["words"].fixed
    spot = ws.rect(following)
    ws.sheet.lists[spot.top, spot.left] = words
    ws.sheet.link(spot.top, 3, "the gradients start here ↓", w.book.address(lanes[BACK]["loss"]))
    fill(ws, lanes, words, following.fixed, rate.fixed)
    ws.cursor = top
    outcomes(ws, lanes, words, following)
    falls(ws)
    shares = [("before", lanes[MODEL]["p"]), ("after the step", lanes[AFTER]["p"])]
    ws.chart(
        Chart(
            top - 3,
            LEFT[BACK],
            "column",
            'Probabilities after "the cat sat"',
            [Series(name, words, share) for name, share in shares],
            size=CHART_SIZE,
        )
    )


def chosen(ws: Composer) -> tuple[Area, Area]:
    """Add the inputs: the next word, and the learning rate."""
    ws.cursor += 1
    following = ws.typed("next_word", FOLLOWING, ["next word"], style="token")
    rate = ws.typed(
        "rate",
        RATE,
        ["rate"],
        style="dial",
        tight=True,
        rule=between(0, MOST, f"Type a rate from 0 to {MOST}."),
    )
    return following, rate


def place(
    ws: Composer, block: Block, lanes: tuple[Lane, ...], weights: Mapping[str, np.ndarray]
) -> None:
    """Place a block in each of the three columns of tables; formulas are added later."""
    name, rows = block.name, block.rows
    if block.offset:  # beside the one before
        ws.cursor -= len(rows) + 3
    after = f"{name} - rate × d{name}" if name in WEIGHTS else block.forward
    for text, left in zip((block.forward, block.backward, after), LEFT, strict=True):
        if text:
            ws.sheet.put(ws.cursor, left, text, "equation")
    top = ws.cursor + 1
    if name == "logit":
        ws.typed("words", [[word] for word in rows], style="row label", left=0, top=top + 1)
    for lane, found in enumerate(lanes):
        head = block.heads[lane == BACK]
        if block.heads[MODEL] and not head:
            continue  # it has no gradient of its own
        ws.cursor, left = top, LEFT[lane] + block.offset
        labels = rows if lane == MODEL and not block.offset and name != "logit" else ()
        heads = [head] if head else ()
        if lane == MODEL and name in WEIGHTS:
            found[name] = ws.typed(name, weights[name], labels, style="weight", left=left)
        else:
            found[name] = ws.promised(PREFIXES[lane] + name, block.shape, labels, heads, left=left)


def fill(ws: Composer, lanes: tuple[Lane, ...], words: Area, following: Area, rate: Area) -> None:
    """Give every table its formulas."""
    styles = {block.name: block.style for section in SECTIONS for block in section.blocks}
    model, back, after = lanes
    for name, formula in passes.backward(model, back, words, following).items():
        ws.fill(back[name], formula, "basis" if name == "p" else "change fine")
        if name not in ("p", "loss"):
            ws.dress(back[name], "diverging")
    for name in WEIGHTS:
        ws.fill(after[name], passes.step(model[name], back[name], rate), "weight")
    for lane in (model, after):
        for name, formula in passes.forward(lane, words, following).items():
            ws.fill(lane[name], formula, styles[name])


def outcomes(ws: Composer, lanes: tuple[Lane, ...], words: Area, following: Area) -> None:
    """Add the loss, and the probability of the next word, before and after the step."""
    lane = (lanes[MODEL], lanes[AFTER])

    def found(i: int, j: int) -> Expression:
        if j == 2:
            return outcome[i, 1] - outcome[i, 0]
        return INDEX(lane[j]["p"], MATCH(following, words, 0)) if i else lane[j]["loss"]

    outcome = ws.promised(
        "outcome",
        (2, 3),
        ("loss", sentence("share of {word}", word=following)),
        ("before", "after", "change"),
    )
    ws.fill(outcome, found, "live here")


def falls(ws: Composer) -> None:
    """Add the fall of the loss that the squared gradients promise, and the real one."""
    gradients = [ws[PREFIXES[BACK] + name] for name in WEIGHTS]
    columns = ws.columns(len(WEIGHTS), ws.cursor, left=0)
    columns.typed("learning", "weights", WEIGHTS, "row label")
    columns.typed("how_many", "numbers", [gradient.rect.size for gradient in gradients], "count")
    squares = columns.computed(
        "squares", "sum of d²", lambda n: SUMPRODUCT(gradients[n], gradients[n]), "live here"
    )
    rate = ws["rate"].fixed
    parts = columns.computed("parts", "× rate", lambda n: rate * squares[n], "live here")
    ws.cursor -= 1
    both = (SUM(parts), -ws["outcome"][0, 2])
    found = ws.computed("falls", (2, 1), lambda n, _: both[n], left=3, style="total")
    ws.sheet.down(
        ws.rect(found).top, 2, ("predicted fall of the loss", "real fall of the loss"), "row label"
    )
