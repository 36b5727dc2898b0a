"""Commands that evaluate a model and print: run, trace, ablate, sweep, generate, info."""

import csv
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.table import Table

from cellformer import budget, names
from cellformer.command import printing
from cellformer.command.build import with_digits
from cellformer.command.cells import Cells, on_sheet, watched_cell
from cellformer.command.options import (
    Ablate,
    Adapter,
    Beyond,
    Ids,
    Lens,
    Mean,
    Name,
    NoSpecial,
    Prompt,
    Second,
    Seed,
    Sets,
    Show,
    Target,
    Temperature,
    Tokens,
    TopK,
    TopP,
)
from cellformer.command.printing import Curve, console
from cellformer.names import word_of
from engine import Evaluator, Graph, InputError, Model
from engine.cells import finite
from engine.cells.arrays import ranked
from engine.cells.batch import variants
from engine.cells.errors import UnknownNameError
from engine.cells.files import replacing
from engine.cells.texts import in_csv, readable
from engine.models import encoding, formats
from engine.models import prompt as prompts
from engine.models.architectures.mixtral import MoeSpec
from engine.models.choosing import Sampling
from engine.models.generate import Step, passage
from engine.models.generate import generate as steps
from engine.studies import ablation
from engine.studies import lens as lenses
from engine.studies.forecast import forecast, kv_numbers, parameters
from engine.text.tokenizer import shown, stream
from exporters.compose.cells import SheetCell, is_address
from exporters.model.plan import for_model

MOST_STEPS = 10_001  # of a sweep
FEW = 40  # tokens to generate


def run(
    name: Name,
    prompt: Prompt = None,
    second: Second = None,
    ids: Ids = None,
    no_special: NoSpecial = False,
    tokens: Tokens = None,
    sets: Sets = None,
    ablate: Ablate = None,
    mean: Mean = False,
    target: Target = None,
    lens: Lens = False,
    show: Show = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print blocks as JSON.")] = False,
    adapter: Adapter = None,
    force: Beyond = False,
) -> None:
    """Evaluate a model and rank the next words, beside the baseline if cells were changed.

    With --target, also print what each head, MLP and embedding adds to that word's logit. With
    --tokens, continue the prompt in cells: `choose`, `temperature`, `top_k`, `top_p` and `sentence`
    can be --set. An encoder ranks the words for its mask, or prints the sentence's vector; with
    --second, the cosine of the two sentences.
    """
    if names.is_worksheet(name):
        names.check_takes(name, prompt=prompt, second=second, ids=ids, no_special=no_special)
        asked = {"ablate": ablate, "mean": mean, "lens": lens, "adapter": adapter}
        names.check_takes(name, tokens=tokens, target=target, **asked)
        return _run_tables(name, sets, show, as_json)
    loaded = names.load(name, prompt, ids, not no_special, (), second, force, adapter)
    budget.of_passes(loaded.model, tokens or len(loaded.ids), force)
    if target is not None or lens:
        needs_words(loaded)
    model = _averaged(loaded) if mean else loaded.model
    graph = _continued(model, loaded, tokens)
    row = loaded.place_of_answer
    wanted = None if target is None else word_of(model, target, graph, row)
    views = _views(graph, wanted, row) if lens or wanted is not None else None
    live = Evaluator(graph)
    _ablate(live, ablate, mean)
    Cells(graph, partial(loaded.built, tokens)).set(live, sets)
    finite.check(graph, live)
    blocks = [graph[block].name for block in show or ()]
    if as_json:
        print(json.dumps({block: _rows(live[block]) for block in blocks or graph.blocks}))
        return
    continues = tokens is not None and model.spec.gives == "next word"
    ids_now = live["tokens"][:, 0].astype(int).tolist() if continues else loaded.ids
    for given in filter(None, (ids_now, loaded.second)):
        printing.prompt(readable(_spelt(model, given)), len(given))
    for block in blocks:
        printing.block(graph, live, block)
    if "probs" not in graph.blocks:
        return printing.vectors(live, bool(sets or ablate))
    words = printing.output_words(model)
    printing.ranking(words, live, bool(sets or ablate), wanted, row)
    if lens and views:
        printing.lens(words, live, views, int(graph.inputs["target"][0, 0]))
    if wanted is not None and views:
        printing.attribution(words, live, views)


