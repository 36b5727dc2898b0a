"""Workbooks that are damaged, tampered with, or swollen."""

import json
import os
import random
import tempfile
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import cellformer
from hostile_kinds.cases import TEXTS, VALUES, Case, Cases, Kind


@cache
def book() -> dict[str, bytes]:
    """The parts of a workbook; the whole file without a name."""
    with tempfile.TemporaryDirectory() as folder:
        path = cellformer.write(cellformer.build("cat-sat"), Path(folder) / "book.xlsx")
        with zipfile.ZipFile(path) as archive:
            parts = {name: archive.read(name) for name in archive.namelist()}
        return {"": path.read_bytes(), **parts}


def workbooks(rng: random.Random) -> Cases:
    """Workbooks for diff, import and verify: damaged, tampered with, swollen."""
    ways: tuple[Callable[[Path, random.Random], object], ...] = (
        cut_file, flipped_file, no_workbook, without_part, flipped_part, swollen, tampered_source,
        odd_cells,
    )  # fmt: skip
    commands = (["diff", "book.xlsx"], ["import", "book.xlsx", "-o", "out"])
    commands += (["verify", "book.xlsx", "--engine", "ironcalc"],)
    while True:
        how, seed = rng.choice(ways), rng.random()

        def prepare(folder: Path, how: Callable = how, seed: float = seed) -> None:
            how(folder / "book.xlsx", random.Random(seed))

        yield Case(f"{how.__name__} {seed:.4f}", rng.choice(commands), prepare)


