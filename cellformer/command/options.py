"""Options that several commands share."""

import inspect
from collections.abc import Mapping
from keyword import iskeyword
from pathlib import Path
from typing import Annotated, Any

import typer

from cellformer import workbooks
from cellformer.engine import InputError, Model
from cellformer.engine.studies.addition import Option, additions
from cellformer.engine.text.tokenizer import shown
from cellformer.exporters.model.source import MOST_TYPED


def workbook_names() -> list[str]:
    """Names for shell completion: the gallery's, and the workbooks in this folder."""
    return [*workbooks.names(), *sorted(path.name for path in Path().glob("*.xlsx"))]


def block_names(context: typer.Context) -> list[str]:
    """The names of blocks, for shell completion."""
    found = _model(context)
    return [] if found is None else list(found.graph([0]).blocks)


def output_words(context: typer.Context) -> list[str]:
    """The words of a model, for shell completion: those without spaces."""
    found = _model(context)
    known = [] if found is None else shown((found.outputs or found.vocabulary).texts)
    return [word for word in known if word.isprintable() and not set(" '\"\\") & set(word)]


def _model(context: typer.Context) -> Model | None:
    """The model that the command line names so far, if it is one of the gallery: quick to load."""
    from cellformer import names

    name = context.params.get("name") or next(iter(context.args), "")  # before an open option
    try:
        return names.model(name) if name in workbooks.names() else None
    except InputError:
        return None


