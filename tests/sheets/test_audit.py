"""The audit: a workbook that breaks a rule of Excel on purpose is told so, a whole one is not."""

import re
import struct
import time
import zipfile
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np
import openpyxl
import pytest
import xlsxwriter
from conftest import cli, default_book
from openpyxl.workbook.defined_name import DefinedName

from cellformer.engine import InputError
from cellformer.engine.cells.access import Rect
from cellformer.exporters.checking.audit import audit
from cellformer.exporters.checking.rules.cycles import Run, cycle
from cellformer.exporters.checking.rules.sheet import overlap
from cellformer.exporters.file import xlsx
from cellformer.exporters.file.reading import WorkbookFile

MAIN = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"


def related(**parts: str) -> str:
    """A part that names others, by id and kind."""
    found = (
        f'<Relationship Id="{key}" Type="{OFFICE}/{key.rstrip("0123456789")}" Target="{part}"/>'
        for key, part in parts.items()
    )
    return f'<Relationships xmlns="{PACKAGE}">{"".join(found)}</Relationships>'


def workbook(
    path: Path,
    rows: str = "",
    before: str = "",
    after: str = "",
    names: str = "",
    styles: str = "",
    texts: str = "",
    chart: str = "",
    other: str = "Other",
) -> Path:
    """A workbook of two sheets, written by hand."""
    sheet = f"<worksheet {MAIN}>{before}<sheetData>{rows}</sheetData>{after}</worksheet>"
    sheets = "".join(
        f'<sheet name="{name}" sheetId="{k}" r:id="worksheet{k}"/>'
        for k, name in enumerate(("One", other), 1)
    )
    main = f'<workbook {MAIN} xmlns:r="{OFFICE}"><sheets>{sheets}</sheets>{names}</workbook>'
    kinds = {"styles": "styles.xml", "sharedStrings": "texts.xml"}
    kinds |= {"worksheet1": "one.xml", "worksheet2": "two.xml"}
    parts = {
        "_rels/.rels": related(officeDocument="xl/workbook.xml"),
        "xl/workbook.xml": main,
        "xl/_rels/workbook.xml.rels": related(**kinds),
        "xl/one.xml": sheet,
        "xl/two.xml": f"<worksheet {MAIN}><sheetData/></worksheet>",
        "xl/styles.xml": f"<styleSheet {MAIN}>{styles}</styleSheet>",
        "xl/texts.xml": f"<sst {MAIN}>{texts}</sst>",
    }
    if chart:
        parts["xl/charts/chart1.xml"] = f'<c:chart xmlns:c="urn:c"><c:f>{chart}</c:f></c:chart>'
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return path


def cells(*formulas: str, attributes: str = "") -> str:
    """Formulas down column A; an empty one shares the first's."""
    one = '<row r="{0}"><c r="A{0}"><f{1}>{2}</f><v>0</v></c></row>'
    return "".join(one.format(k, attributes, text) for k, text in enumerate(formulas, 1))


SPOKEN = '<row r="1"><c r="A1" t="str"><f>B1</f><v{}>{}</v></c></row>'  # a formula's text


def shared(first: str, ref: str = "B1:B3") -> str:
    """A formula that B1 to B3 share."""
    rows = [f'<c r="B{k}"><f t="shared" si="0"/><v>0</v></c>' for k in (1, 2, 3)]
    rows[0] = f'<c r="B1"><f t="shared" ref="{ref}" si="0">{first}</f><v>0</v></c>'
    return "".join(f'<row r="{k}">{c}</row>' for k, c in enumerate(rows, 1))


def array(*areas: str) -> str:
    """Array formulas down column A, in areas that each names."""
    return "".join(
        f'<row r="{k}"><c r="A{k}"><f t="array" ref="{area}">C1:C2</f></c></row>'
        for k, area in enumerate(areas, 1)
    )


def named(*names: str, to: str = "One!$A$1") -> str:
    defined = "".join(f'<definedName name="{name}">{to}</definedName>' for name in names)
    return f"<definedNames>{defined}</definedNames>"


def kept(area: str) -> str:
    """Cells that are declared to keep what they hold."""
    return named("latch.cells", to=area)


ONCE = '<calcPr iterate="1" iterateCount="1"/>'


