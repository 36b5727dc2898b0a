"""The console that commands print on: no control characters, and no folding but on a terminal."""

import sys
from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from cellformer.engine.cells.texts import on_terminal

WIDE = 1000  # columns for output that goes to a file or a pipe, where nothing need be folded


class Plain(Console):
    """A console that prints no control characters, whatever a vocabulary or a file name holds."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """The segments to print, without control characters in their texts."""
        for segment in super().render(renderable, options):
            text, style, control = segment
            yield segment if control else Segment(on_terminal(text), style)


console = Plain(highlight=False, width=None if sys.stdout.isatty() else WIDE)


def line(text: str) -> None:
    """Print a line as it is, without markup or wrapping."""
    console.print(text, soft_wrap=True, markup=False)
