"""Steering: a direction between two lists of sentences, added to the stream with a typed strength.

What stands at the site at each sentence's last token comes from passes over those sentences: the
engine's numbers, constants here. All that follows is cells: the means, their difference (the
direction), the words that it points to, and the probe that tells the lists apart by it, with the
sentences that are held out from it. What is added reaches every cell behind the site, and Play.
"""

from collections.abc import Mapping
from functools import reduce

import numpy as np

from cellformer.engine import Evaluator
from cellformer.engine.cells.access import Span
from cellformer.engine.cells.arrays import ranked
from cellformer.engine.cells.batch import variants
from cellformer.engine.cells.expression import Area, Expression
from cellformer.engine.cells.functions import (
    AVERAGE,
    IF,
    ISNUMBER,
    MATCH,
    MAX,
    MIN,
    ORDER,
    ROUND,
    SQRT,
    SUM,
    SUMPRODUCT,
)
from cellformer.engine.cells.language import worded
from cellformer.engine.cells.texts import cut, readable
from cellformer.engine.studies import probes, steering
from cellformer.engine.studies.steering import DIRECTION, STRENGTH, WHERE, Contrast
from cellformer.exporters.compose.book import Place, Run
from cellformer.exporters.compose.composer import Composer
from cellformer.exporters.compose.dressing import Unlike, When, between
from cellformer.exporters.compose.lookups import entry
from cellformer.exporters.compose.sentences import percent, quote, rounded, sentence
from cellformer.exporters.compose.story import Suggestion
from cellformer.exporters.model import layout
from cellformer.exporters.model.model_book import ModelBook
from cellformer.exporters.play.sentence import answered

SHEET = steering.ADDITION.sheet
PURPOSE = "add a direction between two lists of sentences, and read the new text"
AFTER = "Play"
CONCEPT = "steer it"  # on the tour
SAYS, AT = "steering.says", "steering.at"
SENTENCE, LIST, OUT, ALONG, RIGHT, FITS, FEATURES = 0, 1, 2, 3, 4, 5, 7  # columns of the sentences
LONGEST = 64  # characters of a continued sentence in a suggested edit
N_NEAREST = 8  # words at each end
DECIMALS = 9  # of a dot product that is ranked: programs differ in the last ones
LARGEST = steering.LARGEST
RULE = between(-LARGEST, LARGEST, worded("A number from -{largest} to {largest}.", largest=LARGEST))
OFTEN = 2.0  # the strength at one token that is suggested
PREFIX = f"{steering.STEERING}."
CORE = (DIRECTION, STRENGTH, WHERE, f"{PREFIX}added")


def wanted(book: ModelBook) -> bool:
    """Whether the workbook was built with --steer."""
    return steering.ADDITION.name in book.plan.studies


def contrast(book: ModelBook) -> Contrast:
    """The two lists."""
    found: Contrast = book.plan.studies[steering.ADDITION.name]
    return found


def explained(book: ModelBook) -> Expression:
    """The text of its stop on the tour."""
    text = (
        "A meaning can lie along a direction of the model’s stream. The sheet Steering has two "
        "lists of sentences, {first} and {second}. The difference of the lists’ means is such a "
        "direction. The direction assigns {share} of the held-out sentences to the correct list. "
        "Type a strength on the sheet Steering. The model adds the direction, times this "
        "strength, to the stream of every token. Then read the new text. Now the strength is "
        "{strength}."
    )
    first, second = map(quote, contrast(book).lists)
    share = percent(book.graph[f"{PREFIX}accuracy"][1, 0], 0)
    strength = rounded(book.graph[STRENGTH][0, 0], 2)
    return sentence(text, first=first, second=second, share=share, strength=strength)


def add(book: ModelBook) -> None:
    """Add the strength and the answer; three suggested edits; the nearest words; the sentences,
    the direction and the probe; the added vectors; the readout of the direction."""
    page = layout.page(
        book, SHEET, widths={SENTENCE: 44, LIST: 16, OUT: 11, ALONG: 11, RIGHT: 11, FITS: 11, 6: 16}
    )
    _settings(book, page)
    page.suggest(*suggestions(book), at=(0, 1, 2))
    streams = f"{PREFIX}words" in book.graph.blocks
    nearest = page.cursor + 1
    if streams:
        page.cursor += N_NEAREST + 5
    _sentences(book, page)
    _added(book, page)
    if streams:
        _nearest(book, page, nearest, _words(book, page))


