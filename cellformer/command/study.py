"""The command of a study without a command file: for one prompt, or for a file of prompts."""

import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer

from cellformer import names
from cellformer.command import options, printing
from cellformer.command.answer import Answer
from cellformer.command.many import Many
from cellformer.command.sharing import Sharing
from cellformer.engine.studies import study as declared
from cellformer.engine.studies.study import Study


def command(study: Study) -> Callable[..., Answer]:
    """The function of the command, with the options that every study has and the study's own."""
    own = declared.spelt(study.options)

    def run(
        name: options.Name,
        prompt: options.Prompt = None,
        ids: options.Ids = None,
        no_special: options.NoSpecial = False,
        target: options.Target = None,
        prompts: options.Prompts = None,
        output: options.Rows = None,
        jobs: options.Jobs = 1,
        dask: options.Dask = None,
        resume: options.Resume = False,
        force: options.Beyond = False,
        **given: Any,
    ) -> Answer:
        many = Many(prompts, output, Sharing(jobs, dask, resume))
        asked = study.options(**given)
        if many.wanted(prompt=prompt, ids=ids):
            return many.report(study.name, name, no_special, force, asked, target=target)
        loaded = names.load(name, prompt, ids, not no_special, force=force)
        word, rows = study.rows(
            loaded.asked(force, not no_special, target=target or "", options=asked)
        )
        found = list(rows)
        return Answer(
            lambda: printing.rows(
                found, study.title.format(target=word), closing=study.closing(word, found)
            ),
            lambda: {"target": word, "rows": found},
            "rows",
        )

    *of_all, _ = inspect.signature(run).parameters.values()
    before = [parameter.name for parameter in of_all].index("prompts")
    of_all[before:before] = [_parameter(field, *told) for field, told in own.items()]
    run.__doc__ = study.summary
    run.__signature__ = inspect.Signature(of_all, return_annotation=Answer)  # type: ignore[attr-defined]
    return run


def _parameter(field: str, kind: Any, option: str, told: str, default: Any) -> inspect.Parameter:
    annotation = Annotated[kind, typer.Option(f"--{option}", help=told)]
    either = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Parameter(field, either, default=default, annotation=annotation)
