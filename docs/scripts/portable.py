"""Write the table 'form x program' of docs/spreadsheets.md: what each program of `verify` that is
installed makes of a form of formula that programs take in different ways.

python docs/scripts/portable.py
"""

import tempfile
from pathlib import Path

import xlsxwriter

from cellformer.engine.cells.values import CellError
from cellformer.exporters.checking.verify import ENGINES, UnreadableError, poison, read
from cellformer.exporters.file.reading import Value

TARGET = Path(__file__).parents[1] / "spreadsheets.md"
BEGIN, END = "<!-- forms: made by docs/scripts/portable.py -->", "<!-- forms end -->"
CELLS = (  # what the formulas read, from A1 on
    (1, 0, "\U0001f600b", "5"),
    (2, 1, True, "abc"),
    (2, 2, 1, 5),
    (3, 3, None, "a*"),
    (2, 4),
)
HALVES = "INT(UNICODE(MID(C1,1,1))/1024)=54"
FIRST, PAIR = "UNICODE(MID(C1,1,1))", "UNICODE(MID(C1,1,2))"
TAKEN_APART = (
    f"IFERROR(IF({HALVES},({FIRST}-55296)*1024+UNICODE(MID(C1,2,1))-56320+65536,{FIRST}),{PAIR})"
)
# a form, as it is told; what Excel says; where programs that are not asked here say something else
# (Excel 2007, Aspose.Cells 26.10, ONLYOFFICE 10.0, SpreadJS 19.2: asked by hand), None: not known;
# whether formulas of ours have it
FORMS: tuple[tuple[str, str, Value, str, bool], ...] = (
    ("ERF(-0.5)", "", -0.5204998778130465, "Excel 2007, Aspose: #NUM!", False),
    ("SIGN(-0.5)*ERF(ABS(-0.5))", "", -0.5204998778130465, "", True),
    ("SUMPRODUCT(LARGE((A1:A5=2)*(5-B1:B5),2))", "", 3, "SpreadJS: #VALUE!", False),
    ("{LARGE((A1:A5=2)*(5-B1:B5),2)}", "", 3, "", True),
    (
        FIRST,
        "UNICODE of half a character, as Excel counts",
        CellError("#VALUE!"),
        "ONLYOFFICE: 55357",
        False,
    ),
    (
        TAKEN_APART,
        "a character whose halves are put together",
        128512,
        "Aspose fails, SpreadJS: 14604349",
        True,
    ),
    ("IF(TRUE,1,2)", "", 1, "", False),
    ("IF(TRUE(),1,2)", "", 1, "", True),
    ("INT(-7.5)", "", -8, "", False),
    ("IF(0.1+0.2-0.3=0,1,0)", "", None, "Aspose, ONLYOFFICE: 0, SpreadJS: 1", False),
    ("IF(ROUND(0.1+0.2-0.3,9)=0,1,0)", "", 1, "", True),
    ("SUM(C2:C4)", "SUM of a range with TRUE", 1, "SpreadJS: 2", False),
    ("COUNTIF(D1:D3,5)", "COUNTIF of a number among texts like it", 2, "", False),
    ('MATCH("a*",D2:D4,0)', "MATCH of a text with a wildcard", 1, "", False),
    ("INDEX(A1:B1,2)", "INDEX of a row by one number", 0, "", False),
    ("INDEX(A1:B1,1,2)", "", 0, "", True),
    ("SUMPRODUCT(A1:A3,EXP(A1:A3*1))", "", 32.27450622, "not asked", False),
    ("SUMPRODUCT(A1:A3,EXP(1)^(A1:A3*1))", "", 32.27450622, "not asked", True),
    ("POWER(0,0)", "", CellError("#NUM!"), "", False),
)


def written(path: Path, formula: str) -> None:
    """A workbook of one formula."""
    with xlsxwriter.Workbook(path, {"use_future_functions": True}) as book:
        sheet = book.add_worksheet()
        for row, values in enumerate(CELLS):
            sheet.write_row(row, 0, values)
        if formula[0] == "{":
            sheet.write_array_formula(8, 5, 8, 5, formula, None, -7)
        else:
            sheet.write_formula(8, 5, f"={formula}", None, -7)


def says(engine: str, formula: str, folder: Path) -> str:
    """What a program makes of a formula, from a wrong cached value."""
    path, copy = folder / "book.xlsx", folder / "copy.xlsx"
    written(path, formula)
    book = read(path)
    poison(path, copy)
    try:
        (value,) = ENGINES[engine].recompute(copy, book).values()
    except (UnreadableError, KeyError, ValueError) as error:
        return "fails" if isinstance(error, UnreadableError) else "-"
    return told(value)


def told(value: Value) -> str:
    """A value in a table."""
    if value is None:
        return "?"
    if isinstance(value, str):
        return "an error" if value.startswith(("#", "Err:")) else value
    return f"{float(value):.6g}"


def table(engines: list[str]) -> str:
    """All forms by all programs: `=` where one says what Excel does."""
    heads = ["form", "Excel", *engines, "others, by hand", "ours"]
    lines = [heads, ["---"] * len(heads)]
    for formula, name, excel, others, ours in FORMS:
        with tempfile.TemporaryDirectory() as folder:
            found = []
            for engine in engines:
                place = Path(folder) / engine
                place.mkdir()
                said = says(engine, formula, place)
                found.append("=" if said == told(excel) else said)
        form = name or f"`{formula}`"
        lines.append([form, told(excel), *found, others or "=", "yes" if ours else "no"])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    text = TARGET.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    asked = [name for name, e in ENGINES.items() if e.installed() and not e.by_name]
    TARGET.write_text(f"{before}{BEGIN}\n{table(asked)}{END}{rest.partition(END)[2]}", "utf-8")
    print(TARGET.name)
