"""The command `bless`: your spreadsheet program's results for every form of our formulas."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from cellformer.command import results
from cellformer.command.answer import Answer
from cellformer.command.console import line
from cellformer.engine import InputError
from cellformer.exporters.checking import bless as forms


def bless(
    output: Annotated[
        Path | None,
        typer.Option("-o", help="Write a workbook with every form of formula to this file."),
    ] = None,
    read: Annotated[
        Path | None,
        typer.Option("--read", help="Check this workbook after a spreadsheet program saved it."),
    ] = None,
) -> Answer:
    """Test each function in your own spreadsheet program.

    First write a workbook with `cellformer bless -o FILE.xlsx`. Open FILE.xlsx in your program,
    recompute everything, and save the file. Then type `cellformer bless --read FILE.xlsx` to
    compare the results. The workbook has every function and every sign of cellformer's formulas,
    with every kind of argument. Exit code 1: your program computes another result.
    """
    if (output is None) == (read is None):
        raise InputError(
            "give -o FILE.xlsx to write the workbook, or --read FILE.xlsx to check a saved copy"
        )
    if output is not None:
        forms.write(output)
        told = _result(output, "", [], len(forms.examples()))
        return Answer(partial(_tell_written, told), lambda: told, "differ")
    assert read is not None
    program, found = forms.read(read)
    told = _result(read, program, found, len(forms.examples()))
    return Answer(partial(_tell, told), lambda: told, "differ", bool(told["differ"]))


def _result(file: Path, program: str, found: list[forms.Answered], formulas: int) -> results.Bless:
    gaps = [x.gap for x in found if x.agrees]
    return {
        "file": str(file),
        "forms": len({one.form for one in forms.examples()}),
        "formulas": formulas,
        "program": program,
        "cells": len(found),
        "largest": max(gaps) if gaps else None,
        "differ": [_plain(x) for x in found if not x.agrees],
    }


def _plain(x: forms.Answered) -> results.Differing:
    return {
        "cell": f"{forms.SHEET}!{x.at}",
        "form": x.example.form,
        "formula": x.example.formula,
        "ours": x.ours,
        "program": None if x.theirs == forms.WRONG else x.theirs,
    }


def _tell_written(told: results.Bless) -> None:
    line(f"{told['file']}: {told['formulas']} formulas of {told['forms']} different forms")
    line(
        f"open the file in a spreadsheet program, recompute everything ({forms.KEYS}), and save "
        "the file; then run:"
    )
    line(f"cellformer bless --read {told['file']}")


def _tell(told: results.Bless) -> None:
    """Print a verdict as `verify` does, and each cell that differs."""
    n, wrong = told["cells"], told["differ"]
    line(f"saved by {told['program']}")
    if told["largest"] is not None:
        line(
            f"agrees    {n - len(wrong)} of {n} cells, {told['forms']} forms of formula, largest "
            f"difference {told['largest']:.1e}"
        )
    for one in wrong:
        theirs = "not computed" if one["program"] is None else repr(one["program"])
        line(
            f"DISAGREES {one['cell']}  {one['formula']}  {one['form']}: "
            f"cellformer {one['ours']!r}, this program {theirs}"
        )
