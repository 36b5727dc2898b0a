"""Answers to a lesson: links that students copy from a page, one on each line of a list."""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from cellformer import names, workbooks
from cellformer.engine import InputError
from cellformer.exporters.compose.book import Book
from cellformer.exporters.edits import lesson, link
from cellformer.exporters.edits.grading import Grade

MOST_BYTES = 4 << 20  # of a list
AROUND = " \t,;\"'"  # what stands around a name and a link in a list


def answers(files: Sequence[Path]) -> dict[str, str]:
    """The lines of lists that are not blank, by file and line. Raises InputError for a file that
    is no list."""
    found = {}
    for file in files:
        try:
            if file.stat().st_size > MOST_BYTES:
                raise InputError(
                    f"{file} is larger than 4 MB; give a list with one link on each line"
                )
            text = file.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError):
            raise InputError(
                f"cannot read {file} as text; give a text or CSV file with one link on each line"
            ) from None
        lines = enumerate(text.splitlines(), 1)
        found.update({f"{file}:{k}": line for k, line in lines if line.strip(AROUND)})
    if not found:
        raise InputError(f"{files[0]} has no links; give a list with a link on each line")
    return found


class Lessons:
    """Grades answers to one lesson; its workbook is built once."""

    def __init__(self, answers: Mapping[str, str], asked: str):
        """Raises InputError if `asked` is no link of a lesson of a workbook in the gallery."""
        self.answers, self.asked = answers, asked.strip()
        if not link.is_link(self.asked):
            raise InputError(
                "--lesson is not the link of a page; copy the link again from ‘Make a lesson’"
            )
        lesson.of_link(self.asked)
        self._build = cache(_book)
        link.read(self.asked, self._build)

    def grade(self, file: str | Path) -> Grade:
        """The mark of a line. Raises InputError for one that is no answer to the lesson."""
        reader, answer = _parts(self.answers[str(file)])
        return Grade(str(file), reader, 1, [[lesson.marked(answer, self.asked, self._build)]])


def _parts(line: str) -> tuple[str, str]:
    """The name before a link, and the link."""
    before, _, _ = line.partition("#v")
    starts = max(before.rfind(sign) for sign in ',;\t"') + 1
    if not starts and "://" in before:
        starts = before.rfind(" ", 0, before.index("://")) + 1
    return line[:starts].strip(AROUND), line[starts:].strip(AROUND)


def _book(name: str) -> Book:
    if name not in workbooks.names():
        raise InputError("the lesson's model is not in the gallery; use a page of the gallery")
    return names.book(name)
