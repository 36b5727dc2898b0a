"""The effect of a suggested edit, computed when a workbook is built."""

from cellformer.engine import Evaluator, Graph
from cellformer.engine.cells.language import worded


def effect(
    graph: Graph, edit: tuple[str, int, int, float], texts: tuple[str, ...], row: int
) -> str:
    """The effect of an edit on the word whose probability changes most."""
    live = Evaluator(graph)
    live.set(*edit)
    before, after = graph.values["probs"][row], live["probs"][row]
    v = int(abs(after - before).argmax())
    return worded(
        "‘{word}’ changes from {before:.1%} to {after:.1%}",
        word=texts[v],
        before=before[v],
        after=after[v],
    )
