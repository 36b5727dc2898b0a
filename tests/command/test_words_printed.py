"""What a foreign vocabulary holds steers no terminal, no table, no workbook: whichever command
prints it."""

import csv
import sys
import unicodedata
import zipfile
from pathlib import Path
from xml.parsers import expat

import pytest
from conftest import cli, random_model

import cellformer as cf
from cellformer.command import printing
from cellformer.engine import Model, ModelSpec, WordList
from cellformer.engine.models import checkpoint

pytestmark = pytest.mark.slow

WORDS = (
    *("a", "\x1b[31mred", "\x9b2J", "=HYPERLINK(\"http://x\",\"y\")", "+1", "@x", "-2", "=1+1"),
    *("\u202egnp.exe", "\u2066x", "a\x07b", "_x0041_x0042_", "<r><t>x</r>", "\x9bw", "[b]b[/b]"),
)  # fmt: skip
TITLE = "m\u202e[red]=1"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model's folder, itself with a name that nobody should have."""
    small = random_model(ModelSpec(len(WORDS), 6, 4, n_layers=1, n_heads=1, d_head=2, d_mlp=2), 3)
    model = Model(**{**vars(small), "vocabulary": WordList(WORDS)})
    path = tmp_path_factory.mktemp("words") / TITLE
    checkpoint.save(model, path)
    return path


def assert_harmless(text: str) -> None:
    steering = [c for c in text if c not in "\n\t" and unicodedata.category(c) in ("Cc", "Cs")]
    assert steering == [] and not set("\u202e\u2066") & set(text)


IDS = ("--ids", "0,1,2,9")


@pytest.mark.parametrize(
    "args",
    [
        ("run", "--lens", "--target", "\x1b[31mred"),
        ("run", "--show", "tokens", "--json"),
        ("run", "--target", "nothing of this \x1b[0m"),
        ("trace", "logits[1,1]"),
        ("ablate",),
        ("gradient",),
        ("sweep", "W_E[0,0]", "--steps", "3"),
        ("why", "--head", "0.0"),
        ("why", "--head", "0.0", "--to", "nothing of this \x1b[0m"),
        ("generate", "-n", "1", "--table", "--ignore-eos", "--top-k", "\x1b"),
        ("edit", "--say", "+1", "-o", "edited.xlsx"),
        ("build", "-o", "built.xlsx"),
    ],
    ids=lambda args: " ".join(args[:2]),
)
def test_no_command_prints_control_characters(
    args: tuple[str, ...], folder: Path, tmp_path: Path
) -> None:
    name, *more = args
    place = more[:1] if name in ("trace", "sweep") else []
    done = cli(name, folder, *place, *IDS, *more[len(place) :], cwd=tmp_path)
    assert done.out or done.err
    assert_harmless(done.out + done.err)


def test_info_and_diff_print_no_control_characters(folder: Path, tmp_path: Path) -> None:
    path = cf.write(cf.build(folder, ids=[1, 0, 8]), tmp_path / "w.xlsx")
    for done in (cli("info", folder), cli("diff", path)):
        assert done.code == 0
        assert_harmless(done.out)


def test_generate_escapes_for_a_terminal_alone(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    args = ("generate", folder, "--ids", "1,8", "-n", "1")
    assert "\x1b[31mred" in cli(*args).out
    written: list[str] = []
    terminal = type("Terminal", (), {"isatty": lambda _: True, "encoding": "utf-8"})()
    terminal.write, terminal.flush = written.append, lambda: None
    monkeypatch.setattr(sys, "stdout", terminal)
    printing.text("\x1b[31mred\u202e\n")
    assert written == ["\\x1b[31mred\\u202e\n"]


def test_sweep_csv_holds_no_formula(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    args = ("W_U[0,3]", "--ids", "0", "--from", "-90", "--to", "90", "--steps", "3", "-o", path)
    for target in ("=1+1", "+1"):
        assert cli("sweep", folder, *args, "--target", target).code == 0
        rows = [*csv.reader(path.open(encoding="utf-8"))]
        texts = rows[0] + [row[-1] for row in rows[1:]]
        assert not [text for text in texts if text.startswith(("=", "+", "-", "@"))]
        assert [float(row[1]) for row in rows[1:]] == [-90, 0, 90]
        assert any(text.startswith("'=HYPERLINK(") for text in texts)


def test_odd_words_in_a_workbook(folder: Path, tmp_path: Path) -> None:
    path = cf.write(cf.build(folder, ids=[10, 11, 12, 13]), tmp_path / "w.xlsx")
    with zipfile.ZipFile(path) as archive:
        for part in archive.namelist():
            if part.endswith((".xml", ".rels", ".vml")):
                expat.ParserCreate().Parse(archive.read(part), True)
    found = cf.read(path)
    assert [*found.inputs, *found.overwritten, *found.labels] == []


def test_half_surrogate_pair_in_a_word(tmp_path: Path) -> None:
    small = random_model(ModelSpec(3, 4, 4, n_layers=1, n_heads=1, d_head=2, d_mlp=2), 3)
    model = Model(**{**vars(small), "vocabulary": WordList(("a", "b\udcff", "\ud800"))})
    path = cf.write(cf.build(model, ids=[0, 1], title="t\udcff"), tmp_path / "w.xlsx")
    found = cf.read(path)
    assert [*found.inputs, *found.overwritten, *found.labels] == []
