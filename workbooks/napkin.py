"""napkin: the weights of thirteen models, counted part by part from their sizes.

A column is a model: its sizes are typed, its weights counted, and held against the rule 12·L·d².
Look at what the rule leaves out. Try a misprinted vocabulary, and a model with fewer experts.
"""

from collections.abc import Mapping

import numpy as np

from engine.cells.access import Rect
from exporters.book import Book, Chart, Series
from exporters.by_hand import Comparison, Table, Workbook, Worksheet, near
from exporters.story import Story, Suggestion
from workbooks._napkin import FORMULAS, LABELS, MODELS, SIZES, count

TOPIC = "Sizes"
TITLE = "napkin: the weights of thirteen models, counted from their sizes"
FIVE = ("GPT-1", "GPT-2 small", "GPT-2 XL", "GPT-3", "DeepSeek V3")
SEVEN = ("ViT-Tiny", "ViT-Base", "ViT-Large", "GPT-2 small", "GPT-3", "BERT base", "BERT large")
SMALL_AND_7B = ("GPT-2 small", "Llama 7B")
Printed = tuple[str, tuple[str, ...], Mapping[str, tuple[float, ...]]]
PRINTED: list[Printed] = [
    ("introduction", FIVE[1:], {
        "billions": (0.124, 1.5, 175, 671), "d_model": (768, 1600, 12288, 7168),
        "d_mlp": (3072, 6400, 49152, 18432), "n_heads": (12, 25, 96, 128),
        "d_head": (64, 64, 128, 56), "n_layers": (12, 48, 96, 61),
        "d_vocab": (5025, 50257, 50257, 129280), "n_ctx": (1024, 2048, 2048, 163840)}),
    ("slides", FIVE, {
        "d_model": (768, 768, 1600, 12288, 7168), "d_head": (64, 64, 64, 128, 128),
        "d_mlp": (3072, 3072, 6400, 49152, 18432), "n_heads": (12, 12, 25, 96, 128),
        "n_layers": (12, 12, 48, 96, 61), "n_ctx": (512, 1024, 1024, 2048, 128000),
        "d_vocab": (40478, 50257, 50257, 50257, 128000)}),
    ("slides", (FIVE[0], *FIVE[2:4]), {"billions": (0.117, 1.5, 175)}),
    ("slides, size of W_E", ("GPT-3",), {"d_model": (12888,), "d_vocab": (50527,)}),
    ("slides, about 1%", ("GPT-3", "DeepSeek V3"), {"ends": (0.01, 0.01)}),
    ("slides, about 2/3", ("GPT-3",), {"mlps_share": (0.67,)}),
    ("notes", SEVEN, {
        "n_layers": (12, 12, 24, 12, 96, 12, 24), "n_heads": (3, 12, 16, 12, 96, 12, 16),
        "d_model": (192, 768, 1024, 768, 12288, 768, 1024)}),
    ("notes", ("GPT-3",), {"d_mlp": (49152,), "d_head": (128,), "d_vocab": (50257,)}),
    ("essay", SMALL_AND_7B, {
        "n_layers": (12, 32), "d_model": (768, 4096), "n_heads": (12, 32), "d_head": (64, 128),
        "d_mlp": (3072, 11008), "d_vocab": (50257, 32000)}),
    ("essay", ("Llama 7B",), {"billions": (7,)}),
]  # fmt: skip
FIRST_COUNT = "printed 1.5; the sizes give 1.558. OpenAI's own first count, 1.542, was too low"
NOTES = {
    ("introduction", "billions", "GPT-2 XL"): FIRST_COUNT,
    ("slides", "billions", "GPT-2 XL"): FIRST_COUNT,
    ("introduction", "d_head", "DeepSeek V3"):
        "printed 56 = 7168 / 128; its heads are 128 wide, together 16384, wider than d_model",
    ("introduction", "d_vocab", "GPT-2 small"): "printed 5025: the last digit of 50257 is lost",
    ("introduction", "n_ctx", "GPT-2 XL"): "printed 2048; every GPT-2 has 1024 positions",
    ("slides", "n_ctx", "DeepSeek V3"):
        "printed 128k, the length it was made for; its published settings allow 163840",
    ("slides", "d_vocab", "DeepSeek V3"): "printed 128k, rounded; 129280 tokens",
    ("slides, size of W_E", "d_model", "GPT-3"): "printed 12888; W_U beside it has 12288",
    ("slides, size of W_E", "d_vocab", "GPT-3"): "printed 50527 once; 50257 elsewhere",
    ("slides, about 1%", "ends", "DeepSeek V3"): "printed about 1%; 0.3%",
    ("slides, about 2/3", "mlps_share", "GPT-3"): "printed about 2/3; 66.4%",
}  # fmt: skip
Cells = dict[str, tuple[Table, int]]  # where a row of sizes or counts stands


