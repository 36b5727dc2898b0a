"""The functions of `import cellformer` that have the names of commands, and do the same.

Each calls the command's own code, and gives its table: a `Table`, whose `result` is what --json
prints. Limits of size, for which the command asks for --force, are left to the caller.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

from cellformer.command import answer, edited, explore, study
from cellformer.command import edit as editing
from cellformer.command import explain as explaining
from cellformer.command import patch as patching
from cellformer.command import sweep as sweeping
from cellformer.command import verify as verifying
from cellformer.command.answer import Answer
from cellformer.engine.cells.arguments import explained
from cellformer.engine.cells.errors import InputError
from cellformer.engine.cells.files import possible
from cellformer.engine.models.model import Model
from cellformer.engine.studies.study import studies
from cellformer.exporters.compose.book import Book
from cellformer.exporters.edits.edited import Edited
from cellformer.given import name_of
from cellformer.table import Table

LONGEST = 86_400  # seconds that a program may take
What = str | Path | Model  # a name of the gallery, a checkpoint, an edited workbook, or a model


def _table(command: Callable[..., Answer], *args: Any, **given: Any) -> Table:
    """The table of a command's answer."""
    with answer.silent(True):
        found = command(*args, **given)
    return Table(answer.rows(found), answer.plain(found.result()), lambda: _told(found))


def _told(found: Answer) -> str:
    """The text that a command prints for people."""
    with redirect_stdout(StringIO()) as text:
        found.tell()
    return text.getvalue().rstrip("\n")


def _listed(texts: Sequence[str], name: str) -> list[str]:
    """A list of names. Raises InputError for one text, which is a list of letters."""
    if isinstance(texts, str):
        raise InputError(f"{name} is {texts!r}; give a list of names, such as [{texts!r}]")
    return list(texts)


@explained
def run(
    what: What,
    prompt: str | None = None,
    ids: Sequence[int] | None = None,
    set: Mapping[str, float | str] | None = None,
    ablate: Sequence[str] = (),
    mean: bool = False,
    target: str | None = None,
    lens: bool = False,
    show: Sequence[str] = (),
    n_tokens: int | None = None,
    second: str | None = None,
    adapter: str | Path | None = None,
    system: str | None = None,
    special: bool = True,
) -> Table:
    """The likeliest next words, one a row, beside the baseline if cells were changed.

    `what` is a name of the gallery, a checkpoint folder, an edited workbook, or a model. `set`
    gives cells other values, by name or address; `ablate` names parts to switch off, which with
    `mean` write their average; `target` is a word to list, too; `n_tokens` counts the prompt and
    its continuation. With `show`, the rows are the values of those blocks. `result` has `words`,
    `blocks`, `lens` and `attribution` (docs/json.md). Raises InputError.

    >>> words = cf.run("cat-sat", "the cat sat", set={"blocks.0.attn.h0.W_V[2,2]": -1})
    >>> words[0].word, round(words[0].probability, 3), round(words[0].baseline, 3)
    ('mat', 0.189, 0.312)
    """
    return _table(
        explore.run,
        name_of(what),
        prompt=prompt,
        second=second,
        ids=_ids(ids),
        no_special=not special,
        tokens=n_tokens,
        sets=[f"{cell}={value}" for cell, value in (set or {}).items()],
        ablate=_listed(ablate, "ablate"),
        mean=mean,
        target=target,
        lens=lens,
        show=_listed(show, "show"),
        adapter=None if adapter is None else possible(adapter),
        chat=system is not None,
        system=system,
        force=True,
    )


@explained
def ablate(
    what: What,
    prompt: str | None = None,
    ids: Sequence[int] | None = None,
    target: str | None = None,
    mean: bool = False,
    special: bool = True,
) -> Table:
    """The change of a word's logit with each head, attention block and MLP switched off alone, one
    a row.

    `target` is the word (default: the likeliest); with `mean`, a part writes its average instead of
    nothing. `cf.study` does the same for many prompts. Raises InputError.

    >>> rows = cf.ablate("dialogue-game", "<BOS> Pietro chiama Paolo")
    >>> [row.part for row in rows if row.first == "vice"]
    ['blocks.1.attn', 'blocks.1.attn.h2']
    """
    return _table(
        study.command(studies()["ablate"]),
        name_of(what),
        prompt=prompt,
        ids=_ids(ids),
        target=target,
        mean=mean,
        no_special=not special,
        force=True,
    )


@explained
def patch(
    what: What,
    against: str,
    prompt: str | None = None,
    target: str | None = None,
    rival: str | None = None,
    sites: Sequence[str] = (),
    path: tuple[str, str] | None = None,
    ids: Sequence[int] | None = None,
    special: bool = True,
) -> Table:
    """The effect of each site of a prompt, at each token alone, patched from another text, one a
    row (docs/patching.md).

    `sites` are named as cells are, `blocks.0.attn.h0.result[2,:]` (default: the usual ones); `path`
    is from one site to another; with `special`, the tokenizer adds its special tokens to both
    texts. Raises InputError for texts of different lengths, and for an unknown word or site.

    >>> rows = cf.patch("dialogue-game", "<BOS> 3 chiama Paolo", prompt="<BOS> Pietro chiama Paolo")
    >>> max(rows, key=lambda row: row.recovered).site
    'blocks.1.attn.h2.pattern'
    """
    if path is not None and len(path) != 2:
        raise InputError(
            "‘path’ needs the names of two sites: the source of the values, and their destination"
        )
    sender, receiver = path or (None, None)
    return _table(
        patching.patch,
        name_of(what),
        against,
        prompt=prompt,
        ids=_ids(ids),
        target=target,
        rival=rival,
        site=_listed(sites, "sites") or None,
        from_=sender,
        to=receiver,
        no_special=not special,
        force=True,
    )


