"""Answers to exercises, right and wrong, and what is to be said of each, in any program."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from libreoffice import Formula, watched_while_typed

from cellformer import exercises
from cellformer.engine.studies import answers
from cellformer.engine.studies.answers import BESIDE, exact, judged
from cellformer.engine.studies.exercises import number
from cellformer.exporters.assemble.answer_key import (
    A_FRACTION,
    A_TEXT,
    BEFORE,
    BETWEEN,
    BLANK,
    FEW,
    KEY,
    LONGEST_TOLD,
    MISTAKES,
    NO_SLIP,
    NOT_YET,
    RIGHT,
    ROUNDED,
    SAID,
    TYPED_AS,
    Answer,
)
from cellformer.exporters.compose.book import Book, Filled
from cellformer.exporters.file import xlsx

SLIPS = 6  # of each cell, in a test
TWELVE = (
    *("zero-layer", "final-step", "sampling", "loss", "attention-by-columns", "kv-cache"),
    *("one-head", "positions", "gram-schmidt", "norms", "low-rank", "cat-sat"),
)


class Asked(NamedTuple):
    """A workbook with exercises, and its yellow cells."""

    book: Book
    answers: Sequence[Answer]

    def write(self, folder: Path, name: str) -> Path:
        """Its file."""
        return xlsx.write(self.book, folder / f"{name}.xlsx")

    @property
    def said(self) -> list[tuple[str, int, int]]:
        """The cells that say what each answer is."""
        formulas = self.book.sheets[KEY].entries.items()
        rows = [row for (row, col), entry in formulas if col == SAID and entry.formula is not None]
        return [(KEY, row, SAID) for row in sorted(rows)[-len(self.answers) :]]


@cache
def asked(name: str, level: int = 1) -> Asked:
    """The exercises of a workbook, built once for all tests of a process."""
    return Asked(*exercises.recipe(name, level).asked())


def at(answer: Answer) -> tuple[str, int, int]:
    """The place of a yellow cell."""
    return answer.cell.grid.name, answer.cell.rect.top, answer.cell.rect.left


class InIronCalc:
    """A workbook with exercises, open in IronCalc."""

    def __init__(self, found: Asked, folder: Path):
        import ironcalc

        path = found.write(folder, "exercise")
        self.found = found
        self.model = ironcalc.load_from_xlsx(str(path), "en", "UTC", "en")
        properties = self.model.get_worksheets_properties()
        self.sheets = {sheet["name"]: k for k, sheet in enumerate(properties)}

    def said(self, typed: Mapping[tuple[str, int, int], float | str]) -> list[str]:
        """What is said of each answer when these are typed, and nothing into other cells."""
        for a in self.found.answers:
            sheet, row, col = at(a)
            text = typed.get(at(a), "")
            text = text.replace("_xlfn.", "") if isinstance(text, str) else repr(text)
            self.model.set_user_input(self.sheets[sheet], row + 1, col + 1, text)
        self.model.evaluate()
        return [str(self.value(*cell)) for cell in self.found.said]

    def value(self, sheet: str, row: int, col: int) -> object:
        return self.model.get_cell_value(self.sheets[sheet], row + 1, col + 1)

    def errors(self) -> list[tuple[str, int, int]]:
        """The formula cells that show an error."""
        return [
            (name, *cell)
            for name, sheet in self.found.book.sheets.items()
            for cell, entry in sheet.entries.items()
            if entry.formula is not None and str(self.value(name, *cell)).startswith("#")
        ]


class Try(NamedTuple):
    """What is typed into yellow cells, and what is to be said of each."""

    typed: Mapping[tuple[str, int, int], float | str]
    said: Sequence[Sequence[str]]  # for each cell: texts of which one is said


def said_in_libreoffice(found: Asked, tried: Sequence[Try], folder: Path) -> list[list[str]]:
    """What LibreOffice says of each answer in each try, typed one upon the other."""
    folder.mkdir(parents=True, exist_ok=True)
    path, cells = found.write(folder, "exercise"), [at(a) for a in found.answers]
    texts = [{cell: in_libreoffice(one.typed.get(cell, "")) for cell in cells} for one in tried]
    rows = watched_while_typed(path, texts, found.said, folder, 0)
    return [said for _, *said in rows]


def in_libreoffice(typed: float | str) -> float | str:
    """What is typed, a formula in LibreOffice's own spelling."""
    if not isinstance(typed, str) or not typed.startswith("="):
        return typed
    parts = re.split(r'("[^"]*")', typed.replace("_xlfn.", ""))
    sheet = r"('[^']+'|[A-Za-z_][\w.]*)!"
    parts[::2] = [re.sub(sheet, r"$\1.", part.replace(",", ";")) for part in parts[::2]]
    return Formula("".join(parts))


def told_wrongly(tried: Sequence[Try], said: Sequence[Sequence[str]]) -> list[str]:
    """The answers of which something else is said than is to be said."""
    return [
        f"{text!r}, and not {' or '.join(expected)!r}"
        for one, texts in zip(tried, said, strict=True)
        for text, expected in zip(texts, one.said, strict=True)
        if text not in expected
    ]


