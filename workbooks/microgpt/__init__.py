"""microgpt: a GPT of 4,192 weights that learns to write names while you watch.

Look at the names: nonsense at first, names after some hundred steps. Press F9 and see the loss
fall; or begin with the trained weights. Try a higher temperature, another name, a higher rate.

A. Karpathy's program of 200 lines (February 2026), part by part in its order: data, tokenizer,
weights, forward pass, loss, gradients, Adam, names. Its losses and its 20 names are the program's.
"""

from collections.abc import Iterator
from functools import partial
from itertools import islice
from math import log
from pathlib import Path

import numpy as np

from cellformer.engine import Model, WordList
from cellformer.engine.cells.functions import IF, MOD
from cellformer.engine.learning.training import Progress
from cellformer.engine.models import checkpoint
from cellformer.exporters.assemble.worksheets import Workbook
from cellformer.exporters.compose.book import Book
from cellformer.exporters.compose.story import Story, Suggestion
from cellformer.workbooks.learn import clock, how
from cellformer.workbooks.learn import step as of_learn
from cellformer.workbooks.microgpt import program, sheets, step
from cellformer.workbooks.microgpt.program import N_NAMES, SPEC, WORDS, Drawn
from cellformer.workbooks.microgpt.sheets import Parts

TOPIC, AFTER, LEVEL = "Learning", "learn", 3
TITLE = "microgpt: a GPT that learns to write names while you watch"
FOLDER = Path(__file__).parent.parent / "models" / "microgpt"
SEED = program.SEED
LEARNT = {  # the last lines of the sheet How
    "The learnt weights": (
        "The sheet Part 3 Weights shows the current weights: wte, wpe, and so on. Save the "
        "workbook to keep these weights in the file.",
        "‘cellformer import microgpt.xlsx -o DIR’ saves the weights as a model. Every command "
        'can use this model, for example ‘cellformer build DIR --prompt "<BOS> a n n"’.',
        "‘cellformer train microgpt -o DIR’ makes the 1,000 steps in seconds, without a "
        "spreadsheet. It gives the same weights as the choice ‘trained’ at ‘begin with’.",
    ),
}
save, is_part = checkpoint.save, checkpoint.is_part

__all__ = ["book", "figures", "is_part", "learnt", "save", "train"]


def book() -> Book:
    """The workbook, before any step."""
    return built(program.drawn(), checkpoint.load(FOLDER))


def built(drawn: Drawn, trained: Model) -> Book:
    """The workbook of weights of any size: the drawn ones, and the weights of ‘trained’."""
    g = step.graph(drawn.weights, trained.spec)
    w = Workbook("microgpt", g, iterates=True)
    control = w.sheet(
        "Learn",
        "switch learning on, press F9, and watch the names",
        widths={0: 22, 1: 11, 2: 36, 3: 2, 4: 4, 5: 17, 6: 4, 7: 17, 8: 2},
    )
    made = step.add(g, clock.add(g, sheets.A_POINT))
    step.add_writer(made, drawn)
    p = Parts(w, made, drawn, trained)
    g.input("begin", sheets.NEW)
    g.input("alphabet", program.LETTERS)
    g.input("guess", log(len(WORDS)))
    sheets.data(p)
    sheets.tokenizer(p)
    keep(p)
    sheets.counted(p)
    sheets.control(control, p)
    sheets.step_sheets(p)
    sheets.track(p)
    sheets.curve(control)
    sheets.kept(p)
    how.add(w, [loss for loss, _ in islice(step.learn(drawn, trained.spec), 3)], "Kept", LEARNT)
    w.rests = clock.rests(g)
    return w.done(story(w))


def keep(p: Parts) -> None:
    """Keep every state, and every name, from step to step."""
    g, begins = p.w.book.graph, sheets.begin(p)
    used, drawn = g["used"][0, 0], g[f"{step.WRITES}.drawn"][0, 0]
    last = g["pass.count"][0, 0] == N_NAMES
    used_next = g.table("next.used", (1, 1), lambda i, j: IF(last, 0, used + drawn))
    states = p.step.states | {"used": used_next} | clock.add_total(g, p.step.loss[0, 0])
    states |= clock.add_points(g, sheets.N_POINTS, sheets.A_POINT)
    clock.close(g, states, begins)
    count = g["latch.count"][0, 0]
    turn = IF(count == 0, -1, clock.settled(g, MOD(count, N_NAMES) + 1))
    g.input("write.name", -1)
    g.follow("write.name", lambda i, j: turn)
    sheets.names(p)
    clock.wait(g, [*states], ("latch.names",))


