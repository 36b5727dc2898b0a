"""The command list. It imports no workbook, and little else: each workbook's line is read from its
source."""

from rich.table import Table
from rich.text import Text

from cellformer import workbooks
from cellformer.command import results
from cellformer.command.answer import Answer
from cellformer.command.console import console


def list_() -> Answer:
    """List the workbooks in learning order, one line each."""
    return Answer(_list, _listed, "workbooks")


def _listed() -> results.List:
    first = workbooks.first()
    return {
        "workbooks": [
            {
                "name": name,
                "title": workbooks.title(name).partition(": ")[2],
                "topic": topic,
                "level": workbooks.level(name),
                "start_here": name == first,
            }
            for topic, listed in workbooks.by_topic().items()
            for name in listed
        ]
    }


def _list() -> None:
    """Print the workbooks."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    first = workbooks.first()
    for topic, listed in workbooks.by_topic().items():
        table.add_row(Text(topic, style="italic"))
        for name in listed:
            line = workbooks.title(name).partition(": ")[2]
            begin = "start here; " if name == first else ""
            level = Text(f"level {workbooks.level(name)}", style="dim")
            table.add_row(Text(f"  {name}", style="bold"), level, Text(begin + line))
    console.print(table)
    for number, what in workbooks.LEVELS.items():
        console.print(f"level {number}: {what}", style="dim")
