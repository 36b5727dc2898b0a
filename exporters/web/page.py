"""The page of a book: one HTML file that opens from disk, requests nothing, and runs only its own
script.

The scripts beside this are modules. The page has those that it needs in one script, minified and
deflated. The content policy names the script, and the style, by their sha256. What is filled into
the template is filled in one pass, so that a word of a vocabulary that looks like a mark of the
template stays a word.
"""

import base64
import hashlib
import html
import json
import re
import zlib
from collections.abc import Sequence
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson
import rcssmin
import rjsmin

from cellformer.engine.cells.files import replacing
from cellformer.exporters.compose.book import Book
from cellformer.exporters.file import xlsx
from cellformer.exporters.web import data, packing

HERE = Path(__file__).parent
MAIN = "main"  # the module whose `start` begins
MODEL = "model"  # the module of what only a model's page shows, by `showModel`
LARGE = ("large", "nearby", "lens")  # what only a page with a file of weights needs
CALLED = "kernels"  # the module that kernels call
BEGIN = 'if (typeof document !== "undefined") start(KERNELS{});'  # in Node.js nothing is shown
COMPILES = "'wasm-unsafe-eval'"  # what a policy allows for WebAssembly
IMPORT = re.compile(r'^import \{([^}]*)\} from "\./(\w+)\.js";$', re.MULTILINE)
EXPORT = re.compile(r"^export ", re.MULTILINE)
MARK = re.compile(r"\{(title|policy|style|data|weights|workbook|script|loader)\}")
MOST_INSIDE = 20 << 20  # bytes of weights: a browser opens a larger page slowly
BYTES = 4  # of a number: most are float32
SMALL, FEW_FORMULAS = 150_000, 3000  # bytes of a page, formulas of a book
HEAD = "cellformer weights {} {:08x}\n"  # how a file of weights begins: the page's sums, its own
DEFLATED = 9  # as small as it gets


def write(
    book: Book, path: Path, with_workbook: bool = False, most_inside: int = MOST_INSIDE
) -> list[Path]:
    """Write the page of a book, completely or not at all, and weights of more than `most_inside`
    bytes to a file beside it, `NAME.weights`, for which the page asks. Returns the files.

    `with_workbook`: the page holds its workbook, too, into which it saves edits. A small one, with
    which the page stays within `SMALL`, it always holds. Raises InputError if nothing can be
    written.
    """
    packs = BYTES * packing.n_numbers(book.graph) > most_inside
    found = data.of_book(book, packs)
    if not packs and len(found.weights) > most_inside:
        packs, found = True, data.of_book(book, packs=True)
    if not packs:
        with replacing(path) as temporary:
            page = _filled(book.title, found, _workbook(book) if with_workbook else "")
            if not with_workbook and book.n_formulas < FEW_FORMULAS:
                larger = _filled(book.title, found, _workbook(book))
                page = larger if len(larger) <= SMALL else page
            Path(temporary).write_text(page, encoding="utf-8", newline="\n")
        return [path]
    sums = ".".join(
        found.data["fingerprint"].rsplit(".", 2)[1:]
    )  # in ASCII, as a title need not be
    beside, crc = path.with_suffix(".weights"), zlib.crc32(found.weights)
    head, size = HEAD.format(sums, crc), len(found.weights)
    found.data["beside"] = {"name": beside.name, "head": head, "size": size, "crc": crc}
    with replacing(beside) as temporary, replacing(path) as page:
        with open(temporary, "wb") as file:
            file.write(head.encode())
            file.write(found.weights)
        own = found._replace(weights=b"")
        html = _filled(book.title, own, _workbook(book) if with_workbook else "")
        Path(page).write_text(html, encoding="utf-8", newline="\n")
    return [path, beside]


def _workbook(book: Book) -> str:
    """The workbook itself, for a page that holds it."""
    with TemporaryDirectory() as folder:
        file = xlsx.write(book, Path(folder) / "book.xlsx")
        return base64.b64encode(file.read_bytes()).decode()


def text(book: Book) -> str:
    """The page of a book with its weights inside: its HTML."""
    return _filled(book.title, data.of_book(book))


def _filled(title: str, found: data.Page, workbook: str = "") -> str:
    is_large = "beside" in found.data
    script = joined(found.kernels, found.data["isModel"], is_large)
    loader = _module("loader")
    style = "\n".join(rcssmin.cssmin(path.read_text()) for path in sorted(HERE.glob("*.css")))
    filled = {
        "title": html.escape(title),
        "policy": _policy((loader, script), style, is_large),
        "loader": loader,
        "style": _packed(style.encode()),
        "data": _packed(_json(found.data)),
        "weights": _packed(found.weights),
        "workbook": workbook,
        "script": _packed(script.encode()),
    }
    return MARK.sub(lambda mark: filled[mark[1]], (HERE / "page.html").read_text())


def joined(kernels: Sequence[str], is_model: bool, is_large: bool = False) -> str:
    """The modules of a page with all their imports, and its kernels, as one script."""
    order = TopologicalSorter[str]()
    waiting = [MAIN, CALLED, *([MODEL] if is_model else []), *(LARGE if is_large else ())]
    known = {*waiting}
    while waiting:
        name = waiting.pop()
        needed = sorted({found[2] for found in IMPORT.finditer(_source(name))})
        order.add(name, *needed)  # sorted: a set's order differs from run to run
        waiting += [other for other in needed if other not in known]
        known.update(needed)
    parts = [_module(name) for name in order.static_order()]
    listed = f"const KERNELS = [{','.join(kernels)}];"
    given = (", showModel" if is_model else ", null") + ", openedLarge, nearbyWeights, showLens"
    begin = BEGIN.format(given if is_large else ", showModel" if is_model else "")
    return "\n".join(['"use strict";', *parts, listed, begin])


@cache
def _source(name: str) -> str:
    return (HERE / f"{name}.js").read_text()


@cache
def _module(name: str) -> str:
    """A module's code, minified, without imports and `export`."""
    return str(rjsmin.jsmin(EXPORT.sub("", IMPORT.sub("", _source(name)))))


def _json(found: dict[str, Any]) -> bytes:
    """Data as JSON; half a surrogate pair in a text is escaped, which orjson refuses."""
    try:
        return orjson.dumps(found)
    except orjson.JSONEncodeError:
        return json.dumps(found, separators=(",", ":"), allow_nan=False).encode()


def _packed(raw: bytes) -> str:
    return base64.b64encode(zlib.compress(raw, DEFLATED)).decode()


def _policy(scripts: Sequence[str], style: str, is_large: bool) -> str:
    """The content policy: nothing from anywhere, and of scripts and styles only these. A page with
    weights beside it may fetch them from its own host, and compile WebAssembly."""
    fetched = "connect-src 'self'; " if is_large else ""
    allowed = [*map(_sha256, scripts), *([COMPILES] if is_large else [])]
    return (
        "default-src 'none'; base-uri 'none'; form-action 'none'; img-src data: blob:; "
        f"{fetched}"
        f"script-src {' '.join(allowed)}; style-src {_sha256(style)}"
    )


def _sha256(part: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(part.encode()).digest()).decode()}'"
