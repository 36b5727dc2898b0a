"""What is published: one version, a licence for everything, and whole archives."""

import json
import re
import subprocess
import sys
import tarfile
from importlib.metadata import version
from pathlib import Path
from zipfile import ZipFile

import pytest
from conftest import ROOT, library, script

import cellformer as cf


def test_the_version_is_the_same_everywhere() -> None:
    said = (ROOT / "CITATION.cff").read_text()
    assert re.findall(r"^version: (.+)$", said, re.MULTILINE) == [cf.__version__]
    assert f"\n## {cf.__version__}" in (ROOT / "CHANGELOG.md").read_text()
    assert f'__version__ = "{cf.__version__}"' in (ROOT / "cellformer/version.py").read_text()


def test_everything_has_a_licence() -> None:
    licences = script("licences")
    assert licences.unknown() == []
    assert {name for name, _ in licences.required()} == set(licences.USED)
    assert licences.TARGET.read_text() == licences.reference(), "python docs/scripts/licences.py"


def test_workflows_cover_what_they_say() -> None:
    yaml = library("yaml")
    gate, release = (
        yaml.safe_load((ROOT / ".github" / "workflows" / name).read_text())
        for name in ("ci.yml", "release.yml")
    )
    matrix = gate["jobs"]["first-tier"]["strategy"]["matrix"]
    project = (ROOT / "pyproject.toml").read_text()
    for python in matrix["python"]:
        assert f'"Programming Language :: Python :: {python}"' in project
    oldest = re.search(r'"numpy>=([\d.]+)"', project)
    assert oldest and any(oldest[1] in row["numpy"] for row in matrix["include"])
    assert any(".ci/run" in step.get("run", "") for step in gate["jobs"]["gate"]["steps"])
    assert any(".ci/run" in step.get("run", "") for step in release["jobs"]["gate"]["steps"])
    assert {"gate", "build"} <= {*release["jobs"]["publish"]["needs"]}
    assert release["jobs"]["publish"]["permissions"] == {"id-token": "write"}
    for job in (*gate["jobs"].values(), *release["jobs"].values()):
        assert job["runs-on"] and all("uses" in s or "run" in s for s in job["steps"])


def test_the_paper_is_two_pages_and_cites_what_it_lists() -> None:
    paper = (ROOT / "docs" / "paper" / "paper.md").read_text()
    listed = re.findall(r"^@\w+\{(\w+),", (ROOT / "docs/paper/paper.bib").read_text(), re.MULTILINE)
    assert set(re.findall(r"\[@(\w+)\]", paper)) == set(listed)
    body = paper.split("---\n")[2]
    assert 500 < len(body.split()) < 1000
    for heading in ("Statement of need", "Learning objectives", "Use by another teacher"):
        assert f"# {heading}" in body


@pytest.mark.slow
def test_archives_are_whole(tmp_path: Path) -> None:
    """The wheel and the source archive, as a release makes them."""
    for name in ("build", "twine", "check_wheel_contents"):
        library(name)
    if int(version("setuptools").split(".")[0]) < 77:
        pytest.skip("setuptools 77 makes the wheel: pip install 'cellformer[test]'")
    run = [sys.executable, "-m"]
    source = tmp_path / "source"
    known = ["git", "-c", "safe.directory=*", "ls-files"]
    listed = subprocess.run(known, cwd=ROOT, capture_output=True, text=True)
    for name in listed.stdout.splitlines():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_bytes((ROOT / name).read_bytes())
    build = [*run, "build", "--no-isolation", "-o", str(tmp_path / "dist"), str(source)]
    done = subprocess.run(build, capture_output=True, text=True)
    assert not done.returncode, done.stderr
    (wheel,), (archive,) = (tmp_path.glob(f"dist/*.{end}") for end in ("whl", "tar.gz"))
    for check in (["twine", "check", "--strict", wheel, archive], ["check_wheel_contents", wheel]):
        done = subprocess.run([*run, *check], cwd=ROOT, capture_output=True, text=True)
        assert not done.returncode, done.stdout + done.stderr
    with ZipFile(wheel) as inside:
        names = inside.namelist()
        assert any(name.endswith("licenses/LICENSE") for name in names)
        shipped = {name for name in names if name.endswith((".json", ".po", ".js", ".safetensors"))}
    data = {n for n in listed.stdout.splitlines() if n.endswith((".po", ".js", ".safetensors"))}
    rooms = ("engine/", "exporters/", "workbooks/")
    assert {f"cellformer/{n}" for n in data if n.startswith(rooms)} <= shipped
    tops = {name.partition("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"cellformer"}
    with tarfile.open(archive) as inside:
        kept = {name.partition("/")[2] for name in inside.getnames()}
    assert {"tests/conftest.py", "docs/held.md", "CITATION.cff", "MANIFEST.in"} <= kept
    assert json.dumps(sorted(kept)).count("node_modules") == 0
