"""learn: a small transformer that learns a game in the spreadsheet, a step per two recalculations.

Look at the loss falling towards its lowest possible value, which is known. Try a higher learning
rate, or plain gradient descent instead of Adam.

One layer, two heads, 10 dimensions, 970 weights; 24 sentences. The workbook has iteration switched
on, and learns only while its own switch is on. `cellformer import` saves the trained model.
"""

import math
from functools import partial
from itertools import islice

from cellformer.engine import ModelSpec
from cellformer.engine.cells.functions import INDEX, MOD
from cellformer.engine.models.architectures import decoder
from cellformer.engine.models.forward import weight_shapes
from cellformer.exporters.assemble.worksheets import Workbook
from cellformer.exporters.compose.book import Book
from cellformer.exporters.compose.story import Story, Suggestion
from cellformer.workbooks.learn import clock, game, how, sheets, step
from cellformer.workbooks.learn.sheets import Parts

TOPIC, AFTER, LEVEL = "Learning", "unrolled", 3
TITLE = "learn: a small transformer that learns while you watch"
SPEC = ModelSpec(
    d_vocab=len(game.WORDS), d_model=10, n_ctx=game.LENGTH - 1, n_layers=1, n_heads=2, d_head=5,
    d_mlp=20, position="learned", tied=True,
)  # fmt: skip
BATCH = 4  # sentences
SEED = 0  # of the weights that it starts from


def book() -> Book:
    """The workbook, before any step."""
    return built(SPEC, BATCH, step.RATE)


def built(spec: ModelSpec, batch: int, rate: float) -> Book:
    """The workbook of a model of any size."""
    g = step.graph(spec, step.start(spec, SEED), game.LENGTH - 1)
    w = Workbook(TITLE.partition(":")[0], g, iterates=True)
    control = w.sheet(
        "Learn", "switch learning on, press F9, and watch the loss fall", widths={0: 22, 1: 11}
    )
    sheets.corpus(w, game.sentences())
    a_pass = len(game.sentences()) // batch
    made = step.add(g, batch, rate, clock.add(g, a_pass))
    ids = step.ids_of(game.sentences(), game.WORDS)
    losses = [loss for loss, _ in islice(step.learn(made, ids, batch), 3)]
    places = [f"{b}·{t}" for b in range(1, batch + 1) for t in range(1, game.LENGTH)]
    p = Parts(w, made, batch, a_pass, {"token": places, "vocab": game.WORDS})
    follow(p)
    sheets.progress(p)
    sheets.control(control, p)
    sheets.step_sheets(p)
    sheets.track(p)
    sheets.curve(control)
    sheets.weights(p)
    how.add(w, losses)
    w.rests = clock.rests(g)
    return w.done(story(w))


def follow(p: Parts) -> None:
    """Make the batch follow the corpus, and every state follow the step's result."""
    g, corpus = p.step.graph, p.w["corpus"].fixed
    n_sentences = len(game.sentences())

    g.table(
        "batch.words",
        (p.batch, game.LENGTH),
        lambda i, j: INDEX(corpus, MOD(clock.steps(g) * p.batch + i, n_sentences) + 1, j + 1),
    )
    sheets.read(g, g["batch.words"].area.fixed, game.sentences()[: p.batch])
    g.input("optimizer", sheets.OPTIMIZERS[-1])
    g.follow("method", sheets.method(g))
    begins = {
        name: g.input(f"start.{name}", g.inputs[name], g[name].axes) for name in p.step.updated
    }
    states = p.step.states | clock.add_total(g, p.step.loss[0, 0])
    states |= clock.add_points(g, sheets.N_POINTS, p.a_pass)
    clock.close(g, states, begins)
    clock.wait(g, [*states])


learnt = partial(step.learnt, SPEC, game.WORDS)


def story(w: Workbook) -> Story:
    """The start sheet's texts, and suggested edits with their computed effects."""
    n = sum(math.prod(shape) for shape in weight_shapes(decoder.forward, SPEC).values())
    return Story(
        title=TITLE,
        source="Written for this workbook. The game is based on L. Erzegovesi, The Final Step "
        "(2026).",
        about=[
            f"A transformer of {n} numbers, all random at first, learns a small game from {len(game.sentences())} sentences on the sheet Corpus.",
            "One step of learning reads a few sentences. The loss measures how surprising each "
            "next word was.",
            "The chain rule then gives the gradient: how the loss changes with every weight. "
            "The step moves every weight a little against its gradient.",
            "Why it matters: training consists only of such steps. An expensive model only has "
            "more weights, steps and sentences.",
            "What to do: on the sheet Learn choose ‘learn’ in the green cell, and hold down F9. Two presses of F9 make one step.",
            f"The lowest possible loss of this game is {game.FLOOR:.3f}. After 450 steps, the "
            "loss over all 24 sentences is less than 0.02 above this value.",
        ],
        look=[
            "The sheet Learn shows the curve of the loss. Below the settings, you see the "
            "probability that the model gives to each next word.",
            "The sheets Step 1 to Step 3 show every number of the step: forward to the loss, "
            "back from the loss, then new weights.",
            "The sheet How has instructions for Excel and for LibreOffice, and help if nothing "
            "moves.",
        ],
        suggestions=suggestions(w),
    )


def suggestions(w: Workbook) -> list[Suggestion]:
    """Three edits with their effect on the first step: another rate, another optimizer, another
    word."""
    rate, optimizer, corpus = w["rate"][0, 0], w["optimizer"][0, 0], w["corpus"]
    moved, loss = w["moved"][0, 0], w["this_loss"][0, 0]
    plain = {optimizer: "SGD"}
    now = w.now(moved)
    return [
        w.suggestion(
            "Type ‘0.2’, ten times the rate: this step moves the first weight by {then:+.2f}, "
            "not {now:+.2f}. Then let the model learn: the loss rises far above its start, and "
            "never settles.",
            {rate: 0.2},
            moved,
        ),
        w.suggestion(
            "Choose ‘SGD’, plain gradient descent: this step moves the first weight by "
            f"{{then:.5f}}. Adam moves every weight by {abs(now):.2f}. Then let the model learn: "
            "after 1,000 steps the loss is still 0.3 above the minimum.",
            plain,
            moved,
        ),
        w.suggestion(
            "Choose ‘uno’ as the third word of the first sentence. This word breaks a rule: the "
            "loss of the batch is {then:.3f}, not {now:.3f}. Then let the model learn: the final "
            "loss is a little higher, because the rule now has an exception.",
            {corpus[0, 2]: "uno"},
            loss,
        ),
    ]
