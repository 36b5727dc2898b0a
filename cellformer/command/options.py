"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

import workbooks
from exporters.source import MOST_TYPED


def workbook_names() -> list[str]:
    """What a shell completes a name to; files, where none of them begins so."""
    return workbooks.names()


Name = Annotated[
    str,
    typer.Argument(
        help="A workbook of `cellformer list`, or a model: file, folder, or owner/name.",
        autocompletion=workbook_names,
    ),
]
Prompt = Annotated[str | None, typer.Option("--prompt", help="The text that the model gets.")]
Second = Annotated[
    str | None,
    typer.Option("--second", help="Sentence encoders: the text that the prompt is compared with."),
]
NoSpecial = Annotated[
    bool,
    typer.Option("--no-special", help="Leave out the tokens that the tokenizer itself adds."),
]
Ids = Annotated[str | None, typer.Option("--ids", help="Token ids instead, as 0,1,3.")]
Tokens = Annotated[
    int | None, typer.Option("--tokens", min=1, help="Columns: the prompt and what follows.")
]
TextLength = Annotated[
    int | None,
    typer.Option(
        "--text-length", min=1, max=MOST_TYPED, help="Characters that a typed sentence may have."
    ),
]
Sets = Annotated[
    list[str] | None,
    typer.Option("--set", help="Change a cell: 'blocks.0.attn.h0.W_Q[3,2]=0.5'. Repeatable."),
]
Target = Annotated[
    str | None, typer.Option("--target", help="The word to follow; the likeliest unless given.")
]
Mean = Annotated[
    bool, typer.Option("--mean", help="What is off writes its average instead of nothing.")
]
Lens = Annotated[bool, typer.Option("--lens", help="What the model would say after each sublayer.")]
Temperature = Annotated[float, typer.Option("--temperature", help="0 is greedy.")]
TopK = Annotated[int, typer.Option("--top-k", help="0 keeps all.")]
TopP = Annotated[float, typer.Option("--top-p", help="1 keeps all.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Of the random numbers.")]
Size = Annotated[int | None, typer.Option(min=1)]
Half = Annotated[bool, typer.Option("--half", help="Weights in float16: half as large a file.")]
Beyond = Annotated[bool, typer.Option("--force", help="Go on, however much it will be.")]
Force = Annotated[bool, typer.Option("--force", help="Replace a model that is in the folder.")]

# how a workbook is built
Built = Annotated[
    str | None,
    typer.Argument(
        help="A workbook of `cellformer list`, or a checkpoint folder.",
        autocompletion=workbook_names,
    ),
]
Live = Annotated[
    list[str] | None,
    typer.Option("--live", help="Only this part recomputes: blocks.3. Repeatable."),
]
Backward = Annotated[
    bool, typer.Option("--gradient", help="The backward pass as well: how every cell counts.")
]
Nudge = Annotated[
    bool, typer.Option("--nudge", help="One step of learning the prompt: before and after.")
]
Words = Annotated[
    Path | None,
    typer.Option("--words", help="Maps of the words of this file, one a line; `# name`: a group."),
]
Digits = Annotated[
    str, typer.Option("--digits", help="exact, or short: the shortest decimals of float32.")
]
