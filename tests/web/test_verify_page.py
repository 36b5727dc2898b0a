"""`verify x.html`: Node.js recomputes a page from wrong values; what was changed in it is found."""

import base64
import json
import re
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from conftest import cli, default_book

from cellformer.exporters.checking.javascript import PART, unexpected
from cellformer.exporters.web import page

LIST = b"const KERNELS = ["


@pytest.fixture(scope="module")
def html(tmp_path_factory) -> str:
    return page.text(default_book("cat-sat"))


def with_part(html: str, name: str, change: Callable[[bytes], bytes]) -> str:
    """A page in which one part's bytes are others."""
    found = re.search(PART.format(name), html)
    assert found
    raw = change(zlib.decompress(base64.b64decode(found[1])))
    packed = base64.b64encode(zlib.compress(raw)).decode()
    return html[: found.start(1)] + packed + html[found.end(1) :]


def with_other_weight(html: str) -> str:
    """A page with a weight that is 0.001 larger."""
    packed = re.search(PART.format("data"), html)
    assert packed
    data = json.loads(zlib.decompress(base64.b64decode(packed[1])))
    kind, start = next(block["d"] for block in data["blocks"] if block["n"] == "W_E")

    def change(raw: bytes) -> bytes:
        weight = np.frombuffer(raw, f"<{kind}", 1, start) + 1e-3
        return raw[:start] + weight.astype(f"<{kind}").tobytes() + raw[start + weight.nbytes :]

    return with_part(html, "weights", change)


def verified(html: str, folder: Path, *options: str):
    path = folder / "x.html"
    path.write_text(html, encoding="utf-8")
    return cli("verify", path, *options)


def test_a_page_agrees(html, tmp_path: Path, node) -> None:
    done = verified(html, tmp_path)
    assert done.code == 0 and re.fullmatch(
        r"javascript   agrees    [\d,]+ cells in \d+ blocks\n", done.out
    )


def test_a_changed_weight_is_found(html, tmp_path: Path, node) -> None:
    done = verified(with_other_weight(html), tmp_path)
    assert done.code == 1 and "DISAGREES" in done.out and "blocks differ; the first" in done.out


def test_a_changed_formula_is_found(html, tmp_path: Path, node) -> None:
    def change(raw: bytes) -> bytes:
        head, kernels = raw.split(LIST)
        assert b"Math.exp(" in kernels
        return head + LIST + kernels.replace(b"Math.exp(", b"Math.abs(")

    done = verified(with_part(html, "script", change), tmp_path)
    assert done.code == 1 and "DISAGREES" in done.out


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda html: "<html></html>", "is not a page of cellformer"),
        (lambda html: html[: len(html) // 3], "is not a page of cellformer"),
        (lambda html: html.replace('id="data">', 'id="data">AAAA'), "its data cannot be unpacked"),
        (lambda html: with_part(html, "data", lambda raw: b"[]"), "its data cannot be read"),
        (
            lambda html: with_part(html, "script", lambda raw: raw + b"\nalert(1)"),
            "another version",
        ),
        (
            lambda html: with_part(
                html, "script", lambda raw: raw.replace(b"KERNELS = [", b"KERNELS = [process,")
            ),
            "contains 'process' where only formulas may stand",
        ),
    ],
)
def test_what_is_no_page_is_one_line(html, change, says: str, tmp_path: Path) -> None:
    done = verified(change(html), tmp_path)
    assert done.code == 2 and says in done.err and done.err.count("\n") == 1, done


def test_without_node_a_line_says_so(html, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("PATH", "")
    done = verified(html, tmp_path)
    assert done.code == 3 and "not installed; install Node.js" in done.out


def test_other_programs_are_not_asked(html, tmp_path: Path, built) -> None:
    assert (
        "gnumeric does not recompute pages" in verified(html, tmp_path, "--engine", "gnumeric").err
    )
    done = cli("verify", built["cat-sat"], "--engine", "javascript")
    assert done.code == 2 and "javascript recomputes pages" in done.err


@pytest.mark.parametrize(
    "kernel",
    ["(()=>{}).constructor", "x['constructor']", "`a`", "\\u0061", "globalThis", "import('A')"],
)
def test_what_is_no_kernel_is_not_run(kernel: str) -> None:
    assert unexpected(kernel)
