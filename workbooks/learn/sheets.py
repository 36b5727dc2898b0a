"""The sheets of `learn`: the places of a step's blocks, the settings, and the results."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from cellformer.engine.cells.access import Rect
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.expression import Area, Expression, expression
from cellformer.engine.cells.functions import COUNTIF, EXP, IF, MATCH, MIN
from cellformer.engine.cells.graph import Graph
from cellformer.engine.cells.name import GRADIENT
from cellformer.exporters.assemble.block_list import Labels, put, stack
from cellformer.exporters.assemble.worksheets import Workbook
from cellformer.exporters.compose.book import Chart, Run, Series
from cellformer.exporters.compose.composer import Composer
from cellformer.workbooks.learn import clock, game, step
from cellformer.workbooks.learn.step import Step

OPTIMIZERS = ("SGD", "momentum", "Adam")  # methods 0, 1 and 2
N_POINTS = 250  # passes through the corpus that the curve has room for
SETTINGS: dict[str, tuple[str, ...]] = {  # block -> what it is called, what it is for, its style
    "optimizer": ("optimizer", "SGD, momentum or Adam", "dial"),
    "rate": ("learning rate", "size of each step"),
    "beta1": ("momentum", "kept share of last direction (SGD: 0)"),
    "beta2": ("memory of sizes", "Adam: kept share of past gradient sizes"),
    "epsilon": ("epsilon", "Adam: keeps the divisor above zero"),
    "decay": ("weight decay", "pulls every weight towards 0"),
}
SWITCH = {  # the same
    "state": ("learning", "start, learn or pause", "switch"),
    "latch.tick": ("recalculations", "counted during learning", "count"),
    "made": ("steps made", "each step changes every weight once", "count"),
    "ready": ("ready", "the beat in which this step finished its writing", "count"),
}
PROGRESS = {
    "passed": ("passes", "passes through the corpus so far", "step"),
    "this_loss": ("loss of this batch", "surprise per word, in nats", "step green"),
    "mean_loss": ("loss of this pass", "mean of the batches so far", "step green"),
    "floor": ("the lowest possible loss", "(ln 3 + ln 2) / 7", "constant"),
    "moved": ("change of a weight", "the first weight of W_E", "change fine"),
}
RECALCULATIONS = {
    "recalculations": ("recalculations a step", "2 (the sheet How says when to type more)"),
}
CLOCK = {
    "beat": ("beat", "groups of recalculations so far (size: see above)"),
    "phase": ("phase", "number of the recalculation in its beat, from 0"),
    "latch.count": (
        "count",
        "completed steps (plus one if the last recalculation wrote everything)",
    ),
    "turn": ("turn", "a copy of ‘count’ for the next cell, which waits for the latches"),
    "steps": ("steps", "the count that the whole step reads"),
    "step": ("this step", "the step on the sheets Step 1 to Step 3"),
    "pass.count": ("of its pass", "number of the step in its pass"),
    "late": ("late", "a copy of ‘recalculations’"),
    "later": ("later", "a copy of ‘late’"),
    "beat.even": ("write even beat", "the beat if it is even (for ‘ready’), else -1"),
    "beat.odd": ("write odd beat", "the beat if it is odd, else -1"),
    "write.even": ("latch even", "0 keeps the value, 1 stores the next value, 2 resets"),
    "write.odd": ("latch odd", "like ‘latch even’, for odd step counts"),
}
LATCHES = (
    "A step reads the cells of one latch and writes the other latch. After an even number of "
    "steps, the step reads ‘even’. After an odd number of steps, the step reads ‘odd’."
)
HEADINGS = {
    "tokens": "The batch, as token ids: every sentence without its last word",
    "embed": "A vector for each word, and a vector for its place",
    "blocks.0.attn.scale": "Attention: each word looks at earlier words of its sentence",
    "blocks.0.mlp.W_in": "MLP: each word separately",
    "logits": "Readout: a score for every possible next word, then probabilities",
    "loss.targets": "Loss: how surprising the actual next words are",
}


@dataclass(frozen=True)
class Parts:
    """The objects that the sheets are made of."""

    w: Workbook
    step: Step
    batch: int
    a_pass: int  # steps for one pass through the corpus
    labels: Labels


def settings(
    ws: Composer,
    rows: Mapping[str, Sequence[str]],
    style: str = "input setting",
    **choices: Sequence[str],
) -> None:
    """Add blocks of one cell from the cursor on, each with its meaning, why it matters and, if it
    has one, a style of its own. `choices` are the possible values of some, listed far to the
    right."""
    for name, (what, why, *own) in rows.items():
        ws.lay(ws.book.graph[name], (ws.cursor, 1), own[0] if own else style)
        ws.sheet.put(ws.cursor, 0, what, "row label")
        ws.sheet.put(ws.cursor, 2, why, "note")
        if name in choices:
            col, n = 24 + len(ws.sheet.lists), len(choices[name])
            for k, text in enumerate(choices[name], ws.cursor):
                ws.sheet.hold(k, col, text, "hidden")
            ws.sheet.lists[ws.cursor, 1] = ws.sheet[ws.cursor : ws.cursor + n, col].fixed
        ws.cursor += 1


def method(g: Graph) -> Callable[[int, int], Expression]:
    """The optimizer's number by its name; Adam's for an unknown name."""
    named = g["optimizer"][0, 0]
    return lambda i, j: IF(named == OPTIMIZERS[0], 0, IF(named == OPTIMIZERS[1], 1, 2))


def corpus(w: Workbook, sentences: Sequence[Sequence[str]]) -> None:
    """Add the training sentences, and the vocabulary."""
    ws = w.sheet(
        "Corpus",
        "the sentences that the model learns from, and the vocabulary",
        "Each row is a sentence. Each step reads the next sentences. After the last row, the "
        "steps begin again at the top.",
        widths={0: 12, **dict.fromkeys(range(1, 9), 10), 9: 4, 10: 11, 11: 8},
    )
    top = ws.cursor
    typed = ws.typed(
        "corpus",
        sentences,
        rows=[*range(1, len(sentences) + 1)],
        cols=[f"word {k}" for k in range(1, game.LENGTH + 1)],
        style="token",
    )
    columns = ws.columns(len(game.WORDS), top, left=10)
    words = columns.typed("words", "vocabulary", game.WORDS, "constant")
    columns.computed("counts", "times", lambda i: COUNTIF(typed.fixed, words[i]), "id")
    ws.sheet.areas.append((ws.rect(typed), {
        "validate": "list",
        "source": "=" + w.book.address(words.fixed),
        "error_title": "Unknown word",
        "error_message": "Choose a word of the vocabulary.",
    }))  # fmt: skip


def read(g: Graph, words: Area, sentences: Sequence[Sequence[str]]) -> None:
    """Make the tokens, and the words that follow them, from the ids of words in cells: at first
    the words of some sentences."""
    vocabulary, n = g["words"].area.fixed, game.LENGTH - 1

    def ids(later: int) -> Callable[[int, int], Expression]:
        return lambda k, _: MATCH(words[k // n, k % n + later], vocabulary, 0) - 1

    first = step.inputs(step.ids_of(sentences, game.WORDS))
    for name, later in (("tokens", 0), ("loss.targets", 1)):
        g.fill(name, first[name])
        g.follow(name, ids(later))


def control(ws: Composer, p: Parts) -> None:
    """Add the switch, the settings, the progress, and the model's current predictions."""
    ws.text(
        "1. Choose ‘learn’ in the green cell.  2. Press F9, or hold it down: two recalculations "
        "make a step.  3. ‘start’ resets all weights.",
        "Choose ‘pause’ before you change anything else. If nothing moves after ‘learn’, or a "
        "program warns of a circular reference, see the sheet How.",
    )
    ws.cursor += 1
    settings(ws, SWITCH, state=clock.STATES)
    ws.cursor += 1
    settings(ws, SETTINGS, optimizer=OPTIMIZERS)
    ws.heading("Progress")
    settings(ws, PROGRESS)
    expected(ws, p)
    ws.heading("The clock")
    settings(ws, RECALCULATIONS)
    settings(ws, CLOCK | {"method": ("method", "0 SGD, 1 momentum, 2 Adam")}, "count")


