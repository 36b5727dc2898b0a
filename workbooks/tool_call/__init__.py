"""tool-call: a trained model writes a sum, a calculator answers it, and the model reads the answer.

The model has one layer, and was trained on sentences with sums in them. Look at the belt: which
word is yours, which the model's, which the calculator's. Try another question, and try it with the
calculator off.

The weights are included, float32, in `models/tool-call`; `cellformer train tool-call --seed 0`
makes them again.
"""

from functools import partial
from pathlib import Path

import numpy as np

from cellformer.engine import Model, WordList
from cellformer.engine.learning import decoders, training
from cellformer.engine.learning.recipe import Recipe
from cellformer.engine.models import checkpoint
from cellformer.engine.models.generate import Passage
from cellformer.engine.studies import ablation
from cellformer.exporters.assemble import model_workbook
from cellformer.exporters.assemble.transformer import assemble
from cellformer.exporters.compose.book import Book
from cellformer.exporters.compose.story import Chosen, Story, Suggestion
from cellformer.workbooks.tool_call import belt, calculator, sums

TOPIC, AFTER, LEVEL = "A whole model", "induction", 3
PROMPT = "<BOS> 12 shares at 10 euros cost"
N_TOKENS = 14  # columns of the workbook: the prompt, the sum, the answer, the end
FOLDER = Path(__file__).parent.parent / "models" / "tool-call"
SIZES = {"d_model": 16, "n_layers": 1, "n_heads": 4, "d_mlp": 32}
DECODER = decoders.new("gpt2", d_vocab=len(sums.WORDS), n_ctx=N_TOKENS, **SIZES)
RECIPE = Recipe(steps=1000, batch=64, embed_scale=0.3, learning_rate=5e-3)
N_REFERENCES = 32  # sentences over which each head's average is measured

STORY = Story(
    title="tool-call: a model writes a sum, a calculator answers, and the text goes on",
    source=
        "Based on L. Erzegovesi, The Final Step (2026), section 7: the conveyor belt. Weights "
        "trained for this workbook.",
    about=[
        "A language model can only write one word after another. To search, compute or send "
        "something, an assistant writes a request in words.",
        "A program outside the model reads the request, does the work, and writes the result "
        "into the text. Then the model continues.",
        "This small model learned from sentences like ‘12 shares at 6 euros cost 12 * 6 = 72 "
        "euros’. The model does not compute the answer.",
        "The model copies the numbers, chooses the sign and writes the sum. After the ‘=’, a "
        "cell of this workbook (the calculator) adds the answer.",
        "Why it matters: an assistant uses a tool by writing words. These words, and the results "
        "that come back, decide what the assistant can do.",
        "If the model writes a wrong sum, the calculator solves that sum. Without "
        "the tool, the model writes the likeliest number and continues.",
    ],
    examples=(PROMPT, "<BOS> 7 and 5 make", "<BOS> 9 less 4 leave"),
    look=[
        "The sheet Belt shows who wrote each word (you, the model or the "
        "calculator), and which word the model itself would choose there.",
        "On the sheet Play, type a question like the examples, with numbers from 2 to 12.",
        "The sheet Heads shows the attention of each word. To copy a number, a head looks back "
        "at that number.",
    ],
    suggestions=[
        Suggestion("Type ‘9 shares at 11 euros cost’ as the sentence: the calculator answers {then}. The model was not trained on this sum.",
                   ("sentence", 0, 0), "<BOS> 9 shares at 11 euros cost", ("belt.word", belt.LAST, 0)),
        Suggestion(
            "Type ‘<BOS> 12 euros less 10 euros leave 12 + 10 =’, a question with the wrong "
            "sign: the calculator adds and answers {then}. The model repeats the wrong result.",
                   ("sentence", 0, 0), "<BOS> 12 euros less 10 euros leave 12 + 10 =", ("belt.word", belt.LAST, 0)),
        Suggestion(
            "On the sheet Switches, type ‘0’ for the head that copies the first number. The "
            "model writes 9 * 10 =, and the calculator answers {then}. The calculator gives the "
            "right answer to a wrong question.",
                   ("blocks.0.attn.h3.switch", 0, 0), 0.0, ("belt.word", belt.LAST, 0)),
    ],
)  # fmt: skip
GROUPS = {
    "verbs": ("cost", "make", "leave"),
    "words between": ("at", "and", "less"),
    "signs": ("*", "+", "-", "="),
    "numbers": tuple(map(str, range(sums.SMALLEST, sums.LARGEST + 1))),
}
AXES = ((("make",), ("cost",)), (("leave",), ("cost",)))
CHOSEN = Chosen(
    groups={name: [sums.ID[word] for word in words] for name, words in GROUPS.items()},
    directions=[([sums.ID[w] for w in plus], [sums.ID[w] for w in minus]) for plus, minus in AXES],
    nearest=sums.ID["cost"],
)


def model() -> Model:
    """The included model, with each head's average over sentences of its training."""
    texts = sums.sentences(np.random.default_rng(0), N_REFERENCES)
    return ablation.averaged(checkpoint.load(FOLDER), texts.tolist())


def build(model: Model, passage: Passage) -> Book:
    """The workbook of a question, the sum, the answer and the end; without the sheet Belt where there
    is no room for them."""
    if len(passage.ids) <= belt.LAST:
        return model_workbook.build("tool-call", model, passage)
    return assemble(
        "tool-call",
        model,
        calculator.laid(model, passage),
        STORY,
        study=belt.add,
        chosen=CHOSEN,
        on_layout=calculator.add,
    )


# each step's progress and, last, the trained model: of a seed, embed_scale=, steps=
train = partial(training.of_words, DECODER, RECIPE, sums.sentences, WordList(sums.WORDS))


floor = sums.floor


def figures(model: Model) -> list[tuple[str, str]]:
    """The share of right sums that a model writes, and the share of its own right answers."""
    found = []
    for text, asked in (("trained on", sums.learnt()), ("held out", sums.held_out())):
        right = sums.right(model, asked)
        found += [
            (f"the model writes the sum correctly, sums {text}", f"{right.call:.2%}"),
            (
                f"the model answers correctly without the calculator, sums {text}",
                f"{right.answer:.2%}",
            ),
            (f"the model ends the sentence correctly, sums {text}", f"{right.end:.2%}"),
        ]
    return found
