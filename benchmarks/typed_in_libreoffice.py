"""Type many texts into tokenizers' sheets in one LibreOffice, and say what ids each gives.

    /usr/bin/python3 benchmarks/typed_in_libreoffice.py JOBS.json

JOBS.json has a workbook's path, the texts, and where its cells stand, for each workbook; the
answers are written beside it, in JOBS.answers.json. `tokenizer_texts.py` makes the one and reads
the other. Runs under the Python that has LibreOffice's `uno` module (Debian: python3-uno).
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import uno  # noqa: F401  it makes com.sun.star importable
from com.sun.star.beans import PropertyValue
from office import connect


def main() -> None:
    """Do every job."""
    path = Path(sys.argv[1])
    jobs, answers = json.loads(path.read_text()), []
    with tempfile.TemporaryDirectory() as profile:
        pipe = f"cellformer{time.time_ns()}"
        user, accept = f"-env:UserInstallation=file://{profile}", f"--accept=pipe,name={pipe};urp;"
        office = subprocess.Popen(["soffice", user, "--headless", "--norestore", accept])
        desktop = connect(pipe)
        hidden = PropertyValue(Name="Hidden", Value=True)
        for job in jobs:
            url = Path(job["path"]).resolve().as_uri()
            book = desktop.loadComponentFromURL(url, "_blank", 0, (hidden,))
            answers.append([typed(book, text, job["cells"]) for text in job["texts"]])
            book.close(True)
        desktop.terminate()
        office.wait(60)
    path.with_suffix(".answers.json").write_text(json.dumps(answers))


def typed(book: object, text: str, cells: dict[str, list]) -> dict[str, object]:
    """What the cells show when a text is typed."""

    def at(name: str) -> object:
        sheet, top, left, bottom, right = cells[name]
        place = left, top, right, bottom
        return book.Sheets.getByName(sheet).getCellRangeByPosition(*place)

    at("sentence").getCellByPosition(0, 0).String = text
    shown = {name: at(name).DataArray[0] for name in cells if name != "sentence"}
    return {name: list(row) if name == "ids" else row[0] for name, row in shown.items()}


main()
