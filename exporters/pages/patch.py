"""Patch: a value of the other sentence put into this one, and how much of the difference recovers.

Each site, a part of a layer at a token, has a switch: 1 takes the other sentence's value there, and
everything downstream is computed from it (activation patching; Vig et al. 2020, Meng et al. 2022).
Beside the switches is what each alone recovers of the difference between the sentences' leads:
exactly, constants for the sentences as built, grey once one has changed; and as the gradient
without any patch promises, live (attribution patching; Nanda 2023). A path has a row of its own:
its sender as the other sentence has it, seen by its receiver alone (Goldowsky-Dill et al. 2023).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cellformer.engine import Evaluator
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.expression import Expression, expression
from cellformer.engine.cells.functions import ABS, AND, IF
from cellformer.engine.cells.language import AsIs, worded
from cellformer.engine.cells.name import CLEAN, OTHER
from cellformer.engine.cells.rounding import NOISE
from cellformer.engine.studies import pair, patching
from cellformer.engine.studies.pair import BEFORE, COMPARED, LEAD
from cellformer.engine.studies.part_names import said
from cellformer.engine.studies.patching import (
    PATCH,
    PATH_ROWS,
    PATH_TAKE,
    TAKE,
    Comparison,
    Patched,
    Path,
)
from cellformer.exporters.compose.book import Place
from cellformer.exporters.compose.composer import Composer
from cellformer.exporters.compose.dressing import Unlike, When, between
from cellformer.exporters.compose.sentences import quote, rounded, sentence
from cellformer.exporters.compose.story import Suggestion, outcome
from cellformer.exporters.model import layout
from cellformer.exporters.model.model_book import ModelBook

SHEET = pair.ADDITION.sheet
PURPOSE = "take values from another sentence, one by one, and see which value changes the answer"
AFTER = "Play"
CONCEPT = "patch it"  # on the tour
ROOM = 5  # rows of the suggested edits
LEFT = 1  # column of the first token's switch
OTHER_LEAD = f"{OTHER}.{LEAD}"
RULE = between(0, 1, "1 uses the other sentence’s value; 0 keeps the prompt’s own.")
NOTES = {  # of the cells of the lead
    LEAD: "lead with the switches below",
    OTHER_LEAD: "lead in the other sentence; a patch of every part gives this lead",
    BEFORE: "lead with every switch at 0",
}


def wanted(book: ModelBook) -> bool:
    """Whether the workbook was built with --against."""
    return pair.ADDITION.name in book.plan.studies


def against(book: ModelBook) -> pair.Against:
    """The other sentence, and the path."""
    found: pair.Against = book.plan.studies[pair.ADDITION.name]
    return found


def add(book: ModelBook) -> None:
    """Add both sentences; the lead; three suggested edits; the grids; the intermediate steps."""
    page = layout.page(book, SHEET)
    tokens = len(book.passage.ids)
    words = dict.fromkeys(range(LEFT, LEFT + tokens), 9)
    page.widths({0: 22, **words, LEFT + tokens: 3, LEFT + 2 * tokens + 1: 3})
    grid = Grid(book, page)
    _sentences(book, page)
    _lead(book, page)
    above = page.cursor
    page.cursor += ROOM
    grid.add()
    below, page.cursor = page.cursor, above
    page.suggest(*suggestions(book, grid), at=(0, 2, 4))
    page.cursor = below
    _steps(book, page)


# --- the sentences, and the lead ------------------------------------------------------------


def _sentences(book: ModelBook, page: Composer) -> None:
    """Add the words of both, one below the other, and where they differ."""
    graph, sheet, n = book.graph, page.sheet, len(book.passage.ids)
    page.heading("Two sentences, word by word")
    top = page.cursor
    sheet.down(top, 0, ("the prompt on Play", "the other sentence", ""), "row label")
    layout.labels(book, sheet, "patch", (top, LEFT), "token", range(n), "label", across=True)
    words = page.lay(graph[f"{OTHER}.words"], (top + 1, LEFT), "token", turned=True)
    sheet.lists |= {(top + 1, LEFT + t): layout.vocabulary_texts(book) for t in range(n)}
    ids, own, found = graph[f"{OTHER}.tokens"], graph["tokens"], graph[f"{OTHER}.found"]

    def said(_: int, t: int) -> Expression:
        unknown = AND(words[t, 0] != "", found[t, 0] < 0)
        differs = IF(ids[t, 0] == own[t, 0], "", worded("differs"))
        told = IF(unknown, worded("unknown"), differs)
        return IF(expression(t) < graph["n_prompt"][0, 0], told, "")  # what follows is generated

    differs = page.show("differs", (top + 2, LEFT), said, "label", (1, n))
    page.mark(sheet[top + 1, LEFT : LEFT + n], "differs", differs[0, 0].fixed_rows != "")
    sheet.put(top + 1, LEFT + n + 1, "empty cell: the prompt’s own word", "note")
    page.cursor = top + 3


def _lead(book: ModelBook, page: Composer) -> None:
    """Add the two words, and the target's lead: now, in the other sentence, before any patch."""
    graph, sheet = book.graph, page.sheet
    words = [graph[f"{PATCH}.{name}.word"][0, 0] for name in COMPARED]
    page.cursor += 1
    title = sentence("The lead of {0} over {1}", **dict(zip("01", map(quote, words), strict=True)))
    page.show("title", (page.cursor, 0), title, "heading")
    row = page.cursor + 1
    for name in COMPARED:
        page.lay(graph[f"{PATCH}.{name}.word"], (row, LEFT), "token", label=name)
        sheet.lists[row, LEFT] = graph["outputs"].area.fixed.as_range
        found = graph[f"{PATCH}.{name}.found"][0, 0]
        told = IF(
            found < 0,
            worded("unknown word: the word as built is used"),
            worded("a word to compare"),
        )
        page.show(f"{name}.note", (row, LEFT + 1), told, "note")
        row += 1
    for name, label in ((LEAD, "lead now"), (OTHER_LEAD, "other sentence"), (BEFORE, "before")):
        sheet.put(row, 0, label, "row label")
        layout.settle(book, sheet, Place(graph[name], SHEET, row, LEFT, turned=False))
        sheet.put(row, LEFT + 1, NOTES[name], "note")
        row += 1
    before, now = graph[BEFORE][0, 0], graph[LEAD][0, 0]
    apart = ABS(span(book)) > NOISE
    page.show(
        "recovered",
        (row, LEFT),
        IF(apart, (before - now) / span(book), 0),
        "percent",
        label="recovered",
    )
    sheet.put(
        row,
        LEFT + 1,
        "how much of the difference between the two leads the switches recover",
        "note",
    )
    page.cursor = row + 1


