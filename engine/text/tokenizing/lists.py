"""A vocabulary of characters, in cells: each is looked up."""

import numpy as np

from cellformer.engine.cells.functions import COUNTIF
from cellformer.engine.text.tokenizer import Characters
from cellformer.engine.text.tokenizing import result
from cellformer.engine.text.tokenizing.result import Result
from cellformer.engine.text.tokenizing.steps import Steps
from cellformer.engine.text.tokenizing.unicode import OTHER, OUTSIDE, TAB_IN_LINES, UNREADABLE


def add_characters(steps: Steps, tokenizer: Characters) -> Result:
    """The id of each character."""
    ids = {ord(word): i for i, word in enumerate(tokenizer.words) if len(word) == 1}
    ids.pop(TAB_IN_LINES, None)
    rows = {0: (OTHER, -1), 1: (OUTSIDE, -1), UNREADABLE: (OUTSIDE, -1)}
    for code, i in ids.items():
        rows[code] = (OTHER, i)
        if code + 1 not in ids:
            rows[code + 1] = (OUTSIDE, -1)
    steps.text()
    steps.look_up(np.array([(code, *row) for code, row in sorted(rows.items())], dtype=np.float64))
    found = steps.row("id", lambda k: steps.field_of(2, steps.entry[0, k]), runs=True)
    return result.add(steps, lambda k: found[0, k], COUNTIF(steps.code.area, ">0"))
