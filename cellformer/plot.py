"""Pictures of a forward pass, for notebooks and files: attention patterns, the logit lens, the
shares of parts, the stream's length, a sweep. They need matplotlib: pip install 'cellformer[plot]'.

    >>> graph = cf.graph("dialogue-game", "<BOS> Pietro chiama Paolo")
    >>> figure = cf.plot.pattern(graph, "1.2")
    >>> cf.plot.save(figure, "pattern.png").exists()
    True

Each function returns a matplotlib `Figure`, which a notebook shows.
"""

from collections.abc import Mapping, Sequence
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cellformer import names
from cellformer.engine.cells import finite
from cellformer.engine.cells.arguments import explained
from cellformer.engine.cells.arrays import ranked
from cellformer.engine.cells.batch import variants
from cellformer.engine.cells.errors import InputError, nearest
from cellformer.engine.cells.evaluator import Evaluator
from cellformer.engine.cells.files import replacing
from cellformer.engine.cells.graph import Graph, Readable
from cellformer.engine.cells.values import is_finite
from cellformer.engine.models.forward import Forward
from cellformer.engine.models.model import Model
from cellformer.engine.studies import hidden_attention as hidden
from cellformer.engine.studies import lens as lenses
from cellformer.engine.studies import scores
from cellformer.engine.studies.part_names import said
from cellformer.engine.studies.study import word_of
from cellformer.engine.text.tokenizer import shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage

    from cellformer.figure import Figure

Live = Graph | Evaluator
LINE, GRID, WRITES, AGAINST = "#1f5fa8", "#dddddd", "#1f5fa8", "#c85a1e"
SIDE, ROW, LETTER = 0.34, 0.3, 0.085  # inches of a square, a bar, a letter
MOST_HEADS = 64  # of one picture
ACROSS = 4  # heads side by side
DARK = 0.55  # of a colour scale: texts on what is darker are white


@explained
def pattern(live: Live, heads: str = "*.pattern") -> "Figure":
    """The attention of each head: a square for each query (row) and key (column), a panel for each
    head.

    `live` is a graph, or an evaluator with its changes; `heads` is a head, `1.2` (layer 1,
    head 2), or a pattern of blocks' names. Raises InputError for a name without a pattern.
    """
    blocks = _patterns(_graph(live), heads)
    tokens, across = _tokens(live), min(len(blocks), ACROSS)
    down = ceil(len(blocks) / across)
    side = max(1.6, SIDE * len(tokens)) + LETTER * max(map(len, tokens))
    figure = _figure((across * side + 0.3, down * (side + 0.3)))
    panels = np.atleast_1d(figure.subplots(down, across, squeeze=False)).ravel()
    for axes, name in zip(panels, blocks, strict=False):
        head = name.removesuffix(".pattern")
        _squares(axes, _values(live)[name], tokens, tokens, 1.0)
        axes.set_title(_label(said(head)))
    for axes in panels[len(blocks) :]:
        axes.set_axis_off()
    return figure


@explained
def hidden_attention(live: Live, channel: str) -> "Figure":
    """The amount that a channel of a recurrent model takes at each token (row) from each token
    (column): red below 0, blue above.

    `channel` is `0.3`, channel 3 of layer 0; where states are in heads, `0.1.3`. Raises InputError
    for an unknown channel, and for a model without a recurrence.
    """
    graph, tokens = _graph(live), _tokens(live)
    of, number = hidden.named(graph, channel)
    weights = hidden.weights(_values(live), of, number)
    side = max(1.6, SIDE * len(tokens)) + LETTER * max(map(len, tokens))
    figure = _figure((side + 1.0, side + 0.3))
    axes = figure.subplots()
    most = float(np.abs(weights).max())
    image = _squares(axes, weights, tokens, tokens, most, signed=True)
    figure.colorbar(image, ax=axes, label="weight")
    axes.set_title(f"hidden attention of channel {channel}")
    return figure


@explained
def lens(what: str | Path | Model, prompt: str | None = None) -> "Figure":
    """The logit lens: the likeliest word after each sublayer (rows) at each token (columns), and
    its probability as a colour. Raises InputError for a model that ranks no words."""
    loaded = _loaded(what, prompt)
    graph = loaded.graph
    stages = lenses.stages(graph)
    for n, stage in enumerate(stages):
        graph.at(f"lens.{n}").copy_with({"resid_final": stage})
    probs = np.array([graph.values[f"lens.{n}.probs"] for n in range(len(stages))])
    words = shown((loaded.model.outputs or loaded.model.vocabulary).texts)
    texts = [[words[v] for v in row] for row in probs.argmax(axis=-1)]  # [n_stages, n_tokens]
    figure = _by_stage(graph, probs.max(axis=-1), 1.0, texts, "probability")
    figure.axes[0].set_title("the most likely word after each sublayer")
    return figure


