"""recurrence: a transformer and a Mamba read the same sentence: what each remembers, and its price.

Both were trained here on the same text: people have accounts, filler words follow, and a person is
named again. Look at what the last word reads of each word: attention beside hidden attention. Try
more people, more filler words, another question.

`learning` trained them; `cellformer train recurrence` repeats that.
"""

from collections.abc import Iterator

from cellformer.engine.cells.functions import ABS, AND, MAX, MIN, SUM
from cellformer.engine.cells.language import worded
from cellformer.engine.cells.rounding import NEAR
from cellformer.engine.learning.training import Progress
from cellformer.engine.models.forward import Forward
from cellformer.exporters.assemble.worksheets import Workbook
from cellformer.exporters.compose.book import Book
from cellformer.exporters.compose.story import Story, Suggestion
from cellformer.workbooks.recurrence import learning, machine, sheets
from cellformer.workbooks.recurrence.learning import (
    MAMBA,
    TRANSFORMER,
    Learned,
    is_part,
    save,
)
from cellformer.workbooks.recurrence.sentences import MOST_PEOPLE, N_WORDS, WORDS

TOPIC, AFTER, LEVEL = "A whole model", "induction", 3
TITLE = "recurrence: a transformer and a Mamba read the same sentence"

__all__ = ["book", "figures", "is_part", "save", "train"]


def book() -> Book:
    """The workbook."""
    g = machine.build()
    w = Workbook("recurrence", g)
    w.book.opens_on = "Compare"
    for name in ("Compare", "Memory", "Cost", "Failures"):  # in the order of reading
        w.book.sheet(name)
    sheets.cost(w)
    sheets.compare(w, g)
    sheets.memory(w, g)
    sheets.failures(w)
    sheets.inside(w, g)
    checks(w, g)
    return w.done(story(w))


def train(seed: int, steps: int | None = None) -> Iterator[Progress | Learned]:
    """Each step's progress and, last, the trained weights of all models."""
    return learning.learn(seed, steps)


def figures(learned: Learned) -> list[tuple[str, str]]:
    """The share of right answers of each model in sentences of up to 12 words."""
    found = {name: learning.measured(name, weights) for name, weights in learned.items()}
    return [
        (f"right answers, {name}", f"{learning.mean(rows):.1%}") for name, rows in found.items()
    ]


def checks(w: Workbook, g: Forward) -> None:
    """Claims that hold for any typed sentence and any weights."""
    gaps = [ABS(SUM(g[name].area.as_range) - N_WORDS) for name in machine.PATTERNS.values()]
    tokens, gap = g["tokens"].area.as_range, g["channel.gap"][0, 0]
    size = MAX(1, ABS(g["channel.read"][0, 0]))
    w.checks([
        ("the attention weights of one word sum to 1 in each layer", MAX(*gaps) < NEAR),
        ("every token is a word that the models know",
         AND(MIN(tokens) > -NEAR, MAX(tokens) < len(WORDS) - 1 + NEAR)),
        ("the hidden attention of the chosen channel gives the output of the layer",
         ABS(gap) < NEAR * size),
    ])  # fmt: skip


def story(w: Workbook) -> Story:
    """The start sheet's texts, and suggested edits with their computed effects."""
    n_weights = {name: sum(x.size for x in held.values()) for name, held in learning.load().items()}
    few, many = (learning.share(MAMBA, n) for n in (1, MOST_PEOPLE))
    return Story(
        title=TITLE,
        source="Written for this workbook. The question is from M. Sinclair’s lecture slides. Mamba: Gu & "
        "Dao (2023). Hidden attention: Ali et al. (2024).",
        about=[
            "A transformer keeps numbers for every word, and each new word looks back at all of "
            "them. A recurrent model, such as Mamba, keeps one state of fixed size.",
            worded(
                "Both models are small ({transformer:,} and {mamba:,} weights), and learnt from the "
                "same sentences. ‘Joe rent Bob wages’ gives each person an account.",
                **{name: n_weights[name] for name in (TRANSFORMER, MAMBA)},
            ),
            "Filler words follow, and then a person is named again. After ‘Joe’, only ‘rent’ is "
            "right. So the models must remember over a distance.",
            worded(
                "Up to 12 words, the transformer is always right. The Mamba answers {few:.0%} "
                "of the questions about one person correctly, but {many:.0%} of the questions "
                "about {n} people.",
                few=few,
                many=many,
                n=MOST_PEOPLE,
            ),
            worded(
                "The transformer cannot read a 13th word, because it has no position for this "
                "word. The Mamba can, but it forgets: with one person and 50 filler words, "
                "{share:.0%} of its answers are right.",
                share=learning.far(50),
            ),
            "Why it matters: the cache of a long text fills a graphics card. The slides say: a "
            "recurrent network with attention could do the same as a transformer, but more "
            "slowly.",
        ],
        look=[
            "The sheet Compare shows what each model predicts after each word, and how much a "
            "chosen word reads from each word.",
            "The sheet Memory shows the attention of the transformer and the hidden attention of "
            "the Mamba, for all words.",
            "Head 0.0 reads the person before each account, and head 1.0 finds the account of "
            "that person. The two heads of the workbook ‘induction’ do the same.",
            "The sheet Cost shows the numbers that each model keeps. The cache grows with every "
            "word, and the state does not.",
            "The sheet Failures counts right answers by number of people and of filler words. The "
            "sheet Inside shows every formula. Layers and heads count from 0.",
        ],
        suggestions=suggestions(w),
    )  # fmt: skip


def suggestions(w: Workbook) -> list[Suggestion]:
    """Three edits: more to remember, another question, a part that is switched off."""
    typed, last = w["typed"], N_WORDS - 1
    right = {name: w[f"{first}next.right"][0, last] for name, first in machine.FIRST.items()}
    rows = {"Eve": "tax", "Ann": "bank"}
    more = {
        typed[0, 4 + t]: word for t, word in enumerate(word for row in rows.items() for word in row)
    }
    return [
        w.suggestion(
            "Type ‘Eve’, and then ‘tax’, ‘Ann’ and ‘bank’ in the next cells. For the Mamba, "
            "‘rent’ falls from {now:.1%} to {then:.1%}. For the transformer, ‘rent’ stays at "
            "{transformer.then:.1%}.",
            more,
            right[MAMBA],
            transformer=right[TRANSFORMER],
        ),
        w.suggestion(
            "Choose ‘Bob’: head 1.0 of the transformer now gives ‘wages’ {then:.0%} of its "
            "attention, not {now:.0%}. The hidden attention of the Mamba to ‘wages’ goes from "
            "{mamba.now:.2f} to {mamba.then:.2f}.",
            {typed[0, last]: "Bob"},
            w["reads.layer_1"][0, 3],
            mamba=w["reads.mamba"][0, 3],
        ),
        w.suggestion(
            "Type ‘0’ to switch head 0.0 off: the transformer gives ‘rent’ {then:.1%}, not "
            "{now:.1%}. This head tells an account which person stood before it.",
            {w["blocks.0.attn.h0.switch"][0, 0]: 0.0},
            right[TRANSFORMER],
        ),
    ]
