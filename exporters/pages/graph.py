"""Graph: the parts that carry the target's lead over its rival, from part to part, live.

With attention patterns, norms' divisors and activations' ratios held, the lead is a sum over paths
through the model. A node is what a part writes at a token; an edge is what passes to its value from
another. What enters a node sums to it. Below a threshold, edges fold into the rest. A cut of an
edge predicts a change of the lead: minus its value. What happens really, with everything after it
computed anew, stands beside it: of all that is cut together, live, by the forward pass on Cut; of
each edge alone as constants, which the engine computed for the prompt as built.
"""

from collections.abc import Sequence
from itertools import groupby
from math import comb

import numpy as np

from cellformer.engine import Evaluator
from cellformer.engine.cells.expression import Area, Expression, expression
from cellformer.engine.cells.functions import ABS, IFERROR, MAX, SUM, SUMPRODUCT, N, lookup
from cellformer.engine.cells.language import AsIs, worded
from cellformer.engine.studies import live_cuts
from cellformer.engine.studies.answer_graph import ANSWER as OBJECTIVE
from cellformer.engine.studies.answer_graph import AnswerGraph, Ends, short, writers
from cellformer.engine.studies.edge_cuts import Cuts
from cellformer.engine.studies.live_cuts import KEPT
from cellformer.exporters.compose.composer import Composer
from cellformer.exporters.compose.dressing import Unlike, When, between
from cellformer.exporters.compose.sentences import percent, quote, rounded, sentence
from cellformer.exporters.compose.story import Suggestion, outcome
from cellformer.exporters.model import answer_cells, layout
from cellformer.exporters.model.answer_cells import ANSWER, BIASES, AnswerCells, CellEdge
from cellformer.exporters.model.model_book import ModelBook

SHEET = "Graph"
PURPOSE = (
    "the paths between parts that carry the target’s lead over its rival; every edge is a formula"
)
AFTER = "Why"
CONCEPT = "where the answer comes from"  # on the tour
THRESHOLD, LEAD, CUTS, PREDICTED = "graph.threshold", "graph.lead", "graph.cuts", "graph.predicted"
AFTER_CUTS, REALLY = "graph.after_cuts", "graph.really"
VALUES, NODES, REST, GAPS = "graph.values", "graph.nodes", "graph.rest", "graph.gaps"
BEGUN = 0.5  # of the threshold
N_CUTS = 12  # edges that can be cut
FEW_TOKENS = 8  # up to the answer: all models have the sheet; edges grow with their square,
MOST_EDGES = 10_000  # and longer prompts have it as long as there are no more edges
TOP = 5
VALUE, WORKINGS = 4, 8  # columns: of edges' values, of the workings
HEADS = ("from", "at token", "to", "at token", "edge value", "of the lead")
CUT_HEADS = (*HEADS[:5], "1: keep, 0: cut", "predicted", "real, as built", "value as built")
ENDS = {0: "row label", 1: "label number", 2: "row label", 3: "label number"}  # of edges: styles
LINES = (
    (
        "threshold",
        "type a threshold: the sheet adds smaller edges to the rest of their node",
    ),
    ("lead", "the target’s logit minus the rival’s logit, for the prompt as built"),
    ("predicted lead", "a prediction of the lead: the lead minus the values of the cut edges"),
    ("exact lead", "the lead with these cuts, if the sheet Cut computes all later parts again"),
    (
        "largest gap",
        ("difference between a node’s value and the sum of its inputs, caused by rounding"),
    ),
)
OF_EACH = (
    "‘real’ means the lead when everything after the edge is computed again. This number is a "
    "constant for the prompt as built"
)


def wanted(book: ModelBook) -> bool:
    """Whether the workbook was built with --why, has a short prompt, and a stream that is a sum
    of its parts."""
    n = book.passage.n_prompt
    if "why" not in book.plan.studies or n < 2 or not answer_cells.supported(book):
        return False
    # each writer is read by those after it, at its token or a later one, as heads read it
    n_writers = len(writers(book.graph))
    return n <= FEW_TOKENS or comb(n_writers + 1, 2) * comb(n + 1, 2) <= MOST_EDGES