@explained
def attribution(
    what: str | Path | Model,
    prompt: str | None = None,
    target: str | None = None,
    rival: str | None = None,
) -> "Figure":
    """The amount that each head, MLP and embedding adds to the target's lead over a rival
    (default: the two likeliest words); the bars sum to the lead. Raises InputError for an
    unknown word."""
    loaded = _loaded(what, prompt)
    graph, row = loaded.graph, loaded.place_of_answer
    finite.check(graph, graph.values)
    order = ranked(graph.values["logits"][row], 2)
    first = order[0] if target is None else word_of(loaded.model, target, graph, row)
    other = next(v for v in order if v != first)
    if rival is not None:
        other = word_of(loaded.model, rival, graph, row, "rival")
    views = lenses.add_lens(graph, row % graph["tokens"].shape[0], first, other)
    shares = {}
    for writer in views.credits["target"]:
        both = (graph.values[views.credits[word][writer].name] for word in ("target", "rival"))
        one, beside = (float(share[min(row, len(share) - 1), 0]) for share in both)
        shares[writer] = one - beside
    words = shown((loaded.model.outputs or loaded.model.vocabulary).texts)
    figure = _figure((6.5, 0.9 + ROW * len(shares)))
    axes = figure.subplots()
    colours = [WRITES if share >= 0 else AGAINST for share in shares.values()]
    axes.barh([_label(name) for name in shares], list(shares.values()), color=colours)
    axes.axvline(0, color="black", linewidth=0.8)
    axes.grid(axis="x", color=GRID)
    axes.set_axisbelow(True)
    lead = sum(shares.values())
    axes.set_title(_label(f"lead of ‘{words[first]}’ over ‘{words[other]}’: {lead:+.3f}"))
    return figure


@explained
def stream(live: Live) -> "Figure":
    """The length of the residual stream after each sublayer (rows) at each token (columns)."""
    stages = lenses.stages(_graph(live))
    lengths = np.array([np.linalg.norm(_values(live)[s.name], axis=1) for s in stages])
    texts = [[f"{x:.3g}" for x in row] for row in lengths]
    figure = _by_stage(live, lengths, float(lengths.max()), texts, "length")
    figure.axes[0].set_title("length of the residual stream after each sublayer")
    return figure


def _by_stage(
    live: Live, values: np.ndarray, most: float, texts: Sequence[Sequence[str]], label: str
) -> "Figure":
    """Squares for a number of each sublayer (rows) at each token (columns), with texts in them."""
    rows, tokens = [stage.name for stage in lenses.stages(_graph(live))], _tokens(live)
    wide = max(len(text) for text in (*tokens, *(text for row in texts for text in row)))
    figure = _figure((2.2 + len(tokens) * max(SIDE, LETTER * wide), 0.9 + ROW * len(rows)))
    axes = figure.subplots()
    figure.colorbar(_squares(axes, values, rows, tokens, most, texts), ax=axes, label=label)
    return figure


@explained
def sweep(
    graph: Forward,
    cell: str | tuple[str, int, int],
    values: Sequence[float] | np.ndarray,
    target: str | None = None,
) -> "Figure":
    """The target's logit and probability at the last token as one cell runs through values
    (default: the likeliest word). Raises InputError for an unknown cell or word."""
    if not isinstance(graph, Forward):
        raise InputError(
            "a sweep shows the logit of a word, and this graph has no logits; give the graph of "
            "a model"
        )
    if len(values) < 2 or not all(map(is_finite, values)):
        raise InputError("a sweep needs values: give two or more numbers")
    block, i, j = graph.parse(cell) if isinstance(cell, str) else (graph[cell[0]], *cell[1:])
    finite.check(graph, graph.values)
    found = variants(graph, [{(block.name, i, j): float(x)} for x in values])
    words = [] if graph.outputs is None else list(shown(graph.outputs.texts))
    wanted = int(np.argmax(graph.values["logits"][-1]))
    if target is not None:
        if target not in words:
            raise InputError(f"there is no word {target!r}; {nearest(target, words)}")
        wanted = words.index(target)
    word = words[wanted] if words else str(wanted)
    columns = {
        f"logit of {word}": found["logits"][:, -1, wanted],
        "probability": found["probs"][:, -1, wanted],
    }
    return curve(f"{block.name}[{i},{j}]", np.asarray(values, float), columns, f"‘{word}’")


