"""`cellformer train`: a text of anybody's becomes a checkpoint that the other commands read."""

import json
from pathlib import Path

import pytest
from conftest import GOLDEN, cli
from safetensors.numpy import load_file

from cellformer.exporters.checking.verify import read

pytestmark = pytest.mark.slow

TEXT = "".join(json.loads((GOLDEN / "shakespeare" / "held_out.json").read_text())["windows"])
SIZES = ("--layers", 1, "--heads", 2, "--d-model", 8, "--context", 12, "--steps", 6, "--batch", 2)


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text(TEXT)
    return path


def train(text: Path, folder: Path, *more: object) -> str:
    done = cli("train", "--text", text, "-o", folder, *SIZES, *more)
    assert done.code == 0, done.err
    return done.out


@pytest.mark.parametrize(
    "how", [("--half",), ("--vocab", "300", "--d-mlp", "20"), ("--architecture", "llama")]
)
def test_trained_model_builds_runs_and_generates(how: tuple, text: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    out = train(text, folder, *how)
    assert "step 6: held-out loss" in out
    assert "nats per character" in out
    tokenizer = "tokenizer.json" if "--vocab" in how else "characters.json"
    assert {path.name for path in folder.iterdir()} == {
        "config.json",
        "model.safetensors",
        tokenizer,
    }
    assert cli("run", folder, "--prompt", "Good").code == 0
    assert cli("generate", folder, "--prompt", "Good", "-n", 5).code == 0
    short = ("--prompt", "Go", "--tokens", 3, "--text-length", 8)
    assert cli("build", folder, *short, "-o", "m.xlsx", cwd=tmp_path).code == 0
    assert read(tmp_path / "m.xlsx")


def test_training_is_deterministic(text: Path, tmp_path: Path) -> None:
    for name, seed in (("a", 4), ("b", 4), ("c", 5)):
        train(text, tmp_path / name, "--seed", seed)
    a, b, c = (load_file(tmp_path / name / "model.safetensors") for name in "abc")
    assert all((a[name] == b[name]).all() for name in a)
    assert any((a[name] != c[name]).any() for name in a)


def test_retrained_folder_has_one_tokenizer(text: Path, tmp_path: Path) -> None:
    train(text, tmp_path / "m")
    train(text, tmp_path / "m", "--vocab", 270, "--force")
    assert not (tmp_path / "m" / "characters.json").exists()
    assert cli("run", tmp_path / "m", "--prompt", "Good").code == 0


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("--text none.txt", "cannot read none.txt"),
        ("--text /dev/zero", "cannot read /dev/zero: it is not an ordinary file"),
        ("--text empty.txt", "is empty"),
        ("--text latin.txt", "not UTF-8"),
        ("--text text.txt --context 9000", "shorter --context"),
        ("--text text.txt --vocab words", "give `characters` or a number of tokens"),
        ("--text text.txt --vocab 9", "257"),
        ("--text text.txt --heads 5", "the number of heads, 5, must divide d_model = 128"),
        ("--text text.txt --architecture gpt9", "'gpt9' is unknown; choose one of apertus,"),
        (
            "--text text.txt --architecture bert",
            "'bert' is not trained here",
        ),
        ("--text text.txt --architecture bloom --d-mlp 9", "the MLP of bloom must have 512 cells"),
        ("shakespeare --text text.txt --architecture llama", "has fixed sizes"),
        ("--text text.txt --embed-scale 1", "leave it out"),
        ("--text text.txt -o text.txt", "is a file"),
        ("--text text.txt -o text.txt/m", "cannot write"),
        ("", "name a workbook to train"),
        ("shakespeare", "give the text with --text FILE"),
        ("shakespeare --text text.txt --embed-scale 1", "does not use --embed-scale"),
        ("shakespeare --text text.txt --layers 3", "has fixed sizes"),
        ("dialogue-game --text text.txt", "leave out --text"),
        ("dialogue-game --half", "has fixed sizes"),
        ("superposition --embed-scale 1", "does not use --embed-scale"),
        ("superposition --text text.txt", "leave out --text"),
        (
            "cat-sat",
            "choose one of adder, dialogue-game, digits, microgpt, new-york, recurrence, reward",
        ),
    ],
)
def test_train_refuses(line: str, fault: str, text: Path, tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / "latin.txt").write_bytes("é".encode("latin-1") * 500)
    where = () if "-o" in line else ("-o", "out")
    done = cli("train", *line.split(), *where, cwd=tmp_path)
    assert done.code == 2
    assert fault in done.err
    assert done.err.count("\n") == 1
    assert not (tmp_path / "out").exists()
