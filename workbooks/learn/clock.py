"""The circle, closed: cells that keep a value from one recalculation to the next.

Each state (a weight, and what its optimizer remembers of it) has two latches, and the number of
steps made says which of them is in use. At an even number the step reads the one called `even` and
writes what it computes into `odd`, at an odd number the other way round. So while a step is
computed nothing that it reads changes; its cells may be computed in any order, and as often as a
program likes, and come out the same. Only the counter `latch.tick` reads itself and goes on.

With no step made, the `even` latches hold what learning starts from, and no cell waits for itself.
"""

from engine.cells.block import Block
from engine.cells.expression import Area, Expression
from engine.cells.functions import AND, IF, INT, MOD, RAND
from engine.cells.graph import Graph

START, LEARN, PAUSE = STATES = ("start", "learn", "pause")


def add(g: Graph) -> Block:
    """Add the switch `state` and the counters; gives `step`, the number of the step, from 1.

    While the switch says `learn`, every recalculation adds a tick, and a step is made every so many
    `recalculations`: 1 where a program computes each cell after those that it reads.
    """
    state = g.input("state", START)
    each = g.input("recalculations", 1)
    g.input("latch.tick", 0)
    g.input("steps", 0)
    step = g.input("step", 1)

    def tick(i: int, j: int) -> Expression:
        now = g["latch.tick"][0, 0]
        held = IF(state[0, 0] == PAUSE, now, 0)
        return IF(state[0, 0] == LEARN, now + 1 + 0 * RAND(), held)

    g.follow("latch.tick", tick)
    g.follow("steps", lambda i, j: INT(g["latch.tick"][0, 0] / each[0, 0]))
    g.follow(step.name, lambda i, j: g["steps"][0, 0] + 1)
    return g[step.name]


def close(g: Graph, name: str, after: Block, begins: Block | None) -> None:
    """Let a block follow its latches, and these what the block becomes; it `begins` with that, or
    with 0."""
    now = g[name]
    first = g.values[name]
    even = g.input(f"latch.even.{name}", first, now.axes)
    odd = g.input(f"latch.odd.{name}", g.values[after.name], now.axes)

    def is_odd() -> Expression:
        return MOD(steps(g), 2) == 1

    def of_even(i: int, j: int) -> Expression:
        beginning = 0 if begins is None else begins[i, j]
        kept = IF(is_odd(), after[i, j], g[even.name][i, j])
        return IF(steps(g) == 0, beginning, kept)

    g.follow(name, lambda i, j: IF(is_odd(), g[odd.name][i, j], g[even.name][i, j]))
    g.follow(even.name, of_even)
    g.follow(odd.name, lambda i, j: IF(is_odd(), g[odd.name][i, j], after[i, j]))


def steps(g: Graph) -> Area:
    """The cell that counts the steps that are made."""
    return g["steps"][0, 0].fixed


def keep_points(g: Graph, total: Area, n_points: int, each: int) -> None:
    """Add `latch.points` [n_points, 1]: the mean of the losses of each pass through the corpus,
    which takes `each` steps, kept from when it ends; `total` is their sum until now."""
    g.input("latch.points", [[0.0]] * n_points)

    def point(i: int, j: int) -> Expression:
        ends = steps(g) == (i + 1) * each - 1
        kept = IF(steps(g) < (i + 1) * each - 1, 0, g["latch.points"][i, 0])
        return IF(ends, total / each, kept)

    g.follow("latch.points", point)
