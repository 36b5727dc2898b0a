"""Draw a workbook's sheets as pictures, as LibreOffice shows them.

    python docs/pictures.py cat-sat.xlsx docs/        # docs/cat-sat-1.png, -2, ...

Needs LibreOffice (`soffice`) and poppler (`pdftoppm`).
"""

import subprocess
import sys
import tempfile
from pathlib import Path


def draw(workbook: Path, folder: Path, dpi: int = 80) -> list[Path]:
    """One PNG per printed page of the workbook."""
    with tempfile.TemporaryDirectory() as temporary:
        profile = f"-env:UserInstallation=file://{temporary}/profile"
        convert = ["soffice", profile, "--headless", "--convert-to", "pdf", "--outdir", temporary]
        subprocess.run([*convert, str(workbook)], check=True, capture_output=True)
        pdf = Path(temporary) / f"{workbook.stem}.pdf"
        stem = folder / workbook.stem
        subprocess.run(["pdftoppm", "-r", str(dpi), "-png", str(pdf), str(stem)], check=True)
    return sorted(folder.glob(f"{workbook.stem}-*.png"))


if __name__ == "__main__":
    for picture in draw(Path(sys.argv[1]), Path(sys.argv[2])):
        print(picture)
