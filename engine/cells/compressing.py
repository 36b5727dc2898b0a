"""Compression by zlib or, for files of millions of cells, by Intel's ISA-L (package isal, extra
`fast`). ISA-L is nine times as fast, and its files are a tenth larger.

ISA-L takes any few digits that it has seen before for a match, which costs more than the digits: so
among numbers it looks back over a dozen cells at most.
"""

import zlib
from importlib import import_module
from importlib.util import find_spec
from typing import Any

ISAL: Any = import_module("isal.isal_zlib") if find_spec("isal") else None
LEVEL, ISAL_LEVEL = 5, 1
RAW, MOST_MEMORY = -15, 9  # no header; the 15th power of two is how far back it looks
ISAL_NUMBERS, ISAL_FORMULAS = -9, -12  # the same, for ISA-L


def compressor(many: bool, before: bytes = b"", formulas: bool = False) -> Any:
    """A `zlib.compressobj`, or the like, primed with the end of what comes before; `many`: there
    are millions of cells to compress, here with formulas or only numbers."""
    dictionary = (before,) if before else ()
    if many and ISAL is not None:
        back = ISAL_FORMULAS if formulas else ISAL_NUMBERS
        options = (ISAL_LEVEL, zlib.DEFLATED, back, MOST_MEMORY, zlib.Z_DEFAULT_STRATEGY)
        return ISAL.compressobj(*options, *dictionary)
    return zlib.compressobj(LEVEL, zlib.DEFLATED, RAW, MOST_MEMORY, zlib.Z_FILTERED, *dictionary)
