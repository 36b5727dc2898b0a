"""The options of the commands build, open, verify and train. Their work stands in the files
beside this, which also have the other commands; `group` lists all by name."""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from cellformer import names
from cellformer.command.answer import Answer
from cellformer.command.options import (
    Adapter,
    All,
    AnswerLanguage,
    Architecture,
    Batch,
    Beyond,
    Built,
    Chat,
    Context,
    Dask,
    Digits,
    DMlp,
    DModel,
    Exercise,
    Force,
    Half,
    Heads,
    Ids,
    Jobs,
    Lang,
    Layers,
    LearningRate,
    Level,
    Live,
    MinP,
    NoSpecial,
    Output,
    Prompt,
    PromptFile,
    Proof,
    RepetitionPenalty,
    Resume,
    Second,
    Seed,
    Solved,
    Steps,
    System,
    Temperature,
    TextLength,
    Tokens,
    TopK,
    TopP,
    Vocab,
    WithWorkbook,
    of_additions,
    workbook_names,
)
from cellformer.engine import InputError
from cellformer.engine.cells import language


def build(
    name: Built = None,
    output: Output = None,
    all_: All = False,
    prompt: Prompt = None,
    second: Second = None,
    ids: Ids = None,
    no_special: NoSpecial = False,
    tokens: Tokens = None,
    text_length: TextLength = None,
    temperature: Temperature = 0.0,
    top_k: TopK = 0,
    top_p: TopP = 1.0,
    min_p: MinP = 0.0,
    repetition_penalty: RepetitionPenalty = 1.0,
    seed: Seed = 0,
    chat: Chat = False,
    system: System = None,
    file: PromptFile = None,
    answer_language: AnswerLanguage = None,
    live: Live = None,
    adapter: Adapter = None,
    exercise: Exercise = False,
    level: Level = 1,
    solved: Solved = False,
    digits: Digits = "",
    proof: Proof = False,
    lang: Lang = "en",
    with_workbook: WithWorkbook = False,
    jobs: Jobs = 1,
    dask: Dask = None,
    resume: Resume = False,
    force: Beyond = False,
    **studies: Any,
) -> Answer:
    """Write a workbook whose formulas recompute the forward pass and continue the prompt."""
    options = dict(locals())  # before anything else is local
    from cellformer.command import build as building
    from cellformer.command.sharing import Sharing

    asked = building.Asked.of(options)
    with language.speaking(language.language(lang)):
        if not all_:
            Sharing(jobs, dask, resume).check_none("build them with --all")
            return building.build(name, output, asked, with_workbook, force)
        if with_workbook or lang != "en":
            raise InputError(
                "--all cannot be combined with --with-workbook or --lang; leave out these options"
            )
        return building.build_all(name, output, asked, Sharing(jobs, dask, resume), force)


def _with_additions(command: Callable[..., Answer]) -> inspect.Signature:
    """The signature of `build`, with the options of studies in place of `studies`."""
    *own, _ = inspect.signature(command).parameters.values()
    return inspect.Signature([*own, *of_additions()], return_annotation=Answer)


build.__signature__ = _with_additions(build)  # type: ignore[attr-defined]


def open_(
    name: Annotated[
        str,
        typer.Argument(
            help="A name from `cellformer list`, a checkpoint folder, or FILE.xlsx.",
            autocompletion=workbook_names,
        ),
    ],
    output: Annotated[
        Path | None, typer.Option("-o", help="Output file (default: NAME.xlsx).")
    ] = None,
    prompt: Prompt = None,
    chat: Chat = False,
    system: System = None,
    web: Annotated[
        bool,
        typer.Option(
            "--web",
            help="Build the web page instead of the workbook, and open the page in your browser.",
        ),
    ] = False,
    lang: Lang = "en",
) -> None:
    """Build a workbook and open it in your spreadsheet program, or its page in your browser.

    If the file already exists, cellformer builds nothing, and opens the file with all your edits.
    """
    from cellformer.command import opening
    from cellformer.command.console import line
    from cellformer.exporters.file.reading import present

    if name.endswith((".xlsx", ".html")):
        if output or prompt is not None or lang != "en" or chat or system is not None:
            raise InputError(
                f"{name} is a file, which opens without changes; leave out -o, --prompt, --chat, "
                "--system and --lang"
            )
        return opening.show(present(name))
    kind = "-chat" if chat else ""
    path = output or Path(f"{names.title(name)}{kind}{'.html' if web else '.xlsx'}")
    if not path.exists():
        build(name, path, prompt=prompt, lang=lang, chat=chat, system=system).tell()
    elif prompt is not None or lang != "en" or system is not None:
        what = "language" if prompt is None and system is None else "prompt"
        raise InputError(
            f"{path} exists already, and its {what} cannot change; name a new file with -o"
        )
    else:
        line(f"{path} exists already and opens without changes; use -o FILE to build a new file")
    opening.show(path)


