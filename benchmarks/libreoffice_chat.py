"""Ask a chat model's workbook a question in LibreOffice, and type its answer token by token.

    cellformer build smollm2 --chat --tokens 46 -o chat.xlsx
    /usr/bin/python3 benchmarks/libreoffice_chat.py chat.xlsx "What is the capital of Italy?"

Runs under the Python that has LibreOffice's `uno` module. Where a workbook ranks one next token,
the reader types the answer so far, which Play shows with the next token, until ∎ ends it. Prints,
as JSON lines, the seconds on the clock and of the processor to open the file and for each token,
and the ids and the answer that the sheet shows.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import uno  # noqa: F401  it makes com.sun.star importable
from com.sun.star.beans import PropertyValue
from libreoffice_sentences import Clock, cells_of
from office import connect

MOST = 12  # tokens of an answer
END = "∎"


def main(path: str, question: str) -> None:
    """Open, ask, and go on until the end."""
    with tempfile.TemporaryDirectory() as profile:
        pipe = f"cellformer{time.time_ns()}"
        user, accept = f"-env:UserInstallation=file://{profile}", f"--accept=pipe,name={pipe};urp;"
        office = subprocess.Popen(["soffice", user, "--headless", "--norestore", accept])
        desktop, clock = connect(pipe), Clock(profile)
        hidden = PropertyValue(Name="Hidden", Value=True)
        url = Path(path).resolve().as_uri()
        book = desktop.loadComponentFromURL(url, "_blank", 0, (hidden,))
        told(clock, opened=path)
        answer = ""
        for k in range(MOST):
            typed(book, *(("chat.begun", answer) if k else ("chat.you", question)))
            ids = [int(i) for i in cells_of(book, "tokenizer.ids").DataArray[0] if i >= 0]
            answer = shown(book)
            told(clock, answer=answer, ids=ids)
            if answer.endswith(END):
                break
        book.setModified(False)
        book.close(True)
        desktop.terminate()
        office.wait(60)


def typed(book: object, name: str, text: str) -> None:
    """Type into a cell that has a name."""
    cells_of(book, name).getCellByPosition(0, 0).String = text


def shown(book: object) -> str:
    """What Play shows as the answer so far with its next token."""
    play = book.Sheets.getByName("Play")
    labels = [row[0] for row in play.getCellRangeByName("B1:B40").DataArray]
    return play.getCellByPosition(2, labels.index("and now")).String


def told(clock: Clock, **found: object) -> None:
    """Print what was found, and the seconds that it took."""
    print(json.dumps({"seconds": str(clock), **found}, ensure_ascii=False), flush=True)


main(*sys.argv[1:])
