"""The picture of an answer's graph, as SVG: tokens are columns, layers rows, edges lines.

Blue edges raise the lead, orange ones lower it; those of the circuit are drawn in full, others
pale. The same graph gives the same bytes.
"""

from collections.abc import Sequence
from html import escape
from itertools import accumulate

from cellformer.engine.cells.groups import grouped
from cellformer.engine.cells.texts import on_terminal
from cellformer.engine.studies.answer_graph import ANSWER, Edge, Ends, short

WIDE, HIGH = 78, 22  # of a node
GAP, STEP, LEFT, TOP = 14, 74, 70, 56
THICKEST = 7.0
BLUE, ORANGE, INK, PALE = "#1f6fb2", "#d2691e", "#222222", "#f3f5f8"
FONT = 'font-family="sans-serif" font-size="12"'


def svg(title: str, tokens: Sequence[str], edges: Sequence[Edge], circuit: Sequence[Ends]) -> str:
    """The picture of the strongest edges, and of a circuit among and beside them."""
    kept = set(circuit)
    values = {_ends(edge): edge.value for edge in edges}
    drawn = list(dict.fromkeys([*values, *circuit]))
    named = {_row_of(name) for source, _, reader, _ in drawn for name in (source, reader)}
    rows = [row for *_, row in sorted(named)]  # from below
    nodes = sorted({(s, at) for s, at, _, _ in drawn} | {(r, t) for _, _, r, t in drawn})
    places, width = _places(nodes, rows, len(tokens))
    height = TOP + STEP * len(rows) + 40
    largest = max((abs(value) for value in values.values()), default=1.0)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" {FONT}>',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="{LEFT}" y="22" font-size="15" fill="{INK}">{_safe(title)}</text>',
    ]
    parts += [_line(e, places, values.get(e), largest, e in kept) for e in drawn]
    parts += [_node(node, places[node]) for node in nodes]
    parts += [_row(name, n, len(rows)) for n, name in enumerate(rows)]
    parts += _heads(tokens, places, width, height)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _ends(edge: Edge) -> Ends:
    (source, at, n), (reader, token, m) = edge[:2]
    return _named(source, n), at, _named(reader, m), token


def _named(name: str, neuron: int | None) -> str:
    return name if neuron is None else f"{name}:{neuron}"


def _label(name: str) -> str:
    block, _, neuron = name.partition(":")
    return short(block) + (f" n{neuron}" if neuron else "")


def _row_of(name: str) -> tuple[int, bool, str]:
    """The row of a node: its layer, whether it is above the layer's heads, and its text."""
    if name == ANSWER:
        return 1 << 30, False, "answer"
    if not name.startswith("blocks."):
        return -1, False, "tokens"
    layer, of_heads = int(name.split(".")[1]), ".attn" in name or ".ln1" in name
    return layer, not of_heads, f"layer {layer} {'heads' if of_heads else 'MLP'}"


Place = tuple[int, int]  # of a node's middle


def _places(
    nodes: Sequence[tuple[str, int]], rows: Sequence[str], n_tokens: int
) -> tuple[dict[tuple[str, int], Place], int]:
    """The place of each node, and the width of the picture; columns are as wide as they must be."""
    cells = grouped(nodes, lambda node: (_row_of(node[0])[-1], node[1]))
    sizes = [max([len(x) for (_, t), x in cells.items() if t == n] or [1]) for n in range(n_tokens)]
    widths = (size * (WIDE + GAP) + 2 * GAP for size in sizes)
    *lefts, right = accumulate(widths, initial=LEFT + 40)
    found = {}
    for (row, token), several in cells.items():
        y = TOP + STEP * (len(rows) - 1 - rows.index(row)) + STEP // 2
        for n, node in enumerate(several):
            shift = (sizes[token] - len(several)) * (WIDE + GAP) // 2
            found[node] = lefts[token] + shift + n * (WIDE + GAP) + WIDE // 2, y
    return found, right + GAP


def _line(
    ends: Ends,
    places: dict[tuple[str, int], Place],
    value: float | None,
    largest: float,
    kept: bool,
) -> str:
    source, at, reader, token = ends
    (x, y), (x2, y2) = places[source, at], places[reader, token]
    colour = INK if value is None else BLUE if value > 0 else ORANGE
    thick = 1.2 if value is None else max(1.2, THICKEST * abs(value) / largest)
    told = "" if value is None else f"<title>{value:+.4f}</title>"
    middle = (y - HIGH // 2 + y2 + HIGH // 2) // 2
    return (
        f'<path d="M{x},{y - HIGH // 2} C{x},{middle} {x2},{middle} {x2},{y2 + HIGH // 2}" '
        f'fill="none" stroke="{colour}" stroke-width="{thick:.2f}" '
        f'stroke-opacity="{0.85 if kept else 0.22}">{told}</path>'
    )


def _node(node: tuple[str, int], place: Place) -> str:
    x, y = place
    return (
        f'<rect x="{x - WIDE // 2}" y="{y - HIGH // 2}" width="{WIDE}" height="{HIGH}" rx="5" '
        f'fill="{PALE}" stroke="{INK}" stroke-width="0.8"/>'
        f'<text x="{x}" y="{y + 4}" text-anchor="middle" fill="{INK}">'
        f"{_safe(_label(node[0]))}</text>"
    )


def _row(name: str, n: int, n_rows: int) -> str:
    y = TOP + STEP * (n_rows - 1 - n) + STEP // 2
    return f'<text x="8" y="{y + 4}" fill="{INK}">{_safe(name)}</text>'


def _heads(
    tokens: Sequence[str], places: dict[tuple[str, int], Place], width: int, height: int
) -> list[str]:
    """The words below the columns that have nodes."""
    found = []
    for n, word in enumerate(tokens):
        xs = [x for (_, token), (x, _) in places.items() if token == n]
        if xs:
            x = (min(xs) + max(xs)) // 2
            found.append(
                f'<text x="{x}" y="{height - 16}" text-anchor="middle" font-weight="bold" '
                f'fill="{INK}">{_safe(word)}</text>'
            )
    return found


def _safe(text: str) -> str:
    """A text of a vocabulary, as data."""
    return escape(on_terminal(text))