@explained
def curve(
    cell: str, values: np.ndarray, columns: Mapping[str, np.ndarray], subject: str
) -> "Figure":
    """Numbers as one cell runs through values, a panel for each: the last column on top."""
    if not columns or any(np.shape(own) != np.shape(values) for own in columns.values()):
        raise InputError(
            "columns must name one list or more, each with a number for each of the "
            f"{np.size(values)} values"
        )
    figure = _figure((7, 2.2 + len(columns)))
    panels = np.atleast_1d(figure.subplots(len(columns), 1, sharex=True))
    for axes, label in zip(panels, reversed(list(columns)), strict=True):
        axes.plot(values, columns[label], color=LINE)
        axes.set_ylabel(_label(label.partition(" of ")[0]))
        axes.grid(color=GRID)
    panels[0].set_title(_label(f"{subject} as {cell} changes"))
    panels[-1].set_xlabel(_label(cell))
    return figure


@explained
def save(figure: "Figure", path: str | Path) -> Path:
    """Write a picture as .png, .svg or .pdf, completely or not at all; the same picture gives the
    same bytes. Raises InputError for another ending."""
    path = Path(path)
    kind = path.suffix.lower().removeprefix(".")
    dated = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
    if kind not in dated:
        raise InputError(f"{path}: the name of a picture must end in .{', .'.join(dated)}")
    from matplotlib import rc_context

    with replacing(path) as temporary, rc_context({"svg.hashsalt": "cellformer"}):
        figure.savefig(temporary, format=kind, dpi=130, metadata=dated[kind])
    return path


# --- what they share --------------------------------------------------------------------------


def _figure(size: tuple[float, float]) -> "Figure":
    """An empty figure of so many inches. Raises InputError without matplotlib."""
    try:
        from cellformer.figure import Figure
    except ImportError:
        raise InputError(
            "pictures need matplotlib: pip install 'cellformer[plot]', or use graph.frame(name)"
        ) from None
    return Figure(figsize=size, layout="constrained")


def _loaded(what: str | Path | Model, prompt: str | None) -> names.Loaded:
    """A model and a prompt's ids. Raises InputError for a model that ranks no words."""
    name = "model" if isinstance(what, Model) else str(what)
    model = what if isinstance(what, Model) else names.model(name)
    if prompt is not None or isinstance(what, Model):
        ids = names.prompt_ids(model, None) if prompt is None else names.text_ids(model, prompt)
        model.check_ids(ids)
        loaded = names.Loaded(name, model, ids, len(ids))
    else:
        loaded = names.load(name, force=True)
    if loaded.model.spec.gives == "sentence":
        raise InputError(
            f"a {loaded.model.kind} model predicts no words; plot its attention pattern"
        )
    return loaded


def _graph(live: Live) -> Graph:
    return live.graph if isinstance(live, Evaluator) else live


def _values(live: Live) -> Readable:
    return live if isinstance(live, Evaluator) else live.values


def _patterns(graph: Graph, heads: str) -> list[str]:
    """The names of the blocks that `heads` names. Raises InputError."""
    if set("*?[") & set(heads):
        found = [block.name for block in graph.find(heads) if block.leaf == "pattern"]
        if not found:
            known = [block.name for block in graph if block.leaf == "pattern"]
            instead = nearest(heads, known) if known else "the model has no attention"
            raise InputError(f"the graph has no attention pattern named {heads!r}; {instead}")
        if len(found) > MOST_HEADS:
            raise InputError(
                f"a picture cannot show {len(found)} heads; name a layer: 'blocks.0.*.pattern'"
            )
        return found
    return [f"{scores.head_of(graph, heads.removesuffix('.pattern'))}.pattern"]


def _tokens(live: Live) -> list[str]:
    """The labels of the tokens, as in frames."""
    n_tokens = _graph(live)["tokens"].shape[0]
    labels = _graph(live).labels("token", 0, _values(live))
    return list(labels) or list(map(str, range(n_tokens)))


def _squares(
    axes: "Axes",
    values: np.ndarray,
    rows: Sequence[str],
    columns: Sequence[str],
    most: float,
    texts: Sequence[Sequence[str]] = (),
    signed: bool = False,
) -> "AxesImage":
    """Squares coloured from 0, or if `signed` from -most, to `most`, with labels, and texts in them
    if there are any."""
    most = most or 1.0
    colours, least = ("RdBu", -most) if signed else ("Blues", 0.0)
    image = axes.imshow(values, cmap=colours, vmin=least, vmax=most, aspect="auto")
    axes.set_xticks(range(len(columns)), [_label(text) for text in columns], rotation=90)
    axes.set_yticks(range(len(rows)), [_label(text) for text in rows])
    axes.tick_params(length=0, labelsize=8)
    for i, row in enumerate(texts):
        for j, text in enumerate(row):
            colour = "white" if values[i, j] > DARK * most else "black"
            axes.text(j, i, _label(text), ha="center", va="center", color=colour, fontsize=8)
    return image


def _label(text: str) -> str:
    """A text that is no formula."""
    return text.replace("$", r"\$")