Name = Annotated[
    str,
    typer.Argument(
        help="A name from `cellformer list`, a workbook file, or a model (a file, a folder, or "
        "owner/name).",
        autocompletion=workbook_names,
    ),
]
Prompt = Annotated[str | None, typer.Option("--prompt", help="Text for the model to read.")]
PromptFile = Annotated[
    Path | None,
    typer.Option("--file", help="UTF-8 text file with the prompt, instead of --prompt."),
]
Chat = Annotated[
    bool,
    typer.Option(
        "--chat", help="Write the prompt in the model's chat template, so that the model answers."
    ),
]
System = Annotated[str | None, typer.Option("--system", help="With --chat: the system prompt.")]
Stop = Annotated[
    list[str] | None,
    typer.Option("--stop", help="Stop the text before these characters. Repeatable."),
]
Second = Annotated[
    str | None,
    typer.Option("--second", help="Text to compare the prompt with (sentence encoders)."),
]
NoSpecial = Annotated[
    bool, typer.Option("--no-special", help="Do not add the tokenizer's special tokens.")
]
Ids = Annotated[str | None, typer.Option("--ids", help="Token ids instead of text, such as 0,1,3.")]
Tokens = Annotated[
    int | None,
    typer.Option(
        "--tokens", min=1, help="Number of tokens of the prompt and the continuation together."
    ),
]
TextLength = Annotated[
    int | None,
    typer.Option(
        "--text-length",
        min=1,
        max=MOST_TYPED,
        help="Maximum length of a sentence typed in the workbook, in characters.",
    ),
]
Sets = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="Change a cell: 'W_E[3,2]=0.5' or 'Embedding!C9=0.5'. Repeatable.",
        autocompletion=block_names,
    ),
]
Target = Annotated[
    str | None,
    typer.Option(
        "--target", help="Word to track (default: the most likely).", autocompletion=output_words
    ),
]
Ablate = Annotated[
    list[str] | None,
    typer.Option(
        "--ablate",
        help="Ablate a head, attention block or MLP, such as blocks.0.attn.h1. Repeatable.",
        autocompletion=block_names,
    ),
]
Mean = Annotated[bool, typer.Option("--mean", help="Use mean ablation instead of zero ablation.")]
Lens = Annotated[
    bool,
    typer.Option("--lens", help="Print the logit lens: the most likely words after each sublayer."),
]
Show = Annotated[
    list[str] | None,
    typer.Option(
        "--show",
        help="Print a block, or all blocks with matching names, such as '*.pattern'. Repeatable.",
        autocompletion=block_names,
    ),
]
Temperature = Annotated[
    float, typer.Option("--temperature", help="Sampling temperature (0: greedy).")
]
TopK = Annotated[
    int,
    typer.Option("--top-k", help="Sample only from the k most likely tokens (0: from all tokens)."),
]
TopP = Annotated[
    float,
    typer.Option(
        "--top-p",
        help="Sample only from the most likely tokens whose probabilities add up to this number "
        "(1: from all tokens).",
    ),
]
MinP = Annotated[
    float,
    typer.Option(
        "--min-p",
        help="Sample only from tokens with at least this share of the top token's probability (0: "
        "from all tokens).",
    ),
]
RepetitionPenalty = Annotated[
    float,
    typer.Option(
        "--repetition-penalty",
        help="Penalty for earlier tokens: divide positive logits by this number, and multiply "
        "negative logits by the same number. 1 means no penalty.",
    ),
]
Lang = Annotated[
    str, typer.Option("--lang", help="Language of the workbook's texts: en (default), it.")
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Random seed.")]
Layers = Annotated[int | None, typer.Option(min=1, help="Number of layers (default: 4).")]
Heads = Annotated[int | None, typer.Option(min=1, help="Attention heads per layer (default: 4).")]
DModel = Annotated[
    int | None, typer.Option(min=1, help="Size of the residual stream (default: 128).")
]
DMlp = Annotated[
    int | None, typer.Option(min=1, help="Hidden neurons of an MLP (default: 4 × d_model).")
]
Context = Annotated[
    int | None, typer.Option(min=1, help="Context length, in tokens (default: 64).")
]
Steps = Annotated[
    int | None,
    typer.Option(
        min=1, help="Training steps (default: 2000). A workbook of the gallery has its own default."
    ),
]
Batch = Annotated[
    int | None,
    typer.Option(min=1, help="Batch size: windows of text per training step (default: 32)."),
]
LearningRate = Annotated[
    float | None, typer.Option(min=0, help="Peak learning rate (default: 0.003).")
]
Half = Annotated[bool, typer.Option("--half", help="Save weights as float16, in half the space.")]
Beyond = Annotated[
    bool,
    typer.Option(
        "--force", help="Ignore the limits on the size of computations, files and printed output."
    ),
]
WithWorkbook = Annotated[
    bool,
    typer.Option(
        "--with-workbook", help="Put the workbook into the page, so that the page can save it."
    ),
]
Force = Annotated[
    bool, typer.Option("--force", help="Overwrite a model that is already in the folder.")
]

Vocab = Annotated[
    str | None,
    typer.Option(
        "--vocab", help="Vocabulary: `characters` (default), or a number of BPE tokens to learn."
    ),
]

Architecture = Annotated[
    str | None,
    typer.Option(
        "--architecture",
        help="Architecture of the model: gpt2 (default), llama, gemma or any other decoder.",
    ),
]

# over many prompts, or workbooks
Prompts = Annotated[
    Path | None,
    typer.Option(
        "--prompts",
        help="File of prompts to study: a text file with one prompt on each line, or a .csv file "
        "with a column named ‘prompt’.",
    ),
]
Rows = Annotated[
    Path | None,
    typer.Option("-o", help="With --prompts: output file, .csv or .parquet (default: print CSV)."),
]
Jobs = Annotated[
    int, typer.Option("--jobs", min=1, help="Number of processes that share the work (default: 1).")
]
Dask = Annotated[
    str | None,
    typer.Option("--dask", help="Address of a Dask scheduler; its workers share the work."),
]
Resume = Annotated[bool, typer.Option("--resume", help="Continue a run that was stopped.")]

# how a workbook is built
Built = Annotated[
    str | None,
    typer.Argument(
        help="A name from `cellformer list`, or a checkpoint folder.",
        autocompletion=workbook_names,
    ),
]
Output = Annotated[
    Path | None,
    typer.Option("-o", help="Output file NAME.xlsx (default) or NAME.html. With --all: a folder."),
]
All = Annotated[
    bool,
    typer.Option(
        "--all",
        help="Build every workbook of `cellformer list`, or every model in the folder NAME.",
    ),
]
Live = Annotated[
    list[str] | None,
    typer.Option(
        "--live",
        help="Recompute only this part, such as blocks.3 (default: all parts). Repeatable.",
    ),
]
Adapter = Annotated[
    Path | None,
    typer.Option("--adapter", help="Folder of a LoRA adapter for the model, as PEFT saves it."),
]
AnswerLanguage = Annotated[
    str | None,
    typer.Option(
        "--answer-language",
        help="Language of a translator's answer: fra_Latn (NLLB), fr_XX (mBART), fr (M2M-100).",
    ),
]
Exercise = Annotated[
    bool,
    typer.Option(
        "--exercise",
        help="Write exercises: the reader fills in yellow cells, and the workbook checks them.",
    ),
]
Level = Annotated[
    int,
    typer.Option(
        "--level",
        help="With --exercise, the level: 1 (single numbers), 2 (formulas) or 3 (whole rows, such "
        "as a row of a head).",
    ),
]
Solved = Annotated[bool, typer.Option("--solved", help="With --exercise: write the answer key.")]
Digits = Annotated[
    str,
    typer.Option(
        "--digits",
        help="Digits of the weights: exact, or short (the fewest digits that give the same "
        "float32 number).",
    ),
]
Proof = Annotated[
    bool, typer.Option("--proof", help="Include the proof that adder is right for all sums.")
]


def of_additions() -> list[inspect.Parameter]:
    """The options of `build` that its additions declare, as parameters of a function."""
    return [_parameter(option) for each in additions() for option in each.options]


def _parameter(option: Option) -> inspect.Parameter:
    name = f"{option.name}_" if iskeyword(option.name) else option.name
    switch = option.kind is bool
    names = block_names if option.of_blocks else None
    told = typer.Option(f"--{option.name}", help=option.help, autocompletion=names)
    kind: Any = option.kind if switch else option.kind | None
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=False if switch else None,
        annotation=Annotated[kind, told],
    )


def given(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of additions that a person gave, by name."""
    return {name.rstrip("_"): x for name, x in options.items() if x not in (None, False)}
