"""Layout: where every block of a graph stands. No input or output.

Every dot product runs **down two columns**, which determines how each block is oriented: an
activation that is read along its features has its tokens across and its features down; values,
which are mixed over tokens, have tokens down; weights keep [in, out]; a tied embedding has its
features down, as the unembedding needs it. Or, where a plan has `token_rows`, **along two rows**:
all of that is turned, so that each token has a row, and each weight lies [out, in]. The values,
which are read along tokens, are read by way of a copy that lies the other way (see `side_by_side`).

Three rules place blocks, so that a page reads input, weight, product:
- what is computed cell by cell from a block stands to its right, in the same band;
- what summarizes a block's columns (a maximum, a sum, a mean) stands under it, as a total;
- a product opens a new band below, with its weights before it. It stays beside its input if that
  stands alone, and further products of the same input go below the first.

In larger models the weights have sheets of their own, one per layer.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from cellformer.engine.cells.access import Rect, Span
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.expression import Area, Expression
from cellformer.engine.cells.formula import equation
from cellformer.engine.cells.functions import INDEX
from cellformer.engine.cells.graph import Graph
from cellformer.engine.cells.interventions import AnyGraph, intervened
from cellformer.engine.cells.language import AsIs, worded
from cellformer.engine.cells.name import (
    CLEAN,
    CUT,
    ENCODER,
    GRADIENT,
    NUDGED,
    OTHER,
    OWN,
    PATH,
    SECOND,
    TURNED,
    USED,
    Name,
)
from cellformer.engine.cells.stored import Stored
from cellformer.engine.learning import optimizers
from cellformer.engine.models import ops
from cellformer.engine.models.adapter import ADAPTER, MATRICES, MERGE
from cellformer.engine.models.encoding import AXIS
from cellformer.engine.models.forward import SOURCE
from cellformer.engine.studies import addition
from cellformer.engine.studies.lens import operands
from cellformer.exporters.compose import theme
from cellformer.exporters.compose.book import Place, Run, Sheet
from cellformer.exporters.compose.composer import Composer, Table
from cellformer.exporters.model import words
from cellformer.exporters.model.model_book import ModelBook, Pieces

MARGIN = 0  # the leftmost label column
TITLE_ROWS = 3  # title, links, blank; frozen
WIDE = 16  # columns; where a band is wider already, the next result stands below it
PROMPT_COL = 2  # on Play: of the sentence, and of its first token
TOKENS = ("token", AXIS, SOURCE)  # axes of tokens
PLAY, SWITCHES, LENS, ATTRIBUTION = "Play", "Switches", "Lens", "Attribution"
BESIDE = ("mean_ablation", MERGE)  # settings that stand beside what they switch
AS_READ = "Used"
SCORING = (ops.linear, ops.linear_tied)
SCALES = (ops.scale_of_column, ops.scale_of_row)  # of weights that are rounded
COPY = "turned"  # the last part of the names of copies that lie the other way
AFTER_STEP = "Nudged"  # what begins the name of a sheet of the pass after a step
MOVED = "the weights after the step: each less the rate times its gradient"
# the sheets of the other sentence; of this one without patches; that of a path
OF_OTHER, UNPATCHED, ON_PATH = "Other", "Clean", "Path"
WITH_CUTS = "Cut"  # the sheet of the pass in which edges are cut
SWITCHED = ("switch", "average", "off", "on", "mean_ablation")  # leaves of the blocks of Switches
BEFORE_LAYERS = (
    "embed",
    "pos_embed",
    "rotary",
    "alibi",
    "distance",
    "segment_embed",
    "embed_sum",
    "ln_embed",
)
OF_ENCODER = "Encoder"  # what begins the name of a sheet of the encoder of two stacks

# the sheets that blocks have to themselves: the sheet that each comes after, and its purpose
SHEETS = {
    OF_ENCODER: (SWITCHES, "the source sentence, layer by layer"),
    "Embedding": (OF_ENCODER, "from token ids to vectors"),
    "Block": ("Embedding", "step by step, from the residual stream before it to the one after it"),
    "Readout": ("Block", "from the last residual to logits and probabilities"),
    "Backward": ("Readout", "the gradient of {gradient_of} by every cell, from the end back"),
    "Gradient": ("Backward", "the gradient of {gradient_of} by every weight, beside the weight"),
    "Turned": ("Backward", "the weights transposed: what Backward multiplies with"),
    AFTER_STEP: ("Gradient", MOVED),
    OF_OTHER: ("Block", "the other sentence, which Patch takes values from"),
    UNPATCHED: (OF_OTHER, "this sentence as it is without any switch of Patch"),
    ON_PATH: (
        UNPATCHED,
        "what the sender of the path on Patch changes on its way to the receiver",
    ),
    WITH_CUTS: ("Graph", "the forward pass without the edges that are cut on Graph"),
    "Weights": ("Words", "embeddings and the last norm; blue: type over any of them"),
    "Vocabulary": ("Weights", "the embedding: a column per word; blue: type over any of them"),
    AS_READ: ("Vocabulary", "the weights as they are read, rounded or with an adapter's"),
}


def kind_of(name: str) -> str:
    """The kind of sheet that a name is of: the encoder's weights stand with the decoder's."""
    first, *others = name.split(" ")
    return others[0] if first == OF_ENCODER and others[:1] == ["Weights"] else first


class BlockSheet(NamedTuple):
    """A sheet of blocks: a page's, or one of SHEETS, of a layer or of the steps around them."""

    kind: str
    layer: int | None = None
    nudged: bool = False  # of the pass after a step
    second: bool = False  # of the second sentence
    other: bool = False  # of the sentence that is patched from
    clean: bool = False  # of this sentence without any patch
    encoder: bool = False  # of the encoder of two stacks

    @property
    def name(self) -> str:
        kind = "Output" if self.encoder and self.kind == "Readout" else self.kind
        numbered = kind if self.layer is None else f"{kind} {self.layer}"
        before = f"{AFTER_STEP} " * self.nudged + f"{OF_OTHER} " * self.other
        before += f"{OF_ENCODER} " * self.encoder
        before += f"{UNPATCHED} " * self.clean
        return before + numbered + f" {SECOND}" * self.second

    def purpose(self, gradient_of: str) -> str:
        """Its purpose, in a line; `gradient_of` is what gradients are of."""
        if self.nudged:
            forward = self._replace(nudged=False).purpose(gradient_of)
            return (
                MOVED
                if self.kind == "Weights"
                else worded("after the step: {forward}", forward=forward)
            )
        if self.other:
            return worded(
                "the other sentence: {purpose}",
                purpose=self._replace(other=False).purpose(gradient_of),
            )
        if self.clean:
            return worded(
                "without any patch: {purpose}",
                purpose=self._replace(clean=False).purpose(gradient_of),
            )
        if self.second:
            return worded(
                "the second sentence: {purpose}",
                purpose=self._replace(second=False).purpose(gradient_of),
            )
        if self.encoder and self.kind == "Readout":
            return worded("the encoder’s last vectors, which the decoder’s cross attention reads")
        if self.encoder:
            return worded(
                "the encoder: {purpose}",
                purpose=self._replace(encoder=False).purpose(gradient_of),
            )
        what = worded(SHEETS[self.kind][1], gradient_of=worded(gradient_of))
        of_layer = {"Block": what, "Weights": "type over any of them", AS_READ: what}
        if self.layer is None or self.kind not in of_layer:
            return what
        return worded("layer {layer}: {what}", layer=self.layer, what=worded(of_layer[self.kind]))