def expected(ws: Composer, p: Parts) -> None:
    """Add the sentences of the batch, with the probability of each word but the first, given the
    words before."""
    g, surprise, n = ws.book.graph, ws.book.graph["loss.of_token"], game.LENGTH - 1

    def word(b: int) -> Callable[[int, int], Expression]:
        return lambda _, t: g["batch.words"][b, t]

    def given(b: int) -> Callable[[int, int], Expression]:
        return lambda i, j: EXP(-surprise[b * n + j, 0])

    ws.heading("Predictions: under each word, the probability that the model gives to the word")
    for b in range(p.batch):
        ws.show(
            f"sentence.{b}",
            (ws.cursor, 1),
            word(b),
            "word",
            (1, game.LENGTH),
            label=f"sentence {b + 1}",
        )
        ws.computed_at(
            f"expected.{b}", (ws.cursor + 1, 2), (1, n), given(b), "percent", dress="scale"
        )
        ws.cursor += 2


def progress(p: Parts) -> None:
    """Add the progress of training, in numbers."""
    g = p.w.book.graph
    made, loss, total = clock.steps(g), p.step.loss[0, 0], g["pass.next"][0, 0]
    g.add_tables((1, 1), {
        "made": lambda i, j: made + 0,
        "passed": lambda i, j: (made + 1) / p.a_pass,
        "this_loss": lambda i, j: expression(loss),
        "mean_loss": lambda i, j: total / g["pass.count"][0, 0],
    })  # fmt: skip
    g.input("floor", game.FLOOR)
    first = p.step.updated["W_E"].weight[0, 0]
    g.table("moved", (1, 1), lambda i, j: first - g["W_E"][0, 0])


