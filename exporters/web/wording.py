"""Texts of a workbook in the page's words: for the sheets Play, Switches and Machine the page
has a field, boxes and a picture, and for F9 a button."""

import re

from cellformer.engine.cells.expression import Constant, Expression, rebuilt

PHRASES = {
    "Type ‘16’ into a cell. To fill several cells, select them, type ‘16’ and press Ctrl+Enter (in "
    "LibreOffice Alt+Enter).": (
        "Draw with the mouse or a finger. A click on a dark cell takes its ink away. To select "
        "cells, press Shift and an arrow key, or Shift and click."
    ),
    "on Play. Every number of this workbook": "at the top. Every number of this page",
    "On Machine, each strip of colours shows the list that one part adds at": (
        "In the picture, ‘stream’ shows the list after each part, in the row for"
    ),
    "For the two sentences on Play": "For the two sentences at the top",
    "On Switches, type ‘0’ to turn a part off. Play shows the answer of the model without this "
    "part": (
        "Switch a part off with the box beside its name. The next words then show the answer of "
        "the model without this part"
    ),
    "any blue number": "any number",
    "The sheet How has instructions for Excel and for LibreOffice, and help if nothing moves.": (
        "Run repeats the step. Recalculate makes one step."
    ),
    "press Ctrl+Enter (in LibreOffice Alt+Enter)": "press Ctrl+Enter",
    "as the second word on Play": "as the second word of the sentence",
    "as the fifth word on Play": "as the fifth word of the sentence",
    "as the sentence on Play": "as the sentence, at the top",
    "after the sentence on Play": "after the sentence at the top",
    "watch how the ranking on Play changes": "watch how the next words change",
    "choose ‘sampled’ above it": "choose ‘sampled’ beside it",
    "switch learning on, press F9,": "press Run,",
    "and hold down F9. Two presses of F9 make": "and press Run. Two recalculations make",
    "Press F9, or hold it down: two recalculations": (
        "Press Run, or Recalculate (F9): two recalculations"
    ),
}
SWITCH = re.compile(r"\bType ‘0’ on Switches for ([^:,]+)(?=:)")
HEAD = re.compile(r"blocks\.(\d+)\.attn\.h(\d+)\.switch")
PHRASE = re.compile("|".join(map(re.escape, PHRASES)))


def said(text: str) -> str:
    """A text in the page's words."""
    return SWITCH.sub(r"Switch off \1", PHRASE.sub(lambda found: PHRASES[found[0]], text))


def suggested(text: str, block: str) -> str:
    """A suggestion in the page's words: with the name of the head that it switches, because its
    box is elsewhere."""
    head = HEAD.fullmatch(block)
    return said(text).replace("this head", f"head {head[1]}.{head[2]}" if head else "this head")


def live(text: Expression) -> Expression:
    """A text with live parts, in the page's words."""

    def change(part: Expression) -> Expression:
        known = isinstance(part, Constant) and isinstance(part.number, str)
        return Constant(said(part.number)) if known else part  # type: ignore[attr-defined]

    return rebuilt(text, change)
