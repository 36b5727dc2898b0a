"""Rules for the zip file: both headers of every part agree, and sizes have 64 bits only if they
must.

Streaming readers use the local header. SheetJS refuses 64-bit sizes where 32 bits are enough, and
Excel for the web may.
"""

import struct
from collections.abc import Iterator
from zipfile import ZipFile, ZipInfo

from cellformer.exporters.checking.rules import Fault

LOCAL = struct.Struct("<4sHHHHHIIIHH")
LATER = 0x08  # a flag: sizes and checksum follow the data
ZIP64, MOST_PLAIN = 1, (1 << 32) - 1  # the extra field's number; what 32 bits hold


def faults(archive: ZipFile) -> Iterator[Fault]:
    """The rules that the package breaks."""
    names = archive.namelist()
    if len({name.casefold() for name in names}) < len(names):
        yield "the zip file contains a part twice", "the zip file"
    for part in archive.infolist():
        yield from ((rule, part.filename) for rule in _of_part(archive, part))


def _of_part(archive: ZipFile, part: ZipInfo) -> Iterator[str]:
    stream = archive.fp
    assert stream is not None
    stream.seek(part.header_offset)
    header = LOCAL.unpack(stream.read(LOCAL.size))
    _magic, _version, flags, method, _time, _date, checksum, packed, size, n_name, n_extra = header
    extra = stream.read(n_name + n_extra)[n_name:]
    wide = max(part.file_size, part.compress_size) > MOST_PLAIN
    if not wide and (MOST_PLAIN in (size, packed) or _has(extra) or _has(part.extra)):
        yield "sizes in the zip file use 64 bits (ZIP64), but 32 are enough"
        return
    if (method, flags & ~LATER) != (part.compress_type, part.flag_bits & ~LATER):
        yield "its local header and its central header disagree"
    sizes = part.CRC, part.compress_size, part.file_size
    if not (flags & LATER or wide) and (checksum, packed, size) != sizes:
        yield "its local header and its central header disagree"


def _has(extra: bytes) -> bool:
    """Whether extra fields include one for 64-bit sizes."""
    while len(extra) >= 4:
        kind, size = struct.unpack("<HH", extra[:4])
        if kind == ZIP64:
            return True
        extra = extra[4 + size :]
    return False
