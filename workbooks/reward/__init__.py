"""reward: a model learns from a reward alone that books must balance.

Look at the eight texts that it writes, and at the reward of each. Press F9 and see the reward rise,
and the variety fall; or begin with a model that has learnt. Try another reward, or a larger beta.

616 weights write debits and credits. One step is one update of GRPO (Shao et al. 2024,
"DeepSeekMath"): texts drawn by visible random numbers, rewards, advantages, ratios, clipping, KL
divergence, gradient, Adam.
"""

from functools import partial
from itertools import islice

from cellformer.engine.cells.language import worded
from cellformer.engine.learning import policy
from cellformer.exporters.assemble.worksheets import Workbook
from cellformer.exporters.compose.book import Book
from cellformer.exporters.compose.story import Story, Suggestion
from cellformer.workbooks.learn import clock, how, step
from cellformer.workbooks.reward import (
    after,
    game,
    learning,
    settings,
    sheets,
    steps,
    table,
    writing,
)
from cellformer.workbooks.reward import (
    figures as shown,
)
from cellformer.workbooks.reward.learning import NEW, SPEC, Trained
from cellformer.workbooks.reward.sheets import Parts

TOPIC, AFTER, LEVEL = "Learning", "microgpt", 3
TITLE = "reward: a model learns from a reward alone that books must balance"
EXERCISES = (  # a probability to draw by, the group's rewards, an advantage, a share, a text
    "below.C[0,1]",
    "reward.mean[0,0]",
    "reward.deviation[0,0]",
    "advantage.of_text[0,0]",
    "loss.share[7,0]",
    "now.text[4,0]",
)
LEARNT = {  # the last lines of the sheet How
    "In Excel, in this workbook": (
        "The words of a text depend on each other: each word is drawn after the word before. "
        "In a circular reference, Excel may compute only one of the seven words in a "
        "recalculation.",
        "If the loss differs, type ‘16’ at ‘recalculations a step’. The loss named above is the mean "
        "surprise: cell ‘loss’ on the sheet Step 4 Loss.",
    ),
    "The learnt weights": (
        "The sheet Step 1 Model shows the current weights. Save the workbook to keep these "
        "weights in the file.",
        "‘cellformer import reward.xlsx -o DIR’ saves the weights as a model. Every command can "
        'use this model, for example ‘cellformer run DIR --prompt "END D C"’.',
        "‘cellformer train reward -o DIR’ makes all models of ‘begin with’ without a "
        "spreadsheet. The model ‘books’ takes 600 steps of imitation. Every other model takes "
        "200 steps with rewards.",
    ),
}
train, figures, save, is_part = learning.train, learning.figures, learning.save, learning.is_part

__all__ = ["book", "figures", "is_part", "learnt", "save", "train"]


def book() -> Book:
    """The workbook, before any step."""
    return built(learning.load())


def built(trained: Trained) -> Book:
    """The workbook of the included models, or of smaller ones."""
    begun = trained[NEW]
    g = learning.graph(begun)
    w = Workbook("reward", g, iterates=True)
    control = w.sheet(
        "Learn",
        "switch learning on, press F9, and watch the texts",
        widths={0: 24, 1: 16, 2: 36, 3: 9, 4: 1, 5: 4, 6: 12},
    )
    compared = w.sheet(
        "Before and after",
        "what the model writes, how varied its texts are, and whether its certainty is justified",
        "‘Before’ means the model that imitates random books. ‘Now’ means the current weights. "
        "All figures are exact, because the model can write only 255 texts.",
        "To see how a model exploits a reward, choose ‘balanced’, ‘credit’ or ‘long’ at ‘begin "
        "with’ on the sheet Learn.",
        widths={0: 32, 1: 13, 2: 13, 3: 13},
    )
    p = Parts(w, learning.step(begun, clock.add(g, sheets.A_POINT), g), trained)
    table.add(g)
    settings.add(g)
    after.add(g, learning.next_words(begun))
    writing.add(g, begun)
    keep(p)
    sheets.progress(p)
    sheets.control(control)
    steps.add(p)
    shown.compared(compared)
    shown.every_text(p)
    sheets.track(p)
    sheets.curve(control)
    sheets.kept(p)
    first = learning.learn(begun, game.random_numbers(0), game.BALANCED, policy.BETA)
    how.add(w, [made.surprise for made in islice(first, 3)], "Weights", LEARNT)
    w.rests = clock.rests(g)
    return w.done(story(w))


