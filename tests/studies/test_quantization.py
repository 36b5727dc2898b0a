"""Quantization: weights on a grid of few bits, in numpy and in cells."""

from pathlib import Path

import numpy as np
import pytest
from conftest import GOLDEN, cli, default_graph, told

import cellformer as cf
from cellformer.engine import Evaluator, Graph, InputError
from cellformer.engine.models import checkpoint
from cellformer.engine.studies import quantization
from cellformer.engine.studies.quantization import ALL_BITS, WIDTHS, Grid, Measure, quantized


def graph_of(name: str) -> Graph:
    golden = name != "cat-sat"
    return checkpoint.load(GOLDEN / name).graph([8, 12, 3]) if golden else default_graph(name)


@pytest.mark.parametrize("name", ["cat-sat", "gpt2", "llama", "mixtral", "bert"])
def test_without_bits_every_value_is_the_models_own(name: str) -> None:
    plain = graph_of(name)
    rounding = quantized(plain)
    for block in plain:
        assert np.array_equal(rounding.values[block.name], plain.values[block.name]), block.name


@pytest.mark.parametrize("name", ["cat-sat", "mixtral"])
def test_cells_round_as_numpy_does(name: str) -> None:
    plain = graph_of(name)
    live = Evaluator(quantized(plain))
    for bits in WIDTHS:
        live.set(ALL_BITS, 0, 0, bits)
        for weight in quantization.matrices(plain):
            wanted = Grid(bits).rounded(
                plain.inputs[weight.name], quantization.axis_of(plain, weight)
            )
            assert np.array_equal(live[f"{weight.name}.used"], wanted), (weight.name, bits)


def test_a_part_has_bits_of_its_own() -> None:
    plain = graph_of("gpt2")
    live = Evaluator(quantized(plain))
    live.set(ALL_BITS, 0, 0, 4.0)
    live.set("quantize.W_E.instead", 0, 0, 0.0)
    assert np.array_equal(live["W_E.used"], plain.inputs["W_E"])
    assert not np.array_equal(live["W_pos.used"], plain.inputs["W_pos"])


@pytest.mark.parametrize("typed", [1.0, 2.5, -4.0, 16.0, 1e300])
def test_other_numbers_of_bits_count_as_none(typed: float) -> None:
    plain = graph_of("cat-sat")
    live = Evaluator(quantized(plain))
    live.set(ALL_BITS, 0, 0, typed)
    live.set("quantize.W_E.instead", 0, 0, "x")
    assert np.array_equal(live["logits"], plain.values["logits"])


@pytest.mark.parametrize("group", [0, 32])
@pytest.mark.parametrize("asymmetric", [False, True])
@pytest.mark.parametrize("bits", WIDTHS)
def test_weights_on_a_grid(bits: int, asymmetric: bool, group: int) -> None:
    """Whole multiples of the scale, as many as the bits tell apart, and the nearest: for each line
    or group, computed here weight by weight."""
    w = np.random.default_rng(bits).standard_normal((64, 5)) + asymmetric
    w[:, 4] = 0
    found = Grid(bits, group, asymmetric).rounded(w, 0)
    for j in range(4):
        for begin in range(0, 64, group or 64):
            own, to = (x[begin : begin + (group or 64), j] for x in (w, found))
            low, high = min(own.min(), 0), max(own.max(), 0)
            scale = (
                (high - low) / (2**bits - 1)
                if asymmetric
                else abs(own).max() / (2 ** (bits - 1) - 1)
            )
            integers = to / scale
            assert np.abs(integers - np.rint(integers)).max() < 1e-9
            assert np.ptp(np.rint(integers)) < 2**bits
            assert np.abs(to - own).max() <= scale * (1 if asymmetric else 0.5) + 1e-12
    assert not found[:, 4].any()
    assert np.array_equal(Grid(bits, group, asymmetric).rounded(w.T, 1), found.T)


def test_effects_are_those_of_rounded_weights() -> None:
    model = cf.load("cat-sat")
    ids = model.vocabulary.encode("the cat sat")
    measure = Measure(model, ids)
    found = {(e.part, e.bits): e for e in measure.effects([Grid(3)])}
    live = Evaluator(quantized(model.graph(ids)))
    for part in ("all", *quantization.parts(model.graph(ids))):
        live.reset()
        live.set(ALL_BITS if part == "all" else f"quantize.{part}.instead", 0, 0, 3.0)
        row = live["logits"][-1]
        assert row[measure.target] - row[measure.rival] == pytest.approx(
            found[part, 3].lead, abs=1e-12
        )
    plain = model.graph(ids).values["logits"]
    logs = plain - np.log(np.exp(plain).sum(axis=1, keepdims=True))
    assert found["all", 0].loss == pytest.approx(
        -(logs[0, ids[1]] + logs[1, ids[2]]) / 2, abs=1e-12
    )


@pytest.mark.slow
def test_quantize_in_python_and_as_a_command() -> None:
    found = cf.quantize("cat-sat", bits=[4], group=5, texts=["the cat sat", "the cat"])
    assert [e.bits for e in found[:2]] == [0, 4] and found[0].part == "all"
    effects = told("quantize", "cat-sat", "--bits", "4")["effects"]
    assert [e["lead"] for e in effects] == [e.lead for e in cf.quantize("cat-sat", bits=[4])]
    assert "if only one part is rounded" in cli("quantize", "cat-sat").out


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        (
            "quantize cat-sat --bits 1",
            "cannot be rounded to 1 bits; give a list with only 8, 4, 3, 2",
        ),
        ("quantize cat-sat --bits 4,x", "cannot be rounded to 'x' bits"),
        ("quantize cat-sat --bits=", "cannot be rounded to '' bits"),
        (
            "quantize cat-sat --groups 7",
            "no row of weights can be divided into groups of 7; rows have",
        ),
        (f"quantize {GOLDEN}/minilm --ids 1,2", "predicts no words"),
    ],
)
def test_quantize_refuses(line: str, fault: str) -> None:
    done = cli(*line.split())
    assert done.code == 2 and fault in done.err and done.err.count("\n") == 1, done.err


@pytest.mark.parametrize("bits", [4, [], [4, 5], "4", None, np.array([4, 8])])
def test_quantize_takes_a_list_of_known_bits(bits: object) -> None:
    with pytest.raises(InputError, match="give a list with only 8, 4, 3, 2"):
        cf.quantize("cat-sat", bits=bits)  # type: ignore[arg-type]


@pytest.mark.parametrize("group", [-5, 2.5, "32"])
def test_groups_are_whole_numbers_of_weights(group: object) -> None:
    with pytest.raises(InputError, match="cannot share a scale; give 32, or 0"):
        cf.quantize("cat-sat", bits=[4], group=group)  # type: ignore[arg-type]


def test_a_fault_in_a_file_of_prompts_names_its_line(tmp_path: Path) -> None:
    path = tmp_path / "texts.txt"
    path.write_text("the cat\n\nthe xylophone\n")
    done = cli("quantize", "cat-sat", "--also", str(path))
    assert done.code == 2 and "texts.txt, line 3, 'the xylophone': " in done.err, done.err
