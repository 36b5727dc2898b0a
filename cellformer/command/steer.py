"""The command `steer`: a direction from two lists of sentences, the steered model's text, the
direction's words, and how well it tells the lists apart."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.text import Text as Shown

from cellformer import budget, names
from cellformer.command import printing, results
from cellformer.command.answer import Answer
from cellformer.command.console import console, line
from cellformer.command.options import Beyond, Ids, Name, NoSpecial, Prompt, block_names
from cellformer.engine import InputError, Model
from cellformer.engine.cells.arrays import ranked
from cellformer.engine.cells.texts import readable
from cellformer.engine.studies import lens, probes, steering
from cellformer.engine.studies.part_names import said
from cellformer.engine.studies.probes import Accuracy
from cellformer.engine.studies.steering import Contrast, Steered

TOP = 8  # words at each end
ALL = "all"
Site = Annotated[
    str | None,
    typer.Option(
        "--site",
        help="Place to steer, such as blocks.1.resid_pre (default: the middle layer).",
        autocompletion=block_names,
    ),
]
Lists = Annotated[
    Path,
    typer.Option(
        "--lists",
        help="File with two lists of sentences, one sentence per line. A line `# name` begins "
        "a list.",
    ),
]


def steer(
    name: Name,
    lists: Lists,
    prompt: Prompt = None,
    ids: Ids = None,
    no_special: NoSpecial = False,
    site: Site = None,
    strength: Annotated[
        list[float] | None,
        typer.Option(
            "--strength",
            help="Multiples of the direction (default: -2, -1, 0, 1 and 2). Repeatable.",
        ),
    ] = None,
    token: Annotated[
        str, typer.Option("--token", help="Position of the token to steer (from 0), or all.")
    ] = ALL,
    mean: Annotated[
        bool,
        typer.Option(
            "--mean", help="Average all tokens of each sentence (default: use only the last token)."
        ),
    ] = False,
    every_layer: Annotated[
        bool,
        typer.Option("--every-layer", help="Also probe the residual stream after every sublayer."),
    ] = False,
    n: Annotated[
        int | None,
        typer.Option(
            "-n",
            min=1,
            help=f"Number of tokens to write (default: {steering.MORE}, or fewer if the context "
            "has no room).",
        ),
    ] = None,
    force: Beyond = False,
) -> Answer:
    """Steer a model by the difference between two lists of sentences, and print its text.

    The direction is the mean activation of the first list minus the mean activation of the second
    list. A linear probe shows how well the direction separates the lists. The probe is fitted to
    two thirds of the sentences, and tested on the others.
    """
    loaded = names.load(name, prompt, ids, not no_special, force=force)
    model, strengths = loaded.model, strength or steering.STRENGTHS
    room = model.spec.n_ctx - len(loaded.ids)
    n = max(1, min(steering.MORE, room)) if n is None else n
    given = names.sentences(model, lists, not no_special)
    listed = [sentence for sentences in given.values() for sentence in sentences]
    budget.of_passes(model, max(map(len, listed)), force, times=len(listed))
    budget.of_passes(model, len(loaded.ids) + n, force)
    contrast = steering.contrast(model, given, site or "", mean)
    found = steering.steer(model, contrast, loaded.ids, strengths, _position(token), n)
    layers = _every_layer(model, contrast) if every_layer else []
    return Answer(
        lambda: _tell(model, found, layers, len(loaded.ids)),
        lambda: _plain(model, found, layers),
        "texts",
    )


def _position(token: str) -> int | None:
    """The position of --token; None: all. Raises InputError."""
    if token == ALL:
        return None
    if not token.isdecimal():
        raise InputError(f"--token is {token!r}; give a position, such as 3, or {ALL}")
    return int(token)


def _every_layer(model: Model, contrast: Contrast) -> list[Accuracy]:
    """The probe's accuracy on the stream after the embedding, and after every sublayer."""
    graph = model.graph([next(iter(contrast.lists.values()))[0][0]])
    each = (
        steering.contrast(model, contrast.lists, stage.name, contrast.mean)
        for stage in lens.stages(graph)
    )
    return [probes.accuracy(there.site, there.first, there.second) for there in each]


def _nearest(model: Model, found: Steered) -> tuple[list[int], list[int]]:
    """The words that the direction points to most, and least, from the far ends inwards."""
    if found.words is None:
        return [], []
    return ranked(found.words, TOP), ranked(-found.words, TOP)


def _plain(model: Model, found: Steered, layers: Sequence[Accuracy]) -> results.Steer:
    """The result as JSON."""
    words, contrast = (model.outputs or model.vocabulary).texts, found.contrast

    def listed(ids: Sequence[int]) -> list[results.Near]:
        assert found.words is not None or not ids
        return [{"word": words[v], "dot": float(found.words[v])} for v in ids]  # type: ignore[index]

    towards, away = _nearest(model, found)
    return {
        "site": contrast.site,
        "lists": {name: len(sentences) for name, sentences in contrast.lists.items()},
        "norm": float(np.linalg.norm(contrast.direction)),
        "texts": [
            {"strength": strength, "text": model.vocabulary.decode(ids), "ids": ids}
            for strength, ids in found.texts.items()
        ],
        "towards": listed(towards),
        "away": listed(away),
        "probes": [found.probe, *layers],
    }


def _tell(model: Model, found: Steered, layers: Sequence[Accuracy], n_prompt: int) -> None:
    """Print the texts, the words and the probe."""
    contrast = found.contrast
    first, second = contrast.lists
    norm = np.linalg.norm(contrast.direction)
    line(f"direction at {said(contrast.site)}: from ‘{second}’ to ‘{first}’, norm {norm:.3f}")
    console.print()
    table = printing.table_of("strength", "what it writes")
    for strength, ids in found.texts.items():
        begin, whole = (model.vocabulary.decode(part) for part in (ids[:n_prompt], ids))
        text = Shown(readable(whole), "bold" if strength else "")
        text.stylize("dim", 0, len(readable(begin)))
        table.add_row(f"{strength:+g}" if strength else "0", text)
    console.print(table)
    if found.words is not None:
        words = printing.output_words(model)
        console.print()
        table = printing.table_of(f"towards ‘{first}’", "dot", f"towards ‘{second}’", "dot")
        for a, b in zip(*_nearest(model, found), strict=True):
            near, far = ((Shown(words[v], "bold"), f"{found.words[v]:+.3f}") for v in (a, b))
            table.add_row(*near, *far)
        console.print(table)
    console.print()
    printing.rows(
        [found.probe, *layers], "share of the sentences that a probe puts into the right list:"
    )
