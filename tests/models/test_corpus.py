"""A text becomes ids, cut in two: characters, or pieces that the `tokenizers` library learns."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from conftest import GOLDEN
from tokenizers import ByteLevelBPETokenizer

from cellformer.engine import InputError
from cellformer.engine.learning import corpus
from cellformer.engine.text.tokenizer import load_tokenizer, save_tokenizer

WINDOWS = json.loads((GOLDEN / "shakespeare" / "held_out.json").read_text())["windows"]
TEXT = "".join(WINDOWS)  # Shakespeare's
CONTEXT = 16


def test_the_last_tenth_is_held_out() -> None:
    found = corpus.corpus(TEXT, None, CONTEXT)
    texts = found.words.texts
    assert texts == tuple(sorted(set(TEXT)))
    whole = "".join(texts[i] for i in (*found.learnt, *found.held_out))
    assert whole == TEXT
    assert len(found.learnt) == int(0.9 * len(TEXT))
    assert found.n_characters == len(found.held_out) == len(TEXT) - len(found.learnt)


def test_windows_predict_every_token_held_out_once() -> None:
    found = corpus.corpus(TEXT, None, CONTEXT)
    windows = found.windows()
    assert windows.shape[1] == CONTEXT + 1
    assert (windows[:-1, -1] == windows[1:, 0]).all()
    predicted = windows[:, 1:].ravel()
    assert (predicted == found.held_out[1 : 1 + len(predicted)]).all()
    assert len(found.held_out) - 1 - len(predicted) < CONTEXT
    some = found.windows(5)
    assert len(some) == 5
    assert (some[0] == windows[0]).all() and (some[-1] == windows[-1]).all()


def test_short_end_is_one_window() -> None:
    found = corpus.corpus(TEXT[:100], None, CONTEXT)
    assert len(found.held_out) == 10
    assert (found.windows() == found.held_out).all()


def test_batches_exclude_held_out_text() -> None:
    found = corpus.corpus(TEXT, None, CONTEXT)
    draws = found.batches(np.random.default_rng(0), 5000)
    starts = set()
    learnt = "".join(map(chr, found.learnt))
    for row in draws[:300]:
        assert "".join(map(chr, row)) in learnt
    for row in draws:  # both ends are drawn
        starts |= {
            k
            for k in (0, len(learnt) - CONTEXT - 1)
            if (found.learnt[k:][: CONTEXT + 1] == row).all()
        }
    assert starts == {0, len(learnt) - CONTEXT - 1}


def test_bpe_equals_the_library() -> None:
    """GPT-2's tokenizer class of the same library, taught the same text, splits alike."""
    found = corpus.corpus(TEXT, 400, CONTEXT)
    cut = int(0.9 * len(TEXT))
    reference = ByteLevelBPETokenizer()
    reference.train_from_iterator(
        [TEXT[:cut]], vocab_size=400, min_frequency=0, show_progress=False
    )
    for text in (*WINDOWS, "Zoë's 12 emoji: 🙂", "  two  spaces\n\n", ""):
        ids = found.words.encode(text)
        assert ids == reference.encode(text).ids
        assert found.words.inner.decode(ids) == text
    assert len(found.words.texts) == 400
    assert len(found.learnt) < cut * 0.7  # a piece is more than a character


def test_bpe_is_deterministic_and_saved(tmp_path: Path) -> None:
    one, two = (corpus.pieces(TEXT, 350) for _ in range(2))
    assert one.inner.to_str() == two.inner.to_str()
    save_tokenizer(one, tmp_path)
    again = load_tokenizer(tmp_path, 350)
    assert [again.encode(w) for w in WINDOWS] == [one.encode(w) for w in WINDOWS]


def test_pieces_do_not_see_what_is_held_out() -> None:
    text = "the cat sat on the mat and the hat. " * 50
    found = corpus.corpus(text + "zzzqqq" * 33, 300, CONTEXT)
    assert not any("zz" in piece for piece in found.words.texts)


@pytest.mark.parametrize(
    ("content", "fault"),
    [(b"", "is empty"), (b" \n\n", "is empty"), (b"good \xff", "byte 5")],
)
def test_files_that_hold_no_text(content: bytes, fault: str, tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(content)
    with pytest.raises(InputError, match=fault):
        corpus.read(path)


def test_line_ends_of_every_system(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes("\ufeffone\r\ntwo é".encode())
    assert corpus.read(path) == "one\ntwo é"
    os.mkfifo(tmp_path / "pipe")
    for wrong in (tmp_path / "none", tmp_path, tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(InputError, match="cannot read"):
            corpus.read(wrong)


@pytest.mark.parametrize(
    ("text", "n_pieces", "fault"),
    [
        ("a" * 500, None, "nothing to learn"),
        ("ab", None, "too few"),
        ("ab" * 8, None, "a context of 16 needs 17"),
        (TEXT, 256, "ask for 257"),
        ("hello there, hello there", 300, "context"),
    ],
)
def test_texts_that_teach_nothing(text: str, n_pieces: int | None, fault: str) -> None:
    with pytest.raises(InputError, match=fault):
        corpus.corpus(text, n_pieces, CONTEXT)
