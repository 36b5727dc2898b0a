"""The notebooks of examples/ run in plain Python, and hold what their cells print and show."""

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import script

NOTEBOOKS = script("notebooks")
PICTURE = "image/png"  # whose bytes differ by version of matplotlib


def without_pictures(notebook: dict[str, Any]) -> list[Any]:
    """The outputs, a picture's kind alone."""
    found = [cell["outputs"] for cell in NOTEBOOKS.code_cells(notebook)]
    return [
        {**one, "data": {kind: kind == PICTURE or held for kind, held in one["data"].items()}}
        if "data" in one
        else one
        for outputs in found
        for one in outputs
    ]


def test_there_are_two() -> None:
    assert [path.stem for path in NOTEBOOKS.notebooks()] == ["a_first_hour", "finding_the_circuit"]


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS.notebooks(), ids=lambda path: path.stem)
def test_a_notebook_holds_what_its_cells_print(path: Path, tmp_path, monkeypatch) -> None:
    pytest.importorskip("matplotlib", reason="pip install 'cellformer[plot]'")
    monkeypatch.chdir(tmp_path)
    held = json.loads(path.read_text(encoding="utf-8"))
    found = NOTEBOOKS.executed(path)
    assert held["nbformat"] == 4 and len(without_pictures(held)) > 7
    assert without_pictures(found) == without_pictures(held)
    pictures = [o for o in found["cells"] for o in o.get("outputs", ()) if PICTURE in str(o)]
    assert len(pictures) >= 3


@pytest.mark.parametrize("path", NOTEBOOKS.notebooks(), ids=lambda path: path.stem)
def test_a_notebook_has_no_magic_and_short_lines(path: Path) -> None:
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        lines = "".join(cell["source"]).splitlines()
        assert cell["cell_type"] == "markdown" or not any(
            line[:1] in "%!" for line in lines if line
        )
        assert max(map(len, lines)) <= 125
