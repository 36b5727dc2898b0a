"""All visual choices: colours, fonts, number formats, widths.

Fonts follow the convention of finance: blue is typed (inputs and weights), black is a formula,
green a formula that reads another sheet. Fills tell the kind of a block.
"""

import re
from typing import Any

from cellformer.engine.cells.block import Block
from cellformer.engine.cells.language import translated
from cellformer.engine.cells.name import TURNED

BLUE, BLACK, GREEN, GREY, ORANGE = "#0000FF", "#000000", "#00703C", "#7F7F7F", "#C55A11"
FILLS = {
    "weight": "#EAF1FB",
    "activation": "#F5F5F5",
    "attention": "#FFF4E5",
    "readout": "#EAF6EC",
    "input": "#FFFBD6",
}
ATTENTION = ("scores", "row_max", "exp", "row_sum", "pattern")
COUNTS = (".router.rank", ".router.number")  # ends of names of blocks that hold whole numbers
READOUT = ("logits", "probs", "softmax")
COMMONEST = ("weight blue", "label number")  # styles of most cells: a file numbers them first
OTHER = "#7030A0"  # the tabs of another sentence's sheets
CLEAN = "#A6A6A6"  # the tabs of a sentence's sheets without any patch
# In Excel columns are as wide in it as in Calibri 11, and LibreOffice has a font of its widths
# wherever it is installed: without Calibri's, columns would be a third wider there.
FONT = {"font_name": "Arial", "font_size": 10, "font_scheme": "none"}
COLUMN_WIDTH = 8.5
CHARACTER = 7  # pixels
FULL, BELOW, ABOVE = "#F4A259", "#E99675", "#8FB9DD"  # a share of 1; the ends of diverging scales
FAINTEST = "0.000000001"  # numbers that are all nearer to 0 than this have no colour
SHADES: dict[str, dict[str, Any]] = {
    "scale": {
        "type": "2_color_scale",
        "min_type": "num",
        "min_value": 0,
        "min_color": "#FFFFFF",
        "max_type": "num",
        "max_value": 1,
        "max_color": FULL,
    },
    "bar": {
        "type": "data_bar",
        "min_type": "num",
        "min_value": 0,
        "max_type": "num",
        "max_value": 1,
        "bar_color": "#9CC3E6",
        "bar_solid": True,
    },
}
_INK: dict[str, Any] = {**SHADES["scale"], "max_value": 16, "max_color": "#262626"}
SHADES |= {"ink": _INK, "paper": {**_INK, "min_color": FILLS["input"]}}
GRIDLINE = "#E5E5E5"
# distinguished by lightness, too, for readers who do not see red or green
SERIES = ("#BFBFBF", "#2E75B6", "#C55A11", "#262626")
ONE_SERIES = ("#2E75B6",)

