"""The circle, closed: cells that keep a value from one recalculation to the next.

Each state (a weight, and what its optimizer remembers of it) has two latches, and the number of
steps made says which of them is in use. At an even number the step reads the one called `even` and
writes what it computes into `odd`, at an odd number the other way round. So while a step is
computed nothing that it reads changes; its cells may be computed in any order, and as often as a
program likes, and come out the same. Only the counter `latch.tick` reads itself and goes on.

With no step made, the `even` latches hold what learning starts from, and no cell waits for itself.

Some things are for programs' sake. LibreOffice computes first what is nearest to the cell that
changed, and goes astray where it meets a cell that reads itself deep down: so states read `steps`,
and what reads the end of a step waits for the cells `write`, one further away. Where anything else
is changed, that order is not kept: so the switch to `learn` first computes the step that there is
once more, half a tick, before it goes on. And where several recalculations make a step, latches are
written in the last but one, when all else has settled.
"""

from collections.abc import Callable
from typing import Any

from engine.cells.block import Block
from engine.cells.expression import Area, Expression
from engine.cells.functions import CHOOSE, IF, INT, MAX, MOD, RAND
from engine.cells.graph import Graph

START, LEARN, PAUSE = STATES = ("start", "learn", "pause")
HOLD, TAKE, BEGIN = range(3)  # what a latch does
SIDES = ("even", "odd")


def add(g: Graph, a_pass: int) -> Block:
    """Add the switch `state`, the counters and the cells that say what latches do; gives `step`,
    the number of the step, from 1. So many steps are `a_pass` through the corpus.

    While the switch says `learn`, every recalculation adds a tick, and a step is made every so many
    `recalculations`: 1 where a program computes each cell after those that it reads.
    """
    state, each = g.input("state", START)[0, 0], g.input("recalculations", 1)[0, 0]
    begun = {"latch.tick": 0, "steps": 0, "step": 1, "pass.count": 1}
    begun |= {"write.even": BEGIN, "write.odd": TAKE, "write.point": -1}
    ticks, made, step, count = (g.input(name, x)[0, 0] for name, x in [*begun.items()][:4])
    for name in [*begun][4:]:
        g.input(name, begun[name])

    def tick(i: int, j: int) -> Expression:
        onward = IF(ticks == INT(ticks), ticks + 0.5, ticks + 1) + 0 * RAND()
        return IF(state == LEARN, onward, IF(state == PAUSE, INT(ticks), 0))

    def settled(taken: Any) -> Expression:
        return IF(MOD(INT(ticks), each) == MAX(each - 2, 0), taken, HOLD)

    odd, ends = MOD(made, 2), IF(count == a_pass, step / a_pass, 0)
    g.follow("latch.tick", tick)
    g.follow("steps", lambda i, j: INT(ticks / each))
    g.follow("step", lambda i, j: made + 1)
    g.follow("pass.count", lambda i, j: MOD(made, a_pass) + 1)
    g.follow("write.even", lambda i, j: IF(made == 0, BEGIN, settled(odd)))
    g.follow("write.odd", lambda i, j: settled(1 - odd))
    g.follow("write.point", lambda i, j: IF(made == 0, -1, settled(ends)))
    return g["step"]


def close(g: Graph, name: str, after: Block, begins: Block | None) -> None:
    """Let a block follow its latches, and these what the block becomes; it `begins` with that, or
    with 0."""
    now = g[name]
    g.input(f"latch.even.{name}", g.values[name], now.axes)
    g.input(f"latch.odd.{name}", g.values[after.name], now.axes)

    def current(i: int, j: int) -> Expression:
        even, odd = (g[f"latch.{side}.{name}"][i, j].fixed for side in SIDES)
        return IF(MOD(steps(g), 2) == 1, odd, even)

    def latch(side: str) -> Callable[[int, int], Expression]:
        def cell(i: int, j: int) -> Expression:
            kept = g[f"latch.{side}.{name}"][i, j].fixed
            beginning = 0 if begins is None else begins[i, j].fixed
            return CHOOSE(g[f"write.{side}"][0, 0].fixed + 1, kept, after[i, j].fixed, beginning)

        return cell

    g.follow(name, current)
    for side in SIDES:
        g.follow(f"latch.{side}.{name}", latch(side))


def steps(g: Graph) -> Area:
    """The cell that counts the steps that are made."""
    return g["steps"][0, 0].fixed


def add_total(g: Graph, loss: Area) -> Block:
    """Add the sum of the losses of this pass until now, `pass.next`, kept as a state is."""
    g.input("pass.total", 0)

    def total(i: int, j: int) -> Expression:
        return IF(g["pass.count"][0, 0] == 1, 0, g["pass.total"][0, 0]) + loss

    found = g.table("pass.next", (1, 1), total)
    close(g, "pass.total", found, None)
    return found


def add_points(g: Graph, n_points: int, a_pass: int) -> None:
    """Add `latch.points` [n_points, 1]: of each pass the mean loss, kept from when it ends."""
    g.input("latch.points", [[0.0]] * n_points)
    total, point = g["pass.next"][0, 0].fixed, g["write.point"][0, 0].fixed

    def cell(i: int, j: int) -> Expression:
        kept = IF(point == i + 1, total / a_pass, g["latch.points"][i, 0].fixed)
        return IF(point < 0, 0, kept)

    g.follow("latch.points", cell)
