"""Texts of a workbook in the page's words: for the sheets Play, Switches and Machine the page
has a field, boxes and a picture, and for F9 a button."""

import re

from cellformer.engine.cells.expression import Constant, Expression, rebuilt

PHRASES = {
    "on Play: every number of this workbook": "at the top: every number of this page",
    "On Machine each strip of colours is what one part adds at": (
        "In the picture ‘stream’ is what has come together after a part, in a row for"
    ),
    "Of the two on Play": "Of the two at the top",
    "Type ‘0’ on Switches for a part, and read on Play": (
        "Switch a part off, by the box beside its name, and read among the next words"
    ),
    "any blue number": "any number",
    "as the second word on Play": "as the second word of the sentence",
    "as the fifth word on Play": "as the fifth word of the sentence",
    "as the sentence on Play": "as the sentence, at the top",
    "after the sentence on Play": "after the sentence at the top",
    "see the ranking on Play change": "see the next words change",
    "choose ‘sampled’ above it": "choose ‘sampled’ beside it",
    "switch learning on, press F9,": "press Run,",
    "and hold down F9. Two presses of F9 make": "and press Run. Two recalculations make",
    "Press F9, or hold it down: two recalculations": "Press Run, or Recalculate (F9): two of these",
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
