"""Sheets: the parts of a large workbook that hold its cells, written by all cores at once.

Python lets one thread at a time spell cells. So where the system can copy a running program (on
Linux), one copy for each core takes sheet after sheet of a large workbook, each copy knowing all of
the book, and writes the sheet as a stream of deflate to a file of its own; here the streams are put
into the workbook in their order. Elsewhere, with one core, and where there is little to write,
sheets are written one after another, compressed in threads. A sheet's stream is the same in either
way, so the workbook has the same bytes however many cores there are.
"""

import shutil
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from engine.cells.errors import InputError
from exporters.deflate import THREADS, Deflate

Write = Callable[[int, Deflate], None]  # writes the sheet of a number to a stream
EPOCH = (1980, 1, 1, 0, 0, 0)
COPIED = 1 << 20  # bytes at once


class Packed(NamedTuple):
    """A sheet as it goes into the workbook: a file that holds its stream."""

    path: Path
    n_packed: int
    size: int
    crc: int


def packed(write: Write, order: Sequence[int], many: bool, folder: Path) -> Iterator[Packed]:
    """The sheets of these numbers, written to files in a folder; `many`: of millions of cells."""
    if many and len(order) > 1 and THREADS > 1 and sys.platform == "linux":
        yield from _by_copies(write, order, many, folder)
        return
    with ThreadPoolExecutor(THREADS) as pool:
        for k in order:
            yield _pack(write, many, folder, k, pool)


def _pack(
    write: Write, many: bool, folder: Path, k: int, pool: ThreadPoolExecutor | None = None
) -> Packed:
    """Write a sheet to a file in the folder."""
    path = folder / str(k)
    with open(path, "wb") as file:
        stream = Deflate(file, many, pool)
        write(k, stream)
        stream.close()
    return Packed(path, stream.n_packed, stream.size, stream.crc)


_work: Callable[[int], Packed]  # what a copy of this program does: it is copied with it


def _one(k: int) -> Packed:
    return _work(k)


def _by_copies(write: Write, order: Sequence[int], many: bool, folder: Path) -> Iterator[Packed]:
    """The same by a copy of this program for each core. A copy writes sheets and nothing else: it
    needs none of the threads that there may be here."""
    global _work
    _work = partial(_pack, write, many, folder)
    try:
        with ProcessPoolExecutor(THREADS, get_context("fork"), _undisturbed) as pool:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # of threads
                found = pool.map(_one, order)
            yield from found
    except BrokenProcessPool:
        raise InputError(
            "the system ended a process that wrote a sheet, most likely for want of memory; "
            "end other programs, or take a smaller model"
        ) from None
    finally:
        del _work


def _undisturbed() -> None:
    """An interruption is for the program that waits for the copies."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def part(name: str) -> ZipInfo:
    """A part of the zip file, of a fixed date."""
    found = ZipInfo(name, EPOCH)
    found.compress_type = ZIP_DEFLATED
    return found


def put(archive: ZipFile, name: str, sheet: Packed) -> None:
    """Put a sheet's stream into the zip file as it is. Its sizes are known: they take 64 bits only
    where they must, which not every reader reads."""
    found, whole = part(name), archive.fp
    assert whole is not None
    found.header_offset = whole.tell()
    found.CRC, found.compress_size, found.file_size = sheet.crc, sheet.n_packed, sheet.size
    whole.write(found.FileHeader())
    with open(sheet.path, "rb") as file:
        shutil.copyfileobj(file, whole, COPIED)
    sheet.path.unlink()
    archive.start_dir = whole.tell()
    archive.filelist.append(found)
    archive.NameToInfo[name] = found
