"""Write into the lessons how many pages workbooks print on, as LibreOffice counts them.

    python docs/scripts/printed_pages.py

A mark is a comment of Markdown: `<!--printed cat-sat-->26<!--/-->`. Needs LibreOffice (`soffice`)
and poppler (`pdfinfo`).
"""

import re
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from cellformer import names
from cellformer.exporters.file.xlsx import write

LESSONS = Path(__file__).parents[1] / "teach"
MARKED = re.compile(r"(<!--printed ([\w-]+)-->)(\d*)(<!--/-->)")


@cache
def n_pages(name: str) -> int:
    """The pages of a workbook, if all of it is printed."""
    with tempfile.TemporaryDirectory() as folder:
        path = write(names.book(name), Path(folder) / "book.xlsx")
        profile = f"-env:UserInstallation={(path.parent / 'profile').as_uri()}"
        convert = ["soffice", profile, "--headless", "--convert-to", "pdf", "--outdir", folder]
        subprocess.run([*convert, path], check=True, capture_output=True)
        told = subprocess.run(
            ["pdfinfo", path.with_suffix(".pdf")], check=True, stdout=subprocess.PIPE
        )
    return int(re.findall(r"Pages:\s+(\d+)", told.stdout.decode())[0])


def main() -> None:
    """Write every lesson's counts anew."""
    for lesson in LESSONS.glob("*.md"):
        text = lesson.read_text(encoding="utf-8")
        counted = MARKED.sub(lambda mark: f"{mark[1]}{n_pages(mark[2])}{mark[4]}", text)
        lesson.write_text(counted, encoding="utf-8")


if __name__ == "__main__":
    main()