def rights(found: Asked) -> list[tuple[Answer, float, dict[str, float]]]:
    """The yellow cells, their right numbers, and what each slip leads to."""
    look = found.book.clean
    return [
        (
            a,
            right_number(a, look),
            {slip.kind: slip_number(a, k, look) for k, slip in enumerate(a.slips)},
        )
        for a in found.answers
    ]


def wrongs(
    cells: Sequence[tuple[Answer, float, dict[str, float]]], n: int, seed: int
) -> Iterator[tuple[Answer, float, dict[str, float], float]]:
    """Numbers that might be typed, with 1 to 6 digits: most near the right number or a slip's."""
    random = np.random.default_rng(seed)
    for k in range(n):
        a, right, slips = cells[k % len(cells)]
        about = [right, *slips.values()][random.integers(1 + len(slips))] if k % 2 else right
        near = about * (1 + random.normal() * 10.0 ** -random.integers(0, 6))
        yield a, right, slips, float(f"{near:.{random.integers(1, 7)}g}")


def random_tries(found: Asked, n: int) -> Iterator[Try]:
    """Something for each cell, n times: numbers as in `wrongs`, right ones, mistakes, texts."""
    random, cells = np.random.default_rng(5), rights(found)
    for k in range(n):
        typed, said = dict[tuple[str, int, int], float | str](), []
        for (a, right, slips), (*_, near) in zip(cells, wrongs(cells, len(cells), k), strict=True):
            digits = f"{right:.{random.integers(1, 7)}g}"
            ten = 10.0 ** random.integers(-3, 7)
            some = (near, near, float(digits), -float(digits), float(f"{right * ten:.6g}"))
            texts = f"−{digits.strip('-')}", f"−{abs(right):.2f}".replace(".", ",")
            others = (*texts, "2/6", "abc", 46059.0)
            answer = (*some, *others)[random.integers(10)]
            typed[at(a)] = answer
            said.append(to_be_said(a, answer, right, slips))
        yield Try(typed, said)


def to_be_said(
    a: Answer, typed: float | str, right: float, slips: Mapping[str, float]
) -> list[str]:
    """What the sheet may say of an answer: of a wrong one, that another one is to come first."""
    found = judged(typed, right, slips, a.whole)
    own = {slip.kind: a.told(slip) for slip in a.slips}
    said = {answers.RIGHT: RIGHT, answers.ROUNDED: ROUNDED, answers.FEW: FEW}
    said |= {mark: NOT_YET.format(slips=text) for mark, text in MISTAKES.items()}
    slip = BETWEEN.join(own[kind] for kind in found.slips)[:LONGEST_TOLD]
    said |= {answers.SLIP: NOT_YET.format(slips=slip), answers.WRONG: NO_SLIP}
    number = [said[found.mark], *([BEFORE] if found.mark == answers.WRONG else [])]
    if found.kind in TYPED_AS:
        return [TYPED_AS[found.kind].format(said=text) for text in number]
    texts = {answers.TEXT: A_TEXT, answers.FRACTION: A_FRACTION}
    return number if found.kind == answers.NUMBER else [texts[found.kind]]


def tries(found: Asked, most: int = SLIPS) -> Iterator[Try]:
    """Every cell right by formula, by number, and rounded; then each of its first slips."""
    look, cells = found.book.clean, [at(a) for a in found.answers]
    rights = [right_number(a, look) for a in found.answers]
    yield Try(
        dict(zip(cells, map(formula(found.book), found.answers), strict=True)), _all(RIGHT, cells)
    )
    yield Try(dict(zip(cells, rights, strict=True)), _all(RIGHT, cells))
    rounded = [[RIGHT, ROUNDED]] * len(cells)
    three = [
        x if a.whole else float(f"{x:.3g}") for a, x in zip(found.answers, rights, strict=True)
    ]
    yield Try(dict(zip(cells, three, strict=True)), rounded)
    for k in range(min(most, max(len(a.slips) for a in found.answers))):
        typed, said = dict[tuple[str, int, int], float | str](), []
        for cell, a in zip(cells, found.answers, strict=True):
            if k < len(a.slips):
                typed[cell] = slip_number(a, k, look)
                said.append([named(a, k, look)])
            else:
                said.append([BLANK])
        yield Try(typed, said)


def formula(book: Book) -> Any:
    """What gives the text of a cell's right formula, as a reader would write it."""

    def text(a: Answer) -> str:
        return "=" + book.text(Filled(a.block, a.i, a.j, book.locate), a.cell.grid.name)

    return text


def right_number(a: Answer, look: Any) -> float:
    """The right number."""
    found = number(a.right, look)
    assert found is not None
    return found


def slip_number(a: Answer, k: int, look: Any) -> float:
    """What the k-th slip leads to."""
    found = number(a.slips[k].formula, look)
    assert found is not None
    return found


def named(a: Answer, k: int, look: Any) -> str:
    """What is said of the number that the k-th slip leads to: all slips that lead to it, those that
    say that it stands in another cell only if there are no others."""
    number, near = slip_number(a, k, look), exact(right_number(a, look))
    alike = [s for n, s in enumerate(a.slips) if abs(slip_number(a, n, look) - number) <= near]
    own = [s for s in alike if s.kind not in BESIDE] or alike
    return NOT_YET.format(slips=BETWEEN.join(map(a.told, own))[:LONGEST_TOLD])


def _all(text: str, cells: Sequence[Any]) -> list[list[str]]:
    return [[text]] * len(cells)
