"""The sheet Guess: no answer before a guess, and then the right one; a count of right guesses."""

from pathlib import Path

import pytest
from conftest import Built, CellAt, InIronCalc, default_book, libreoffice_after

from cellformer.exporters.compose.book import Book
from cellformer.exporters.pages.guess import ANSWER, GUESS, RIGHT, SHEET

NAME = "cat-sat"
TALLY = (SHEET, 4, 0)


def answers(book: Book) -> dict[CellAt, str | float]:
    """The right guess for every question, from the values of the model."""
    values, texts = book.graph.values, default_book(NAME).labels["vocab"]  # type: ignore[attr-defined]
    tokens = [texts[int(k)] for k in values["tokens"][:, 0]]
    pattern, stream = values["blocks.0.attn.h0.pattern"], values["resid_final"][2]
    right: dict[tuple[str, int], str | float] = {
        **{("next", k): texts[int(values["logits"][k].argmax())] for k in range(3)},
        ("look", 0): tokens[int(pattern[2].argmax())],
        ("look", 1): tokens[int(pattern[1].argmax())],
        ("stage", 0): texts[int(values["lens.0.logits"][0].argmax())],
        ("weight", 0): float(stream.argmax()),
        ("weight", 1): float(stream.argmin()),
    }
    return {book.cell(f"guess.{kind}", k, 0): value for (kind, k), value in right.items()}


def test_an_answer_is_blank_until_there_is_a_guess() -> None:
    book = default_book(NAME)
    for sheet, row, _ in answers(book):
        assert book.clean.cell(sheet, row, ANSWER) == ""
    assert "0 of 0 guesses are right. There are 8 questions." in book.clean.cell(*TALLY)


def test_right_and_wrong_guesses_are_told_apart(built: Built) -> None:
    book = default_book(NAME)
    right = answers(book)
    sheet = InIronCalc(built[NAME])
    with sheet.typed(right):
        assert str(sheet[TALLY]).startswith("8 of 8 guesses are right. There are 8 questions.")
        for _, row, _ in right:
            assert str(sheet[SHEET, row, ANSWER]).startswith("Right: ")
    for odd in ("nothing", 99.0, "*", "#N/A"):
        with sheet.typed(dict.fromkeys(right, odd)):
            assert str(sheet[TALLY]).startswith("0 of 8 guesses are right")
            for _, row, _ in right:
                assert sheet[SHEET, row, RIGHT] == 0
                assert str(sheet[SHEET, row, ANSWER]).startswith("No: ")


@pytest.mark.slow
def test_libreoffice_counts_right_guesses(built: Built, tmp_path: Path) -> None:
    right = answers(default_book(NAME))
    row = next(iter(right))[1]
    wrong = {(SHEET, row, GUESS): "dog"}
    first, second = libreoffice_after(built[NAME], [right, wrong], tmp_path / "after")
    assert str(first[SHEET][TALLY[1:]]).startswith("8 of 8 guesses are right")
    assert str(second[SHEET][TALLY[1:]]).startswith("0 of 1 guesses are right")
    assert str(second[SHEET][row, ANSWER]).startswith("No: the model predicts")
