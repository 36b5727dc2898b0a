"""Every kind of workbook that we write, each a small one. tests/web has those that pages save."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import chatting
from conftest import GOLDEN, cli, default_book
from corners import corner

from cellformer.engine.models import checkpoint
from cellformer.engine.models.generate import passage
from cellformer.exporters.assemble import model_workbook
from cellformer.exporters.file.xlsx import write
from cellformer.exporters.model.plan import Limits

IDS = ("--ids", "1,2,0")
LISTS = "# one\n1\n2 1\n# other\n0\n0 2\n"  # of sentences, to steer between them
STACKS = ("t5", "bart", "marian")  # an encoder and a decoder
OTHERS = ("minilm", "mamba", "rwkv", "deepseek_v3")  # without attention, or experts
GALLERY = ("n-grams", "digits", "tokenization", "learn", "napkin")
OPTIONS: dict[str, tuple[str, ...]] = {  # of gpt2
    "--adapter": ("--adapter", str(GOLDEN / "adapters" / "gpt2")),
    "--against": ("--against", "1,0,2"),
    "--digits": ("--digits", "short"),
    "--gradient": ("--gradient",),
    "--live": ("--live", "blocks.0"),
    "--nudge": ("--nudge",),
    "--quantize": ("--quantize",),
    "--steer": ("--steer", "lists.txt"),
    "--temperature": ("--temperature", "0.8", "--top-k", "2", "--tokens", "5"),
    "--why": ("--why",),
}
EXERCISES: dict[str, tuple[str, ...]] = {
    "level 1": ("--level", "1", "--lang", "it"),
    "level 2": ("--level", "2", "--solved"),
    "level 3": ("--level", "3"),
}


def _written(folder: Path, *arguments: object) -> Path:
    """What a command writes."""
    (folder / "lists.txt").write_text(LISTS)
    (folder / "words.txt").write_text("the\ncat\nsat\non\n")
    done = cli(*arguments, "-o", "book.xlsx", cwd=folder)
    assert done.code == 0, done.err
    return folder / "book.xlsx"


def _gallery(name: str, folder: Path) -> Path:
    thin = {"learn": "thin-learn"}
    return write(default_book(thin.get(name, name)), folder / "book.xlsx")


def _gpt2(option: str, folder: Path) -> Path:
    """Small, but with the sizes of its adapter."""
    return GOLDEN / "gpt2" if option == "--adapter" else corner("gpt2", folder / "gpt2")


def _of_corner(name: str, folder: Path) -> Path:
    return _written(folder, "build", corner(name, folder / name), *IDS)


def _large(folder: Path) -> Path:
    """A model whose words do not fit on a sheet across."""
    model = checkpoint.load(corner("llama", folder / "llama"))
    book = model_workbook.build("m", model, passage(model, [1, 2, 0]), limits=Limits(words=1))
    return write(book, folder / "book.xlsx")


def _chat(folder: Path) -> Path:
    model = chatting.write(folder / "model", chatting.SHORT)
    return _written(folder, "build", model, "--chat", "--prompt", "It", "--text-length", "8")


KINDS: dict[str, Callable[[Path], Path]] = {
    **{name: partial(_gallery, name) for name in GALLERY},
    **{
        option: lambda folder, given=given: _written(folder, "build", GOLDEN / "gpt2", *IDS, *given)
        for option, given in OPTIONS.items()
    },
    **{
        f"exercise, {level}": lambda folder, given=given: _written(
            folder, "build", "cat-sat", "--exercise", *given
        )
        for level, given in EXERCISES.items()
    },
    **{name: partial(_of_corner, name) for name in (*STACKS, *OTHERS)},
    "large": _large,
    "--chat": _chat,
    "--words": lambda folder: _written(folder, "build", "cat-sat", "--words", "words.txt"),
    "bless": lambda folder: _written(folder, "bless"),
    "edited": lambda folder: _written(folder, "edit", "cat-sat", "--say", "on"),
}
