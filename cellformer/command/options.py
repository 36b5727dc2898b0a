"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

import workbooks
from exporters.model.source import MOST_TYPED


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
Prompt = Annotated[str | None, typer.Option("--prompt", help="The text that the model reads.")]
Second = Annotated[
    str | None,
    typer.Option("--second", help="Sentence encoders: the text that the prompt is compared with."),
]
NoSpecial = Annotated[
    bool,
    typer.Option("--no-special", help="Leave out the special tokens that the tokenizer adds."),
]
Ids = Annotated[str | None, typer.Option("--ids", help="Token ids instead of a text: 0,1,3.")]
Tokens = Annotated[
    int | None,
    typer.Option("--tokens", min=1, help="Number of tokens: the prompt and its continuation."),
]
TextLength = Annotated[
    int | None,
    typer.Option(
        "--text-length",
        min=1,
        max=MOST_TYPED,
        help="Longest sentence that can be typed, in characters.",
    ),
]
Sets = Annotated[
    list[str] | None,
    typer.Option("--set", help="Change a cell: 'blocks.0.attn.h0.W_Q[3,2]=0.5'. Repeatable."),
]
Target = Annotated[
    str | None, typer.Option("--target", help="Word to track (default: the most likely).")
]
Mean = Annotated[bool, typer.Option("--mean", help="Use mean ablation instead of zero ablation.")]
Lens = Annotated[
    bool, typer.Option("--lens", help="Logit lens: the most likely words after each sublayer.")
]
Temperature = Annotated[
    float, typer.Option("--temperature", help="Temperature of sampling (0: greedy).")
]
TopK = Annotated[
    int, typer.Option("--top-k", help="Sample from the k most likely tokens (0: all).")
]
TopP = Annotated[
    float,
    typer.Option(
        "--top-p",
        help="Sample from the most likely tokens that together reach this probability (1: all).",
    ),
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Random seed.")]
Size = Annotated[int | None, typer.Option(min=1)]
Half = Annotated[bool, typer.Option("--half", help="Weights in float16: half as large a file.")]
Beyond = Annotated[
    bool,
    typer.Option(
        "--force", help="Go beyond the limits on what a command computes, writes and prints."
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace the model in the folder.")]

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
    typer.Option("--live", help="Make only this part recompute: blocks.3. Repeatable."),
]
Backward = Annotated[
    bool, typer.Option("--gradient", help="Also include the gradient of every cell.")
]
Nudge = Annotated[
    bool,
    typer.Option(
        "--nudge", help="Add one step of gradient descent on the prompt, with before and after."
    ),
]
Words = Annotated[
    Path | None,
    typer.Option(
        "--words", help="Map the words of this file, one per line; `# name` begins a group."
    ),
]
Digits = Annotated[
    str,
    typer.Option(
        "--digits",
        help="Decimals of weights: exact, or short (the shortest that round to the same float32).",
    ),
]
