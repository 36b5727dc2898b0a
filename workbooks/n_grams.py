"""n-grams: why not look up the last four words? A table of longer rows, on a real text.

A bigram table gives the next word by the last one. Look at a table of two, three, four words:
how many rows it could have, how many the text fills, how few of a new text's it knows. Try words that occur again.
"""

import re
from collections import Counter
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any

from cellformer.engine.cells.expression import Area, Expression, expression
from cellformer.engine.cells.functions import COUNTIF, IF, SUM, SUMPRODUCT
from cellformer.exporters.assemble.worksheets import Workbook
from cellformer.exporters.compose.book import Book, Chart, Series
from cellformer.exporters.compose.composer import Composer
from cellformer.exporters.compose.story import Story, Suggestion

TOPIC, AFTER, LEVEL = "The next word", "zero-layer", 1
TITLE = "n-grams: why not look up the last four words?"
TEXT = """to be or not to be that is the question whether 'tis nobler in the mind to suffer the slings
and arrows of outrageous fortune or to take arms against a sea of troubles and by opposing end them
to die to sleep no more and by a sleep to say we end the heartache and the thousand natural shocks
that flesh is heir to 'tis a consummation devoutly to be wished to die to sleep to sleep perchance
to dream ay there's the rub for in that sleep of death what dreams may come when we have shuffled
off this mortal coil must give us pause there's the respect that makes calamity of so long life for
who would bear the whips and scorns of time the oppressor's wrong the proud man's contumely the
pangs of despised love the law's delay the insolence of office and the spurns that patient merit of
the unworthy takes when he himself might his quietus make with a bare bodkin who would fardels bear
to grunt and sweat under a weary life but that the dread of something after death the undiscovered
country from whose bourn no traveller returns puzzles the will and makes us rather bear those ills
we have than fly to others that we know not of thus conscience does make cowards of us all and thus the
native hue of resolution is sicklied o'er with the pale cast of thought and enterprises of great
pitch and moment with this regard their currents turn awry and lose the name of action"""
WORDS = TEXT.split()
LONGEST = 5
SIZES = range(1, LONGEST + 1)
KNOWN = 180  # words that the table is made from; the others are new
# of 40,000 lines of Shakespeare's plays, by n: `measure` of the text that docs/shakespeare.md names
PLAYS_WORDS, PLAYS_DIFFERENT = 204_062, 12_631
PLAYS = (  # different n-grams, those that occur once, share of a new tenth that occurred before
    (12_631, 5_704, 0.943448),
    (107_663, 84_483, 0.51507),
    (183_922, 173_101, 0.117918),
    (201_022, 198_668, 0.012939),
    (203_323, 202_671, 0.001568),
)
MOST_SHOWN = 10**11  # a number above it is written as a power of ten
NEW = 0.1  # share of the plays that counts as new
ROWS = (
    "possible rows",
    "n-grams in the text",
    "different n-grams",
    "n-grams seen once",
    "share seen only once",
    "share known in new text",
)
SHARES = (4, 5)  # which of the ROWS are shares
NOTES = (
    "different words to the power n",
    "number of words − n + 1",
    "rows of the table that the text fills",
    "rows with a single example",
    "a row with one example predicts the next word with certainty",
    "share of the new text's n-grams that the table contains",
)


def book() -> Book:
    """The workbook."""
    w = Workbook("n-grams")
    growth = w.sheet("Growth", "tables of one to five words: the possible rows, and the known rows")
    of_text(w.sheet("Text", "one word per row, with the n-grams that end at this word"))
    of_growth(growth)
    # longer n-grams occur at most as often as shorter ones that end alike
    counts = w["times"]
    never_rises = SUMPRODUCT((counts[LONGEST:, 1:] > counts[LONGEST:, :-1]) * 1) == 0
    w.checks(
        [
            (
                "number of different words = number of first occurrences",
                different_of(counts, 1) == w["growth"][2, 0],
            ),
            ("no n-gram occurs more often than its beginning", never_rises),
        ]
    )
    return w.done(story(w))