def sheet_of(block: Block, book: ModelBook) -> BlockSheet:
    """The sheet of a block: a page's, for settings and what is looked at; or else its layer's, or
    that of the steps before or after the layers."""
    if not _is_backward(block) and (sheet := addition.sheet_of(block, book.graph)):
        return BlockSheet(sheet)
    for again, marked in AGAIN.items():
        if again in block.passes and (again == NUDGED or not _is_backward(block)):
            return marked(sheet_of(book.graph[block.own], book))
    if block.kind == "gradient":
        return _of_gradient(block, book)
    for sheet, is_of in PAGES:
        if is_of(block):
            return BlockSheet(sheet)
    encoder = ENCODER in block.passes
    if block.kind == "computed":
        if block.leaf == USED or block.op in SCALES or block.part == ADAPTER:
            return BlockSheet(AS_READ, block.layer, encoder=encoder)
        outside = "Embedding" if (block.part or block.leaf) in BEFORE_LAYERS else "Readout"
        kind = outside if block.layer is None else "Block"
        return BlockSheet(kind, block.layer, second=SECOND in block.passes, encoder=encoder)
    if block.kind == "weight" and not book.by_hand:
        return BlockSheet("Weights", block.layer, encoder=encoder)
    reader, _ = book.graph.readers[block.name][0]
    return sheet_of(reader, book)


