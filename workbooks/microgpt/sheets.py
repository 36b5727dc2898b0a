"""The sheets of microgpt: the parts of the program in its order, its settings, and its results."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_

import numpy as np

from cellformer.engine.cells.access import Rect
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.expression import Area, Expression, expression
from cellformer.engine.cells.functions import (
    EXP,
    FIND,
    IF,
    IFERROR,
    INDEX,
    LEN,
    LOWER,
    MID,
    MIN,
    MOD,
)
from cellformer.engine.cells.name import GRADIENT
from cellformer.engine.models.model import Model
from cellformer.exporters.assemble.block_list import stack
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
from cellformer.workbooks.microgpt import program, step
from cellformer.workbooks.microgpt.program import BOS, N_NAMES, PLACES, STEPS, TOLD, WORDS, Drawn
from cellformer.workbooks.microgpt.step import WRITES, Step

A_POINT = N_NAMES  # steps whose mean loss is a point of the curve
N_POINTS = STEPS // A_POINT
NEW, TRAINED = BEGINNINGS = ("new", "trained")
LABELS = {
    "token": [str(t) for t in range(PLACES)],
    "n_ctx": [str(t) for t in range(PLACES)],
    "vocab": list(WORDS),
}
SWITCH = {  # block -> what it is called, what it is for, its style
    "state": ("learning", "start, learn or pause", "switch"),
    "begin": ("begin with", "new: random weights; trained: 1,000 steps", "dial"),
    "made": ("steps made", "each step changes every weight once", "count"),
    "doc.now": ("it reads", "the name of this step", "word"),
    "this_loss": ("loss", "mean surprise per letter, in nats", "step green"),
    "mean_loss": ("mean loss", "mean of up to 20 steps: one curve point", "step green"),
    "guess": ("a guess", "the loss of a random guess: ln 27", "constant"),
    "name.now": ("it writes", "a name from the current weights", "word"),
}
SETTINGS: dict[str, tuple[str, ...]] = {  # the same
    "rate": ("learning rate", "rate at the first step (learning_rate)"),
    "num_steps": ("steps", "steps to a rate of 0 (num_steps)"),
    "beta1": ("beta1", "Adam: share of m that is kept"),
    "beta2": ("beta2", "Adam: share of v that is kept"),
    "epsilon": ("epsilon", "Adam: avoids division by 0 (eps_adam)"),
    f"{WRITES}.temperature": ("temperature", "lower: safer names; higher: bolder names"),
    "lr_t.now": ("rate of this step", "lr_t: this rate is 0 after the last step", "step green"),
    "moved": ("change of a weight", "first weight of <BOS> in wte", "change fine"),
}
TICKS = {
    "latch.tick": ("recalculations", "counted during learning"),
    "ready": ("ready", "the beat in which this step finished its writing"),
}
NAME = {
    "write.name": (
        "name",
        ("place of the new name in the list; -1 brings back the names at the start"),
    ),
}
FORWARD = {  # the first block of each part of `gpt(token_id, pos_id, keys, values)`
    "tokens": "x = wte[token_id] + wpe[pos_id]: the vector of a letter plus the vector of its place",
    "ln_embed.eps": "x = rmsnorm(x): each letter's vector, divided by its root mean square",
    "blocks.0.resid_pre": "1) Multi-head attention: x_residual = x, then x = rmsnorm(x)",
    "blocks.0.attn.sqrt_d_head": "attn_logits = q · k / head_dim ** 0.5, attn_weights = softmax(attn_logits), for each of four heads",
    "blocks.0.attn_out": "x = linear(x_attn, attn_wo), then x = x + x_residual",
    "blocks.0.ln2.eps": "2) MLP: x = rmsnorm(x), mlp_fc1, relu, mlp_fc2, then x = x + x_residual",
    "resid_final": "logits = linear(x, lm_head), and probs = softmax(logits)",
}
DRAWING = {  # the blocks that draw a name
    f"{WRITES}.start": "where each letter's probability starts, on a line from 0 to the sum",
    f"{WRITES}.chance": "the random number of each letter",
    f"{WRITES}.picked": "id of the letter that the random number picks: random.choices",
    f"{WRITES}.length": "number of letters before the first <BOS>",
    f"{WRITES}.drawn": "how many random numbers this name uses",
}


@dataclass(frozen=True)
class Parts:
    """The objects that the sheets are made of."""

    w: Workbook
    step: Step
    drawn: Drawn
    trained: Model


def part(p: Parts, number: int, name: str, purpose: str) -> Composer:
    """The sheet of a part of the program."""
    return p.w.sheet(f"Part {number} {name}", purpose)


def data(p: Parts) -> None:
    """Add the names, and the name of this step."""
    ws = part(p, 1, "Data", "docs: the model learns from these names, one name per step")
    g, names = ws.book.graph, program.names()
    ws.text(
        "The program shuffles 32,033 names and makes 1,000 steps. The program reads these names "
        "in this order. You can type other names, with letters from a to z.",
        "Every other character counts as <BOS>, the token that begins and ends a name.",
    )
    ws.cursor += 1
    ws.widths({0: 12, 1: 20})
    g.input("docs", np.array([[name] for name in names], dtype=object))
    docs = g["docs"].area.fixed
    now = IFERROR(LOWER(INDEX(docs, MOD(clock.steps(g), len(names)) + 1, 1)), "")
    g.table("doc", (1, 1), lambda i, j: now)
    settings(ws, {"doc": ("doc", "the name of this step: docs[step % len(docs)]", "word")})
    ws.cursor += 1
    top = ws.cursor
    ws.lay(g["docs"], (top, 1), "token")
    ws.sheet.runs.append(Run(Rect(top, top + len(names), 0, 1), "row number"))


def tokenizer(p: Parts) -> None:
    """Add the ids of letters, and this step's name as ids."""
    ws = part(
        p,
        2,
        "Tokenizer",
        "uchars and BOS: letters become numbers, and names become lists of numbers",
    )
    g = ws.book.graph
    ws.widths({0: 12, 1: 32})
    ws.text(
        "tokens = [BOS] + [uchars.index(ch) for ch in doc] + [BOS], and n = min(block_size, len(tokens) - 1)",
        style="equation",
    )
    ws.cursor += 1
    settings(ws, {"alphabet": ("uchars", "", "constant")})
    doc, letters = g["doc"][0, 0].fixed, g["alphabet"][0, 0].fixed

    def letter(t: int, _: int) -> Expression:
        return (
            IF(t <= LEN(doc), MID(doc, t, 1), IF(LEN(doc) + 1 == t, WORDS[BOS], ""))
            if t
            else expression(WORDS[BOS])
        )

    def number(t: int, _: int) -> Expression:
        here = g["letters"][t, 0]
        return IF(LEN(here) == 1, IFERROR(FIND(here, letters) - 1, BOS), BOS)

    g.add_tables((PLACES + 1, 1), {"letters": letter, "ids": number})
    g.table("n", (1, 1), lambda i, j: MIN(PLACES, LEN(doc) + 1))
    settings(ws, {"n": ("n", "number of predicted letters, including the final <BOS>", "count")})
    ws.cursor += 1
    top = ws.cursor + 1
    for col, (name, style) in enumerate((("letters", "word"), ("ids", "id")), 1):
        ws.sheet.put(ws.cursor, col, name, "head")
        ws.lay(g[name], (top, col), style)
    ws.sheet.runs.append(Run(Rect(top, top + PLACES + 1, 0, 1), "row number"))
    first = step.read(program.names()[0])
    n, ids = g["n"][0, 0].fixed, g["ids"]
    g.follow_all({
        "tokens": lambda t, _: ids[t, 0] + 0,
        "loss.targets": lambda t, _: ids[t + 1, 0] + 0,
        "loss.share": lambda t, _: IF(t < n, 1 / n, 0),
    })  # fmt: skip
    assert first.tokens == g.inputs["tokens"].ravel().tolist()


