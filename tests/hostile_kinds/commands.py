"""Options and lists that nobody means, and surroundings that fail: disks, streams, signals."""

import json
import os
import random
import signal
from pathlib import Path

import cellformer
from hostile_kinds.cases import NUMBERS, TEXTS, Case, Cases, Kind
from hostile_kinds.models import own


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


CODES = ("\x1b[2J", "\x1b]0;t\x07", "\x9b31m", "a\x7f\x08", "\u202egnp", "=1+1", "\x01")


def tables(rng: random.Random) -> Cases:
    """Words, and files' names, that control a terminal: in tables of CSV, printed and written."""
    words = list(cellformer.load("cat-sat").vocabulary.texts)
    commands = (
        ["run"], ["ablate"], ["gradient"], ["sweep", "W_E[0,0]"], ["generate", "-n", "3"],
        ["trace", "logits[1,0]"], ["run", "--show", "logits"], ["ablate", "-o", "t.csv"],
        ["sweep", "W_E[0,0]", "-o", "t.csv"],
    )  # fmt: skip

    def wrong(folder: Path) -> str:
        text = (folder / "t.csv").read_text() if (folder / "t.csv").exists() else ""
        return "" if text.replace("\n", "").isprintable() else "control codes in the file"

    while True:
        odd = dict(zip(rng.sample(words, 6), rng.choices(CODES, k=6), strict=True))
        said = [f"{odd.get(word, word)}{n if word in odd else ''}" for n, word in enumerate(words)]
        prompt, other = (" ".join(rng.choices(said, k=3)) for _ in range(2))
        name, *more = rng.choice([*commands, ["patch", "--against", other]])
        many = name in ("ablate", "sweep", "patch") and (rng.random() < 0.5 or "-o" in more)
        given = ["--prompts", "p.txt"] if many else ["--prompt", prompt]
        model = f"model{rng.choice(['', rng.choice(CODES)])}"

        def prepare(
            folder: Path, said: list[str] = said, prompt: str = prompt, model: str = model
        ) -> None:
            (folder / "p.txt").write_text(prompt)
            (folder / model).mkdir()
            for file, data in own().items():
                (folder / model / file).write_bytes(data)
            (folder / model / "words.json").write_text(json.dumps(said))

        args = [name, model, *more, *given, "--csv"]
        yield Case(ascii(" ".join(args)), args, prepare, wrong=wrong)


KINDS: dict[str, Kind] = {
    "options": options,
    "surroundings": surroundings,
    "lists": lists,
    "tables": tables,
}
