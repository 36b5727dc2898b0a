"""The sheet Proof: its bounds are those of the proof, and no case of a wrong sum is green."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from conftest import (
    ROOT,
    InIronCalc,
    assert_libreoffice_agrees_after,
    assert_recomputes_after,
    cli,
    recomputed_in_ironcalc,
    typed,
)
from test_adder_proof import cases_of, edited, with_weight

from cellformer import names
from cellformer.engine import Model
from cellformer.engine.cells.expression import expression
from cellformer.exporters.checking.verify import FormulaCells, read
from cellformer.exporters.compose.book import Book, Reading
from cellformer.exporters.compose.dressing import When
from cellformer.exporters.file.xlsx import write
from cellformer.workbooks import adder
from cellformer.workbooks.adder import machine, proof, proof_sheet, proof_tables, sums, wrong_sums
from cellformer.workbooks.adder.proof import Bounds, Cases
from cellformer.workbooks.adder.proof_tables import UNIT, Asked
from cellformer.workbooks.adder.sums import FIRST

pytestmark = pytest.mark.slow

SEED = 48
CHOSEN = ((3, 9, 4), (0, 0, 7), (1, 3, 2), (10, 1, 0), (9, 9, 9), (2, 0, 1))  # place and digits
PLACE, HERE, A = (("proof.typed", i, 0) for i in range(3))


@cache
def book() -> Book:
    return names.with_part("adder", "proof")


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> FormulaCells:
    return read(write(book(), tmp_path_factory.mktemp("proof") / "adder-proof.xlsx"))


@pytest.fixture(scope="module")
def in_ironcalc(cells: FormulaCells, tmp_path_factory: pytest.TempPathFactory) -> InIronCalc:
    return recomputed_in_ironcalc(cells, tmp_path_factory.mktemp("ironcalc"))


def after(*edits: tuple[tuple[str, int, int], float | str]) -> Reading:
    """The workbook after edits."""
    graph = book().graph
    return book().edited({graph[name][i, j]: value for (name, i, j), value in edits})


def on_sheet(model: Model, place: int, here: int, a: int) -> tuple[Cases, np.ndarray]:
    """The cases of a model that the sheet shows, and its least leads; NaN: there is no number."""
    g = machine.build(model)
    chosen = g.table("chosen", (1, 3), lambda _, k: expression((place, here, a)[k]))
    proof_tables.add(g, Asked(*chosen[0, :].cells))
    possible = g.values["proof.case"][:, 1] == 1
    every = proof.cases(place)
    found = every.of((every.written == here) & (every.a == a))
    rows = row_of(found)
    assert sorted(rows) == np.flatnonzero(possible).tolist()
    least = g.values["proof.least"][rows, 0]
    return found, np.array([np.nan if x == "?" else x * UNIT for x in least], float)


def row_of(found: Cases) -> np.ndarray:
    """Where the sheet lists cases."""
    return np.asarray(found.right * 20 + found.carry * 10 + found.a_before)


@pytest.mark.parametrize("chosen", CHOSEN)
def test_leads_are_those_of_the_bounds(chosen: tuple[int, int, int]) -> None:
    found, leads = on_sheet(adder.transformer(), *chosen)
    bounds = Bounds(adder.transformer())
    wanted = bounds.lead(bounds.box(found), found.right)
    assert np.allclose(leads, wanted, rtol=1e-9, atol=1e-8)  # numbers of 100 cancel in a lead
    assert (leads > 0).any()


def test_cases_of_wrong_sums_are_not_green() -> None:
    """20 edits of one weight that break sums: the cases of the wrong sums are not proved."""
    rng, broken, n_wrong = np.random.default_rng(SEED), 0, 0
    while broken < 20:
        model = edited(rng)
        ids = sums.drawn(rng, 5000)
        misses = wrong_sums.written(Bounds(model), ids) != ids[:, FIRST + 1 :]
        if not misses.any():
            continue
        broken += 1
        place = int(rng.choice(np.flatnonzero(misses.any(0))))
        wrong = cases_of(ids[misses[:, place]], place)
        wrong = wrong.of((wrong.written == wrong.written[0]) & (wrong.a == wrong.a[0]))
        found, leads = on_sheet(model, place, int(wrong.written[0]), int(wrong.a[0]))
        shown = dict(zip(row_of(found), leads, strict=True))
        n_wrong += len(wrong.a)
        assert not any(shown[row] > 0 for row in row_of(wrong))
    assert n_wrong > 300


def test_texts_count_the_cases_that_bounds_prove_at_once() -> None:
    bounds = Bounds(adder.transformer())
    every = [proof.cases(place) for place in range(11)]
    leads = np.concatenate([bounds.lead(bounds.box(x), x.right) for x in every])
    assert (len(leads), (leads > 0).sum()) == (proof_sheet.N_CASES, proof_sheet.AT_ONCE)
    text = f"{proof_sheet.AT_ONCE:,} of the {proof_sheet.N_CASES:,} cases are green"
    assert text in (ROOT / "docs" / "adder.md").read_text("utf-8")


def test_suggestions_come_true() -> None:
    suggested = book().sheets["Proof"].suggestions
    assert len(suggested) == 3
    for each in suggested:
        assert isinstance(each.cell, tuple) and each.watch is not None
        name, i, j = each.watch
        assert after((each.cell, each.value or 0.0))(book().graph[name][i, j]) == each.becomes
        assert f" {each.becomes:.0f} " in each.text


def test_a_case_has_one_colour() -> None:
    """A page applies every condition that holds, and a spreadsheet the first one."""
    grid = book().places["proof.grid"]
    rules = [
        x for rect, x in book().sheets["Proof"].dressings if rect == grid.rect(grid.block.whole)
    ]
    for edits, style in (((), "right"), (((("W_E", 9, 0), 0.0), (A, 9.0)), "differs")):
        found = after(*edits)
        holding = [x.style for x in rules if isinstance(x, When) and x.condition.value(found)]
        assert holding == [style]


def test_other_settings_prove_nothing() -> None:
    """Nor do weights that are too large."""
    assert after()(book().graph["proof.counts"][0, 1]) == 200
    for cell, value in {
        ("blocks.0.ln1.eps", 0, 0): 0.1,
        ("rotary.frequency", 0, 1): 0.5,
        ("rotary.positions", 30, 0): 31.0,
        ("blocks.0.mlp.W_out", 0, 0): 1e200,
    }.items():
        found = after((cell, value))
        assert found(book().graph["proof.counts"][0, 1]) == 0, cell
        place = book().shown["proof.means"]
        assert "This sheet proves nothing now" in str(
            found.cell(place.sheet, place.top, place.left)
        )


def test_wrong_entries_are_told(in_ironcalc: InIronCalc) -> None:
    """And with a text as a weight, nothing is proved."""
    said = [book().shown[f"proof.said.{i}"] for i in range(3)]
    proved = book().cell("proof.counts", 0, 1)

    def seen(*edits: tuple[tuple[str, int, int], float | str]) -> list[str]:
        with in_ironcalc.typed({book().cell(*cell): value for cell, value in edits}):
            assert in_ironcalc[proved] is not None
            return [str(in_ironcalc[x.sheet, x.top, x.left]) for x in said]

    for value in (0.0, 12.0, 1.5, "ten", ""):
        assert seen((PLACE, value))[0] == "← type a whole number from 1 to 11"
    assert seen((HERE, "12"), (A, "x"))[1:] == ["← type one digit, from 0 to 9"] * 2
    assert seen((HERE, 3.0))[1] == "← to use the digit of the sum on Add, delete this number"
    with in_ironcalc.typed({book().cell("W_E", 3, 1): "text"}):
        assert in_ironcalc[proved] == 0


def test_the_lead_of_the_typed_sum_is_above_its_bound() -> None:
    """At some digits, also of an edited model; a wrong sum has a lead below 0."""
    lead = book().graph["proof.sum.lead"]
    for place in (1, 2, 5, 11):
        found = after((PLACE, float(place)), (("typed", 0, 0), 9994567.0))
        assert 0 < found(lead[0, 0]) <= found(lead[0, 1])
    ids = sums.drawn(np.random.default_rng(SEED), 500)
    misses = wrong_sums.written(Bounds(with_weight("W_E", 36, 0)), ids) != ids[:, FIRST + 1 :]
    wrong = ids[misses[:, 3] & ~misses[:, :3].any(1)][0]
    a, b = map(float, wrong_sums.numbers(wrong))
    found = after((("W_E", 9, 0), 0.0), (("typed", 0, 0), a), (("typed", 1, 0), b))
    assert found(lead[0, 0]) <= found(lead[0, 1]) < 0


EDITS: list[dict[tuple[str, int, int], float | str]] = [
    {PLACE: 11.0},
    {PLACE: 1.0, A: 7.0},
    {PLACE: 7.0, HERE: 9.0, A: 4.0},
    {("W_E", 9, 0): 0.0},
    {("blocks.0.attn.h0.switch", 0, 0): 0.0, PLACE: 2.0},
]


def test_ironcalc_recomputes_it(in_ironcalc: InIronCalc, cells: FormulaCells) -> None:
    """From wrong values, and after edits."""
    for edit in EDITS:
        assert_recomputes_after(edit, in_ironcalc, book(), cells)


def test_libreoffice_recomputes_it(libreoffice: None, cells: FormulaCells, tmp_path: Path) -> None:
    assert_libreoffice_agrees_after(EDITS, book(), cells, tmp_path)


def test_its_file_is_read_back(cells: FormulaCells, tmp_path: Path) -> None:
    done = cli("build", "adder", "--proof", "-o", tmp_path / "own.xlsx")
    assert done.code == 0, done.err
    assert cli("prove", tmp_path / "own.xlsx").code == 0
    cell = book().cell("W_E", 9, 0)
    path = typed(cells.path, tmp_path / "edited.xlsx", {cell: 0.0})
    assert cli("prove", path).code == 1
    assert "W_E[9,0]" in cli("diff", path).out


def test_other_workbooks_have_no_proof() -> None:
    for asked in (("cat-sat",), ("loss",)):
        done = cli("build", *asked, "--proof")
        assert done.code == 2 and "--proof works only with adder" in done.err
    assert "only the option -o" in cli("build", "adder", "--proof", "--prompt", "1").err