def begin(p: Parts) -> dict[str, Block]:
    """Add the initial weights, drawn or trained: the block of each weight."""
    g = p.w.book.graph
    fresh = g["begin"][0, 0].fixed == TRAINED

    def chosen(name: str, new: np.ndarray, trained: np.ndarray) -> Block:
        drawn, learnt = (g.input(f"{k}.{name}", x) for k, x in ((NEW, new), (TRAINED, trained)))
        return g.table(
            f"start.{name}",
            drawn.shape,
            lambda i, j: IF(fresh, learnt[i, j], drawn[i, j]),
            g[name].axes,
        )

    return {
        name: chosen(name, g.inputs[name], np.reshape(p.trained.weights[name], g[name].shape))
        for name in p.step.moved
    }


def names(p: Parts) -> None:
    """Add the names that the model has written: the last of each place in the list, kept."""
    g, weights = p.w.book.graph, (p.drawn.weights, dict(p.trained.weights))
    lists = [step.names(w, p.drawn.numbers, p.trained.spec) for w in weights]
    for kind, begun in zip(BEGINNINGS, lists, strict=True):
        g.input(f"{kind}.names", begun)
    ids, slot = g[f"{WRITES}.picked"], g["write.name"][0, 0].fixed
    fresh = g["begin"][0, 0].fixed == TRAINED
    g.input("latch.names", lists[0])
    ends = g[f"{WRITES}.length"][0, 0].fixed

    def kept(k: int, t: int) -> Expression:
        own = g["latch.names"]
        told, first = (
            clock.chained(own, k * PLACES + t, slot),
            [g[f"{kind}.names"][k, t] for kind in reversed(BEGINNINGS)],
        )
        return IF(
            told < 0,
            IF(fresh, *first),
            IF(slot == k + 1, IF(t < ends, ids[t, 0].fixed, BOS), own[k, t]),
        )

    def word(k: int, _: int) -> Expression:
        letters = [
            MID(g["alphabet"][0, 0].fixed, g["latch.names"][k, t] + 1, 1) for t in range(PLACES)
        ]
        return joined(letters)

    g.follow("latch.names", kept)
    g.table("names", (N_NAMES, 1), word)
    now = [
        MID(g["alphabet"][0, 0].fixed, IF(t < ends, ids[t, 0], BOS) + 1, 1) for t in range(PLACES)
    ]
    g.table("name", (1, 1), lambda i, j: joined(now))


