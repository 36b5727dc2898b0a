"""The sheet Clock: a position as one number, as 1 - 1/t, and as the hands of a clock."""

from cellformer.engine.cells.expression import Area, Expression
from cellformer.engine.cells.functions import COS, PI, SIN, SQRT, SUM
from cellformer.exporters.assemble.worksheets import Workbook
from cellformer.exporters.compose.composer import Composer

PERIODS = (1.0, 60.0, 720.0)  # in minutes: the second hand, the minute hand, the hour hand
HANDS = ("second hand", "minute hand", "hour hand")
MINUTES = (1.0, 2.0, 31.0, 61.0, 361.0, 720.0, 721.0, 1000.0)
N = len(MINUTES)


def add(w: Workbook) -> None:
    """Add the sheet, with suggested edits."""
    ws = w.sheet(
        "Clock",
        "why a place needs more than one number, and clock hands are enough",
        "The slides write a place into a vector in three ways. The first way is the place t "
        "itself, which grows without limit.",
        "The second way is 1 - 1/t, which stays below 1. But the steps of 1 - 1/t "
        "shrink, so distant places look almost the same.",
        "The third way is a clock with three hands, with periods of 1, 60 and 720 minutes. Each "
        "hand is two small numbers.",
        "The clock's steps are the same everywhere. No two minutes in 12 hours have the same "
        "hands.",
        widths={0: 20, **dict.fromkeys(range(1, 24), 11)},
    )
    periods = ws.typed("periods", PERIODS, ["period, minutes"], HANDS, style="input setting")
    ws.heading(
        "A place written in three ways, and the distance to the next place",
        "a = 1 - 1/t;   its step = 1/t - 1/(t + 1);   hand = (sin, cos) of 2π t / period",
        "clock's step = distance between the hands at t and t + 1;   from the first = distance "
        "between the hands at t and at the table's first place",
        style="equation",
    )
    minutes = ws.typed("minutes", [[t] for t in MINUTES], cols=["t"], style="input setting")
    squeezed = ws.computed(
        "squeezed", (N, 1), lambda i, _: 1 - 1 / minutes[i], cols=["1 - 1/t"], beside=minutes
    )
    steps = ws.computed(
        "squeezed_steps",
        (N, 1),
        lambda i, _: 1 / minutes[i] - 1 / (minutes[i] + 1),
        cols=["its step"],
        style="tiny",
        beside=squeezed,
    )
    hands = ws.computed(
        "hands",
        (N, 2 * len(HANDS)),
        lambda i, j: hand(minutes[i], periods, j),
        cols=[f"{wave} {name.split()[0]}" for name in HANDS for wave in ("sin", "cos")],
        beside=steps,
        dress="diverging",
    )

    def moved(i: int, j: int) -> Expression:
        return apart(minutes[i], minutes[0].fixed if j else minutes[i] + 1, periods)

    distances = ws.computed(
        "clock_distances",
        (N, 2),
        moved,
        cols=["clock's step", "from the first"],
        style="readout",
        beside=hands,
    )
    suggest(w, ws, distances)


def hand(t: Expression, periods: Area, j: int) -> Expression:
    """The sine or the cosine of a hand at a time."""
    return (SIN, COS)[j % 2](2 * PI() * t / periods[j // 2].fixed)


def apart(t: Expression, other: Expression, periods: Area) -> Expression:
    """The distance between the hands at two times: the length of the difference of six numbers."""
    gaps = [hand(t, periods, j) - hand(other, periods, j) for j in range(2 * len(HANDS))]
    return SQRT(SUM(*(gap**2 for gap in gaps)))


def suggest(w: Workbook, ws: Composer, distances: Area) -> None:
    """Three edits: a day instead of half a day, a distant position, half a minute."""
    minutes, periods = w["minutes"], w["periods"]
    ws.suggest(
        w.suggestion(
            "Type ‘1440’: this hand now goes round once a day. Minutes 1 and 721 are {then:.2f} "
            "apart, not {now:.2f}.",
            {periods[2]: 1440.0},
            distances[6, 1],
        ),
        w.suggestion(
            "Type ‘10000’: at this place the step of 1 - 1/t is {then:.8f}, not {now:.3f}. The "
            "clock's step stays the same.",
            {minutes[1]: 10000.0},
            w["squeezed_steps"][1],
        ),
        w.suggestion(
            "Type ‘1.5’, half a minute after the first place: the seconds hand points the "
            "opposite way. The distance is {then:.2f}, not {now:.2f}.",
            {minutes[1]: 1.5},
            distances[1, 1],
        ),
    )