def verify(
    file: Annotated[Path, typer.Argument(help="An .xlsx workbook with values, or an .html page.")],
    engine: Annotated[
        str,
        typer.Option(
            "--engine",
            help="ironcalc, libreoffice, gnumeric, formualizer, formulas, or all (default: all of "
            "these that are installed). The engines aspose, betteroffice and formulon run "
            "only if you name them. For a page: javascript.",
        ),
    ] = "",
    timeout: Annotated[
        float, typer.Option(min=1, help="Time limit for each engine, in seconds.")
    ] = 600,
) -> Answer:
    """Recompute a workbook in other spreadsheet programs, and compare the results.

    The command first lists the rules of Excel that the file breaks, if any. Then each engine gets a
    copy of the file in which every formula has a wrong value. After recomputing this copy, the
    engine must have the values of the file. Exit code 1: an engine disagrees. Exit code 3: the
    named engine, or every engine, is not installed or was skipped. Node.js recomputes the page
    FILE.html, and compares the sums of each block with the sums in the page.
    """
    from cellformer.command import verify as verifying

    return verifying.report(file, engine, timeout)


def train(
    output: Annotated[Path, typer.Option("-o", help="Output folder for the checkpoint.")],
    name: Annotated[
        str | None,
        typer.Argument(help="Name of a workbook whose model can be trained (or use --text)."),
    ] = None,
    text: Annotated[
        Path | None, typer.Option("--text", help="A UTF-8 text file to train on.")
    ] = None,
    architecture: Architecture = None,
    vocab: Vocab = None,
    layers: Layers = None,
    heads: Heads = None,
    d_model: DModel = None,
    d_mlp: DMlp = None,
    context: Context = None,
    steps: Steps = None,
    batch: Batch = None,
    learning_rate: LearningRate = None,
    half: Half = False,
    seed: Seed = 0,
    force: Force = False,
    embed_scale: Annotated[
        float | None,
        typer.Option("--embed-scale", help="Standard deviation of the initial word vectors."),
    ] = None,
) -> Answer:
    """Train a model, save it as a checkpoint, and print measures of its quality.

    NAME retrains the model of a workbook. --text trains a new model on a text file, and the other
    options give the sizes of this model. cellformer trains with torch if torch is installed, and
    with numpy if not.
    """
    from cellformer.command import train as training

    sizes: dict[str, Any] = {
        "architecture": architecture,
        "vocab": vocab,
        "n_layers": layers,
        "n_heads": heads,
        "d_model": d_model,
        "d_mlp": d_mlp,
        "context": context,
        "steps": steps,
        "batch": batch,
        "learning_rate": learning_rate,
        "half": half or None,
    }
    given = {size: value for size, value in sizes.items() if value is not None}
    if name is not None:
        if given.keys() - {"steps"}:
            raise InputError(
                f"{name} has fixed sizes; to choose sizes, give --text FILE instead of a name"
            )
        return training.workbook(name, text, output, force, seed, embed_scale, steps)
    if text is None:
        raise InputError("name a workbook to train, or give a text with --text FILE")
    if embed_scale is not None:
        raise InputError("--embed-scale is only for workbooks; leave it out with --text")
    return training.from_text(training.chosen(**given), text, output, force, seed)
