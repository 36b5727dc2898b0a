"""The sheet Cache: the cost of keys and values, in gigabytes of a graphics card and in money.

The price and the card are examples, to be typed over: a card with 80 GB, rented by the hour.
"""

from cellformer.engine.cells.expression import Area, Expression, expression
from cellformer.engine.cells.functions import IF, INT
from cellformer.engine.cells.language import worded
from cellformer.exporters.assemble.worksheets import Workbook
from cellformer.exporters.compose.book import Chart, Series
from cellformer.exporters.compose.composer import Composer
from cellformer.exporters.compose.sentences import percent, rounded, sentence

MODELS = ("GPT-2 small", "the essay's 7B", "7B, grouped heads")
OURS = 1  # the model of the claim
SIZES = {
    "layers L": (12, 32, 32),
    "tokens T": (1024, 32768, 32768),
    "heads of K and V": (12, 32, 8),
    "numbers per head d_k": (64, 128, 128),
    "bytes per number": (2, 2, 2),
    "weights, billions": (0.124, 7, 7),
}
LAYERS, TOKENS, HEADS, D_K, BYTES, WEIGHTS = range(len(SIZES))
PRICES = {"memory of a card, GB": 80, "rent of a card, dollars an hour": 2.5}
CONTEXTS = [[1024 * 2**k] for k in range(8)]
GB, GIB = expression(10) ** 9, expression(2) ** 30
CHART = 6  # the column in which the chart begins, right of the sizes


def add(w: Workbook) -> None:
    """Add the sheet: the claim, its inputs, the costs, three edits, the growth."""
    ws = w.sheet(
        "Cache",
        "the cost of keys and values: gigabytes of a graphics card, and money",
        widths={0: 32} | dict.fromkeys(range(1, 5), 17) | {5: 2},
    )
    row = ws.cursor
    ws.cursor = row + 3
    ws.text(
        "KV cache = 2 · L · T · h · d_k · bytes; the 2 counts keys and values", style="equation"
    )
    sizes = ws.typed("sizes", list(SIZES.values()), list(SIZES), MODELS, style="input setting")
    values = [[x] for x in PRICES.values()]
    costs(ws, sizes, ws.typed("prices", values, list(PRICES), style="input setting", tight=True))
    claim(ws, row)
    suggest(w, ws)
    growth(ws, sizes, row + 3)


def costs(ws: Composer, sizes: Area, prices: Area) -> None:
    """Add the cache in GB and GiB, how many conversations a card holds beside the weights, and what
    each costs."""
    card, rent = (prices[k] for k in range(len(PRICES)))
    shape = (1, len(MODELS))

    def size(i: int, j: int) -> Expression:
        L, T, h, d_k, n_bytes = (sizes[k, j] for k in range(WEIGHTS))
        return 2 * L * T * h * d_k * n_bytes / (GB, GIB)[i]

    def fit(_: int, j: int) -> Expression:
        weights = sizes[WEIGHTS, j] * sizes[BYTES, j]
        return INT((card - weights) / gigabytes[0, j])

    gigabytes = ws.computed(
        "cache",
        (2, len(MODELS)),
        size,
        ("cache of one conversation, GB", "this cache in GiB (2^30 bytes)"),
        style="readout",
    )
    rows = ["conversations on one card"]
    number = ws.computed("fit", shape, fit, rows, style="thousands", tight=True)
    rows = ["dollars an hour per conversation"]
    ws.computed(
        "price",
        shape,
        lambda _, j: IF(number[0, j] < 1, worded("does not fit"), rent / number[0, j]),
        rows,
        style="readout",
        tight=True,
    )


def claim(ws: Composer, row: int) -> None:
    """Add the claim on top, with the numbers of the essay's model."""
    gigabytes, number = ws["cache"][0, OURS], ws["fit"][0, OURS]
    told = sentence(
        "A conversation of {thousands} thousand tokens needs {gb} GB of memory, and costs "
        "{price} dollars an hour.",
        thousands=rounded(ws["sizes"][TOKENS, OURS] / 1000, 0),
        gb=rounded(gigabytes, 1),
        price=rounded(ws["price"][0, OURS], 2),
    )
    ws.show("claim", (row, 0), told, "heading")
    weights = ws["sizes"][WEIGHTS, OURS] * ws["sizes"][BYTES, OURS]
    told = sentence(
        "The keys and values of this conversation fill {share} of a graphics card. Besides the "
        "model, a card can hold {number} such conversations, which share the rent.",
        share=percent(gigabytes / ws["prices"][0], 0),
        number=number,
    )
    ws.show("meaning", (row + 1, 0), told, "text")
    told = sentence(
        "The weights of the model need {weights} GB, once for all conversations. The cache grows "
        "with every word.",
        weights=rounded(weights, 1),
    )
    ws.show("weights", (row + 2, 0), told, "text")


def growth(ws: Composer, sizes: Area, top: int) -> None:
    """Add the cache against the length of the context, drawn beside the sizes."""

    def size_at(i: int, j: int) -> Expression:
        L, _, h, d_k, n_bytes = (sizes[k, j] for k in range(WEIGHTS))
        return 2 * L * h * d_k * n_bytes * contexts[i] / GB

    ws.heading("GB of keys and values, by length of the context")
    contexts = ws.typed("contexts", CONTEXTS, cols=["tokens"], style="input setting", left=0)
    grown = ws.computed(
        "grown",
        (len(CONTEXTS), len(MODELS)),
        size_at,
        cols=MODELS,
        left=1,
        top=ws.rect(contexts).top - 1,
    )
    series = [Series(MODELS[j], contexts, grown[:, j]) for j in (1, 2)]
    axes, size = ("tokens in the context", "GB"), (480, 290)
    title = "GB of keys and values"
    ws.chart(Chart(top, CHART, "scatter", title, series, size, axes, joined=True, number="#,##0"))


def suggest(w: Workbook, ws: Composer) -> None:
    """Three edits: a longer text, shared heads of keys and values, a lower rent."""
    sizes, gigabytes, price = w["sizes"], w["cache"][0, OURS], w["price"][0, OURS]
    ws.cursor -= 1
    ws.suggest(
        w.suggestion(
            "Type ‘8’: groups of four heads share their keys and values. The cache needs "
            "{gb.then:.1f} GB, not {gb.now:.1f}. An hour costs {then:.2f} dollars, not {now:.2f}.",
            {sizes[HEADS, OURS]: 8.0},
            price,
            gb=gigabytes,
        ),
        w.suggestion(
            "Type ‘131072’ for a long contract: the cache needs {then:.1f} GB, not {now:.1f}. "
            "One conversation no longer fits on the card.",
            {sizes[TOKENS, OURS]: 131072.0},
            gigabytes,
        ),
        w.suggestion(
            "Type ‘1.25’ for half the rent: a conversation costs {then:.2f} dollars an hour, not "
            "{now:.2f}.",
            {w["prices"][1]: 1.25},
            price,
        ),
        at=(0, 1, 2),
    )
