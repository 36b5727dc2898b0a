"""Whatever is typed into a workbook in LibreOffice and saved: `diff` tells all of it and nothing
else, the same as the ledger in the file, and computes what the sheet shows."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from conftest import THIN, cli, default_book
from libreoffice import Command, office

from cellformer.engine.cells.values import CellError
from cellformer.exporters.checking.programs import XLSX
from cellformer.exporters.edits import edited
from cellformer.exporters.file.reading import WorkbookFile
from cellformer.exporters.model.model_book import ModelBook
from cellformer.exporters.pages import ledger

N_SETS, N_TOGETHER = 6, 5  # 300 edits are 60 sets
# what is typed, by hand or pasted; after an equals sign a formula
VALUES = (
    *("0.25", "-3", "7", "1E30", "1E308", "hello", "'0,5", "'1.000,5", "2026-11-23", "50%", "TRUE"),
    *("FALSE", "=1+1", "=A1", "=1/0", "=NA()", "=SQRT(-1)", "='no'", '="a"&"b"', "", ""),
)  # fmt: skip
KINDS = ("weight", "weight", "weight", "computed", "switch", "dial", "sentence", "title")


class Edit(NamedTuple):
    """A cell, by its name or else its place, and what is typed."""

    sheet: str
    row: int
    col: int
    text: str

    @property
    def command(self) -> Command:
        """What types it."""
        kind = "nothing" if not self.text else "text" if self.text[0] == "'" else "formula"
        return "type", *self[:3], kind, self.text.removeprefix("'")


def random_edit(book: ModelBook, rng: np.random.Generator) -> Edit:
    """An edit of one of a workbook's cells."""

    def one_of(blocks: Sequence[str]) -> tuple[str, int, int]:
        block = book.graph[blocks[rng.integers(len(blocks))]]
        cells = [at for at in block.whole.cells() if block.has(*at)]
        return book.cell(block.name, *cells[rng.integers(len(cells))])

    kind, text = rng.choice(KINDS), str(rng.choice(VALUES))
    here = [b for b in book.graph if b.name in book.places]
    if kind == "weight":
        return Edit(*one_of([b.name for b in here if b.kind == "weight"]), text)
    if kind == "computed":
        parts = [b.name for b in here if b.op is not None and b.name.startswith("blocks.")]
        return Edit(*one_of(parts), text)
    if kind == "switch":
        return Edit(*one_of([b.name for b in here if b.leaf == "switch"]), text)
    if kind == "dial":
        dials = ["temperature", "top_k", "top_p", "choose", "look.target.instead"]
        return Edit(*one_of(dials), text)
    if kind == "sentence":
        words = book.labels["vocab"]
        given = " ".join(words[k] for k in rng.integers(0, len(words), 3))
        return Edit(*book.cell("sentence", 0, 0), str(rng.choice([given, text])))
    sheets = ["Embedding", "Block 0", "Words", "Lens"]
    return Edit(sheets[rng.integers(len(sheets))], 0, 0, text)


def sets(book: ModelBook, n: int, seed: int) -> list[list[Edit]]:
    """Some edits of different cells at a time."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(n):
        together = {edit[:3]: edit for edit in (random_edit(book, rng) for _ in range(N_TOGETHER))}
        found.append(list(together.values()))
    return found


def saved_sets(path: Path, edits: Sequence[Sequence[Edit]], folder: Path) -> list[Path]:
    """The file as LibreOffice saves it with each set; one program makes them all."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{k}.xlsx" for k in range(len(edits))]
    _, name, *_ = XLSX.split(":")
    commands: list[Command] = [("open", path.resolve().as_uri()), ("compute",)]
    for target, together in zip(paths, edits, strict=True):
        commands += [edit.command for edit in together]
        commands += [("save", target.resolve().as_uri(), name, ""), ("put back",)]
    office().does([*commands, ("close",)])
    return paths


def of_ledger(book: ModelBook, file: WorkbookFile) -> Counter[str]:
    """How many edits the ledger's lines of inputs count, by what they are called."""
    known = {line.what for line in ledger.watched(book) if line.typed}
    sheet, found = file[ledger.SHEET], Counter[str]()
    for row in range(ledger.TOP, 400):
        what, count = sheet[row, ledger.WHAT], sheet[row, ledger.COUNT]
        if what in known and isinstance(count, float) and count:
            found[str(what)] += int(count)
    return found


def of_diff(found: edited.Edited) -> Counter[str]:
    """The same of what `diff` tells."""
    told = Counter[str]()
    for change in [*found.inputs, *found.overwritten]:
        if "[" in change.name:
            block, i, _ = change.name.replace("[", ",").rstrip("]").split(",")
            told[ledger.name(found.book.graph[block], int(i))] += 1
    return told


def differing(path: Path, book: ModelBook, edits: Sequence[Edit]) -> Iterator[str]:
    """What is wrong with what `diff` says of a file in which these edits were made."""
    file, found = WorkbookFile(path), edited.read(path)
    told = {change.where for change in [*found.inputs, *found.overwritten, *found.labels]}
    where = {book.address(book.sheets[e.sheet][e.row, e.col]): e for e in edits}
    yield from (f"a false alarm: {place}" for place in told - set(where))
    yield from (f"an added cell: {cell}" for cell in found.added)
    for place in set(where) - told:
        sheet, row, col, _ = where[place]
        was, now = book.clean.cell(sheet, row, col), file[sheet][row, col]
        if not (was == now or (was == "" and now is None) or (was == 0 and now is None)):
            yield f"missing: {where[place]}, was {was!r}, is {now!r}"
    if isinstance(file[ledger.SHEET][ledger.LINE], CellError):
        yield "the ledger is an error"
    counted, listed = of_ledger(book, file), of_diff(found)
    lines = {line.what for line in ledger.watched(book) if line.typed}
    listed = Counter({what: n for what, n in listed.items() if what in lines})
    if counted != listed:
        yield f"the ledger counts {dict(counted)}, diff {dict(listed)}"
    if not found.incomputable:
        place, live = book.places["logits"], found.live()
        for i, j in place.block.whole.cells():
            shown, now = file[place.sheet][place.cell(i, j)], live["logits"][i, j]
            if not (isinstance(shown, float) and shown == pytest.approx(now, rel=1e-9, abs=1e-9)):
                yield f"logits[{i},{j}] shows {shown}, {now} is computed"
                break


def test_diff_equals_the_ledger(built, tmp_path: Path, libreoffice) -> None:
    name = f"{THIN}dialogue-game"
    book = default_book(name)
    assert isinstance(book, ModelBook)
    edits = sets(book, N_SETS, 5)
    for path, together in zip(saved_sets(built[name], edits, tmp_path), edits, strict=True):
        assert [*differing(path, book, together)] == [], together
        assert cli("diff", path).code == 0
