"""Hold every kind of workbook to Excel's rules; prints what each breaks, and the time it takes.

    PYTHONPATH=. python benchmarks/audit.py [FILE.xlsx ...]

Without files: the gallery, every golden model, small and large, with a live part, with a long
prompt, and random models of 3,000 and of 20,000 words.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import cellformer as cf
from cellformer import workbooks
from cellformer.engine.models import checkpoint
from cellformer.engine.models.generate import passage
from cellformer.exporters.assemble import model_workbook
from cellformer.exporters.checking.audit import audit
from cellformer.exporters.compose.book import Book
from cellformer.exporters.file import xlsx
from cellformer.exporters.model.plan import Limits

ROOT = Path(__file__).parent.parent
GOLDEN = sorted(path.parent for path in (ROOT / "tests" / "golden").glob("*/config.json"))
IDS = [1, 2, 0, 2, 1]
LONG = 300  # tokens of a prompt


def books(folder: Path) -> Iterator[tuple[str, Book]]:
    """Every kind of workbook, by name."""
    for name in workbooks.names():
        yield name, cf.build(name)
    for path in GOLDEN:
        model = checkpoint.load(path)
        words = passage(model, IDS)
        yield f"{path.name} small", model_workbook.build("m", model, words)
        large = model_workbook.build("m", model, words, limits=Limits(words=1))
        yield f"{path.name} large", large
        yield (
            f"{path.name} live",
            model_workbook.build("m", model, passage(model, IDS), ("blocks.0",)),
        )
    for n_words in (3000, 20_000, 50):
        made = folder / str(n_words)
        sizes = [str(n) for n in ((2, 64, 4) if n_words > 50 else (1, 4, 1)) + (n_words, LONG)]
        subprocess.run(
            [sys.executable, ROOT / "benchmarks/gpt2_small.py", made, *sizes], check=True
        )
        model = checkpoint.load(made)
        ids = [13, 7, 2, 44] if n_words > 50 else [k % 50 for k in range(LONG)]
        yield (
            f"{n_words} words, {len(ids)} tokens",
            model_workbook.build("m", model, passage(model, ids)),
        )
        if n_words > 50:
            live = model_workbook.build("m", model, passage(model, ids), ("blocks.1",))
            yield f"{n_words} words, live", live


def told(name: str, path: Path) -> None:
    """Print what a workbook breaks."""
    start = time.process_time()
    faults = audit(path)
    print(
        f"{name:<36} {time.process_time() - start:6.1f} s  {faults or 'keeps every rule'}",
        flush=True,
    )


def main() -> None:
    """The files of the command line, or all kinds."""
    for name in sys.argv[1:]:
        told(name, Path(name))
    if len(sys.argv) > 1:
        return
    with tempfile.TemporaryDirectory() as folder:
        for name, book in books(Path(folder)):
            path = xlsx.write(book, Path(folder) / "book.xlsx")
            told(name, path)


if __name__ == "__main__":
    main()
