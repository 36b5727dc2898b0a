"""Tokenizers in cells give the ids of the library that they were learnt with."""

import json
import zipfile
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

import numpy as np
import pytest
from conftest import InIronCalc, _with_cell, needs, poison, recalculate_in_libreoffice
from learnt import KINDS, LINES, learnt, texts
from tokenizers import Regex, Tokenizer
from tokenizers import pre_tokenizers as pre

from engine import InputError, WordList
from engine.cells.evaluator import Evaluator
from engine.cells.graph import Graph
from engine.models import tokenizing
from engine.models.tokenizer import Characters, IdsOnly, Library
from engine.models.tokenizer import Tokenizer as AnyTokenizer
from exporters import xlsx
from exporters.book import Book
from exporters.pages import tokenizer as page
from exporters.reading import WorkbookFile

LENGTH, N_TOKENS = 24, 40
WORDS = WordList(("the", "cat", "sat", "The", "on", "Ägypten", "don't", "😀", "mat."))
OURS = {"words": WORDS, "characters": Characters(tuple(sorted(set("".join(LINES[:900])))))}
EVERY_KIND = [*KINDS, *OURS]
OUTSIDE = ("unigram nfkc", "unigram of words", "qwen2")  # where accents alone are told


def tokenizer(kind: str) -> AnyTokenizer:
    return OURS.get(kind) or learnt(kind)


def expected(of: AnyTokenizer, text: str) -> list[int] | None:
    """The ids; None where the text has none."""
    if isinstance(of, Library):
        return list(of.inner.encode(text).ids)
    try:
        return of.encode(text)
    except InputError:
        return None


def tried(kind: str, n: int, length: int = LENGTH) -> list[str]:
    """Random texts; of words that a list has, in part."""
    found = texts(n, length, seed=EVERY_KIND.index(kind))
    if kind == "words":
        rng = np.random.default_rng(0)
        for k in range(0, n, 2):
            words = [WORDS.words[i] for i in rng.integers(0, 9, rng.integers(0, 6))]
            found[k] = rng.choice([" ", "  ", "\n", "\t"]).join(words)[:length]
    return found


class Row:
    """What a sheet, or the engine, says of one sentence."""

    def __init__(self, ids: Iterable[float], n_ids: float, fine: float, message: str):
        self.ids, self.n_ids = [*map(int, ids)], int(n_ids)
        self.fine, self.message = fine, message


def assert_right(of: AnyTokenizer, text: str, row: Row) -> bool:
    """Exactly the library's ids, or a message and none; whether there were ids."""
    wanted = expected(of, text)
    if row.fine:
        assert row.ids == [*(wanted or ()), *[-1] * (N_TOKENS - row.n_ids)], (text, row.message)
        assert wanted is not None and row.n_ids == len(wanted), (text, row.message)
    else:
        assert set(row.ids) == {-1} and row.n_ids == 0 and row.message, (text, row.message)
    return bool(row.fine)


def graph_of(kind: str) -> Graph:
    graph = Graph(None, None)
    tokenizing.add(graph, tokenizer(kind), "", N_TOKENS, LENGTH)
    return graph


def in_engine(graph: Graph, text: str) -> Row:
    graph.fill("sentence", np.array([[text]], dtype=object))
    at = {leaf: graph.values[f"tokenizer.{leaf}"] for leaf in ("ids", "n_ids", "fine", "message")}
    one = [at[leaf][0, 0] for leaf in ("n_ids", "fine", "message")]
    return Row(at["ids"][:, 0], *one)


@pytest.mark.parametrize("kind", EVERY_KIND)
def test_the_engine_gives_the_librarys_ids(kind: str) -> None:
    graph, of = graph_of(kind), tokenizer(kind)
    found = [assert_right(of, text, in_engine(graph, text)) for text in tried(kind, 60)]
    assert sum(found) > len(found) * (0.4 if kind in OURS else 0.75)


# --- in spreadsheet programs ------------------------------------------------------------------


def book_of(of: AnyTokenizer, text: str = "", length: int = LENGTH) -> Book:
    book = Book("A tokenizer")
    tokenizing.add(book.graph, of, text, N_TOKENS, length)
    page.lay_out(book)
    return book


def of_many(path: Path, target: Path, sentences: Sequence[str], cell: str) -> None:
    """A workbook with a copy of the tokenizer's sheet for each sentence, typed in a cell."""
    part = WorkbookFile(path).parts[page.SHEET]
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, True, 1) as new:
        sheet = old.read(part)
        names, links, types = [], [], []
        for k, sentence in enumerate(sentences):
            new.writestr(f"xl/worksheets/copy{k}.xml", _with_cell(sheet, cell, sentence))
            names.append(f'<sheet name="T{k}" sheetId="{k + 100}" r:id="copy{k}"/>')
            links.append(
                f'<Relationship Id="copy{k}" Target="worksheets/copy{k}.xml" Type="http://schemas.'
                'openxmlformats.org/officeDocument/2006/relationships/worksheet"/>'
            )
            types.append(
                f'<Override PartName="/xl/worksheets/copy{k}.xml" ContentType="application/'
                'vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"/>'
            )
        added = {
            "xl/workbook.xml": ("</sheets>", names),
            "xl/_rels/workbook.xml.rels": ("</Relationships>", links),
            "[Content_Types].xml": ("</Types>", types),
        }
        for name in old.namelist():
            data = old.read(name)
            if name in added:
                end, more = added[name]
                data = data.replace(end.encode(), ("".join(more) + end).encode())
            new.writestr(name, data)


def rows_in(file: WorkbookFile, sheets: Sequence[str], book: Book) -> list[Row]:
    """What each copy of the sheet says."""
    found = []
    for sheet in sheets:
        cells = file[sheet]

        def at(leaf: str, k: int = 0, cells=cells) -> object:
            _, row, col = book.cell(f"tokenizer.{leaf}", k, 0)
            return cells.cell((row, col)).value

        ids = [at("ids", k) for k in range(N_TOKENS)]
        found.append(Row(ids, at("n_ids"), at("fine"), at("message")))
    return found


def in_libreoffice(kinds: Sequence[str], n: int, folder: Path) -> dict[str, list[Row]]:
    """The sentences of each kind, from wrong values, in one start of the program."""
    needs("libreoffice")
    books = {kind: book_of(tokenizer(kind)) for kind in kinds}
    paths = []
    for kind, book in books.items():
        plain, many = folder / "plain.xlsx", folder / f"many-{kind}.xlsx"
        xlsx.write(book, plain)
        wrong = folder / "wrong.xlsx"
        poison(plain, wrong)
        of_many(wrong, many, tried(kind, n), SENTENCE)
        paths.append(many)
    done = recalculate_in_libreoffice(paths, folder / "out")
    return {
        kind: rows_in(WorkbookFile(path), [f"T{k}" for k in range(n)], books[kind])
        for kind, path in zip(kinds, done, strict=True)
    }


SENTENCE = "B5"


@pytest.mark.office
def test_libreoffice_gives_the_librarys_ids(tmp_path: Path) -> None:
    n = 12
    for kind, rows in in_libreoffice(EVERY_KIND, n, tmp_path).items():
        for text, row in zip(tried(kind, n), rows, strict=True):
            assert_right(tokenizer(kind), text, row)
