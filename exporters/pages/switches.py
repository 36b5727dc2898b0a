"""Switches: a cell that is 1 or 0 for every head, MLP and expert, and one for all heads of a layer.

A part that is off writes nothing into the residual stream or, under mean ablation, its average.
Beside the switches is the exact drop of the target word's logit when that part alone is off:
constants, which the engine computed for the prompt that the workbook was built with, grey once the
prompt has changed. Below is an estimate that follows the sentence: what each part writes along the
word's direction (its share on Attribution), without what later layers make of it; and its error,
where the constants apply.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from cellformer.engine.cells.expression import Expression
from cellformer.engine.cells.functions import SUM
from cellformer.engine.cells.groups import grouped
from cellformer.engine.cells.language import worded
from cellformer.engine.cells.name import Name
from cellformer.engine.models.prompt_status import built_with
from cellformer.engine.studies import ablation
from cellformer.engine.studies.part_names import said
from cellformer.exporters.compose.book import Place, Sheet
from cellformer.exporters.compose.composer import Composer
from cellformer.exporters.compose.dressing import Unlike, When, between
from cellformer.exporters.compose.lookups import entry
from cellformer.exporters.compose.sentences import sentence
from cellformer.exporters.model import layout
from cellformer.exporters.model.block_sheets import SWITCHES
from cellformer.exporters.model.model_book import ModelBook

SHEET = SWITCHES
PURPOSE = "switch heads and MLPs off (1 = on, 0 = off), and see the effect of each switch"
AFTER = "Play"
GRID_ROW = 9
BELOW = 5  # rows from one grid of effects to the other, without its layers
Cells = Mapping[str, tuple[int, int]]  # part -> where its switch stands
BY_CROSS = "effect through cross attention only"  # what parts of an encoder add
CROSS = "cross"  # attention to the source sentence of two stacks


def wanted(book: ModelBook) -> bool:
    """Whether the model has heads or MLPs."""
    return bool(ablation.parts(book.graph))


def add(book: ModelBook) -> None:
    """Add the grid of switches, the grid of effects, and the averages."""
    parts = ablation.parts(book.graph)
    purpose = "" if book.plan.explains else "switch heads and MLPs off: 1 = on, 0 = off"
    page = layout.page(book, SHEET, purpose, widths={0: 16, 1: 14})
    sheet = page.sheet
    if "mean_ablation" in book.graph.blocks:
        _mean(page)
    layers, heads = rows(parts), columns(parts)
    cells = _cells(parts, list(heads))
    right = 1 + len(heads) + 2  # columns of the first grid, and a gap
    _heads(sheet, 0, layers, heads.values(), "Switches: 1 = on, 0 = off")
    if book.plan.explains:
        _heads(sheet, right, layers, heads.values(), "")
        _heads(sheet, right, layers, heads.values(), "", len(layers) + BELOW)
        _estimates(book, page, right, cells, _effects(book, page, right, cells))
    for part, (row, col) in cells.items():
        page.lay(book.graph[f"{part}.switch"], (row, col), "switch")
        sheet.rules[row, col] = between(0, 1, "1 is on, 0 is off.")
    grid = sheet[GRID_ROW : GRID_ROW + len(layers), 1 : right - 2]
    full = len(cells) == grid.shape[0] * grid.shape[1]
    for area in [grid] if full else [sheet[at] for at in cells.values()]:
        sheet.dress(area, Unlike(1))
    row = _switched_on(book, sheet, cells, GRID_ROW + len(layers) + 2)
    if book.plan.explains:
        row = max(row, GRID_ROW + 2 * len(layers) + BELOW + 1)
    if "mean_ablation" in book.graph.blocks:
        known = "constants, measured on reference sentences or the prompt"
        measured = worded(known if book.plan.explains else "not measured, so type your own values")
        row = _vectors(
            book,
            sheet,
            "average",
            worded("Average output of each part: {measured}", measured=measured),
            row,
        )
        _vectors(book, sheet, "off", "Output that replaces a part that is off", row)


def columns(parts: Sequence[str]) -> dict[str, str]:
    """The parts of a layer, each with its column of the grid (all heads, their replacement, the
    MLP, each head, each expert), and the column's head."""
    last = (part.rpartition(".")[2] for part in parts)
    heads = sorted({name for name in last if name[0] == "h"}, key=lambda name: int(name[1:]))
    experts = [part.rpartition(".")[2] for part in parts if ".mlp." in part]
    instead = {"conv": "convolution", "time": "time mixing"}
    there = {name: head for name, head in instead.items() if any(p.endswith(name) for p in parts)}
    there |= {"mlp": "MLP"} if any(".mlp" in p for p in parts) else {}
    return {"attn": "all heads", **there} | {n: n for n in [*heads, *experts]}


