"""unrolled: five training steps, one after another, every number in view and no circular reference.

Look at the curve: the loss of a sentence after each step. Try another learning rate, or another
optimizer: all five steps follow at once.

The same step as in the workbook `learn`, for a smaller model, laid out five times: for programs
without iterative calculation, and to see how one step's weights become the next one's.
"""

from cellformer.engine import ModelSpec
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.expression import expression
from cellformer.exporters.assemble.block_list import stack
from cellformer.exporters.assemble.worksheets import Workbook
from cellformer.exporters.compose.book import Book, Chart, Series
from cellformer.exporters.compose.composer import Composer
from cellformer.exporters.compose.story import Story, Suggestion
from cellformer.workbooks.learn import game, sheets, step

TOPIC, AFTER, LEVEL = "Learning", "one-step", 3
TITLE = "unrolled: five steps of learning, one after another"
SPEC = ModelSpec(
    d_vocab=len(game.WORDS), d_model=4, n_ctx=game.LENGTH - 1, n_layers=1, n_heads=1, d_head=4,
    d_mlp=6, position="learned", tied=True,
)  # fmt: skip
N_STEPS, N_SENTENCES, RATE, SEED = 5, 1, 0.1, 1


def book() -> Book:
    """The workbook."""
    g = step.graph(SPEC, step.start(SPEC, SEED), game.LENGTH - 1)
    w = Workbook("unrolled", g)
    control = w.sheet(
        "Learn", "training settings, and the loss of every step", widths={0: 22, 1: 11, 2: 36}
    )
    sheets.corpus(w, game.sentences()[:N_SENTENCES])
    first = step.add(g, N_SENTENCES, RATE)
    g.input("optimizer", sheets.OPTIMIZERS[-1])
    g.follow("method", sheets.method(g))
    sheets.read(w.book.graph, w["corpus"], game.sentences()[:N_SENTENCES])
    steps = unrolled(first)
    settings(control, steps)
    for number, blocks in enumerate(steps, 1):
        ws = w.sheet(f"Step {number}", "forward pass, loss, gradients, and the new weights")
        for block in blocks:
            if block.name not in w.book.places:
                stack(ws, block, labels(), "the loss")
    curve(control)
    return w.done(story(w))


def labels() -> dict[str, list[str]]:
    """The labels of the axes: word and sentence, and the vocabulary."""
    places = [f"{b}·{t}" for b in range(1, N_SENTENCES + 1) for t in range(1, game.LENGTH)]
    return {"token": places, "vocab": list(game.WORDS)}


def unrolled(first: step.Step) -> list[list[Block]]:
    """Add the steps after the first, each with the weights after the previous one; returns the
    blocks of every step."""
    g = first.graph
    once, found = list(g), [list(g)]
    names = {name: after.name for name, after in first.states.items()}
    for number in range(2, N_STEPS + 1):
        before = f"step{number - 1}." if number > 2 else ""
        others = {name: g[before + after] for name, after in names.items()}
        others["step"] = g.input(f"step{number}.step", number)
        g.at(f"step{number}").copy_with(others, once)
        found.append([block for block in g if f"step{number}" in block.passes])
    return found


def settings(ws: Composer, steps: list[list[Block]]) -> None:
    """Add the settings of training, and the loss before each step."""
    g = ws.book.graph
    ws.text(
        "Change the optimizer or a number: all steps are recomputed at once. Each step starts "
        "from the weights of the previous step."
    )
    ws.cursor += 1
    sheets.settings(ws, sheets.SETTINGS, optimizer=sheets.OPTIMIZERS)
    ws.heading("The loss of the sentence, in nats for each word")
    found = [block for blocks in steps for block in blocks if block.leaf == "loss" and block.op]
    losses = [block for block in found if block.kind != "gradient"]
    g.table("losses", (N_STEPS, 1), lambda i, j: expression(losses[i][0, 0]))
    g.input("number", [[k] for k in range(N_STEPS)])
    for col, (name, style) in enumerate({"number": "id", "losses": "step green"}.items()):
        ws.lay(g[name], (ws.cursor + 1, col), style)
        ws.sheet.put(ws.cursor, col, ("steps made", "loss")[col], "head")
    ws.cursor += N_STEPS + 2


def curve(ws: Composer) -> None:
    """The chart of the losses."""
    g = ws.book.graph
    ws.chart(
        Chart(
            6,
            8,
            "scatter",
            "Loss",
            [Series("loss", g["number"].area, g["losses"].area)],
            size=(520, 330),
            axes=("steps made", "nats per word"),
            joined=True,
            number="0.0",
        )
    )


def story(w: Workbook) -> Story:
    """The start sheet's texts, and suggested edits with their computed effects."""
    losses = w.now(w["losses"]).ravel()
    return Story(
        title=TITLE,
        source="Written for this workbook. The game is based on L. Erzegovesi, The Final Step "
        "(2026).",
        about=[
            "A very small transformer makes five training steps on one sentence. Each step has "
            "its own sheet.",
            "The sheet shows the forward pass, the loss, all gradients and the new weights. The "
            "next sheet starts from these weights.",
            "Why it matters: nothing is hidden in a loop. You can follow the effect of an "
            "optimizer, a rate or a momentum from cell to cell.",
            f"What to do: change a setting on the sheet Learn. As built, the loss falls from {losses[0]:.2f} to {losses[-1]:.2f} in four steps.",
            "The workbook ‘learn’ repeats the same step each time you recalculate. This workbook "
            "does not need iterative calculation in any spreadsheet program.",
        ],
        look=[
            "The sheet Learn shows the settings, and the curve of the loss.",
            "The sheets Step 1 to Step 5 show every computation of a step, from top to bottom. "
            "Blocks on the sheet Step 3 have names like ‘step3.logits’.",
            "Layers and heads are counted from 0: the only head is head 0.0.",
        ],
        suggestions=suggestions(w),
    )


def suggestions(w: Workbook) -> list[Suggestion]:
    """Three edits: a rate that is too large, plain gradient descent, another word."""
    rate, optimizer, corpus = w["rate"][0, 0], w["optimizer"][0, 0], w["corpus"]
    last = w["losses"][N_STEPS - 1, 0]
    return [
        w.suggestion(
            "Type ‘0.4’, four times the rate: the steps go too far. After four steps the loss is "
            "{then:.2f}, not {now:.2f}. This loss is higher than the loss before the first step.",
            {rate: 0.4},
            last,
        ),
        w.suggestion(
            "Choose ‘SGD’, plain gradient descent: at the same learning rate the loss is {then:.2f} after four steps, not {now:.2f}.",
            {optimizer: "SGD"},
            last,
        ),
        w.suggestion(
            "Choose ‘uno’ as the first word of the first sentence: the sentence is now "
            "different. The loss after four steps is {then:.3f}, not {now:.3f}.",
            {corpus[0, 0]: "uno"},
            last,
        ),
    ]
