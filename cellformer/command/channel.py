"""The output of `why --channel`: how much a channel of a recurrence takes of each token, its
hidden attention."""

from typing import Annotated

import typer
from rich.text import Text as Shown

from cellformer import budget, names
from cellformer.command import printing, results
from cellformer.command.answer import Answer
from cellformer.command.console import console, line
from cellformer.engine.cells import finite
from cellformer.engine.studies import hidden_attention

Channel = Annotated[
    str | None,
    typer.Option(
        "--channel",
        help="Channel of a recurrent model to explain: 0.3 is layer 0, channel 3. If the states "
        "are in heads, also give the head, such as 0.1.3.",
    ),
]


def taken(loaded: names.Loaded, channel: str, from_: str | None, force: bool) -> Answer:
    """The amount that the channel takes, at one token, from each token up to it. Raises
    InputError."""
    budget.of_passes(loaded.model, len(loaded.ids), force)
    graph = loaded.graph
    of, number = hidden_attention.named(graph, channel)
    finite.check(graph, graph.values)
    texts, reader = loaded.texts, loaded.place(from_, "--from")
    weights = hidden_attention.weights(graph.values, of, number)[reader]
    inputs = graph.values[of.x.name][:, number]
    read = float(graph.values[of.z.name][reader, number])
    by_weights = weights * inputs  # [n_tokens]
    past = float(hidden_attention.read(graph.values, of, number)[reader] - by_weights.sum())

    def result() -> results.WhyChannel:
        rows: list[results.Taken] = [
            {
                "position": s,
                "token": texts[s],
                "weight": float(weights[s]),
                "input": float(inputs[s]),
                "adds": float(by_weights[s]),
            }
            for s in range(reader + 1)
        ]
        at: results.At = {"position": reader, "token": texts[reader]}
        return {"channel": channel, "reader": at, "taken": rows, "past": past, "read": read}

    def tell() -> None:
        printing.prompt(" ".join(texts), len(texts))
        line(
            f"channel {channel} at ‘{texts[reader]}’ ({reader}): the amount that the channel "
            "takes from each token"
        )
        console.print()
        table = printing.table_of("token", "", "weight", "input", "adds")
        for row in result()["taken"]:
            numbers = (f"{x:+.4f}" for x in (row["weight"], row["input"], row["adds"]))
            table.add_row(Shown(row["token"], "bold"), str(row["position"]), *numbers)
        table.add_row("D × token input", "", "", "", f"{past:+.4f}")
        table.add_row("what it reads", "", "", "", f"{read:+.4f}", style="bold")
        console.print(table)

    return Answer(tell, result, "taken")
