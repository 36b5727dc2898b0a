"""Draw the first screen of every sheet of a workbook, as LibreOffice shows it.

    python docs/scripts/pictures.py dialogue-game.xlsx docs/ Play Heads

All sheets unless some are named. Needs LibreOffice (`soffice`), poppler (`pdftoppm`), Pillow.
"""

import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from PIL import Image, ImageChops

ROWS, WIDTH = 44, 215  # of a laptop's screen at 100 %: rows, and columns' width in characters
PRINTED = re.compile(r'<definedName name="_xlnm\.Print_[^>]*>[^<]*</definedName>')
FIT = '<pageSetUpPr fitToPage="1"/></sheetPr>'
MARGIN = 12  # pixels left around a trimmed picture


def draw(workbook: Path, folder: Path, wanted: list[str], dpi: int = 130) -> list[Path]:
    """A PNG per sheet."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        copy = Path(temporary) / "book.xlsx"
        names = _one_page_each(workbook, copy)
        profile = f"-env:UserInstallation={(copy.parent / 'profile').as_uri()}"
        convert = ["soffice", profile, "--headless", "--convert-to", "pdf", "--outdir"]
        subprocess.run([*convert, copy.parent, copy], check=True, capture_output=True)
        drawn = []
        for page, name in enumerate(names, 1):
            if not wanted or name in wanted:
                pages = ["-f", str(page), "-l", str(page), "-r", str(dpi), "-singlefile", "-png"]
                picture = copy.with_name("page")
                subprocess.run(["pdftoppm", *pages, copy.with_suffix(".pdf"), picture], check=True)
                target = folder / f"{workbook.stem}-{name.lower().replace(' ', '-')}.png"
                _trim(Image.open(picture.with_suffix(".png"))).save(target, optimize=True)
                drawn.append(target)
        return drawn


def _one_page_each(workbook: Path, copy: Path) -> list[str]:
    """Copy a workbook so that every sheet prints its first screen on one page; the names."""
    with zipfile.ZipFile(workbook) as old, zipfile.ZipFile(copy, "w") as new:
        for part in old.namelist():
            data = old.read(part).decode("utf-8") if part.endswith(".xml") else old.read(part)
            if part == "xl/workbook.xml":
                sheets = re.findall(r'<sheet name="([^"]+)"', data)
                parts = [f"xl/worksheets/sheet{k}.xml" for k in range(1, len(sheets) + 1)]
                ends = [_end(old.read(sheet)) for sheet in parts]
                areas = "".join(
                    f'<definedName name="_xlnm.Print_Area" localSheetId="{k}">'
                    f"'{name}'!$A$1:${end}${ROWS}</definedName>"
                    for k, (name, end) in enumerate(zip(sheets, ends, strict=True))
                )
                data = PRINTED.sub("", data).replace(' state="hidden"', "")
                data = data.replace("<definedNames>", "<definedNames>" + areas)
            if part.startswith("xl/worksheets/sheet"):
                data = re.sub(r"<(rowBreaks|headerFooter).*?</\1>", "", data)
                data = re.sub(r"<pageSetup[^>]*>", '<pageSetup orientation="landscape"/>', data)
                data = re.sub(r"<sheetPr>(.*?)</sheetPr>", r"\1", data)
                data = re.sub(r"(<tabColor[^>]*>)?(<dimension)", r"<sheetPr>\1" + FIT + r"\2", data)
            new.writestr(part, data)
    return sheets


def _end(sheet: bytes) -> str:
    """The letters of the last column of a sheet that a screen shows."""
    widths = {}
    for first, last, width in re.findall(rb'<col min="(\d+)" max="(\d+)" width="([\d.]+)"', sheet):
        for col in range(int(first), min(int(last), 100) + 1):
            widths[col] = float(width)
    total, col = 0.0, 0
    while total < WIDTH:
        col += 1
        total += widths.get(col, 9)
    letters = ""
    while col:
        col, letter = divmod(col - 1, 26)
        letters = chr(65 + letter) + letters
    return letters


def _trim(picture: Image.Image) -> Image.Image:
    white = Image.new(picture.mode, picture.size, "white")
    left, top, right, bottom = ImageChops.difference(picture, white).getbbox()
    return picture.crop((left - MARGIN, top - MARGIN, right + MARGIN, bottom + MARGIN))


if __name__ == "__main__":
    for picture in draw(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]):
        print(picture)
