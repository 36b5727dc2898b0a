"""Ask Microsoft's Open XML SDK about every kind of workbook; prints what it finds, and the count.

    npm ci --prefix tests/node
    PYTHONPATH=.:tests python benchmarks/schema.py [FILE.xlsx ...]

Without files: the small ones of tests/every_kind.py, the gallery, its exercises of each level in
both languages, and the corner of every golden model, small, large and with a live part.
"""

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from conftest import cli
from corners import corner
from every_kind import KINDS
from validator import OFFICES, faults

from cellformer import workbooks
from cellformer.engine.models import checkpoint
from cellformer.engine.models.generate import passage
from cellformer.exporters.assemble import model_workbook
from cellformer.exporters.file.xlsx import write
from cellformer.exporters.model.plan import Limits
from cellformer.names import book

ROOT = Path(__file__).parent.parent
GOLDEN = sorted(path.parent.name for path in (ROOT / "tests" / "golden").glob("*/config.json"))
PARTS: dict[str, tuple[int, tuple[str, ...]]] = {  # the most words across a sheet, what is live
    "small": (Limits().words, ()),
    "large": (1, ()),
    "live": (Limits().words, ("blocks.0",)),
}


def files(folder: Path) -> Iterator[tuple[str, Path]]:
    """Every kind of workbook by name, each in a place that the next one takes."""
    for kind, made in KINDS.items():
        (inside := folder / f"kind {kind}").mkdir()
        yield kind, made(inside)
    for name in workbooks.names():
        yield name, write(book(name), folder / "book.xlsx")
        for level in ("1", "2", "3"):
            for language in ("en", "it"):
                asked = ("--exercise", "--level", level, "--lang", language)
                if cli("build", name, *asked, "-o", folder / "book.xlsx").code == 0:
                    yield f"{name}, exercise, level {level}, {language}", folder / "book.xlsx"
    for name in GOLDEN:
        model = checkpoint.load(corner(name, folder / name))
        for part, (words, live) in PARTS.items():
            read = passage(model, [1, 2, 0])
            made = model_workbook.build("m", model, read, live, limits=Limits(words=words))
            yield f"{name} {part}", write(made, folder / "book.xlsx")


def told(name: str, path: Path, offices: tuple[str, ...]) -> bool:
    """Print what is found in a workbook; whether it is valid."""
    found = {office: faults(path, office) for office in offices}
    for office, wrong in found.items():
        for fault in wrong:
            print(f"{name}: {office}: {fault}", flush=True)
    return not any(found.values())


def main() -> None:
    """The files of the command line, as three versions of Excel see them; or all kinds."""
    if named := sys.argv[1:]:
        valid = [told(name, Path(name), OFFICES) for name in named]
    else:
        with tempfile.TemporaryDirectory() as folder:
            valid = [told(name, path, OFFICES[-1:]) for name, path in files(Path(folder))]
    print(f"{sum(valid)} of {len(valid)} files are valid")


if __name__ == "__main__":
    main()
