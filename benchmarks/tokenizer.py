"""A tokenizer of GPT-2's size in a sheet: seconds, megabytes, and whether its ids are right.

Learns 50,257 byte pairs from the source of Python's own library, types 50 texts of up to 60
characters into the sheet, has LibreOffice recompute all of it each time from wrong values, and
compares every id with the `tokenizers` library.

    PYTHONPATH=.:tests:tests/models python benchmarks/tokenizer.py DIR
    /usr/bin/python3 benchmarks/libreoffice_sentences.py DIR/plain.xlsx "Once upon a time" ...

leaves the workbook in DIR, for its seconds to open and to edit.
"""

import sys
import sysconfig
import time
from pathlib import Path

from learnt import texts
from libreoffice import office, recomputed
from test_tokenizing import assert_right, book_of, in_engine, row_of
from tokenizers import Tokenizer, models, trainers
from tokenizers import pre_tokenizers as pre

from cellformer.engine.text.tokenizer import Library
from cellformer.exporters.checking.verify import poison
from cellformer.exporters.file import xlsx

N_TEXTS, LENGTH, SIZE = 50, 60, 50_257


def learn() -> Library:
    """A byte-level BPE of GPT-2's size and splitting."""
    found = Tokenizer(models.BPE())
    found.pre_tokenizer = pre.ByteLevel(add_prefix_space=False)
    alphabet = pre.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=SIZE, initial_alphabet=alphabet, show_progress=False)
    folder = Path(sysconfig.get_path("stdlib"))
    sources = (path.read_bytes().decode("utf-8", "ignore") for path in sorted(folder.rglob("*.py")))
    found.train_from_iterator(sources, trainer)
    return Library(found, found.get_vocab_size())


def main() -> None:
    """Learn the tokenizer, and measure it."""
    tokenizer = learn()
    print(f"{tokenizer.n:,} pieces")
    folder = Path(sys.argv[1])
    folder.mkdir(exist_ok=True)
    measure(tokenizer, folder)


def measure(tokenizer: Library, folder: Path) -> None:
    """Build, write, recompute, compare; each with its seconds."""
    begin = time.perf_counter()
    book = book_of(tokenizer, "Once upon a time there was a spreadsheet", LENGTH)
    book.graph.values  # noqa: B018
    print(
        f"tables in the engine: {time.perf_counter() - begin:.1f} s, {book.n_formulas:,} formulas"
    )
    begin, plain = time.perf_counter(), folder / "plain.xlsx"
    xlsx.write(book, plain)
    size = plain.stat().st_size / 1e6
    print(f"written: {time.perf_counter() - begin:.1f} s, {size:.2f} MB")
    wrong = folder / "wrong.xlsx"
    poison(plain, wrong)
    sentences = texts(N_TEXTS, LENGTH, seed=1)
    sentence, seconds = book.cell("sentence", 0, 0), []
    office()  # has started before it is measured
    for n in (1, N_TEXTS):
        begin, edits = time.perf_counter(), [{sentence: text} for text in sentences[:n]]
        told = recomputed(wrong, edits, folder / f"typed {n}")
        seconds.append(time.perf_counter() - begin)
    each = (seconds[1] - seconds[0]) / (N_TEXTS - 1)
    print(f"LibreOffice, loaded and recomputed: {seconds[0]:.1f} s, and {each:.2f} s a sentence")
    rows = [row_of(book, lambda at, shown=shown: shown[at[0]][at[1:]]) for shown in told]
    fine = [assert_right(tokenizer, *each) for each in zip(sentences, rows, strict=True)]
    print(f"{sum(fine)} of {N_TEXTS} texts have the library's ids, the others a message")
    begin = time.perf_counter()
    for text in sentences:
        assert_right(tokenizer, text, in_engine(book.graph, text))
    print(f"the engine: {(time.perf_counter() - begin) / N_TEXTS:.2f} s a sentence")


if __name__ == "__main__":
    main()