def placed_by_page(sheet: str) -> bool:
    """Whether the blocks of a sheet are placed by its page, not in bands."""
    of_additions = [each.sheet for each in addition.additions()]
    return sheet in (PLAY, SWITCHES, LENS, ATTRIBUTION, *of_additions)


def _is_backward(block: Block) -> bool:
    return bool({GRADIENT, TURNED} & {*block.passes})


def _of_gradient(block: Block, book: ModelBook) -> BlockSheet:
    """The sheet of a block of the backward pass. Those of weights stand apart, beside a copy."""
    own = book.graph.blocks.get(block.forward)
    of_weights = "Turned" if "against" in book.plan.studies else "Gradient"
    kind = of_weights if own is not None and own.kind == "weight" else "Backward"
    return BlockSheet(kind, block.layer, encoder=ENCODER in block.passes)


AGAIN: dict[str, Callable[[BlockSheet], BlockSheet]] = {  # passes like the first one
    NUDGED: lambda sheet: sheet._replace(nudged=True),
    OTHER: lambda sheet: sheet._replace(other=True),
    CLEAN: lambda sheet: sheet._replace(clean=True),
}
PAGES: tuple[tuple[str, Callable[[Block], bool]], ...] = (  # and whether a block stands there
    (ON_PATH, lambda b: PATH in b.passes),
    (WITH_CUTS, lambda b: CUT in b.passes),
    (SWITCHES, lambda b: b.leaf in SWITCHED),
    (LENS, lambda b: b.part == "lens"),
    (ATTRIBUTION, lambda b: b.part in ("target", "rival")),
    (PLAY, lambda b: on_play(b)),
)


def on_play(block: Block) -> bool:
    """Whether a block is one of the model's controls: the prompt, or a setting of the whole
    model."""
    dial = block.kind == "setting" and block.shape == (1, 1)
    if "." in block.own or block.passes not in ((), (SECOND,), (ENCODER,)) or block.own in BESIDE:
        return False
    return dial or block.own in ("tokens", "attention_mask", "position", "target", "rival")


def read_along(graph: Graph, block: Block) -> int | None:
    """The axis along which others read a block: 1 if each reads a row of it; None: neither. Raises
    ValueError if both are read."""
    axes = set()
    for _, subscript in graph.readers[block.name]:
        for axis, code in enumerate(subscript):
            if code in (":", "≤i", "≥i") and block.shape[axis] > 1:
                axes.add(axis)
    if len(axes) > 1:
        raise ValueError(f"{block.name} is read along both axes: no column holds every product")
    return axes.pop() if axes else None


def turned(block: Block, book: ModelBook) -> bool:
    """Whether a block stands with its rows across the sheet, so that dot products run down."""
    if block.op is optimizers.descent:
        return turned(block.operands[0][2], book)  # as it lies before the step
    rows = book.plan.token_rows
    if block.leaf == OWN and block.kind == "computed" and not rows:
        its_readers = block.own.removesuffix(f".{OWN}")
        return turned(book.graph[its_readers], book)  # as what its readers read
    if block.op in SCALES:
        return turned(book.graph[f"{block.path}.{USED}"], book)
    axis = read_along(book.graph, block)
    if axis is not None:
        return (axis == 1) != rows
    readers = book.graph.readers[block.name]
    if block.kind == "weight" and block.shape[0] == 1 and readers:
        if book.by_hand:
            return turned(readers[0][0], book)  # a bias or gain lies along what it is added to
        # along the stream, or else under its matrix; down where a sheet has too few columns
        down = block.axes[1] == "d_model" or block.shape[1] > book.plan.limits.columns
        return down != rows
    activation = block.kind in ("computed", "gradient", "ids") or CUT in block.passes
    return activation and not rows


