"""The sheet Rules: look at a head's picture, guess its function, switch it off.

Where a head attends does not say what it does: the head that turns vice into Tarso attends to the
verb, where the first layer has written who called. Nor does an ablation without effect show that a
head does nothing: a head of the first layer attends to the verb too, and without it Tarso is as
likely as before; yet its output there, taken alone from a sentence in which a number calls, turns
the answer into vice. Above, the eight pictures in words, live, with a cell for a guess; below,
every rule of the game with every part off.
"""

from collections.abc import Mapping

from cellformer.engine.cells.expression import Area, Expression, Nth, expression
from cellformer.engine.cells.functions import IF, LARGE, MATCH
from cellformer.engine.cells.language import worded
from cellformer.engine.cells.sentence import sentence
from cellformer.engine.studies import ablation
from cellformer.engine.studies.part_names import said
from cellformer.exporters.compose.composer import Composer
from cellformer.exporters.compose.dressing import When
from cellformer.exporters.compose.story import Suggestion
from cellformer.exporters.model import layout
from cellformer.exporters.model.model_book import ModelBook
from cellformer.workbooks.dialogue_game import game, measured

SHEET = "Rules"
PURPOSE = "which rule needs which head: guess from the pictures, then switch heads off"
BROKEN = 0.95  # a rule that is kept less often, when a part is off, is broken
WALK_ROW = 8  # of the walk's heads; a row for each head below it
COLUMNS = ("head", "looks most at", "share", "at the caller", "needed?", "result")
GUESS, ANSWER = 4, 5
TRY_COL = 8
WALK = (
    "A head's picture shows where the head looks. Does the picture also show the head's "
    "function? For each head, the table names the word that the last word of the prompt looks "
    "at.",
    "Does the model need the head to say the next word? Guess for each head, and type ‘yes’ or "
    "‘no’. The answer was measured with only that head switched off.",
    "A head that is not needed can still carry information, if another head can replace it. For "
    "example, take the output of head 0.0 at ‘chiama’ from ‘3 chiama Paolo’: the answer becomes "
    "vice (70 %).",
)
NEEDED = 0.5  # a head without which the next word is less likely is needed for it
Kept = Mapping[str, Mapping[str, float]]  # part ("": all work) -> rule -> how often it is kept


def kept() -> Kept:
    """The measured share of cases in which each rule is kept with each part off."""
    found = measured.stored()["rules"]
    return {part: dict(zip(game.RULES, row, strict=True)) for part, row in found.items()}


def add(book: ModelBook) -> None:
    """Add the guided tour of heads, three suggested edits, the table."""
    page = layout.page(
        book,
        SHEET,
        PURPOSE,
        *WALK,
        widths={0: 22} | dict.fromkeys(range(1, 14), 15) | {TRY_COL: 20},
    )
    heads = [part for part in ablation.parts(book.graph) if part.rpartition(".")[2] != "mlp"]
    heads = [part for part in heads if not part.endswith(".attn")]
    _walk(book, page, heads)
    page = Composer(book, SHEET, WALK_ROW + len(heads) + 3)
    page.suggest(*_suggestions(heads), at=(TRY_COL, TRY_COL + 1, 0))
    _table(page, page.cursor + 1)


def _walk(book: ModelBook, page: Composer, heads: list[str]) -> None:
    """Add each head's picture in words, a cell for a guess, and the result of switching it off."""
    last = book.passage.n_prompt - 1
    caller = min(1, last)
    n, top = len(heads), WALK_ROW + 1
    page.heads_at((WALK_ROW, 0), *COLUMNS)
    patterns = [book.graph[f"{head}.pattern"] for head in heads]
    for k, head in enumerate(heads):
        page.sheet.link(top + k, 0, said(head), book.address(patterns[k].area))

    def words(k: int, _: int) -> Expression:
        row = patterns[k][last, : last + 1]
        ident = Nth(book.graph["tokens"][: last + 1, 0], MATCH(LARGE(row, 1), row, 0))
        return Nth(book.graph["vocabulary"].area, ident + 1)

    def shares(k: int, j: int) -> Expression:
        own = patterns[k][last, : last + 1]
        return LARGE(own, 1) if j == 0 else expression(patterns[k][last, caller])

    page.computed_at("walk.word", (top, 1), (n, 1), words, "word")
    page.computed_at("walk.share", (top, 2), (n, 2), shares, "live percent")
    page.dress(page.sheet[top : top + n, 2:4], "scale")
    guess = page.typed_at("walk.guess", (top, GUESS), [[""]] * n, "token")
    rule = {"validate": "list", "source": ["yes", "no"]}
    page.sheet.rules |= {(top + k, GUESS): rule for k in range(n)}
    _answers(book, page, heads, guess, top)


