"""napkin: how many weights a model has: the rule 12·L·d², and thirteen models counted part by part.

A column is a model: its sizes are typed, its weights counted, and compared with the rule 12·L·d².
Look at what the rule leaves out. Try a misprinted vocabulary, and a model with fewer experts.
"""

from collections.abc import Mapping
from dataclasses import fields

from cellformer.engine.cells.expression import Area
from cellformer.engine.cells.functions import MIN, SUM
from cellformer.exporters.assemble.worksheets import Workbook, near
from cellformer.exporters.compose.book import Book, Chart, Series
from cellformer.exporters.compose.composer import Composer, Formula
from cellformer.exporters.compose.story import Story
from cellformer.workbooks.napkin import counts, first, sizes, training
from cellformer.workbooks.napkin.counts import Count, Model, Rows
from cellformer.workbooks.napkin.printed import comparisons
from cellformer.workbooks.napkin.sizes import MODELS, SIZES, Sizes

TOPIC, AFTER, LEVEL = "Sizes", "", 2
TITLE = "napkin: how many weights a model has, from two of its sizes"


def book() -> Book:
    """The workbook."""
    w = Workbook("napkin")
    w.book.opens_on = "Napkin"
    on_first = w.sheet(
        "Napkin",
        "the rule of thumb, and the parts of each total",
        widths={0: 14, 1: 9, 2: 10, 3: 15, 4: 18, 5: 14, 6: 16},
    )
    on_sizes = w.sheet("Sizes", "one column per model: the typed sizes and the total")
    on_counts = w.sheet(
        "Count", "the weights of one layer and of each part, in total and as shares"
    )
    on_rule = w.sheet("Rule", "12 · n_layers · d_model² beside the exact count")
    totals = promised(on_sizes, "units", counts.UNITS)
    rows = typed_sizes(on_sizes)
    shares = parts_and_totals(on_counts, rows)
    on_sizes.fill(totals, formulas(counts.UNITS, rows), "step green")
    rows |= {key: totals[i, :] for i, key in enumerate(counts.UNITS)}
    rule_of_thumb(on_rule, rows)
    widths = {1 + j: 16 if total > 1e10 else 13 for j, total in enumerate(w.now(rows["total"])[0])}
    for ws in (on_sizes, on_counts, on_rule):
        ws.widths({0: 32, **widths})
    first.fill(w, on_first, rows)
    training.add(w, rows)
    w.compare([*comparisons(rows), *training.comparisons(w)], "Slides, Large and In Charge")
    w.checks([
        ("the shares of every model sum to 1", near(SUM(shares.fixed), len(MODELS))),
        ("no token uses more weights than the model has", MIN(rows["idle"]) >= 0),
    ])  # fmt: skip
    return w.done(story(w, rows))


def typed_sizes(ws: Composer) -> Rows:
    """The sizes of all models, a row each."""
    names = [field.name for field in fields(Sizes)]
    table = ws.typed(
        "sizes",
        [[getattr(SIZES[model], name) for model in MODELS] for name in names],
        [sizes.LABELS[name] for name in names],
        MODELS,
        style="input setting",
    )
    ws.text(
        "n_ctx of ViT: 14 · 14 patches and a class token. We assume that GPT-3 is built like GPT-2"
    )
    return {name: table[i, :] for i, name in enumerate(names)}


def parts_and_totals(ws: Composer, rows: Rows) -> Area:
    """Add the weights of one layer, of all layers, and in total; returns the parts' shares."""
    ws.heading(
        "The weights of one layer",
        "W_Q, W_K, W_V: d_model × n_heads · d_head, or (low rank) d_model × r and r × n_heads · "
        "d_head",
        "MLP: d_model × d_mlp and d_mlp × d_model; a gated MLP has the first matrix twice",
        style="equation",
    )
    add(ws, "layer", counts.LAYER, rows)
    ws.heading(
        "All weights: each part of a layer times n_layers, plus the weights outside the layers"
    )
    add(ws, "parts", counts.PARTS, rows)
    add(ws, "totals", counts.TOTALS, rows)
    add(ws, "active", counts.ACTIVE, rows)
    ws.heading("The share of each part")
    shares = add(ws, "shares", counts.SHARES, rows, "percent")
    ws.dress(shares, "bar")
    return shares


def add(
    ws: Composer, name: str, table: Mapping[str, Count], rows: Rows, style: str = "thousands"
) -> Area:
    """Add a table of counts, a row each, and add these rows to `rows`, which their formulas
    read."""
    area = promised(ws, name, table)
    ws.fill(area, formulas(table, rows), style)
    rows |= {key: area[i, :] for i, key in enumerate(table)}
    return area