def span(book: ModelBook) -> Expression:
    """The difference between the two sentences' leads."""
    return book.graph[BEFORE][0, 0] - book.graph[OTHER_LEAD][0, 0]


def explained(book: ModelBook) -> Expression:
    """The text of its stop on the tour."""
    text = (
        "Which part carries the difference between two sentences? Take one value from the other "
        "sentence, and compute everything after that value again. {target} leads {rival} by "
        "{before} in this sentence and by {other} in the other sentence. On the sheet Patch, "
        "type ‘1’ for one part at one word. If the lead becomes the other sentence’s lead, that "
        "part carries the difference."
    )
    before, other = (rounded(book.graph[lead][0, 0], 2) for lead in (BEFORE, OTHER_LEAD))
    target, rival = (quote(book.graph[f"{PATCH}.{word}.word"][0, 0]) for word in COMPARED)
    return sentence(text, target=target, rival=rival, before=before, other=other)


# --- the grids ------------------------------------------------------------------------------


@dataclass
class Grid:
    """The switches of all sites, beside what each recovers: exactly, and by its gradient."""

    book: ModelBook
    page: Composer

    @cached_property
    def takes(self) -> list[Block]:
        """The switches, in the order of the forward pass; the path's last."""
        path = [self.book.graph[PATH_TAKE]] if PATH_TAKE in self.book.graph.blocks else []
        return [*pair.switches(self.book.graph), *path]

    @cached_property
    def alone(self) -> list[list[Patched | None]]:
        """The effect of each switch alone at each word of the prompt: [n_switches, n_prompt]."""
        book, n = self.book, self.book.passage.n_prompt
        graph, ends = book.model.graph(book.passage.ids[:n]), against(book).path
        target, rival = (int(book.graph.inputs[f"{PATCH}.{name}"][0, 0]) for name in COMPARED)

        def of(sites: Sequence[patching.Site] | None, path: Path | None) -> Comparison:
            return patching.patch_each(graph, against(book).ids, -1, target, rival, sites, path)

        at = [patching.site(graph, take.path) for take in pair.switches(book.graph)]
        rows = of(at, None).rows
        found: list[list[Patched | None]] = [[*rows[k : k + n]] for k in range(0, len(rows), n)]
        if ends:
            path = pair.path_of(graph, ends)
            sent = {row.token: row for row in of(None, path).rows}
            found.append([sent.get(t) for t in range(n)])
        return found

    def add(self) -> None:
        """Add the three grids side by side, and where the constants hold."""
        page, n = self.page, len(self.book.passage.ids)
        page.heading("Switches: 1 uses the value of the other sentence")
        top, exact, live = page.cursor, LEFT + n + 1, LEFT + 2 * n + 2
        page.sheet.put(top - 1, exact, "Recovers alone, exactly", "heading")
        page.sheet.put(top - 1, live, "Recovers alone, estimated by gradient", "heading")
        state = page.show("state", (top, exact), self._state(), "note")
        page.sheet.put(top, live, self._error(), "note")
        for left, name in ((LEFT, "take"), (exact, "exact"), (live, "live")):
            layout.labels(
                self.book,
                page.sheet,
                f"patch.{name}",
                (top + 1, left),
                "token",
                range(n),
                "label",
                across=True,
            )
        top += 2
        self._switches(top)
        stale = When("stale", state.fixed != self.AS_BUILT)
        for row, patched in enumerate(self.alone, top):
            self._constants((row, exact), [p and p.recovered for p in patched], stale)
        self._live((top, live))
        if self.takes[-1].name == PATH_TAKE:
            self._constants(
                (top + len(self.takes) - 1, live), [p and p.estimate for p in self.alone[-1]], stale
            )
        page.cursor = top + len(self.takes)
        if self.takes[-1].name == PATH_TAKE:
            self._rows_of_path()

    def _constants(self, at: tuple[int, int], shares: Sequence[float | None], stale: When) -> None:
        """Put the share that a switch alone recovers at each word, as built."""
        row, left = at
        for t, share in enumerate(shares):
            if share is not None:
                self.page.sheet.put(row, left + t, share, "constant percent")
        self.page.sheet.dress(self.page.sheet[row, left : left + len(shares)], stale, "diverging")

    def _switches(self, top: int) -> None:
        """Add the switches, each row with a link to its site."""
        book, sheet, n = self.book, self.page.sheet, len(self.book.passage.ids)
        for row, take in enumerate(self.takes, top):
            site, label = self._site(take)
            sheet.link(row, 0, label, book.address(site.area))
            self.page.lay(take, (row, LEFT), "switch", turned=True)
        area = sheet[top : top + len(self.takes), LEFT : LEFT + n]
        sheet.areas.append((area.rect, RULE))
        sheet.dress(area, Unlike(0))

    def _site(self, take: Block) -> tuple[Block, str]:
        """The site of a switch, and its name in the grid."""
        if take.name == PATH_TAKE:
            sender, receiver = (end.partition("[")[0] for end in against(self.book).path or ())
            return self.book.graph[sender], f"{said(sender)} → {said(receiver)}"
        return self.book.graph[take.path], said(take.path)

    def _live(self, at: tuple[int, int]) -> None:
        """Add the effect that the gradient predicts for each switch of a site, as a share of the
        difference."""
        graph, takes = self.book.graph, pair.switches(self.book.graph)
        self.page.show(
            "estimate",
            at,
            lambda k, t: (0 - pair.gain(graph, takes[k])[t, 0]) / span(self.book),
            "live percent",
            (len(takes), len(self.book.passage.ids)),
            dress="diverging",
        )

    def _rows_of_path(self) -> None:
        """Add the receiver's rows that read the path."""
        page = self.page
        page.sheet.put(page.cursor, 0, "→ rows that read the path", "row label")
        self.book.lay(
            Place(self.book.graph[PATH_ROWS], SHEET, page.cursor, LEFT, turned=True), "switch"
        )
        area = page.sheet[page.cursor, LEFT : LEFT + len(self.book.passage.ids)]
        page.sheet.areas.append((area.rect, RULE))
        page.cursor += 1

    AS_BUILT = "valid for the sentences as built"

    def _state(self) -> Expression:
        """Whether the constants hold: the sentences and the words are as built."""
        graph, n = self.book.graph, self.book.passage.n_prompt
        same = [self.book.named("prompt") == worded("as built")]
        for name in (f"{OTHER}.tokens", *(f"{PATCH}.{word}" for word in COMPARED)):
            built = graph.inputs[name][:n, 0].astype(int).tolist()
            same += [graph[name][t, 0] == ident for t, ident in enumerate(built)]
        changed = worded("a sentence or a word has changed, so these numbers are not exact")
        return IF(AND(*same), worded(self.AS_BUILT), changed)

    def _error(self) -> str:
        """The error of the estimates, as built."""
        off = [
            abs(each.recovered - each.estimate)
            for patched in self.alone
            for each in patched
            if each and each.recovered is not None and each.estimate is not None
        ]
        return worded(
            "live estimate; its error as built: {median:.3f} (median), {max:.3f} (maximum)",
            median=np.median(off),
            max=max(off, default=0),
        )


