"""Hostile input: what a user mistypes, and what somebody who means harm puts into a file.

    python tests/hostile.py [N [KIND ...]]    # N of each kind; prints what was handled badly

Every input must end within 20 s and below 1 GB, either well, with numbers that are finite, or with
exit code 2 and one line of at most 300 printable characters; and leave nothing half-written behind.
Each runs in a process of its own, forked from one that has everything imported.
"""

import contextlib
import io
import json
import os
import random
import resource
import shutil
import signal
import struct
import sys
import tempfile
import time
import traceback
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parent.parent))
sys.path.insert(0, str(Path(__file__).parent / "models"))

import foreign_values
import format_writers

import cellformer
from cellformer.__main__ import main as command
from cellformer.command.group import begin

ROOT = Path(__file__).parent.parent
GOLDEN = ROOT / "tests" / "golden"
MODELS = ("gpt2", "llama", "gemma2", "gpt_neox", "gpt_neo", "mistral", "qwen3", "phi3", "llama3")
SECONDS, MOST_KB, LONGEST = 20, 1_000_000, 300
KB_OF_PARENT = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

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

WAYS = ("cut", "flip", "header", "name", "size", "more")  # that weights are spoilt in


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


@dataclass(frozen=True)
class Outcome:
    """How the command ended."""

    code: int
    out: str
    err: str
    seconds: float
    kilobytes: int
    left: list[str]  # files that were not there before


def faults(case: Case, outcome: Outcome) -> list[str]:
    """What was handled badly."""
    found = []
    lines = outcome.err.splitlines()
    disagrees = outcome.code == 1 and "DISAGREES" in outcome.out
    if outcome.code not in (0, 2) and not (case.signal or disagrees):
        found.append(f"code {outcome.code}")
    if case.signal and outcome.code not in (0, 2, 129, 130, 143):
        found.append(f"code {outcome.code} after a signal")
    if outcome.code == 0 and case.must_fail:
        found.append("taken without a word")
    if "Traceback" in outcome.err:
        found.append(f"a traceback: {lines[-1][:150] if lines else ''}")
    elif outcome.code == 2 and not case.stderr:
        if len(lines) != 1 and case.stdout != "closed":
            found.append(f"{len(lines)} lines: {outcome.err[:200]!r}")
        if any(len(line) > LONGEST for line in lines):
            found.append(f"a line of {max(map(len, lines))} characters")
    if not all(line.isprintable() for line in lines):
        found.append(f"control characters: {outcome.err[:80]!r}")
    if outcome.code == 0 and any(word in outcome.out.split() for word in ("nan", "inf", "-inf")):
        found.append("numbers that are none, with code 0")
    if outcome.seconds > SECONDS:
        found.append(f"{outcome.seconds:.0f} s")
    if outcome.kilobytes - KB_OF_PARENT > MOST_KB:
        found.append(f"{outcome.kilobytes / 1e6:.1f} GB")
    if outcome.code and outcome.left and not case.stdout:
        found.append(f"left behind: {outcome.left}")
    if any(name.endswith(".part") for name in outcome.left):
        found.append(f"half-written: {outcome.left}")
    return found


def run(case: Case, folder: Path) -> Outcome:
    """Run the command on an input, in a process of its own."""
    work, logs = folder / "work", folder / "logs"
    for path in (work, logs):
        path.mkdir(parents=True)
    for name in ("out", "err"):
        (logs / name).touch()
    case.prepare(work)
    before = set(_tree(work))
    began = time.monotonic()
    child = os.fork()
    if not child:
        _become(case, work, logs)
    if case.signal:
        time.sleep(case.after)
        os.kill(child, case.signal)
    while os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        if time.monotonic() - began > SECONDS:
            os.kill(child, signal.SIGKILL)
        time.sleep(0.005)
    _, status, used = os.wait4(child, 0)
    seconds = time.monotonic() - began
    texts = [(logs / name).read_text(errors="replace") for name in ("out", "err")]
    left = sorted(set(_tree(work)) - before) if work.is_dir() else []
    code = os.waitstatus_to_exitcode(status)
    return Outcome(code, *texts, seconds, used.ru_maxrss, left)


def _tree(folder: Path) -> Iterator[str]:
    for path in folder.rglob("*"):
        yield str(path.relative_to(folder))


