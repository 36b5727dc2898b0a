"""The parts of a workbook that hold its sheets' cells; all cores write a large workbook's at once.

Python runs one thread at a time. So, if the system can fork (on Linux), one child process for each
core takes sheet after sheet of a large workbook and writes it as a deflate stream to a file; this
process puts the streams into the workbook in order. Otherwise, and if there is little to write,
sheets are written one after another, compressed in threads, and in memory if the workbook is small.
A sheet's stream is the same either way, so the workbook's bytes do not depend on the number of
cores.
"""

import os
import signal
import sys
import warnings
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from io import BytesIO
from multiprocessing import active_children, current_process, get_context
from pathlib import Path
from threading import Thread
from time import sleep
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from cellformer.engine.cells.errors import InputError
from cellformer.engine.cells.files import temporary_folder
from cellformer.exporters.file.deflate import THREADS, Deflate, Packed
from cellformer.exporters.file.writing import USUAL, Writing

Write = Callable[[int, Deflate], None]  # writes the sheet of a number to a stream
Work = Callable[[int], Packed]
EPOCH = (1980, 1, 1, 0, 0, 0)


def packed(
    write: Write,
    order: Sequence[int],
    beside: Path | None,
    here: Sequence[int] = (),
    writing: Writing = USUAL,
) -> Generator[Packed, None, None]:
    """The sheets of these numbers, written in memory or, for millions of cells, to files in a
    folder `beside` the workbook. Sheets in `here` are written by this process: their rows are
    compressed already."""
    if beside is None:
        with ThreadPoolExecutor(THREADS) as pool:
            for k in order:
                file = BytesIO()
                told = _pack(write, k, Deflate(file, False, pool))
                yield Packed(file.getvalue(), *told)
        return
    with temporary_folder(beside) as folder:
        pack = partial(_in_file, write, folder, writing.with_isal)
        if len(order) > 1 and can_copy(writing):
            with copies(writing.n_processes, pack, [k for k in order if k not in here]) as found:
                yield from (found[k].result() if k in found else pack(k) for k in order)
            return
        with ThreadPoolExecutor(THREADS) as pool:
            yield from (pack(k, pool) for k in order)


def _in_file(
    write: Write, folder: Path, isal: bool, k: int, pool: ThreadPoolExecutor | None = None
) -> Packed:
    """A sheet of a large workbook, written to a file in the folder."""
    path = folder / str(k)
    with open(path, "wb") as file:
        return Packed(path, *_pack(write, k, Deflate(file, isal, pool)))


def _pack(write: Write, k: int, stream: Deflate) -> tuple[int, int, int]:
    """Write a sheet to a stream; returns its compressed size, its size and its checksum."""
    write(k, stream)
    stream.close()
    return stream.n_packed, stream.size, stream.crc


def can_copy(writing: Writing) -> bool:
    """Whether the system can fork, this process may, and there is a core for the child."""
    may = not current_process().daemon  # as dask's workers are
    return may and writing.n_processes > 1 and sys.platform == "linux"


@contextmanager
def copies(
    n_copies: int, work: Work, numbers: Sequence[int]
) -> Iterator[Mapping[int, Future[Packed]]]:
    """Child processes, forks of this one, that do the work of each number. They write sheets and
    nothing else, and need none of this process's threads. Raises InputError."""
    pool = ProcessPoolExecutor(n_copies, get_context("fork"), _begin, (work,))
    others = set(active_children())
    try:
        yield _submitted(pool, numbers)
    except BrokenProcessPool:
        raise InputError(
            "the system ended a process that wrote a sheet, probably because memory ran out; "
            "close other programs, or use a smaller model"
        ) from None
    except BaseException:
        for copy in set(active_children()) - others:
            copy.kill()  # a large sheet takes minutes
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _submitted(pool: ProcessPoolExecutor, numbers: Sequence[int]) -> Mapping[int, Future[Packed]]:
    """The submitted work of each number; the first submission starts all children. Raises
    InputError."""
    others = set(active_children())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads
        try:
            return {k: pool.submit(_one, k) for k in numbers}
        except OSError as error:
            for copy in set(active_children()) - others:
                copy.kill()  # it would wait for work for ever
                copy.join()
            fault = f"the system cannot start more processes ({error.strerror})"
            raise InputError(f"{fault}; close other programs") from None


_work: Work  # what a copy of this program does


def _begin(work: Work) -> None:
    """Initialize a child."""
    global _work
    _work = work
    as_child()


def as_child() -> None:
    """Start as a child of this program: ignore interrupts, which the parent handles, end at once
    if terminated, and end with the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for told_to_end in filter(None, (signal.SIGTERM, getattr(signal, "SIGHUP", None))):
        if signal.getsignal(told_to_end) != signal.SIG_IGN:  # as under nohup
            signal.signal(told_to_end, signal.SIG_DFL)
    Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()


def _end_with(program: int) -> None:
    """End this child when the system has ended its parent."""
    while os.getppid() == program:
        sleep(1)
    os._exit(1)


def _one(k: int) -> Packed:
    return _work(k)


def part(name: str) -> ZipInfo:
    """A zip entry with a fixed date."""
    found = ZipInfo(name, EPOCH)
    found.compress_type = ZIP_DEFLATED
    return found


def put(archive: ZipFile, name: str, sheet: Packed) -> None:
    """Copy a sheet's stream into the zip file. Its sizes are known, so they take 64 bits only if
    they must, since not every reader supports those."""
    found, whole = part(name), archive.fp
    assert whole is not None
    found.header_offset = whole.tell()
    found.CRC, found.compress_size, found.file_size = sheet.crc, sheet.n_packed, sheet.size
    whole.write(found.FileHeader())
    sheet.move(whole)
    archive.start_dir = whole.tell()
    archive.filelist.append(found)
    archive.NameToInfo[name] = found