def place(book: ModelBook) -> None:
    """Add the forward pass in which the strongest edges can be cut."""
    edges = _strongest(book, _answer(book))
    cuts = book.graph.input(CUTS, np.ones((len(edges), 1), dtype=object), kind="table")
    live_cuts.add(book.graph, book.passage.n_prompt - 1, edges, cuts.area)


def add(book: ModelBook) -> None:
    """Add the settings, three suggested edits, the edges to cut, the nodes, all edges, and the
    workings."""
    page = layout.page(
        book, SHEET, widths={0: 20} | dict.fromkeys(range(1, 40), 11) | {5: 15, 7: 15, 8: 15}
    )
    page.sheet.put(TOP - 1, 0, "The graph of an answer", "heading")
    cuts = TOP + len(LINES) + 9  # rows: of the edges to cut, the nodes, all edges
    nodes = cuts + N_CUTS + 4
    answer = _answer(book)
    _settings(book, page)
    cells, found = _edges(book, page, nodes + len(answer.readers) + 8)
    places = {_ends(edge): k for k, edge in enumerate(found)}
    strongest = _strongest(book, answer)
    numbers = [places[ends] for ends in strongest]
    _cuts(book, page, found, numbers, cuts)
    leads = Cuts(answer).leads([[ends] for ends in strongest])  # really, by each cut alone
    values = (answer.into[reader][source][token, at] for source, at, reader, token in strongest)
    page.sheet.lines(
        cuts,
        [(float(x) - answer.lead, float(v)) for x, v in zip(leads, values, strict=True)],
        {7: "constant", 8: "constant"},
    )
    _nodes(book, page, cells, found, nodes)
    _sums(book, page)
    page.show("verdict", (TOP + len(LINES), 0), verdict(book, found[numbers[0]]), "block")
    page.cursor = TOP + len(LINES) + 1
    page.suggest(*suggestions(book, [found[k] for k in numbers[:2]]), at=(0, 2, 4))


def told(name: str) -> str:
    """A node's part for people."""
    return worded(name) if name in (ANSWER, BIASES) else AsIs(short(name))


# --- all edges, and what they are computed from ---------------------------------------------------


def _edges(book: ModelBook, page: Composer, top: int) -> tuple[AnswerCells, list[CellEdge]]:
    """Add all edges from a row on, with the workings beside them."""
    below = top + 1

    def lay(name: str, shape: tuple[int, int], cell: answer_cells.Cells, turned: bool) -> Area:
        nonlocal below
        rows = shape[1] if turned else shape[0]
        page.sheet.put(below, WORKINGS, f"{name}  [{rows} × {sum(shape) - rows}]", "note")
        below += rows + 2
        return page.lay(
            book.graph.table(f"graph.{name}", shape, cell),
            (below - rows - 1, WORKINGS),
            "step green",
            turned,
        )

    page.sheet.put(top - 1, 0, "All edges, grouped by the node at which an edge ends", "heading")
    page.sheet.put(
        top - 1, WORKINGS, "Calculation: slopes of the lead, from last to first", "heading"
    )
    page.heads_at((top, 0), *HEADS)
    cells = AnswerCells(book, book.passage.n_prompt - 1, lay)
    found = list(cells.edges())
    page.sheet.lines(top + 1, map(_named, found), ENDS)
    shape, lead = (len(found), 1), book.graph[LEAD][0, 0]
    values = page.computed_at(
        VALUES, (top + 1, VALUE), shape, lambda k, _: found[k].value, "change plain"
    )
    page.show(
        "share", (top + 1, VALUE + 1), lambda k, _: values[k, 0] / lead, "live percent", shape
    )
    return cells, found


def _named(edge: CellEdge) -> tuple[str, int, str, int]:
    """The ends of an edge for people."""
    return told(edge.source), edge.at, told(edge.reader), edge.token


# --- the settings and the lead --------------------------------------------------------------------


def _settings(book: ModelBook, page: Composer) -> None:
    """Add the threshold, the lead, and the meaning of all lines."""
    page.typed_at(
        THRESHOLD, (TOP, 1), [[BEGUN]], "dial", rule=between(0, 1000, "A number from 0 to 1000.")
    )
    page.sheet.lines(TOP, LINES, {0: "row label", 2: "note"})
    lead = _of_words(book, book.graph["logits"][book.passage.n_prompt - 1, :])
    page.computed_at(LEAD, (TOP + 1, 1), (1, 1), lambda *_: lead, "live")