def _become(case: Case, work: Path, logs: Path) -> None:
    """Be the command, and end."""
    code = 1
    try:
        for number, name, wanted in ((1, "out", case.stdout), (2, "err", case.stderr)):
            if wanted == "closed":
                os.close(number)
                continue
            to = os.open(wanted or logs / name, os.O_WRONLY | (0 if wanted else os.O_CREAT))
            os.dup2(to, number)
        sys.stdout = _stream(1, case.stdout, case.environment)
        sys.stderr = _stream(2, case.stderr, case.environment)
        os.environ.update(case.environment)
        os.chdir(work)
        if case.file_limit:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # as Python itself has it
            resource.setrlimit(resource.RLIMIT_FSIZE, (case.file_limit, case.file_limit))
        if "{gone}" in case.args:
            shutil.rmtree(work)
        sys.argv = ["cellformer", *(arg for arg in case.args if arg != "{gone}")]
        command()
        code = 0
    except SystemExit as stopped:
        code = stopped.code if isinstance(stopped.code, int) else (0 if not stopped.code else 1)
    except BaseException:
        traceback.print_exc()
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream:
                stream.flush()
        except (OSError, ValueError):
            code = code or 120  # as the interpreter ends
    os._exit(code)


def _stream(number: int, wanted: str, environment: dict[str, str]) -> object:
    if wanted == "closed":
        return None  # as the interpreter has it
    encoding = environment.get("PYTHONIOENCODING", "utf-8")
    return open(number, "w", encoding=encoding, closefd=False)


# --- the kinds --------------------------------------------------------------------------------

Cases = Iterator[Case]


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


def configs(rng: random.Random) -> Cases:
    """A field of config.json with a value that no tool writes."""
    more = ("head_dim", "rope_scaling", "rope_parameters", "sliding_window", "layer_types", "n_ctx")
    while True:
        name, value = rng.choice(MODELS), rng.choice(VALUES)
        fields = list(json.loads((GOLDEN / name / "config.json").read_text()))
        key = rng.choice([*fields, *more])

        def prepare(folder: Path, name: str = name, key: str = key, value: str = value) -> None:
            model = copy_of(name, folder)
            held = json.loads((model / "config.json").read_text()) | {key: "HERE"}
            text = json.dumps(held).replace('"HERE"', value)
            (model / "config.json").write_text(text)

        yield Case(f"{name}: {key} = {value[:40]}", some_command(rng), prepare)


@cache
def own() -> dict[str, bytes]:
    """The files of a model in our own layout."""
    with tempfile.TemporaryDirectory() as folder:
        cellformer.save(cellformer.load("cat-sat"), Path(folder) / "own")
        return {path.name: path.read_bytes() for path in (Path(folder) / "own").iterdir()}


def own_configs(rng: random.Random) -> Cases:
    """The same in our own layout."""
    fields = json.loads(own()["config.json"])
    more = ("n_heads", "d_head", "d_mlp", "windows", "norm_eps", "sqrt_d_head", "causal", "tied")
    more += ("position", "activation", "rope_frequencies", "d_rotary", "d_vocab_out", "bias")
    while True:
        key, value = rng.choice([*fields, *more]), rng.choice(VALUES)

        def prepare(folder: Path, key: str = key, value: str = value) -> None:
            text = json.dumps(fields | {key: "HERE"}).replace('"HERE"', value)
            (folder / "model").mkdir()
            for name, data in (own() | {"config.json": text.encode()}).items():
                (folder / "model" / name).write_bytes(data)

        yield Case(f"own: {key} = {value[:40]}", some_command(rng), prepare)


def files(rng: random.Random) -> Cases:
    """A file of a checkpoint that holds something else, is missing, or is no file."""
    names = ("config.json", "model.safetensors", "words.json", "tokenizer.json", "vocab.json")
    names += ("merges.txt", "tokenizer_config.json", "model.safetensors.index.json")
    names += ("added_tokens.json", "characters.json", "special_tokens_map.json", "tokenizer.model")
    while True:
        name, what = rng.choice(names), rng.choice([*TEXTS, "zero", "folder", "fifo", "gone"])

        def prepare(folder: Path, name: str = name, what: bytes | str = what) -> None:
            model = copy_of(rng.choice(MODELS), folder)
            path = model / name
            if name.endswith(".index.json"):
                (model / "model.safetensors").unlink()
            if name == "merges.txt":
                (model / "vocab.json").write_text('{"a": 0, "b": 1}')
            path.unlink(missing_ok=True)
            if what == "zero":
                path.symlink_to("/dev/zero")
            elif what == "folder":
                path.mkdir()
            elif what == "fifo":
                os.mkfifo(path)
            elif isinstance(what, bytes):
                path.write_bytes(what)

        yield Case(f"{name} is {what[:20]!r}", some_command(rng), prepare)