def _answers(book: ModelBook, page: Composer, heads: list[str], guess: Area, top: int) -> None:
    """Add the answers, shown after a guess; and the model's current prediction."""
    found, last = kept(), book.passage.n_prompt - 1
    ident = int(book.value("target", 0, 0))
    word = book.labels["vocab"][ident]
    left = {x.part: x.probability for x in ablation.effects(book.graph, ident, last)}

    def answer(k: int, _: int) -> Expression:
        right = "yes" if left[heads[k]] < NEEDED else "no"
        text = worded(
            "without the head, {word} has {left:.4f}; {effect}",
            word=word,
            left=left[heads[k]],
            effect=told(found, heads[k]),
        )
        reply = IF(guess[k, 0] == right, sentence("Right: "), sentence("No: ")) & text
        return IF(guess[k, 0] == "", worded("type ‘yes’ or ‘no’"), reply)

    page.computed_at("walk.answer", (top, ANSWER), (len(heads), 1), answer, "text")
    below = top + len(heads) + 1
    chance = book.graph["probs"][last, ident] + 0
    page.sheet.put(below, 0, word, "word")
    page.computed_at("walk.now", (below, 1), (1, 1), lambda *_: chance, "live percent")
    page.sheet.put(below, 2, "probability now; to switch heads off, open", "note")
    page.sheet.link(below, 5, "Switches", "Switches!A1")


def broken(found: Kept, part: str) -> dict[str, float]:
    """The rules that are broken with a part off."""
    return {rule: x for rule, x in found[part].items() if x < BROKEN}


def told(found: Kept, part: str) -> str:
    """The effect of switching a part off on the rules, in a line."""
    lost = [
        worded("{rule} {was:.2f} → {now:.2f}", rule=worded(rule), was=found[""][rule], now=x)
        for rule, x in broken(found, part).items()
    ]
    return ", ".join(lost) or worded(
        "the model keeps every rule at least {least:.1%} of the time",
        least=min(found[part].values()),
    )


def _suggestions(heads: list[str]) -> list[Suggestion]:
    """Three edits: a guess where the picture misleads, switching off a head that carries a rule,
    and one that attends to the same word."""
    first, second, now = "blocks.0.attn.h0", "blocks.1.attn.h2", ("walk.now", 0, 0)
    at = heads.index(second)
    return [
        Suggestion(
            "Type ‘yes’ for head 1.2. It looks at the verb, not at the caller, but the model "
            "needs it. Without it, the rule of nicknames between leaders falls from 100 % to 1 "
            "%.",
            ("walk.guess", at, 0), "yes", ("walk.answer", at, 0),
        ),
        Suggestion(
            "Type ‘0’ on Switches for head 1.2: ‘Tarso’ falls from {now:.3%} to {then:.3%}.",
            (f"{second}.switch", 0, 0), 0, now,
        ),
        Suggestion(
            "Type ‘0’ on Switches for head 0.0: this head still looks at the same word, and "
            "‘Tarso’ keeps {then:.2%}. The line above the heads explains what head 0.0 carries.",
            (f"{first}.switch", 0, 0), 0, now,
        ),
    ]  # fmt: skip


def _table(page: Composer, row: int) -> None:
    """Every rule with every part off: constants, with how they were measured."""
    found, n_games = kept(), measured.stored()["games"]
    page.sheet.put(row, 0, "Every rule, with one part switched off at a time", "heading")
    text = (
        "Each number is the probability of all words that keep the rule, averaged over "
        f"{n_games} new games. The engine measured these constants. Orange: below {BROKEN:.0%}."
    )
    page.sheet.put(row + 1, 0, text, "note")
    page.heads_at(
        (row + 2, 1), *[said(part) if part else "none off" for part in found], style="label"
    )
    for k, (rule, meaning) in enumerate(game.RULES.items(), row + 3):
        page.sheet.put(k, 0, rule, "row label")
        page.sheet.across(k, 1, (one[rule] for one in found.values()), "constant percent")
        page.sheet.put(k, len(found) + 1, meaning, "note")
    cells = page.sheet[row + 3 : row + 3 + len(game.RULES), 1 : 1 + len(found)]
    page.dress(cells, When("differs", page.sheet[row + 3, 1] < BROKEN))