def side_by_side(graph: AnyGraph) -> AnyGraph:
    """The graph whose tables can all have a row for each token: what is read along its tokens is
    read by way of a copy, NAME.turned."""
    found = [b.name for b in graph if b.axes[0] in TOKENS and read_along(graph, b) == 0]
    return copied(graph, [name for name in found if graph[name].computed])


def scored_by_rows(graph: AnyGraph) -> AnyGraph:
    """The graph whose Lens scores rows: what stands in a column there is scored by way of a copy,
    NAME.turned."""
    scored = [block for block in graph if block.part == "lens" and block.op in SCORING]
    return copied(graph, [operands(block)["x"].name for block in scored])


def copied(graph: AnyGraph, names: Sequence[str]) -> AnyGraph:
    """The graph in which some blocks are read by way of a copy, NAME.turned."""

    def copy(g: Graph, name: str, own: Block) -> Block:
        return g.block(name, ops.same, own)

    return intervened(graph, dict.fromkeys(names, copy), COPY)


def is_copy(block: Block) -> bool:
    """Whether a block is a copy that lies the other way."""
    return block.op is ops.same


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
    beside: dict[str, int] = {}  # a block that opens its band -> the column right of it
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
            band = Band(right=beside.get(first.name, MARGIN) if fresh else MARGIN)
            found.append(band)
        # a column, as with a row for each token, or where it is read along tokens, is no total
        total = total and not book.plan.token_rows and turned(block, book)
        done.update(member.name for member in fresh)
        for member in fresh:
            _put(member, band, beside, book)
        if total:
            band.totals.setdefault(first.name, []).append(block)
            continue
        if band.right > WIDE:
            band = Band()
            found.append(band)
        done.add(block.name)
        _put(block, band, beside, book)
    return found


def _put(block: Block, band: Band, beside: dict[str, int], book: ModelBook) -> None:
    """Add a block to a band; `beside` keeps the column right of one that opens it."""
    band.add(block, block.shape[0 if turned(block, book) else 1])
    if len(band.across) == 1:
        beside[block.name] = band.right


def _stands_there(block: Block, sheet: BlockSheet, book: ModelBook) -> bool:
    """Whether an input stands on a sheet, beside what reads it."""
    return block.op is None and sheet_of(block, book) == sheet and not on_play(block)


def _is_total(block: Block, band: Band, book: ModelBook) -> bool:
    """Whether a block is a total of the one before it: a single column, or a row when turned."""
    _, _, first = block.operands[0]
    total = block.shape[1] == 1 and block.axes[1] == "" and band.holds(first)
    if not book.plan.token_rows and block.shape[0] > 1:  # a column has no room under a block
        return total and turned(block, book) and turned(first, book)
    return total


def _goes_on(block: Block, band: Band) -> bool:
    """Whether a block stands beside what it reads: cell by cell, in a row, or as a copy."""
    cellwise = any(s == ("i", "j") and band.holds(b) for _, s, b in block.operands)
    _, _, first = block.operands[0]
    return cellwise or (len(band.across) == 1 and band.holds(first)) or is_copy(block)


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
        sheet.tab = theme.OTHER if place.other else theme.CLEAN if place.clean else ""
        dress(book, sheet)
        found = BANDS.get(place.kind, bands)(book, place)
        row = TITLE_ROWS + 2
        for band in found:
            row = _place(book, sheet, band, row)
        _contents(book, sheet)


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
        left = Rect(place.top, place.top + place.size[0], MARGIN, MARGIN + 1)
        sheet.runs.append(Run(left, "label number"))
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
            sheet.link(TITLE_ROWS, k, AsIs(part.removeprefix("attn.")), area)
    patterns = [p.block for p, _ in sheet.regions if p.block.leaf == "pattern"]
    for k, block in enumerate(patterns, MARGIN + 1):
        sheet.put(TITLE_ROWS + 1, MARGIN, "patterns", "row label")
        head = ".".join(block.inside).removeprefix("attn.")
        sheet.link(TITLE_ROWS + 1, k, AsIs(head), book.area(block.name))


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
                band.add(block, block.shape[0 if turned(block, book) else 1])
    return list(found.values())


