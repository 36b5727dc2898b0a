"""Printing: ranked words, blocks, traces, tables of effects."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np
from rich.table import Table
from rich.text import Text

from cellformer.command import results
from cellformer.command.console import console, line
from cellformer.engine import Evaluator, Graph, Model
from cellformer.engine.cells.arrays import ranked
from cellformer.engine.cells.texts import on_terminal, readable
from cellformer.engine.models.generate import Step
from cellformer.engine.studies import columns
from cellformer.engine.studies.lens import Views
from cellformer.engine.studies.part_names import said
from cellformer.engine.text.tokenizer import shown
from cellformer.exporters.compose.book import Book
from cellformer.exporters.model.words import stage_names

TOP = 10  # next words shown
LENS_WORDS = 3
MOST_CHANGES = 12  # cells of one table that are shown


def prompt(text: str, n_tokens: int) -> None:
    """Print the prompt and its number of tokens, as a heading."""
    count = f"   {n_tokens} token{'s' if n_tokens > 1 else ''}"
    console.print(Text.assemble((text, "italic"), (count, "dim")), soft_wrap=True)
    console.print()


def text(text: str) -> None:
    """Print a part of a text at once: unchanged to a pipe or a file, without control characters to
    a terminal."""
    if sys.stdout.isatty():
        text = on_terminal(text)
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "replace").decode(encoding))
    sys.stdout.flush()


def steps(words: Sequence[str], done: Sequence[Step]) -> None:
    """Print generated tokens, and how many cells were computed for each."""
    table = table_of("", "token", "id", "cells computed", "of a full pass")
    for k, step in enumerate(done, 1):
        numbers = (str(step.token), f"{step.n_cells:,}", f"{step.n_full:,}")
        table.add_row(str(k), Text(words[step.token], "bold"), *numbers)
    console.print(table)


def table_of(*heads: str) -> Table:
    """A table with these column heads, as they are, without markup."""
    table = Table(box=None)
    for head in heads:
        table.add_column(Text(head))
    return table


def output_words(model: Model) -> list[str]:
    """The texts of the words that have a logit."""
    if model.outputs:
        return list(map(readable, model.outputs.texts))
    return list(shown(model.vocabulary.texts))


def block(graph: Graph, live: Evaluator, name: str) -> None:
    """Print a block's values as a table."""
    found = graph[name]
    rows, cols = found.shape
    console.print(Text(f"{name}   {rows} x {cols}", "italic"))
    table = Table(box=None)
    table.add_column("", style="dim", justify="right")
    for j in range(cols):
        table.add_column(str(j), justify="right")
    for i, row in enumerate(live[name].tolist()):
        texts = [x if isinstance(x, str) else f"{x:.4f}" for x in row]
        cells = [Text(text) if found.has(i, j) else Text() for j, text in enumerate(texts)]
        table.add_row(str(i), *cells)
    console.print(table)
    console.print()


def vectors(live: Evaluator, changed: bool) -> None:
    """Print a sentence's vector, or the cosine of two; if cells changed, beside the baseline."""
    if "cosine" not in live.graph.blocks:
        line(
            f"vector of {live['vector'].shape[1]} numbers, with length {live['length'][0, 0]:.6f}:"
        )
        return line(" ".join(f"{x:.6f}" for x in live["vector"][0]))
    before, now = live.graph.values["cosine"][0, 0], live["cosine"][0, 0]
    line(f"cosine {now:.6f}" + (f"   baseline {before:.6f}" if changed else ""))


def ranking(
    words: Sequence[str],
    live: Evaluator,
    changed: bool,
    target: int | None,
    row: int,
    head: str,
) -> None:
    """Print the most likely words at a token under a head, and the target; if cells changed, beside
    the baseline."""
    table = Table(box=None)
    table.add_column("", style="dim", justify="right")
    table.add_column(head, style="bold")
    for number in ["logit", "probability"] + (["baseline", "change"] if changed else []):
        table.add_column(number, justify="right")
    for found in ranked_words(words, live, target, row):
        logit, p, before = (np.float64(found[n]) for n in ("logit", "probability", "baseline"))
        change = (f"{before:.4f}", f"{p - before:+.4f}") if changed else ()
        word = Text(found["word"], "bold cyan" if found["id"] == target else "bold")
        table.add_row(str(found["rank"]), word, f"{logit:.4f}", f"{p:.4f}", *change)
    console.print(table)


def ranked_words(
    words: Sequence[str], live: Evaluator, target: int | None, row: int
) -> list[results.Word]:
    """The most likely words at a token, and the target, as JSON."""
    logits, probs = live["logits"][row], live["probs"][row]
    before, order = live.graph.values["probs"][row], ranked(probs)
    listed = order[:TOP] + ([target] if target is not None and target not in order[:TOP] else [])
    return [
        {
            "rank": order.index(v) + 1,
            "word": words[v],
            "id": v,
            "logit": float(logits[v]),
            "probability": float(probs[v]),
            "baseline": float(before[v]),
        }
        for v in listed
    ]


