"""rich's console, for tables and progress bars, without control characters."""

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from cellformer.engine.cells.texts import on_terminal


class Plain(Console):
    """A console that prints no control characters from vocabularies or file names."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """The segments to print, without control characters in their texts."""
        for segment in super().render(renderable, options):
            text, style, control = segment
            yield segment if control else Segment(on_terminal(text), style)
