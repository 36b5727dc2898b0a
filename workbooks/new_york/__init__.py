"""new-york: the word after New depends on the words before it, and a trained head looks back at
them.

The model has one layer, and was trained on twenty sentences. Look at Contexts: what it says
after `The state of New`, beside a table of the last words. Try `The Empire State Building is in
New`, and a head switched off.

The weights are included, float32, in `models/new-york`; `cellformer train new-york --seed 2` makes
them again. From seed 1 the model never tells White Sands from White Mountains.
"""

from functools import partial
from pathlib import Path

from cellformer.engine import Model, WordList
from cellformer.engine.learning import decoders, training
from cellformer.engine.learning.recipe import Recipe
from cellformer.engine.models import checkpoint
from cellformer.engine.models.generate import Passage
from cellformer.engine.studies import ablation
from cellformer.exporters.assemble.transformer import assemble
from cellformer.exporters.compose.book import Book
from cellformer.exporters.compose.story import Chosen, Story, Suggestion
from cellformer.workbooks.new_york import contexts, texts

TOPIC, AFTER, LEVEL = "A whole model", "induction", 3
PROMPT = "<BOS> The state of New"
N_TOKENS = texts.LENGTH
FOLDER = Path(__file__).parent.parent / "models" / "new-york"
SIZES = {"d_model": 12, "n_layers": 1, "n_heads": 2, "d_mlp": 24}
DECODER = decoders.new("gpt2", d_vocab=len(texts.WORDS), n_ctx=N_TOKENS, **SIZES)
RECIPE = Recipe(steps=600, batch=32, embed_scale=0.3, learning_rate=1e-2)
EMPIRE = "<BOS> The Empire State Building is in New"
UNREAD = "<BOS> Dartmouth University is in New"

STORY = Story(
    title="new-york: the same last word, but the words before it decide what follows",
    source=
        "Based on A Gentle Introduction to Transformers (2025), A hypothetical language model. "
        "The sentences and weights were made for this workbook.",
    about=[
        "After ‘The Empire State Building is in New’, the next word is almost always ‘York’. But "
        "the last word, ‘New’, does not decide the next word alone.",
        "After ‘The state of New’, ‘York’, ‘Jersey’, ‘Mexico’ or ‘Hampshire’ can follow. A table "
        "that uses only the last word gives the same answer for both sentences.",
        "A table that uses the last three words, ‘is in New’, gives the same answer for ten "
        "places. The deciding word stands further back, at different distances.",
        "A small model, with one layer and two heads, was trained on twenty sentences. At ‘New’, "
        "a head looks back at ‘state’, or at ‘Empire’ and ‘Building’.",
        "The head adds the information from these words to the vector of ‘New’. So "
        "‘New’ can lead to different words, or to four words with the right shares.",
        "Why it matters: attention exists to bring information from earlier words. The model "
        "also has a limit: it knows only twelve places. It never read a mix of two places.",
        "Yet the model is almost as sure about a mix of two places as about a real place.",
    ],
    examples=(PROMPT, "<BOS> The Empire State Building is in New", "<BOS> The Statue of Liberty is in New"),
    look=[
        "The sheet Contexts shows the next words from the model, and from tables of the last "
        "one, two and three words. The sheet also shows where each head looks.",
        "On the sheet Play, type a sentence from the sheet Contexts, but only up to ‘New’. The "
        "model continues the sentence.",
        "On the sheet Switches, type ‘0’ for both heads. The model then uses only the last word "
        "and the position of that word.",
    ],
    suggestions=[
        Suggestion("Type ‘The Empire State Building is in New’ as the sentence: ‘York’ rises from {now:.0%} to {then:.1%}, and all other words fall.",
                   ("sentence", 0, 0), EMPIRE, ("contexts.next", 0, contexts.MODEL)),
        Suggestion("Choose ‘country’ as the third word: ‘Zealand’ rises from {now:.1%} to {then:.1%}.",
                   2, "country", ("contexts.next", texts.NAMES.index("Zealand"), contexts.MODEL)),
        Suggestion(
            "Type ‘Dartmouth University is in New’, a new sentence. The model knows Dartmouth "
            "College and Yale University. ‘Hampshire’ rises from {now:.0%} to {then:.0%}.",
                   ("sentence", 0, 0), UNREAD, ("contexts.next", 3, contexts.MODEL)),
    ],
)  # fmt: skip
GROUPS = {
    "after New": texts.NAMES,
    "kinds": ("state", "city", "country"),
    "places": ("Empire", "Liberty", "Columbia", "Princeton", "Sands", "Mountains", "Dartmouth", "Yale"),
    "shared": ("The", "White", "University", "is", "in", "New"),
}  # fmt: skip
AXES = ((("York",), ("Jersey",)), (("Mexico",), ("Hampshire",)))
CHOSEN = Chosen(
    groups={name: [texts.ID[word] for word in words] for name, words in GROUPS.items()},
    directions=[
        ([texts.ID[w] for w in plus], [texts.ID[w] for w in minus]) for plus, minus in AXES
    ],
    nearest=texts.ID["York"],
)


def model() -> Model:
    """The included model, with each head's average over all sentences."""
    return ablation.averaged(checkpoint.load(FOLDER), texts.IDS.tolist())


def build(model: Model, passage: Passage) -> Book:
    """The workbook of a sentence; without the sheet Contexts for a model of other words."""
    known = model.vocabulary.texts == texts.WORDS
    return assemble(
        "new-york", model, passage, STORY, study=contexts.add if known else None, chosen=CHOSEN
    )


# each step's progress and, last, the trained model: of a seed, embed_scale=, steps=
train = partial(training.of_words, DECODER, RECIPE, texts.sentences, WordList(texts.WORDS))


floor = texts.floor


def figures(model: Model) -> list[tuple[str, str]]:
    """The largest difference between the model's probabilities after New and the shares of its
    texts."""
    gaps = {start: gap(model, start) for start in texts.TIMES}
    worst = max(gaps, key=lambda start: gaps[start])
    return [
        ("largest difference from the shares in the texts", f"{gaps[worst]:.1%}, after {worst}")
    ]


def gap(model: Model, start: str) -> float:
    """The largest difference between the model's probability of a word and its share in the
    texts."""
    probs = model.graph(model.vocabulary.encode(f"{texts.BOS} {start}")).values["probs"][-1]
    shares = texts.follows(start)
    return max(
        abs(float(p) - shares.get(word, 0)) for word, p in zip(texts.WORDS, probs, strict=True)
    )
