"""Sheet Study: the source's table of shapes, each step with links to its cells."""

from collections.abc import Iterator
from typing import NamedTuple

from cellformer.exporters.assemble.transformer import STUDY
from cellformer.exporters.compose.book import Sheet
from cellformer.exporters.model import layout
from cellformer.exporters.model.model_book import ModelBook
from cellformer.workbooks.two_layers.fitting import N_HEADS

LAYERS = ("blocks.0", "blocks.1")


class Shape(NamedTuple):
    """A row of the source's table of shapes."""

    step: str
    operation: str
    printed: str
    leaf: str  # the block, without its layer or head
    of: str = "layer"  # what has one: a "layer", a "head", or the "model"


SHAPES = (
    Shape("token ids", "typed on Play", "[T] = [3]", "tokens", "model"),
    Shape("h⁰, then h¹", "embedding + position, then the output of layer 0", "3 × 6", "resid_pre"),
    Shape("Q", "h W_Q, split into two heads", "3 × 6; 3 × 3, ×2", "q", "head"),
    Shape("K", "h W_K, split into two heads", "3 × 6; 3 × 3, ×2", "k", "head"),
    Shape("V", "h W_V, split into two heads", "3 × 6; 3 × 3, ×2", "v", "head"),
    Shape("scores", "Q Kᵀ / √d_k, in each head", "3 × 3 per head", "scores", "head"),
    Shape("weights", "causal mask, softmax", "3 × 3 per head", "pattern", "head"),
    Shape(
        "head output; concat",
        "weights · V; both heads side by side",
        "3 × 3 per head; 3 × 6",
        "z",
        "head",
    ),
    Shape("part of one head", "head output · the head's rows of W_O", "", "result", "head"),
    Shape("write-back", "concat · W_O = sum of both heads' parts", "3 × 6", "attn_out"),
    Shape("h_mid", "h + write-back", "3 × 6", "resid_mid"),
    Shape("MLP pre-activation", "h_mid W_1", "3 × 8", "mlp.pre"),
    Shape("MLP activation", "ReLU", "3 × 8", "mlp.post"),
    Shape("MLP output", "activation · W_2", "3 × 6", "mlp_out"),
    Shape("h¹, then h²", "h_mid + MLP output", "3 × 6", "resid_post"),
    Shape("logits", "h² U, but the source uses only the last row", "[V]", "logits", "model"),
    Shape("distribution", "softmax (ten values sum to 1.00, so V is 10)", "[V]", "probs", "model"),
)
STUDY_HEADS = ("step", "operation", "shape as printed", "here", "layer 0", "", "layer 1", "")
LINKS = 4  # the column that the ways to layer 0 begin in; those to layer 1 stand two further


def study(book: ModelBook) -> None:
    """Add the source's table of shapes, each row with links to its cells."""
    sheet, top = book.sheet(STUDY), 5
    layout.dress(book, sheet)
    sheet.purpose = "the table of shapes: every step, as printed and in this workbook"
    sheet.widths = {0: 20, 1: 46, 2: 22, 3: 12} | dict.fromkeys(range(LINKS, 8), 14)
    title = f"From token ids to a distribution: T = {len(book.passage.ids)}, d_model = 6, V = 10"
    sheet.put(top - 1, 0, title, "heading")
    sheet.across(top, 0, STUDY_HEADS, "block")
    for row, shape in enumerate(SHAPES, top + 1):
        shape_row(book, sheet, row, shape)


def shape_row(book: ModelBook, sheet: Sheet, row: int, shape: Shape) -> None:
    """Add one step: the source's shape, the shape here, and links to its blocks."""
    sheet.across(row, 0, (shape.step, shape.operation, shape.printed), "text")
    for col, name, text in blocks_of(shape):
        sheet.link(row, col, f"→ {text}", book.area(name))
    rows, cols = book.graph[name].shape  # they are all of one shape
    each = f", ×{N_HEADS}" if shape.of == "head" else ""
    sheet.put(row, 3, f"{rows} × {cols}{each}")


def blocks_of(shape: Shape) -> Iterator[tuple[int, str, str]]:
    """The blocks of a step: the column of each one's link, its name, the link's text."""
    if shape.of == "model":
        yield LINKS, shape.leaf, shape.leaf
        return
    for n, layer in enumerate(LAYERS):
        col = LINKS + 2 * n
        if shape.of == "layer":
            yield col, f"{layer}.{shape.leaf}", shape.leaf.split(".")[-1]
        else:
            yield from (
                (col + h, f"{layer}.attn.h{h}.{shape.leaf}", f"head {n}.{h}")
                for h in range(N_HEADS)
            )
