"""Write docs/command.md: the reference of the command, as `--help` says it.

python docs/command.py
"""

from pathlib import Path
from textwrap import fill
from typing import Any

import typer

from cellformer.command.main import app

TARGET = Path(__file__).with_name("command.md")
WIDTH = 96  # characters of a line
HEAD = """# The command

Made by `python docs/command.py` out of what the commands say of themselves. Wherever a NAME is
taken, it is a workbook of `cellformer list` or a model ([formats](formats.md)). What cannot be used
ends in one line that names the fact and the remedy, and exit code 2. Other exit codes: 0, all went
well; 1 and 3, verdicts of `verify` alone; and 128 and the number of a signal: 130 for Ctrl-C, 129
for a terminal that is closed, 143 for a program that is told to end (nothing is left half-written),
and 141, without a word, where a pipe is closed before all is read: `cellformer list | head -1`.

What is not finished is a file or folder `.cellformer-0123456789abcdef.part` beside what it will be.
Should the system kill the command, the next one that writes in that folder takes it away.

`cellformer --version` prints the version. `cellformer --install-completion` has the shell complete
commands, options and the names of workbooks at the Tab key.
"""


def reference() -> str:
    """The page, in Markdown."""
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    return HEAD + "".join(section(name, command) for name, command in commands.items())


def section(name: str, command: Any) -> str:
    """One command: what it does, its arguments and options."""
    arguments = [p for p in command.params if not p.opts[0].startswith("-")]
    usage = [p.name.upper() if p.required else f"[{p.name.upper()}]" for p in arguments]
    lines = [f"\n## `{' '.join(['cellformer', name, *usage])}`", ""]
    for paragraph in command.help.split("\n\n"):
        lines += [fill(paragraph, WIDTH, break_on_hyphens=False), ""]
    for parameter in command.params:
        shown = ", ".join(parameter.opts) if parameter not in arguments else parameter.name.upper()
        lines.append(f"- `{shown}`{f': {parameter.help}' if parameter.help else ''}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    TARGET.write_text(reference(), encoding="utf-8")
    print(TARGET.name)
