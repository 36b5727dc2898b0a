"""What readers see: nothing is cut, covered, out of place, or without a name."""

from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import GOLDEN, Built, cli
from screen_faults import faults

from cellformer import workbooks
from cellformer.exporters.assemble.worksheets import Workbook
from cellformer.exporters.compose.book import Book, Chart, Series
from cellformer.exporters.compose.composer import Composer
from cellformer.exporters.compose.story import Story
from cellformer.exporters.file.xlsx import write

LONG = "a sentence that is far too long for the cell that it stands in, and for those beside it"


def numbers(ws: Composer, name: str, top: int, format_: str = "0%", col: int = 3) -> None:
    """A table of 1 to 5, and a chart of it beside."""
    x = ws.typed(name, [[1.0], [2.0], [3.0], [4.0], [5.0]], rows=["a", "b", "c", "d", "e"], top=top)
    series = [Series("it", x, x)]
    ws.chart(Chart(top, col, "scatter", name, series, size=(400, 200), number=format_))


def axis(ws: Composer) -> None:
    numbers(ws, "percents", 6)


def covered(ws: Composer) -> None:
    numbers(ws, "behind", 6, "0")
    ws.sheet.put(8, 2, LONG)


def beyond(ws: Composer) -> None:
    numbers(ws, "far", 6, "0", col=14)


def upright(ws: Composer) -> None:
    ws.sheet.heights[6] = 20
    ws.sheet.put(6, 1, "a long word", "upright")


def printed(ws: Composer) -> None:
    ws.sheet.put(6, 1, "printed")
    ws.sheet.put(6, 2, "recomputed anew", "head")


def name(ws: Composer) -> None:
    ws.sheet.put(6, 1, "blocks.0.attn.W_Q")
    ws.sheet.put(6, 2, 1.0)


def sentence(ws: Composer) -> None:
    ws.sheet.put(6, 1, f"{LONG}: {LONG}: {LONG}")


def wrapped(ws: Composer) -> None:
    ws.sheet.heights[6] = 15
    ws.sheet.put(6, 1, LONG, "wrapped")


def number(ws: Composer) -> None:
    ws.sheet.put(6, 1, 123456789.0, "live")


def yellow(ws: Composer) -> None:
    ws.typed("nameless", [[1.0], [2.0]], top=8, left=3)


def nothing(ws: Composer) -> None:
    ws.sheet.across(6, 1, ["all heads", "MLP"], "label")
    ws.sheet.put(7, 1, 1.0)


def mark(ws: Composer) -> None:
    ws.sheet.put(6, 1, "sat")
    ws.sheet.put(6, 7, 1.0, "mark")


def below(ws: Composer) -> None:
    ws.sheet.put(3, 0, "a note", "note")  # where else a link to the result would stand
    ws.computed("verdict", (1, 1), lambda i, j: 1, rows=["right?"], top=40, style="readout")


def sound(ws: Composer) -> None:
    """All of it done well."""
    numbers(ws, "counted", 6, "0")
    ws.sheet.put(6, 1, "n", "label")
    ws.sheet.put(17, 1, LONG)
    ws.sheet.put(18, 1, "two lines of text", "wrapped")
    ws.sheet.put(19, 1, "W_Q")
    ws.sheet.put(19, 2, 0.5, "mark")
    ws.sheet.put(20, 1, "a word", "upright")
    ws.sheet.heights |= {18: 45, 20: 60}
    ws.sheet.put(21, 1, 1234.5, "live")
    ws.computed("said", (1, 1), lambda i, j: 1, rows=["right?"], top=14, style="readout")


PLANTED: dict[Callable[[Composer], None], tuple[str, str]] = {  # where it is found, and in words
    axis: ("D7", "an axis of the chart runs to 500%"),
    covered: ("C9", "covered by a chart"),
    beyond: ("O7", "the chart runs"),
    upright: ("B7", "upright, and longer"),
    printed: ("C7", "cut by B7"),
    name: ("B7", "cut by C7"),
    sentence: ("B7", "pixels out of the window"),
    wrapped: ("B7", "its row is too low"),
    number: ("B7", "shows ###"),
    yellow: ("D9", "without a label"),
    nothing: ("C7", "over nothing"),
    mark: ("H7", "a mark beside nothing"),
    below: ("B41", "below the first screen"),
}


def planted_book() -> Book:
    w = Workbook("planted")
    for plant in (*PLANTED, sound):
        plant(w.sheet(plant.__name__, "a fault", widths={0: 12}))
    return w.done(Story("planted: faults", "", ["They are planted."], ["Look."], []))


@pytest.fixture(scope="module")
def planted(libreoffice: None, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return faults(write(planted_book(), tmp_path_factory.mktemp("screens") / "planted.xlsx"))


@pytest.mark.parametrize("plant", PLANTED)
def test_planted_fault_is_found(planted: list[str], plant: Callable[[Composer], None]) -> None:
    at, fault = PLANTED[plant]
    found = [line for line in planted if line.startswith(f"planted, {plant.__name__}!")]
    assert any(f"!{at}: " in line and fault in line for line in found), found


def test_only_planted_faults_are_found(planted: list[str]) -> None:
    names = {plant.__name__ for plant in PLANTED}
    assert not [line for line in planted if line.partition(", ")[2].partition("!")[0] not in names]


@pytest.mark.slow
@pytest.mark.parametrize("name", workbooks.path())
def test_nothing_is_cut_or_covered(libreoffice: None, built: Built, name: str) -> None:
    assert not faults(built[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", workbooks.path())
def test_nothing_is_cut_or_covered_in_italian(libreoffice: None, name: str, tmp_path: Path) -> None:
    done = cli("build", name, "--lang", "it", "-o", tmp_path / f"{name}.xlsx")
    assert done.code == 0, done.err
    assert not faults(tmp_path / f"{name}.xlsx")


LLAMA, GAME = (str(GOLDEN / "llama"), "--ids", "1,2,0"), ("dialogue-game",)
STUDIES = {  # options of each, whatever model they are of
    "--why": ((*LLAMA, "--why"), (*GAME, "--why")),
    "--exercise": ((*LLAMA, "--exercise"), (*GAME, "--exercise")),
    "--gradient": ((*LLAMA, "--gradient"), (*GAME, "--gradient")),
    "--against": (
        (*LLAMA, "--against", "1,0,2"),
        (*GAME, "--against", "<BOS> 3 chiama Paolo"),
    ),
    "--proof": (("adder", "--proof"), ("adder", "--proof", "--lang", "it")),
    "--steer": ((*LLAMA, "--steer", "ids.txt"), (*GAME, "--steer", "words.txt")),
}
LISTS = {
    "ids.txt": "# one\n1\n2 1\n# other\n0\n0 2\n",
    "words.txt": "# one\nPaolo\nPietro chiama\n# other\nvice\nchiama\n",
}


@pytest.mark.slow
@pytest.mark.parametrize("study", STUDIES)
def test_nothing_is_cut_or_covered_in_studies(
    libreoffice: None, study: str, tmp_path: Path
) -> None:
    for name, text in LISTS.items():
        (tmp_path / name).write_text(text)
    for k, arguments in enumerate(STUDIES[study]):
        done = cli("build", *arguments, "-o", f"{k}.xlsx", cwd=tmp_path)
        assert done.code == 0, done.err
        assert not faults(tmp_path / f"{k}.xlsx")