def curve(ws: Composer) -> None:
    """The chart of the loss."""
    g = ws.book.graph
    series = [
        Series("loss", g["curve.x"].area, g["curve.y"].area, colour="#2E75B6"),
        Series(
            "the lowest possible loss", g["curve.least"][:, 0], g["curve.least"][:, 1], joined=True
        ),
    ]
    ws.chart(
        Chart(
            6,
            8,
            "scatter",
            "Loss",
            series,
            size=(520, 330),
            axes=("passes through the corpus", "nats per word"),
            joined=True,
            number="0.0",
        )
    )


def track(p: Parts) -> None:
    """Add the loss of every pass through the corpus, for the chart."""
    g = p.w.book.graph
    ws = p.w.sheet(
        "Track",
        "the mean loss of each pass through the corpus, for the chart",
        "Each pass has one point. A completed pass keeps its loss. The points after it show "
        "the current pass, so the curve gets longer.",
    )
    points, passed, mean = g["points"], g["passed"][0, 0].fixed, g["mean_loss"][0, 0].fixed
    g.add_tables(points.shape, {
        "curve.x": lambda i, j: MIN(i + 1, passed),
        "curve.y": lambda i, j: IF(passed > i + 1, points[i, 0], mean),
    })  # fmt: skip
    last = g["curve.x"][N_POINTS - 1, 0]
    g.table("curve.least", (2, 2), lambda i, j: g["floor"][0, 0] if j else last * i)
    columns(ws, {"curve.x": "passes", "curve.y": "loss", "curve.least": "least"})


