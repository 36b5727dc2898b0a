"""Results kept in a .partial file: what is whole is gone on with, damaged lines are computed again,
and nothing but a regular file of the same work is written to."""

import os
import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import GOLDEN, cli

import cellformer as cf
from cellformer import stamps, studies
from cellformer.kept import Kept

PROMPTS = list(map(studies.Prompt, ["the cat sat", "a dog ran", "the dog sat on", "a big cat"]))


def computed(output: Path, prompts: list[studies.Prompt] = PROMPTS, name: str = "cat-sat") -> int:
    """How many prompts a run with --resume computes."""
    done: list[int] = []
    studies.run(
        studies.Task("ablate", name), prompts, output=output, resume=True, advance=done.append
    )
    return sum(done[1:])


def stopped(folder: Path, prompts: list[studies.Prompt] = PROMPTS, name: str = "cat-sat") -> bytes:
    """The file of a run that was stopped when all was computed and nothing written."""
    path, asked = folder / "stopped.csv", studies.Task("ablate", name)
    left = len(prompts)

    def stop(n: int) -> None:
        nonlocal left
        left -= n
        if not left:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        studies.run(asked, prompts, output=path, advance=stop)
    partial = path.with_name("stopped.csv.partial")
    held = partial.read_bytes()
    partial.unlink()
    return held


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> tuple[bytes, bytes]:
    """The results of all prompts as they are kept, and the table that is right."""
    folder = tmp_path_factory.mktemp("whole")
    studies.run(studies.Task("ablate", "cat-sat"), PROMPTS, output=folder / "t.csv")
    return stopped(folder), (folder / "t.csv").read_bytes()


def lines(held: bytes, change: Callable[[list[bytes]], object]) -> bytes:
    """The same with other lines; the first one is the work, the third of the second prompt."""
    found = held.splitlines(keepends=True)
    change(found)
    return b"".join(found)


DAMAGED: dict[str, tuple[Callable[[list[bytes]], object], int]] = {  # and what is computed again
    "nothing": (lambda found: None, 0),
    "the last line cut short": (lambda found: found.append(found.pop()[:30]), 1),
    "NULs behind it": (lambda found: found.append(b"\0" * 4096), 0),
    "NULs for the last line": (lambda found: found.append(b"\0" * len(found.pop())), 1),
    "a line of garbage": (lambda found: found.insert(2, b"garbage\n"), 0),
    "an empty line": (lambda found: found.insert(2, b"\n"), 0),
    "no UTF-8": (lambda found: found.insert(2, b"\xff\xfe\n"), 0),
    "two lines glued": (lambda found: found.append(found.pop(2).strip() + found.pop(2)), 2),
    "another prompt's number": (
        lambda found: found.append(found.pop(2).replace(b"[1,", b"[0,")),
        1,
    ),
    "a changed digit": (lambda found: found.append(found.pop(2).replace(b"0.", b"1.", 1)), 1),
    "deep": (lambda found: found.insert(1, b"[" * 100_000 + b"\n"), 0),
    "only the first line, cut": (lambda found: found.__setitem__(slice(None), [found[0][:20]]), 4),
    "empty": (lambda found: found.clear(), 4),
    "all lines twice": (lambda found: found.extend(found[1:]), 0),
}


@pytest.mark.parametrize("what", DAMAGED)
def test_damaged_lines_are_computed_again(what: str, whole, tmp_path: Path) -> None:
    held, table = whole
    change, n = DAMAGED[what]
    (tmp_path / "t.csv.partial").write_bytes(lines(held, change))
    assert computed(tmp_path / "t.csv") == n
    assert (tmp_path / "t.csv").read_bytes() == table
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]


def test_any_flipped_bit_is_found(whole, tmp_path: Path) -> None:
    held, table = whole
    begin, rng = held.index(b"\n") + 1, random.Random(1)
    for _ in range(30):
        flipped = bytearray(held)
        flipped[rng.randrange(begin, len(held))] ^= 1 << rng.randrange(8)
        (tmp_path / "t.csv.partial").write_bytes(flipped)
        assert computed(tmp_path / "t.csv") >= 1
        assert (tmp_path / "t.csv").read_bytes() == table


def test_lines_of_other_prompts_are_computed_again(whole, tmp_path: Path) -> None:
    held, table = whole
    other = stopped(tmp_path, PROMPTS[::-1])
    mixed = held.splitlines(keepends=True)[:1] + other.splitlines(keepends=True)[1:]
    (tmp_path / "t.csv.partial").write_bytes(b"".join(mixed))
    assert computed(tmp_path / "t.csv") == len(PROMPTS)
    assert (tmp_path / "t.csv").read_bytes() == table