def rows(parts: Sequence[str]) -> dict[str, list[str]]:
    """The parts of each row of the grid, by its name: a layer. With two stacks, each layer of
    the encoder, each layer of the decoder, and the cross heads of each."""
    return grouped(sorted(parts, key=lambda part: not Name(part).passes), _row_of)


def _row_of(part: str) -> str:
    """The name of the row of a part's switch."""
    switch = Name(f"{part}.{ablation.SWITCH}")
    layer = switch.name.partition(f".{switch.part}")[0]
    return said(f"{layer}.{CROSS}" if switch.part == CROSS else layer)


def _cells(parts: Sequence[str], across: Sequence[str]) -> Cells:
    """The place of each part's switch: a row per layer, a column per part."""
    row_of = {part: k for k, of_row in enumerate(rows(parts).values()) for part in of_row}
    leaves = (part.rpartition(".")[2].replace(CROSS, "attn") for part in parts)
    columns = map(across.index, leaves)
    return {p: (GRID_ROW + row_of[p], 1 + k) for p, k in zip(parts, columns, strict=True)}


def _mean(page: Composer) -> None:
    page.lay(
        page.book.graph["mean_ablation"],
        (4, 1),
        "switch",
        rule={"validate": "list", "source": ["0", "1"]},
    )
    text = "0: a part that is off writes nothing; 1: the part writes its average at every token"
    page.sheet.lines(4, [("mean ablation", text)], {0: "block", 2: "note"})


def _heads(
    sheet: Sheet, left: int, layers: Iterable[str], heads: Iterable[str], title: str, down: int = 0
) -> None:
    """Add the heading, column heads and names of layers of a grid."""
    if title:
        sheet.put(GRID_ROW - 2, left, title, "heading")
    sheet.across(GRID_ROW - 1 + down, left + 1, heads, "label")
    sheet.down(GRID_ROW + down, left, layers, "row label")


def _effects(book: ModelBook, page: Composer, left: int, cells: Cells) -> dict[str, float]:
    """Add the drop of the target's logit when one part alone is off: constants, with their
    prompt."""
    sheet = page.sheet
    row_of = book.passage.n_prompt - 1
    target = int(book.value("target", 0, 0))
    word = book.labels[book.graph["logits"].axes[1]][target]
    sheet.put(
        GRID_ROW - 3,
        left,
        worded("How much the logit of ‘{word}’ falls when only this part is off", word=word),
        "heading",
    )
    after = worded("computed after ‘{built_with}’", built_with=built_with(book.graph))
    sheet.put(GRID_ROW - 2, left + 1, after, "note")
    now = sentence("prompt {state}", state=book.named("prompt"))
    state = page.show("state", (GRID_ROW - 2, left), now, "row label")
    effects = {e.part: -e.change for e in ablation.effects(book.graph, target, row_of)}
    for part, loss in effects.items():
        row, col = cells[part]
        sheet.put(row, left + col, loss, "constant")
    rows, cols = zip(*cells.values(), strict=True)
    grid = sheet[GRID_ROW : max(rows) + 1, left + 1 : left + 1 + max(cols)]
    sheet.dress(
        grid,
        When("stale", state.fixed != worded("prompt {state}", state=worded("as built"))),
        "diverging",
    )
    return effects


