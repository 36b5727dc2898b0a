"""A training text: read from a file, tokenized, and split in two.

The last tenth is held out: a model is never trained on it, so its loss there measures what was
learned rather than memorized.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cellformer.engine.cells.errors import InputError
from cellformer.engine.text.tokenizer import Characters, Library, Tokenizer
from cellformer.engine.text.tokenizers_library import learnt

MOST_TEXT = 1_000_000_000  # bytes, more than can be learnt from here
LEARNT = 0.9  # share of a text that is learnt from
FEWEST_PIECES = 257  # the bytes, by which any text can be written, and one piece learnt


@dataclass(frozen=True)
class Corpus:
    """A tokenized text in two consecutive parts, for training and held out, for a context
    length."""

    words: Tokenizer
    learnt: np.ndarray  # [n_learnt], more than the context
    held_out: np.ndarray  # [n_held_out]
    n_characters: int  # of the part held out
    context: int

    def batches(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """Endless random windows of the training part: [n, context + 1]."""
        starts = rng.integers(0, len(self.learnt) - self.context, n)
        return np.asarray(self.learnt[starts[:, None] + np.arange(self.context + 1)])

    def windows(self, most: int | None = None) -> np.ndarray:
        """Consecutive windows of the held-out part, or `most` of them, evenly spread.

        [n_windows, context + 1]: the last id of a window is the first of the next, so that every
        token but the first is predicted once. A shorter part is one window.
        """
        length = min(self.context, len(self.held_out) - 1)
        n = (len(self.held_out) - 1) // length
        chosen = (
            np.arange(n) if most is None else np.unique(np.linspace(0, n - 1, most).astype(int))
        )
        return np.asarray(self.held_out[chosen[:, None] * length + np.arange(length + 1)])


def read(path: Path) -> str:
    """A text file in UTF-8. Raises InputError for one that cannot be read or is empty, and for
    pipes and devices, which may never end."""
    if path.exists() and not path.is_file():
        raise InputError(f"cannot read {path}: it is not an ordinary file; give a text file")
    try:
        if path.stat().st_size > MOST_TEXT:
            raise InputError(
                f"{path} is larger than {MOST_TEXT / 1e6:,.0f} MB; train on a part of this text"
            )
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}; give a text file") from None
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path} is not UTF-8 text: the first wrong byte is byte {error.start}"
        ) from None
    if not text.strip():
        raise InputError(f"{path} is empty; give a file with text")
    return text


def corpus(text: str, n_pieces: int | None, context: int) -> Corpus:
    """A text as characters, or as tokens of a byte-level BPE trained on its training part.

    Raises InputError for a text that is too short or too uniform to train on.
    """
    cut = int(len(text) * LEARNT)
    learnt, held_out = text[:cut], text[cut:]
    words = characters(text) if n_pieces is None else pieces(learnt, n_pieces)
    ids = [np.array(words.encode(part)) for part in (learnt, held_out)]
    if min(map(len, ids)) < 2:
        raise InputError(
            f"the text has {len(text)} characters, too few to learn from; give a longer text"
        )
    if len(ids[0]) <= context:
        raise InputError(
            f"the text has {len(ids[0])} training tokens, but a context of {context} needs "
            f"{context + 1}; give more text or a shorter --context"
        )
    return Corpus(words, ids[0], ids[1], len(held_out), context)


def characters(text: str) -> Characters:
    """The characters of a text, sorted by code point."""
    found = tuple(sorted(set(text)))
    if len(found) < 2:
        raise InputError(
            f"the text only repeats the character {found[0]!r}, so there is nothing to learn"
        )
    return Characters(found)


def pieces(text: str, n_pieces: int) -> Library:
    """A byte-level BPE (Radford et al. 2019, section 2.2) trained on a text."""
    if n_pieces < FEWEST_PIECES:
        raise InputError(
            f"{n_pieces} tokens are too few, because 256 tokens are single bytes; ask for "
            f"{FEWEST_PIECES} or more"
        )
    inner = learnt(text, n_pieces)
    return Library(inner, inner.get_vocab_size())
