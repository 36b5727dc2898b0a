"""learn: a small transformer that learns a game in the spreadsheet, a step at each recalculation.

Look at the loss falling towards the least that is possible, which is known. Try a higher learning
rate, or plain gradient descent instead of Adam.

One layer, two heads, 10 dimensions, 970 weights; 24 sentences. The workbook has iteration switched
on, and learns only while its own switch says so. `cellformer import` takes out what it has learnt.
"""

from collections.abc import Sequence

import numpy as np

from engine import Model, ModelSpec, WordList
from engine.cells.expression import Expression, expression
from engine.cells.functions import IF, INDEX, MATCH, MOD
from exporters.book import Book
from exporters.story import Story
from exporters.tables import Workbook
from workbooks.learn import clock, game, sheets, step
from workbooks.learn.sheets import Parts

TOPIC, AFTER, LEVEL = "A whole model", "dialogue-game", 3
TITLE = "learn: a small transformer that learns while you watch"
SPEC = ModelSpec(
    d_vocab=len(game.WORDS), d_model=10, n_ctx=game.LENGTH - 1, n_layers=1, n_heads=2, d_head=5,
    d_mlp=20, position="learned", tied=True,
)  # fmt: skip
BATCH = 4  # sentences
SEED = 0  # of the weights that it starts from


def book() -> Book:
    """The workbook, with nothing learnt yet."""
    return built(SPEC, BATCH)


def built(spec: ModelSpec, batch: int, seed: int = SEED) -> Book:
    """The workbook of a model of any size."""
    starting = step.start(spec, seed)
    g = step.graph(spec, starting, game.LENGTH - 1)
    w = Workbook(TITLE.partition(":")[0], g, iterates=True)
    control = w.sheet("Learn", "switch learning on, press F9, and watch the loss fall")
    control.widths({0: 22, 1: 11})
    sheets.corpus(w, game.sentences())
    counted = clock.add(g, len(game.sentences()) // batch)
    made = step.add(g, batch, step=counted)
    places = [f"{b}·{t}" for b in range(1, batch + 1) for t in range(1, game.LENGTH)]
    p = Parts(w, made, batch, {"token": places, "vocab": game.WORDS})
    follow(p)
    sheets.progress(p)
    sheets.control(control, p)
    sheets.step_sheets(p)
    sheets.track(p)
    sheets.curve(control)
    sheets.weights(p)
    return w.done(story(w))


def follow(p: Parts) -> None:
    """Have the batch follow the corpus, and every state what the step makes of it."""
    g, w, n = p.step.graph, p.w, game.LENGTH - 1
    corpus, vocabulary = w["corpus"].fixed, w["words"].fixed

    def word(i: int, j: int) -> Expression:
        return INDEX(corpus, MOD(clock.steps(g) * p.batch + i, p.n_sentences) + 1, j + 1)

    def identity(k: int, later: int) -> Expression:
        spoken = g["batch.words"][k // n, k % n + later].fixed
        return MATCH(spoken, vocabulary, 0) - 1

    g.table("batch.words", (p.batch, game.LENGTH), word)
    first = step.inputs(step.ids_of(game.sentences()[: p.batch], game.WORDS))
    for name, later in (("tokens", 0), ("loss.targets", 1)):
        g.fill(name, first[name])
        g.follow(name, lambda i, j, later=later: identity(i, later))
    g.input("optimizer", sheets.OPTIMIZERS[-1])
    named = [x for x in sheets.OPTIMIZERS]
    g.follow("method", lambda i, j: chosen(g["optimizer"][0, 0], named))
    for name, after in p.step.states.items():
        begins = g.input(f"start.{name}", g.inputs[name], g[name].axes) if name in p.step.updated else None
        clock.close(g, name, after, begins)
    clock.add_total(g, p.step.loss[0, 0])
    clock.add_points(g, sheets.N_POINTS, p.a_pass)


def chosen(cell: Expression, names: Sequence[str]) -> Expression:
    """Which of some names a cell has, counted from 0; the last one where it has none of them."""
    found: Expression = expression(len(names) - 1)
    for k, name in reversed([*enumerate(names[:-1])]):
        found = IF(cell == name, k, found)
    return found


def story(w: Workbook) -> Story:
    """What the start sheet says."""
    return Story(TITLE, "Written for this workbook.", ["x"], ["y"], [])
