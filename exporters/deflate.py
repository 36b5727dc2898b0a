"""Deflate: one stream of compressed data with its length and check sum, part of it in threads.

Data is compressed in pieces, each of which knows the end of the one before, so that together they
are the single stream that a zip file holds. Where a piece ends does not depend on how many threads
there are; what bytes it has depends on the compressor.
"""

import os
import zlib
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import BinaryIO

from engine.cells.compressing import ISAL, compressor

PIECE = 1 << 18  # bytes, at least
WINDOW = 1 << 15  # how far back deflate looks
THREADS = os.cpu_count() or 1
check_sum: Callable[[bytes, int], int] = ISAL.crc32 if ISAL else zlib.crc32


class Deflate:
    """A stream that is written to a file. Without a pool of threads, pieces are compressed here.

    `formulas`: a block of it is computed, and it does not hold numbers alone.
    """

    def __init__(self, file: BinaryIO, many: bool, pool: ThreadPoolExecutor | None = None):
        self._file, self._many, self._pool = file, many, pool
        self.formulas = False
        self.size = self.crc = self.n_packed = 0  # n_packed: bytes when compressed
        self._held: list[bytes] = []
        self._n_held = 0
        self._before = b""
        self._pending: deque[Future[bytes]] = deque()

    def write(self, data: bytes) -> None:
        """Take data."""
        self._held.append(data)
        self._n_held += len(data)
        if self._n_held < PIECE:
            return
        self._send(False)
        while len(self._pending) > THREADS + 2:
            self._put(self._pending.popleft().result())

    def close(self) -> None:
        """Write the rest, and the end."""
        self._send(True)
        for future in self._pending:
            self._put(future.result())

    def _send(self, last: bool) -> None:
        """Have what is held compressed as a piece."""
        data = b"".join(self._held)
        self._held, self._n_held = [], 0
        self.size += len(data)
        self.crc = check_sum(data, self.crc)
        work = partial(_deflated, data, self._before, last, self._many, self.formulas)
        self._before = data[-WINDOW:]
        if self._pool:
            self._pending.append(self._pool.submit(work))
        else:
            self._put(work())

    def _put(self, packed: bytes) -> None:
        self.n_packed += self._file.write(packed)


def _deflated(data: bytes, before: bytes, last: bool, many: bool, formulas: bool) -> bytes:
    """One piece, without a header."""
    packer = compressor(many, before, formulas)
    compressed: bytes = packer.compress(data)
    rest: bytes = packer.flush(zlib.Z_FINISH if last else zlib.Z_SYNC_FLUSH)
    return compressed + rest