def validated(kind: str = "list", formula: str = "One!$A$1:$A$9", **said: str) -> str:
    attributes = "".join(f' {name}="{text}"' for name, text in said.items())
    inner = f'<dataValidation type="{kind}" sqref="A1"{attributes}><formula1>{formula}</formula1>'
    return f"<dataValidations>{inner}</dataValidation></dataValidations>"


def dressed(formula: str, style: int = 0) -> str:
    rule = f'<cfRule type="expression" dxfId="{style}"><formula>{formula}</formula></cfRule>'
    return f'<conditionalFormatting sqref="A1">{rule}</conditionalFormatting>'


def format_of(code: str) -> str:
    return f'<numFmts><numFmt numFmtId="164" formatCode="{code}"/></numFmts>'


# What takes one value and gets a range. Others, as Excel's users know them, are in SPREAD_RIGHT.
SPREAD = {
    "B1:B3": "a cell",
    "Other!B:B": "a cell",
    "IF(A9,B1:B3,C1:C3)": "IF",
    "INDEX(B1:D3,0,2)": "a cell",
    "INDEX(B1:D3,2,)": "a cell",
    "MMULT(B1:C2,D1:E2)": "a cell",
    "B1:B3*2": "an operator",
    "-B1:B3": "an operator",
    "SUM(B1:B3*C1:C3)": "an operator",
    "MAX(ABS(B1:B3))": "ABS",
    "LEN(B1:B3)": "LEN",
    "AND(B1:B3=1,TRUE)": "an operator",
    "SUM((B1:B3&gt;0)*1)": "an operator",
    "COUNT(1/(B1:B3=2))": "an operator",
    "MATCH(1,(B1:B3=2)*(C1:C3=1),0)": "an operator",
    "IF(B1:B3=1,2,3)": "an operator",
    "SUMPRODUCT(IF(B1:B3&gt;0,1,0))": "an operator",
    "SUMPRODUCT(ABS(IF(A9,B1:B3*2,0)))": "an operator",
    "SUMPRODUCT(IFERROR(B1:B3/C1:C3,0))": "an operator",
    "SUMPRODUCT(B1:B3,TRANSPOSE(C1:E1))": "TRANSPOSE",
    "SUMPRODUCT(INDEX(B1:B3,C1:C3))": "INDEX",
    "SUMPRODUCT(VLOOKUP(B1:B3,C1:D3,2,FALSE))": "VLOOKUP",
    "VLOOKUP(B1:B3,C1:D3,2)": "VLOOKUP",
    "COUNTIF(B1:B3,C1:C3)": "COUNTIF",
    "SUMIFS(B1:B3,C1:C3,D1:D3)": "SUMIFS",
    "LARGE(B1:B3,C1:C3)": "LARGE",
    "RANK(B1:B3,B1:B3)": "RANK",
    "SUM(Range*2)": "an operator",
    "TANH((B1:B3))": "TANH",
    "EXP(B1:INDEX(B1:B9,3))": "EXP",
}
SPREAD_RIGHT = (
    "SUM(B1:B3,C:C,2:3)",
    "SUMPRODUCT(1/COUNTIF(B1:B3,B1:B3))",
    "SUMPRODUCT(B1:B3,INDEX(C1:E3,0,2))",
    "SUMPRODUCT(B1:B3,IF(A9,C1:C3,D1:D3))",
    "SUM(INDEX(B1:D3,0,2))",
    "SUM(INDEX(B1:B3*C1:C3,0))",
    "MATCH(1,INDEX((B1:B3=2)*(C1:C3=1),0),0)",
    "INDEX(B1:D3,2,MATCH(MAX(B1:B3),B1:B3,0))+1",
    "LOOKUP(2,1/(B1:B3=1),C1:C3)",
    "SUM(IF(A9,B1:B3,C1:C3))",
    "IF(A9,SUM(B1:B3),CHOOSE(2,B1,C1))",
    "SUM(B1:INDEX(B1:B9,3))*2",
    "SUM(LARGE(B1:B3,{1,2}))",
    "ROWS(B1:B3)*COLUMNS(B1:D1)+N(B1:B3)",
    "SUMIFS(B1:B3,C1:C3,&quot;&gt;1&quot;,D1:D3,E1)",
    "RANK(B1,B1:B3)+COUNTIF(B1:B3,B1)",
    "VLOOKUP(B1,C1:D3,2,FALSE)&amp;&quot;B1:B3*2&quot;",
    "B1:B3 B2:D2",
    "ABS(B1:B1)+MAX((B1:B3,C1))",
    "FREQUENCED(B1:B3",
)
# what Excel takes, and gnumeric does not
IN_EXCEL = (
    "SUMPRODUCT((B1:B3=2)*ABS(C1:C3),D1:D3-1)",
    "SUMPRODUCT(--EXACT(B1:B3,C1),LEN(Range))",
)

