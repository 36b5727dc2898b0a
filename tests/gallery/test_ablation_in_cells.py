"""A workbook and the command say the same: under zero and mean ablation of every part, and of every
dial. The workbook's numbers come from edits of its cells, the command's from what it prints."""

import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from conftest import (
    GOLDEN,
    cli,
    libreoffice_after,
    recomputed_in_ironcalc,
)
from thin import thinned

from cellformer import names, workbooks
from cellformer.engine.cells.expression import Area
from cellformer.engine.models.choosing import BY_NUMBER, GREEDILY, Sampling
from cellformer.engine.models.generate import generate, passage
from cellformer.engine.studies import ablation, part_names
from cellformer.exporters.checking.verify import read
from cellformer.exporters.compose.book import Book
from cellformer.exporters.file.xlsx import write
from cellformer.workbooks import shakespeare

pytestmark = pytest.mark.slow

CHECKPOINTS = [str(GOLDEN / kind) for kind in ("gpt2", "mixtral", "gemma2", "bert")]
MODELS = [name for name in workbooks.names() if not names.is_worksheet(name)]
WITH_PARTS = [name for name in MODELS if name not in ("final-step", "zero-layer")]  # no layers
IDS = "2,3,5,7"  # of a checkpoint, which has no prompt of its own
LINE = re.compile(r"^ (\S.*?)\s+([+-][\d.]+)\s+[\d.]+\s+([\d.]+) ", re.MULTILINE)


@cache
def loaded(name: str) -> names.Loaded:
    return names.load(name, ids=IDS if name in CHECKPOINTS else None)


@cache
def of_prompt(name: str, n_more: int = 0) -> Book:
    """The workbook of a model's own prompt, with so many words more."""
    found = loaded(name)
    return found.book(found.model, passage(found.model, found.ids, len(found.ids) + n_more))


def printed(name: str, mean: bool) -> dict[str, tuple[float, float]]:
    """What `ablate` prints of every part: the change of the logit, and the probability."""
    done = cli("ablate", name, *(["--ids", IDS] if name in CHECKPOINTS else []), *["--mean"] * mean)
    assert done.code == 0, done.err
    return {part: (float(logit), float(p)) for part, logit, p in LINE.findall(done.out)}


def edits(book: Book, changes: dict[str, float | str]) -> dict[Area, float | str]:
    return {book.graph[name][0, 0]: value for name, value in changes.items()}


@pytest.mark.parametrize("mean", [False, True], ids=["zero", "mean"])
@pytest.mark.parametrize("name", [*WITH_PARTS, *CHECKPOINTS], ids=lambda name: Path(name).name)
def test_cells_equal_the_ablate_command(name: str, mean: bool) -> None:
    book, row = of_prompt(name), loaded(name).place_of_answer
    if "last" in book.graph.blocks:  # the logits of one token alone are there
        row = 0
    before = book.values["logits"][row]
    target, command = int(np.argmax(before)), printed(name, mean)
    parts = ablation.parts(book.graph)
    assert list(command) == [part_names.said(part) for part in parts]
    for part, (logit, probability) in zip(parts, command.values(), strict=True):
        typed = {f"{part}.switch": 0.0} | ({"mean_ablation": 1.0} if mean else {})
        after = book.edited(edits(book, typed)).values
        assert after["logits"][row, target] - before[target] == pytest.approx(logit, abs=6e-5), part
        assert after["probs"][row, target] == pytest.approx(probability, abs=6e-5), part


@pytest.mark.parametrize("name", [*WITH_PARTS, *CHECKPOINTS], ids=lambda name: Path(name).name)
def test_averages_in_cells(name: str) -> None:
    """No table of averages is left at zero, as shakespeare's once was."""
    book = of_prompt(name)
    averages = [block for block in book.graph.blocks if block.endswith(".average")]
    assert averages
    for block in averages:
        assert np.any(book.values[block]), block


# --- dials --------------------------------------------------------------------------------------

N_MORE = 3
DIALS: list[tuple[Sampling, dict[str, float | str]]] = [
    (Sampling(), {"choose": GREEDILY}),
    (Sampling(), {"temperature": 0.0, "choose": BY_NUMBER}),
    (Sampling(1.0), {"choose": BY_NUMBER}),
    (Sampling(0.6), {"choose": BY_NUMBER, "temperature": 0.6}),
    (Sampling(3.0, top_k=2), {"choose": BY_NUMBER, "temperature": 3.0, "top_k": 2.0}),
    (Sampling(3.0, top_p=0.5), {"choose": BY_NUMBER, "temperature": 3.0, "top_p": 0.5}),
    (Sampling(2.0, 4, 0.8), {"choose": BY_NUMBER, "temperature": 2.0, "top_k": 4.0, "top_p": 0.8}),
]