def weights(rng: random.Random) -> Cases:
    """model.safetensors cut, flipped, or with a header that lies."""
    while True:
        name, how, seed = rng.choice(MODELS), rng.choice(WAYS), rng.random()

        def prepare(folder: Path, name: str = name, how: str = how, seed: float = seed) -> None:
            draw, path = random.Random(seed), copy_of(name, folder) / "model.safetensors"
            path.write_bytes(spoilt_safetensors(path.read_bytes(), how, draw))

        yield Case(f"{name}: weights, {how} {seed:.3f}", some_command(rng), prepare)


def spoilt_safetensors(data: bytes, how: str, draw: random.Random) -> bytes:
    """A safetensors file with a fault in it."""
    size = struct.unpack("<Q", data[:8])[0]
    header, rest = data[8 : 8 + size], data[8 + size :]
    if how == "cut":
        return data[: draw.randrange(len(data))]
    if how == "flip":
        at = draw.randrange(min(len(data), 8 + size))
        return data[:at] + bytes([data[at] ^ (1 << draw.randrange(8))]) + data[at + 1 :]
    if how == "size":
        return struct.pack("<Q", draw.choice([0, 1, 2**31, 2**63, 2**64 - 1])) + header + rest
    held = json.loads(header)
    key = draw.choice([k for k in held if k != "__metadata__"])
    if how == "name":
        held[draw.choice(["x" * 300, "\x1b[31m", "a\nb", "", "=1+1", "ü" * 99])] = held.pop(key)
    elif how == "more":
        held[key]["dtype"] = draw.choice(["I64", "BOOL", "F64", "F8_E4M3", "Q4", "", None])
    else:
        field = draw.choice(["shape", "data_offsets"])
        values = [[], [0], [-1, 1], [10**18], [10**30, 1], ["a"], None, [0, 10**12], [1] * 300]
        held[key][field] = draw.choice(values)
    text = json.dumps(held).encode()
    return struct.pack("<Q", len(text)) + text + rest