DXFS = "<dxfs><dxf/></dxfs>"
LONG = "&quot;" + "x" * 256 + "&quot;"
PANE = '<sheetViews><sheetView><pane {} state="frozen"/></sheetView></sheetViews>'
BREAKS = {
    "a name twice": ({"names": named("w", "W_E.0", "w_e.0")}, "w_e.0: a name is defined twice"),
    "a name like a cell": ({"names": named("AB12")}, "looks like the address of a cell"),
    "a name like R1C1": ({"names": named("r2c3")}, "looks like the address of a cell"),
    "a name with a space": ({"names": named("a b")}, "must not begin with a digit"),
    "a name that leads nowhere": (
        {"names": named("w", to="Gone!$A$1")},
        "a sheet that does not exist",
    ),
    "a sheet's name too long": ({"other": "s" * 32}, "1 to 31 characters"),
    "a sheet's name with a colon": ({"other": "a:b"}, "must not contain []:*?/"),
    "a sheet twice": ({"other": "ONE"}, "two sheets have the same name"),
    "a formula too long": ({"rows": cells("1" + "+B1234" * 1366)}, "longer than 8,192"),
    "too many arguments": ({"rows": cells(f"MAX({','.join(['B1'] * 256)})")}, "255 arguments"),
    "too deep": ({"rows": cells("ABS(" * 65 + "B1" + ")" * 65)}, "more than 64 levels deep"),
    "a text in a formula": ({"rows": cells(f"LEN({LONG})")}, "longer than 255 characters"),
    "a small e": ({"rows": cells("B1*1e-9")}, "a small e"),
    "a later function": ({"rows": cells("_xlfn.TEXTJOIN(B1,TRUE,B2)")}, "Excel 2010 does not have"),
    "a bare later function": ({"rows": cells("UNICODE(B1)")}, "_xlfn.UNICODE"),
    "ROW() in SUMPRODUCT": ({"rows": cells("SUMPRODUCT(B1:B2,INDEX(C1:D2,0,ROW()))")}, "an array"),
    "a sheet that is not there": ({"rows": cells("Gone!A1")}, "does not exist, Gone"),
    "shared over sheets": ({"rows": shared("Other!A1+A1")}, "One!B1: a shared formula refers to"),
    "shared from below": (
        {"rows": shared("A1", "A1:B3")},
        "must begin with its first cell",
    ),
    "shared out of its range": (
        {"rows": shared("A1", "B1:B2")},
        "outside the range of that formula",
    ),
    "an array elsewhere": ({"rows": array("B1")}, "must begin with its cell"),
    "arrays that overlap": ({"rows": array("A1:B2", "A2:A3")}, "overlap"),
    "a list too long": ({"after": validated(formula=LONG)}, "longer than 255 characters"),
    "a title too long": ({"after": validated(errorTitle="t" * 33)}, "errorTitle"),
    "a message too long": ({"after": validated(error="t" * 256)}, "error is longer"),
    "a small e in a rule": ({"after": validated("decimal", "1e-09")}, "a small e"),
    "a format over sheets": ({"after": dressed("Other!A1&gt;0"), "styles": DXFS}, "another sheet"),
    "a format without style": (
        {"after": dressed("A1&gt;0", 1), "styles": DXFS},
        "a style that does not exist",
    ),
    "a number format": ({"styles": format_of("0.##")}, "a whole number with a decimal point"),
    "a number format's parts": ({"styles": format_of("0;0;0;@;0")}, "4 parts"),
    "a text too long": ({"texts": f"<si><t>{'x' * 32_768}</t></si>"}, "32,767"),
    "a text in its cell": (
        {"rows": f'<row r="1"><c r="A1" t="inlineStr"><is><t>{"é" * 32_768}</t></is></c></row>'},
        "32,767",
    ),
    "a chart of nothing": ({"chart": "wow!A1"}, "cells that do not exist"),
    "a pane": ({"before": PANE.format("")}, "does not split the sheet"),
    "merged twice": (
        {"after": '<mergeCells><mergeCell ref="A1:B2"/><mergeCell ref="B2:C3"/></mergeCells>'},
        "merged cells overlap",
    ),
    "a link": (
        {"after": '<hyperlinks><hyperlink ref="A1" location="Gone!A1"/></hyperlinks>'},
        "leads nowhere",
    ),
    "rows in disorder": ({"rows": '<row r="2"/><row r="1"/>'.replace("/>", "></row>")}, "ascend"),
    **{
        formula: (
            {"rows": cells(formula), "names": named("Range", to="One!$F$1:$F$3")},
            f"A1: {who} gets a range where Excel expects one value",
        )
        for formula, who in SPREAD.items()
    },
    "ERF of a negative number": (
        {"rows": cells("0.5*B1*(1+ERF(B1*0.7))")},
        "A1: ERF may get a negative number",
    ),
    "half a character": (
        {"rows": cells("_xlfn.UNICODE(MID(B1,2,1))")},
        "A1: UNICODE may get half a character",
    ),
    "a text with a space before": (
        {"rows": SPOKEN.format("", " a")},
        "One: a text with spaces at its ends",
    ),
    "a text with a space behind": (
        {"rows": SPOKEN.format("", "a ")},
        "One: a text with spaces at its ends",
    ),
    "a shared text with spaces": (
        {"texts": "<si><t> a</t></si>"},
        "' a': a text with spaces at its ends",
    ),
    **{
        formula: ({"rows": cells(formula)}, f"A1: {formula[11:14]}")
        for formula in (
            "SUMPRODUCT(LARGE((B1:B3=2)*(3-C1:C3),2))",
            "SUMPRODUCT(MAX((B1:B3=2)*C1:C3))",
            "SUMPRODUCT(MAX(ABS(B1:B3)))",
            "SUMPRODUCT(MIN((B1:B3)*2,1))",
            "SUMPRODUCT(SUM(1/(1+B1:B3)))",
        )
    },
    **{
        formula: ({"rows": cells(formula)}, "A1: EXP gets a range within SUMPRODUCT")
        for formula in ("SUMPRODUCT(B1:B3,EXP(C1:C3*2))", "SUMPRODUCT(B1:B3*EXP((C1:C3)))")
    },
    "a circle": ({"rows": cells("A3", "1", "IF(TRUE,1,SUM(A1:A2))")}, "in a circle"),
    "a cell of itself": ({"rows": cells("INDEX(A1:A3,2)")}, "in a circle"),
    "a circle past the cells that keep": (
        {"rows": cells("B1", "A3", "A2+A1"), "names": kept("One!$A$1") + ONCE},
        "in a circle",
    ),
    "a circle without iteration": (
        {"rows": cells("A2", "A1+A2"), "names": kept("One!$A$1:$A$2")},
        "in a circle",
    ),
    "a hundred iterations": (
        {
            "rows": cells("A2", "A1"),
            "names": kept("One!$A$1") + ONCE.replace('Count="1"', 'Count="100"'),
        },
        "in a circle",
    ),
    "a circle down a column": ({"rows": cells("A4", "A1+1", "A2+1", "A3+1")}, "in a circle"),
}
KEEPS: dict[str, dict[str, str]] = {
    "nothing": {},
    "a running sum": {"rows": cells("1", "A1+1", "A2+1", "SUM(A$1:A3)", "SUM(A$1:A4)")},
    "a cell that keeps what it holds": {
        "rows": cells("A3", "A1*2", "A2+1"),
        "names": kept("One!$A$1") + ONCE,
    },
    "shared": {"rows": shared("A1+$A$1*A$2")},
    "the most arguments": {"rows": cells(f"MAX({','.join(['B1'] * 255)})")},
    "commas in texts": {"rows": cells("LEN(&quot;" + "," * 255 + "&quot;)")},
    "a sheet in a text": {"rows": cells("&quot;see Gone!A1 and A1&quot;")},
    "quoted sheets": {"other": "it's 1!", "rows": cells("SUM('it''s 1!'!A1:B2)")},
    "array": {"rows": array("A1", "A2")},
    "names": {"names": named("W_E", "W_E.0", "blocks.0.attn.h0.W_Q", "x.y", "ABCD1", "pi")},
    "formats": {"styles": format_of("0.0##;[Red]-0.??;&quot;.&quot;;@")},
    "a late function by its name": {"rows": cells("_xlfn.UNICODE(B1)")},
    "a pane": {"before": PANE.format('ySplit="2"')},
    "a rule": {"after": validated() + dressed("A1&gt;1E-9"), "styles": DXFS},
    "a chart": {"chart": "One!$A$1:$A$5"},
    "ranges": {"rows": cells(*SPREAD_RIGHT), "names": named("Range", to="One!$F$1:$F$3")},
    "ERF of no negative number": {"rows": cells("SIGN(B1)*ERF(ABS(B1))")},
    "a power of a range in SUMPRODUCT": {"rows": cells("SUMPRODUCT(B1:B3,EXP(1)^(C1:C3*2))")},
    "a pair taken apart": {
        "rows": cells("IF(INT(_xlfn.UNICODE(MID(B1,2,1))/1024)=54,1,_xlfn.UNICODE(MID(B1,2,1)))")
    },
    "a computed range in an array formula": {
        "rows": cells("LARGE((B1:B3=2)*(3-C1:C3),2)", attributes=' t="array" ref="A1"')
    },
    "spaces that are kept": {
        "rows": SPOKEN.format(' xml:space="preserve"', " a"),
        "texts": '<si><t xml:space="preserve">a </t></si>',
    },
    "ranges in an array formula": {
        "rows": cells(next(iter(SPREAD)), attributes=' t="array" ref="A1"')
    },
}


