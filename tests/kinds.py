"""The kinds of formulas in a workbook, to show that a small one has all those of a large one."""

import re
import zipfile
from collections.abc import Iterable
from pathlib import Path

from cellformer.exporters.checking.verify import Where
from cellformer.exporters.compose.address import position
from cellformer.exporters.file.reading import Value, WorkbookFile

ADDRESS = r"(?:'[^'\n]+'!|[\w.]+!)?\$?[A-Z]{1,3}\$?\d+"
ASKS = "ISFORMULA("  # whether cells, however many, hold formulas: all of one kind
ALIKE = (  # in formulas of one kind
    (r'"(?:[^"\n]|"")*"', '""'),
    (f"{ADDRESS}:{ADDRESS}", "A:A"),
    (rf"{ADDRESS}(?![\w(:])", "A1"),
    (r"(?<![\w.])\d[\d.]*(?:E[+-]?\d+)?", "0"),
)
CALL, REST = r"\w+\([^()\n]{1,300}\)", r"[^,+&\n]{1,300}?"
AGAIN = re.compile(rf"((?:[,+&]|\b)(?:{CALL}|{REST}))(?:[,+&]?\1)+")  # a term, and others like it
FORMULA = re.compile(rb'(?P<cell><c r="(?P<at>\w+)"[^>]*>)<f\b[^>]*(?:/>|>.*?</f>)', re.DOTALL)
DIGITS = str.maketrans("123456789", "0" * 9)  # any digit is as good as another


def kinds(file: WorkbookFile) -> set[str]:
    """The formulas of a workbook, each kind once: whatever cells, texts and numbers they have, and
    however many terms."""
    found: set[str] = set()
    for sheet in file:
        found.update(_plain(file[sheet].formulas.values()))
    return {ASKS if ASKS in kind else kind for kind in _kinds([*found])}


def one_of_each(file: WorkbookFile, target: Path) -> Path:
    """A copy of a workbook with one formula of each kind for each text, and each whole number, that
    one shows; the other cells hold their values. What asks whether cells hold formulas is left out:
    here most do not."""
    first: dict[tuple[str, Value], Where] = {}
    formulas = [(sheet, at, f) for sheet in file for at, f in file[sheet].formulas.items()]
    kinds_of = _kinds(_plain(f for *_, f in formulas))
    for (sheet, at, _), kind in zip(formulas, kinds_of, strict=True):
        value = file[sheet][at]
        told = value if isinstance(value, str) or float(value or 0).is_integer() else None
        if ASKS not in kind:
            first.setdefault((kind, told), (sheet, *at))
    kept = set(first.values())

    def without_others(sheet: str, data: bytes) -> bytes:
        return FORMULA.sub(
            lambda c: c[0] if (sheet, *position(c["at"].decode())) in kept else c["cell"], data
        )

    sheets = {part: sheet for sheet, part in file.parts.items()}
    with zipfile.ZipFile(file.path) as old, zipfile.ZipFile(target, "w") as new:
        for part in old.namelist():
            data = old.read(part)
            new.writestr(part, without_others(sheets[part], data) if part in sheets else data)
    return target


def kinds_of(formulas: Iterable[str]) -> list[str]:
    """The kind of each formula."""
    return _kinds(plain) if (plain := _plain(formulas)) else []


def _plain(formulas: Iterable[str]) -> list[str]:
    """Formulas, each in a line, with any digit for another."""
    text = "\n".join(formula.replace("\n", " ") for formula in formulas)
    return text.translate(DIGITS).split("\n") if text else []


def _kinds(plain: list[str]) -> list[str]:
    """The kind of each formula."""
    text = "\n".join(plain)
    for pattern, one in ALIKE:
        text = re.sub(pattern, one, text)
    alike = text.split("\n")
    kind = {formula: AGAIN.sub(r"\1…", formula) for formula in set(alike)}
    return [kind[formula] for formula in alike]
