"""BPE in cells: each row merges the adjacent pair of lowest rank.

A symbol is its index in the vocabulary, counted from 1 (0: no symbol), and negative where a word of
the pre-tokenizer begins. A pair is one number: the left symbol times a power of two, plus the right
one. The table has no pair with a negative right symbol, so nothing is merged across words. Merges
are sorted by that number.
"""

from typing import Any

import numpy as np

from cellformer.engine.cells.block import Block
from cellformer.engine.cells.errors import InputError
from cellformer.engine.cells.expression import Expression, expression
from cellformer.engine.cells.functions import ABS, AND, COUNTIF, IF, INDEX, MATCH, MIN, OR
from cellformer.engine.text.subwords import byte_alphabet
from cellformer.engine.text.tokenizers_library import unmade
from cellformer.engine.text.tokenizing import normalizing, pretokens, result
from cellformer.engine.text.tokenizing.result import Result
from cellformer.engine.text.tokenizing.settings import SPACE_SIGN, Settings
from cellformer.engine.text.tokenizing.steps import Steps, listed, shifted
from cellformer.engine.text.tokenizing.unicode import ALONE, END, OUTSIDE, TAB_IN_LINES, table

NO_RANK = 10_000_000  # of a pair that is not merged


def add(steps: Steps, settings: Settings, special: bool) -> Result:
    """Add characters, the pre-tokenizer, bytes, and a row for each merge."""
    steps.text(settings)
    normalizing.add(steps, settings)
    first = _of_bytes(steps, settings) if settings.bytes else _of_characters(steps, settings)
    last = _merges(steps, settings, first)[steps.n - 1, :]
    return result.add(steps, lambda k: ABS(last[0, k]) - 1, COUNTIF(last, "<>0"), settings, special)


def check(settings: Settings) -> None:
    """Raise InputError for whole-word tokens that no merges produce."""
    if not settings.model.get("ignore_merges"):
        return
    merges = [(left, right) for left, right in _pairs(settings)]
    piece = unmade(settings.vocabulary, merges, settings.added)
    if piece is not None:
        raise InputError(
            f"the tokenizer accepts whole words that its merges cannot build ({piece!r}), and "
            "cellformer has no formulas for this yet; give token ids with --ids"
        )


def _pairs(settings: Settings) -> list[list[str]]:
    """The merges by rank."""
    return [pair.split(" ") if isinstance(pair, str) else pair for pair in settings.model["merges"]]


# --- the first symbols ----------------------------------------------------------------------


def _of_bytes(steps: Steps, settings: Settings) -> Any:
    """Add a symbol for every UTF-8 byte; it is negative where a word begins."""
    characters = table(pretokens.kinds(settings.splits)[0])[:, : 3 if steps.marks else 2]
    steps.look_up(characters, lambda mark: mark.id + 1.0)
    words = pretokens.Words(steps, settings.splits)
    symbols = steps.spread(lambda k: _kept(steps, words, k, steps.utf8(k)))
    alphabet = byte_alphabet()
    signs = sorted(alphabet, key=alphabet.__getitem__)  # of byte 0, of byte 1, ...
    byte, of_bytes = steps.bytes(), _byte_symbols(steps, settings, signs)
    ends = _ends(steps, words) if settings.suffix else None

    def first(k: int) -> Expression:
        at = byte[0, k] + 1
        symbol: Expression = INDEX(of_bytes[:, 0].fixed, at)
        if ends is not None:
            last = symbols.within[0, k] + 1 == symbols.of(symbols.gives, k)
            symbol = IF(AND(last, symbols.of(ends, k) > 0), INDEX(of_bytes[:, 1].fixed, at), symbol)
        return _begun(steps, words, k, symbol)

    return first


