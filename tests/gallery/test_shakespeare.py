"""The shipped model of Shakespeare's plays: its loss, its text, its workbook, what its edits do."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conftest import (
    GOLDEN,
    CellAt,
    assert_agrees,
    libreoffice_after,
    recomputed_in_ironcalc,
)
from thin import thinned

from cellformer.engine import Evaluator
from cellformer.engine.models import prompt
from cellformer.engine.models.choosing import Sampling
from cellformer.engine.models.generate import generate, passage
from cellformer.exporters.checking.verify import read
from cellformer.exporters.compose.book import Reading
from cellformer.exporters.compose.story import Suggestion
from cellformer.exporters.file.reading import Value
from cellformer.exporters.file.xlsx import write
from cellformer.exporters.model.model_book import ModelBook
from cellformer.workbooks import shakespeare

pytestmark = pytest.mark.slow

MODEL = shakespeare.model()
REFERENCE = json.loads((GOLDEN / "shakespeare" / "held_out.json").read_text())
IDS = MODEL.vocabulary.encode(shakespeare.PROMPT)
NARROW = 7  # columns, where a narrower sheet shows the same: the prompt, and one more
LETTERS = 2  # of the prompt, in the shipped model's own, long formulas
LOSS = 1.5102  # nats per character on all that is held out, see docs/shakespeare.md
OF_THE_SAMPLE = 1.5359  # the same on the windows of the golden file


def text_after(n: int, text: str = shakespeare.PROMPT) -> str:
    """What the model goes on with."""
    steps = generate(MODEL, MODEL.vocabulary.encode(text), n, Sampling())
    return MODEL.vocabulary.decode([step.token for step in steps])


# --- the model --------------------------------------------------------------------------------


def test_stated_loss() -> None:
    """Window by window as transformers computes it, and on average what is said of it."""
    found = []
    for window, wanted in zip(REFERENCE["windows"], REFERENCE["losses"], strict=True):
        ids = MODEL.vocabulary.encode(window)
        probs = MODEL.graph(ids[:-1]).values["probs"]
        found.append(-np.log(probs[range(len(probs)), ids[1:]]).mean())
        assert found[-1] == pytest.approx(wanted, abs=1e-4)
    assert np.mean(found) == pytest.approx(OF_THE_SAMPLE, abs=1e-3)
    assert np.mean(found) == pytest.approx(LOSS, abs=4 * np.std(found) / len(found) ** 0.5)


def test_generation_equals_transformers() -> None:
    wanted = REFERENCE["continuation"]
    assert text_after(len(wanted), "ROMEO:") == wanted


def test_weights_of_the_run() -> None:
    assert (shakespeare.FOLDER / "model.safetensors").stat().st_size < 2_000_000
    assert all((w == w.astype(np.float16)).all() for w in MODEL.weights.values())
    assert shakespeare.RUN.half
    assert MODEL.spec == shakespeare.RUN.decoder(65).spec


# --- the workbook -----------------------------------------------------------------------------


def typed_by(suggestion: Suggestion) -> dict[tuple[str, int, int], float | str]:
    """The cells of a suggested edit, by block, and what is typed into them."""
    at = suggestion.cell
    where = ("prompt.pick", at, 0) if isinstance(at, int) else at
    return {where: suggestion.value, **dict(suggestion.also)}


def after(book: ModelBook, suggestion: Suggestion) -> Reading:
    """What the engine has after an edit."""
    edits = typed_by(suggestion)
    picked = [value for (block, *_), value in edits.items() if block == "prompt.pick"]
    assert set(picked) <= set(book.labels["vocab"])
    return book.edited({book.graph[name][i, j]: value for (name, i, j), value in edits.items()})


def tokens(reading: Reading) -> list[int]:
    return reading.values["tokens"][:, 0].astype(int).tolist()


def test_quoted_text_is_generated() -> None:
    """What Start quotes stands there: of the opening, and of every edit, by the engine."""
    about = " ".join(shakespeare.STORY.look)
    assert text_after(25).startswith(quoted(about))
    graph = prompt.graph(MODEL, passage(MODEL, IDS, shakespeare.N_TOKENS))
    for suggestion in shakespeare.STORY.suggestions:
        wanted = continued(suggestion)
        graph.fill("tokens", np.array(wanted, dtype=np.float64)[:, None])
        live = Evaluator(graph)  # which computes every token from those before it
        for cell, value in typed_by(suggestion).items():
            live.set(*cell, value)
        assert live["tokens"][:, 0].tolist() == wanted, suggestion.text
        text = MODEL.vocabulary.decode(wanted)
        assert text.startswith(quoted(suggestion.text)), suggestion.text


def continued(suggestion: Suggestion) -> list[int]:
    """The prompt after an edit, and what the model goes on with."""
    typed = {block: (at, value) for (block, at, _), value in typed_by(suggestion).items()}
    ids, model, sampling = list(IDS), MODEL, Sampling()
    for block, (at, value) in typed.items():
        if block == "prompt.pick":
            (ids[at],) = MODEL.vocabulary.encode(str(value))
        elif block == "temperature":
            sampling = Sampling(temperature=float(value))
        elif block != "choose":
            model = replace(MODEL, averages={block: np.array([[value]])})
    steps = generate(model, ids, shakespeare.N_TOKENS - len(ids), sampling)
    return ids + [step.token for step in steps]


def quoted(text: str) -> str:
    """What a text quotes, last, with the signs by which Play shows what cannot be seen."""
    return re.findall(r"“([^”]+)”", text)[-1].replace("\\n", "\n")


def assert_shows(shown: Callable[[CellAt], Value], book: ModelBook, reading: Reading) -> None:
    """A program has the text that the engine goes on with after an edit, and its probabilities."""
    wanted = {book.cell("tokens", t, 0): i for t, i in enumerate(tokens(reading))}
    last = book.passage.n_prompt - 1
    probs = reading.values["probs"][last]
    wanted |= {book.cell("probs", last, v): p for v, p in enumerate(probs)}
    for cell, number in wanted.items():
        assert shown(cell) == pytest.approx(number, abs=1e-9), cell


def typed_in(book: ModelBook, suggestion: Suggestion) -> dict[CellAt, float | str]:
    return {book.cell(*at): value for at, value in typed_by(suggestion).items()}


@pytest.mark.slow
def test_formulas_and_edits_in_ironcalc(tmp_path: Path) -> None:
    """Every formula cell from wrong values; then every edit: in the workbook of a random model with
    narrow vectors. The shipped one's cells are compared in LibreOffice."""
    thin = thinned(MODEL.spec, MODEL.vocabulary)
    book = shakespeare.build(thin, passage(thin, IDS, NARROW))
    path = write(book, tmp_path / "thin.xlsx")
    cells = read(path)
    assert len(cells.formulas) == book.n_formulas
    sheet = recomputed_in_ironcalc(cells, tmp_path)
    for suggestion in shakespeare.STORY.suggestions:
        with sheet.typed(typed_in(book, suggestion)):
            assert_shows(sheet.__getitem__, book, after(book, suggestion))


def test_formulas_after_an_edit_in_libreoffice(tmp_path: Path, libreoffice) -> None:
    """Every formula cell from wrong values, when the edit of two cells is made: of the shipped
    model, with a shorter prompt."""
    book = shakespeare.build(MODEL, passage(MODEL, IDS[:LETTERS], LETTERS + 1))
    path = write(book, tmp_path / "shakespeare.xlsx")
    cells = read(path)
    *_, suggestion = shakespeare.STORY.suggestions
    (found,) = libreoffice_after(path, [typed_in(book, suggestion)], tmp_path / "office")
    reading = after(book, suggestion)
    wanted = {cell: reading.cell(*cell) for cell in cells.formulas}
    assert_agrees(replace(cells, formulas=wanted), found)
    assert_shows(lambda at: found[at[0]][at[1:]], book, reading)
