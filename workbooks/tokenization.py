"""tokenization: how a word becomes tokens, merge by merge, with a BPE trained on four words.

Look at the rows of sheet Tokenizer: each merges one adjacent pair, the one learned first. Try
`lowest`, which is not in the corpus, and a word of letters that were never adjacent.
"""

from collections import Counter
from collections.abc import Mapping
from functools import reduce
from itertools import pairwise
from operator import add
from typing import NamedTuple

import numpy as np
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from cellformer.engine.cells.expression import Expression
from cellformer.engine.text import tokenizing
from cellformer.engine.text.subwords import byte_alphabet
from cellformer.engine.text.tokenizer import Library
from cellformer.exporters.assemble.worksheets import Workbook, near
from cellformer.exporters.compose import legend
from cellformer.exporters.compose.book import Book
from cellformer.exporters.compose.composer import Composer
from cellformer.exporters.compose.story import Story
from cellformer.exporters.pages import tokenizer as page

TOPIC, AFTER, LEVEL = "Words and positions", "", 1
TITLE = "tokenization: a word in pieces, merge by merge"
CORPUS = {"low": 5, "lower": 2, "newest": 6, "widest": 3}  # Sennrich et al. 2016, section 3.2
SPACE = "Ġ"  # how byte-level byte pairs write the space before a word
N_MERGES, LENGTH, N_TOKENS = 12, 24, 12
SENTENCE = "lowest newer"


def book() -> Book:
    """The workbook."""
    w = Workbook("tokenization")
    merges = learnt(CORPUS, N_MERGES)
    ws = w.sheet("Learning", "the pairs that were merged, in the order in which they were learnt")
    learning(ws, merges)
    suggest(w, ws)
    tokenizing.add(w.book.graph, library(merges), SENTENCE, N_TOKENS, LENGTH)
    for name in (page.SHEET, page.TABLES):
        sheet = w.book.sheet(name)
        sheet.put(0, 0, f"{w.book.title} · {name}", "title")
        sheet.link(1, 0, "← Start", "Start!A1")
        legend.add(sheet)
    page.lay_out(w.book)
    fine = w.book.graph["tokenizer.fine"].area
    w.checks([("all of what is typed became tokens", near(fine.fixed))])
    return w.done(story(w))


class Merge(NamedTuple):
    """A merged pair, and how often it occurred in each word of the corpus at that time."""

    left: str
    right: str
    of_words: tuple[int, ...]


def learnt(counts: Mapping[str, int], n: int) -> list[Merge]:
    """The merges in order: at every step the most frequent adjacent pair of the corpus, the first
    alphabetically of ties (Sennrich et al. 2016, algorithm 1)."""
    words = [tuple(SPACE + word) for word in counts]
    found = []
    for _ in range(n):
        pairs: Counter[tuple[str, str]] = Counter()
        for word, count in zip(words, counts.values(), strict=True):
            for pair in pairwise(word):
                pairs[pair] += count
        best, _ = min(pairs.items(), key=lambda item: (-item[1], item[0]))
        found.append(Merge(*best, tuple([*pairwise(word)].count(best) for word in words)))
        words = [joined(word, *best) for word in words]
    return found


def joined(word: tuple[str, ...], left: str, right: str) -> tuple[str, ...]:
    """A word's symbols with every such pair merged."""
    made: list[str] = []
    for symbol in word:
        if made and made[-1] == left and symbol == right:
            made[-1] = left + right
        else:
            made.append(symbol)
    return tuple(made)


def library(merges: list[Merge]) -> Library:
    """The tokenizer of these merges in the `tokenizers` library: byte-level BPE, as GPT-2's."""
    pieces = [*byte_alphabet(), *(merge.left + merge.right for merge in merges)]
    vocabulary = {piece: k for k, piece in enumerate(pieces)}
    inner = Tokenizer(models.BPE(vocabulary, [merge[:2] for merge in merges]))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    inner.decoder = decoders.ByteLevel()
    return Library(inner, len(vocabulary))


