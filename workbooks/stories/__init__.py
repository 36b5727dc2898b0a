"""stories: a small model learns stories of 84 words, and its word vectors are drawn as maps.

Look at Neighbours: which word stands nearest to each word, and why. Exchanged tells meaning from
grammar by a second model. Type the beginning of a story, and the model continues it.

The weights are included in `models/stories`; `python -m cellformer.workbooks.stories.learning` makes
them again.
"""

from functools import cache

import numpy as np

from cellformer.engine import Model
from cellformer.engine.models import checkpoint
from cellformer.engine.models.generate import Passage
from cellformer.engine.studies import ablation
from cellformer.exporters.assemble.transformer import assemble
from cellformer.exporters.compose.book import Book
from cellformer.exporters.compose.story import LAST, Chosen, Story, Suggestion
from cellformer.exporters.model.model_book import ModelBook
from cellformer.workbooks.stories import control, grammar, learning, neighbours, printed, rules

TOPIC, AFTER, LEVEL = "Words and positions", "semantic-tiny", 3
PROMPT = "<BOS> the happy girl and a dog"
COMPANION = "<BOS> the happy girl and a dog run to the river . so she and the"
BACK = len(COMPANION.split()) - 1  # its last word
N_TOKENS = grammar.LENGTH - 1  # as many as the model reads of a story
N_REFERENCES = 32  # stories over which each part's average is measured

STORY = Story(
    title="stories: what maps of word vectors show, and what they hide",
    source=
        "Based on L. Erzegovesi, Embeddings and the Maps We Draw of Them (2026), section 5: the "
        "capstone. Stories and weights made for this workbook.",
    about=[
        "The essay draws maps of 84 words from a model of children’s stories. Here a small model "
        "learns 84 words from stories that a grammar writes.",
        "Each story has two sentences: who goes where, and what happens there. Happy heroes "
        "laugh, sad heroes cry, and a fish can only swim.",
        "On the maps, animals stand near animals, and colours near colours. Does the model know "
        "what the words mean?",
        "No: it reads numbers instead of words. Two words are near if the grammar puts them in "
        "the same places. See the sheet Exchanged.",
        "A second model read stories in which 34 words had exchanged their roles. For 97 % of "
        "these words, the nearest word has the same new role. For 6 %, it has a similar "
        "meaning.",
        "So opposites can be neighbours: ‘big’ and ‘small’ have a cosine of 0.97, because no "
        "rule tells them apart. ‘happy’ and ‘sad’ are less near, because only sad heroes cry.",
        "Why it matters: a map of a large model also shows how words are used. In real texts, use "
        "and meaning often agree, but not always.",
    ],
    examples=(PROMPT, "<BOS> the sad king and a bear run to the sea .", COMPANION),
    look=[
        "On the sheet Play, type the beginning of a story, and the model continues it. Here the "
        "girl and the dog swim in the sea, and laugh.",
        "The sheet Neighbours shows the nearest word of each word, and what both have in common. "
        "The sheet Words has the maps, and four pictures by t-SNE.",
        "The sheet Exchanged separates meaning from grammar. The sheet Rules shows the learnt "
        "rules. The sheet Printed compares the essay’s figures with ours.",
    ],
    suggestions=[
        Suggestion((
            "Choose ‘fish’ instead of ‘girl’: ‘swim’ rises from {now:.0%} to {then:.1%}. Six "
            "verbs fit here, but a fish can only swim."
        ),
                   3, "fish", ("probs", LAST, grammar.ID["swim"])),
        Suggestion(
            "Type ‘<BOS> the happy girl and a dog run to the river . so she and the’ as the "
            "sentence: ‘dog’ has {then:.0%}. The companion of the first sentence comes back.",
                   ("sentence", 0, 0), COMPANION, ("probs", BACK, grammar.ID["dog"])),
        Suggestion(
            "Keep the sentence ‘the happy girl and a dog run to the river . so she and the’. Type ‘0’ "
            "on Switches for head 0.0: ‘dog’ falls to {then:.1%}. This head looks back at the companion.",
                   ("blocks.0.attn.h0.switch", 0, 0), 0.0, ("probs", BACK, grammar.ID["dog"]),
                   also=((("sentence", 0, 0), COMPANION),)),
    ],
    words=[
        "<BOS> begins a story, and <EOS> ends a story.",
        "Verbs have no ending (‘he and the dog run’), so that each word has one form.",
    ],
)  # fmt: skip
AXES = ((("girl", "woman", "queen"), ("boy", "man", "king")), (("cat", "dog", "bear"), ("girl", "boy", "man")))  # fmt: skip
_id = grammar.ID.__getitem__
CHOSEN = Chosen(
    groups={name: [_id(word) for word in words] for name, words in grammar.GROUPS.items()},
    directions=[([*map(_id, plus)], [*map(_id, minus)]) for plus, minus in AXES],
    nearest=_id("cat"),
)  # fmt: skip


@cache  # its averages take many passes
def model() -> Model:
    """The included model, with each part's average over stories."""
    told = grammar.sentences(np.random.default_rng(0), N_REFERENCES)
    return ablation.averaged(
        checkpoint.load(learning.FOLDER / learning.OWN),
        [ids[ids >= 0][:-1].tolist() for ids in told],
    )


def build(model: Model, passage: Passage) -> Book:
    """The workbook of the beginning of a story."""
    return assemble("stories", model, passage, STORY, study=_studies, chosen=CHOSEN)


def _studies(book: ModelBook) -> None:
    """Add the workbook's own sheets."""
    for page in (neighbours, control, rules, printed):
        page.add(book)


train, floor, figures = learning.train, grammar.floor, rules.figures
