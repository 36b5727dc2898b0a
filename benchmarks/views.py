"""Do Machine, Lens, Attribution, Switches and the ledger speak of the sentence that is typed?

    python benchmarks/views.py [N]

N random sentences (20) are typed into dialogue-game, whose cached values are all wrong;
LibreOffice recomputes it each time. Every formula of those sheets is held against the engine's, and
the word at Play's target against the likeliest of the engine's forward pass of that sentence.
"""

import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
from conftest import libreoffice_after

import cellformer as cf
from cellformer.exporters.checking.verify import compare, read, read_values
from cellformer.exporters.model.block_sheets import ATTRIBUTION, LENS, PLAY, SWITCHES
from cellformer.exporters.pages import machine

SHEETS = ("Start", machine.SHEET, PLAY, LENS, ATTRIBUTION, SWITCHES)


def main() -> None:
    """Ask, and say what is wrong."""
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    model, book = cf.load("dialogue-game"), cf.build("dialogue-game")
    words, rng = book.labels["vocab"], np.random.default_rng(0)
    drawn = [rng.integers(0, len(words), rng.integers(1, 8)).tolist() for _ in range(n)]
    texts = [" ".join(words[k] for k in ids) for ids in drawn]
    n_wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        path = cf.write(book, Path(folder) / "built.xlsx")
        file, at = read(path), book.cell("sentence", 0, 0)
        cells = [cell for cell in file.formulas if cell[0] in SHEETS]
        edits = [{at: text} for text in texts]
        files = libreoffice_after(path, edits, Path(folder) / "office")
        for ids, text, shown in zip(drawn, texts, files, strict=True):
            after = book.edited({book.graph["sentence"][0, 0]: text})
            wanted = replace(file, formulas={cell: after.cell(*cell) for cell in cells})
            report = compare("libreoffice", wanted, read_values(shown, wanted))
            likeliest = int(model.graph(ids).values["logits"][-1].argmax())
            target = int(after(book.graph["target"][0, 0]))
            if not report.agrees or target != likeliest:
                n_wrong += 1
                print("WRONG", text, report, words[target], words[likeliest])
    print(f"{n} sentences, {len(cells):,} formulas each, {n_wrong} wrong")


if __name__ == "__main__":
    main()
