"""Map: the architecture as a linked diagram, from the prompt down to the probabilities.

One box per step of the forward pass, with its shape and its number of parameters, linked to its
cells. The residual stream is the line on the left that every sublayer reads and adds to.
"""

from cellformer.engine.cells.block import Block
from cellformer.engine.cells.language import AsIs, worded
from cellformer.engine.cells.name import ENCODER, Name
from cellformer.engine.models.spec import TwoStackSpec
from cellformer.exporters.compose.book import Sheet
from cellformer.exporters.model import layout, words
from cellformer.exporters.model.model_book import ModelBook

SHEET = "Map"
PURPOSE = "the architecture from top to bottom; click a step to see its cells"
AFTER = "Printed"
STREAM, NAME, SHAPE, PARAMETERS, MEANING, LINKS = range(6)
STREAM_LEAVES = ("resid_pre", "resid_mid", "resid_cross", "resid_post", "resid_final", "embed")
HEADS = ("", "step", "shape", "parameters", "meaning")

Steps = tuple[tuple[str, tuple[str, ...]], ...]
# what a box stands for: the last block of the step, and the weights under these parts
ONCE: Steps = (
    ("tokens", ()),
    ("embed", ("W_E", "queries", "W_project_E")),
    ("pos_embed", ("W_pos",)),
    ("segment_embed", ("W_segment",)),
    ("ln_embed.out", ("ln_embed.",)),
    ("resid_final", ()),
    ("ln_final.out", ("ln_final.",)),
    ("head.post", ("head.",)),
    ("logits", ("W_project_U", "b_U", "W_U")),
    ("probs", ()),
    ("vector", ("dense.",)),
    ("cosine", ()),
)
OF_LAYER: Steps = (
    ("resid_pre", ()),
    ("ln1.out", ("ln1.",)),
    ("attn_out", ("attn.",)),
    ("conv_out", ("conv.",)),
    ("ssm_out", ("ssm.",)),
    ("mixed_out", ()),
    ("time_out", ("time.",)),
    ("ln1_post.out", ("ln1_post.",)),
    ("resid_mid", ()),
    ("ln_cross.out", ("ln_cross.",)),
    ("cross_out", ("cross.",)),
    ("resid_cross", ()),
    ("ln2.out", ("ln2.",)),
    ("mlp_out", ("mlp.",)),
    ("ln2_post.out", ("ln2_post.",)),
    ("resid_post", ()),
)


def add(book: ModelBook) -> None:
    """Every step of the forward pass, top to bottom."""
    sheet = book.sheet(SHEET)
    layout.dress(book, sheet)
    sheet.widths = {STREAM: 9, NAME: 26, SHAPE: 27, PARAMETERS: 13, MEANING: 52, LINKS: 20}
    sheet.lines(4, [HEADS], dict.fromkeys(range(5), "block") | {PARAMETERS: "head"})
    row = 5
    for name, parts in steps(book):
        row = _box(book, sheet, row, name, parts)
    total = float(sum(b.whole.size for b in book.graph if b.kind == "weight"))
    sheet.lines(row + 1, [("in all", total)], {NAME: "block", PARAMETERS: "thousands"})


def steps(book: ModelBook) -> list[tuple[str, tuple[str, ...]]]:
    """The block of every step, and the prefixes of its weights."""
    spec, order = book.model.spec, {name: k for k, name in enumerate(book.graph.blocks)}
    stacks = {"": spec.n_layers}
    if isinstance(spec, TwoStackSpec):  # whose encoder's token vectors may be the decoder's
        stacks[f"{ENCODER}."] = spec.n_encoder_layers
    found = [
        (path + name, tuple(path + part for part in parts))
        for stack, n_layers in stacks.items()
        for path, own in (
            (stack, ONCE),
            *((f"{stack}blocks.{n}.", OF_LAYER) for n in range(n_layers)),
        )
        for name, parts in own
    ]
    there = [step for step in found if step[0] in order]
    return sorted(there, key=lambda step: (not Name(step[0]).passes, order[step[0]]))


def _box(book: ModelBook, sheet: Sheet, row: int, name: str, parts: tuple[str, ...]) -> int:
    block = book.graph[name]
    in_stream = block.leaf in STREAM_LEAVES
    sheet.put(row, STREAM, "●" if in_stream else "│  ↔", "stream")
    sheet.link(row, NAME, AsIs(name if in_stream else f"      {name}"), book.address(block.area))
    sheet.put(row, SHAPE, words.shape(block), "box stream" if in_stream else "box")
    weights = [b for b in book.graph if b.kind == "weight" and b.name.startswith(parts)]
    if weights:
        first = book.places[weights[0].name]
        sheet.put(row, PARAMETERS, float(sum(b.whole.size for b in weights)), "thousands")
        sheet.link(
            row, LINKS, worded("its {sheet}", sheet=first.sheet), book.address(first.block.area)
        )
    sheet.hold(row, MEANING, "  " + words.meaning(block), "text")
    for k, (part, inside) in enumerate(members(book, name).items()):
        sheet.link(row, LINKS + 1 + k, AsIs(part), book.address(inside.area))
    return row + 1


def members(book: ModelBook, name: str) -> dict[str, Block]:
    """The parts of a sublayer, each with the block to link to: the heads of attention, or the
    router and the experts of a mixture."""
    sublayer = Name(name)
    part = sublayer.leaf.removesuffix("_out")
    of_heads = ("pattern",)
    leaves = {"attn": of_heads, "cross": of_heads, "mlp": ("share", "post")}.get(part, ())
    beside = (b for b in book.graph if b.layer == sublayer.layer and b.passes == sublayer.passes)
    found = (b for b in beside if b.part == part and b.leaf in leaves and b.inside[1:])
    return {block.inside[1]: block for block in found}
