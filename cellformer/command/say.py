"""`why NAME --say WORD`: the graph of an answer, as tables, JSON, or a picture."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text as Shown

from cellformer import answers, budget, names
from cellformer.answers import Cut, Said
from cellformer.command import answer_picture, printing, results
from cellformer.command.answer import Answer
from cellformer.command.console import console, line
from cellformer.command.options import output_words
from cellformer.engine import InputError
from cellformer.engine.cells.files import replacing
from cellformer.engine.studies import pair
from cellformer.engine.studies.answer_graph import Ends, Node, short
from cellformer.engine.studies.circuit import Circuit

Word = Annotated[
    str | None,
    typer.Option(
        "--say",
        help="Predicted word to explain: list the edges of the graph that leads to this word.",
        autocompletion=output_words,
    ),
]
Rival = Annotated[
    str | None,
    typer.Option(
        "--rival",
        help="Word to compare with (default: the most likely other word).",
        autocompletion=output_words,
    ),
]
Neurons = Annotated[
    bool, typer.Option("--neurons", help="With --say: show the strongest neurons as nodes.")
]
Against = Annotated[
    str | None,
    typer.Option(
        "--against",
        help="Text of the same length. A cut edge carries the value of this text (default: the "
        "average of several texts).",
    ),
]
Also = Annotated[
    Path | None,
    typer.Option(
        "--also",
        help="With --say: file of other texts, one per line, for the average and the tests "
        "(default: the workbook's own texts, or random words).",
    ),
]
Output = Annotated[
    Path | None,
    typer.Option("-o", "--output", help="Draw the graph of the answer in this SVG file."),
]
NEURONS = 8  # that are nodes of their own, where they are asked for
PASSES = 64  # that the search holds together


def say(
    loaded: names.Loaded,
    word: str,
    rival: str | None,
    neurons: bool,
    against: str | None,
    also: Path | None,
    output: Path | None,
    special: bool,
    force: bool,
) -> Answer:
    """The strongest edges, the circuit, and how it holds on other sentences."""
    if loaded.model.spec.gives != "next word":
        raise InputError(
            f"a {loaded.model.kind} model predicts no next word; --say needs a decoder, such "
            "as dialogue-game"
        )
    if output is not None and output.suffix.lower() != ".svg":
        raise InputError(f"{output}: the picture is an SVG file; name a file that ends in .svg")
    budget.of_passes(loaded.model, len(loaded.ids), force, PASSES * len(loaded.ids))
    other = [] if against is None else pair.others(loaded.asked(force, special, against=against))
    texts = [] if also is None else names.lines(loaded.model, also, special)
    if also is not None and not texts:
        raise InputError(f"{also} contains no text; write one text on each line")
    found = answers.why(loaded, word, rival, NEURONS * neurons, other, texts)
    tokens, words = loaded.texts, printing.output_words(loaded.model)
    if output is not None:
        _draw(output, found, tokens, words)

    def tell() -> None:
        printing.prompt(" ".join(tokens), len(tokens))
        _edges(found, tokens, words)
        console.print()
        if found.circuit is None:
            line(f"no small set of edges keeps the answer: {found.refused}")
        else:
            _circuit(found, found.circuit, tokens)
            _trials(found)
        if output is not None:
            line(f"wrote {output}")

    return Answer(tell, lambda: _plain(found, tokens, words), "edges")


def _draw(path: Path, found: Said, tokens: Sequence[str], words: Sequence[str]) -> None:
    """Write the picture."""
    title = f"{words[found.target]} over {words[found.rival]}"
    kept = here(found, found.circuit.edges if found.circuit else ())
    picture = answer_picture.svg(title, tokens, [cut.edge for cut in found.edges], kept)
    with replacing(path) as unfinished:
        Path(unfinished).write_text(picture, "utf-8", newline="\n")


def here(found: Said, edges: Sequence[Ends]) -> list[Ends]:
    """Edges whose tokens are counted back from the answer's, at the sentence's own tokens."""
    row = found.answer.row
    return [(source, at + row, reader, token + row) for source, at, reader, token in edges]


def told(node: Node, tokens: Sequence[str]) -> str:
    """A node for people: head 1.2 at Paolo (3)."""
    neuron = "" if node.neuron is None else f" neuron {node.neuron}"
    return f"{short(node.name)}{neuron} at {tokens[node.token]} ({node.token})"


def _edges(found: Said, tokens: Sequence[str], words: Sequence[str]) -> None:
    """The strongest edges, with the real effect of cutting each alone."""
    lead, said, rival = found.answer.lead, words[found.target], words[found.rival]
    place = "leads" if lead >= 0 else "is behind"
    line(f"{said} {place} {rival} by {abs(lead):.4f}; the strongest edges of this lead:")
    table = printing.table_of("from", "to", "value", "share", "cut: estimate", "cut: real")
    for edge, real in ((cut.edge, cut.real) for cut in found.edges):
        both = [Shown(told(node, tokens), "bold") for node in edge[:2]]
        ratio = f"{edge.value / lead:+.1%}" if lead else ""
        cut = "" if real is None else f"{real:+.4f}"
        table.add_row(*both, f"{edge.value:+.4f}", ratio, f"{-edge.value:+.4f}", cut)
    console.print(table)
    if found.edges and lead:
        source, reader, value = found.edges[0].edge
        line(
            f"{value / lead:.0%} of this lead comes through the strongest edge, from "
            f"{told(source, tokens)} to {told(reader, tokens)}. Shares may add up to more than "
            "100%, because the same amount can pass through several edges."
        )


def _circuit(found: Said, circuit: Circuit, tokens: Sequence[str]) -> None:
    """The few edges that keep the answer, all others as they are in other sentences."""
    keeps = "keep the answer" if circuit.lead > 0 else "carry the rise of the lead"
    line(
        f"these {len(circuit.edges)} edges alone {keeps}, even if all other edges have the "
        f"values of other sentences. Lead with these edges alone: {circuit.kept:.4f} of "
        f"{circuit.lead:.4f}; lead without these edges: {circuit.without:.4f}"
    )
    table = printing.table_of("from", "to")
    for source, at, reader, token in here(found, circuit.edges):
        both = told(Node(source, at), tokens), told(Node(reader, token), tokens)
        table.add_row(*(Shown(text, "bold") for text in both))
    console.print(table)


def _trials(found: Said) -> None:
    """The results of the circuit on other sentences."""
    same = sum(trial.says == trial.alone for trial in found.trials)
    n = len(found.trials)
    if not n:
        return
    console.print()
    line(
        f"on {n} other sentences, these edges alone give the same word as the whole model in "
        f"{same} cases"
    )


def _plain(found: Said, tokens: Sequence[str], words: Sequence[str]) -> results.WhyWord:
    """The same as JSON."""
    lead, circuit = found.answer.lead, found.circuit
    return {
        "tokens": list(tokens),
        "target": words[found.target],
        "rival": words[found.rival],
        "lead": lead,
        "edges": [_cut(cut) for cut in found.edges],
        "circuit": None if circuit is None else _kept(found, circuit),
        "refused": found.refused,
        "other_sentences": [
            {"ids": trial.ids, "says": words[trial.says], "alone": words[trial.alone]}
            for trial in found.trials
        ],
    }


def _kept(found: Said, circuit: Circuit) -> results.Circuit:
    edges = here(found, circuit.edges)
    return {
        "edges": [{"source": [s, at], "reader": [r, token]} for s, at, r, token in edges],
        "lead": circuit.kept,
        "lead_without": circuit.without,
    }


def _cut(cut: Cut) -> results.Edge:
    source, reader, value = cut.edge
    from_, to = ([x for x in node if x is not None] for node in (source, reader))
    return {"source": from_, "reader": to, "value": value, "cut": cut.real}
