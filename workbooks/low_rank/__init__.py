"""low-rank: large tables as products of two thin ones: of words with names, and in a head.

Look at the table of words that two numbers for each rebuild. Then look at the scores through Q and K and through QK = W_Q W_Kᵀ, at what a head writes through V and
W_O and through OV = W_V W_O, and at the rank: d_head. Try to reduce the rank, and see the cost.
"""

from cellformer.engine.cells.functions import AND, MAX
from cellformer.engine.cells.language import worded
from cellformer.exporters.assemble.matrices import MatrixSheet
from cellformer.exporters.assemble.worksheets import Workbook, near
from cellformer.exporters.compose.book import Book
from cellformer.exporters.compose.story import Story, Suggestion
from cellformer.workbooks.low_rank import example, heads, ranks, sizes
from cellformer.workbooks.low_rank.heads import D_HEAD, HEADS

TOPIC, AFTER, LEVEL = "Inside a block", "norms", 2
TITLE = "low-rank: a large table from a few numbers, as in every head and in LoRA"


def book() -> Book:
    """The workbook."""
    w = Workbook("low-rank")
    w.book.opens_on = "Table"
    first = w.sheet(
        "Table", "a table of words, rebuilt from a few numbers for each word", widths=example.WIDTHS
    )
    ws = w.sheet(
        "Heads",
        "two heads, each computed in two ways (a word is a row: x W)",
        widths=dict.fromkeys(range(1, 22), 6.6),
    )
    page = MatrixSheet(ws, heads.typed(), heads.labels)
    ws.heading("Three words")
    page.given("x", style="input")
    for h in HEADS:
        heads.match(page, h)
        heads.write(page, h)
    heads.add_heads(page)
    ws = w.sheet(
        "Rank",
        "the rank of a matrix is the size of its largest minor that is not 0",
        widths=dict.fromkeys(range(1, 22), 6.6),
    )
    ranking = MatrixSheet(ws)
    ranks.outer(ranking)
    for name in ranks.RANKED:
        ranks.rank(ranking, name)
    sizes.fill(
        w.sheet("Sizes", "numbers that two thin matrices save, in one head and in all heads")
    )
    example.fill(w, first)
    w.compare(sizes.printed(w), "Slides, Output Matrix")
    check(w, page)
    return w.done(story(w))


def check(w: Workbook, page: MatrixSheet) -> None:
    """Claims that hold for any entry, for the sheet Check."""
    scores, outputs = (
        AND(*(near(page[f"{name}_difference_h{h}"].area.fixed, 0) for h in HEADS))
        for name in ("S", "out")
    )
    rank_QK, rank_OV = (page[f"rank_{name}"][0, 0] for name in ("QK_h1", "OV_h1"))
    w.checks(
        [
            ("scores from Q and K equal x QK xᵀ", scores),
            ("a head's output from V and W_O equals pattern x OV", outputs),
            (
                "sum of the heads' outputs = (all z, side by side) × (all W_O, stacked)",
                near(page["out_difference"].area.fixed, 0),
            ),
            ("the rank of QK and of OV is at most d_head", MAX(rank_QK, rank_OV) <= D_HEAD),
        ]
    )


def story(w: Workbook) -> Story:
    """The start sheet's texts, and suggested edits with their computed effects."""
    return Story(
        title=TITLE,
        source="Based on M. Sinclair, Transformers (lecture slides), Output Matrix, and A Gentle "
        "Introduction to Transformers.",
        about=[
            worded(
                "Two numbers for each word rebuild {share:.0%} of a table of eight words: "
                "{kept:.0f} numbers replace 48. Such a table has a low rank.",
                share=w.now(w["share_kept"][0, 0]),
                kept=w.now(w["n_kept"][0, 0]),
            ),
            "Why it matters: the weights of a head have a low rank. LoRA also uses a low rank, "
            "to adapt a large model with few numbers.",
            "A head reads and writes vectors of d_model numbers. Inside the head, the vectors "
            "have only d_head numbers. W_Q and W_K decide where the head looks.",
            "W_V and W_O decide what the head writes. You can multiply each pair to one large "
            "matrix of rank d_head, called QK or OV.",
            "These large matrices show the function of a head (Elhage et al. 2021).",
        ],
        errata=[
            "The slides say that the thin matrices approximate a full matrix. But no full matrix "
            "exists: training learns only the thin matrices.",
            "In the slides a word is a column, so the product has the opposite order. Here a "
            "word is a row, so the product is W_V W_O.",
        ],
        look=[
            "The sheet Table shows eight words, the few numbers kept for each word, and the "
            "table that these numbers rebuild. Type another rank.",
            "On the sheet Heads, the thin matrices give ‘S’ and ‘out’. The large matrices give "
            "the same numbers, as ‘S_circuit’ and ‘out_circuit’.",
            "On the sheet Rank, all 3 × 3 minors of a head's QK and OV are 0, so QK and OV have "
            "rank 2. The sum of the OV of both heads has rank 4.",
            "The sheet Sizes shows how many numbers thin matrices save in GPT-3. In a toy model, "
            "thin matrices save nothing.",
            "Layers and heads are counted from 0: head 0.1 is number 1 in layer 0.",
        ],
        suggestions=suggestions(w),
    )


def suggestions(w: Workbook) -> list[Suggestion]:
    """Three edits: make the columns of W_V multiples of one another; change one number of W_K,
    and with it a score both ways; use GPT-3's d_model from a misprint of the slides."""
    return [
        w.suggestion(
            "Type ‘0’: both columns of W_V now read the same direction, and the rank of OV "
            "goes from {now:.0f} to {then:.0f}.",
            {w["W_V_h1"][2, 1]: 0.0},
            w["rank_OV_h1"][0, 0],
        ),
        w.suggestion(
            "Type ‘3’: a whole column of QK changes, and the score of ‘sat’ for ‘the’ goes "
            "from {now:.3f} to {then:.3f}, in both computations.",
            {w["W_K_h1"][0, 0]: 3.0},
            w["S_circuit_h1"][2, 0],
        ),
        w.suggestion(
            "Type ‘12888’, a misprint of the slides: d_head goes from {now:.0f} to {then:.2f}. "
            "But d_head must be a whole number, so 12888 is wrong.",
            {w["sizes"][0, sizes.GPT_3]: sizes.MISPRINTED},
            w["d_head"][0, sizes.GPT_3],
        ),
    ]
