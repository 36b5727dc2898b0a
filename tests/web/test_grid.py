"""Grids of a page as spreadsheets: ranges, copy and paste, fill, undo, and painting."""

import subprocess
from pathlib import Path

import pytest
from test_screen import LEDGER, PHONE, Play, play  # noqa: F401

DRAW, TOP, LEFT = ["touch", "[role=tab]:has-text('Draw')"], 7, 1
MOST_STROKES = 8
OPEN = ["touch", "[data-block='blocks.1.attn.h2.pattern']"]
AT = ["touch", ".grid [data-at='2 0']"]
UNDO, BUILT = ["press", "Control+z"], "As built"
OF_A_SPREADSHEET = 1e-14  # it keeps 15 digits
READ = "CSV:9,34,76"  # tabs between cells, texts in quotes, UTF-8
EXPORTED = "csv:Text - txt - csv (StarCalc):9,34,76,1,,0,false,false"


def at(i: int, j: int) -> str:
    """A cell of the drawing."""
    return f"{TOP + i} {LEFT + j}"


def stroke(*cells: tuple[int, int], by: str = "stroke") -> list[str]:
    return [by, *(at(i, j) for i, j in cells)]


CLEAR = [
    DRAW,
    ["touch", f".grid [data-at='{at(0, 0)}']"],
    ["shiftClick", at(7, 7)],
    ["press", "Delete"],
]
DIGITS = {
    "1": [stroke((0, 3), (7, 3)), stroke((0, 4), (7, 4))],
    "0": [
        stroke((0, 3), (0, 4), (2, 5), (5, 5), (7, 4), (7, 3), (5, 2), (2, 2), (0, 3)),
    ],
    "7": [stroke((0, 2), (0, 5), (2, 5), (5, 3), (7, 3))],
    "4": [stroke((0, 4), (4, 1), (4, 6)), stroke((3, 5), (7, 5))],
}


@pytest.mark.parametrize("digit", DIGITS)
def test_a_digit_is_drawn_with_few_strokes(play: Play, digit: str) -> None:  # noqa: F811
    """Delete takes the old ink away, and each stroke is one step of undo."""
    strokes = DIGITS[digit]
    guess = ["text", ".grid [data-at='5 12']"]
    read = play("digits", *CLEAR, LEDGER, *strokes, guess, *(UNDO for _ in strokes), LEDGER)
    cleared, read_as, undone = read
    assert len(strokes) < MOST_STROKES
    assert read_as == [digit]
    assert undone[0].split(" · ")[0] == cleared[0].split(" · ")[0]


def test_a_touch_takes_the_ink_of_one_cell_away(play: Play) -> None:  # noqa: F811
    dark, light, back = play("digits", DRAW, *([stroke((3, 0)), LEDGER] * 2), UNDO, LEDGER)
    assert dark[0].startswith("1 edit: drawing[3,0] 0 → 16")
    assert light[0].startswith(BUILT)
    assert back[0].startswith("1 edit: drawing[3,0] 0 → 16")


def test_a_finger_paints_a_drawing_and_scrolls_elsewhere(play: Play) -> None:  # noqa: F811
    still, painted, moved, after = play(
        *("digits", DRAW, stroke((6, 0), (4, 0), (2, 0), by="finger"), ["scrolled"], LEDGER),
        *(["touch", "[role=tab]:has-text('Held out')"], ["finger", "20 6", "14 6", "10 6"]),
        *(["scrolled"], LEDGER),
        **{"hasTouch": True, **PHONE},
    )
    assert still == 0
    assert painted[0].startswith("5 edits: drawing[2,0] 0 → 16")
    assert moved > 0
    assert after == painted


