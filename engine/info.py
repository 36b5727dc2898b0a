"""What a model is in numbers: parameters per part, the KV cache, the size of its workbook."""

from collections.abc import Mapping
from dataclasses import dataclass

from engine.graph import Graph
from engine.model import Model

# Measured on workbooks of random models: compressed bytes of a number and of a formula cell.
BYTES_PER_NUMBER, BYTES_PER_FORMULA = 11.0, 27.0


@dataclass(frozen=True)
class Forecast:
    """The workbook of a prompt: its cells, how many of them formulas, its size in megabytes."""

    n_cells: int
    n_formulas: int
    megabytes: float


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
    if any(piece.startswith("ln") for piece in pieces) or pieces[-1] in ("q_norm", "k_norm"):
        return "norms"
    if len(pieces) > 1:
        return "MLP" if "mlp" in pieces else "attention"
    return "unembedding" if pieces[-1].endswith("_U") else "embedding"


def kv_numbers(model: Model) -> int:
    """How many numbers the cache of keys and values grows by with each token."""
    spec = model.spec
    return 2 * spec.n_layers * (spec.kv_heads if spec.n_heads else 0) * spec.d_head


def forecast(model: Model, n_tokens: int) -> Forecast:
    """What the workbook of a prompt of `n_tokens` will hold."""
    graph = model.graph([0] * n_tokens)
    formulas = sum(block.n_cells for block in graph if block.op) + labels(graph, n_tokens)
    cells = formulas + sum(block.n_cells for block in graph if not block.op)
    numbers = cells - formulas
    megabytes = (numbers * BYTES_PER_NUMBER + formulas * BYTES_PER_FORMULA) / 1e6
    return Forecast(cells, formulas, megabytes)


def labels(graph: Graph, n_tokens: int) -> int:
    """Formulas beside the blocks: token texts above and beside them, and the table of words."""
    texts = sum(block.axes.count("token") * n_tokens for block in graph if block.op)
    return texts + 5 * graph["probs"].shape[1]