def book() -> Book:
    """The workbook."""
    w, c = Workbook("napkin"), count()
    sizes = w.sheet("Sizes", "what is typed, one model a column; its total follows below")
    counts = w.sheet("Count", "the weights: in one layer, part by part, in all, and as shares")
    rule = w.sheet("Rule", "12 · n_layers · d_model² beside the exact count")
    for ws in (sizes, counts, rule):
        ws.widths({0: 32} | {1 + j: 16 if c["total"][j] > 1e10 else 13 for j in range(len(MODELS))})
    typed = sizes.table("sizes", list(SIZES.values()), None, [LABELS[key] for key in SIZES], MODELS,
                        style="input setting")  # fmt: skip
    sizes.text("n_ctx of ViT: 14 · 14 patches and a class token. GPT-3: taken to be built as GPT-2")
    cells = {key: (typed, i) for i, key in enumerate(SIZES)}
    counts.heading("The weights of one layer")
    counts.text(
        "W_Q, W_K, W_V: d_model × n_heads · d_head, or d_model × r and r × n_heads · d_head",
        "MLP: d_model × d_mlp and back; gated, d_model × d_mlp twice and back",
        style="equation",
    )
    rows(counts, "layer", cells)
    counts.heading("All weights: a part of one layer times n_layers, and what stands outside them")
    rows(counts, "parts", cells)
    totals = rows(counts, "totals", cells)
    rows(counts, "active", cells)
    counts.heading("The share of each part")
    shares = rows(counts, "shares", cells, "percent")
    counts.shade(shares.rect, "bar")
    rows(sizes, "units", cells, "step green")
    the_rule(rule, cells)
    w.compare(compared(cells))
    w.checks([
        ("the shares of every model sum to 1", near(f"SUM({shares.all()})", len(MODELS))),
        ("for a token no model uses more than it has", f"MIN({totals.row(1)})>=0"),
    ])  # fmt: skip
    return w.done(story())


def rows(ws: Worksheet, name: str, cells: Cells, style: str = "thousands") -> Table:
    """A table of named formulas, a row each; `cells` says where the names in them stand."""
    formulas, counts = FORMULAS[name], count()
    texts, names = list(formulas.values()), [LABELS[key] for key in formulas]

    def formula(i: int, j: int) -> str:
        return texts[i].format_map({key: table.at(row, j) for key, (table, row) in cells.items()})

    values = [counts[key] for key in formulas]
    table = ws.table(name, values, formula, names, MODELS, style=style)
    cells |= {key: (table, i) for i, key in enumerate(formulas)}
    return table


