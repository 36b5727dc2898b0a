"""The weights of a model, counted part by part: every count a formula over the model's cells.

A count is written once, for one model, by the names of the sizes and of the counts before it.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from cellformer.engine.cells.expression import Area, Expression, expression
from cellformer.engine.cells.functions import IF, MIN

TEN = expression(10)
Rows = dict[str, Area]  # the rows of the tables [1, models], by name


class Model:
    """The cells of one model by name: `m.d_model` is the one in its column."""

    def __init__(self, rows: Mapping[str, Area], column: int):
        self._rows, self._column = rows, column

    def __getattr__(self, name: str) -> Area:
        return self._rows[name][self._column]


class Count(NamedTuple):
    """A row of a table: its name, and its formula for a model."""

    label: str
    of: Callable[[Model], Expression]


def entering(m: Model, rank: Expression) -> Expression:
    """The input size of W_Q, W_K or W_V: d_model, or the low rank if there is one."""
    return IF(rank == 0, m.d_model, rank)


LAYER = {
    "W_Q": Count(
        "W_Q", lambda m: entering(m, m.r_Q) * m.n_heads * (m.d_head + m.d_rope) + m.d_model * m.r_Q
    ),
    "W_K": Count(
        "W_K",
        lambda m: entering(m, m.r_KV) * m.n_heads * m.d_head + m.d_model * (m.r_KV + m.d_rope),
    ),
    "W_V": Count("W_V", lambda m: entering(m, m.r_KV) * m.n_heads * m.d_head),
    "W_O": Count("W_O", lambda m: m.n_heads * m.d_head * m.d_model),
    "bQKVO": Count("attention biases", lambda m: m.biases * (3 * m.n_heads * m.d_head + m.d_model)),
    "mlp": Count(
        "MLP",
        lambda m: (
            m.matrices * m.d_model * m.d_mlp + m.biases * ((m.matrices - 1) * m.d_mlp + m.d_model)
        ),
    ),
    "expert": Count("one expert", lambda m: m.matrices * m.d_model * m.d_expert),
    "gate": Count("router to the experts", lambda m: m.routed * (m.d_model + 1)),
    "norm": Count("norms in a layer", lambda m: 2 * m.vectors * m.d_model + m.r_Q + m.r_KV),
}
PARTS = {
    "embed": Count("token embedding", lambda m: m.d_vocab * m.d_model),
    "place": Count(
        "positions, segments, patches",
        lambda m: (m.learned * m.n_ctx + m.segments + IF(m.patch == 0, 0, m.patch + 2)) * m.d_model,
    ),
    "attn": Count("attention", lambda m: m.n_layers * (m.W_Q + m.W_K + m.W_V + m.W_O + m.bQKVO)),
    "mlps": Count(
        "MLPs and experts",
        lambda m: (
            (m.n_layers - m.moe) * m.mlp + m.moe * ((m.routed + m.shared) * m.expert + m.gate)
        ),
    ),
    "norms": Count("norms", lambda m: m.n_layers * m.norm + m.outer * m.vectors * m.d_model),
    "out": Count(
        "unembedding, pooler, head",
        lambda m: (
            (1 - m.tied) * m.d_vocab * m.d_model
            + (m.pooler * m.d_model + m.classes) * (m.d_model + 1)
        ),
    ),
}
TOTALS = {
    "total": Count("total", lambda m: m.embed + m.place + m.attn + m.mlps + m.norms + m.out),
    "idle": Count(
        "expert weights unused by a token",
        lambda m: m.moe * (m.routed - MIN(m.used, m.routed)) * m.expert,
    ),
}
ACTIVE = {"active": Count("weights used per token", lambda m: m.total - m.idle)}


def share(part: str) -> Count:
    """A part's share of the total."""
    return Count(f"share: {PARTS[part].label}", lambda m: getattr(m, part) / m.total)


SHARES = {f"{part}_share": share(part) for part in PARTS}
UNITS = {
    "millions": Count("total weights (in millions)", lambda m: m.total / TEN**6),
    "billions": Count("total weights (in billions)", lambda m: m.total / TEN**9),
}
RULE = {"rule": Count("12 · n_layers · d_model²", lambda m: 12 * m.n_layers * m.d_model**2)}
RATIOS = {
    "r_total": Count("rule / total", lambda m: m.rule / m.total),
    "r_layers": Count("rule / attention and MLPs", lambda m: m.rule / (m.attn + m.mlps)),
    "r_active": Count("rule / weights used per token", lambda m: m.rule / m.active),
    "ends": Count(
        "share of W_E and separate W_U",
        lambda m: 2 * m.d_vocab * m.d_model / (m.total + m.tied * m.d_vocab * m.d_model),
    ),
}
LABELS = {
    name: count.label
    for table in (LAYER, PARTS, TOTALS, ACTIVE, SHARES, UNITS, RULE, RATIOS)
    for name, count in table.items()
}
