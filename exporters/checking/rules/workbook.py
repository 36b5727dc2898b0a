"""Rules for a workbook outside its sheets: names, styles, texts, charts."""

import re
from collections.abc import Iterable, Iterator
from xml.etree.ElementTree import Element

from cellformer.exporters.checking.rules import Fault
from cellformer.exporters.checking.rules.formulas import REFERENCE, parsed, units

LONGEST_TEXT, LONGEST_NAME, LONGEST_SHEET = 32_767, 255, 31
NAME = re.compile(r"(?:[^\W\d]|\\)[\w.\\]*")
LIKE_A_CELL = re.compile(r"TRUE|FALSE|[A-Z]{1,3}\d{1,7}|R\d*|C\d*|R\d*C\d*", re.IGNORECASE)
LITERAL = re.compile(r'"[^"]*"|\\.|\[[^]]*\]')
BARE_POINT = re.compile(r"\.(?![0?])")
SPACE, SPACES = "{http://www.w3.org/XML/1998/namespace}space", " \t\r\n"
MOST_STYLES = {"cellXfs/xf": 65_490, "fonts/font": 1024, "numFmts/numFmt": 250}


def of_sheets(names: list[str]) -> Iterator[Fault]:
    """The rules for sheet names."""
    for name in names:
        if not 0 < units(name) <= LONGEST_SHEET:
            yield f"a sheet's name has 1 to {LONGEST_SHEET} characters", name
        if set(name) & set("[]:*?/\\") or "'" in (name[:1], name[-1:]):
            yield "a sheet's name has none of []:*?/\\, and no ' at an end", name
    yield from (("two sheets have one name", name) for name in _twice(names))


def of_names(defined: list[Element], sheets: set[str]) -> Iterator[Fault]:
    """The rules for defined names."""
    scopes: dict[str | None, list[str]] = {}
    for element in defined:
        name = element.get("name", "")
        scopes.setdefault(element.get("localSheetId"), []).append(name)
        if not NAME.fullmatch(name) or units(name) > LONGEST_NAME:
            yield "a name has letters, digits, dots and _, no digit first", name
        if LIKE_A_CELL.fullmatch(name):
            yield "a name reads as a cell", name
        for reference in REFERENCE.findall(element.text or ""):
            if parsed(reference)[0] not in sheets:
                yield "a name leads to a sheet that is not there", name
    for names in scopes.values():
        yield from (("a name is defined twice", name) for name in _twice(names))


def _twice(names: Iterable[str]) -> Iterator[str]:
    """Names that exist already, regardless of case."""
    seen = set[str]()
    for name in names:
        if name.casefold() in seen:
            yield name
        seen.add(name.casefold())


def of_styles(root: Element) -> Iterator[Fault]:
    """The rules for number formats, and the number of styles."""
    for number in root.iterfind("{*}numFmts/{*}numFmt"):
        code = number.get("formatCode", "")
        plain = LITERAL.sub("", code)
        if BARE_POINT.search(plain):
            yield "a number format shows the point of a whole number, 1.", code
        if plain.count(";") > 3 or units(code) > 255:
            yield "a number format has at most 4 parts and 255 characters", code[:40]
    for kind, most in MOST_STYLES.items():
        if len(root.findall("{*}" + kind.replace("/", "/{*}"))) > most:
            yield f"there are at most {most:,} {kind.partition('/')[0]}", "xl/styles.xml"


def of_texts(root: Element) -> Iterator[Fault]:
    """The rules for shared strings."""
    for item in root:
        text = "".join(t.text or "" for t in item.iter() if t.tag.endswith("}t"))
        if units(text) > LONGEST_TEXT:
            yield f"a text is longer than {LONGEST_TEXT:,} characters", text[:40]
        for part in (t for t in item.iter() if t.tag.endswith("}t")):
            spaced = part.text and part.text != part.text.strip(SPACES)
            if spaced and part.get(SPACE) != "preserve":
                yield "a text has outer spaces without xml:space", repr(text[:40])


def of_chart(root: Element, part: str, sheets: set[str]) -> Iterator[Fault]:
    """The rules for the cells that a chart shows."""
    for f in root.iter():
        if f.tag.endswith("}f"):
            found = REFERENCE.findall(f.text or "")
            if not found or any(parsed(reference)[0] not in sheets for reference in found):
                yield "a chart shows cells that are not there", f"{part} ({f.text})"