learnt = partial(of_learn.learnt, SPEC, WORDS)


def train(seed: int, steps: int | None = None) -> Iterator[Progress | Model]:
    """Each step's progress and, last, the model after the program's 1,000 steps, or fewer. Seed 0 is
    the program's own."""
    drawn, n = program.drawn(SEED + seed), min(steps or program.STEPS, program.STEPS)
    weights = drawn.weights
    for k, (loss, weights) in zip(range(n), step.learn(drawn), strict=False):
        yield Progress(k, n, loss, np.array([step.read(program.names()[k]).tokens]), weights)
    yield Model(SPEC, weights, WordList(WORDS))


def figures(model: Model) -> list[tuple[str, str]]:
    """The names that the model writes."""
    names = step.names(dict(model.weights), program.drawn().numbers)
    return [("names", " ".join(map(step.text, names)))]


def story(w: Workbook) -> Story:
    """The start sheet's texts, and suggested edits with their computed effects."""
    return Story(
        title=TITLE,
        source="Based on A. Karpathy, microgpt (February 2026), a GPT in 200 lines of Python. This "
        "workbook repeats that GPT in cells, with the same names and random numbers.",
        about=[
            "A GPT of 4,192 numbers, all random at first, learns to write first names, letter "
            "by letter. The GPT is small but complete.",
            (
                "The sheets show the names to read, letters as numbers, the forward pass, the "
                "loss, every gradient, the optimizer Adam, and the written names."
            ),
            "Why it matters: this workbook leaves nothing out. A chatbot’s model has more "
            "weights and learns from more text, but the steps are the same.",
            "What to do: on the sheet Learn, choose ‘learn’ in the green cell. Then hold down "
            "F9. Two presses of F9 make one training step.",
            "A step reads one name, changes every weight, and writes a name. The first written "
            "names make no sense. After a few hundred steps, the written names sound real.",
            "Choose ‘trained’ at ‘begin with’ to see at once what 1,000 steps change.",
        ],
        look=[
            "The sheet Learn shows the switch, the names that the model writes, the loss curve, "
            "and the probability of each letter.",
            "The sheets Part 1 to Part 8 show the parts of the program, in order (data, "
            "tokenizer, weights, forward pass, loss, gradients, Adam, names).",
            "The sheet How has instructions for Excel and for LibreOffice, and help if nothing "
            "moves.",
        ],
        suggestions=suggestions(w),
    )


def suggestions(w: Workbook) -> list[Suggestion]:
    """Three edits: the trained weights, another name, a higher rate."""
    rate, docs, begin = w["rate"][0, 0], w["docs"][0, 0], w["begin"][0, 0]
    loss, moved, writes = w["this_loss"][0, 0], w["moved"][0, 0], w["name.now"][0, 0]
    rare = w.edited({begin: sheets.TRAINED, docs: "zzz"})(loss)
    return [
        w.suggestion(
            "Choose ‘trained’: the model now writes ‘{then}’, not ‘{now}’. The program writes "
            "the same 20 names after 1,000 steps.",
            {begin: sheets.TRAINED},
            writes,
        ),
        w.suggestion(
            "Type ‘zzz’ as the first name: the loss is {then:.2f}, not {now:.2f}. Random weights "
            f"give all names about the same loss. With ‘trained’ the loss is {rare:.2f}, because "
            "no real name looks like ‘zzz’.",
            {docs: "zzz"},
            loss,
        ),
        w.suggestion(
            "Type ‘0.1’, a rate ten times as large: this step moves the first weight of <BOS> "
            "by {then:+.2f}, not {now:+.2f}. Let the model learn: at first, the loss rises "
            "above the loss of a random guess.",
            {rate: 0.1},
            moved,
        ),
    ]
