"""--json, --csv and --quiet: what each command prints for scripts, held to docs/json.md."""

import csv
import json
from collections.abc import Sequence
from dataclasses import is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    NotRequired,
    Union,
    get_args,
    get_origin,
    is_typeddict,
)

import numpy as np
import pytest
from conftest import cli, script

import cellformer as cf
from cellformer.command import results
from cellformer.command.answer import SCHEMA
from cellformer.command.group import HOMES

GAME = ("dialogue-game", "--prompt", "<BOS> Pietro chiama Paolo")
ASKED = {  # a command, and the kind of its result
    ("list",): "List",
    ("info", "cat-sat"): "Info",
    ("run", "cat-sat", "--target", "mat", "--lens", "--show", "*.h0.scores"): "Run",
    ("run", "loss", "--set", "counts[0,0]=7"): "Run",
    ("run", "tests/golden/minilm", "--ids", "1,2"): "Run",
    ("trace", "cat-sat", "logits[2,5]"): "Trace",
    ("trace", "loss", "Entropy!D9"): "Trace",
    ("ablate", "cat-sat"): "Study ablate",
    ("sweep", "cat-sat", "W_E[1,0]", "--steps", "3"): "Sweep",
    ("sweep", "loss", "counts[0,0]", "--target", "true_P[0,0]", "--steps", "3"): "Sweep",
    ("generate", "cat-sat", "-n", "2"): "Generate",
    ("gradient", "cat-sat"): "Gradient",
    ("gradient", "loss", "--target", "true_P[0,0]"): "Gradient",
    ("patch", *GAME, "--against", "<BOS> 3 chiama Paolo", "--site", "embed"): "Patch",
    ("why", "cat-sat"): "WhyHeads",
    ("why", "cat-sat", "--head", "0.0", "--rival-key", "0"): "WhyHead",
    ("why", "cat-sat", "--say", "floor"): "WhyWord",
    ("why", "tests/golden/mamba", "--ids", "3,1", "--channel", "0.3"): "WhyChannel",
    ("steer", "dialogue-game", "--lists", "examples/callers.txt", "-n", "1"): "Steer",
    ("quantize", "cat-sat", "--bits", "4"): "Quantize",
    ("prove", "adder"): "Prove",
}
KINDS = {k.__name__: k for name in HOMES if name != "open" for k in results.kinds(name)}
WRITES = {
    ("build", "cat-sat"): "Build",
    ("build", "cat-sat", "-o", "cat-sat.html"): "Build",
    ("edit", "cat-sat", "--say", "floor"): "Edit",
    ("diff", "edited.xlsx"): "Diff",
    ("diff", "loss.xlsx"): "Diff",
    ("diff", "exercise.xlsx"): "Diff",
    ("explain", "edited.xlsx", "Start!A4", "logits[2,5]", "W_E[0,0]"): "Explain",
    ("import", "edited.xlsx", "-o", "folder"): "Import",
    ("grade", "exercise.xlsx"): "Grade",
    ("verify", "edited.xlsx", "--engine", "ironcalc"): "Verify",
    ("bless", "-o", "forms.xlsx"): "Bless",
    ("train", "semantic-tiny", "-o", "trained", "--steps", "2"): "Train",
}


