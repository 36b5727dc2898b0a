"""The kinds of formulas that a workbook has: what a smaller one is held to, which stands for it."""

import re

from exporters.reading import WorkbookFile

ADDRESS = r"(?:'[^'\n]+'!|[\w.]+!)?\$?[A-Z]{1,3}\$?\d+"
ALIKE = (  # in formulas of one kind
    (r'"(?:[^"\n]|"")*"', '""'),
    (f"{ADDRESS}:{ADDRESS}", "A:A"),
    (rf"{ADDRESS}(?![\w(:])", "A1"),
    (r"(?<![\w.])\d[\d.]*(?:E[+-]?\d+)?", "0"),
)
CALL, REST = r"\w+\([^()\n]{1,300}\)", r"[^,+&\n]{1,300}?"
AGAIN = re.compile(rf"((?:[,+&]|\b)(?:{CALL}|{REST}))(?:[,+&]?\1)+")  # a term, and others like it
DIGITS = str.maketrans("123456789", "0" * 9)  # any digit is as good as another


def kinds(file: WorkbookFile) -> set[str]:
    """The formulas of a workbook, each kind once: whatever cells, texts and numbers they have, and
    however many terms."""
    found: set[str] = set()
    for sheet in file:
        written = file[sheet].formulas.values()
        found.update("\n".join(f.replace("\n", " ") for f in written).translate(DIGITS).split("\n"))
    text = "\n".join(found)
    for pattern, one in ALIKE:
        text = re.sub(pattern, one, text)
    return {AGAIN.sub(r"\1…", formula) for formula in set(text.split("\n"))}