def columns(ws: Composer, heads: Mapping[str, str]) -> None:
    """Add blocks of a column each, by name, side by side under their heads; the rows numbered."""
    g, top = ws.book.graph, ws.cursor + 1
    for col, (name, head) in enumerate(heads.items(), 1):
        ws.lay(g[name], (top, col), "step", head=head)
    n_rows = g[next(iter(heads))].shape[0]
    ws.sheet.runs.append(
        Run(Rect(top, top + n_rows, 0, 1), "row label", [str(k) for k in range(1, n_rows + 1)])
    )


def step_sheets(p: Parts) -> None:
    """Add every block of the step, one below another, on three sheets."""
    g, w = p.w.book.graph, p.w
    placed = w.book.places
    forward = w.sheet("Step 1 Forward", "from the words of the batch to the loss")
    back = w.sheet(
        "Step 2 Backward",
        ("how the loss changes with every number, computed backwards from the loss to the start"),
    )
    update = w.sheet("Step 3 Update", "every weight after this step")
    forward.heading("The batch: the next sentences of the corpus")
    put(forward, g["batch.words"], forward.cursor, 1, {}, style="word")
    forward.cursor += p.batch + 1
    ws = forward
    for block in [*g]:
        if block.name in placed or block.part in ("latch", "start"):
            continue
        if block.kind == "gradient" or GRADIENT in block.passes:
            ws = back
        elif ws is back:
            ws = update
        if block.name in HEADINGS:
            ws.heading(HEADINGS[block.name])
        stack(ws, block, p.labels, "the loss")


def weights(p: Parts) -> None:
    """Add the initial weights, and the two latches of every state."""
    ws = p.w.sheet(
        "Weights",
        "the initial weights, and each weight after every step",
        LATCHES,
        "The sheet Step 1 Forward shows the current weights, where the step uses them.",
    )
    latches(
        ws,
        p.step.updated,
        ("start",),
        {"": "{}", "speed ": "speed.{}", "size ": "size.{}"},
        p.labels,
    )
    small_latches(
        ws,
        {
            "pass.total": "The sum of the losses of this pass, for the curve",
            "points": "The points of the curve",
        },
    )


def latches(
    ws: Composer,
    weights: Iterable[str],
    begins: Sequence[str],
    states: Mapping[str, str],
    labels: Labels,
) -> None:
    """Add under the name of each weight the blocks that it begins with, `begins`.NAME, and the two
    latches of each of its states: their names, with {} for the weight's, by their titles."""
    g = ws.book.graph
    for name in weights:
        row, col, height = ws.cursor + 4, 1, 0
        ws.sheet.put(ws.cursor + 1, 0, name, "heading")
        blocks = {kind: g[f"{kind}.{name}"] for kind in begins}
        for what, state in states.items():
            latch = state.format(name)
            blocks |= {f"{what}{side}": g[f"latch.{side}.{latch}"] for side in clock.SIDES}
        for title, block in blocks.items():
            put(ws, block, row, col, labels)
            ws.sheet.put(row - 2, col, title, "block")
            col += block.shape[1] + 2
            height = block.shape[0]
        ws.cursor = row + height


def small_latches(ws: Composer, told: Mapping[str, str]) -> None:
    """Add the latches of states with one column, and of `ready`, with a head for each from
    `told`."""
    g = ws.book.graph
    for state, heading in told.items():
        ws.heading(heading)
        _sides(ws, {side: g[f"latch.{side}.{state}"] for side in clock.SIDES})
    ws.heading("Ready: the beat in which every written latch was read")
    _sides(ws, {f"{side} beats": g[f"latch.ready.{side}"] for side in clock.SIDES})
    put(ws, g["settled"], ws.cursor + 3, 1, {})


def _sides(ws: Composer, blocks: Mapping[str, Block]) -> None:
    for col, (title, block) in enumerate(blocks.items(), 1):
        put(ws, block, ws.cursor + 1, col, {})
        ws.sheet.put(ws.cursor, col, title, "label")
    ws.cursor += 1 + block.shape[0]
