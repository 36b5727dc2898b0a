"""Play: what is typed in it leads to no error, and is what the engine makes of it."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from conftest import InIronCalc, golden_models, libreoffice_after, random_model
from on_play import FROM_ROW, ID_ROW, MESSAGE, SENTENCE

from cellformer.engine import ModelSpec
from cellformer.engine.cells.evaluator import Evaluator
from cellformer.engine.cells.values import CellError
from cellformer.engine.models.generate import passage
from cellformer.engine.models.prompt import graph
from cellformer.exporters.assemble import model_workbook
from cellformer.exporters.checking import verify
from cellformer.exporters.compose.book import Book
from cellformer.exporters.file.reading import WorkbookFile
from cellformer.exporters.file.xlsx import write
from cellformer.exporters.model.block_sheets import PROMPT_COL
from cellformer.exporters.model.plan import Limits

SPEC = ModelSpec(
    7, 6, 8, n_layers=2, n_heads=2, d_head=3, d_mlp=5, position="learned", causal=False
)
MODEL = random_model(SPEC)
WORDS = MODEL.vocabulary.texts
IDS = [3, 1, 2, 6]
Recomputed = Callable[[Path, list[str], Path], Iterator[verify.Values]]
SENTENCES = {  # how many words are given, and the message
    (): (1, "nothing is typed"),
    (4,): (1, "tokens given: 1; the missing ones are the words as built"),
    (4, 0, 5): (3, "tokens given: 3; the missing ones are the words as built"),
    (4, 0, 5, 5): (4, "tokens given: 4"),
    (4, 0, 5, 5, 1): (4, "longer than the 4 columns"),
}


@cache
def book() -> Book:
    return model_workbook.build("both-ways", MODEL, passage(MODEL, IDS))


@pytest.fixture(scope="module")
def both_ways(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The workbook of a model whose tokens see those after them."""
    return write(book(), tmp_path_factory.mktemp("both-ways") / "book.xlsx")


def in_ironcalc(source: Path, sentences: list[str], folder: Path) -> Iterator[verify.Values]:
    """The formulas' values after each sentence, typed in the program."""
    sheet, formulas = InIronCalc(source), verify.read(source).formulas
    for sentence in sentences:
        with sheet.typed({SENTENCE: sentence}):
            yield {cell: sheet[cell] for cell in formulas}


def in_libreoffice(source: Path, sentences: list[str], folder: Path) -> Iterator[verify.Values]:
    """The same from wrong values, all recalculated after each."""
    book, edits = verify.read(source), [{SENTENCE: sentence} for sentence in sentences]
    for file in libreoffice_after(source, edits, folder / "office"):
        yield verify.read_values(file, book)


@pytest.mark.parametrize(
    "program", [in_ironcalc, pytest.param(in_libreoffice, marks=pytest.mark.office)]
)
def test_bidirectional_model_takes_any_sentence(
    program: Recomputed, both_ways: Path, tmp_path: Path
) -> None:
    """Shorter, longer, none: no error anywhere, and the words as built where some are missing."""
    tried = list(SENTENCES.items())[:: 2 if program is in_libreoffice else 1]
    sentences = [" ".join(WORDS[i] for i in ids) for ids, _ in tried]
    found = program(both_ways, sentences, tmp_path)
    for values, (ids, (n_given, message)) in zip(found, tried, strict=True):
        errors = [  # a text in IronCalc
            at for at, x in values.items() if isinstance(x, CellError) or str(x).startswith("#")
        ]
        assert not errors, (ids, errors[:5])
        expected = [*(ids[:4] or (0,)), *IDS[n_given:]]
        assert [values["Play", ID_ROW, PROMPT_COL + t] for t in range(4)] == expected
        assert message in str(values[MESSAGE])
        origins = [values["Play", FROM_ROW, PROMPT_COL + t] for t in range(n_given, 4)]
        assert origins == ["as built"] * (4 - n_given)
        logits = MODEL.graph(expected).values["logits"]
        place = book().places["logits"]
        for t, v in np.ndindex(*logits.shape):
            logit = values[(place.sheet, *place.cell(t, v))]
            assert logit == pytest.approx(logits[t, v], abs=1e-9)


@pytest.mark.parametrize("name", ["a masked word", "many words"])
def test_baseline_stays_when_a_cell_is_edited(name: str) -> None:
    """The probabilities as built stand beside the live ones, and no formula lacks a value."""
    model, ids = golden_models()["bert"], [3, 1, 4, 2]
    if name == "many words":
        model = random_model(replace(SPEC, causal=True))
    limits = Limits(words=SPEC.d_vocab - (name == "many words"))
    book = model_workbook.build(name, model, passage(model, ids), limits=limits)
    before, after = book.clean, book.edited({book.graph["W_E"][ids[0], 2]: 3.0})
    for sheet in book.sheets.values():
        for row, col in sheet.entries:
            after.cell(sheet.name, row, col)
    kept, shown = (np.array(reading.values["baseline"]) for reading in (before, after))
    np.testing.assert_array_equal(kept, before.values["probs"])
    np.testing.assert_array_equal(shown, kept)
    assert not np.array_equal(after.values["probs"], kept)
    assert book.graph.values.keys() == book.graph.blocks.keys()


def test_bidirectional_model_does_not_continue(both_ways: Path) -> None:
    file = WorkbookFile(both_ways)
    for sheet in file:
        texts = [cell.value for cell in file[sheet].cells.values() if isinstance(cell.value, str)]
        assert not [text for text in texts if "model continues it" in text], sheet


def test_set_the_sentence() -> None:
    """The engine's own tokens follow it, as repeated full passes would choose them."""
    model = random_model(ModelSpec(7, 6, 8, n_layers=1, n_heads=2, d_head=3))
    for ids in ([3, 1, 2], [5], [0, 0, 4, 1, 6, 2]):
        live = Evaluator(graph(model, passage(model, [2, 2], 6)))
        live.set("sentence", 0, 0, " ".join(model.vocabulary.texts[i] for i in ids))
        assert live["tokens"][:, 0].tolist() == passage(model, ids, 6).ids
        assert live["n_prompt"][0, 0] == len(ids)
    anew = Evaluator(live.graph)
    anew.set("sentence", 0, 0, " ".join(model.vocabulary.texts[i] for i in ids))
    anew.run()  # all of it, tables that read each other too
    assert anew["tokens"][:, 0].tolist() == passage(model, ids, 6).ids
    live.reset()
    live.set("prompt.pick", 1, 0, model.vocabulary.texts[4])
    assert live["tokens"][:, 0].tolist() == passage(model, [2, 4], 6).ids
    live.run()
    assert live["tokens"][:, 0].tolist() == passage(model, [2, 4], 6).ids
    chosen = live.cell("tokens", 3, 0)
    assert {cell.name for cell in chosen.precedents} == {
        "n_prompt[0,0]", "prompt.id[3,0]", "choice.chosen[2,0]"
    }  # fmt: skip
