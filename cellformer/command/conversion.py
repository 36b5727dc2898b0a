"""Converts the texts of options. Typer does so with pydantic, whose import takes 80 ms. Texts,
paths and defaults do not need it."""

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
    """A command of typer's with this conversion of options, if typer converts with pydantic:
    before 0.29 it does not."""
    for option in command.get_params(typer.Context(command)):  # also --help, which it keeps
        if hasattr(option, "type_descriptor") and hasattr(option, "get_runtime_param"):
            conversion = Conversion(option)
            option.get_runtime_param = lambda made=conversion: made
    return command
