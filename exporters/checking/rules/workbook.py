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
            yield f"a sheet's name must have 1 to {LONGEST_SHEET} characters", name
        if set(name) & set("[]:*?/\\") or "'" in (name[:1], name[-1:]):
            yield "a sheet's name must not contain []:*?/\\, or begin or end with '", name
    yield from (("two sheets have the same name", name) for name in _twice(names))


def of_names(defined: list[Element], sheets: set[str]) -> Iterator[Fault]:
    """The rules for defined names."""
    scopes: dict[str | None, list[str]] = {}
    for element in defined:
        name = element.get("name", "")
        scopes.setdefault(element.get("localSheetId"), []).append(name)
        if not NAME.fullmatch(name) or units(name) > LONGEST_NAME:
            yield (
                "a name may contain only letters, digits, dots and _, and must not begin with "
                "a digit",
                name,
            )
        if LIKE_A_CELL.fullmatch(name):
            yield "a name looks like the address of a cell", name
        yield from (
            ("a name refers to a sheet that does not exist", name)
            for reference in REFERENCE.findall(element.text or "")
            if parsed(reference)[0] not in sheets
        )
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
            yield "a number format shows a whole number with a decimal point, such as ‘1.’", code
        if plain.count(";") > 3 or units(code) > 255:
            yield "a number format may have at most 4 parts and 255 characters", code[:40]
    yield from (
        (f"a workbook may have at most {most:,} {kind.partition('/')[0]}", "xl/styles.xml")
        for kind, most in MOST_STYLES.items()
        if len(root.findall("{*}" + kind.replace("/", "/{*}"))) > most
    )


def of_texts(root: Element) -> Iterator[Fault]:
    """The rules for shared strings."""
    for item in root:
        text = "".join(t.text or "" for t in item.iter() if t.tag.endswith("}t"))
        if units(text) > LONGEST_TEXT:
            yield f"a text is longer than {LONGEST_TEXT:,} characters", text[:40]
        for part in (t for t in item.iter() if t.tag.endswith("}t")):
            spaced = part.text and part.text != part.text.strip(SPACES)
            if spaced and part.get(SPACE) != "preserve":
                yield "a text with spaces at its ends lacks xml:space", repr(text[:40])


def of_chart(root: Element, part: str, sheets: set[str]) -> Iterator[Fault]:
    """The rules for the cells that a chart shows."""
    for f in root.iter():
        if f.tag.endswith("}f"):
            found = REFERENCE.findall(f.text or "")
            if not found or any(parsed(reference)[0] not in sheets for reference in found):
                yield "a chart refers to cells that do not exist", f"{part} ({f.text})"
