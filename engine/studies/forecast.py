"""What a model is in numbers: parameters per part, the KV cache, the size of its workbook."""

from collections.abc import Mapping
from dataclasses import dataclass

from engine.cells.stored import Stored
from engine.models import encoding
from engine.models.encoding import AXIS
from engine.models.forward import Forward, Readout
from engine.models.generate import passage
from engine.models.model import Model

# Measured on workbooks of random models: compressed bytes of a number that has all its digits, and
# of the shortest decimals of float32; of a formula, and of one that its column shares; what
# LibreOffice takes to open a number and a formula, and to hold one: GPT-2 small on 4 cores.
BYTES_PER_NUMBER, BYTES_PER_SHORT = 11.0, 5.3
BYTES_PER_FORMULA, BYTES_PER_SHARED = 23.0, 15.0
SECONDS_PER_NUMBER, SECONDS_PER_FORMULA = 0.46e-6, 9.4e-6
HELD_PER_NUMBER, HELD_PER_FORMULA = 19.5, 680.0


@dataclass(frozen=True)
class Forecast:
    """The workbook of a prompt: its cells, how many of them formulas, its size in megabytes."""

    n_cells: int
    n_formulas: int
    megabytes: float

    def __str__(self) -> str:
        numbers = self.n_cells - self.n_formulas
        seconds = numbers * SECONDS_PER_NUMBER + self.n_formulas * SECONDS_PER_FORMULA
        held = (numbers * HELD_PER_NUMBER + self.n_formulas * HELD_PER_FORMULA) / 1e9
        return (
            f"{self.n_cells:,} cells, {self.n_formulas:,} formulas, "
            f"about {self.megabytes:,.0f} MB; "
            f"LibreOffice opens it in about {seconds:.0f} s and holds it in about {held:.1f} GB"
        )


def parameters(model: Model) -> Mapping[str, int]:
    """The number of parameters of each part, in the order of the forward pass."""
    parts = dict.fromkeys(("embedding", "positions", "attention", "MLP", "norms", "unembedding"), 0)
    for name, values in model.weights.items():
        parts[_part(name)] += values.size
    return parts


def _part(name: str) -> str:
    pieces = name.split(".")
    if pieces[-1] == "W_pos":
        return "positions"
    if any(piece.startswith("ln") or piece in ("q_norm", "k_norm") for piece in pieces):
        return "norms"
    if len(pieces) > 1:
        return "MLP" if "mlp" in pieces else "attention"
    return "unembedding" if pieces[-1].endswith("_U") else "embedding"


def kv_numbers(model: Model) -> int:
    """How many numbers the cache of keys and values grows by with each token."""
    spec = model.spec
    return 2 * spec.n_layers * (spec.kv_heads if spec.n_heads else 0) * spec.d_head


def forecast(model: Model, n_tokens: int, readout: Readout) -> Forecast:
    """What the workbook of a prompt of `n_tokens` will hold, which shows that much of it."""
    place = passage(model, [0] * n_tokens) if model.spec.gives != "next word" else None
    graph = encoding.graph(model, place, readout) if place else model.graph([0] * n_tokens, readout)
    formulas = sum(block.n_cells for block in graph if block.op) + labels(graph, n_tokens)
    cells = formulas + sum(block.n_cells for block in graph if not block.op)
    numbers = cells - formulas
    short = any(isinstance(w, Stored) and w.decimal for w in model.weights.values())
    each = BYTES_PER_SHORT if short else BYTES_PER_NUMBER
    text = BYTES_PER_SHARED if readout.one_token else BYTES_PER_FORMULA
    megabytes = (numbers * each + formulas * text) / 1e6
    return Forecast(cells, formulas, megabytes)


def labels(graph: Forward, n_tokens: int) -> int:
    """Formulas beside the blocks: token texts above and beside them, and the table of words."""
    names = ("token", AXIS)
    texts = sum(sum(map(block.axes.count, names)) * n_tokens for block in graph if block.op)
    words = graph.blocks.get("probs")
    table = 0 if graph.readout.one_token or words is None else 5 * words.shape[1]
    return texts + table
