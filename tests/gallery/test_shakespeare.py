"""The shipped model of Shakespeare's plays: its loss, its text, its workbook, what its edits do."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conftest import GOLDEN, needs, recalculated, typed

from engine import Evaluator
from engine.models.choosing import Sampling
from engine.models.generate import generate, passage
from exporters.book import Book
from exporters.story import Suggestion
from exporters.verify import verify_all
from exporters.xlsx import write
from workbooks import shakespeare

MODEL = shakespeare.model()
REFERENCE = json.loads((GOLDEN / "shakespeare" / "held_out.json").read_text())
IDS = MODEL.vocabulary.encode(shakespeare.PROMPT)
NARROW = 14  # columns, where a narrower sheet shows the same
LOSS = 1.5102  # nats per character on all that is held out, see docs/shakespeare.md
OF_THE_SAMPLE = 1.5359  # the same on the windows of the golden file


def text_after(n: int, **changes: object) -> str:
    """What the model goes on with."""
    steps = generate(replace(MODEL, **changes), IDS, n, Sampling())
    return MODEL.vocabulary.decode([step.token for step in steps])


# --- the model --------------------------------------------------------------------------------


def test_its_loss_is_the_stated_one() -> None:
    """Window by window as transformers computes it, and on average what is said of it."""
    found = []
    for window, wanted in zip(REFERENCE["windows"], REFERENCE["losses"], strict=True):
        ids = MODEL.vocabulary.encode(window)
        probs = MODEL.graph(ids[:-1]).values["probs"]
        found.append(-np.log(probs[range(len(probs)), ids[1:]]).mean())
        assert found[-1] == pytest.approx(wanted, abs=1e-4)
    assert np.mean(found) == pytest.approx(OF_THE_SAMPLE, abs=1e-3)
    assert np.mean(found) == pytest.approx(LOSS, abs=4 * np.std(found) / len(found) ** 0.5)


def test_it_goes_on_as_in_transformers() -> None:
    wanted = REFERENCE["continuation"]
    assert text_after(len(wanted)) == wanted


def test_the_weights_are_small_and_those_of_its_run() -> None:
    assert (shakespeare.FOLDER / "model.safetensors").stat().st_size < 2_000_000
    assert all((w == w.astype(np.float16)).all() for w in MODEL.weights.values())
    assert shakespeare.RUN.half
    assert MODEL.spec == shakespeare.RUN.spec(65)


# --- the workbook -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def narrow(tmp_path_factory) -> tuple[Book, Path]:
    """The workbook with fewer columns."""
    book = shakespeare.build(MODEL, passage(MODEL, IDS, NARROW))
    return book, write(book, tmp_path_factory.mktemp("narrow") / "shakespeare.xlsx")


def typed_by(suggestion: Suggestion) -> dict[tuple[str, int, int], float | str]:
    """The cells of a suggested edit, by block, and what is typed into them."""
    at = suggestion.cell
    where = ("prompt.pick", at, 0) if isinstance(at, int) else at
    return {where: suggestion.value, **dict(suggestion.also)}


def after(book: Book, suggestion: Suggestion) -> tuple[list[int], np.ndarray]:
    """The tokens of a book after an edit, and the probabilities after the prompt."""
    live = Evaluator(book.graph)
    for at, value in typed_by(suggestion).items():
        if isinstance(value, str) and at[0] == "prompt.pick":
            assert value in book.labels["vocab"]
        live.set(*at, value)
    return live["tokens"][:, 0].astype(int).tolist(), live["probs"][len(IDS) - 1]


def test_the_texts_say_what_the_model_says() -> None:
    """What Start quotes stands there: of the opening, and of every edit, by the engine."""
    about, *_ = shakespeare.STORY.look
    assert text_after(58).startswith(quoted(about))
    book = shakespeare.build(MODEL, passage(MODEL, IDS, shakespeare.N_TOKENS))
    for suggestion in shakespeare.STORY.tries:
        ids, _ = after(book, suggestion)
        assert MODEL.vocabulary.decode(ids).startswith(quoted(suggestion.text)), suggestion.text


def quoted(text: str) -> str:
    """What a text quotes, last, with the signs by which Play shows what cannot be seen."""
    return re.findall(r"“([^”]+)”", text)[-1].replace("\\n", "\n")


@pytest.mark.office
def test_every_edit_does_in_libreoffice_what_it_does_here(narrow, tmp_path: Path) -> None:
    book, path = narrow
    paths = {}
    for k, suggestion in enumerate(shakespeare.STORY.tries):
        cells = {place(book, *at): value for at, value in typed_by(suggestion).items()}
        paths[k] = typed(path, tmp_path / f"{k}.xlsx", cells)
    for k, file in recalculated(paths, tmp_path / "out").items():
        ids, probs = after(book, shakespeare.STORY.tries[k])
        wanted = {place(book, "tokens", t, 0): i for t, i in enumerate(ids)}
        wanted |= {place(book, "probs", len(IDS) - 1, v): p for v, p in enumerate(probs)}
        for (sheet, row, col), number in wanted.items():
            assert file[sheet][row, col] == pytest.approx(number, abs=1e-9), (k, sheet, row, col)


def place(book: Book, name: str, i: int, j: int) -> tuple[str, int, int]:
    """Where an element of a block stands: a sheet, a row, a column."""
    found = book.places[name]
    return found.sheet, *found.cell(i, j)


@pytest.mark.office
def test_its_formulas_in_every_engine_at_once(narrow) -> None:
    book, path = narrow
    engines = ["ironcalc", "libreoffice", "gnumeric"]
    for engine in engines:
        needs(engine)
    told: list[tuple[str, str]] = []
    for report in verify_all(path, engines, lambda *what: told.append(what)):
        assert report.agrees and report.n_cells == book.n_formulas, report
    assert {engine for engine, _ in told} == {*engines}
    assert all((engine, "") in told for engine in engines)
