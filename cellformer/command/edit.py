"""The command `edit`: the smallest change of weights that makes a model predict a word, written as
a workbook whose ledger shows the change; and the side effects of that change."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.text import Text as Shown

from cellformer import budget, names, workbooks
from cellformer.command import printing, results
from cellformer.command.answer import Answer
from cellformer.command.console import console, line
from cellformer.command.options import Beyond, Ids, Name, NoSpecial, Prompt, output_words
from cellformer.engine import InputError, Model
from cellformer.engine.cells import finite
from cellformer.engine.cells.arrays import ranked
from cellformer.engine.cells.files import check_file
from cellformer.engine.learning import corpus
from cellformer.engine.models.generate import passage
from cellformer.engine.studies import price as prices
from cellformer.engine.studies import wish as wishes
from cellformer.engine.studies.forecast import numbers_of_pass
from cellformer.engine.studies.price import ALL, Price, Text
from cellformer.engine.studies.study import first_word, word_of
from cellformer.engine.studies.wish import Wish
from cellformer.exporters.model.plan import MANY_WORDS

TOP = 8  # words, and weights, that are listed
MOST_PRICED = 20  # rules, or prompts
Say = Annotated[
    str,
    typer.Option(
        "--say", help="Word that is to become the most likely.", autocompletion=output_words
    ),
]


def edit(
    name: Name,
    say: Say,
    prompt: Prompt = None,
    ids: Ids = None,
    no_special: NoSpecial = False,
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only",
            help="Change only these weights: blocks.1.attn.h2, blocks.0.mlp, W_E. Repeatable.",
        ),
    ] = None,
    also: Annotated[
        Path | None,
        typer.Option(
            "--also", help="Report side effects on the prompts of this file, one per line."
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", help="Output workbook (default: NAME-edited.xlsx).")
    ] = None,
    force: Beyond = False,
) -> Answer:
    """Find the smallest change of weights that makes a word the most likely after the prompt.

    The change has the smallest Euclidean norm that gradient steps find. The output is a workbook of
    the model with the change typed in. The sheet Built of this workbook and `diff` list the change,
    and `import` saves the changed model. The command also reports the effect on other next words.
    It measures this effect on the prompts of --also. Without --also, it uses the workbook's fresh
    texts (dialogue-game), or else the prompt itself.
    """
    path = output or Path(f"{names.title(name)}-edited.xlsx")
    loaded = names.load(name, prompt, ids, not no_special, force=force)
    _check(loaded, path)
    _check_size(loaded, only or (), force)
    where, texts = _texts(loaded, also, not no_special)
    graph = loaded.graph
    finite.check(graph, graph.values)
    words = printing.output_words(loaded.model)
    target = word_of(loaded.model, say, graph, -1, "--say")
    if first_word(graph, -1) == target:
        share = graph.values["probs"][-1, target]
        raise InputError(
            f"{words[target]!r} is already the most likely word ({share:.1%}); choose another word"
        )
    found = wishes.smallest_change(graph, -1, target, only or ())
    priced = prices.price(loaded.model, found.made(loaded.model), texts)
    _write(loaded, found, path)

    def tell() -> None:
        printing.prompt(loaded.model.vocabulary.decode(loaded.ids), len(loaded.ids))
        _tell(words, target, found)
        _cost(priced, where)
        line(
            f"\n{path}: the workbook with the change typed in; its ledger and `diff` list the "
            "change"
        )

    return Answer(tell, lambda: _plain(words[target], path, found, priced), "moved")


def _check(loaded: names.Loaded, path: Path) -> None:
    """Raise InputError for a model whose workbook cannot be edited, and for a bad file name."""
    if path.suffix.lower() != ".xlsx":
        raise InputError(f"{path}: the name of a workbook must end in .xlsx")
    check_file(path)
    if loaded.model.spec.gives != "next word":
        raise InputError(f"{loaded.name} predicts no next word; choose a decoder model")
    if loaded.model.spec.d_vocab > MANY_WORDS:
        raise InputError(
            f"{loaded.name} has more than {MANY_WORDS:,} words, and cellformer could not read so "
            "large a workbook again; choose a smaller model"
        )


def _check_size(loaded: names.Loaded, only: Sequence[str], force: bool) -> None:
    """Raise InputError where the gradients of a step, one for each rival, are beyond the budget."""
    n_weights = sum(block.n_cells for block in wishes.chosen(loaded.graph, only))
    n = 2 * numbers_of_pass(loaded.model, len(loaded.ids)) + n_weights
    what = "numbers in one step's gradients for the weights that may change (see --only)"
    budget.within(budget.MOST_NUMBERS, wishes.N_RIVALS * n, what, force)


def _texts(loaded: names.Loaded, also: Path | None, special: bool) -> tuple[str, list[Text]]:
    """The texts for measuring side effects, and their name."""
    if also is not None:
        lines = filter(None, map(str.strip, corpus.read(also).splitlines()))
        texts = [_text(loaded.model, given, special, also) for given in dict.fromkeys(lines)]
        return f"{also}", texts
    module = None if names.is_model(loaded.name) else workbooks.find(loaded.name)
    if module is not None and hasattr(module, "fresh"):
        texts = list(module.fresh())
        return f"{len(texts):,} fresh texts", texts
    before = loaded.ids[:-1]
    return "the prompt without its last token", [Text(before, [{}] * len(before))] if before else []


def _text(model: Model, given: str, special: bool, path: Path) -> Text:
    """A prompt of a file. Raises InputError for one that the model cannot take."""
    try:
        ids = names.prompt_ids(model, given, special)
        model.check_ids(ids)
    except InputError as error:
        raise InputError(f"{path}, {given[:40]!r}: {error}") from None
    return Text(ids, [{given: ()}] * len(ids))


def _write(loaded: names.Loaded, found: Wish, path: Path) -> None:
    """Write the workbook of the original model, with the change typed over its weights."""
    from cellformer.exporters.file import xlsx

    book = loaded.book(loaded.model, passage(loaded.model, loaded.ids, loaded.n_tokens))
    typed = {book.graph[name][i, j]: now for name, i, j, _, now in found.cells()}
    xlsx.write(book, path, shown=book.edited(typed))


def _plain(word: str, path: Path, found: Wish, priced: Sequence[Price]) -> results.Edit:
    """The result as JSON."""
    return {
        "word": word,
        "file": str(path),
        "norm": found.norm,
        "share": found.share if np.isfinite(found.share) else None,
        "weights": found.n,
        "changed": len(found.cells()),
        "before": found.before.tolist(),
        "after": found.after.tolist(),
        "change": {name: change.tolist() for name, change in found.change.items()},
        "moved": [
            {"cell": f"{name}[{i},{j}]", "was": was, "now": now}
            for name, i, j, was, now in found.cells()
        ],
        "price": list(priced),
    }


def _tell(words: Sequence[str], target: int, found: Wish) -> None:
    """Print the size of the change, the next words after it, and the weights that move most."""
    cells = found.cells()
    line(
        f"{words[target]} comes first after a change of norm "
        f"{found.norm:.4f} ({found.share:.2%} of the norm of the {found.n:,} weights that may "
        f"change). {len(cells):,} of these weights change"
    )
    console.print()
    table = printing.table_of("next word", "was", "is", "change")
    order = ranked(np.maximum(found.before, found.after), TOP)
    for v in sorted(order, key=lambda v: -found.after[v]):
        was, now = found.before[v], found.after[v]
        style = "bold cyan" if v == target else "bold"
        table.add_row(Shown(words[v], style), f"{was:.4f}", f"{now:.4f}", f"{now - was:+.4f}")
    console.print(table)
    console.print()
    table = printing.table_of("moved most", "was", "is", "change")
    for name, i, j, was, now in cells[:TOP]:
        numbers = (f"{was:+.6f}", f"{now:+.6f}", f"{now - was:+.6f}")
        table.add_row(Shown(f"{name}[{i},{j}]", "bold"), *numbers)
    console.print(table)


def _cost(priced: Sequence[Price], where: str) -> None:
    """Print the side effects: over all next words, and where they are largest."""
    console.print()
    everything, *others = priced
    if not everything.n:
        return line(
            "price (side effects): not measured, because the prompt is one token; add prompts "
            "with --also FILE"
        )
    line(f"price (side effects) over the {everything.n:,} next words of {where}:")
    ruled = any(part.kept != 1 for part in others)
    heads = ("next words", "another is first", "divergence", *(("kept", "then") if ruled else ()))
    table = printing.table_of("", *heads)
    worst = sorted(others, key=lambda part: -part.divergence)[:MOST_PRICED]
    for part in (everything, *worst):
        cells = [f"{part.n:,}", f"{part.changed:,}", f"{part.divergence:.6f}"]
        rates = (f"{part.kept:.4f}", f"{part.kept_after:.4f}") if part.what != ALL else ("", "")
        table.add_row(Shown(part.what, "bold"), *cells, *(rates if ruled else ()))
    console.print(table)
    kept = "; kept: the probability of words that follow the rule" if ruled else ""
    line(f"divergence: how far the probabilities moved, in nats (0: no change){kept}")
