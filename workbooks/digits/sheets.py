"""The sheets of the drawings: Draw, Looks, Held out, and every step of the pass."""

from cellformer.engine.cells.access import Rect
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.expression import Expression
from cellformer.engine.cells.functions import COUNTIF, IF, MAX, SUM
from cellformer.engine.cells.language import worded
from cellformer.engine.models.forward import Forward
from cellformer.engine.studies.part_names import head_of
from cellformer.exporters.assemble.block_list import Labels, stack
from cellformer.exporters.assemble.worksheets import Workbook
from cellformer.exporters.compose.composer import Composer
from cellformer.exporters.compose.dressing import When, between
from cellformer.exporters.compose.sentences import percent, sentence
from cellformer.workbooks.digits.canvas import BLANK, HIGH, LOW, N_SHOWN, TEXT
from cellformer.workbooks.digits.drawings import MOST, N_DIGITS, SIDE

TOP = 7  # the first row of the drawings
YOURS, BARS, HELD, LOOKS = 1, 11, 15, 25  # the first columns of what stands beside each other
PIXEL, GAP = 3.0, 2.0  # widths of columns
PRINTED = 60  # rows of a sheet of blocks that a handout shows
MEANINGS = {  # of the tables around the pass, and of what is called otherwise for words
    "tokens": "the pixels that the model reads, one row for each patch",
    "factor": "the factor of each pixel, so that full ink is 1",
    "drawing.kind": "0: a number from 0 to 16. 1: empty. 2: not a number. 3: below 0. 4: above 16",
    "ink": "the ink of the drawing, from 0 to 16",
    "number.known": "the number of the held-out drawing shown here; 1 if the typed number does not exist",
    "picked.digit": "the correct digit of the held-out drawing",
    "sure": "the largest of the ten probabilities",
    "seen": "the drawing that the model reads",
    "looks.mean": "mean attention of [CLS] to each patch, over the heads of the last layer",
    "looks.most": "the largest of these",
}


def draw_sheet(w: Workbook, g: Forward, accuracy: str) -> None:
    """The first sheet: the drawing, the guess, a held-out drawing, and where [CLS] looks."""
    ws = w.sheet(
        "Draw",
        "draw a digit in the yellow cells, from 0 (no ink) to 16 (full ink), and watch the guess "
        "change",
    )
    ws.widths(
        {0: 2.5, BARS - 1: 3, BARS: 24, BARS + 1: 7, BARS + 2: 3}
        | dict.fromkeys((YOURS + SIDE, LOOKS + SIDE), GAP)
        | {col: PIXEL for left in (YOURS, HELD, LOOKS) for col in range(left, left + SIDE)}
    )
    yours(ws, g)
    bars(ws, g)
    held_out(ws, g)
    looks(ws, g)
    ws.cursor = TOP + N_DIGITS + 1
    ws.text(
        "Type ‘16’ into a cell. To fill several cells, select them, type ‘16’ and press "
        "Ctrl+Enter (in LibreOffice Alt+Enter). A blank cell counts as 0.",
        "To start a new drawing, select all 64 yellow cells and press Delete. The model reads "
        "large digits with thick strokes best.",
        style="note",
    )
    ws.text(accuracy)


def yours(ws: Composer, g: Forward) -> None:
    """The cells to draw in, and one line about them."""
    ws.sheet.put(TOP - 2, YOURS, "Your drawing", "block")
    ws.lay(g["drawing"], (TOP, YOURS), "pixel typed")
    ws.dress(g["drawing"].area, When("pixel dark", g["drawing"][0, 0] > MOST / 2), "paper")
    rule = between(0, MOST, "Type a number from 0 (no ink) to 16 (full ink).")
    ws.sheet.rules |= dict.fromkeys(Rect(TOP, TOP + SIDE, YOURS, YOURS + SIDE).cells(), rule)
    ws.show("said", (TOP - 3, YOURS), said(g), "note")