def suggestions(book: ModelBook, grid: Grid) -> list[Suggestion]:
    """Three edits: the head, or else the part, that recovers most; the word that differs, at the
    embedding; and the other sentence made equal to this one."""
    live, lead = Evaluator(book.graph), (LEAD, 0, 0)

    def switched(take: Block, t: int, text: str) -> Suggestion:
        told = "Type ‘1’ for {part} at word {t}, {text}: the lead becomes {becomes:.3f}."
        values = {"part": said(take.path), "t": t, "text": worded(text)}
        return Suggestion.tried(live, told, (take.name, t, 0), 1.0, lead, **values)

    sizes = [
        (abs((patched and patched.recovered) or 0.0), -k, -t)
        for k, take in enumerate(pair.switches(book.graph))
        for t, patched in enumerate(grid.alone[k])
        if patching.writes(book.graph, book.graph[take.path])
    ]
    _, k, t = max(sizes, default=(0.0, 0, 0))
    n = book.passage.n_prompt
    own, ids = book.passage.ids[:n], against(book).ids
    at = next(t for t in range(n) if own[t] != ids[t])
    embed = next(take for take in grid.takes if take.name == f"embed.{TAKE}")
    word, other = book.labels["vocab"][own[at]], (OTHER_LEAD, 0, 0)
    alike = outcome(live, (f"{OTHER}.words", at, 0), word, other)
    text = worded(
        "Type ‘{word}’ for word {at} of the other sentence. The lead in the other sentence "
        "becomes {alike:.3f}.",
        word=word,
        at=at,
        alike=alike,
    )
    return [
        switched(grid.takes[-k], -t, "the part that changes the lead most"),
        switched(embed, at, "where the words differ"),
        Suggestion(text, (f"{OTHER}.words", at, 0), word, other, alike),
    ]