def lens_stages(
    words: Sequence[str], live: Evaluator, views: Views, target: int
) -> list[results.Stage]:
    """The logit lens, as JSON."""
    found: list[results.Stage] = []
    for n, stage in enumerate(views.stages):
        probs = live[f"lens.{n}.probs"][0]
        order = ranked(probs, LENS_WORDS)
        found.append(
            {
                "after": stage.name,
                "words": [words[v] for v in order],
                "probabilities": [float(probs[v]) for v in order],
                "target": float(probs[target]),
            }
        )
    return found


def lens(words: Sequence[str], live: Evaluator, views: Views, target: int) -> None:
    """Print the logit lens: the most likely words after each sublayer."""
    heads = [text for k in range(1, LENS_WORDS + 1) for text in (f"likeliest {k}", "")]
    table = table_of("after", *heads, words[target])
    found = lens_stages(words, live, views, target)
    for stage, name in zip(found, stage_names(live.graph, views.stages), strict=True):
        pairs = zip(stage["words"], stage["probabilities"], strict=True)
        cells = (cell for word, p in pairs for cell in (Text(word, "bold"), f"{p:.4f}"))
        table.add_row(name, *cells, f"{stage['target']:.4f}")
    console.print()
    console.print(table)


def attribution(words: Sequence[str], live: Evaluator, views: Views) -> None:
    """Print what each head, MLP and embedding adds to the target's logit and its lead over the
    rival."""
    target, rival = (words[int(live[name][0, 0])] for name in ("target", "rival"))
    table = table_of("written by", target, f"lead over {rival}")
    found = shares(live, views)
    for share in found:
        table.add_row(said(share["part"]), f"{share['logit']:+.4f}", f"{share['lead']:+.4f}")
    sums = sum(share["logit"] for share in found), sum(share["lead"] for share in found)
    table.add_row("sum", *(f"{x:+.4f}" for x in sums), style="bold")
    console.print()
    console.print(table)


def shares(live: Evaluator, views: Views) -> list[results.Share]:
    """The amount that each part adds to the target's logit and its lead over the rival, as JSON."""
    row = int(live["position"][0, 0])
    found: list[results.Share] = []
    for writer in reversed(views.credits["target"]):
        both = (live[views.credits[word][writer].name] for word in ("target", "rival"))
        target, rival = (float(share[min(row, len(share) - 1), 0]) for share in both)
        found.append({"part": writer, "logit": target, "lead": target - rival})
    return found


def rows(
    found: Sequence[Any], title: str = "", hidden: Sequence[str] = (), closing: str = ""
) -> None:
    """Print the rows of a study as a table with the names of its columns, and a sentence below."""
    if title:
        line(title)
    if not found:
        return
    heads = columns.heads(type(found[0]))
    table = table_of(*(head for head in heads if head not in hidden))
    table.columns[0].no_wrap = True  # the name: in a narrow terminal it stays whole
    for texts in columns.shown(found):
        cells = zip(heads, texts, strict=True)
        table.add_row(*(Text(text) for head, text in cells if head not in hidden))
    console.print(table)
    if closing:
        console.print()
        line(closing)


def tables(book: Book) -> None:
    """Print every table of a workbook: its kind, its address and its first value."""
    table = table_of("table", "shape", "", "at", "first value")
    for block in book.graph:
        kind, (rows, columns) = "computed" if block.computed else "typed", block.shape
        first = value_text(book.clean(block[0, 0]))
        row = (block.name, f"{rows} x {columns}", kind, book.area(block.name), first)
        table.add_row(*map(Text, row))
    console.print(table)


def listed_tables(book: Book) -> list[results.Table]:
    """Every table of a workbook, as JSON."""
    return [
        {
            "name": block.name,
            "rows": block.shape[0],
            "columns": block.shape[1],
            "computed": bool(block.computed),
            "at": book.area(block.name),
        }
        for block in book.graph
    ]


def changes(live: Evaluator) -> None:
    """Print the cells that changed, table by table."""
    table = table_of("cell", "was", "is")
    for name, found in groupby(changed_cells(live), lambda found: found["cell"].partition("[")[0]):
        listed = list(found)
        for one in listed[:MOST_CHANGES]:
            table.add_row(*map(Text, (one["cell"], value_text(one["was"]), value_text(one["now"]))))
        if len(listed) > MOST_CHANGES:
            table.add_row(Text(f"... {len(listed) - MOST_CHANGES} more of {name}", "dim"))
    console.print(table)


def changed_cells(live: Evaluator) -> Iterator[results.Change]:
    """The cells that changed, as JSON."""
    for block in live.graph:
        before, after = live.graph.values[block.name], live[block.name]
        for i, j in np.ndindex(*block.shape):
            if before[i, j] != after[i, j]:
                name = f"{block.name}[{i},{j}]"
                yield {"cell": name, "was": before.item(i, j), "now": after.item(i, j)}


def block_rows(live: Evaluator, names: Sequence[str]) -> Iterator[Mapping[str, Any]]:
    """The values of blocks as a table: a line for each row, with the labels of its columns."""
    for name in names:
        frame = live.frame(name)
        block = {"block": name} if len(names) > 1 else {}
        for label, row in zip(frame.rows, frame.values, strict=True):
            numbers = dict(zip(map(str, frame.columns), row, strict=True))
            yield block | {"row": label} | numbers


def value_text(value: Any) -> str:
    """A value for people, a number with six digits."""
    return str(value) if isinstance(value, str | bool | np.bool_) else f"{value:.6g}"
