"""The `cellformer` command as a whole: the names of its commands, and where each is defined.

A command's module imports numpy and all that the command needs, which takes most of a second. So it
is imported when the command is called; its line in `cellformer --help` is read from its source.
"""

import ast
import atexit
import gc
import os
import re
import sys
from collections.abc import Callable
from functools import cache, cached_property
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
from cellformer.command.conversion import quick

STUDY = re.compile(r'^STUDY = Study\(\n    "(.+)",$', re.M)  # in a file of engine/studies: its name
IN_ITS_FILE = ("", "")  # the home of a command that a study declares
HOMES = {  # each command, in the order of the help: its module of cellformer/command, its function
    "list": ("gallery", "list_"),
    "build": ("main", "build"),
    "open": ("main", "open_"),
    "run": ("explore", "run"),
    "trace": ("trace", "trace"),
    "explain": ("explain", "explain"),
    "ablate": IN_ITS_FILE,
    "patch": ("patch", "patch"),
    "quantize": ("quantize", "quantize"),
    "gradient": ("gradient", "gradient"),
    "why": ("why", "why"),
    "steer": ("steer", "steer"),
    "sweep": ("sweep", "sweep"),
    "generate": ("explore", "generate"),
    "info": ("explore", "info"),
    "edit": ("edit", "edit"),
    "diff": ("edited", "diff"),
    "import": ("edited", "import_"),
    "grade": ("grade", "grade"),
    "verify": ("main", "verify"),
    "prove": ("prove", "prove"),
    "bless": ("bless", "bless"),
    "train": ("main", "train"),
}


def study_files() -> dict[str, str]:
    """The text of the file of each study, by name; nothing is imported."""
    if loaded := sys.modules.get("cellformer.engine.studies"):
        folders = list(loaded.__path__)
    else:
        engine = find_spec("cellformer.engine")
        assert engine is not None and engine.submodule_search_locations
        folders = [os.path.join(engine.submodule_search_locations[0], "studies")]
    return _study_files(*folders)


@cache
def _study_files(*folders: str) -> dict[str, str]:
    files = sorted(file for folder in folders for file in Path(folder).glob("*.py"))
    texts = [file.read_text(encoding="utf-8") for file in files]
    return {found[1]: text for text in texts if (found := STUDY.search(text))}


def homes() -> dict[str, tuple[str, str]]:
    """Every command, also of studies that are in no list."""
    return HOMES | {name: IN_ITS_FILE for name in study_files() if name not in HOMES}


class Later(TyperCommand):
    """A command that is imported when it is called."""

    def __init__(self, name: str):
        super().__init__(name)
        del self.help  # so that it is read where it is shown: 21 files take a third of the start

    @cached_property
    def help(self) -> str:  # type: ignore[override]
        return summary(str(self.name))

    def make_context(
        self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any
    ) -> Any:
        return command(str(self.name)).make_context(info_name, args, parent, **extra)


def summary(name: str) -> str:
    """The first paragraph of a command's help, without importing its module."""
    module, function = homes()[name]
    if not module:
        return folded(_declared(study_files()[name])).partition("\n")[0]
    found = find_spec(f"cellformer.command.{module}")
    assert found is not None and found.origin is not None
    tree = ast.parse(Path(found.origin).read_text(encoding="utf-8"))
    (defined,) = (n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == function)
    return folded(ast.get_docstring(defined) or "").partition("\n")[0]


def _declared(text: str) -> str:
    """The summary in the declaration of a study."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "STUDY":
            assert isinstance(node.value, ast.Call)
            return str(ast.literal_eval(node.value.args[1]))
    raise AssertionError("no study")


def folded(docstring: str) -> str:
    """A docstring as help: a paragraph is one line, folded to the width of the terminal."""
    return "\n\n".join(" ".join(each.split()) for each in docstring.split("\n\n"))


def command(name: str) -> Any:
    """A command with its options; imports its module."""
    from cellformer.command.answer import answering

    module, function = homes()[name]
    described: Callable[..., Any]
    if module:
        described = getattr(import_module(f"cellformer.command.{module}"), function)
    else:
        from cellformer.command import study
        from cellformer.engine.studies.study import studies

        described = study.command(studies()[name])
    alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    alone.command(name, help=folded(getdoc(described) or ""))(answering(name, described))
    return quick(typer.main.get_command(alone))


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
    gc.set_threshold(1_000_000)  # a book is many small objects, and hardly one of them garbage
    app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)
    app.callback()(_of_all)
    group = quick(typer.main.get_command(app))
    assert isinstance(group, TyperGroup)
    for name in homes():
        group.add_command(Later(name))
    return group