# --- the strength, and what is said --------------------------------------------------------------


def _settings(book: ModelBook, page: Composer) -> None:
    """Add the strength, its tokens, and the answers now and before."""
    found, sheet, g, n = contrast(book), page.sheet, book.graph, len(book.passage.ids)
    top = page.cursor
    sheet.put(top, 0, "Steer the stream from one list of sentences to another", "heading")
    sheet.link(top, OUT, worded("at {site}", site=found.site), book.address(g[found.site].area))
    strength = page.lay(g[STRENGTH], (top + 1, 1), "dial", rule=RULE)
    at = page.typed_at(
        AT,
        (top + 2, 1),
        [[""]],
        "dial",
        rule=between(0, n - 1, worded("A position from 0 to {value}.", value=n - 1), whole=True),
    )

    g.follow(WHERE, lambda t, _: IF(ISNUMBER(at[0, 0]), IF(at[0, 0] == t, 1, 0), 1))
    page.lay(g[WHERE], (top + 4, 1), "id", turned=True)
    layout.labels(book, sheet, "steered", (top + 3, 1), "token", range(n), "label", across=True)
    says = _says(book, page, (top + 5, 1))
    built = book.model.vocabulary.decode(book.passage.ids)
    sheet.hold(top + 6, 1, readable(built), "note")
    sheet.down(
        top + 1,
        0,
        ("strength", "at token", "token", "added", "Play says now", "as built"),
        "row label",
    )
    first, second = found.lists
    note = worded(
        "strength of the direction: above 0 towards ‘{first}’, below 0 towards ‘{second}’",
        first=first,
        second=second,
    )
    sheet.put(top + 1, 2, note, "note")
    sheet.put(
        top + 2,
        2,
        "empty: add the direction at every token; a number: only at this position, from 0",
        "note",
    )
    page.dress(says, When("differs", strength != 0))
    page.cursor = top + 7


def _says(book: ModelBook, page: Composer, at: Span) -> Area:
    """Add the sentence and its continuation, as one text; without a tokenizer, as its tokens."""
    if "text.whole" in book.graph.blocks:
        text = answered(book, book.graph["text.whole"][0, 0] & "")
        return page.computed_at(SAYS, at, (1, 1), lambda *_: text, "text")
    tokens = layout.token_texts(book).cells
    return page.show(
        "says", at, reduce(lambda a, b: a & " " & b, tokens[1:], tokens[0] & ""), "text"
    )


def suggestions(book: ModelBook) -> list[Suggestion]:
    """Three edits: a strength of 1, of -1, and one at the single token where it does most."""
    live = Evaluator(book.graph)
    alone, strength = _strongest(book)

    def suggestion(strength: float, at: int | None = None) -> Suggestion:
        live.set(STRENGTH, 0, 0, strength)
        if at is not None:
            live.set(AT, 0, 0, float(at))
        watch, shown = _watched(book)
        value = live[watch[0]][watch[1:]]
        becomes = value if isinstance(value, str) else float(value)
        said = (
            f"‘{cut(becomes, LONGEST)}’" if isinstance(becomes, str) else f"{shown} {becomes:.3f}"
        )
        live.reset()
        there = (
            ""
            if at is None
            else worded(
                ", ‘{at}’ as token (‘{prompt_text}’)",
                at=at,
                prompt_text=layout.prompt_text(book, at),
            )
        )
        text = worded(
            "Type ‘{strength:g}’ as strength{there}: the result is {said}.",
            strength=strength,
            there=there,
            said=said,
        )
        also = () if at is None else (((AT, 0, 0), float(at)),)
        return Suggestion(text, (STRENGTH, 0, 0), strength, watch, becomes, also)

    return [suggestion(1.0), suggestion(-1.0), suggestion(strength, alone)]


