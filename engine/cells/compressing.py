"""What bytes are compressed with: zlib or, for files of millions of cells, Intel's ISA-L where the
package isal is installed (the extra `fast`), eight times as fast and a sixth larger."""

import zlib
from importlib import import_module
from importlib.util import find_spec
from typing import Any

ISAL: Any = import_module("isal.isal_zlib") if find_spec("isal") else None
LEVEL, ISAL_LEVEL = 5, 1
RAW, MOST_MEMORY = -15, 9  # no header


def compressor(many: bool, before: bytes = b"") -> Any:
    """A `zlib.compressobj`, or its like, that has seen the end of what comes before; `many`: there
    are millions of cells to compress."""
    dictionary = (before,) if before else ()
    if many and ISAL is not None:
        options = (ISAL_LEVEL, zlib.DEFLATED, RAW, MOST_MEMORY, zlib.Z_DEFAULT_STRATEGY)
        return ISAL.compressobj(*options, *dictionary)
    return zlib.compressobj(LEVEL, zlib.DEFLATED, RAW, MOST_MEMORY, zlib.Z_FILTERED, *dictionary)