QUOTED = re.compile(r'"([^"]*[a-z][^"]*)"')  # words of a number format
_NUMBER: dict[str, Any] = {"num_format": "#,##0.000", "align": "right"}
_LABEL = {"font_color": GREY, "align": "center"}
STYLES: dict[str, dict[str, Any]] = {
    "text": {},
    "wrapped": {"text_wrap": True, "valign": "top"},
    "title": {"bold": True, "font_size": 16},
    "heading": {"bold": True, "font_size": 12, "font_color": "#1F3864"},
    "block": {"bold": True},
    "head": {"bold": True, "align": "right"},
    "equation": {"italic": True, "font_color": "#404040"},
    "note": {"font_color": GREY, "italic": True},
    "ledger": {"font_color": GREY},
    "link": {"font_color": "#0563C1", "underline": 1},
    "link fitted": {"font_color": "#0563C1", "underline": 1, "shrink": True},
    "label": _LABEL,
    "label number": {**_LABEL, "num_format": "0"},
    "row number": {"font_color": GREY, "align": "right", "num_format": "0"},
    "row label": {"font_color": GREY, "align": "right"},
    "word": {"bold": True, "align": "center"},
    "token": {
        "font_color": BLUE,
        "bg_color": FILLS["input"],
        "border": 1,
        "border_color": "#BFBFBF",
        "align": "center",
        "num_format": "@",
    },
    "id": {"num_format": "0", "align": "center", "font_color": BLACK},
    "blank": {
        "font_color": BLUE,
        "bg_color": "#FFE94D",
        "border": 1,
        "border_color": "#7F6000",
        "align": "right",
    },
    "symbol": {"num_format": "0;-0;", "align": "center"},
    "symbol typed": {"num_format": "0", "align": "center", "font_color": BLUE},
    "rank": {"num_format": '[>=10000000]"·";0', "align": "center"},
    "match": {"num_format": '0;"·";0', "align": "center"},
    "constant": {**_NUMBER, "font_color": GREY},
    "constant percent": {"num_format": "0.0%", "font_color": GREY},
    "live": {**_NUMBER, "font_color": GREEN},
    "live percent": {"num_format": "0.0%", "font_color": GREEN},
    "change": {"num_format": "[>=0.0005]+0.000;[<=-0.0005]-0.000;0.000", "font_color": BLACK},
    "change percent": {"num_format": "[>=0.0005]+0.0%;[<=-0.0005]-0.0%;0.0%", "font_color": BLACK},
    "percent": {"num_format": "0.0%", "font_color": BLACK},
    "largest gap": {"num_format": '"± "0E+00', "font_color": GREY, "align": "left"},
    "off": {"num_format": "0.0E+00", "font_color": GREY, "align": "right"},
    "tiny": {"num_format": "0.000000", "font_color": GREY},
    "printed": {"num_format": "0.0##", "font_color": BLUE},
    "printed fine": {"num_format": "0.0000#", "font_color": BLUE},
    "live fine": {"num_format": "0.00000", "font_color": GREEN},
    "change fine": {"num_format": "+0.00000;-0.00000;0.00000", "font_color": BLACK},
    "count": {"num_format": "#,##0", "align": "right"},
    "sentence": {
        "font_color": BLUE,
        "bg_color": FILLS["input"],
        "border": 1,
        "border_color": "#BFBFBF",
        "font_size": 14,
        "num_format": "@",
    },
    "word shown": {"bold": True, "align": "center", "bottom": 1, "bottom_color": "#BFBFBF"},
    "number typed": {
        "num_format": "0.000",
        "font_color": BLUE,
        "bg_color": FILLS["input"],
        "align": "center",
    },
    "built": {"num_format": "0", "align": "center", "font_color": "#BFBFBF"},
    "dial": {
        "font_color": BLUE,
        "bg_color": FILLS["input"],
        "border": 1,
        "border_color": "#BFBFBF",
        "align": "center",
    },
    "switch": {
        "font_color": BLUE,
        "bg_color": "#E2F0D9",
        "border": 1,
        "border_color": "#FFFFFF",
        "align": "center",
        "bold": True,
    },
    "step": _NUMBER,
    "step green": {**_NUMBER, "font_color": GREEN},
    "basis": {**_NUMBER, "font_color": GREY},
    "total": {**_NUMBER, "bold": True, "top": 1},
    "change plain": {"num_format": "+0.000;-0.000;0.000", "font_color": BLACK},
    "live here": {**_NUMBER, "font_color": BLACK},
    "line": {"text_wrap": True, "valign": "top"},
    "line label": {"font_color": GREY, "align": "right", "valign": "top"},
    "clipped": {"align": "fill", "font_color": GREY},
    "hidden": {"num_format": ";;;", "font_color": GREY},
    "upright": {"bold": True, "rotation": 90, "align": "center", "valign": "bottom"},
    "tint": {"num_format": ";;;", "font_color": GREEN, "border": 1, "border_color": "#F2F2F2"},
    "stream": {"font_color": "#2E75B6", "bold": True, "align": "center"},
    "box": {"bg_color": FILLS["activation"], "border": 1, "border_color": "#BFBFBF"},
    "box stream": {"bg_color": FILLS["weight"], "border": 1, "border_color": "#9CC3E6"},
    "thousands": {"num_format": "#,##0", "align": "right"},
    "status": {"bold": True, "align": "center"},
}
_STEP = {**_NUMBER, "locked": False}  # of one attention step, whose numbers may be typed over
STYLES |= {
    "vector": {**_STEP, "bg_color": FILLS["activation"], "font_color": GREEN},
    "vector here": {**_STEP, "bg_color": FILLS["activation"], "font_color": BLACK},
    "fit": {**_STEP, "bg_color": FILLS["attention"], "font_color": BLACK},
    "fit share": {
        **_STEP,
        "num_format": "0.0%",
        "bg_color": FILLS["attention"],
        "font_color": BLACK,
        "bold": True,
    },
    "empty": {"bg_color": "#FFFFFF"},
    "label fitted": {**_LABEL, "shrink": True},
    "word fitted": {"bold": True, "align": "center", "shrink": True},
    "written": {
        **_NUMBER,
        "bg_color": FILLS["activation"],
        "font_color": BLACK,
        "bold": True,
    },
}
_SMALL = {"font_size": 9}
_TYPED = {"font_color": BLUE, "bg_color": FILLS["input"], "border": 1, "border_color": "#BFBFBF"}
_LARGE = {"num_format": "#,##0", "font_size": 12, "align": "right"}
_DIGIT = {"num_format": "0", "align": "center"}
_BOUND = {**_SMALL, "align": "right", "bg_color": FILLS["activation"]}
STYLES |= {  # of the adder, whose sum and weights share a screen
    "number large": {**_TYPED, **_LARGE},
    "sum large": {**_LARGE, "bold": True},
    "digit": _DIGIT,
    "digit written": {**_DIGIT, "bold": True, "bg_color": FILLS["readout"]},
    "digit total": {"num_format": "0.0", "font_size": 9, "align": "center"},
    "digit grey": {**_DIGIT, "font_color": GREY},
    "digit sure": {"num_format": "0%", "font_size": 7, "align": "center"},
    "digit carry": {"num_format": "0;-0;", "align": "center", "font_color": ORANGE, "bold": True},
    "small label": {"font_color": GREY, "font_size": 9},
    "weight small": {
        **_NUMBER,
        **_SMALL,
        "num_format": "0.00",
        "font_color": BLUE,
        "bg_color": FILLS["weight"],
    },
    "bound": {**_BOUND, "num_format": "0.000"},
    "bound large": {**_BOUND, "num_format": "0.0E+00"},
    "lead": {"num_format": "0.00", "font_size": 8, "align": "center", "shrink": True},
    "tile small": {"num_format": '[>=0.05]0%;""', "font_size": 7, "align": "center"},
}
_PIXEL = {"num_format": "0;-0;", "font_size": 8, "align": "center", "border": 1}
STYLES |= {  # of drawings
    "pixel typed": {
        **_PIXEL,
        "font_color": BLUE,
        "bg_color": FILLS["input"],
        "border_color": "#BFBFBF",
    },
    "pixel": {**_PIXEL, "border_color": "#F2F2F2"},
    "pixel dark": {"font_color": "#FFFFFF"},
    "heat": {"num_format": ";;;", "border": 1, "border_color": "#F2F2F2"},
    "bar share": {"num_format": ";;;", "border": 1, "border_color": "#F2F2F2"},
    "guess": {"num_format": "0", "font_size": 20, "bold": True, "align": "center"},
}
_KEY = {"align": "center", "font_size": 9}  # of a legend: see `cellformer.exporters.compose.legend`
# of groups of words: colours that the colour-blind tell apart (Okabe & Ito 2008)
GROUPS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_CHANGED = {"bg_color": "#FCE4D6", "font_color": ORANGE, "bold": True}
_CELL = {
    "font_size": 9,
    "align": "center",
    "valign": "vcenter",
    "border": 1,
    "border_color": "#F2F2F2",
}
_TOLD = {"font_color": GREY, "align": "right"}
_FONTS = {"blue": BLUE, "black": BLACK, "green": GREEN}
STYLES |= {f"group {k}": {"font_color": colour, "bold": True} for k, colour in enumerate(GROUPS)}
for _kind, _fill in FILLS.items():
    _setting = {"bg_color": _fill, "font_color": BLUE, "align": "right"}
    STYLES |= {
        f"key {_kind}": {**_KEY, "bg_color": _fill},
        **{
            f"{_kind} {k}": {**_NUMBER, "bg_color": _fill, "font_color": c}
            for k, c in _FONTS.items()
        },
        f"{_kind} setting": _setting,
        f"{_kind} setting many": {**_setting, "num_format": "#,##0"},
        f"{_kind} count": {"num_format": "#,##0", "bg_color": _fill, "align": "right"},
    }