def _watched(book: ModelBook) -> tuple[tuple[str, int, int], str]:
    """The cell that a suggested edit changes: the text, or where it has no room to go on the
    probability of the likeliest next word."""
    last = book.passage.n_prompt - 1
    if SAYS in book.graph.blocks and len(book.passage.ids) > book.passage.n_prompt:
        return (SAYS, 0, 0), ""
    word = int(np.argmax(book.values["logits"][last]))
    texts = book.labels[book.graph["logits"].axes[1]]
    return ("probs", last, word), worded("‘{texts}’ with", texts=texts[word])


def _strongest(book: ModelBook) -> tuple[int, float]:
    """The token before the prompt's last, and the strength, that change the next word, or else its
    probabilities most, if the direction is added there alone."""
    ids, found = book.passage.ids[: book.passage.n_prompt], contrast(book)
    graph = steering.steered(book.model.graph(ids), found.site, found.direction, tokens=())
    tried = [(t, strength) for t in range(max(1, len(ids) - 1)) for strength in (OFTEN, -OFTEN)]
    changes = [{(WHERE, t, 0): 1.0, (STRENGTH, 0, 0): strength} for t, strength in tried]
    before, after = graph.values["probs"][-1], variants(graph, changes)["probs"][:, -1]
    moved = np.abs(after - before).sum(axis=1)  # at most 2
    other = after.argmax(axis=1) != before.argmax()
    return tried[ranked(moved + 2 * other, 1)[0]]


# --- the sentences, the direction and the probe --------------------------------------------------


def _sentences(book: ModelBook, page: Composer) -> None:
    """Add the sentences with their vectors at the site, the direction, and the probe."""
    found, sheet = contrast(book), page.sheet
    page.heading("The sentences, and the list that the probe finds for each sentence")
    text = worded(
        "vector at {site} for the last token of each sentence: constants for these sentences",
        site=found.site,
    )
    sheet.put(page.cursor - 1, FEATURES, text, "note")
    page.heads_at(
        (page.cursor, 0), "sentence", "list", "held out: 1", "along it", "right: 1", style="label"
    )
    top, width = page.cursor + 1, found.first.shape[1]
    lines = [
        (readable(book.model.vocabulary.decode(ids)), name)
        for name, sentences in found.lists.items()
        for ids in sentences
    ]
    sheet.lines(top, lines, {SENTENCE: "text", LIST: "row label"})
    sheet.runs.append(Run(sheet[top - 1, FEATURES : FEATURES + width].rect, "label number"))
    block = book.graph.input(
        f"{PREFIX}sentences", np.concatenate([found.first, found.second]), ("", ""), "table"
    )
    page.lay(block, (top, FEATURES), "basis")
    page.cursor = top + len(lines) + 1
    _probe(book, page, block.area, top, _direction(book, page, block.area))


def _direction(book: ModelBook, page: Composer, rows: Area) -> int:
    """Add the means of both lists, and their difference, whose entries may be typed over; returns
    the row below, where the probe's lines stand."""
    g, sheet, width = book.graph, page.sheet, rows.shape[1]
    n = len(contrast(book).first)
    at = page.cursor
    parts = (rows[:n, :], rows[n:, :])
    mean = page.computed_at(
        f"{PREFIX}mean",
        (at, FEATURES),
        (2, width),
        lambda i, j: AVERAGE(parts[i][:, j].as_range),
        "step",
    )
    typed = page.typed_at(f"{PREFIX}typed", (at + 2, FEATURES), [[""] * width], "number typed")

    sheet.areas.append((sheet[at + 2, FEATURES : FEATURES + width].rect, RULE))

    def entry_of(_: int, j: int) -> Expression:
        within = MAX(-LARGEST, MIN(LARGEST, typed[0, j]))  # what is pasted passes the rule
        return IF(ISNUMBER(typed[0, j]), within, mean[0, j] - mean[1, j])

    g.follow(DIRECTION, entry_of)
    direction = page.lay(g[DIRECTION], (at + 3, FEATURES), "change plain")
    sheet.dress(sheet[at + 3, FEATURES : FEATURES + width], "diverging")
    first, second = contrast(book).lists
    labels = (
        worded("mean of ‘{first}’", first=first),
        worded("mean of ‘{first}’", first=second),
        "instead of it",
        "the direction",
    )
    sheet.down(at, FEATURES - 1, labels, "row label")
    page.show(
        "norm",
        (at + 3, 1),
        SQRT(SUMPRODUCT(direction, direction)),
        "step",
        label="length of the direction",
    )
    return at + 5


