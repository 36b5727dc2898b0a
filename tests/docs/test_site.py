"""The site is built without a warning, and each workbook is tried in place."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT, default_book, library

from cellformer import workbooks
from cellformer.exporters.file import xlsx
from cellformer.exporters.web import page

MOST_LINES = 30  # of the menu, headings and pages


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """The site, with the pages of one workbook."""
    library("mkdocs")
    gallery, target = tmp_path_factory.mktemp("gallery"), tmp_path_factory.mktemp("site")
    xlsx.write(default_book("adder"), gallery / "adder.xlsx")
    page.write(default_book("adder"), gallery / "adder.html")
    for name in ("index.html", "index.xlsx", "pictures/adder.svg"):
        (gallery / name).parent.mkdir(exist_ok=True)
        (gallery / name).write_text(name)
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(target)]
    found = os.environ | {"GALLERY": str(gallery), "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=found, capture_output=True, text=True)
    assert done.returncode == 0 and "WARNING" not in done.stderr, done.stderr
    return target


@pytest.mark.slow
def test_every_page_is_built_and_found(site: Path) -> None:
    start = (site / "index.html").read_text()
    assert "cellformer open adder" in start and 'href="gallery/"' in start
    for name in ("api", "command", "held", "licences", "CONTRIBUTING", "benchmarks", "examples"):
        assert (site / name / "index.html").is_file(), name
    for text in ((site / f / "index.html").read_text() for f in ("", "gallery", "api")):
        assert not re.findall(r'(?:src|<link[^>]*href)="https?://', text), "loads from elsewhere"


@pytest.mark.slow
def test_a_workbook_is_tried_in_place(site: Path) -> None:
    trial = (site / "try" / "adder" / "index.html").read_text()
    assert '<iframe class="workbook" src="../files/adder.html"' in trial
    assert (site / "try/files/adder.html").is_file() and (site / "try/files/adder.xlsx").is_file()
    listed = (site / "gallery" / "index.html").read_text().replace("../", "")
    assert "try/adder/" in listed and 'href="try/files/"' in listed
    assert (site / "try/files/index.html").is_file() and not (site / "try/index.html").exists()
    assert (site / "try/files/pictures/adder.svg").is_file()


def test_one_workbook_is_the_first() -> None:
    """README, `list` and the gallery's index begin with the same one."""
    (first,) = re.findall(r"&& cellformer open ([\w-]+)", (ROOT / "README.md").read_text())
    assert first == workbooks.first()
    assert f"from **`{first}`**" in (ROOT / "docs" / "gallery.md").read_text()


def test_the_menu_is_short_and_leads_to_every_document() -> None:
    """`nav` of mkdocs.yml has at most 30 lines; its pages link to the other documents."""
    menu = (ROOT / "mkdocs.yml").read_text().partition("\nnav:")[2].strip().splitlines()[1:]
    assert len(menu) <= MOST_LINES
    listed = {found[1] for line in menu if (found := re.search(r": ([\w/-]+\.md)$", line))}
    docs = ROOT / "docs"
    linked = set(listed)
    for name in listed - {"examples.md"}:  # which is written for the site
        page = next(p for p in (docs / name, ROOT / name, ROOT / "README.md") if p.exists())
        links = re.findall(r"\]\(([^)#:\s]+\.md)", page.read_text(encoding="utf-8"))
        linked |= {os.path.relpath((page.parent / link).resolve(), docs) for link in links}
    written = {path.relative_to(docs).as_posix() for path in docs.rglob("*.md")}
    assert {name for name in written if not name.startswith("paper/")} - linked == set()


def test_named_tests_exist() -> None:
    """What docs/held.md says holds a claim is there."""
    named = re.findall(r"`(tests/[\w/]+\.\w+)`", (ROOT / "docs" / "held.md").read_text())
    assert len(named) > 12
    assert [name for name in named if not (ROOT / name).is_file()] == []
