"""`open`, and the folder that is handed on."""

import os
import re
import shutil
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest
from conftest import cli

from cellformer import release
from cellformer.command import opening
from cellformer.exporters.web import page
from cellformer.names import book


@pytest.fixture
def screen(monkeypatch) -> None:
    monkeypatch.setenv("DISPLAY", ":0")


def test_open_never_overwrites(tmp_path: Path, screen, monkeypatch) -> None:
    opened: list[list[str]] = []
    monkeypatch.setattr(subprocess, "Popen", lambda command, **_: opened.append(command))
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(shutil, "which", lambda name: f"/bin/{name}")
    assert cli("open", "loss", cwd=tmp_path).code == 0
    path = tmp_path / "loss.xlsx"
    path.write_bytes(path.read_bytes() + b"edited")
    done = cli("open", "loss", cwd=tmp_path)
    assert done.code == 0 and "opens without changes" in done.out
    assert path.read_bytes().endswith(b"edited")
    assert cli("open", "loss.xlsx", cwd=tmp_path).code == 0
    assert opened == 3 * [["/bin/soffice", "--calc", "loss.xlsx"]]


@pytest.mark.parametrize(("program", "options"), [("xdg-open", []), ("libreoffice", ["--calc"])])
def test_open_finds_a_program(program: str, options, monkeypatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(shutil, "which", lambda name: name if name == program else None)
    assert opening.opener(Path("a.xlsx")) == [program, *options, "a.xlsx"]


def test_open_without_a_program(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(shutil, "which", lambda name: None)
    done = cli("open", "loss", cwd=tmp_path)
    assert done.code == 2 and done.err.count("\n") == 1
    assert "no spreadsheet program was found" in done.err and (tmp_path / "loss.xlsx").exists()


@pytest.mark.slow
def test_open_without_a_screen(tmp_path: Path) -> None:
    """As over ssh, or in a container: a process of its own, with a program that opens nothing."""
    office = tmp_path / "bin" / "soffice"
    office.parent.mkdir()
    office.write_text("#!/bin/sh\ntouch opened\n")
    office.chmod(0o755)
    found = {"PATH": f"{office.parent}{os.pathsep}{os.environ['PATH']}", "HOME": str(tmp_path)}
    command = [sys.executable, "-m", "cellformer", "open", "loss"]
    done = subprocess.run(command, cwd=tmp_path, env=found, capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert "there is no screen" in done.stderr and "open loss.xlsx on a computer" in done.stderr
    assert (tmp_path / "loss.xlsx").is_file() and not (tmp_path / "opened").exists()


@pytest.mark.parametrize(
    ("arguments", "remedy"),
    [
        (
            "cat-sat --prompt cat",
            "cat-sat.xlsx exists already, and its prompt cannot change; name a new file",
        ),
        ("cat-sat.xlsx --prompt cat", "opens without changes"),
        ("nowhere.xlsx", "there is no file nowhere.xlsx"),
    ],
)
def test_open_refuses_other_files(arguments: str, remedy: str, tmp_path: Path, screen) -> None:
    (tmp_path / "cat-sat.xlsx").write_text("of another prompt")
    done = cli("open", *arguments.split(), cwd=tmp_path)
    assert done.code == 2 and done.err.count("\n") == 1 and remedy in done.err
    assert (tmp_path / "cat-sat.xlsx").read_text() == "of another prompt"


def test_release_index_and_checksums(tmp_path: Path) -> None:
    """All links are relative: any static host serves the folder as it is."""
    sizes = {"cat-sat": (3, 4000), "loss": (8, 50)}
    for name in (*sizes, "index"):
        (tmp_path / f"{name}.xlsx").write_bytes(name.encode())
    for name in sizes:
        (tmp_path / f"{name}.html").write_text(name)
        release.picture(tmp_path, name, book(name))
    release.add(tmp_path, sizes)
    index = (tmp_path / release.INDEX).read_text()
    assert "4,000 formulas" in index and "http" not in index
    targets = re.findall(r'(?:href|src)="(?!data:)([^"]+)"', index)
    assert {f"{name}.{kind}" for name in sizes for kind in ("html", "xlsx")} <= {*targets}
    for target in targets:
        assert (tmp_path / target).is_file() and not target.startswith("/"), target
    lines = (tmp_path / release.SUMS).read_text().splitlines()
    sums = {name: digest for digest, name in (line.split("  ") for line in lines)}
    everything = {p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*") if p.is_file()}
    assert set(sums) == everything - {release.SUMS}
    for name, digest in sums.items():
        assert sha256((tmp_path / name).read_bytes()).hexdigest() == digest


def test_page_links_to_nothing_outside() -> None:
    """Of what stands in its HTML: the scripts ask for nothing, which its content policy holds."""
    text = page.text(book("loss"))
    assert "default-src 'none'" in text
    assert not re.findall(r"(?:href|src|action|srcset)=", text)
