"""Draw one sheet of every workbook, and put the pictures into README's section on the gallery.

    python docs/gallery.py

Needs what `pictures.py` needs.
"""

import tempfile
from pathlib import Path

from pictures import draw
from PIL import Image

import workbooks
from cellformer import names as loading
from exporters.xlsx import write

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "docs" / "gallery"
BEGIN, END = "<!-- gallery -->\n", "<!-- end of gallery -->\n"
SHEETS = {  # where it is not the sheet after Start
    "cat-sat": "Block 0",
    "fluffy-creature": "Printed",
    "induction": "Heads",
    "semantic-tiny": "Words",
    "two-layers": "Printed",
}
WIDTH, COLOURS = 900, 64


def picture(name: str) -> Path:
    """Draw the sheet of a workbook that shows best what it is."""
    book = loading.book(name)
    sheet = SHEETS.get(name, list(book.sheets)[1])
    with tempfile.TemporaryDirectory() as folder:
        path = write(book, Path(folder) / f"{name}.xlsx")
        (drawn,) = draw(path, Path(folder), [sheet], dpi=100)
        image = Image.open(drawn).convert("RGB")
        image.thumbnail((WIDTH, WIDTH))
        target = FOLDER / f"{name}.png"
        image.quantize(COLOURS).save(target, optimize=True)
    return target


def section() -> str:
    """The gallery in Markdown: a table per topic, a line and a picture for each workbook."""
    lines = []
    for topic, names in workbooks.by_topic().items():
        lines += [f"### {topic}", "", "| | |", "|---|---|"]
        for name in names:
            line = workbooks.title(name).partition(": ")[2]
            lines.append(f"| **`{name}`**<br>{line} | ![{name}](docs/gallery/{name}.png) |")
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name in workbooks.names():
        print(picture(name))
    readme = ROOT / "README.md"
    before, _, rest = readme.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    readme.write_text(before + BEGIN + section() + END + after)