REFUSED = {
    "1\t=A1": "C8: ‘=A1’ is a formula; type its result.",
    "1\tink": "C8: ‘ink’ is no number; type one such as 0.5.",
    "1\t1,234.5": "C8: ‘1,234.5’ is no number; type one such as 0.5.",
    "1\t17": "C8: Type a number from 0 (no ink) to 16 (full ink).",
    "1" + 8 * "\t1": "J8: only what is typed in can be typed over; select yellow cells.",
    "1" + 99 * "\n1": "100 × 1 cells do not fit at B8; select a cell further up or left.",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_cannot_be_pasted_changes_nothing(play: Play, text: str) -> None:  # noqa: F811
    """One line names the first cell that is wrong, and what to do."""
    first = [DRAW, ["focus", ".sheet .grid"], ["press", "Control+Home", "ArrowDown"]]
    before, said, after = play(
        *("digits", *first, stroke((0, 0)), LEDGER, ["paste", text], LEDGER),
        *(UNDO, ["press", "Control+y"], LEDGER),
    )
    assert before[0].startswith("1 edit: drawing[0,0] 0 → 16")
    assert said == [f"Nothing is changed: {REFUSED[text]}"]
    assert after[0].split(" · ")[0] == before[0].split(" · ")[0]


def test_a_range_is_filled(play: Play) -> None:  # noqa: F811
    """By Ctrl+Enter with what is typed, by Ctrl+D with its first row, by Ctrl+R with its first
    column, by one pasted cell. A decimal comma counts in a paste, as in all fields."""
    shown = ["text", ".grid .ranged"]
    *read, undone = play(
        *("dialogue-game", OPEN, AT, ["press", "Shift+ArrowDown", "Shift+ArrowRight"]),
        *(["press", "2", "Control+Enter"], shown, ["paste", "0,5\t7\r\n1\t3\r\n"], shown),
        *(["press", "Control+d"], shown, ["press", "Control+r"], shown, ["paste", "4"], shown),
        *(5 * [UNDO] + [LEDGER]),
    )
    assert [[float(text) for text in texts] for texts in read] == [
        *([2, 2, 2, 2], [0.5, 7, 1, 3], [0.5, 7, 0.5, 7], [0.5, 0.5, 0.5, 0.5], [4, 4, 4, 4])
    ]
    assert undone[0].startswith(BUILT)


def test_a_range_goes_to_libreoffice_and_back(
    play: Play,  # noqa: F811
    libreoffice: None,
    tmp_path: Path,
) -> None:
    """Three rows of three numbers, selected by dragging: what LibreOffice makes of them is pasted
    over wrong ones, and copied again they are the same numbers."""
    copy = [["press", "Control+c"], ["copied"]]
    select = [OPEN, ["stroke", "2 0", "4 2"]]
    (text,) = play("dialogue-game", *select, *copy)
    assert [len(line.split("\t")) for line in text.split("\n")] == [3, 3, 3]
    (tmp_path / "copied.tsv").write_text(text)
    for source, kind in (("copied.tsv", "xlsx"), ("copied.xlsx", EXPORTED)):
        command = ["soffice", f"-env:UserInstallation={(tmp_path / 'profile').as_uri()}"]
        command += ["--headless", f"--infilter={READ}"] if kind == "xlsx" else ["--headless"]
        command += ["--convert-to", kind, "--outdir", str(tmp_path), str(tmp_path / source)]
        subprocess.run(command, check=True, capture_output=True)
    back = (tmp_path / "copied.csv").read_text()
    wrong = ["press", "9", "Control+Enter"]
    told, again = play("dialogue-game", *select, wrong, LEDGER, ["paste", back], *copy)
    assert told[0].startswith("9 edits")
    assert numbers(again) == pytest.approx(numbers(text), rel=OF_A_SPREADSHEET)


def numbers(copied: str) -> list[float]:
    return [float(number) for number in copied.split()]


def test_undo_and_redo_wherever_one_types(play: Play) -> None:  # noqa: F811
    """In a sheet, in a block's numbers, in an open cell and in the cell's field."""
    redo, typed = ["press", "Control+y"], ["press", "5", "Enter"]
    field = ["value", "#cell input"]
    in_sheet, off, on = play(
        *("digits", DRAW, ["focus", ".sheet .grid"], typed, LEDGER, UNDO, LEDGER, redo, LEDGER)
    )
    assert in_sheet[0].startswith("1 edit") and off[0].startswith(BUILT)
    assert on[0].startswith("1 edit")
    typed_over, off, opened, letters, set_, unset = play(
        *("dialogue-game", OPEN, AT, typed, LEDGER, UNDO, LEDGER, redo),
        *(["press", "F2", "Control+z"], LEDGER, redo, ["focus", "#cell input"]),
        *(["press", "Control+a", "7", "Control+z"], field),
        *(["press", "Control+a", "8", "Enter"], LEDGER, UNDO, LEDGER),
    )
    assert typed_over[0].startswith("1 edit") and off[0].startswith(BUILT)
    assert opened[0].startswith(BUILT)
    assert letters not in ("7", "")
    assert set_[0].startswith("2 edits") and unset[0].startswith("1 edit")