def _of_characters(steps: Steps, settings: Settings) -> Any:
    """Add a symbol for every character in the vocabulary; others become the symbols of their
    bytes, or the unknown token."""
    fallback, unknown = bool(settings.model.get("byte_fallback")), settings.model.get("unk_token")
    lacking = 0 if fallback or unknown is None else settings.vocabulary[unknown] + 1
    steps.look_up(_characters(settings, lacking), lambda mark: mark.id + 1.0)
    words = pretokens.Words(steps, settings.splits)
    ends = _ends(steps, words) if settings.suffix else None

    def own(k: Any) -> Expression:
        found = steps.field_of(2, steps.entry[0, k])
        if ends is None:
            return found
        return IF(ends[0, k] > 0, steps.field_of(3, steps.entry[0, k]), found)

    def gives(k: Any) -> Expression:
        one: Any = IF(single[0, k] > 0, 1, steps.utf8(k) if fallback else 0)
        if fused is not None:
            one = IF(fused[0, k] > 0, 0, one)
        return _kept(steps, words, k, one)

    def joined(k: int) -> Expression:
        """Whether an unknown character is one token with the one before it."""
        if k == 0:
            return expression(0)
        within = [] if words.begins is None else [words.begins[0, k] == 0]
        return IF(AND(single[0, k] == lacking, single[0, k - 1] == lacking, *within), 1, 0)

    single = steps.row("single", own, runs=True)
    fused = steps.row("fused", joined) if lacking and settings.model.get("fuse_unk") else None
    if not (fallback or lacking):
        _refuse_lacking(steps, words, single)
    symbols = steps.spread(gives)
    if not fallback:
        return lambda k: _begun(steps, words, k, symbols.of(single, k))
    byte = steps.bytes()
    of_bytes = _byte_symbols(steps, settings, [f"<0x{b:02X}>" for b in range(256)])

    def first(k: int) -> Expression:
        own, other = symbols.of(single, k), INDEX(of_bytes.area.fixed, byte[0, k] + 1)
        return _begun(steps, words, k, IF(own > 0, own, other))

    return first


def _kept(steps: Steps, words: pretokens.Words, k: Any, n: Expression) -> Expression:
    """The number of symbols of a character: none if it is dropped, one for an added token."""
    if words.kept is not None:
        n = IF(words.kept[0, k] > 0, n, 0)
    return IF(steps.kind[0, k] == ALONE, 1, n) if steps.marks else n


def _begun(steps: Steps, words: pretokens.Words, k: int, symbol: Expression) -> Expression:
    """A symbol, negative where a word begins, or an added token's."""
    symbols = steps.symbols
    if words.begins is not None:
        begins = IF(symbols.within[0, k] == 0, symbols.of(words.begins, k), 0)
        symbol = symbol * IF(begins > 0, -1, 1)
    if steps.marks:
        whole = -steps.field_of(2, symbols.of(steps.entry, k))
        symbol = IF(symbols.of(steps.kind, k) == ALONE, whole, symbol)
    return IF(symbols.source[0, k] > 0, symbol, 0)


def _ends(steps: Steps, words: pretokens.Words) -> Block:
    """A row that is 1 for the last character of a word."""

    def ends(k: int) -> Expression:
        if k + 1 == steps.n:
            return expression(1)
        over = steps.code[0, k + 1] == 0
        return IF(over if words.begins is None else OR(over, words.begins[0, k + 1] > 0), 1, 0)

    return steps.row("word_ends", ends)


def _refuse_lacking(steps: Steps, words: pretokens.Words, single: Block) -> None:
    """Refuse a text with a character that has no piece, of a tokenizer without an unknown token."""

    def lacks(k: int) -> Expression:
        kept = [] if words.kept is None else [words.kept[0, k] > 0]
        return IF(AND(steps.code[0, k] > 0, single[0, k] == 0, *kept), 1, 0)

    steps.refuse_first(steps.row("missing", lacks), 1)