def joined(texts: Sequence[Expression]) -> Expression:
    """Texts, one after another."""
    return reduce(and_, texts)


def counted(p: Parts) -> None:
    """Add the progress of training, in numbers."""
    g = p.w.book.graph
    made, loss, total = clock.steps(g), p.step.loss[0, 0], g["pass.next"][0, 0]
    first = p.step.moved["W_E"].weight[BOS, 0]
    g.add_tables((1, 1), {
        "made": lambda i, j: made + 0,
        "this_loss": lambda i, j: expression(loss),
        "mean_loss": lambda i, j: total / g["pass.count"][0, 0],
        "doc.now": lambda i, j: g["doc"][0, 0] & "",
        "name.now": lambda i, j: g["name"][0, 0] & "",
        "lr_t.now": lambda i, j: expression(g["lr_t"][0, 0]),
        "moved": lambda i, j: first - g["W_E"][BOS, 0],
    })  # fmt: skip


def control(ws: Composer, p: Parts) -> None:
    """Add the switch, the settings, the progress, and the names."""
    ws.text(
        "1. Choose ‘learn’ in the green cell.  2. Press F9, or hold down F9: two recalculations "
        "make one step, with one name.  3. Choose ‘start’ to forget all learning.",
        "Every step also writes a name with the current weights. Choose ‘pause’ before you "
        "change anything else. If nothing moves, see the sheet How.",
    )
    ws.cursor += 1
    top = ws.cursor
    settings(ws, SWITCH, state=clock.STATES, begin=BEGINNINGS)
    ws.cursor += 1
    settings(ws, SETTINGS)
    _names(ws, top)
    _expected(ws)
    ws.cursor += PLACES
    ws.heading("The clock")
    settings(ws, RECALCULATIONS)
    settings(ws, TICKS | CLOCK | NAME, "count")


