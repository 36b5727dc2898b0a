"""Ask programs in JavaScript about every kind of workbook: HyperFormula, SheetJS, exceljs.

    npm ci --prefix tests/node
    PYTHONPATH=.:tests python benchmarks/javascript.py [FILE.xlsx ...]

HyperFormula recomputes each; what the readers find is compared with what our own reader finds.
Without files: the workbooks of benchmarks/audit.py. Seconds are of a processor.
"""

import resource
import sys
import tempfile
from pathlib import Path

import hyperformula
import readers
from audit import books

from cellformer.exporters.checking.verify import compare, read
from cellformer.exporters.file import xlsx
from cellformer.exporters.file.reading import WorkbookFile


def told(name: str, path: Path) -> None:
    """Print what each says of a workbook."""
    before = _seconds()
    (answer,) = hyperformula.recompute([WorkbookFile(path)])
    print(f"{name:<36} {_seconds() - before:6.1f} s  HyperFormula: ", end="")
    if answer.fault:
        print(answer.fault)
    else:
        verdict = compare("hyperformula", read(path), answer.values)
        print(f"{verdict.n_cells:,} formulas, largest {verdict.largest:.1e} at {verdict.where}")
    cells = readers.ours(WorkbookFile(path))
    for found in readers.read([path]):
        different = readers.differing(cells, found)
        if different:
            print(f"    {found.reader} reads {len(different)} cells otherwise: {different[0]}")
    sys.stdout.flush()


def _seconds() -> float:
    """Of this process and those that it started."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)


def main() -> None:
    """The files of the command line, or all kinds."""
    for name in sys.argv[1:]:
        told(name, Path(name))
    if len(sys.argv) > 1:
        return
    with tempfile.TemporaryDirectory() as folder:
        for name, book in books(Path(folder)):
            told(name, xlsx.write(book, Path(folder) / "book.xlsx"))


if __name__ == "__main__":
    main()
