"""Layout: where every block of a graph stands. No input or output.

The sentence runs across, features run down (see `orientation`). So a product over features runs
**down two columns**: of an activation, and of a weight, which stands as in its file, [in, out].
Programs are faster down columns, which matters in a model of some size. A product over tokens runs
**along two rows**: of a pattern, which has a row for each token that looks, and of the values.

Three rules place blocks, so that a page reads input, weight, product:
- what is computed cell by cell from a block stands to its right, in the same band;
- what summarizes a block's columns (a maximum, a sum, a mean) stands under it, as a total;
- a product opens a new band below, with its weights before it; it stays beside its input if that
  stands alone.

In larger models the weights have sheets of their own, one per layer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from textwrap import wrap

from cellformer.engine.cells.access import Rect, Span
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.expression import Area, Expression
from cellformer.engine.cells.formula import equation
from cellformer.engine.cells.functions import INDEX
from cellformer.engine.cells.language import AsIs, worded
from cellformer.engine.cells.name import (
    GRADIENT,
    OWN,
    TURNED,
    USED,
    Name,
)
from cellformer.engine.cells.stored import Stored
from cellformer.engine.models.adapter import MATRICES
from cellformer.engine.models.encoding import TOKENS
from cellformer.engine.models.forward import SOURCE
from cellformer.exporters.compose import theme
from cellformer.exporters.compose.book import Place, Run, Sheet
from cellformer.exporters.compose.composer import Composer, Table
from cellformer.exporters.model import words
from cellformer.exporters.model.block_sheets import (
    AS_READ,
    PLAY,
    PROMPT_COL,
    SHEETS,
    BlockSheet,
    on_play,
    placed_by_page,
    print_one_head,
    sheet_of,
)
from cellformer.exporters.model.model_book import ModelBook, Pieces
from cellformer.exporters.model.orientation import SCALES, turned

MARGIN = 0  # the leftmost label column
TITLE_ROWS = 3  # title, links, blank; frozen
LONGEST = 200  # characters of an equation on one line, which then fits a screen
WIDE = 16  # columns; where a band is wider already, the next result stands below it


@dataclass
class Band:
    """Blocks side by side, with totals under them: (block, left column)."""

    across: list[tuple[Block, int]] = field(default_factory=list)
    totals: dict[str, list[Block]] = field(default_factory=dict)  # under the block of that name
    right: int = MARGIN

    def holds(self, block: Block) -> bool:
        return any(b is block for b, _ in self.across)

    def add(self, block: Block, n_cols: int) -> None:
        self.across.append((block, self.right))
        self.right += n_cols + 2  # a label column before, a gap after


def bands(book: ModelBook, sheet: BlockSheet) -> list[Band]:
    """The blocks of one sheet, in bands by the three rules."""
    graph = book.graph
    found: list[Band] = []
    done: set[str] = set()
    for block in graph:
        if block.op is None or sheet_of(block, book) != sheet:
            continue
        operands = dict.fromkeys(b for _, _, b in block.operands)
        fresh = [b for b in operands if b.name not in done and _stands_there(b, sheet, book)]
        _, _, first = block.operands[0]
        band = found[-1] if found else Band()
        total = _is_total(block, band, book)
        if not found or not (total or _goes_on(block, band)):
            band = Band()
            found.append(band)
        total = total and turned(block, book)  # a column stands beside
        done.update(member.name for member in fresh)
        for member in fresh:
            band.add(member, _width(member, book))
        if total:
            band.totals.setdefault(first.name, []).append(block)
            continue
        if band.right > WIDE:
            band = Band()
            found.append(band)
        done.add(block.name)
        band.add(block, _width(block, book))
    return found


def _width(block: Block, book: ModelBook) -> int:
    """The number of columns of a block."""
    return block.shape[0 if turned(block, book) else 1]


def _stands_there(block: Block, sheet: BlockSheet, book: ModelBook) -> bool:
    """Whether an input stands on a sheet, beside its reader."""
    return block.op is None and sheet_of(block, book) == sheet and not on_play(block)


def _is_total(block: Block, band: Band, book: ModelBook) -> bool:
    """Whether a block is a total of the one before it: a single column, or a row when turned."""
    _, _, first = block.operands[0]
    total = block.shape[1] == 1 and block.axes[1] == "" and band.holds(first)
    return total and (block.shape[0] == 1 or turned(block, book) == turned(first, book))


def _goes_on(block: Block, band: Band) -> bool:
    """Whether a block stands beside its input: cell by cell, or in a row."""
    cellwise = any(s == ("i", "j") and band.holds(b) for _, s, b in block.operands)
    _, _, first = block.operands[0]
    return cellwise or (len(band.across) == 1 and band.holds(first))


def split(book: ModelBook) -> None:
    """Place tables of more words than a sheet has columns."""
    for block in book.blocks:
        if block.kind == "weight":
            across = 0 if turned(block, book) else 1
            if block.shape[across] > book.plan.limits.columns and block.axes[across] in book.labels:
                _split(book, block, block.shape[across])


def lay_out(book: ModelBook) -> None:
    """Place all other blocks of the book's graph, with titles, equations and labels."""
    for block in book.blocks:
        place = sheet_of(block, book)
        if placed_by_page(place.kind) or place.name in book.sheets:
            continue
        sheet = book.sheet(place.name)
        sheet.purpose = place.purpose(book.plan.gradient_of)
        sheet.tab = place.tab
        dress(book, sheet)
        found = BANDS.get(place.kind, bands)(book, place)
        row = TITLE_ROWS + 2
        for band in found:
            row = _place(book, sheet, band, row)
        _contents(book, sheet)
        if not book.by_hand:
            print_one_head(sheet, place)