def the_rule(ws: Worksheet, cells: Cells) -> None:
    """The rule, what it is of the exact count, and a chart of that."""
    ws.heading("Attention is 4 · d_model² a layer, an MLP 8: the rule leaves out the rest")
    rows(ws, "rule", cells)
    ratios = rows(ws, "ratios", cells, "live percent")
    names = Rect(ratios.rect.top - 1, ratios.rect.top, 1, 1 + len(MODELS))
    series = [
        Series("of all weights", names, ratios.part(slice(0, 1))),
        Series("of attention and MLPs", names, ratios.part(slice(1, 2))),
    ]
    ws.chart(Chart(ws.cursor + 1, 0, "column", "The rule as a share of the exact count", series,
                   (1100, 320)))  # fmt: skip


def compared(cells: Cells) -> list[Comparison]:
    """Every figure that the sources print, beside its cell."""
    found = []
    for source, models, figures in PRINTED:
        for key, printed in figures.items():
            for model, number in zip(models, printed, strict=True):
                table, i = cells[key]
                what = f"{source}: {LABELS[key]} of {model}"
                decimals = len(f"{number}".partition(".")[2])
                note = NOTES.get((source, key, model), "")
                found.append(
                    Comparison(what, number, table, i, MODELS.index(model), note, decimals)
                )
    return found


def edited(key: str, model: str, size: float) -> dict[str, float]:
    """The counts of a model when one of its sizes is another."""
    j = MODELS.index(model)
    sizes = {k: np.array(v, float) for k, v in SIZES.items()}
    sizes[key][j] = size
    return {k: v[j] for k, v in count(sizes).items()}


def spot(key: str, model: str) -> tuple[str, int, int]:
    """The cell of a size."""
    return "sizes", list(SIZES).index(key), MODELS.index(model)


def story() -> Story:
    """What the start sheet says; what its edits do is computed here."""
    c = {key: dict(zip(MODELS, values, strict=True)) for key, values in count().items()}
    small, deep = MODELS.index("GPT-2 small"), MODELS.index("DeepSeek V3")
    lost = edited("d_vocab", "GPT-2 small", 5025)["millions"]
    untied = edited("tied", "GPT-2 small", 0)["millions"]
    large = edited("tied", "GPT-3", 0)["total"] / c["total"]["GPT-3"] - 1
    few = edited("routed", "DeepSeek V3", 8)["billions"]
    was = c["millions"]["GPT-2 small"]
    return Story(
        title=TITLE,
        source="After an introduction to transformers, lecture slides, notes and an essay.",
        about=[
            "Sources print sizes and totals; here every total is counted from the sizes, live.",
            f"12 · n_layers · d_model² is {c['r_layers']['GPT-3']:.2%} of attention and MLPs in "
            f"GPT-3, but {c['r_total']['GPT-2 small']:.0%} of all of GPT-2 small.",
            "GPT-1 has 117M, as told. GPT-2 small was told to have as many; it has 124M.",
            "DeepSeek V3 goes by other rules: low ranks for Q, K and V, and 256 experts.",
            "Its heads are not d_model / n_heads wide, and its d_mlp is that of 3 layers of 61.",
        ],
        look=[
            "Sizes: type here; totals are below. Count: each part, and its share. Rule: a chart.",
            "Printed: all figures of the sources; those that are wrong are marked.",
        ],
        tries=[
            Suggestion(f"Type 5025, as one source misprints it: GPT-2 small shrinks from {was:.1f} to "
                f"{lost:.1f} million.",
                spot("d_vocab", "GPT-2 small"), 5025.0, ("units", 0, small), lost),
            Suggestion(f"Type 0: with a W_U of its own it has {untied:.1f} million instead of "
                f"{was:.1f}, {untied / was - 1:.0%} more; GPT-3 would have {large:.1%} more.",
                spot("tied", "GPT-2 small"), 0.0, ("units", 0, small), untied),
            Suggestion(f"Type 8: of {c['billions']['DeepSeek V3']:.0f} billion {few:.1f} are left: but "
                "for the router, those that one token uses.",
                spot("routed", "DeepSeek V3"), 8.0, ("units", 1, deep), few),
        ],
    )  # fmt: skip
