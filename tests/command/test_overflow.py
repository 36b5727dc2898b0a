"""Models whose numbers overflow: every command that evaluates names the first cell that does."""

from pathlib import Path

import numpy as np
import pytest
from conftest import GOLDEN, cli
from safetensors.numpy import load_file, save_file

import cellformer as cf
from cellformer.engine import InputError
from cellformer.engine.cells import finite

pytestmark = pytest.mark.slow

NAMES = ("gpt2", "llama", "gemma2", "mamba")


def scaled(name: str, folder: Path, by: float) -> Path:
    """A golden model whose weights are times `by`."""
    for path in (GOLDEN / name).iterdir():
        if path.suffix == ".json":
            (folder / path.name).write_bytes(path.read_bytes())
    tensors = load_file(GOLDEN / name / "model.safetensors")
    large = {n: t.astype(np.float64) / np.abs(t).max() * by for n, t in tensors.items()}
    save_file(large, folder / "model.safetensors")
    return folder


@pytest.mark.parametrize("by", [1e300, 1e308])
@pytest.mark.parametrize("name", NAMES)
def test_each_command_names_the_same_cell(name: str, by: float, tmp_path: Path) -> None:
    model = scaled(name, tmp_path, by)
    said = cli("run", model, "--ids", "0,1,2")
    assert said.code == 2 and "is not a finite number, because of an overflow" in said.err
    for command in (
        ("generate", model, "-n", "3"),
        ("build", model, "--tokens", "5", "-o", tmp_path / "book.xlsx"),
        ("build", model, "-o", tmp_path / "book.xlsx"),
        ("build", model, "-o", tmp_path / "page.html"),
        ("gradient", model),
        ("patch", model, "--against", "3 1 0"),
        ("quantize", model),
        ("sweep", model, "W_E[0,0]", "--from", "0", "--to", "1", "--steps", "2"),
        *(
            [("ablate", model), ("why", model, "--head", "0.0")] if name != "mamba" else []
        ),  # which has no heads
    ):
        done = cli(*command, "--ids", "0,1,2")
        assert (done.code, done.err) == (2, said.err), command
    assert not list(tmp_path.glob("*.xlsx")) and not list(tmp_path.glob("*.html"))


def test_largest_number_of_float16_overflows_in_mamba(tmp_path: Path) -> None:
    model = scaled("mamba", tmp_path, 65504.0)
    for command in (("run", model), ("generate", model, "-n", "3")):
        done = cli(*command, "--ids", "0,1,2")
        assert done.code == 2 and "is not a finite number, because of an overflow" in done.err


@pytest.mark.parametrize("suffix", ["xlsx", "html"])
@pytest.mark.parametrize("name", NAMES)
def test_squares_that_overflow_are_named(name: str, suffix: str, tmp_path: Path) -> None:
    """Sheets square numbers, where the model does not."""
    model = scaled(name, tmp_path, 1e154)
    done = cli("build", model, "--ids", "0,1,2", "-o", tmp_path / f"book.{suffix}")
    assert done.code == 2 and done.err.count("\n") == 1
    assert (
        "is not a finite number, because of an overflow" in done.err
        or "too large, because" in done.err
    )
    assert not (tmp_path / f"book.{suffix}").exists()


def test_large_weight_is_refused_though_no_cell_overflows() -> None:
    graph = cf.graph("cat-sat", "the cat sat")
    live = cf.Evaluator(graph)
    live.set("W_E", 9, 0, 1e200)  # of a word that is not there
    finite.check(graph, live)
    with pytest.raises(InputError, match=r"W_E\[9,0\] is 1e\+200, which is too large, because"):
        finite.check_for_sheets(graph, live)


@pytest.mark.parametrize("penalty", ["1e308", "1e-320", "0"])
def test_repetition_penalty_has_bounds(penalty: str, tmp_path: Path) -> None:
    for command in (
        ("generate", "cat-sat", "-n", "2"),
        ("build", "cat-sat", "--tokens", "5", "-o", tmp_path / "book.xlsx"),
    ):
        done = cli(*command, "--repetition-penalty", penalty)
        assert done.code == 2 and "it must be from 0.000001 to 1000000" in done.err
