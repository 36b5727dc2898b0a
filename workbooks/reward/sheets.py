"""The sheets of `reward` around a step: the switch and the settings, the curve, and the states."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cellformer.engine.cells.access import Rect
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.expression import Area, Expression, expression
from cellformer.engine.cells.functions import IF
from cellformer.engine.cells.graph import Graph
from cellformer.engine.cells.language import worded
from cellformer.exporters.assemble.block_list import put
from cellformer.exporters.assemble.worksheets import Workbook
from cellformer.exporters.compose.book import Chart, Run, Series
from cellformer.exporters.compose.composer import Composer
from cellformer.workbooks.learn import clock
from cellformer.workbooks.learn.sheets import (
    CLOCK,
    LATCHES,
    RECALCULATIONS,
    columns,
    latches,
    settings,
    small_latches,
)
from cellformer.workbooks.learn.sheets import (
    SETTINGS as OF_LEARN,
)
from cellformer.workbooks.reward import table
from cellformer.workbooks.reward.game import LENGTH, STEPS, TEXTS, WORDS
from cellformer.workbooks.reward.learning import Step, Trained

CHOICES = 30  # the first column of lists of names, which nobody sees
A_POINT = 5  # steps whose mean reward is a point of the curve
N_POINTS = STEPS // A_POINT
TOKENS = [f"{k}·{t}" for k in range(1, TEXTS + 1) for t in range(1, LENGTH + 1)]
LABELS = {"token": TOKENS, "vocab": list(WORDS), **table.NAMES}
NUMBERED = [str(k) for k in range(1, TEXTS + 1)]
SWITCH = {  # block -> what it is called, what it is for, its style
    "state": ("learning", "start, learn or pause", "switch"),
}
MADE = {"made": ("steps made", "each step changes every weight once", "count")}
BEGIN: dict[str, tuple[str, ...]] = {  # the same
    "begin": ("begin with", "books, or the model after 200 steps", "dial"),
}
SETTINGS: dict[str, tuple[str, ...]] = {  # the same
    "reward": ("reward", "which texts are rewarded", "dial"),
    "kl_weight": ("beta", "weight of the KL divergence from ‘books’"),
    "clip_range": ("clip range", "the ratio counts only from 1 − this to 1 + this"),
    "learning_rate": ("learning rate", "size of each step"),
    "updates": ("updates per batch", "steps made with the same eight texts"),
}
PROGRESS = {
    "reward.now": ("mean reward", "of the eight texts of this step", "step green"),
    "reward.point": ("mean of the point", "of the steps since the last point", "step green"),
    "right.now": ("right texts", "probability of as many D as C: exact", "live percent"),
    "variety.now": ("variety", "entropy of the texts, in nats: exact", "step green"),
    "favourite.now": ("most likely text", "a full stop means END", "word"),
    "loss.now": ("loss", "beta × KL divergence − surrogate", "change fine"),
    "moved": ("change of a weight", "the first weight of W_E", "change fine"),
}
EFFECT: dict[str, tuple[str, ...]] = {
    "begin.found": ("begin with", "number of the model; 0 if the name is unknown"),
    "begin.number": ("begins with", "the model in effect: 1 is ‘books’"),
    "reward.found": ("reward", "number of the reward; 0 if the name is unknown"),
    "reward.number": ("rewards", "the reward in effect: 1 is ‘balanced’"),
    "updates.used": ("updates", "the number of updates per batch in effect"),
    "beta": ("beta", "the weight of the KL divergence in effect", "step"),
    "clip": ("clip", "the clip range in effect", "step"),
    "rate": ("rate", "the learning rate in effect", "step"),
    "method": ("method", "2: Adam"),
}
TICKS = {
    "latch.tick": ("recalculations", "counted during learning"),
    "ready": ("ready", "the beat in which this step finished its writing"),
    "step": ("this step", "the training step that the sheets Step 1 to Step 6 show"),
}


@dataclass(frozen=True)
class Parts:
    """The objects that the sheets are made of."""

    w: Workbook
    step: Step
    trained: Trained


# --- states -------------------------------------------------------------------------------------


def begin(p: Parts) -> dict[str, Block]:
    """Add the weights of every included model, and those that learning begins with."""
    g, number = p.w.book.graph, p.w["begin.number"][0, 0].fixed

    def chosen(name: str) -> Block:
        axes, shape = g[name].axes, g[name].shape
        held = [
            g.input(f"{slug(model)}.{name}", np.reshape(weights[name], shape), axes)
            for model, weights in p.trained.items()
        ]
        first, *others = held

        def cell(i: int, j: int) -> Expression:
            found: Expression = expression(first[i, j])
            for k, other in enumerate(others, 2):
                found = IF(number == k, other[i, j], found)
            return found

        return g.table(f"start.{name}", shape, cell, axes)

    return {name: chosen(name) for name in p.step.updated}


def slug(model: str) -> str:
    """The name of an included model in names of blocks."""
    return "with_" + model.replace(" ", "_").replace(".", "_")


def progress(p: Parts) -> None:
    """Add the progress of training, in numbers."""
    g = p.w.book.graph
    made, total = clock.steps(g), g["pass.next"][0, 0]
    first = p.step.updated["W_E"].weight[0, 0]
    shown: dict[str, Expression] = {
        "made": made + 0,
        "reward.now": g["reward.mean"][0, 0] + 0,
        "reward.point": total / g["pass.count"][0, 0],
        "right.now": g["kinds"][0, 1] + 0,
        "variety.now": g["variety"][0, 1] + 0,
        "favourite.now": g["likeliest"][0, 1] & "",
        "loss.now": g["policy.loss"][0, 0] + 0,
        "moved": first - g["W_E"][0, 0],
    }
    for name, formula in shown.items():
        one(g, name, formula)


def one(g: Graph, name: str, formula: Expression) -> None:
    """Add a table of one cell."""
    g.table(name, (1, 1), lambda i, j: formula)


# --- Learn --------------------------------------------------------------------------------------


def control(ws: Composer) -> None:
    """Add the switch, the settings, the progress, and the texts of this step."""
    ws.text(
        "1. Choose ‘learn’ in the green cell.  2. Press F9, or hold it down: two recalculations "
        "make a step.  3. ‘start’ resets all weights.",
        "Choose ‘pause’ before you change anything else. If nothing moves, see the sheet How. "
        "If an entry is not valid, the default counts, and a word beside the entry says why.",
    )
    ws.cursor += 1
    top = ws.cursor
    settings(ws, SWITCH, state=clock.STATES)
    _typed(ws, BEGIN)
    settings(ws, MADE)
    ws.cursor += 1
    _typed(ws, SETTINGS)
    ws.cursor += 1
    settings(ws, PROGRESS)
    _texts(ws, top)
    ws.heading("The settings in effect")
    settings(ws, EFFECT, "count")
    settings(ws, {name: OF_LEARN[name] for name in ("beta1", "beta2", "epsilon")})
    ws.heading("The clock")
    settings(ws, RECALCULATIONS)
    settings(ws, CLOCK | TICKS, "count")


def _typed(ws: Composer, rows: Mapping[str, Sequence[str]]) -> None:
    """Add settings, each with the word that says what is wrong; names are chosen from a list."""
    g, top = ws.book.graph, ws.cursor
    settings(ws, rows)
    for row, name in enumerate(rows, top):
        if f"{name}.word" in g.blocks:
            ws.lay(g[f"{name}.word"], (row, 3), "status")
        if f"{name}.names" in g.blocks:
            at = row, CHOICES + row
            ws.sheet.lists[row, 1] = ws.lay(g[f"{name}.names"], at, "hidden").fixed


def _texts(ws: Composer, top: int) -> None:
    """The eight texts of this step, with their rewards and advantages."""
    g = ws.book.graph
    ws.sheet.put(top - 1, 5, "The eight texts of this step", "block")
    heads = {"text": "text", "reward.of_text": "reward", "advantage.of_text": "advantage"}
    for col, (name, head) in enumerate(heads.items(), 6):
        block, own = g[name], f"listed.{name.partition('.')[0]}"
        shown = g.table(
            own, block.shape, _texts_of(block) if name == "text" else _numbers_of(block)
        )
        ws.lay(shown, (top + 1, col), "word" if name == "text" else "step green", head=head)
    ws.sheet.runs.append(Run(Rect(top + 1, top + 1 + TEXTS, 5, 6), "row label", NUMBERED))
    ws.dress(g["listed.reward"].area, "bar")


def _texts_of(block: Block) -> Callable[[int, int], Expression]:
    return lambda i, j: block[i, j] & ""


def _numbers_of(block: Block) -> Callable[[int, int], Expression]:
    return lambda i, j: block[i, j] + 0


def curve(ws: Composer) -> None:
    """The chart of the reward, below the texts."""
    g, row = ws.book.graph, ws.book.places["listed.text"].top + TEXTS + 1
    series = [Series("mean reward", g["curve.x"].area, g["curve.y"].area, colour="#2E75B6")]
    ws.chart(
        Chart(
            row,
            5,
            "scatter",
            "Reward, mean of 5 steps",
            series,
            size=(460, 225),
            axes=("steps", "mean reward"),
            joined=True,
            number="0.0",
        )
    )


def places() -> list[str]:
    """The heads of the words of a text."""
    return [worded("word {n}", n=t) for t in range(1, LENGTH + 1)]


def grid(
    ws: Composer,
    block: Block,
    at: tuple[int, int],
    title: str,
    style: str,
    heads: Sequence[str] = (),
) -> Area:
    """A block with a row for each text, under its title and heads."""
    top, left = at
    ws.sheet.put(top, left, title, "block")
    ws.heads_at((top + 1, left), *(heads or places()), style="label")
    ws.sheet.runs.append(Run(Rect(top + 2, top + 2 + TEXTS, left - 1, left), "row label", NUMBERED))
    return ws.lay(block, (top + 2, left), style)


# --- states that are kept ---


def track(p: Parts) -> None:
    """Add the mean reward of every five steps, for the chart; and the random numbers."""
    g = p.w.book.graph
    ws = p.w.sheet(
        "Track",
        "the mean reward of every five steps, for the chart",
        "Each point is the mean of up to 5 steps. A complete point stays. The last point shows "
        "the current steps, so the curve grows step by step.",
    )
    clock.add_curve(g, A_POINT, g["reward.point"])
    columns(ws, {"curve.x": "steps", "curve.y": "reward"})
    ws = p.w.sheet(
        "Random",
        "the random numbers: a row for each batch of eight texts",
        "A text uses seven numbers, one for each word. After the last row, the steps begin again at "
        "the first row.",
    )
    ws.sheet.runs.append(Run(Rect(ws.cursor, ws.cursor + 1, 1, 57), "label", TOKENS))
    ws.lay(g["random"], (ws.cursor + 1, 1), "constant")
    ws.sheet.runs.append(
        Run(
            Rect(ws.cursor + 1, ws.cursor + 1 + STEPS, 0, 1),
            "row label",
            [str(k) for k in range(1, STEPS + 1)],
        )
    )


def kept(p: Parts) -> None:
    """Add the weights that it begins with, and the two latches of every state."""
    ws = p.w.sheet(
        "Weights",
        "the initial weights, and the values kept from step to step",
        LATCHES,
        "The sheet Step 1 Model shows the current weights.",
    )
    latches(
        ws,
        p.step.updated,
        (*map(slug, p.trained), "start"),
        {"": "{}", "speed ": "speed.{}", "size ": "size.{}"},
        LABELS,
    )
    g = ws.book.graph
    ws.heading("The texts of the batch, and the surprise of every word when it was drawn")
    for k, side in enumerate(clock.SIDES):
        grid(ws, g[f"latch.{side}.kept.texts"], (ws.cursor, 1 + 9 * k), side, "id")
        surprise, col = g[f"latch.{side}.policy.kept"], 20 + 3 * k
        put(ws, surprise, ws.cursor + 2, col, LABELS)
        ws.sheet.put(ws.cursor, col, side, "block")
    ws.cursor += len(TOKENS) + 3
    small_latches(
        ws,
        {
            "pass.total": "The sum of the rewards since the last point of the curve",
            "points": "The points of the curve",
        },
    )