def _probe(book: ModelBook, page: Composer, rows: Area, top: int, below: int) -> None:
    """Add the held-out sentences, the probe fitted on the others, and the list that it assigns
    to each sentence: beside the sentences from `top`, and below."""
    kept = _kept(book, page, top)
    probe, threshold = _fitted(book, page, rows, kept, below)
    n, n_first = rows.shape[0], len(contrast(book).first)
    along = page.computed_at(
        f"{PREFIX}along", (top, ALONG), (n, 1), lambda i, _: SUMPRODUCT(rows[i, :], probe), "step"
    )

    def right(i: int, _: int) -> Expression:
        sides = (1, 0) if i < n_first else (0, 1)
        return IF(along[i, 0] > threshold, *sides)

    hits = page.computed_at(f"{PREFIX}right", (top, RIGHT), (n, 1), right, "id", dress=Unlike(1))
    _accuracy(page, hits.as_range, kept.as_range, below + 1)
    page.cursor = below + 5


def _kept(book: ModelBook, page: Composer, top: int) -> Area:
    """Add the switches of the sentences that are held out; returns 1 for each of the others."""
    found = contrast(book)
    drawn = [probes.held_out(len(x)) for x in (found.first, found.second)]
    held = np.concatenate(drawn).astype(float)[:, None]
    out = page.typed_at(
        f"{PREFIX}out",
        (top, OUT),
        held.tolist(),
        "switch",
        rule=between(0, 1, "1: the sentence tests the probe. 0: it fits the probe.", whole=True),
    )
    return page.computed_at(
        f"{PREFIX}kept",
        (top, FITS),
        held.shape,
        lambda i, _: IF(out[i, 0] == 1, 0, 1),
        "id",
        head="fits it: 1",
    )


def _fitted(
    book: ModelBook, page: Composer, rows: Area, kept: Area, top: int
) -> tuple[Area, Expression]:
    """Add the means of the kept sentences, their difference, which is the probe, and the
    threshold half-way between them; returns the probe and the threshold."""
    found, (n, width) = contrast(book), rows.shape
    lists = (slice(0, len(found.first)), slice(len(found.first), n))

    def mean(i: int, j: int) -> Expression:
        mine = kept[lists[i], 0].as_range
        return SUMPRODUCT(rows[lists[i], j].as_range, mine) / MAX(1, SUM(mine))

    fit = page.computed_at(f"{PREFIX}fit", (top, FEATURES), (2, width), mean, "step")
    at, one = (top + 2, FEATURES), (1, 1)
    probe = page.computed_at(
        f"{PREFIX}probe", at, (1, width), lambda _, j: fit[0, j] - fit[1, j], "change plain"
    )
    half = (SUMPRODUCT(fit[0, :], probe) + SUMPRODUCT(fit[1, :], probe)) / 2
    name = f"{PREFIX}threshold"
    threshold = page.computed_at(
        name,
        (top, 1),
        one,
        lambda *_: half,
        "step",
        label="threshold: half-way between the two means",
    )
    labels = (
        *(worded("mean of ‘{name}’ (fitted)", name=name) for name in found.lists),
        "the probe",
    )
    page.sheet.down(top, FEATURES - 1, labels, "row label")
    return probe, threshold[0, 0]


SHARES = (
    "share of fitted sentences in the correct list",
    "share of held-out sentences in the correct list",
)


