"""Time edits in LibreOffice: argv is a workbook, a count, and two cells (sheet row column each).

Runs under the Python that has LibreOffice's `uno` module (Debian: python3-uno). Prints the median
seconds from setting the first cell to reading the second and, on standard error, those to open.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from office import connect


def main() -> None:
    """Open, edit n times, print the median."""
    path, n = sys.argv[1], int(sys.argv[2])
    sheet, row, col, to_sheet, to_row, to_col = sys.argv[3:9]
    with tempfile.TemporaryDirectory() as profile:
        pipe = f"cellformer{time.time_ns()}"
        office = subprocess.Popen(
            [
                "soffice",
                f"-env:UserInstallation=file://{profile}",
                "--headless",
                "--norestore",
                f"--accept=pipe,name={pipe};urp;",
            ]
        )
        desktop = connect(pipe)
        start = time.perf_counter()
        book = desktop.loadComponentFromURL(Path(path).resolve().as_uri(), "_blank", 0, ())
        print(f"opened in {time.perf_counter() - start:.2f} s", file=sys.stderr)
        book.calculate()  # as a window does when it is idle; before that no edit is followed
        source = book.Sheets.getByName(sheet).getCellByPosition(int(col), int(row))
        target = book.Sheets.getByName(to_sheet).getCellByPosition(int(to_col), int(to_row))
        times = []
        for k in range(n):
            start = time.perf_counter()
            source.Value = k % 7 + 0.5
            _ = target.Value
            times.append(time.perf_counter() - start)
        book.close(True)
        desktop.terminate()
        office.wait(30)
    print(median(times))


main()
