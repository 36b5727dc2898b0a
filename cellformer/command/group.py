"""The `cellformer` command as a whole: the names of its commands, and where each is defined.

A command's module imports numpy and all that the command needs, which takes most of a second. So it
is imported when the command is called; its line in `cellformer --help` is read from its source.
"""

import ast
import atexit
import gc
import os
from collections.abc import Callable
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from inspect import getdoc
from pathlib import Path
from typing import Annotated, Any

# Blocks are small: threads for matrix products cost more at start-up than they ever give back.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import typer
from typer.core import TyperCommand, TyperGroup

import cellformer

HOMES = {  # each command, in the order of the help: its module of cellformer/command, its function
    "list": ("gallery", "list_"),
    "build": ("main", "build"),
    "open": ("main", "open_"),
    "run": ("explore", "run"),
    "trace": ("trace", "trace"),
    "explain": ("explain", "explain"),
    "ablate": ("explore", "ablate"),
    "patch": ("patch", "patch"),
    "quantize": ("quantize", "quantize"),
    "gradient": ("gradient", "gradient"),
    "why": ("why", "why"),
    "steer": ("steer", "steer"),
    "sweep": ("explore", "sweep"),
    "generate": ("explore", "generate"),
    "info": ("explore", "info"),
    "edit": ("edit", "edit"),
    "diff": ("edited", "diff"),
    "import": ("edited", "import_"),
    "grade": ("grade", "grade"),
    "verify": ("main", "verify"),
    "bless": ("bless", "bless"),
    "train": ("main", "train"),
}


class Later(TyperCommand):
    """A command that is imported when it is called."""

    def __init__(self, name: str):
        super().__init__(name)
        del self.help  # so that it is read where it is shown: 21 files take a third of the start

    @cached_property
    def help(self) -> str:  # type: ignore[override]
        return summary(*HOMES[str(self.name)])

    def make_context(
        self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any
    ) -> Any:
        return command(str(self.name)).make_context(info_name, args, parent, **extra)


def summary(module: str, function: str) -> str:
    """The first paragraph of a function's docstring, without importing its module."""
    found = find_spec(f"cellformer.command.{module}")
    assert found is not None and found.origin is not None
    tree = ast.parse(Path(found.origin).read_text(encoding="utf-8"))
    (defined,) = (n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == function)
    return folded(ast.get_docstring(defined) or "").partition("\n")[0]


def folded(docstring: str) -> str:
    """A docstring as help: a paragraph is one line, folded to the width of the terminal."""
    return "\n\n".join(" ".join(each.split()) for each in docstring.split("\n\n"))


def command(name: str) -> Any:
    """A command with its options; imports its module."""
    from cellformer.command.answer import answering

    module, function = HOMES[name]
    described: Callable[..., Any] = getattr(import_module(f"cellformer.command.{module}"), function)
    alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    alone.command(name, help=folded(getdoc(described) or ""))(answering(name, described))
    return typer.main.get_command(alone)


def _print_version(asked: bool) -> None:
    if asked:
        print(f"cellformer {cellformer.__version__}")
        raise typer.Exit


def _of_all(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, help="Print the version and exit.")
    ] = False,
) -> None:
    """A transformer you can open in a spreadsheet."""


def begin() -> TyperGroup:
    """Prepare the process, and return the command."""
    atexit.register(gc.freeze)  # so that Python does not go through all of them at the end
    gc.set_threshold(100_000)  # a book is many small objects, and hardly one of them garbage
    app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)
    app.callback()(_of_all)
    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup)
    for name in HOMES:
        group.add_command(Later(name))
    return group
