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
    ws = w.sheet("Learning", "the merged pairs, in the order of learning")
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
    w.checks([("the whole typed text became tokens", near(fine.fixed))])
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
        "Start with single characters. Count how often each pair of neighbours occurs in the "
        "corpus. Merge the most frequent pair into one piece.",
        "Then count again. Each row below is one merge. The sign ␣ is the space before a word, "
        "which belongs to the word.",
        "The merges come from the original corpus and do not change. The counts of the pairs "
        "follow the numbers that you type.",
        "If a row gets a higher count than a row above it, your corpus would lead to merges in "
        "another order.",
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
    ws.heading("The merges, in the order of learning")
    top, n = ws.cursor, len(merges)
    ws.typed(
        "merges",
        [[shown(m.left), shown(m.right), shown(m.left + m.right)] for m in merges],
        range(n),
        ("left", "right", "becomes"),
        style="label",
    )
    inside = ws.typed(
        "stood",
        np.array([m.of_words for m in merges], dtype=float),
        cols=[f"in {word}" for word in CORPUS],
        style="count",
        left=5,
        top=top,
    )

    ws.computed(
        "stood_in_all",
        (n, 1),
        lambda k, _: reduce(add, [inside[k, word] * times[word, 0] for word in range(len(CORPUS))]),
        cols=["times in all"],
        style="activation count",
        left=4,
        top=top,
    )


def suggest(w: Workbook, ws: Composer) -> None:
    """Edits of the corpus: words that occur more often, or never."""
    times, stood = w["times"], w["stood_in_all"]
    words = [*CORPUS]
    low, newest, widest = (times[words.index(word), 0] for word in ("low", "newest", "widest"))
    ws.suggest(
        w.suggestion(
            "Type ‘20’: the pair ‘l’ and ‘o’ occurs {then:.0f} times, not {now:.0f}. This pair "
            "is now more frequent than ‘e’ and ‘s’, the first merge.",
            {low: 20.0},
            stood[2, 0],
        ),
        w.suggestion(
            "Type ‘0’ to remove ‘newest’: the pair ‘e’ and ‘s’ occurs {then:.0f} times, not "
            "{now:.0f}. A tokenizer of this corpus does not learn the pieces of ‘newest’.",
            {newest: 0.0},
            stood[0, 0],
        ),
        w.suggestion(
            "Type ‘12’: the pair ‘d’ and ‘est’ occurs {then:.0f} times, not {now:.0f}. This pair "
            "is now more frequent than ‘e’ and ‘w’, a much earlier merge.",
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
        source="Based on M. Sinclair, Transformers (lecture slides), Tokens vs. Words; the corpus "
        "is from Sennrich et al. 2016.",
        about=[
            "A model does not read letters or words, but pieces. Each piece has a number in a "
            "list of some tens of thousands of pieces.",
            "A frequent word is one piece. A rare word has several pieces. An unknown text is "
            "split into single bytes.",
            "A text first becomes single characters. Then the tokenizer merges neighbouring "
            "pairs, always the pair that was learnt first.",
            "The merging stops when no learnt pair is left. The 12 merges here were learnt from "
            "16 words.",
            "Why it matters: a model reads pieces and cannot see the letters inside a piece. "
            "Providers also charge for each piece.",
            "‘lowest’ is not in the corpus. The word becomes two learnt pieces, ‘␣low’ and ‘est’.",
        ],
        look=[
            "The sheet Learning shows the merges in order, with the count of each pair in the "
            "corpus. You can change how often each word occurs.",
            "On the sheet Tokenizer, type a text. Each row is a step, and each merge has its own "
            "row. The pieces and their ids are at the top.",
            "The sheet Tokenizer tables holds the data for the steps. Every model with this kind "
            "of tokenizer has the sheets Tokenizer and Tokenizer tables.",
        ],
        suggestions=[
            w.suggestion(
                "Type ‘newest’, a word of the corpus: the text becomes {then:.0f} piece. The two "
                "words typed before had {now:.0f} pieces.",
                {sentence: "newest"},
                n_ids,
            ),
            w.suggestion(
                "Type ‘xylem’: letters that never occurred together stay single. With the space, "
                "the word has {then:.0f} pieces.",
                {sentence: "xylem"},
                n_ids,
            ),
            w.suggestion(
                "Type ‘lowest lowest lowest’: the text has {then:.0f} pieces. Each word becomes "
                "the same two pieces.",
                {sentence: "lowest lowest lowest"},
                n_ids,
            ),
        ],
    )
