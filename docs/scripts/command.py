"""Write docs/command.md: the reference of the command, from its `--help`.

python docs/scripts/command.py
"""

from pathlib import Path
from textwrap import fill
from typing import Any

from cellformer.command.group import HOMES, command

TARGET = Path(__file__).parents[1] / "command.md"
WIDTH = 96  # characters of a line
HEAD = """# The command

`python docs/scripts/command.py` makes this page from the commands' own help. A NAME is a workbook
of `cellformer list` or a model ([formats](formats.md)).

Invalid input ends in one line that names the fact and the remedy, and exit code 2. Other exit
codes are 0 for success, and 1 for a verdict of `verify`, `prove` or `bless`, or 3 of `verify`. 130
follows Ctrl-C, 129 a closed terminal, and 143 a terminated process; nothing is left half-written.
141, without a message, follows a pipe that closed early, as in `cellformer list | head -1`.

An unfinished file or folder is called `.cellformer-0123456789abcdef.part` and stands beside its
target. If the command is killed, the next one that writes in that folder deletes it.

`cellformer --version` prints the version. `cellformer --install-completion` installs shell
completion for commands, options and the names of workbooks.
"""


def reference() -> str:
    """The page, in Markdown."""
    return HEAD + "".join(section(name, command(name)) for name in HOMES)


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