def said(g: Forward) -> Expression:
    """The line that says what is wrong with the drawing, or what to do."""
    kinds = g["drawing.kind"].area.as_range
    texts, low, high, blank = (COUNTIF(kinds, kind) for kind in (TEXT, LOW, HIGH, BLANK))
    usual = IF(
        SUM(g["seen"].area.as_range) > 0,
        sentence("Change a cell below: the bars move at once."),
        sentence("The drawing is empty: type ‘16’ into a few cells below."),
    )
    usual = IF(
        g["reads_held_out"][0, 0] == 1,
        sentence(
            "The model reads the held-out drawing. Type ‘0’ beside ‘read it’: then the model "
            "reads yours."
        ),
        usual,
    )
    found = IF(blank > 0, sentence("Blank cells: {n}. They count as 0, no ink.", n=blank), usual)
    found = IF(
        high > 0, sentence("Cells above 16: {n}. They count as 16. Type 0 to 16.", n=high), found
    )
    found = IF(
        low > 0, sentence("Cells below 0: {n}. They count as 0. Type 0 to 16.", n=low), found
    )
    return IF(
        texts > 0,
        sentence("Cells without a number: {n}. They count as 0. Type 0 to 16.", n=texts),
        found,
    )


def bars(ws: Composer, g: Forward) -> None:
    """The guess, and how likely each digit is."""
    chances = g["chances"]
    ws.sheet.put(TOP - 2, BARS, "The model’s guess", "block")
    ws.lay(g["guess"], (TOP - 2, BARS + 1), "guess")
    ws.lay(chances, (TOP, BARS), "bar share", dress="bar")
    percents = ws.show(
        "percent", (TOP, BARS + 1), lambda k, _: chances[k, 0] + 0, "percent", (N_DIGITS, 1)
    )
    ws.sheet.down(TOP, BARS - 1, range(N_DIGITS), "digit")
    ws.dress(percents, When("right", percents[0, 0] == MAX(percents.fixed.as_range)))


def held_out(ws: Composer, g: Forward) -> None:
    """A drawing that training never saw, by its number, and the switch that feeds it to the
    model."""
    ws.sheet.put(TOP - 2, HELD, "Held-out drawing number", "block")
    ws.lay(
        g["number"],
        (TOP - 2, HELD + SIDE - 1),
        "dial",
        rule={"validate": "list", "source": [str(n) for n in range(1, N_SHOWN + 1)]},
    )
    ws.lay(g["picked"], (TOP, HELD), "pixel")
    ws.dress(g["picked"].area, When("pixel dark", g["picked"][0, 0] > MOST / 2), "ink")
    ws.show("meant", (TOP + SIDE, HELD), meant(g), "note")
    switch = (TOP + SIDE + 1, HELD)
    ws.lay(
        g["reads_held_out"],
        switch,
        "switch",
        rule=between(0, 1, "Type 1 to use this drawing, or 0 to use yours.", whole=True),
    )
    ws.sheet.put(switch[0], HELD + 1, "← read it: 1; read yours: 0", "note")


def meant(g: Forward) -> Expression:
    """The digit that the held-out drawing means, and whether its number is on the list."""
    return IF(
        g["number.known"][0, 0] == g["number"][0, 0],
        sentence("The writer meant a {digit}.", digit=g["picked.digit"][0, 0]),
        sentence("Type 1 to 50. Drawing 1 is shown."),
    )


def looks(ws: Composer, g: Forward) -> None:
    """The attention of [CLS], as a picture of the drawing's size."""
    ws.sheet.put(TOP - 2, LOOKS, "Where the model looks", "block")
    ws.lay(g["looks"], (TOP, LOOKS), "heat", dress="scale")
    most = MAX(g["looks.mean"].area.as_range)
    ws.show(
        "most",
        (TOP + SIDE, LOOKS),
        sentence("Darkest patch: {share} of the attention.", share=percent(most, 0)),
        "note",
    )
    ws.sheet.put(TOP + SIDE + 1, LOOKS, "See each head on sheet Looks.", "note")