@cache
def of_formats() -> dict[str, bytes]:
    """A GGUF, a llama2.c file, and a torch file, each as its own program writes it."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        format_writers.write_gguf(GOLDEN / "llama", folder / "model.gguf")
        format_writers.write_llama2c(GOLDEN / "llama", folder / "model.bin")
        with zipfile.ZipFile(folder / "model.pt", "w") as archive:  # as torch saves: a zip archive
            archive.writestr(
                "archive/data.pkl", b"\x80\x02}q\x00X\x05\x00\x00\x00modelq\x01}q\x02s."
            )
            archive.writestr("archive/version", b"3")
        return {path.name: path.read_bytes() for path in folder.iterdir()}


def formats(rng: random.Random) -> Cases:
    """Files of other formats, cut, flipped, or with other bytes at their beginning."""
    while True:
        name, seed = rng.choice(list(of_formats())), rng.random()

        def prepare(folder: Path, name: str = name, seed: float = seed) -> None:
            draw, data = random.Random(seed), bytearray(of_formats()[name])
            if draw.random() < 0.3:
                del data[draw.randrange(len(data)) :]
            for _ in range(draw.choice([1, 3, 20])):
                near = draw.choice([40, 400, len(data)])
                if data:
                    data[draw.randrange(min(near, len(data)))] = draw.randrange(256)
            (folder / name).write_bytes(bytes(data))

        yield Case(
            f"{name} {seed:.4f}", rng.choice([["info", name], ["run", name, "--ids", "1"]]), prepare
        )


def options(rng: random.Random) -> Cases:
    """Options with values that cannot be meant."""
    long = "x" * rng.choice([300, 5000])
    while True:
        number, word = (
            rng.choice(NUMBERS),
            rng.choice(["é" * 300, "\x1b[2J", "a\nb", "=1", long, ""]),
        )
        cell = rng.choice(
            ["W_E[0,0]", f"W_E[0,{number}]", word, f"{word}[0,0]", "W_E[0,0]=", "probs[0,0]"]
        )
        args = rng.choice(
            [
                ["run", "cat-sat", "--set", f"{cell}={number}"],
                ["run", "cat-sat", "--set", "temperature[0,0]=0"],
                ["run", "cat-sat", "--set", "blocks.0.attn.sqrt_d_head[0,0]=0"],
                ["run", "cat-sat", "--set", "W_E[0,0]=1e308", "--set", "W_E[1,1]=-1e308"],
                ["run", "cat-sat", "--set", "W_E[0,0]=1e200"],
                ["run", "cat-sat", "--ids", number],
                ["run", "cat-sat", "--ids", ",".join(["0"] * rng.choice([0, 1, 13, 20_000]))],
                ["run", "cat-sat", "--tokens", number],
                ["run", "cat-sat", "--prompt", word],
                ["run", "cat-sat", "--target", word],
                ["run", "cat-sat", "--ablate", word],
                ["run", "cat-sat", "--show", word],
                ["run", word],
                ["trace", "cat-sat", cell],
                ["trace", "cat-sat", "logits[0,0]", "--depth", number],
                ["sweep", "cat-sat", "W_E[0,0]", "--from", number, "--to", "1", "--steps", "3"],
                ["sweep", "cat-sat", "W_E[0,0]", "--steps", number],
                ["generate", "cat-sat", "-n", number],
                ["generate", "cat-sat", "--temperature", number, "--seed", "1"],
                ["generate", "cat-sat", "--top-p", number],
                ["generate", "cat-sat", "--top-k", number],
                ["generate", "cat-sat", "--seed", number],
                ["build", "cat-sat", "--tokens", number, "-o", "book.xlsx"],
                ["build", "cat-sat", "-o", word],
                ["build", "cat-sat", "-o", f"{word}.xlsx"],
                ["build", "cat-sat", "--digits", word, "-o", "book.xlsx"],
                ["build", "cat-sat", "--live", word, "-o", "book.xlsx"],
                ["build", word],
                ["info", word],
                ["info", "cat-sat", "--tokens", number],
                ["verify", word],
                ["verify", "nowhere.xlsx", "--engine", word],
                ["diff", word],
                ["import", word, "-o", "out"],
                ["edit", "cat-sat", "--say", word, "-o", "book.xlsx"],
                ["edit", "cat-sat", "--say", "dog", "--only", word, "-o", "book.xlsx"],
                ["edit", "cat-sat", "--say", "dog", "--prompt", word, "-o", "book.xlsx"],
                ["edit", "cat-sat", "--say", "dog", "--ids", number, "-o", "book.xlsx"],
                ["edit", "cat-sat", "--say", "dog", "--also", word or "no", "-o", "book.xlsx"],
                ["edit", "cat-sat", "--say", "dog", "-o", f"{word}.xlsx"],
                ["build", "cat-sat", "--nudge", "--prompt", word, "-o", "book.xlsx"],
                ["build", "cat-sat", "--nudge", "--tokens", number, "-o", "book.xlsx"],
                ["build", "cat-sat", "--words", word, "-o", "book.xlsx"],
                ["patch", "cat-sat", "--against", word],
                ["patch", "cat-sat", "--against", "dog", "--prompt", "cat", "--site", word],
                ["build", "cat-sat", "--against", word, "-o", "book.xlsx"],
                ["train", "superposition", "-o", "out", "--seed", number],
                ["train", "cat-sat", "-o", word],
                ["train", "--text", word, "-o", "out"],
                [word],
                ["run"],
                ["run", "cat-sat", f"--{word}"],
            ]
        )
        named = [ascii(arg[:60]) for arg in args]
        yield Case(" ".join(named), [arg.replace("\0", "") for arg in args])


def surroundings(rng: random.Random) -> Cases:
    """A full disk, closed streams, a folder that is gone, a signal at any moment."""
    build = ["build", "cat-sat", "-o", "book.xlsx"]
    ascii_only = {"PYTHONIOENCODING": "ascii", "LC_ALL": "C"}

    def exists(folder: Path) -> None:
        (folder / "book.xlsx").mkdir()

    def fifo(folder: Path) -> None:
        os.mkfifo(folder / "book.xlsx")

    while True:
        reads = rng.choice([["list"], ["run", "cat-sat"], ["info", "dialogue-game"], build,
            ["trace", "cat-sat", "scores[2,1]"], ["run", "cat-sat", "--json"], ["--help"],
            ["trace", "cat-sat", "blocks.0.attn.h0.scores[2,1]"],
            ["generate", "dialogue-game", "-n", "3"]])  # fmt: skip
        yield rng.choice(
            [
                Case(f"stdout is full: {reads}", reads, stdout="/dev/full"),
                Case(f"stderr is full: {reads}", ["run", "nowhere"], stderr="/dev/full"),
                Case(f"stdout is closed: {reads}", reads, stdout="closed"),
                Case(f"stderr is closed: {reads}", ["run", "nowhere"], stderr="closed"),
                Case(f"only ASCII: {reads}", reads, environment=ascii_only),
                Case(f"a file limit: {build}", build, file_limit=rng.randrange(1, 60_000)),
                Case("onto a full device", ["build", "cat-sat", "-o", "/dev/full"]),
                Case("onto a folder", build, exists),
                Case("onto a pipe", build, fifo, must_fail=True),
                Case("in a folder that is gone", [*reads, "{gone}"]),
                Case("in no folder", ["build", "cat-sat", "-o", "no/such/book.xlsx"]),
                Case(
                    f"a signal: {reads}",
                    rng.choice([build, ["build", "dialogue-game", "-o", "book.xlsx"], reads]),
                    after=rng.random() * 1.5,
                    signal=rng.choice([signal.SIGINT, signal.SIGTERM, signal.SIGHUP]),
                ),
            ]
        )


@cache
def book() -> dict[str, bytes]:
    """The parts of a workbook; the whole file without a name."""
    with tempfile.TemporaryDirectory() as folder:
        path = cellformer.write(cellformer.build("cat-sat"), Path(folder) / "book.xlsx")
        with zipfile.ZipFile(path) as archive:
            parts = {name: archive.read(name) for name in archive.namelist()}
        return {"": path.read_bytes(), **parts}


def workbooks(rng: random.Random) -> Cases:
    """Workbooks for diff, import and verify: damaged, tampered with, swollen."""
    ways: tuple[Callable[[Path, random.Random], object], ...] = (
        cut_file, flipped_file, no_workbook, without_part, flipped_part, swollen, tampered_source,
        odd_cells,
    )  # fmt: skip
    commands = (["diff", "book.xlsx"], ["import", "book.xlsx", "-o", "out"])
    commands += (["verify", "book.xlsx", "--engine", "ironcalc"],)
    while True:
        how, seed = rng.choice(ways), rng.random()

        def prepare(folder: Path, how: Callable = how, seed: float = seed) -> None:
            how(folder / "book.xlsx", random.Random(seed))

        yield Case(f"{how.__name__} {seed:.4f}", rng.choice(commands), prepare)


def lists(rng: random.Random) -> Cases:
    """Lists of words, and of prompts, that are none."""
    words = ["the", "cat", "dog", "mat", "sat", "on", "ran", "floor"]
    odd = ["# ", "#", "=1+1", "\x1b[31m", '"', "'", "\0", "é" * 400, "# " + "g" * 400, "# =1", ""]
    odd += ["\u2028", "the cat", "THE", "<0x0A>", "# a\x01b", "# \x1b]0;t\x07"]
    words_of, prompts_of = (
        ["build", "cat-sat", "--words", "list", "-o", "book.xlsx"],
        ["edit", "cat-sat", "--say", "dog", "--also", "list", "-o", "book.xlsx"],
    )
    while True:
        lines = rng.sample(words, rng.choice([0, 3, 7, 8])) + rng.sample(odd, rng.choice([0, 1, 2]))
        rng.shuffle(lines)
        text = "\n".join(lines).encode() if rng.random() < 0.8 else rng.choice(TEXTS)

        def prepare(folder: Path, text: bytes = text) -> None:
            (folder / "list").write_bytes(text)

        yield Case(f"list {text[:40]!r}", rng.choice([words_of, prompts_of]), prepare)


def packed(path: Path, parts: dict[str, bytes]) -> None:
    """Write a workbook of these parts."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts.items():
            if name:
                archive.writestr(name, data)


