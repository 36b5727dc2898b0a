"""shakespeare: a character-level model of Shakespeare's plays; `Good m` is typed, and it continues.

Look at Play, where the text continues itself; type another beginning, and read its continuation.
Heads shows which characters each character attends to, Lens what the model would predict half-way.

The weights are included, float16, in `models/shakespeare`; `cellformer train shakespeare --text
FILE -o DIR` trains them again on the text (see docs/shakespeare.md).
"""

import json
from functools import cache
from pathlib import Path

from cellformer.engine import Model
from cellformer.engine.learning.text_training import TextRun
from cellformer.engine.models import checkpoint
from cellformer.engine.models.generate import Passage
from cellformer.engine.studies import ablation
from cellformer.exporters.assemble.transformer import assemble
from cellformer.exporters.compose.book import Book
from cellformer.exporters.compose.story import LAST, Story, Suggestion

TOPIC, AFTER, LEVEL = "A whole model", "dialogue-game", 3
PROMPT = "Good m"  # morrow, my, man, men: it is not sure
N_TOKENS = 32  # columns of the workbook: the prompt, and room to continue it
REFERENCES = (  # lines over which the averages of heads and MLPs are measured
    "First Citizen:\nBefore we proceed any further, hear me speak.\n",
    "ROMEO:\nBut, soft! what light through yonder window breaks?\n",
    "JULIET:\nO Romeo, Romeo! wherefore art thou Romeo?\n",
    "KING RICHARD III:\nA horse! a horse! my kingdom for a horse!\n",
)
FOLDER = Path(__file__).parent / "models" / "shakespeare"
CHARACTERS = json.loads((FOLDER / "characters.json").read_text("utf-8"))
RUN = TextRun(n_layers=3, n_heads=4, d_model=144, context=64, steps=6000, batch=32, half=True)

STORY = Story(
    title="shakespeare: a small language model, letter by letter, every number live",
    source="Trained for this workbook on 40,000 lines of Shakespeare's plays, the cut known as tinyshakespeare; the text is in the public domain.",
    about=[
        "A model of 0.77 million weights has read a million letters of Shakespeare's plays, and nothing else. No word was",
        "given to it, no spelling, no rule: all that it does is to say how likely each of 65 characters is to come next. So",
        "it has learnt to spell, to end lines, and to let the next one speak, whose name it writes in capitals; its sentences",
        "make hardly ever sense.",
        "Why it matters: it is built as GPT-2 is, with three layers of four heads, vectors of 144 numbers, and 64 characters that it sees at",
        "once. What chatbots have more of is size, text and training; the formulas are these.",
        "On plays that it has not seen its loss is 1.51 nats per character, as if it guessed among 4.5; nanoGPT's model of its size has 1.88,",
        "its large one 1.47.",
    ],
    look=[
        "Play: after ‘Good m’ the model is not sure: o has 57 %, y 22 %, a 10 %. It takes the likeliest, and the text goes on by itself, letter by",
        "letter: “orrow, that thou shalt”. A space is shown as ␣, and the end of a line as \\n. Type ROMEO: and see what he says.",
        "Heads: head 0.0 looks at the letter before, head 0.3 at the one before that.",
        "Lens: what the model would say after each layer. Words: which characters are alike to it.",
    ],
    suggestions=[
        Suggestion("Choose ‘n’ instead of the last letter: ‘i’ rises from {now:.1%} to {then:.0%}, and the text continues “Good night shall be so stand”.",
                   5, "n", ("probs", LAST, CHARACTERS.index("i"))),
        Suggestion("Type ‘0’ on Switches for the head that looks at the letter before: the model cannot spell any more. ‘e’ rises from {now:.1%} to {then:.0%}: “Good me to the thin thin thin”.",
                   ("blocks.0.attn.h0.switch", 0, 0), 0.0, ("probs", LAST, CHARACTERS.index("e"))),
        Suggestion("Type ‘0.5’, and choose ‘sampled’ above it: ‘o’ has {then:.0%}, not {now:.0%}. Chance draws another text: “Good morrow, that I have by the”.",
                   ("temperature", 0, 0), 0.5, ("probs", LAST, CHARACTERS.index("o")), also=((("choose", 0, 0), "sampled"),)),
    ],
)  # fmt: skip


@cache  # its averages take many passes
def model() -> Model:
    """The included model, with the average outputs of its heads and MLPs over the REFERENCES."""
    shipped = checkpoint.load(FOLDER)
    return ablation.averaged(shipped, [shipped.vocabulary.encode(text) for text in REFERENCES])


def build(model: Model, passage: Passage) -> Book:
    """The workbook of a beginning and its continuation."""
    return assemble("shakespeare", model, passage, STORY)