def threshold(book: ModelBook) -> Expression:
    """The threshold, for any entry."""
    return MAX(IFERROR(N(book.graph[THRESHOLD][0, 0].fixed), 0), 0)


def _of_words(book: ModelBook, logits: Area) -> Expression:
    """The target's logit less the rival's."""
    target, rival = (lookup(logits, book.graph[word][0, 0]) for word in ("target", "rival"))
    return target - rival


def _sums(book: ModelBook, page: Composer) -> None:
    """Add the predicted effect of the cuts, their real effect, and the largest gap."""
    graph = book.graph
    after = graph[LEAD][0, 0] + SUM(graph[PREDICTED].area)
    page.computed_at(AFTER_CUTS, (TOP + 2, 1), (1, 1), lambda *_: after, "live")
    really = _of_words(book, live_cuts.logits(graph)[0, :])
    page.computed_at(REALLY, (TOP + 3, 1), (1, 1), lambda *_: really, "live")
    page.show("largest_gap", (TOP + 4, 1), MAX(graph[GAPS].area), "tiny")


def verdict(book: ModelBook, edge: CellEdge) -> Expression:
    """The lead, and the edge that carried most of it as built, in a sentence."""
    value = book.shown["graph.now"].block[0, 0]
    return sentence(
        "{target} leads {rival} by {lead}. As built, the strongest edge goes from {source} to "
        "{reader} at token {token}. This edge carries {value}, or {share} of the lead.",
        source=told(edge.source),
        reader=told(edge.reader),
        token=edge.token,
        target=quote(book.graph["look.target"][0, 0]),
        rival=quote(book.graph["look.rival"][0, 0]),
        lead=rounded(book.graph[LEAD][0, 0], 2),
        value=rounded(value, 2),
        share=percent(value / book.graph[LEAD][0, 0], 0),
    )


def explained(book: ModelBook) -> Expression:
    """The text of its stop on the tour."""
    text = (
        "Why does the model choose this answer? Every part writes into the stream, and later "
        "parts read the stream. So the answer’s lead over its rival comes from steps: from a "
        "token, through a head, through an MLP. Each step is an edge of a graph. If everything "
        "that is not a sum is held constant, the edges add up exactly to the lead. {verdict} "
        "Type ‘0’ beside an edge to cut that edge."
    )
    return sentence(text, verdict=book.shown["graph.verdict"].block[0, 0])


# --- cuts -----------------------------------------------------------------------------------------


def _cuts(
    book: ModelBook, page: Composer, found: list[CellEdge], strongest: Sequence[int], row: int
) -> None:
    """Add the strongest edges, each with a cell that cuts it."""
    n, values = len(strongest), book.graph[VALUES]
    page.sheet.put(row - 2, 0, "To cut an edge, type ‘0’", "heading")
    page.sheet.put(row - 2, 4, OF_EACH, "note")
    page.heads_at((row - 1, 0), *CUT_HEADS)
    page.sheet.lines(row, (_named(found[k]) for k in strongest), ENDS)
    rule = between(0, 1, "1 keeps the edge; 0 cuts the edge.")
    page.sheet.rules |= {(row + k, 5): rule for k in range(n)}
    now = page.show(
        "now", (row, VALUE), lambda k, _: values[strongest[k], 0], "change plain", (n, 1)
    )
    cuts = page.lay(book.graph[CUTS], (row, 5), "dial")
    page.sheet.put(row - 1, 9, "as read", "block")
    kept = page.lay(book.graph[KEPT], (row, 9), "step")

    page.computed_at(
        PREDICTED,
        (row, 6),
        (n, 1),
        lambda k, _: values[strongest[k], 0] * (kept[k, 0] - 1),
        "change plain",
    )
    page.dress(now, "diverging")
    page.dress(cuts, Unlike(1))


def _answer(book: ModelBook) -> AnswerGraph:
    """The engine's graph of the prompt as built."""
    row = book.passage.n_prompt - 1
    target, rival = (int(book.value(word, 0, 0)) for word in ("target", "rival"))
    return AnswerGraph(book.model.graph(book.passage.ids[: row + 1]), row, target, rival)


