"""The command `patch`: the values of one sentence put into the pass of another, site by site."""

from collections.abc import Sequence
from typing import Annotated, cast

import typer
from rich.text import Text

from cellformer import names
from cellformer.command import printing, results
from cellformer.command.answer import Answer
from cellformer.command.console import console, line
from cellformer.command.many import Many, Sharing
from cellformer.command.options import (
    Beyond,
    Dask,
    Ids,
    Jobs,
    Name,
    NoSpecial,
    Prompt,
    Prompts,
    Resume,
    Rows,
    Target,
)
from cellformer.engine import InputError
from cellformer.engine.studies import pair, patching
from cellformer.engine.studies.patching import Comparison, Patched, Scores
from cellformer.engine.text.tokenizer import shown
from cellformer.studies import Task, absolute

TOP = 20  # sites that are listed


From = Annotated[
    str | None, typer.Option("--from", help="Path patching: the site whose values are taken.")
]
To = Annotated[
    str | None,
    typer.Option("--to", help="The one site that sees it: blocks.1.attn.h2.v, resid_final."),
]
Sites = Annotated[
    list[str] | None,
    typer.Option(
        "--site",
        help="Patch only here: blocks.0.attn.h0.result, blocks.0.mlp.post[2,8:16]. Repeatable.",
    ),
]


def patch(
    name: Name,
    against: Annotated[
        str | None,
        typer.Option("--against", help="Text of equal length to take values from."),
        Dask,
        Jobs,
        Prompts,
        Resume,
        Rows,
    ] = None,
    prompt: Prompt = None,
    ids: Ids = None,
    no_special: NoSpecial = False,
    target: Target = None,
    rival: Annotated[
        str | None,
        typer.Option("--rival", help="Word to compare with (default: the other text's likeliest)."),
    ] = None,
    site: Sites = None,
    from_: From = None,
    to: To = None,
    prompts: Prompts = None,
    output: Rows = None,
    jobs: Jobs = 1,
    dask: Dask = None,
    resume: Resume = False,
    force: Beyond = False,
) -> Answer:
    """Patch a sentence from another, one site at a time, and report how much of the difference
    recovers.

    The difference is in the target's lead over the rival; the estimate is attribution patching.
    With --prompts, each prompt of a file is patched, and the result is one table.
    """
    path = pair.path_ends(from_, to)
    many = Many(prompts, output, Sharing(jobs, dask, resume))
    if many.wanted(prompt=prompt, ids=ids, from_=from_, to=to):
        where, only = (absolute(name), not no_special, force), pair.Options(tuple(site or ()))
        told = target or "", rival or "", against or ""
        return many.report(Task("patch", *where, *told, options=only))
    if against is None:
        raise InputError("name the text to take values from: --against TEXT")
    loaded = names.load(name, prompt, ids, not no_special, force=force)
    asked = loaded.asked(
        force, not no_special, target=target or "", rival=rival or "", against=against
    )
    other = pair.others(asked)
    sites = site or ([] if path else patching.sites(asked.graph))
    asked.allow(max(1, len(sites)) * len(loaded.ids))
    found = pair.compared(asked, other, sites, path)
    texts = shown(loaded.model.vocabulary.texts)
    tokens, others = [texts[i] for i in loaded.ids], [texts[i] for i in other]
    words = asked.words
    return Answer(
        lambda: _tell(found, words, tokens, others, path),
        lambda: _plain(found, words, tokens, others, path),
        "sites",
    )


def _plain(
    found: Comparison,
    words: Sequence[str],
    tokens: Sequence[str],
    others: Sequence[str],
    path: tuple[str, str] | None,
) -> results.Patch:
    """The comparison as JSON."""
    told: results.Patch = {
        "tokens": list(tokens),
        "against": list(others),
        "target": words[found.target],
        "rival": words[found.rival],
        "before": cast(results.Scores, found.before._asdict()),
        "other": cast(results.Scores, found.other._asdict()),
        "sites": [
            {
                "site": row.site,
                "token": row.token,
                "probability": row.scores.probability,
                "logit": row.scores.logit,
                "lead": row.scores.lead,
                "recovered": row.recovered,
                "estimate": row.estimate,
            }
            for row in found.rows
        ],
    }
    if path is not None:
        told["from"], told["to"] = path
    return told


def _tell(
    found: Comparison,
    words: Sequence[str],
    tokens: Sequence[str],
    others: Sequence[str],
    path: tuple[str, str] | None,
) -> None:
    """Print the two sentences, and the patches that recover most."""
    target, rival = words[found.target], words[found.rival]
    for text, scores in ((tokens, found.before), (others, found.other)):
        line(f"{' '.join(text)}   {_said(scores, target, rival)}")
    console.print()
    if path:
        line(f"from {path[0]} to {path[1]} alone:")
    table = printing.table_of("site", "token", "probability", "logit", "recovered", "estimate")
    order = sorted(filter(_size, found.rows), key=_size, reverse=True)
    order = found.rows if path else order
    for row in order[:TOP]:
        at = "all" if row.token is None else f"{row.token} {tokens[row.token]}"
        numbers = [f"{row.scores.probability:.4f}", f"{row.scores.logit:.4f}"]
        numbers += ["" if x is None else f"{x:+.4f}" for x in (row.recovered, row.estimate)]
        table.add_row(Text(row.site, "bold"), Text(at), *numbers)
    console.print(table)
    if len(order) < len(found.rows):
        line(f"{len(found.rows) - len(order):,} other patches recover nothing")
    if len(order) > TOP and not path:
        line(f"{len(order) - TOP:,} other patches recover less; --json lists all")


def _size(row: Patched) -> float:
    return abs(row.scores.lead if row.recovered is None else row.recovered)


def _said(scores: Scores, target: str, rival: str) -> str:
    return f"{target} {scores.probability:.4f}, {scores.lead:+.4f} ahead of {rival}"
