"""Photograph the six first screens that README shows, into docs/first-screens.

    python docs/scripts/first_screens.py

Needs what `photograph.py` needs, and Pillow.
"""

import tempfile
from pathlib import Path

from photograph import photograph
from PIL import Image

from cellformer import names
from cellformer.exporters.file.xlsx import write

FOLDER = Path(__file__).parents[1] / "first-screens"
SHOWN = {
    "dialogue-game": ["Start", "Machine", "Play", "Block 0", "Heads"],
    "cat-sat": ["Heads"],
}
SHEET = (0, 127, 1350, 728)  # of the window: the sheet, from its column letters to its tabs
COLOURS = 64


def cut(picture: Path) -> Path:
    """The sheet alone, in few colours."""
    target = FOLDER / picture.name
    sheet = Image.open(picture).convert("RGB").crop(SHEET)
    sheet.quantize(COLOURS).save(target, optimize=True)
    return target


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for name, sheets in SHOWN.items():
            path = write(names.book(name), folder / f"{name}.xlsx")
            for picture in photograph([path], folder, sheets):
                print(cut(picture))
