"""The proof that adder is right for all sums: sound, and true of the included weights."""

import csv
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT, cli, default_book, typed

from cellformer.engine import Model
from cellformer.engine.cells.batch import filled
from cellformer.engine.learning.in_cells import blank_pass
from cellformer.exporters.file import xlsx
from cellformer.workbooks import adder
from cellformer.workbooks.adder import intervals, proof, sums, trained, wrong_sums
from cellformer.workbooks.adder.intervals import Interval
from cellformer.workbooks.adder.proof import Bounds, Cases
from cellformer.workbooks.adder.sums import FIRST, LENGTH, PLACES

SEED = 47
N_CASES = 170_300


@pytest.fixture(scope="module")
def bounds() -> Bounds:
    return Bounds(adder.transformer())


def with_weight(name: str, n: int, value: float) -> Model:
    """The model with weight number n of a matrix changed."""
    model = adder.transformer()
    changed = model.weights[name].copy()
    changed.flat[n] = value
    return replace(model, weights={**model.weights, name: changed})


def edited(rng: np.random.Generator) -> Model:
    """The model with one random weight changed at random."""
    weights = adder.transformer().weights
    name = rng.choice(list(weights))
    n = rng.integers(weights[name].size)
    return with_weight(name, n, weights[name].flat[n] + rng.normal() * rng.choice([0.1, 1, 10]))


def cases_of(ids: np.ndarray, place: int) -> Cases:
    """The cases of sums [n, LENGTH] at a place."""
    a, b = (ids[:, first : first + PLACES].T for first in (1, PLACES + 3))
    carries = np.zeros((PLACES + 1, len(ids)), int)
    for k in range(PLACES):
        carries[k + 1] = (a[k] + b[k] + carries[k]) // 10
    zero = np.zeros(len(ids), int)
    here = (a[place], b[place]) if place < PLACES else (zero, zero)
    before = (a[place - 1], b[place - 1], carries[place - 1]) if place else (zero, zero, zero)
    return Cases(place, *here, *before, np.full(len(ids), np.nan))


@pytest.mark.slow
def test_every_sum_is_proved_as_texts_say() -> None:
    told = json.loads(cli("prove", "adder", "--json").out)["result"]
    assert told["proved"] and told["unproved"] == []
    assert told["cases"] == N_CASES == sum(each["cases"] for each in told["digits"])
    assert round(told["lead"], 3) == 0.022
    for page in ("README.md", "docs/adder.md", "docs/teach/notes.md"):
        assert re.search("prove[ds]|a proof shows", (ROOT / page).read_text("utf-8"))
    assert f"{N_CASES:,}" in (ROOT / "docs" / "adder.md").read_text("utf-8")
    about = " ".join(
        str(entry.value) for entry in default_book("adder").sheets["Start"].entries.values()
    )
    assert re.search("prove[ds]|proof", about)


def test_cases_are_those_of_sums(bounds: Bounds) -> None:
    """A sum's case has its digits; the box of a case holds the stream of every sum with it."""
    ids = sums.drawn(np.random.default_rng(SEED), 300)
    assert sum(len(proof.cases(place).a) for place in range(PLACES + 1)) == N_CASES
    for place in range(PLACES + 1):
        found = cases_of(ids, place)
        assert (found.written == ids[:, FIRST + place]).all() or place == 0
        assert (found.right == ids[:, FIRST + 1 + place]).all()
        every = proof.cases(place)
        names = ("a", "b", "a_before", "b_before", "carry")
        listed = set(zip(*(getattr(every, name).tolist() for name in names), strict=True))
        assert len(listed) == len(every.a)
        assert set(zip(*(getattr(found, name).tolist() for name in names), strict=True)) <= listed


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_bounds_hold_what_the_engine_computes(seed: int) -> None:
    """Of the included weights, and of edited ones."""
    rng = np.random.default_rng(seed)
    model = edited(rng) if seed else adder.transformer()
    bounds, ids = Bounds(model), sums.drawn(rng, 100)
    graph = blank_pass(trained.decoder(), model.weights, LENGTH - 1)
    held = filled(graph, {"tokens": ids[:, :-1, None].astype(float)})

    def assert_within(box: Interval, x: np.ndarray) -> None:
        assert (box.low <= x).all() and (x <= box.high).all()

    read = ids[:, :-1]
    assert_within(bounds.values[read], held[f"{trained.KEYS}.v"])
    for place in range(PLACES + 1):
        t, found = FIRST + place, cases_of(ids, place)
        assert_within(bounds.box(found), held["blocks.0.resid_mid"][:, t])
        for h, head in enumerate(trained.HEADS):
            back = t - np.arange(t + 1)
            score = bounds.attention[back, h, ids[:, t, None], ids[:, : t + 1]]
            assert_within(score, np.exp(held[f"{head}.scores"][:, t, : t + 1]))
        mid, logits = held["blocks.0.resid_mid"][:, t], held["logits"][:, t]
        right, n = found.right, np.arange(len(ids))
        scale = np.sqrt((held["blocks.0.resid_post"][:, t] ** 2).mean(-1) + bounds.eps)
        rest = np.where(np.arange(10) == right[:, None], -np.inf, logits)
        lead = (logits[n, right] - rest.max(-1)) * scale
        low = bounds.lead(intervals.exactly(mid), right)
        assert (low <= lead).all() and np.allclose(low, lead, rtol=1e-6, atol=1e-6)


