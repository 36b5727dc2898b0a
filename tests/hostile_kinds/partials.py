"""Files of a stopped run, FILE.partial, that are damaged, of other work, or no files."""

import os
import random
import tempfile
from collections.abc import Callable
from contextlib import redirect_stderr, suppress
from functools import cache
from io import StringIO
from pathlib import Path

from cellformer import studies
from cellformer.engine.studies.ablation import Options
from hostile_kinds.cases import TEXTS, Case, Cases, Kind

PROMPTS = ["the cat sat", "a dog ran", "the dog sat on"]
TABLE, PARTIAL = "t.csv", "t.csv.partial"
Change = Callable[[bytearray, random.Random], object]


def kept(folder: Path, prompts: list[str], mean: bool = False) -> bytes:
    """What a run keeps that is stopped when all is computed."""
    path, left = folder / TABLE, len(prompts)

    def stop(n: int) -> None:
        nonlocal left
        left -= n
        if not left:
            path.with_name(PARTIAL).rename(folder / "held")
            raise KeyboardInterrupt

    asked = studies.Task("ablate", "cat-sat", options=Options(mean=mean))
    with suppress(KeyboardInterrupt), redirect_stderr(StringIO()):
        studies.run(asked, list(map(studies.Prompt, prompts)), output=path, advance=stop)
    return (folder / "held").read_bytes()


@cache
def results() -> tuple[bytes, bytes, list[bytes]]:
    """The table, what is kept of it, and what is kept of other work."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        given = list(map(studies.Prompt, PROMPTS))
        studies.run(studies.Task("ablate", "cat-sat"), given, output=folder / TABLE)
        table = (folder / TABLE).read_bytes()
        others = [kept(folder, PROMPTS[::-1]), kept(folder, PROMPTS, mean=True)]
        return table, kept(folder, PROMPTS), others


def flipped(data: bytearray, draw: random.Random) -> None:
    for _ in range(draw.choice([1, 3, 50])):
        data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)


def cut(data: bytearray, draw: random.Random) -> None:
    del data[draw.randrange(len(data)) :]


def inserted(data: bytearray, draw: random.Random) -> None:
    """Other bytes at some place, as a line or within one."""
    at, end = draw.randrange(len(data) + 1), draw.choice([b"", b"\n"])
    more = (b"\0" * 4096, b"\n", b"[0, []]\n", b"00000000 [0, []]\n", b"[0, null]", b"\xff" * 99)
    data[at:at] = draw.choice([*TEXTS, *more]) + end


def shuffled(data: bytearray, draw: random.Random) -> None:
    """Lines in another order, twice, or glued to the next one."""
    lines = bytes(data).splitlines(keepends=True)
    lines = draw.choices(lines, k=draw.randrange(1, 9))
    data[:] = b"".join(line.rstrip() if draw.random() < 0.1 else line for line in lines)


def mixed(data: bytearray, draw: random.Random) -> None:
    """Lines of other work."""
    other = draw.choice(results()[2]).splitlines(keepends=True)
    own = bytes(data).splitlines(keepends=True)
    data[:] = b"".join(draw.choice(pair) for pair in zip(own, other, strict=True))


def changed(data: bytearray, draw: random.Random) -> None:
    """Digits that are others."""
    digits = [n for n, byte in enumerate(data) if byte in b"0123456789"]
    for at in draw.sample(digits, draw.choice([1, 5])):
        data[at] = draw.choice(b"0123456789")


def long(data: bytearray, draw: random.Random) -> None:
    """Many lines, or one that is long."""
    lines = bytes(data).splitlines(keepends=True)
    more = draw.choice([lines[1], b"garbage\n", b"[" * 100, b"\0"])
    data += more * (20_000_000 // len(more))


WAYS: tuple[Change, ...] = (flipped, cut, inserted, shuffled, mixed, changed, long)


def as_bytes(path: Path, draw: random.Random) -> None:
    path.write_bytes(draw.choice(TEXTS))


def as_other(path: Path, draw: random.Random) -> None:
    """No file, a link, or a file as large as a disk."""
    makes: tuple[Callable[[Path], object], ...] = (
        os.mkfifo,
        os.mkdir,
        lambda at: at.symlink_to("/dev/zero"),
        lambda at: at.symlink_to("nowhere"),
        lambda at: at.symlink_to("precious"),
        lambda at: (at.touch(), os.truncate(at, 1 << 40)),
        lambda at: (at.touch(), os.truncate(at, 1 << 30)),
    )
    draw.choice(makes)(path)


def partials(rng: random.Random) -> Cases:
    """What stands where a run keeps its results; the table must be the right one, or there is none,
    and no other file is touched."""

    def wrong(folder: Path) -> str:
        if (folder / "precious").read_bytes() != b"precious":
            return "another file was written to"
        if (folder / PARTIAL).exists():
            return "the partial file is left"
        return "" if (folder / TABLE).read_bytes() == results()[0] else "the table is another"

    while True:
        how, seed = rng.choice([*WAYS, *WAYS, as_bytes, as_other]), rng.random()

        def prepare(folder: Path, how: Callable = how, seed: float = seed) -> None:
            draw, path = random.Random(seed), folder / PARTIAL
            (folder / "p.txt").write_text("\n".join(PROMPTS))
            (folder / "precious").write_bytes(b"precious")
            if how in (as_bytes, as_other):
                return how(path, draw)
            data = bytearray(results()[1])
            how(data, draw)
            path.write_bytes(data)

        args = ["ablate", "cat-sat", "--prompts", "p.txt", "-o", TABLE]
        more = rng.choice([["--resume"], ["--resume"], ["--resume"], []])
        yield Case(f"{how.__name__} {seed:.4f}", [*args, *more], prepare, wrong=wrong)


def ready() -> None:
    results()


KINDS: dict[str, Kind] = {"partials": partials}
