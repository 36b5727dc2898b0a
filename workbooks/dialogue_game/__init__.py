"""dialogue-game: a trained transformer that plays the calling game, `Pietro chiama Paolo Tarso`.

Two layers, four heads, 64 dimensions, 28 words. Look at the heads, switch one off, and see which
rule of the game breaks; type another sentence, and see it continue itself.

The weights are included, float32, in `models/dialogue-game`; `cellformer train dialogue-game --seed
9` trains a model like it (docs/dialogue-game.md says how this one was chosen).
"""

from functools import cache, partial

import numpy as np

from cellformer.engine import Model, WordList
from cellformer.engine.learning import decoders, training
from cellformer.engine.learning.recipe import Recipe
from cellformer.engine.models import checkpoint
from cellformer.engine.models.generate import Passage
from cellformer.engine.studies import ablation
from cellformer.engine.studies.price import Text
from cellformer.exporters.assemble.transformer import assemble
from cellformer.exporters.compose.book import Book
from cellformer.exporters.compose.story import LAST, Chosen, Story, Suggestion
from cellformer.exporters.model.model_book import ModelBook
from cellformer.workbooks.dialogue_game import (
    calibration,
    game,
    measured,
    printed,
    reliability,
    rules,
)

TOPIC, AFTER, LEVEL = "A whole model", "new-york", 3
PROMPT = "<BOS> Pietro chiama Paolo"
N_TOKENS = 16  # columns of the workbook: the prompt, and room to continue it
FOLDER = measured.FOLDER
SIZES = {"d_model": 64, "n_layers": 2, "n_heads": 4, "d_mlp": 256}
DECODER = decoders.new("gpt2", d_vocab=len(game.WORDS), n_ctx=game.LENGTH - 1, **SIZES)
RECIPE = Recipe(steps=5000, batch=64, embed_scale=0.3)
N_REFERENCES = 32  # games over which each head's average is measured
N_FRESH = 1000  # turns that an edit is priced over

STORY = Story(
    title="dialogue-game: a trained transformer, every number live",
    source=
        "Based on the calling game in L. Erzegovesi, The Final Step (2026). Weights trained for "
        "this workbook.",
    about=[
        "A small transformer was trained on an Italian calling game until it predicted as well "
        "as the rules allow. Nobody told the model the rules.",
        (
            "In this workbook, every number that the model computes is a formula. You can edit "
            "every weight."
        ),
        "In the game, two leaders (Pietro, Paolo) and eight numbers call each other in turn. "
        "‘Pietro chiama Paolo’ means: Pietro calls Paolo.",
        "The called player answers, and calls somebody else. Different players call a leader by "
        "different names. Pietro calls Paolo ‘Tarso’.",
        "A number calls Paolo ‘vice’ (deputy) and Pietro ‘capo’ (boss). Paolo calls Pietro "
        "‘Cefa’. A player who says an absurd word loses (perde).",
        "Why it matters: the rules are known exactly. So you can say what a part of the model "
        "does, and not only where this part looks.",
        "Head 1.2 decides between Tarso and vice. It looks at the verb, where head 0.0 has put "
        "the caller’s name. Without head 0.0, head 1.2 looks at Paolo, but the answer stays.",
    ],
    examples=(PROMPT, "<BOS> Pietro chiama", "<BOS> 3 chiama Paolo"),
    look=[
        "On the sheet Play, the model continues the sentence, token by token. After ‘Pietro "
        "chiama Paolo’, Tarso gets a probability of 0.9999.",
        "The sheet Heads shows which token looks at which token. On the sheet Rules, guess what "
        "each head does, switch the head off, and see which rule breaks.",
        "The sheet Lens shows the model's word after each layer. The sheet Calibration shows "
        "whether the model's probabilities are right, even after nonsense.",
        "The sheet Reliability shows the same model after a reward for right answers. The model "
        "becomes more sure, but not better.",
        "The sheet Words shows the 28 words on maps, along directions that you choose. The sheet "
        "Printed compares the essay's figures with ours.",
    ],
    suggestions=[
        Suggestion(
            "Type ‘<BOS> Pietro chiama’ as the sentence: Pietro may call anybody. The likeliest "
            "word has only {then:.0%}, not {now:.3%}: eight numbers are almost equally likely.",
                   ("sentence", 0, 0), calibration.UNSURE, ("nonsense.now", 0, 0)),
        Suggestion(
            "Choose ‘3’ instead of ‘Pietro’. When a number calls, Paolo is ‘vice’ (deputy). "
            "‘vice’ rises from {now:.3%} to {then:.3%}, and the game continues from there.",
                   1, "3", ("probs", LAST, game.ID["vice"])),
        Suggestion(
            "Type ‘0’ on Switches for this head: the answer is now ‘vice’, as if a number had "
            "called. ‘Tarso’ falls from {now:.3%} to {then:.3%}. The model still names losers "
            "correctly 93.5 % of the time.",
                   ("blocks.1.attn.h2.switch", 0, 0), 0.0, ("probs", LAST, game.ID["Tarso"])),
    ],
    likeliest={3: 9, 4: 1},  # uncertain after ‘chiama’, sure after ‘Paolo’
    words=[
        "chiama: calls · perde: loses · Pietro, Paolo: Peter, Paul · Cefa, Tarso: nicknames · capo: boss · vice: deputy",
        "The other eight words are absurd, for example ‘sugar’. <BOS> begins a game, <SEP> ends "
        "a turn.",
    ],
)  # fmt: skip

