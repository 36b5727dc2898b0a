"""Does the ledger name exactly what differs? Random edits and bad values, typed in LibreOffice.

    python benchmarks/ledger.py edits FOLDER [NAME] [--python /usr/bin/python3]
    python benchmarks/ledger.py bad FOLDER [NAME]

`edits` makes 50 random sets of one to three edits (weights, switches, dials, picks, the sentence)
and compares the ledger with what was typed, before and after saving; `bad` pastes values that no
cell should have, and counts the formulas that have errors. FOLDER keeps the workbook and what
LibreOffice answered. The second Python is the one that has LibreOffice's `uno` module.
"""

import argparse
import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np

import cellformer as cf
from cellformer.engine.studies.part_names import said
from cellformer.exporters.model.model_book import ModelBook

N_SETS = 50
Edit = tuple[str, int, int, Any]  # sheet, row, column, what is typed


def cell(book: ModelBook, name: str, i: int = 0, j: int = 0) -> tuple[str, int, int]:
    """Where a cell of a block stands."""
    return book.cell(name, i, j)


def random_edit(book: ModelBook, rng: np.random.Generator) -> tuple[Edit, str]:
    """An edit, and what the ledger has to say of it."""
    kind = rng.choice(["weight", "weight", "weight", "switch", "pick", "sentence", "dial"])
    switches = [b.name for b in book.graph if b.leaf == "switch"]
    words = book.labels["vocab"]
    if kind == "weight":
        blocks = [b for b in book.graph if b.kind == "weight" and b.name in book.places]
        block = blocks[rng.integers(len(blocks))]
        i, j = (int(rng.integers(n)) for n in block.shape)
        was, now = float(book.values[block.name][i, j]), round(float(rng.normal()), 2) + 3
        where = f"{block.name}[{i},{j}]" if block.whole.size > 1 else block.name
        where += ", transposed" * (book.places[block.name].turned and min(block.shape) > 1)
        return (*cell(book, block.name, i, j), now), f"{where} {told(was)} → {now:.15g}"
    if kind == "switch" and switches:
        name = switches[rng.integers(len(switches))]
        return (*cell(book, name), 0.0), f"{said(name.removesuffix('.switch'))} off"
    if kind == "pick":
        t, word = int(rng.integers(1, book.passage.n_prompt)), words[rng.integers(len(words))]
        return (*cell(book, "prompt.pick", t, 0), word), f"word {t} picked: {word}"
    if kind == "sentence":
        text = " ".join(words[k] for k in rng.integers(0, len(words), 3))
        return (*cell(book, "sentence"), text), f"sentence: {text[:40]}"
    number = round(float(rng.uniform(0.2, 0.9)), 2)
    return (*cell(book, "top_p"), number), f"top_p 1 → {number:.15g}"


def told(number: float) -> str:
    """A weight as the ledger rounds it."""
    return f"{round(number, 3) + 0.0:.15g}"


def sets(book: ModelBook, rng: np.random.Generator) -> list[list[tuple[Edit, str]]]:
    """One to three edits of different cells at a time; none first."""
    found: list[list[tuple[Edit, str]]] = [[]]
    while len(found) <= N_SETS:
        edits = {
            edit[:3]: (edit, text)
            for edit, text in (random_edit(book, rng) for _ in range(rng.integers(1, 4)))
        }
        blocks = [text.split("[")[0].split(" ")[0] for _, text in edits.values() if "[" in text]
        if len(set(blocks)) == len(blocks):  # of one block, the first alone is told whole
            found.append(list(edits.values()))
    return found


def right(line: str, texts: list[str]) -> bool:
    """Whether a line names those edits and no other."""
    if not texts:
        return line.startswith("no edits")
    count = "1 edit: " if len(texts) == 1 else f"{len(texts)} edits: "
    body, _, _ = line.removeprefix(count).partition(" · ")
    return line.startswith(count) and sorted(body.split("; ")) == sorted(texts)


def bad(book: ModelBook) -> list[list[Edit]]:
    """Values that should not be there, one after another."""
    values: list[tuple[str, Any]] = [
        *(("sentence", text) for text in ("", "<BOS> Mario chiama Paolo", "pietro CHIAMA paolo")),
        *(("temperature", x) for x in (0.0, -1.0, "abc", "")),
        *(("top_k", x) for x in (1000.0, -3.0, "abc", 2.5)),
        *(("top_p", x) for x in (0.0, -1.0, 2.0, "abc")),
        *(("choose", x) for x in ("foo", 7.0)),
        *(("look.position.instead", x) for x in (40.0, -2.0, "abc", 1.5)),
        *((f"look.{word}.instead", "Mario") for word in ("target", "rival")),
        *(("random", x) for x in ("abc", 5.0, -1.0)),
        *(("prompt.pick", x) for x in ("Mario", 99.0)),
    ]
    places = [(cell(book, name), value) for name, value in values]
    places += [(cell(book, "prompt.pick", len(book.passage.ids) - 1, 0), "Mario")]
    for block in book.graph:  # a text in the first cell of every kind of typed block
        if block.kind in ("weight", "setting") and not block.computed and block.name in book.places:
            places.append((cell(book, block.name), "hello"))
    how = (*cell(book, "choose"), "sampled")
    once = [[(*where, value)] for where, value in places]
    return once + [[how, *edits] for edits in once if edits[0][:3] != how[:3]]


def ask(book: ModelBook, folder: Path, edits: list[list[Edit]], python: str, **more: Any) -> Any:
    """What LibreOffice answers."""
    path = cf.write(book, folder / f"{book.title}.xlsx")
    said = book.shown["play.message"]
    watched = [book.named_cells["ledger"], (said.sheet, *said.cell(0, 0))]
    job = folder / "job.json"
    job.write_text(json.dumps({"path": str(path), "edits": edits, "watched": watched} | more))
    driver = Path(__file__).with_name("edits_in_libreoffice.py")
    subprocess.run([python, driver, job], check=True, env=dict(os.environ))
    return json.loads(job.with_suffix(".answers.json").read_text())


def main() -> None:
    """Ask, and say what is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("edits", "bad"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("name", nargs="?", default="dialogue-game")
    parser.add_argument("--python", default="/usr/bin/python3")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--saved", type=int, default=0, help="save every n-th, and look again")
    asked = parser.parse_args()
    asked.folder.mkdir(exist_ok=True)
    book = cf.build(asked.name)
    start, n_wrong = time.perf_counter(), 0
    if asked.what == "edits":
        wanted = sets(book, np.random.default_rng(asked.seed))
        edits = [[edit for edit, _ in edited] for edited in wanted]
        answers = ask(book, asked.folder, edits, asked.python, saved=asked.saved)
        for edited, answer in zip(wanted, answers, strict=True):
            texts = [text for _, text in edited]
            for line in (answer["shown"][0], *answer.get("saved", [])[:1]):
                if not right(line, texts) or answer["errors"]:
                    n_wrong += 1
                    print("WRONG", texts, "|", line, answer["errors"])
    else:
        edits = bad(book)
        answers = ask(book, asked.folder, edits, asked.python)
        for edit, answer in zip(edits, answers, strict=True):
            if answer["errors"]:
                n_wrong += 1
                print("ERRORS", edit, answer)
            elif asked.name == "dialogue-game" and len(edit) == 1:
                print(edit[0], "|", *answer["shown"], sep="\n    ")
    slowest = max(answer["seconds"] for answer in answers)
    print(
        f"{len(answers)} sets, {n_wrong} wrong, slowest edit {slowest:.3f} s,"
        f" {time.perf_counter() - start:.0f} s in all"
    )


if __name__ == "__main__":
    main()
