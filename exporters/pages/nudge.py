"""Nudge: watch the model learn the typed sentence, in one step of gradient descent.

Every weight becomes itself minus the rate times its gradient of the sentence's loss. The forward
pass is computed twice, with the weights before and after the step, and both predictions of each
next word stand side by side. The rate is a cell, and each part can be left unchanged. Only typed
words count: the model's own continuation has nothing to teach.
"""

from cellformer.engine import Evaluator
from cellformer.engine.cells.access import Rect
from cellformer.engine.cells.expression import Area, Expression, expression
from cellformer.engine.cells.functions import AND, EXP, IF, ROUND, SUM
from cellformer.engine.cells.language import worded
from cellformer.engine.learning.objective import LOSS
from cellformer.engine.studies import nudge
from cellformer.engine.studies.nudge import LOSS_AFTER, RATE
from cellformer.exporters.compose.book import Place, Run, Sheet
from cellformer.exporters.compose.composer import Composer, Table
from cellformer.exporters.compose.dressing import Unlike, When, between
from cellformer.exporters.compose.lookups import product_sum
from cellformer.exporters.compose.sentences import percent, rounded, sentence
from cellformer.exporters.compose.story import Suggestion, outcome
from cellformer.exporters.model import layout
from cellformer.exporters.model.model_book import ModelBook
from cellformer.exporters.model.words import plain
from cellformer.exporters.play.sentence import answered, shortened

SHEET = nudge.ADDITION.sheet
PURPOSE = (
    "watch the model learn the sentence of the sheet Play; compare the loss before and after one "
    "step"
)
AFTER = "Play"
CONCEPT = "watch it learn"  # on the tour
LINES = (  # the rate, the loss before and after, and by how much it fell
    ("learning rate", "each weight becomes weight − rate × gradient"),
    ("loss before", "average surprise of the real next words"),
    ("loss after", "the loss again, with the weights after the step"),
    ("loss fell by", "loss before the step − loss after"),
    ("promised", "rate × squared gradients: predicted fall of the loss for a small step"),
)
# the columns of the words; what the table works with stands behind the parts
WORD, FOLLOWS, PROBABILITY, SURPRISE, SAYS = 0, 1, 2, 5, 7
TWICE = ("before step", "after step")
HEADS = ("token", "really follows", *TWICE, "change", *TWICE, *TWICE)
PART, SWITCH, PART_RATE, PROMISED = 10, 11, 12, 13
TARGET, SHARE, LIKELIEST = 16, 17, 18
DECIMALS = 6  # of a fall: what is smaller is rounding


def wanted(book: ModelBook) -> bool:
    """Whether the workbook was built with --nudge."""
    return RATE in book.graph.blocks


def add(book: ModelBook) -> None:
    """Add the rate and the loss; the switches; the words; three suggested edits; the intermediate
    steps."""
    page = layout.page(
        book,
        SHEET,
        widths=dict.fromkeys(range(SAYS), 10)
        | {WORD: 14, FOLLOWS: 14, SAYS: 11, SAYS + 1: 11}
        | {SAYS + 2: 2, PART: 16, SWITCH: 9, PART_RATE: 9, PROMISED: 12, LIKELIEST: 10},
    )
    _loss(book, page, _parts(book, page))
    page.suggest(*suggestions(book), at=(SAYS - 1, SAYS + 1, 0))
    _words(book, page)


def explained(book: ModelBook) -> Expression:
    """The text of its stop on the tour."""
    text = (
        "The weights come from training. Training repeats one small step many times. "
        "The loss measures how much the real next words surprise the model. For this "
        "sentence the loss is {before}. A weight’s gradient says how the loss "
        "changes with that weight. One step moves every weight a little against its "
        "gradient, and the loss becomes {after}. See which words the model now "
        "predicts better."
    )
    before, after = (rounded(book.graph[name][0, 0], 3) for name in (LOSS, LOSS_AFTER))
    return sentence(text, before=before, after=after)


