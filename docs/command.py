"""Write docs/command.md: the reference of the command, as `--help` says it.

python docs/command.py
"""

from pathlib import Path
from typing import Any

import typer

from cellformer.command.main import app

TARGET = Path(__file__).with_name("command.md")
HEAD = """# The command

Made by `python docs/command.py` out of what the commands say of themselves. Wherever a NAME is
taken, it is a workbook of `cellformer list` or a model ([formats](formats.md)). What cannot be used
ends in one line that names the fact and the remedy, and exit code 2.
"""


def reference() -> str:
    """The page, in Markdown."""
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    return HEAD + "".join(section(name, command) for name, command in commands.items())


def section(name: str, command: Any) -> str:
    """One command: what it does, its arguments and options."""
    arguments = [p for p in command.params if not p.opts[0].startswith("-")]
    usage = [p.name.upper() if p.required else f"[{p.name.upper()}]" for p in arguments]
    lines = [f"\n## `{' '.join(['cellformer', name, *usage])}`", "", command.help, ""]
    for parameter in command.params:
        shown = ", ".join(parameter.opts) if parameter not in arguments else parameter.name.upper()
        lines.append(f"- `{shown}`: {parameter.help}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    TARGET.write_text(reference(), encoding="utf-8")
    print(TARGET.name)
