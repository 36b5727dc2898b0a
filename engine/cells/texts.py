"""Texts from outside, made safe for where they are written: a terminal, a line, CSV, XML.

A vocabulary, a prompt, a file's cells and its name are data. They may contain terminal control
sequences, characters that reverse the reading order, formulas, and characters that XML cannot
contain. Every writer of such texts uses this module.
"""

import re
import unicodedata
from html import escape

CONTROLS = ("Cc", "Cs", "Zl", "Zp")  # by Unicode's categories: also half a surrogate pair
TURNS = ("LRE", "LRO", "RLE", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")  # the order of reading
BEGINS_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # in a table that a spreadsheet opens
HALF = re.compile("[\ud800-\udfff]")
# in a workbook's XML a character that XML has not is _x0001_, and so what reads like that is spelt
CONTROL = re.compile("([\x00-\x08\x0b-\x1f\ufffe\uffff])")
LIKE_THAT = re.compile("_(?=x[0-9A-Fa-f]{4}_)")
SPELT = re.compile("_x([0-9A-Fa-f]{4})_")


def escaped(character: str) -> str:
    """An invisible character as Python writes it: `\n`."""
    return character.encode("unicode_escape").decode("ascii")


def readable(text: str, kept: str = "") -> str:
    """A text as one line: spaces stay; newlines and other control characters are escaped."""
    if text.isprintable():
        return text
    return "".join(escaped(c) if c not in kept and _hidden(c) else c for c in text)


def _hidden(character: str) -> bool:
    """Whether a character controls the display instead of being displayed."""
    kind, turn = unicodedata.category(character), unicodedata.bidirectional(character)
    return kind in CONTROLS or turn in TURNS


def cut(text: str, most: int = 160) -> str:
    """A text on one line, shortened by an ellipsis, for the `repr` of an object."""
    text = readable(text)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def on_terminal(text: str) -> str:
    """A text of several lines without terminal control characters."""
    return readable(text, "\n\t")


def in_csv(text: str) -> str:
    """A text that stays a text when a spreadsheet opens the CSV file, and that cannot control a
    terminal."""
    text = on_terminal(text)
    return f"'{text}" if text.startswith(BEGINS_FORMULA) else text


def storable(text: str) -> str:
    """A text that UTF-8 can encode: half a surrogate pair is escaped."""
    return HALF.sub(lambda half: escaped(half[0]), text)


def in_xml(text: str) -> str:
    """A cell's text in a workbook's XML (ECMA-376 part 1, 22.9.2.19)."""
    text = LIKE_THAT.sub("_x005F_", storable(text))
    return escape(CONTROL.sub(lambda found: f"_x{ord(found[0]):04X}_", text), quote=False)


def coded(text: str) -> bool:
    """Whether the XML of a text has escapes that some programs do not decode in cells."""
    return bool(LIKE_THAT.search(text) or CONTROL.search(text))


def from_xml(text: str) -> str:
    """The text of a workbook's XML: the inverse of `in_xml`."""
    return SPELT.sub(lambda found: chr(int(found[1], 16)), text) if "_x" in text else text
