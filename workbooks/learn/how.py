"""The sheet How: the steps to take in Excel and in LibreOffice, and why it works."""

from collections.abc import Mapping, Sequence

from cellformer.exporters.assemble.worksheets import Workbook

LINES = {
    "In LibreOffice": (
        "1. On the sheet Learn choose ‘learn’. This computes the step that is shown once more; after it two presses of F9 make one step.",
        "2. Hold F9 down, and watch the curve. A step takes a second or less; a few hundred are enough.",
        "3. Choose ‘pause’ before you change anything else, a rate or a word; then ‘learn’ again. ‘start’ begins anew.",
        "The loss is {1:.3f} after one step, and {2:.3f} after two. If your loss differs, choose "
        "‘start’, then ‘learn’ again, and press only F9:",
        "Ctrl+Shift+F9 computes every cell anew, in another order, and its steps are not exact. If it still is not, type 4 at ‘of them for each step’.",
        "If cells show Err:522 or Err:523: Tools, Options, LibreOffice Calc, Calculate: tick Iterations, 1 step, minimum change 1000000; choose ‘start’.",
    ),
    "In Excel": (
        "1. Open this workbook first, before any other: Excel takes the setting for iteration from the first workbook that it opens.",
        "2. If it warns of a circular reference: File, Options, Formulas: tick ‘Enable iterative calculation’, Maximum Iterations 1. Then open it again.",
        "3. Choose ‘learn’, and press F9. With Maximum Iterations at 100, one F9 makes fifty steps.",
        "This workbook was not tested in Excel. If the loss is not {1:.3f} after one step, or "
        "not {2:.3f} after two, choose ‘start’,",
        "type 4 at ‘of them for each step’, and try again: then four recalculations make a step, and the order of cells no longer counts for much.",
    ),
    "Elsewhere": (
        "A program without iterative calculation (Google Sheets has it switched off by default) shows the first step only, or an error.",
        "The workbook ‘unrolled’ needs none: it has several steps one after another.",
    ),
    "Why it works": (
        "A formula cannot remember. A cell that reads itself can: this is a circular reference, and with iteration on, each recalculation computes it once.",
        "Every weight has two such cells, ‘even’ and ‘odd’, on the sheet {kept}. The workbook "
        "reads one cell and writes the other, by turns.",
        "So nothing that a step reads changes while it is computed, and a cell that is computed twice, or late, comes out the same.",
        "Programs differ in the order: LibreOffice computes what a cell reads before the cell; Excel, in circular references, goes from left to right",
        "and from top to bottom, sheet by sheet. The sheets of the step stand in that order, and blocks one under another. In the first of two recalculations a step is written, in the second it is counted.",
    ),
}
LEARNT = {
    "What it has learnt": (
        "The weights as they are now stand on the sheet Step 1 Forward: W_E, W_pos, and so on. Save the workbook; then they are in the file.",
        '‘cellformer import learn.xlsx -o DIR’ takes them out as a model that every command takes: ‘cellformer run DIR --prompt "Pietro chiama Paolo"’.',
    ),
}


def add(
    w: Workbook,
    losses: Sequence[float],
    kept: str = "Weights",
    learnt: Mapping[str, Sequence[str]] = LEARNT,
) -> None:
    """Add the sheet, with the losses of the first steps for comparison, the name of the sheet of
    latches, and the use of the trained model."""
    ws = w.sheet(
        "How", "how to switch learning on in your program, and what to do if it does not move"
    )
    for heading, lines in (LINES | dict(learnt)).items():
        ws.heading(heading, *(line.format(*losses, kept=kept) for line in lines))
