"""The command, `cellformer`: list, build, run, trace, verify.

What a user gives and cannot be used ends in one line on standard error and exit code 2.
"""

import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

# Blocks are small: threads for matrix products cost more at start-up than they ever give back.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

import workbooks
from engine import Cell, Evaluator, Graph, InputError, Model
from engine.tokenizer import shown

if TYPE_CHECKING:
    from exporters.book import Book

TOP = 10  # next words shown
MAX_BRANCHES = 12  # precedents shown per cell of a trace

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="A transformer you can open in a spreadsheet.",
)
WIDE = 1000  # columns for output that goes to a file or a pipe, where nothing need be folded
console = Console(highlight=False, width=None if sys.stdout.isatty() else WIDE)

Name = Annotated[
    str, typer.Argument(help="A workbook of `cellformer list`, or a checkpoint folder.")
]
Prompt = Annotated[str | None, typer.Option("--prompt", help="Words of the vocabulary.")]
Ids = Annotated[str | None, typer.Option("--ids", help="Token ids instead, as 0,1,3.")]
Sets = Annotated[
    list[str] | None,
    typer.Option("--set", help="Change a cell: 'blocks.0.attn.h0.W_Q[3,2]=0.5'. Repeatable."),
]


class Loaded(NamedTuple):
    """A model, the graph of a prompt, and what builds a workbook from it."""

    model: Model
    graph: Graph
    build: "Callable[[Graph], Book]"


@app.command("list")
def list_() -> None:
    """Name the workbooks, with a line each."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for name in workbooks.names():
        table.add_row(Text(name, style="bold"), workbooks.find(name).STORY.title.partition(": ")[2])
    console.print(table)


@app.command()
def build(
    name: Name,
    output: Annotated[
        Path | None, typer.Option("-o", help="The file; NAME.xlsx unless given.")
    ] = None,
    prompt: Prompt = None,
    ids: Ids = None,
) -> None:
    """Write a workbook whose formulas recompute the forward pass."""
    from exporters.xlsx import write

    loaded = _load(name, prompt, ids)
    book = loaded.build(loaded.graph)
    path = write(book, output or Path(f"{Path(name).resolve().name}.xlsx"))
    size = path.stat().st_size / 1024
    text = f"{path}: {len(book.sheets)} sheets, {book.n_formulas:,} formulas, {size:,.0f} KB"
    console.print(text, soft_wrap=True, markup=False)


@app.command()
def run(
    name: Name,
    prompt: Prompt = None,
    ids: Ids = None,
    sets: Sets = None,
    show: Annotated[list[str] | None, typer.Option("--show", help="A block to print.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print blocks as JSON.")] = False,
) -> None:
    """Evaluate a model: the ranked next words, beside the baseline where a cell was changed."""
    loaded = _load(name, prompt, ids)
    model, graph = loaded.model, loaded.graph
    live = Evaluator(graph)
    for text in sets or ():
        _set(live, text)
    shown = [graph[block].name for block in show or ()]
    if as_json:
        blocks = {block: _rows(live[block]) for block in shown or graph.blocks}
        print(json.dumps(blocks))
        return
    for block in shown:
        _print_block(graph, live, block)
    _print_ranking(model, graph, live, bool(sets))


@app.command()
def trace(
    name: Name,
    cell: Annotated[str, typer.Argument(help="A cell: 'logits[2,5]'.")],
    depth: Annotated[int, typer.Option("--depth", min=0, help="Levels of precedents.")] = 2,
    prompt: Prompt = None,
    ids: Ids = None,
    sets: Sets = None,
) -> None:
    """Show a cell's formula, the cells that it reads and their values, as a tree."""
    graph = _load(name, prompt, ids).graph
    live = Evaluator(graph)
    for text in sets or ():
        _set(live, text)
    block, i, j = graph.parse(cell)
    root = live.cell(block.name, i, j)
    tree = Tree(_cell_line(root))
    _grow(tree, root, depth)
    console.print(tree)


