"""A page opened from disk saves its state as a workbook, and takes back what LibreOffice saves."""

from pathlib import Path
from typing import Any

import as_page
import pytest
from conftest import cli, default_book
from in_node import call
from libreoffice import save
from test_workbook import SENTENCE, THREE, WORKSHEET

from cellformer.exporters.checking.audit import audit
from cellformer.exporters.edits import edited
from cellformer.exporters.web import page

pytestmark = pytest.mark.slow


def done(said: dict[str, Any]) -> Any:
    """What was found, without errors and requests."""
    assert said["errors"] == [] and said["requests"] == []
    return said["found"]


@pytest.mark.parametrize(
    ("name", "edits"),
    [("dialogue-game", [*THREE, SENTENCE]), ("attention-by-columns", WORKSHEET)],
)
def test_from_a_link_to_a_workbook_and_back(
    name: str, edits: list[list[Any]], built, tmp_path: Path, chromium, libreoffice
) -> None:
    book, html, target = default_book(name), tmp_path / f"{name}.html", tmp_path / "saved.xlsx"
    page.write(book, html, with_workbook=True)
    folder = as_page.write(book, tmp_path / "page")
    state = call("link.mjs", "write", folder, edits)
    done(call("in_browser.mjs", "save", chromium, str(html), state, str(target)))
    assert audit(target) == []
    by_libreoffice = save(target, tmp_path / "by-libreoffice.xlsx")
    diff = cli("diff", by_libreoffice)
    assert all(f"{block}[{i},{j}]" in diff.out for block, i, j, _ in edits), diff
    (tmp_path / "no.xlsx").write_text("no")
    files = [str(by_libreoffice), str(tmp_path / "no.xlsx"), str(built["cat-sat"])]
    found = done(call("in_browser.mjs", "open", chromium, str(html), files))
    hashes, said = zip(*found, strict=True)
    assert len({*hashes}) == 1  # what cannot be opened changes nothing
    back = call("link.mjs", "read", folder, hashes[0])
    assert sorted(back) == sorted(edits)
    assert said[1].startswith("no.xlsx: the file is no zip archive") and "cat-sat.xlsx: " in said[2]


def test_a_page_without_its_workbook(built, tmp_path: Path, chromium) -> None:
    """It saves into the one that was opened; without one it says what to do."""
    book, html = default_book("cat-sat"), tmp_path / "cat-sat.html"
    page.write(book, html)
    target = tmp_path / "edited.xlsx"
    found = done(
        call("in_browser.mjs", "save_into", chromium, str(html), str(built["cat-sat"]), str(target))
    )
    assert found == "This page holds no workbook: open its .xlsx first, and save then."
    assert edited.read(target).values == {("sentence", 0, 0): "the dog"}