def suggestions(book: ModelBook) -> list[Suggestion]:
    """Three edits: a step too large, one in the other direction, and one without the part that
    moves most."""
    live, begun, watch = Evaluator(book.graph), book.value(RATE, 0, 0), (LOSS_AFTER, 0, 0)

    def suggestion(text: str, cell: str, value: float) -> Suggestion:
        told = "Type ‘{value:g}’ {text}: the loss after the step is {becomes:.3f}."
        at, where = (cell, 0, 0), worded(text)
        return Suggestion.tried(live, told, at, value, watch, value=value, text=where)

    cost = book.value(LOSS, 0, 0)
    longer = [rate for rate in reversed(nudge.RATES) if rate > begun] or [2 * begun]
    far = next((rate for rate in longer if outcome(live, (RATE, 0, 0), rate, watch) > cost), None)
    learn = [
        p for p in nudge.gradients(book.graph) if book.value(f"nudge.{p}.{nudge.LEARNS}", 0, 0)
    ]
    part = max(learn, key=lambda part: _steepness(book, part))
    return [
        suggestion("for the rate (too large)", RATE, far)
        if far
        else suggestion("for the rate, the highest rate that is tried", RATE, longer[-1]),
        suggestion("for the rate, and the model unlearns", RATE, -begun),
        suggestion(
            worded("for {plain}, with the largest promised fall", plain=plain(part)),
            f"nudge.{part}.learns",
            0.0,
        ),
    ]


def _steepness(book: ModelBook, part: str) -> float:
    """The initial fall of the loss per unit of a part's rate."""
    return sum(float((book.values[b.name] ** 2).sum()) for b in nudge.gradients(book.graph)[part])


# --- the rate and the loss ------------------------------------------------------------------


def _settle(book: ModelBook, sheet: Sheet, name: str, row: int, col: int) -> Area:
    """Place one of the cells of the step."""
    layout.settle(book, sheet, Place(book.graph[name], SHEET, row, col, turned=False))
    return book.graph[name][0, 0]


def _loss(book: ModelBook, page: Composer, parts: Area) -> None:
    """Add the rate, the loss before and after the step, and the fall that the gradients of `parts`
    promise."""
    sheet = page.sheet
    text = book.graph["sentence"][0, 0]
    whole = sentence("One training step on ‘{text}’", text=text)
    begin = "One training step on the first {n} tokens of ‘{text}’"
    learning = IF(shortened(book), sentence(begin, n=len(book.passage.ids), text=text), whole)
    page.show(
        "title", (page.cursor, 0), answered(book, learning, worded("No training step")), "heading"
    )
    top = page.cursor + 2
    _settle(book, sheet, RATE, top, 1)
    sheet.rules[top, 1] = between(-1000, 1000, "A number from -1000 to 1000.")
    before = _settle(book, sheet, LOSS, top + 1, 1)
    after = _settle(book, sheet, LOSS_AFTER, top + 2, 1)
    fell = page.show("fell", (top + 3, 1), before - after, "change plain")
    promised = page.show("promised", (top + 4, 1), SUM(parts.as_range), "change plain")
    sheet.lines(top, LINES, {0: "row label", 2: "note"})
    page.cursor = top + len(LINES)
    page.show("verdict", (page.cursor, 0), _verdict(book, fell, promised), "block")
    page.cursor += 1


def _verdict(book: ModelBook, fell: Area, promised: Area) -> Expression:
    """Add the result of the step, in a sentence."""
    gain, hope = ROUND(fell, DECIMALS), ROUND(promised, DECIMALS)
    helped = sentence(
        "The model learnt: the loss fell by {fell}, {share} of the fall that the gradients "
        "predicted.",
        fell=rounded(fell, 3),
        share=percent(fell / promised, 0),
    )
    too_far = sentence(
        "The step was too large, and the loss rose. Gradients are accurate only for small steps. "
        "Type a lower rate."
    )
    up = sentence("With a rate below 0 the model unlearns the sentence. Type a rate above 0.")
    still = sentence("No weight changed. Type a rate, and ‘1’ for a part.")
    moved = IF(hope < 0, up, IF(gain > 0, helped, too_far))
    alone = sentence("With one word there is nothing to predict. Type two or more words on Play.")
    told = IF(book.graph["n_prompt"][0, 0] < 2, alone, IF(hope == 0, still, moved))
    none = sentence("No answer: a word is unknown, or no word is typed. See Play.")
    return answered(book, told, none)


# --- who takes the step ---------------------------------------------------------------------


