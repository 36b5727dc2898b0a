"""BPE in cells: each row merges the adjacent pair of lowest rank.

A symbol is its index in the vocabulary, counted from 1 (0: no symbol), and negative where a word of
the pre-tokenizer begins. A pair is one number: the left symbol times a power of two, plus the right
one. The table has no pair with a negative right symbol, so nothing is merged across words. Merges
are sorted by that number.
"""

from functools import lru_cache, partial
from typing import Any

import numpy as np

from engine.cells.block import Block
from engine.cells.errors import InputError
from engine.cells.expression import Expression, expression
from engine.cells.functions import ABS, COUNTIF, IF, INDEX, MATCH, MIN
from engine.text.subwords import byte_alphabet
from engine.text.tokenizers_library import unmade
from engine.text.tokenizing import pretokens, result
from engine.text.tokenizing.result import Result
from engine.text.tokenizing.settings import SPACE_SIGN, Settings
from engine.text.tokenizing.steps import Steps, shifted
from engine.text.tokenizing.unicode import (
    ALONE,
    OTHER,
    OUTSIDE,
    SURROGATES,
    TAB_IN_LINES,
    UNREADABLE,
    joining,
    kinds,
    moved,
    table,
)

NO_RANK = 10_000_000  # of a pair that is not merged


def add(steps: Steps, settings: Settings, special: bool) -> Result:
    """Add characters, the pre-tokenizer, bytes, and a row for each merge."""
    steps.text(settings)
    first = _of_bytes(steps, settings) if settings.bytes else _of_characters(steps, settings)
    symbols = _merges(steps, settings, first)
    last = symbols[steps.n - 1, :]

    def ident(k: int) -> Expression:
        return ABS(last[0, k]) - 1

    return result.add(steps, ident, COUNTIF(last, "<>0"), settings, special)


def check(settings: Settings) -> None:
    """Raise InputError for normalized characters, and for whole-word tokens that no merges
    produce."""
    if settings.normalizers and not settings.bytes:
        raise InputError(
            "a tokenizer of byte pairs over characters that are normalized has no formulas here "
            "yet; give token ids with --ids"
        )
    if not settings.model.get("ignore_merges"):
        return
    merges = [(left, right) for left, right in _pairs(settings)]
    piece = unmade(settings.vocabulary, merges, settings.added)
    if piece is not None:
        raise InputError(
            f"the tokenizer takes whole words that its merges do not make ({piece!r}), which "
            "has no formulas here yet; give token ids with --ids"
        )


def _pairs(settings: Settings) -> list[list[str]]:
    """The merges by rank."""
    merges = settings.model["merges"]
    return [pair.split(" ") if isinstance(pair, str) else pair for pair in merges]


# --- the first symbols ----------------------------------------------------------------------


def _of_bytes(steps: Steps, settings: Settings) -> Any:
    """Add a symbol for every UTF-8 byte; it is negative where a word begins."""
    characters = _characters(settings)[:, : 3 if steps.marks else 2]
    steps.look_up(characters, lambda mark: mark.id + 1.0)
    begins = pretokens.add(steps, settings) if settings.pattern else None
    steps.spread(partial(_bytes_of, steps))
    alphabet = byte_alphabet()
    signs = sorted(alphabet, key=alphabet.__getitem__)  # of byte 0, of byte 1, ...
    byte, symbols = steps.bytes(), _byte_symbols(steps, settings, signs)

    def first(k: int) -> Expression:
        symbol: Expression = INDEX(symbols.area.fixed, byte[0, k] + 1)
        if begins is not None:
            first_byte = IF(steps.within[0, k] == 0, steps.of_source(begins, k), 0)
            symbol = symbol * IF(first_byte > 0, -1, 1)
        if steps.marks:
            whole = -steps.field_of(2, steps.of_source(steps.entry, k))
            symbol = IF(steps.of_source(steps.kind, k) == ALONE, whole, symbol)
        return IF(steps.source[0, k] > 0, symbol, 0)

    return first


@lru_cache(maxsize=16)  # it asks about every character
def _characters(settings: Settings) -> np.ndarray:
    """The character table; characters that normalizing changes are unsupported."""
    outside = joining(settings.normalizers).union(moved(settings.normalizers))
    return table((kinds() if settings.pattern else {}) | dict.fromkeys(outside, OUTSIDE))


def _bytes_of(steps: Steps, k: Any) -> Expression:
    """The number of symbols of a character: its bytes, or one for an added token."""
    n_bytes = steps.utf8(k)
    return IF(steps.kind[0, k] == ALONE, 1, n_bytes) if steps.marks else n_bytes


def _of_characters(steps: Steps, settings: Settings) -> Any:
    """Add a symbol for every character in the vocabulary; others become the symbols of their
    bytes."""
    vocabulary, fallback = settings.vocabulary, bool(settings.model.get("byte_fallback"))
    symbols = {piece: i + 1 for piece, i in vocabulary.items() if len(piece) == 1}
    symbols[" "] = symbols.get(SPACE_SIGN, 0)
    steps.look_up(_pieces_of_one(symbols, OTHER if fallback else OUTSIDE))
    single = steps.row("single", lambda k: steps.field_of(2, steps.entry[0, k]), runs=True)

    def gives(k: int) -> Expression:
        return IF(single[0, k] > 0, 1, steps.utf8(k))

    steps.spread(gives)
    if not fallback:
        return lambda k: IF(steps.source[0, k] > 0, steps.of_source(single, k), 0)
    byte = steps.bytes()
    of_bytes = _byte_symbols(steps, settings, [f"<0x{b:02X}>" for b in range(256)])

    def first(k: int) -> Expression:
        own, other = steps.of_source(single, k), INDEX(of_bytes.area.fixed, byte[0, k] + 1)
        return IF(steps.source[0, k] > 0, IF(own > 0, own, other), 0)

    return first


