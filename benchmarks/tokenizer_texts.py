"""Random texts in every kind of tokenizer's sheet, recomputed by LibreOffice from wrong values.

Prints, for each kind, how many of the texts have exactly the library's ids, how many a message, and
what is neither. Argv: how many texts (500), and the kinds (all).

    PYTHONPATH=.:tests:tests/models python benchmarks/tokenizer_texts.py 500 gpt2 bert
"""

import sys
import tempfile
import time
from pathlib import Path

from test_tokenizing import EVERY_KIND, assert_right, in_libreoffice, tokenizer, tried

AT_ONCE = 50  # copies of the sheet in a file


def main() -> None:
    """Try each kind."""
    n, kinds = int((sys.argv[1:] or [500])[0]), sys.argv[2:] or EVERY_KIND
    for kind in kinds:
        begin, wrong, fine = time.perf_counter(), [], 0
        for first in range(0, n, AT_ONCE):
            sentences = tried(kind, n)[first : first + AT_ONCE]
            with tempfile.TemporaryDirectory() as folder:
                rows = in_libreoffice({kind: sentences}, Path(folder))[kind]
            for text, row in zip(sentences, rows, strict=True):
                try:
                    fine += assert_right(tokenizer(kind), text, row)
                except AssertionError as error:
                    wrong.append(str(error))
        seconds = time.perf_counter() - begin
        told = n - fine - len(wrong)
        print(f"{kind}: {fine} right, {told} told, {len(wrong)} wrong; {seconds:.0f} s", flush=True)
        print(*wrong, sep="\n", flush=True) if wrong else None


if __name__ == "__main__":
    main()