def _copied(texts: Area) -> Callable[[int, int], Expression]:
    """The formulas that repeat some texts."""
    return lambda i, j: texts[i, 0] & ""


def _names(ws: Composer, top: int) -> None:
    """The names, in two columns."""
    g, half = ws.book.graph, N_NAMES // 2
    ws.sheet.put(top - 1, 4, "Written names: a new name replaces the oldest name", "block")
    for k in range(2):
        of_it = g["names"][k * half : (k + 1) * half, 0]
        ws.lay(g.table(f"listed.{k}", (half, 1), _copied(of_it)), (top, 5 + 2 * k), "word")
        ws.sheet.runs.append(
            Run(
                Rect(top, top + half, 4 + 2 * k, 5 + 2 * k),
                "row label",
                [str(k * half + i + 1) for i in range(half)],
            )
        )


def _expected(ws: Composer) -> None:
    """Add this step's name below the names, with the probability of each letter."""
    g, top = ws.book.graph, ws.book.places["listed.0"].top + N_NAMES // 2 + 1
    surprise, letters, n = g["loss.of_token"], g["letters"], g["n"][0, 0]
    ws.sheet.put(top, 4, "Current name, and the probability of each letter", "block")
    expected = g.table("expected", (PLACES, 1), lambda t, _: IF(t < n, EXP(-surprise[t, 0]), ""))
    spelt = g.table("spelt", (PLACES, 1), lambda t, _: letters[t + 1, 0] & "")
    ws.lay(spelt, (top + 1, 5), "word")
    ws.lay(expected, (top + 1, 7), "percent", dress="scale")


def curve(ws: Composer) -> None:
    """The chart of the loss."""
    g = ws.book.graph
    series = [
        Series("loss", g["curve.x"].area, g["curve.y"].area, colour="#2E75B6"),
        Series("a guess", g["curve.guess"][:, 0], g["curve.guess"][:, 1], joined=True),
    ]
    ws.chart(
        Chart(
            6,
            9,
            "scatter",
            "Loss, mean of 20 steps",
            series,
            size=(390, 300),
            axes=("steps", "nats per letter"),
            joined=True,
            number="General",
        )
    )


def track(p: Parts) -> None:
    """Add the mean loss of every 20 steps, for the chart."""
    g = p.w.book.graph
    ws = p.w.sheet(
        "Track",
        "the mean loss of every 20 steps, for the chart",
        "Each point is the mean of up to 20 steps. A complete point stays. The last point "
        "shows the current steps, so the curve grows step by step.",
    )
    clock.add_curve(g, A_POINT, g["mean_loss"])
    g.table("curve.guess", (2, 2), lambda i, j: g["guess"][0, 0] if j else expression(STEPS * i))
    columns(ws, {"curve.x": "steps", "curve.y": "loss", "curve.guess": "guess"})


