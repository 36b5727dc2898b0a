"""The result of a tokenizer in cells: the ids, their number, and a message for the user."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from cellformer.engine.cells.block import Block
from cellformer.engine.cells.expression import Expression, expression
from cellformer.engine.cells.functions import IF, INDEX, MIN
from cellformer.engine.cells.sentence import sentence
from cellformer.engine.text.tokenizing.settings import Settings
from cellformer.engine.text.tokenizing.steps import Steps

NO_ID = -1


@dataclass(frozen=True)
class Result:
    """The cells that a workbook takes from its tokenizer.

    `sentence` [1, 1] is the typed text. `ids` [n_tokens, 1] are the ids, -1 after the last; `n_ids`
    [1, 1] is their number, 0 if the text cannot be tokenized here. `message` [1, 1] says why, or
    how many there are; `fine` [1, 1] is 1 if the whole text became ids.
    """

    sentence: Block
    ids: Block
    n_ids: Block
    message: Block
    fine: Block


def add(
    steps: Steps,
    ident: Callable[[int], Expression],
    n: Expression,
    settings: Settings | None = None,
    special: bool = False,
) -> Result:
    """Add the ids of the text (`ident(k)` is the k-th of `n`), between the special tokens."""
    before = settings.before if settings and special else []
    after = settings.after if settings and special else []
    first = first_of([(holds, k) for k, (holds, _) in enumerate(steps.problems, 1)], expression(0))
    wrong = steps.one("problem", first)[0, 0].fixed
    fixed = steps.one("count", n)[0, 0].fixed

    def id_of(t: int, _: int) -> Expression:
        k = t - len(before)
        if k < 0:
            return IF(wrong > 0, NO_ID, before[t])
        ends = [(fixed == k - place, last) for place, last in enumerate(after)]
        found = first_of(ends, expression(NO_ID))
        if k < steps.n:
            found = IF(fixed > k, ident(k), found)
        return IF(wrong > 0, NO_ID, found)

    ids = steps.graph.table("ids", (steps.n_tokens, 1), id_of)
    pieces = steps.pieces
    steps.graph.table(
        "token",
        (steps.n_tokens, 1),
        lambda t, _: IF(ids[t, 0] < 0, "", INDEX(pieces.area.fixed, ids[t, 0] + 1)),
    )
    whole = fixed + (len(before) + len(after))
    n_ids = steps.one("n_ids", IF(wrong > 0, 0, MIN(steps.n_tokens, whole)))
    fine = steps.one("fine", IF(wrong > 0, 0, IF(whole > steps.n_tokens, 0, 1)))
    told = IF(whole == 1, sentence("1 token"), sentence("{n} tokens", n=whole))
    fits = "{n} tokens: only the first {room} fit, and the sheet ignores the others"
    left_out = sentence(fits, n=whole, room=steps.n_tokens)
    message = IF(
        whole == 0, sentence("nothing is typed"), IF(whole > steps.n_tokens, left_out, told)
    )
    refusals = [(wrong == k, text) for k, (_, text) in enumerate(steps.problems, 1)]
    message = first_of(refusals, message)
    return Result(steps.sentence, ids, n_ids, steps.one("message", message), fine)


def first_of(cases: Sequence[tuple[Expression, Any]], otherwise: Expression) -> Expression:
    """The value of the first condition that holds."""
    for condition, value in reversed(cases):
        otherwise = IF(condition, value, otherwise)
    return otherwise
