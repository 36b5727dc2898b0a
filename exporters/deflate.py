"""Deflate in several threads: what takes the place of a zip part's compressor.

A part is cut into pieces that are compressed side by side, each with the end of the one before it
as its dictionary, and joined at byte borders (Z_SYNC_FLUSH), as pigz does. The bytes do not depend
on how many threads there are; they depend on the compressor.
"""

import os
import zlib
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor

from engine.cells.compressing import compressor

PIECE = 1 << 20  # bytes, at least
WINDOW = 1 << 15  # how far back deflate looks
THREADS = os.cpu_count() or 1


class Deflate:
    """Has `compress` and `flush`, as a `zlib.compressobj` has."""

    def __init__(self, pool: ThreadPoolExecutor, many: bool):
        self._pool, self._many = pool, many
        self._held: list[bytes] = []
        self._size = 0  # of what is held
        self._before = b""
        self._pending: deque[Future[bytes]] = deque()

    def compress(self, data: bytes) -> bytes:
        """Take data; give what is ready."""
        self._held.append(data)
        self._size += len(data)
        if self._size >= PIECE:
            self._send(False)
        ready = []
        while len(self._pending) > THREADS + 2:
            ready.append(self._pending.popleft().result())
        return b"".join(ready)

    def flush(self) -> bytes:
        """The rest, and the end."""
        self._send(True)
        return b"".join(future.result() for future in self._pending)

    def _send(self, last: bool) -> None:
        """Have what is held compressed as a piece."""
        data = b"".join(self._held)
        self._held, self._size = [], 0
        self._pending.append(self._pool.submit(_deflated, data, self._before, last, self._many))
        self._before = data[-WINDOW:]


def _deflated(data: bytes, before: bytes, last: bool, many: bool) -> bytes:
    """One piece, without a header."""
    packer = compressor(many, before)
    compressed: bytes = packer.compress(data)
    rest: bytes = packer.flush(zlib.Z_FINISH if last else zlib.Z_SYNC_FLUSH)
    return compressed + rest