def of_text(ws: Composer) -> None:
    """Add the words, the n-grams that end at each, and how often each occurs: [n_words, LONGEST]
    both."""
    widths = {0: 8, 1: 14, 2: 14, 3: 20, 4: 22, 5: 27, 6: 32, 7: 3, 13: 3}
    ws.widths(dict.fromkeys(range(8, 19), 8) | widths)
    ws.text(
        "The words of Hamlet's speech, without punctuation (W. Shakespeare, Hamlet, act 3, scene "
        "1). Type over any word: all counts change.",
        f"The first {KNOWN} words make the table. The other words are the new text.",
        style="note",
    )
    ws.cursor += 1
    n, top = len(WORDS), ws.cursor
    words = ws.typed("words", [[word] for word in WORDS], range(1, n + 1), ("word",), style="token")

    def key(t: int, j: int) -> Expression:
        if t < j:
            return expression("")
        spoken: list[Expression] = [*words[t - j : t + 1, 0].cells]
        return reduce(lambda said, word: said & " " & word, spoken)

    def known(t: int, j: int) -> Expression:
        if t < KNOWN:
            return expression(0)
        return IF(COUNTIF(keys[:KNOWN, j].fixed, keys[t, j]) > 0, 1, 0)

    heads = [f"{j} word{'s' if j > 1 else ''}" for j in SIZES]
    shape = (n, LONGEST)
    keys = ws.computed("ends_here", shape, key, cols=heads, style="text", left=2, top=top)
    ws.computed(
        "times",
        shape,
        lambda t, j: COUNTIF(keys[:, j].fixed, keys[t, j]) if t >= j else expression(0),
        cols=heads,
        style="activation count",
        left=8,
        top=top,
    )
    ws.computed("known", shape, known, cols=heads, style="activation count", left=14, top=top)
    ws.sheet.put(top - 1, 2, "n-grams that end here", "block")
    ws.sheet.put(top - 1, 8, "count of each n-gram", "block")
    ws.sheet.put(top - 1, 14, "new, and known", "block")


def of_growth(ws: Composer) -> None:
    """Add the figures of the text by n, the figures of the plays, and the chart."""
    ws.widths({0: 28} | dict.fromkeys(range(1, 6), 13) | {6: 3})
    ws.text(
        "A bigram table looks up the last word and says which words followed it. Four words say "
        "more about the next word than one word.",
        "But a table of four words has a row for every possible group of four words. "
        "The text contains hardly any of these groups.",
    )
    ws.heading("Hamlet's speech (sheet Text)")
    known, counts, n = ws["known"], ws["times"], len(WORDS)
    heads = [f"n = {j}" for j in SIZES]
    table = ws.promised("growth", (len(ROWS), LONGEST), ROWS, heads)
    figures: tuple[Callable[[int], Expression], ...] = (
        lambda j: table[2, 0] ** (j + 1),
        lambda j: expression(n - j),
        lambda j: different_of(counts, j + 1),
        lambda j: SUMPRODUCT((counts[:, j] == 1) * 1),
        lambda j: table[3, j] / table[2, j],
        lambda j: SUM(known[:, j]) / (n - KNOWN),
    )
    ws.fill(table, lambda row, j: figures[row](j))
    top = ws.rect(table).top
    for row, note in enumerate(NOTES, top):
        ws.sheet.put(row, 7, note, "note")
        for col in range(1, LONGEST + 1):
            entry = ws.sheet.entries[row, col]
            ws.sheet.entries[row, col] = entry._replace(
                style="percent" if row - top in SHARES else "thousands"
            )
    of_plays(ws, table, heads)


