"""A function is one row: ops and tables of it have values, texts, words and gradients at once."""

from collections.abc import Callable

import numpy as np
import pytest
from ironcalc_sheet import Sheet
from test_gradient import to_one_cell

from cellformer.engine import Graph
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.cell_gradient import of_cell
from cellformer.engine.cells.expression import ATOM, Function
from cellformer.engine.cells.functions import EXP
from cellformer.engine.cells.gradient import backward
from cellformer.engine.cells.op import X, op

SOFTPLUS = Function(
    "SOFTPLUS",
    lambda x: np.log(1 + np.exp(x)),
    slopes=lambda y, x: [(x, 1 - 1 / EXP(y))],
    cells=lambda x: (f"LN(1+EXP({x}))", ATOM),
)
VALUES = np.array([[0.5, -1.0], [2.0, 0.25]])
GAIN = 3.0


@op(x="i,j", gain="0,0")
def smooth(x: X, gain: X) -> X:
    return SOFTPLUS(x * gain) * 2


def of_op(g: Graph, x: Block, gain: Block) -> Block:
    return g.block("z", smooth, x, gain)


def of_table(g: Graph, x: Block, gain: Block) -> Block:
    return g.table("z", x.shape, lambda i, j: SOFTPLUS(x[i, j] * gain[0, 0]) * 2)


@pytest.mark.parametrize("made", [of_op, of_table])
def test_a_new_function_is_one_row(made: Callable[[Graph, Block, Block], Block]) -> None:
    g = Graph()
    x = g.input("x", VALUES, ("rows", "columns"), "weight")
    gain = g.input("gain", GAIN, kind="weight")
    z = made(g, x, gain)
    expected = 2 * np.log(1 + np.exp(GAIN * VALUES))
    np.testing.assert_allclose(g.values["z"].astype(float), expected, rtol=1e-14)
    assert "softplus(x[1,0] × gain) × 2" in str(g.cell("z", 1, 0).formula)
    logistic = 1 / (1 + np.exp(-GAIN * VALUES))
    by = of_cell(g, z, 1, 0)
    np.testing.assert_allclose(by["x"], [[0, 0], [2 * GAIN * logistic[1, 0], 0]], rtol=1e-12)
    assert by["gain"].item() == pytest.approx(2 * VALUES[1, 0] * logistic[1, 0], rel=1e-12)
    assert_ironcalc_computes(g, z)


def test_its_gradient_is_blocks_of_formulas() -> None:
    g = Graph()
    x = g.input("x", VALUES, ("rows", "columns"), "weight")
    gain = g.input("gain", GAIN, kind="weight")
    one = to_one_cell(g, of_op(g, x, gain), np.random.default_rng(0))
    found = backward(g, one)
    by = of_cell(g, one, 0, 0)
    for block in (x, gain):
        gradient = found[block.name]
        np.testing.assert_allclose(g.values[gradient.name], by[block.name], rtol=1e-12)
        assert_ironcalc_computes(g, gradient)


def assert_ironcalc_computes(g: Graph, block: Block) -> None:
    sheet = Sheet()
    for other in g:
        sheet.put(other.name, g.values[other.name])
    for i, j in block.whole.cells():
        sheet.add(block, i, j, float(g.values[block.name][i, j]))
    sheet.agree()
