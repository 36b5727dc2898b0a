"""The sheet Trained: every model that was trained for superposition, a row each."""

from typing import NamedTuple

import numpy as np

from cellformer.engine.cells.expression import Area, Expression, expression
from cellformer.engine.cells.functions import COUNTIF, INDEX, MATCH, MAX, SQRT
from cellformer.engine.cells.sentence import sentence
from cellformer.exporters.assemble.worksheets import Workbook
from cellformer.exporters.compose.composer import Composer
from cellformer.workbooks.superposition.examples import N_FEATURES, NAMES
from cellformer.workbooks.superposition.learning import (
    DECAYS,
    N_LATENTS,
    PENALTIES,
    PROBABILITIES,
    Learned,
)

HELD = 0.5  # the length from which a feature's arrow counts as held


class Shelf(NamedTuple):
    """Models in rows, one for every combination of settings; the last setting varies fastest."""

    settings: tuple[Area, ...]  # [1, n] each: the values that a setting takes, from small to large
    rows: Area  # [models, numbers]

    def row(self, *wanted: Expression) -> Expression:
        """The row, from 1, of the model whose settings are the nearest at or below the wanted
        ones."""
        found: Expression = expression(1)
        for values, value in zip(self.settings, wanted, strict=True):
            found = (found - 1) * values.shape[1] + MATCH(MAX(value, values[0]), values, 1)
        return found

    def said(self, k: int, wanted: Expression) -> Expression:
        """A text about the model in use for a value of the k-th setting."""
        values = self.settings[k].fixed
        return sentence(
            "uses the model trained at {value}",
            value=INDEX(values, 1, MATCH(MAX(wanted, values[0]), values, 1)),
        )

    def number(self, row: Expression, k: int) -> Expression:
        """A model's k-th number."""
        return INDEX(self.rows[:, k].fixed, row, 1)


def add(w: Workbook, learned: Learned) -> tuple[Shelf, Shelf]:
    """Add the sheet, with the number of features that each toy model holds. Returns the toy models,
    a row each (for every feature the two numbers of W, then b), and the autoencoders (for every
    latent the two numbers of E, b, the two numbers of D)."""
    ws = w.sheet(
        "Trained",
        "every model trained for this workbook, one in each row",
        "The command cellformer train superposition -o DIR computes these numbers again (seed "
        "0). You can edit any of the numbers.",
        style="note",
        widths={0: 26, **dict.fromkeys(range(1, 32), 9)},
    )
    toys = toy_models(ws, learned)
    lengths = ws.computed(
        "lengths_held",
        (toys.rows.shape[0], N_FEATURES),
        lambda i, j: SQRT(toys.rows[i, 3 * j] ** 2 + toys.rows[i, 3 * j + 1] ** 2),
        cols=[f"|{name}|" for name in NAMES],
        beside=toys.rows,
    )
    ws.computed(
        "held",
        (toys.rows.shape[0], 1),
        lambda i, _: COUNTIF(lengths[i, :], f">={HELD}"),
        cols=["held"],
        style="readout count",
        beside=lengths,
    )
    return toys, encoders(ws, learned)


def toy_models(ws: Composer, learned: Learned) -> Shelf:
    """The toy models, with the settings of each."""
    ws.heading("Toy models: the arrow (two numbers of W) and the bias b of each feature")
    decays = ws.typed("decays", DECAYS, ["importance, times"], style="input setting")
    odds = ws.typed(
        "probabilities",
        PROBABILITIES,
        ["present with probability"],
        style="input setting",
        tight=True,
    )
    numbers = np.concatenate([learned.W, learned.b[:, :, None]], axis=2)  # [.., 3, features]
    rows = numbers.swapaxes(2, 3).reshape(len(DECAYS) * len(PROBABILITIES), -1)
    n = len(PROBABILITIES)
    settings = ws.computed(
        "settings",
        (len(rows), 2),
        lambda i, j: odds[i % n] if j else decays[i // n],
        cols=["importance", "probability"],
    )
    table = ws.typed(
        "toys",
        rows,
        cols=[f"{name} {what}" for name in NAMES for what in ("1", "2", "b")],
        style="weight",
        beside=settings,
    )
    return Shelf((decays, odds), table)


def encoders(ws: Composer, learned: Learned) -> Shelf:
    """The autoencoders."""
    ws.heading(
        "Sparse autoencoders: the numbers of E, the bias b and the numbers of D for each latent"
    )
    penalties = ws.typed("penalties", PENALTIES, ["penalty"], style="input setting")
    parts = [
        learned.encoder.swapaxes(1, 2),  # [penalties, latents, hidden]
        learned.encoder_bias[..., None],
        learned.decoder,
    ]
    rows = np.concatenate(parts, axis=2).reshape(len(PENALTIES), -1)
    settings = ws.computed(
        "penalty_of", (len(PENALTIES), 1), lambda i, _: penalties[i], cols=["penalty"]
    )
    heads = [
        f"{k} {what}" for k in range(1, N_LATENTS + 1) for what in ("E1", "E2", "b", "D1", "D2")
    ]
    return Shelf(
        (penalties,), ws.typed("encoders", rows, cols=heads, style="weight", beside=settings)
    )