def _ends(edge: CellEdge) -> Ends:
    return edge.source, edge.at, OBJECTIVE if edge.reader == ANSWER else edge.reader, edge.token


def _strongest(book: ModelBook, answer: AnswerGraph) -> list[Ends]:
    """The edges that can be cut: the strongest as built whose source is a part of the model, or a
    token, and no bias."""
    parts = {block.name for block in book.graph if block.computed}
    return [edge.ends for edge in answer.edges() if edge.ends[0] in parts][:N_CUTS]


# --- nodes ----------------------------------------------------------------------------------------


def _nodes(
    book: ModelBook, page: Composer, cells: AnswerCells, found: list[CellEdge], row: int
) -> None:
    """Add every node's value, and the share of it from edges below the threshold: places down,
    tokens across; and the distance between sums and values."""
    values, spans = book.graph[VALUES], {}
    for into, several in groupby(enumerate(found), lambda x: (x[1].reader, x[1].token)):
        places = [k for k, _ in several]
        spans[into] = values[places[0] : places[-1] + 1, 0].as_range
    read = list(dict.fromkeys(reader for reader, _ in spans))[::-1]
    begun = answer_cells.starts(book)
    n, small = cells.n, threshold(book)

    def node(k: int, p: int) -> Expression:
        if k >= len(read):
            return cells.value(begun[k - len(read)], p)
        return SUM(spans[read[k], p]) if (read[k], p) in spans else expression(0)

    def rest(k: int, p: int) -> Expression:
        if (read[k], p) not in spans:
            return expression(0)
        span = spans[read[k], p]
        return SUMPRODUCT((span * span < small * small) * span)

    def gap(k: int, p: int) -> Expression:
        if read[k] == ANSWER:
            own = book.graph[LEAD][0, 0] if p == n - 1 else expression(0)
        else:
            own = cells.value(book.graph[read[k]], p)
        return ABS(node(k, p) - own)

    names = [*read, *(block.name for block in begun)]
    right = n + 3
    for left, title in (
        (0, "Nodes: the value of each part’s output at each token"),
        (right, "Value of the edges below the threshold"),
        (2 * right, "Sum of edges minus value"),
    ):
        page.sheet.put(row - 2, left, title, "heading")
        at, name = (row - 1, left + 1), f"graph.nodes.{left}"
        layout.labels(book, page.sheet, name, at, "token", range(n), "label", across=True)
        page.sheet.down(row, left, map(told, names if left == 0 else read), "row label")
    area = page.computed_at(NODES, (row, 1), (len(names), n), node, "change plain")
    page.computed_at(REST, (row, right + 1), (len(read), n), rest, "change plain")
    page.computed_at(GAPS, (row, 2 * right + 1), (len(read), n), gap, "tiny")
    page.dress(area, "diverging")
    page.dress(values.area, When("stale", values[0, 0] * values[0, 0] < small * small))


# --- what to try ----------------------------------------------------------------------------------


def suggestions(book: ModelBook, edges: Sequence[CellEdge]) -> list[Suggestion]:
    """Three edits: the two strongest edges cut, and a threshold that folds all."""
    live, tried = Evaluator(book.graph), []
    for k, edge in enumerate(edges):
        becomes, really = (
            outcome(live, (CUTS, k, 0), 0.0, (name, 0, 0)) for name in (AFTER_CUTS, REALLY)
        )
        text = worded(
            "Type ‘0’ to cut the edge from {source} to {reader} at token {token}. The predicted "
            "lead is {becomes:.3f}, and the real lead is {really:.3f}.",
            source=told(edge.source),
            reader=told(edge.reader),
            token=edge.token,
            becomes=becomes,
            really=really,
        )
        tried.append(Suggestion(text, (CUTS, k, 0), 0.0, (AFTER_CUTS, 0, 0), becomes))
    watch = (REST, 0, book.passage.n_prompt - 1)
    text = (
        "Type ‘1000’ as threshold. All edges of the answer are then below this threshold, and "
        "together have the value {becomes:.3f}."
    )
    return [*tried, Suggestion.tried(live, text, (THRESHOLD, 0, 0), 1000.0, watch)]
