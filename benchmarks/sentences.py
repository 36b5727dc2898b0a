"""Twenty pairs of sentences, typed into a sentence encoder's workbook that LibreOffice has open:
the largest difference of the sheet's cosine from the engine's.

    PYTHONPATH=.:tests python benchmarks/sentences.py
"""

import tempfile
import time
from pathlib import Path

from conftest import libreoffice_after
from encoders import N_TOKENS, PAIRS, cosine, encoder

import cellformer as cf


def main() -> None:
    """Print every pair's cosine and the largest difference."""
    model, gaps = encoder("sentence"), []
    book = cf.build(model, prompt=PAIRS[0][0], second=PAIRS[0][1], n_tokens=N_TOKENS)
    with tempfile.TemporaryDirectory() as folder:
        path = cf.write(book, Path(folder) / "book.xlsx")
        names = ("sentence", "b.sentence")
        edits = [
            {book.cell(name, 0, 0): text for name, text in zip(names, pair, strict=True)}
            for pair in PAIRS
        ]
        begin = time.perf_counter()
        found = libreoffice_after(path, edits, Path(folder) / "office")
        seconds = time.perf_counter() - begin
        sheet, row, col = book.cell("cosine", 0, 0)
        cosines = [file[sheet][row, col] for file in found]
    for live, pair in zip(cosines, PAIRS, strict=True):
        expected = cosine(model, *pair)
        gaps.append(abs(float(live) - expected))
        print(f"{live:+.6f}  {gaps[-1]:.1e}  {pair}")
    print(f"{len(gaps)} pairs: largest difference {max(gaps):.1e}; {seconds:.0f} s")


if __name__ == "__main__":
    main()
