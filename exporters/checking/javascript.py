"""Node.js as an engine of `verify`: a page of cellformer recomputes all of its cells, and the sums
of each block are compared with those that the engine computed when the page was written.

Nothing is run that came with the file but the kernels of its formulas, and these only if they are
made of nothing but the words that kernels are made of: the rest of the script must be this
version's own.
"""

import binascii
import json
import re
import subprocess
import zlib
from base64 import b64decode, b64encode
from functools import partial
from itertools import product
from pathlib import Path
from typing import NamedTuple

from cellformer.engine.cells.errors import InputError
from cellformer.exporters.checking.programs import program
from cellformer.exporters.web import page

SCRIPT = Path(__file__).with_suffix(".cjs")
REMEDY = "install Node.js 20 or later"
MOST = 1 << 30  # bytes of a page, and of each part of it unpacked
HEAP = 4096  # megabytes
PART = r'<script type="text/plain" id="{}">([A-Za-z0-9+/=\s]*)</script>'
ANEW = "build the page again with this version"
KERNELS = "const KERNELS = ["
# what a kernel is made of: no other name, no text but a function's name, no escapes
WORDS = (
    "at bottom cols const fill for i j keys left let lineOf mask new numberOf o out partner "
    "queries right rows s so top v x seen a p r times Math abs atan atan2 ceil cos exp expm1 "
    "fround floor log log10 log1p log2 max min pow round sign sin sqrt tan tanh trunc "
    "Float64Array Infinity NaN erf"
)
TOKEN = re.compile(
    r"(?P<name>[A-Za-z_$][\w$]*)|(?P<text>'[A-Z0-9. ]*')|\d[\d.]*(?:e[+-]?\d+)?|\.\d+"
    r"|[-+*/%<>=!&|?:;,.(){}\[\]\s]"
)
NUMBERED = re.compile(r"[vsxptr]\d+p?")


class Verdict(NamedTuple):
    """The verdict of Node.js on a page."""

    blocks: int
    cells: int
    differ: int  # blocks whose sums are not the engine's
    first: str  # of them


class Held(NamedTuple):
    """The contents of a page, each part as base64 of deflated bytes except the script."""

    script: str
    data: str
    weights: str


def installed() -> bool:
    """Whether there is Node.js."""
    return bool(program("node"))


def read(path: Path) -> Held:
    """The contents of a page. Raises InputError for a file that is no page of this version, or
    is damaged."""
    if path.is_file() and path.stat().st_size > MOST:
        raise InputError(
            f"{path} has more than {MOST >> 20:,} MB, too large for a page of cellformer"
        )
    try:
        html = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise InputError(
            f"{path} is not a page of cellformer; build a page with: NAME -o x.html"
        ) from None
    parts = {name: re.search(PART.format(name), html) for name in Held._fields}
    if None in parts.values():
        raise InputError(f"{path} is not a page of cellformer; build a page with: NAME -o x.html")
    packed = {name: found[1] for name, found in parts.items() if found}
    raw = {name: _unpacked(path, name, text) for name, text in packed.items()}
    script = raw["script"].decode(errors="replace")
    _check(path, script)
    beside = _found(path, raw["data"])
    return Held(script, packed["data"], packed["weights"] if beside is None else beside)


def _unpacked(path: Path, name: str, text: str) -> bytes:
    """A part's bytes. Raises InputError."""
    try:
        unpacking = zlib.decompressobj()
        raw = unpacking.decompress(b64decode(text, validate=False), MOST)
        if unpacking.eof:
            return raw
    except (binascii.Error, zlib.error):
        pass
    raise InputError(f"{path} is damaged: its {name} cannot be unpacked; {ANEW}")


def _found(path: Path, raw: bytes) -> str | None:
    """The weights of a page that stand in a file beside it, as a page holds others; None: they are
    inside it. Raises InputError."""
    try:
        beside = json.loads(raw).get("beside")
        if beside is None:
            return None
        name, head = Path(beside["name"]).name, beside["head"].encode()
        size, crc = beside["size"], beside["crc"]
    except (ValueError, AttributeError, KeyError, TypeError):
        raise InputError(f"{path} is damaged: its data cannot be read; {ANEW}") from None
    try:
        found = (path.parent / name).read_bytes()
    except OSError as error:
        raise InputError(
            f"{path} needs the file {name} in the same folder ({error.strerror})"
        ) from None
    if not found.startswith(head) or len(found) != len(head) + size:
        raise InputError(f"{name} does not have the weights of {path}; {ANEW}")
    weights = found[len(head) :]
    if zlib.crc32(weights) != crc:
        raise InputError(f"{name} is damaged, because its checksum is wrong; copy the file again")
    return b64encode(zlib.compress(weights, 1)).decode()


def _check(path: Path, script: str) -> None:
    """Raise InputError unless a script is this version's own, with kernels."""
    for is_model, is_large in product((True, False), repeat=2):
        begin, end = page.joined((), is_model, is_large).split(KERNELS)
        start, stop = len(begin) + len(KERNELS), len(script) - len(end)
        if script.startswith(begin + KERNELS) and script.endswith(end) and start <= stop:
            break
    else:
        raise InputError(f"{path} was changed, or written by another version of cellformer; {ANEW}")
    if odd := unexpected(script[start:stop]):
        raise InputError(
            f"{path} contains {odd!r} where only formulas may stand, so cellformer does not run "
            f"this page; {ANEW}"
        )


def unexpected(kernels: str) -> str:
    """The first thing that is no part of a kernel; "" if all is."""
    known, at = {*WORDS.split()}, 0
    while at < len(kernels):
        found = TOKEN.match(kernels, at)
        if found is None:
            return kernels[at]
        name = found["name"]
        if name and name not in known and not NUMBERED.fullmatch(name):
            return name
        at = found.end()
    return ""


def recompute(held: Held) -> Verdict:
    """The verdict of Node.js on a page after it computes all of it from wrong values. Raises
    InputError if it fails."""
    command = [program("node"), f"--max-old-space-size={HEAP}", str(SCRIPT)]
    done = subprocess.run(command, input=json.dumps(held._asdict()).encode(), capture_output=True)
    if done.returncode:
        lines = done.stderr.decode(errors="replace").splitlines()
        said = next((line for line in lines if "Error" in line), f"exit code {done.returncode}")
        raise InputError(f"Node.js could not compute the page: {said[:200]}")
    return Verdict(**json.loads(done.stdout))


def job(path: Path) -> partial[Verdict]:
    """The program and input that compute a page. Raises InputError for a file that cannot be
    computed."""
    return partial(recompute, read(path.resolve()))
