"""Quantization: the bits of the weights, and the model's answer.

A cell for all parts, and one for each, says to how many bits their weights are rounded; anything
but 8, 4, 3 and 2 counts as none. The lead of the likeliest word as built, and the loss of the
sentence, follow. Beside each part is what rounding it alone does to both: constants, which the
engine computed for the prompt that the workbook was built with, grey once the prompt has changed.
"""

from collections.abc import Sequence

from cellformer.engine import Evaluator
from cellformer.engine.cells.access import Rect
from cellformer.engine.cells.expression import Area, Expression, expression
from cellformer.engine.cells.functions import IF, OR
from cellformer.engine.cells.language import worded
from cellformer.engine.learning.objective import LOSS
from cellformer.engine.models.prompt_status import built_with
from cellformer.engine.studies import quantization as rounding
from cellformer.engine.studies.quantization import (
    ALL,
    ALL_BITS,
    INSTEAD,
    MOST,
    QUANTIZE,
    WIDTHS,
    Grid,
    Measure,
    Rounded,
)
from cellformer.exporters.compose.book import Place
from cellformer.exporters.compose.composer import Composer
from cellformer.exporters.compose.dressing import When
from cellformer.exporters.compose.sentences import rounded, sentence
from cellformer.exporters.compose.story import Suggestion
from cellformer.exporters.model import layout, packed_weights
from cellformer.exporters.model.model_book import ModelBook
from cellformer.exporters.model.words import plain
from cellformer.exporters.pages import machine

SHEET = rounding.ADDITION.sheet
PURPOSE = "round weights to 8, 4, 3 or 2 bits (integers times a scale); 0 means no rounding"
AFTER = "Play"
CONCEPT = "weights with few bits"  # on the tour
LEAD = f"{QUANTIZE}.lead"
NOT_KNOWN = "not 8, 4, 3 or 2: no rounding"
RULE = {"validate": "list", "source": ["0", *map(str, WIDTHS)]}
RULE |= {"error_message": "8, 4, 3 or 2 bits; 0: not rounded."}
# the columns: of parts and their bits; then of constants, the lead and the loss for each width
PART, WEIGHTS, TYPED, NOW, LARGEST, NOTE, LEADS = 0, 1, 2, 3, 4, 5, 9
LOSSES = LEADS + len(WIDTHS) + 1
ROOM = 5  # rows of the suggested edits, which name cells further down
HEADS = ("part", "weights", "type another", "bits now", "largest integer")


def wanted(book: ModelBook) -> bool:
    """Whether the workbook was built with --quantize."""
    return ALL_BITS in book.graph.blocks


def add(book: ModelBook) -> None:
    """Add the cell for all parts, the lead and the loss; three suggested edits; the parts; the
    intermediate steps of the loss."""
    widths = {PART: 28, WEIGHTS: 11, TYPED: 13, NOW: 10, LARGEST: 14, LEADS - 1: 16}
    widths |= dict.fromkeys(range(LEADS, LOSSES + len(WIDTHS)), 11)
    page = layout.page(book, SHEET, widths=widths)
    found = list(_measure(book).effects([Grid(n) for n in WIDTHS]))
    _everything(book, page, found[0])
    top = page.cursor
    page.cursor += ROOM
    _parts(book, page, found)
    _workings(book, page)
    packed_weights.add(book, page)
    page.cursor = top
    page.suggest(*suggestions(book, found), at=(0, 2, 4))


def explained(book: ModelBook) -> Expression:
    """The text of its stop on the tour."""
    text = (
        "A weight has 32 bits, but many models run with only 8 or 4 bits. Each weight becomes a "
        "small integer times a scale. All weights of a column share this scale. Type ‘4’ and "
        "then ‘2’ as bits for all parts. The lead of ‘{target}’ over ‘{rival}’ is {lead} now. "
        "Then see which single part matters most."
    )
    target, rival = map(expression, words(book))
    return sentence(text, target=target, rival=rival, lead=rounded(book.graph[LEAD][0, 0], 3))


def words(book: ModelBook) -> tuple[str, str]:
    """The likeliest word after the prompt as built, and the next likeliest."""
    measure = _measure(book)
    labels = book.labels[book.graph["logits"].axes[1]]
    return labels[measure.target], labels[measure.rival]


def _measure(book: ModelBook) -> Measure:
    return Measure(book.model, book.passage.ids[: book.passage.n_prompt])


def suggestions(book: ModelBook, effects: Sequence[Rounded]) -> list[Suggestion]:
    """Three edits: 4 bits for all parts, 2 for all, and 2 for the part that it harms most."""
    live, before = Evaluator(book.graph), effects[0].lead
    alone = [e for e in effects if e.part != ALL and e.bits == WIDTHS[-1]]
    worst = min(alone, key=lambda e: e.lead).part

    def suggestion(text: str, cell: str, bits: int) -> Suggestion:
        told = "Type ‘{bits}’ {text}: the lead goes from {before:.3f} to {becomes:.3f}."
        edit = (cell, 0, 0), float(bits), (LEAD, 0, 0)
        return Suggestion.tried(live, told, *edit, bits=bits, text=worded(text), before=before)

    return [
        suggestion("as bits for all parts", ALL_BITS, 4),
        suggestion("as bits for all parts", ALL_BITS, WIDTHS[-1]),
        suggestion(
            worded("for {plain}, the part that rounding harms most", plain=plain(worst)),
            f"{QUANTIZE}.{worst}.{INSTEAD}",
            WIDTHS[-1],
        ),
    ]