# --- the intermediate steps -----------------------------------------------------------------


def _steps(book: ModelBook, page: Composer) -> None:
    """Add the ids that are looked up, and the logits at the position in each pass."""
    graph, sheet = book.graph, page.sheet
    page.heading("Steps: the ids of the words above, and the logits at the chosen position")
    row = page.cursor
    passes = {"this": PATCH, "other": f"{OTHER}.{PATCH}", "unpatched": f"{CLEAN}.{PATCH}"}
    leaves = ("tokens", "found", "found.exact")
    lines = [(f"{CLEAN}.tokens", "id"), *((f"{OTHER}.{leaf}", "id") for leaf in leaves)]
    for name in COMPARED:
        lines += [(f"{PATCH}.{name}{leaf}", "id") for leaf in ("", ".found", ".found.exact")]
    for name, style in lines:
        sheet.hold(row, 0, name, "row label")
        page.lay(graph[name], (row, LEFT), style, turned=True, named=False)
        row += 1
    for name in passes.values():
        for word in COMPARED:
            block = graph[f"{name}.of_{word}"]
            sheet.hold(row, 0, block.name, "row label")
            layout.settle(book, sheet, Place(block, SHEET, row, LEFT, turned=False))
            row += 1
    row += 1
    for k, (label, name) in enumerate(passes.items()):
        block = graph[f"{name}.row"]
        sheet.put(row, LEFT + k, label, "label")
        layout.settle(book, sheet, Place(block, SHEET, row + 1, LEFT + k, turned=True))
    texts = book.labels[graph["logits"].axes[1]]
    sheet.down(row + 1, 0, map(AsIs, texts), "row label")
    page.cursor = row + 2 + len(texts)
