"""The only module that calls the `tokenizers` library: every failure becomes one InputError.

The library is written in Rust and can fail in four ways. Exceptions, and panics, which `except
Exception` does not catch and which print a page: `asked` turns both into an error. Aborts and stack
overflows cannot be caught: `check` refuses files that lead there before the library reads them
(huge ids and tokens, texts that grow without bound in normalizing, a character map that points
outside itself). Endless computation: a regular expression that backtracks. A tokenizer with such a
pattern runs in a child process, which is ended after PATIENCE seconds; the patterns of known
tokenizers are `quick` and run in this process.
"""

import base64
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from cellformer.engine.cells.errors import InputError, first_line
from cellformer.engine.cells.files import read_json

MOST_PIECES = 10_000_000  # the library makes a table of so many; known vocabularies have 300,000
LONGEST_PIECE = 10_000  # characters: a tree of pieces is as deep as they are long
MOST_GROWTH = 1_000  # characters that normalizing makes of one; of a ligature of Arabic, 18
MOST_TEXT = 100_000_000  # characters of a text that is normalized
MOST_CHARSMAP = 1_000_000  # bytes of a map of characters; that of NFKC has 300,000
PATIENCE = 10  # seconds
PANIC = "PanicException"  # what pyo3 calls it; its module cannot be imported


# --- what it raises -----------------------------------------------------------------------------


@contextmanager
def asked(what: str) -> Iterator[None]:
    """A context manager: turn exceptions and panics of the library into an InputError that begins
    so."""
    try:
        with _quiet():
            yield
    except InputError:
        raise
    except BaseException as error:  # a panic is no Exception
        if not isinstance(error, Exception) and type(error).__name__ != PANIC:
            raise
        raise InputError(f"{what}: {first_line(error)}") from None


@contextmanager
def _quiet() -> Iterator[None]:
    """A context manager: discard what code outside Python prints to standard error."""
    try:
        kept = os.dup(2)
    except OSError:  # it is closed
        yield
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        sys.stderr.flush()
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


# --- tokenizers ---------------------------------------------------------------------------------


def from_file(path: Path, heed: Callable[[dict[str, Any]], None] = lambda spec: None) -> Any:
    """The tokenizer of a tokenizer.json, for single texts, after `heed` has changed its content.
    Raises InputError."""
    spec = read_json(path)
    if not isinstance(spec, dict):
        raise InputError(
            f"{path} is not a tokenizer, because it contains no JSON object; download the file "
            "again"
        )
    check(spec, str(path))
    with asked(f"{path} is no tokenizer"):
        heed(spec)
        return from_text(json.dumps(spec))


def from_text(text: str) -> Any:
    """A tokenizer from the text of a tokenizer.json, without padding, truncation and BPE dropout,
    which would give other ids in each run."""
    from tokenizers import Tokenizer

    inner = Tokenizer.from_str(text)
    inner.no_padding()
    inner.no_truncation()
    if hasattr(inner.model, "dropout"):
        inner.model.dropout = None
    return inner


def encode(inner: Any, text: str, special: bool) -> list[int]:
    """The ids of a text. Raises InputError, with the word, for a text without ids."""
    if len(text) * _facts(inner)[0] > MOST_TEXT:
        raise InputError(
            f"a text of {len(text):,} characters is too long for this tokenizer; give a shorter "
            "text"
        )
    if _slow(inner):
        return [int(i) for i in _in_child(inner, "encode", text, special)]
    try:
        with _quiet():
            return list(inner.encode(text, add_special_tokens=special).ids)
    except (TypeError, UnicodeEncodeError):
        raise InputError(f"the prompt {text!r} is not valid Unicode text") from None
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != PANIC:
            raise
        why = first_line(error)
    word = _without_id(inner, text)
    if word is None:
        raise InputError(
            f"the tokenizer does not accept this text: {why}; give token ids with --ids"
        )
    raise InputError(
        f"no piece of the tokenizer contains {word!r}, and the tokenizer has no token for "
        f"unknown words ({why}). Write the prompt without this word, or give token ids with --ids"
    )


def decode(inner: Any, ids: Sequence[int]) -> str:
    """The text of ids, without special tokens. Raises InputError."""
    if _slow(inner):
        return str(_in_child(inner, "decode", list(ids), True))
    with asked("the tokenizer cannot decode these ids"):
        return str(inner.decode(list(ids), skip_special_tokens=True))


def _without_id(inner: Any, text: str) -> str | None:
    """The first word of a text without an id."""
    with suppress(InputError), asked("parts"):
        whole = inner.normalizer.normalize_str(text) if inner.normalizer else text
        before = inner.pre_tokenizer
        words = [w for w, _ in before.pre_tokenize_str(whole)] if before else [whole]
        for word in words:
            try:
                inner.model.tokenize(word)
            except Exception:  # the library raises nothing narrower
                return str(word)
    return None


# --- what it is asked about characters and pieces -----------------------------------------------


