"""The command `patch`: the values of one sentence put into the pass of another, site by site."""

from collections.abc import Sequence
from typing import Annotated

import typer

from cellformer import names
from cellformer.command import printing, results
from cellformer.command.answer import Answer
from cellformer.command.console import console, line
from cellformer.command.many import Many
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
from cellformer.command.sharing import Sharing
from cellformer.engine import InputError
from cellformer.engine.studies import pair, patching
from cellformer.engine.studies.pair import PatchedSite
from cellformer.engine.studies.part_names import said
from cellformer.engine.studies.patching import Comparison
from cellformer.engine.studies.study import Asked
from cellformer.engine.text.tokenizer import shown

TOP = 20  # sites that are listed


From = Annotated[
    str | None, typer.Option("--from", help="Path patching: the site where the values come from.")
]
To = Annotated[
    str | None,
    typer.Option(
        "--to",
        help="Path patching: the site that receives the values, such as blocks.1.attn.h2.v or "
        "resid_final.",
    ),
]
Sites = Annotated[
    list[str] | None,
    typer.Option(
        "--site",
        help="Patch only this site, such as blocks.0.attn.h0.result or blocks.0.mlp.post[2,8:16]. "
        "Repeatable.",
    ),
]


def patch(
    name: Name,
    against: Annotated[
        str | None,
        typer.Option("--against", help="Text of the same length that supplies the values."),
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
        typer.Option(
            "--rival",
            help="Word to compare with (default: the most likely word of the other text).",
        ),
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
    """Copy values from another sentence, one site at a time, and report how far the lead recovers.

    The lead is the target's logit minus the rival's logit. The table shows the share of the lead
    that each site recovers, and an estimate of this share by attribution patching. With --prompts,
    the command patches each prompt of a file, and puts all results into one table.
    """
    path = pair.path_ends(from_, to)
    many = Many(prompts, output, Sharing(jobs, dask, resume))
    if many.wanted(prompt=prompt, ids=ids, from_=from_, to=to):
        options, words = pair.Options(tuple(site or ())), {"rival": rival, "against": against}
        return many.report("patch", name, no_special, force, options, target=target, **words)
    if against is None:
        raise InputError("give the text that supplies the values: --against TEXT")
    loaded = names.load(name, prompt, ids, not no_special, force=force)
    asked = loaded.asked(
        force, not no_special, target=target or "", rival=rival or "", against=against
    )
    other = pair.others(asked)
    sites = site or ([] if path else patching.sites(asked.graph))
    asked.allow(max(1, len(sites)) * len(loaded.ids))
    return _answer(asked, other, pair.compared(asked, other, sites, path), path)


def _answer(
    asked: Asked, other: Sequence[int], found: Comparison, path: tuple[str, str] | None
) -> Answer:
    """The two sentences, and every patch."""
    texts = shown(asked.model.vocabulary.texts)
    tokens, others = ([texts[i] for i in ids] for ids in (asked.ids, other))
    target, rival = asked.words[found.target], asked.words[found.rival]
    rows = pair.rows(asked, found)

    def result() -> results.Patch:
        told: results.Patch = {
            "tokens": tokens,
            "against": others,
            "target": target,
            "rival": rival,
            "before": found.before,
            "other": found.other,
            "sites": rows,
        }
        if path is not None:
            told["from"], told["to"] = path
        return told

    def tell() -> None:
        for text, scores in ((tokens, found.before), (others, found.other)):
            ahead = f"{scores.lead:+.4f} ahead of {rival}"
            line(f"{' '.join(text)}   {target} {scores.probability:.4f}, {ahead}")
        console.print()
        if path:
            line(f"from {path[0]} to {path[1]} alone:")
        _tell(rows, path is not None)
        if closing := _closing(rows, path):
            console.print()
            line(closing)

    return Answer(tell, result, "sites")


def _tell(found: Sequence[PatchedSite], all_of_them: bool) -> None:
    """Print the patches that recover most."""
    order = found if all_of_them else sorted(filter(_size, found), key=_size, reverse=True)
    printing.rows(order[:TOP], hidden=("against", "rival", "logit", "lead"))
    if len(order) < len(found):
        line(f"{len(found) - len(order):,} other patches recover none of the difference")
    if len(order) > TOP and not all_of_them:
        line(
            f"{len(order) - TOP:,} other patches recover less of the difference; --json lists "
            "all patches"
        )


def _closing(found: Sequence[PatchedSite], path: tuple[str, str] | None) -> str:
    """The patch that recovers most, in a sentence; "" where the sentences do not differ."""
    most = max(found, key=lambda row: row.recovered or 0.0, default=None)
    if most is None or not most.recovered:
        return ""
    where = f"the path from {said(path[0])} to {said(path[1])}" if path else said(most.site)
    where += "" if most.token is None else f" at {most.word} ({most.token})"
    return f"{most.recovered:.0%} of the difference between the two answers comes from {where}."


def _size(row: PatchedSite) -> float:
    return abs(row.lead if row.recovered is None else row.recovered)
