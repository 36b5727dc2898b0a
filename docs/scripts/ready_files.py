"""Build the workbooks and pages of examples/ready, which open without Python.

python docs/scripts/ready_files.py
"""

from pathlib import Path

from cellformer import names
from cellformer.exporters.file import xlsx
from cellformer.exporters.web import page

FOLDER = Path(__file__).parents[2] / "examples" / "ready"
WORKBOOKS = ("adder", "cat-sat", "digits", "dialogue-game")
PAGES = ("dialogue-game", "digits")


def build(folder: Path) -> list[Path]:
    """Write all of them into a folder."""
    books = {name: names.book(name) for name in WORKBOOKS}
    made = [xlsx.write(book, folder / f"{name}.xlsx") for name, book in books.items()]
    return made + [page.write(books[name], folder / f"{name}.html")[0] for name in PAGES]


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for path in build(FOLDER):
        print(f"{path.name}: {path.stat().st_size:,} bytes")