@pytest.mark.slow
def test_cases_of_wrong_sums_are_never_proved() -> None:
    """40 edits of one weight that break sums: the case of each wrong digit is not proved."""
    rng, broken, n_wrong = np.random.default_rng(SEED), 0, 0
    while broken < 40:
        model = edited(rng)
        bounds, ids = Bounds(model), sums.drawn(rng, 2000)
        misses = wrong_sums.written(bounds, ids) != ids[:, FIRST + 1 :]
        broken += bool(misses.any())
        for place in range(PLACES + 1):
            found = cases_of(ids[misses[:, place]][:50], place)
            n_wrong += len(found.a)
            with np.errstate(all="ignore"):
                assert not bounds.prove(found).proved.any()
    assert n_wrong > 2000


@pytest.mark.slow
def test_digits_by_look_ups_are_the_engine_s() -> None:
    rng = np.random.default_rng(SEED)
    for model in [adder.transformer(), *(edited(rng) for _ in range(5))]:
        ids = sums.drawn(rng, 200)
        found = (wrong_sums.written(Bounds(model), ids) == ids[:, FIRST + 1 :]).all(1)
        assert (found == trained.right(model, ids)).all()


def test_sums_of_a_case_have_its_digits() -> None:
    rng = np.random.default_rng(SEED)
    for place in range(PLACES + 1):
        every = proof.cases(place)
        found = every.of(rng.integers(0, len(every.a), 40))
        found = replace(found, lead=-1.0 - np.arange(40))
        ids = wrong_sums.of_cases(rng, found)
        made = cases_of(ids, place)
        hardest = np.repeat(np.arange(40)[::-1], wrong_sums.ENDINGS)
        for name in ("a", "b", "a_before", "b_before", "carry"):
            assert (getattr(made, name) == getattr(found, name)[hardest]).all()


@pytest.mark.slow
def test_a_broken_model_is_not_proved_and_a_wrong_sum_is_named() -> None:
    done = cli("prove", "adder", "--set", "W_E[9,0]=0", "--json")
    told = json.loads(done.out)["result"]
    assert done.code == 1 and not told["proved"]
    assert len(told["unproved"]) == sum(each["unproved"] for each in told["digits"]) > 30_000
    named = [each for each in told["digits"] if each["wrong"]]
    assert len(named) == 10
    model = with_weight("W_E", 36, 0)
    for each in named:
        pair = [int(x.replace(",", "")) for x in each["wrong"].split(" + ")]
        ids = sums.tokens(*(sums.digits([x]) for x in pair))
        assert not trained.right(model, ids)[0] and trained.right(adder.transformer(), ids)[0]


@pytest.mark.slow
def test_numbers_that_overflow_are_not_proved() -> None:
    for name, value in (("W_E", 1e200), ("ln_final.w", 1e300), ("blocks.0.ln1.w", 1e200)):
        bounds = Bounds(with_weight(name, 3, value))
        with np.errstate(all="ignore"):
            assert not bounds.prove(proof.cases(10)).proved.all()
    model, name = adder.transformer(), "blocks.0.mlp.W_out"  # only the last norm overflows
    huge = replace(model, weights={**model.weights, name: model.weights[name] * 1e200})
    with np.errstate(all="ignore"):
        assert not Bounds(huge).prove(proof.cases(10)).proved.any()


@pytest.mark.slow
def test_an_edited_workbook_is_not_proved(tmp_path: Path) -> None:
    """Its weights and switches count; a replaced formula is refused, and so is another file."""
    book = default_book("adder")
    switch = book.cell(f"{trained.HEADS[0]}.switch", 0, 0)
    path = typed(xlsx.write(book, tmp_path / "adder.xlsx"), tmp_path / "off.xlsx", {switch: 0.0})
    done = cli("prove", path, "--csv")
    rows = list(csv.DictReader(done.out.splitlines()))
    assert done.code == 1 and [row["digit"] for row in rows] == [str(k) for k in range(1, 12)]
    assert all(int(row["unproved"]) > 0 for row in rows)
    formula = book.cell("blocks.0.resid_mid", 3, 1)
    path = typed(tmp_path / "adder.xlsx", tmp_path / "over.xlsx", {formula: 0.0})
    assert "was replaced; restore it" in cli("prove", path).err


def test_other_models_are_refused_in_a_line() -> None:
    done = cli("prove", "cat-sat")
    assert done.code == 2 and re.fullmatch(
        r"cellformer: cat-sat is not adder, .*`cellformer train adder`\n", done.err
    )
    done = cli("prove", "adder", "--set", "W_E[0,0]=nan")
    assert done.code == 2 and done.err.count("\n") == 1
