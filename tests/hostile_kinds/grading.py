"""Files of students for `grade`, each beside a good one, which keeps its marks."""

import json
import random
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from conftest import typed
from exercised import at, formula

from cellformer import exercises
from cellformer.exporters.assemble import exercise
from cellformer.exporters.assemble.answer_key import KEY
from cellformer.exporters.file import xlsx
from hostile_kinds.cases import Case, Cases, Kind

ASKED = (("cat-sat", 2), ("loss", 2), ("superposition", 1), ("zero-layer", 3))
FATAL = (
    *("LET(f,LAMBDA(f,x,f(f,x)),f(f,1))", f"{'(' * 5000}1{')' * 5000}", f"{'-' * 8000}1"),
    *("FACT(1E300)", "COMBIN(1E15,5E14)", "SUMPRODUCT(A1:XFD1048576*A1:XFD1048576)", "a." * 3000),
    *("A1048577", "A0", "ABC1234567", "SUM(A1:A199999)", 'REPT("x",1E9)', "SEQUENCE(1E6,1E4)"),
    *("1^1^1^1" * 900, f"{'SUM(' * 1500}1{')' * 1500}", "{1,2;3}", "A1:A3 B2", "\x1b[2J", '"', "'"),
)
CHEATS = (
    *("Key!{cell}", "'Key'!${cell}", "key!{cell}/3*3", "SUM(KEY!{cell}:{cell})", "-(-Key!{cell})"),
    *('INDIRECT("Key!{cell}")', 'INDIRECT("K"&"ey!{cell}")', "OFFSET(Key!A1,{row},1)"),
    *("OFFSET(A1,0,0)", "LET(k,Key!{cell},k)", "_xlfn.LET(_xlpm.k,Key!{cell},_xlpm.k)"),
    *('LET(f,LAMBDA(a,INDIRECT(a)),f("Key!{cell}"))', "INDEX(Key!A1:Z200,{row},2)", "{number}"),
)
ATOMS = ("1", "0", "1E308", "-1", '"text"', "TRUE", "#REF!", "A1", "$B$12", "C3:D9", "Nowhere!A1")
ATOMS += ("Start!A1", "'Exercise'!D11", "x", "W", "T[a]", "A:A", "[1]B!C2", "{1,2}", "", "1%")
CALLS = (
    "SUM",
    "SUMPRODUCT",
    "INDEX",
    "IF",
    "MMULT",
    "FACT",
    "REPT",
    "LET",
    "LAMBDA",
    "CHOOSE",
    "EXP",
)
CALLS += (
    "TRANSPOSE",
    "MATCH",
    "LOOKUP",
    "TEXT",
    "MOD",
    "POWER",
    "BITLSHIFT",
    "_xlfn.FOO",
    "CONCAT",
)
FACTS = ('{"version": 1e400}', "[" * 30_000, '{"a":' * 5000, "null", "{}", "\u2028", "")


class Class(NamedTuple):
    """A workbook of exercises: filled in rightly, and its yellow cells."""

    data: bytes
    cells: list[tuple[str, int, int]]
    right: list[str]
    facts: dict[str, Any]
    score: int
    by_formula: bool


@cache
def asked(name: str, level: int) -> Class:
    book, answers = exercises.recipe(name, level).asked()
    spelt = formula(book)
    right = [spelt(a) for a in answers]
    cells = [at(a) for a in answers]
    facts = json.loads(str(book.sheets[KEY].entries[exercise.FACTS].value))
    with tempfile.TemporaryDirectory() as folder:
        path = xlsx.write(book, Path(folder) / "blank.xlsx")
        good = typed(path, Path(folder) / "good.xlsx", dict(zip(cells, right, strict=True)))
        n = 1 + answers[-1].exercise
        return Class(good.read_bytes(), cells, right, facts, n, level > 1)


def ready() -> None:
    for name, level in ASKED:
        asked(name, level)


def grade(rng: random.Random) -> Cases:
    """A file that cheats, crashes, hangs, or lies, before one that is right."""
    while True:
        known = asked(*rng.choice(ASKED))
        cheats = rng.random() < 0.3
        some = rng.sample(range(len(known.cells)), rng.randint(1, min(4, len(known.cells))))
        texts = {k: f"={cheat(rng) if cheats else odd(rng)}" for k in some}
        edits = {known.cells[k]: text for k, text in texts.items()}
        if rng.random() < 0.15:
            edits[KEY, *exercise.FACTS] = forged(rng, known.facts)

        def prepare(folder: Path, known: Class = known, edits: dict = edits) -> None:
            (folder / "good.xlsx").write_bytes(known.data)
            typed(folder / "good.xlsx", folder / "bad.xlsx", edits)

        name = "; ".join(ascii(text[:40]) for text in edits.values())
        args = ["grade", "--json", "bad.xlsx", "good.xlsx"]
        yield Case(name, args, prepare, said=said(known, list(texts) if cheats else []))


def said(known: Class, cheating: list[int]) -> Callable[[str], str]:
    """What tells if a good file lost its marks, or a cheat got one."""

    def wrong(out: str) -> str:
        result = json.loads(out)["result"] if out else {"files": []}
        marks = {file["file"]: file for file in result["files"]}
        if marks.get("good.xlsx", {}).get("score") != known.score:
            return "the good file lost its marks"
        if "bad.xlsx" not in marks:
            return ""
        cells = [cell for cells in marks["bad.xlsx"]["exercises"] for cell in cells]
        passed = [k for k in cheating if cells[k]["right"] and known.by_formula]
        return f"a cheat passes: {cells[passed[0]]}" if passed else ""

    return wrong


def cheat(rng: random.Random) -> str:
    """A formula that has the number from elsewhere."""
    row = rng.randint(1, 150)
    cell = f"{rng.choice('ABCD')}{row}"
    number = repr(rng.choice([1.0, 0.5, rng.random()]))
    return rng.choice(CHEATS).format(cell=cell, row=row, number=number)


def odd(rng: random.Random) -> str:
    """A formula that crashes some program, or one that is drawn part by part."""
    return rng.choice(FATAL) if rng.random() < 0.4 else drawn(rng, rng.randint(1, 5))


def drawn(rng: random.Random, depth: int) -> str:
    """A formula of random parts."""
    if not depth or rng.random() < 0.2:
        return rng.choice(ATOMS)
    if rng.random() < 0.4:
        one, two = (drawn(rng, depth - 1) for _ in range(2))
        return f"({one}{rng.choice('+-*/^&=<:, ')}{two})"
    parts = (drawn(rng, depth - 1) for _ in range(rng.randint(0, 3)))
    return f"{rng.choice(CALLS)}({','.join(parts)})"


def forged(rng: random.Random, facts: dict[str, Any]) -> str:
    """What the hidden sheet says, with a lie."""
    if rng.random() < 0.5:
        return rng.choice(FACTS)
    values = ("1e400", "-1", "[1e400]", "[[[[1]]]]", '"../../etc"', '"/dev/zero"', "null", "1e9")
    text = json.dumps(facts | {rng.choice(list(facts)): "HERE"})
    return text.replace('"HERE"', rng.choice(values))


KINDS: dict[str, Kind] = {"grade": grade}
