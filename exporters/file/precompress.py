"""Compressing the rows of the largest tables while the rest of a workbook is computed.

The vocabulary is a third of a large file, and its numbers do not depend on the forward pass. So, if
the system can fork, child processes on idle cores compress these rows as soon as they have their
place, each sheet's as a part of its stream; `xlsx` adds the rest around them. Otherwise `xlsx`
writes the same bytes itself, later.
"""

from concurrent.futures import Future
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from cellformer.engine.cells.errors import InputError
from cellformer.engine.cells.files import temporary_folder
from cellformer.exporters.compose import theme
from cellformer.exporters.compose.book import Book
from cellformer.exporters.file.deflate import Deflate, Packed
from cellformer.exporters.file.row_xml import labels, numbers, whole_row
from cellformer.exporters.file.sheet_parts import can_copy, copies
from cellformer.exporters.file.writing import USUAL, Writing


class Ahead(ExitStack):
    """The rows being compressed for the workbook at a path; on exit, processes and files are
    removed."""

    def __init__(self, path: Path, writing: Writing = USUAL):
        super().__init__()
        self._beside, self._writing = path.parent, writing
        self.parts: dict[str, Future[Packed]] = {}  # by the name of the sheet

    def begin(self, book: Book) -> None:
        """Start on the tables of a book that have rows to themselves."""
        tables = book.alone
        many = sum(place.block.n_cells for place in tables) > self._writing.most_addressed
        able = self._writing.with_isal and can_copy(self._writing)
        if not (many and able and self._beside.is_dir()):
            return
        try:
            folder = self.enter_context(temporary_folder(self._beside))
            work = partial(_pack, book, folder)
            found = self.enter_context(
                copies(self._writing.n_processes - 1, work, range(len(tables)))
            )
        except (OSError, InputError):
            return  # `write` does it, or says why not
        self.parts = {place.sheet: found[k] for k, place in enumerate(tables)}


def _pack(book: Book, folder: Path, k: int) -> Packed:
    """Compress the rows of a table into a file in the folder."""
    place, path = book.alone[k], folder / str(k)
    area = place.rect(place.block.whole)
    beside = [run for run in book.sheets[place.sheet].runs if run.area.top == area.top]
    # words as shown; none of them needs escapes in XML
    across = [labels(run, theme.number(run.style), {}) for run in beside]
    across.append(numbers(place, book.others[place.block.name], theme.number("weight blue"), True))
    with open(path, "wb") as file:
        stream = Deflate(file, True)
        for row in range(area.top, area.bottom):
            stream.write(whole_row(row, across))
        stream.close(last=False)
    return Packed(path, stream.n_packed, stream.size, stream.crc)
