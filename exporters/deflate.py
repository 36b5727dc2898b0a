"""Deflate in several threads: what takes the place of a zip part's compressor.

A part is cut into pieces that are compressed side by side, each with the end of the one before it
as its dictionary, and joined at byte borders (Z_SYNC_FLUSH), as pigz does. The bytes do not depend
on how many threads there are.
"""

import os
import zlib
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor

PIECE = 1 << 20  # bytes
WINDOW = 1 << 15  # how far back deflate looks
LEVEL = 5
THREADS = os.cpu_count() or 1


class Deflate:
    """Has `compress` and `flush`, as a `zlib.compressobj` has."""

    def __init__(self, pool: ThreadPoolExecutor):
        self._pool = pool
        self._held = bytearray()
        self._before = b""
        self._pending: deque[Future[bytes]] = deque()

    def compress(self, data: bytes) -> bytes:
        """Take data; give what is ready."""
        self._held += data
        while len(self._held) >= PIECE:
            self._send(bytes(self._held[:PIECE]), False)
            del self._held[:PIECE]
        ready = b""
        while len(self._pending) > THREADS + 2:
            ready += self._pending.popleft().result()
        return ready

    def flush(self) -> bytes:
        """The rest, and the end."""
        self._send(bytes(self._held), True)
        return b"".join(future.result() for future in self._pending)

    def _send(self, data: bytes, last: bool) -> None:
        self._pending.append(self._pool.submit(_deflated, data, self._before, last))
        self._before = data[-WINDOW:]


def _deflated(data: bytes, before: bytes, last: bool) -> bytes:
    """One piece, without a header."""
    options = (LEVEL, zlib.DEFLATED, -15, 9, zlib.Z_FILTERED)
    packer = zlib.compressobj(*options, before) if before else zlib.compressobj(*options)
    return packer.compress(data) + packer.flush(zlib.Z_FINISH if last else zlib.Z_SYNC_FLUSH)