def _accuracy(page: Composer, hits: Area, kept: Area, top: int) -> None:
    """Add the shares of sentences that the probe assigns to their list, for the sentences of the
    fit and for the others."""
    n = hits.shape[0]

    def share(i: int, _: int) -> Expression:
        inside, n_kept = SUMPRODUCT(hits, kept), SUM(kept)
        if i == 0:
            return inside / MAX(1, n_kept)
        return (SUM(hits) - inside) / MAX(1, n - n_kept)

    shares = page.computed_at(f"{PREFIX}accuracy", (top, 1), (2, 1), share, "percent")
    page.sheet.down(top, 0, SHARES, "row label")
    said = sentence(
        "The probe assigns {held} of the held-out sentences and {fitted} of the fitted sentences "
        "to the correct list.",
        held=percent(shares[1, 0], 0),
        fitted=percent(shares[0, 0], 0),
    )
    page.show("verdict", (top + 2, 0), said, "block")


# --- what is added, and how it reads as words ----------------------------------------------------


def _added(book: ModelBook, page: Composer) -> None:
    """Add the vector that steering adds at each token: a column of features each, in the layout
    of the stream."""
    added = book.graph[f"{PREFIX}added"]
    page.heading("Vector added to the stream at each token: strength × direction")
    (n, width), top = added.shape, page.cursor + 1
    layout.labels(book, page.sheet, "added", (top - 1, 1), "token", range(n), "label", across=True)
    page.sheet.runs.append(Run(page.sheet[top : top + width, 0].rect, "row number"))
    layout.settle(book, page.sheet, Place(added, SHEET, top, 1, turned=True))
    page.cursor = top + width + 1


def _words(book: ModelBook, page: Composer) -> Mapping[str, Area]:
    """Add the direction through the readout, its dot product with each word, and the words' ranks;
    returns the columns."""
    g, sheet = book.graph, page.sheet
    page.heading("The direction as input of the readout, and its dot product with every word")
    page.heads_at((page.cursor, 0), "word", "dot product", "rounded", "rank", "id", style="label")
    top, words = page.cursor + 1, g[f"{PREFIX}words"]
    n = words.shape[1]
    sheet.runs.append(Run(sheet[top : top + n, 0].rect, "row label", book.labels[words.axes[1]]))
    layout.settle(book, sheet, Place(words, SHEET, top, 1, turned=True))
    score = page.computed_at(
        f"{PREFIX}score", (top, 2), (n, 1), lambda v, _: ROUND(words[0, v], DECIMALS), "step"
    )
    ids = page.lay(g.input(f"{PREFIX}ids", np.arange(n)[:, None], kind="table"), (top, 4), "built")

    ranks = page.computed_at(
        f"{PREFIX}rank",
        (top, 3),
        (n, 1),
        lambda v, _: ORDER(score[v, 0], score.as_range, ids[v, 0], ids.as_range) + 1,
        "id",
    )
    col, longest = FEATURES, n
    for block in g:
        if block.part == steering.STEERING and block.op and block.name not in (*CORE, words.name):
            sheet.put(top - 1, col, block.name.removeprefix(PREFIX), "label fitted")
            layout.settle(book, sheet, Place(block, SHEET, top, col, turned=True))
            longest, col = max(longest, block.shape[1]), col + 1
    page.cursor = top + longest + 1
    return {"dots": words.area, "ranks": ranks, "texts": sheet[top : top + n, 0].as_range}


def _nearest(book: ModelBook, page: Composer, top: int, columns: Mapping[str, Area]) -> None:
    """Add the words nearest to the direction, and the words nearest to its opposite."""
    page.sheet.put(top, 0, "The words that the readout finds nearest to the direction", "heading")
    n = columns["ranks"].shape[0]
    for side, name in enumerate(contrast(book).lists):
        col = 2 * side
        page.sheet.put(top + 1, col, worded("towards ‘{name}’", name=name), "block")
        page.heads_at((top + 2, col), "word", "dot product", style="label")
        shown = min(N_NEAREST, n)
        words = page.table(f"nearest.{side}", (top + 3, col), (shown, 2))
        for k in range(shown):
            place = MATCH(n - k if side else k + 1, columns["ranks"].as_range, 0)
            words.put(k, 0, entry(columns["texts"], place, 1), "word")
            words.put(k, 1, entry(columns["dots"].as_range, place, 1), "step")