def looks_sheet(w: Workbook, g: Forward) -> None:
    """Add the attention of [CLS] in each head of each layer, patch by patch."""
    ws = w.sheet(
        "Looks", "the attention weights of [CLS] on each patch of the drawing, for each head"
    )
    spec = g.spec
    side = SIDE // 2  # patches of a side
    ws.widths({0: 14} | dict.fromkeys(range(1, 1 + 3 * side), 7))
    ws.text(
        "The drawing is cut into 16 patches of 2 x 2 pixels, and each patch is a token. One "
        "more token, [CLS], has no pixels.",
        "The token [CLS] collects information from the patches, and the model reads its guess "
        "from [CLS]. So the attention of [CLS] shows where the model looks.",
        "In each head, the weights of all patches and of [CLS] itself sum to 1. Change the "
        "drawing on sheet Draw, and come back.",
    )
    for layer in range(spec.n_layers):
        ws.heading(worded("Layer {n}", n=layer))
        top = ws.cursor + 1
        for head in range(spec.n_heads):
            left, h = 1 + head * (side + 2), f"blocks.{layer}.attn.h{head}"
            pattern = g[f"{h}.pattern"]
            ws.sheet.put(top - 1, left, head_of(pattern), "block")

            def share(i: int, j: int, pattern: Block = pattern) -> Expression:
                return pattern[0, 1 + side * i + j] + 0

            ws.lay(
                g.table(f"looks.{layer}.{head}", (side, side), share),
                (top, left),
                "tile number",
                dress="diverging",
            )
            ws.show(
                f"own.{layer}.{head}",
                (top + side, left),
                sentence("itself: {share}", share=percent(pattern[0, 0], 0)),
                "note",
            )
        ws.cursor = top + side + 1


def held_sheet(w: Workbook, g: Forward) -> None:
    """The held-out drawings to pick from, a row for each."""
    ws = w.sheet(
        "Held out",
        "fifty drawings that were not used in training; each row has 64 pixels",
        "Handwritten digits of 13 people, scanned and reduced to 8 x 8 pixels with values 0 to "
        "16 (Alpaydin and Kaynak 1998, from scikit-learn). The same 13 people also wrote the "
        "training digits.",
        widths={0: 5, 1: 6, 2: GAP} | dict.fromkeys(range(3, 3 + SIDE * SIDE), 2.6),
    )
    top = ws.cursor + 2
    ws.heads_at((top - 1, 0), "no.", "digit", style="label")
    ws.sheet.down(top, 0, range(1, N_SHOWN + 1), "row number")
    ws.lay(g["held_out.digit"], (top, 1), "digit")
    ws.lay(g["held_out"], (top, 3), "pixel")
    ws.dress(g["held_out"].area, When("pixel dark", g["held_out"][0, 0] > MOST / 2), "ink")
    ws.sheet.print_area = Rect(0, top + N_SHOWN, 0, 3 + SIDE)


def inside_sheets(w: Workbook, g: Forward) -> None:
    """Every other block, in the order of computation: before the layers, each layer, and after."""
    spec = g.spec
    layers = {
        f"blocks.{n}.": (worded("Layer {n}", n=n), "attention, then the MLP, with all formulas")
        for n in range(spec.n_layers)
    }
    patches = w.sheet(
        "Patches", "from pixels to one vector for each patch, with [CLS] as the first token"
    )
    sheets = {prefix: w.sheet(*told) for prefix, told in layers.items()}
    readout = w.sheet("Readout", "from the vector of [CLS] to a probability for each digit")
    labels: Labels = {
        "token": ["[CLS]", *map(str, range(1, spec.n_positions))],
        "n_positions": ["[CLS]", *map(str, range(1, spec.n_positions))],
        "patch": [*map(str, range(1, spec.n_positions))],
        "vocab_out": [str(digit) for digit in range(N_DIGITS)],
    }
    started = False
    for block in [*g]:
        if block.name in w.book.places:
            continue
        prefix = next((p for p in sheets if block.name.startswith(p)), None)
        started = started or prefix is not None
        ws = readout if started and prefix is None else patches
        ws = sheets[prefix] if prefix else ws
        around = block.name in MEANINGS
        stack(patches if around else ws, block, labels, "", meaning=MEANINGS.get(block.name, ""))
    for ws in (patches, *sheets.values(), readout):
        ws.sheet.print_area = Rect(0, PRINTED, 0, 10)
