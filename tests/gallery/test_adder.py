"""The adder: its sums in the engine, in IronCalc, and typed into LibreOffice; what trains it."""

import hashlib
import re
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT, InIronCalc, cli, default_book
from libreoffice import watched_while_typed

from cellformer.engine.cells.batch import filled
from cellformer.engine.cells.expression import expression
from cellformer.engine.cells.gradient import backward
from cellformer.engine.learning import objective
from cellformer.engine.learning.in_cells import blank_pass, summed
from cellformer.engine.models import checkpoint
from cellformer.exporters.compose.sentences import sureness
from cellformer.workbooks import adder
from cellformer.workbooks.adder import learning, machine, sheets, sums, trained
from cellformer.workbooks.adder.sums import FIRST, LENGTH

BITS = "039168d1671c9d0e"  # of the weights after 20 steps
SEED = 30  # of the sums that programs are given
ODD = {  # what is typed instead of a number -> what is then said beside it
    "ten": "‘ten’ is not a whole number of up to ten digits: type only digits",
    "12a4": "‘12a4’ is not a whole number of up to ten digits: type only digits",
    -5.0: "‘-5’ is not a whole number of up to ten digits: type only digits",
    1.5: "‘1.5’ is not a whole number of up to ten digits: type only digits",
    "1 000": "‘1 000’ is not a whole number of up to ten digits: type only digits",
    123456789012.0: "12 digits: the sheet has room for ten or eleven",
    "": "← type a whole number here",
    "  ": "← type a whole number here",
}


@pytest.fixture(scope="module")
def cells() -> dict[str, tuple[str, int, int]]:
    book = default_book("adder")
    blocks = {"a": "typed", "b": "typed", "model": "sums", "plain": "sums", "verdict": "verdict"}
    found = {k: book.cell(name, int(k in ("b", "plain")), 0) for k, name in blocks.items()}
    said = book.shown["add.said"]
    return found | {"said": (said.sheet, said.top, said.left)}


def drawn(n: int) -> list[tuple[int, int]]:
    """The hard sums, and pairs of numbers of one to ten digits, of which one at a time changes."""
    rng = np.random.default_rng(SEED)
    some = [int(rng.integers(10 ** int(k))) for k in rng.integers(1, 11, n)]
    chain = [(some[k - k % 2], some[k - 1 + k % 2]) for k in range(1, n)]
    return [*adder.HARD, *chain][:n]


@pytest.mark.slow
def test_every_sum_is_right() -> None:
    """Ten thousand that no training drew, and ten hard ones."""
    ids = np.concatenate([adder.fresh(), adder.hard()])
    assert ids.shape == (10_010, LENGTH)
    assert trained.right(adder.transformer(), ids).all()
    others = np.where(np.arange(LENGTH) < FIRST, 1, ids)  # the sums of other numbers
    assert not trained.right(adder.transformer(), others).any()


def test_info_counts_its_weights() -> None:
    done = cli("info", "adder")
    assert done.code == 0
    assert re.search(r"^ *all +228", done.out, re.MULTILINE)
    shown, held = [name for name, *_ in sheets.TABLES.values()], default_book("adder")
    assert sum(held.graph[name].whole.size for name in shown) == 228
    assert {held.places[name].sheet for name in shown} == {"Add"}


def test_it_holds_both_digits_and_the_carry_along_one_direction() -> None:
    """The probe is that of least squares, and tells a total of 9 from one of 10."""
    model, ids = adder.transformer(), sums.drawn(np.random.default_rng(SEED), 400)
    graph = blank_pass(trained.decoder(), model.weights, LENGTH - 1)
    held = filled(graph, {"tokens": ids[:, :-1, None].astype(float)})
    mid = held["blocks.0.resid_mid"][:, FIRST:]  # [n, 11, d_model]
    a, b, written = (ids[:, k : k + 11] for k in (1, 13, FIRST + 1))  # after the tenth digit, 0
    total = written + 10 * (a + b > written)  # [n, 11], with the carry
    rows = np.column_stack([mid.reshape(-1, 4), np.ones(mid[..., 0].size)])
    fitted = np.linalg.lstsq(rows, total.ravel(), rcond=None)[0]
    probe = np.array([*machine.PROBE, machine.SHIFT])
    assert np.corrcoef(rows @ fitted, rows @ probe)[0, 1] > 0.9999
    found = rows @ probe
    assert found[total.ravel() < 10].max() < found[total.ravel() >= 10].min()


def test_heads_share_the_two_places_as_said() -> None:
    """docs: the mean attention of each head over the rows that write a digit, by tokens back."""
    model, ids = adder.transformer(), sums.drawn(np.random.default_rng(SEED + 1), 400)
    graph = blank_pass(trained.decoder(), model.weights, LENGTH - 1)
    held = filled(graph, {"tokens": ids[:, :-1, None].astype(float)})
    rows = np.arange(FIRST, LENGTH - 1)

    def percent(head: int, back: int) -> str:
        pattern = held[f"{trained.HEADS[head]}.pattern"]  # [n_sums, n_tokens, n_tokens]
        return f"{pattern[:, rows, rows - back].mean():.0%}".replace("%", " %")

    page = " ".join((ROOT / "docs" / "adder.md").read_text(encoding="utf-8").split())
    first, second = ([percent(n, back) for back in (22, 10, 23, 11)] for n in (0, 1))
    assert (
        f"({first[0]} and {first[1]} of its attention), and to the digits of the previous place, "
        f"23 and 11 back ({first[2]} and {first[3]})" in page
    )
    assert (
        f"({second[0]} and {second[1]}), and hardly to the previous place "
        f"({second[2]} and {second[3]})" in page
    )


