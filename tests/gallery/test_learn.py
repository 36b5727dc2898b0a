"""learn and unrolled: the step that they make, the circle that keeps it, and what comes out."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from conftest import cli, default_book, random_model
from hyperformula import recompute

from cellformer.engine import Evaluator, Graph, InputError, ModelSpec
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.evaluation import evaluate
from cellformer.engine.cells.table import Reader
from cellformer.engine.models import checkpoint, ops
from cellformer.engine.models.forward import Readout
from cellformer.exporters.compose.book import Book
from cellformer.exporters.edits import edited
from cellformer.exporters.file.reading import WorkbookFile
from cellformer.workbooks import learn, unrolled
from cellformer.workbooks.learn import clock, game, step
from cellformer.workbooks.learn.step import Values

# no step reads them
ON_SHOW = (
    *("made", "ready", "settled", "passed", "this_loss", "mean_loss", "moved", "expected", "curve"),
)
PER_STEP = 12  # recalculations for each step, in an order that no program has


def test_batch_equals_sentences_by_themselves() -> None:
    spec = ModelSpec(7, 6, 4, n_layers=2, n_heads=2, d_head=3, d_mlp=5, position="learned")
    model, rows = random_model(spec), [[3, 1, 2, 6], [0, 5, 5, 1], [2, 2, 4, 3]]
    both = Readout(by_head=False, sentence=4)
    graph = learn.step.graph(spec, dict(model.weights), 4)
    assert graph.readout == both
    model.architecture(graph, [i for row in rows for i in row])
    alone = [model.graph(row).values["probs"] for row in rows]
    assert np.allclose(graph.values["probs"], np.concatenate(alone), rtol=0, atol=1e-14)
    mask = graph["blocks.1.attn.h0.scores"].mask
    assert [mask.keys(query, 12) for query in (0, 3, 4, 11)] == [(0, 1), (0, 4), (4, 5), (8, 12)]
    assert [mask.queries((key, key + 1), 12) for key in (0, 3, 4)] == [(0, 4), (3, 4), (4, 8)]


def test_least_loss_of_the_sentences() -> None:
    """What follows each beginning is as likely as it is frequent: no model does better."""
    sentences, total = game.sentences(), 0.0
    for sentence in sentences:
        for k in range(1, game.LENGTH):
            alike = [s for s in sentences if s[:k] == sentence[:k]]
            total -= np.log(np.mean([s[k] == sentence[k] for s in alike]))
    assert total / len(sentences) / (game.LENGTH - 1) == pytest.approx(game.FLOOR, abs=1e-12)
    assert len(set(sentences)) == len(sentences) == 24


@pytest.mark.slow
def test_recalculation_makes_a_step() -> None:
    spec = unrolled.SPEC
    book = learn.built(spec, 2, step.RATE)
    live = Evaluator(book.graph)
    live.set("recalculations", 0, 0, 1.0)
    live.set("state", 0, 0, "learn")
    found = [float(live["loss"][0, 0])]  # the switch computes the step that is there once more
    for tick in (3.5, 4.5, 5.5):
        live.set("latch.tick", 0, 0, tick)
        found.append(float(live["loss"][0, 0]))
    assert found == pytest.approx([loss for loss, _ in islice(losses(spec), 4)], abs=1e-14)
    live.set("state", 0, 0, "start")
    live.set("latch.tick", 0, 0, 0.0)
    assert (live["W_E"] == book.graph.values["W_E"]).all()


def losses(spec: ModelSpec) -> Iterator[tuple[float, Values]]:
    """The steps of such a workbook, by the loop in numpy."""
    g = step.graph(spec, step.start(spec, learn.SEED), game.LENGTH - 1)
    ids = step.ids_of(game.sentences(), game.WORDS)
    return step.learn(step.add(g, 2), ids, 2)


def test_unrolled_equals_learn() -> None:
    spec, ids = unrolled.SPEC, step.ids_of(game.sentences()[:1], game.WORDS)
    g = step.graph(spec, step.start(spec, unrolled.SEED), game.LENGTH - 1)
    made = step.learn(step.add(g, 1, unrolled.RATE), ids, 1)
    shown = default_book("unrolled").graph.values["losses"].ravel()
    assert shown == pytest.approx([loss for loss, _ in islice(made, unrolled.N_STEPS)], abs=1e-12)


# --- the circle ---------------------------------------------------------------------------------


def toy() -> Graph:
    """A number that becomes its square and itself, times 0.3, in a few cells."""
    g = Graph()
    clock.add(g, 2)
    begins, w, share = g.input("begins", 1.7), g.input("w", 1.7), g.input("share", 0.3)
    square = g.block("square", ops.in_effect, w, w)
    both = g.block("both", ops.add, [square, w])
    after = g.block("next.w", ops.stretch, both, share)
    states = {"w": after} | clock.add_total(g, both[0, 0])
    states |= clock.add_points(g, 3, 2)
    clock.close(g, states, {"w": begins})
    clock.wait(g, [*states])
    return g


def sweep(blocks: list[Block], values: Values) -> None:
    """Compute every cell once, in this order, from what the others hold by now."""
    for block in blocks:
        if block.op:
            values[block.name] = evaluate(block, block.whole, values)
        else:
            reader, (height, width) = Reader(values), block.shape
            rows = [[reader.compute(block, i, j) for j in range(width)] for i in range(height)]
            values[block.name] = np.array(rows)


@pytest.mark.parametrize("seed", range(12))
def test_order_of_cells_does_not_matter(seed: int) -> None:
    g = toy()
    values = dict(g.values) | {"recalculations": np.array([[float(PER_STEP)]])}
    cells = [block for block in g if block.computed]
    order = [cells[k] for k in np.random.default_rng(seed).permutation(len(cells))]
    values["state"] = np.array([["start"]], dtype=object)
    for _ in range(PER_STEP):
        sweep(order, values)
    values["state"] = np.array([["learn"]], dtype=object)
    wanted, total = 1.7, 0.0
    for n in range(5):
        for _ in range(PER_STEP):
            sweep(order, values)
        assert values["w"][0, 0] == wanted, n
        both = wanted * wanted + wanted
        total = both if n % 2 == 0 else total + both
        assert values["pass.next"][0, 0] == pytest.approx(total, rel=1e-15)
        wanted = both * 0.3


@pytest.mark.slow
@pytest.mark.parametrize("by_name", [False, True])
def test_sheets_stand_in_the_order_of_computation(by_name: bool) -> None:
    """From left to right, from top to bottom, sheet by sheet, also where sheets are taken by their
    names: what a cell reads stands before it, or is a latch. So one recalculation is a step."""
    book = default_book("learn")
    sheets = sorted(book.sheets) if by_name else list(book.sheets)
    for block in book.graph:
        if block.computed and block.name.partition(".")[0] not in ON_SHOW:
            for read, _ in block.reads(block.whole):
                assert before(book, sheets, read, block), (read.name, block.name)


def before(book: Book, sheets: list[str], read: Block, block: Block) -> bool:
    """Whether a block that is read stands before its reader; typed ones may stand anywhere."""
    assert read.name.partition(".")[0] not in ON_SHOW or read.name == block.name
    if read.name.startswith("latch.ready.") and block.name == "latch.count":
        return True  # of the last beat: this beat holds it
    kept = [name.split(".")[:2] for name in (read.name, block.name)]
    chained = kept[0] == kept[1]  # latches of one side: each reads the next one, times 0
    if read.name.startswith("latch.") and (chained or not block.name.startswith("latch.")):
        return True
    if not book.graph[read.name].computed:
        return True
    there, here = book.places[read.name], book.places[block.name]
    one, other = sheets.index(there.sheet), sheets.index(here.sheet)
    if one != other:
        return one < other
    (height, width), beside = there.size, there.top == here.top and there.size[0] == here.size[0]
    return there.top + height <= here.top or (beside and there.left + width <= here.left)


# --- files --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_import_learnt_weights(built, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    done = cli("import", built["learn"], "-o", folder)
    assert done.code == 0 and "checkpoint with the current weights of" in done.out
    model, start = checkpoint.load(folder), step.start(learn.SPEC, learn.SEED)
    assert model.vocabulary.encode("Pietro chiama Paolo") == [0, 4, 1]
    for name, values in start.items():
        assert np.abs(model.weights[name] - values).max() < 1e-7  # the checkpoint is float32


@pytest.mark.slow
def test_import_refuses_texts_for_weights(built) -> None:
    file, book = WorkbookFile(built["learn"]), default_book("learn")
    with pytest.raises(InputError, match=r"corpus\[0,0\] contains 'Pietro', which is not a number"):
        edited.held(file, book, "corpus")


def test_hyperformula_skips_circular_references(built, hyperformula) -> None:
    (answer,) = recompute([built.file("learn")])
    assert answer.fault == "it computes no cell of a circle"
