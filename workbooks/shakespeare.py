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
    source=
        "Trained for this workbook on 40,000 lines of Shakespeare's plays, a selection called "
        "tinyshakespeare. The text is in the public domain.",
    about=[
        "A model of 0.77 million weights has read a million letters of Shakespeare's plays, and "
        "nothing else.",
        "Nobody gave the model words, spelling or rules. The model only predicts how likely each "
        "of 65 characters is to come next.",
        "The model has learnt to spell and to end lines. It starts the text of a new speaker "
        "with the name in capitals.",
        "The sentences rarely make sense.",
        "Why it matters: the model is built like GPT-2. It has three layers of four heads, "
        "vectors of 144 numbers, and a context of 64 characters.",
        "Chatbots have more size, text and training, but they use the same formulas.",
        "On unseen plays, the model's loss is 1.51 nats per character, like a guess "
        "among 4.5 equally likely characters. nanoGPT's model of this size has a "
        "loss of 1.88.",
        "nanoGPT's large model has a loss of 1.47.",
    ],
    examples=(PROMPT, "My lor", "To be, o"),
    look=[
        "On the sheet Play, the model is not sure after ‘Good m’: o has 57 %, y 22 %, a 10 %. "
        "The model takes the likeliest letter each time.",
        "The text continues “orrow, that thou shalt”. The sign ␣ is a space, and \\n is the end "
        "of a line. Type ‘ROMEO:’ and read what Romeo says.",
        "The sheet Heads shows where each head looks. Head 0.0 looks at the previous letter. "
        "Head 0.3 looks two letters back.",
        "The sheet Lens shows the model's prediction after each layer. The sheet Words shows "
        "which characters are similar for the model.",
    ],
    suggestions=[
        Suggestion("Choose ‘n’ instead of the last letter: ‘i’ rises from {now:.1%} to {then:.0%}, and the text continues “Good night shall be so stand”.",
                   5, "n", ("probs", LAST, CHARACTERS.index("i"))),
        Suggestion(
            "On the sheet Switches, type ‘0’ for the head that looks at the previous letter: the "
            "model can no longer spell. ‘e’ rises from {now:.1%} to {then:.0%}: “Good me to the "
            "thin thin thin”.",
                   ("blocks.0.attn.h0.switch", 0, 0), 0.0, ("probs", LAST, CHARACTERS.index("e"))),
        Suggestion(
            "Type ‘0.5’ here, and choose ‘sampled’ in the cell above: ‘o’ now has {then:.0%}, "
            "not {now:.0%}. A random choice gives another text: “Good morrow, that I have by "
            "the”.",
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