def test_functions_of_ranges_in_sumproduct_are_right_in_excel_alone(tmp_path: Path) -> None:
    names = named("Range", to="One!$F$1:$F$3")
    faults = audit(workbook(tmp_path / "b.xlsx", rows=cells(*IN_EXCEL), names=names))
    assert [fault.split()[1] for fault in faults] == ["ABS", "EXACT", "LEN"]
    assert all(f.endswith("gets a range within SUMPRODUCT: use an operator") for f in faults)


@pytest.mark.parametrize("kind", BREAKS)
def test_broken_rule_is_reported(kind: str, tmp_path: Path) -> None:
    parts, told = BREAKS[kind]
    (fault,) = audit(workbook(tmp_path / "b.xlsx", **parts))
    assert told in fault and "\n" not in fault


@pytest.mark.parametrize("kind", KEEPS)
def test_kept_rules_are_not_reported(kind: str, tmp_path: Path) -> None:
    assert audit(workbook(tmp_path / "b.xlsx", **KEEPS[kind])) == []


def test_rule_is_reported_once(tmp_path: Path) -> None:
    (fault,) = audit(workbook(tmp_path / "b.xlsx", cells(*["B1*1e-9"] * 500)))
    assert fault.startswith("One!A1: ") and fault.endswith("(and 499 more)")


