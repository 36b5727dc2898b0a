"""Workbooks with a backward pass, or that say why, are read back: as built nothing differs, and an
edit is found."""

from pathlib import Path

import pytest

import cellformer as cf
from cellformer import names
from cellformer.engine.models.generate import passage
from cellformer.engine.studies.addition import Studies

pytestmark = pytest.mark.slow

WEIGHT = ("blocks.0.attn.h0.W_V", 2, 2)
BUILT = {
    "gradient": {"gradient": True},
    "nudge": {"nudge": True},
    "why": {"why": "0.0"},
    "nudge and why": {"nudge": True, "why": ""},
}


@pytest.mark.parametrize("studies", BUILT.values(), ids=BUILT)
def test_a_workbook_is_read_back(studies: Studies, tmp_path: Path) -> None:
    loaded = names.load("cat-sat")
    book = loaded.book(loaded.model, passage(loaded.model, loaded.ids), studies=studies)
    path = cf.write(book, tmp_path / "built.xlsx")
    assert not cf.read(path).inputs
    edited = cf.read(cf.write(book, path, {WEIGHT: -1.0}))
    (cell,) = edited.inputs
    assert (cell.name, cell.now) == ("blocks.0.attn.h0.W_V[2,2]", -1.0)
