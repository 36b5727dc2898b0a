"""The gallery: every page agrees with its own computation, and does what its edits promise."""

from pathlib import Path

import pytest
from conftest import EARLIER, default_book, needs
from openpyxl import load_workbook

import workbooks
from exporters.book import Book
from exporters.layout import PICK_ROW, PLAY, PROMPT_COL
from exporters.verify import recalculate_in_libreoffice
from exporters.xlsx import write
from workbooks import __main__ as command

PAGES = [name for name in workbooks.names() if name not in EARLIER]
MOST_LINES = 200
ROOT = Path(__file__).parent.parent


def cell_of(book: Book, at: tuple[str, int, int] | int) -> tuple[str, int, int]:
    """Sheet, row and column, counted from 0."""
    if isinstance(at, int):
        return PLAY, PICK_ROW, PROMPT_COL + at
    name, i, j = at
    place = book.places[name]
    return place.sheet, *place.cell(i, j)


@pytest.fixture(scope="module")
def edited(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, int], Path]:
    """Every suggested edit made in a copy of its workbook, recalculated in LibreOffice."""
    needs("libreoffice")
    folder = tmp_path_factory.mktemp("edits")
    paths = {}
    for name in PAGES:
        book = default_book(name)
        path = write(book, folder / f"{name}.xlsx")
        sheets = load_workbook(path)
        for k, suggestion in enumerate(book.tries):
            before = {}
            for at, value in ((suggestion.cell, suggestion.value), *suggestion.also):
                sheet, row, col = cell_of(book, at)
                cell = sheets[sheet].cell(row + 1, col + 1)
                before[sheet, row, col] = cell.value
                cell.value = value
            paths[name, k] = folder / f"{name} {k}.xlsx"
            sheets.save(paths[name, k])
            for (sheet, row, col), value in before.items():
                sheets[sheet].cell(row + 1, col + 1).value = value
    found = recalculate_in_libreoffice(list(paths.values()), folder / "out")
    return dict(zip(paths, found, strict=True))


@pytest.mark.parametrize("name", PAGES)
def test_every_edit_does_what_its_text_says(name: str, edited) -> None:
    book = default_book(name)
    assert len(book.tries) == 3
    for k, suggestion in enumerate(book.tries):
        assert suggestion.value is not None and suggestion.becomes is not None
        sheets = load_workbook(edited[name, k], data_only=True)
        sheet, row, col = cell_of(book, suggestion.watch)
        found = sheets[sheet].cell(row + 1, col + 1).value
        if isinstance(suggestion.becomes, str):
            assert found == suggestion.becomes, suggestion.text
        else:
            assert found == pytest.approx(suggestion.becomes, abs=1e-9), suggestion.text
        errors = [
            (s.title, c.coordinate)
            for s in sheets
            for line in s.iter_rows()
            for c in line
            if c.data_type == "e"
        ]
        assert not errors


@pytest.mark.parametrize("name", workbooks.names())
def test_modules_are_short_and_say_what_to_look_at(name: str) -> None:
    module = workbooks.find(name)
    assert module.TOPIC in workbooks.TOPICS
    assert module.__doc__.startswith(f"{name}: ")
    if name in PAGES:
        assert len(Path(module.__file__).read_text().splitlines()) < MOST_LINES


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
