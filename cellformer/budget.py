"""A budget for every command: what it would compute, write or print, told before it begins.

It is by arithmetic alone, from the shapes of tables that are not computed yet. Beyond the budget
one line says how much it would be, and how much the budget is; `--force` goes on.
"""

from engine.cells.errors import InputError
from engine.models.model import Model
from engine.studies.forecast import numbers_of_pass

MOST_TOKENS = 1_000_000  # of a prompt and its continuation: the longest contexts that there are
MOST_NUMBERS = 500_000_000  # that passes compute and hold together: 4 GB
MOST_CELLS = 500_000_000  # of a workbook: the XML is 20 GB, and LibreOffice would hold it in 10
MOST_LINES = 5_000  # of a tree that is printed: a hundred screens


def within(budget: int, n: int, what: str, force: bool) -> None:
    """Raise InputError where there are more than the budget has, unless `force`."""
    if n > budget and not force:
        raise InputError(
            f"{what}: {n:,}, and the limit of a command is {budget:,}; ask for less, or go beyond "
            "it with --force"
        )


def of_passes(model: Model, n_tokens: int, force: bool, times: int = 1) -> None:
    """Raise InputError where passes over so many tokens, held together, are beyond the budget."""
    if force or n_tokens > model.spec.n_ctx:  # then it is refused for that
        return
    within(MOST_TOKENS, n_tokens, "tokens of a pass", force)
    n = times * numbers_of_pass(model, n_tokens)
    passes = "a pass" if times == 1 else f"{times:,} passes"
    within(MOST_NUMBERS, n, f"numbers in {passes} over {n_tokens:,} tokens", force)
