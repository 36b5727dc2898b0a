"""Draw sheets of a workbook as pictures, as LibreOffice shows them.

    python docs/pictures.py cat-sat.xlsx docs/          # docs/cat-sat-play.png, ...

One picture per sheet, trimmed to what is on it. Needs LibreOffice (`soffice`), poppler
(`pdftoppm`) and Pillow.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from openpyxl import load_workbook
from PIL import Image, ImageChops

MARGIN = 12  # pixels left around a trimmed picture


def draw(workbook: Path, folder: Path, dpi: int = 150) -> list[Path]:
    """A PNG per sheet: each sheet in a copy of its own, fitted to one page."""
    drawn = []
    for name in load_workbook(workbook).sheetnames:
        with tempfile.TemporaryDirectory() as temporary:
            alone = Path(temporary) / "alone.xlsx"
            book = load_workbook(workbook, data_only=True)
            for sheet in book:
                sheet.sheet_state = "visible" if sheet.title == name else "hidden"
            book.active = book.sheetnames.index(name)
            book[name].page_setup.fitToHeight = 1
            book.save(alone)
            _to_png(alone, dpi)
            target = folder / f"{workbook.stem}-{name.lower().replace(' ', '-')}.png"
            _trim(Image.open(alone.with_suffix(".png"))).save(target, optimize=True)
            drawn.append(target)
    return drawn


def _to_png(workbook: Path, dpi: int) -> None:
    profile = f"-env:UserInstallation={(workbook.parent / 'profile').as_uri()}"
    convert = ["soffice", profile, "--headless", "--convert-to", "pdf", "--outdir"]
    subprocess.run([*convert, workbook.parent, workbook], check=True, capture_output=True)
    pdf = workbook.with_suffix(".pdf")
    stem = workbook.with_suffix("")
    png = ["pdftoppm", "-r", str(dpi), "-singlefile", "-png", pdf, stem]
    subprocess.run(png, check=True)


def _trim(picture: Image.Image) -> Image.Image:
    white = Image.new(picture.mode, picture.size, "white")
    left, top, right, bottom = ImageChops.difference(picture, white).getbbox()
    return picture.crop((left - MARGIN, top - MARGIN, right + MARGIN, bottom + MARGIN))


if __name__ == "__main__":
    for picture in draw(Path(sys.argv[1]), Path(sys.argv[2])):
        print(picture)