def assert_is(kind: Any, value: Any, where: str = "result") -> None:
    """A value of JSON is of a kind, as `results` declares it."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is NotRequired or origin is Annotated:
        return assert_is(inner[0], value, where)
    if is_typeddict(kind) or is_dataclass(kind) or hasattr(kind, "_fields"):
        required = getattr(kind, "__required_keys__", set(kind.__annotations__))
        assert required <= set(value) <= set(kind.__annotations__), where
        hints = results.hints(kind)
        for key, held in value.items():
            assert_is(hints[key], held, f"{where}.{key}")
    elif origin in (list, Sequence):
        assert isinstance(value, list), where
        for held in value:
            assert_is(inner[0], held, f"{where}[]")
    elif origin is dict:
        assert isinstance(value, dict), where
        for key, held in value.items():
            assert_is(inner[1], held, f"{where}.{key}")
    elif origin is tuple:
        for one, held in zip(inner, value, strict=True):
            assert_is(one, held, where)
    elif origin in (Union, UnionType):
        assert any(_fits(one, value) for one in inner), (where, value)
    else:
        takes = {float: (int, float), NoneType: NoneType}.get(kind, kind)
        is_right = isinstance(value, takes) and (kind is bool or not isinstance(value, bool))
        assert is_right, (where, value, kind)


def _fits(kind: Any, value: Any) -> bool:
    try:
        assert_is(kind, value)
    except (AssertionError, TypeError, ValueError):
        return False
    return True


def assert_prints(asked: Sequence[str], kind: str, cwd: Path | None = None) -> dict[str, Any]:
    """A command prints JSON of a kind, which is returned."""
    done = cli(*asked, "--json", cwd=cwd)
    assert done.code == 0, done.err
    assert done.out.isascii() and not done.err
    printed = json.loads(done.out, parse_constant=pytest.fail)
    assert {**printed, "result": {}} == {
        "schema": SCHEMA,
        "command": asked[0],
        "version": cf.__version__,
        "result": {},
    }
    (described,) = (one for one in results.kinds(asked[0]) if one.__name__ == kind)
    assert_is(described, printed["result"])
    found: dict[str, Any] = printed["result"]
    return found


def assert_prints_csv(asked: Sequence[str], found: list[dict[str, Any]]) -> None:
    """A command prints rows as CSV."""
    head, *rows = csv.reader(cli(*asked, "--csv").out.splitlines())
    assert head == list(found[0]) and len(rows) == len(found)
    for row, record in zip(rows, found, strict=True):
        for text, value in zip(row, record.values(), strict=True):
            assert isinstance(value, bool | str | list | None) or float(text) == value


@pytest.mark.slow
@pytest.mark.parametrize("asked", ASKED, ids=" ".join)
def test_a_command_prints_json_and_csv(asked: tuple[str, ...]) -> None:
    found, listed = assert_prints(asked, ASKED[asked]), results.main_table(KINDS[ASKED[asked]])
    if listed and "--show" not in asked and found[listed]:
        assert_prints_csv(asked, found[listed])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model's workbook, a worksheet and exercises, edited."""
    folder = tmp_path_factory.mktemp("edited")
    cf.write(cf.build("cat-sat"), folder / "edited.xlsx", edits={("W_E", 1, 0): 0.5})
    cf.write(cf.build("loss"), folder / "loss.xlsx", edits={("counts", 0, 0): 5.0})
    cf.write(cf.exercise("loss", solved=True), folder / "exercise.xlsx")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("asked", WRITES, ids=" ".join)
def test_a_command_that_writes_prints_json(asked: tuple[str, ...], folder: Path) -> None:
    assert_prints(asked, WRITES[asked], folder)


def test_every_command_is_documented() -> None:
    assert {*KINDS} == {*ASKED.values(), *WRITES.values(), "Explain", "OfPrompts"}
    page = script("json_results")
    assert page.TARGET.read_text(encoding="utf-8") == page.reference(), (
        "python docs/scripts/json_results.py"
    )


def test_csv_of_a_block_has_the_words_of_its_tokens() -> None:
    done = cli("run", "cat-sat", "--show", "blocks.0.attn.h0.pattern", "--csv")
    head, *rows = csv.reader(done.out.splitlines())
    assert head == ["row", "0 the", "1 cat", "2 sat"] and [row[0] for row in rows] == head[1:]
    assert sum(map(float, rows[2][1:])) == pytest.approx(1)


def test_csv_holds_no_formula(tmp_path: Path) -> None:
    spec = cf.ModelSpec(d_vocab=2, d_model=2, n_ctx=4)
    weights = {"W_E": np.eye(2), "W_U": np.eye(2)}
    cf.save(cf.Model(spec, weights, cf.WordList(("=1+1", "@x"))), tmp_path / "model")
    done = cli("run", tmp_path / "model", "--ids", "0,1", "--csv")
    words = [row["word"] for row in csv.DictReader(done.out.splitlines())]
    assert sorted(words) == ["'=1+1", "'@x"]


def test_quiet_prints_nothing_but_errors(folder: Path) -> None:
    done = cli("build", "cat-sat", "-o", "quiet.xlsx", "--quiet", cwd=folder)
    assert (done.code, done.out, done.err) == (0, "", "") and (folder / "quiet.xlsx").is_file()
    wrong = cli("verify", "missing.xlsx", "-q", cwd=folder)
    assert wrong.code == 2 and wrong.err and not wrong.out
    both = cli("list", "--json", "--csv")
    assert both.code == 2 and "--json and --csv cannot be combined" in both.err