@explained
def sweep(
    what: What,
    cell: str,
    start: float = -1.0,
    stop: float = 1.0,
    n_steps: int = 21,
    prompt: str | None = None,
    ids: Sequence[int] | None = None,
    target: str | None = None,
    special: bool = True,
) -> Table:
    """A word's logit and probability as one cell runs through `n_steps` values, one a row.

    `cell` is a name or an address, `Weights!C9`; `target` is the word (default: the likeliest), or
    in a workbook without a model the cell to watch. Raises InputError.

    >>> rows = cf.sweep("cat-sat", "blocks.0.attn.h0.W_V[2,2]", -1, 1, 3, prompt="the cat sat")
    >>> [(row.value, round(row.probability, 3)) for row in rows]
    [(-1.0, 0.189), (0.0, 0.251), (1.0, 0.312)]
    """
    return _table(
        sweeping.sweep,
        name_of(what),
        cell,
        start=float(start),
        stop=float(stop),
        n_steps=n_steps,
        prompt=prompt,
        ids=_ids(ids),
        target=target,
        no_special=not special,
        force=True,
    )


@explained
def explain(what: str | Path | Book, *cells: str, model: str | None = None) -> Table:
    """Cells in words, one a row: `says`, `value`, `formula`, `reads`, `edits`.

    `what` is a name of the gallery, an edited workbook, or what `build` gives; `cells` are names or
    addresses; `model` is the one that a file was built from, if it does not hold it. `print` prints
    the sentences. Raises InputError.

    >>> (row,) = cf.explain("cat-sat", "logits[2,6]")
    >>> round(row.value, 3), row.reads[0]
    (3.077, 'D9:D13 (resid_final)')
    """
    if not cells:
        raise InputError("name at least one cell, such as 'Play!C12' or 'logits[2,5]'")
    if isinstance(what, Book):
        return _table(explaining.explained, what.title, Edited(what), cells)
    return _table(explaining.explain, name_of(what), list(cells), model)


@explained
def diff(path: str | Path, model: str | None = None) -> Table:
    """The changes of a workbook since it was built, one cell a row.

    `model` is the one that the file was built from, if it does not hold it; `result` has the next
    words before and after. Raises InputError if cellformer did not make the file.

    >>> path = cf.write(cf.build("cat-sat"), "edited.xlsx", edits={("W_E", 1, 0): 0.5})
    >>> [(row.cell, row.was, row.now) for row in cf.diff(path)]
    [('W_E[1,0]', 0.3, 0.5)]
    """
    return _table(edited.diff, possible(path), model)


@explained
def verify(path: str | Path, engine: str = "", seconds: float = 600) -> Table:
    """The verdict of each spreadsheet program that recomputes a workbook, or of Node.js on a page,
    one a row: `engine`, `verdict`, `cells`, `largest` difference, `where`.

    `engine` names one (default: all that are installed); each has `seconds`. Raises InputError.

    >>> path = cf.write(cf.build("loss"), "loss.xlsx")
    >>> {row.verdict for row in cf.verify(path, "ironcalc")} <= {"agrees", "not installed"}
    True
    """
    if not 1 <= seconds <= LONGEST:
        raise InputError(
            f"seconds is {seconds}; choose a number from 1 to {LONGEST:,} for each program"
        )
    return _table(verifying.report, possible(path), engine, seconds)


@explained
def edit(
    what: What,
    say: str,
    prompt: str | None = None,
    ids: Sequence[int] | None = None,
    only: Sequence[str] = (),
    also: str | Path | None = None,
    output: str | Path | None = None,
    special: bool = True,
) -> Table:
    """Write a workbook with the smallest change of weights that makes the model say a word; a row
    is a changed weight, the largest change first.

    `only` names the weights that may change; `also` is a file of prompts on which side effects are
    measured; `output` is the file (default: NAME-edited.xlsx). Raises InputError.

    >>> rows = cf.edit("cat-sat", "floor", prompt="the cat sat", output="floor.xlsx")
    >>> rows.result["word"], cf.run("floor.xlsx")[0].word
    ('floor', 'floor')
    """
    return _table(
        editing.edit,
        name_of(what),
        say,
        prompt=prompt,
        ids=_ids(ids),
        no_special=not special,
        only=_listed(only, "only") or None,
        also=None if also is None else possible(also),
        output=None if output is None else possible(output),
        force=True,
    )


def _ids(ids: Sequence[int] | None) -> str | None:
    """Token ids as the command takes them."""
    return None if ids is None else ",".join(map(str, ids))
