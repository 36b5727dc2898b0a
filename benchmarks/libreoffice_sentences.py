"""Type sentences into Play in LibreOffice, and print what comes next after each.

    /usr/bin/python3 benchmarks/libreoffice_sentences.py smollm2.xlsx "The capital of Italy is" ...

Runs under the Python that has LibreOffice's `uno` module (Debian: python3-uno). Prints the seconds
to open the workbook, and for each sentence those from typing it to reading what is said of it, that
line, and the likeliest next tokens.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import uno  # noqa: F401  it makes com.sun.star importable
from com.sun.star.beans import PropertyValue
from office import connect

MESSAGE_ROW, RESULTS_ROW, N_SHOWN = 5, 20, 5  # of Play, in a workbook of many words


def main() -> None:
    """Open, type, read."""
    path, sentences = Path(sys.argv[1]).resolve(), sys.argv[2:]
    with tempfile.TemporaryDirectory() as profile:
        pipe = f"cellformer{time.time_ns()}"
        user, accept = f"-env:UserInstallation=file://{profile}", f"--accept=pipe,name={pipe};urp;"
        office = subprocess.Popen(["soffice", user, "--headless", "--norestore", accept])
        desktop = connect(pipe)
        hidden = PropertyValue(Name="Hidden", Value=True)
        start = time.perf_counter()
        book = desktop.loadComponentFromURL(path.as_uri(), "_blank", 0, (hidden,))
        print(f"opened in {time.perf_counter() - start:.1f} s", flush=True)
        play = book.Sheets.getByName("Play")
        where = book.NamedRanges.getByName("sentence").Content.replace("$", "").split(".")[-1]
        cell = play.getCellRangeByName(where)
        for sentence in sentences:
            start = time.perf_counter()
            cell.String = sentence
            rows = range(RESULTS_ROW, RESULTS_ROW + N_SHOWN)
            words = [play.getCellByPosition(1, row).String for row in rows]
            shares = [play.getCellByPosition(4, row).Value for row in rows]
            seconds = time.perf_counter() - start
            message = play.getCellByPosition(2, MESSAGE_ROW).String
            print(f"{seconds:.1f} s  {sentence!r}: {message}")
            ranked = zip(words, shares, strict=True)
            print("   ", *(f"{word} {share:.4f}" for word, share in ranked), flush=True)
        book.close(True)
        desktop.terminate()
        office.wait(60)


main()
