"""The settings that a reader types, and those in effect: the default counts for a bad one.

Each setting has a word beside it, which says what is wrong with it, if anything is.
"""

from typing import NamedTuple

from cellformer.engine.cells.expression import Expression
from cellformer.engine.cells.functions import IF, IFERROR, INT, ISNUMBER, MATCH
from cellformer.engine.cells.graph import Graph
from cellformer.engine.cells.language import worded
from cellformer.engine.learning import policy
from cellformer.workbooks.reward import game, learning


class Setting(NamedTuple):
    """A number that a reader may type."""

    default: float
    high: float  # the largest that counts; the least is `low`
    effect: str  # the block that follows it
    low: float = 0


NUMBERS = {
    "kl_weight": Setting(policy.BETA, 10, "beta"),
    "clip_range": Setting(policy.CLIP, 1, "clip"),
    "learning_rate": Setting(learning.RATE, 1, "rate"),
    "updates": Setting(1, 20, "updates.used", low=1),
}
NAMED = {"begin": (learning.NEW, *learning.TRAINED), "reward": game.REWARDS}


def add(g: Graph) -> None:
    """Add the settings, `NAME.word` beside each, and `NAME.number` of those with names."""
    for name, choices in NAMED.items():
        typed = g.input(name, choices[0])[0, 0].fixed
        names = g.input(f"{name}.names", [[choice] for choice in choices]).area.fixed
        _one(g, f"{name}.found", IFERROR(MATCH(typed, names, 0), 0))
        at = g[f"{name}.found"][0, 0].fixed
        _one(g, f"{name}.number", IF(at == 0, 1, at))
        _one(g, f"{name}.word", IF(at == 0, worded("unknown"), ""))
    for name, setting in NUMBERS.items():
        typed = g.input(name, setting.default)[0, 0].fixed
        fits = IF(typed < setting.low, worded("low"), IF(typed > setting.high, worded("high"), ""))
        _one(g, f"{name}.word", IF(ISNUMBER(typed), fits, worded("number?")))
        _one(
            g,
            setting.effect,
            IF(
                g[f"{name}.word"][0, 0].fixed == "",
                INT(typed) if name == "updates" else typed,
                setting.default,
            ),
        )


def _one(g: Graph, name: str, formula: Expression) -> None:
    """Add a table of one cell, or make an input follow."""
    if name in g.blocks:
        g.follow(name, lambda i, j: formula)
    else:
        g.table(name, (1, 1), lambda i, j: formula)
