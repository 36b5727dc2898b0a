"""low-rank's sheet Sizes: what full matrices and thin ones hold, in three models."""

from functools import partial

import numpy as np

from exporters.by_hand import Comparison, Worksheet

SIZES = ("d_model", "n_heads", "n_layers", "n_vocab")
MODELS = {
    "a toy": (4, 2, 1, 5),
    "GPT-2 small": (768, 12, 12, 50257),
    "GPT-3": (12288, 96, 96, 50257),
}
BUILT = np.array(list(MODELS.values()), float).T  # [sizes, models]
GPT_3, MISPRINTED = list(MODELS).index("GPT-3"), 12888


def misprinted() -> np.ndarray:
    """The sizes with d_model of GPT-3 as the slides print it once."""
    sizes = BUILT.copy()
    sizes[0, GPT_3] = MISPRINTED
    return sizes


def counts(sizes: np.ndarray) -> dict[str, np.ndarray]:
    """What matrices of these sizes [4, models] hold, by table of the sheet."""
    d_model, n_heads, n_layers, n_vocab = sizes
    d_head = d_model / n_heads
    full, down = d_model * d_model, d_model * d_head
    thin = down + d_head * d_model
    billions = n_heads * n_layers / 1e9
    return {
        "d_head": d_head[None],
        "parts": np.array([full, down, thin - down]),
        "sums": np.array([thin, n_heads * full, n_heads * thin]),
        "ratios": np.array([full / thin, billions * full, billions * thin]),
        "W_E": d_model[None] * n_vocab / 1e6,
    }


def fill(ws: Worksheet) -> list[Comparison]:
    """Counts for three models, and what the slides print of GPT-3."""
    ws.widths({0: 34, 1: 15, 2: 18, 3: 18})
    found = counts(BUILT)
    ws.heading("Sizes")
    typed = ws.table("sizes", BUILT, None, SIZES, list(MODELS), style="input setting")
    d, heads, layers, vocab = (partial(typed.at, i) for i in range(4))
    ws.heading("Full or thin")
    ws.text("d_head = d_model / n_heads;  full = d_model²;  thin = 2 d_model d_head",
            "full / thin = d_model / (2 d_head): nothing is saved where d_head = d_model / 2",
            style="equation")  # fmt: skip
    ws.text("OV is counted here; QK has as many, as W_Q and W_K are just as thin.",
            "To compare: all of GPT-3 is 175 billion parameters.")  # fmt: skip
    d_head = ws.table("d_head", found["d_head"], lambda i, j: f"{d(j)}/{heads(j)}", ["d_head"])
    parts = ws.table("parts", found["parts"],
                     lambda i, j: f"{d(j)}*{d_head.at(0, j) if i else d(j)}",
                     ["full: d_model × d_model", "value-down: d_model × d_head",
                      "value-up: d_head × d_model"], style="thousands")  # fmt: skip

    def summed(i: int, j: int) -> str:
        thin = f"({parts.at(1, j)}+{parts.at(2, j)})"
        return (thin, f"{heads(j)}*{parts.at(0, j)}", f"{heads(j)}*{thin}")[i]

    sums = ws.table("sums", found["sums"], summed, ["thin: both", "all heads of a layer, full",
                    "all heads of a layer, thin"], style="thousands")  # fmt: skip
    ws.table("ratios", found["ratios"], lambda i, j: (
        f"{layers(j)}*{sums.at(i, j)}/1000000000" if i else f"{parts.at(0, j)}/{sums.at(0, j)}"
    ), ["full / thin", "all layers, full, billions", "all layers, thin, billions"])  # fmt: skip
    W_E = ws.table("W_E", found["W_E"], lambda i, j: f"{d(j)}*{vocab(j)}/1000000",
                   ["W_E: d_model × n_vocab, millions"])  # fmt: skip
    slip = {name: values[0, GPT_3] for name, values in counts(misprinted()).items()}
    return [
        Comparison("GPT-3: rows of the slides' Q, K and value-down: d_head", 128, d_head, 0, GPT_3,
                   decimals=0),
        Comparison("GPT-3: rows of W_E, where it is introduced", MISPRINTED, typed, 0, GPT_3,
                   f"printed 12,888, elsewhere 12,288; a 96th is {slip['d_head']:.2f}, and W_E "
                   f"would have {slip['W_E']:.1f} million, not {W_E.values[0, GPT_3]:.1f}", 0),
        Comparison("GPT-3: columns of W_E, where sentences are embedded", 50527, typed, 3, GPT_3,
                   "printed 50,527, in the same sentence 50,257: two digits changed places", 0),
    ]  # fmt: skip