def packed(path: Path, parts: dict[str, bytes]) -> None:
    """Write a workbook of these parts."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts.items():
            if name:
                archive.writestr(name, data)


def cut_file(path: Path, draw: random.Random) -> None:
    data = book()[""]
    path.write_bytes(data[: draw.randrange(len(data))])


def flipped_file(path: Path, draw: random.Random) -> None:
    data = bytearray(book()[""])
    for _ in range(draw.choice([1, 5, 50])):
        data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    path.write_bytes(bytes(data))


def no_workbook(path: Path, draw: random.Random) -> None:
    path.write_bytes(draw.choice(TEXTS))
    if draw.random() < 0.3:
        path.unlink()
        draw.choice([os.mkfifo, os.mkdir, lambda at: os.symlink("/dev/zero", at)])(path)


def without_part(path: Path, draw: random.Random) -> None:
    parts = dict(book())
    del parts[draw.choice([name for name in parts if name])]
    packed(path, parts)


def flipped_part(path: Path, draw: random.Random) -> None:
    parts = dict(book())
    name = draw.choice([name for name in parts if name])
    data = bytearray(parts[name])
    for _ in range(draw.choice([1, 3, 30])):
        data[draw.randrange(len(data))] = draw.choice(b'<>&"/\0 =1a')
    packed(path, parts | {name: bytes(data)})


def swollen(path: Path, draw: random.Random) -> None:
    """A part that unpacks to gigabytes."""
    parts = book()
    name = draw.choice([n for n in parts if "sheet" in n.lower() and n.endswith(".xml")])
    cells = draw.choice([b"<c><v>1</v></c>", b"<si><t>a</t></si>", b" ", b"<row/>", b"<!-- -->"])
    unit = cells * (1 << 20)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for each, data in parts.items():
            if each and each != name:
                archive.writestr(each, data)
        with archive.open(name, "w", force_zip64=True) as part:
            head, mark, tail = parts[name].rpartition(b"</row>")
            part.write(head)
            for _ in range(max(1, (draw.choice([50, 450, 2000]) << 20) // len(unit))):
                part.write(unit)
            part.write(mark + tail)


def tampered_source(path: Path, draw: random.Random) -> None:
    """The sheet Source says something else."""
    parts = dict(book())
    table = parts["xl/sharedStrings.xml"].decode()
    (start,) = [table.index("{&quot;")] if "{&quot;" in table else [table.index('{"')]
    end = table.index("</t>", start)
    escaped = "{&quot;" in table
    facts = table[start:end].replace("&quot;", '"')
    held = json.loads(facts)
    key = draw.choice([*held, "sampling", "numbers"])
    text = json.dumps(held | {key: "HERE"}).replace('"HERE"', draw.choice(VALUES))
    text = text.replace("\\u001b", "").replace("\\u0000", "")
    text = text.replace('"', "&quot;") if escaped else text
    parts["xl/sharedStrings.xml"] = (table[:start] + text + table[end:]).encode()
    packed(path, parts)


def odd_cells(path: Path, draw: random.Random) -> None:
    """Values of cells that are others, of another kind, or far away."""
    parts = dict(book())
    name = draw.choice([n for n in parts if n.startswith("xl/worksheets/sheet")])
    data = parts[name]
    cells = [n for n in range(len(data)) if data.startswith(b"<v>", n)]
    if not cells:
        return packed(path, parts)
    at = draw.choice(cells)
    end = data.index(b"</v>", at)
    odd = (b"", b"NaN", b"1e999", b"99999999999999999999", b"abc", b"-1", b"0", b"1e308", b"#REF!")
    parts[name] = data[: at + 3] + draw.choice(odd) + data[end:]
    return packed(path, parts)


SHEET = '<sheet name="S{0}" sheetId="{1}" r:id="{2}"/>'
PART = '<Relationship Id="x{0}" Type="{1}/worksheet" Target="worksheets/s{0}.xml"/>'
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
EMPTY = f'<worksheet xmlns="{MAIN}"><sheetData/></worksheet>'


def with_lists(path: Path, how: str, n: int) -> None:
    """A workbook that lists so many sheets, of one part or of their own, names, or parts."""
    main, relations = "xl/workbook.xml", "xl/_rels/workbook.xml.rels"
    parts = dict(book())
    own = "rId1" if how == "one part" else "x{0}"
    sheets = "".join(SHEET.format(k, k + 9999, own.format(k)) for k in range(n))
    names = "".join(f'<definedName name="n{k}">A!$A$1</definedName>' for k in range(n))
    if how in ("one part", "parts"):
        parts[main] = parts[main].replace(b"</sheets>", f"{sheets}</sheets>".encode())
    if how == "names":
        parts[main] = parts[main].replace(b"</definedNames>", f"{names}</definedNames>".encode())
    if how in ("parts", "relations"):
        listed = "".join(PART.format(k, OFFICE) for k in range(n)) + "</Relationships>"
        parts[relations] = parts[relations].replace(b"</Relationships>", listed.encode())
    if how == "parts":
        parts |= {f"xl/worksheets/s{k}.xml": EMPTY.encode() for k in range(n)}
    packed(path, parts)


def listings(rng: random.Random) -> Cases:
    """Workbooks that list without end; each is refused."""
    commands = (
        ["diff", "book.xlsx"], ["import", "book.xlsx", "-o", "out"], ["explain", "book.xlsx"],
        ["verify", "book.xlsx", "--engine", "ironcalc"], ["trace", "book.xlsx", "logits[0,0]"],
        ["run", "book.xlsx"], ["trace", "book.xlsx", "Start!A1"],
    )  # fmt: skip
    while True:
        how = rng.choice(["one part", "names", "relations", "parts"])
        most = 30_000 if how == "parts" else 1_000_000
        n = rng.choice([1, 2_000, 20_000]) if how == "one part" else rng.choice([250_000, most])
        n = min(n, most)

        def prepare(folder: Path, how: str = how, n: int = n) -> None:
            with_lists(folder / "book.xlsx", how, n)

        yield Case(f"{n:,} {how}", rng.choice(commands), prepare, must_fail=True)


def ready() -> None:
    book()


KINDS: dict[str, Kind] = {"workbooks": workbooks, "listings": listings}