@app.command()
def info(
    name: Name,
    tokens: Annotated[int, typer.Option("--tokens", min=1, help="Prompt length to forecast.")] = 8,
) -> None:
    """Show a model's sizes, parameters, KV cache and the forecast of its workbook."""
    from engine.info import forecast, kv_numbers, parameters

    model, _, _ = _find(name)
    spec = model.spec
    table = Table(box=None, show_header=False)
    table.add_row("architecture", str(model.config.get("model_type", model.architecture.__name__)))
    for label in ("d_vocab", "d_model", "n_layers", "n_heads", "d_head", "d_mlp", "n_ctx"):
        table.add_row(label, f"{getattr(spec, label):,}")
    console.print(table)
    console.print()
    counts = parameters(model)
    table = Table("part", "parameters", "share", box=None)
    for part, count in counts.items():
        table.add_row(part, f"{count:,}", f"{count / sum(counts.values()):.1%}")
    table.add_row("all", f"{sum(counts.values()):,}", "")
    console.print(table)
    console.print()
    cache = kv_numbers(model)
    console.print(f"KV cache: {cache:,} numbers per token, {2 * cache:,} bytes in 16 bits")
    n_tokens = min(tokens, spec.n_ctx)
    book = forecast(model, n_tokens)
    text = f"workbook of {n_tokens} tokens: {book.n_cells:,} cells, {book.n_formulas:,} formulas, "
    console.print(text + f"about {book.megabytes:.1f} MB")


@app.command()
def generate(
    name: Name,
    prompt: Prompt = None,
    ids: Ids = None,
    n: Annotated[int, typer.Option("-n", help="Tokens to generate.")] = 4,
    temperature: Annotated[float, typer.Option("--temperature", help="0 is greedy.")] = 0.0,
    top_k: Annotated[int, typer.Option("--top-k", help="0 keeps all.")] = 0,
    top_p: Annotated[float, typer.Option("--top-p", help="1 keeps all.")] = 1.0,
    seed: Annotated[int, typer.Option("--seed", min=0)] = 0,
) -> None:
    """Continue a prompt, computing one new row of every block per token."""
    from engine.generate import Sampling
    from engine.generate import generate as steps

    loaded = _load(name, prompt, ids)
    tokens = loaded.graph.inputs["tokens"][:, 0].astype(int).tolist()
    texts = shown(loaded.model.vocabulary.texts)
    table = Table("", "token", "id", "cells computed", "of a full pass", box=None)
    sampling = Sampling(temperature, top_k, top_p)
    for k, step in enumerate(steps(loaded.model, tokens, n, sampling, seed), 1):
        cells = (f"{step.n_cells:,}", f"{step.n_full:,}")
        table.add_row(str(k), Text(texts[step.token], style="bold"), str(step.token), *cells)
    console.print(table)


@app.command()
def verify(
    file: Annotated[Path, typer.Argument(help="An .xlsx file with computed values.")],
    engine: Annotated[
        str, typer.Option("--engine", help="ironcalc, libreoffice, gnumeric, formulas or all.")
    ] = "",
) -> None:
    """Have other spreadsheet programs recompute a workbook from wrong values, and compare.

    Asks every engine that is installed unless one is named. Exit code 1: one disagrees; 3: one
    that was asked for is not installed.
    """
    from exporters.verify import ENGINES, read
    from exporters.verify import verify as recompute

    if engine not in ("", "all", *ENGINES):
        raise InputError(f"no engine is named {engine!r}; known: {', '.join(ENGINES)}, all")
    read(file)
    wanted = [engine] if engine in ENGINES else list(ENGINES)
    missing = [e for e in wanted if not ENGINES[e].installed()]
    disagree = False
    for one in wanted:
        if one in missing:
            console.print(
                f"{one:<12} not installed; {ENGINES[one].remedy}", soft_wrap=True, markup=False
            )
            continue
        report = recompute(file, one)
        if report.skipped:
            console.print(f"{one:<12} skipped: {report.skipped}", soft_wrap=True)
            continue
        verdict = "agrees   " if report.agrees else "DISAGREES"
        line = f"{one:<12} {verdict} {report.n_cells:,} cells, largest difference "
        line += f"{report.largest:.1e} at {report.where}"
        console.print(line, soft_wrap=True, markup=False)
        disagree = disagree or not report.agrees
    if disagree:
        raise typer.Exit(1)
    if missing and (engine or len(missing) == len(wanted)):
        raise typer.Exit(3)