def keep(p: Parts) -> None:
    """Keep every state from step to step."""
    g, begins = p.w.book.graph, sheets.begin(p)
    states = p.step.states | {"kept.texts": g["texts"]}
    states |= clock.add_total(g, g["reward.mean"][0, 0])
    states |= clock.add_points(g, sheets.N_POINTS, sheets.A_POINT)
    clock.close(g, states, begins)
    clock.wait(g, [*states])


learnt = partial(step.learnt, SPEC, game.WORDS)


def story(w: Workbook) -> Story:
    """The start sheet's texts, and suggested edits with their computed effects."""
    right, after_steps = w["kinds"][0, 1], w.edited({w["begin"][0, 0]: "balanced"})
    return Story(
        title=TITLE,
        source="GRPO after Shao et al., DeepSeekMath (2024), section 4.1. Trained for this workbook.",
        about=[
            "A chatbot first imitates texts. Then it learns from rewards: it writes several "
            "answers, and the answers with a higher reward become more likely.",
            worded(
                "In this workbook, cells do this second part. A transformer of {n} numbers "
                "writes books: debits (D), credits (C), and END. At first it imitates random "
                "books.",
                n=sum(x.size for x in learning.load()[NEW].values()),
            ),
            worded(
                "A text is right if it ends, and has as many debits as credits. At first {share:.1%} "
                "of the texts are right. Nobody shows the model a right text: it only gets rewards.",
                share=w.now(right),
            ),
            worded(
                "After 200 steps, {share:.1%} of the texts are right. But {one:.1%} of them are the "
                "same text, ‘DC’. A larger penalty (beta) keeps more variety.",
                share=after_steps(right),
                one=after_steps(w["likeliest.share"][0, 1]),
            ),
            worded(
                "Why it matters: a reward teaches what is rewarded, not what is true. The "
                "model is now {sure:.0%} sure of the next word of a random book, and right in "
                "{right:.0%} of all cases.",
                sure=after_steps(w["certainty"][0, 1]),
                right=after_steps(w["certainty"][1, 1]),
            ),
            "What to do: on the sheet Learn choose ‘learn’ in the green cell, and hold down F9. Two "
            "presses of F9 make one step. Or choose ‘balanced’ at ‘begin with’.",
        ],
        look=[
            "The sheet Learn shows the eight texts of each step, their rewards, and the curve. "
            "Choose another reward, or type another beta.",
            "The sheet Before and after compares the first texts with the current texts: right "
            "texts, variety, certainty. The sheets Texts and Beginnings list all texts and "
            "beginnings.",
            "The sheets Step 1 to Step 6 show every number of a step: model, texts, forward pass, "
            "loss, gradients, Adam.",
        ],
        suggestions=suggestions(w),
    )


def suggestions(w: Workbook) -> list[Suggestion]:
    """Three edits: a model that has learnt, a larger beta, another reward."""
    begin, reward = w["begin"][0, 0], w["reward"][0, 0]
    right, varied, gap = w["kinds"][0, 1], w["variety"][1, 1], w["certainty"][2, 1]
    return [
        w.suggestion(
            "Choose ‘balanced’: after 200 steps, {then:.1%} of the texts are right, not {now:.1%}. "
            "The calibration error (ECE) rises from {gap.now:.1%} to {gap.then:.1%}: the model is "
            "much too sure.",
            {begin: "balanced"},
            right,
            gap=gap,
        ),
        w.suggestion(
            "Choose ‘beta 0.5’, a larger penalty: after 200 steps, the variety is like "
            "{then:.1f} equally likely texts, not {now:.1f} as at first. {most.then:.0%} of "
            "the texts are right.",
            {begin: "beta 0.5"},
            varied,
            most=right,
        ),
        w.suggestion(
            "Choose ‘ends with a credit’ as the reward, and ‘credit’ at ‘begin with’: after 200 "
            "steps, {then:.1%} of the texts end with a credit, not {now:.1%}. But only "
            "{balanced.then:.1%} balance, not {balanced.now:.1%}.",
            {reward: game.CREDIT_LAST, begin: "credit"},
            w["expected"][1, 1],
            balanced=right,
        ),
    ]