def test_results_of_other_prompts_and_weights_are_left_alone(tmp_path: Path) -> None:
    model = cf.load("cat-sat")
    folder, partial = tmp_path / "model", tmp_path / "t.csv.partial"
    cf.save(model, folder)
    other = stopped(tmp_path, PROMPTS[::-1], str(folder))
    before = stopped(tmp_path, name=str(folder))
    weights = dict(model.weights)
    cf.save(replace(model, weights=weights | {"W_E": weights["W_E"] * 2}), folder, force=True)
    for held in (other, before):
        partial.write_bytes(held)
        with pytest.raises(cf.InputError, match="has results of another run"):
            computed(tmp_path / "t.csv", name=str(folder))
        assert partial.read_bytes() == held and not (tmp_path / "t.csv").exists()


ODD: dict[str, tuple[Callable[[Path], object], str]] = {
    "a folder": (lambda path: path.mkdir(), "is a folder"),
    "a pipe": (lambda path: os.mkfifo(path), "is a pipe or a device"),
    "a device": (lambda path: path.symlink_to("/dev/zero"), "is a symbolic link"),
    "a link to nothing": (lambda path: path.symlink_to("nowhere"), "is a symbolic link"),
    "a link": (lambda path: path.symlink_to("precious"), "is a symbolic link"),
    "another file": (
        lambda path: path.write_text("precious\n"),
        "does not begin like a results file",
    ),
    "its one line": (
        lambda path: path.write_text("precious"),
        "does not begin like a results file",
    ),
    "binary": (lambda path: path.write_bytes(b"\xff\0" * 99), "does not begin like a results file"),
    "large": (lambda path: (path.touch(), os.truncate(path, 1 << 40)), "more than 2,048 MB"),
}


@pytest.mark.parametrize("what", ODD)
def test_an_odd_file_gets_one_line(what: str, tmp_path: Path) -> None:
    make, said = ODD[what]
    (tmp_path / "precious").write_text("precious")
    (tmp_path / "p.txt").write_text("the cat sat\n")
    make(tmp_path / "t.csv.partial")
    before = sorted((path.name, path.lstat().st_size) for path in tmp_path.iterdir())
    command = ("ablate", "cat-sat", "--prompts", "p.txt", "-o", "t.csv", "--resume")
    done = cli(*command, cwd=tmp_path)
    assert done.code == 2 and done.err.count("\n") == 1 and said in done.err, done.err
    assert "delete that file, or choose another -o" in done.err
    assert (tmp_path / "precious").read_text() == "precious"
    assert sorted((path.name, path.lstat().st_size) for path in tmp_path.iterdir()) == before


def test_a_second_run_says_that_another_is_writing(tmp_path: Path) -> None:
    with (
        Kept(tmp_path / "t.csv", "work", False, "prompts", 2) as kept,
        pytest.raises(cf.InputError, match="another run is writing"),
    ):
        kept.add(0, [1])
        Kept(tmp_path / "t.csv", "work", True, "prompts", 2)
    assert not [*tmp_path.iterdir()]


def test_the_stamp_is_of_the_files_of_a_model(tmp_path: Path, monkeypatch) -> None:
    """Of a folder, of the gallery, and of a model in the Hub's cache."""
    folder, nowhere = Path(shutil.copytree(GOLDEN / "gpt2", tmp_path / "gpt2")), "no/where"
    before = stamps.stamp(str(folder))
    os.utime(folder / "model.safetensors", (1, 1))
    assert len({before, stamps.stamp(str(folder)), stamps.stamp("cat-sat")}) == 3
    pytest.importorskip("huggingface_hub")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
    place, found = tmp_path / "cache" / "models--some--model", []
    assert stamps.stamp("some/model") != before
    (place / "refs").mkdir(parents=True)
    for commit in ("a" * 40, "b" * 40):
        shutil.copytree(GOLDEN / "gpt2", place / "snapshots" / commit)
        (place / "refs" / "main").write_text(commit)
        found.append(stamps.stamp("some/model"))
    first, second = found
    assert len({first, second, stamps.stamp(nowhere), stamps.stamp("cat-sat")}) == 4
    assert stamps.stamp(f"some/model@{'a' * 40}") == first
    assert stamps.stamp(str(place)) == second