def of_plays(ws: Composer, table: Area, heads: list[str]) -> None:
    """Add the same of Shakespeare's plays, constants; and the chart of both."""
    ws.heading(
        f"Shakespeare's plays: {PLAYS_WORDS:,} words (constants); the last tenth is the new text"
    )
    values: list[list[Any]] = [
        [float(PLAYS_DIFFERENT) ** j for j in SIZES],
        [float(PLAYS_WORDS - j + 1) for j in SIZES],
        *([float(line[k]) for line in PLAYS] for k in (0, 1)),
        [once / different for different, once, _ in PLAYS],
        [line[2] for line in PLAYS],
    ]
    found = ws.typed("plays", values, ROWS, heads, style="constant")
    top = ws.rect(found).top
    for row in range(len(ROWS)):
        for col in range(1, LONGEST + 1):
            long = "off" if values[row][col - 1] > MOST_SHOWN else "thousands"
            style = "constant percent" if row in SHARES else long
            entry = ws.sheet.entries[top + row, col]
            ws.sheet.entries[top + row, col] = entry._replace(style=style)
    sizes = ws.typed("sizes", [list(SIZES)], ["n"], style="label number")
    series = [
        Series("Hamlet's speech", sizes, table[5, :]),
        Series("the plays", sizes, found[5, :]),
    ]
    ws.chart(
        Chart(
            top - 3,
            7,
            "scatter",
            "How many n-grams of a new text are in the table?",
            series,
            size=(480, 235),
            axes=("n", "share known in new text"),
            joined=True,
        )
    )


def different_of(counts: Area, n: int) -> Expression:
    """The number of different n-grams: the sum of 1 over the count of each."""
    found = counts[:, n - 1]
    return SUMPRODUCT((found > 0) / (found + (found == 0) * 1))


def measure(path: Path) -> list[tuple[int, int, float]]:
    """The figures of PLAYS, from a text file."""
    words = re.findall(r"[a-z']+", path.read_text(encoding="utf-8").lower())
    cut, found = round(len(words) * (1 - NEW)), []
    for n in SIZES:
        grams = [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]
        counts, seen, new = Counter(grams), {*grams[: cut - n + 1]}, grams[cut:]
        once = sum(count == 1 for count in counts.values())
        found.append((len(counts), once, round(sum(g in seen for g in new) / len(new), 6)))
    return found


def story(w: Workbook) -> Story:
    """The start sheet's texts, and suggested edits with their computed effects."""
    return Story(
        title=TITLE,
        source="Based on A Gentle Introduction to Transformers (2025), Bigrams. The text is by W. "
        "Shakespeare.",
        about=[
            "A bigram table says which word follows which: the table looks back one word. Why "
            "not two, three or four? A table of n-grams looks back n - 1 words.",
            "Each further word multiplies the possible rows of the table by the number of "
            "different words. The text does not grow. Soon every row has one example or none.",
            "A new text contains hardly any groups of four words from the old text. This stays "
            "true even for a very long old text.",
            "Why it matters: a language model must say something sensible after words that "
            "nobody has written before. A table does not contain these words.",
            "A model must treat a new word like similar words. Vectors make this possible. "
            "Attention finds the important words further back.",
        ],
        look=[
            "The sheet Growth shows the possible rows of a table of n words, the filled rows, "
            "and the known share of a new text.",
            "Below, Growth shows these numbers for 200,000 words of Shakespeare's plays. More "
            "text helps for n = 2, but hardly for n = 4.",
            "The sheet Text shows Hamlet's speech, word by word, with the n-grams that end at "
            "each word, and the count of each n-gram.",
        ],
        suggestions=suggestions(w),
    )


def suggestions(w: Workbook) -> list[Suggestion]:
    """Three edits of the new text: a word that was there, two, and four in a row."""
    words, growth = w["words"], w["growth"]
    first = KNOWN + 3
    return [
        w.suggestion(
            "Type ‘zebra’, a new word: the speech now has {then:.0f} different words, not "
            "{now:.0f}. See how many rows of five words are possible.",
            {words[0, 0]: "zebra"},
            growth[2, 0],
        ),
        w.suggestion(
            "Type ‘to’, ‘be’, ‘or’, ‘not’, ‘to’ over five words of the new text. The table now "
            "knows {then:.1%} of the groups of four words in the new text, not {now:.1%}.",
            {words[first + k, 0]: word for k, word in enumerate(WORDS[:5])},
            growth[5, 3],
        ),
        w.suggestion(
            "Replace a word that the table does not know: type ‘the’. The share of known words "
            "rises from {now:.1%} to {then:.1%}.",
            {words[WORDS.index("conscience"), 0]: "the"},
            growth[5, 0],
        ),
    ]
