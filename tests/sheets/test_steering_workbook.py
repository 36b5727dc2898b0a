"""The sheet Steering: a typed strength does to the text what a hook in torch does, in LibreOffice
and IronCalc; its probe is the engine's."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from conftest import (
    ERROR,
    InIronCalc,
    assert_agrees,
    assert_recomputes_after,
    cli,
    golden_models,
    libreoffice_after,
)

import cellformer as cf
from cellformer import names
from cellformer.engine import Evaluator, Model
from cellformer.engine.cells.batch import CellName
from cellformer.engine.models.generate import passage
from cellformer.engine.studies import probes, steering
from cellformer.engine.studies.steering import STRENGTH, STRENGTHS
from cellformer.exporters.assemble import model_workbook, tour
from cellformer.exporters.checking.programs import Recomputed
from cellformer.exporters.checking.verify import FormulaCells, read
from cellformer.exporters.file.xlsx import write
from cellformer.exporters.model.model_book import ModelBook

pytestmark = pytest.mark.slow

CALLERS = Path(__file__).parents[2] / "examples" / "callers.txt"
SEXES = {
    "male": ["<BOS> king is", "<BOS> man is", "<BOS> boy is", "<BOS> bull is"],
    "female": ["<BOS> queen is", "<BOS> woman is", "<BOS> girl is", "<BOS> cow is"],
}
AS_IDS = {"one": [[1, 2, 3], [4, 2], [5, 5, 7, 2]], "other": [[8, 3], [9, 1, 3], [6, 3, 3, 3]]}
KINDS = ("dialogue-game", "semantic-tiny", "llama")
N_TOKENS = 5
Edit = dict[CellName, float | str]


@cache
def model(name: str) -> Model:
    return golden_models()[name] if name in golden_models() else cf.load(name)


@cache
def book(name: str) -> ModelBook:
    own, ids, lists = model(name), [1, 2, 3], AS_IDS
    if name == "dialogue-game":
        lists, ids = names.sentences(own, CALLERS), names.load(name).ids
    if name == "semantic-tiny":
        lists, ids = names.sentences(own, SEXES), own.vocabulary.encode("<BOS> king is")
    studies = {"steer": steering.contrast(own, lists)}
    return model_workbook.build(name, own, passage(own, ids, N_TOKENS), studies=studies)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], FormulaCells]:
    """The workbooks' files, written when they are asked for."""
    folder = tmp_path_factory.mktemp("steering")

    @cache
    def of(name: str) -> FormulaCells:
        return read(write(book(name), folder / f"{name}.xlsx"))

    return of


def contrast(name: str) -> steering.Contrast:
    found = book(name).plan.studies["steer"]
    assert found is not None
    return found


def suggested(name: str) -> list[Edit]:
    found = book(name).sheets["Steering"].suggestions
    assert len(found) == 3
    return [{t.cell: t.value, **dict(t.also)} for t in found]


@pytest.mark.parametrize("name", KINDS)
def test_five_strengths_in_libreoffice_equal_torch(
    name: str, files, tmp_path: Path, libreoffice, torch
) -> None:
    """From wrong cached values; in the smallest, suggested edits too, and every other cell."""
    import hooked

    own, cells, small = book(name), files(name), name == "llama"
    edits: list[Edit] = [{(STRENGTH, 0, 0): s} for s in STRENGTHS]
    edits += suggested(name) if small else []
    typed = [{own.cell(*at): x for at, x in edit.items()} for edit in edits]
    shown = libreoffice_after(cells.path, typed, tmp_path / "office")
    for edit, sheets in zip(edits, shown if small else (), strict=small):
        after = own.edited({own.graph[at][i, j]: x for (at, i, j), x in edit.items()})
        wanted = {at: after.cell(*at) for at in cells.formulas}
        assert_agrees(replace(cells, formulas=wanted), sheets)
    reference, site = hooked.Hooked(model(name)), contrast(name).site
    shift, n_prompt = torch.tensor(contrast(name).direction), own.passage.n_prompt
    for strength, sheets in zip(STRENGTHS, shown, strict=not small):
        ids = [int(number(own, sheets, ("tokens", t, 0))) for t in range(N_TOKENS)]
        moved = strength * shift
        logits = reference.run(ids, lambda at, x, y=moved: x + y if at == site else x)
        assert logits.argmax(1)[n_prompt - 1 : -1].tolist() == ids[n_prompt:]
        for t, v in np.ndindex(*logits.shape):
            there = number(own, sheets, ("logits", t, v))
            assert there == pytest.approx(float(logits[t, v]), abs=1e-9)


def number(own: ModelBook, sheets: Recomputed, cell: CellName) -> float:
    """What a block's cell shows."""
    sheet, *at = own.cell(*cell)
    return float(sheets[sheet][tuple(at)])


