"""Options as values: typer converts texts with pydantic, which takes 80 ms to import and set up.
Texts, paths, and defaults, which are of their type already, do without."""

from pathlib import Path
from typing import Any

import typer


class Conversion:
    """Converts the text of one option; asks typer only where that is needed."""

    def __init__(self, option: Any):
        self.annotation = option.type_descriptor.annotation
        self.typer = option.get_runtime_param

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """The value of an option, converted."""
        if value is None:
            return () if param.multiple or param.nargs == -1 else None
        if type(value) is self.annotation:
            return value
        if type(value) is str and self.annotation is Path:
            return Path(value)
        return self.typer().coerce(value, param=param, ctx=ctx)


def quick(command: Any) -> Any:
    """A command of typer's whose options are converted so."""
    for option in command.get_params(typer.Context(command)):  # also --help, which it keeps
        conversion = Conversion(option)
        option.get_runtime_param = lambda made=conversion: made
    return command
