"""The sheet How: the steps to take in Excel and in LibreOffice, and why it works."""

from collections.abc import Mapping, Sequence

from cellformer.exporters.assemble.worksheets import Workbook

LINES = {
    "In LibreOffice": (
        "1. On the sheet Learn choose ‘learn’. The program computes the current step once more. "
        "After that, two presses of F9 make one step.",
        "2. Hold F9 down, and watch the curve. A step needs a second or less, and a few hundred "
        "steps are enough.",
        "3. Choose ‘pause’ before you change anything else, for example a rate or a word. Then "
        "choose ‘learn’ again. ‘start’ resets the model.",
        "The loss is {1:.3f} after one step, and {2:.3f} after two. If your loss differs, choose "
        "‘start’, then ‘learn’ again, and press only F9.",
        "Do not press Ctrl+Shift+F9: it computes every cell again, in another order, and makes "
        "inexact steps. If the loss is still different, type ‘4’ at ‘recalculations a step’.",
        "If cells show Err:522 or Err:523, open Tools, Options, LibreOffice Calc, Calculate. "
        "Tick Iterations, with 1 step and minimum change 1000000. Then choose ‘start’.",
    ),
    "In Excel": (
        "1. Open this workbook before any other workbook. Excel uses the iteration setting of "
        "the first workbook that it opens.",
        "2. If Excel warns of a circular reference, open File, Options, Formulas. Tick ‘Enable "
        "iterative calculation’, with Maximum Iterations 1. Then open the workbook again.",
        "3. Choose ‘learn’, and press F9. With Maximum Iterations at 100, one F9 makes fifty steps.",
        "This workbook was not tested in Excel. The loss should be {1:.3f} after one step, and "
        "{2:.3f} after two.",
        "If your loss differs, choose ‘start’, type ‘4’ at ‘recalculations a step’, and try again. Then four recalculations make a "
        "step, and the order of the cells hardly matters.",
    ),
    "Elsewhere": (
        "Without iterative calculation, a program shows only the first step, or an error. By "
        "default, Google Sheets has iterative calculation switched off.",
        "The workbook ‘unrolled’ needs no iterative calculation, because ‘unrolled’ has several "
        "steps one after another.",
    ),
    "Why it works": (
        "Most formulas cannot remember a value. A cell that reads itself can remember a value. "
        "Such a cell makes a circular reference. With iteration on, each recalculation computes "
        "such a cell once.",
        "Every weight has two such cells, ‘even’ and ‘odd’, on the sheet {kept}. The workbook "
        "reads one cell and writes the other, by turns.",
        "So the inputs of a step do not change during the step. A cell that the program computes "
        "twice, or late, has the same result.",
        "Programs compute cells in different orders. LibreOffice first computes all cells that "
        "a cell reads.",
        "Excel computes circular references from left to right and from top to bottom, sheet "
        "by sheet. The sheets and blocks of the step stand in that order. The first of two "
        "recalculations writes a step, and the second counts it.",
    ),
}
LEARNT = {
    "The learnt weights": (
        "The sheet Step 1 Forward shows the current weights: W_E, W_pos, and so on. Save the "
        "workbook to keep these weights in the file.",
        "‘cellformer import learn.xlsx -o DIR’ saves the weights as a model. Every command can "
        'use this model, for example ‘cellformer run DIR --prompt "Pietro chiama Paolo"’.',
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
        "How", "how to switch learning on in your program, and what to do if nothing moves"
    )
    for heading, lines in (LINES | dict(learnt)).items():
        ws.heading(heading, *(line.format(*losses, kept=kept) for line in lines))
