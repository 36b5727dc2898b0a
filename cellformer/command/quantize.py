"""The command `quantize`: the effect of rounding weights to a few bits on a model's answer."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from cellformer import budget, names
from cellformer.command import printing, results
from cellformer.command.answer import Answer
from cellformer.command.console import console, line
from cellformer.command.options import Beyond, Ids, Name, NoSpecial, Prompt, Target
from cellformer.engine import InputError, Model
from cellformer.engine.cells import finite
from cellformer.engine.studies import quantization
from cellformer.engine.studies.part_names import said
from cellformer.engine.studies.quantization import ALL, Grid, Measure, Rounded
from cellformer.engine.studies.study import word_of
from cellformer.names import needs_words


def quantize(
    name: Name,
    prompt: Prompt = None,
    ids: Ids = None,
    no_special: NoSpecial = False,
    target: Target = None,
    bits: Annotated[
        str, typer.Option("--bits", help="Bits of each integer: one or more of 8,4,3,2.")
    ] = ",".join(map(str, quantization.WIDTHS)),
    groups: Annotated[
        int,
        typer.Option(
            "--groups",
            min=0,
            help="Number of weights in a row that share a scale. The number must divide the row's "
            "length. GGUF uses 32; 0 means the whole row.",
        ),
    ] = 0,
    asymmetric: Annotated[
        bool,
        typer.Option("--asymmetric", help="Asymmetric quantization: a scale and a zero point."),
    ] = False,
    also: Annotated[
        Path | None,
        typer.Option(
            "--also",
            help="Measure the loss on the prompts in this file, one on each line (default: on the "
            "prompt).",
        ),
    ] = None,
    force: Beyond = False,
) -> Answer:
    """Round weights to a few bits, each part alone and all together, and report the next words.

    A rounded weight is an integer times a scale. A row has one scale, or with --groups 32 one scale
    for every 32 weights. Matrices are rounded, and vectors are not.
    """
    grids = [Grid(n, groups, asymmetric) for n in widths(bits)]
    loaded = names.load(name, prompt, ids, not no_special, force=force)
    needs_words(loaded)
    model, row = loaded.model, loaded.place_of_answer
    texts = _texts(model, also, not no_special) if also else ()
    budget.of_passes(model, max(map(len, (loaded.ids, *texts))), force, 2)
    graph = model.graph(loaded.ids)
    finite.check(graph, graph.values)
    wanted = None if target is None else word_of(model, target, graph, row)
    measure = Measure(model, loaded.ids, wanted, texts, row)
    found = list(measure.effects(grids))
    words, rival = measure.words[measure.target], measure.words[measure.rival]
    result: results.Quantize = {"target": words, "rival": rival, "effects": found}

    def tell() -> None:
        printing.prompt(model.vocabulary.decode(loaded.ids), len(loaded.ids))
        printing.rows(
            [effect for effect in found if effect.part == ALL],
            f"all parts rounded together; the lead is how far {words} is ahead of {rival}:",
        )
        _alone(measure, found)

    return Answer(tell, lambda: result, "effects")


def widths(bits: str) -> list[int]:
    """The numbers of bits in a list. Raises InputError."""
    given = [int(n) if n.strip().isdecimal() else n.strip() for n in bits.split(",")]
    quantization.check(given)
    return [int(n) for n in dict.fromkeys(given)]


def _texts(model: Model, path: Path, special: bool) -> list[list[int]]:
    """The ids of the prompts in a file. Raises InputError."""
    found = names.lines(model, path, special)
    if not any(len(ids) > 1 for ids in found):
        raise InputError(
            f"{path} has no prompt of two or more tokens, so there is no next word to predict; "
            "add a longer prompt"
        )
    return found


def _alone(measure: Measure, found: Sequence[Rounded]) -> None:
    """Print how the lead and the loss change when one part alone is on a grid: a table for each."""
    plain, alone = found[0], [e for e in found if e.part != ALL]
    widths = [f"{n} bits" for n in dict.fromkeys(e.bits for e in alone)]
    for what in ("lead", "loss"):
        before = getattr(plain, what)
        if before is None:  # no next word is known
            continue
        table = printing.table_of("part", "weights", *widths)
        for part, weights in quantization.parts(measure.graph).items():
            changes = [getattr(e, what) - before for e in alone if e.part == part]
            n = sum(w.n_cells for w in weights)
            table.add_row(Text(said(part), "bold"), f"{n:,}", *(f"{x:+.4f}" for x in changes))
        console.print()
        line(f"change of the {what}, if only one part is rounded:")
        console.print(table)
