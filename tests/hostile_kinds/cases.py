"""A case of hostile input, and what cases are made of: odd values, odd bytes, golden models."""

import json
import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

GOLDEN = Path(__file__).parent.parent / "golden"
MODELS = ("gpt2", "llama", "gemma2", "gpt_neox", "gpt_neo", "mistral", "qwen3", "phi3", "llama3")

DEEP = "[" * 100_000
VALUES = (  # as JSON
    "0", "-1", "1", "0.5", "-0.5", "3", "7", "1e12", "1000000000000", "1" + "0" * 400, "1" * 5000,
    "NaN", "Infinity", "-Infinity", "1e308", "1e-320", "true", "false", "null", '""', '"text"',
    '"\\u001b[31mred\\u0000"', json.dumps("x" * 5000), json.dumps("=1+1"), "[]", "[1]", "[null, 1]",
    "[[]]", "{}", '{"a": 1}', "[" * 400 + "]" * 400, '["full_attention"]', "9007199254740993",
)  # fmt: skip
TEXTS = (
    b"", b"\0", b"{", b"[]", b"null", b"\xff\xfe{\0}\0", b"\xef\xbb\xbf{}", DEEP.encode(),
    b'{"a":' * 50_000, b"\x80\x04cos\nsystem\n", b" " * 3_000_000, b"\x1b]0;title\x07",
    b"PK\x03\x04",
)  # fmt: skip
NUMBERS = (
    "0",
    "-1",
    "-0",
    "1" * 20,
    "1" * 5000,
    "1e400",
    "nan",
    "inf",
    "1.5",
    "",
    " ",
    "0x10",
    "١",
)


@dataclass(frozen=True)
class Case:
    """One hostile input: the files that it needs, the command, and what surrounds it."""

    name: str
    args: list[str]
    prepare: Callable[[Path], object] = lambda folder: None
    stdout: str = ""  # "closed", or a device
    stderr: str = ""
    file_limit: int = 0  # bytes that a file may have
    after: float = 0.0  # seconds until a signal comes
    signal: int = 0
    environment: dict[str, str] = field(default_factory=dict)
    must_fail: bool = False  # whether there is no reading in which it could be right
    wrong: Callable[[Path], str] = lambda folder: ""  # what is wrong with files, after success
    said: Callable[[str], str] = lambda out: ""  # what is wrong with what it printed


Cases = Iterator[Case]
Kind = Callable[[random.Random], Cases]


def copy_of(name: str, folder: Path) -> Path:
    """A golden model in a folder, to be spoilt."""
    return Path(shutil.copytree(GOLDEN / name, folder / "model"))


def some_command(rng: random.Random) -> list[str]:
    """A command that reads a model; a workbook of three columns, or of its own number."""
    columns = rng.choice(((), ("--tokens", "3")))
    return rng.choice(
        [
            ["info", "model"],
            ["run", "model", "--ids", "0,1"],
            ["build", "model", "--ids", "0,1", *columns, "-o", "book.xlsx"],
            ["generate", "model", "--ids", "1", "-n", "2"],
        ]
    )
