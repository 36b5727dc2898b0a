"""exporters/web/zip.js: what Python's zipfile writes is read, what it writes zipfile reads, and a
damaged archive is refused with one line."""

import struct
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from in_node import JavaScriptError, call

pytestmark = pytest.mark.usefixtures("node")

NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0/\\"), min_size=1, max_size=9)
PARTS = st.dictionaries(NAMES, st.binary(max_size=300), max_size=5)
REMEDIES = ("; save it again", "; save it without a password", "; take a smaller one")


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("zip")


def parts(path: Path) -> list[tuple[str, bytes]]:
    return [(name, text.encode("latin-1")) for name, text in call("zip.mjs", "parts", str(path))]


def python_zip(path: Path, held: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, data in held.items():
            archive.writestr(zipfile.ZipInfo(name), data, method)
    return path


@given(PARTS, st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]))
def test_reads_what_python_writes(folder, held: dict[str, bytes], method: int) -> None:
    assert parts(python_zip(folder / "a.zip", held, method)) == [*held.items()]


@given(PARTS)
def test_python_reads_what_it_writes(folder, held: dict[str, bytes]) -> None:
    given_ = [(name, data.decode("latin-1")) for name, data in held.items()]
    for name in ("b.zip", "c.zip"):
        call("zip.mjs", "write", str(folder / name), given_)
    with zipfile.ZipFile(folder / "b.zip") as archive:
        assert archive.testzip() is None
        assert [(name, archive.read(name)) for name in archive.namelist()] == [*held.items()]
        assert {part.date_time for part in archive.infolist()} <= {(1980, 1, 1, 0, 0, 0)}
    assert (folder / "b.zip").read_bytes() == (folder / "c.zip").read_bytes()


def test_a_workbook_is_copied(folder, built) -> None:
    """What is not unpacked stays as it was packed."""
    target = folder / "copy.xlsx"
    call("zip.mjs", "copy", str(built["cat-sat"]), str(target), "xl/worksheets/sheet1.xml")
    with zipfile.ZipFile(built["cat-sat"]) as old, zipfile.ZipFile(target) as new:
        assert new.testzip() is None
        assert {n: old.read(n) for n in old.namelist()} == {n: new.read(n) for n in new.namelist()}


def refused(path: Path, data: bytes) -> str:
    path.write_bytes(data)
    with pytest.raises(JavaScriptError) as error:
        parts(path)
    message = str(error.value)
    assert message.startswith("the file ") and "\n" not in message
    assert any(remedy in message for remedy in REMEDIES), message
    return message


def listed(data: bytes) -> int:
    """Where the first entry of the directory stands."""
    return data.index(b"PK\x01\x02")


def changed(data: bytes, at: int, form: str, value: int) -> bytes:
    return data[:at] + struct.pack(form, value) + data[at + struct.calcsize(form) :]


TEXT = b"one and two, and one and two" * 40


@pytest.fixture(scope="module")
def good(folder) -> bytes:
    return python_zip(folder / "good.zip", {"a": TEXT, "b": b"bb"}).read_bytes()


def test_what_is_no_archive_is_refused(folder) -> None:
    for data in (b"", b"PK", b"<html></html>", b"PK\x05\x06" + b"\xff" * 18, b"x" * 70_000):
        assert "no zip archive" in refused(folder / "x.zip", data) or data.startswith(b"PK\x05")


def test_every_cut_is_refused(folder, good) -> None:
    for end in range(0, len(good) - 1, 7):
        refused(folder / "x.zip", good[:end])


def test_every_changed_byte_of_a_part_is_noticed(folder, good) -> None:
    begin = good.index(b"a") + 1
    for at in range(begin, begin + 20):
        refused(folder / "x.zip", changed(good, at, "<B", good[at] ^ 0x55))


@pytest.mark.parametrize(
    ("at", "form", "value", "says"),
    [
        (24, "<I", 10, "cannot be unpacked"),  # longer than promised: a bomb
        (24, "<I", len(TEXT) + 1, "cut off"),
        (24, "<I", 400_000_000, "wrong size"),
        (20, "<I", 1 << 31, "cut off"),
        (16, "<I", 7, "has changed"),
        (8, "<H", 1, "encrypted"),
        (10, "<H", 12, "compressed in a way (12)"),
        (28, "<H", 60_000, "directory is wrong"),
        (42, "<I", 3, "not where its directory says"),
        (42, "<I", 1 << 31, "not where its directory says"),
    ],
)
def test_wrong_entries_are_refused(folder, good, at: int, form: str, value: int, says: str) -> None:
    assert says in refused(folder / "x.zip", changed(good, listed(good) + at, form, value))


def test_a_bomb_is_refused_before_it_is_unpacked(folder) -> None:
    """Eight parts of 50 MB, in 400 KB."""
    zeros = bytes(50_000_000)
    bomb = python_zip(folder / "bomb.zip", {f"{k}": zeros for k in range(8)}).read_bytes()
    assert "holds 400 MB, 300 at most" in refused(folder / "x.zip", bomb)


def test_parts_that_overlap_are_refused(folder, good) -> None:
    with zipfile.ZipFile(folder / "many.zip", "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("kernel", TEXT)
    data = (folder / "many.zip").read_bytes()
    begin, end = listed(data), data.index(b"PK\x05\x06")
    entry = data[begin:end]
    entries = b"".join(entry.replace(b"kernel", b"%06d" % k) for k in range(9))
    tail = changed(changed(data[end:], 10, "<H", 9), 12, "<I", len(entries))
    assert "parts overlap" in refused(folder / "x.zip", data[:begin] + entries + tail)
    twice = changed(changed(data[end:], 10, "<H", 2), 12, "<I", 2 * len(entry))
    assert "there twice" in refused(folder / "x.zip", data[:begin] + 2 * entry + twice)
