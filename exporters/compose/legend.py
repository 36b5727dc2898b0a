"""Legend: the meaning of each colour on a sheet, to the right of its title.

It is made of the styles that a finished sheet contains: each entry is a cell, or several merged
ones, in the style that it explains.
"""

from collections.abc import Iterator, Sequence

from cellformer.engine.cells.language import translated
from cellformer.exporters.compose import theme
from cellformer.exporters.compose.book import Sheet
from cellformer.exporters.compose.dressing import AsBuilt, Beyond, Dressing, Unlike, When

ROW = 0
LARGE = 1.7  # a title's characters are so much wider than a cell's

FILLS = {  # of a style's fill: the key's style, and what it says
    theme.FILLS["input"]: ("key input", "type here"),
    theme.STYLES["switch"]["bg_color"]: ("key switch", "a switch"),
    theme.FILLS["weight"]: ("key weight", "weight"),
    theme.FILLS["activation"]: ("key activation", "computed"),
    theme.FILLS["attention"]: ("key attention", "attention"),
    theme.FILLS["readout"]: ("key readout", "readout"),
}
FONTS = {
    theme.BLUE: ("key blue", "blue: typed"),
    theme.BLACK: ("key black", "black: formula"),
    theme.GREEN: ("key green", "green: other sheet"),
}
CONSTANTS = ("constant", "constant percent", "built", "basis")
Key = tuple[str, str]  # a style, and a text in it


def add(sheet: Sheet) -> None:
    """Put a sheet's legend into its first row, to the right of the title."""
    col = past(sheet, 0, LARGE * len(sheet.entries[ROW, 0].value))
    for style, english in keys(sheet):
        text = translated(english)
        end = past(sheet, col, len(text))
        sheet.put(ROW, col, text, style)
        if end > col + 1:
            sheet.merged.append(sheet[ROW, col:end].rect)
        col = end


def keys(sheet: Sheet) -> Iterator[Key]:
    """The entries of a sheet's legend: fills, fonts, and colours that depend on numbers."""
    named = {entry.style for entry in sheet.entries.values()} | {s for _, s in sheet.regions}
    styles = [theme.STYLES[name] for name in sorted(named)]
    fills = {style.get("bg_color") for style in styles}
    yield from (key for fill, key in FILLS.items() if fill in fills)
    numbers = [style for style in styles if "num_format" in style]
    fonts = {style.get("font_color") for style in numbers}
    yield from (key for font, key in FONTS.items() if font in fonts)
    if named.intersection(CONSTANTS):
        yield "key grey", "grey: as built"
    yield from _of_dressings([dressing for _, dressing in sheet.dressings])


def _of_dressings(dressings: Sequence[Dressing]) -> Iterator[Key]:
    """The entries for colours that depend on numbers."""
    if any(isinstance(d, When) and d.style == "generated" for d in dressings):
        yield "key generated", "continued"
    if any(isinstance(d, AsBuilt | Beyond | Unlike) for d in dressings):
        yield "key differs", "changed"
    if "scale" in dressings:
        yield from (("key 0", "0"), ("key full", "100 %"))
    if "diverging" in dressings:
        yield from (("key below", "below 0"), ("key 0", "0"), ("key above", "above 0"))


def past(sheet: Sheet, col: int, n_characters: float) -> int:
    """The first column behind a text of so many characters that begins in `col`."""
    room = 0.0
    while room < n_characters:
        room += theme.pixels(sheet.widths.get(col, theme.COLUMN_WIDTH)) / theme.CHARACTER
        col += 1
    return col