def _load(name: str, prompt: str | None, ids: str | None) -> Loaded:
    """What a name, or a checkpoint folder, and a prompt stand for."""
    model, builder, default = _find(name)
    given = _ids(model, prompt, ids)
    if given is None:
        if default is None:
            raise InputError("a checkpoint has no prompt of its own; give --prompt or --ids")
        given = model.vocabulary.encode(default)
    return Loaded(model, model.graph(given), builder)


def _find(name: str) -> tuple[Model, "Callable[[Graph], Book]", str | None]:
    """A model, what builds its workbook from a graph, and the prompt it comes with."""
    if Path(name).is_dir():
        from engine import checkpoint
        from workbooks import _checkpoint

        model = checkpoint.load(name)
        title = Path(name).resolve().name
        return model, lambda graph: _checkpoint.build(title, model, graph), None
    module = workbooks.find(name)
    return module.model(), module.build, module.PROMPT


def _ids(model: Model, prompt: str | None, ids: str | None) -> list[int] | None:
    if prompt is not None and ids is not None:
        raise InputError("--prompt and --ids exclude each other; give one")
    if ids is not None:
        if not re.fullmatch(r"\s*\d+\s*(,\s*\d+\s*)*", ids):
            raise InputError(f"--ids {ids!r} is no list of token ids; write it as 0,1,3")
        return [int(i) for i in ids.split(",")]
    return None if prompt is None else model.vocabulary.encode(prompt)


def _set(live: Evaluator, text: str) -> None:
    target, equals, number = text.rpartition("=")
    if not equals:
        raise InputError(f"--set {text!r} has no value; write it as 'W_E[0,1]=0.5'")
    block, i, j = live.graph.parse(target)
    try:
        value = float(number)
    except ValueError:
        raise InputError(f"--set {text!r}: {number.strip()!r} is not a number") from None
    live.set(block.name, i, j, value)


def _rows(values: np.ndarray) -> list[list[float | None]]:
    """Rows for JSON, which has no -inf or nan: null where a cell is blank."""
    return [[x if np.isfinite(x) else None for x in row] for row in values.tolist()]


def _print_block(graph: Graph, live: Evaluator, name: str) -> None:
    block = graph[name]
    rows, cols = block.shape
    console.print(Text(f"{name}   {rows} x {cols}", "italic"))
    table = Table(box=None)
    table.add_column("", style="dim", justify="right")
    for j in range(cols):
        table.add_column(str(j), justify="right")
    for i, row in enumerate(live[name].tolist()):
        cells = [f"{x:.4f}" if block.has(i, j) else "" for j, x in enumerate(row)]
        table.add_row(str(i), *cells)
    console.print(table)
    console.print()


def _print_ranking(model: Model, graph: Graph, live: Evaluator, changed: bool) -> None:
    words = shown((model.outputs or model.vocabulary).texts)
    logits, probs = live["logits"][-1], live["probs"][-1]
    before = graph.values["probs"][-1]
    table = Table(box=None)
    table.add_column("", style="dim", justify="right")
    table.add_column("next word", style="bold")
    heads = ["logit", "probability"] + (["baseline", "change"] if changed else [])
    for head in heads:
        table.add_column(head, justify="right")
    for rank, v in enumerate(np.argsort(-probs, kind="stable")[:TOP], 1):
        row: list[str | Text] = [str(rank), Text(words[v]), f"{logits[v]:.4f}", f"{probs[v]:.4f}"]
        if changed:
            row += [f"{before[v]:.4f}", f"{probs[v] - before[v]:+.4f}"]
        table.add_row(*row)
    console.print(table)


def _cell_line(cell: Cell) -> Text:
    line = Text.assemble((cell.name, "bold"), " = ", (f"{cell.value:.6g}", "cyan"))
    if cell.formula:
        line.append(f"   {cell.formula}", "dim")
    return line


def _grow(tree: Tree, cell: Cell, depth: int) -> None:
    if depth == 0:
        return
    found = cell.precedents
    for precedent in found[:MAX_BRANCHES]:
        _grow(tree.add(_cell_line(precedent)), precedent, depth - 1)
    if len(found) > MAX_BRANCHES:
        tree.add(Text(f"... {len(found) - MAX_BRANCHES} more", "dim"))


def main() -> None:
    """Run the command; what cannot be used becomes one line and exit code 2."""
    try:
        app()
    except InputError as error:
        print(f"cellformer: {error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
