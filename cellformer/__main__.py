"""`cellformer`, and `python -m cellformer`: the command, imported where its end is watched."""

from collections.abc import Callable
from typing import Any

from cellformer.command import ending


def main() -> None:
    """Run the command."""
    ending.run(_command)


def _command() -> Callable[..., Any]:
    from cellformer.command.group import begin

    return begin()


if __name__ == "__main__":
    main()