def _characters(settings: Settings, lacking: int) -> np.ndarray:
    """The table of characters: code, kind, symbol (`lacking` for characters without a piece),
    and the symbol of a word's last character, if that has a suffix."""
    ends = list(dict.fromkeys(("", settings.suffix)))
    symbols = [
        {piece[0]: i + 1 for piece, i in settings.vocabulary.items() if piece[1:] == end and piece}
        for end in ends
    ]
    if settings.signed:
        symbols[0][" "] = symbols[0].get(SPACE_SIGN, lacking)
    kinds = table(pretokens.kinds(settings.splits)[0])[:, :2]
    known = {ord(character) for own in symbols for character in own} - {TAB_IN_LINES}
    codes = np.unique([*kinds[:, 0], *known, *(code + 1 for code in known)])
    kind = kinds[np.searchsorted(kinds[:, 0], codes, side="right") - 1, 1]
    fields = np.zeros((len(codes), len(ends)))
    for column, own in enumerate(symbols):
        found = [own.get(chr(int(c)), lacking) if c in known else lacking for c in codes]
        fields[:, column] = np.where((kind == END) | (kind == OUTSIDE), 0, found)
    return np.column_stack([codes, kind, fields])


def _byte_symbols(steps: Steps, settings: Settings, signs: list[str]) -> Block:
    """The symbol of every byte, and of one that ends a word if that has a suffix. For bytes
    outside the vocabulary, the unknown token, or a symbol beyond the vocabulary."""
    missing = max(settings.vocabulary.values()) + 2
    ends, model = dict.fromkeys(("", settings.suffix)), settings.model
    other = missing - 1  # or the unknown token, one for each
    if settings.bytes and model.get("unk_token") and not model.get("fuse_unk"):
        other = settings.vocabulary[model["unk_token"]]
    found = [[settings.vocabulary.get(s + end, other) + 1 for end in ends] for s in signs]
    symbols = steps.input("byte_symbols", np.array(found, dtype=np.float64))
    steps.missing = missing if any(missing in row for row in found) else 0
    return symbols


# --- the merges -----------------------------------------------------------------------------


def _merges(steps: Steps, settings: Settings, first: Any) -> Block:
    """Add, for every merge, the ranks of all pairs and the row of symbols after it; the last row
    has the remaining symbols."""
    n, base, pairs, made = steps.n, *_tables(steps, settings)
    keys, ranks = pairs[:, 0].fixed, pairs[:, 1].fixed
    symbols: Block
    rank_of = steps.graph.table(
        "rank",
        (n - 1, n - 1),
        lambda s, k: listed(ABS(symbols[s, k]) * base + symbols[s, k + 1], keys, ranks, NO_RANK),
        runs=True,
    )

    def place(s: int, _: int) -> Expression:
        return IF(lowest[s, 0] < NO_RANK, MATCH(lowest[s, 0], rank_of[s, :], 0), n + 1)

    columns = (n - 1, 1)
    lowest = steps.graph.table("lowest", columns, lambda s, _: MIN(rank_of[s, :]))
    places = steps.graph.table("place", columns, place)
    merges = steps.graph.table(
        "merged",
        columns,
        lambda s, _: IF(lowest[s, 0] < NO_RANK, INDEX(made.area.fixed, lowest[s, 0] + 1), 0),
    )

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
        message = "a character of the text needs a byte that the vocabulary lacks"
        steps.refuse(found > 0, expression(message))


def _told(steps: Steps, symbols: Block, places: Block, merges: Block) -> None:
    """Add each merge in readable form: `h + e → he`."""
    pieces = steps.pieces.area.fixed

    def told(s: int, _: int) -> Expression:
        row, place = symbols[s, :], places[s, 0]
        left = INDEX(pieces, ABS(INDEX(row, 1, place)))
        right = INDEX(pieces, ABS(INDEX(row, 1, place + 1)))
        return IF(place > steps.n, "", left & " + " & right & " → " & INDEX(pieces, merges[s, 0]))

    steps.graph.table("told", (steps.n - 1, 1), told)
