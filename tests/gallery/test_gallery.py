"""The gallery: every page agrees with its own computation, and does what its edits promise."""

import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from conftest import ROOT, default_book, needs
from openpyxl import load_workbook

import workbooks
from cellformer.command import main as command
from engine import Evaluator
from exporters.book import Book
from exporters.layout import PICK_ROW, PLAY, PROMPT_COL
from exporters.verify import recalculate_in_libreoffice

# the dialogue game's edits have tests of their own, in test_dialogue_game
TRIED = [name for name in workbooks.names() if name != "dialogue-game"]


Cell = tuple[str, int, int]  # a sheet, a row and a column, counted from 0


class Promise(NamedTuple):
    """A suggested edit: what is typed where, and what the watched cells then show."""

    text: str
    typed: dict[Cell, float | str]
    shown: dict[Cell, float | str]


def cell_of(book: Book, at: tuple[str, int, int] | int) -> Cell:
    """A cell of a table or block, or the k-th pick on Play."""
    if isinstance(at, int):
        return PLAY, PICK_ROW, PROMPT_COL + at
    name, i, j = at
    place = book.places[name]
    return place.sheet, *place.cell(i, j)


def promises(name: str) -> list[Promise]:
    """The edits of a workbook's start sheet. The first ones say theirs in words alone: there the
    engine says what becomes of the probabilities."""
    book = default_book(name)
    found = []
    for t in book.tries:
        if t.becomes is not None:
            typed = {cell_of(book, at): value for at, value in ((t.cell, t.value), *t.also)}
            found.append(Promise(t.text, typed, {cell_of(book, t.watch): t.becomes}))
            continue
        live, row = Evaluator(book.graph), book.passage.n_prompt - 1
        if isinstance(t.cell, int):
            value: float | str = re.search(r"`(\w+)`", t.text)[1]
            live.set("tokens", t.cell, 0, book.labels["vocab"].index(value))
        else:
            text = re.search(r"Type (=SQRT\(2\)|-?[\d.]+)[,:]? ?", t.text)[1]
            value = 2**0.5 if "SQRT" in text else float(text.rstrip("."))
            live.set(*t.cell, value)
        probs = live["probs"][row]
        assert np.abs(probs - book.values["probs"][row]).max() > 0.002, t.text
        shown = {cell_of(book, ("probs", row, k)): p for k, p in enumerate(probs)}
        found.append(Promise(t.text, {cell_of(book, t.cell): value}, shown))
    return found


@pytest.mark.parametrize("name", TRIED)
def test_every_edit_does_what_its_text_says(name: str, built, tmp_path: Path) -> None:
    """Each edit made in a copy of the workbook, which LibreOffice recalculates."""
    needs("libreoffice")
    found = promises(name)
    assert len(found) == 3
    sheets, paths = load_workbook(built[name]), []
    for k, promise in enumerate(found):
        cells = {at: sheets[at[0]].cell(at[1] + 1, at[2] + 1) for at in promise.typed}
        before = {at: cell.value for at, cell in cells.items()}
        for at, cell in cells.items():
            cell.value = promise.typed[at]
        paths.append(tmp_path / f"{k}.xlsx")
        sheets.save(paths[-1])
        for at, cell in cells.items():
            cell.value = before[at]
    edited = recalculate_in_libreoffice(paths, tmp_path / "out")
    for promise, path in zip(found, edited, strict=True):
        sheets = load_workbook(path, data_only=True)
        for (sheet, row, col), value in promise.shown.items():
            cell = sheets[sheet].cell(row + 1, col + 1).value
            wanted = value if isinstance(value, str) else pytest.approx(value, abs=1e-9)
            assert cell == wanted, promise.text
        every = [(s.title, c) for s in sheets for line in s.iter_rows() for c in line]
        assert not [(title, c.coordinate) for title, c in every if c.data_type == "e"]


@pytest.mark.parametrize("name", workbooks.names())
def test_modules_say_what_to_look_at(name: str) -> None:
    module = workbooks.find(name)
    assert module.TOPIC in workbooks.TOPICS
    assert module.__doc__.startswith(f"{name}: ")


def test_two_layers_gives_every_printed_table() -> None:
    """Section 6 prints two decimals."""
    book = default_book("two-layers")
    for table in workbooks.find("two-layers").printed():
        found = book.values[table.block]
        rows = range(len(found)) if table.rows is None else table.rows
        for i, line in zip(rows, table.printed, strict=True):
            for j, value in enumerate(line):
                if book.graph[table.block].has(i, j):
                    assert abs(found[i, j] - value) < 0.006, (table.title, i, j)


def test_all_at_once_with_an_index(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.setattr("sys.argv", ["cellformer", "build", "--all", "-o", str(tmp_path / "all")])
    with pytest.raises(SystemExit) as stopped:
        command.main()
    assert not stopped.value.code
    written = {path.name for path in (tmp_path / "all").iterdir()}
    assert written == {f"{name}.xlsx" for name in workbooks.names()} | {"index.xlsx"}
    sheet = load_workbook(tmp_path / "all" / "index.xlsx")["Gallery"]
    links = {c.value: c.hyperlink.target for line in sheet for c in line if c.hyperlink}
    assert links == {name: f"{name}.xlsx" for name in workbooks.names()}


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("build", "name a workbook"),
        ("build cat-sat --all", "name a workbook"),
        ("build attention-by-columns --prompt a", "takes a name and -o alone"),
        ("build attention-by-columns --seed 3", "takes a name and -o alone"),
        ("build --all --temperature 0.5", "--all takes -o alone"),
        ("run attention-by-columns", "holds no transformer"),
        ("build --all -o {file}", "cannot be made"),
    ],
)
def test_what_cannot_be_is_told(line: str, fault: str, tmp_path, monkeypatch, capsys) -> None:
    (tmp_path / "file").write_text("")
    words = [word.format(file=tmp_path / "file") for word in line.split()]
    monkeypatch.setattr("sys.argv", ["cellformer", *words])
    with pytest.raises(SystemExit) as stopped:
        command.main()
    assert stopped.value.code == 2
    assert fault in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_every_workbook_is_listed_and_pictured(monkeypatch, capsys) -> None:
    monkeypatch.setattr("sys.argv", ["cellformer", "list"])
    with pytest.raises(SystemExit):
        command.main()
    listed, readme = capsys.readouterr().out, (ROOT / "README.md").read_text()
    for name in workbooks.names():
        assert name in listed
        assert f"docs/gallery/{name}.png" in readme
        assert (ROOT / "docs" / "gallery" / f"{name}.png").is_file()
