"""Texts from outside, made safe for where they go: a terminal, a line, a table in CSV, XML.

A vocabulary, a prompt, a file's cells and its name are data. They may hold what steers a terminal,
what turns the order of reading round, what a spreadsheet computes, and what XML has no way to say.
Every writer of such texts goes through here.
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
    """A character that cannot be seen, as Python writes it: `\\n`."""
    return character.encode("unicode_escape").decode("ascii")


def readable(text: str, kept: str = "") -> str:
    """A text as one line: spaces stay, a line's end and what else controls is escaped."""
    if text.isprintable():
        return text
    return "".join(escaped(c) if c not in kept and _hidden(c) else c for c in text)


def _hidden(character: str) -> bool:
    """Whether a character steers what shows it, rather than being shown."""
    kind, turn = unicodedata.category(character), unicodedata.bidirectional(character)
    return kind in CONTROLS or turn in TURNS


def on_terminal(text: str) -> str:
    """A text of several lines that can steer no terminal."""
    return readable(text, "\n\t")


def in_csv(text: str) -> str:
    """A text that stays one when a spreadsheet opens the table."""
    return f"'{text}" if text.startswith(BEGINS_FORMULA) else text


def storable(text: str) -> str:
    """A text as a file can hold it: half a surrogate pair is escaped, for UTF-8 has none."""
    return HALF.sub(lambda half: escaped(half[0]), text)


def in_xml(text: str) -> str:
    """A cell's text as a workbook's XML has it (ECMA-376 part 1, 22.9.2.19)."""
    text = LIKE_THAT.sub("_x005F_", storable(text))
    return escape(CONTROL.sub(lambda found: f"_x{ord(found[0]):04X}_", text), quote=False)


def coded(text: str) -> bool:
    """Whether the XML of a text has escapes that some programs leave as they stand in cells."""
    return bool(LIKE_THAT.search(text) or CONTROL.search(text))


def from_xml(text: str) -> str:
    """The text that a workbook's XML stands for: the other way round."""
    return SPELT.sub(lambda found: chr(int(found[1], 16)), text) if "_x" in text else text
