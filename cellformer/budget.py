"""Limits on the work, the files and the output of a command, checked before it begins.

The sizes come from arithmetic on shapes alone: nothing is computed. Beyond a limit, an error names
the size and the limit; `--force` ignores it.
"""

from cellformer.engine.cells.errors import InputError
from cellformer.engine.models.model import Model
from cellformer.engine.studies.forecast import numbers_of_pass

MOST_TOKENS = 1_000_000  # of a prompt and its continuation: the longest contexts of any model
MOST_NUMBERS = 500_000_000  # that passes compute and hold together: 4 GB
MOST_CELLS = 500_000_000  # of a workbook: the XML is 20 GB, and LibreOffice would hold it in 10
MOST_FOLLOWED = 2_000_000  # cells of a gradient that goes from cell to cell: three minutes
MOST_LINES = 5_000  # of a tree that is printed: a hundred screens


def within(budget: int, n: int, what: str, force: bool) -> None:
    """Raise InputError if `n` is above the budget, unless `force`."""
    if n > budget and not force:
        raise InputError(
            f"too many {what}: {n:,}, above the limit of {budget:,}; ask for fewer, or use --force"
        )


def of_passes(model: Model, n_tokens: int, force: bool, times: int = 1) -> None:
    """Raise InputError if `times` passes over so many tokens, in memory together, are too large."""
    if force or n_tokens > model.spec.n_ctx:  # then it is refused for that
        return
    within(MOST_TOKENS, n_tokens, "tokens of a pass", force)
    n = times * numbers_of_pass(model, n_tokens)
    passes = "a pass" if times == 1 else f"{times:,} passes"
    within(MOST_NUMBERS, n, f"numbers in {passes} over {n_tokens:,} tokens", force)
