"""n-grams, and sampling's sheet Last row: counts and logits again, in plain Python."""

from collections import Counter

import numpy as np
import pytest
from conftest import default_book

from cellformer.workbooks import n_grams
from cellformer.workbooks.sampling import last_row


def test_counts_of_the_speech() -> None:
    book = default_book("n-grams")
    shown = book.clean(book.graph["growth"].area)
    words = n_grams.WORDS
    for n in n_grams.SIZES:
        ends = [tuple(words[t - n + 1 : t + 1]) for t in range(n - 1, len(words))]
        counts, beginning = Counter(ends), {*ends[: n_grams.KNOWN - n + 1]}
        once = sum(count == 1 for count in counts.values())
        known = np.mean([x in beginning for x in ends[n_grams.KNOWN - n + 1 :]])
        row = [len({*words}) ** n, len(ends), len(counts), once, once / len(counts), known]
        assert shown[:, n - 1] == pytest.approx(row, abs=1e-9)


def test_figures_of_a_text_file(tmp_path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("To be, or not to be: to be or not\n" * 20)
    found = n_grams.measure(path)
    assert found[0] == (4, 0, 1.0)
    assert found[1] == (5, 0, 1.0)


def test_last_row_of_a_dummy() -> None:
    book = default_book("sampling")
    logits = (np.array(last_row.FINAL) @ last_row.UNEMBED)[-1]
    assert book.clean(book.graph["last_row"].area)[0] == pytest.approx(logits, abs=1e-12)
    assert book.clean(book.graph["next_id"].area) == logits.argmax()
    probs = np.exp(logits) / np.exp(logits).sum()
    assert book.clean(book.graph["dummy_probs"].area)[0] == pytest.approx(probs, abs=1e-12)
    sizes = book.clean(book.graph["table_sizes"].area)
    assert sizes[1].tolist() == [8192 * 12288, 12288 * 50000, 8192 * 50000, 50000]