ROLES = {
    "leaders": game.LEADERS, "epithets": game.EPITHETS, "numbers": game.NUMBERS,
    "verbs": game.VERBS, "absurd words": game.ABSURD, "marks": game.MARKS,
}  # fmt: skip
AXES = ((("Paolo",), ("Pietro",)), (("Tarso", "Cefa"), ("capo", "vice")))  # the essay's two
CHOSEN = Chosen(
    groups={role: [game.ID[word] for word in words] for role, words in ROLES.items()},
    directions=[([game.ID[w] for w in plus], [game.ID[w] for w in minus]) for plus, minus in AXES],
    nearest=game.ID["Tarso"],
    suggestions=[
        Suggestion(
            "Type ‘Cefa’ to see the neighbours of this word: the nearest is now ‘{then}’, not "
            "‘{now}’. Both are names of the same leader.",
                   ("map.near", 0, 0), "Cefa", ("map.near_word", 0, 0)),
        Suggestion(
            "Type ‘1’ as the number of components left out. The longest vectors hardly count: "
            "the map shows {then:.0%} of the spread, not {now:.0%}.",
                   ("map.left_out", 0, 0), 1, ("map.shown_share", 0, 0)),
        Suggestion(
            "Type ‘7’ instead of ‘Paolo’ in direction 1. This direction then leads to a number. "
            "The plane shows {then:.1%} of the spread, not {now:.1%}.",
                   ("map.terms", 0, 0), "7", ("map.plane_share", 0, 0)),
    ],
)  # fmt: skip


@cache  # its averages take many passes
def model() -> Model:
    """The included model, with each head's average over fresh games."""
    games = game.games(np.random.default_rng(0), N_REFERENCES)
    return ablation.averaged(checkpoint.load(FOLDER), games[:, :-1].tolist())


def build(model: Model, passage: Passage) -> Book:
    """The workbook of a prompt and its continuation."""
    return assemble("dialogue-game", model, passage, STORY, study=_studies, chosen=CHOSEN)


def _studies(book: ModelBook) -> None:
    """Add the workbook's own sheets."""
    rules.add(book)
    calibration.add(book)
    reliability.add(book)
    if book.passage.ids[: book.passage.n_prompt] == book.model.vocabulary.encode(PROMPT):
        printed.add(book)


# each step's progress and, last, the trained model: of a seed, embed_scale=, steps=
train = partial(training.of_words, DECODER, RECIPE, game.games, WordList(game.WORDS))


floor = game.floor


def fresh() -> list[Text]:
    """A thousand turns of games outside the training data, with the rules that bind each word."""
    return game.turns(np.random.default_rng(measured.SEED), N_FRESH)


def figures(model: Model) -> list[tuple[str, str]]:
    """A model's results on fresh games, which no training seed draws."""
    games = game.games(np.random.default_rng(measured.SEED), measured.N_GAMES)
    calls = dict(zip(game.WORDS, _next(model, "<BOS> Pietro chiama"), strict=True))
    numbers = [calls[n] for n in game.NUMBERS]
    found = [
        ("Tarso after <BOS> Pietro chiama Paolo", f"{_next(model, PROMPT)[game.ID['Tarso']]:.5f}"),
        ("a number after <BOS> Pietro chiama", f"{min(numbers):.4f} to {max(numbers):.4f}"),
        ("Paolo after <BOS> Pietro chiama", f"{calls['Paolo']:.4f}"),
        ("loss", f"{game.loss(model, games):.4f}"),
        ("its floor", f"{game.floor(games):.4f}"),
    ]
    heads = [p for p in ablation.parts(model.graph([0])) if p.rpartition(".")[2][0] == "h"]
    changes = [{}, *({(f"{head}.switch", 0, 0): 0.0} for head in heads)]
    kept = game.accuracies(model, games, changes)  # [1 + n_heads, n_rules]
    found += [(text, f"{x:.4%}") for text, x in zip(game.RULES.values(), kept[0], strict=True)]
    for head, row in zip(heads, kept[1:], strict=True):
        broken = {rule: x for rule, x in zip(game.RULES, row, strict=True) if x < rules.BROKEN}
        others = min(x for rule, x in zip(game.RULES, row, strict=True) if rule not in broken)
        if broken:
            text = ", ".join(f"{rule} {x:.4f}" for rule, x in broken.items())
            found.append((f"{head} off", f"{text}; every other rule has {others:.4f} or more"))
    return found


def _next(model: Model, prompt: str) -> np.ndarray:
    """The probabilities of the next word: [d_vocab]."""
    return np.asarray(model.graph(model.vocabulary.encode(prompt)).values["probs"][-1])