def test_needless_zip64(tmp_path: Path) -> None:
    source, target = workbook(tmp_path / "b.xlsx"), tmp_path / "wide.xlsx"
    with ZipFile(source) as old, ZipFile(target, "w") as new:
        for part in old.namelist():
            with new.open(part, "w", force_zip64=part == "xl/one.xml") as stream:
                stream.write(old.read(part))
    (fault,) = audit(target)
    assert fault.startswith("xl/one.xml: ") and "ZIP64" in fault


def test_needed_zip64(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 100)
    path = xlsx.write(default_book("attention-by-columns"), tmp_path / "wide.xlsx")
    assert WorkbookFile(path)["Start"]["A1"]
    faults = audit(path)  # every part of it, which is small
    assert faults and all("ZIP64" in fault for fault in faults)


@pytest.mark.parametrize(("offset", "kind"), [(8, "<H"), (14, "<I"), (22, "<I")])
def test_headers_that_disagree(offset: int, kind: str, tmp_path: Path) -> None:
    """The method, the checksum, or the size of the local header."""
    path = workbook(tmp_path / "b.xlsx")
    with ZipFile(path) as archive:
        begin = archive.getinfo("xl/styles.xml").header_offset
    data = bytearray(path.read_bytes())
    struct.pack_into(kind, data, begin + offset, 1)
    path.write_bytes(data)
    assert "xl/styles.xml: its local header and its central header disagree" in audit(path)