# --- all parts, the lead and the loss -----------------------------------------------------------


def _everything(book: ModelBook, page: Composer, before: Rounded) -> None:
    """Add the bits for all parts; the lead and the loss, now and as built without rounding."""
    sheet, graph, top = page.sheet, book.graph, page.cursor
    target, rival = words(book)
    sheet.put(top, 0, "Bits of each weight", "heading")
    page.lay(graph[ALL_BITS], (top + 1, TYPED), "input setting", rule=RULE)
    sheet.put(top + 1, 0, "bits for all parts", "row label")
    _note(page, "of_all", (top + 1, NOTE), graph[ALL_BITS][0, 0])
    page.heads_at((top + 3, TYPED), "now", "as built", style="label")
    measure = _measure(book)
    lead = machine.at_token(book, graph["logits"], measure.target)
    lead = lead - machine.at_token(book, graph["logits"], measure.rival)
    sheet.put(
        top + 4,
        0,
        worded("lead of ‘{target}’ over ‘{rival}’", target=target, rival=rival),
        "row label",
    )
    page.computed_at(LEAD, (top + 4, TYPED), (1, 1), lambda *_: lead, "live")
    sheet.put(top + 4, NOW, before.lead, "constant")
    if LOSS in graph.blocks and before.loss is not None:
        sheet.put(top + 5, 0, "loss of the sentence", "row label")
        _place(book, page, LOSS, (top + 5, TYPED), "live")
        sheet.put(top + 5, NOW, before.loss, "constant")
        sheet.put(top + 5, NOTE, "mean surprise of the words, in nats", "note")
    page.cursor = top + 6


def _note(page: Composer, name: str, at: tuple[int, int], typed: Area) -> None:
    """Add the message beside a cell of bits that holds something else."""
    known: list[Expression] = [typed == n for n in (*WIDTHS, 0, "")]
    page.show(name, at, IF(OR(*known), "", worded(NOT_KNOWN)), "note")


def _place(book: ModelBook, page: Composer, name: str, at: tuple[int, int], style: str) -> None:
    """Place a single cell that an op computes."""
    book.places[name] = Place(book.graph[name], SHEET, *at, turned=False)
    page.sheet.regions.append((book.places[name], style))


# --- each part ----------------------------------------------------------------------------------


def _parts(book: ModelBook, page: Composer, effects: Sequence[Rounded]) -> None:
    """Add each part with its bits, and the effect of rounding it alone."""
    sheet, graph = page.sheet, book.graph
    page.heading("Type the bits of each part here, and see the effect of rounding only this part")
    note = worded("constants, computed for the text ‘{built_with}’", built_with=built_with(graph))
    sheet.put(page.cursor - 1, LEADS, note, "note")
    state = page.show(
        "state",
        (page.cursor - 1, LEADS - 1),
        sentence("prompt {state}", state=book.named("prompt")),
        "label",
    )
    for left, what in ((LEADS, "lead"), (LOSSES, "loss")):
        sheet.across(
            page.cursor,
            left,
            (worded("{what}, {bits} bits", what=worded(what), bits=bits) for bits in WIDTHS),
            "head",
        )
    page.heads(*HEADS)
    top = page.cursor
    for row, (name, weights) in enumerate({ALL: [], **rounding.parts(graph)}.items(), top):
        own = [e for e in effects if e.part == name and e.bits]
        for k, effect in enumerate(own):
            sheet.put(row, LEADS + k, effect.lead, "constant")
            if effect.loss is not None:
                sheet.put(row, LOSSES + k, effect.loss, "constant")
        if weights:
            sheet.link(row, PART, plain(name), book.address(weights[0].area))
            sheet.put(row, WEIGHTS, sum(w.n_cells for w in weights), "thousands")
            _part(book, page, name, row)
        else:
            sheet.put(row, PART, "all together", "row label")
    page.cursor = row + 2
    constants = sheet[top : row + 1, LEADS : LOSSES + len(WIDTHS)]
    sheet.dress(constants, When("stale", state.fixed != "prompt as built"))


def _part(book: ModelBook, page: Composer, name: str, row: int) -> None:
    """Add the bits of one part: typed, in effect, and the largest integer that they hold."""
    at, graph = f"{QUANTIZE}.{name}", book.graph
    typed = graph[f"{at}.{INSTEAD}"]
    page.lay(typed, (row, TYPED), "dial", rule=RULE)
    page.lay(graph[f"{at}.bits"], (row, NOW), "id")
    _place(book, page, f"{at}.{MOST}", (row, LARGEST), "id")
    _note(page, f"of.{name}", (row, NOTE), typed[0, 0])


def _workings(book: ModelBook, page: Composer) -> None:
    """Add the inputs of the loss: the words that follow, and the weight of each token."""
    if LOSS not in book.graph.blocks:
        return
    page.heading(
        "Inputs of the loss: the id of the word after each token, and the weight of the token"
    )
    for col, leaf, style in ((TYPED, "targets", "id"), (NOW, "share", "step")):
        page.sheet.put(page.cursor, col, leaf, "block")
        page.lay(book.graph[f"{LOSS}.{leaf}"], (page.cursor + 1, col), style)
    labels = Rect(page.cursor + 1, page.cursor + 1 + len(book.passage.ids), 0, 1)
    layout.labels(
        book,
        page.sheet,
        "rounded",
        (labels.top, PART),
        "token",
        range(labels.bottom - labels.top),
        "row label",
    )
    page.cursor = labels.bottom
