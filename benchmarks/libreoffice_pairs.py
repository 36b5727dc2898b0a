"""How long LibreOffice takes with a workbook, beside what it takes with another build of it.

    /usr/bin/python3 benchmarks/libreoffice_pairs.py OLD.xlsx NEW.xlsx CELL VALUE [ROUNDS]

Every round opens both, in turns, and types into the cell (an address, or a block's name for its
first cell). Shown is the least processor time of all rounds, which other work on the machine
disturbs least, old and new, and the ratio: to open, to compute everything anew, and after an edit
until the cell's sheet, and until everything is computed.
"""

import sys
import tempfile
from pathlib import Path

import uno  # noqa: F401  it makes com.sun.star importable
from com.sun.star.beans import PropertyValue
from libreoffice_open import Office, cell_of, edited


def measured(path: Path, name: str, value: str) -> tuple[float, ...]:
    """The seconds to open a workbook, to compute it anew, and of an edit."""
    with tempfile.TemporaryDirectory() as folder:
        office = Office(folder)
        hidden = PropertyValue(Name="Hidden", Value=True)
        _, start = office.seconds()
        book = office.desktop.loadComponentFromURL(path.resolve().as_uri(), "_blank", 0, (hidden,))
        opened = office.seconds()[1] - start
        book.calculate()
        _, start = office.seconds()
        book.calculateAll()
        computed = office.seconds()[1] - start
        times = edited(office, book, cell_of(book, name), value)
        book.close(True)
        office.desktop.terminate()
        office.started.wait(60)
    return opened, computed, *times


def main() -> None:
    """Print a line for each measurement: old, new, ratio."""
    old, new, name, value, *rounds = sys.argv[1:]
    found: list[list[tuple[float, ...]]] = [[], []]
    for _ in range(int(rounds[0]) if rounds else 5):
        for times, path in zip(found, (old, new), strict=True):
            times.append(measured(Path(path), name, value))
    least = [[min(times) for times in zip(*rows, strict=True)] for rows in found]
    told = ("open", "compute all", "edit, its sheet", "edit, all")
    for what, before, now in zip(told, *least, strict=True):
        print(f"{what}: {1e3 * before:.1f} ms, {1e3 * now:.1f} ms, {now / before:.3f}")


main()