def _split(book: ModelBook, block: Block, n_words: int) -> None:
    """Place a table of more words than a sheet has columns, a part on each of several sheets.

    Programs read sheets in parallel, so several of equal size are also faster.
    """
    n_pieces = -(-n_words // book.plan.limits.columns)
    step = -(-n_words // n_pieces)
    across = 0 if turned(block, book) else 1
    values, names = book.graph.inputs[block.name], []
    for k in range(n_pieces):
        begin, end = k * step, min((k + 1) * step, n_words)
        spans = [slice(0, n) for n in block.shape]
        spans[across] = slice(begin, end)
        shape = (end - begin, block.shape[1]) if across == 0 else (block.shape[0], end - begin)
        piece = replace(block, name=f"{block.name}.{k}", shape=shape)
        cut = values.part(*spans) if isinstance(values, Stored) else values[tuple(spans)]
        book.others[piece.name] = cut
        sheet = book.sheet(BlockSheet("Vocabulary", k).name)
        sheet.purpose = SHEETS["Vocabulary"][1]
        dress(book, sheet)
        place = Place(piece, sheet.name, TITLE_ROWS + 3, MARGIN + 1, across == 0)
        book.places[piece.name] = place
        book.alone.append(place)
        sheet.regions.append((place, theme.region_style(block, False)))
        texts = book.labels[block.axes[across]]
        above = Rect(place.top - 1, place.top, place.left, place.left + end - begin)
        sheet.runs.append(Run(above, "label", texts[begin:end]))
        sheet.runs.append(
            Run(Rect(place.top, place.top + place.size[0], MARGIN, MARGIN + 1), "label number")
        )
        names.append(piece.name)
    book.pieces[block.name] = Pieces(step, names)
    book.places[block.name] = book.places[names[0]]


def _contents(book: ModelBook, sheet: Sheet) -> None:
    """Add links to the parts of a long sheet, in a row at its top."""
    parts: dict[str, str] = {}
    for place, _ in sheet.regions:
        block = place.block
        part = "" if block.layer is None else ".".join(block.inside)
        parts.setdefault(part or block.leaf, book.area(block.name))
    if len(parts) > 1:
        sheet.put(TITLE_ROWS, MARGIN, "go to", "row label")
        for k, (part, area) in enumerate(parts.items(), MARGIN + 1):
            sheet.link(TITLE_ROWS, k, AsIs(part.removeprefix("attn.")), area, "link fitted")
    patterns = [p.block for p, _ in sheet.regions if p.block.leaf == "pattern"]
    for k, block in enumerate(patterns, MARGIN + 1):
        sheet.put(TITLE_ROWS + 1, MARGIN, "patterns", "row label")
        sheet.link(
            TITLE_ROWS + 1,
            k,
            AsIs(".".join(block.inside).removeprefix("attn.")),
            book.area(block.name),
            "link fitted",
        )


def weight_bands(book: ModelBook, sheet: BlockSheet) -> list[Band]:
    """The weights of one sheet, a band for each head, norm and MLP."""
    found: dict[str, Band] = {}
    for block in book.blocks:
        if sheet_of(block, book) == sheet and block.name not in book.pieces:
            part = block.path if "." in block.own else block.name
            band = found.setdefault(part, Band())
            matrix = f"{part}.W_{block.leaf.removeprefix('b_')}"
            if block.leaf[:2] == "b_" and matrix in book.graph.blocks and not turned(block, book):
                band.totals.setdefault(matrix, []).append(block)
            else:
                band.add(block, _width(block, book))
    return list(found.values())


def read_bands(book: ModelBook, sheet: BlockSheet) -> list[Band]:
    """The weights of one sheet as used, a band for each head, norm and MLP; scales stand below
    the weights that they round."""
    found: dict[str, Band] = {}
    for block in book.blocks:
        if sheet_of(block, book) == sheet:
            band = found.setdefault(Name(block.path).path or block.path, Band())
            if block.op in SCALES:
                band.totals[f"{block.path}.{USED}"] = [block]
            else:
                band.add(block, _width(block, book))
    return list(found.values())


def gradient_bands(book: ModelBook, sheet: BlockSheet) -> list[Band]:
    """The gradients of one sheet's weights, each beside the copy of its weight, if there is one,
    and beside the numbers of its rows, if only it needs them."""
    found: dict[str, Band] = {}
    for block in sorted(book.graph, key=lambda block: TURNED not in block.passes):
        of_weights = block.kind == "gradient" or GRADIENT in block.passes
        if of_weights and sheet_of(block, book) == sheet:
            reader = block if block.kind == "gradient" else book.graph.readers[block.name][0][0]
            found.setdefault(reader.forward, Band()).add(block, _width(block, book))
    order = {block.name: k for k, block in enumerate(book.graph)}
    return [found[weight] for weight in sorted(found, key=lambda weight: order[weight])]


BANDS = {  # of some kinds of sheets; else bands
    "Weights": weight_bands,
    AS_READ: read_bands,
    "Gradient": gradient_bands,
    "Turned": gradient_bands,
}


def _place(book: ModelBook, sheet: Sheet, band: Band, row: int) -> int:
    """Place a band from `row` on; returns the row below it."""
    inside = [block for block, _ in band.across]
    inside += [block for under in band.totals.values() for block in under]
    for block in sorted(inside, key=lambda block: book.order[block.name]):
        if block.name in book.headings:
            sheet.put(row, MARGIN, book.headings[block.name], "heading")
            row += 1
        if block.op:
            lies = words.shape(block, turned(block, book))
            text = f"{block.name} = {equation(block)}   {lies}   "
            text += words.meaning(block, book.plan.gradient_of)
            for line in wrap(text, LONGEST) if len(text) > LONGEST else [text]:
                sheet.hold(row, MARGIN, line, "equation")
                row += 1
        elif block.kind == "table":
            sheet.put(row, MARGIN, _of_cuts(book, block), "equation")
            row += 1
    bottom = row
    for block, left in band.across:
        place = Place(block, sheet.name, row + 2, left + 1, turned(block, book))
        settle(book, sheet, place)
        sheet.put(row, left + 1, caption(block, place.turned), "block")
        below = place.top + place.size[0]
        for total in band.totals.get(block.name, ()):
            settle(book, sheet, Place(total, sheet.name, below, left + 1, turned(total, book)))
            sheet.hold(below, left, total.leaf, "row label")
            below += 1
        bottom = max(bottom, below)
        label_columns(book, sheet, place)
        label_rows(book, sheet, place)
    return bottom + 1


def _of_cuts(book: ModelBook, block: Block) -> str:
    """The meaning of a table of the pass with cuts."""
    if len(block.passes) == 1:
        return worded(
            "{name}: one row per token, computed from the token’s stream", name=block.name
        )
    *_, made = (other for other in book.graph if other.passes == block.passes)
    return worded(
        "{name}: the inputs of {made} at one token (the stream without the cut edges)",
        name=block.name,
        made=made.own,
    )


def caption(block: Block, turned: bool = False) -> str:
    """A block's caption on its sheet: its leaf, with its head or norm, or with the weight that it
    belongs to. Of a weight that is `turned`, it says that it is transposed."""
    if turned and block.kind == "weight":
        return words.transposed(caption(block))
    if block.leaf == OWN:
        return worded("{part} as computed", part=block.inside[-1])
    if block.leaf in (USED, *MATRICES) or block.op in SCALES:  # of a weight, or a tensor
        return AsIs(".".join([*block.inside, block.leaf]).removeprefix("attn."))
    nearest = block.inside[-1] if block.inside else ""
    named = nearest.startswith("ln") or nearest == block.head
    text = f"{nearest}.{block.leaf}" if named else block.leaf
    return worded("gradient of {text}", text=text) if GRADIENT in block.passes else AsIs(text)


def settle(book: ModelBook, sheet: Sheet, place: Place) -> None:
    """Place a block, and format it."""
    if place.block.kind == "table":
        book.lay(place, "step green")
        return
    book.places[place.block.name] = place
    elsewhere = any(sheet_of(b, book).name != sheet.name for _, _, b in place.block.operands)
    sheet.regions.append((place, theme.region_style(place.block, elsewhere)))
    rows, cols = place.size
    area = sheet[place.top : place.top + rows, place.left : place.left + cols]
    if place.block.passes[:1] == (GRADIENT,) or _coloured(book, sheet, place.block):
        sheet.dress(area, "diverging")
    elif place.block.leaf in ("pattern", "probs"):
        sheet.dress(area, "scale")


def _coloured(book: ModelBook, sheet: Sheet, block: Block) -> bool:
    """Whether a block is coloured about 0: weights and activations, in a model shown whole."""
    table = min(block.shape) > 1 and theme.kind(block) in ("weight", "activation")
    return table and book.plan.colours_tables and not placed_by_page(sheet.name)


def label_columns(book: ModelBook, sheet: Sheet, place: Place) -> None:
    """Put the labels above a block: tokens (live), words, or feature numbers."""
    axis, n = place.block.axes[0 if place.turned else 1], place.size[1]
    if axis and axis not in TOKENS and axis not in book.labels:
        sheet.runs.append(
            Run(Rect(place.top - 1, place.top, place.left, place.left + n), "label number")
        )
        return
    at = place.top - 1, place.left
    labels(book, sheet, f"{place.block.name}.columns", at, axis, range(n), "label", across=True)


def label_rows(book: ModelBook, sheet: Sheet, place: Place) -> None:
    """Put the labels to the left of a block; for very many rows, once."""
    axis, n = place.block.axes[1 if place.turned else 0], place.size[0]
    if n > book.plan.limits.columns and place.block.name != "logits":
        return
    area = Rect(place.top, place.top + n, place.left - 1, place.left)
    if axis and axis not in TOKENS and axis not in book.labels:
        sheet.runs.append(Run(area, "row number"))
        return
    if n > book.plan.limits.columns:
        sheet.runs.append(Run(area, "row label", book.labels[axis]))
        return
    at = place.top, place.left - 1
    labels(book, sheet, f"{place.block.name}.rows", at, axis, range(n), "row label")


def labels(
    book: ModelBook,
    sheet: Sheet,
    name: str,
    at: Span,
    axis: str,
    numbers: Sequence[int],
    style: str,
    across: bool = False,
) -> None:
    """Put the labels of some indices of an axis, down or across from a cell: tokens (live, as the
    table `labels.NAME`), words, or numbers."""
    live = axis in TOKENS and "tokens" in book.graph.blocks
    shape = (1, len(numbers)) if across else (len(numbers), 1)
    table = Table(book, f"labels.{name}", sheet, at, shape) if live else None
    texts = token_texts(book, axis) if live else None
    for n, k in enumerate(numbers):
        i, j = (0, n) if across else (n, 0)
        if table and texts is not None:
            table.put(i, j, texts[0, k], "word" if style == "label" else style)
        elif axis in book.labels:
            sheet.hold(at[0] + i, at[1] + j, book.labels[axis][k], style)
        elif axis:
            sheet.put(at[0] + i, at[1] + j, k, "label number" if style == "label" else style)


def token_text(book: ModelBook, k: int, axis: str = "token") -> Area:
    """The cell that shows the text of token k, of the second sentence if the axis is its."""
    return token_texts(book, axis)[0, k]


def token_texts(book: ModelBook, axis: str = "token") -> Area:
    """The row of cells on Play that show the texts of all tokens."""
    n = book.passage.n_source if axis == SOURCE else len(book.passage.ids)
    return book.sheet(PLAY)[book.plan.rows_of_tokens[axis], PROMPT_COL : PROMPT_COL + n]


def prompt_text(book: ModelBook, k: int) -> str:
    """The text of token k of the passage."""
    return book.labels["vocab"][int(book.values["tokens"][k, 0])]


def vocabulary_texts(book: ModelBook) -> Area:
    """The texts of the whole vocabulary, beside the table in which tokens are looked up."""
    table, n = book.graph.looked_up(book.graph["tokens"])
    return labels_of(book, table.name, 0, n)


def text_at(book: ModelBook, index: Expression) -> Expression:
    """The text of a token by its index in the vocabulary, from 1."""
    table, _ = book.graph.looked_up(book.graph["tokens"])
    texts = vocabulary_texts(book)
    return INDEX(texts, 1, index) if book.places[table.name].turned else INDEX(texts, index, 1)


def labels_of(book: ModelBook, name: str, axis: int, n: int) -> Area:
    """The labels of the first n rows (axis 0) or columns (axis 1) of a block; fixed."""
    place = book.places[name]
    sheet = book.sheets[place.sheet]
    if place.turned == (axis == 0):
        return sheet[place.top - 1 : place.top, place.left : place.left + n].fixed.as_range
    return sheet[place.top : place.top + n, place.left - 1].fixed.as_range


def place_vocabulary(book: ModelBook) -> None:
    """Use these labels as the texts among which words are looked up."""
    table, _ = book.graph.looked_up(book.graph["tokens"])
    sheet, rect = book.locate(vocabulary_texts(book))
    block, across = book.graph["vocabulary"], book.places[table.name].turned
    book.places[block.name] = Place(block, sheet, rect.top, rect.left, across, named=False)


def page(
    book: ModelBook,
    name: str,
    purpose: str = "",
    *lines: str,
    widths: Mapping[int, float] | None = None,
) -> Composer:
    """A page's sheet, with its title, and `lines` of text below the line with its purpose, else
    the PURPOSE of its module; `widths` are of columns, in characters."""
    dress(book, book.sheet(name))
    made = Composer(book, name, TITLE_ROWS + 1)
    made.about(purpose, *lines, widths=widths or {})
    return made


def dress(book: ModelBook, sheet: Sheet) -> None:
    """Add the top of a sheet: its title, links to Start and Play; frozen."""
    sheet.hold(0, 0, f"{book.title} · {sheet.name}", "title")
    sheet.link(1, 0, "← Start", "Start!A1")
    if sheet.name != PLAY:
        sheet.link(1, 1, AsIs(PLAY), f"{PLAY}!A1")
    sheet.frozen = (TITLE_ROWS - 1, 0)
    sheet.prints = "all" if book.by_hand else "first page"