STYLES |= {
    **{f"key {k}": {**_KEY, "font_color": c} for k, c in (_FONTS | {"grey": GREY}).items()},
    "key switch": {**_KEY, "bg_color": STYLES["switch"]["bg_color"]},
    "key generated": {**_KEY, "font_color": "#2E75B6", "italic": True},
    "key differs": {**_KEY, **_CHANGED},
    "key full": {**_KEY, "bg_color": FULL},
    "key below": {**_KEY, "bg_color": BELOW},
    "key above": {**_KEY, "bg_color": ABOVE},
    "key 0": _KEY,
    "stale": {"bg_color": "#F2F2F2", "font_color": "#BFBFBF"},
    "right": {"bg_color": STYLES["switch"]["bg_color"]},
    "ink": {"bg_color": "#262626", "font_color": "#FFFFFF"},
    "generated": {"font_color": "#2E75B6", "italic": True},
    "differs": _CHANGED,
    "said": {"font_size": 10, "font_color": "#404040"},
    "part": {"font_size": 10, "bold": True, "font_color": "#1F3864", "valign": "vcenter"},
    "strip number": {**_CELL, "num_format": "0.00"},
    "tile number": {**_CELL, "num_format": "0%"},
    "given number": {**_TOLD, "num_format": '"sentence, "0" given"'},
    "token number": {**_TOLD, "num_format": '"token "0', "font_size": 10},
    "stop": {**STYLES["link"], "valign": "top"},
    "stop number": {**_TOLD, "num_format": "0", "valign": "top", "bold": True},
    "stop live": {**STYLES["live"], "valign": "top"},
    **{
        f"stop percent {n}": {"num_format": f"0.{'0' * n}%", "font_color": GREEN, "valign": "top"}
        for n in (1, 2, 3, 4)  # decimals
    },
    "stop count": {**STYLES["count"], "font_color": GREEN, "valign": "top"},
    "stop text": {"font_color": GREEN, "align": "right", "valign": "top"},
    "mark": {"num_format": ";;;"},
    "chip": {
        "bold": True,
        "align": "center",
        "valign": "vcenter",
        "shrink": True,
        "border": 1,
        "border_color": "#BFBFBF",
    },
    "here": {"bg_color": "#F4A259"},
}

