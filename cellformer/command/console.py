"""The console that commands print on: no control characters, and no folding but on a terminal.

Tables and progress bars need rich, which takes 40 ms to import; a line of text does not.
"""

import sys
from functools import cached_property
from typing import TYPE_CHECKING, Any

from cellformer.engine.cells.texts import on_terminal

if TYPE_CHECKING:
    from rich.console import Console

WIDE = 1000  # columns for output that goes to a file or a pipe, where nothing need be folded


class Printer:
    """A console that waits for rich until something other than a line of text is printed."""

    quiet = False

    def print(self, *what: Any, **how: Any) -> None:
        """Print as rich's console does."""
        self.rich.print(*what, **how)

    @property
    def rich(self) -> "Console":
        """The console of rich, which progress bars take."""
        self._made.quiet = self.quiet
        return self._made

    @cached_property
    def _made(self) -> "Console":
        from cellformer.command.plain import Plain

        return Plain(highlight=False, width=None if sys.stdout.isatty() else WIDE)


console = Printer()


def line(text: str) -> None:
    """Print a line as it is, without markup or wrapping."""
    if not console.quiet:
        print(on_terminal(text))