def promised(ws: Composer, name: str, table: Mapping[str, Count]) -> Area:
    """The place of a table of counts, a row each."""
    return ws.promised(
        name, (len(table), len(MODELS)), [count.label for count in table.values()], MODELS
    )


def formulas(table: Mapping[str, Count], rows: Rows) -> Formula:
    """The formulas of a table of counts."""
    found = [count.of for count in table.values()]
    return lambda i, j: found[i](Model(rows, j))


def rule_of_thumb(ws: Composer, rows: Rows) -> None:
    """Add the rule, its ratio to the exact count, and a chart of that."""
    ws.heading(
        "Attention: 4 · d_model² per layer; MLP: 8 · d_model². The rule omits all other weights"
    )
    add(ws, "rule", counts.RULE, rows)
    top, _, left, right = ws.rect(add(ws, "ratios", counts.RATIOS, rows, "live percent"))
    models = ws.sheet[top - 1, left:right]
    series = [
        Series("of all weights", models, rows["r_total"]),
        Series("of attention and MLPs", models, rows["r_layers"]),
    ]
    ws.chart(
        Chart(
            ws.cursor + 1,
            0,
            "column",
            "The rule as a share of the exact count",
            series,
            size=(1100, 240),
        )
    )


LOOK = [
    "On the sheet Napkin, type two sizes of a model from the news. Below, you see thirteen "
    "totals, and the parts of each total.",
    "The sheet Sizes has all typed numbers, with the totals. The sheet Count shows every part of "
    "a model. The sheet Rule shows the rule of thumb.",
    "The sheet Training compares text, computing (FLOP: sums and products), days and dollars "
    "with the slides. Two figures of the slides are 26 times the result of the rule.",
    "The sheet Printed shows the sizes, totals and training figures from the "
    "sources. The sheet marks figures that differ from ours.",
]


def story(w: Workbook, rows: Rows) -> Story:
    """The start sheet's texts, and suggested edits with their computed effects."""
    small, large, deep = (
        Model(rows, MODELS.index(name)) for name in ("GPT-2 small", "GPT-3", "DeepSeek V3")
    )
    untied = {small.tied: 0.0}
    was = w.now(small.millions)
    more = w.edited(untied)(small.millions)
    more_of_large = w.edited({large.tied: 0.0})(large.total) / w.now(large.total) - 1
    return Story(
        title=TITLE,
        source="Based on M. Sinclair, Transformers (lecture slides), A Gentle Introduction to "
        "Transformers, lecture notes, and L. Erzegovesi, QKV Attention, section 4.",
        about=[
            "You can count a model's weights on a napkin: 12 · layers · width². This workbook "
            "also counts the weights of thirteen models part by part.",
            "If you change a size, every total changes. Memory, price and speed depend on the "
            "number of weights. The rule works well for large models.",
            f"The rule gives {w.now(large.r_total):.1%} of all weights of GPT-3, but only "
            f"{w.now(small.r_total):.0%} of the weights of GPT-2 small. In GPT-2 small, the "
            "table of words is a large part.",
            f"For attention and MLPs alone, the rule gives {w.now(small.r_layers):.2%} of the "
            "weights, even in GPT-2 small.",
            "GPT-1 has 117 million weights, as the slides say. For years, people "
            "gave the same number for GPT-2 small. In fact, GPT-2 small has 124 "
            "million.",
            "DeepSeek V3 follows other rules. Its queries, keys and values pass through low "
            "ranks, and its heads are wider than d_model / n_heads.",
            "In 58 of the 61 layers of DeepSeek V3, 256 experts replace the MLP. Each token uses "
            "8 of the experts.",
        ],
        look=LOOK,
        suggestions=[
            w.suggestion(
                "Type ‘5025’, a misprint of the vocabulary size in one source: GPT-2 small has "
                "{then:.1f} million weights, not {now:.1f}.",
                {small.d_vocab: 5025.0},
                small.millions,
            ),
            w.suggestion(
                "Type ‘0’ to give GPT-2 small a separate W_U: the model has {then:.1f} million "
                f"weights, not {{now:.1f}}. The difference is {100 * (more / was - 1):.0f} %. In "
                f"GPT-3, a separate W_U adds only {100 * more_of_large:.1f} %.",
                untied,
                small.millions,
            ),
            w.suggestion(
                "Type ‘8’, for 8 experts instead of 256: {then:.1f} of {now:.0f} billion "
                "weights are left. Each token uses 8 experts, so a token uses about this many "
                "weights.",
                {deep.routed: 8.0},
                deep.billions,
            ),
        ],
    )