def room(name: str) -> int:
    """How many words more there is room for."""
    found = loaded(name)
    return min(N_MORE, found.model.spec.n_ctx - len(found.ids))


@pytest.mark.parametrize("name", MODELS)
def test_sampling_settings_in_cells_equal_generate(name: str) -> None:
    """How words are chosen, temperature, top-k, top-p: the words in the cells are the engine's."""
    book, found, n_more = of_prompt(name, room(name)), loaded(name), room(name)
    if not n_more or "choose" not in book.graph.blocks:
        pytest.skip("it reads its prompt and does not go on")
    for sampling, typed in DIALS:
        steps = generate(found.model, found.ids, n_more, sampling)
        wanted = [*found.ids, *(step.token for step in steps)]
        tokens = book.edited(edits(book, typed)).values["tokens"][:, 0]
        assert tokens.astype(int).tolist() == wanted, typed


@pytest.mark.parametrize("name", MODELS)
def test_random_numbers_in_cells_draw_as_the_engine(name: str) -> None:
    book, found, n_more = of_prompt(name, room(name)), loaded(name), room(name)
    if not n_more or "choose" not in book.graph.blocks:
        pytest.skip("it reads its prompt and does not go on")
    place = len(found.ids)
    logits = book.values["logits"][place - 1]
    for number in (0.0, 0.25, 0.5, 0.75, 0.999):
        typed = edits(book, {"choose": BY_NUMBER, "temperature": 2.0})
        reading = book.edited({**typed, book.graph["random"][place, 0]: number})
        wanted = Sampling(2.0).choose(logits, number)
        assert int(reading.values["tokens"][place, 0]) == wanted, number


def test_generate_equals_typed_settings() -> None:
    """Once through the command itself: shakespeare at a temperature of 0.5."""
    book = of_prompt("shakespeare", 6)
    typed = edits(book, {"choose": BY_NUMBER, "temperature": 0.5, "top_k": 20.0})
    tokens = book.edited(typed).values["tokens"][:, 0].astype(int).tolist()
    done = cli("generate", "shakespeare", "-n", 6, "--temperature", 0.5, "--top-k", 20)
    assert done.out == shakespeare.model().vocabulary.decode(tokens) + "\n"


# --- in other programs --------------------------------------------------------------------------


def test_shakespeare_mean_ablation_in_ironcalc(tmp_path: Path) -> None:
    """Every part, in the workbook of a random model with narrow vectors: the command's averages."""
    shipped = shakespeare.model()
    thin = thinned(shipped.spec, shipped.vocabulary)
    ids = shipped.vocabulary.encode("ROM")
    book = shakespeare.build(thin, passage(thin, ids))
    sheet = recomputed_in_ironcalc(read(write(book, tmp_path / "thin.xlsx")), tmp_path)
    graph = ablation.with_averages(thin, [ids]).graph(ids)
    target = int(np.argmax(graph.values["logits"][-1]))
    cell = book.cell("logits", len(ids) - 1, target)
    for effect in ablation.effects(graph, target, mean=True):
        on = {book.cell("mean_ablation", 0, 0): 1.0, book.cell(f"{effect.part}.switch", 0, 0): 0.0}
        with sheet.typed(on):
            wanted = graph.values["logits"][-1, target] + effect.change
            assert sheet[cell] == pytest.approx(wanted, abs=1e-9), effect.part


def test_cat_sat_mean_ablation_in_libreoffice(tmp_path: Path, libreoffice) -> None:
    """Its one head off, writing nothing and its average: the command's two numbers."""
    book = of_prompt("cat-sat")
    path = write(book, tmp_path / "cat-sat.xlsx")
    switch = book.cell("blocks.0.attn.h0.switch", 0, 0)
    typed = [{switch: 0.0}, {switch: 0.0, book.cell("mean_ablation", 0, 0): 1.0}]
    found = libreoffice_after(path, typed, tmp_path / "office")
    last = book.passage.n_prompt - 1
    target = int(np.argmax(book.values["logits"][last]))
    sheet, *at = book.cell("probs", last, target)
    for shown, mean in zip(found, (False, True), strict=True):
        _, probability = printed("cat-sat", mean)["head 0.0"]
        assert shown[sheet][tuple(at)] == pytest.approx(probability, abs=6e-5)
