"""The sheet of each block of a model, and the purpose of each such sheet."""

from collections.abc import Callable
from typing import NamedTuple

from cellformer.engine.cells.access import Rect
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.language import worded
from cellformer.engine.cells.name import (
    CLEAN,
    CUT,
    ENCODER,
    GRADIENT,
    NUDGED,
    OTHER,
    PATH,
    SECOND,
    TURNED,
    USED,
)
from cellformer.engine.models.adapter import ADAPTER, MERGE
from cellformer.engine.studies import addition
from cellformer.exporters.compose import theme
from cellformer.exporters.compose.book import Sheet
from cellformer.exporters.model.model_book import ModelBook
from cellformer.exporters.model.orientation import SCALES

HEADINGS = 3  # rows above a table: its equation and its labels, and a blank one
PROMPT_COL = 2  # on Play: of the sentence, and of its first token
PLAY, SWITCHES, LENS, ATTRIBUTION = "Play", "Switches", "Lens", "Attribution"
BESIDE = ("mean_ablation", MERGE)  # settings that stand beside what they switch
AS_READ = "Used"
AFTER_STEP = "Nudged"  # what begins the name of a sheet of the pass after a step
MOVED = "the weights after the step: old weight − learning rate × gradient"
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
    "Block": (
        "Embedding",
        "step by step, from the stream before a layer to the stream after the layer",
    ),
    "Readout": ("Block", "from the last residual stream to logits and probabilities"),
    "Backward": ("Readout", "the gradient of {gradient_of} for every cell, computed backward"),
    "Gradient": ("Backward", "the gradient of {gradient_of} for every weight, beside the weight"),
    "Turned": ("Backward", "the transposed weights, which Backward uses"),
    AFTER_STEP: ("Gradient", MOVED),
    OF_OTHER: ("Block", "the other sentence, with the values for Patch"),
    UNPATCHED: (OF_OTHER, "this sentence, with all switches of Patch off"),
    ON_PATH: (
        UNPATCHED,
        "the change that the path on the sheet Patch carries from sender to receiver",
    ),
    WITH_CUTS: ("Graph", "the forward pass without the edges that you cut on the sheet Graph"),
    "Weights": ("Words", "embeddings and weights of the last norm; you can type over blue cells"),
    "Vocabulary": ("Weights", "the embedding, one column per word; you can type over blue cells"),
    AS_READ: ("Vocabulary", "the weights that the model uses, after rounding or with an adapter"),
}


def kind_of(name: str) -> str:
    """The kind of sheet that a name is of: the encoder's weights stand with the decoder's."""
    first, *others = name.split(" ")
    return others[0] if first == OF_ENCODER and others[:1] == ["Weights"] else first


class Again(NamedTuple):
    """The name, purpose and colour of the sheets of a second pass."""

    before: str  # the name of such a sheet begins with it
    purpose: str
    tab: str = ""  # its colour


AGAIN = {
    NUDGED: Again(AFTER_STEP, "after the step: {purpose}"),
    OTHER: Again(OF_OTHER, "the other sentence: {purpose}", theme.OTHER),
    CLEAN: Again(UNPATCHED, "without any patch: {purpose}", theme.CLEAN),
    SECOND: Again("", "the second sentence: {purpose}"),
    ENCODER: Again(OF_ENCODER, "the encoder: {purpose}"),
}
LAST_OF_ENCODER = "the encoder’s last vectors, for the decoder’s cross attention"


class BlockSheet(NamedTuple):
    """A sheet of blocks: a page's, or one of SHEETS, of a layer or of the steps around them."""

    kind: str
    layer: int | None = None
    passes: tuple[str, ...] = ()  # of AGAIN

    @property
    def name(self) -> str:
        kind = "Output" if ENCODER in self.passes and self.kind == "Readout" else self.kind
        words = [AGAIN[name].before for name in AGAIN if name in self.passes]
        words += [kind, "" if self.layer is None else str(self.layer)]
        return " ".join(filter(None, [*words, SECOND * (SECOND in self.passes)]))

    @property
    def tab(self) -> str:
        """The colour of its tab."""
        return "".join(AGAIN[name].tab for name in self.passes)

    def purpose(self, gradient_of: str) -> str:
        """Its purpose, in a line; `gradient_of` is what gradients are of."""
        if NUDGED in self.passes and self.kind == "Weights":
            return MOVED
        if self.passes == (ENCODER,) and self.kind == "Readout":
            return worded(LAST_OF_ENCODER)
        what = worded(SHEETS[self.kind][1], gradient_of=worded(gradient_of))
        if self.layer is not None and self.kind in ("Block", "Weights", AS_READ):
            what = worded("you can change weights") if self.kind == "Weights" else what
            what = worded("layer {layer}: {what}", layer=self.layer, what=what)
        for name in reversed([name for name in AGAIN if name in self.passes]):
            what = worded(AGAIN[name].purpose, purpose=what)
        return what


def sheet_of(block: Block, book: ModelBook) -> BlockSheet:
    """The sheet of a block: a page's, for settings and choices; or else its layer's sheet, or
    the sheet of the steps before or after the layers. It is found once: the layout asks often."""
    if block.name not in book.standing:
        book.standing[block.name] = _sheet_of(block, book)
    found: BlockSheet = book.standing[block.name]
    return found


def _sheet_of(block: Block, book: ModelBook) -> BlockSheet:
    if not _is_backward(block) and (sheet := addition.sheet_of(block, book.graph)):
        return BlockSheet(sheet)
    for again in (NUDGED, OTHER, CLEAN):
        if again in block.passes and (again == NUDGED or not _is_backward(block)):
            first = sheet_of(book.graph[block.own], book)
            return first._replace(passes=(again, *first.passes))
    if block.kind == "gradient":
        return _of_gradient(block, book)
    for sheet, is_of in PAGES:
        if is_of(block):
            return BlockSheet(sheet)
    passes = tuple(name for name in (SECOND, ENCODER) if name in block.passes)
    if block.kind == "computed":
        if block.leaf == USED or block.op in SCALES or block.part == ADAPTER:
            return BlockSheet(AS_READ, block.layer, passes)
        outside = "Embedding" if (block.part or block.leaf) in BEFORE_LAYERS else "Readout"
        return BlockSheet(outside if block.layer is None else "Block", block.layer, passes)
    if block.kind == "weight" and not book.by_hand:
        return BlockSheet("Weights", block.layer, passes)
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
    return BlockSheet(kind, block.layer, (ENCODER,) if ENCODER in block.passes else ())


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


def print_one_head(sheet: Sheet, place: BlockSheet) -> None:
    """Print only the tables of the first head of the first layer, up to its output from the
    values."""
    rects = {p.block: p.rect(p.block.whole) for p, _ in sheet.regions}
    head = next((block.head for block in rects if block.head), None)
    if place != BlockSheet("Block", 0) or head is None:
        sheet.prints = "nothing"
        return
    first = [r for block, r in rects.items() if block.head == head and block.leaf != "result"]
    top = min(rect.top for rect in first) - HEADINGS
    bottom, right = max(rect.bottom for rect in first), max(rect.right for rect in first)
    sheet.print_area, sheet.prints = Rect(top, bottom, 0, right), "all"
