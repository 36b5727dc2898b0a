"""How fast a page computes, beside numpy in the same run; and how soon it opens in Chromium.

    npm ci --prefix tests/node
    PYTHONPATH=.:tests:tests/web python benchmarks/page.py [WORKBOOK ...]

Milliseconds: the least and the median of 15. The next token is a sentence with a word more or less,
or of letters with another last one, and all that the model goes on with. The pages of large models:
page_large.mjs.
"""

import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from in_node import call
from pages import written
from test_page_values import BOOKS

from cellformer import names
from cellformer.engine import Evaluator
from cellformer.exporters.compose.book import Book
from cellformer.exporters.web import page

WORKBOOKS = ("dialogue-game", "shakespeare", "gradient-gpt2")
TIMES = 15
Times = tuple[float, float]  # the least, the median


def edits(book: Book) -> dict[str, list[list[Any]]]:
    """What is edited: values that change with each turn."""
    weights = [b.name for b in book.graph if b.kind == "weight" and b.shape[1] > 2]
    found = {
        "early weight": [[weights[0], 0, 1, 0.1 * k] for k in range(TIMES)],
        "late weight": [[weights[-1], 0, 1, 0.1 * k] for k in range(TIMES)],
    }
    if "sentence" in book.graph.blocks:
        text = str(book.values["sentence"][0, 0]).rstrip()
        other = text.rpartition(" ")[0] or f"{text[:-1]}."
        found["next token"] = [["sentence", 0, 0, one] for one in (other, text)]
    return found


def in_numpy(book: Book, cases: dict[str, list[list[Any]]]) -> dict[str, Times]:
    """What the engine takes."""
    live = Evaluator(book.graph)

    def edit(block: str, i: int, j: int, value: Any) -> None:
        live.set(block, i, j, value)
        live.recompute()

    found = {"full pass": timed(lambda k: live.run())}
    for name, some in cases.items():
        found[name] = timed(lambda k, some=some: edit(*some[k % len(some)]))
    return found


def timed(act: Callable[[int], object]) -> Times:
    """What is done again and again takes."""
    taken = []
    for k in range(TIMES):
        began = time.perf_counter()
        act(k)
        taken.append(1000 * (time.perf_counter() - began))
    return min(taken), sorted(taken)[TIMES // 2]


def in_node(path: Path, cases: dict[str, list[list[Any]]]) -> dict[str, Times]:
    """What the page takes."""
    path.with_name("cases.json").write_text(json.dumps(cases))
    script = Path(__file__).with_suffix(".mjs")
    command = ["node", str(script), str(path), str(path.with_name("cases.json")), str(TIMES)]
    done = subprocess.run(command, capture_output=True, check=True)
    return {name: (least, median) for name, (least, median) in json.loads(done.stdout).items()}


def opening(book: Book, folder: Path) -> list[float]:
    """How long it takes from asking for the file until the page has its values."""
    page.write(book, folder / "x.html")
    call("browsers.mjs", "begin", "chromium", shutil.which("chromium"))
    found = []
    for _ in range(5):
        found.append(
            call("browsers.mjs", "open", str(folder / "x.html"), [], str(folder / "v"))["took"]
        )
    return sorted(found)


def main(workbooks: Sequence[str]) -> None:
    """A line for each."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for workbook in workbooks:
            book = BOOKS[workbook]() if workbook in BOOKS else names.book(workbook)
            cases = edits(book)
            theirs = in_numpy(book, cases)
            ours = in_node(written(book, folder / "page.html"), cases)
            for what, (least, median) in ours.items():
                a, b = theirs[what]
                print(f"{workbook:<16} {what:<14} page {least:8.1f} {median:8.1f}", end="  ")
                print(
                    f"numpy {a:8.1f} {b:8.1f}  ratio {least / a:.2f} {median / b:.2f}", flush=True
                )
        opened = opening(names.book(workbooks[0]), folder)
        print(f"{workbooks[0]} opens in {opened[0]:.0f} ms at best, {opened[2]:.0f} at the median")


if __name__ == "__main__":
    main(sys.argv[1:] or WORKBOOKS)