def _estimates(
    book: ModelBook, page: Composer, left: int, cells: Cells, effects: Mapping[str, float]
) -> None:
    """Add the output of each part along the target's direction, live, at the position of Play,
    and its difference from the known effects."""
    if not any(writers(book, part) for part in cells):  # each passes later layers (Gemma 3n)
        return
    n_layers = 1 + max(row for row, _ in cells.values()) - GRID_ROW
    top = GRID_ROW + n_layers + BELOW
    word, position = book.graph["look.target"][0, 0], book.graph["position"][0, 0] + 1
    title = sentence(
        "Live estimate: what each part adds directly to the logit of ‘{word}’", word=word
    )
    page.show("estimate_of", (top - 3, left), title, "heading")
    wide = max(col for _, col in cells.values())
    estimates = page.table("estimate", (top, left + 1), (n_layers, wide))
    last, off = book.passage.n_prompt - 1, []
    for part, (row, col) in cells.items():
        blocks = [book.views.credits["target"][name] for name in writers(book, part)]
        shares: list[Expression] = [entry(block.area, 1, position) for block in blocks]
        if not shares and Name(f"{part}.{ablation.SWITCH}").passes:
            page.sheet.put(row - GRID_ROW + top, left + 1, BY_CROSS, "note")
        if shares:
            estimates.put(
                row - GRID_ROW, col - 1, SUM(*shares) if shares[1:] else shares[0], "live"
            )
            now = sum(book.value(b.name, min(last, b.shape[0] - 1), 0) for b in blocks)
            off.append(abs(now - effects[part]))
    text = worded(
        (
            "estimate: later layers are ignored; its error as built: {median:.3f} (median), "
            "{max:.3f} (maximum)"
        ),
        median=np.median(off),
        max=max(off),
    )
    page.sheet.put(top - 2, left, text, "note")
    page.dress(estimates.area, "diverging")


def writers(book: ModelBook, part: str) -> list[str]:
    """The outputs of a part, as on Attribution; a layer's bias belongs to no part."""
    return [
        name
        for name in book.views.credits["target"]
        if name == f"{part}_out"
        or (name.startswith(f"{part}.") and not Name(name).leaf.startswith("b_"))
    ]


def _switched_on(book: ModelBook, sheet: Sheet, cells: Cells, row: int) -> int:
    """Add each head's or expert's own switch times its layer's."""
    found = [b for b in book.graph if b.leaf == "on"]
    if found:
        sheet.put(row, 0, "Result: the part’s switch multiplied by the layer’s switch", "heading")
        for block in found:
            at, col = cells[block.path]
            here = row + 2 + at - GRID_ROW
            sheet.put(here, 0, _row_of(block.path), "row label")
            sheet.hold(row + 1, col, block.inside[-1], "label")
            layout.settle(book, sheet, Place(block, SWITCHES, here, col, False))
        row = max(book.places[block.name].top for block in found) + 2
    return row


def _vectors(book: ModelBook, sheet: Sheet, leaf: str, text: str, row: int) -> int:
    """Add one row of d_model numbers for every part with a block of that leaf."""
    of_leaf = (b for b in book.graph if b.leaf == leaf and b.layer is not None)
    found = [b for b in of_leaf if b.name == b.forward]
    sheet.put(row, 0, text, "heading")
    sheet.across(row + 1, 2, range(found[0].shape[1]), "label number")
    for n, block in enumerate(found):
        sheet.put(row + 2 + n, 1, said(block.path), "row label")
        layout.settle(book, sheet, Place(block, SWITCHES, row + 2 + n, 2, False))
    return row + 2 + len(found) + 1