def test_files_of_others(tmp_path: Path) -> None:
    """What openpyxl and XlsxWriter write, with a fault and without."""
    book = openpyxl.Workbook()
    book.active["A1"], book.active["A2"] = 1, '=SUM(A1:A1)&LEFT("it\'s A2",2)'
    book.save(tmp_path / "whole.xlsx")
    book.active["A1"] = "=A2*2"
    book.defined_names["R1C1"] = DefinedName("R1C1", attr_text="Sheet!$A$1")
    book.save(tmp_path / "broken.xlsx")
    assert audit(tmp_path / "whole.xlsx") == []
    first, second = audit(tmp_path / "broken.xlsx")
    assert first == "R1C1: a name looks like the address of a cell" and "Sheet!A1" in second

    with xlsxwriter.Workbook(tmp_path / "other.xlsx") as written:
        sheet = written.add_worksheet("it's")
        for row in range(300):
            sheet.write_formula(row, 1, f"=SUM($A$1:A{row + 1})*1e-7")
        sheet.freeze_panes(0, 0)
    assert audit(tmp_path / "other.xlsx") == [
        "it's!B1: a number has a small e, 1e-9 (and 299 more)",
        "it's: a frozen pane does not split the sheet",
    ]


def test_no_workbook(tmp_path: Path) -> None:
    path = workbook(tmp_path / "b.xlsx", cells("1"))
    with ZipFile(path) as old, ZipFile(tmp_path / "cut.xlsx", "w") as new:
        for part in old.namelist():
            data = old.read(part)
            new.writestr(part, data[:40] if part == "xl/one.xml" else data)
    for broken in (tmp_path / "cut.xlsx", tmp_path / "none.xlsx"):
        with pytest.raises(InputError):
            audit(broken)


def test_verify_reports_broken_rules(built, tmp_path: Path) -> None:
    """The command, of a workbook of ours with a formula that shares over sheets."""
    path = tmp_path / "changed.xlsx"
    with ZipFile(built["attention-by-columns"]) as old, ZipFile(path, "w") as new:
        for part in old.namelist():
            data = old.read(part)
            if part.endswith("sheet2.xml"):
                data = re.sub(rb"<f>(?=[A-Z]+\()", b"<f>0*1e-9+", data, count=1)
            new.writestr(part, data, zipfile.ZIP_DEFLATED)
    done = cli("verify", path, "--engine", "ironcalc")
    assert "a small e" in done.out
    whole = cli("verify", built["attention-by-columns"], "--engine", "ironcalc")
    assert "excel" not in whole.out


def test_range_beyond_the_last_column() -> None:
    """Of a cell that may wait for itself, in a file that somebody else wrote."""
    run = Run("S", 0, 0, 1, ())
    assert cycle([run], [("S", Rect(0, 1, 0, 10**12))]) == []


def test_overlapping_areas_are_found() -> None:
    rng = np.random.default_rng(0)
    found = set()
    for _ in range(2_000):
        corners = rng.integers(0, 12, (rng.integers(1, 7), 2))
        sides = rng.integers(0, 5, corners.shape)
        areas = [
            Rect(y, y + h, x, x + w)
            for (y, x), (h, w) in zip(corners.tolist(), sides.tolist(), strict=True)
        ]
        each = [{(i, j) for i in range(*a[:2]) for j in range(*a[2:])} for a in areas]
        one_by_one = any(a & b for k, a in enumerate(each) for b in each[:k])
        assert overlap(areas) == one_by_one, areas
        found.add(one_by_one)
    assert found == {False, True}


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        (
            {"rows": cells("(" * 50_000 + "ABS(" * 65 + "B1" + ")" * 50_065)},
            ["One!A1: functions are nested more than 64 levels deep", "longer than 8,192"],
        ),
        (
            {
                "after": "<mergeCells>"
                + "".join(f'<mergeCell ref="A{k}:C{k}"/>' for k in range(1, 20_001))
                + "</mergeCells>"
            },
            [],
        ),
    ],
    ids=["nested 50,000 deep", "20,000 merged cells"],
)
def test_deep_nesting_is_audited_in_linear_time(
    parts: dict[str, str], says: list[str], tmp_path: Path
) -> None:
    path = workbook(tmp_path / "many.xlsx", **parts)
    began = time.process_time()
    found = audit(path)
    assert time.process_time() - began < 60  # where all pairs are compared it takes many minutes
    assert len(found) == len(says), found
    assert all(any(text in fault for fault in found) for text in says), found
