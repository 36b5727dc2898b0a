"""The sheet Hands: sinusoidal positions beside binary digits."""

from cellformer.engine.cells.expression import Area, Expression, expression
from cellformer.engine.cells.functions import COS, INT, MOD, SIN
from cellformer.exporters.assemble.worksheets import Workbook
from cellformer.exporters.compose.book import Chart, Series
from cellformer.exporters.compose.composer import Composer

D_MODEL, T, BASE = 8, 16, 10000.0
DIMS = [f"dim {j}" for j in range(D_MODEL)]
DIGITS = ("ones", "twos", "fours", "eights")
WAVE = (SIN, COS)  # of even dimensions, and of odd ones


def wave(angle: Expression, j: int) -> Expression:
    """The sine or the cosine of the hand of a dimension."""
    return WAVE[j % 2](angle)


def add(w: Workbook) -> None:
    """The sheet: frequencies, wavelengths, and the frequency map."""
    ws = w.sheet(
        "Hands",
        "each pair of dimensions is a clock hand with its own speed",
        widths={0: 19},
    )
    base = ws.typed("base", BASE, ["base"], style="input setting")
    ws.heading(
        "Frequencies, from fast hands to slow hands",
        "frequency of pair i = 1 / base^(2i / d_model)   [d_model / 2]",
        style="equation",
    )
    shape, pairs = (1, D_MODEL // 2), [f"pair {i}" for i in range(D_MODEL // 2)]
    frequencies = ws.computed(
        "frequencies",
        shape,
        lambda _, i: 1 / base ** (expression(2 * i) / D_MODEL),
        ["radians per place"],
        pairs,
    )
    ws.computed("waves", shape, lambda _, i: 1 / frequencies[i], ["wavelength / 2π"])
    frequency_map(ws, frequencies)
    chart(ws, 0, "Fast hands: two sines", (0, 2))
    chart(ws, 8, "Slow hands", (4, 6))


def frequency_map(ws: Composer, frequencies: Area) -> None:
    """Add the positions [T, 1], and the vector of each [T, d_model]; beside them binary digits."""
    ws.heading(
        "Frequency map: each row is the vector P_t of place t, beside t in binary digits",
        "P[t, 2i] = sin(t × frequency i)   P[t, 2i + 1] = cos(t × frequency i)   [T, d_model]",
        "digit b of t = floor(t / 2^b) mod 2   [T, 4]: like hands, low digits change fast and "
        "high digits slowly",
        style="equation",
    )
    places = ws.typed("places", [[t] for t in range(T)], cols=["place t"], style="input setting")
    encoding = ws.computed(
        "encoding",
        (T, D_MODEL),
        lambda t, j: wave(places[t] * frequencies[j // 2], j),
        cols=DIMS,
        beside=places,
        dress="diverging",
    )
    ws.computed(
        "bits",
        (T, len(DIGITS)),
        lambda t, b: MOD(INT(places[t] / 2**b), 2),
        cols=DIGITS,
        style="activation count",
        beside=encoding,
        dress="scale",
    )


def chart(ws: Composer, left: int, title: str, dims: tuple[int, ...]) -> None:
    """Some dimensions, as lines over the places."""
    ws.chart(
        Chart(
            ws.cursor,
            left,
            "line",
            title,
            [Series(DIMS[j], ws["places"], ws["encoding"][:, j]) for j in dims],
            size=(520, 300),
            axes=("place", ""),
            number="0.00",
        )
    )
