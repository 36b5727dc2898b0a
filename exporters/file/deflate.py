"""Deflate: one compressed stream with its length and checksum, partly compressed in threads.

Data is compressed in pieces, each with the end of the previous one as dictionary, so that together
they are the single stream that a zip file needs. The boundaries of pieces do not depend on the
number of threads; the bytes depend on the compressor. A part of a stream that refers to nothing
before it may be compressed elsewhere and appended.
"""

import os
import shutil
import zlib
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import IO, BinaryIO, NamedTuple

from cellformer.engine.cells.compressing import ISAL, compressor

PIECE = 1 << 18  # bytes, at least
WINDOW = 1 << 15  # how far back deflate looks
THREADS = os.cpu_count() or 1
COPIED = 1 << 18  # bytes at once
check_sum: Callable[[bytes, int], int] = ISAL.crc32 if ISAL else zlib.crc32


class Packed(NamedTuple):
    """A compressed stream, or a part of one, in a file of its own or in memory."""

    held: Path | bytes
    n_packed: int  # bytes when compressed
    size: int
    crc: int

    def move(self, file: IO[bytes]) -> None:
        """Move it to the end of another file."""
        if isinstance(self.held, bytes):
            file.write(self.held)
            return
        with open(self.held, "rb") as held:
            shutil.copyfileobj(held, file, COPIED)
        self.held.unlink()


class Deflate:
    """A stream that is written to a file. Without a pool of threads, pieces are compressed here; so
    is the last one in any case. `isal`: by ISA-L, where that is installed.

    `formulas`: a block of it is computed, and it does not hold numbers alone.
    """

    def __init__(self, file: BinaryIO, isal: bool, pool: ThreadPoolExecutor | None = None):
        self._file, self._isal, self._pool = file, isal, pool
        self.formulas = False
        self.size = self.crc = self.n_packed = 0  # n_packed: bytes when compressed
        self._held: list[bytes] = []
        self._n_held = 0
        self._before = b""
        self._pending: deque[Future[bytes]] = deque()

    def write(self, data: Sequence[bytes]) -> None:
        """Add data."""
        self._held += data
        self._n_held += sum(map(len, data))
        if self._n_held < PIECE:
            return
        self._send(False)
        while len(self._pending) > THREADS + 2:
            self._put(self._pending.popleft().result())

    def begin_part(self) -> None:
        """Compress what follows without reference to what came before."""
        if self._held:
            self._send(False)
        self._before = b""

    def append(self, part: Packed) -> None:
        """Append a part that is compressed already. Only ISA-L can join checksums."""
        self.begin_part()
        self._wait()
        part.move(self._file)
        self.n_packed += part.n_packed
        self.size += part.size
        self.crc = ISAL.crc32_combine(self.crc, part.crc, part.size)

    def close(self, last: bool = True) -> None:
        """Write the remaining data, and the end marker if it is the `last` part of a stream."""
        if last or self._held:
            self._send(last)
        self._wait()

    def _wait(self) -> None:
        while self._pending:
            self._put(self._pending.popleft().result())

    def _send(self, last: bool) -> None:
        """Compress the collected data as a piece."""
        data = b"".join(self._held)
        self._held, self._n_held = [], 0
        self.size += len(data)
        self.crc = check_sum(data, self.crc)
        work = partial(_deflated, data, self._before, last, self._isal, self.formulas)
        self._before = data[-WINDOW:]
        if self._pool and not last:
            self._pending.append(self._pool.submit(work))
            return
        packed = work()  # the last: nothing is left to do meanwhile
        self._wait()
        self._put(packed)

    def _put(self, packed: bytes) -> None:
        self.n_packed += self._file.write(packed)


def _deflated(data: bytes, before: bytes, last: bool, isal: bool, formulas: bool) -> bytes:
    """One compressed piece, without a header."""
    packer = compressor(isal, before, formulas)
    compressed: bytes = packer.compress(data)
    rest: bytes = packer.flush(zlib.Z_FINISH if last else zlib.Z_SYNC_FLUSH)
    return compressed + rest
