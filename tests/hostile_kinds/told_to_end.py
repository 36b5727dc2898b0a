"""A command is told to end while it computes: a formula without end, a template that loops,
training, children at work."""

import random
import signal
import tempfile
import warnings
from functools import cache
from pathlib import Path

from openpyxl import load_workbook

import cellformer
from cellformer import exercises
from cellformer.exporters.file.reading import WorkbookFile
from hostile_kinds.cases import Case, Cases, Kind, copy_of
from hostile_kinds.workbook_files import book

LOOP = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"


@cache
def endless() -> bytes:
    """A workbook of exercises with answers that no program computes in time."""
    with tempfile.TemporaryDirectory() as folder:
        path = cellformer.write(exercises.recipe("cat-sat", 2).book(), Path(folder) / "e.xlsx")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what openpyxl leaves out
            filled = load_workbook(path)
        for _, address, _ in exercises.filled_in(WorkbookFile(path)):
            sheet, _, cell = address.rpartition("!")
            filled[sheet.strip("'")][cell] = "=FACT(1E300)"
        filled.save(path)
        return path.read_bytes()


def ends(rng: random.Random) -> Cases:
    """Long commands and SIGTERM, or SIGHUP."""
    commands = (
        ["grade", "e.xlsx"], ["verify", "book.xlsx"], ["train", "superposition", "-o", "out"],
        ["ablate", "dialogue-game", "--prompts", "p.txt"],
        ["generate", "dialogue-game", "-n", "28"], ["gradient", "shakespeare"],
        ["ablate", "cat-sat", "--prompts", "q.txt", "--jobs", "2"],
        ["build", "model", "--chat", "-o", "b.xlsx"], ["build", "dialogue-game", "-o", "b.xlsx"],
    )  # fmt: skip

    def prepare(folder: Path) -> None:
        (folder / "e.xlsx").write_bytes(endless())
        (folder / "book.xlsx").write_bytes(book()[""])
        (folder / "p.txt").write_text("Tarso\n" * 99)
        (folder / "q.txt").write_text("the cat sat\n" * 9999)
        (copy_of("llama", folder) / "chat_template.jinja").write_text(LOOP)

    while True:
        args, after = rng.choice(commands), 0.3 + 4 * rng.random()
        told = rng.choice([signal.SIGTERM, signal.SIGTERM, signal.SIGHUP])
        name = f"{told.name} after {after:.1f} s"
        yield Case(name, args, prepare, after=after, signal=told)


def ready() -> None:
    endless()


KINDS: dict[str, Kind] = {"ends": ends}