def _pieces_of_one(symbols: dict[str, int], others: int) -> np.ndarray:
    """The table of characters in the vocabulary: code, kind, symbol (0 for others)."""
    rows = {0: (OTHER, 0), TAB_IN_LINES: (OUTSIDE, 0), TAB_IN_LINES + 1: (others, 0)}
    rows |= {SURROGATES.start: (OUTSIDE, 0), SURROGATES.stop: (others, 0)}
    rows |= {UNREADABLE: (OUTSIDE, 0)}
    for character, symbol in symbols.items():
        if symbol and ord(character) != TAB_IN_LINES:
            rows[ord(character)] = (OTHER, symbol)
            if chr(ord(character) + 1) not in symbols:
                rows[ord(character) + 1] = (others, 0)
    return np.array([(code, *row) for code, row in sorted(rows.items())], dtype=np.float64)


def _byte_symbols(steps: Steps, settings: Settings, signs: list[str]) -> Block:
    """The symbol of every byte; a symbol beyond the vocabulary for bytes that it lacks."""
    missing = max(settings.vocabulary.values()) + 2
    found = [settings.vocabulary.get(sign, missing - 1) + 1 for sign in signs]
    symbols = steps.input("byte_symbols", np.array(found, dtype=np.float64)[:, None])
    steps.missing = missing if missing in found else 0
    return symbols


# --- the merges -----------------------------------------------------------------------------


def _merges(steps: Steps, settings: Settings, first: Any) -> Block:
    """Add, for every merge, the ranks of all pairs and the row of symbols after it; the last row
    has the remaining symbols."""
    n, base, pairs, made = steps.n, *_tables(steps, settings)
    keys, ranks = pairs[:, 0].fixed, pairs[:, 1].fixed
    symbols: Block

    def rank(s: int, k: int) -> Expression:
        key = ABS(symbols[s, k]) * base + symbols[s, k + 1]
        at = MATCH(key, keys, 1)
        return IF(INDEX(keys, at) == key, INDEX(ranks, at), NO_RANK)

    rank_of = steps.graph.table("rank", (n - 1, n - 1), rank, runs=True)

    def place(s: int, _: int) -> Expression:
        return IF(lowest[s, 0] < NO_RANK, MATCH(lowest[s, 0], rank_of[s, :], 0), n + 1)

    def merged(s: int, _: int) -> Expression:
        return IF(lowest[s, 0] < NO_RANK, INDEX(made.area.fixed, lowest[s, 0] + 1), 0)

    columns = (n - 1, 1)
    lowest = steps.graph.table("lowest", columns, lambda s, _: MIN(rank_of[s, :]))
    places = steps.graph.table("place", columns, place)
    merges = steps.graph.table("merged", columns, merged)

    def symbol(s: int, k: int) -> Expression:
        if s == 0:
            return expression(first(k))
        old, place = symbols[s - 1, :], places[s - 1, 0].fixed_cols

        def moved(k: int) -> Expression:
            here, number = old[0, k], steps.number[0, k].fixed_rows
            new = IF(here < 0, -1, 1) * merges[s - 1, 0].fixed_cols
            return IF(number < place, here, IF(number == place, new, old[0, k + 1]))

        return shifted(moved, k, n - 1, lambda k: IF(place < n, 0, old[0, k]))

    symbols = steps.graph.table("symbols", (n, n), symbol, runs=True)
    _refuse_missing(steps, symbols)
    _told(steps, symbols, places, merges)
    return symbols


def _tables(steps: Steps, settings: Settings) -> tuple[int, Block, Block]:
    """The factor in a pair's number, the ranks of pairs sorted by that number, and the symbol that
    the merge of each rank produces."""
    vocabulary = settings.vocabulary
    base = 1 << (2 * (max(vocabulary.values()) + 3)).bit_length()
    ranks: dict[int, int] = {}
    made = []
    for rank, (left, right) in enumerate(_pairs(settings)):
        ranks[(vocabulary[left] + 1) * base + vocabulary[right] + 1] = rank
        made.append(vocabulary[left + right] + 1)
    rows = [(0, NO_RANK), *sorted(ranks.items()), (base * base, NO_RANK)]
    pairs = steps.input("pairs", np.array(rows, dtype=np.float64))
    return base, pairs, steps.input("made", np.array(made or [0, 0], dtype=np.float64)[:, None])


def _refuse_missing(steps: Steps, symbols: Block) -> None:
    if steps.missing:
        first = symbols[0, :]
        found = COUNTIF(first, steps.missing) + COUNTIF(first, -steps.missing)
        message = "a character of the text is made of bytes that the vocabulary lacks"
        steps.refuse(found > 0, expression(message))


def _told(steps: Steps, symbols: Block, places: Block, merges: Block) -> None:
    """Add each merge in readable form: `h + e → he`."""
    pieces = steps.pieces.area.fixed

    def told(s: int, _: int) -> Expression:
        row, place = symbols[s, :], places[s, 0]
        left = INDEX(pieces, ABS(INDEX(row, 1, place)))
        right = INDEX(pieces, ABS(INDEX(row, 1, place + 1)))
        text = left & " + " & right & " → " & INDEX(pieces, merges[s, 0])
        return IF(place > steps.n, "", text)

    steps.graph.table("told", (steps.n - 1, 1), told)