def trace(
    name: Name,
    cell: Annotated[str, typer.Argument(help="A cell: 'logits[2,5]', or 'Machine!B20'.")],
    depth: Annotated[int, typer.Option("--depth", min=0, help="Depth of the tree.")] = 2,
    prompt: Prompt = None,
    second: Second = None,
    ids: Ids = None,
    no_special: NoSpecial = False,
    tokens: Tokens = None,
    sets: Sets = None,
    force: Beyond = False,
) -> None:
    """Show a cell's formula, the cells it reads and their values, as a tree.

    The cell is one of a block, or any formula of the workbook, by its sheet and address. With
    --tokens, the prompt is continued: 'tokens[9,0]' shows how a word was chosen.
    """
    if names.is_worksheet(name):
        graph = names.graph(name, prompt, ids, not no_special, second)
        found = Cells(graph, partial(names.book, name))
    else:
        loaded = names.load(name, prompt, ids, not no_special, second=second, force=force)
        budget.of_passes(loaded.model, tokens or len(loaded.ids), force)
        graph = _continued(loaded.model, loaded, tokens)
        found = Cells(graph, partial(loaded.built, tokens))
    if is_address(cell):
        return printing.trace(on_sheet(found.book, cell, sets), depth, force)
    try:
        block, i, j = graph.parse(cell)
    except UnknownNameError:
        if formats.means(name):
            raise
        return printing.trace(on_sheet(found.book, cell, sets), depth, force)
    live = Evaluator(graph)
    found.set(live, sets)
    printing.trace(live.cell(block.name, i, j), depth, force)


def ablate(
    name: Name,
    prompt: Prompt = None,
    ids: Ids = None,
    no_special: NoSpecial = False,
    target: Target = None,
    mean: Mean = False,
    force: Beyond = False,
) -> None:
    """Ablate heads, attention blocks and MLPs, one at a time, and report the target's logit.

    Zero ablation: the part writes nothing. With --mean, it writes its average.
    """
    loaded = names.load(name, prompt, ids, not no_special, force=force)
    needs_words(loaded)
    model = _averaged(loaded) if mean else loaded.model
    graph, row = model.graph(loaded.ids), loaded.place_of_answer
    if not ablation.parts(graph):
        raise InputError(f"{name} has no layers: there is nothing to ablate")
    budget.of_passes(model, len(loaded.ids), force, len(ablation.parts(graph)))
    finite.check(graph, graph.values)
    wanted = first_word(graph, row) if target is None else word_of(model, target, graph, row)
    found = ablation.effects(graph, wanted, row, mean)
    before = float(graph.values["probs"][row, wanted])
    printing.effects(printing.output_words(model), found, wanted, before)


def sweep(
    name: Name,
    cell: Annotated[str, typer.Argument(help="A cell: 'blocks.0.attn.h1.W_Q[3,2]'.")],
    start: Annotated[float, typer.Option("--from", help="First value.")] = -1.0,
    stop: Annotated[float, typer.Option("--to", help="Last value.")] = 1.0,
    n_steps: Annotated[
        int, typer.Option("--steps", min=2, max=MOST_STEPS, help="Number of values.")
    ] = 21,
    prompt: Prompt = None,
    ids: Ids = None,
    no_special: NoSpecial = False,
    target: Target = None,
    output: Annotated[
        Path | None, typer.Option("-o", help="Output file, .csv or .png (default: print).")
    ] = None,
    force: Beyond = False,
) -> None:
    """Run one cell through a range of values, and report the target word's logit and probability.

    In a workbook without a transformer, --target is a cell: 'loss[0,0]'.
    """
    if output and output.suffix.lower() not in (".csv", ".png"):
        raise InputError(f"{output}: the name of an output file must end in .csv or .png")
    if start == stop:
        raise InputError(
            f"--from and --to are both {start:g}: {cell} would not change; give two values"
        )
    values = np.linspace(start, stop, n_steps)
    if names.is_worksheet(name):
        names.check_takes(name, prompt=prompt, ids=ids, no_special=no_special)
        curve = _curve_of_tables(name, cell, values, target)
    else:
        loaded = names.load(name, prompt, ids, not no_special, force=force)
        budget.of_passes(loaded.model, len(loaded.ids), force, n_steps)
        curve = _curve_of_word(loaded, cell, values, target)
    if output is None:
        return printing.curve(curve)
    draw = _write_csv if output.suffix.lower() == ".csv" else _draw
    draw(output, curve)
    printing.line(f"{output}: {n_steps} values of {curve.cell}")


