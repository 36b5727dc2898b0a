"""Map: the architecture as a linked diagram, from the prompt down to the probabilities.

One box per step of the forward pass, with its shape and the parameters that it has; a box leads to
its cells. The residual stream is the line on the left that every sublayer reads and adds to.
"""

from exporters import layout, words
from exporters.book import Book, Sheet

SHEET = "Map"
STREAM, NAME, SHAPE, PARAMETERS, MEANING = range(5)
STREAM_LEAVES = ("resid_pre", "resid_mid", "resid_post", "resid_final", "embed")
# what a box stands for: the last block of the step, and the weights under these parts
SUBLAYERS = (
    ("ln1.out", ("ln1.",)), ("attn_out", ("attn.",)), ("resid_mid", ()),
    ("ln2.out", ("ln2.",)), ("mlp_out", ("mlp.",)), ("resid_post", ()),
)  # fmt: skip


def page(book: Book) -> None:
    """Every step of the forward pass, top to bottom."""
    sheet = book.sheet(SHEET)
    layout.dress(book, sheet)
    sheet.widths = {STREAM: 6, NAME: 30, SHAPE: 30, PARAMETERS: 14, MEANING: 60}
    for col, head in (
        (NAME, "step"),
        (SHAPE, "shape"),
        (PARAMETERS, "parameters"),
        (MEANING, "what it is"),
    ):
        sheet.put(4, col, head, "block")
    row = 5
    for name, parts in steps(book):
        if name in book.graph.blocks:
            row = _box(book, sheet, row, name, parts)
    sheet.put(row + 1, NAME, "in all", "block")
    total = sum(b.whole.size for b in book.graph if b.kind == "weight")
    sheet.put(row + 1, PARAMETERS, float(total), "thousands")


def steps(book: Book) -> list[tuple[str, tuple[str, ...]]]:
    """The block of every step, and the prefixes of its weights."""
    unembedding = () if book.graph.spec.tied else ("W_U",)
    found: list[tuple[str, tuple[str, ...]]] = [
        ("tokens", ()), ("embed", ("W_E", "queries")), ("pos_embed", ("W_pos",)),
    ]  # fmt: skip
    for layer in range(book.graph.spec.n_layers):
        b = f"blocks.{layer}."
        found.append((f"{b}resid_pre", ()))
        found += [(b + name, tuple(b + p for p in parts)) for name, parts in SUBLAYERS]
    return [
        *found,
        ("resid_final", ()),
        ("ln_final.out", ("ln_final.",)),
        ("logits", unembedding),
        ("probs", ()),
    ]


def _box(book: Book, sheet: Sheet, row: int, name: str, parts: tuple[str, ...]) -> int:
    block = book.graph[name]
    in_stream = block.leaf in STREAM_LEAVES
    sheet.put(row, STREAM, "●" if in_stream else "│", "stream")
    sheet.link(row, NAME, name, book.area(name))
    sheet.put(row, SHAPE, words.shape(block), "box stream" if in_stream else "box")
    weights = [b for b in book.graph if b.kind == "weight" and b.name.startswith(parts or ("\0",))]
    if weights:
        size = float(sum(b.whole.size for b in weights))
        first = book.places[weights[0].name]
        sheet.put(row, PARAMETERS, size, "thousands")
        sheet.link(row, PARAMETERS + 2, f"weights: {first.sheet}", book.area(weights[0].name))
    text = words.meaning(block)
    heads = [
        b.name
        for b in book.graph
        if b.leaf == "pattern" and name.endswith("attn_out") and b.name.startswith(name[:-4])
    ]
    if heads:
        text += f": {len(heads)} heads"
        for h, pattern in enumerate(heads):
            sheet.link(row, PARAMETERS + 3 + h, f"h{h}", book.area(pattern))
    sheet.put(row, MEANING, text)
    return row + 1
