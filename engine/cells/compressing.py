"""What bytes are compressed with: zlib or, for files of millions of cells, Intel's ISA-L where the
package isal is installed (the extra `fast`), nine times as fast and a tenth larger.

ISA-L takes any three digits that it has seen before for a match, which costs more than the digits:
so it looks back over a few dozen cells, and no further.
"""

import zlib
from importlib import import_module
from importlib.util import find_spec
from typing import Any

ISAL: Any = import_module("isal.isal_zlib") if find_spec("isal") else None
LEVEL, ISAL_LEVEL = 5, 1
RAW, ISAL_RAW, MOST_MEMORY = -15, -11, 9  # no header; how far back: 2 to the 15th, to the 11th


def compressor(many: bool, before: bytes = b"") -> Any:
    """A `zlib.compressobj`, or its like, that has seen the end of what comes before; `many`: there
    are millions of cells to compress."""
    dictionary = (before,) if before else ()
    if many and ISAL is not None:
        options = (ISAL_LEVEL, zlib.DEFLATED, ISAL_RAW, MOST_MEMORY, zlib.Z_DEFAULT_STRATEGY)
        return ISAL.compressobj(*options, *dictionary)
    return zlib.compressobj(LEVEL, zlib.DEFLATED, RAW, MOST_MEMORY, zlib.Z_FILTERED, *dictionary)