def generate(
    name: Name,
    prompt: Prompt = None,
    ids: Ids = None,
    no_special: NoSpecial = False,
    n: Annotated[
        int | None,
        typer.Option(
            "-n", help=f"Number of tokens to generate (default: {FEW}, or as many as fit)."
        ),
    ] = None,
    temperature: Temperature = 0.0,
    top_k: TopK = 0,
    top_p: TopP = 1.0,
    seed: Seed = 0,
    ignore_eos: Annotated[
        bool, typer.Option("--ignore-eos", help="Do not stop at an end-of-text token.")
    ] = False,
    as_table: Annotated[
        bool,
        typer.Option(
            "--table", help="Also print a table of the tokens, and how many cells each took."
        ),
    ] = False,
    adapter: Adapter = None,
    force: Beyond = False,
) -> None:
    """Print a prompt and its continuation, token by token, up to an end-of-text token.

    Each token takes one new row of every block, as with a KV cache.
    """
    loaded = names.load(name, prompt, ids, not no_special, force=force, adapter=adapter)
    vocabulary, room = loaded.model.vocabulary, loaded.model.spec.n_ctx - len(loaded.ids)
    n_tokens = max(1, min(FEW, room)) if n is None else n
    budget.of_passes(loaded.model, len(loaded.ids) + n_tokens, force)
    sampling = Sampling(temperature, top_k, top_p)
    found = steps(loaded.model, loaded.ids, n_tokens, sampling, seed)
    done: list[Step] = []
    tokens = _until(found, () if ignore_eos else vocabulary.ends, done)
    for text in stream(vocabulary, chain(loaded.ids, tokens)):
        printing.text(text)
    printing.text("\n")
    if as_table:
        printing.steps(shown(vocabulary.texts), done)


def info(
    name: Name,
    tokens: Annotated[
        int, typer.Option("--tokens", min=1, help="Prompt length of the estimate, in tokens.")
    ] = 8,
    force: Beyond = False,
) -> None:
    """Show a model's sizes, parameters and KV cache, and estimate the size of its workbook."""
    model = names.model(name)
    spec = model.spec
    n_tokens = min(tokens, spec.n_ctx)
    budget.of_passes(model, n_tokens, force)
    table = Table(box=None, show_header=False)
    table.add_row("architecture", model.kind)
    for label in ("d_vocab", "d_model", "n_layers", "n_heads", "d_head", "d_mlp", "n_ctx"):
        table.add_row(label, f"{getattr(spec, label):,}")
    if isinstance(spec, MoeSpec):
        for label in ("n_experts", "n_chosen", "d_expert"):
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
    expected = forecast(with_digits(model), n_tokens, for_model(model).readout)
    printing.line(f"workbook of {n_tokens} tokens: {expected}")


# --- shared ------------------------------------------------------------------------


def _continued(model: Model, loaded: names.Loaded, n_tokens: int | None) -> Graph:
    """The graph of a prompt; with `n_tokens`, of the prompt and its continuation.

    The graph of an encoder then has `n_tokens` positions, and its tokens follow the sentences.
    """
    if n_tokens is None:
        return replace(loaded, model=model).graph
    words = passage(model, loaded.ids, n_tokens, second=loaded.second)
    if model.spec.gives == "next word":
        return prompts.graph(model, words)
    graph = encoding.graph(model, words)
    encoding.follow(graph, words, model)
    return graph


def _spelt(model: Model, ids: Sequence[int]) -> str:
    """A prompt as text; an encoder's with its mask."""
    found = encoding.text_of(model.vocabulary, ids) if model.spec.gives != "next word" else None
    return found[0] if found else model.vocabulary.decode(ids)


def needs_words(loaded: names.Loaded) -> None:
    """Raise InputError for a model that ranks no words."""
    if loaded.model.spec.gives == "sentence":
        raise InputError(
            f"{loaded.name} gives a sentence's vector and ranks no words: "
            "`cellformer run` compares two with --prompt and --second"
        )


def _averaged(loaded: names.Loaded) -> Model:
    """The model with the averages that mean ablation writes, as in its workbook."""
    return ablation.with_averages(loaded.model, list(filter(None, (loaded.ids, loaded.second))))


def first_word(graph: Graph, row: int) -> int:
    """The most likely word at a token."""
    return int(np.argmax(graph.values["logits"][row]))


def _until(found: Iterable[Step], ends: Sequence[int], done: list[Step]) -> Iterator[int]:
    """The tokens of steps, up to one in `ends`; each step is appended to `done`."""
    for step in found:
        done.append(step)
        yield step.token
        if step.token in ends:
            return


def _views(graph: Graph, target: int | None, row: int) -> lenses.Views:
    """Lens and attribution at a token, for the target and the most likely other word."""
    order = ranked(graph.values["logits"][row])
    wanted = order[0] if target is None else target
    rival = next((v for v in order if v != wanted), wanted)
    return lenses.add(graph, row % graph["tokens"].shape[0], wanted, rival)


def _ablate(live: Evaluator, off: Sequence[str] | None, mean: bool) -> None:
    """Apply --ablate and --mean."""
    change: dict[tuple[str, int, int], float] = {}
    for part in off or ():
        change |= ablation.off(live.graph, part)
    if mean and "mean_ablation" in live.graph.blocks:
        change["mean_ablation", 0, 0] = 1.0
    for (block, i, j), value in change.items():
        live.set(block, i, j, value)


