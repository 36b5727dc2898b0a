"""Reading workbook files: what openpyxl finds in them, whichever program has saved them."""

import re
import tracemalloc
import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from conftest import saved
from corners import corner
from openpyxl import Workbook, load_workbook
from openpyxl.worksheet.formula import ArrayFormula

from cellformer.engine import InputError
from cellformer.engine.cells.values import CellError
from cellformer.engine.models import checkpoint
from cellformer.engine.models.generate import passage
from cellformer.exporters.assemble import model_workbook
from cellformer.exporters.checking.verify import poison
from cellformer.exporters.compose.address import moved
from cellformer.exporters.file import xlsx
from cellformer.exporters.file.reading import WorkbookFile
from cellformer.exporters.model.plan import Limits

pytestmark = pytest.mark.slow

SAVED = ("final-step", "napkin", "fact-lookup")  # by LibreOffice too
BOOKS = (*SAVED, "sampling")


def assert_same_as_openpyxl(path: Path) -> Workbook:
    """Every value, formula, array and defined name of a workbook, which openpyxl has open."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        written, computed = load_workbook(path), load_workbook(path, data_only=True)
    file = WorkbookFile(path)
    assert list(file) == [sheet.title for sheet in written.worksheets]
    for sheet in written.worksheets:
        ours, values = file[sheet.title], computed[sheet.title]
        theirs = {(c.row - 1, c.column - 1) for row in sheet.iter_rows() for c in row}
        assert set(ours.cells) <= theirs
        assert set(ours.cells) == set(ours.values)
        computed_here, formulas = ours.computed, np.flatnonzero(ours.arrays.formulas)
        spelt = dict(zip(computed_here, ours.arrays.spelt(formulas), strict=True))
        for row, col in theirs:
            cell, value = ours.cell((row, col)), values.cell(row + 1, col + 1)
            assert cell.value == value.value == ours[row, col]
            assert (cell.formula is not None) == ((row, col) in computed_here)
            assert isinstance(cell.value, CellError) == (value.data_type == "e")
            formula = sheet.cell(row + 1, col + 1)
            if formula.data_type != "f":
                assert cell.formula is None
            elif isinstance(formula.value, ArrayFormula):
                text = formula.value.text.removeprefix("=")
                assert (cell.formula, spelt[row, col]) == (text, f"{{{text}}}")
            else:
                assert f"={cell.formula}" == f"={spelt[row, col]}" == formula.value
    names = {name: list(d.destinations) for name, d in written.defined_names.items()}
    assert file.names == {
        name: [(sheet, area.replace("$", "")) for sheet, area in areas]
        for name, areas in names.items()
    }
    assert file.names
    return written


@pytest.mark.parametrize("name", BOOKS)
def test_read_as_openpyxl(name: str, built, tmp_path: Path) -> None:
    assert_same_as_openpyxl(built[name]).save(tmp_path / "again.xlsx")
    assert_same_as_openpyxl(tmp_path / "again.xlsx")


def test_read_what_libreoffice_saved(built, tmp_path: Path, libreoffice) -> None:
    for path in saved({name: built[name] for name in SAVED}, tmp_path / "out").values():
        assert_same_as_openpyxl(path)


def test_shared_formulas(tmp_path: Path) -> None:
    model = checkpoint.load(corner("llama", tmp_path / "llama"))
    words = passage(model, [1, 2, 0, 2, 1])
    book = model_workbook.build("llama", model, words, limits=Limits(words=1))
    path = xlsx.write(book, tmp_path / "llama.xlsx")
    file = WorkbookFile(path)
    with zipfile.ZipFile(path) as parts:
        assert any(b'<f t="shared" si=' in parts.read(part) for part in file.parts.values())
    assert_same_as_openpyxl(path)


@pytest.mark.parametrize(
    ("formula", "down", "right", "expected"),
    [
        ("A1+$A1+A$1+$A$1", 2, 27, "AB3+$A3+AB$1+$A$1"),
        ("SUM(B2:C9)*LOG10(Z9)", 1, 1, "SUM(C3:D10)*LOG10(AA10)"),
        ("'Block A1'!B2&\"A1\"&Play!B2", 1, 0, "'Block A1'!B3&\"A1\"&Play!B3"),
        ("SUM(A:B)+SUM($A:B)+SUM(1:$2)", 1, 1, "SUM(B:C)+SUM($A:C)+SUM(2:$2)"),
        ("ABC1!A1+rate_1+TRUE()", 1, 0, "ABC1!A2+rate_1+TRUE()"),
    ],
)
def test_moved_formulas(formula: str, down: int, right: int, expected: str) -> None:
    assert moved(formula, down, right) == expected
    assert moved(formula, 0, 0) == formula


MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
RELATIONS = f"""<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">
    <Relationship Id="a" Type="{OFFICE}/%s" Target="%s"/><Relationship Id="b"
    Type="{OFFICE}/sharedStrings" Target="/xl/texts.xml"/></Relationships>"""
PARTS = {
    "[Content_Types].xml": """<Types><Override PartName="/xl/book.xml" ContentType=
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/></Types>""",
    "_rels/.rels": RELATIONS % ("officeDocument", "xl/book.xml"),
    "xl/book.xml": f"""<w:workbook xmlns:w="{MAIN}" xmlns:r="{OFFICE}"><w:sheets>
        <w:sheet name="It's &amp;" sheetId="1" r:id="a"/></w:sheets><w:definedNames>
        <w:definedName name="two">'It''s &amp;'!$A$1,'It''s &amp;'!$B$2:$C$3</w:definedName>
        <w:definedName name="own" localSheetId="0">'It''s &amp;'!$A$1</w:definedName>
        </w:definedNames></w:workbook>""",
    "xl/_rels/book.xml.rels": RELATIONS % ("worksheet", "one/cells.xml"),
    "xl/one/cells.xml": f"""<w:worksheet xmlns:w="{MAIN}"><w:sheetData>
        <w:row><w:c s="3"/><w:c><w:v>1e3</w:v></w:c><w:c t="s"><w:v>1</w:v></w:c></w:row>
        <w:row r="7"><w:c r="B7" t="inlineStr"><w:is><w:t>a&lt;</w:t></w:is></w:c><w:c t="b">
        <w:f t="shared" si="0" ref="C7:C9">B7&gt;$A$1</w:f><w:v>1</w:v></w:c></w:row>
        <w:row><w:c r="C8" t="e"><w:f t="shared" si="0"/><w:v>#N/A</w:v></w:c>
        <w:c t="str"><w:f>""</w:f><w:v></w:v></w:c></w:row></w:sheetData></w:worksheet>""",
    "xl/texts.xml": f"""<sst xmlns="{MAIN}"><si><t>no</t></si><si><r><t>b</t></r>
        <r><t xml:space="preserve"> c</t></r><rPh sb="0" eb="1"><t>said</t></rPh></si></sst>""",
}


def packed(path: Path, parts: Mapping[str, str | bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return path


def test_every_way_to_write_a_cell(tmp_path: Path) -> None:
    """Without addresses, with prefixes, texts in runs, values of every kind."""
    file = WorkbookFile(packed(tmp_path / "book.xlsx", PARTS))
    (sheet,) = (file[name] for name in file)
    shown = {at: (cell.value, cell.formula) for at, cell in sheet.cells.items()}
    assert shown == {
        (0, 1): (1000.0, None),
        (0, 2): ("b c", None),
        (6, 1): ("a<", None),
        (6, 2): (True, "B7>$A$1"),
        (7, 2): ("#N/A", "B8>$A$1"),
        (7, 3): (None, '""'),
    }
    assert {at: (value, None) for at, value in sheet.values.items()} == {
        at: (value, None) for at, (value, _) in shown.items()
    }
    assert set(sheet.computed) == {(6, 2), (7, 2), (7, 3)}
    assert sheet["C7"] is True and sheet["Z99"] is None and sheet.errors == [(7, 2)]
    assert file.names == {"two": [("It's &", "A1"), ("It's &", "B2:C3")]}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("w:", "w:"),
        (r"\bw(?=[:=])", "my-x"),
        ("<w:v>", '<w:v xml:space="preserve">'),
        ("</w:f>", "</w:f >"),
    ],
)
def test_poison_every_way_to_write_a_formula(old: str, new: str, tmp_path) -> None:
    """Whatever its part is called, with prefixes, attributes, blanks: what is not made wrong would
    only be echoed."""
    cells = re.sub(old, new, PARTS["xl/one/cells.xml"])
    path = packed(tmp_path / "book.xlsx", PARTS | {"xl/one/cells.xml": cells})
    poison(path, tmp_path / "wrong.xlsx")
    (before,), (after,) = (
        [file[name] for name in file] for file in map(WorkbookFile, (path, tmp_path / "wrong.xlsx"))
    )
    assert {at: after.values.get(at) for at in before.values if at not in before.computed} == {
        at: value for at, value in before.values.items() if at not in before.computed
    }
    assert before.computed and after.formulas == before.formulas
    assert all(after.values.get(at) != value for at, value in before.computed.items())


def test_unpoisonable_formulas_are_reported(tmp_path: Path) -> None:
    cells = PARTS["xl/one/cells.xml"].encode("utf-16")
    path = packed(tmp_path / "book.xlsx", PARTS | {"xl/one/cells.xml": cells})
    with pytest.raises(InputError, match=r"not written in UTF-8; open the workbook in a spreads"):
        poison(path, tmp_path / "wrong.xlsx")


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("damage", ["missing", "cut"])
def test_damaged_part_is_one_line(part: str, damage: str, tmp_path: Path) -> None:
    parts = {**PARTS, part: PARTS[part][:-30]}
    if damage == "missing":
        del parts[part]
    path = packed(tmp_path / "book.xlsx", parts)
    with pytest.raises(InputError, match=r"book.xlsx is not an .xlsx workbook") as told:
        file = WorkbookFile(path)
        assert [file[name].cells for name in file]
    assert "\n" not in str(told.value)


CELLS = PARTS["xl/one/cells.xml"]
WRONG = {
    "unclosed": (CELLS.replace("</w:worksheet>", "<a>" * 1_000_000), "no element found"),
    "a NUL": (CELLS.replace("a&lt;", "a\0"), "not well-formed"),
    "a row that is none": (
        CELLS.replace('r="7"', 'r="abc"'),
        "it has a row 'abc', which is not valid",
    ),
    "row 0": (CELLS.replace('r="7"', 'r="0"'), "it has a row '0', which is not valid"),
    "a row too far": (
        CELLS.replace('r="7"', 'r="1048577"'),
        "it has a row 1,048,577, which does not exist",
    ),
    "column ZZZZ": (
        CELLS.replace('"B7"', '"ZZZZ7"'),
        "it has a cell 'ZZZZ7', which does not exist",
    ),
    "column XFE": (CELLS.replace('"B7"', '"XFE7"'), "it has a cell 'XFE7', which does not exist"),
    "no number": (CELLS.replace('"B7"', '"B"'), "it has a cell 'B', which does not exist"),
    "a formula of 50 MB": (CELLS.replace('""', "1+" * 25_000_000 + "1"), "50,000,001 bytes"),
}


@pytest.mark.parametrize("prefix", ["w:", ""])
@pytest.mark.parametrize("what", WRONG)
def test_unreadable_files_are_refused(what: str, prefix: str, tmp_path: Path) -> None:
    xml, fact = WRONG[what]
    xml = xml if prefix else xml.replace("xmlns:w=", "xmlns=").replace("w:", "")
    path = packed(tmp_path / "book.xlsx", PARTS | {"xl/one/cells.xml": xml})
    with pytest.raises(InputError, match=re.escape(fact)) as told:
        file = WorkbookFile(path)
        assert [file[name].arrays for name in file]
    assert "\n" not in str(told.value) and str(path) in str(told.value)


@pytest.mark.parametrize("kind", ["application/msword", "application/xml", ""])
def test_other_content_types_are_refused(kind: str, tmp_path: Path) -> None:
    types = f'<Types><Override PartName="/xl/book.xml" ContentType="{kind}"/></Types>'
    path = packed(tmp_path / "book.xlsx", PARTS | {"[Content_Types].xml": types})
    with pytest.raises(InputError, match=re.escape(f"gives the workbook the type {kind!r}")):
        WorkbookFile(path)


def test_two_million_shared_texts_are_refused(tmp_path: Path) -> None:
    texts = "<sst>" + "<si><t>a</t></si>" * 2_000_000 + "</sst>"
    path = packed(tmp_path / "book.xlsx", PARTS | {"xl/texts.xml": texts})
    with pytest.raises(InputError, match=r"2,000,000 shared texts, above the limit of 500,000\."):
        assert [WorkbookFile(path)[name].cells for name in WorkbookFile(path)]


def listing(book: str = "", relations: str = "", parts: int = 0) -> dict[str, str | bytes]:
    """The parts of a workbook that lists more."""
    found = dict(PARTS)
    found["xl/book.xml"] = found["xl/book.xml"].replace("</w:sheets>", book, 1)
    name = "xl/_rels/book.xml.rels"
    found[name] = found[name].replace("</Relationships>", f"{relations}</Relationships>")
    return found | {f"more/{k}": "" for k in range(parts)}


SHEET = '<w:sheet name="{0}" sheetId="{0}" r:id="x{0}"/>'
NAME = '<w:definedName name="n{0}">A!$A$1</w:definedName>'
RELATION = f'<Relationship Id="x{{0}}" Type="{OFFICE}/worksheet" Target="s{{0}}.xml"/>'


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        (
            lambda: listing("".join(map(SHEET.format, range(20_000))) + "</w:sheets>"),
            "lists 20,001 sheets, above the limit of 2,000;",
        ),
        (
            lambda: listing("".join(map(SHEET.format, range(1_000_000))) + "</w:sheets>"),
            "things in xl/book.xml, above the limit of 200,000;",
        ),
        (
            lambda: listing("</w:sheets>" + "".join(map(NAME.format, range(300_000)))),
            "things in xl/book.xml, above the limit of 200,000;",
        ),
        (
            lambda: listing("</w:sheets>", "".join(map(RELATION.format, range(300_000)))),
            "things in xl/_rels/book.xml.rels, above the limit of 200,000;",
        ),
        (
            lambda: listing("</w:sheets>", parts=20_000),
            "lists 20,006 parts, above the limit of 20,000;",
        ),
        (
            lambda: listing('<w:sheet name="b" sheetId="2" r:id="a"/></w:sheets>'),
            "two of its sheets use the same part",
        ),
    ],
)
def test_lists_without_end_are_refused(parts, said: str, tmp_path: Path) -> None:
    path = packed(tmp_path / "book.xlsx", parts())
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=re.escape(said)):
            WorkbookFile(path)
        assert tracemalloc.get_traced_memory()[1] < 300e6
    finally:
        tracemalloc.stop()


def test_escaped_characters(tmp_path: Path) -> None:
    """Also one that only looks like it."""
    texts = "<sst><si><t/></si><si><t>a_x0009_b_x005F_x0041_</t></si></sst>"
    file = WorkbookFile(packed(tmp_path / "book.xlsx", PARTS | {"xl/texts.xml": texts}))
    assert {file[name]["C1"] for name in file} == {"a\tb_x0041_"}


def test_dates_are_numbers(tmp_path: Path) -> None:
    cells = CELLS.replace("<w:c><w:v>1e3</w:v></w:c>", '<w:c t="d"><w:v>2026-11-23</w:v></w:c>')
    assert cells != CELLS
    file = WorkbookFile(packed(tmp_path / "book.xlsx", PARTS | {"xl/one/cells.xml": cells}))
    (sheet,) = (file[name] for name in file)
    assert sheet["B1"] == sheet.cell("B1").value == 46349
