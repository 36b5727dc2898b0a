"""Type sentences into a workbook in LibreOffice, and print what becomes of each.

    /usr/bin/python3 benchmarks/libreoffice_sentences.py smollm2.xlsx "The capital of Italy is" ...

Runs under the Python that has LibreOffice's `uno` module (Debian: python3-uno). Prints the seconds,
and those of the processor, that it takes to open the workbook, and for each sentence those from
typing it to reading what is said of it; then that line, the ids, and on a Play of many words the
likeliest next tokens.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import uno  # noqa: F401  it makes com.sun.star importable
from com.sun.star.beans import PropertyValue
from office import connect

RESULTS_ROW, N_SHOWN = 20, 5  # of Play, in a workbook of many words
TICKS = os.sysconf("SC_CLK_TCK")


class Clock:
    """Seconds since it was last asked, and how many a program has computed in them."""

    def __init__(self, profile: str):
        self.profile, self.wall, self.cpu = profile, time.perf_counter(), 0.0

    def __str__(self) -> str:
        wall, cpu = time.perf_counter(), self._computed()
        text = f"{wall - self.wall:.1f} s ({cpu - self.cpu:.1f} s computed)"
        self.wall, self.cpu = wall, cpu
        return text

    def _computed(self) -> float:
        """By the program that has this profile."""
        for folder in Path("/proc").glob("[0-9]*"):
            command = (folder / "cmdline").read_bytes()
            if b"soffice.bin" in command and self.profile.encode() in command:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
                return (int(fields[11]) + int(fields[12])) / TICKS
        return 0.0


def main() -> None:
    """Open, type, read."""
    path, sentences = Path(sys.argv[1]).resolve(), sys.argv[2:]
    with tempfile.TemporaryDirectory() as profile:
        pipe = f"cellformer{time.time_ns()}"
        user, accept = f"-env:UserInstallation=file://{profile}", f"--accept=pipe,name={pipe};urp;"
        office = subprocess.Popen(["soffice", user, "--headless", "--norestore", accept])
        desktop, clock = connect(pipe), Clock(profile)
        print(f"started in {clock}")
        hidden = PropertyValue(Name="Hidden", Value=True)
        book = desktop.loadComponentFromURL(path.as_uri(), "_blank", 0, (hidden,))
        print(f"opened in {clock}", flush=True)
        for sentence in sentences:
            cells_of(book, "sentence").getCellByPosition(0, 0).String = sentence
            ids = [int(i) for i in cells_of(book, "tokenizer.ids").DataArray[0] if i >= 0]
            ranked = likeliest(book) if book.Sheets.hasByName("Play") else []
            message = cells_of(book, "tokenizer.message").getCellByPosition(0, 0).String
            print(f"{clock}  {sentence!r}: {message} {ids}")
            print("   ", *(f"{word} {share:.4f}" for word, share in ranked), flush=True)
        book.close(True)
        desktop.terminate()
        office.wait(60)


def cells_of(book: object, name: str) -> object:
    """The cells of a block, by its name."""
    sheet, _, cells = book.NamedRanges.getByName(name).Content.replace("$", "").rpartition(".")
    return book.Sheets.getByName(sheet.strip("'")).getCellRangeByName(cells)


def likeliest(book: object) -> list[tuple[str, float]]:
    """The likeliest next tokens, with their probabilities."""
    play = book.Sheets.getByName("Play")
    rows = range(RESULTS_ROW, RESULTS_ROW + N_SHOWN)
    cells = [[play.getCellByPosition(col, row) for col in (1, 4)] for row in rows]
    return [(word.String, share.Value) for word, share in cells]


if __name__ == "__main__":
    main()