def _run_tables(
    name: str, sets: Sequence[str] | None, show: Sequence[str] | None, as_json: bool
) -> None:
    """Print the tables of a workbook without a transformer, and what changes in them."""
    found = names.book(name)
    graph = found.graph
    live = Evaluator(graph)
    Cells(graph, lambda: found).set(live, sets)
    blocks = [graph[block] for block in show or ()]
    if as_json:
        wanted = [b.name for b in blocks] or list(graph.blocks)
        print(json.dumps({block: _rows(live[block]) for block in wanted}))
        return
    for block in blocks:
        printing.block(graph, live, block.name)
    if sets:
        printing.changes(live)
    elif not blocks:
        printing.tables(found)


def _curve_of_word(
    loaded: names.Loaded, cell: str, values: np.ndarray, target: str | None
) -> Curve:
    """The target word's logit and probability at the prompt's end."""
    needs_words(loaded)
    graph, words, row = loaded.graph, printing.output_words(loaded.model), loaded.place_of_answer
    wanted = first_word(graph, row) if target is None else word_of(loaded.model, target, graph, row)
    block, i, j = Cells(graph, loaded.built).parse(cell)
    found = variants(graph, [{(block.name, i, j): float(x)} for x in values])
    logits, probs = found["logits"][:, row], found["probs"][:, row]
    for x, shares in zip(values, probs, strict=True):
        if not np.isfinite(shares).all():
            raise InputError(
                f"{cell} = {x:g} makes a probability infinite or undefined; choose another range"
            )
    word = words[wanted]
    columns = {f"logit of {word}": logits[:, wanted], "probability": probs[:, wanted]}
    first = [words[v] for v in np.argmax(logits, axis=1)]
    return Curve(f"{block.name}[{i},{j}]", values, columns, f"‘{word}’", first)


def _curve_of_tables(name: str, cell: str, values: np.ndarray, target: str | None) -> Curve:
    """A computed cell: `target`, or the one that the first suggested edit watches."""
    found = names.book(name)
    graph, watch = found.graph, found.suggestions[0].watch
    if target is not None:
        watched = watched_cell(found, target)
    elif watch is not None:
        watched = SheetCell(found.clean, *found.cell(*watch))
    else:
        raise InputError(f"name the cell to watch: --target '{list(graph.blocks)[-1]}[0,0]'")
    block, i, j = Cells(graph, lambda: found).parse(cell)
    after = [found.edited({block[i, j]: x}) for x in values.tolist()]
    shown = [replace(watched, reading=reading).value for reading in after]
    if any(isinstance(x, str) for x in shown):
        raise InputError(f"{watched.name} shows a text; watch a number with --target")
    columns = {watched.name: np.array(shown, dtype=np.float64)}
    return Curve(f"{block.name}[{i},{j}]", values, columns, watched.name)


def _rows(values: np.ndarray) -> list[list[float | str | None]]:
    """Rows for JSON, which has no -inf or nan: blank cells are null."""
    return [
        [x if isinstance(x, str) or np.isfinite(x) else None for x in row]
        for row in values.tolist()
    ]


def _write_csv(path: Path, curve: Curve) -> None:
    with replacing(path) as temporary, open(temporary, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        heads = [curve.cell, *curve.columns, *(["first"] if curve.first else [])]
        writer.writerow(map(in_csv, heads))
        for k, x in enumerate(curve.values.tolist()):
            row = [repr(x), *(repr(float(column[k])) for column in curve.columns.values())]
            writer.writerow([*row, *map(in_csv, curve.first[k : k + 1])])


def _draw(path: Path, curve: Curve) -> None:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise InputError(
            "a .png needs matplotlib: pip install 'cellformer[plot]', or ask for a .csv"
        ) from None
    columns = dict(reversed(list(curve.columns.items())))  # the probability above the logit
    figure = Figure(figsize=(7, 2.2 + len(columns)), layout="constrained")
    panels = np.atleast_1d(figure.subplots(len(columns), 1, sharex=True))
    for axes, (label, column) in zip(panels, columns.items(), strict=True):
        axes.plot(curve.values, column, color="#1f5fa8")
        axes.set_ylabel(label.partition(" of ")[0].replace("$", r"\$"))
        axes.grid(color="#dddddd")
    subject = curve.subject.replace("$", r"\$")  # no formula
    panels[0].set_title(f"{subject} as {curve.cell} changes")
    panels[-1].set_xlabel(curve.cell)
    with replacing(path) as temporary:
        figure.savefig(temporary, format="png", dpi=130, metadata={"Software": None})