def test_steering_says_what_the_engine_writes() -> None:
    for name in KINDS[:2]:
        own = book(name)
        for strength in STRENGTHS:
            live = Evaluator(own.graph)
            live.set(STRENGTH, 0, 0, strength)
            given, n = own.passage.ids[: own.passage.n_prompt], N_TOKENS - own.passage.n_prompt
            ids = steering.continued(model(name), given, n, contrast(name), strength)
            said = live["steering.says"][0, 0]
            assert said.startswith(model(name).vocabulary.decode(ids)), (name, strength)


def test_suggested_edits_do_what_they_say_in_ironcalc(files) -> None:
    own, cells = book("llama"), files("llama")
    sheet = InIronCalc(cells.path)
    for edit, t in zip(suggested("llama"), own.sheets["Steering"].suggestions, strict=True):
        after = assert_recomputes_after(edit, sheet, own, cells)
        assert after.cell(*own.cell(*t.watch)) == pytest.approx(t.becomes)
        assert f"{t.becomes:.3f}" in t.text
    for cell, value in (
        ((STRENGTH, 0, 0), "abc"),
        ((STRENGTH, 0, 0), 1000.0),
        ((STRENGTH, 0, 0), 1e308),
        (("steering.typed", 0, 3), 1e308),
        (("steering.at", 0, 0), "first"),
        (("steering.out", 1, 0), "?"),
        (("steering.typed", 0, 3), "one"),
    ):
        with sheet.typed({own.cell(*cell): value}):
            wrong = [at for at in cells.formulas if ERROR.fullmatch(str(sheet[at]))]
        assert wrong == [], (cell, value)


def test_the_king_is_steered_to_the_other_list() -> None:
    towards, away, _ = book("semantic-tiny").sheets["Steering"].suggestions
    assert away.text.startswith("Type ‘-1’ as strength: the result is ‘<BOS> king is female")
    assert away.becomes != towards.becomes
    live = Evaluator(book("semantic-tiny").graph)
    live.set(*away.cell, -1.0)
    assert live["steering.says"][0, 0] == away.becomes


def test_the_sheet_has_the_probe_and_the_words_of_the_engine() -> None:
    own, found = book("llama"), contrast("llama")
    accuracy = probes.accuracy(found.site, found.first, found.second)
    shares = own.values["steering.accuracy"][:, 0]
    assert shares.tolist() == pytest.approx([accuracy.fitted, accuracy.held_out])
    scores = steering.words(model("llama"), found)
    assert scores is not None
    np.testing.assert_allclose(own.values["steering.words"][0], scores, atol=1e-12)
    ranks = own.values["steering.rank"][:, 0].astype(float)
    assert np.argsort(ranks).tolist() == np.argsort(-scores).tolist()


def test_a_typed_entry_replaces_the_direction() -> None:
    live = Evaluator(book("llama").graph)
    live.set("steering.typed", 0, 3, 7.0)
    wanted = contrast("llama").direction.copy()
    wanted[0, 3] = 7
    np.testing.assert_allclose(live["steering.direction"].astype(float), wanted, atol=1e-12)
    live.set(STRENGTH, 0, 0, 2.0)
    live.set("steering.at", 0, 0, 1.0)
    np.testing.assert_allclose(live["steering.added"][1], 2 * wanted[0], atol=1e-12)
    assert not live["steering.added"][[0, 2]].any()


def test_the_tour_ends_with_steering() -> None:
    *_, change, last = tour.stops(book("semantic-tiny"))
    assert (change.concept, last.concept, last.sheet) == ("change it", "steer it", "Steering")
    assert "‘male’ and ‘female’" in last.text.value(book("semantic-tiny").clean)


def test_edits_are_read_back(tmp_path: Path) -> None:
    typed: Edit = {(STRENGTH, 0, 0): -1.0, ("steering.at", 0, 0): 1.0}
    path = cf.write(book("llama"), tmp_path / "edited.xlsx", typed)
    found = [cell.name for cell in cf.read(path).inputs]
    assert found == ["steering.strength[0,0]", "steering.at[0,0]"]


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (("cat-sat", "--site", "resid_final"), "--site works only together with --steer"),
        (("dialogue-game", "--steer", CALLERS, "--site", "embed"), "outside the layers"),
        (
            ("dialogue-game", "--steer", CALLERS, "--live", "blocks.0"),
            "--steer needs a decoder with at most",
        ),
    ],
)
def test_what_cannot_be_built_ends_in_a_line(asked: tuple[str, ...], says: str) -> None:
    done = cli("build", *asked)
    assert done.code == 2 and says in done.err and done.err.count("\n") == 1