def cut_file(path: Path, draw: random.Random) -> None:
    data = book()[""]
    path.write_bytes(data[: draw.randrange(len(data))])


def flipped_file(path: Path, draw: random.Random) -> None:
    data = bytearray(book()[""])
    for _ in range(draw.choice([1, 5, 50])):
        data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    path.write_bytes(bytes(data))


def no_workbook(path: Path, draw: random.Random) -> None:
    path.write_bytes(draw.choice(TEXTS))
    if draw.random() < 0.3:
        path.unlink()
        draw.choice([os.mkfifo, os.mkdir, lambda at: os.symlink("/dev/zero", at)])(path)


def without_part(path: Path, draw: random.Random) -> None:
    parts = dict(book())
    del parts[draw.choice([name for name in parts if name])]
    packed(path, parts)


def flipped_part(path: Path, draw: random.Random) -> None:
    parts = dict(book())
    name = draw.choice([name for name in parts if name])
    data = bytearray(parts[name])
    for _ in range(draw.choice([1, 3, 30])):
        data[draw.randrange(len(data))] = draw.choice(b'<>&"/\0 =1a')
    packed(path, parts | {name: bytes(data)})


def swollen(path: Path, draw: random.Random) -> None:
    """A part that unpacks to gigabytes."""
    parts = book()
    name = draw.choice([n for n in parts if "sheet" in n.lower() and n.endswith(".xml")])
    cells = draw.choice([b"<c><v>1</v></c>", b"<si><t>a</t></si>", b" ", b"<row/>", b"<!-- -->"])
    unit = cells * (1 << 20)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for each, data in parts.items():
            if each and each != name:
                archive.writestr(each, data)
        with archive.open(name, "w", force_zip64=True) as part:
            head, mark, tail = parts[name].rpartition(b"</row>")
            part.write(head)
            for _ in range(max(1, (draw.choice([50, 450, 2000]) << 20) // len(unit))):
                part.write(unit)
            part.write(mark + tail)


def tampered_source(path: Path, draw: random.Random) -> None:
    """The sheet Source says something else."""
    parts = dict(book())
    table = parts["xl/sharedStrings.xml"].decode()
    (start,) = [table.index("{&quot;")] if "{&quot;" in table else [table.index('{"')]
    end = table.index("</t>", start)
    escaped = "{&quot;" in table
    facts = table[start:end].replace("&quot;", '"')
    held = json.loads(facts)
    key = draw.choice([*held, "sampling", "numbers"])
    text = json.dumps(held | {key: "HERE"}).replace('"HERE"', draw.choice(VALUES))
    text = text.replace("\\u001b", "").replace("\\u0000", "")
    text = text.replace('"', "&quot;") if escaped else text
    parts["xl/sharedStrings.xml"] = (table[:start] + text + table[end:]).encode()
    packed(path, parts)


def odd_cells(path: Path, draw: random.Random) -> None:
    """Values of cells that are others, of another kind, or far away."""
    parts = dict(book())
    name = draw.choice([n for n in parts if n.startswith("xl/worksheets/sheet")])
    data = parts[name]
    cells = [n for n in range(len(data)) if data.startswith(b"<v>", n)]
    if not cells:
        return packed(path, parts)
    at = draw.choice(cells)
    end = data.index(b"</v>", at)
    odd = (b"", b"NaN", b"1e999", b"99999999999999999999", b"abc", b"-1", b"0", b"1e308", b"#REF!")
    parts[name] = data[: at + 3] + draw.choice(odd) + data[end:]
    return packed(path, parts)


def made_for_it(kind: str, rng: random.Random) -> Cases:
    """Files of other programs, each made for its case."""
    return (Case(*given) for given in foreign_values.KINDS[kind](rng))


KINDS: dict[str, Callable[[random.Random], Cases]] = {
    "configs": configs,
    "own_configs": own_configs,
    "files": files,
    "weights": weights,
    "formats": formats,
    "options": options,
    "surroundings": surroundings,
    "workbooks": workbooks,
    "lists": lists,
    **{kind: partial(made_for_it, kind) for kind in foreign_values.KINDS},
}


def import_all() -> None:
    """Import what commands import, once: the processes that are forked from this one have it."""
    with contextlib.redirect_stdout(io.StringIO()):
        begin()(["info", str(GOLDEN / "llama")], standalone_mode=False)
    book()
    of_formats()


def bad(kind: str, n: int, seed: int = 0) -> Iterator[tuple[Case, list[str]]]:
    """Those of `n` inputs of a kind that were handled badly, and how."""
    cases = KINDS[kind](random.Random(seed))
    for _, case in zip(range(n), cases, strict=False):
        with tempfile.TemporaryDirectory() as folder:
            outcome = run(case, Path(folder))
        if found := faults(case, outcome):
            yield case, [*found, outcome.err[-300:] if "Traceback" not in outcome.err else ""]


def main() -> None:
    """Try N inputs of each kind; exit code 1 where one is handled badly."""
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 150
    import_all()
    total = 0
    for kind in sys.argv[2:] or KINDS:
        for case, found in bad(kind, n):
            total += 1
            print(f"{kind}: {case.name}  {' '.join(case.args)[:120]!r}\n    {'; '.join(found)}")
        print(f"--- {kind}: {n} tried")
    print(f"{total} handled badly")
    sys.exit(1 if total else 0)


if __name__ == "__main__":
    main()
