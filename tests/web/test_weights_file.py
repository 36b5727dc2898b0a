"""Weights in a file beside the page: it asks for them, refuses others and damaged ones, and then
computes, in slices between which the page can be used."""

import json
import random
import re
import zlib
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest
from conftest import cli, default_book
from in_node import call

from cellformer.exporters.checking.javascript import PART
from cellformer.exporters.web import page


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> tuple[Path, Path]:
    """A page, and its weights."""
    path = tmp_path_factory.mktemp("page") / "x.html"
    html, weights = page.write(default_book("dialogue-game"), path, most_inside=1000)
    return html, weights


def of(html: Path) -> dict[str, Any]:
    """What a page knows of its weights' file."""
    found = re.search(PART.format("data"), html.read_text())
    assert found
    return json.loads(zlib.decompress(b64decode(found[1])))["beside"]


def damaged(whole: bytes) -> dict[str, list[bytes]]:
    """Files that are damaged, by what is said of them."""
    begin = whole.index(b"\n") + 1
    head, numbers, rng = whole[:begin], whole[begin:], random.Random(0)
    flips = []
    for at in [0, len(numbers) - 1, *(rng.randrange(len(numbers)) for _ in range(20))]:
        flipped = bytearray(numbers)
        flipped[at] ^= 1 << rng.randrange(8)
        flips.append(head + flipped)
    half = len(numbers) // 2
    return {
        "its checksum is wrong": [
            *flips,
            head + bytes(len(numbers)),
            head + b"\xff" * len(numbers),
            head + numbers[:half] + bytes(len(numbers) - half),
            head + numbers[::-1],
            head + numbers[8:] + numbers[:8],
        ],
        "is not whole": [whole[:-8], whole + b"x" * 8, head],
        "does not hold this page's weights": [b"", b"z" + whole[1:], b"z" + whole, head[:-9]],
    }


def test_a_damaged_file_is_refused(files, tmp_path: Path, node) -> None:
    html, weights = files
    whole, path = weights.read_bytes(), tmp_path / "damaged.weights"
    assert call("weights.mjs", "read", str(weights), of(html)) == of(html)["size"]
    for said, held in damaged(whole).items():
        for data in held:
            path.write_bytes(data)
            told = call("weights.mjs", "read", str(path), of(html))
            assert isinstance(told, str) and told.startswith("damaged.weights ") and said in told
            assert len(told.splitlines()) == 1


def test_checksums_are_those_of_zlib(node) -> None:
    rng = random.Random(0)
    for _ in range(50):
        sizes = [rng.choice([0, 1, 2, 3, 4, 5, 7, 64, 100]) for _ in range(rng.randrange(4))]
        data = rng.randbytes(sum(sizes))
        assert call("weights.mjs", "checksum", list(data), sizes) == zlib.crc32(data)


def test_verify_refuses_a_damaged_file(files, tmp_path: Path, node) -> None:
    html, weights = (tmp_path / file.name for file in files)
    html.write_bytes(files[0].read_bytes())
    whole = bytearray(files[1].read_bytes())
    weights.write_bytes(whole)
    assert cli("verify", html).code == 0
    whole[-100] ^= 1
    weights.write_bytes(whole)
    done = cli("verify", html)
    assert done.code == 2 and "x.weights is damaged, because its checksum is wrong" in done.err


def test_the_page_asks_for_its_weights(files, chromium: str, tmp_path: Path) -> None:
    html, weights = files
    whole = weights.read_bytes()
    given = {"other": b"z" + whole, "short": whole[:-1], "zeros": whole[:-999] + bytes(999)}
    for name, data in given.items():
        (tmp_path / f"{name}.weights").write_bytes(data)
    paths = [*(str(tmp_path / f"{name}.weights") for name in given), str(weights)]
    found = call("weights.mjs", "given", chromium, str(html), paths)
    asked, refused, short, broken, opened, edited = found
    assert "Choose it, or drop it here" in asked
    assert refused.startswith("other.weights does not hold this page's weights")
    assert short == "short.weights is not whole: copy it again"
    assert broken.startswith(
        "zeros.weights is damaged, because its checksum is wrong: copy the file again"
    )
    assert "says ‘Tarso’ 99.995 %" in opened
    assert "head 1.2 off · said ‘Tarso’, now says ‘vice’" in edited


def test_pictures_of_a_large_page_follow_its_answer(files, chromium: str, tmp_path: Path) -> None:
    own = tmp_path / "own.html"
    page.write(default_book("dialogue-game"), own)
    small = call("weights.mjs", "drawn", chromium, str(own), "", None)
    assert len(small) > 10 and "5 × 64" in small[1]
    assert call("weights.mjs", "drawn", chromium, *map(str, files), small) == small


def test_a_hosted_page_fetches_its_weights(files, chromium: str) -> None:
    html, weights = files
    found = call("weights.mjs", "hosted", chromium, str(html), str(weights))
    assert found["asked"] == ["/a/x.html", "/a/x.weights"]
    assert "says ‘Tarso’ 99.995 %" in found["texts"][0]


def test_a_hosted_page_asks_for_weights_that_are_missing_or_others(
    files, chromium: str, tmp_path: Path
) -> None:
    html, weights = files
    other = tmp_path / "other.weights"
    other.write_bytes(weights.read_bytes()[:-1])
    for held, said in ("", "x.weights is not beside this page"), (str(other), "is not whole"):
        found = call("weights.mjs", "hosted", chromium, str(html), held)
        assert any(said in text for text in found["texts"])
        assert any("Choose it, or drop it here" in text for text in found["texts"])


def test_only_a_page_with_a_file_may_fetch(files, tmp_path: Path) -> None:
    own = tmp_path / "own.html"
    page.write(default_book("cat-sat"), own)
    assert "connect-src 'self'" in files[0].read_text()
    assert "connect-src" not in own.read_text()