def learning(ws: Composer, merges: list[Merge]) -> None:
    """Add the corpus, and the merges learned from it."""
    ws.widths({0: 12, **dict.fromkeys(range(1, 10), 14)})
    ws.text(
        "Begin with single characters. Count in the corpus how often each two stand together; make the pair that is most frequent",
        "one piece; and count again. Every merge is a row below. The space before a word is part of it, written ␣.",
        "The merges were learnt from the corpus as built, and stay. How often each pair stood together follows the times that you type:",
        "where a row comes to stand more often than one above it, a tokenizer of your corpus would have learnt another order.",
    )
    top = ws.cursor
    ws.typed("corpus", [[word] for word in CORPUS], cols=("word",), style="label")
    times = ws.typed(
        "times",
        [[n] for n in CORPUS.values()],
        cols=("times",),
        style="input count",
        left=2,
        top=top,
    )
    ws.heading("The merges, in the order in which they were learnt")
    top, n = ws.cursor, len(merges)
    rows = [[shown(m.left), shown(m.right), shown(m.left + m.right)] for m in merges]
    ws.typed("merges", rows, range(n), ("left", "right", "becomes"), style="label")
    stood = np.array([m.of_words for m in merges], dtype=float)
    heads = [f"in {word}" for word in CORPUS]
    inside = ws.typed("stood", stood, cols=heads, style="count", left=5, top=top)

    def counted(k: int, _: int) -> Expression:
        parts = [inside[k, word] * times[word, 0] for word in range(len(CORPUS))]
        return reduce(add, parts)

    head, style = ["times in all"], "activation count"
    ws.computed("stood_in_all", (n, 1), counted, cols=head, style=style, left=4, top=top)


def suggest(w: Workbook, ws: Composer) -> None:
    """Edits of the corpus: words that occur more often, or never."""
    times, stood = w["times"], w["stood_in_all"]
    words = [*CORPUS]
    low, newest, widest = (times[words.index(word), 0] for word in ("low", "newest", "widest"))
    ws.suggest(
        w.suggestion(
            "Type ‘20’: l and o stand together {then:.0f} times, not {now:.0f}. That is more "
            "often than e and s, which were merged first.",
            {low: 20.0},
            stood[2, 0],
        ),
        w.suggestion(
            "Type ‘0’ to remove newest: e and s stand together {then:.0f} times, not "
            "{now:.0f}. The pieces of newest would not be learnt.",
            {newest: 0.0},
            stood[0, 0],
        ),
        w.suggestion(
            "Type ‘12’: d and est stand together {then:.0f} times, not {now:.0f}. That is more "
            "often than e and w, which were merged much earlier.",
            {widest: 12.0},
            stood[9, 0],
        ),
    )


def shown(piece: str) -> str:
    """A token with a visible sign for its space."""
    return piece.replace(SPACE, "␣")


def story(w: Workbook) -> Story:
    """The start sheet's texts, and suggested edits with their computed effects."""
    sentence, n_ids = w.book.graph["sentence"][0, 0], w.book.graph["tokenizer.n_ids"][0, 0]
    return Story(
        title=TITLE,
        source="After M. Sinclair, Transformers (lecture slides), Tokens vs. Words; the corpus is that of Sennrich et al. 2016.",
        about=[
            "A model reads no letters and no words, but pieces: numbers out of a list of some tens of thousands. Frequent words are",
            "one piece, rare ones are put together from several, and what was never seen is spelt byte by byte.",
            "This is how a text becomes pieces. It begins as single characters; then pairs of neighbours are merged, always the one",
            "that was learnt first, until no learnt pair is left. Here 12 merges were learnt from 16 words.",
            "Why it matters: a model reads pieces, its use is billed by pieces, and it cannot see the letters inside one.",
            "‘lowest’ is not in the corpus. It becomes ␣low and est, two pieces that are.",
        ],
        look=[
            "Learning: the merges in their order, with how often each pair stood in the corpus, whose words you count.",
            "Tokenizer: type a text; each row is a step, and of the merges a row each. The pieces and their ids are at the top.",
            "Tokenizer tables: what the steps look up. Every model with such a tokenizer has the same two sheets.",
        ],
        suggestions=[
            w.suggestion(
                "Type ‘newest’, a word of the corpus: it is {then:.0f} piece, where the two "
                "words had {now:.0f}.",
                {sentence: "newest"},
                n_ids,
            ),
            w.suggestion(
                "Type ‘xylem’: letters that never stood together stay single, {then:.0f} "
                "pieces with the space.",
                {sentence: "xylem"},
                n_ids,
            ),
            w.suggestion(
                "Type ‘lowest lowest lowest’: {then:.0f} pieces, the same two each time.",
                {sentence: "lowest lowest lowest"},
                n_ids,
            ),
        ],
    )