def matching(pattern: str) -> Callable[[str], set[str]]:
    """A function that finds the characters of a text that a pattern of one character matches.
    Raises InputError."""
    from tokenizers import Regex, pre_tokenizers

    with asked(f"the tokenizer's pattern {pattern!r}"):
        split = pre_tokenizers.Split(Regex(pattern), "removed").pre_tokenize_str
    return lambda text: set(text).difference(*(piece for piece, _ in split(text)))


@lru_cache(maxsize=16)
def treated(part: str, characters: str) -> Mapping[str, set[str]]:
    """The effect of a pre-tokenizer, as JSON, on characters behind a letter: which it `joins` to
    it, `parts` from it, `drops`."""
    from tokenizers import Tokenizer, models

    spec = json.loads(Tokenizer(models.BPE()).to_str()) | {"pre_tokenizer": json.loads(part)}
    split = from_text(json.dumps(spec)).pre_tokenizer.pre_tokenize_str
    found: dict[str, set[str]] = {"joins": set(), "parts": set(), "drops": set()}
    for character in characters:
        pieces = [piece for piece, _ in split("a" + character)]
        does = "parts" if len(pieces) > 1 else "drops" if pieces == ["a"] else "joins"
        found[does].add(character)
    return found


def normalizing(parts: Sequence[Mapping[str, Any]]) -> Callable[[str], str]:
    """A function that applies normalizers, given as in tokenizer.json. Raises InputError."""
    from tokenizers import Tokenizer, models

    check({"normalizer": list(parts)}, "the tokenizer")
    spec = json.loads(Tokenizer(models.BPE()).to_str())
    spec["normalizer"] = {"type": "Sequence", "normalizers": list(parts)}
    with asked("the tokenizer's normalizers"):
        apply: Callable[[str], str] = from_text(json.dumps(spec)).normalizer.normalize_str
    return apply


def unmade(
    vocabulary: Mapping[str, int], merges: Sequence[tuple[str, str]], left_out: Iterable[str]
) -> str | None:
    """The first token of a vocabulary that its merges do not produce, except those in
    `left_out`."""
    from tokenizers import models

    others = set(left_out)
    with asked("the tokenizer's merges"):
        model = models.BPE(dict(vocabulary), list(merges))
        for piece, i in vocabulary.items():
            if piece not in others and [token.id for token in model.tokenize(piece)] != [i]:
                return piece
    return None