# what is typed is not locked where a sheet is protected; a legend's key is not typed
STYLES |= {
    name: {**style, "locked": False}
    for name, style in STYLES.items()
    if style.get("font_color") == BLUE and not name.startswith("key ")
}


# how high a row is, in points, whose text is larger than a cell's usual 11
HEIGHTS = {
    name: 1.32 * style["font_size"]
    for name, style in STYLES.items()
    if style.get("font_size", 0) > 11
}


def look(style: str) -> dict[str, Any]:
    """The look of cells of a style; words in a number format are in the current language."""
    found = STYLES[style]
    if QUOTED.search(found.get("num_format", "")):
        told = QUOTED.sub(lambda text: f'"{translated(text[1])}"', found["num_format"])
        return {**found, "num_format": told}
    return found


def diverging(largest: str) -> dict[str, Any]:
    """A two-coloured scale about 0, equally strong on both sides; `largest` is the formula of
    the absolute value with full colour."""
    return {
        "type": "3_color_scale",
        "min_type": "formula",
        "min_value": f"=-{largest}",
        "min_color": BELOW,
        "mid_type": "num",
        "mid_value": 0,
        "mid_color": "#FFFFFF",
        "max_type": "formula",
        "max_value": f"={largest}",
        "max_color": ABOVE,
    }


def pixels(width: float) -> float:
    """The width in pixels of a column of so many characters; below one character there are no
    margins."""
    return CHARACTER * width + 5 if width >= 1 else 12 * width


def characters(pixels: float) -> float:
    """The width of a column of so many pixels."""
    return (pixels - 5) / CHARACTER if pixels > 12 else pixels / 12


def kind(block: Block) -> str:
    """The kind of fill for a block."""
    if block.kind == "gradient":
        return "weight" if block.passes[:1] == (TURNED,) else "activation"
    if block.kind != "computed":
        return "weight" if block.kind == "weight" else "input"
    if block.part == "attn" and block.leaf in ATTENTION:
        return "attention"
    read_out = not block.passes and block.layer is None and (block.part or block.leaf) in READOUT
    return "readout" if read_out else "activation"


def number(style: str) -> int:
    """The number of one of the most common styles in a file."""
    return COMMONEST.index(style) + 1


def region_style(block: Block, reads_elsewhere: bool) -> str:
    """The style of a block's cells."""
    if block.kind == "ids" or block.name.endswith(COUNTS):
        return f"{kind(block)} count"
    if block.kind == "setting" and block.shape == (1, 1):
        return "input setting"
    font = "green" if reads_elsewhere else "black"
    return f"{kind(block)} {font if block.op else 'blue'}"
