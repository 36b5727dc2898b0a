"""Tokenizers of 2025 and 2026 in cells: the library's ids for texts of many scripts."""

from pathlib import Path

import numpy as np
import pytest
from conftest import InIronCalc, libreoffice_after, typed
from many_scripts import KINDS, of_scripts, texts
from test_tokenizing import Row, assert_right, book_of, row_of

from cellformer.engine.cells.graph import Graph
from cellformer.engine.text import tokenizing
from cellformer.engine.text.tokenizer import Library
from cellformer.exporters.checking.verify import poison
from cellformer.exporters.file import xlsx

pytestmark = pytest.mark.slow

LENGTH, N_TOKENS = 36, 32
IN_PROGRAMS = ("o200k", "qwen3.5", "deepseek", "clip", "metaspace never")


def in_engine(of: Library, sentences: list[str]) -> list[Row]:
    """What the engine says of each sentence."""
    graph = Graph(None, None)
    tokenizing.add(graph, of, "", N_TOKENS, LENGTH)
    found = []
    for text in sentences:
        graph.fill("sentence", np.array([[text]], dtype=object))
        ids, *others = (
            graph.values[f"tokenizer.{leaf}"] for leaf in ("ids", "n_ids", "fine", "message")
        )
        found.append(Row(ids[:, 0], *(other[0, 0] for other in others)))
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_many_scripts_in_the_engine(kind: str) -> None:
    of, sentences = of_scripts(kind), texts(14, 12, seed=len(kind))
    rows = in_engine(of, sentences)
    right = [assert_right(of, text, row) for text, row in zip(sentences, rows, strict=True)]
    assert sum(right) >= 0.85 * len(right)


@pytest.mark.parametrize("kind", IN_PROGRAMS)
def test_many_scripts_in_programs(kind: str, tmp_path: Path, libreoffice) -> None:
    """From wrong values, in LibreOffice and IronCalc."""
    of, sentences = of_scripts(kind), texts(24, 8, seed=1)[:4]
    sentences += ["q\u0307\u0323 ế \u1100\u1161\u11a8", "don't 1234 <mask>x"]
    book = book_of(of, length=30)
    plain = xlsx.write(book, tmp_path / "plain.xlsx")
    poisoned = tmp_path / "wrong.xlsx"
    poison(plain, poisoned)
    sentence, (first, *others) = book.cell("sentence", 0, 0), sentences
    path = typed(poisoned, tmp_path / "typed.xlsx", {sentence: first})
    edits = [{}, *({sentence: text} for text in others)]
    for text, file in zip(sentences, libreoffice_after(path, edits, tmp_path / "o"), strict=True):
        assert_right(of, text, row_of(book, lambda at, file=file: file[at[0]][at[1:]]))
    sheet = InIronCalc(poisoned)
    for text in sentences:
        if text.strip() and text[0] not in "='+-" and not text.replace(".", "").isdigit():
            with sheet.typed({sentence: text}):
                assert_right(of, text, row_of(book, sheet.__getitem__))
