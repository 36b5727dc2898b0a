"""Studies over a file of prompts: their options, with a progress bar, and the table."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from cellformer import studies
from cellformer.command.answer import Answer
from cellformer.command.console import line
from cellformer.command.sharing import Sharing
from cellformer.engine import InputError
from cellformer.names import given_options
from cellformer.studies import Task, absolute

errors = Console(stderr=True, highlight=False, soft_wrap=True)


@dataclass(frozen=True)
class Many:
    """The options of a study over a file of prompts."""

    prompts: Path | None
    output: Path | None
    sharing: Sharing

    def wanted(self, **one: object) -> bool:
        """Whether prompts of a file are to be studied; `one` has the options that are for one
        prompt alone. Raises InputError for options that do not go together."""
        if self.prompts is None:
            self.sharing.check_none("give a file of prompts with --prompts")
            return False
        for option in given_options(one):
            raise InputError(f"--prompts reads the prompts from a file; leave out {option}")
        if self.sharing.resume and self.output is None:
            raise InputError(
                "--resume continues a run that was stopped; name the table of that run with -o"
            )
        return True

    def report(
        self, kind: str, name: str, no_special: bool, force: bool, options: Any, **words: str | None
    ) -> Answer:
        """Write or print the table of a study; `words` are the target, the rival and the text of
        prompts that have none of their own. Raises InputError."""
        assert self.prompts is not None
        told = {what: word or "" for what, word in words.items()}
        asked = Task(kind, absolute(name), not no_special, force, **told, options=options)
        prompts = studies.read(self.prompts)
        with (
            self.sharing.workers() as workers,
            progress(asked.kind, len(prompts)) as (tell, advance),
        ):
            found = studies.run(
                asked, prompts, workers, self.output, self.sharing.resume, tell, advance
            )

        def show() -> None:
            if self.output is None:
                return studies.write_csv(sys.stdout, asked.columns, found)
            line(f"{self.output}: {len(found):,} rows; prompts: {len(prompts):,}")

        return Answer(
            show,
            lambda: {"columns": asked.columns, "rows": found, "prompts": len(prompts)},
            lambda: (dict(zip(asked.columns, row, strict=True)) for row in found),
        )


@contextmanager
def progress(what: str, n: int) -> Iterator[tuple[Callable[[str], None], Callable[[int], None]]]:
    """A progress bar with the time left on standard error, where that is a terminal: functions that
    print a line above it, and that move it on."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    hidden = not errors.is_terminal
    with Progress(*columns, TimeRemainingColumn(), console=errors, disable=hidden) as bar:
        task = bar.add_task(what, total=n)
        yield errors.print, lambda done: bar.advance(task, done)
