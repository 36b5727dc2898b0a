"""tokenization: how a word becomes pieces, merge by merge, with byte pairs learnt from four words.

Look at the rows of sheet Tokenizer: each merges one pair of neighbours, the one that was learnt
first. Try `lowest`, which the corpus does not have, and a word of letters that never met.
"""

from collections import Counter
from collections.abc import Mapping
from itertools import pairwise

from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from engine.models import tokenizing
from engine.models.subwords import byte_alphabet
from engine.models.tokenizer import Library
from exporters import legend
from exporters.book import Book
from exporters.pages import tokenizer as page
from exporters.story import Story
from exporters.tables import Workbook, Worksheet, near

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
    learning(
        w.sheet("Learning", "the pairs that were merged, in the order in which they were learnt"),
        merges,
    )
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


def learnt(counts: Mapping[str, int], n: int) -> list[tuple[str, str, int]]:
    """The merges, most frequent first: at every step the pair of neighbours that stands most often
    in the corpus, of several the first by its letters (Sennrich et al. 2016, algorithm 1)."""
    words = {tuple(SPACE + word): count for word, count in counts.items()}
    found = []
    for _ in range(n):
        pairs: Counter[tuple[str, str]] = Counter()
        for word, count in words.items():
            for pair in pairwise(word):
                pairs[pair] += count
        (left, right), count = min(pairs.items(), key=lambda item: (-item[1], item[0]))
        found.append((left, right, count))
        words = {joined(word, left, right): count for word, count in words.items()}
    return found


def joined(word: tuple[str, ...], left: str, right: str) -> tuple[str, ...]:
    """A word's symbols with every such pair made one."""
    made: list[str] = []
    for symbol in word:
        if made and made[-1] == left and symbol == right:
            made[-1] = left + right
        else:
            made.append(symbol)
    return tuple(made)


def library(merges: list[tuple[str, str, int]]) -> Library:
    """The tokenizer of these merges, as the library has it: byte-level byte pairs, as GPT-2's."""
    pieces = [*byte_alphabet(), *(left + right for left, right, _ in merges)]
    vocabulary = {piece: k for k, piece in enumerate(pieces)}
    inner = Tokenizer(models.BPE(vocabulary, [(left, right) for left, right, _ in merges]))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    inner.decoder = decoders.ByteLevel()
    return Library(inner, len(vocabulary))


def learning(ws: Worksheet, merges: list[tuple[str, str, int]]) -> None:
    """The corpus, and what was learnt from it."""
    ws.widths({0: 12, **dict.fromkeys(range(1, 8), 14)})
    ws.text(
        "Begin with single characters. Count in the corpus how often each two stand together; make the",
        "pair that is most frequent one piece; and count again. Every merge is a row below. The space",
        "before a word is part of it, written ␣. These are constants: they were learnt, not computed here.",
    )
    ws.typed(
        "corpus",
        [[word, count] for word, count in CORPUS.items()],
        cols=("word", "times"),
        style="label",
    )
    ws.heading("The merges, in the order in which they were learnt")
    rows = [
        [shown(left), shown(right), shown(left + right), count] for left, right, count in merges
    ]
    ws.typed(
        "merges",
        rows,
        range(len(rows)),
        ("left", "right", "becomes", "times in the corpus"),
        style="label",
    )


def shown(piece: str) -> str:
    """A piece with its space as a sign that one sees."""
    return piece.replace(SPACE, "␣")


def story(w: Workbook) -> Story:
    """What the start sheet says; what its edits do is computed by making them."""
    sentence, n_ids = w.book.graph["sentence"][0, 0], w.book.graph["tokenizer.n_ids"][0, 0]
    known, unknown, long = (
        {sentence: "newest"},
        {sentence: "xylem"},
        {sentence: "lowest lowest lowest"},
    )
    now = w.now(n_ids)
    return Story(
        title=TITLE,
        source="After M. Sinclair, Transformers (lecture slides), Tokens vs. Words; the corpus is that of Sennrich et al. 2016.",
        about=[
            "A model reads no letters and no words, but pieces: numbers out of a list of some tens of thousands. Frequent words are",
            "one piece, rare ones are put together from several, and what was never seen is spelt byte by byte.",
            "This is how a text becomes pieces. It begins as single characters; then pairs of neighbours are merged, always the one",
            "that was learnt first, until no learnt pair is left. Here 12 merges were learnt from 16 words.",
            "Why it matters: a model counts pieces, is paid by pieces, and cannot see the letters inside one.",
            "`lowest` is not in the corpus. It becomes ␣low and est, two pieces that are.",
        ],
        look=[
            "Learning: the merges in their order, with how often each pair stood in the corpus.",
            "Tokenizer: type a text; each row is a step, and of the merges a row each. The pieces and their ids are at the top.",
            "Tokenizer tables: what the steps look up. Every model with such a tokenizer has the same two sheets.",
        ],
        tries=[
            w.suggestion(
                f"Type newest: a word of the corpus is {w.edited(known)(n_ids):.0f} piece, where the two words had "
                f"{now:.0f}.",
                known,
                n_ids,
            ),
            w.suggestion(
                f"Type xylem: letters that never stood together stay single, {w.edited(unknown)(n_ids):.0f} pieces "
                "with the space.",
                unknown,
                n_ids,
            ),
            w.suggestion(
                f"Type lowest lowest lowest: {w.edited(long)(n_ids):.0f} pieces, the same two each time.",
                long,
                n_ids,
            ),
        ],
    )
