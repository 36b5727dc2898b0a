"""Draw one sheet of every workbook, and write docs/gallery.md with the pictures.

    python docs/scripts/gallery.py

Needs what `pictures.py` needs.
"""

import tempfile
from pathlib import Path

from pictures import draw
from PIL import Image

from cellformer import names, workbooks
from cellformer.exporters.file.xlsx import write

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "gallery"
PAGE = ROOT / "docs" / "gallery.md"
HEAD = """# The gallery

These are the worked examples of the essays and lecture notes behind this project. They are live:
you can change every number that the text prints. Each workbook suggests edits and says what they
do. [sources.md](sources.md) lists the printed numbers beside the recomputed ones, and says where a
source is wrong. `cellformer build NAME` writes one workbook. `cellformer build --all` writes all of
them, with their [pages](page.md) and an index to search.

"""
SHEETS = {  # the others: the sheet after Start
    "cat-sat": "Attention",
    "dialogue-game": "Play",
    "final-step": "Two searches",
    "fluffy-creature": "Printed",
    "induction": "Heads",
    "new-york": "Contexts",
    "positions": "Hands",
    "semantic-tiny": "Words",
    "shakespeare": "Play",
    "stories": "Words",
    "superposition": "Sparsity",
    "tool-call": "Belt",
    "two-layers": "Printed",
}
WIDTH, COLOURS = 900, 64


def picture(name: str) -> Path:
    """Draw the most characteristic sheet of a workbook."""
    book = names.book(name)
    sheet = SHEETS.get(name, list(book.sheets)[1])
    with tempfile.TemporaryDirectory() as folder:
        path = write(book, Path(folder) / f"{name}.xlsx")
        (drawn,) = draw(path, Path(folder), [sheet], dpi=100)
        image = Image.open(drawn).convert("RGB")
        image.thumbnail((WIDTH, WIDTH))
        target = FOLDER / f"{name}.png"
        image.quantize(COLOURS).save(target, optimize=True)
    return target


def page() -> str:
    """The gallery in Markdown: a table per topic, a line and a picture for each workbook."""
    first = workbooks.first()
    levels = " ".join(f"Level {k}: {what}." for k, what in workbooks.LEVELS.items())
    lines = [f"In learning order, from **`{first}`**. {levels}", ""]
    for topic, listed in workbooks.by_topic().items():
        lines += [f"## {topic}", "", "| | |", "|---|---|"]
        for name in listed:
            line = workbooks.title(name).partition(": ")[2]
            begin = "start here; " if name == first else ""
            about = f"**`{name}`** ({begin}level {workbooks.level(name)})<br>{line}"
            lines.append(f"| {about} | ![{name}](gallery/{name}.png) |")
        lines.append("")
    return HEAD + "\n".join(lines)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name in workbooks.names():
        print(picture(name))
    PAGE.write_text(page(), encoding="utf-8")
