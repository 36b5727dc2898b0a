"""Circular references that work: cells that keep a value from one recalculation to the next.

Each state (a weight, or its optimizer state) has two latches, and the number of completed steps
says which one is in use. An even step reads the latch `even` and writes its result into `odd`, an
odd step the other way round. So nothing that a step reads changes while it is computed; its cells
may be computed in any order, and repeatedly, with the same result. Before the first step, the
`even` latches hold the initial values, and no cell depends on itself.

**A step is counted only after everything that it writes is written.** A program may compute only
the cells on the screen, and leave the rest for later. So the cells `ready` read every latch that is
written, and keep the number of the beat in which they did; in the next beat `latch.count`
increases. If they have not, that beat completes the step, and the next one continues. Each of the
two keeps its number while the other one writes: so what is read is never what is being written. Any
edit makes a beat, too: `ready` of an earlier beat, with other settings, does not count.

**LibreOffice** computes a cell's precedents before the cell. When it meets a cell that reads
itself, it abandons all cells on its way there, computes them again from the innermost, and accepts
the results. A cell that it reaches only then, and that meets another circular reference, reads the
old values of those cells. So the following keep circular references apart from everything else:

- `steps`, which everything reads, first reads every latch in use. After it there are no circular
  references.
- Cells that read a circular reference and a counter have their own copy of the counter: `turn` for
  `steps`, `beat.even` and `beat.odd` for the two `ready`.
- Latches form chains: each first reads the next one (times 0), and so a whole chain is met at once.
  Separate latches would work too, but each of them would go through all those before it: seconds
  instead of a tenth. Chains must not be too long: from 400 cells on LibreOffice behaves differently.
- LibreOffice begins with what is nearest to the changed cell. So `settled`, which meets the circular
  references of one state after another and which nobody reads, is near; and `ready` is far, behind
  `late`, `later`.
- The order in which cells are notified of a change differs each time LibreOffice opens a file. In some
  openings the above is not enough; a second recalculation for each step makes it exact.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cellformer.engine.cells.block import Block
from cellformer.engine.cells.expression import Area, Expression
from cellformer.engine.cells.functions import CHOOSE, IF, INT, MIN, MOD, RAND, SUM
from cellformer.engine.cells.graph import Graph

START, LEARN, PAUSE = STATES = ("start", "learn", "pause")
HOLD, TAKE, BEGIN = range(3)  # what a latch does
SIDES = ("even", "odd")
CHAIN = 300  # latches
EACH = 2  # recalculations for each step: with 1, LibreOffice goes wrong in one opening of four


def add(g: Graph, a_pass: int) -> Block:
    """Add the switch `state`, the counters and the cells that control latches; returns `step`, the
    number of the step, from 1. `a_pass` is the number of steps for one pass through the corpus, or for
    one point of the curve.

    While the switch is at `learn`, every recalculation adds a tick, and `recalculations` of them
    make a beat: 1 would be enough for a program that computes each cell after those it reads. In
    any other state, and in the first recalculation after it, there is no beat: so nothing
    continues.
    """
    state, each = g.input("state", START)[0, 0], g.input("recalculations", EACH)[0, 0]
    begun = {"latch.tick": 0, "beat": 0, "phase": 0}
    begun |= {"latch.count": 0, "turn": 0, "steps": 0, "step": 1, "pass.count": 1}
    begun |= {"late": 0, "later": 0, "beat.even": 0, "beat.odd": 0, "ready": 0}
    begun |= {"latch.ready.even": 0, "latch.ready.odd": 0}
    begun |= {"write.even": BEGIN, "write.odd": TAKE}
    cells = {name: g.input(name, x)[0, 0] for name, x in begun.items()}
    ticks, beat, count, made = (cells[x] for x in ("latch.tick", "beat", "latch.count", "steps"))
    odd, even = (cells[f"latch.ready.{side}"] for side in reversed(SIDES))

    def tick(i: int, j: int) -> Expression:
        rests = (INT(ticks / each) + 2) * each
        onward = IF(ticks == INT(ticks), rests + 0.5, ticks + 1) + 0 * RAND()
        return IF(state == START, 0, IF(state == LEARN, onward, rests))

    def counted(i: int, j: int) -> Expression:
        before = IF(MOD(beat, 2) == 1, even, odd)  # the one of the last beat
        wanted = beat - 1 + MOD(count + 1, 2) / 2
        return IF(state == START, 0, IF(before == wanted, count + 1, count))

    taking = settled(g, TAKE)
    g.follow_all({
        "latch.tick": tick,
        "beat": lambda i, j: INT(ticks / each),
        "phase": lambda i, j: MOD(INT(ticks), each),
        "late": lambda i, j: ticks + 0,
        "later": lambda i, j: cells["late"] + 0,
        "beat.even": lambda i, j: recorded(cells["later"], each, 0),
        "beat.odd": lambda i, j: recorded(cells["later"], each, 1),
        "latch.count": counted,
        "turn": lambda i, j: count + 0,
        "step": lambda i, j: made + 1,
        "pass.count": lambda i, j: MOD(made, a_pass) + 1,
        "ready": lambda i, j: INT(IF(even > odd, even, odd)),
        "write.even": lambda i, j: IF(count == 0, BEGIN, IF(MOD(count, 2) == 1, taking, HOLD)),
        "write.odd": lambda i, j: IF(MOD(count, 2) == 0, taking, HOLD),
    })  # fmt: skip
    return g["step"]


def settled(g: Graph, then: Any) -> Expression:
    """The formula of a cell that takes a new value in the middle of a beat, when all that it reads
    has settled, and else keeps its own."""
    return IF(g["phase"][0, 0] == middle(g["recalculations"][0, 0]), then, HOLD)


def middle(each: Area) -> Expression:
    """The recalculation within a beat, from 0, in which latches are written."""
    return INT((each - 1) / 2)


def recorded(ticks: Area, each: Area, odd: int) -> Expression:
    """The number of the beat, in its middle, if its parity is the given one; else -1."""
    beat, phase = INT(ticks / each), MOD(INT(ticks), each)
    now = IF(MOD(beat, 2) == odd, IF(phase == middle(each), beat, -1), -1)
    return IF(beat == 0, 0, now)


def wait(g: Graph, states: Sequence[str], kept: Sequence[str] = ()) -> None:
    """Make `steps` read every latch in use, and `ready` every latch; no step reads the latches
    in `kept`."""
    turn, count = g["turn"][0, 0], g["latch.count"][0, 0]
    even, odd = ([g[f"latch.{side}.{name}"].area.fixed for name in states] for side in SIDES)
    every = SUM(*even, *odd, *(g[name].area.fixed for name in kept))

    def ready(side: str) -> Callable[[int, int], Expression]:
        beat, kept = (g[f"{what}.{side}"][0, 0] for what in ("beat", "latch.ready"))
        written = beat + MOD(count + 1, 2) / 2 + 0 * every
        return lambda i, j: IF(beat < 0, kept, IF(beat == 0, 0, written))

    g.follow("steps", lambda i, j: turn + 0 * IF(MOD(turn, 2) == 1, SUM(*odd), SUM(*even)))
    g.follow_all({f"latch.ready.{side}": ready(side) for side in SIDES})
    g.table(
        "settled", (len(states), 1), lambda i, j: IF(MOD(count, 2) == 1, SUM(odd[i]), SUM(even[i]))
    )


def chained(block: Block, k: int, what: Area, before: int = 0, after: Block | None = None) -> Any:
    """The formula of the k-th latch of a block. It first reads the latches that follow it in its
    chain: `before` stand in blocks before it, and the block `after` follows."""
    here, width = k + 1 < block.shape[0] * block.shape[1], block.shape[1]
    if (before + k + 1) % CHAIN == 0 or not (here or after):
        return what
    following = block[divmod(k + 1, width)] if here or after is None else after[0, 0]
    return 0 * following.fixed + what


def close(g: Graph, states: Mapping[str, Block], begins: Mapping[str, Block]) -> None:
    """Connect blocks, by name, with their latches, and these with the block's next value;
    `begins` gives the initial value, or it is 0. Chains go on from block to block."""
    for name, after in states.items():
        g.input(f"latch.even.{name}", g.values[name], g[name].axes)
        g.input(f"latch.odd.{name}", g.values[after.name], g[name].axes)
    before, following = 0, [*list(states)[1:], None]
    for name, then in zip(states, following, strict=True):
        _close(g, name, states[name], begins.get(name), before, then)
        before += g[name].shape[0] * g[name].shape[1]


def _close(
    g: Graph, name: str, after: Block, begins: Block | None, before: int, then: str | None
) -> None:
    """Connect a block. So many latches stand before its own, and the latches of `then` stand
    after them."""

    def current(i: int, j: int) -> Expression:
        even, odd = (g[f"latch.{side}.{name}"][i, j].fixed for side in SIDES)
        return IF(MOD(steps(g), 2) == 1, odd, even)

    def latch(side: str) -> Callable[[int, int], Expression]:
        def cell(i: int, j: int) -> Expression:
            own, beginning = g[f"latch.{side}.{name}"], 0 if begins is None else begins[i, j].fixed
            told = chained(
                own,
                i * own.shape[1] + j,
                g[f"write.{side}"][0, 0].fixed,
                before,
                None if then is None else g[f"latch.{side}.{then}"],
            )
            return CHOOSE(told + 1, own[i, j].fixed, after[i, j].fixed, beginning)

        return cell

    g.follow_all({name: current} | {f"latch.{side}.{name}": latch(side) for side in SIDES})


def rests(g: Graph) -> Expression:
    """Whether the state is reset (switch at `start`)."""
    return g["state"][0, 0].fixed == START


def steps(g: Graph) -> Area:
    """The cell that counts completed steps."""
    return g["steps"][0, 0].fixed


def add_total(g: Graph, loss: Area) -> dict[str, Block]:
    """Add `pass.next`, the sum of the losses of this pass so far: a state to keep."""
    g.input("pass.total", 0)

    def total(i: int, j: int) -> Expression:
        return IF(g["pass.count"][0, 0] == 1, 0, g["pass.total"][0, 0]) + loss

    return {"pass.total": g.table("pass.next", (1, 1), total)}


def add_curve(g: Graph, a_point: int, mean: Block) -> None:
    """Add `curve.x` and `curve.y`: the points that are kept, then the current one."""
    points, made, now = g["points"], g["made"][0, 0].fixed, mean[0, 0].fixed
    g.add_tables(points.shape, {
        "curve.x": lambda i, j: MIN((i + 1) * a_point, made + 1),
        "curve.y": lambda i, j: IF(made >= (i + 1) * a_point, points[i, 0], now),
    })  # fmt: skip


def add_points(g: Graph, n_points: int, a_point: int) -> dict[str, Block]:
    """Add `next.points`, the mean losses of every `a_point` steps: a state that changes by at
    most one number in a step. Future ones are 0."""
    points, total = g.input("points", [[0.0]] * n_points), g["pass.next"][0, 0].fixed
    step = g["step"][0, 0].fixed

    def following(i: int, j: int) -> Expression:
        return IF(step == (i + 1) * a_point, total / a_point, points[i, j])

    return {"points": g.table("next.points", points.shape, following)}
