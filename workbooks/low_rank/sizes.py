"""low-rank's sheet Sizes: the numbers of full and of thin matrices, in three models."""

import numpy as np

from cellformer.engine.cells.expression import Expression
from cellformer.exporters.assemble.worksheets import Comparison, Workbook
from cellformer.exporters.compose.composer import Composer

SIZES = ("d_model", "n_heads", "n_layers", "n_vocab")
MODELS = {
    "a toy": (4, 2, 1, 5),
    "GPT-2 small": (768, 12, 12, 50257),
    "GPT-3": (12288, 96, 96, 50257),
}
GPT_3, MISPRINTED = list(MODELS).index("GPT-3"), 12888.0


def fill(ws: Composer) -> None:
    """Counts for three models."""
    ws.widths({0: 34, 1: 15, 2: 18, 3: 18})
    ws.heading("Sizes")
    numbers = np.array(list(MODELS.values())).T  # [sizes, models]
    sizes = ws.typed("sizes", numbers, SIZES, list(MODELS), style="input setting")
    d_model, n_heads, n_layers, n_vocab = (sizes[k, :] for k in range(len(SIZES)))
    width = len(MODELS)

    ws.heading(
        "Full or thin",
        "d_head = d_model / n_heads;  full = d_model²;  thin = 2 d_model d_head",
        "full / thin = d_model / (2 d_head): thin saves nothing if d_head = d_model / 2",
        style="equation",
    )
    ws.text(
        "This table counts OV. QK has the same count, because W_Q and W_K are as thin as W_V and "
        "W_O.",
        "To compare: GPT-3 has 175 billion parameters in all.",
    )
    d_head = ws.computed("d_head", (1, width), lambda i, j: d_model[j] / n_heads[j], ["d_head"])
    parts = ws.computed(
        "parts",
        (3, width),
        lambda i, j: d_model[j] * (d_head[j] if i else d_model[j]),
        ["full: d_model × d_model", "value-down: d_model × d_head", "value-up: d_head × d_model"],
        style="thousands",
    )

    def summed(i: int, j: int) -> Expression:
        full, thin = parts[0, j], parts[1, j] + parts[2, j]
        return (thin, n_heads[j] * full, n_heads[j] * thin)[i]

    sums = ws.computed(
        "sums",
        (3, width),
        summed,
        ["thin: both", "full: all heads of a layer", "thin: all heads of a layer"],
        style="thousands",
    )

    def ratio(i: int, j: int) -> Expression:
        return n_layers[j] * sums[i, j] / 1000000000 if i else parts[0, j] / sums[0, j]

    ws.computed(
        "ratios",
        (3, width),
        ratio,
        ["full / thin", "all layers, full, billions", "all layers, thin, billions"],
    )
    ws.computed(
        "W_E",
        (1, width),
        lambda i, j: d_model[j] * n_vocab[j] / 1000000,
        ["W_E: d_model × n_vocab, millions"],
    )


def printed(w: Workbook) -> list[Comparison]:
    """The slides' numbers for GPT-3."""
    sizes, d_head, W_E = (w[name][:, GPT_3] for name in ("sizes", "d_head", "W_E"))
    slip = w.edited({sizes[0]: MISPRINTED})
    return [
        Comparison(
            "GPT-3: rows of Q, K and value-down in the slides (d_head)", 128, d_head, decimals=0
        ),
        Comparison(
            "GPT-3: rows of W_E, first mention of W_E",
            MISPRINTED,
            sizes[0],
            "the slides print 12,888 here, 12,288 elsewhere. 12,888 gives "
            f"{slip(W_E):.1f} million, not {w.now(W_E):.1f}",
            0,
        ),
        Comparison(
            "GPT-3: columns of W_E, where the slides embed sentences",
            50527,
            sizes[3],
            "the slides print 50,527, but 50,257 in the same sentence: two digits are swapped",
            0,
        ),
    ]