def learnt(text: str, n_pieces: int) -> Any:
    """Train a byte-level BPE (Radford et al. 2019, section 2.2) on a text."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    if n_pieces > MOST_PIECES:
        raise InputError(
            f"{n_pieces} tokens are too many for a vocabulary; ask for at most {MOST_PIECES:,}"
        )
    blank = Tokenizer(models.BPE())
    blank.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    blank.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    room = min(n_pieces, len(alphabet) + 2 * len(text.encode()))  # it makes a table of so many
    trainer = trainers.BpeTrainer(vocab_size=room, initial_alphabet=alphabet, show_progress=False)
    with asked("no pieces can be learnt from this text"):
        blank.train_from_iterator([text], trainer)
    return blank


# --- bounds -------------------------------------------------------------------------------------


def check(spec: Mapping[str, Any], where: str) -> None:
    """Raise InputError for a tokenizer file that would crash the library."""
    model = spec.get("model")
    vocabulary = model.get("vocab") if isinstance(model, dict) else None
    if isinstance(vocabulary, dict):
        check_pieces(vocabulary, vocabulary.values(), where)
    elif isinstance(vocabulary, list):
        pairs = [pair for pair in vocabulary if isinstance(pair, list) and pair]
        check_pieces((pair[0] for pair in pairs), (), where)
    if growth(spec.get("normalizer")) > MOST_GROWTH:
        raise InputError(
            f"{where}: its normalizer turns one character into more than "
            f"{MOST_GROWTH:,} characters. The file may be damaged; download the file again, or "
            "give token ids"
        )
    for step in _steps(spec.get("normalizer")):
        if step.get("type") == "Precompiled" and not is_sound(step.get("precompiled_charsmap")):
            raise InputError(
                f"{where}: its precompiled_charsmap is damaged; download the file again"
            )


def check_pieces(pieces: Iterable[Any], ids: Iterable[Any], where: str) -> None:
    """Raise InputError for a token that is not a text or too long, and for a huge id."""
    for piece in pieces:
        if not isinstance(piece, str) or len(piece) > LONGEST_PIECE:
            what = f"one of {len(piece):,} characters" if isinstance(piece, str) else repr(piece)
            raise InputError(
                f"{where} has {what} among its pieces; a piece must be a text of at most "
                f"{LONGEST_PIECE:,} characters"
            )
    for i in ids:
        if not isinstance(i, int) or not 0 <= i < MOST_PIECES:
            raise InputError(
                f"{where} has a piece with the id {i!r}; ids must be from 0 to {MOST_PIECES - 1:,}"
            )


def growth(part: Any) -> float:
    """The most characters that normalizing can make of one."""
    found = 1.0
    for step in _steps(part):
        content, pattern = step.get("content", ""), step.get("pattern")
        if step.get("type") == "Replace" and isinstance(content, str):
            old = pattern.get("String") if isinstance(pattern, dict) else None
            found *= max(1.0, len(content) / max(1, len(old) if isinstance(old, str) else 1))
        elif isinstance(step.get("prepend"), str):
            found *= max(1.0, len(step["prepend"]))
    return found


def _steps(part: Any) -> Iterator[Mapping[str, Any]]:
    """The steps of a part of a tokenizer.json, with nested sequences flattened."""
    for value in part if isinstance(part, list) else [part]:
        if isinstance(value, dict):
            yield value
            for inner in value.values():
                if isinstance(inner, list):
                    yield from _steps(inner)


def is_sound(charsmap: Any) -> bool:
    """Whether a precompiled character map never points outside itself.

    It is a tree of 32-bit units, walked byte by byte, followed by the texts that its leaves point
    to: a unit holds the offset of its children, and a child the byte that leads to it.
    """
    try:
        data = base64.b64decode(charsmap, validate=True)
        size = int.from_bytes(data[:4], "little")
        units, texts = np.frombuffer(data[4 : 4 + size], "<u4").astype(np.int64), data[4 + size :]
        texts.decode("utf-8")
    except (TypeError, ValueError):
        return False
    if not len(units) or 4 + size > len(data) or len(data) > MOST_CHARSMAP:
        return False
    begins = np.array([byte & 0xC0 != 0x80 for byte in texts], bool)
    beyond = (units >> 10) << ((units & (1 << 9)) >> 6)  # how far the children of a unit are
    seen, waiting, to = np.zeros(len(units), bool), np.array([0]), np.arange(256)
    while len(waiting):
        at, waiting = waiting[:1024], waiting[1024:]
        children = (at ^ beyond[at])[:, None] ^ to  # [units, bytes]; that of byte 0 is a leaf
        if children.max() >= len(units):
            return False
        places = units[children[(units[at] >> 8) & 1 == 1, 0]] & (1 << 31) - 1
        if (places >= len(begins)).any() or not begins[places].all():
            return False
        met = (units[children] & (1 << 31 | 0xFF)) == to
        new = np.unique(children[:, 1:][met[:, 1:]])
        new = new[~seen[new]]
        seen[new] = True
        waiting = np.concatenate([waiting, new])
    return True


# --- patterns that may take for ever ------------------------------------------------------------

SIGNS = re.compile(r"\\[pP]\{\^?\w+\}|\\[^1-9k]|\[(?:\\.|[^\]])*\]", re.DOTALL)  # a character each
OFTEN = r"(?:[*+]|\{\d*,\}|\{\d*,?\d{3,}\})"  # as often as there is room for
AGAIN = re.compile(r"\)[*+{]|\\[1-9k]")  # what stands in brackets, again


def quick(pattern: str) -> bool:
    """Whether a regular expression cannot backtrack much: no group is repeated, and at most two
    adjacent parts are unbounded."""
    plain = re.sub(r"([*+?}])[+?]", r"\1", SIGNS.sub("x", pattern))
    most = max(len(re.findall(OFTEN, way)) for way in plain.split("|"))
    return most <= 2 and not AGAIN.search(plain)


def _slow(inner: Any) -> bool:
    return not all(map(quick, _facts(inner)[1]))


def _facts(inner: Any) -> tuple[float, tuple[str, ...]]:
    """The most that normalizing can grow a text, and the patterns of a tokenizer."""
    parts = (inner.normalizer, inner.pre_tokenizer, inner.decoder)
    return _facts_of(*(part and part.__getstate__() for part in parts))


@lru_cache(maxsize=16)
def _facts_of(*states: bytes | None) -> tuple[float, tuple[str, ...]]:
    parts = [json.loads(state) if state else None for state in states]
    patterns = [p["pattern"] for part in parts for p in _steps(part) if "pattern" in p]
    found = [p["Regex"] for p in patterns if isinstance(p, dict) and "Regex" in p]
    return growth(parts[0]), tuple(found)


CHILD = """
import json, sys
from tokenizers import Tokenizer
spec, method, given, special = json.load(sys.stdin)
inner = Tokenizer.from_str(spec)
found = inner.encode(given, add_special_tokens=special).ids if method == "encode" else (
    inner.decode(given, skip_special_tokens=special))
print(json.dumps(found))
"""


def _in_child(inner: Any, method: str, given: Any, special: bool) -> Any:
    """A result of the library, computed in a child process. Raises InputError if it takes too long
    or crashes."""
    asked_for = json.dumps([inner.to_str(), method, given, special])
    command = [sys.executable, "-P", "-c", CHILD]
    remedy = "the tokenizer's pattern takes too long on this text; give token ids with --ids"
    try:
        done = subprocess.run(
            command, input=asked_for.encode(), capture_output=True, timeout=PATIENCE
        )
    except subprocess.TimeoutExpired:
        raise InputError(
            f"the tokenizer did not finish within {PATIENCE} seconds: {remedy}"
        ) from None
    if done.returncode:
        said = (done.stderr.decode(errors="replace").splitlines() or [""])[-1]
        raise InputError(f"the tokenizer failed ({said[:120]}): {remedy}")
    return json.loads(done.stdout)