def read_bands(book: ModelBook, sheet: BlockSheet) -> list[Band]:
    """The weights of one sheet as they are read, a band for each head, norm and MLP; scales under
    what is rounded to them."""
    found: dict[str, Band] = {}
    for block in book.blocks:
        if sheet_of(block, book) == sheet:
            band = found.setdefault(Name(block.path).path or block.path, Band())
            if block.op in SCALES:
                band.totals[f"{block.path}.{USED}"] = [block]
            else:
                band.add(block, block.shape[0 if turned(block, book) else 1])
    return list(found.values())


def gradient_bands(book: ModelBook, sheet: BlockSheet) -> list[Band]:
    """The gradients of one sheet's weights, each beside the copy of its weight, if there is one,
    and beside what numbers its rows, if only it reads that."""
    found: dict[str, Band] = {}
    for block in sorted(book.graph, key=lambda block: TURNED not in block.passes):
        of_weights = block.kind == "gradient" or GRADIENT in block.passes
        if of_weights and sheet_of(block, book) == sheet:
            n_cols = block.shape[0 if turned(block, book) else 1]
            reader = block if block.kind == "gradient" else book.graph.readers[block.name][0][0]
            found.setdefault(reader.forward, Band()).add(block, n_cols)
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
            sheet.hold(row, MARGIN, text, "equation")
            row += 1
        elif block.kind == "table":
            sheet.put(row, MARGIN, _of_cuts(book, block), "equation")
            row += 1
    bottom = row
    for block, left in band.across:
        place = Place(block, sheet.name, row + 2, left + 1, turned(block, book))
        settle(book, sheet, place)
        sheet.put(row, left + 1, caption(block), "block")
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
            "{name}: a row for each token, made of the stream that is seen there", name=block.name
        )
    *_, made = (other for other in book.graph if other.passes == block.passes)
    return worded(
        "{name}: what {made} is made of at one token: the stream less what is cut",
        name=block.name,
        made=made.own,
    )


def caption(block: Block) -> str:
    """A block's caption on its sheet: its leaf, with its head or norm, or with the weight that it
    belongs to."""
    if is_copy(block):
        return f"{block.inside[-1]}ᵀ"
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
        area = Rect(place.top - 1, place.top, place.left, place.left + n)
        sheet.runs.append(Run(area, "label number"))
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
    for n, k in enumerate(numbers):
        i, j = (0, n) if across else (n, 0)
        if table:
            table.put(i, j, token_text(book, k, axis), "word" if style == "label" else style)
        elif axis in book.labels:
            sheet.hold(at[0] + i, at[1] + j, book.labels[axis][k], style)
        elif axis:
            number = "label number" if style == "label" else style
            sheet.put(at[0] + i, at[1] + j, k, number)


def token_text(book: ModelBook, k: int, axis: str = "token") -> Area:
    """The cell that shows the text of token k, of the second sentence if the axis is its."""
    return token_texts(book, axis)[0, k]


def token_texts(book: ModelBook, axis: str = "token") -> Area:
    """The row of cells on Play that show the texts of all tokens."""
    n = book.passage.n_source if axis == SOURCE else len(book.passage.ids)
    end = PROMPT_COL + n
    return book.sheet(PLAY)[book.plan.rows_of_tokens[axis], PROMPT_COL:end]


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


def page(book: ModelBook, name: str) -> Composer:
    """A page's sheet, with its title; content goes below the line with its purpose."""
    dress(book, book.sheet(name))
    return Composer(book, name, TITLE_ROWS + 1)


def dress(book: ModelBook, sheet: Sheet) -> None:
    """Add the top of a sheet: its title, links to Start and Play; frozen."""
    sheet.hold(0, 0, f"{book.title} · {sheet.name}", "title")
    sheet.link(1, 0, "← Start", "Start!A1")
    if sheet.name != PLAY:
        sheet.link(1, 1, AsIs(PLAY), f"{PLAY}!A1")
    sheet.frozen = (TITLE_ROWS - 1, 0)