def step_sheets(p: Parts) -> None:
    """Add every block of the step, part by part, in the order of computation."""
    sheets = {
        "weights": part(p, 3, "Weights", "state_dict: the current 4,192 numbers"),
        "forward": part(p, 4, "Forward", "gpt(): from the letters to the probabilities of the next letter"),
        "loss": part(p, 5, "Loss", "-log(probs[target_id]) at each place, and the mean"),
        "back": part(p, 6, "Backward", "loss.backward(): how the loss changes with every number"),
        "adam": part(p, 7, "Adam", "m, v, their corrections, the rate, and every weight after this step"),
        "names": part(p, 8, "Names", "inference: the model writes a name, letter by letter"),
    }  # fmt: skip
    sheets["adam"].text(
        "m[i] = beta1 * m[i] + (1 - beta1) * p.grad           v[i] = beta2 * v[i] + (1 - beta2) * p.grad ** 2",
        "m_hat = m[i] / (1 - beta1 ** (step + 1))           v_hat = v[i] / (1 - beta2 ** (step + 1))           p.data -= lr_t * m_hat / (v_hat ** 0.5 + eps_adam)",
        style="equation",
    )  # fmt: skip
    _random(sheets["names"], p)
    placed = p.w.book.places
    for block in [*p.w.book.graph]:
        elsewhere = block.part in (*BEGINNINGS, "latch", "start") or block.name in ELSEWHERE
        if block.name not in placed and not elsewhere:
            _one(sheets[_kind(p, block)], block)
    settings(sheets["names"], {"name": ("name", "the name that this step writes", "word")})


ELSEWHERE = ("names", "name", "settled")


def _kind(p: Parts, block: Block) -> str:
    """The sheet of a block of the step."""
    if block.part == WRITES or block.leaf == "used":
        return "names"
    if block.kind == "weight":
        return "weights"
    if block.kind == "gradient" or GRADIENT in block.passes or "turned" in block.passes:
        return "back"
    if block.part in ("next", "m", "v") or block.name in ("lr_t", "filled_m", "filled_v"):
        return "adam"
    return "loss" if block.name.startswith(("loss", "pass.", "points")) else "forward"


def _one(ws: Composer, block: Block) -> None:
    """A block under its heading, with the program's name of a weight, or its purpose."""
    if block.name in FORWARD:
        ws.heading(FORWARD[block.name])
    if block.kind == "weight":
        ws.text(f"In the program: {TOLD[block.leaf]}", style="block")
    if block.name in DRAWING:
        ws.text(DRAWING[block.name], style="block")
    stack(ws, block, LABELS, "the loss")


def _random(ws: Composer, p: Parts) -> None:
    """The random numbers, and how many of them are used."""
    ws.text(
        "The program draws the random weights first. Then the program draws these random "
        "numbers, in this order. After every 20 names, the sheet starts again with the first "
        "random number.",
        "After 1,000 steps the learning rate is 0. The next 20 steps change no weight. These "
        "steps write the 20 names that the program prints.",
    )  # fmt: skip
    ws.cursor += 1
    g = ws.book.graph
    ws.sheet.put(ws.cursor, 1, "random", "block")
    ws.lay(g["random"], (ws.cursor + 1, 1), "constant")
    ws.cursor += N_NAMES + 2


def kept(p: Parts) -> None:
    """Add the weights that it begins with, and the two latches of every state."""
    ws = p.w.sheet(
        "Kept",
        "the initial weights, and the values kept from step to step",
        LATCHES,
        "The sheet Part 3 Weights shows the current weights.",
    )
    g, states = ws.book.graph, {"": "{}", "m ": "m.{}", "v ": "v.{}"}
    latches(ws, p.step.moved, (*BEGINNINGS, "start"), states, LABELS)
    ws.heading("Names, as ids: names at the start for ‘new’ and ‘trained’, then the kept names")
    col = 1
    for title in (*BEGINNINGS, "latch"):
        ws.sheet.put(ws.cursor, col, title, "block")
        ws.lay(g[f"{title}.names"], (ws.cursor + 1, col), "id")
        col += PLACES + 2
    ws.lay(g["names"], (ws.cursor + 1, col), "word")
    ws.cursor += N_NAMES + 2
    small_latches(
        ws,
        {
            "pass.total": "The sum of the losses since the last point of the curve",
            "used": "The random numbers used",
            "points": "The points of the curve",
        },
    )