def test_weights_have_two_decimals() -> None:
    for w in adder.transformer().weights.values():
        assert [float(f"{x:.2f}") for x in w.flat] == w.ravel().tolist()


def test_it_is_never_wholly_sure() -> None:
    """As many nines as there are, and no rounding up to 100 %."""
    said = {
        0.5: "50 %",
        0.123456: "12.3 %",
        0.9996: "99.9 %",
        0.99999909: "99.9999 %",
        1.0: "99.999999999 %",
    }
    for share, text in said.items():
        assert sureness(expression(share)).value({}) == text
    book = default_book("adder")
    least = book.values["best"][FIRST:].min()  # the rows that write a digit
    assert 1 - 1e-5 < least < 1
    place = book.shown["add.why"]
    shown = book.clean.cell(place.sheet, place.top, place.left)
    assert shown == "The model was at least 99.9999 % sure of each digit."


def test_gradient_of_training_is_the_graphs_own() -> None:
    rng = np.random.default_rng(0)
    vector = learning.initial(rng) + rng.normal(0, 0.1, sum(learning.SIZES))
    ids = sums.drawn(rng, 3)
    loss, gradient = learning.loss_and_gradient(vector, learning.Batch(ids))
    weights = {k: np.atleast_2d(x) for k, x in trained.by_block(vector).items()}
    graph = blank_pass(trained.decoder(), weights, LENGTH - 1)
    gradients = backward(graph, objective.loss(graph, [0] * (LENGTH - 1)))
    share = (np.arange(LENGTH - 1) >= FIRST) / (ids.shape[0] * 11)
    batch = {
        "tokens": ids[:, :-1],
        "loss.targets": ids[:, 1:],
        "loss.share": share + 0 * ids[:, 1:],
    }
    values = filled(graph, weights | {k: x[..., None].astype(float) for k, x in batch.items()})
    assert float(values["loss"].sum()) == pytest.approx(loss, abs=1e-12)
    for name, own in trained.by_block(gradient).items():
        assert summed(values[gradients[name].name]) == pytest.approx(np.atleast_2d(own), abs=1e-9)


@pytest.mark.slow
def test_training_repeats_on_any_processor(tmp_path: Path) -> None:
    """The bits of the weights after 20 steps are those that were found with and without AVX2, FMA
    and AVX-512."""
    *_, last = islice(learning.learn(0, learning.RECIPE.steps), 20)
    bits = b"".join(np.ascontiguousarray(w).tobytes() for w in last.weights.values())
    assert hashlib.sha256(bits).hexdigest()[:16] == BITS
    for folder in ("a", "b"):
        done = cli("train", "adder", "-o", tmp_path / folder, "--steps", 3)
        assert done.code == 0, done.err
        assert "of 10 hard sums" in done.out
    files = [(tmp_path / folder / "model.safetensors").read_bytes() for folder in "ab"]
    assert files[0] == files[1]
    assert checkpoint.load(tmp_path / "a").weights["W_E"].shape == (10, 4)


@pytest.mark.slow
def test_fifty_sums_in_ironcalc(built, cells) -> None:
    sheet = InIronCalc(built["adder"])
    for a, b in drawn(50):
        with sheet.typed({cells["a"]: a, cells["b"]: str(b)}):
            shown = [sheet[cells[k]] for k in ("model", "plain", "verdict")]
            assert shown == [a + b, a + b, "right"], (a, b)
    for text, said in ODD.items():
        with sheet.typed({cells["a"]: text}):
            assert sheet[cells["said"]] == said
            assert {sheet[cells[k]] or "" for k in ("model", "plain", "verdict")} == {""}


def test_two_hundred_sums_typed_into_libreoffice(built, cells, tmp_path: Path, libreoffice) -> None:
    """As numbers and as texts; then what is no number, and eleven digits. No cell is an error."""
    some = drawn(200)
    texts, held = [], (-1, -1)
    for a, b in some:
        both = {cells["a"]: a, cells["b"]: str(b)}
        texts.append(
            {
                at: x
                for (at, x), now, old in zip(both.items(), (a, b), held, strict=True)
                if now != old
            }
        )
        held = a, b
    texts += [{cells["a"]: text} for text in ODD] + [{cells["a"]: 19876543210.0, cells["b"]: 5.0}]
    watched = [cells[k] for k in ("model", "plain", "verdict", "said")]
    rows = watched_while_typed(built["adder"], texts, watched, tmp_path, len(ODD) + 1)
    assert {errors for errors, *_ in rows[200:]} == {"0"}
    for (a, b), row in zip(some, rows, strict=False):
        assert row[1:4] == [f"{a + b:,}", f"{a + b:,}", "right"], (a, b)
    for said, row in zip(ODD.values(), rows[200:], strict=False):
        assert row[1:] == ["", "", "", said]
    assert rows[-1][2:4] == ["19,876,543,215", "wrong"]
