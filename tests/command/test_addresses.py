"""Cells by their address, as commands take them: `Machine!B10`."""

import re

import pytest
from conftest import cli, default_book, in_tiers

from cellformer.exporters.compose.cells import SheetCell, position


@pytest.mark.parametrize(
    "address",
    ["Machine!B8", "machine!b8", "'Machine'!$B$8", " 'machine' ! B8", "machine.stage[0,0]"],
)
def test_trace_takes_an_address_in_any_spelling(address: str) -> None:
    done = cli("trace", "cat-sat", address, "--depth", "1")
    head, *rest = done.out.splitlines()
    assert head.startswith("machine.stage[0,0] = ") and "resid_pre[:,0][position + 1]" in head
    assert any("resid_pre[0,0] = " in line for line in rest)


@pytest.mark.slow
def test_trace_of_an_address_follows_into_the_blocks() -> None:
    book = default_book("cat-sat")
    where = book.address(book.graph["logits"][2, 5])
    by_address, by_name = (cli("trace", "cat-sat", cell) for cell in (where, "logits[2,5]"))
    assert by_address.out == by_name.out


def test_trace_of_an_address_after_an_edit() -> None:
    book = default_book("zero-layer")
    watched, typed = (book.address(book.graph[name][0, 0]) for name in ("loss", "added"))
    as_built, edited = (
        cli("trace", "zero-layer", watched, "--depth", "0", *change)
        for change in ((), ("--set", f"{typed}=2"))
    )
    by_name = cli("trace", "zero-layer", "loss[0,0]", "--depth", "0", "--set", "added[0,0]=2")
    assert edited.out == by_name.out != as_built.out


@pytest.mark.parametrize("name", in_tiers(["cat-sat", "zero-layer", "dialogue-game"]))
def test_every_formula_is_traced_to_cells(name: str) -> None:
    book = default_book(name)
    for sheet in book.sheets.values():
        formulas = [(at, e.formula) for at, e in sheet.entries.items() if e.formula is not None]
        for at, formula in formulas[:: max(1, len(formulas) // 9)]:
            cell = SheetCell(book.clean, sheet.name, *at)
            assert cell.formula is not None, cell.address
            assert bool(cell.precedents) == bool(list(formula.areas())), cell.address
            assert all(read.exists for read in cell.precedents), cell.address


@pytest.mark.slow
def test_an_address_can_be_set_and_swept() -> None:
    book = default_book("cat-sat")
    weight = book.address(book.graph["W_E"][1, 0])
    by_address, by_name = (
        cli("run", "cat-sat", "--set", f"{cell}=0.5") for cell in (weight.lower(), "W_E[1,0]")
    )
    assert by_address.out == by_name.out and by_address.code == 0
    swept = (cli("sweep", "cat-sat", cell, "--steps", 3) for cell in (weight, "W_E[1,0]"))
    assert len({done.out for done in swept}) == 1


def test_a_sweep_watches_an_address() -> None:
    done = cli("sweep", "zero-layer", "Bigrams!Q9", "--target", "Check!C5", "--steps", 3)
    assert "check.holds[0,0] shows a text" in done.err
    book = default_book("zero-layer")
    loss = book.address(book.graph["loss"][0, 0])
    by_address, by_name = (
        cli("sweep", "zero-layer", "added[0,0]", "--target", cell, "--from", 0, "--steps", 3)
        for cell in (loss, "loss[0,0]")
    )
    assert by_address.out == by_name.out and by_address.code == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (("trace", "cat-sat", "Machine!A1"), "Machine!A1 holds no formula: it is 'cat-sat"),
        (("trace", "cat-sat", "Machine!ZZ99"), "Machine!ZZ99 is empty"),
        (("trace", "cat-sat", "Machin!B8"), "no sheet is named 'Machin'; nearest: Machine"),
        (("trace", "cat-sat", "Machine!"), "write for example Sheet!B20"),
        (("trace", "cat-sat", "Machine!8B"), "write for example Sheet!B20"),
        (("trace", "cat-sat", "machine.stage[99,0]"), "is outside its table"),
        (("trace", "cat-sat", "machine.stages[9,0]"), "is outside its table"),
        (("trace", "cat-sat", "machine.nothing[9,0]"), "no block is named"),
        (
            ("run", "cat-sat", "--set", "Machine!B8=3"),
            "machine.stage[0,0], which only the workbook uses",
        ),
        (
            ("run", "cat-sat", "--set", "Machine!A1=3"),
            "contains no number that this command can use",
        ),
        (
            ("run", "zero-layer", "--set", "Model!ZZ1=3"),
            "contains no number that this command can use",
        ),
        (("sweep", "cat-sat", "Machine!A1"), "contains no number that this command can use"),
    ],
)
def test_an_address_of_no_use_gives_one_line(arguments: tuple[str, ...], fault: str) -> None:
    done = cli(*arguments)
    assert done.code == 2
    assert fault in done.err and len(done.err.splitlines()) == 1


def test_an_address_knows_the_sheets_with_quotes() -> None:
    book = default_book("cat-sat")
    assert position(book, "'block 0'!c3") == position(book, "Block 0!C3") == ("Block 0", 2, 2)
    assert re.fullmatch(r"labels\..*", SheetCell(book.clean, "Block 0", *_label(book)).name)


def _label(book) -> tuple[int, int]:
    place = next(p for p in book.shown.values() if p.sheet == "Block 0")
    return place.cell(0, 0)
