"""The command `prove`: whether adder is right for all sums, and which cases are not proved."""

from collections.abc import Sequence

import numpy as np

from cellformer import names
from cellformer.command import printing, results
from cellformer.command.answer import Answer
from cellformer.command.cells import Cells
from cellformer.command.console import line
from cellformer.command.options import Name, Sets
from cellformer.engine import InputError, Model
from cellformer.engine.studies.folding import folded
from cellformer.exporters.edits.edited import EditedModel
from cellformer.workbooks import adder
from cellformer.workbooks.adder import proof
from cellformer.workbooks.adder.proof import Case
from cellformer.workbooks.adder.wrong_sums import wrong_sums

SHOWN = 10  # cases that are printed


def prove(name: Name, sets: Sets = None) -> Answer:
    """Prove that adder is right for all sums of two numbers of up to ten digits.

    NAME is adder, a workbook of adder in which you changed weights, or a folder that `cellformer
    train adder` made. For each digit of a sum, the proof has up to 20,000 cases: the digits that
    matter most. For all other digits, it uses intervals that contain every possible effect. If
    there is no proof, the command names the cases that are not proved. It also searches for a wrong
    sum, and prints each one that it finds. Exit code 1: not proved.
    """
    proof.check(model := _model(name), name)
    model = _with(model, sets, name)
    found = proof.prove(model)
    unproved = [case for each in found for case in proof.unproved(each)]
    wrong = wrong_sums(model, found) if unproved else {}
    digits = [proof.digit(each, wrong.get(each.place)) for each in found]
    told: results.Prove = {
        "proved": not unproved,
        "cases": sum(each.cases for each in digits),
        "lead": min((x.lead for x in digits if x.lead is not None), default=None),
        "digits": digits,
        "unproved": unproved,
    }
    return Answer(lambda: _tell(told), lambda: told, "digits", int(bool(unproved)))


def _model(name: str) -> Model:
    """The model of a name; of adder's own workbook with the edits in it. Raises InputError."""
    if not names.is_workbook(name):
        return names.model(name)
    opened = names.opened(name)
    if isinstance(opened, EditedModel):
        return names.model(name)
    if opened.book.title not in ("adder", "adder-proof"):
        raise InputError(
            f"{name} is not a workbook of adder; build one with `cellformer build adder`"
        )
    if opened.overwritten:
        where = opened.overwritten[0].where
        raise InputError(f"{name}: the formula in {where} was replaced; restore it, and try again")
    model = adder.transformer()
    blocks, live = model.graph([0]).blocks, opened.live()
    typed = {at: float(live[at[0]][at[1:]]) for at in opened.values if at[0] in blocks}
    return folded(model, typed)


def _with(model: Model, sets: Sequence[str] | None, name: str) -> Model:
    """The model after every --set. Raises InputError."""
    cells = Cells(model.graph([0]), lambda: names.opened(name).book)
    changes = map(cells.change, sets or ())
    return folded(model, {(block.name, i, j): float(value) for block, i, j, value in changes})


def _tell(told: results.Prove) -> None:
    """Print the proof, or what it lacks."""
    unproved: Sequence[Case] = told["unproved"]
    printing.rows(
        told["digits"],
        f"{told['cases']:,} cases cover all sums of two numbers of up to ten digits:",
    )
    if not unproved:
        line(f"proved: all sums are right. The right digit leads by at least {told['lead']:.4f}.")
        return
    line(f"not proved: {len(unproved):,} of {told['cases']:,} cases.")
    hardest = sorted(unproved, key=lambda case: -np.inf if case.lead is None else case.lead)
    printing.rows(hardest[:SHOWN], "Those with the least lead:")