def _parts(book: ModelBook, page: Composer) -> Area:
    """Add each part with its switch, its rate, and the (given) fall of the loss that it
    promises."""
    sheet, parts, top = page.sheet, nudge.gradients(book.graph), page.cursor + 2
    promises = page.table("promises", (top, PROMISED), (len(parts), 1))
    sheet.put(top - 2, PART, "Parts that learn: 1 = yes, 0 = no", "heading")
    page.heads_at((top - 1, PART), "part", "learns", "rate", "promises", style="label")
    for row, (part, gradients) in enumerate(parts.items(), top):
        sheet.link(row, PART, plain(part), book.address(gradients[0].area))
        page.lay(
            book.graph[f"nudge.{part}.{nudge.LEARNS}"],
            (row, SWITCH),
            "switch",
            rule=between(0, 1, "1 makes the step; 0 changes nothing."),
        )
        rate = _settle(book, sheet, f"nudge.{part}.rate", row, PART_RATE)
        squares = [product_sum(gradient.area, gradient.area) for gradient in gradients]
        promises.put(row - top, 0, rate * SUM(*squares), "change plain")
    sheet.dress(sheet[top : top + len(parts), SWITCH], Unlike(1))
    return promises.area


# --- word by word ---------------------------------------------------------------------------


def _words(book: ModelBook, page: Composer) -> None:
    """Add the predictions of each next word, before the step and after it."""
    page.heading("Word by word, before and after the step")
    note = "surprise: minus the logarithm of the probability; green: the right word"
    page.sheet.put(page.cursor - 1, PROBABILITY + 2, note, "note")
    for col, head in (
        (PROBABILITY, "its probability"),
        (SURPRISE, "surprise"),
        (SAYS, "likeliest"),
    ):
        page.sheet.put(page.cursor, col, head, "block")
    page.cursor += 1
    page.heads(*HEADS, style="label")
    n = len(book.passage.ids)
    words = page.table("words", (page.cursor, 0), (n, SAYS + 2))
    for t in range(n):
        _word(book, words, t)
    page.dress(words.area[:, PROBABILITY : PROBABILITY + 2], "bar")
    first = words.area[0, SAYS]
    right = When("right", AND(first != "", first == words.area[0, FOLLOWS].fixed_cols))
    page.dress(words.area[:, SAYS : SAYS + 2], right)
    _workings(book, page)


def _word(book: ModelBook, words: Table, t: int) -> None:
    """Add a token, the next one, and both passes' predictions of it."""
    graph = book.graph
    n_prompt, counts = graph["n_prompt"][0, 0], graph[f"{LOSS}.share"][t, 0] > 0
    given = expression(t) < n_prompt

    def put(col: int, shown: Expression, style: str, when: Expression = counts) -> Area:
        return words.put(t, col, answered(book, IF(when, shown, "")), style)

    put(WORD, layout.token_text(book, t), "row label", given)
    put(FOLLOWS, layout.text_at(book, graph[f"{LOSS}.targets"][t, 0] + 1), "word")
    both = [graph[name][t, 0] for name in (f"{LOSS}.of_token", f"{LOSS_AFTER}.of_token")]
    for k, surprise in enumerate(both):
        put(PROBABILITY + k, EXP(-surprise), "live percent")
        put(SURPRISE + k, surprise, "live")
    before, after = (words.area[t, PROBABILITY + k] for k in range(2))
    put(PROBABILITY + 2, after - before, "change percent")
    for k, name in enumerate(("choice.greedy", "nudged.choice.likeliest")):
        put(SAYS + k, layout.text_at(book, graph[name][t, 0] + 1), "word", given)


# --- the workings ---------------------------------------------------------------------------


def _workings(book: ModelBook, page: Composer) -> None:
    """Add ids, and the weight of each token in the loss; the logits after the step, rounded for
    ranking."""
    n_tokens, n_words = book.graph["logits"].shape
    for col, name, head, style in (
        (TARGET, f"{LOSS}.targets", "id of it", "id"),
        (SHARE, f"{LOSS}.share", "counts", "step"),
        (LIKELIEST, "nudged.choice.likeliest", "likeliest id", "id"),
    ):
        page.lay(book.graph[name], (page.cursor, col), style, head=head)
    row = page.cursor + max(n_tokens, len(nudge.gradients(book.graph))) + 4
    text = (
        "Rounded logits after the step, because programs differ in the last digits. Equal logits "
        "are ranked by id"
    )
    page.sheet.put(row - 2, 0, text, "heading")
    at = row - 1, FOLLOWS
    layout.labels(book, page.sheet, "nudged", at, "token", range(n_tokens), "label", across=True)
    page.lay(book.graph["nudged.choice.logits"], (row, FOLLOWS), "step", turned=True, named=False)
    page.sheet.runs.append(Run(Rect(row, row + n_words, 0, 1), "row label", book.labels["vocab"]))
